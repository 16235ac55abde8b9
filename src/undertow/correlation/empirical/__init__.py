"""Leakage measured from runs: lower bounds and estimates, never guarantees."""

from undertow.correlation.empirical.attackers import Trial, propose_trials
from undertow.correlation.empirical.black_box import (
    BlackBox,
    Verdict,
    estimate_leakage,
    verify_claim,
)
from undertow.correlation.empirical.kernel_density import KernelSettings, kernel_leakage
from undertow.correlation.empirical.likelihood import (
    estimate_laplace_leakage,
    estimate_tail_leakage,
)

__all__ = [
    "BlackBox",
    "KernelSettings",
    "Trial",
    "Verdict",
    "estimate_laplace_leakage",
    "estimate_leakage",
    "estimate_tail_leakage",
    "kernel_leakage",
    "propose_trials",
    "verify_claim",
]
