"""Noise truncated to an interval: drawn again until the output is inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from undertow._numeric import inflate
from undertow.mechanisms.base import AdditiveMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    LatticeMechanism,
)
from undertow.mechanisms.gaussian import GaussianMechanism
from undertow.mechanisms.interval import (
    MARGIN,
    IntervalMechanism,
    band_up,
    centre_mass,
    gap_up,
    half_mass,
)
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.truncated_draw import sample_truncated
from undertow.mechanisms.values import Floats, plain
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric

__all__ = ["TruncatedMechanism"]


@dataclass(frozen=True, slots=True, init=False)
class TruncatedMechanism(IntervalMechanism):
    r"""Additive noise conditioned on an output inside an interval.

    Parameters
    ----------
    base : AdditiveMechanism
        Laplace or Gaussian noise on one coordinate, continuous or discrete.
    low, high : int, float, str, Decimal or Fraction
        The ends, `low` below `high`; multiples of the step on a lattice.

    Notes
    -----
    Values must lie in the interval. The loss is pure also for Gaussian noise, and is
    **not** that of the base; what is worked out from the law of continuous noise is
    marked as such, and :attr:`released` says what is drawn. With R the length of the
    interval and :math:`Z(x)` the probability of landing in it:

    - The likelihood ratio of two values is monotone in the output, so the loss of a
      pair is attained at an end: :math:`\max_{o}|\ln f(o|x) - \ln f(o|y)|`.
    - Among pairs at distance t the worst has one value at an end, because :math:`\ln Z`
      is concave (Laplace) or the mean of the output grows with x (Gaussian); it grows
      with t. :meth:`worst_loss` is that pair.
    - It is concave in t, so the loss per unit is its slope at 0 (on a lattice, its
      value at one step): :math:`2/b` for Laplace, twice that of the base, and
      :math:`(R-\mathbb E[Y-\text{low}\,|\,x=\text{low}])/\sigma^2` for Gaussian noise.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference
    >>> truncated = TruncatedMechanism(LaplaceMechanism(2), 0, 10)
    >>> truncated.loss(AbsoluteDifference())
    Pure(epsilon=1)
    >>> round(truncated.worst_loss(1).epsilon, 6)
    0.830553
    """

    base: AdditiveMechanism
    low: Fraction
    high: Fraction

    def __init__(self, base: AdditiveMechanism, low: Number, high: Number) -> None:
        self._keep(base, low, high)

    @property
    def measure(self) -> str:
        """That of the base."""
        return self.base.measure

    def loss(self, metric: Metric) -> Pure:
        """Return the least loss per unit of `metric` over values in the interval."""
        factor = norm_factor(metric, p=1, dimension=1)
        if isinstance(self.base, LaplaceMechanism):
            return Pure(2 * factor / self.base.scale)
        self._require_sizes()
        if isinstance(self.base, GaussianMechanism):
            rate = gaussian_rate(float(self.width), self.base.sigma)
        elif isinstance(self.base, DiscreteLaplaceMechanism):
            rate = laplace_step_rate(self.base, int(self.width / self._step()))
        else:
            rate = self._gaussian_step_rate(float(self.width))
        loss = Pure(factor * Fraction(inflate(rate, 4 * MARGIN)))
        return loss.of_continuous_noise(isinstance(self.base, GaussianMechanism))

    def worst_loss(self, distance: Number) -> Pure:
        """Return the exact worst loss of two values at most `distance` apart."""
        reach = min(exact(distance, "distance"), self.width)
        if self.step is not None:
            reach = math.floor(reach / self.step) * self.step
        return self.pair_loss(self.low, self.low + Fraction(reach))

    def pair_loss(self, first: Number, second: Number) -> Pure:
        """Return the largest absolute log ratio over outputs, rounded up."""
        x, y = self._inside(first), self._inside(second)
        if x == y:
            return Pure.zero()
        self._require_sizes()
        ends = [[float(end - v) for end in (self.low, self.high)] for v in (x, y)]
        logs = self.base.noise_log_density(np.array(ends))
        constants = np.log([[self._mass(x)], [self._mass(y)]])
        gap = gap_up(*(logs - constants))
        return Pure(gap, continuous=self.step is None)

    def log_density(self, output: ArrayLike, given: Number) -> Floats:
        """Return the log density, renormalised to the interval."""
        self._require_sizes()
        x, outputs = self._inside(given), np.asarray(output, float)
        logs = self.base.noise_log_density(outputs - float(x)) - math.log(self._mass(x))
        inside = (outputs >= float(self.low)) & (outputs <= float(self.high))
        return plain(np.where(inside, logs, -np.inf))

    def cdf(self, output: ArrayLike, given: Number) -> Floats:
        """Return the probability of an output up to `output`."""
        self._require_sizes()
        x = self._inside(given)
        flat = np.asarray(output, float)
        values = [self._cdf_at(float(o), x) for o in flat.ravel()]
        return plain(np.array(values).reshape(flat.shape))

    @property
    def released(self) -> TruncatedMechanism:
        """The lattice mechanism that released values come from.

        The ends move inwards to the lattice of the base.
        """
        if isinstance(self.base, LatticeMechanism):
            return self
        assert isinstance(self.base, LaplaceMechanism | GaussianMechanism)
        base = self.base.released
        low = math.ceil(self.low / base.step) * base.step
        high = math.floor(self.high / base.step) * base.step
        return TruncatedMechanism(base, low, high)

    def released_loss(self, sensitivity: Number) -> Pure:
        """Return what a released value costs, rounding to the lattice included."""
        released = self.released
        step = released._step()
        reach = min(exact(sensitivity, "sensitivity"), self.width)
        return released.worst_loss(math.ceil(reach / step) * step)

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw on the lattice until the output lies in the interval.

        Notes
        -----
        Rejection with exact coins, so the law is exactly that of :attr:`released`. The
        number of attempts depends on the value: its timing is not protected.
        """
        array = np.asarray(values)
        inside = (array >= float(self.low)) & (array <= float(self.high))
        if not inside.all():
            self._refuse_outside()
        return sample_truncated(self.released, values, read_source(source))

    def _gaussian_step_rate(self, width: float) -> float:
        """Return the loss of one step at an end, per unit, for the discrete Gaussian.

        The normalising constant grows by P[one step] - P[width], so that its logarithm
        needs no subtraction.
        """
        assert isinstance(self.base, DiscreteGaussianMechanism)
        step, variance = float(self._step()), float(self.base.variance)
        one, all_ = np.exp(self.base.noise_log_density(np.array([step, width])))
        growth = math.log1p((one - all_) / self._mass(self.low))
        return ((2 * width - step) * step / (2 * variance) - growth) / step

    def _mass(self, x: Fraction) -> float:
        """Return Z(x) as a sum of positive terms."""
        halves = half_mass(self.base, x - self.low) + half_mass(
            self.base, self.high - x
        )
        return centre_mass(self.base) + halves

    def _cdf_at(self, output: float, x: Fraction) -> float:
        if output < self.low:
            return 0.0
        if output >= self.high:
            return 1.0
        gap = Fraction(output) - x
        below = half_mass(self.base, x - self.low)
        if gap < 0:
            # Mass strictly beyond the gap on the left side, the point itself included.
            short = -gap if self.step is None else -self._floor(gap) - self._step()
            return (below - half_mass(self.base, short)) / self._mass(x)
        above = half_mass(self.base, gap)
        return (below + centre_mass(self.base) + above) / self._mass(x)

    def _floor(self, gap: Fraction) -> Fraction:
        return math.floor(gap / self._step()) * self._step()

    def _tails(self, error: Fraction, x: Fraction) -> float:
        if self.step is not None:
            error = (math.ceil(error / self.step) - 1) * self.step
        sides = (band_up(self.base, error, w) for w in (x - self.low, self.high - x))
        return sum(sides) / self._mass(x)


def laplace_step_rate(base: DiscreteLaplaceMechanism, n: int) -> float:
    """Return the loss of one step at an end of n steps, per unit."""
    r = float(base.step / base.scale)
    # The normalising constants of the end and of its neighbour differ by q - q^n.
    change = math.exp(-r) * math.expm1(-r * (n - 1)) * math.expm1(-r)
    growth = math.log1p(change / -math.expm1(-r * (n + 1)))
    return (r + growth) / float(base.step)


def gaussian_rate(width: float, sigma: float) -> float:
    """Return (R - E[Y - low | x = low]) / sigma^2 for truncated Gaussian noise."""
    r = width / sigma
    # The mean is (phi(0) - phi(r)) / (Phi(r) - 1/2), in units of sigma.
    numerator = -math.expm1(-r * r / 2) / math.sqrt(2 * math.pi)
    mean = numerator / (float(erf(r / math.sqrt(2))) / 2)
    return (r - mean) / sigma
