"""Sauer's correlation attack on randomised response and the exponential mechanism.

Figures 6.6, 6.7 and 6.12 to 6.14, Tables 6.2, 6.4 and 6.5.
"""

from __future__ import annotations

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse
from undertow.numeric.array import Floats
from undertow.privacy import Pure
from undertow.risk import AttackRisk
from undertow.risk.attacks import exact_correlation_figures
from undertow.risk.bounds import variation_bound
from undertow.risk.intervals import empirical_bernstein
from undertow_studies.sauer_city import (
    EPSILONS,
    MEASURED,
    PLACES,
    SOURCE,
    WHICH,
    Moves,
    Network,
    Place,
    agreement,
    chance_panel,
    city_words,
    claim,
    figure_curves,
    measured_response,
    prior_check,
    read_moves,
    reports_drawn,
)
from undertow_studies.sauer_graph import CityHops, Triples, city_hops, radius_panels
from undertow_studies.study import Check, Curve, Inputs, Study, StudyResult, compare
from undertow_studies.thesis_bound import finished


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


def _response_bound(moves: Moves, size: int) -> Curve:
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
            bound = _response_bound(moves, size)
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


# The correlation attack on the exponential mechanism: Sauer's Figures 6.12 to 6.14.
#
# With Tables 6.4 and 6.5: the priors around each guess, and the radii.

_SHARES = (0.1, 0.3, 0.5, 0.7)
_STAND_IN = "a grid of streets stands in for the city"

Table = dict[int, list[AttackRisk]]


def _tables(triples: Triples, radii: tuple[int, ...]) -> Table:
    """Return the figures at every level, for each radius."""
    rows = [triples.figures(e, radii) for e in EPSILONS]
    return {r: [row[k] for row in rows] for k, r in enumerate(radii)}


def _graph_bound(city: CityHops, moves: Moves) -> Curve:
    """Return Theorem 9 with the total variation that the exact level allows."""
    values = tuple(
        variation_bound(Pure(city.level(e)), collision=moves.collision).value
        for e in EPSILONS
    )
    return Curve("Theorem 9", EPSILONS, values, kind="baseline")


