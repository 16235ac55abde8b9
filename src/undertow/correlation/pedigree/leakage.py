"""What counts and allele dosages of relatives leak, exactly, over all attackers.

Two reductions, both exact, say which attackers on a family must be looked at; for
each of them the law of the query value is computed by elimination, and two such laws
under Laplace noise differ most at one of the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.level import check_level, largest_level
from undertow.correlation.pedigree._factor import (
    Factor,
    ValueLattice,
    eliminate,
    elimination_order,
    polynomial_power,
    read_lattice,
    shift_by_degree,
)
from undertow.correlation.pedigree.model import (
    Genotype,
    Pedigree,
    conditional_tables,
    inheritance_factor,
    require_possible,
)
from undertow.correlation.query import CountQuery, Query, Scope
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import NotApplicable
from undertow.numeric.exact import exact, round_up
from undertow.numeric.rounding import inflate
from undertow.results import Witness

_THEOREM = "exact enumeration of attackers by elimination"
# Law entries that are computed at all, and without being asked by name.
_MOST_WORK = 1e8
_CHEAP_WORK = 1e7
# Least probability of a family's genotypes that is told from zero, as a logarithm.
_LEAST_LOG = math.log(1e-280)


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """The laws of one family, and how many noise scales one lattice step is."""

    members: tuple[int, ...]
    laws: FamilyLaws
    step: float
    change: float

    def worst(self, epsilon: float) -> tuple[float, WorstPair]:
        """Return the leakage at a DP level, rounded up, and the worst attacker."""
        return raised_worst_pair(self.laws.laws, epsilon * self.step / self.change)


@dataclass(frozen=True, slots=True, eq=False)
class _Relatives:
    """A query of relatives, and the laws of each kind of family."""

    pedigree: Pedigree
    query: Query
    families: tuple[_Family, ...]

    def worst(self, epsilon: float) -> tuple[float, _Family, WorstPair]:
        """Return the leakage, rounded up but never above the general bound."""
        found = [(*family.worst(epsilon), family) for family in self.families]
        value, worst, family = max(found, key=lambda case: case[0])
        general = round_up(exact(epsilon) * self.pedigree.largest_group)
        return min(value, general), family, worst


class PedigreeTheorem(FormulaTheorem):
    """The exact leakage of Laplace counts and dosages on a pedigree.

    Notes
    -----
    Every attacker is covered: those left out of the enumeration never do better, which
    is proved on the theory page. Refuses families that are too large or tangled, and
    queries other than counts and linear ones.
    """

    name = "elimination"
    source = _THEOREM
    published = False
    checked = ("every attacker on every family",)

    def read(self, model: Any, query: Query) -> _Relatives:
        """Return the laws of every kind of family."""
        pedigree = _require_pedigree(model)
        return _Relatives(pedigree, query, tuple(_families(pedigree, query)))

    def at(self, given: _Relatives, epsilon: float) -> Leakage:
        """Return the exact leakage with noise of scale change over `epsilon`."""
        value, family, worst = given.worst(epsilon)
        return self.stated(
            value,
            witness=_witness(given.pedigree, family, worst),
            tight=True,
            mechanisms=laplace_words(given.query),
            scope=Scope.every_pair(),  # clipped genotypes included
        )

    def within(self, given: _Relatives, target: float) -> float:
        """Return the largest DP level found whose leakage is at most `target`."""
        return largest_level(
            lambda epsilon: given.worst(epsilon)[0], target, name=self.name
        )

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return why large families are left to the general bound by default."""
        try:
            work = max(
                plan.work() for plan, _ in _plans(_require_pedigree(model), query)
            )
        except NotApplicable:
            return None  # asked again, the method itself says why
        if work <= _CHEAP_WORK:
            return None
        return f"elimination would compute {work:.2g} numbers for the largest family"


