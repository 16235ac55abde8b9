r"""The Gaussian mechanism: a real answer plus noise of variance :math:`\sigma^2`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from undertow._validate import check_choice
from undertow.errors import UnboundedSensitivityError
from undertow.mechanisms.accuracy import gaussian_accuracy, gaussian_confidence
from undertow.mechanisms.base import AdditiveMechanism, Support
from undertow.mechanisms.discrete import DiscreteGaussianMechanism
from undertow.mechanisms.lattice_mechanism import released_exponent
from undertow.mechanisms.noise.draw import Draw, NoiseSource, read_positive
from undertow.mechanisms.noise.lattice import LatticeGaussian
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.values import (
    float_size,
    read_dimension,
    read_vector,
    sqrt_nearest,
)
from undertow.privacy.exact import Number, exact, round_down, sqrt_up
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.loss import GDP, ZCDP, Approx
from undertow.spaces.base import Metric

__all__ = ["GaussianMechanism"]


@dataclass(frozen=True, slots=True, init=False)
class GaussianMechanism(AdditiveMechanism):
    r"""Continuous Gaussian noise of one standard deviation on each coordinate.

    Parameters
    ----------
    sigma : int, float, str, Decimal or Fraction
        Standard deviation; positive and finite. Only its square is kept.
    dimension : int
        Number of coordinates k.

    Notes
    -----
    :math:`(\|\cdot\|_2/\sigma)`-Gaussian private on :math:`\mathbb R^k`, exactly;
    Definition 2.11 of Guerra-Balboa (2026). What :meth:`sample` releases is the
    discrete Gaussian :attr:`released`, which is *not* Gaussian DP; its loss is stated
    by :meth:`released_loss` in zCDP. The Gaussian loss and the curve stated here are
    marked as those of continuous noise, and no budget takes them.

    Examples
    --------
    >>> from undertow.spaces.metric import Euclidean
    >>> GaussianMechanism(2, dimension=3).loss(Euclidean())
    GDP(mu=0.5, continuous=True)
    >>> GaussianMechanism(2, dimension=3).loss(Euclidean(), notion="zcdp")
    ZCDP(rho=0.125)
    """

    measure = "lebesgue"
    variance: Fraction
    dimension: int

    def __init__(self, sigma: Number, *, dimension: int = 1) -> None:
        object.__setattr__(self, "variance", read_positive(sigma, "sigma") ** 2)
        object.__setattr__(self, "dimension", read_dimension(dimension))

    @classmethod
    def from_variance(cls, variance: Number, *, dimension: int = 1) -> Self:
        """Return the mechanism of the given variance, exactly."""
        mechanism = cls(1, dimension=dimension)
        object.__setattr__(mechanism, "variance", read_positive(variance, "variance"))
        return mechanism

    @property
    def sigma(self) -> float:
        """The standard deviation."""
        return sqrt_nearest(self.variance)

    def loss(self, metric: Metric, *, notion: str = "gdp") -> GDP | ZCDP:
        r"""Return the loss per unit of `metric`.

        Parameters
        ----------
        metric : Metric
            `AbsoluteDifference` for one coordinate, else a norm.
        notion : {"gdp", "zcdp"}
            :math:`\mu = 1/\sigma` or :math:`\rho = 1/2\sigma^2` in :math:`\ell_2`.

        Notes
        -----
        Both are about continuous noise. A drawn value has the second, for values on the
        lattice, and never the first: see :meth:`released_loss`.
        """
        factor = norm_factor(metric, p=2, dimension=self.dimension)
        return _price(factor**2 / self.variance, notion)

    def pair_loss(
        self, first: ArrayLike, second: ArrayLike, *, notion: str = "gdp"
    ) -> GDP | ZCDP:
        r"""Return :math:`\mu=\|x-y\|_2/\sigma` or :math:`\mu^2/2`, exactly."""
        x = read_vector(first, self.dimension, "first")
        y = read_vector(second, self.dimension, "second")
        squares = ((a - b) ** 2 for a, b in zip(x, y, strict=True))
        return _price(sum(squares, start=Fraction(0)) / self.variance, notion)

    def approx_loss(self, epsilon: Number, *, distance: Number = 1) -> Approx:
        r"""Return :math:`(\varepsilon,\delta)` for values at most `distance` apart.

        Notes
        -----
        Equation 2.1 of Guerra-Balboa (2026) with :math:`\mu = \Delta/\sigma`, where the
        distance is Euclidean; delta is rounded up. It is the curve of continuous noise;
        that of what is drawn is ``released.approx_loss``, and may be larger.
        """
        reach = exact(distance, "distance")
        budget = exact(epsilon, "epsilon")
        if reach == math.inf:
            return Approx(budget, 1)
        mu = sqrt_up(Fraction(reach) ** 2 / self.variance)
        point = Approx.capped(budget, gdp_delta(mu, round_down(budget)))
        return point.of_continuous_noise()

    def noise_log_density(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of one coordinate's noise."""
        sigma = float_size(Fraction(self.sigma), "sigma")
        with np.errstate(over="ignore"):
            scaled = noise / sigma
            body = np.asarray(-(scaled**2) / 2 - math.log(2 * math.pi) / 2)
        return np.asarray(body - math.log(sigma))

    def noise_log_cdf(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of noise at most `noise`."""
        with np.errstate(over="ignore"):
            scaled = noise / float_size(Fraction(self.sigma), "sigma")
        return np.asarray(log_ndtr(scaled))

    def support(self, given: ArrayLike) -> Support:
        """Return the reals."""
        return Support()

    def accuracy(self, beta: Number, *, method: str = "exact") -> float:
        """Return the error reached with probability at most `beta`.

        Exact for one coordinate (or the tail bound), a union bound for several.
        """
        return gaussian_accuracy(self.sigma, beta, k=self.dimension, method=method)

    def confidence(self, alpha: Number, *, method: str = "exact") -> float:
        """Return the probability of an error of at least `alpha`."""
        return gaussian_confidence(self.sigma, alpha, k=self.dimension, method=method)

    @property
    def released(self) -> DiscreteGaussianMechanism:
        """The lattice mechanism that released values come from.

        Its step is a power of two set by sigma alone.
        """
        lattice = LatticeGaussian.calibrate(1, 1 / (2 * self.variance), coordinates=1)
        sigma = Fraction(self.sigma)
        return DiscreteGaussianMechanism.from_variance(
            self.variance,
            exponent=released_exponent(lattice.exponent, sigma, "sigma"),
            dimension=self.dimension,
        )

    def released_loss(
        self, sensitivity: Number, *, coordinates: int | None = None
    ) -> ZCDP:
        r"""Return what a released value costs, rounding to the lattice included.

        Parameters
        ----------
        sensitivity : int, float, str, Decimal or Fraction
            Most that one change moves the values in :math:`\ell_2`.
        coordinates : int, optional
            Most coordinates that one change touches; all of them by default.

        Raises
        ------
        UnboundedSensitivityError
            If the sensitivity is infinite.

        Notes
        -----
        zCDP, because the discrete Gaussian is not Gaussian DP. Rounding moves two
        values at most :math:`\sqrt c` steps further apart if they differ in c
        coordinates; see :class:`~undertow.mechanisms.noise.lattice.LatticeGaussian`.

        Examples
        --------
        >>> GaussianMechanism(2).released_loss(1)
        ZCDP(rho=0.125)
        """
        delta = exact(sensitivity, "sensitivity")
        if delta == math.inf:
            raise UnboundedSensitivityError(
                "sensitivity must be finite, got inf; bound it by clipping the values."
            )
        if delta == 0:
            return ZCDP.zero()
        touched = self.dimension if coordinates is None else coordinates
        rho = Fraction(delta) ** 2 / (2 * self.variance)
        lattice = LatticeGaussian.calibrate(delta, rho, coordinates=touched)
        return ZCDP(lattice.square * lattice.step**2 / (2 * self.variance))

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw noisy values on the lattice of :attr:`released`.

        Parameters
        ----------
        values : array_like
            Finite numbers; with k > 1 coordinates, the last axis has length k.
        source : NoiseSource, optional
            Operating-system entropy by default.

        Returns
        -------
        Draw
            Floats, each an exact multiple of the step.
        """
        return self.released.sample_rounded(values, source=source)


def _price(square: Fraction, notion: str) -> GDP | ZCDP:
    if check_choice(notion, "notion", choices=("gdp", "zcdp")) == "gdp":
        return GDP.from_square(square).of_continuous_noise()
    return ZCDP(square / 2)
