r"""The laws the samplers invert, as enclosures of their cumulative probabilities.

A law on the outcomes 0, 1, 2, ... is given by its boundaries
:math:`F_0 = 0 \le F_1 \le F_2 \le \dots`, where :math:`F_i` is the probability of an
outcome below i. The boundaries are irrational; a law encloses
:math:`2^p F_i` between integers, for any precision p asked of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from undertow.mechanisms.noise.exponential import exp_bracket

__all__ = ["Boundaries", "ExpCoin", "Law", "RationalCoin", "Stairs"]

Boundaries = tuple[list[int], list[int]]
"""Lower and upper integers around the scaled boundaries, for outcomes 0 to J."""

_Bracket = tuple[int, int]


class Law(Hashable, Protocol):
    """A law on the non-negative integers, enclosed to any precision."""

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose the boundaries, scaled by two to the `precision`.

        The outcomes not covered have probability below two to the minus `precision`.
        """


@dataclass(frozen=True, slots=True)
class RationalCoin:
    """Outcome 1 with rational `probability`, else 0."""

    probability: Fraction

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose 0, the probability of outcome 0, and 1."""
        scaled = (1 - self.probability) * (1 << precision)
        one = 1 << precision
        return [0, math.floor(scaled), one], [0, math.ceil(scaled), one]


@dataclass(frozen=True, slots=True)
class ExpCoin:
    r"""Outcome 1 with probability :math:`e^{-x}`, else 0."""

    x: Fraction

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose 0, the probability of outcome 0, and 1."""
        lower, upper = exp_bracket(self.x, precision)
        one = 1 << precision
        return [0, one - upper, one], [0, one - lower, one]


@dataclass(frozen=True, slots=True)
class Stairs:
    r"""The steps of a staircase over a target law, each as likely as it is high.

    .. math:: \Pr[i] \propto e^{-c\,a_i^r}, \qquad a_i = mh + s, \quad i = 2h + s

    The integers are cut into steps of `width` m on each side of zero. Step i = 2h + s
    stands for the integers mh, ..., mh + m - 1 if s = 0 and for their mirror images
    -mh - 1, ..., -mh - m if s = 1; with one side, i = h and s = 0. The smallest
    absolute value on the step is :math:`a_i`; the target law is highest there.

    Parameters
    ----------
    rate : Fraction
        The c of the target law :math:`e^{-c|x|^r}`.
    power : int
        The r: 1 (Laplace, geometric) or 2 (Gaussian).
    width : int
        The m, a power of two.
    sides : int
        2 for a law on the integers, 1 for one on the non-negative integers.
    """

    rate: Fraction
    power: int
    width: int
    sides: int = 2

    def base(self, index: int) -> int:
        """Return the smallest absolute value on the step."""
        return self.width * (index // self.sides) + index % self.sides

    def excess(self, index: int, offset: int) -> Fraction:
        """Return by how much the exponent `offset` places into the step grows."""
        base = self.base(index)
        growth: int = (base + offset) ** self.power - base**self.power
        return self.rate * growth

    def value(self, index: int, offset: int) -> int:
        """Return the integer `offset` places into the step."""
        magnitude = self.width * (index // self.sides) + offset
        return ~magnitude if index % self.sides else magnitude

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose the boundaries of the steps; see the module's theory page."""
        working = 2 * precision + 32
        height = self._height(precision)
        sides = [self._weights(side, height, working) for side in range(self.sides)]
        lower, upper = [0], [0]
        for level in zip(*sides, strict=True):
            for low, high in level:
                lower.append(lower[-1] + low)
                upper.append(upper[-1] + high)
        least, most = lower[-1], upper[-1] + self._tail(height, working)
        return (
            [(value << precision) // most for value in lower],
            [-(-(value << precision) // least) for value in upper],
        )

    def _height(self, precision: int) -> int:
        """Return a number of levels that leaves less than 2**-precision above."""
        target = Fraction(7 * (precision + 12), 10) / self.rate  # 0.7 > ln 2
        reach = math.ceil(target)
        if self.power == 2:
            reach = math.isqrt(reach) + 1
        return reach // self.width + 1

    def _weights(self, side: int, height: int, working: int) -> list[_Bracket]:
        """Enclose the weights of one side, each from the one below it."""
        c, m = self.rate, self.width
        first = exp_bracket(c * side**self.power, working)
        drop = c * ((side + m) ** self.power - side**self.power)
        ratio = exp_bracket(drop, working)
        change = exp_bracket(2 * c * m * m * (self.power - 1), working)
        weights = [first]
        for _ in range(height - 1):
            weights.append(_multiply(weights[-1], ratio, working))
            ratio = _multiply(ratio, change, working)
        return weights

    def _tail(self, height: int, working: int) -> int:
        """Bound the weight of all levels from `height` up."""
        c, m, r = self.rate, self.width, self.power
        here: int = (m * height) ** r
        above: int = (m * (height + 1)) ** r
        drop = c * (above - here)
        weight = exp_bracket(c * here, working)[1]
        return math.ceil(self.sides * weight * (1 + drop) / drop)


def _multiply(left: _Bracket, right: _Bracket, working: int) -> _Bracket:
    return left[0] * right[0] >> working, -(-left[1] * right[1] >> working)
