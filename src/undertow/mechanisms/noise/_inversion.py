r"""Exact integer laws from uniform bits: enclosed, inverted, drawn by a staircase.

A law on the outcomes 0, 1, 2, ... is given by its boundaries
:math:`F_0 = 0 \le F_1 \le F_2 \le \dots`, where :math:`F_i` is the probability of an
outcome below i. The boundaries are irrational; a law encloses
:math:`2^p F_i` between integers, for any precision p asked of it.

A uniform real :math:`U` on [0, 1) is read word by word. After L bits it is known to lie
in an interval of length :math:`2^{-L}`; as soon as that interval lies between two
enclosed boundaries of the law the outcome is settled, otherwise another word is read.
The first word is looked up in a table, the second compared in machine integers, all
further ones in Python integers: three speeds of one and the same function of U.

Laplace, Gaussian and geometric noise has a target :math:`e^{-c|x|^r}` that lies under a
staircase whose steps are m integers wide. A step is drawn by exact inversion, a place
on it uniformly, and the place is kept with probability :math:`e^{-\gamma}`, where
:math:`\gamma` is how much the exponent grew since the step began. With m a small part
of the scale nearly every place is kept, and nearly every decision is one comparison of
machine words; the rest is decided by further bits of the same uniform number, in the
end by Python integers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource, uniform_bits
from undertow.numeric.rounding import exp_bracket

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


_UNDECIDED = -1
# Precision beyond the bits read: changes how soon an outcome is settled, never which.
_GUARD = 8
_MOST_OUTCOMES = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A law made ready for words of one width.

    Parameters
    ----------
    law : Law
        The law.
    outcomes : int
        Outcomes 0 to ``outcomes - 1`` can be settled by the first two words.
    first : ndarray of int16
        Outcome for each first word, or -1.
    starts, ends : ndarray of int64
        A pair of words read as one number w settles outcome i if
        ``starts[i] <= w < ends[i]``.
    """

    law: Law
    outcomes: int
    first: NDArray[np.int16]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@lru_cache(maxsize=64)
def compile_table(law: Law, width: int) -> Table:
    """Build the table of `law` for words of `width` bits."""
    precision = 2 * width + _GUARD
    lower, upper = law.boundaries(precision)
    if len(lower) > _MOST_OUTCOMES:
        raise ValueError(
            f"law must have at most {_MOST_OUTCOMES} outcomes above the table's "
            f"resolution, got {len(lower)}; use wider steps."
        )
    starts, ends = _settled(lower, upper, precision - 2 * width)
    one_starts, one_ends = _settled(lower, upper, precision - width)
    every_word = np.arange(1 << width, dtype=np.int64)
    first = _locate(one_starts, one_ends, every_word).astype(np.int16)
    return Table(law, len(lower) - 1, first, starts, ends)


