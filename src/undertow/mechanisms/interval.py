"""What clamped and truncated noise share: an interval, and the mass of noise in it."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from undertow._numeric import greatest_int, inflate, least_float, nudge_up
from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.base import AdditiveMechanism, Mechanism, Support
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    LatticeMechanism,
)
from undertow.mechanisms.gaussian import GaussianMechanism
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.values import read_vector
from undertow.privacy.exact import Number, exact, format_up, round_up

__all__ = [
    "MARGIN",
    "IntervalMechanism",
    "band_up",
    "centre_mass",
    "gap_up",
    "half_mass",
]

# Covers the rounding of the normal tail and of sums of the discrete Gaussian, per unit
# of the logarithms that are subtracted.
MARGIN = 1e-12
_LARGEST_SUM = 1 << 22
_LARGEST_FLOAT = 10**308
_LARGEST_END, _LEAST, _WIDEST = 10**140, Fraction(1, 10**15), 10**100
_SMALLEST = math.nextafter(0.0, 1.0)


class IntervalMechanism(Mechanism):
    """What clamped and truncated noise share."""

    __slots__ = ()
    base: AdditiveMechanism
    low: Fraction
    high: Fraction

    def _keep(self, base: AdditiveMechanism, low: Number, high: Number) -> None:
        if not isinstance(base, AdditiveMechanism) or base.dimension != 1:
            raise MismatchError(
                "base must be additive noise on one coordinate; use one bounded "
                "mechanism per coordinate."
            )
        binary = isinstance(base, LatticeMechanism)
        ends = (
            read_vector(low, 1, "low", binary=binary)[0],
            read_vector(high, 1, "high", binary=binary)[0],
        )
        if ends[0] >= ends[1]:
            raise ValueError(f"low must be below high, got {low} and {high}.")
        if isinstance(base, LatticeMechanism) and any(e % base.step for e in ends):
            raise MismatchError(
                f"low and high must be multiples of the step {base.step}, "
                f"got {low} and {high}."
            )
        if max(map(abs, ends)) > _LARGEST_FLOAT:
            raise ValueError(
                f"low and high must be in the range of floats, got {low} and {high}."
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])

    @property
    def width(self) -> Fraction:
        """The length of the interval."""
        return self.high - self.low

    def _require_sizes(self) -> None:
        """Refuse an interval whose law of the output floats cannot hold."""
        base: Any = self.base
        size = Fraction(base.scale if hasattr(base, "scale") else base.sigma)
        ends = max(abs(self.low), abs(self.high))
        if ends > _LARGEST_END or not _LEAST <= self.width / size <= _WIDEST:
            raise ValueError(
                "low and high must be below 1e140 and between 1e-15 and 1e100 noise "
                "sizes apart for their law to be worked out in floats, got a width of "
                f"{format_up(self.width, 3)}, with noise of size {format_up(size, 3)}."
            )

    @property
    def step(self) -> Fraction | None:
        """The step of the lattice; None for a continuous law."""
        return self.base.step if isinstance(self.base, LatticeMechanism) else None

    def support(self, given: Number) -> Support:
        """Return the interval, or the lattice points in it."""
        return Support(float(self.low), float(self.high), self.step)

    def confidence(self, alpha: Number, *, given: Number) -> float:
        """Return the probability of an error of at least `alpha`, rounded up.

        The noise is not symmetric near the ends, so it depends on the value `given`.
        """
        self._require_sizes()
        error, x = exact(alpha, "alpha"), self._inside(given)
        if error in (0, math.inf):
            return 0.0 if error else 1.0
        if isinstance(alpha, float):
            error = Fraction(alpha)  # a lattice point stays one
        return min(1.0, inflate(self._tails(Fraction(error), x), MARGIN))

    def accuracy(self, beta: Number, *, given: Number) -> float:
        """Return the least error reached with probability at most `beta`."""
        self._require_sizes()
        share, x = exact(beta, "beta", at_most=1), self._inside(given)
        if share == 1:
            return 0.0
        if self.step is None:
            return least_float(
                lambda error: self.confidence(error, given=x) <= share,
                low=0.0,
                high=nudge_up(round_up(self.width)),
            )
        steps = greatest_int(
            lambda m: self.confidence(m * self._step(), given=x) > share
        )
        return round_up((steps + 1) * self._step())

    def _step(self) -> Fraction:
        assert self.step is not None
        return self.step

    def _inside(self, given: Number) -> Fraction:
        (x,) = read_vector(given, 1, "given", binary=self.step is not None)
        if not self.low <= x <= self.high:
            self._refuse_outside()
        if self.step is not None and x % self.step:
            raise MismatchError(f"given must be a multiple of the step {self.step}.")
        return x

    def _refuse_outside(self) -> NoReturn:
        raise AssumptionError(
            f"given must lie in the interval [{float(self.low):g}, "
            f"{float(self.high):g}]; clip the value first."
        )

    @abstractmethod
    def _tails(self, error: Fraction, x: Fraction) -> float:
        """Return the probability of an error of at least `error`, which is positive."""


def gap_up(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the largest absolute difference of logarithms, rounded up."""
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError(
            "values must be near enough to the interval for the noise to reach it in "
            "floats, got a probability whose logarithm leaves their range."
        )
    slack = MARGIN * (1.0 + np.abs(first) + np.abs(second))
    return float(np.max(np.abs(first - second) + slack))


