"""Jointly Gaussian records: what a release leaks when they are correlated."""

from __future__ import annotations

from undertow.correlation.gaussian.clip import (
    ClippedRelease,
    clip_records,
    pair_leakage,
    scope_leakage,
)
from undertow.correlation.gaussian.density import gaussian_laplace_log_density
from undertow.correlation.gaussian.exchangeable import (
    ExchangeableGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.factor import (
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
)
from undertow.correlation.gaussian.law import GaussianConditional, GaussianModel
from undertow.correlation.gaussian.limited import LimitedGaussian
from undertow.correlation.gaussian.methods import gaussian_methods, limited_methods
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.gaussian.repeated import RepeatedGaussian
from undertow.correlation.gaussian.shift import (
    ShiftFactor,
    adversary_factor,
    partial_shift,
)
from undertow.correlation.gaussian.signed import precision_factor
from undertow.correlation.gaussian.sparse import SparseGaussian
from undertow.correlation.gaussian.stationary import (
    AutoregressiveGaussian,
    StationaryGaussian,
)
from undertow.correlation.gaussian.structure import (
    autoregressive_factor,
    dense_structured_factor,
    dominant_factor,
    toeplitz_factor,
)
from undertow.correlation.gaussian.sweep import Saturation, worst_factor
from undertow.correlation.gaussian.tail import (
    clipped_log_density,
    clipped_output_leakage,
    clipped_tail_leakage,
)
from undertow.correlation.method import state_methods

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
