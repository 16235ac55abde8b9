"""The extended table: every attacker of a finite law as one index.

Every axis of the table gets one more slice, the sum over the axis. The extra index on
an axis means that the record is unknown, any other that it is known with that state.
Conditional output laws of all attackers are ratios of two extended tables, without a
loop over subsets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import nudge_up
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import FiniteKernel
from undertow.errors import NotApplicable

__all__ = [
    "Index",
    "Peak",
    "every_attacker",
    "extend",
    "find_peak",
    "fits_extended",
    "known_states",
    "log_ratios",
    "raise_by_rounding",
    "require_extended",
]

Floats = NDArray[np.float64]
Index = tuple[slice, ...]
"""A part of the extended table: some attackers."""

# Entries of one chunk of the extended table, and of the table of one output.
_CHUNK = 2**23
_LARGEST = 2**25


@dataclass(frozen=True, slots=True)
class Peak:
    """A cell of the extended table, two states of the target, an output.

    The value is -inf if no attacker in question holds two states possible.
    """

    value: float
    target: int
    cell: tuple[int, ...] = ()
    pair: tuple[int, int] = (0, 0)
    output: int = 0


def extend(table: Floats, axes: int) -> Floats:
    """Return log values with their log-sum appended along each of the first axes."""
    for axis in range(axes):
        top = table.max(axis=axis, keepdims=True)
        base = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = np.log(np.exp(table - base).sum(axis=axis, keepdims=True)) + base
        table = np.concatenate([table, total], axis=axis)
    return table


def log_ratios(
    joint: JointTable, law: FiniteKernel
) -> Iterator[tuple[int, Floats, float]]:
    """Yield chunks of the log output law given every attacker's knowledge.

    Yields
    ------
    start : int
        Number of the first output of the chunk.
    ratios : array of shape (s_1 + 1, ..., s_n + 1, outputs in the chunk)
        Log probability, less its maximum over the possible databases, output by
        output; nan where the condition has probability zero.
    rounding : float
        Bound on the absolute error of a difference of two entries.
    """
    with np.errstate(divide="ignore"):
        log_pmf = np.log(joint.pmf)
    prior = extend(log_pmf, joint.size)[..., None]
    width = max(1, _CHUNK // prior.size)
    for start in range(0, law.log_density.shape[-1], width):
        chunk = law.log_density[..., start : start + width]
        # A common factor cancels; without it, constant outputs give exactly zero.
        top = chunk[joint.pmf > 0].max(axis=0)
        chunk = chunk - np.where(np.isfinite(top), top, 0.0)
        lowest = chunk[joint.pmf > 0].min(axis=0)[np.isfinite(top)]
        both = extend(log_pmf[..., None] + chunk, joint.size)
        with np.errstate(invalid="ignore"):
            ratios = both - prior
        size = max(_largest(prior), _largest(both), _largest(top))
        rounding = _rounding(joint, size) + 4 * law.rounding
        # No attacker learns more than the databases differ, so no more is lost: an
        # output that does not depend on the database leaks nothing.
        spread = 2 * (law.rounding - float(lowest.min(initial=0.0)))
        yield start, ratios, min(rounding, spread)


def find_peak(
    ratios: Floats,
    target: int,
    index: Index,
    *,
    start: int = 0,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Peak:
    """Return where two secrets of the target are told apart best.

    Parameters
    ----------
    ratios : array of shape (s_1 + 1, ..., s_n + 1, T)
        Log output laws given every attacker's knowledge; nan where impossible.
    target : int
        The record aimed at.
    index : tuple of slice
        The attackers in question; the states of the target.
    start : int
        Number of the first output.
    pairs : sequence of pair, optional
        Secrets compared; all by default.
    """
    block = np.moveaxis(ratios[index], target, 0)
    if pairs is None:
        return _highest(block, target, index, start)
    best = Peak(-math.inf, target, tuple(part.start for part in index))
    for a, b in pairs:
        found = _highest(block[[a, b]], target, index, start)
        if found.value > best.value:
            best = replace(found, pair=((a, b)[found.pair[0]], (a, b)[found.pair[1]]))
    return best


def every_attacker(joint: JointTable, target: int) -> Index:
    """Return the part of the extended table that compares secrets of `target`."""
    return tuple(slice(0, s + (j != target)) for j, s in enumerate(joint.shape))


def known_states(joint: JointTable, peak: Peak) -> dict[int, int]:
    """Return what the attacker at a peak knows."""
    cells = enumerate(zip(peak.cell, joint.shape, strict=True))
    return {j: k for j, (k, s) in cells if j != peak.target and k < s}


def raise_by_rounding(value: float, rounding: float) -> float:
    """Return `value` raised by a bound on its absolute error; 0 if -inf."""
    if value == -math.inf or value == rounding == 0:
        return 0.0
    return nudge_up(value + rounding)


def fits_extended(entries: int) -> bool:
    """Return whether an extended table of so many entries fits the memory."""
    return entries <= _LARGEST


def require_extended(joint: JointTable, *, outputs: int = 1) -> None:
    """Refuse tables whose extension does not fit the memory."""
    cells = math.prod(s + 1 for s in joint.shape) * outputs
    if not fits_extended(cells):
        raise NotApplicable(
            "the exact engine needs an extended table of at most "
            f"{_LARGEST} entries, got {cells} ({8 * cells / 2**30:.1f} GiB); "
            "use the general bound."
        )


def _highest(block: Floats, target: int, index: Index, start: int) -> Peak:
    with np.errstate(invalid="ignore"):
        # fmax and fmin pass over nan, the secrets of probability zero.
        spread = np.fmax.reduce(block, axis=0) - np.fmin.reduce(block, axis=0)
    told_apart = (~np.isnan(block)).sum(axis=0) > 1
    spread = np.where(told_apart & ~np.isnan(spread), spread, -math.inf)
    place = np.unravel_index(int(spread.argmax()), spread.shape)
    *others, output = (int(k) for k in place)
    column = block.reshape(len(block), -1)[:, int(spread.argmax())]
    others.insert(target, 0)
    cell = tuple(k + part.start for k, part in zip(others, index, strict=True))
    if np.isnan(column).all():
        return Peak(-math.inf, target, cell, (0, 0), start + output)
    pair = int(np.nanargmax(column)), int(np.nanargmin(column))
    return Peak(float(spread[place]), target, cell, pair, start + output)


def _rounding(joint: JointTable, size: float) -> float:
    """Bound the rounding of a difference of log ratios of logs up to `size`.

    A log-sum over an axis errs by at most a unit of the last place of its result, one
    per summand and a few more; two extended tables and one difference make four.
    """
    return 4 * (joint.size + 2) * (size + max(joint.shape) + 4) * 2.0**-52


def _largest(logs: Floats) -> float:
    return float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0))