def pedigree_leakage(
    pedigree: Pedigree, epsilon: float, *, query: Query | None = None
) -> Leakage:
    r"""Return what a noisy count or dosage of relatives leaks, exactly.

    .. math:: \mathrm{BDPL} = \max_{(K, i)} \max_{x_K, x, x'} \max_s
        \ln \frac{\sum_v \Pr[f = v \mid x_K, x]\, e^{-|s-v|\varepsilon/\Delta}}
                 {\sum_v \Pr[f = v \mid x_K, x']\, e^{-|s-v|\varepsilon/\Delta}}

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    epsilon : float
        DP level of the release; non-negative and finite.
    query : CountQuery or LinearQuery, optional
        What is released, with Laplace noise or, for whole values, discrete Laplace
        noise of scale change/epsilon; by default the count of BB.

    Returns
    -------
    Leakage
        Attained by its witness, up to a relative margin of 1e-12 upwards.

    Raises
    ------
    NotApplicable
        If a family is too large or tangled, or the founder law is missing.

    Notes
    -----
    Proved in the documentation (pedigrees): the supremum over outputs is at a support
    point; only connected unknown sets matter; siblings are exchangeable. Checked: the
    pedigree. Not checkable: that it is complete, and the founder law. The cost is
    exponential in the number of members who have children, and cubic in the number of
    children of a couple.

    Examples
    --------
    >>> trio = Pedigree.nuclear(1, frequency=0.5)
    >>> round(pedigree_leakage(trio, 1.0).value, 9)
    2.240229014
    """
    asked = query if query is not None else CountQuery({Genotype.BB})
    return PedigreeTheorem().bound(pedigree, epsilon, query=asked)


def _require_pedigree(model: Any) -> Pedigree:
    if not isinstance(model, Pedigree):
        raise NotApplicable(
            f"elimination needs a pedigree, got {type(model).__name__}; use the "
            "general bound."
        )
    if model.founder is None:
        raise NotApplicable(
            "elimination needs the law of founders, got a pedigree without; give it "
            "frequency= or founder=, or use the general bound, which needs neither."
        )
    return model


def _plans(pedigree: Pedigree, query: Query) -> list[tuple[FamilyPlan, float]]:
    """Return a plan and the lattice step for each kind of family that occurs."""
    kinds: dict[Any, tuple[FamilyPlan, float]] = {}
    for family in pedigree.families:
        lattice = read_lattice(query, pedigree.size, family)
        place = {person: position for position, person in enumerate(family)}
        shape = tuple(
            tuple(None if p is None else place[p] for p in pedigree.parents[j])
            for j in family
        )
        key = (shape, lattice.degrees, lattice.step)
        if key not in kinds:
            degrees = dict(zip(family, lattice.degrees, strict=True))
            kinds[key] = plan_family(pedigree, family, degrees), lattice.step
    return list(kinds.values())


def _families(pedigree: Pedigree, query: Query) -> list[_Family]:
    change = query.sensitivity(pedigree)
    families = []
    for plan, step in _plans(pedigree, query):
        _require_affordable(plan)
        _require_positive(plan)
        families.append(_Family(plan.family, family_laws(plan), step, change))
    return families


def _require_affordable(plan: FamilyPlan) -> None:
    work = plan.work()
    if work > _MOST_WORK:
        size = len(plan.family)
        raise NotApplicable(
            f"elimination must compute at most {_MOST_WORK:.0e} numbers, got "
            f"{work:.2e} for a family of {size}; use the general bound, "
            f"{size} times epsilon."
        )


def _require_positive(plan: FamilyPlan) -> None:
    """Refuse laws so extreme that a possible event could be rounded to zero."""
    total = 0.0
    for person in plan.family:
        law = plan.pedigree.inheritance(person)
        total += math.log(float(law[law > 0].min()))
    if total < _LEAST_LOG:
        raise NotApplicable(
            "elimination needs genotypes of probability above 1e-280 where they are "
            f"possible at all, got exp({total:.0f}) for a family of "
            f"{len(plan.family)}; use the general bound."
        )


def laplace_words(query: Query) -> str:
    """Return the class of mechanisms an exact value holds for."""
    kinds = "Laplace or discrete Laplace" if query.is_integer else "Laplace"
    return f"{kinds} noise on the {query.name} query"


def _witness(pedigree: Pedigree, family: _Family, worst: WorstPair) -> Witness | None:
    if worst.row < 0:
        return None
    case = family.laws.circumstance(worst.row)
    hidden = {case.target, *case.unknown}
    known = [j for j in range(pedigree.size) if j not in hidden]
    return adversary_witness(
        Adversary(case.target, known, case.values),
        pair=pair_words(worst.pair),
        note=_note(case),
    )


def pair_words(pair: tuple[int, int]) -> tuple[str, str]:
    """Return two genotypes by name."""
    return Genotype(pair[0]).name, Genotype(pair[1]).name


def _note(case: Circumstance) -> str:
    if not case.values:
        return "no relative of the unknown is known"
    listed = [f"{j} = {Genotype(value).name}" for j, value in case.values.items()]
    shown = ", ".join(listed[:6]) + (", ..." if len(listed) > 6 else "")
    return f"known relatives that matter: {shown}"


