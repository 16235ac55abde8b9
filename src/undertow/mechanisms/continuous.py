r"""The Laplace and the Gaussian mechanism: a real answer plus continuous noise.

Noise of density :math:`e^{-|z|/b}/2b`, or of variance :math:`\sigma^2`. No computer
draws it: what is released is the same noise on a lattice, that of
:mod:`undertow.mechanisms.discrete`.
"""

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
from undertow.mechanisms.accuracy import (
    gaussian_accuracy,
    gaussian_confidence,
    laplace_accuracy,
    laplace_confidence,
)
from undertow.mechanisms.base import (
    AdditiveMechanism,
    GaussianNoise,
    Support,
    float_size,
    norm_factor,
    read_dimension,
    read_vector,
)
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    released_exponent,
)
from undertow.mechanisms.noise.draw import Draw, NoiseSource, read_positive
from undertow.mechanisms.noise.lattice import LatticeGaussian, LatticeLaplace
from undertow.numeric.exact import Number, exact, round_down, sqrt_up
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.base import Metric


@dataclass(frozen=True, slots=True, init=False)
class LaplaceMechanism(AdditiveMechanism):
    r"""Continuous Laplace noise of one scale on each coordinate.

    Parameters
    ----------
    scale : int, float, str, Decimal or Fraction
        The b; positive and finite.
    dimension : int
        Number of coordinates k.

    Notes
    -----
    :math:`(\|\cdot\|_1/b)`-private on :math:`\mathbb R^k`, exactly; Definition 2.8 of
    Guerra-Balboa (2026). The law described is the continuous one,
    which no computer can draw from; what :meth:`sample` releases is :attr:`released`,
    the same noise on a lattice, and :meth:`released_loss` is what that costs.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference
    >>> mechanism = LaplaceMechanism(2)
    >>> mechanism.loss(AbsoluteDifference()), mechanism.pair_loss(32, 35)
    (Pure(epsilon=0.5), Pure(epsilon=1.5))
    """

    measure = "lebesgue"
    scale: Fraction
    dimension: int

    def __init__(self, scale: Number, *, dimension: int = 1) -> None:
        object.__setattr__(self, "scale", read_positive(scale, "scale"))
        object.__setattr__(self, "dimension", read_dimension(dimension))

    @classmethod
    def calibrate(
        cls, sensitivity: Number, epsilon: Number, *, dimension: int = 1
    ) -> Self:
        r"""Return the mechanism of scale :math:`\Delta/\varepsilon`, exactly."""
        delta = read_positive(sensitivity, "sensitivity")
        scale = delta / read_positive(epsilon, "epsilon")
        return cls(scale, dimension=dimension)

    def loss(self, metric: Metric) -> Pure:
        r"""Return the loss per unit of `metric`: :math:`1/b` in :math:`\ell_1`.

        In another norm it is multiplied by the least constant that bounds
        :math:`\ell_1` by that norm; see :func:`~undertow.mechanisms.base.norm_factor`.
        What is drawn has exactly this loss between values on the lattice of
        :attr:`released`; between others, :meth:`released_loss`.
        """
        return Pure(norm_factor(metric, p=1, dimension=self.dimension) / self.scale)

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> Pure:
        r"""Return :math:`\|x-y\|_1/b`, the exact loss between two values."""
        x = read_vector(first, self.dimension, "first")
        y = read_vector(second, self.dimension, "second")
        gaps = (abs(a - b) for a, b in zip(x, y, strict=True))
        return Pure(sum(gaps, start=Fraction(0)) / self.scale)

    def noise_log_density(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of one coordinate's noise."""
        b = float_size(self.scale, "scale")
        with np.errstate(over="ignore"):
            return np.asarray(-np.abs(noise) / b - math.log(2 * b))

    def noise_log_cdf(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of noise at most `noise`."""
        with np.errstate(over="ignore"):
            tail = -np.abs(noise) / float_size(self.scale, "scale") - math.log(2)
        return np.where(noise < 0, tail, np.log1p(-np.exp(tail)))

    def support(self, given: ArrayLike) -> Support:
        """Return the reals."""
        return Support()

    def accuracy(self, beta: Number) -> float:
        """Return the error reached with probability at most `beta`.

        Exact for one coordinate, a union bound for several. What is released errs by up
        to one step of the lattice more, at most ``scale / 2**24``.
        """
        return laplace_accuracy(self.scale, beta, k=self.dimension)

    def confidence(self, alpha: Number) -> float:
        """Return the probability of an error of at least `alpha`."""
        return laplace_confidence(self.scale, alpha, k=self.dimension)

    @property
    def released(self) -> DiscreteLaplaceMechanism:
        """The lattice mechanism that released values come from.

        Its step is a power of two set by the scale alone.
        """
        lattice = LatticeLaplace.calibrate(self.scale, 1, coordinates=1)
        return DiscreteLaplaceMechanism(
            self.scale,
            exponent=released_exponent(lattice.exponent, self.scale, "scale"),
            dimension=self.dimension,
        )

    def released_loss(
        self, sensitivity: Number, *, coordinates: int | None = None
    ) -> Pure:
        r"""Return what a released value costs, rounding to the lattice included.

        Parameters
        ----------
        sensitivity : int, float, str, Decimal or Fraction
            Most that one change moves the values in :math:`\ell_1`.
        coordinates : int, optional
            Most coordinates that one change touches; all of them by default.

        Raises
        ------
        UnboundedSensitivityError
            If the sensitivity is infinite.

        Notes
        -----
        Rounding moves two values at most :math:`c-1` steps further apart than
        :math:`\lceil\Delta/\text{step}\rceil` if they differ in c coordinates.

        Examples
        --------
        >>> LaplaceMechanism(2).released_loss(1)
        Pure(epsilon=0.5)
        """
        delta = _read_sensitivity(sensitivity)
        if delta == 0:
            return Pure.zero()
        touched = self.dimension if coordinates is None else coordinates
        budget = delta / self.scale
        lattice = LatticeLaplace.calibrate(delta, budget, coordinates=touched)
        return Pure(lattice.sensitivity * lattice.step / self.scale)

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


def _read_sensitivity(sensitivity: Number) -> Fraction:
    delta = exact(sensitivity, "sensitivity")
    if delta == math.inf:
        raise UnboundedSensitivityError(
            "sensitivity must be finite, got inf; bound it by clipping the values."
        )
    return Fraction(delta)


@dataclass(frozen=True, slots=True, init=False)
class GaussianMechanism(GaussianNoise):
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
        return cls(1, dimension=dimension)._of_variance(variance)

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
        return _price(self._square_loss(metric), notion)

    def pair_loss(
        self, first: ArrayLike, second: ArrayLike, *, notion: str = "gdp"
    ) -> GDP | ZCDP:
        r"""Return :math:`\mu=\|x-y\|_2/\sigma` or :math:`\mu^2/2`, exactly."""
        x = read_vector(first, self.dimension, "first")
        y = read_vector(second, self.dimension, "second")
        gaps = (a - b for a, b in zip(x, y, strict=True))
        return _price(self._square_gap(gaps), notion)

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
