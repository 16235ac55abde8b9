"""Choosing budgets: the least total noise, or the most of one more, within a loss.

The composed loss is the largest of many linear functions of the budgets, one per change
class, so "within the total" is a polytope. The most that one further release may lose
is found by lowering it to what the most overdrawn class allows. The variance of the
noise is convex in the budgets, and its optimum is found by cutting planes: solve with
the classes seen so far, ask the engine which class is overdrawn most, add it, repeat.
What is returned is feasible by exact arithmetic, whatever the solver did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from undertow._validate import check_choice, check_positive
from undertow.composition._charge import loss_of
from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release, Setting
from undertow.errors import InfiniteLossError, NotionMismatchError, PlanError
from undertow.numeric.array import Array
from undertow.numeric.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Loss, Pure
from undertow.spaces.base import Granularity, Metric, View

_MOST_ROUNDS = 400
_GAP = 1e-9


@dataclass(frozen=True, slots=True)
class Allocation:
    """Budgets for the releases of a plan.

    Parameters
    ----------
    losses : mapping of str to Loss
        The budget of each release; infinite where no change touches it.
    scales : mapping of str to float
        Noise of unit sensitivity that spends it: the scale of Laplace noise for pure
        losses, the standard deviation of Gaussian noise otherwise. Rounded up.
    total_variance : float
        The weighted sum of the variances of that noise.
    gap : float
        How far, relatively, the total variance can be above the optimum.
    untouched : tuple of str
        Releases that no change touches.
    """

    losses: Mapping[str, Loss] = field(hash=False)
    scales: Mapping[str, float] = field(hash=False)
    total_variance: float
    gap: float
    untouched: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as plain values."""
        from undertow.results import to_plain

        return {
            "losses": to_plain(self.losses),
            "scales": to_plain(self.scales),
            "total_variance": self.total_variance,
            "gap": self.gap,
            "untouched": list(self.untouched),
        }


def allocate(
    plan: Plan,
    target: Granularity,
    *,
    total: Loss,
    weights: Mapping[str, float] | None = None,
    minimise: str = "sum_variance",
) -> Allocation:
    r"""Split a total loss over the releases of a plan.

    .. math:: \min \sum_i c_i\,\mathrm{Var}_i(x_i) \quad\text{subject to}\quad
       \max_\kappa \sum_i a_i(\kappa)^p\, x_i \le B

    with :math:`x_i = \varepsilon_i` and :math:`p = 1` for pure losses, and
    :math:`x_i = \rho_i` or :math:`\mu_i^2` and :math:`p = 2` otherwise.

    Parameters
    ----------
    plan : Plan
        Its views, units and settings count; its losses do not.
    target : Granularity
        Where the total must hold.
    total : Pure, ZCDP or GDP
        The most all releases may lose together.
    weights : mapping of str to float, optional
        The importance :math:`c_i` of each release's variance; one by default.
    minimise : {"sum_variance"}
        What to make small.

    Returns
    -------
    Allocation
        Composes to at most `total`, by exact arithmetic.

    Raises
    ------
    InfiniteLossError
        If a release has infinite loss at the target whatever its budget.

    Examples
    --------
    >>> import undertow as ut
    >>> cells = list("abcdefghij")
    >>> plan = ut.Plan(ut.Table(cells), [
    ...     ut.Release(c, ut.Pure(1), unit=ut.Bounded(), view=ut.Select(c),
    ...                setting="common") for c in cells])
    >>> ut.allocate(plan, ut.Bounded(), total=ut.Pure(1)).losses["a"]
    Pure(epsilon=0.5)
    """
    check_choice(minimise, "minimise", choices=("sum_variance",))
    if not isinstance(total, Pure | ZCDP | GDP) or total.is_infinite:
        raise NotionMismatchError(
            f"total must be a finite Pure, ZCDP or GDP loss, got {total}."
        )
    if total == type(total).zero():
        raise ValueError(f"total must be positive, got {total}.")
    if not plan.releases:
        raise PlanError("a plan must have at least one release to share, got none.")
    names = _unique_names(plan.releases)
    importance = _weights(names, weights)
    problem = _Problem(plan, target, total)
    touched = [at for at in range(len(names)) if problem.reach(at) > 0]
    budgets, gap = _solve(problem, importance, touched)
    return _allocation(names, importance, budgets, total=total, gap=gap)


