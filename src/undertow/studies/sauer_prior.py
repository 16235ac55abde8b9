"""Sauer's attacks that know or learn the prior: Figure 6.5, Tables 5.2, 6.1, 6.3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk import Prior, Threat
from undertow.risk.attacks import PriorGuess
from undertow.risk.bounds import variation_bound
from undertow.risk.channel import ProtocolSampler
from undertow.risk.estimate import AttackEstimate, estimate_attack
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Status,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow.studies.sauer_common import (
    EPSILONS,
    PLACES,
    SOURCE,
    WHICH,
    Place,
    chance_panel,
    city_words,
    claim,
    figure_curves,
    nodes_of,
    prior_check,
    reports_drawn,
)
from undertow.studies.sauer_walks import estimate_of
from undertow.studies.thesis_bounds import finished

__all__ = ["SAUER_PRIOR", "crowd_figures"]

_CROWD = 499

Points = dict[float, AttackEstimate]


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


_NEEDS = ("porto", "geolife")
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
