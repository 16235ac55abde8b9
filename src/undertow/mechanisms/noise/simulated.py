"""The simulated source: seeded, for studies, audits and tests, never for a release."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource, uniform_below
from undertow.mechanisms.noise.draw import (
    Draw,
    read_positive,
    read_probability,
    read_size,
)
from undertow.numeric.exact import Number, exact

# Beyond this a double no longer holds the integers around a draw.
_LARGEST_SCALE = 2.0**45
_ALL = 2**64 - 1
# Generators whose raw numbers have 64 bits.
_WHOLE = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
# Words drawn ahead.
_STOCK = 1 << 12


class _SeededBits:
    """Seeded words; few at a time are taken from a stock."""

    __slots__ = ("_next", "_rng", "_stock")
    width = 16

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._next = rng, 0
        self._stock = np.zeros(0, dtype=np.uint16)

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words."""
        if count > _STOCK // 4:
            return self._fresh(count)
        if self._next + count > self._stock.size:
            self._stock, self._next = self._fresh(_STOCK), 0
        start = self._next
        self._next += -(-count // 4) * 4  # stay aligned
        return self._stock[start : start + count]

    def _fresh(self, count: int) -> NDArray[np.uint16]:
        size = -(-count // 4)
        source = self._rng.bit_generator
        if isinstance(source, _WHOLE):
            numbers = source.random_raw(size)
        else:
            numbers = self._rng.integers(
                _ALL, size=size, dtype=np.uint64, endpoint=True
            )
        words = numbers.astype("<u8", copy=False).view("<u2")[:count]
        words.flags.writeable = False
        return words


class SimulatedSource:
    """Seeded noise in double precision; every draw is stamped ``simulated``.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Required: a study names its seed.

    Notes
    -----
    The integer laws hold up to the rounding of double precision. Whoever knows the
    seed can subtract the noise, and continuous draws have the floating-point defects
    of [1]_; neither may be released.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.

    Examples
    --------
    >>> draw = SimulatedSource(7).laplace(2, 3)
    >>> draw.simulated, draw.source
    (True, 'simulated')
    """

    __slots__ = ("_rng",)
    name = "simulated"
    simulated = True

    def __init__(self, seed: int | np.random.Generator) -> None:
        if isinstance(seed, np.random.Generator):
            self._rng = seed
        else:
            self._rng = np.random.default_rng(read_size(seed, "seed"))

    @property
    def bits(self) -> BitSource:
        """The seeded words that samplers of many bits read."""
        return _SeededBits(self._rng)

    def laplace(self, scale: Number, size: int) -> Draw:
        r"""Draw integers k with probability proportional to :math:`e^{-|k|/scale}`.

        Notes
        -----
        The difference of two geometric variables.
        """
        width, count = _double(scale, "scale"), read_size(size)
        return self._draw(self._geometric(width, count) - self._geometric(width, count))

    def gaussian(self, variance: Number, size: int) -> Draw:
        r"""Draw integers k with probability proportional to :math:`e^{-k^2/(2v)}`.

        Notes
        -----
        Rejection from the discrete Laplace law, as in Canonne, Kamath and
        Steinke, *The Discrete Gaussian for Differential Privacy*, 2020.
        """
        sigma, count = math.sqrt(_double(variance, "variance")), read_size(size)
        values = np.empty(count, dtype=np.int64)
        pending = np.arange(count)
        t = math.floor(sigma) + 1
        while pending.size:
            y = self._geometric(t, pending.size) - self._geometric(t, pending.size)
            excess = ((np.abs(y) - sigma**2 / t) / sigma) ** 2 / 2
            kept = self._rng.random(pending.size) < np.exp(-excess)
            values[pending[kept]] = y[kept]
            pending = pending[~kept]
        return self._draw(values)

    def geometric(self, scale: Number, size: int) -> Draw:
        r"""Draw k = 0, 1, ... with probability proportional to :math:`e^{-k/scale}`."""
        width, count = _double(scale, "scale"), read_size(size)
        return self._draw(self._geometric(width, count))

    def bernoulli(self, probability: Number, size: int) -> Draw:
        """Draw 1 with the given probability, else 0."""
        p, count = float(read_probability(probability, "probability")), read_size(size)
        return self._draw((self._rng.random(count) < p).astype(np.int64))

    def bernoulli_exp(self, x: Number, size: int) -> Draw:
        r"""Draw 1 with probability :math:`e^{-x}`, else 0."""
        p, count = math.exp(-exact(x, "x")), read_size(size)
        return self._draw((self._rng.random(count) < p).astype(np.int64))

    def uniform(self, bound: int, size: int) -> Draw:
        """Draw integers uniform on 0, ..., bound - 1."""
        bound, count = read_size(bound, "bound"), read_size(size)
        if bound == 0:
            raise ValueError("bound must be positive, got 0.")
        if bound < 2**63:
            return self._draw(self._rng.integers(bound, size=count))
        return self._draw(uniform_below(self.bits, count, bound=bound))

    def continuous_laplace(self, scale: Number, size: int) -> Draw:
        """Draw real numbers from the Laplace law."""
        width, count = float(read_positive(scale, "scale")), read_size(size)
        return self._draw(self._rng.laplace(scale=width, size=count))

    def continuous_gaussian(self, variance: Number, size: int) -> Draw:
        """Draw real numbers from the normal law."""
        width = math.sqrt(read_positive(variance, "variance"))
        return self._draw(self._rng.normal(scale=width, size=read_size(size)))

    def _geometric(self, scale: float, count: int) -> NDArray[np.int64]:
        # The integer part of an exponential variable is geometric.
        return self._rng.exponential(scale, count).astype(np.int64)

    def _draw(self, values: NDArray[Any]) -> Draw:
        return Draw(values, self.simulated, self.name)

    def __repr__(self) -> str:
        return "SimulatedSource(...)"


def _double(value: Number, name: str) -> float:
    number = float(read_positive(value, name))
    limit = _LARGEST_SCALE if name == "scale" else _LARGEST_SCALE**2
    if number > limit:
        raise ValueError(
            f"{name} must be at most {limit:g} for a simulated draw, got {number:g}; "
            "use SecureSource, which draws at any scale."
        )
    return number
