"""Sauer's chapter 4: its bounds beside the earlier ones, Figures 4.1 to 4.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from undertow.privacy import GDP, Approx, Pure, gdp_mu
from undertow.risk import Prior
from undertow.risk.bounds import (
    black_box_conjecture,
    curve_conjecture,
    exact_guess_bound,
    superseded_bound,
    uniform_guess_bound,
    uniform_interval_bound,
    variation_bound,
)
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.sauer_common import EPSILON_LABEL, SOURCE, response_curve
from undertow.studies.thesis_bounds import finished, stated

__all__ = ["SAUER_BOUNDS"]

_DELTA, _SIZE = 1e-5, 100
_GRID = tuple(float(e) for e in np.arange(0.5, 12.01, 0.5))
# The priors of the figures are not printed: one record of this share, the rest equal.
_SHARES = (0.01, 0.3, 0.7)
_BOUND_LABEL = "bound on the advantage"

Floats = NDArray[np.float64]
Bound = Callable[[float], float]


def _prior(share: float) -> Prior:
    rest = (1 - share) / (_SIZE - 1)
    return Prior(_SIZE, [share, *(rest,) * (_SIZE - 1)])


def _curve(label: str, bound: Bound, *, dashed: bool = False) -> Curve:
    values = tuple(bound(e) for e in _GRID)
    return Curve(label, _GRID, values, kind="baseline" if dashed else "theory")


def _superseded(prior: Prior, statement: str) -> Bound:
    best, worst = float(prior.pmf.max()), float(prior.pmf.min())

    def bound(epsilon: float) -> float:
        return superseded_bound(
            Approx(epsilon, _DELTA),
            size=_SIZE,
            best_guess=best,
            worst_guess=worst,
            statement="theorem-5" if statement == "theorem-5" else "theorem-4",
        ).value

    return bound


def _figure_4_1(inputs: Inputs) -> StudyResult:
    panels, checks = [], []
    for share in _SHARES:
        prior = _prior(share)
        chance = prior.collision

        def black(e: float, chance: float = chance) -> float:
            return variation_bound(Approx(e, _DELTA), collision=chance).value

        def white(e: float, chance: float = chance) -> float:
            total = response_curve(_SIZE, e).total_variation()
            return variation_bound(total, collision=chance).value

        curves = [
            _curve("Theorem 4", _superseded(prior, "theorem-4")),
            _curve("Theorem 6, black box", black),
            _curve("Theorem 6, randomised response", white),
        ]
        panels.append(_panel(share, chance, curves))
        checks += _general_checks(share, curves)
    checks.append(_flat())
    gains = [p.curves[0].y[-1] - p.curves[1].y[-1] for p in panels]
    checks.append(
        stated(
            "the improvement grows with the skew",
            gains == sorted(gains),
            f"at ε = 12: {', '.join(f'{g:.3g}' for g in gains)}, which is κ",
        )
    )
    return finished(FIGURE_4_1, panels, checks)


def _panel(share: float, chance: float, curves: Sequence[Curve]) -> Panel:
    name = f"κ⁺ = {share:g}, κ = {chance:.3g}"
    return Panel(name, tuple(curves), EPSILON_LABEL, _BOUND_LABEL)


def _general_checks(share: float, curves: list[Curve]) -> list[Check]:
    old, black, white = (curve.y for curve in curves)
    above = [e for e, a, b in zip(_GRID, old, black, strict=True) if b > a]
    over = max(b / a for a, b in zip(old, black, strict=True))
    known = all(b < a for a, b in zip(old, white, strict=True))
    return [
        stated(
            f"Theorem 6 with the total variation improves on Theorem 4, κ⁺ = {share:g}",
            known,
            f"at all {len(_GRID)} levels, for randomised response",
        ),
        Check(
            f"where black-box Theorem 6 is above Theorem 4, κ⁺ = {share:g}",
            "nowhere",
            f"ε ≤ {max(above):g}" if above else "nowhere",
            "erratum" if above else "match",
            f"up to {over:.3g} times: with δ > 0 it has no term in κ⁺, so at small ε "
            "the earlier one is smaller (Proposition 5.13 of the thesis keeps the term)"
            if above
            else "at any level",
            "AE33" if above else "",
        ),
    ]


def _flat() -> Check:
    value = variation_bound(Approx(1, _DELTA), collision=1 / _SIZE).value
    old = _superseded(Prior.uniform(_SIZE), "theorem-4")(1.0)
    return Check(
        "Theorem 6 over Theorem 4, uniform, ε = 1",
        "below 1",
        value / old,
        "erratum" if value > old else "match",
        f"{value:.6g} and {old:.6g}",
        "AE33" if value > old else "",
    )


def _figure_4_2(inputs: Inputs) -> StudyResult:
    panels, checks = [], []
    for share in _SHARES:
        prior = _prior(share)
        pmf = prior.pmf

        def black(e: float, pmf: Floats = pmf) -> float:
            return black_box_conjecture(Approx(e, _DELTA), pmf).value

        def white(e: float, pmf: Floats = pmf) -> float:
            curve = response_curve(_SIZE, e)
            return curve_conjecture(curve, pmf, loss=Pure(e)).value

        def proved(e: float, pmf: Floats = pmf) -> float:
            return exact_guess_bound(Approx(e, _DELTA), pmf).value

        curves = [
            _curve("Theorem 5", _superseded(prior, "theorem-5")),
            _curve("Theorem 5.15 (proved)", proved),
            _curve("Theorem 7 (conjecture, upper)", black, dashed=True),
            _curve("Theorem 8 (conjecture, lower)", white, dashed=True),
        ]
        panels.append(_panel(share, prior.collision, curves))
        checks += _perfect_checks(share, curves)
    at = _GRID.index(1.0)
    gains = [p.curves[0].y[at] - p.curves[2].y[at] for p in panels]
    checks.append(
        stated(
            "the improvement on Theorem 5 grows with the skew",
            gains == sorted(gains),
            f"by {', '.join(f'{g:.3g}' for g in gains)} at ε = 1",
        )
    )
    return finished(FIGURE_4_2, panels, checks)


def _perfect_checks(share: float, curves: list[Curve]) -> list[Check]:
    old, proved, black, white = (curve.y for curve in curves)
    better = all(
        max(b, w) <= a + 1e-9 for a, b, w in zip(old, black, white, strict=True)
    )
    below = all(p <= b + 1e-9 for p, b in zip(proved, black, strict=True))
    start = _GRID.index(5.0)
    gaps = [(a - b) / a for a, b in zip(old, black, strict=True)]
    return [
        stated(
            f"Theorems 7 and 8 are below Theorem 5, κ⁺ = {share:g}",
            better,
            f"Theorem 7 by {gaps[0]:.1%} at ε = 0.5, {gaps[start]:.1%} at ε = 5; "
            "neither is proved",
        ),
        stated(
            f"the proved Theorem 5.15 is below Theorem 7, κ⁺ = {share:g}",
            below,
            "so the conjecture is not needed",
        ),
    ]


def _figure_4_3(inputs: Inputs) -> StudyResult:
    flat = Prior.uniform(_SIZE)
    old = _superseded(flat, "theorem-5")

    def first(e: float) -> float:
        return uniform_guess_bound(Approx(e, _DELTA), _SIZE).value

    def response(e: float) -> float:
        curve = response_curve(_SIZE, e)
        return uniform_interval_bound(curve, _SIZE, loss=Pure(e)).value

    def gaussian(e: float) -> float:
        loss, own = Approx(e, _DELTA), GDP(gdp_mu(e, _DELTA))
        return uniform_interval_bound(own, _SIZE, loss=loss).value

    curves = (
        _curve("Theorem 5", old),
        _curve("Corollary 1", first),
        _curve("Corollary 2, randomised response", response),
        _curve("Corollary 2, Gaussian", gaussian),
    )
    below = all(
        max(c.y[k] for c in curves[1:]) < curves[0].y[k] for k in range(len(_GRID))
    )
    checks = [
        stated(
            "Corollaries 1 and 2 are below Theorem 5 at every ε",
            below,
            f"at {len(_GRID)} levels from 0.5 to 12",
        ),
        *_evaluated(old, first),
    ]
    panel = Panel("uniform, 100 records", curves, EPSILON_LABEL, _BOUND_LABEL)
    return finished(FIGURE_4_3, [panel], checks)


def _evaluated(old: Bound, first: Bound) -> list[Check]:
    note = "published: the statement, evaluated; ours has the 2δ that Theorem 5 lacks"
    bounds = {"Theorem 5": old, "Corollary 1": first}
    return [
        compare(
            f"{name} at ε = {e:g}", value, bounds[name](e), erratum="AE7", note=note
        )
        for e, values in _PUBLISHED.items()
        for name, value in zip(bounds, values, strict=True)
    ]


# Theorem 5 as printed, and Corollary 1, for 100 records and δ = 1e-5.
_PUBLISHED = {
    1.0: ("0.0181828183", "0.0167333638"),
    5.0: ("0.9767481552", "0.5898636032"),
    10.0: ("0.9899101122", "0.9855255627"),
}
FIGURE_4_1 = Study(
    "sauer-figure-4.1",
    "general bound beside the earlier one",
    f"{SOURCE}, Figure 4.1",
    _figure_4_1,
)
FIGURE_4_2 = Study(
    "sauer-figure-4.2",
    "bounds for the exact record beside the earlier one",
    f"{SOURCE}, Figure 4.2",
    _figure_4_2,
)
FIGURE_4_3 = Study(
    "sauer-figure-4.3",
    "bounds for the exact record, uniform prior",
    f"{SOURCE}, Figure 4.3",
    _figure_4_3,
)
SAUER_BOUNDS = (FIGURE_4_1, FIGURE_4_2, FIGURE_4_3)
