"""Attackers and pairs of secrets of a finite law, as laws of the unknown records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.adversary import Adversary
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.lipschitz import threshold_ratio

__all__ = ["Contrast", "Wanted", "contrasts", "wanted_attackers"]

Floats = NDArray[np.float64]
Wanted = Callable[[int, tuple[int, ...]], bool] | None
"""Whether to look at a record with some known records of its group; None for all."""

# Relative difference up to which two conditional laws are the same but for rounding.
_SAME = 1e-14


@dataclass(frozen=True, slots=True)
class Contrast:
    """An attacker and two secrets inside a group; records are numbered in it."""

    target: int
    known: tuple[int, ...]
    states: tuple[int, ...]
    pair: tuple[int, int]

    def index(self, record: int, state: int) -> int | slice:
        """Return where a record stands when the target has a state."""
        if record == self.target:
            return state
        if record in self.known:
            return self.states[self.known.index(record)]
        return slice(None)

    def laws(self, joint: JointTable) -> tuple[Floats, Floats]:
        """Return the laws of the unknown records under the two secrets."""
        cells = (
            joint.pmf[tuple(self.index(j, state) for j in range(joint.size))]
            for state in self.pair
        )
        p, q = (np.asarray(cell / cell.sum(), dtype=np.float64) for cell in cells)
        return p, q


def wanted_attackers(
    joint: JointTable, adversaries: str | Iterable[Adversary]
) -> Wanted:
    """Return which (record, known records of its group) to look at; None for all."""
    if adversaries == "all":
        return None
    if adversaries == "none-known":
        return lambda target, known: not known
    if isinstance(adversaries, str):
        raise ValueError(
            "adversaries must be 'all', 'none-known' or a list of them, "
            f"got {adversaries!r}."
        )
    group_of = {j: set(group) for group in joint.independent_groups() for j in group}
    chosen = {
        (one.target, tuple(sorted(one.known & group_of[one.target])))
        for one in (adversary.within(joint.size) for adversary in adversaries)
    }
    if not chosen:
        raise ValueError("adversaries must name at least one attacker, got none.")
    return lambda target, known: (target, known) in chosen


def contrasts(
    part: JointTable, epsilon: float, group: tuple[int, ...], wanted: Wanted
) -> Iterator[tuple[float, Contrast]]:
    """Yield attackers and pairs of a group with an upper bound on their log ratio."""
    for target in range(part.size):
        others = [j for j in range(part.size) if j != target]
        for count in range(part.size):
            for known in itertools.combinations(others, count):
                names = tuple(group[j] for j in known)
                if wanted is None or wanted(group[target], names):
                    yield from _pairs(part, epsilon, target, known, wanted is None)


def _pairs(
    part: JointTable, epsilon: float, target: int, known: tuple[int, ...], skip: bool
) -> Iterator[tuple[float, Contrast]]:
    unknown = [j for j in range(part.size) if j != target and j not in known]
    shape = [part.shape[j] for j in known], [part.shape[j] for j in unknown]
    table = part.pmf.transpose([*known, target, *unknown])
    table = table.reshape(-1, part.shape[target], math.prod(shape[1]))
    likely = table.sum(axis=-1)
    for a, b in itertools.permutations(range(part.shape[target]), 2):
        rows = np.flatnonzero((likely[:, a] > 0) & (likely[:, b] > 0))
        p, q = (table[rows, z] / likely[rows, z, None] for z in (a, b))
        if skip and unknown:
            kept = ~_dominated(p, q, shape[1])
            rows, p, q = rows[kept], p[kept], q[kept]
        bounds = threshold_ratio(p, q, len(unknown) * epsilon)
        for row, bound in zip(rows.tolist(), bounds.tolist(), strict=True):
            states = tuple(int(z) for z in np.unravel_index(row, shape[0] or (1,)))
            yield bound, Contrast(target, known, states[: len(known)], (a, b))


def _dominated(p: Floats, q: Floats, shape: list[int]) -> NDArray[np.bool_]:
    """Return for which rows an unknown record has the same law under both secrets.

    Both output laws are then mixtures with the same weights over that record, so the
    attacker who knows it too, with its worst state, learns at least as much.
    """
    same = np.zeros(len(p), dtype=bool)
    first, second = (law.reshape(-1, *shape) for law in (p, q))
    for axis in range(len(shape)):
        summed = tuple(k + 1 for k in range(len(shape)) if k != axis)
        one, other = first.sum(axis=summed), second.sum(axis=summed)
        gap = np.abs(one - other) <= _SAME * np.minimum(one, other)
        same |= gap.all(axis=-1)
    return same
