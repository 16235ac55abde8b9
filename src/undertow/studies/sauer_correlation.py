"""Sauer's correlation attack on randomised response: Figures 6.6, 6.7, Table 6.2."""

from __future__ import annotations

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk import AttackRisk
from undertow.risk.attacks import exact_correlation_figures
from undertow.risk.bounds import variation_bound
from undertow.risk.intervals import empirical_bernstein
from undertow.studies.base import Check, Curve, Inputs, Study, StudyResult, compare
from undertow.studies.sauer_common import (
    EPSILONS,
    PLACES,
    SOURCE,
    WHICH,
    Network,
    Place,
    agreement,
    chance_panel,
    city_words,
    claim,
    figure_curves,
    reports_drawn,
)
from undertow.studies.sauer_walks import Moves, measured_response, read_moves
from undertow.studies.thesis_bounds import finished

__all__ = ["SAUER_CORRELATION", "reports_of", "walk_words"]


def _exact(moves: Moves, size: int, threshold: float) -> list[AttackRisk]:
    return [
        exact_correlation_figures(
            GeneralizedResponse(size, e),
            moves.model,
            previous_law=moves.before,
            threshold=threshold,
            steps=moves.steps,
        )
        for e in EPSILONS
    ]


def _bound(moves: Moves, size: int) -> Curve:
    values = tuple(
        variation_bound(
            GeneralizedResponse(size, e).total_variation(), collision=moves.collision
        ).value
        for e in EPSILONS
    )
    return Curve("Theorem 9", EPSILONS, values, kind="baseline")


def _figure(study: Study, inputs: Inputs, threshold: float) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks = [], []
    for place in PLACES:
        city, walks = inputs.data[place.roads], inputs.data[place.walks]
        size = len(city)
        for visits in reports_of(place, city):
            moves = read_moves(walks, size, visits=visits)
            exact = _exact(moves, size, threshold)
            points = measured_response(moves, threshold, runs=inputs.runs, rng=rng)
            bound = _bound(moves, size)
            name = f"{place.name}, {WHICH[visits]}, τ = {threshold:g}"
            curves = (*figure_curves(exact, points), bound)
            panels.append(chance_panel(name, curves))
            where = f"{place.name}, {WHICH[visits]}"
            other = _exact(moves, size, 0.0 if threshold else 0.1)
            low, high = (other, exact) if threshold else (exact, other)
            checks += _claims(where, exact, bound, real=city.real)
            checks.append(_threshold(where, low, high, real=city.real))
            checks.append(agreement(where, exact, points))
            checks.append(_seen(where, moves, city.real))
    return finished(study, panels, checks, data=walk_words(inputs))


def reports_of(place: Place, city: Network) -> tuple[str, ...]:
    """Return which reports can be counted: those of Beijing are all inside."""
    return ("all", "inside") if place.walks == "porto-trips" and city.real else _HONEST


_HONEST = ("inside",)


def walk_words(inputs: Inputs) -> str:
    """Say which networks and trips were used."""
    cities = city_words(inputs)
    if "real" not in cities:
        return f"{cities}; random walks on them"
    return (
        f"{cities}; Porto: 1 500 trips to learn from, 320 to attack, of 1.71 million; "
        "Beijing: stays inside the area, repeated nodes joined, a tenth attacked"
    )


def _claims(
    where: str, exact: list[AttackRisk], bound: Curve, *, real: bool
) -> list[Check]:
    ratio = [figures.advantage / b for figures, b in zip(exact, bound.y, strict=True)]
    gap = [b - figures.advantage for figures, b in zip(exact, bound.y, strict=True)]
    return [
        claim(
            f"a moderate gap between success and advantage, {where}",
            all(0.01 < figures.correction < 0.9 for figures in exact),
            f"the correction is {exact[0].correction:.3g} at ε = 1 and "
            f"{exact[-1].correction:.3g} at ε = 20",
            real=real,
        ),
        claim(
            f"the advantage is not zero at large ε, {where}",
            exact[-1].advantage > 0.05,
            f"{exact[-1].advantage:.4g} at ε = 20",
            real=real,
        ),
        claim(
            f"the advantage never exceeds Theorem 9, {where}",
            min(gap) >= 0,
            f"at most {max(ratio):.3g} of it",
            real=real,
        ),
        _tightness(where, ratio, gap),
        claim(
            f"a consistent gap from ε = 10, {where}",
            min(gap[9:]) > 0.02,
            f"{min(gap[9:]):.3g} to {max(gap[9:]):.3g}; the report alone attains the "
            "bound, so it is the attack that is not the best",
            real=real,
        ),
    ]


