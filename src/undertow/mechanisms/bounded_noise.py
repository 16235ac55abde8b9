r"""Noise kept inside an interval: clamped or truncated, which are not the same.

*Clamping* moves an output outside the interval to its nearer end. It is post-processing
and costs nothing. *Truncating* draws again until the output is inside, so the density
is divided by :math:`Z(x) = P[\text{low} \le x + \text{noise} \le \text{high}]`, which
depends on the value x: the ratio of two such constants is part of the loss.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfcx

from undertow.errors import AssumptionError, MismatchError, UnboundedSensitivityError
from undertow.mechanisms.base import (
    AdditiveMechanism,
    Mechanism,
    Support,
    norm_factor,
    plain,
    read_vector,
    subtract,
)
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    LatticeMechanism,
)
from undertow.mechanisms.law import Floats
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.noise.lattice import add_noise, lattice_floats, lattice_round
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.exact import Number, exact, format_up, round_up
from undertow.numeric.rounding import exp_up, inflate, nudge_up
from undertow.numeric.search import greatest_int, least_float
from undertow.privacy.loss import Loss, Pure
from undertow.spaces.base import Metric

# What clamped and truncated noise share: an interval, and the mass of noise in it.

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


# Noise clamped to an interval: outputs outside move to the nearer end.

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


# Noise truncated to an interval: drawn again until the output is inside.


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


# Exact draws from a lattice law truncated to an interval, by rejection.

# Below this many scales the interval is proposed uniformly instead of by its noise.
_NARROW = 8
_MACHINE = 2**62


def sample_truncated(
    mechanism: IntervalMechanism, values: ArrayLike, source: Any
) -> Draw:
    """Draw from a truncated lattice law, in steps, and return multiples of the step."""
    base = mechanism.base
    assert isinstance(base, LatticeMechanism)
    low, high = (int(end / base.step) for end in (mechanism.low, mechanism.high))
    rounded = lattice_round(values, base.exponent)
    if max(-low, high) >= _MACHINE:
        rounded = rounded.astype(np.object_)
    centres = np.asarray(np.clip(rounded, low, high))
    flat = np.atleast_1d(centres).ravel()
    output = np.empty_like(flat)
    pending = np.arange(flat.size)
    propose = _uniform_steps if mechanism.width * _NARROW < _spread(base) else _steps
    while pending.size:
        drawn, kept = propose(base, flat[pending], (low, high), source)
        kept &= (drawn >= low) & (drawn <= high)
        output[pending[kept]] = drawn[kept]
        pending = pending[~kept]
    steps = output.reshape(centres.shape)
    values = steps if base.exponent == 0 else lattice_floats(steps, base.exponent)
    return Draw(np.asarray(values), source.simulated, source.name)


def _spread(base: LatticeMechanism) -> Fraction:
    if isinstance(base, DiscreteLaplaceMechanism):
        return base.scale
    return (
        Fraction(base.sigma)
        if isinstance(base, DiscreteGaussianMechanism)
        else base.step
    )


def _steps(
    base: LatticeMechanism, centres: NDArray[Any], ends: tuple[int, int], source: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Propose by the noise itself; everything inside is kept."""
    if isinstance(base, DiscreteLaplaceMechanism):
        noise = source.laplace(base.scale / base.step, centres.size)
    else:
        assert isinstance(base, DiscreteGaussianMechanism)
        noise = source.gaussian(base.variance / base.step**2, centres.size)
    return add_noise(centres, noise).values, np.ones(centres.size, dtype=bool)


def _uniform_steps(
    base: LatticeMechanism, centres: NDArray[Any], ends: tuple[int, int], source: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Propose uniformly and keep with the probability of the noise, by exact coins."""
    low, high = ends
    drawn = low + source.uniform(high - low + 1, centres.size).values
    kept = np.empty(centres.size, dtype=bool)
    for i, (one, two) in enumerate(zip(drawn.tolist(), centres.tolist(), strict=True)):
        exponent = _exponent(base, abs(one - two) * base.step)
        kept[i] = source.bernoulli_exp(exponent, 1).values[0] == 1
    return drawn, kept


def _exponent(base: LatticeMechanism, gap: Fraction) -> Fraction:
    if isinstance(base, DiscreteLaplaceMechanism):
        return gap / base.scale
    assert isinstance(base, DiscreteGaussianMechanism)
    return gap**2 / (2 * base.variance)
