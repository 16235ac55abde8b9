"""The master's thesis: squared errors on genomes, heights and activity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from undertow.correlation.gaussian.method import gaussian_factor
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.published import additive_budget, gamma_budget
from undertow.correlation.markov.two_state import TwoStateMethod
from undertow.correlation.query import AnyQuery, LinearQuery
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.noise import Level, level_or_nan, releases_drawn
from undertow.studies.thesis_bounds import finished

__all__ = ["MASTER_UTILITY"]

_GRID = tuple(float(e) for e in range(1, 21))
_ACTIVITY = MarkovChain([[0.882, 0.118], [0.305, 0.695]])


def _squared_panel(
    name: str,
    levels: Mapping[str, Level],
    *,
    sensitivity: float,
    sets: int,
    rng: np.random.Generator,
) -> Panel:
    """Return expected squared errors, and means over one draw a data set."""
    curves = []
    for label, level in levels.items():
        scales = [sensitivity / level(e) for e in _GRID]
        theory = tuple(2 * scale**2 for scale in scales)
        measured = tuple(
            float((rng.laplace(scale=s, size=sets) ** 2).mean()) if s == s else math.nan
            for s in scales
        )
        curves.append(Curve(label, _GRID, theory))
        curves.append(Curve(f"{label}, measured", _GRID, measured, kind="measured"))
    return Panel(name, tuple(curves), "leakage B", "mean squared error", y_log=True)


def _figure_17(inputs: Inputs) -> StudyResult:
    genotypes = inputs.data["genotypes"]
    sites = len(genotypes.alternate)
    rng = np.random.default_rng(inputs.seed)
    levels = {f"m = {m}": _divided(m) for m in (1, 3, 5, 10)}
    panel = _squared_panel(
        "families of m", levels, sensitivity=1.0, sets=sites, rng=rng
    )
    mean = float(genotypes.homozygotes().mean())
    data = "1000 Genomes, chromosome 1" if genotypes.real else "simulated genotypes"
    checks = [
        compare(
            "mean count of 'BB', read as homozygous alternate",
            "40.29",
            mean,
            stand_in=f"{data} instead of chromosome 22",
        ),
        Check(
            "what 'BB' counts",
            "homozygous major",
            "homozygous alternate",
            "erratum",
            "the major homozygote is seen "
            f"{genotypes.homozygotes('major').mean():.4g} times of "
            f"{genotypes.alternate.shape[1]} on average",
            "LE20",
        ),
        compare(
            "expected squared error at leakage 5, m = 10",
            2 * (10 / 5) ** 2,
            dict(zip(_GRID, panel.curves[6].y, strict=True))[5.0],
            note="published: 2 (m/ε)², evaluated",
        ),
    ]
    return finished(FIGURE_17, [panel], checks, data=data)


def _divided(m: float) -> Level:
    return lambda target: target / m


def _figure_18(inputs: Inputs) -> StudyResult:
    galton = inputs.data["galton"]
    thesis = gaussian_factor(3, 0.275, variant="thesis")
    sharp = gaussian_factor(3, 0.275)
    covariance = np.cov(galton.trios.T)
    query = LinearQuery(clip=(60.0, 80.0))
    exact = leakage(Gaussian(covariance), 1.0, query=query).value
    levels = {
        "DP": _divided(1),
        "exact": _divided(exact),
        "closed form": _divided(sharp),
        "thesis": _divided(thesis),
        "general": _divided(3),
    }
    rng = np.random.default_rng(inputs.seed)
    panel = _squared_panel(
        "sum of a trio", levels, sensitivity=20.0, sets=len(galton.trios), rng=rng
    )
    stand_in = "" if galton.real else "drawn from the published moments"
    correlation = np.corrcoef(galton.trios.T)
    checks = [
        compare("Gaussian factor", "1.853", thesis),
        compare(
            "mean clipped sum (inches)",
            "200",
            galton.clipped_sum,
            stand_in=stand_in,
        ),
        *(
            compare(
                f"correlation {pair}",
                printed,
                float(correlation[i, j]),
                stand_in=stand_in,
            )
            for pair, printed, i, j in (
                ("father-child", "0.275", 0, 2),
                ("mother-child", "0.202", 1, 2),
                ("father-mother", "0.074", 0, 1),
            )
        ),
        compare(
            "number of trios",
            "897",
            float(len(galton.trios)),
            erratum="LE18",
            why="898 rows in 197 families; 205 families is another table",
            stand_in=stand_in,
        ),
    ]
    data = "real" if galton.real else "stand-in"
    return finished(FIGURE_18, [panel], checks, data=data)


@cache
def _exact_level(target: float) -> float:
    """Return the exact level, for a day and for all days alike."""
    return TwoStateMethod().budget(_ACTIVITY, target, query=AnyQuery())


def _activity_levels(records: int) -> dict[str, Level]:
    zhao = 6 * math.log(_ACTIVITY.omega)
    return {
        "exact": _exact_level,
        "thesis": level_or_nan(lambda b: gamma_budget(b, _ACTIVITY.gamma)),
        "Zhao et al.": level_or_nan(
            lambda b: additive_budget(b, zhao, name="the bound of Zhao et al.")
        ),
        "general": _divided(records),
    }


def _figure_19(inputs: Inputs) -> StudyResult:
    activity = inputs.data["activity"]
    days = activity.complete_days()
    rng = np.random.default_rng(inputs.seed)
    panels = [
        _squared_panel(
            "one day, n = 288",
            _activity_levels(288),
            sensitivity=1.0,
            sets=max(len(days), 1),
            rng=rng,
        ),
        _squared_panel(
            "all, n = 17568",
            _activity_levels(17568),
            sensitivity=1.0,
            sets=inputs.runs,
            rng=rng,
        ),
    ]
    stand_in = "" if activity.real else "simulated chain"
    thesis = next(c for c in panels[0].curves if c.label == "thesis")
    zhao = next(c for c in panels[0].curves if c.label == "Zhao et al.")
    checks = [
        compare("4 log γ", "8.05", 4 * math.log(_ACTIVITY.gamma)),
        compare("6 log ω", "10.64", 6 * math.log(_ACTIVITY.omega)),
        compare("least whole leakage, Markov bound", "9", _first(thesis)),
        compare("least whole leakage, Zhao et al.", "11", _first(zhao)),
        compare(
            "active records",
            "4250",
            float(activity.count),
            stand_in=stand_in,
        ),
        compare(
            "active records a day",
            "80",
            activity.count / len(days),
            stand_in=stand_in,
            note="over the 53 days with data, not 61",
        ),
        Check(
            "squared error at leakage 1, one day",
            "165888 (general bound)",
            panels[0].curves[0].y[0],
            "differs",
            "exact calibration; the general bound gives "
            f"{2 * 288**2}, the Markov bounds do not apply",
        ),
    ]
    data = "real" if activity.real else "simulated"
    return finished(FIGURE_19, panels, checks, data=data)


def _first(curve: Curve) -> float:
    return min(x for x, y in zip(curve.x, curve.y, strict=True) if y == y)


_SOURCE = "Lange (2024)"
FIGURE_17 = Study(
    "master-figure-17",
    "squared error of counts on genotypes by family size",
    f"{_SOURCE}, Figure 17",
    _figure_17,
    ("genotypes",),
    draws=releases_drawn,
)
FIGURE_18 = Study(
    "master-figure-18",
    "squared error of sums of heights",
    f"{_SOURCE}, Figure 18",
    _figure_18,
    ("galton",),
    draws=releases_drawn,
)
FIGURE_19 = Study(
    "master-figure-19",
    "squared error of counts of activity",
    f"{_SOURCE}, Figure 19",
    _figure_19,
    ("activity",),
    draws=releases_drawn,
)
MASTER_UTILITY = (FIGURE_17, FIGURE_18, FIGURE_19)
