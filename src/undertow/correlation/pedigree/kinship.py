"""The graph of a pedigree: reading parents, generations, families, who is tied to whom.

Everything here is about indices; no probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undertow._validate import check_count
from undertow.errors import ModelError

__all__ = ["Parents", "connected_parts", "read_parents", "sorted_people"]

Parents = tuple[int | None, int | None]
"""Indices of a person's recorded parents; None where one is not recorded."""


def read_parents(
    parents: Iterable[Sequence[int | None] | None], names: Sequence[str] | None = None
) -> tuple[Parents, ...]:
    """Return one pair of parents for each person, after checking that it is a pedigree.

    Parameters
    ----------
    parents : iterable
        For each person None, or the indices of at most two recorded parents.
    names : sequence of str, optional
        What to call people in messages.

    Raises
    ------
    ModelError
        If a parent is unknown, a person is their own parent or ancestor, has more than
        two parents or the same one twice.
    """
    listed = [tuple(pair) if pair is not None else () for pair in parents]
    if not listed:
        raise ModelError("parents must name at least one person, got none.")
    checked = tuple(
        _read_pair(pair, child, size=len(listed)) for child, pair in enumerate(listed)
    )
    sorted_people(checked, names)
    return checked


def _read_pair(pair: tuple[int | None, ...], child: int, *, size: int) -> Parents:
    if len(pair) > 2:
        raise ModelError(
            f"parents of person {child} must be at most two, got {len(pair)}."
        )
    first, second = (*pair, None, None)[:2]
    for parent in (first, second):
        if parent is None:
            continue
        if check_count(parent, "parent", minimum=0) >= size:
            raise ModelError(
                f"parents of person {child} must be among the {size} people, "
                f"got {parent}; use None for a parent who is not recorded."
            )
        if parent == child:
            raise ModelError(f"person {child} must not be their own parent.")
    if first is not None and first == second:
        raise ModelError(
            f"parents of person {child} must be two people, got {first} twice."
        )
    return first, second


def sorted_people(
    parents: Sequence[Parents], names: Sequence[str] | None = None
) -> tuple[int, ...]:
    """Return all people, parents before their children.

    Raises
    ------
    ModelError
        If someone is their own ancestor.
    """
    missing = [sum(p is not None for p in pair) for pair in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, pair in enumerate(parents):
        for parent in pair:
            if parent is not None:
                children[parent].append(child)
    order = [person for person, count in enumerate(missing) if count == 0]
    for person in order:  # grows while it is read
        for child in children[person]:
            missing[child] -= 1
            if missing[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        stuck = _on_cycle(parents, set(range(len(parents))) - set(order))
        shown = stuck if names is None else names[stuck]
        raise ModelError(
            f"a pedigree must be acyclic, got person {shown!r} as their own ancestor."
        )
    return tuple(order)


def _on_cycle(parents: Sequence[Parents], stuck: set[int]) -> int:
    """Return a person on a cycle: walk up among the people who were never placed."""
    person, seen = min(stuck), set[int]()
    while person not in seen:
        seen.add(person)
        person = next(p for p in parents[person] if p is not None and p in stuck)
    return person


def connected_parts(
    size: int, edges: Iterable[tuple[int, int]]
) -> tuple[tuple[int, ...], ...]:
    """Return the connected components of a graph on ``range(size)``.

    Examples
    --------
    >>> connected_parts(4, [(2, 0)])
    ((0, 2), (1,), (3,))
    """
    root = list(range(size))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges:
        low, high = sorted((find(a), find(b)))
        root[high] = low
    parts: dict[int, list[int]] = {}
    for v in range(size):
        parts.setdefault(find(v), []).append(v)
    return tuple(tuple(part) for part in parts.values())
