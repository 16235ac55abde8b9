r"""Real-valued releases on a lattice whose step is a power of two.

The step is set by the scale of the noise, never by the data. Values are rounded to
multiples of the step, integer noise is added, and the result is an exact multiple of
the step: there are no low-order bits that could depend on the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.mechanisms.noise.draw import Draw, NoiseSource, read_positive, read_size
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.exact import Number, sqrt_up
from undertow.privacy.loss import ZCDP, Pure

_RESOLUTION = 24
_MACHINE = 2**62


@dataclass(frozen=True, slots=True)
class LatticeLaplace:
    r"""Laplace noise on a lattice, calibrated to an :math:`\ell_1` sensitivity.

    Parameters
    ----------
    exponent : int
        The step is two to this power.
    sensitivity : int
        Most that one change moves the rounded values, in steps, in :math:`\ell_1`.
    scale : Fraction
        Scale of the integer noise, in steps.

    Notes
    -----
    Rounding is :math:`\lfloor x + 1/2 \rfloor`. Two real numbers a steps apart round to
    integers at most :math:`\lceil a \rceil` apart, because
    :math:`\lfloor u\rfloor - \lfloor v\rfloor < u - v + 1`. If one change touches at
    most c coordinates and moves them by :math:`\Delta` in :math:`\ell_1`, the rounded
    values move by an integer below :math:`\Delta/\text{step} + c`, hence by at most
    :math:`\lceil\Delta/\text{step}\rceil + c - 1`. Integer Laplace noise of scale s
    then costs exactly sensitivity / s.

    Checked: positive parameters. Not checkable: that the sensitivity and the number of
    coordinates hold for the numbers as computed, rounding errors included.
    """

    exponent: int
    sensitivity: int
    scale: Fraction

    @classmethod
    def calibrate(
        cls,
        sensitivity: Number,
        epsilon: Number,
        *,
        coordinates: int,
        resolution: int = _RESOLUTION,
    ) -> Self:
        r"""Return the lattice and noise that cost `epsilon`.

        Parameters
        ----------
        sensitivity : int, float, str, Decimal or Fraction
            Most that one change moves the values in :math:`\ell_1`.
        epsilon : int, float, str, Decimal or Fraction
            The pure loss to spend.
        coordinates : int
            Most coordinates that one change touches.
        resolution : int
            The step is between two to minus this and half of it, times the scale.

        Examples
        --------
        >>> noise = LatticeLaplace.calibrate(1, "0.5", coordinates=1)
        >>> noise.exponent, noise.sensitivity, noise.scale, noise.loss
        (-23, 8388608, Fraction(16777216, 1), Pure(epsilon=0.5))
        """
        delta = read_positive(sensitivity, "sensitivity")
        budget = read_positive(epsilon, "epsilon")
        touched = _read_count(coordinates, "coordinates")
        exponent = _floor_log2(delta / budget) - _read_count(resolution, "resolution")
        reach = math.ceil(delta / _power(exponent)) + touched - 1
        return cls(exponent, reach, reach / budget)

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return _power(self.exponent)

    @property
    def loss(self) -> Pure:
        """What a release costs."""
        return Pure(self.sensitivity / self.scale)

    def sample_steps(
        self, values: ArrayLike, *, source: NoiseSource | None = None
    ) -> Draw:
        """Draw the noisy values as integer multiples of the step."""
        rounded = lattice_round(values, self.exponent)
        noise = read_source(source, draws="laplace").laplace(self.scale, rounded.size)
        return add_noise(rounded, noise)

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw the noisy values as floats, each an exact multiple of the step."""
        return _as_floats(self.sample_steps(values, source=source), self.exponent)


@dataclass(frozen=True, slots=True)
class LatticeGaussian:
    r"""Gaussian noise on a lattice, calibrated to an :math:`\ell_2` sensitivity.

    Parameters
    ----------
    exponent : int
        The step is two to this power.
    square : int
        Most that one change moves the rounded values, in steps, in squared
        :math:`\ell_2`.
    variance : Fraction
        The :math:`\sigma^2` of the integer noise, in squared steps.

    Notes
    -----
    With c coordinates touched and :math:`\Delta` in :math:`\ell_2`, rounding adds a
    vector with c entries below 1, so the squared distance of the rounded values is an
    integer below :math:`(\Delta/\text{step}+\sqrt c)^2`; for c = 1 it is at most
    :math:`\lceil\Delta/\text{step}\rceil^2`. The discrete Gaussian then costs
    :math:`\text{square}/(2\sigma^2)` in zCDP [1]_. It is not Gaussian DP
    for any parameter :math:`\mu = \Delta/\sigma`, and none is claimed.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
       Privacy*, NeurIPS, 2020.
    """

    exponent: int
    square: int
    variance: Fraction

    @classmethod
    def calibrate(
        cls,
        sensitivity: Number,
        rho: Number,
        *,
        coordinates: int,
        resolution: int = _RESOLUTION,
    ) -> Self:
        r"""Return the lattice and noise that cost `rho` in zCDP.

        Parameters
        ----------
        sensitivity : int, float, str, Decimal or Fraction
            Most that one change moves the values in :math:`\ell_2`.
        rho : int, float, str, Decimal or Fraction
            The zCDP loss to spend; for the noise of :math:`\mu = \Delta/\sigma`, give
            :math:`\mu^2/2`.
        coordinates : int
            Most coordinates that one change touches.
        resolution : int
            The step is between two to minus this and half of it, times sigma.

        Examples
        --------
        >>> noise = LatticeGaussian.calibrate(1, "0.5", coordinates=1)
        >>> noise.exponent, noise.square == 2**48, noise.loss
        (-24, True, ZCDP(rho=0.5))
        """
        delta = read_positive(sensitivity, "sensitivity")
        budget = read_positive(rho, "rho")
        touched = _read_count(coordinates, "coordinates")
        floor = _floor_log2(delta**2 / (2 * budget)) // 2
        exponent = floor - _read_count(resolution, "resolution")
        square = _square_reach(delta / _power(exponent), touched)
        return cls(exponent, square, square / (2 * budget))

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return _power(self.exponent)

    @property
    def loss(self) -> ZCDP:
        """What a release costs."""
        return ZCDP(self.square / (2 * self.variance))

    def sample_steps(
        self, values: ArrayLike, *, source: NoiseSource | None = None
    ) -> Draw:
        """Draw the noisy values as integer multiples of the step."""
        rounded = lattice_round(values, self.exponent)
        noise = read_source(source, draws="gaussian").gaussian(
            self.variance, rounded.size
        )
        return add_noise(rounded, noise)

    def sample(self, values: ArrayLike, *, source: NoiseSource | None = None) -> Draw:
        """Draw the noisy values as floats, each an exact multiple of the step."""
        return _as_floats(self.sample_steps(values, source=source), self.exponent)