def _figure_6_12(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks = [], []
    for place in PLACES:
        network = inputs.data[place.roads]
        city = city_hops(network)
        for visits in reports_of(place, network):
            moves = read_moves(inputs.data[place.walks], city.size, visits=visits)
            triples = Triples(city, moves)
            exact = _tables(triples, (0,))[0]
            points = {
                e: triples.measure(e, 0, trials=5 * inputs.runs, rng=rng)
                for e in MEASURED
            }
            where = f"{place.name}, {WHICH[visits]}"
            panels.append(chance_panel(where, figure_curves(exact, points)))
            checks += _exact_checks(where, exact, moves, real=network.real)
            checks.append(agreement(where, exact, points))
    return finished(FIGURE_6_12, panels, checks, data=walk_words(inputs))


def _exact_checks(
    where: str, exact: list[AttackRisk], moves: Moves, *, real: bool
) -> list[Check]:
    success = [figures.success for figures in exact]
    most = max(abs(figures.advantage) for figures in exact)
    response = exact_correlation_figures(
        GeneralizedResponse(len(moves.now), 20),
        moves.model,
        previous_law=moves.before,
        steps=moves.steps,
    )
    return [
        claim(
            f"success does not improve with ε, {where}",
            max(success) - min(success) < 0.05,
            f"{min(success):.3g} to {max(success):.3g}",
            real=real,
        ),
        claim(
            f"the advantage is about zero at every ε, {where}",
            most < 0.05,
            f"at most {most:.2g}, and {exact[0].advantage:.1g} at ε = 1",
            real=real,
        ),
        claim(
            f"success is much lower than on randomised response, {where}",
            success[-1] < response.success - 0.1,
            f"{success[-1]:.3g} and {response.success:.3g} at ε = 20",
            real=real,
        ),
    ]


def _radii(study: Study, inputs: Inputs, place: Place) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    network = inputs.data[place.roads]
    city = city_hops(network)
    panels, checks = [], []
    for visits in reports_of(place, network):
        moves = read_moves(inputs.data[place.walks], city.size, visits=visits)
        triples = Triples(city, moves)
        exact = _tables(triples, place.radii)
        points = {
            r: {
                e: triples.measure(e, r, trials=5 * inputs.runs, rng=rng)
                for e in MEASURED
            }
            for r in place.radii[1:2]
        }
        where = f"{place.name}, {WHICH[visits]}"
        bound = _graph_bound(city, moves)
        panels += radius_panels(where, exact, points=points, bound=bound)
        checks += _radius_checks(where, exact, bound, real=network.real)
        checks += [
            agreement(f"η = {r}, {where}", exact[r], found)
            for r, found in points.items()
        ]
    return finished(study, panels, checks, data=walk_words(inputs))


def _radius_checks(
    where: str, exact: Table, bound: Curve, *, real: bool
) -> list[Check]:
    radii = list(exact)
    correction = [line[-1].correction for line in exact.values()]
    most = {r: max(abs(f.advantage) for f in line) for r, line in exact.items()}
    worst = max(most, key=lambda r: most[r])
    least = min(f.success for r in radii[-2:] for f in exact[r])
    below = all(
        f.advantage <= b
        for line in exact.values()
        for f, b in zip(line, bound.y, strict=True)
    )
    return [
        claim(
            f"success and advantage part as η grows, {where}",
            correction == sorted(correction),
            f"by {', '.join(f'{c:.3g}' for c in correction)} at ε = 20",
            real=real,
        ),
        claim(
            f"the advantage is close to zero at every η, {where}",
            most[worst] < 0.05,
            f"at most {most[worst]:.2g}, at η = {worst}",
            real=real,
        ),
        claim(
            f"nearly perfect success at the two largest η, {where}",
            least > 0.95,
            f"{least:.4g} at least, before any report: the step before says enough",
            real=real,
        ),
        claim(
            f"the advantage never exceeds Theorem 9, {where}",
            below,
            "at any level and radius",
            real=real,
        ),
    ]


def _figure_6_13(inputs: Inputs) -> StudyResult:
    return _radii(FIGURE_6_13, inputs, PLACES[0])


def _figure_6_14(inputs: Inputs) -> StudyResult:
    return _radii(FIGURE_6_14, inputs, PLACES[1])


def _table_6_4(inputs: Inputs) -> StudyResult:
    checks = []
    for place in PLACES:
        network = inputs.data[place.roads]
        city = city_hops(network)
        for visits in ("all", "inside") if network.real else ("inside",):
            prior, where = network.prior(visits), f"{place.name}, {WHICH[visits]}"
            checks.append(
                prior_check(
                    f"κ, {where}",
                    place.collision,
                    prior.collision,
                    place=place,
                    visits=visits,
                    real=network.real,
                )
            )
            for radius, printed in zip(place.radii, place.best_guess, strict=True):
                ahead, back = _around(city, prior.pmf, radius)
                found = prior_check(
                    f"κ⁺ at η = {radius}, {where}",
                    printed,
                    ahead,
                    place=place,
                    visits=visits,
                    real=network.real,
                )
                note = f"{found.note}; counted to the guess instead: {back:.4g}"
                checks.append(
                    Check(
                        found.quantity,
                        found.published,
                        found.ours,
                        found.status,
                        note,
                        found.erratum,
                    )
                )
    return finished(TABLE_6_4, [], checks, data=city_words(inputs, simulated=False))


def _around(city: CityHops, pmf: Floats, radius: int) -> tuple[float, float]:
    """Return the largest mass within a radius, of hops from and to the guess."""
    ahead = city.profile(pmf)[:, : radius + 1].sum(axis=1)
    # Sums of all shares may exceed 1 by rounding.
    back = city.ball(pmf, radius)
    return min(1.0, float(ahead.max())), min(1.0, float(back.max()))


def _table_6_5(inputs: Inputs) -> StudyResult:
    checks = []
    for place in PLACES:
        network = inputs.data[place.roads]
        diameter = city_hops(network).diameter
        words = "" if network.real else _STAND_IN
        checks.append(
            compare(
                f"diameter, {place.name}",
                str(place.diameter),
                diameter,
                stand_in=words,
            )
        )
        for share, radius in zip(_SHARES, place.radii[1:], strict=True):
            checks.append(
                compare(
                    f"η = {share:g} of the diameter, {place.name}",
                    str(radius),
                    share * place.diameter,
                    erratum="AE13",
                    why=f"it is {radius / place.diameter:.2g} of the diameter",
                    note="section 5.2 has 0.1, 0.3, 0.5 and 0.7",
                )
            )
    return finished(TABLE_6_5, [], checks, data=city_words(inputs, simulated=False))


FIGURE_6_12 = Study(
    "sauer-figure-6.12",
    "correlation attack on the exponential mechanism, exact node",
    f"{SOURCE}, Figure 6.12",
    _figure_6_12,
    _NEEDS,
    draws=reports_drawn,
)
FIGURE_6_13 = Study(
    "sauer-figure-6.13",
    "correlation attack on the exponential mechanism in Porto, within η hops",
    f"{SOURCE}, Figure 6.13",
    _figure_6_13,
    ("porto", "porto-trips"),
    draws=reports_drawn,
)
FIGURE_6_14 = Study(
    "sauer-figure-6.14",
    "correlation attack on the exponential mechanism in Beijing, within η hops",
    f"{SOURCE}, Figure 6.14",
    _figure_6_14,
    ("geolife", "geolife-stays"),
    draws=reports_drawn,
)
TABLE_6_4 = Study(
    "sauer-table-6.4",
    "prior mass within η hops of the best guess",
    f"{SOURCE}, Table 6.4",
    _table_6_4,
    ("porto", "geolife"),
)
TABLE_6_5 = Study(
    "sauer-table-6.5",
    "radii of the attacks on the exponential mechanism",
    f"{SOURCE}, Table 6.5",
    _table_6_5,
    ("porto", "geolife"),
)
SAUER_GRAPH_WALKS = (FIGURE_6_12, FIGURE_6_13, FIGURE_6_14, TABLE_6_4, TABLE_6_5)
