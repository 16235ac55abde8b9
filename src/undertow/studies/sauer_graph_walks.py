"""The correlation attack on the exponential mechanism: Sauer's Figures 6.12 to 6.14.

With Tables 6.4 and 6.5: the priors around each guess, and the radii.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy import Pure
from undertow.risk import AttackRisk
from undertow.risk.attacks import exact_correlation_figures
from undertow.risk.bounds import variation_bound
from undertow.studies.base import Check, Curve, Inputs, Study, StudyResult, compare
from undertow.studies.sauer_common import (
    EPSILONS,
    PLACES,
    SOURCE,
    WHICH,
    Place,
    agreement,
    chance_panel,
    city_words,
    claim,
    figure_curves,
    prior_check,
    reports_drawn,
)
from undertow.studies.sauer_correlation import reports_of, walk_words
from undertow.studies.sauer_graph import radius_panels
from undertow.studies.sauer_hops import CityHops, Triples, city_hops
from undertow.studies.sauer_walks import MEASURED, Moves, read_moves
from undertow.studies.thesis_bounds import finished

__all__ = ["SAUER_GRAPH_WALKS"]

_SHARES = (0.1, 0.3, 0.5, 0.7)
_STAND_IN = "a grid of streets stands in for the city"

Floats = NDArray[np.float64]
Table = dict[int, list[AttackRisk]]


def _tables(triples: Triples, radii: tuple[int, ...]) -> Table:
    """Return the figures at every level, for each radius."""
    rows = [triples.figures(e, radii) for e in EPSILONS]
    return {r: [row[k] for row in rows] for k, r in enumerate(radii)}


def _bound(city: CityHops, moves: Moves) -> Curve:
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
        bound = _bound(city, moves)
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


_NEEDS = ("porto", "porto-trips", "geolife", "geolife-stays")
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