def _unique_names(releases: Sequence[Release]) -> list[str]:
    names = [release.name for release in releases]
    if len(set(names)) != len(names):
        raise ValueError(
            "releases must have different names to be allocated, got one twice."
        )
    return names


def _weights(names: Sequence[str], weights: Mapping[str, float] | None) -> Array:
    given = dict(weights or {})
    unknown = set(given) - set(names)
    if unknown:
        raise ValueError(f"weights must name releases, got {sorted(unknown)[0]!r}.")
    return np.array(
        [check_positive(given.get(name, 1.0), f"weight of {name!r}") for name in names]
    )


class _Problem:
    """The composed loss as a function of the budgets."""

    def __init__(self, plan: Plan, target: Granularity, total: Loss) -> None:
        self.plan, self.target, self.total = plan, target, total
        self.cap = total.exact_parameters()[0]
        self.power = 1 if isinstance(total, Pure) else 2

    def reach(self, at: int) -> Exact:
        """Return what a unit of budget of one release costs at worst."""
        release = self._with(at, Fraction(1))
        return _worst_alone(
            Plan(self.plan.domain, [release]),
            self.target,
            notion=self.total.notion,
            free=(f"release {release.name!r}", "budget"),
        )

    def worst(self, budgets: Sequence[Exact]) -> tuple[Exact, Array]:
        """Return the largest class total, and that class's coefficients."""
        plan = Plan(
            self.plan.domain, [self._with(at, x) for at, x in enumerate(budgets)]
        )
        result = plan.evaluate(self.target, notion=self.total.notion)
        row = [float(result.influence(at)) ** self.power for at in range(len(budgets))]
        return result.loss.exact_parameters()[0], np.array(row)

    def _with(self, at: int, parameter: Exact) -> Release:
        release = self.plan.releases[at]
        loss = loss_of(self.total.notion, parameter)
        claims = [Claim(loss, claim.unit, claim.setting) for claim in release.claims]
        return Release.with_claims(release.name, claims, view=release.view)


def _solve(
    problem: _Problem, importance: Array, touched: Sequence[int]
) -> tuple[list[Exact], float]:
    """Return feasible budgets and their relative distance from the optimum."""
    best: list[Exact] = [Fraction(0)] * len(importance)
    for at in set(range(len(importance))) - set(touched):
        best[at] = math.inf
    if not touched:
        return best, 0.0
    cuts = _Cuts(problem, touched)
    lower, best_value = 0.0, math.inf
    for _ in range(_MOST_ROUNDS):
        point, bound = cuts.relaxed(importance)
        lower = max(lower, bound)
        trial, found = cuts.onto_boundary(point)
        value = _objective(trial, importance, problem.power)
        if value < best_value:
            best, best_value = trial, value
        if best_value <= lower * (1 + _GAP) or not found:
            break
    best = _rounded(problem, best, importance, touched)
    value = _objective(best, importance, problem.power)
    for at in set(range(len(importance))) - set(touched):
        best[at] = math.inf
    return best, max(0.0, value / lower - 1)


class _Cuts:
    """The change classes seen so far, as rows of a polytope in units of the cap."""

    def __init__(self, problem: _Problem, touched: Sequence[int]) -> None:
        self.problem, self.touched = problem, list(touched)
        # Some class moves each release by its reach; alone that is a valid row.
        single = np.diag([float(problem.reach(at)) for at in self.touched])
        self.rows: list[Array] = list(single)
        self.known = {row.tobytes() for row in self.rows}

    def relaxed(self, importance: Array) -> tuple[list[Exact], float]:
        """Return the optimum over the classes seen so far, and a lower bound."""
        order = 2 if self.problem.power == 1 else 1  # variance falls as x^-2 or x^-1
        solved, bound = inverse_power_minimum(
            np.array(self.rows), importance[self.touched], order=order
        )
        cap = Fraction(self.problem.cap)
        point: list[Exact] = [Fraction(0)] * len(importance)
        for at, value in zip(self.touched, solved, strict=True):
            point[at] = Fraction(float(value)) * cap
        return point, bound * float(cap) ** -order

    def onto_boundary(self, point: list[Exact]) -> tuple[list[Exact], bool]:
        """Scale a point until the worst class meets the cap; add classes it breaks.

        Releases of a class just found are set aside and the engine is asked again, so
        that one round finds many classes that do not overlap.
        """
        worst, row = self.problem.worst(point)
        found = self._add(row)
        left = [0 if row[at] else x for at, x in enumerate(point)]
        for _ in range(len(point)):
            value, row = self.problem.worst(left)
            if value <= self.problem.cap or not self._add(row):
                break
            found = True
            left = [0 if row[at] else x for at, x in enumerate(left)]
        factor = Fraction(self.problem.cap) / Fraction(worst)
        return [x * factor for x in point], found

    def _add(self, row: Array) -> bool:
        kept = row[self.touched]
        if kept.tobytes() in self.known:
            return False
        self.known.add(kept.tobytes())
        self.rows.append(kept)
        return True