def centre_mass(base: AdditiveMechanism) -> float:
    """Return the probability of no noise at all."""
    if not isinstance(base, LatticeMechanism):
        return 0.0
    return math.exp(float(base.noise_log_density(np.asarray(0.0))))


def half_mass(base: AdditiveMechanism, width: Fraction) -> float:
    """Return the probability of noise in (0, width], without cancellation."""
    if width <= 0:
        return 0.0
    if isinstance(base, LaplaceMechanism):
        return -math.expm1(-float(width / base.scale)) / 2
    if isinstance(base, GaussianMechanism):
        return float(erf(float(width) / (base.sigma * math.sqrt(2)))) / 2
    if isinstance(base, DiscreteLaplaceMechanism):
        rate = float(base.step / base.scale)
        steps = math.floor(width / base.step)
        return -math.expm1(-rate * steps) * math.exp(-rate) / (1 + math.exp(-rate))
    assert isinstance(base, DiscreteGaussianMechanism)
    return _discrete_gaussian_half(base, math.floor(width / base.step))


def band_up(base: AdditiveMechanism, low: Fraction, high: Fraction) -> float:
    """Bound the probability of noise in (low, high] for `low` at least 0, from above.

    A difference of two tails as a multiple of the larger one, so that a small
    probability keeps its digits; raised by what the rounding of their logarithms and
    an underflow can lose.
    """
    if high <= low:
        return 0.0
    step = base.step if isinstance(base, LatticeMechanism) else Fraction(0)
    ends = np.array([-float(low + step), -float(high + step)])
    near, far = (float(log) for log in base.noise_log_cdf(ends))
    share = -math.expm1(min(0.0, far - near)) + MARGIN * (1 - far)
    return max(math.exp(near) * min(1.0, share), _SMALLEST)


def _discrete_gaussian_half(base: DiscreteGaussianMechanism, steps: int) -> float:
    reach = 40 * base.sigma / float(base.step)
    if min(steps, reach) <= _LARGEST_SUM:
        last = min(steps, math.ceil(reach))
        k = np.arange(1, last + 1, dtype=np.float64) * float(base.step)
        return math.fsum(np.exp(base.noise_log_density(k)).tolist())
    one, beyond = base.noise_log_cdf(
        np.array([-float(base.step), -float((steps + 1) * base.step)])
    )
    return math.exp(one) - math.exp(beyond)
