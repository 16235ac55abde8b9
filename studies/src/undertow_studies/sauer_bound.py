"""Sauer's bounds, settings with numbers, and the map of the priors.

Figures 4.1 to 4.3, Tables 5.1, 5.3 and 5.4, Figure 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse
from undertow.numeric.array import Floats
from undertow.privacy import GDP, Approx, Pure, gdp_mu
from undertow.risk import AttackRisk, Prior
from undertow.risk.attacks import exact_correlation_figures
from undertow.risk.bounds import (
    black_box_conjecture,
    curve_conjecture,
    exact_guess_bound,
    superseded_bound,
    uniform_guess_bound,
    uniform_interval_bound,
    variation_bound,
)
from undertow.risk.intervals import clopper_pearson, empirical_bernstein
from undertow_studies.sauer_city import (
    EPSILON_LABEL,
    PLACES,
    SOURCE,
    WHICH,
    Place,
    city_words,
    prior_check,
    read_moves,
    response_curve,
    response_figures,
)
from undertow_studies.sauer_report import crowd_figures
from undertow_studies.sauer_walk import reports_of, walk_words
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Status,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow_studies.thesis_bound import finished, stated

_DELTA, _SIZE = 1e-5, 100
_GRID = tuple(float(e) for e in np.arange(0.5, 12.01, 0.5))
# The priors of the figures are not printed: one record of this share, the rest equal.
_SHARES = (0.01, 0.3, 0.7)
_BOUND_LABEL = "bound on the advantage"

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


# Sauer's settings with numbers: Tables 5.1, 5.3 and 5.4.

_LEVEL = 10
_KNOWLEDGE = {
    "UNI": "uniform prior, nothing known",
    "TRUE": "prior of visits, nothing known",
    "PRIOR": "prior of visits, which is known",
    "EST": "prior of visits, learnt from 500 reports",
    "CORR": "prior of steps, the node before known",
}


def _table_5_1(inputs: Inputs) -> StudyResult:
    """Evaluate every setting of the table on Porto."""
    place, rng = PLACES[0], np.random.default_rng(inputs.seed)
    city = inputs.data[place.roads]
    size, prior = len(city), city.prior("all")
    top = float(prior.pmf.max())
    visits = reports_of(place, city)[0]
    moves = read_moves(inputs.data[place.walks], size, visits=visits)
    crowd = rng.choice(size, size=499, p=prior.pmf)
    learnt = crowd_figures(prior, crowd, epsilon=_LEVEL, runs=inputs.runs, rng=rng)
    figures = {
        "UNI": response_figures(size, _LEVEL, collision=1 / size),
        "TRUE": response_figures(size, _LEVEL, collision=prior.collision),
        "PRIOR": AttackRisk(top, top, 0.0),
        "EST": AttackRisk(
            learnt.success.value,
            learnt.success.value - learnt.advantage.value,
            learnt.advantage.value,
        ),
        "CORR": exact_correlation_figures(
            GeneralizedResponse(size, _LEVEL),
            moves.model,
            previous_law=moves.before,
            steps=moves.steps,
        ),
    }
    where = "" if city.real else "; on a stand-in city"
    checks = [
        Check(
            f"advantage on randomised response at ε = {_LEVEL}, {name}",
            None,
            found.advantage,
            "not published",
            f"{_KNOWLEDGE[name]}: success {found.success:.4g}, correction "
            f"{found.correction:.4g}{where}",
        )
        for name, found in figures.items()
    ]
    return finished(TABLE_5_1, [], checks, data=walk_words(inputs))


def _table_5_3(inputs: Inputs) -> StudyResult:
    low, high = clopper_pearson(2500, 5000)
    by_target = empirical_bernstein(np.resize([0.0, 1.0], 1000))
    checks = [
        Check(
            "half width of a 95 % interval, 5000 independent reports",
            None,
            (high - low) / 2,
            "not published",
            "chance 1/2, Clopper-Pearson; one report for each of 5000 targets",
        ),
        Check(
            "half width of a 95 % interval, I = 1000 targets, J = 5 reports each",
            None,
            (by_target[1] - by_target[0]) / 2,
            "not published",
            "reports that all agree within a target, empirical Bernstein: repetitions "
            "are no evidence about other targets, so 5000 targets are better than "
            "1000 with 5 reports each",
        ),
    ]
    return finished(TABLE_5_3, [], checks)


def _table_5_4(inputs: Inputs) -> StudyResult:
    place = PLACES[0]
    city = inputs.data[place.roads]
    size, prior, loss = len(city), city.prior("all"), Pure(_LEVEL)
    curve = response_curve(size, _LEVEL)
    first = uniform_guess_bound(loss, size).value
    second = uniform_interval_bound(curve, size, loss=loss).value
    claimed = black_box_conjecture(loss, prior.pmf).value
    proved = exact_guess_bound(loss, prior.pmf).value
    total = variation_bound(curve.total_variation(), collision=prior.collision).value
    real: Status = "match" if city.real else "stand-in"
    checks = [
        Check(
            "uniform prior, exact node: Corollary 1",
            "Corollaries 1 and 2",
            first,
            "match",
            f"Corollary 2 gives {second:.9g}; both are attained",
        ),
        Check(
            "prior of visits, exact node: the proved bounds",
            "Theorems 7 and 8",
            f"Theorem 5.15: {proved:.6g}; Theorem 6: {total:.6g}",
            "erratum" if city.real else "stand-in",
            "Theorems 7 and 8 have no proof; Theorem 6 with the total variation is "
            f"what Theorem 8 gives here, and Theorem 7 would give {claimed:.6g}",
            "AE34" if city.real else "",
        ),
        Check(
            "node before known: Theorem 9",
            "Theorem 9",
            total,
            real,
            "the collision probability of the node now, any η",
        ),
        Check(
            "exponential mechanism, within η > 0 hops",
            "Corollary 1, Theorem 6",
            "Theorem 6",
            "erratum",
            "Corollary 1 is about the exact node, so it is for η = 0, which the table "
            "does not list",
            "AE34",
        ),
    ]
    return finished(TABLE_5_4, [], checks, data=city_words(inputs, simulated=False))


def _crowds_drawn(runs: int) -> str:
    return (
        "source: 1 000 targets, five reports each; here: exact, but for learnt priors, "
        f"means over {count(runs)} crowds of 500 reports"
    )


TABLE_5_1 = Study(
    "sauer-table-5.1",
    "settings of the attacks, evaluated",
    f"{SOURCE}, Table 5.1",
    _table_5_1,
    ("porto", "porto-trips"),
    draws=_crowds_drawn,
)
TABLE_5_3 = Study(
    "sauer-table-5.3",
    "what the sample sizes can tell",
    f"{SOURCE}, Table 5.3",
    _table_5_3,
)
TABLE_5_4 = Study(
    "sauer-table-5.4",
    "which bound holds in which setting",
    f"{SOURCE}, Table 5.4",
    _table_5_4,
    ("porto",),
)
SAUER_TABLES = (TABLE_5_1, TABLE_5_3, TABLE_5_4)


# Sauer's map of the priors: Figure 5.1.

_HEADER = ("panel", "node", "longitude", "latitude", "share")


def _figure_5_1(inputs: Inputs) -> StudyResult:
    panels, rows, checks = [], [], []
    for place in PLACES:
        city = inputs.data[place.roads]
        checks.append(_nodes(place, city))
        for visits in ("all", "inside") if city.real else ("inside",):
            prior = city.prior(visits)
            panel = _map(_title(place, visits, real=city.real), city, prior)
            panels.append(panel)
            rows += _rows(panel)
            checks += _shares(place, prior, visits=visits, real=city.real)
    return StudyResult(
        FIGURE_5_1.name,
        FIGURE_5_1.title,
        FIGURE_5_1.source,
        tuple(panels),
        _HEADER,
        tuple(rows),
        tuple(checks),
        city_words(inputs, simulated=False),
    )


def _title(place: Place, visits: str, *, real: bool) -> str:
    return f"{place.name}, {WHICH[visits]}" if real else f"{place.name} (stand-in)"


def _map(title: str, city: Any, prior: Prior) -> Panel:
    """Return the nodes where they lie, each as large as its share of the visits."""
    shares = tuple(prior.pmf.tolist())
    nodes = Curve(
        f"share of visits, largest {max(shares):.2g}",
        tuple(city.longitude.tolist()),
        tuple(city.latitude.tolist()),
        kind="measured",
        sizes=shares,
    )
    return Panel(title, (nodes,), "longitude (degrees)", "latitude (degrees)")


def _rows(panel: Panel) -> list[tuple[Any, ...]]:
    (nodes,) = panel.curves
    points = zip(nodes.x, nodes.y, nodes.sizes, strict=True)
    return [(panel.name, node, *point) for node, point in enumerate(points)]


def _nodes(place: Place, city: Any) -> Check:
    return compare(
        f"nodes, {place.name}",
        str(place.size),
        len(city),
        stand_in="" if city.real else "a grid of streets stands in for the city",
        note="printed in Table 5.2; the figure has no numbers",
    )


def _shares(place: Place, prior: Prior, *, visits: str, real: bool) -> list[Check]:
    where = f"{place.name}, {WHICH[visits]}"
    top = float(prior.pmf.max())
    return [
        prior_check(
            f"largest share, {where}",
            place.largest,
            top,
            place=place,
            visits=visits,
            real=real,
        ),
        prior_check(
            f"κ, {where}",
            place.collision,
            prior.collision,
            place=place,
            visits=visits,
            real=real,
        ),
    ]


FIGURE_5_1 = Study(
    "sauer-figure-5.1",
    "visits of the nodes of two cities",
    f"{SOURCE}, Figure 5.1",
    _figure_5_1,
    ("porto", "geolife"),
)
SAUER_MAP = (FIGURE_5_1,)