def _objective(point: Sequence[Exact], importance: Array, power: int) -> float:
    order = 2 if power == 1 else 1
    pairs = zip(point, importance, strict=True)
    return float(sum(c * float(x) ** -order for x, c in pairs if 0 < x < math.inf))


def _rounded(
    problem: _Problem, point: list[Exact], importance: Array, touched: Sequence[int]
) -> list[Exact]:
    """Prefer short fractions where they are feasible and cost nothing noticeable."""
    short = list(point)
    for at in touched:
        share = Fraction(point[at]) / Fraction(problem.cap)
        short[at] = share.limit_denominator(1000) * Fraction(problem.cap)
    limit = _objective(point, importance, problem.power) * (1 + 1e-6)
    fits = all(short[at] > 0 for at in touched) and (
        _objective(short, importance, problem.power) <= limit
        and problem.worst(short)[0] <= problem.cap
    )
    return short if fits else point


def _allocation(
    names: Sequence[str],
    importance: Array,
    budgets: Sequence[Exact],
    *,
    total: Loss,
    gap: float,
) -> Allocation:
    scales = [_scale(budget, total) for budget in budgets]
    doubled = 2.0 if isinstance(total, Pure) else 1.0  # Laplace variance is 2 b^2
    variance = doubled * float(np.sum(importance * np.square(scales)))
    return Allocation(
        losses={
            n: loss_of(total.notion, b) for n, b in zip(names, budgets, strict=True)
        },
        scales=dict(zip(names, scales, strict=True)),
        total_variance=variance,
        gap=gap,
        untouched=tuple(
            n for n, b in zip(names, budgets, strict=True) if b == math.inf
        ),
    )


def _scale(budget: Exact, total: Loss) -> float:
    from undertow.numeric.exact import round_up, sqrt_up

    if budget == math.inf:
        return 0.0
    if isinstance(total, Pure):
        return round_up(1 / Fraction(budget))
    square = (
        1 / Fraction(budget) if isinstance(total, GDP) else 1 / (2 * Fraction(budget))
    )
    return sqrt_up(square)


# How much a further release may lose, on top of what was spent.


