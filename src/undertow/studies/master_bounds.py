"""The master's thesis: accuracy and bounds, before any data (figures 3 to 16)."""

from __future__ import annotations

import math

import numpy as np

from undertow.correlation.floor import impossibility_beta
from undertow.correlation.gaussian.method import gaussian_factor
from undertow.correlation.markov.projective import column_ratio, transition_ratio
from undertow.correlation.markov.published import largest_gamma
from undertow.correlation.pedigree.genomic import genomic_accuracy
from undertow.mechanisms import laplace_confidence
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
    in_words,
)
from undertow.studies.thesis_bounds import border_checks, border_panel, finished, stated

__all__ = ["MASTER_BOUNDS"]

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
