"""What a noise source gives back, and how its arguments are read."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow.errors import AssumptionError
from undertow.numeric.exact import Number, exact


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Values drawn from a noise source, stamped with where they came from.

    Parameters
    ----------
    values : ndarray
        The drawn values; made read-only. Integers are ``int64``, or Python integers in
        an array of dtype ``object`` where ``int64`` could overflow.
    simulated : bool
        Whether the randomness was seeded. A simulated draw may not be released.
    source : str
        Name of the source.
    """

    values: NDArray[Any]
    simulated: bool
    source: str

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def secure_values(self) -> NDArray[Any]:
        """Return the values, or refuse if they were simulated.

        Raises
        ------
        AssumptionError
            If the draw is simulated: whoever knows the seed can remove the noise.
        """
        if self.simulated:
            raise AssumptionError(
                "values to be released must come from a secure source, got a draw of "
                f"the {self.source} source; draw them again with SecureSource."
            )
        return self.values


class NamedSource(Protocol):
    """A source of randomness that says of its draws where they come from."""

    @property
    def name(self) -> str:
        """How the source names itself in a `Draw`."""

    @property
    def simulated(self) -> bool:
        """Whether the randomness is seeded."""


class UniformSource(NamedSource, Protocol):
    """A source of uniform integers: all that samplers of categories need."""

    def uniform(self, bound: int, size: int) -> Draw:
        """Draw integers uniform on 0, ..., bound - 1."""


@runtime_checkable
class NoiseSource(NamedSource, Protocol):
    """Anything that draws integer Laplace and integer Gaussian noise."""

    def laplace(self, scale: Number, size: int) -> Draw:
        """Draw integers with probability proportional to ``exp(-|k| / scale)``."""

    def gaussian(self, variance: Number, size: int) -> Draw:
        """Draw integers with probability proportional to ``exp(-k**2/2/variance)``."""


def read_positive(value: Number, name: str) -> Fraction:
    """Read a positive finite number exactly.

    Examples
    --------
    >>> read_positive(3.7, "scale")
    Fraction(37, 10)
    """
    number = exact(value, name)
    if number == 0 or number == math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}.")
    return Fraction(number)


def read_probability(value: Number, name: str) -> Fraction:
    """Read a probability exactly."""
    return Fraction(exact(value, name, at_most=1))


def read_size(size: int, name: str = "size") -> int:
    """Read a number of values."""
    if isinstance(size, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {type(size).__name__}.")
    try:
        count = operator.index(size)
    except TypeError:
        message = f"{name} must be an integer, got {type(size).__name__}."
        raise TypeError(message) from None
    if count < 0:
        raise ValueError(f"{name} must be non-negative, got {count}.")
    return count