# What one given attacker learns from a count or dosage of relatives.

# Known relatives without a value, over whose genotypes the leakage is maximised.
_MOST_OPEN = 10


def pedigree_adversary_leakage(
    pedigree: Pedigree,
    epsilon: float,
    *,
    adversary: Adversary,
    query: Query | None = None,
) -> Leakage:
    """Return what one attacker learns from a noisy count or dosage, exactly.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    epsilon : float
        DP level of the release.
    adversary : Adversary
        Known relatives without a value count with their worst one. Unknown people of
        other families are taken as known, which never lowers the leakage; the value is
        an upper bound then, and otherwise exact.
    query : CountQuery or LinearQuery, optional
        As in :func:`pedigree_leakage`.

    Raises
    ------
    ModelError
        If the known genotypes cannot occur together.

    Notes
    -----
    One elimination: linear in the size of the family, exponential in the number of
    known relatives without a value (at most 10).

    Examples
    --------
    >>> trio = Pedigree.nuclear(1, frequency=0.5)
    >>> known = Adversary(1, {0}, {0: 2})
    >>> round(pedigree_adversary_leakage(trio, 1.0, adversary=known).value, 9)
    2.0
    """
    epsilon, adversary = check_level(epsilon), adversary.within(pedigree.size)
    asked = query if query is not None else CountQuery({Genotype.BB})
    family = next(f for f in pedigree.families if adversary.target in f)
    lattice = read_lattice(asked, pedigree.size, family)
    laws = _laws_facing(pedigree, family, adversary, lattice)
    unit = epsilon * lattice.step / asked.sensitivity(pedigree)
    value, found = raised_worst_pair(laws, unit)
    pair = None if found.row < 0 else pair_words(found.pair)
    alone = set(range(pedigree.size)) <= {*family, *adversary.known}
    return Leakage(
        value,
        "exact elimination for one attacker",
        witness=adversary_witness(adversary, pair=pair),
        tight=True if alone else None,
        method="elimination",
        mechanisms=laplace_words(asked),
        scope=Scope.every_pair(),  # clipped genotypes included
        attackers=adversary.summary,
    )


def _laws_facing(
    pedigree: Pedigree,
    family: Sequence[int],
    adversary: Adversary,
    lattice: ValueLattice,
) -> NDArray[np.float64]:
    """Return the laws of the unknown part of the query, by what the target is."""
    values = pedigree.check_genotypes(adversary.values)
    inside = {j: values[j] for j in family if j in values}
    free = [j for j in family if j in adversary.known and j not in inside]
    if len(free) > _MOST_OPEN:
        raise NotApplicable(
            f"at most {_MOST_OPEN} known relatives may be without a value, got "
            f"{len(free)}; give their values, or use pedigree_leakage."
        )
    degrees = dict(zip(family, lattice.degrees, strict=True))
    unknown = {j: degrees[j] for j in family if j not in adversary.known}
    scope = (*free, adversary.target)
    table = conditional_tables(
        pedigree, family, degrees=unknown, known=inside, free=scope
    ).table
    weights = table.reshape(-1, 3, table.shape[-1])
    totals = weights.sum(axis=-1, keepdims=True)
    require_possible(float(totals.sum()))
    laws: NDArray[np.float64] = weights / np.where(totals > 0, totals, 1.0)
    return laws


# All conditional laws of the query value that attackers on one family can face.

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


# Which attackers on a family must be looked at: two reductions, both exact.
#
# *Connected unknowns.* Relatives who are unknown but cut off from the target by known
# ones add the same noise under both hypotheses, which never helps the attacker; so only
# unknown sets that are connected with the target matter, and of the known people only
# those next to the set.
#
# *Exchangeable siblings.* Childless full siblings that the query treats alike may be
# permuted; only how many of them are known, and with which genotypes, matters.

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


# The largest log-ratio of two Laplace mixtures, for many pairs at once.
#
# Between neighbouring support points the ratio of two mixtures of Laplace densities of
# one scale is a Möbius function of :math:`e^{2s/b}`, hence monotone, and outside the
# support it is constant. Its supremum over all outputs is therefore attained at a
# support point; for discrete Laplace noise on the same lattice it is the same number.

