"""The report of randomised response as the guess: Sauer's Figures 6.1 to 6.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy import Pure
from undertow.risk import AttackRisk, Prior, Threat
from undertow.risk.attacks import (
    ReportGuess,
)
from undertow.risk.bounds import (
    black_box_conjecture,
    curve_conjecture,
    exact_guess_bound,
    uniform_guess_bound,
    uniform_interval_bound,
)
from undertow.risk.channel import ProtocolSampler
from undertow.risk.estimate import AttackEstimate, estimate_attack
from undertow.studies.base import Check, Curve, Inputs, Study, StudyResult, compare
from undertow.studies.sauer_common import (
    EPSILONS,
    PLACES,
    SOURCE,
    agreement,
    chance_panel,
    city_words,
    claim,
    figure_curves,
    nodes_of,
    reports_drawn,
    response_curve,
    response_figures,
)
from undertow.studies.sauer_walks import MEASURED
from undertow.studies.thesis_bounds import finished, stated

__all__ = ["SAUER_RESPONSE"]

_CONFIDENCE = 0.99999
# Success and advantage of the report at some levels, by hand from p and 1/m.
_UNIFORM = {
    3052: {5: "0.046388", 8: "0.494194", 10: "0.878337"},
    5356: {5: "0.026967", 8: "0.357602", 10: "0.804430"},
}

Exact = list[AttackRisk]
Points = dict[float, AttackEstimate]


def _report(prior: Prior, runs: int, rng: np.random.Generator) -> tuple[Exact, Points]:
    """Return the exact figures of the report as guess, and the measured ones."""
    size, threat = len(prior), Threat(prior)
    exact = [response_figures(size, e, collision=prior.collision) for e in EPSILONS]
    points = {
        e: estimate_attack(
            ProtocolSampler(GeneralizedResponse(size, e)),
            ReportGuess(threat),
            threat,
            trials=runs,
            design="clustered",
            runs=5,
            confidence=_CONFIDENCE,
            rng=rng,
        )
        for e in MEASURED
    }
    return exact, points


@cache
def _uniform(size: int, runs: int, seed: int) -> tuple[Exact, Points]:
    """Return the same of a uniform prior, once for two figures."""
    return _report(Prior.uniform(size), runs, np.random.default_rng(seed))


def _figure_6_1(inputs: Inputs) -> StudyResult:
    panels, checks = [], []
    for place in PLACES:
        exact, points = _uniform(place.size, inputs.runs, inputs.seed)
        panels.append(chance_panel(nodes_of(place), figure_curves(exact, points)))
        checks.append(agreement(place.name, exact, points))
        gap = max(f.success - f.advantage for f in exact)
        checks.append(
            compare(
                f"correction, {place.name}",
                1 / place.size,
                gap,
                note="1/m at every level: negligible",
            )
        )
        checks += [
            compare(
                f"success at ε = {e}, {place.name}",
                value,
                exact[e - 1].success,
                note="published: p, evaluated",
            )
            for e, value in _UNIFORM[place.size].items()
        ]
    return finished(FIGURE_6_1, panels, checks, data=_uniform_words(inputs))


def _figure_6_2(inputs: Inputs) -> StudyResult:
    exact, points = _uniform(2, inputs.runs, inputs.seed)
    half = tuple(figures.correction for figures in exact)
    curves = [*figure_curves(exact, points), Curve("correction", EPSILONS, half)]
    checks = [
        compare("correction", 0.5, half[0], note="at every level"),
        agreement("2 nodes", exact, points),
    ]
    panel = chance_panel("2 nodes", curves)
    return finished(FIGURE_6_2, [panel], checks, data="none; simulated reports")


def _figure_6_3(inputs: Inputs) -> StudyResult:
    panels, checks = [], []
    for place in PLACES:
        size = place.size
        exact, points = _uniform(size, inputs.runs, inputs.seed)
        first = tuple(uniform_guess_bound(Pure(e), size).value for e in EPSILONS)
        second = tuple(
            uniform_interval_bound(response_curve(size, e), size, loss=Pure(e)).value
            for e in EPSILONS
        )
        curves = [
            *(c for c in figure_curves(exact, points) if "advantage" in c.label),
            Curve("Corollaries 1 and 2", EPSILONS, first, kind="baseline"),
        ]
        panels.append(chance_panel(nodes_of(place), curves))
        off = _furthest(first, [f.advantage for f in exact])
        apart = _furthest(first, second)
        checks += [
            stated(
                f"the advantage is Corollary 1, {place.name}",
                off < 1e-9,
                f"largest relative difference {off:.1e}; no attack does better",
            ),
            stated(
                f"Corollaries 1 and 2 are the same for randomised response, "
                f"{place.name}",
                apart < 1e-9,
                f"largest relative difference {apart:.1e}",
            ),
            agreement(place.name, exact, points),
        ]
    return finished(FIGURE_6_3, panels, checks, data=_uniform_words(inputs))


def _figure_6_4(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks = [], []
    for place in PLACES:
        city = inputs.data[place.roads]
        prior = city.prior("all")
        exact, points = _report(prior, inputs.runs, rng)
        bounds = _bounds(prior)
        curves = [*figure_curves(exact, points), *bounds.values()]
        if city.real:
            curves.append(_honest(city.prior("inside")))
        panels.append(chance_panel(nodes_of(place), curves))
        checks += _true_checks(place.name, exact, bounds, real=city.real)
        checks.append(agreement(place.name, exact, points))
    return finished(FIGURE_6_4, panels, checks, data=city_words(inputs))


def _honest(prior: Prior) -> Curve:
    size, chance = len(prior), prior.collision
    figures = [response_figures(size, e, collision=chance) for e in EPSILONS]
    label = "advantage, reports inside"
    return Curve(label, EPSILONS, tuple(f.advantage for f in figures))


def _bounds(prior: Prior) -> dict[str, Curve]:
    """Return the statements of Table 5.4 and the proved bound, at every level."""
    size, pmf = len(prior), prior.pmf
    values = {
        "Theorem 5.15": [exact_guess_bound(Pure(e), pmf).value for e in EPSILONS],
        "Theorem 7 (conjecture, upper)": [
            black_box_conjecture(Pure(e), pmf).value for e in EPSILONS
        ],
        "Theorem 8 (conjecture, lower)": [
            curve_conjecture(response_curve(size, e), pmf, loss=Pure(e)).value
            for e in EPSILONS
        ],
    }
    return {
        name: Curve(
            name,
            EPSILONS,
            tuple(line),
            kind="baseline" if "conjecture" in name else "theory",
        )
        for name, line in values.items()
    }


def _true_checks(
    where: str, exact: Exact, bounds: Mapping[str, Curve], *, real: bool
) -> list[Check]:
    reached = [figures.advantage for figures in exact]
    off = _furthest(bounds["Theorem 8 (conjecture, lower)"].y, reached)
    ratio = [
        b / a
        for a, b in zip(reached, bounds["Theorem 7 (conjecture, upper)"].y, strict=True)
    ]
    proved = [b / a for a, b in zip(reached, bounds["Theorem 5.15"].y, strict=True)]
    gaps = [
        b - a
        for a, b in zip(reached, bounds["Theorem 7 (conjecture, upper)"].y, strict=True)
    ]
    holds = max(gaps[:11]) <= max(gaps[11:])
    return [
        stated(
            f"Theorem 8 is the advantage, {where}",
            off < 1e-9,
            f"relative difference {off:.1e}; proved here by Theorem 6 with the total "
            "variation p - q, which gives (p - q)(1 - κ)",
        ),
        Check(
            f"where Theorem 7 approximates the advantage, {where}",
            "only for ε ≤ 11",
            f"within {max(gaps[:11]):.2g} for ε ≤ 11, {max(gaps[11:]):.2g} above",
            ("match" if holds else "erratum") if real else "stand-in",
            f"the other way round: {ratio[0]:.3g} times the advantage at ε = 1, "
            f"{ratio[4]:.3g} at 5, {ratio[-1]:.4g} at 20; the proved Theorem 5.15 "
            f"{proved[0]:.3g}, {proved[4]:.3g} and {proved[-1]:.4g} times",
            "AE36" if real and not holds else "",
        ),
        claim(
            f"success and advantage part as ε grows, {where}",
            exact[-1].correction > exact[0].correction,
            f"apart by {exact[0].correction:.2g} at ε = 1 and "
            f"{exact[-1].correction:.2g}, the collision probability, at ε = 20",
            real=real,
        ),
    ]


def _furthest(first: Sequence[float], second: Sequence[float]) -> float:
    return max(abs(a / b - 1) for a, b in zip(first, second, strict=True))


def _uniform_words(inputs: Inputs) -> str:
    cities = city_words(inputs, simulated=False)
    return f"{cities}, of which only the size matters; simulated reports"


_NEEDS = ("porto", "geolife")
FIGURE_6_1 = Study(
    "sauer-figure-6.1",
    "report of randomised response as the guess, uniform prior",
    f"{SOURCE}, Figure 6.1",
    _figure_6_1,
    _NEEDS,
    draws=reports_drawn,
)
FIGURE_6_2 = Study(
    "sauer-figure-6.2",
    "report of randomised response as the guess, two nodes",
    f"{SOURCE}, Figure 6.2",
    _figure_6_2,
    draws=reports_drawn,
)
FIGURE_6_3 = Study(
    "sauer-figure-6.3",
    "advantage of the report and its bounds, uniform prior",
    f"{SOURCE}, Figure 6.3",
    _figure_6_3,
    _NEEDS,
    draws=reports_drawn,
)
FIGURE_6_4 = Study(
    "sauer-figure-6.4",
    "advantage of the report and its bounds, prior of visits",
    f"{SOURCE}, Figure 6.4",
    _figure_6_4,
    _NEEDS,
    draws=reports_drawn,
)
SAUER_RESPONSE = (FIGURE_6_1, FIGURE_6_2, FIGURE_6_3, FIGURE_6_4)
