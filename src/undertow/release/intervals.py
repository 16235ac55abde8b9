"""Confidence intervals from the exact laws of the noise, never too narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    Draw,
    NoiseSource,
    SecureSource,
)
from undertow.numeric.rounding import inflate
from undertow.privacy.loss import ZCDP, Loss, Pure
from undertow.release.sensitivity import Reach

__all__ = ["IntegerNoise", "ratio_interval", "variance_interval"]

Array = NDArray[np.float64]
Ends = tuple[Any, Any]
# Covers the rounding of a few dozen floating-point operations.
_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    r"""Independent noise on whole numbers: discrete Laplace or discrete Gaussian.

    Parameters
    ----------
    law : {"laplace", "gaussian"}
        Probability proportional to :math:`e^{-|k|/b}` or to
        :math:`e^{-k^2/2\sigma^2}`.
    parameter : Fraction
        The scale b, or the square of sigma.

    Examples
    --------
    >>> noise = IntegerNoise("laplace", Fraction(2))
    >>> noise.radius(0.05), noise.loss(Reach(1, 1, 1))
    (6, Pure(epsilon=0.5))
    """

    law: str
    parameter: Fraction

    @property
    def mechanism(self) -> DiscreteLaplaceMechanism | DiscreteGaussianMechanism:
        """The mechanism that adds this noise to one whole number."""
        if self.law == "laplace":
            return DiscreteLaplaceMechanism(self.parameter)
        return DiscreteGaussianMechanism.from_variance(self.parameter)

    @property
    def deviation(self) -> float:
        """The standard deviation of one number's noise (of the Gaussian law, sigma)."""
        if self.law == "gaussian":
            return math.sqrt(self.parameter)
        # 2 p / (1 - p)^2 with p = exp(-1/b), which is 1 / (2 sinh^2(1/2b)).
        half = 1.0 / (2.0 * float(self.parameter))
        return 0.0 if half > 350 else 1.0 / (math.sqrt(2.0) * math.sinh(half))

    def loss(self, reach: Reach) -> Loss:
        """Return what releasing a vector of this reach costs per unit, exactly."""
        if self.law == "laplace":
            return Pure(reach.total / self.parameter)
        return ZCDP(reach.square / (2 * self.parameter))

    def swap_loss(self, reach: Reach) -> Loss:
        """Return what it costs per unit whose data is replaced, exactly."""
        if self.law == "laplace":
            return Pure(reach.swap_total / self.parameter)
        return ZCDP(reach.swap_square / (2 * self.parameter))

    def radius(self, beta: float) -> int:
        """Return the least t with an error above t of probability at most `beta`."""
        return max(0, int(self.mechanism.accuracy(beta)) - 1)

    def log_tail(self, at_least: int) -> float:
        """Return the log probability of noise of at least `at_least`, rounded up."""
        if at_least <= 0:
            return 0.0
        twice = self.mechanism.confidence(at_least)
        if twice > 1e-290:
            return math.log(twice / 2.0) + _MARGIN
        return self._chernoff_at(float(at_least))

    def sum_radius(
        self,
        weights: Sequence[float],
        beta: float,
        *,
        counts: Sequence[int] | None = None,
    ) -> float:
        r"""Return t with :math:`\Pr[\sum_i w_i\eta_i > t] \le \beta`, rounded up.

        Parameters
        ----------
        weights : sequence of float
            The weights; their signs do not matter.
        beta : float
            The probability.
        counts : sequence of int, optional
            How many terms have each weight; one by default.

        Notes
        -----
        Chernoff's bound :math:`\ln\Pr \le \sum_i \ln E e^{\lambda w_i\eta_i} -
        \lambda t`, with the exact moment generating function of the discrete Laplace
        law, and :math:`e^{\lambda^2\sigma^2/2}` for the discrete Gaussian, which is an
        upper bound of its own. Every :math:`\lambda` gives a valid t; the search for
        the best one cannot make it unsafe. By symmetry the same t holds below.
        """
        w = np.abs(np.asarray(weights, dtype=np.float64))
        n = np.ones_like(w) if counts is None else np.asarray(counts, dtype=np.float64)
        w, n = w[(w > 0) & (n > 0)], n[(w > 0) & (n > 0)]
        if not w.size:
            return 0.0
        rates = self._rates(w, n)
        levels = (self._log_moments(w, n, rates=rates) - math.log(beta)) / rates
        return inflate(float(levels.min()), _MARGIN)

    def add_to(self, values: NDArray[Any], *, source: NoiseSource | None) -> Draw:
        """Draw the noisy whole numbers, as Python integers of any size.

        Parameters
        ----------
        values : ndarray of object
            Python integers.
        source : NoiseSource, optional
            Operating-system entropy by default.
        """
        origin = SecureSource() if source is None else source
        drawn = origin.laplace if self.law == "laplace" else origin.gaussian
        noise = drawn(self.parameter, values.size)
        whole = noise.values.astype(np.object_).reshape(values.shape)
        return Draw(np.asarray(values + whole), noise.simulated, noise.source)

    def _rates(self, w: Array, n: Array) -> Array:
        """Return rates to try, a fine geometric grid below the largest allowed."""
        if self.law == "gaussian":
            unit = 1.0 / math.sqrt(float(self.parameter) * float(np.sum(n * w**2)))
            return np.asarray(unit * np.geomspace(0.01, 100.0, 400))
        largest = 1.0 / (float(self.parameter) * float(w.max()))
        small = np.geomspace(1e-4, 0.5, 200)
        return np.asarray(largest * np.concatenate([small, 1.0 - small]))

    def _log_moments(self, w: Array, n: Array, *, rates: Array) -> Array:
        if self.law == "gaussian":
            total = float(self.parameter) * float(np.sum(n * w**2))
            return np.asarray(rates**2 * total / 2.0)
        # E exp(x eta) = (cosh(1/b) - 1) / (cosh(1/b) - cosh(x)), as half-angle sinhs.
        half = np.asarray(1.0 / (2.0 * float(self.parameter)))
        x = np.outer(rates, w) / 2.0
        logs = 2.0 * _log_sinh(half) - _log_sinh(half + x) - _log_sinh(half - x)
        return np.asarray(logs @ n)

    def _chernoff_at(self, t: float) -> float:
        one = np.ones(1)
        rates = self._rates(one, one)
        return min(
            0.0,
            float((self._log_moments(one, one, rates=rates) - rates * t).min())
            + _MARGIN,
        )