def lattice_round(values: ArrayLike, exponent: int) -> NDArray[Any]:
    r"""Round to the nearest multiple of :math:`2^e`, halves up, and count the steps.

    Parameters
    ----------
    values : array_like
        Finite integers or floats.
    exponent : int
        The e.

    Returns
    -------
    ndarray of int64, or of Python integers
        :math:`\lfloor x/2^e + 1/2 \rfloor`, exactly; the latter past 62 bits.

    Examples
    --------
    >>> lattice_round([0.4999, 0.5, -0.5, 1e30], 0)
    array([0, 1, 0, 1000000000000000019884624838656], dtype=object)
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise TypeError(f"values must be integers or doubles, got {array.dtype}.")
    if array.dtype.kind != "f":
        return _round_integers(array, exponent)
    if not np.isfinite(array).all():
        raise ValueError("values must be finite, got nan or inf; clip them first.")
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(array.astype(np.float64), -exponent)
    if not (np.abs(scaled) < _MACHINE).all():
        return _round_exactly(array, exponent)
    floor = np.floor(scaled)
    # The difference decides correctly although it may round: see the theory page.
    return np.asarray(floor.astype(np.int64) + (scaled - floor >= 0.5))


def _round_integers(array: NDArray[Any], exponent: int) -> NDArray[Any]:
    if exponent <= 0 and _largest(array) << -exponent < _MACHINE:
        return np.asarray(array.astype(np.int64) << -exponent)
    return _round_exactly(array, exponent)


def _largest(array: NDArray[Any]) -> int:
    """Return the largest absolute value of an integer array."""
    return max(-int(array.min()), int(array.max())) if array.size else 0


def _round_exactly(array: NDArray[Any], exponent: int) -> NDArray[Any]:
    step, half = _power(exponent), Fraction(1, 2)
    exact = [
        math.floor(Fraction(value) / step + half) for value in array.ravel().tolist()
    ]
    return _narrowed(np.array(exact, dtype=np.object_).reshape(array.shape))


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the integers as int64 if all are below 2**62."""
    return array.astype(np.int64) if _largest(array) < _MACHINE else array


def add_noise(rounded: NDArray[Any], noise: Draw) -> Draw:
    """Add noise without wrapping: int64 only where neither term passes 2**62."""
    values = noise.values.reshape(rounded.shape)
    if values.dtype != np.object_ and _largest(values) >= _MACHINE:
        values = values.astype(np.object_)
    return Draw(np.asarray(rounded + values), noise.simulated, noise.source)


def _as_floats(draw: Draw, exponent: int) -> Draw:
    return Draw(lattice_floats(draw.values, exponent), draw.simulated, draw.source)


def lattice_floats(steps: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    r"""Return the multiples :math:`k\,2^e` as floats, the nearest where none is exact.

    Rounding is a function of the noisy integer alone: post-processing, which reveals
    nothing more. ``sample_steps`` of the lattice returns the integers themselves.

    Raises
    ------
    ValueError
        If some multiple lies outside the range of the doubles; this too depends on
        noisy values only.
    """
    largest = _largest(steps)
    if not -1074 <= exponent <= 1023 - largest.bit_length():
        raise ValueError(
            "noisy values must be in the range of floats, got a multiple of "
            f"2**{exponent} beyond it; use a scale nearer to one."
        )
    if steps.dtype == np.object_:  # counts past the floats, of multiples within them
        unit = _power(exponent)
        exact = [float(count * unit) for count in steps.ravel().tolist()]
        return np.array(exact, dtype=np.float64).reshape(steps.shape)
    return np.asarray(np.ldexp(steps.astype(np.float64), exponent))


def _square_reach(ratio: Fraction, touched: int) -> int:
    """Bound the squared distance, in steps, of values `ratio` steps apart."""
    if touched == 1:
        return math.ceil(ratio) ** 2
    return math.ceil((ratio + Fraction(sqrt_up(touched))) ** 2) - 1


def _read_count(value: int, name: str) -> int:
    count = read_size(value, name)
    if count == 0:
        raise ValueError(f"{name} must be positive, got 0.")
    return count


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if _power(guess) <= value else guess - 1
