"""Exact risk of one number with noise: Laplace and Gaussian, plain or kept in a range.

The finite engine sums over outputs; here the output is a real number, and the sum is an
integral of a maximum, computed from closed-form breakpoints (Laplace) or enclosed from
both sides (Gaussian).
"""

from __future__ import annotations

from undertow.risk.number import ScalarChannel, as_scalar
from undertow.risk.scalar.engine import (
    advantage_curve,
    scalar_advantage,
    scalar_attack_risk,
    scalar_success_rate,
)
from undertow.risk.scalar.uniform import (
    ContinuousPrior,
    calibrate_gaussian_scale,
    calibrate_laplace_level,
    continuous_advantage,
    gaussian_advantage,
    gaussian_pair_advantage,
    gaussian_placement_advantage,
    laplace_advantage,
    laplace_pair_advantage,
    laplace_placement_advantage,
)

__all__ = [
    "ContinuousPrior",
    "ScalarChannel",
    "advantage_curve",
    "as_scalar",
    "calibrate_gaussian_scale",
    "calibrate_laplace_level",
    "continuous_advantage",
    "gaussian_advantage",
    "gaussian_pair_advantage",
    "gaussian_placement_advantage",
    "laplace_advantage",
    "laplace_pair_advantage",
    "laplace_placement_advantage",
    "scalar_advantage",
    "scalar_attack_risk",
    "scalar_success_rate",
]
