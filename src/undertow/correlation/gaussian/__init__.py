"""Jointly Gaussian records: what a release leaks when they are correlated."""

from __future__ import annotations

from undertow.correlation.gaussian.block import (
    AutoregressiveGaussian,
    ExchangeableGaussian,
    RepeatedGaussian,
    SparseGaussian,
    StationaryGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.clip import (
    ClippedRelease,
    clip_records,
    clipped_log_density,
    clipped_output_leakage,
    clipped_tail_leakage,
    gaussian_laplace_log_density,
    pair_leakage,
    scope_leakage,
)
from undertow.correlation.gaussian.law import GaussianConditional, GaussianModel
from undertow.correlation.gaussian.method import (
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
    gaussian_methods,
    limited_methods,
)
from undertow.correlation.gaussian.model import Gaussian, LimitedGaussian
from undertow.correlation.gaussian.shift import (
    Saturation,
    ShiftFactor,
    adversary_factor,
    partial_shift,
    worst_factor,
)
from undertow.correlation.gaussian.structure import (
    autoregressive_factor,
    dense_structured_factor,
    dominant_factor,
    precision_factor,
    toeplitz_factor,
)
from undertow.correlation.theorem import state_methods

state_methods(GaussianModel, *gaussian_methods())
state_methods(ExchangeableGaussian, *gaussian_methods(exchangeable=True))
state_methods(LimitedGaussian, *limited_methods())

__all__ = [
    "AutoregressiveGaussian",
    "ClippedRelease",
    "ExchangeableGaussian",
    "Gaussian",
    "GaussianConditional",
    "GaussianModel",
    "LimitedGaussian",
    "RepeatedGaussian",
    "Saturation",
    "ShiftFactor",
    "SparseGaussian",
    "StationaryGaussian",
    "adversary_factor",
    "autoregressive_factor",
    "clip_records",
    "clipped_log_density",
    "clipped_output_leakage",
    "clipped_tail_leakage",
    "dense_structured_factor",
    "dominant_factor",
    "exchangeable_factor",
    "gaussian_correlation_limit",
    "gaussian_crossover",
    "gaussian_factor",
    "gaussian_laplace_log_density",
    "pair_leakage",
    "partial_shift",
    "precision_factor",
    "scope_leakage",
    "toeplitz_factor",
    "worst_factor",
]
