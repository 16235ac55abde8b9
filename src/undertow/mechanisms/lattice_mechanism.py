"""What noise on a lattice has in common: values and outputs are multiples of a step."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import greatest_int, inflate, log_down
from undertow.errors import MismatchError
from undertow.mechanisms.base import AdditiveMechanism, Support
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.noise.lattice import (
    LatticeGaussian,
    LatticeLaplace,
    lattice_round,
)
from undertow.mechanisms.values import read_vector
from undertow.privacy.exact import Number, exact, format_up, round_up

__all__ = ["LatticeMechanism", "read_exponent", "released_exponent"]

_MARGIN = 1e-12
_SMALLEST = math.nextafter(0.0, 1.0)
_LARGEST_EXPONENT = 970
# Steps that a float can count, further than any noise reaches.
_FARTHEST = 10**308


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
            return float(self._log_tail(np.asarray(float(min(steps, _FARTHEST)))))

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
