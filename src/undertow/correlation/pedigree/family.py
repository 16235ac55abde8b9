"""All conditional laws of the query value that attackers on one family can face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.pedigree.elimination import inheritance_factor
from undertow.correlation.pedigree.factor import (
    Factor,
    eliminate,
    elimination_order,
    polynomial_power,
    shift_by_degree,
)
from undertow.correlation.pedigree.sibship import FamilyPlan, Sibship

__all__ = ["Circumstance", "FamilyLaws", "family_laws"]

Laws = NDArray[np.float64]

# Laws whose probabilities agree to this many parts are one law.
_ALIKE = 2.0**46
# Entries collected before duplicates are dropped.
_WAITING = 4_000_000


@dataclass(frozen=True, slots=True)
class Circumstance:
    """What one attacker knows: the target, the unknown, the values of the boundary.

    Parameters
    ----------
    target : int
        The person aimed at.
    unknown : frozenset of int
        The relatives who are not known, the target left out.
    values : mapping of int to int
        Genotypes of the known people next to them; everybody else is known too, and
        their genotypes make no difference.
    """

    target: int
    unknown: frozenset[int]
    values: dict[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """One target and unknown set; its cases are the values of the boundary."""

    target: int
    unknown: frozenset[int]
    scope: tuple[int, ...]
    shape: tuple[int, ...]
    siblings: dict[int, tuple[tuple[int, ...], Laws]]

    def circumstance(self, case: int) -> Circumstance:
        """Return who knows what in a case."""
        at = np.unravel_index(case, self.shape) if self.shape else ()
        values: dict[int, int] = {}
        for variable, index in zip(self.scope, at, strict=True):
            if variable not in self.siblings:
                values[variable] = int(index)
                continue
            people, counts = self.siblings[variable]
            listed = np.repeat(np.arange(3), counts[index].astype(int))
            values |= dict(zip(people, listed.tolist(), strict=True))
        return Circumstance(self.target, self.unknown, values)


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLaws:
    """The laws of the family's query value, target genotype by target genotype.

    Parameters
    ----------
    laws : ndarray of shape (rows, 3, span + 1)
        For each circumstance and genotype of the target: the law of the value summed
        over the target and the unknown; zero where the genotype is impossible.
    origin : ndarray of shape (rows, 2)
        Block and case that each row comes from.
    blocks : tuple
        The blocks.
    """

    laws: Laws
    origin: NDArray[np.int64]
    blocks: tuple[_Block, ...]

    def circumstance(self, row: int) -> Circumstance:
        """Return what the attacker of a row knows."""
        block, case = self.origin[row].tolist()
        found: Circumstance = self.blocks[block].circumstance(case)
        return found


def family_laws(plan: FamilyPlan) -> FamilyLaws:
    """Compute every law that an attacker on the family can face.

    Notes
    -----
    One elimination for each target and connected unknown set, with the boundary open;
    see :class:`FamilyPlan` for why no other attacker does better. Values of the
    boundary that cannot occur are left out, so the maximum is attained. Of laws that
    agree to 1e-14 of each probability one is kept.
    """
    width = plan.span + 1
    laws, origin = np.zeros((0, 3, width)), np.zeros((0, 2), dtype=np.int64)
    blocks: list[_Block] = []
    waiting: list[tuple[Laws, NDArray[np.int64]]] = []
    entries = 0
    for block, joint in _blocks(plan):
        cases, found = _cases(joint)
        wide = np.zeros((cases.size, 3, width))
        wide[..., : found.shape[-1]] = found
        numbers = np.full(cases.size, len(blocks), dtype=np.int64)
        waiting.append((wide, np.stack([numbers, cases], axis=1)))
        blocks.append(block)
        entries += wide.size
        if entries > _WAITING:
            laws, origin = _merged(laws, origin, waiting)
            waiting, entries = [], 0
    laws, origin = _merged(laws, origin, waiting)
    return FamilyLaws(laws, origin, tuple(blocks))


def _merged(
    laws: Laws,
    origin: NDArray[np.int64],
    waiting: Sequence[tuple[Laws, NDArray[np.int64]]],
) -> tuple[Laws, NDArray[np.int64]]:
    """Append the waiting laws and drop those that are there already."""
    laws = np.concatenate([laws, *(found for found, _ in waiting)])
    origin = np.concatenate([origin, *(where for _, where in waiting)])
    mantissa, exponent = np.frexp(laws.reshape(laws.shape[0], 3 * laws.shape[-1]))
    rounded = np.ldexp(np.round(mantissa * _ALIKE), exponent)
    _, first = np.unique(rounded, axis=0, return_index=True)
    kept = np.sort(first)
    return laws[kept], origin[kept]


def _cases(joint: Factor) -> tuple[NDArray[np.int64], Laws]:
    """Return the cases in which the target may have two genotypes, and their laws."""
    weights = joint.table.reshape(-1, 3, joint.table.shape[-1])
    totals = weights.sum(axis=-1, keepdims=True)
    cases = np.flatnonzero((totals[..., 0] > 0).sum(axis=-1) >= 2)
    laws = weights[cases] / np.where(totals[cases] > 0, totals[cases], 1.0)
    return cases, laws


def _blocks(plan: FamilyPlan) -> Iterator[tuple[_Block, Factor]]:
    for sibship in plan.sibships:  # both parents known: siblings do not matter
        yield _SetLaws(plan, frozenset(), sibship.parents, ()).for_sibling(sibship, ())
    for unknown in plan.unknown_sets:
        near = plan.touched(unknown)
        laws = _SetLaws(plan, unknown, plan.boundary(unknown), near)
        for hidden in product(*(range(s.size + 1) for s in near)):
            for target in sorted(unknown):
                yield laws.for_core(target, hidden)
            for sibship, count in zip(near, hidden, strict=True):
                if count:
                    yield laws.for_sibling(sibship, hidden)


class _SetLaws:
    """Laws for one unknown set of core members: what its targets share."""

    def __init__(
        self,
        plan: FamilyPlan,
        unknown: frozenset[int],
        boundary: tuple[int, ...],
        near: tuple[Sibship, ...],
    ) -> None:
        self.plan, self.unknown, self.boundary, self.near = (
            plan,
            unknown,
            boundary,
            near,
        )
        self.fixed = [*self._touching(), _possible(plan, unknown, boundary)]
        self.tables: dict[tuple[Sibship, int, int], tuple[Factor, Laws]] = {}

    def _touching(self) -> Iterator[Factor]:
        for person in self.plan.core:
            factor = inheritance_factor(self.plan.pedigree, person)
            if self.unknown & set(factor.scope):
                yield factor

    def for_core(self, target: int, hidden: Sequence[int]) -> tuple[_Block, Factor]:
        """Aim at a member of the set; `hidden` siblings of each sibship unknown."""
        counts = dict(zip(self.near, hidden, strict=True))
        return self._block(target, counts, target_factor=None)

    def for_sibling(
        self, sibship: Sibship, hidden: Sequence[int]
    ) -> tuple[_Block, Factor]:
        """Aim at one of the hidden siblings of a sibship."""
        counts = dict(zip(self.near, hidden, strict=True))
        target = sibship.members[0]
        law = inheritance_factor(self.plan.pedigree, target)
        if sibship in counts:
            counts[sibship] -= 1
        return self._block(target, counts, target_factor=law)

    def _block(
        self,
        target: int,
        hidden: dict[Sibship, int],
        *,
        target_factor: Factor | None,
    ) -> tuple[_Block, Factor]:
        factors, siblings = list(self.fixed), dict[int, tuple[tuple[int, ...], Laws]]()
        unknown = set(self.unknown) - {target}
        for number, (sibship, count) in enumerate(hidden.items()):
            others = tuple(j for j in sibship.members if j != target)
            unknown |= set(others[:count])
            variable = -1 - number  # a variable for what the known siblings are
            factor, configurations = self._sibling_factor(
                sibship, count, len(others) - count
            )
            factors.append(Factor((*factor.scope, variable), factor.table))
            siblings[variable] = (others[count:], configurations)
        if target_factor is not None:
            factors.append(target_factor)
        joint = self._joint(target, factors, tuple(siblings))
        scope = (*self.boundary, *siblings)
        shape = joint.table.shape[:-2]
        return _Block(target, frozenset(unknown), scope, shape, siblings), joint

    def _joint(
        self, target: int, factors: list[Factor], siblings: tuple[int, ...]
    ) -> Factor:
        """Sum out the unknown set; boundary, known siblings and target stay open."""
        degrees = self.plan.degrees
        sizes = {v: f.table.shape[-2] for f in factors for v in f.scope if v < 0}
        order, _ = elimination_order(
            [f.scope for f in factors], self.unknown - {target}, sizes=sizes
        )
        joint = eliminate(factors, order, degrees=degrees)
        joint = shift_by_degree(joint, target, degrees[target])
        left = (*self.boundary, *siblings, target)
        return Factor(left, joint.aligned(left))

    def _sibling_factor(
        self, sibship: Sibship, hidden: int, known: int
    ) -> tuple[Factor, Laws]:
        key = (sibship, hidden, known)
        if key not in self.tables:
            self.tables[key] = _sibling_factor(self.plan, sibship, hidden, known)
        return self.tables[key]


def _sibling_factor(
    plan: FamilyPlan, sibship: Sibship, hidden: int, known: int
) -> tuple[Factor, Laws]:
    """Return the weight of known siblings times the counts of hidden ones.

    The table has an axis for each parent, then one for what the known siblings are:
    the numbers of bb, Bb and BB among them.
    """
    person = sibship.members[0]
    law = plan.pedigree.inheritance(person)
    counts = np.array(
        [(a, b, known - a - b) for a in range(known + 1) for b in range(known + 1 - a)],
        dtype=float,
    )
    weight = np.power(law[..., None, :], counts).prod(axis=-1)
    each = np.zeros((*law.shape[:-1], max(plan.degrees[person]) + 1))
    for genotype, degree in enumerate(plan.degrees[person]):
        each[..., degree] += law[..., genotype]
    table = weight[..., None] * polynomial_power(each, hidden)[..., None, :]
    return Factor(plan.pedigree.recorded_parents(person), table), counts


def _possible(
    plan: FamilyPlan, unknown: frozenset[int], boundary: tuple[int, ...]
) -> Factor:
    """Return 1 for values of the boundary that the rest of the family allows, else 0.

    The people beyond the boundary matter in no other way.
    """
    factors = []
    for person in plan.core:
        factor = inheritance_factor(plan.pedigree, person)
        if not unknown & set(factor.scope):
            factors.append(Factor(factor.scope, (factor.table > 0).astype(float)))
    rest = set(plan.core) - unknown - set(boundary)
    order, _ = elimination_order([f.scope for f in factors], rest)
    allowed = eliminate(factors, order)
    return Factor(allowed.scope, (allowed.table > 0).astype(float))
