"""Sauer's attacks on single reports: the report as the guess, priors known or learned.

Figures 6.1 to 6.5, Tables 5.2, 6.1 and 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy import Pure
from undertow.risk import AttackRisk, Prior, Threat
from undertow.risk.attacks import PriorGuess, ReportGuess
from undertow.risk.bounds import (
    black_box_conjecture,
    curve_conjecture,
    exact_guess_bound,
    uniform_guess_bound,
    uniform_interval_bound,
    variation_bound,
)
from undertow.risk.channel import ProtocolSampler
from undertow.risk.estimate import AttackEstimate, estimate_attack
from undertow_studies.sauer_city import (
    EPSILONS,
    MEASURED,
    PLACES,
    SOURCE,
    WHICH,
    Place,
    agreement,
    chance_panel,
    city_words,
    claim,
    estimate_of,
    figure_curves,
    nodes_of,
    prior_check,
    reports_drawn,
    response_curve,
    response_figures,
)
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Status,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow_studies.thesis_bound import finished, stated

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


# Sauer's attacks that know or learn the prior: Figure 6.5, Tables 5.2, 6.1, 6.3.

_CROWD = 499


def _figure_6_5(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks = [], []
    for place in PLACES:
        city = inputs.data[place.roads]
        prior = city.prior("all")
        crowd = rng.choice(len(prior), size=_CROWD, p=prior.pmf)
        points = {
            e: crowd_figures(prior, crowd, epsilon=e, runs=inputs.runs, rng=rng)
            for e in EPSILONS
        }
        top = (float(prior.pmf.max()),) * len(EPSILONS)
        curves = [
            *figure_curves([], points),
            Curve("largest share", EPSILONS, top, kind="baseline"),
        ]
        panels.append(chance_panel(nodes_of(place), curves))
        checks += _estimation_checks(place, points, top[0], real=city.real)
    return finished(FIGURE_6_5, panels, checks, data=city_words(inputs))


def crowd_figures(
    prior: Prior,
    crowd: NDArray[np.intp],
    *,
    epsilon: float,
    runs: int,
    rng: np.random.Generator,
) -> AttackEstimate:
    r"""Measure the mode of a crowd's reports and the target's as the guess.

    Given the reports of the others, with modes T (t of them) and S one report behind,
    the attack is summed over the target and its report: with g(z | θ) = 1 at z = θ in
    T, 1/(t+1) on T and θ for θ in S, and 1/t on T otherwise,

    .. math:: \mathrm{RAD} = (p - q) \sum_z \pi_z \Bigl(g(z \mid z)
       - \sum_\theta \pi_\theta\, g(z \mid \theta)\Bigr) .

    Parameters
    ----------
    prior : Prior
        Law of the target.
    crowd : ndarray of int
        Categories of the others.
    epsilon : float
        Level of randomised response.
    runs : int
        Number of crowds drawn.
    rng : numpy.random.Generator
        Source of all draws.
    """
    size, pmf = len(prior), prior.pmf
    response = GeneralizedResponse(size, epsilon)
    source = SimulatedSource(rng)
    reports = response.sample(np.tile(crowd, runs), source=source).values
    cells = reports.reshape(runs, -1) + size * np.arange(runs)[:, None]
    counts = np.bincount(cells.ravel(), minlength=runs * size).reshape(runs, size)
    top = counts.max(axis=1, keepdims=True)
    first, second = (counts == top).astype(float), (counts == top - 1).astype(float)
    t, s = first.sum(axis=1), second.sum(axis=1)
    mass_t, mass_s = first @ pmf, second @ pmf
    own = mass_t + mass_s / (t + 1)
    any_report = mass_t + (s * mass_t + mass_s) / (t + 1) + (size - t - s) * mass_t / t
    other = (
        first @ pmf**2
        + (mass_s * mass_t + second @ pmf**2) / (t + 1)
        + (1 - mass_t - mass_s) * mass_t / t
    )
    p, q = float(response.keep), float(response.noise)
    success = q * any_report + (p - q) * own
    return estimate_of(success, q * any_report + (p - q) * other)


def _estimation_checks(
    place: Place, points: Points, top: float, *, real: bool
) -> list[Check]:
    first, last = points[1.0], points[20.0]
    worst = max(points, key=lambda e: abs(points[e].advantage.value))
    spread = abs(points[worst].advantage.value)
    return [
        claim(
            f"worse than the prior attack at small ε, {place.name}",
            first.success.value < top,
            f"success {first.success.value:.3g} at ε = 1",
            real=real,
        ),
        claim(
            f"success tends to the largest share, {place.name}",
            abs(last.success.value - top) < 0.01,
            f"{last.success.value:.3g} at ε = 20, largest share {top:.3g}",
            real=real,
        ),
        claim(
            f"the advantage is about zero at every ε, {place.name}",
            spread < 0.05,
            f"at most {spread:.2g}, at ε = {worst:g}: not zero where the two most "
            "visited nodes are near a tie among the others, which one report can "
            f"decide; {last.mechanism_runs} crowds at each level",
            real=real,
        ),
        claim(
            f"the advantage is below the success, {place.name}",
            all(p.advantage.value < p.success.value for p in points.values()),
            "at every level",
            real=real,
        ),
    ]


def _table_6_1(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    checks = []
    for place in PLACES:
        city = inputs.data[place.roads]
        for visits in ("all", "inside") if city.real else ("inside",):
            prior = city.prior(visits)
            words = f"{place.name}, {WHICH[visits]}"
            checks += _prior_checks(
                words, prior, place=place, visits=visits, real=city.real, rng=rng
            )
        checks.append(_printed(place, float(city.prior("all").pmf.max()), city.real))
    skew = Prior(51, [0.5, *(0.01,) * 50])
    found = _prior_attack(skew, rng=rng)
    checks += [
        compare("success, largest share 0.5", "0.5", float(skew.pmf.max())),
        compare("advantage, largest share 0.5", 0.0, found.advantage.value),
        compare(
            "bound without looking (ε = 0)",
            0.0,
            variation_bound(0.0, collision=skew.collision).value,
        ),
    ]
    return finished(TABLE_6_1, [], checks, data=city_words(inputs))


def _prior_attack(prior: Prior, *, rng: np.random.Generator) -> AttackEstimate:
    threat = Threat(prior)
    protocol = GeneralizedResponse(len(prior), 1)
    return estimate_attack(
        ProtocolSampler(protocol),
        PriorGuess(threat),
        threat,
        design="exhaustive",
        runs=1,
        rng=rng,
    )


def _prior_checks(
    where: str,
    prior: Prior,
    *,
    place: Place,
    visits: str,
    real: bool,
    rng: np.random.Generator,
) -> list[Check]:
    found, top = _prior_attack(prior, rng=rng), float(prior.pmf.max())
    return [
        prior_check(
            f"success, {where}",
            place.largest,
            top,
            place=place,
            visits=visits,
            real=real,
        ),
        compare(
            f"advantage, {where}",
            0.0,
            found.advantage.value,
            note="exact: the guess does not depend on the report",
        ),
    ]


def _printed(place: Place, top: float, real: bool) -> Check:
    same = float(place.largest) == float(place.best_guess[0])
    status: Status = "match" if same else "erratum"
    if not real:
        status = "stand-in"
    return Check(
        f"largest share in Tables 6.1 and 6.3, {place.name}",
        f"{place.largest} and {place.best_guess[0]}",
        top,
        status,
        "the same number in both tables"
        if same
        else "two values for one number; the text has 0.1",
        "AE18" if status == "erratum" else "",
    )


def _table_6_3(inputs: Inputs) -> StudyResult:
    checks = []
    for place in PLACES:
        city = inputs.data[place.roads]
        for visits in ("all", "inside") if city.real else ("inside",):
            prior, where = city.prior(visits), f"{place.name}, {WHICH[visits]}"
            top = float(prior.pmf.max())
            for symbol, printed, value in (
                ("κ", place.collision, prior.collision),
                ("κ⁺", place.best_guess[0], top),
            ):
                checks.append(
                    prior_check(
                        f"{symbol}, {where}",
                        printed,
                        value,
                        place=place,
                        visits=visits,
                        real=city.real,
                    )
                )
    return finished(TABLE_6_3, [], checks, data=city_words(inputs, simulated=False))


def _table_5_2(inputs: Inputs) -> StudyResult:
    checks = []
    for place in PLACES:
        city = inputs.data[place.roads]
        words = "" if city.real else "a grid of streets stands in for the city"
        checks.append(
            compare(
                f"nodes m, {place.name}",
                str(place.size),
                len(city),
                stand_in=words,
                note="the universe N is the same set",
            )
        )
    return finished(TABLE_5_2, [], checks, data=city_words(inputs, simulated=False))


def _crowds_drawn(runs: int) -> str:
    return f"source: 1 000 targets, five runs each; here: {count(runs)} crowds of 500"


FIGURE_6_5 = Study(
    "sauer-figure-6.5",
    "mode of the estimated distribution as the guess",
    f"{SOURCE}, Figure 6.5",
    _figure_6_5,
    _NEEDS,
    draws=_crowds_drawn,
)
TABLE_5_2 = Study(
    "sauer-table-5.2",
    "sizes of the cities",
    f"{SOURCE}, Table 5.2",
    _table_5_2,
    _NEEDS,
)
TABLE_6_1 = Study(
    "sauer-table-6.1",
    "likeliest node as the guess",
    f"{SOURCE}, Table 6.1",
    _table_6_1,
    _NEEDS,
    draws=reports_drawn,
)
TABLE_6_3 = Study(
    "sauer-table-6.3",
    "collision probability and largest share of the priors",
    f"{SOURCE}, Table 6.3",
    _table_6_3,
    _NEEDS,
)
SAUER_PRIOR = (TABLE_5_2, FIGURE_6_5, TABLE_6_1, TABLE_6_3)
