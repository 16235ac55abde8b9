r"""From a promise to the noise of every release, by the composition engine.

Each need states its reach and a weight; the engine says what all of them cost together
at the promised granularity if each spent its weight; the quotient is the budget of one
weight. Scales are fractions, rounded up where they would be long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from undertow.composition import Claim, Plan, Release
from undertow.errors import AssumptionError
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.release.allotment import (
    calibrate_rho,
    round_down_long,
    round_up_long,
)
from undertow.release.intervals import IntegerNoise
from undertow.release.promise import Promise
from undertow.release.sensitivity import ClaimUnit, Reach
from undertow.spaces.base import Domain, Metric, View

__all__ = ["Need", "Share", "calibrate_noise", "composed_within"]

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
