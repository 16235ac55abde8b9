"""From the promise of a release file to the noise of every release.

================================ ===================== ==================
the file says                    total                 noise
================================ ===================== ==================
``epsilon``                      pure                  discrete Laplace
``rho``                          zCDP                  discrete Gaussian
``epsilon`` and ``delta``        approximate, by zCDP  discrete Gaussian
``mu``                           Gaussian DP           discrete Laplace
``advantage`` and a threat       pure or approximate   as of that loss
``epsilon`` and ``correlation``  pure, calibrated [1]  discrete Laplace
================================ ===================== ==================

[1] As stated where the model is about records inside of the unit that the promise
protects as a whole.

Each need states its reach and a weight; the composition engine says what all of them
cost together at the promised granularity if each spent its weight; the quotient is the
budget of one weight. Scales are fractions, rounded up where they would be long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from undertow.composition import Claim, Plan, Release, Report
from undertow.correlation import (
    IndependentUnits,
    Leakage,
    LeakageCalibration,
    Model,
    calibrate,
    leakage,
)
from undertow.errors import AssumptionError, InfeasibleTarget, PlanError
from undertow.numeric.exact import round_down, round_up, round_up_decimal
from undertow.numeric.rounding import log_down
from undertow.numeric.search import bisect
from undertow.privacy.conversion import zcdp_to_approx
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.release.plan.noise import ClaimUnit, IntegerNoise, Reach
from undertow.results import Calibration
from undertow.risk import Threat, calibrate_black_box
from undertow.spaces.base import Domain, Granularity, Metric, View

# A larger level adds no noise to speak of: the search for one found no end.
_DISCLOSING = 600.0
_RESTATED = "zCDP restated as (epsilon, delta): Canonne, Kamath, Steinke, Corollary 13"


def restate(loss: Loss, delta: Fraction) -> Approx:
    """Return a pure or zCDP loss as (epsilon, delta), as small as is proved."""
    if isinstance(loss, Approx):
        return loss
    if isinstance(loss, Pure):
        return Approx(loss.exact_parameters()[0], 0)
    assert isinstance(loss, ZCDP)
    return zcdp_to_approx(loss, delta=delta, method="optimal")


@dataclass(frozen=True, slots=True)
class Promise:
    """One loss at one granularity, and where it comes from.

    Parameters
    ----------
    granularity : Granularity
        What is protected.
    total : Pure, ZCDP, GDP or Approx
        The most that everything the promise covers may lose.
    law : {"laplace", "gaussian"}
        The noise it is spent on.
    confidence : Fraction
        Of the intervals.
    keys_delta, conversion_delta : Fraction
        Parts of delta set aside for choosing keys, and for restating zCDP.
    threat, model : Threat, Model or None
        Against whom, and how records depend.
    calibration : Calibration or LeakageCalibration or None
        How the total follows from an advantage or a leakage; None where it is as
        stated.
    """

    granularity: Granularity
    total: Loss
    law: str
    confidence: Fraction
    keys_delta: Fraction = Fraction(0)
    conversion_delta: Fraction = Fraction(0)
    threat: Threat | None = None
    model: Model | None = None
    calibration: Calibration | LeakageCalibration | None = None

    @property
    def beta(self) -> float:
        """One minus the confidence, rounded down."""
        return round_down(1 - self.confidence)

    def spending(self, total: Loss, *, law: str) -> Promise:
        """Return the promise of a part of the budget."""
        return replace(self, total=total, law=law)

    def cost(self, plan: Plan, granularity: Granularity | None = None) -> Report:
        """Compose a plan in the currency of the promise; infinite losses reported."""
        target = self.granularity if granularity is None else granularity
        if isinstance(self.total, Approx):
            return self._approx_cost(plan, target)
        return plan.loss(target, on_infinite="report", notion=self.total.notion)

    def _approx_cost(self, plan: Plan, target: Granularity) -> Report:
        """Compose keys and counts by themselves and the rest in zCDP, restated once.

        Each part holds at the granularity by itself, so their sum does.
        """
        keys = [r for r in plan.releases if isinstance(r.loss, Approx | Pure)]
        rest = [r for r in plan.releases if not isinstance(r.loss, Approx | Pure)]
        if not rest:
            return plan.loss(target, on_infinite="report", notion="approx")
        smooth = Plan(plan.domain, rest) if keys else plan
        report = smooth.loss(target, on_infinite="report", notion="zcdp")
        loss = restate(report.loss, self.conversion_delta)
        baseline = restate(report.sequential, self.conversion_delta)
        if keys:
            chosen = Plan(plan.domain, keys).loss(target, on_infinite="report")
            report, loss = chosen, loss + restate(chosen.loss, self.conversion_delta)
            baseline += restate(chosen.sequential, self.conversion_delta)
        return replace(
            report,
            loss=loss,
            sequential=baseline,
            theorems=(*report.theorems, _RESTATED),
            profile=(),
        )

    def kept_by(self, plan: Plan) -> bool:
        """Return whether a plan loses no more than was promised, exactly."""
        return self.cost(plan).loss.within(self.total)

    def leaked_by(self, plan: Plan) -> Leakage | None:
        """Return what a plan leaks under the stated model; None if none is stated."""
        if self.model is None:
            return None
        spent = self.cost(plan).loss.exact_parameters()[0]
        if isinstance(self.model, IndependentUnits):  # shown as it is, not computed on
            return leakage(self.model, round_up_decimal(spent))
        return leakage(self.model, round_up(spent))


def settle_promise(
    stated: Any,
    *,
    granularity: Granularity,
    threat: Threat | None = None,
    model: Model | None = None,
    discovers: bool = False,
    counts: bool = True,
) -> Promise:
    """Turn what a release file states into one loss.

    Parameters
    ----------
    stated : object
        With `epsilon`, `delta`, `rho`, `mu` and `advantage`, None where not stated, and
        `confidence`.
    granularity : Granularity
        What is protected.
    threat : Threat, optional
        Needed for an advantage.
    model : Model, optional
        The promise is then leakage under this model.
    discovers : bool
        Whether keys are to be discovered.
    counts : bool
        Whether anything else is released.

    Raises
    ------
    PlanError
        If the currencies contradict each other.
    AssumptionError
        If the guarantee asked for cannot hold.
    """
    total, calibration = _total(stated, threat, model)
    if discovers and not isinstance(total, Approx):
        raise AssumptionError(
            "promise.delta must be given where keys are discovered, got none; state "
            "epsilon and delta, or list the keys."
        )
    law = "gaussian" if isinstance(total, ZCDP | Approx) else "laplace"
    delta = Fraction(stated.delta or 0) if isinstance(total, Approx) else Fraction(0)
    parts = (delta, Fraction(0)) if not counts else (delta / 2, delta / 2)
    keys, conversion = parts if discovers else (Fraction(0), delta)
    return Promise(
        granularity,
        total,
        law,
        Fraction(stated.confidence),
        keys_delta=keys,
        conversion_delta=conversion,
        threat=threat,
        model=model,
        calibration=calibration,
    )


def _total(
    stated: Any, threat: Threat | None, model: Model | None
) -> tuple[Loss, Calibration | LeakageCalibration | None]:
    if model is not None:
        return _leakage_total(stated, model)
    if stated.advantage is not None:
        return _advantage_total(stated, threat)
    if stated.mu is not None:
        return GDP(stated.mu), None
    if stated.rho is not None:
        return ZCDP(stated.rho), None
    if stated.epsilon is None:
        raise PlanError(
            "promise must state epsilon, epsilon and delta, rho, mu or advantage, got "
            "none of them."
        )
    if stated.delta is not None:
        return Approx(stated.epsilon, stated.delta), None
    return Pure(stated.epsilon), None


def _leakage_total(stated: Any, model: Model) -> tuple[Loss, LeakageCalibration | None]:
    others = [stated.delta, stated.rho, stated.mu, stated.advantage]
    if stated.epsilon is None or any(other is not None for other in others):
        raise AssumptionError(
            "promise must be stated as epsilon alone where correlation is given, got "
            "another currency; the leakage bounds hold for pure losses."
        )
    if isinstance(model, IndependentUnits):  # the leakage is the level, exactly
        return Pure(stated.epsilon), None
    found = calibrate(model, round_down(stated.epsilon))
    return Pure(Fraction(found.value)), found


def _advantage_total(stated: Any, threat: Threat | None) -> tuple[Loss, Calibration]:
    if threat is None:
        raise PlanError(
            "threat must be given with promise.advantage, got none; an advantage means "
            "nothing without an attacker."
        )
    delta = 0.0 if stated.delta is None else round_up(stated.delta)
    found = calibrate_black_box(round_down(stated.advantage), threat, delta=delta)
    if found.value > _DISCLOSING:
        raise PlanError(
            "promise.advantage must be below what total disclosure gives this "
            f"attacker, got {float(stated.advantage):g}; promise less, or state an "
            "attacker who has more to learn."
        )
    level = Fraction(found.value)
    total = Pure(level) if stated.delta is None else Approx(level, stated.delta)
    return total, found


_ROUNDS = 60
_PROBE = Fraction(1, 10**60)


@dataclass(frozen=True, slots=True)
class Need:
    """One vector of whole numbers that wants noise, in every run that releases it.

    Parameters
    ----------
    name : str
        How reports call the release.
    reach : Reach
        How far one unit moves the vector.
    weight : Fraction
        Its part of the budget relative to the others: of epsilon, or of rho.
    views : tuple of View
        What it sees in each run that the promise covers.
    keys : bool
        Whether it chooses the keys to publish, which costs a delta.
    """

    name: str
    reach: Reach
    weight: Fraction
    views: tuple[View, ...]
    keys: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """A need with its noise and what that costs per unit."""

    need: Need
    noise: IntegerNoise
    loss: Loss

    @property
    def delta(self) -> Fraction:
        """The delta set aside for keys."""
        if isinstance(self.loss, Approx):
            return Fraction(self.loss.exact_parameters()[1])
        return Fraction(0)

    def releases(self, views: Sequence[View], unit: ClaimUnit) -> tuple[Release, ...]:
        """Return the releases of this need through `views`."""
        swapped = None if self.need.keys else self.noise.swap_loss(self.need.reach)
        claims = _claims(self.loss, swapped, unit)
        name = self.need.name
        return tuple(Release.with_claims(name, claims, view=view) for view in views)


def _claims(loss: Loss, swapped: Loss | None, unit: ClaimUnit) -> tuple[Claim, ...]:
    """Return what is proved of a release, the second claim only where it says more."""
    first = Claim(loss, unit.step, "common")
    if swapped is None or unit.swap is None:
        return (first,)
    twice = 2 if isinstance(loss, Pure) else 4
    cost, usual = swapped.exact_parameters()[0], loss.exact_parameters()[0]
    if cost >= twice * usual:
        return (first,)
    return (first, Claim(swapped, unit.swap, "common"))


def calibrate_noise(
    needs: Sequence[Need], *, domain: Domain, unit: ClaimUnit, promise: Promise
) -> tuple[Share, ...]:
    """Return the noise of each need, together within the promise.

    Parameters
    ----------
    needs : sequence of Need
        All releases that the promise covers.
    domain : Domain
        The databases the promise ranges over.
    unit : ClaimUnit
        What one step of every claim is.
    promise : Promise
        The granularity and the total.

    Raises
    ------
    InfiniteLossError
        If no noise keeps the promise at its granularity.
    AssumptionError
        If runs that choose keys would pass the promise when each is charged by itself,
        or the noise found does not keep it.

    Notes
    -----
    The composed loss is checked against the promise by exact arithmetic before this
    returns, whatever the search did.
    """
    total = promise.total
    if isinstance(total, Approx):
        shares = _approx_shares(needs, domain=domain, unit=unit, promise=promise)
    else:
        budgets = _budgets(needs, domain=domain, unit=unit, promise=promise)
        pairs = zip(needs, budgets, strict=True)
        shares = [_share(need, budget, promise.law) for need, budget in pairs]
    if not composed_within(shares, domain=domain, unit=unit, promise=promise):
        raise AssumptionError(
            "the calibrated noise must keep the promise, got a composed loss above it; "
            "nothing was released, please report this release file."
        )
    if _mixes_windows(shares):
        raise AssumptionError(
            "queries must have no running total where keys are discovered, got both: a "
            "run would be charged at every window that the total reads; put them into "
            "two release files."
        )
    if not _charged_within(shares, domain=domain, unit=unit, promise=promise):
        raise AssumptionError(
            "promise.granularity must be one at which runs do not add up where keys "
            "are discovered beside other numbers in every run, got "
            f"{promise.granularity.name}; list the keys, count units alone, or promise "
            "event level."
        )
    return tuple(shares)


def composed_within(
    shares: Sequence[Share],
    *,
    domain: Domain,
    unit: ClaimUnit,
    promise: Promise,
    others: Sequence[Release] = (),
) -> bool:
    """Return whether all releases together keep the promise, by exact arithmetic."""
    releases = chain(others, _all_releases(shares, unit))
    return promise.kept_by(Plan(domain, _merged(releases, promise)))


def _mixes_windows(shares: Sequence[Share]) -> bool:
    """Return whether runs that choose keys also read windows of other runs."""
    chosen = {share.need.views for share in shares if share.need.keys}
    return bool(chosen) and any(share.need.views not in chosen for share in shares)


def _charged_within(
    shares: Sequence[Share], *, domain: Domain, unit: ClaimUnit, promise: Promise
) -> bool:
    """Return whether runs that are charged one by one keep the promise.

    A run that chooses keys is charged in (epsilon, delta), its zCDP restated by itself,
    so that the delta of the conversion is paid in every run.
    """
    views = next((share.need.views for share in shares if share.need.keys), ())
    if len(views) < 2 or promise.conversion_delta == 0:
        return True
    run = [r for share in shares for r in share.releases(share.need.views[:1], unit)]
    cost = promise.cost(Plan(domain, run)).loss
    charged = Claim(cost, promise.granularity, "common")
    runs = [Release.with_claims("run", [charged], view=view) for view in views]
    report = Plan(domain, runs).loss(promise.granularity, on_infinite="report")
    return report.loss.within(promise.total)


def _all_releases(shares: Sequence[Share], unit: ClaimUnit) -> Iterator[Release]:
    for share in shares:
        yield from share.releases(share.need.views, unit)


def _merged(releases: Iterable[Release], promise: Promise) -> list[Release]:
    """Add up releases that make one claim in the same unit about the same view.

    Pure and zCDP losses are linear in their parameter, so nothing is lost; pure losses
    that are restated in GDP are not.
    """
    if isinstance(promise.total, GDP):
        return list(releases)
    found: dict[tuple[View, Metric, type[Loss]], Loss] = {}
    others: list[Release] = []
    for release in releases:
        loss = release.loss
        if len(release.claims) > 1 or not isinstance(loss, Pure | ZCDP):
            others.append(release)
            continue
        key = (release.view, release.unit, type(loss))
        found[key] = found[key] + loss if key in found else loss
    return others + [
        Release("sum", loss, unit=unit, view=view, setting="common")
        for (view, unit, _), loss in found.items()
    ]


def _budgets(
    needs: Sequence[Need], *, domain: Domain, unit: ClaimUnit, promise: Promise
) -> list[Fraction]:
    """Return the epsilon or rho of each need, the weights scaled to the promise."""
    total = promise.total
    cap = Fraction(total.exact_parameters()[0])
    each = Fraction(1)
    if not isinstance(total, GDP):
        each = cap / _composed(needs, each, domain=domain, unit=unit, promise=promise)
        return [need.weight * each for need in needs]
    for attempt in range(_ROUNDS):
        # The square of mu grows about as the square of epsilon.
        spent = _composed(needs, each, domain=domain, unit=unit, promise=promise)
        if spent <= cap and (attempt > 8 or spent * (1 + Fraction(1, 10**6)) > cap):
            break
        step = Fraction(math.sqrt(cap / spent)) * (1 - Fraction(1, 10**8))
        each = round_down_long(each * step)
    return [need.weight * each for need in needs]


def _composed(
    needs: Sequence[Need],
    each: Fraction,
    *,
    domain: Domain,
    unit: ClaimUnit,
    promise: Promise,
) -> Fraction:
    """Return what the needs cost together if a weight of one spends `each`."""
    currency = ZCDP if promise.law == "gaussian" else Pure
    releases: list[Release] = []
    for need in needs:
        spent = need.weight * each
        swapped = currency(spent * _swap_ratio(need.reach, promise.law))
        claims = _claims(currency(spent), None if need.keys else swapped, unit)
        releases += [
            Release.with_claims(need.name, claims, view=view) for view in need.views
        ]
    plan = Plan(domain, _merged(releases, promise))
    report = plan.loss(promise.granularity, notion=promise.total.notion)
    return Fraction(report.loss.exact_parameters()[0])


def _swap_ratio(reach: Reach, law: str) -> Fraction:
    if law == "laplace":
        return Fraction(reach.swap_total, reach.total)
    return Fraction(reach.swap_square, reach.square)


def _share(need: Need, budget: Fraction, law: str) -> Share:
    if law == "laplace":
        noise = IntegerNoise(law, round_up_long(need.reach.pure_scale(budget)))
    else:
        noise = IntegerNoise(law, round_up_long(need.reach.gaussian_variance(budget)))
    return Share(need, noise, noise.loss(need.reach))


def _approx_shares(
    needs: Sequence[Need], *, domain: Domain, unit: ClaimUnit, promise: Promise
) -> list[Share]:
    """Set epsilon and delta aside for keys; the rest is spent in zCDP."""
    epsilon = Fraction(promise.total.exact_parameters()[0])
    chosen = [need for need in needs if need.keys]
    others = [need for need in needs if not need.keys]
    part = sum((need.weight for need in chosen), start=Fraction(0))
    part /= sum((need.weight for need in needs), start=Fraction(0))
    found: dict[int, Share] = {}
    if chosen:
        keys = promise.spending(Pure(epsilon * part), law="laplace")
        budgets = _budgets(chosen, domain=domain, unit=unit, promise=keys)
        for share in _key_shares(
            chosen, budgets, domain=domain, unit=unit, promise=promise
        ):
            found[id(share.need)] = share
    if others:
        rho = calibrate_rho(epsilon * (1 - part), promise.conversion_delta)
        rest = promise.spending(ZCDP(rho), law="gaussian")
        budgets = _budgets(others, domain=domain, unit=unit, promise=rest)
        for need, budget in zip(others, budgets, strict=True):
            found[id(need)] = _share(need, budget, "gaussian")
    return [found[id(need)] for need in needs]


def _key_shares(
    needs: Sequence[Need],
    budgets: Sequence[Fraction],
    *,
    domain: Domain,
    unit: ClaimUnit,
    promise: Promise,
) -> list[Share]:
    """Return the shares that choose keys, their deltas scaled to what is set aside."""
    plain = [_share(n, b, "laplace") for n, b in zip(needs, budgets, strict=True)]
    probe = [
        Share(s.need, s.noise, _with_delta(s.loss, s.need.weight * _PROBE))
        for s in plain
    ]
    report = Plan(domain, _all_releases(probe, unit)).loss(promise.granularity)
    spent = Fraction(report.loss.exact_parameters()[1]) / _PROBE
    each = promise.keys_delta / spent * (1 - Fraction(1, 10**6))
    return [
        Share(
            s.need, s.noise, _with_delta(s.loss, round_down_long(s.need.weight * each))
        )
        for s in plain
    ]


def _with_delta(loss: Loss, delta: Fraction) -> Approx:
    return Approx(Fraction(loss.exact_parameters()[0]), delta)


# By so much of itself a level stays below a boundary found by bisection.
_MARGIN = 2.0**-40


def share_weights(
    shares: Sequence[Fraction | None],
    sizes: Sequence[tuple[Reach, int]],
    *,
    law: str,
    discovers: bool = False,
) -> list[Fraction]:
    r"""Return the relative budgets of queries.

    Parameters
    ----------
    shares : sequence of Fraction or None
        What the file says; None to allocate.
    sizes : sequence of (Reach, int)
        For each query how far a unit moves its counts, and the number of answers.
    law : {"laplace", "gaussian"}
        The law of the noise.
    discovers : bool
        Whether the keys of some query are discovered: cells are then not known, and
        every query without a share counts as 1.

    Returns
    -------
    list of Fraction
        They add up to one. Without a share, queries get the same relative error: that
        of an answer which holds one part in their number of the whole, to which every
        unit adds as much as its bounds allow. A count of rows and one of units then
        weigh the same. Where only some have one, the others count as 1 each and divide
        that among themselves for equal relative error.

    Examples
    --------
    >>> rows, units = Reach(50, 2500, 1), Reach(1, 1, 1)
    >>> sizes = [(rows, 1), (units, 3)]
    >>> [str(w) for w in share_weights([None, None], sizes, law="laplace")]
    ['1/4', '3/4']
    >>> [str(w) for w in share_weights([Fraction(2), None], sizes, law="laplace")]
    ['2/3', '1/3']
    """
    free = [
        Fraction(answers)
        if law == "laplace"
        else Fraction(reach.square * answers**2, reach.total**2)
        for reach, answers in sizes
    ]
    if discovers:
        free = [Fraction(1)] * len(sizes)
    open_sizes = [s for s, given in zip(free, shares, strict=True) if given is None]
    each = Fraction(len(open_sizes)) / sum(open_sizes) if open_sizes else Fraction(0)
    weights = [
        size * each if given is None else given
        for size, given in zip(free, shares, strict=True)
    ]
    return [weight / sum(weights) for weight in weights]


def calibrate_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    r"""Return the largest rho, rounded down, that converts to (`epsilon`, `delta`).

    Notes
    -----
    The simple bound :math:`\varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}` is solved
    for rho and starts a bisection on the best bound of Canonne, Kamath and Steinke
    (2020), Corollary 13, which grows with rho, but as computed only up to its last
    bits: a composed rho a little below the result could convert to a little more than
    `epsilon`. The result stays off the boundary by far more than that, and what a plan
    composes is checked again.

    Examples
    --------
    >>> rho = calibrate_rho(Fraction(1), Fraction(1, 10**6))
    >>> round(float(rho), 6)
    0.024356
    """
    surprise, level = -log_down(delta), round_down(epsilon)
    root = level / (math.sqrt(surprise + level) + math.sqrt(surprise))
    low, high = root**2 * (1 - _MARGIN), root**2
    if low == 0 or not _converts(low, epsilon, delta=delta):
        raise InfeasibleTarget(
            f"promise.epsilon must leave a positive rho, got {level:g}; promise more.",
            least=level,
        )
    while _converts(high, epsilon, delta=delta):
        low, high = high, 2 * high
    rho = bisect(
        lambda tried: _converts(tried, epsilon, delta=delta),
        inside=low,
        outside=high,
        rounds=_ROUNDS,
    )
    return Fraction(rho * (1 - _MARGIN))


def _converts(rho: float, epsilon: Fraction, *, delta: Fraction) -> bool:
    found = zcdp_to_approx(ZCDP(Fraction(rho)), delta=delta, method="optimal")
    return found.within(Approx(epsilon, delta))


def round_up_long(value: Fraction, bits: int = 48) -> Fraction:
    """Round a fraction with long terms up to about `bits` significant bits.

    Examples
    --------
    >>> tiny = Fraction(1, 3**80)
    >>> round_up_long(Fraction(50, 3)), 0 < round_up_long(tiny) - tiny < tiny / 2**46
    (Fraction(50, 3), True)
    """
    if value.numerator.bit_length() <= bits and value.denominator.bit_length() <= bits:
        return value
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    unit = Fraction(2) ** shift
    return Fraction(math.ceil(value * unit)) / unit


def round_down_long(value: Fraction, bits: int = 48) -> Fraction:
    """Round a positive fraction with long terms down."""
    if value.numerator.bit_length() <= bits and value.denominator.bit_length() <= bits:
        return value
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    unit = Fraction(2) ** shift
    return Fraction(math.floor(value * unit)) / unit
