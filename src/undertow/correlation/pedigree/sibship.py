"""Which attackers on a family must be looked at: two reductions, both exact.

*Connected unknowns.* Relatives who are unknown but cut off from the target by known
ones add the same noise under both hypotheses, which never helps the attacker; so only
unknown sets that are connected with the target matter, and of the known people only
those next to the set.

*Exchangeable siblings.* Childless full siblings that the query treats alike may be
permuted; only how many of them are known, and with which genotypes, matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from undertow.correlation.pedigree.pedigree import Pedigree
from undertow.errors import NotApplicable

__all__ = ["FamilyPlan", "Sibship", "plan_family"]

# Time to sum out one person, measured in law entries.
_ENTRIES_PER_SUM = 500.0
# Most connected unknown sets that are listed.
_MOST_SETS = 20_000

Degrees = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Sibship:
    """Childless siblings with the same recorded parents and the same query values."""

    members: tuple[int, ...]
    parents: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of siblings."""
        return len(self.members)


@dataclass(frozen=True)
class FamilyPlan:
    """What must be enumerated for one family.

    Parameters
    ----------
    pedigree : Pedigree
        The pedigree of the family.
    family : tuple of int
        Its members.
    degrees : mapping
        Steps of the query value of each member's genotypes.
    core : tuple of int
        Members with children, and founders; the others are in sibships.
    sibships : tuple of Sibship
        The childless members that have recorded parents.
    neighbours : mapping
        The moral graph on the core.
    unknown_sets : tuple of frozenset
        The connected sets of core members.
    """

    pedigree: Pedigree
    family: tuple[int, ...]
    degrees: Mapping[int, Degrees]
    core: tuple[int, ...]
    sibships: tuple[Sibship, ...]
    neighbours: Mapping[int, frozenset[int]]
    unknown_sets: tuple[frozenset[int], ...]

    @property
    def span(self) -> int:
        """Steps between the least and the greatest query value of the family."""
        return sum(max(self.degrees[person]) for person in self.family)

    def boundary(self, unknown: frozenset[int]) -> tuple[int, ...]:
        """Return the core members next to an unknown set: known to the attacker."""
        around = set[int]().union(*(self.neighbours[j] for j in unknown))
        return tuple(sorted(around - unknown))

    def touched(self, unknown: frozenset[int]) -> tuple[Sibship, ...]:
        """Return the sibships with a parent in an unknown set."""
        return tuple(s for s in self.sibships if unknown & set(s.parents))

    def work(self) -> float:
        """Return the cost: law entries to compute, and summing out, in such entries."""
        entries, sums = 9.0 * len(self.sibships), 0.0
        for unknown in self.unknown_sets:
            near = self.touched(unknown)
            targets = len(unknown) + len(near)
            known = 3.0 ** len(self.boundary(unknown))
            known *= math.prod(math.comb(s.size + 3, 3) for s in near)
            entries += known * targets
            sums += len(unknown) * targets * math.prod(s.size + 1 for s in near)
        return 3 * (self.span + 1) * entries + _ENTRIES_PER_SUM * sums


def plan_family(
    pedigree: Pedigree, family: Sequence[int], degrees: Mapping[int, Degrees]
) -> FamilyPlan:
    """Return the plan of a family.

    Raises
    ------
    NotApplicable
        If there are too many connected sets of unknown people.
    """
    having_children = {p for j in family for p in pedigree.recorded_parents(j)}
    leaves = [
        j for j in family if j not in having_children and pedigree.recorded_parents(j)
    ]
    core = tuple(j for j in family if j not in set(leaves))
    neighbours = _core_neighbours(pedigree, family, core)
    return FamilyPlan(
        pedigree,
        tuple(family),
        dict(degrees),
        core,
        _sibships(pedigree, leaves, degrees),
        neighbours,
        _connected_sets(neighbours),
    )


def _sibships(
    pedigree: Pedigree, leaves: Sequence[int], degrees: Mapping[int, Degrees]
) -> tuple[Sibship, ...]:
    alike: dict[tuple[tuple[int, ...], Degrees], list[int]] = {}
    for person in leaves:
        parents = tuple(sorted(pedigree.recorded_parents(person)))
        alike.setdefault((parents, degrees[person]), []).append(person)
    return tuple(Sibship(tuple(group), key[0]) for key, group in alike.items())


def _core_neighbours(
    pedigree: Pedigree, family: Sequence[int], core: Sequence[int]
) -> dict[int, frozenset[int]]:
    """Return the moral graph: parent and child are tied, and so are two parents."""
    inside = set(core)
    around: dict[int, set[int]] = {j: set() for j in core}
    for child in family:
        tied = {child, *pedigree.recorded_parents(child)} & inside
        for person in tied:
            around[person] |= tied - {person}
    return {person: frozenset(others) for person, others in around.items()}


def _connected_sets(
    neighbours: Mapping[int, frozenset[int]],
) -> tuple[frozenset[int], ...]:
    """Return every connected set of vertices, by growing each from single ones."""
    found = {frozenset({v}) for v in neighbours}
    fresh = list(found)
    while fresh:
        grown = {
            part | {v}
            for part in fresh
            for j in part
            for v in neighbours[j]
            if v not in part
        } - found
        found |= grown
        if len(found) > _MOST_SETS:
            raise NotApplicable(
                f"elimination must list at most {_MOST_SETS} connected sets of unknown "
                f"relatives, got more for a family with {len(neighbours)} members who "
                "have children or are founders; use the general bound."
            )
        fresh = list(grown)
    return tuple(sorted(found, key=lambda part: (len(part), sorted(part))))
