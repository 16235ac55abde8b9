r"""Laplace and Gaussian noise on a lattice: the laws that are really released.

Values and outputs are multiples of a step that is a power of two; with the default
``exponent=0`` they are integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import AssumptionError
from undertow.mechanisms.gaussian_sum import (
    delta_up,
    far_ratios,
    log_normaliser,
    log_tail_smooth,
    tail_ratios,
)
from undertow.mechanisms.lattice_mechanism import LatticeMechanism, read_exponent
from undertow.mechanisms.noise.draw import read_positive
from undertow.mechanisms.noise.lattice import LatticeGaussian, LatticeLaplace
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.values import float_size, read_dimension, sqrt_nearest
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import ZCDP, Approx, Pure
from undertow.spaces.base import Metric

__all__ = ["DiscreteGaussianMechanism", "DiscreteLaplaceMechanism", "LatticeMechanism"]

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
class DiscreteGaussianMechanism(LatticeMechanism):
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
        object.__setattr__(mechanism, "variance", read_positive(variance, "variance"))
        return mechanism

    @property
    def sigma(self) -> float:
        """The sigma of the law."""
        return sqrt_nearest(self.variance)

    def loss(self, metric: Metric) -> ZCDP:
        r"""Return the loss per unit of `metric`: :math:`1/2\sigma^2` in :math:`\ell_2`.

        The loss at distance d is this times :math:`d^2`.
        """
        factor = norm_factor(metric, p=2, dimension=self.dimension)
        return ZCDP(factor**2 / (2 * self.variance))

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> ZCDP:
        r"""Return :math:`\|x-y\|_2^2/2\sigma^2` for two lattice points."""
        squares = (gap**2 for gap in self._gaps(first, second))
        return ZCDP(sum(squares, start=Fraction(0)) / (2 * self.variance))

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
