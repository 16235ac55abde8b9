"""What adds noise: frozen descriptions, exact output laws, and noise sources."""

from undertow.mechanisms.accuracy import (
    accuracy_interval,
    gaussian_accuracy,
    gaussian_confidence,
    laplace_accuracy,
    laplace_confidence,
    laplace_scale,
)
from undertow.mechanisms.base import Mechanism
from undertow.mechanisms.bounded_noise import (
    ClampedMechanism,
    TruncatedMechanism,
)
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    LatticeMechanism,
)
from undertow.mechanisms.law import Law
from undertow.mechanisms.noise import (
    BitSource,
    Draw,
    LatticeGaussian,
    LatticeLaplace,
    NoiseSource,
    OpenDPSource,
    SecureSource,
    SimulatedSource,
    secure_source,
)
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax

__all__ = [
    "BitSource",
    "ClampedMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "Draw",
    "ExponentialMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "LatticeGaussian",
    "LatticeLaplace",
    "LatticeMechanism",
    "Law",
    "Mechanism",
    "NoiseSource",
    "NoisyMax",
    "OpenDPSource",
    "RandomizedResponse",
    "SecureSource",
    "SimulatedSource",
    "TruncatedMechanism",
    "accuracy_interval",
    "gaussian_accuracy",
    "gaussian_confidence",
    "laplace_accuracy",
    "laplace_confidence",
    "laplace_scale",
    "secure_source",
]
