"""What counts and allele dosages of relatives leak, exactly, over all attackers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.method import Method, check_level, largest_epsilon
from undertow.correlation.pedigree.family import Circumstance, FamilyLaws, family_laws
from undertow.correlation.pedigree.lattice import read_lattice
from undertow.correlation.pedigree.mendel import Genotype
from undertow.correlation.pedigree.pedigree import Pedigree
from undertow.correlation.pedigree.ratio import WorstPair, raised_worst_pair
from undertow.correlation.pedigree.sibship import FamilyPlan, plan_family
from undertow.correlation.query import CountQuery, Query
from undertow.correlation.result import Leakage
from undertow.correlation.scope import Scope
from undertow.errors import NotApplicable
from undertow.privacy.exact import exact, round_up
from undertow.privacy.result import Witness

__all__ = ["PedigreeMethod", "laplace_words", "pair_words", "pedigree_leakage"]

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


class PedigreeMethod(Method):
    """The exact leakage of Laplace counts and dosages on a pedigree.

    Notes
    -----
    Every attacker is covered: those left out of the enumeration never do better, which
    is proved on the theory page. Refuses families that are too large or tangled, and
    queries other than counts and linear ones.
    """

    name: ClassVar[str] = "elimination"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the exact leakage of `query` with noise of scale change/`epsilon`."""
        epsilon = check_level(epsilon)
        pedigree = _require_pedigree(model)
        return _leakage_of(_families(pedigree, query), pedigree, epsilon, query=query)

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest DP level found whose leakage is at most `target`."""
        pedigree = _require_pedigree(model)
        families = _families(pedigree, query)
        group = pedigree.largest_group
        return largest_epsilon(
            lambda epsilon: _value(families, epsilon, group=group)[0],
            target,
            name=self.name,
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
    return PedigreeMethod().leakage(pedigree, epsilon, query=asked)


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


def _value(
    families: Sequence[_Family], epsilon: float, *, group: int
) -> tuple[float, _Family, WorstPair]:
    """Return the leakage, rounded up but never above the general bound."""
    found = [(*family.worst(epsilon), family) for family in families]
    value, worst, family = max(found, key=lambda case: case[0])
    return min(value, round_up(exact(epsilon) * group)), family, worst


def _leakage_of(
    families: Sequence[_Family], pedigree: Pedigree, epsilon: float, *, query: Query
) -> Leakage:
    value, family, worst = _value(families, epsilon, group=pedigree.largest_group)
    return Leakage(
        value,
        _THEOREM,
        checked=("every attacker on every family",),
        witness=_witness(pedigree, family, worst),
        tight=True,
        method="elimination",
        mechanisms=laplace_words(query),
        scope=Scope.every_pair(),  # clipped genotypes included
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
