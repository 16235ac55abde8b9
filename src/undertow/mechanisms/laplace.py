r"""The Laplace mechanism: a real answer plus noise of density :math:`e^{-|z|/b}/2b`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import UnboundedSensitivityError
from undertow.mechanisms.accuracy import laplace_accuracy, laplace_confidence
from undertow.mechanisms.base import AdditiveMechanism, Support
from undertow.mechanisms.discrete import DiscreteLaplaceMechanism
from undertow.mechanisms.lattice_mechanism import released_exponent
from undertow.mechanisms.noise.draw import Draw, NoiseSource, read_positive
from undertow.mechanisms.noise.lattice import LatticeLaplace
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.values import float_size, read_dimension, read_vector
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric

__all__ = ["LaplaceMechanism"]


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