def _tightness(where: str, ratio: list[float], gap: list[float]) -> Check:
    return Check(
        f"advantage over Theorem 9 at ε ≤ 5, {where}",
        "tight",
        ratio[0],
        "erratum" if max(ratio[:5]) < 0.9 else "match",
        "the same share at every ε: both are multiples of p - q; up to ε = 5 they are "
        f"only {max(gap[:5]):.2g} apart because both are small",
        "AE37" if max(ratio[:5]) < 0.9 else "",
    )


def _threshold(
    where: str, low: list[AttackRisk], high: list[AttackRisk], *, real: bool
) -> Check:
    worst = min(a.advantage - b.advantage for a, b in zip(low, high, strict=True))
    return claim(
        f"τ = 0.1 is worse than τ = 0, {where}",
        worst >= 0,
        f"advantage at ε = 20: {low[-1].advantage:.3g} and {high[-1].advantage:.3g}; "
        f"smallest difference {worst:.2g}",
        real=real,
    )


def _seen(where: str, moves: Moves, real: bool) -> Check:
    empty = float(moves.before[np.diff(moves.model.indptr) == 0].sum())
    return Check(
        f"share of attacked steps that the model has seen, {where}",
        None,
        moves.seen,
        "not published",
        f"{empty:.2%} start where nobody was seen: there the report is the guess"
        + ("" if real else "; on a stand-in city"),
    )


def _figure_6_6(inputs: Inputs) -> StudyResult:
    return _figure(FIGURE_6_6, inputs, 0.0)


def _figure_6_7(inputs: Inputs) -> StudyResult:
    return _figure(FIGURE_6_7, inputs, 0.1)


def _table_6_2(inputs: Inputs) -> StudyResult:
    checks = []
    for place in PLACES:
        city, walks = inputs.data[place.roads], inputs.data[place.walks]
        moves = read_moves(walks, len(city), visits=reports_of(place, city)[0])
        for threshold in (0.0, 0.1):
            figures = _exact(moves, len(city), threshold)[9]
            checks.append(
                Check(
                    f"advantage at ε = 10, τ = {threshold:g}, {place.name}",
                    None,
                    figures.advantage,
                    "not published",
                    f"exact, no samples: success {figures.success:.6g}"
                    + ("" if city.real else "; on a stand-in city"),
                )
            )
    half = empirical_bernstein(np.resize([0.0, 1.0], 1000))
    checks.append(
        compare(
            "levels of the grid",
            "20",
            len(EPSILONS),
            note="ε = 1 to 20; I = 1000 targets with J = 5 reports each leave a chance "
            f"of 1/2 uncertain by ±{(half[1] - half[0]) / 2:.2g} (95 %, one value a "
            "target)",
        )
    )
    return finished(TABLE_6_2, [], checks, data=walk_words(inputs))


_NEEDS = ("porto", "porto-trips", "geolife", "geolife-stays")
FIGURE_6_6 = Study(
    "sauer-figure-6.6",
    "correlation attack on randomised response, τ = 0",
    f"{SOURCE}, Figure 6.6",
    _figure_6_6,
    _NEEDS,
    draws=reports_drawn,
)
FIGURE_6_7 = Study(
    "sauer-figure-6.7",
    "correlation attack on randomised response, τ = 0.1",
    f"{SOURCE}, Figure 6.7",
    _figure_6_7,
    _NEEDS,
    draws=reports_drawn,
)
TABLE_6_2 = Study(
    "sauer-table-6.2",
    "settings of the correlation attack",
    f"{SOURCE}, Table 6.2",
    _table_6_2,
    _NEEDS,
)
SAUER_CORRELATION = (FIGURE_6_6, FIGURE_6_7, TABLE_6_2)
