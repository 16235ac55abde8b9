r"""Exact integer Laplace, Gaussian and geometric noise by a staircase and rejection.

The target :math:`e^{-c|x|^r}` lies under a staircase whose steps are m integers wide. A
step is drawn by exact inversion, a place on it uniformly, and the place is kept with
probability :math:`e^{-\gamma}`, where :math:`\gamma` is how much the exponent grew
since the step began. With m a small part of the scale nearly every place is kept, and
nearly every decision is one comparison of machine words; the rest is decided by further
bits of the same uniform number, in the end by Python integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource, uniform_bits
from undertow.mechanisms.noise.inversion import (
    Table,
    compile_table,
    resolve,
    sample_outcomes,
)
from undertow.mechanisms.noise.law import ExpCoin, Stairs

__all__ = ["gaussian_stairs", "laplace_stairs", "sample_stairs"]

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