# Beyond this exponent the kernel leaves the range of floats; logarithms are used.
_LARGEST_EXPONENT = 600.0
# Largest span in noise scales: far beyond any use, and far from overflow.
_LARGEST_SPAN = 1e9
# Margins that cover the rounding of products, sums and logarithms: relative to the
# value, and relative to what the noise can tell at all, should the value be far less.
_MARGIN = 1e-12
_SLACK = 1e-14
# Entries handled at once.
_CHUNK = 2_000_000


@dataclass(frozen=True, slots=True)
class WorstPair:
    """The largest log-ratio, and where: row, the two states, the output's degree."""

    value: float
    row: int
    pair: tuple[int, int]
    output: int


def log_densities(laws: Laws, unit: float) -> Laws:
    r"""Return :math:`\ln \sum_j p_j e^{-u|i-j|}` at every support point i.

    Parameters
    ----------
    laws : ndarray of shape (..., T)
        Probabilities of the support points 0, ..., T - 1; each law sums to one or is
        all zero.
    unit : float
        Exponent u of one step: step over noise scale.

    Notes
    -----
    Near 0 it is computed as ``log1p`` of the sum with ``expm1``, so that differences
    keep their relative accuracy as u tends to 0.
    """
    points = np.arange(laws.shape[-1], dtype=float)
    exponents = -unit * np.abs(points[:, None] - points[None, :])
    if -exponents.min() > _LARGEST_EXPONENT:
        return _log_sums(laws, exponents)
    moved = laws @ np.expm1(exponents)
    with np.errstate(divide="ignore"):
        far = np.log(laws @ np.exp(exponents))
    near = np.log1p(np.maximum(moved, -0.75))
    return np.where(moved > -0.5, near, far)


def _log_sums(laws: Laws, exponents: Laws) -> Laws:
    with np.errstate(divide="ignore"):
        logs = np.log(laws)
    total = np.full_like(logs, -np.inf)
    for j in range(laws.shape[-1]):
        total = np.logaddexp(total, logs[..., j : j + 1] + exponents[j])
    return total


def worst_pair(laws: Laws, unit: float) -> WorstPair:
    """Return the largest log-ratio between two possible states of one row.

    Parameters
    ----------
    laws : ndarray of shape (rows, states, T)
        For each row and state the law of the value; all zero for impossible states.
    unit : float
        Exponent of one step.

    Returns
    -------
    WorstPair
        Value 0 at row -1 if no row has two possible states.

    Examples
    --------
    >>> laws = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> worst_pair(laws, 0.5)
    WorstPair(value=0.5, row=0, pair=(0, 1), output=0)
    """
    best = WorstPair(0.0, -1, (0, 0), 0)
    rows = max(1, _CHUNK // (laws.shape[1] * laws.shape[2]))
    for start in range(0, laws.shape[0], rows):
        found = _worst_in(laws[start : start + rows], unit)
        if found.value > best.value:
            best = WorstPair(found.value, start + found.row, found.pair, found.output)
    return best


def raised_worst_pair(laws: Laws, unit: float) -> tuple[float, WorstPair]:
    """Return the largest log-ratio, rounded up, and where it is attained.

    Raises
    ------
    NotApplicable
        If the noise is so small that exponents could leave the range of floats.

    Notes
    -----
    Raised by 1e-12 of the value, and by 1e-14 of the whole span in noise scales (at
    most 1), which matters only where the value is far below the DP level.
    """
    span = unit * (laws.shape[-1] - 1) if laws.size else 0.0
    if span > _LARGEST_SPAN:
        raise NotApplicable(
            f"elimination needs a query that spans at most {_LARGEST_SPAN:.0e} noise "
            f"scales, got {span:.3g}; use the general bound."
        )
    worst, told = worst_pair(laws, unit), min(1.0, span)
    return inflate(worst.value, _MARGIN) + _SLACK * told, worst


def _worst_in(laws: Laws, unit: float) -> WorstPair:
    logs = log_densities(laws, unit)
    possible = laws.max(axis=-1) > 0
    best = WorstPair(0.0, -1, (0, 0), 0)
    for x, y in combinations(range(laws.shape[1]), 2):
        both = possible[:, x] & possible[:, y]
        if not both.any():
            continue
        rows = np.flatnonzero(both)
        ratio = logs[rows, x] - logs[rows, y]
        for sign, pair in ((1, (x, y)), (-1, (y, x))):
            at = int(np.argmax(sign * ratio))
            row, output = divmod(at, ratio.shape[1])
            value = sign * float(ratio[row, output])
            if value > best.value:
                best = WorstPair(value, int(rows[row]), pair, output)
    return best
