r"""Laplace and Gaussian noise on a lattice: the laws that are really released.

Values and outputs are multiples of a step that is a power of two; with the default
``exponent=0`` they are integers. The mass, the tails and delta of the Gaussian are sums
of :math:`e^{-k^2/2\sigma^2}` over whole steps.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.base import (
    AdditiveMechanism,
    GaussianNoise,
    Support,
    float_size,
    norm_factor,
    read_dimension,
    read_vector,
)
from undertow.mechanisms.noise.draw import Draw, NoiseSource, read_positive
from undertow.mechanisms.noise.lattice import (
    LatticeGaussian,
    LatticeLaplace,
    lattice_round,
)
from undertow.numeric.exact import (
    Number,
    exact,
    format_up,
    round_down,
    round_up,
    sqrt_up,
)
from undertow.numeric.rounding import exp_up, inflate, log_down, nudge_up
from undertow.numeric.search import greatest_int
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.loss import ZCDP, Approx, Pure
from undertow.spaces.base import Metric

_MARGIN = 1e-12
_SMALLEST = math.nextafter(0.0, 1.0)
_LARGEST_EXPONENT = 970
# Steps that a float can count, further than any noise reaches.
_FARTHEST_STEP = 10**308


class LatticeMechanism(AdditiveMechanism):
    """Noise on the multiples of a power of two."""

    __slots__ = ()
    measure = "counting"
    exponent: int

    @abstractmethod
    def _lattice(self) -> LatticeLaplace | LatticeGaussian:
        """Return the sampler, in steps."""

    @abstractmethod
    def _log_mass(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of a whole number of steps."""

    @abstractmethod
    def _log_tail(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of at least `steps` steps, at least 1."""

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return Fraction(2) ** self.exponent

    def noise_log_density(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of the noise; minus infinity off the lattice."""
        with np.errstate(over="ignore", invalid="ignore"):
            steps = noise / float(self.step)
            on_lattice = steps == np.rint(steps)
            return np.where(on_lattice, self._log_mass(steps), -np.inf)

    def noise_log_cdf(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of noise at most `noise`."""
        with np.errstate(over="ignore"):
            steps = np.floor(noise / float(self.step))
            below = steps < 0
            tail = self._log_tail(np.where(below, -steps, steps + 1))
        return np.where(below, tail, np.log1p(-np.exp(tail)))

    def support(self, given: ArrayLike) -> Support:
        """Return the lattice."""
        return Support(step=self.step)

    def confidence(self, alpha: Number) -> float:
        """Return the probability of an error of at least `alpha`.

        Exact for one coordinate, a union bound for several.
        """
        error = exact(alpha, "alpha")
        if isinstance(alpha, float) and error != math.inf:
            error = Fraction(alpha)  # a lattice point stays one
        if error in (0, math.inf):
            return 0.0 if error else 1.0
        steps = math.ceil(error / self.step)
        tail = math.exp(self._log_tail_at(steps))
        bound = inflate(2 * self.dimension * tail, _MARGIN)
        return min(1.0, max(bound, _SMALLEST))

    def accuracy(self, beta: Number) -> float:
        """Return the least error on the lattice reached with probability <= `beta`."""
        share = exact(beta, "beta", at_most=1)
        if share == 0:
            raise ValueError("beta must be in (0, 1], got 0.")
        if self.confidence(0) <= share:
            return 0.0
        steps = greatest_int(lambda m: self._exceeds(m, Fraction(share))) + 1
        return round_up(steps * self.step)

    def _exceeds(self, steps: int, share: Fraction) -> bool:
        """Return whether an error of `steps` may be likelier than `share`."""
        if steps == 0 or share > Fraction(1, 10**290):
            return self.confidence(steps * self.step) > share
        # Too small for a float: compare logarithms.
        tail = self._log_tail_at(steps)
        logs = math.log(2 * self.dimension) + tail
        return logs + _MARGIN * (1 - tail) > log_down(share)

    def _log_tail_at(self, steps: int) -> float:
        with np.errstate(over="ignore"):
            return float(self._log_tail(np.asarray(float(min(steps, _FARTHEST_STEP)))))

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw noisy values.

        Parameters
        ----------
        values : array_like
            Multiples of the step; with k > 1 coordinates, the last axis has length k.
        source : NoiseSource, optional
            Operating-system entropy by default.

        Returns
        -------
        Draw
            Integers if the step is 1, else floats that are exact multiples of it.

        Raises
        ------
        MismatchError
            If a value is off the lattice.
        """
        array = np.asarray(values)
        lattice_round(array, self.exponent)  # refuses what is not a finite number
        if not _on_lattice(array, self.exponent):
            raise MismatchError(
                f"values must be multiples of the step {self.step}; round them first, "
                "or use LaplaceMechanism or GaussianMechanism, which round and charge "
                "for it."
            )
        return self.sample_rounded(array, source=source)

    def sample_rounded(
        self, values: ArrayLike, *, source: NoiseSource | None = None
    ) -> Draw:
        """Round to the lattice, halves up, and draw; rounding may cost up to a step."""
        array = np.asarray(values)
        if self.dimension > 1 and array.shape[-1:] != (self.dimension,):
            raise MismatchError(
                f"values must have {self.dimension} coordinates on the last axis, "
                f"got shape {array.shape}."
            )
        if self.exponent == 0:
            return self._lattice().sample_steps(array, source=source)
        return self._lattice().sample(array, source=source)

    def _gaps(self, first: ArrayLike, second: ArrayLike) -> list[Fraction]:
        x = read_vector(first, self.dimension, "first", binary=True)
        y = read_vector(second, self.dimension, "second", binary=True)
        if any(value % self.step for value in (*x, *y)):
            raise MismatchError(f"values must be multiples of the step {self.step}.")
        return [abs(a - b) for a, b in zip(x, y, strict=True)]


def read_exponent(exponent: int) -> int:
    """Read the exponent of a step that floats can hold."""
    if isinstance(exponent, bool) or not isinstance(exponent, int):
        raise TypeError(f"exponent must be an int, got {type(exponent).__name__}.")
    if not -1074 <= exponent <= _LARGEST_EXPONENT:
        raise ValueError(f"exponent must be in -1074..970, got {exponent}.")
    return exponent


def released_exponent(exponent: int, size: Fraction, name: str) -> int:
    """Return the exponent of the lattice that noise of a size is released on.

    Raises
    ------
    ValueError
        If floats cannot hold the lattice.
    """
    if not -1074 <= exponent <= _LARGEST_EXPONENT:
        raise ValueError(
            f"{name} must be between 1e-300 and 1e299 to be drawn on a lattice of "
            f"floats, got {format_up(size, 3)}; give the values in another unit."
        )
    return exponent


def _on_lattice(array: NDArray[Any], exponent: int) -> bool:
    """Return whether finite numbers are multiples of a power of two, exactly."""
    if array.dtype.kind == "f":  # the remainder of two doubles is a double
        return not np.fmod(array.astype(np.float64), math.ldexp(1.0, exponent)).any()
    if exponent <= 0:
        return True
    return not (
        array.any() if exponent > 63 else (array >> exponent << exponent != array).any()
    )


# Laplace and Gaussian noise on a lattice: the laws that are really released.
#
# Values and outputs are multiples of a step that is a power of two; with the default
# ``exponent=0`` they are integers.

# Up to this sigma, in steps, tails are tabulated; above it the Euler-Maclaurin formula
# is as accurate as double precision.
_TABULATED = 4096


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplaceMechanism(LatticeMechanism):
    r"""Noise z on a lattice with probability proportional to :math:`e^{-|z|/b}`.

    Parameters
    ----------
    scale : int, float, str, Decimal or Fraction
        The b, in the unit of the values; positive and finite.
    exponent : int
        The step is two to this power; 0 for integers.
    dimension : int
        Number of coordinates.

    Notes
    -----
    :math:`(\|\cdot\|_1/b)`-private on the lattice, exactly. Also called the two-sided
    geometric mechanism.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference
    >>> DiscreteLaplaceMechanism(2).loss(AbsoluteDifference())
    Pure(epsilon=0.5)
    """

    scale: Fraction
    exponent: int
    dimension: int

    def __init__(self, scale: Number, *, exponent: int = 0, dimension: int = 1) -> None:
        object.__setattr__(self, "scale", read_positive(scale, "scale"))
        object.__setattr__(self, "exponent", read_exponent(exponent))
        object.__setattr__(self, "dimension", read_dimension(dimension))

    def loss(self, metric: Metric) -> Pure:
        r"""Return the loss per unit of `metric`: :math:`1/b` in :math:`\ell_1`."""
        return Pure(norm_factor(metric, p=1, dimension=self.dimension) / self.scale)

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> Pure:
        r"""Return :math:`\|x-y\|_1/b`, the exact loss between two lattice points."""
        gaps = self._gaps(first, second)
        return Pure(sum(gaps, start=Fraction(0)) / self.scale)

    def _lattice(self) -> LatticeLaplace:
        return LatticeLaplace(self.exponent, 1, self.scale / self.step)

    def _log_mass(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        rate = self._rate()
        return np.asarray(math.log(math.tanh(rate / 2)) - rate * np.abs(steps))

    def _log_tail(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        rate = self._rate()
        return np.asarray(-rate * steps - math.log1p(math.exp(-rate)))

    def _rate(self) -> float:
        return 1 / float_size(self.scale / self.step, "scale over the step")


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussianMechanism(GaussianNoise, LatticeMechanism):
    r"""Noise z on a lattice, probability proportional to :math:`e^{-z^2/2\sigma^2}`.

    Parameters
    ----------
    sigma : int, float, str, Decimal or Fraction
        The sigma of the law, slightly above its standard deviation; in the unit of the
        values. Only its square is kept.
    exponent : int
        The step is two to this power; 0 for integers.
    dimension : int
        Number of coordinates.

    Notes
    -----
    :math:`\rho = \|x-y\|_2^2/2\sigma^2` in zCDP [1]_. It is not
    Gaussian DP with :math:`\mu=\|x-y\|_2/\sigma`: its trade-off curve is piecewise
    linear. :meth:`approx_loss` is exact from its own law.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
       Privacy*, NeurIPS, 2020.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference
    >>> DiscreteGaussianMechanism(2).loss(AbsoluteDifference())
    ZCDP(rho=0.125)
    """

    variance: Fraction
    exponent: int
    dimension: int

    def __init__(self, sigma: Number, *, exponent: int = 0, dimension: int = 1) -> None:
        object.__setattr__(self, "variance", read_positive(sigma, "sigma") ** 2)
        object.__setattr__(self, "exponent", read_exponent(exponent))
        object.__setattr__(self, "dimension", read_dimension(dimension))

    @classmethod
    def from_variance(
        cls, variance: Number, *, exponent: int = 0, dimension: int = 1
    ) -> Self:
        r"""Return the mechanism of the given :math:`\sigma^2`, exactly."""
        mechanism = cls(1, exponent=exponent, dimension=dimension)
        return mechanism._of_variance(variance)

    def loss(self, metric: Metric) -> ZCDP:
        r"""Return the loss per unit of `metric`: :math:`1/2\sigma^2` in :math:`\ell_2`.

        The loss at distance d is this times :math:`d^2`.
        """
        return ZCDP(self._square_loss(metric) / 2)

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> ZCDP:
        r"""Return :math:`\|x-y\|_2^2/2\sigma^2` for two lattice points."""
        return ZCDP(self._square_gap(self._gaps(first, second)) / 2)

    def approx_loss(self, epsilon: Number, *, distance: Number = 1) -> Approx:
        r"""Return :math:`(\varepsilon,\delta)` for values at most `distance` apart.

        Parameters
        ----------
        epsilon : int, float, str, Decimal or Fraction
            Non-negative.
        distance : int, float, str, Decimal or Fraction
            Rounded up to the lattice.

        Raises
        ------
        AssumptionError
            For several coordinates: convert the zCDP loss instead.

        Notes
        -----
        With t steps between the values, delta is
        :math:`P[Z \ge c-t] - e^\varepsilon P[Z \ge c]` at the least integer
        :math:`c \ge \varepsilon\sigma^2/t + t/2` (in steps), as in Canonne,
        Kamath and Steinke (2020); it grows with t because the law is log-concave. It is
        summed term by term, without cancellation; past 4 million terms it is bounded by
        the continuous curve plus the error of the midpoint rule,
        :math:`\mathrm{Var}(g')/8`, where g is the summand. Rounded up.

        Examples
        --------
        >>> round(DiscreteGaussianMechanism(1).approx_loss(1).delta, 6)
        0.141351
        """
        budget, reach = exact(epsilon, "epsilon"), exact(distance, "distance")
        if self.dimension > 1:
            raise AssumptionError(
                "dimension must be 1 for the exact delta of the discrete Gaussian, "
                f"got {self.dimension}; convert the zCDP loss instead."
            )
        if reach == 0 or budget == math.inf:
            return Approx(budget, 0)
        if reach == math.inf:
            return Approx(budget, 1)
        t, variance = math.ceil(reach / self.step), self._square()
        return Approx.capped(budget, delta_up(variance, t, Fraction(budget)))

    def _lattice(self) -> LatticeGaussian:
        return LatticeGaussian(self.exponent, 1, self.variance / self.step**2)

    def _log_mass(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        variance = self._square()
        return np.asarray(
            -(steps**2) / (2 * float(variance)) - log_normaliser(variance)
        )

    def _square(self) -> Fraction:
        """Return the variance in squared steps, if its law can be worked out."""
        variance = self.variance / self.step**2
        float_size(variance, "the square of sigma over the step")
        return variance

    def _log_tail(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        variance = self._square()
        if variance > _TABULATED**2:
            return log_tail_smooth(steps, float(variance))
        table = tail_ratios(variance)
        inside = np.minimum(steps, len(table) - 1).astype(np.int64)
        ratios = np.asarray(table[inside])
        far = steps >= len(table)
        if far.any():
            ratios[far] = far_ratios(steps[far], float(variance))
        return np.asarray(self._log_mass(steps) + np.log(ratios))


# Sums of :math:`e^{-k^2/2\sigma^2}` over integers: mass, tails and delta.
#
# Everything is in steps of the lattice, so the law is that of the integer Gaussian.

# Most terms that an exact sum for delta may have.
_LARGEST_SUM = 1 << 22
# Steps over sigma beyond which logarithms of tails leave the floats, and the square at
# which tails themselves do, exp(-800).
_FARTHEST, _NOTHING = 1e150, 1600


@lru_cache(maxsize=64)
def log_normaliser(variance: Fraction) -> float:
    """Return the log of the sum of exp(-k^2 / 2 variance) over the integers."""
    v = float(variance)
    if v >= 9:  # by Poisson summation the rest is below exp(-18 pi^2)
        return math.log(2 * math.pi * v) / 2
    return math.log(math.fsum(math.exp(-k * k / (2 * v)) for k in range(-120, 121)))


@lru_cache(maxsize=16)
def tail_ratios(variance: Fraction) -> NDArray[np.float64]:
    """Return P[Z >= m] / P[Z = m] for m = 0, 1, ..., backwards from the far end."""
    v = float(variance)
    last = math.ceil(40 * math.sqrt(v)) + 2
    ratio = float(far_ratios(np.array([float(last)]), v)[0])
    ratios = [ratio]
    for m in range(last - 1, -1, -1):
        ratio = 1 + math.exp(-(2 * m + 1) / (2 * v)) * ratio
        ratios.append(ratio)
    return np.array(ratios[::-1])


def far_ratios(steps: NDArray[np.float64], v: float) -> NDArray[np.float64]:
    """Return P[Z >= m] / P[Z = m] past 40 sigma, where it has few terms."""
    j = np.arange(math.ceil(math.sqrt(v)) + 40, dtype=np.float64)
    with np.errstate(over="ignore"):
        terms = np.exp(-np.multiply.outer(steps, j) / v - j**2 / (2 * v))
    return np.asarray(terms.sum(axis=-1))


def log_tail_smooth(steps: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Return log P[Z >= m] by the midpoint rule and its correction.

    The correction is exact for an exponential tail, to which the law tends.
    """
    sigma = math.sqrt(variance)
    x = np.minimum((steps - 0.5) / sigma, _FARTHEST)
    hazard = math.sqrt(2 / math.pi) / erfcx(x / math.sqrt(2))
    b = np.sqrt(x * hazard / variance)  # log of (b / 2) / sinh(b / 2)
    # Below, the two last terms cancel to less than a float can add.
    safe = np.maximum(b, 1e-12)
    return np.asarray(log_ndtr(-x) + np.log(safe / -np.expm1(-safe)) - safe / 2)


def delta_up(variance: Fraction, t: int, epsilon: Fraction) -> float:
    """Return delta at integer distance t, rounded up."""
    c = math.ceil(epsilon * variance / t + Fraction(t, 2))
    v, first = float(variance), c - t
    if first**2 > _NOTHING * variance:  # both tails are nothing, or nearly everything
        return 1.0 if first < 0 else math.nextafter(0.0, 1.0)
    last = max(first, 0) + math.ceil(min(40 * math.sqrt(v), 800 * v / max(first, 1)))
    if last - first > _LARGEST_SUM:
        return delta_smooth(variance, t, epsilon=epsilon, c=c)
    # The terms are p(j) (1 - exp(epsilon - (2 j t + t^2) / 2v)) for j = k - t, and p(j)
    # is taken relative to its largest value, so that no term underflows.
    top = max(first, 0)
    j = np.arange(first, last + 1, dtype=np.float64)
    lead = float(epsilon - Fraction(2 * first * t + t * t) / (2 * variance))
    gap = -np.expm1(np.minimum(lead - (j - first) * (t / v), 0.0))
    terms = np.exp(-(j - top) * (j + top) / (2 * v)) * gap
    height = -float(Fraction(top * top) / (2 * variance)) - log_normaliser(variance)
    total = math.fsum(terms.tolist())
    nearest = math.exp(height + math.log(total)) if total else 0.0
    return nudge_up(inflate(nearest, 2e-12))


def delta_smooth(variance: Fraction, t: int, *, epsilon: Fraction, c: int) -> float:
    """Bound delta by the continuous curve and the error of the midpoint rule."""
    sigma = math.sqrt(variance)
    delta = gdp_delta(sqrt_up(Fraction(t * t) / variance), round_down(epsilon))
    near, far = (c - t - 0.5) / sigma, (c - 0.5) / sigma
    variation = _variation(near, Fraction(0)) + _variation(far, epsilon)
    return inflate(delta + variation / (8 * float(variance)), _MARGIN)


def _variation(start: float, log_weight: Fraction) -> float:
    """Bound the variation of the weighted normal density's slope from `start` on."""
    # It is start * density from 1 on, and 4 times the density at 1 over all reals.
    if start < 1:
        return 4 * exp_up(log_weight - Fraction(1, 2)) / math.sqrt(2 * math.pi)
    height = exp_up(log_weight - Fraction(start) ** 2 / 2)
    return start * height / math.sqrt(2 * math.pi)
