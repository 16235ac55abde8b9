"""Noise clamped to an interval: outputs outside move to the nearer end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

from undertow._numeric import exp_up, inflate
from undertow.errors import UnboundedSensitivityError
from undertow.mechanisms.base import AdditiveMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.gaussian import GaussianMechanism
from undertow.mechanisms.interval import MARGIN, IntervalMechanism, gap_up
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.values import Floats, plain, read_vector, subtract
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Loss, Pure
from undertow.spaces.base import Metric

__all__ = ["ClampedMechanism"]

# Width in sigmas from which the tails are bounded and not compared.
_FAR = 10**6


@dataclass(frozen=True, slots=True, init=False)
class ClampedMechanism(IntervalMechanism):
    r"""Additive noise whose output is moved to the nearer end of an interval.

    Parameters
    ----------
    base : AdditiveMechanism
        Laplace or Gaussian noise on one coordinate, continuous or discrete.
    low, high : int, float, str, Decimal or Fraction
        The ends, `low` below `high`; multiples of the step on a lattice.

    Notes
    -----
    Post-processing: `loss` is that of the base, for all real values; what is worked out
    from the law of continuous noise is marked as such. The output law has
    an atom at each end. For log-concave noise the likelihood ratio is monotone in the
    output, so the exact pure loss of a pair is attained at one of the two atoms; it is
    finite even for Gaussian noise.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference
    >>> clamped = ClampedMechanism(LaplaceMechanism(2), 0, 10)
    >>> clamped.loss(AbsoluteDifference()), clamped.pair_loss(3, 4)
    (Pure(epsilon=0.5), Pure(epsilon=0.5))
    """

    base: AdditiveMechanism
    low: Fraction
    high: Fraction

    def __init__(self, base: AdditiveMechanism, low: Number, high: Number) -> None:
        self._keep(base, low, high)

    @property
    def measure(self) -> str:
        """Mixed for continuous noise, counting on a lattice."""
        return "mixed" if self.step is None else "counting"

    def loss(self, metric: Metric) -> Loss:
        """Return the loss per unit of `metric`: that of the base."""
        return self.base.loss(metric)

    def pure_loss(self, metric: Metric) -> Pure:
        r"""Return the least pure loss per unit, for values inside the interval.

        Notes
        -----
        The supremum over pairs of :meth:`pair_loss` per distance. The tail of
        log-concave noise has a concave logarithm, so it is attained in the limit of a
        pair at one end seen through the atom of the other: for Gaussian noise
        :math:`h(R/\sigma)/\sigma`, where h is the hazard rate of the normal law and R
        the length of the interval; for Laplace noise :math:`1/b`.
        """
        factor = norm_factor(metric, p=1, dimension=1)
        if isinstance(self.base, LaplaceMechanism | DiscreteLaplaceMechanism):
            return Pure(factor / self.base.scale)
        self._require_sizes()
        rate = _hazard_up(self.base, self.width)
        return Pure(factor * rate, continuous=self.step is None)

    def pair_loss(self, first: Number, second: Number) -> Pure:
        """Return the largest absolute log ratio over outputs, rounded up."""
        self._require_sizes()
        binary = self.step is not None
        (x,) = read_vector(first, 1, "first", binary=binary)
        (y,) = read_vector(second, 1, "second", binary=binary)
        ends = [(float(self.low - v), float(v - self.high)) for v in (x, y)]
        logs = self.base.noise_log_cdf(np.array(ends))
        value = Fraction(gap_up(logs[0], logs[1]))
        own = self.base.pair_loss(x, y)
        if isinstance(own, Pure) and own.exact_parameters()[0] <= value:
            return own
        return Pure(value, continuous=self.step is None)

    def released_loss(self, sensitivity: Number) -> Loss:
        """Return what a released value costs, rounding to the lattice included."""
        if isinstance(self.base, LaplaceMechanism | GaussianMechanism):
            return self.base.released_loss(sensitivity)
        move = exact(sensitivity, "sensitivity")
        if move == math.inf:
            raise UnboundedSensitivityError(
                "sensitivity must be finite, got inf; bound it by clipping the values."
            )
        reach = math.floor(move / self._step())
        return self.base.pair_loss(0, reach * self._step())

    def log_density(self, output: ArrayLike, given: Number) -> Floats:
        """Return the log density inside, the log probability at the ends."""
        self._require_sizes()
        (value,) = read_vector(given, 1, "given")
        outputs, x = np.asarray(output, float), float(value)
        noise = subtract(output, x, dimension=1)
        low, high = float(self.low), float(self.high)
        ends = self.base.noise_log_cdf(np.array([low - x, x - high]))
        inside = (outputs > low) & (outputs < high)
        body = np.where(inside, self.base.noise_log_density(noise), -np.inf)
        body = np.where(outputs == low, ends[0], body)
        return plain(np.where(outputs == high, ends[1], body))

    def cdf(self, output: ArrayLike, given: Number) -> Floats:
        """Return the probability of an output up to `output`."""
        self._require_sizes()
        (value,) = read_vector(given, 1, "given")
        outputs = np.asarray(output, float)
        inner = np.asarray(self.base.cdf(outputs, float(value)))
        body = np.where(outputs < float(self.low), 0.0, inner)
        return plain(np.where(outputs >= float(self.high), 1.0, body))

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw from the base on its lattice, then clamp."""
        draw = self.base.sample(values, source=source)
        low, high = float(self.low), float(self.high)
        if draw.values.dtype.kind == "f":
            clamped: NDArray[Any] = np.clip(draw.values, low, high)
        else:
            clamped = np.clip(draw.values, int(self.low), int(self.high))
        return Draw(np.asarray(clamped), draw.simulated, draw.source)

    def _tails(self, error: Fraction, x: Fraction) -> float:
        sides = (x + error <= self.high) + (x - error >= self.low)
        tail = self.base.noise_log_cdf(np.asarray(-float(error)))
        return int(sides) * max(math.exp(float(tail)), math.nextafter(0.0, 1.0))


def _hazard_up(base: AdditiveMechanism, width: Fraction) -> Fraction:
    """Return the steepest log tail of Gaussian noise up to `width`, per unit.

    Notes
    -----
    The hazard of the normal law is below x + 1/x, and a tail of the discrete law is at
    least its first term; both bounds are sharp far out, where the tails themselves are
    too small to be compared.
    """
    if isinstance(base, GaussianMechanism):
        bound = width / base.variance + 1 / width
        if width**2 > _FAR**2 * base.variance:
            return bound
        ratio = float(width) / base.sigma
        hazard = math.sqrt(2 / math.pi) / float(erfcx(ratio / math.sqrt(2)))
        return min(bound, Fraction(inflate(hazard / base.sigma, MARGIN)))
    assert isinstance(base, DiscreteGaussianMechanism)
    # The log of 1 + exp(y), y = (2 n - 1) / 2 sigma^2 for n steps, is below y + exp(-y)
    y = (2 * width / base.step - 1) * base.step**2 / (2 * base.variance)
    bound = (y + Fraction(exp_up(-y))) / base.step
    if width**2 > _FAR**2 * base.variance:
        return bound
    step = float(base.step)
    mass = float(base.noise_log_density(np.asarray(float(width) - step)))
    tail = float(base.noise_log_cdf(np.asarray(-float(width))))
    # P[Z >= n - 1] = P[Z >= n] + P[Z = n - 1]
    rise = inflate(float(np.logaddexp(0.0, mass - tail)) / step, MARGIN * (1 - tail))
    return min(bound, Fraction(rise))
