"""Sauer's settings with numbers: Tables 5.1, 5.3 and 5.4."""

from __future__ import annotations

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy import Pure
from undertow.risk import AttackRisk
from undertow.risk.attacks import exact_correlation_figures
from undertow.risk.bounds import (
    black_box_conjecture,
    exact_guess_bound,
    uniform_guess_bound,
    uniform_interval_bound,
    variation_bound,
)
from undertow.risk.intervals import clopper_pearson, empirical_bernstein
from undertow.studies.base import Check, Inputs, Status, Study, StudyResult, count
from undertow.studies.sauer_common import (
    PLACES,
    SOURCE,
    city_words,
    response_curve,
    response_figures,
)
from undertow.studies.sauer_correlation import reports_of, walk_words
from undertow.studies.sauer_prior import crowd_figures
from undertow.studies.sauer_walks import read_moves
from undertow.studies.thesis_bounds import finished

__all__ = ["SAUER_TABLES"]

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