def _log_sinh(x: Array) -> Array:
    """Return ln(2 sinh(x)) for positive x, without overflow."""
    return np.asarray(x + np.log(-np.expm1(-2.0 * x)))


def ratio_interval(first: Ends, second: Ends) -> tuple[Array, Array]:
    """Return the range of ``a / (a + b)`` over boxes of non-negative numbers.

    Parameters
    ----------
    first, second : tuple of array_like
        Lower and upper ends of the intervals of a and b; negative ends stand for 0.

    Examples
    --------
    >>> low, high = ratio_interval(([1, -2], [3, -1]), ([1, -3], [3, 0]))
    >>> low.tolist(), high.tolist()
    ([0.25, 0.0], [0.75, 1.0])
    """
    a_low, a_high = _raised(first)
    b_low, b_high = _raised(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(a_low > 0, a_low / (a_low + b_high), 0.0)
        high = np.where(b_low > 0, a_high / (a_high + b_low), 1.0)
    return low, high


def variance_interval(parts: Sequence[Ends]) -> tuple[Array, Array]:
    r"""Bound variances of numbers in [0, 1] from intervals of three sums.

    The sums are those of :math:`(1-x)^2`, :math:`2x(1-x)` and :math:`x^2`, which add up
    to the number of rows.

    Parameters
    ----------
    parts : sequence of tuple of array_like
        Lower and upper ends of the three sums.

    Notes
    -----
    With the mean m and the share p of the middle sum, the variance is
    :math:`m(1-m) - p/2`, and with the share s of the last it is :math:`s - m^2`; both
    are bounded over the box, and the enclosures intersected.

    Examples
    --------
    >>> low, high = variance_interval([([10], [10]), ([0], [0]), ([10], [10])])
    >>> low.tolist(), high.tolist()
    ([0.25], [0.25])
    """
    zero, one, two = (_raised(ends) for ends in parts)
    middle = ratio_interval(one, _sum(zero, two))
    last = ratio_interval(two, _sum(zero, one))
    m_low, m_high = ratio_interval(_sum(two, two, one), _sum(zero, zero, one))
    spread = np.minimum(m_low * (1 - m_low), m_high * (1 - m_high))
    nearest = np.clip(0.5, m_low, m_high)
    low = np.maximum(spread - middle[1] / 2, last[0] - m_high**2)
    high = np.minimum(nearest * (1 - nearest) - middle[0] / 2, last[1] - m_low**2)
    low = np.maximum(low, 0.0)
    return low, np.maximum(low, np.minimum(high, 0.25))


def _raised(ends: Ends) -> tuple[Array, Array]:
    low, high = (np.maximum(np.asarray(end, dtype=np.float64), 0.0) for end in ends)
    return low, high


def _sum(*terms: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = (np.sum([term[at] for term in terms], axis=0) for at in (0, 1))
    return low, high