class Probe:
    """A further release of variable loss, tried on top of a plan.

    Parameters
    ----------
    plan : Plan
        What was spent already.
    target : Granularity
        Where the budget holds.
    budget : Pure, ZCDP or GDP
        The most that may be lost there.
    view, unit, setting : View, Metric, {"view", "common"}
        Those of the further release.
    """

    def __init__(
        self,
        plan: Plan,
        target: Granularity,
        budget: Loss,
        *,
        view: View,
        unit: Metric,
        setting: Setting,
    ) -> None:
        self.plan, self.target, self.budget = plan, target, budget
        self.view, self.unit, self.setting = view, unit, setting

    def room(self) -> Exact:
        """Return the largest parameter that fits, in the additive parameter.

        Notes
        -----
        Exact, by Dinkelbach's method: each round takes the class that is overdrawn most
        and lowers the parameter to what that class allows; finitely many classes,
        finitely many rounds. Where the engine's result is not tight, what is returned
        fits, but a little more might.
        """
        cap = self.budget.exact_parameters()[0]
        if cap == math.inf:
            return math.inf
        room = self.alone(cap)
        while 0 < room < math.inf:
            total, share = self.spent(room)
            if total <= cap:
                break
            if share == 0:  # only where the engine gives a bound that no class attains
                return Fraction(0)
            room = max(Fraction(0), (cap - (total - share)) * room / share)
        return room

    def alone(self, cap: Exact) -> Exact:
        """Return the largest parameter if nothing else had been spent."""
        reach = _worst_alone(
            Plan(self.plan.domain, [self._release(Fraction(1))]),
            self.target,
            notion=self.budget.notion,
            free=(f"a release on {self.view.name}", "loss"),
        )
        return math.inf if reach == 0 else Fraction(cap) / Fraction(reach)

    def spent(self, parameter: Exact) -> tuple[Exact, Exact]:
        """Return the largest total, and the probe's share of it."""
        trial = self.plan.followed_by(self._release(parameter))
        result = trial.evaluate(self.target, notion=self.budget.notion)
        share = result.contribution(len(trial) - 1)[0]
        return result.loss.exact_parameters()[0], share

    def _release(self, parameter: Exact) -> Release:
        loss = loss_of(self.budget.notion, parameter)
        return Release(
            "probe", loss, unit=self.unit, view=self.view, setting=self.setting
        )


def _worst_alone(
    alone: Plan, target: Granularity, *, notion: str, free: tuple[str, str]
) -> Exact:
    """Return what a plan of one release costs, in the additive parameter.

    Refuse an infinite cost in the words for the release and for what is free in it.
    """
    result = alone.evaluate(target, notion=notion)
    cost = result.loss.exact_parameters()[0]
    if cost == math.inf:
        raise InfiniteLossError(
            f"{free[0]} must have a finite loss at {target.name} level, got inf "
            f"whatever its {free[1]}: {result.row.change.summary}.",
            witness=result.row.change,
        )
    return cost


# A small convex solver: the least weighted sum of inverse powers in a polytope.
#
# .. math:: \min_x \sum_i c_i x_i^{-q} \quad\text{subject to}\quad A x \le 1,\; x > 0
#
# by a logarithmic barrier and Newton steps. At a centre of weight :math:`t` the
# objective is within :math:`m/t` of the optimum, with :math:`m` the number of rows.

_RELATIVE_GAP = 1e-11
_NEWTON_STEPS = 60
_FACTOR = 12.0


def inverse_power_minimum(
    rows: Array, costs: Array, *, order: int
) -> tuple[Array, float]:
    """Return a feasible point next to the optimum, and a lower bound on the objective.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Non-negative; every column has a positive entry, so that the optimum exists.
    costs : ndarray of shape (n,)
        Positive.
    order : int
        The power q, 1 or 2.

    Notes
    -----
    Each Newton step solves an n by n system; some fifteen centres are visited.
    """
    point = np.full(len(costs), 0.5 / rows.sum(axis=1).max())
    value = _barrier_objective(point, costs, order)
    weight = len(rows) / value
    while True:
        point = _centre(point, rows, costs, order=order, weight=weight)
        value, gap = _barrier_objective(point, costs, order), len(rows) / weight
        if gap <= _RELATIVE_GAP * value:
            return point, value - gap
        weight *= _FACTOR


def _barrier_objective(point: Array, costs: Array, order: int) -> float:
    return float((costs * point**-order).sum())


def _centre(
    point: Array, rows: Array, costs: Array, *, order: int, weight: float
) -> Array:
    """Minimise the barrier function by damped Newton steps."""
    for _ in range(_NEWTON_STEPS):
        slack = 1 - rows @ point
        steep = weight * order * costs * point ** (-order - 1)
        gradient = rows.T @ (1 / slack) - steep
        hessian = rows.T @ (rows / slack[:, None] ** 2)
        hessian[np.diag_indices_from(hessian)] += steep * (order + 1) / point
        step = -np.linalg.solve(hessian, gradient)
        decrement = float(-gradient @ step)
        if decrement < 1e-12:
            break
        # Self-concordant damping keeps the point strictly inside.
        length = 1.0 if decrement < 0.05 else 1 / (1 + np.sqrt(decrement))
        while (rows @ (point + length * step)).max() >= 1 or (
            point + length * step
        ).min() <= 0:
            length /= 2
        point = point + length * step
    return point
