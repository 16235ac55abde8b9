"""The master's thesis: accuracy, bounds and squared errors (figures 3 to 19).

Figures 3 to 16 before any data; 17 to 19 on genomes, heights and activity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np

from undertow.correlation.floor import impossibility_beta
from undertow.correlation.gaussian.method import gaussian_factor
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import column_ratio, transition_ratio
from undertow.correlation.markov.published import (
    ZhaoTheorem,
    gamma_budget,
    largest_gamma,
)
from undertow.correlation.markov.two_state import TwoStateTheorem
from undertow.correlation.pedigree.genomic import genomic_accuracy
from undertow.correlation.query import AnyQuery, LinearQuery
from undertow.mechanisms import laplace_confidence
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Level,
    Panel,
    Study,
    StudyResult,
    compare,
    in_words,
    level_or_nan,
    releases_drawn,
)
from undertow_studies.thesis_bound import border_checks, border_panel, finished, stated

_LEAKAGES = tuple(float(e) for e in np.arange(0.1, 20.01, 0.1))


def _figure_3(inputs: Inputs) -> StudyResult:
    def beta(leakage: float, n: int = 1000) -> float:
        return laplace_confidence(n / leakage, n / 2)

    panel = Panel(
        "count of n correlated records",
        (Curve("general", _LEAKAGES, tuple(beta(e) for e in _LEAKAGES)),),
        "leakage B",
        "chance of an error above n/2",
    )
    checks = [
        compare(
            "β at leakage 1",
            "0.60",
            beta(1.0),
            note="60 % printed; 60.65 % rounds to 61 %",
        ),
        in_words("β at leakage 5", "nearly 10 %", beta(5.0), within=(0.075, 0.1)),
    ]
    return finished(FIGURE_3, [panel], checks)


def _figure_5(inputs: Inputs) -> StudyResult:
    values = tuple(impossibility_beta(e) for e in _LEAKAGES)
    panel = Panel(
        "any mechanism, any correlation",
        (Curve("least β", _LEAKAGES, values),),
        "leakage B",
        "least chance of an error above half the range",
        y_log=True,
    )
    checks = [
        stated(
            "above 10 % for leakages below 2",
            impossibility_beta(2.0) > 0.1,
            f"{impossibility_beta(2.0):.6g} at 2",
        ),
        stated(
            "above 1 % for leakages below 4",
            impossibility_beta(4.0) > 0.01,
            f"{impossibility_beta(4.0):.6g} at 4",
        ),
    ]
    return finished(FIGURE_5, [panel], checks)


def _figure_7(inputs: Inputs) -> StudyResult:
    betas = tuple(float(b) for b in np.geomspace(0.001, 0.3, 60))
    panels = []
    for target in (1.0, 2.0, 5.0):
        curves = []
        for family in (3, 10, 100):
            found = [genomic_accuracy(target, family, beta=b) for b in betas]
            reached = tuple(f.alpha for f in found)
            floors = tuple(math.nan if f.floor is None else f.floor for f in found)
            curves.append(Curve(f"Laplace, m = {family}", betas, reached))
            curves.append(Curve(f"floor, m = {family}", betas, floors, kind="baseline"))
        panels.append(
            Panel(
                f"leakage {target:g}",
                tuple(curves),
                "chance of a larger error β",
                "error α",
                x_log=True,
                y_log=True,
            )
        )
    n = 1000
    at_n = laplace_confidence(n / 2.0, n)
    floor = genomic_accuracy(2.0, n, beta=0.05).floor
    checks = [
        in_words(
            "chance that the error exceeds n, family of n, leakage 2",
            "around 10 %",
            at_n,
            within=(0.05, 0.15),
        ),
        in_words(
            "unavoidable error over n, leakage 2",
            "about 50 % of n",
            (floor or 0.0) / n,
            within=(0.49, 0.51),
        ),
    ]
    return finished(FIGURE_7, panels, checks)


def _figure_8(inputs: Inputs) -> StudyResult:
    panels, checks = [], []
    for n in (3, 5, 7, 10):
        rhos = tuple(float(r) for r in np.linspace(0.01, 0.95, 60) / (n - 2))
        curves = (
            Curve(
                "thesis",
                rhos,
                tuple(gaussian_factor(n, r, variant="thesis") for r in rhos),
            ),
            Curve(
                "closed form", rhos, tuple(min(gaussian_factor(n, r), n) for r in rhos)
            ),
            Curve("general", rhos, (float(n),) * len(rhos)),
        )
        panels.append(Panel(f"n = {n}", curves, "largest correlation ρ", "leakage"))
        rho = 0.5 / (n - 2)
        checks.append(
            compare(
                f"bound at ρ = {rho:.4g}, n = {n}",
                n**2 / (4 * (1 / rho - n + 2)) + 1,
                gaussian_factor(n, rho, variant="thesis"),
                note="published: Theorem 6.2, evaluated; sharper: "
                f"{min(gaussian_factor(n, rho), n):.6g}",
            )
        )
    return finished(FIGURE_8, panels, checks)


def _figure_11(inputs: Inputs) -> StudyResult:
    omegas = tuple(float(w) for w in np.geomspace(1, 1000, 40))
    panel = Panel(
        "4 log γ below 6 log ω",
        (Curve("γ = ω^1.5", omegas, tuple(w**1.5 for w in omegas), kind="region"),),
        "column ratio ω",
        "transition ratio γ",
        x_log=True,
        y_log=True,
    )
    left, right = [[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]
    checks = []
    for name, chain, gamma, omega in (
        ("left", left, 9.0, 2.0),
        ("right", right, 9.0, 8.0),
    ):
        found = transition_ratio(chain), column_ratio(chain)
        checks += [
            compare(f"γ of the {name} chain (Figure 12)", gamma, found[0]),
            compare(f"ω of the {name} chain (Figure 12)", omega, found[1]),
        ]
    checks.append(
        Check(
            "which additive bound is smaller",
            "Zhao left, ours right",
            "ω^4 in both",
            "differs",
            "4 log ω is at most either of them, for any start (theory page on Markov "
            "chains)",
        )
    )
    return finished(FIGURE_11, [panel], checks)


def _figure_13(inputs: Inputs) -> StudyResult:
    return finished(FIGURE_13, [border_panel((0.5, 1.0, 2.0))], border_checks())


def _figure_16(inputs: Inputs) -> StudyResult:
    factors = tuple(float(h) for h in np.linspace(1.05, 10, 60))
    curves = tuple(
        Curve(
            f"leakage {target:g}",
            factors,
            tuple(largest_gamma(target, h) for h in factors),
        )
        for target in (1.0, 2.0, 5.0, 10.0)
    )
    panel = Panel(
        "largest γ for a given error",
        curves,
        "error over DP error h",
        "largest ratio γ",
        y_log=True,
    )
    checks = [
        compare(
            f"γ at h = {h:g}, leakage {target:g}",
            math.exp((h - 1) * target / (4 * h)),
            largest_gamma(target, h),
            note="published: Corollary 7.5, evaluated",
        )
        for target, h in ((1.0, 2.0), (5.0, 5.0), (10.0, 5.0))
    ]
    return finished(FIGURE_16, [panel], checks)


_SOURCE = "Lange (2024)"
FIGURE_3 = Study(
    "master-figure-3",
    "chance of an error above half the records under the general bound",
    f"{_SOURCE}, Figure 3",
    _figure_3,
)
FIGURE_5 = Study(
    "master-figure-5",
    "least chance of a large error under arbitrary correlation",
    f"{_SOURCE}, Figure 5",
    _figure_5,
)
FIGURE_7 = Study(
    "master-figure-7",
    "error of counts on families, reached and unavoidable",
    f"{_SOURCE}, Figure 7",
    _figure_7,
)
FIGURE_8 = Study(
    "master-figure-8",
    "Gaussian bound and general bound",
    f"{_SOURCE}, Figure 8",
    _figure_8,
)
FIGURE_11 = Study(
    "master-figure-11",
    "where the Markov bound beats that of Zhao et al.",
    f"{_SOURCE}, Figures 11 and 12",
    _figure_11,
)
FIGURE_13 = Study(
    "master-figure-13",
    "where the Markov bound beats the general bound",
    f"{_SOURCE}, Figure 13",
    _figure_13,
)
FIGURE_16 = Study(
    "master-figure-16",
    "largest transition ratio for a given loss of accuracy",
    f"{_SOURCE}, Figure 16",
    _figure_16,
)
MASTER_BOUNDS = (
    FIGURE_3,
    FIGURE_5,
    FIGURE_7,
    FIGURE_8,
    FIGURE_11,
    FIGURE_13,
    FIGURE_16,
)


# The master's thesis: squared errors on genomes, heights and activity.

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
    return TwoStateTheorem().invert(_ACTIVITY, target, query=AnyQuery())


def _activity_levels(records: int) -> dict[str, Level]:
    return {
        "exact": _exact_level,
        "thesis": level_or_nan(lambda b: gamma_budget(b, _ACTIVITY.gamma)),
        "Zhao et al.": level_or_nan(
            lambda b: ZhaoTheorem().invert(_ACTIVITY, b, query=AnyQuery())
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
