r"""Certified composition of privacy losses by a tilted Fourier transform.

The law of the composed loss is computed after an exponential (Esscher) tilt
:math:`p_t(l) \propto p(l) e^{tl}` that moves its bulk to the losses which decide the
answer, so that rounding is relative to delta and not to 1. The result is an upper
bound: every source of error is bounded and added.

=============================== =====================================================
source                          how it is kept on the safe side
=============================== =====================================================
losses off the grid             connected dots dominate (``_pld_grid``)
losses below the window         Chernoff bound of the tilted mass, added
losses above the window         Chernoff bound of the mass itself, added
wrap-around into the window     only adds mass
rounding of the transforms      at most `error` a node (see :func:`_rounding`), added
rounding of masses and cumulants  factor ``1 + slack``
Gaussian parts                  in closed form, never on the grid
=============================== =====================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from undertow.privacy._pld_grid import Composition, FloatArray, Rows, grid_rows
from undertow.privacy._pld_law import TiltedLaw, smallest_epsilon
from undertow.privacy._pld_plan import Plan, plan_for_delta, plan_for_epsilon
from undertow.privacy.exact import round_up

__all__ = [
    "Plan",
    "TiltedLaw",
    "plan_for_delta",
    "plan_for_epsilon",
    "smallest_epsilon",
    "tilted_law",
]

_UNIT = 2.0**-53
_BLOCK = 1 << 18


def tilted_law(composition: Composition, plan: Plan) -> TiltedLaw:
    """Compose on the grid of `plan`.

    Notes
    -----
    O(k N log N) time for k different parts and a window of N nodes, O(N) memory
    beyond a block of constant size.
    """
    from scipy.fft import irfft  # slow to import

    spectrum = np.ones(plan.size // 2 + 1, dtype=np.complex128)
    tally = _Tally(errors=[_transform_error(plan.size)])
    for rows in grid_rows(composition, plan.step, budget=_BLOCK):
        tilted = tally.add(rows, plan)
        with np.errstate(over="ignore", invalid="ignore"):  # caught by the error
            tally.errors.append(_multiply(spectrum, rows, tilted, plan.size))
    error = 1.01 * sum(tally.errors)
    if error < 1:
        weights = irfft(spectrum, plan.size) if plan.size > 1 else np.ones(1)
    else:  # no digit is left: a weight is only known to be at most 1
        weights, error = np.zeros(plan.size), 1.0
    nodes = np.arange(plan.first, plan.first + plan.size, dtype=np.float64)
    below, above = tally.outside(plan)
    return TiltedLaw(
        mu=composition.mu,
        infinity=round_up(composition.infinity),
        tilt=plan.tilt,
        losses=plan.step * nodes,
        weights=np.maximum(np.roll(weights, -plan.first), 0.0),
        log_mass=math.fsum(tally.masses),
        error=error,
        slack=math.fsum(tally.slacks),
        below=below,
        above=above,
    )


@dataclass(slots=True)
class _Tally:
    """What the rows add up to: cumulants at the three tilts, errors, outer nodes."""

    errors: list[float]
    masses: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    slacks: list[float] = field(default_factory=list)
    bottom: int = 0
    top: int = 0

    def add(self, rows: Rows, plan: Plan) -> FloatArray:
        """Account for some rows and return them tilted."""
        tilted, *at_tilt = _tilt(rows, plan.step, plan.tilt)
        _, *at_low = _tilt(rows, plan.step, plan.low_tilt)
        _, *at_high = _tilt(rows, plan.step, plan.high_tilt)
        found = (at_tilt, self.masses), (at_low, self.lows), (at_high, self.highs)
        for (logs, _), column in found:
            column.extend((rows.counts * logs).tolist())
        worst = np.maximum(np.maximum(at_tilt[1], at_low[1]), at_high[1])
        self.slacks.extend((rows.counts * worst).tolist())
        bottom, top = rows.ends()
        self.bottom, self.top = self.bottom + bottom, self.top + top
        return tilted

    def outside(self, plan: Plan) -> tuple[float, float]:
        """Return Chernoff bounds of the tilted mass below and the mass above."""
        slack = 2 * math.fsum(self.slacks)
        start, after = plan.first, plan.first + plan.size
        masses, lows, highs = map(math.fsum, (self.masses, self.lows, self.highs))
        less = (plan.tilt - plan.low_tilt) * (start - 1) * plan.step
        low = _exponential(lows, -masses, less, slack)
        high = _exponential(highs, -plan.high_tilt * after * plan.step, slack)
        return low * (self.bottom < start), high * (self.top >= after)


def _exponential(*terms: float) -> float:
    """Return an upper bound of the exponential of a sum, at most 1."""
    rounding = 16 * _UNIT * math.fsum(map(abs, terms))
    return math.exp(min(math.fsum(terms) + rounding, 0.0))


def _transform_error(size: int) -> float:
    r"""Bound the error of a transform of a vector of 1-norm 1 by :math:`8u \log_2 N`.

    Each output is a sum over the inputs along at most :math:`\log_2 N` radix-2 passes,
    and a pass costs one twiddle, one complex product and one sum, below :math:`5u`.
    """
    return 8 * _UNIT * math.log2(size)


def _tilt(
    rows: Rows, step: float, tilt: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows tilted and normalised, their cumulants and relative errors."""
    lengths = np.diff(rows.starts, append=rows.nodes.size)
    exponents = np.where(rows.masses > 0, (tilt * step) * rows.nodes, -np.inf)
    shift = np.maximum.reduceat(exponents, rows.starts)
    terms = rows.masses * np.exp(exponents - np.repeat(shift, lengths))
    sums = np.add.reduceat(terms, rows.starts)
    reach = np.maximum.reduceat(np.abs(rows.nodes), rows.starts) * step
    # Masses are exponentials of losses, tilted ones of losses times the tilt.
    errors = _UNIT * (32 + 8 * reach * (1 + abs(tilt)))
    return terms / np.repeat(sums, lengths), shift + np.log(sums), errors


