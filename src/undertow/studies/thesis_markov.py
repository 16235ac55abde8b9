"""Chapter 6 of the thesis on chains: activity and electricity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import ProjectiveMethod
from undertow.correlation.markov.published import gamma_budget
from undertow.correlation.markov.two_state import TwoStateMethod
from undertow.correlation.observation import count_transitions
from undertow.correlation.query import AnyQuery
from undertow.studies.base import Check, Inputs, Status, Study, StudyResult, compare
from undertow.studies.noise import (
    Level,
    error_panel,
    level_or_nan,
    percent_panel,
    releases_drawn,
)
from undertow.studies.thesis_bounds import finished

__all__ = ["PRINTED_CHAINS", "THESIS_MARKOV"]

PRINTED_CHAINS = {
    "Activity": ((0.882, 0.118), (0.305, 0.695)),
    "Electricity 70": ((0.445, 0.555), (0.149, 0.851)),
    "Electricity 80": ((0.818, 0.182), (0.371, 0.629)),
    "Electricity 90": ((0.894, 0.106), (0.478, 0.522)),
}
"""Printed matrices; .117 and .850 raised by .001 so that the rows sum to one."""

_EQUATION_6_73 = {
    "Activity": "8.05",
    "Electricity 70": "4.7",
    "Electricity 80": "6.03",
    "Electricity 90": "8.54",
}
_TABLE_6_2 = {
    "Activity": "7.54",
    "Electricity 70": "3.29",
    "Electricity 80": "4.49",
    "Electricity 90": "8.43",
}


@dataclass(frozen=True)
class _Case:
    """One data set: its chain, the printed one, and the count that is released."""

    name: str
    chain: MarkovChain
    printed: MarkovChain
    records: int
    truth: float
    real: bool

    def levels(self) -> Mapping[str, Level]:
        """Return the DP level of each method as a function of the promise."""
        gamma, records, chain = self.printed.gamma, self.records, self.chain
        rows, query = _rows(chain), AnyQuery()
        return {
            "DP": lambda b: b,
            "exact": lambda b: _exact_level(rows, b),
            "closed form": lambda b: ProjectiveMethod().budget(chain, b, query=query),
            "thesis": level_or_nan(lambda b: gamma_budget(b, gamma)),
            "general": lambda b: b / records,
        }


Rows = tuple[tuple[float, ...], ...]


def _rows(chain: MarkovChain) -> Rows:
    return tuple(tuple(row) for row in chain.transition.tolist())


@cache
def _exact_level(rows: Rows, target: float) -> float:
    """Return the exact level; the figures ask for the same ones again and again."""
    return TwoStateMethod().budget(MarkovChain(rows), target, query=AnyQuery())


def _cases(inputs: Inputs) -> tuple[list[_Case], str]:
    activity, electricity = inputs.data["activity"], inputs.data["electricity"]
    days = activity.complete_days()
    fitted, printed = _fitted(activity), MarkovChain(PRINTED_CHAINS["Activity"])
    size, count, real = len(activity.states), activity.count, activity.real
    cases = [
        _Case("Activity", fitted, printed, size, float(count), real),
        _Case("Activity, one day", fitted, printed, 288, count / len(days), real),
    ]
    for threshold, series in electricity.items():
        name, size = f"Electricity {threshold}", len(series.states)
        chain = MarkovChain(PRINTED_CHAINS[name])
        # The series is simulated: what counts is what its chain expects.
        expected = size * float(chain.stationary()[1])
        cases.append(_Case(name, chain, chain, size, expected, True))
    words = "real activity" if activity.real else "simulated activity"
    return cases, f"{words}; electricity simulated from the printed chains"


def _fitted(activity: Any) -> MarkovChain:
    counts = count_transitions([activity.states], 2).astype(float)
    return MarkovChain(counts / counts.sum(axis=1, keepdims=True))


def _figure_6_7(inputs: Inputs) -> StudyResult:
    cases, data = _cases(inputs)
    rng = np.random.default_rng(inputs.seed)
    panels = [
        error_panel(
            case.name,
            case.levels(),
            sensitivity=1.0,
            unit="records",
            runs=inputs.runs,
            rng=rng,
        )
        for case in cases
    ]
    checks = [*_floor_checks(), *_ratio_checks(cases[0]), _small_promise(cases[0])]
    return finished(FIGURE_6_7, panels, checks, data=data)


def _floor_checks() -> list[Check]:
    checks = []
    for name, printed in _EQUATION_6_73.items():
        chain = MarkovChain(PRINTED_CHAINS[name])
        checks.append(
            compare(
                f"least leakage of Theorem 6.20, 4 log γ, {name}",
                printed,
                4 * math.log(chain.gamma),
                erratum="CE14",
                why="not what the printed matrix gives",
            )
        )
    return checks


def _ratio_checks(case: _Case) -> list[Check]:
    ratio = case.records * (20 - 4 * math.log(case.printed.gamma)) / 20
    return [
        Check(
            "error of the general bound over that of the Markov bound, Activity",
            "10^5 times",
            ratio,
            "erratum" if ratio < 1e5 else "match",
            "n (B - 4 log γ)/B, largest at B = 20; it never reaches n = "
            f"{case.records}",
            "CE24" if ratio < 1e5 else "",
        )
    ]


def _small_promise(case: _Case) -> Check:
    level = _exact_level(_rows(case.chain), 1.0)
    return Check(
        "error at leakage 1, Activity",
        "infeasible below 8.05",
        math.log(20) / level,
        "differs" if case.real else "stand-in",
        f"exact calibration, ε = {level:.6g}; the general bound needs "
        f"{math.log(20) * case.records:.6g}",
    )


def _figure_6_9(inputs: Inputs) -> StudyResult:
    cases, data = _cases(inputs)
    panels = [
        percent_panel(case.name, case.levels(), sensitivity=1.0, truth=case.truth)
        for case in cases
    ]
    checks = [check for case in cases for check in _percent_checks(case)]
    return finished(FIGURE_6_9, panels, checks, data=data)


def _percent_checks(case: _Case) -> list[Check]:
    percent = 100 * case.records / case.truth
    limit = 10.0 if "day" in case.name else 0.1
    needed = 100 / case.truth / limit
    general: Status = "match" if percent > 100 else "differs"
    markov: Status = "match" if needed < 1 else "erratum"
    return [
        Check(
            f"mean error of the general bound at leakage 1 (%), {case.name}",
            "above 100 %",
            percent,
            general if case.real else "stand-in",
            f"of a count of {case.truth:.6g} in {case.records} records",
        ),
        Check(
            f"mean error of the Markov bound, {case.name}",
            f"below {limit:g} %",
            f"only for DP levels above {needed:.3g}",
            markov if case.real else "stand-in",
            "the level is B - 4 log γ, which goes to zero at the least leakage",
            "CE29" if case.real and markov == "erratum" else "",
        ),
    ]


def _table_6_2(inputs: Inputs) -> StudyResult:
    cases, data = _cases(inputs)
    galton, family = inputs.data["galton"], inputs.data["family-iq"]
    stand_in = "" if galton.real else "drawn from the published moments"
    checks = [
        compare(
            "n, Galton",
            "897",
            float(len(galton.trios)),
            erratum="LE18",
            why="the public table has 898 rows; its correlations are the printed ones",
            stand_in=stand_in,
        ),
        compare(
            "ρ, Galton",
            "0.275",
            float(np.corrcoef(galton.trios.T)[0, 2]),
            stand_in=stand_in,
        ),
        compare(
            "n, FamilyIQ",
            "868",
            float(family.pairs.size),
            stand_in=stand_in,
            note="434 mother-child pairs",
        ),
        compare(
            "ρ, FamilyIQ",
            "0.4483",
            float(np.corrcoef(family.pairs.T)[0, 1]),
            stand_in=stand_in,
        ),
    ]
    for name, printed in _TABLE_6_2.items():
        checks.append(
            compare(
                f"γ of the printed matrix, {name}",
                printed,
                MarkovChain(PRINTED_CHAINS[name]).gamma,
                erratum="CE14",
                why="the printed matrix gives this ratio",
            )
        )
    activity = cases[0]
    checks.append(
        compare(
            "γ of Activity, fitted, missing pairs dropped",
            "7.54",
            activity.chain.gamma,
            erratum="CE14",
            why="counts (9713, 1295; 1295, 2955) give 7.5004",
            stand_in="" if inputs.data["activity"].real else "simulated chain",
        )
    )
    return finished(TABLE_6_2, [], checks, data=data)


_THESIS = "Guerra-Balboa (2026)"
_NEEDS = ("activity", "electricity")
FIGURE_6_7 = Study(
    "figure-6.7",
    "error of counts on chains",
    f"{_THESIS}, Figure 6.7; talk (2025), Markov slides",
    _figure_6_7,
    _NEEDS,
    draws=releases_drawn,
)
FIGURE_6_9 = Study(
    "figure-6.9",
    "mean percentage error of counts on chains",
    f"{_THESIS}, Figure 6.9",
    _figure_6_9,
    _NEEDS,
)
TABLE_6_2 = Study(
    "table-6.2",
    "the data sets and their parameters",
    f"{_THESIS}, Table 6.2",
    _table_6_2,
    ("activity", "electricity", "galton", "family-iq"),
)
THESIS_MARKOV = (FIGURE_6_7, FIGURE_6_9, TABLE_6_2)
