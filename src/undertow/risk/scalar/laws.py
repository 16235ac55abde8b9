r"""The law of a noisy number, as the scalar engine reads it from a mechanism.

Plain noise has a density on the line; clamped noise moves what falls outside an
interval to its ends, which become atoms; truncated noise divides the density by the
probability :math:`Z_x` of falling inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, ndtr

from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms.clamped import ClampedMechanism
from undertow.mechanisms.gaussian import GaussianMechanism
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.truncated import TruncatedMechanism

__all__ = ["ScalarLaw", "is_scalar"]

Floats = NDArray[np.float64]

# A density of 1/scale must be a float, and so must distances in units of the scale.
_SMALLEST_SCALE = 1e-150
_LARGEST_SCALE = 1e150
_NARROWEST = 1e-290


@dataclass(frozen=True, slots=True)
class ScalarLaw:
    """Noise of one family and scale, plain, clamped or truncated.

    Parameters
    ----------
    family : {"laplace", "gaussian"}
        The noise.
    scale : float
        The b of Laplace noise, the standard deviation of Gaussian noise.
    kind : {"plain", "clamped", "truncated"}
        What is done with outputs outside the interval.
    low, high : float
        Ends of the interval; infinite for plain noise.

    Examples
    --------
    >>> law = ScalarLaw.of(ClampedMechanism(LaplaceMechanism(2), 0, 10))
    >>> law.kind, law.scale, law.low, law.high
    ('clamped', 2.0, 0.0, 10.0)
    """

    family: Literal["laplace", "gaussian"]
    scale: float
    kind: Literal["plain", "clamped", "truncated"] = "plain"
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, mechanism: Any) -> Self:
        """Read the law of a mechanism with Laplace or Gaussian noise.

        Raises
        ------
        NotApplicable
            If the mechanism is of another kind, has several coordinates, or a scale
            that cannot be squared as a float.
        """
        if not is_scalar(mechanism):
            raise NotApplicable(
                "mechanism must be Laplace or Gaussian noise on one number, plain, "
                f"clamped or truncated, got {type(mechanism).__name__}; tabulate a "
                "finite mechanism as a Channel."
            )
        if isinstance(mechanism, ClampedMechanism):
            ends = (float(mechanism.low), float(mechanism.high))
            return cls(*_noise(mechanism.base), "clamped", *ends)
        if isinstance(mechanism, TruncatedMechanism):
            ends = (float(mechanism.low), float(mechanism.high))
            return cls(*_noise(mechanism.base), "truncated", *ends)
        return cls(*_noise(mechanism))

    def masses(self, low: Floats, high: Floats, answers: Floats) -> Floats:
        """Return the probability of unbounded noise between ends, one row per answer.

        The absolute error is a few units of rounding.
        """
        lower = (low[None, :] - answers[:, None]) / self.scale
        upper = (high[None, :] - answers[:, None]) / self.scale
        # On the right of the answer the tails are subtracted, not the bulks.
        right = lower > 0
        start = np.where(right, -upper, lower)
        stop = np.where(right, -lower, upper)
        return np.asarray(self.cdf(stop) - self.cdf(start))

    def atoms(self, answers: Floats) -> Floats:
        """Return the probabilities of the two ends in columns, none if not clamped."""
        if self.kind != "clamped":
            return np.empty((len(answers), 0))
        ends = [(self.low - answers), (answers - self.high)]
        return np.asarray(self.cdf(np.stack(ends, axis=1) / self.scale))

    def weights(self, answers: Floats) -> Floats:
        r"""Return :math:`1/Z_x` for truncated noise, else ones.

        Raises
        ------
        AssumptionError
            If an answer lies outside the interval of truncated noise, or the interval
            is too narrow for its probability to be a float.
        """
        if self.kind != "truncated":
            return np.ones(len(answers))
        if not ((answers >= self.low) & (answers <= self.high)).all():
            raise AssumptionError(
                f"answers must lie in the interval [{self.low:g}, {self.high:g}] of "
                "truncated noise; clip them first."
            )
        if self.high - self.low < _NARROWEST * self.scale:
            raise NotApplicable(
                f"the interval of truncated noise must not be {_NARROWEST:g} of the "
                "scale or less; state the answers in another unit."
            )
        below = (answers - self.low) / self.scale
        above = (self.high - answers) / self.scale
        return np.asarray(1.0 / (self._half(below) + self._half(above)))

    def variation(self, width: float) -> float:
        """Return the total variation of two plain answers that far apart."""
        return float(2 * self._half(np.asarray(width / self.scale / 2)))

    def cdf(self, noise: Floats) -> Floats:
        """Return the law of plain noise, in units of the scale."""
        if self.family == "gaussian":
            return np.asarray(ndtr(noise))
        tail = np.exp(-np.abs(noise)) / 2
        return np.where(noise < 0, tail, 1.0 - tail)

    def _half(self, width: Floats) -> Floats:
        """Return the probability of noise in (0, width]."""
        if self.family == "gaussian":
            return np.asarray(erf(width / math.sqrt(2)) / 2)
        return np.asarray(-np.expm1(-width) / 2)


def is_scalar(mechanism: Any) -> bool:
    """Say whether a mechanism adds continuous noise to one number.

    Examples
    --------
    >>> is_scalar(LaplaceMechanism(1)), is_scalar(LaplaceMechanism(1, dimension=2))
    (True, False)
    """
    if isinstance(mechanism, ClampedMechanism | TruncatedMechanism):
        mechanism = mechanism.base
    plain = isinstance(mechanism, LaplaceMechanism | GaussianMechanism)
    return plain and mechanism.dimension == 1


def _noise(base: Any) -> tuple[Literal["laplace", "gaussian"], float]:
    laplace = isinstance(base, LaplaceMechanism)
    try:
        scale = float(base.scale) if laplace else base.sigma
    except OverflowError:
        scale = math.inf
    if not _SMALLEST_SCALE <= scale <= _LARGEST_SCALE:
        raise NotApplicable(
            f"scale must be in [{_SMALLEST_SCALE:g}, {_LARGEST_SCALE:g}], got {scale}; "
            "state the answers in another unit."
        )
    return "laplace" if laplace else "gaussian", scale