def _multiply(
    spectrum: NDArray[np.complex128], rows: Rows, tilted: FloatArray, size: int
) -> float:
    """Multiply the spectra of the rows into `spectrum`, in blocks.

    Returns the error this may cause in an entry of the inverse transform: all factors
    have modulus at most 1, so errors of factors add.
    """
    from scipy.fft import rfft  # slow to import

    stops = np.append(rows.starts[1:], rows.nodes.size)
    height = max(1, _BLOCK // size)
    once = _transform_error(size) + 4 * _UNIT
    error = 0.0
    for first in range(0, rows.starts.size, height):
        last = min(first + height, rows.starts.size)
        part = slice(int(rows.starts[first]), int(stops[last - 1]))
        lengths = stops[first:last] - rows.starts[first:last]
        cell = np.repeat(np.arange(last - first) * size, lengths)
        cell += rows.nodes[part] % size
        table = np.bincount(cell, tilted[part], minlength=(last - first) * size)
        spectra = rfft(table.reshape(last - first, size), axis=1)
        for row, count in zip(spectra, rows.counts[first:last], strict=True):
            error += once if count == 1 else _raise(row, int(count), once, size)
        spectrum *= np.multiply.reduce(spectra, axis=0)
    return error


def _raise(row: NDArray[np.complex128], count: int, once: float, size: int) -> float:
    r"""Raise a spectrum to a power in place and return the error of its transform.

    :math:`|\hat\varphi^c - \varphi^c| \le c e (|\hat\varphi| + e)^{c-1}` for each
    frequency; the inverse transform averages over the frequencies.
    """
    decay = (np.abs(row) + once) ** (count - 1)
    row[:] = _power(row, count)
    return float(2 * decay.sum() / size) * count * once


def _power(base: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    result = np.ones_like(base)
    while count:
        if count & 1:
            result = result * base
        count >>= 1
        if count:
            base = base * base
    return result