def _settled(
    lower: list[int], upper: list[int], shift: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each outcome's settled words start and end."""
    starts = [-(-value >> shift) for value in upper]
    ends = [value >> shift for value in lower[1:]]
    return np.array(starts, np.int64), np.array([*ends, 0], np.int64)


def _locate(
    starts: NDArray[np.int64], ends: NDArray[np.int64], words: NDArray[np.int64]
) -> NDArray[np.int64]:
    outcome = np.searchsorted(starts, words, side="right") - 1
    return np.where(words < ends[outcome], outcome, _UNDECIDED)


def sample_outcomes(
    table: Table, count: int, *, bits: BitSource
) -> tuple[NDArray[np.int16], dict[int, int]]:
    """Draw outcomes of the table's law.

    Returns
    -------
    outcomes : ndarray of int16
        The outcomes; 0 at the positions of `far`.
    far : dict
        Position and outcome of those too large for the table.
    """
    words = bits.words(count)
    outcomes = table.first.take(words)
    open_ = np.flatnonzero(outcomes < 0)
    if not open_.size:
        return outcomes, {}
    pairs = words[open_].astype(np.int64) << bits.width
    pairs |= bits.words(open_.size)
    outcomes[open_] = found = _locate(table.starts, table.ends, pairs)
    far = {}
    for rest in np.flatnonzero(found < 0):
        at, prefix = int(open_[rest]), int(pairs[rest])
        outcome = resolve(table.law, prefix, length=2 * bits.width, bits=bits)
        outcomes[at] = outcome if outcome < table.outcomes else 0
        if outcome >= table.outcomes:
            far[at] = outcome
    return outcomes, far


def resolve(law: Law, prefix: int, *, length: int, bits: BitSource) -> int:
    r"""Settle the outcome of a uniform number whose first bits are known.

    Parameters
    ----------
    law : Law
        The law to invert.
    prefix : int
        The first `length` bits of the number.
    length : int
        How many bits are known; the source is asked for more as long as they do not
        settle the outcome.
    bits : BitSource
        Where further words come from.

    Returns
    -------
    int
        The outcome i with :math:`F_i \le U < F_{i+1}`.
    """
    while True:
        lower, upper = law.boundaries(length + _GUARD)
        outcome = bisect_right(upper, prefix << _GUARD) - 1
        if outcome + 1 < len(lower) and (prefix + 1) << _GUARD <= lower[outcome + 1]:
            return outcome
        prefix = (prefix << bits.width) | int(bits.words(1)[0])
        length += bits.width


_BLOCK = 1 << 16  # values drawn at a time, so that the work stays in the cache
_STEPS_PER_SCALE = 16
_MACHINE = 1 << 62


def laplace_stairs(scale: Fraction, *, sides: int = 2) -> Stairs:
    r"""Return the staircase of :math:`e^{-|x|/\text{scale}}`."""
    return Stairs(1 / scale, 1, _power_of_two(scale / _STEPS_PER_SCALE), sides)


def gaussian_stairs(variance: Fraction) -> Stairs:
    r"""Return the staircase of :math:`e^{-x^2/(2\,\text{variance})}`."""
    width = math.isqrt(math.floor(variance / _STEPS_PER_SCALE**2))
    return Stairs(1 / (2 * variance), 2, _power_of_two(Fraction(width)))


def _power_of_two(limit: Fraction) -> int:
    """Return the largest power of two up to `limit`, or 1."""
    return 1 << max(0, math.floor(limit).bit_length() - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    r"""A staircase with the constants of its machine-word comparisons.

    A place `offset` into a step with base a has :math:`\gamma = c z`, where z is
    `offset` (r = 1) or ``offset * (2 * a + offset)`` (r = 2). In units of
    ``2**-scale``, gamma lies between ``z * low`` and ``z * high``.
    """

    stairs: Stairs
    table: Table
    scale: int
    low: int
    high: int
    near: int  # up to this z, gamma and its upper bound are at most 1
    machine: bool  # whether every product below stays under 2**63


@lru_cache(maxsize=64)
def _compile(stairs: Stairs, width: int) -> _Plan:
    table = compile_table(stairs, width)
    last, reach = stairs.base(table.outcomes - 1), stairs.width - 1
    z = reach if stairs.power == 1 else reach * (2 * last + reach)
    scale = 62
    while scale >= 2 * width and z * math.ceil(stairs.rate * 2**scale) >= 2 * _MACHINE:
        scale -= 2
    machine = scale >= 2 * width and z < _MACHINE and last + stairs.width < _MACHINE
    low, high = math.floor(stairs.rate * 2**scale), math.ceil(stairs.rate * 2**scale)
    return _Plan(stairs, table, scale, low, high, 2**scale // high, machine)


def sample_stairs(stairs: Stairs, size: int, *, bits: BitSource) -> NDArray[Any]:
    """Draw `size` independent integers from the target law of `stairs`.

    Returns
    -------
    ndarray of int64, or of Python integers
        The latter if some product or value could pass the machine word.
    """
    plan = _compile(stairs, bits.width)
    values = np.empty(size, np.int64 if plan.machine else np.object_)
    for start in range(0, size, _BLOCK):
        block = _sample_block(plan, min(_BLOCK, size - start), bits)
        if block.dtype != values.dtype:
            values = values.astype(np.object_)
        values[start : start + _BLOCK] = block
    return values


def _sample_block(plan: _Plan, count: int, bits: BitSource) -> NDArray[Any]:
    """Propose until every value is kept."""
    values, kept = _propose(plan, count, bits)
    pending = np.flatnonzero(~kept)
    while pending.size:
        again, kept = _propose(plan, pending.size, bits)
        if again.dtype != values.dtype:
            values = values.astype(np.object_)
        values[pending] = again
        pending = pending[~kept]
    return values


def _propose(
    plan: _Plan, count: int, bits: BitSource
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Draw one place per value, and whether it is kept."""
    stairs = plan.stairs
    index, far = sample_outcomes(plan.table, count, bits=bits)
    kept = np.ones(count, dtype=np.bool_)
    if plan.machine:
        wide = index.astype(np.int64)
        offset = uniform_bits(bits, count, length=stairs.width.bit_length() - 1)
        if stairs.width > 1:
            kept = _keep(plan, _growth(stairs, wide, offset), bits)
        values: NDArray[Any] = _mirror(stairs, wide, offset)
    else:
        values, far = np.empty(count, np.object_), dict(enumerate(index.tolist())) | far
    for at, outcome in far.items():
        value, kept[at] = _propose_one(stairs, outcome, bits)
        if not -2 * _MACHINE <= value < 2 * _MACHINE:
            values = values.astype(np.object_)
        values[at] = value
    return values, kept


def _propose_one(stairs: Stairs, index: int, bits: BitSource) -> tuple[int, bool]:
    """Draw one place on a known step in Python integers, and whether it is kept."""
    offset = int(uniform_bits(bits, 1, length=stairs.width.bit_length() - 1)[0])
    coin = ExpCoin(stairs.excess(index, offset))
    return stairs.value(index, offset), bool(resolve(coin, 0, length=0, bits=bits))


def _mirror(
    stairs: Stairs, index: NDArray[np.int64], offset: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return `Stairs.value` for arrays; xor with -1 is the complement."""
    if stairs.sides == 1:
        return index * stairs.width + offset
    return ((index >> 1) * stairs.width + offset) ^ -(index & 1)


def _growth(
    stairs: Stairs, index: NDArray[np.int64], offset: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the z of `_Plan`."""
    if stairs.power == 1:
        return offset
    base = index * stairs.width
    if stairs.sides == 2:
        base = (index >> 1) * stairs.width + (index & 1)
    return offset * (2 * base + offset)


def _keep(plan: _Plan, z: NDArray[np.int64], bits: BitSource) -> NDArray[np.bool_]:
    r"""Decide with probability :math:`e^{-cz}`: no if V < 1 - e^{-cz}, V uniform.

    The first word of V settles it where V is at least gamma, because
    :math:`1-e^{-\gamma} \le \gamma`.
    """
    words = bits.words(z.size).astype(np.int64)
    kept = words << (plan.scale - bits.width) >= z * plan.high
    open_ = np.flatnonzero(~kept)
    if open_.size:
        kept[open_] = _keep_closely(plan, z[open_], words[open_], bits)
    return kept


def _keep_closely(
    plan: _Plan, z: NDArray[np.int64], words: NDArray[np.int64], bits: BitSource
) -> NDArray[np.bool_]:
    r"""Decide what one word did not settle.

    The second word is compared with the enclosure
    :math:`\gamma-\gamma^2/2 \le 1-e^{-\gamma} \le \gamma-\gamma^2/2+\gamma^3/6`,
    rounded outwards; what is left is decided exactly.
    """
    words = (words << bits.width) | bits.words(z.size)
    shift = plan.scale - 2 * bits.width
    no_below, yes_from = _failure_bracket(plan, np.minimum(z, plan.near))
    near = z <= plan.near
    yes = near & (words << shift >= yes_from)
    no = near & ((words + 1) << shift <= no_below)
    for rest in np.flatnonzero(~(yes | no)):
        coin = ExpCoin(plan.stairs.rate * int(z[rest]))
        yes[rest] = resolve(coin, int(words[rest]), length=2 * bits.width, bits=bits)
    return yes


def _failure_bracket(
    plan: _Plan, z: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Enclose ``1 - exp(-c z)`` in units of ``2**-scale``, for gamma at most 1."""
    half = plan.scale // 2
    low, high = z * plan.low, z * plan.high  # gamma
    root_low, root_high = low >> half, (high >> half) + 1  # gamma, half the digits
    square_low, square_high = root_low * root_low, root_high * root_high
    cube_high = ((square_high >> half) + 1) * root_high
    return low - (square_high // 2 + 1), high - square_low // 2 + (cube_high // 6 + 1)
