"""Reading a pedigree from plain records, as a JSON file holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from undertow._validate import check_count
from undertow.correlation.pedigree.kinship import Parents
from undertow.errors import ModelError

__all__ = ["PedigreeRecords", "nuclear_parents", "read_records"]

_PERSON_KEYS = {"id", "father", "mother"}
_FILE_KEYS = {"people", "nuclear", "frequency", "founder"}
_NUCLEAR_KEYS = {"children", "families", "unrelated"}


@dataclass(frozen=True, slots=True)
class PedigreeRecords:
    """What records say: parents and names by index, and the founder law if given."""

    parents: tuple[Parents, ...]
    names: tuple[str, ...] | None = None
    frequency: float | None = None
    founder: tuple[float, ...] | None = None


def read_records(records: Any) -> PedigreeRecords:
    """Read a list of people, or a mapping with ``"people"`` or ``"nuclear"``.

    Parameters
    ----------
    records : sequence of mapping, or mapping
        People are ``{"id": ..., "father": ..., "mother": ...}``; a parent who is not
        recorded is None or left out. A mapping may also hold ``"frequency"`` or
        ``"founder"``. Unknown keys are refused.

    Examples
    --------
    >>> read_records([{"id": "Ann"}, {"id": "Eve", "mother": "Ann"}]).parents
    ((None, None), (None, 0))
    >>> read_records({"nuclear": {"children": 1}, "frequency": 0.5}).parents
    ((None, None), (None, None), (0, 1))
    """
    if not isinstance(records, Mapping):
        return _read_people(records)
    _check_keys(records, _FILE_KEYS, "a pedigree")
    if ("people" in records) == ("nuclear" in records):
        raise ModelError("a pedigree must hold either 'people' or 'nuclear'.")
    if "people" in records:
        read = _read_people(records["people"])
    else:
        read = PedigreeRecords(_read_nuclear(records["nuclear"]))
    founder = records.get("founder")
    return PedigreeRecords(
        read.parents,
        read.names,
        records.get("frequency"),
        None if founder is None else tuple(founder),
    )


def nuclear_parents(
    children: int, *, families: int = 1, unrelated: int = 0
) -> tuple[Parents, ...]:
    """Return families of two parents and their children, then unrelated people.

    Examples
    --------
    >>> nuclear_parents(1, unrelated=1)
    ((None, None), (None, None), (0, 1), (None, None))
    """
    children = check_count(children, "children")
    families = check_count(families, "families")
    unrelated = check_count(unrelated, "unrelated", minimum=0)
    people: list[Parents] = []
    for _ in range(families):
        first = len(people)
        people += [(None, None)] * 2 + [(first, first + 1)] * children
    return tuple(people + [(None, None)] * unrelated)


def _read_nuclear(entry: Any) -> tuple[Parents, ...]:
    if not isinstance(entry, Mapping) or "children" not in entry:
        raise ModelError(f"nuclear must hold a number of 'children', got {entry!r}.")
    _check_keys(entry, _NUCLEAR_KEYS, "nuclear")
    return nuclear_parents(
        entry["children"],
        families=entry.get("families", 1),
        unrelated=entry.get("unrelated", 0),
    )


def _read_people(people: Any) -> PedigreeRecords:
    listed = _check_people(people)
    index: dict[Hashable, int] = {}
    for position, person in enumerate(listed):
        if person["id"] in index:
            raise ModelError(f"ids must differ, got {person['id']!r} twice.")
        index[person["id"]] = position
    parents = tuple(_find_parents(person, index) for person in listed)
    return PedigreeRecords(parents, tuple(str(person["id"]) for person in listed))


def _check_people(people: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(people, str | bytes | Mapping) or not isinstance(people, Iterable):
        raise ModelError(f"people must be a list of records, got {people!r}.")
    listed = list(people)
    for person in listed:
        if not isinstance(person, Mapping) or person.get("id") is None:
            raise ModelError(f"a person must be a record with an 'id', got {person!r}.")
        if not isinstance(person["id"], str | int):
            raise ModelError(f"an id must be text or a number, got {person['id']!r}.")
        _check_keys(person, _PERSON_KEYS, f"person {person['id']!r}")
    return listed


def _find_parents(person: Mapping[str, Any], index: Mapping[Hashable, int]) -> Parents:
    found: list[int | None] = []
    for role in ("father", "mother"):
        name = person.get(role)
        if name is not None and name not in index:
            raise ModelError(
                f"{role} of {person['id']!r} must be the id of a person, got {name!r}; "
                "leave out a parent who is not recorded."
            )
        if name is not None and name == person["id"]:
            raise ModelError(f"person {name!r} must not be their own {role}.")
        found.append(None if name is None else index[name])
    return found[0], found[1]


def _check_keys(entry: Mapping[str, Any], known: set[str], what: str) -> None:
    stray = sorted(str(key) for key in set(entry) - known)
    if stray:
        listed = ", ".join(repr(key) for key in sorted(known))
        raise ModelError(f"{what} must hold {listed} only, got {stray[0]!r}.")
