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
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from undertow.errors import SearchError
from undertow.privacy._pld_grid import (
    Composition,
    FloatArray,
    Rows,
    gaussian_cumulant,
    grid_rows,
)
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
_LOG_OUTSIDE = 33.0  # the window leaves about e^-33 of the tilted law outside
_FEWEST_ALONE, _FEWEST, _MOST, _MOST_LATTICE = 1 << 15, 1 << 13, 1 << 22, 1 << 18
_ROW = 1 << 19
_BLOCK = 1 << 18
_UNDERFLOW = 1e-290
_SMALLEST_TILT, _LARGEST_TILT = 1e-5, 1e10


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to look: the tilt, the grid, and the tilts that bound the two tails.

    The choice decides how tight the answer is, never whether it is an upper bound, as
    long as ``low_tilt < tilt`` and ``high_tilt >= 0``.
    """

    tilt: float
    low_tilt: float
    high_tilt: float
    step: float
    first: int
    size: int


def plan_for_epsilon(
    composition: Composition, epsilon: float, *, tolerance: float, step: float | None
) -> Plan:
    """Choose tilt and grid for delta at `epsilon`; about 60 cumulants, O(60 atoms)."""
    tilt = _minimiser(
        lambda t: composition.total_cumulant(t) - t * epsilon + _log_payoff(t)
    )
    return _plan(composition, tilt, epsilon, tolerance=tolerance, step=step)


def plan_for_delta(
    composition: Composition, delta: float, *, tolerance: float, step: float | None
) -> tuple[Plan, float]:
    """Choose tilt and grid for epsilon at `delta`, and return a first guess of it."""

    def epsilon_at(tilt: float) -> float:
        cost = composition.total_cumulant(tilt) - math.log(delta) + _log_payoff(tilt)
        return cost / tilt

    tilt = _minimiser(epsilon_at)
    guess = max(epsilon_at(tilt), 0.0)
    return _plan(composition, tilt, guess, tolerance=tolerance, step=step), guess


def _log_payoff(tilt: float) -> float:
    # The largest value of e^{-t x} (1 - e^{-x}), x > 0.
    return tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def _minimiser(
    objective: Callable[[float], float],
    low: float = _SMALLEST_TILT,
    high: float = _LARGEST_TILT,
) -> float:
    """Return the minimiser over [low, high] of a quasi-convex function, to 5 %."""
    shrink = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    left, right = b - shrink * (b - a), a + shrink * (b - a)
    at_left, at_right = objective(math.exp(left)), objective(math.exp(right))
    while b - a > 0.05:
        if at_left <= at_right:
            b, right, at_right = right, left, at_left
            left = b - shrink * (b - a)
            at_left = objective(math.exp(left))
        else:
            a, left, at_left = left, right, at_right
            right = a + shrink * (b - a)
            at_right = objective(math.exp(right))
    return math.exp((a + b) / 2)


def _plan(
    composition: Composition,
    tilt: float,
    epsilon: float,
    *,
    tolerance: float,
    step: float | None,
) -> Plan:
    from scipy.fft import next_fast_len  # slow to import

    if not composition.on_grid:
        return Plan(tilt, low_tilt=0.0, high_tilt=tilt, step=1.0, first=0, size=1)
    (low, less), (high, more) = _window(composition, tilt)
    if step is None:
        excess = tolerance * max(epsilon, 1 / tilt)
        step = _step_for(composition, tilt, excess, width=high - low)
    step = max(step, (high - low) / _MOST, composition.laplace.max(initial=0) / _ROW)
    step = _short(step, max(composition.reach(), abs(low), abs(high)))
    spare = 2 + int(min(composition.size, 64))  # a part may move by one node
    first, last = math.floor(low / step) - spare, math.ceil(high / step) + spare
    size = int(next_fast_len(last - first + 1, real=True))
    low_tilt, high_tilt = tilt - min(less, 1 / step), tilt + min(more, 1 / step)
    return Plan(tilt, low_tilt, high_tilt, step=step, first=first, size=size)


def _window(
    composition: Composition, tilt: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of an interval that holds nearly all of the tilted law.

    With each end comes the change of tilt whose Chernoff bound shows it.
    """
    here = composition.cumulant(tilt)

    def above(more: float) -> float:
        there = composition.cumulant(tilt + more)
        return (there - here + _LOG_OUTSIDE) / more

    def below(less: float) -> float:
        there = composition.cumulant(tilt - less)
        return (there - here + _LOG_OUTSIDE) / less

    lowest, highest = composition.bounds()
    less, more = _minimiser(below), _minimiser(above)
    low, high = max(lowest, -below(less)), min(highest, above(more))
    # A law of one atom still needs a window.
    low = min(low, high - max(1e-4 * composition.reach(), 1e-12))
    return (low, less), (high, more)


def _step_for(
    composition: Composition, tilt: float, excess: float, *, width: float
) -> float:
    if lattice := composition.lattice():
        step = lattice / math.ceil(lattice * tilt)
        if width <= step * _MOST_LATTICE:
            return step
    # Connecting the dots acts like one more Gaussian whose variance v is the spread;
    # at a fixed delta it costs (1 + t) v / 2 of epsilon.
    most = 2 * excess / (1 + tilt)
    low, high = -80.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        if composition.spread(math.exp(middle)) <= most:
            low = middle
        else:
            high = middle
    different = composition.laplace.size + composition.counts.size
    fewest = max(_FEWEST, _FEWEST_ALONE // different)
    return min(math.exp(low), width / fewest, 1 / tilt)


def _short(step: float, reach: float) -> float:
    """Round a step so that its multiples up to twice the reach are exact floats."""
    bits = 50 - math.ceil(math.log2(reach / step + 8))
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(math.ldexp(mantissa, bits)), exponent - bits)


@dataclass(frozen=True, slots=True)
class TiltedLaw:
    """The composed loss near one tilt, with its certified errors.

    Attributes
    ----------
    losses, weights : ndarray
        Nodes of the window and the tilted law of the gridded parts there.
    log_mass : float
        Cumulant of the discretised parts at the tilt.
    error, slack : float
        Largest absolute error of a weight; relative error of everything.
    below, above : float
        Tilted mass of losses below the window; mass of losses above it.
    """

    mu: float
    infinity: float
    tilt: float
    losses: FloatArray
    weights: FloatArray
    log_mass: float
    error: float
    slack: float
    below: float
    above: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon`. O(window)."""
        payoff = _payoff(epsilon - self.losses, self.mu, self.tilt)
        inside = float((self.weights * payoff).sum() + self.error * payoff.sum())
        inside += self.below / (1 + self.tilt)  # no payoff exceeds 1 / (1 + t)
        gauss = gaussian_cumulant(self.mu, self.tilt)
        size = abs(self.log_mass) + gauss + self.tilt * epsilon + self.losses.size
        # 1000 covers the exponents of the payoffs that do not underflow, and
        # _UNDERFLOW those that do.
        slack = self.slack + 16 * _UNIT * (1000 + size)
        logarithm = math.log(inside + _UNDERFLOW) + self.log_mass + gauss
        finite = math.exp(min(logarithm - self.tilt * epsilon + slack, 0.0))
        total = (finite + self.above + self.infinity) * (1 + 8 * _UNIT)
        return min(1.0, max(total, sys.float_info.min))


def smallest_epsilon(
    law: TiltedLaw, delta: float, *, guess: float, most: float
) -> float:
    """Return an epsilon whose certified delta is at most `delta`, nearly the least.

    About ten evaluations of :meth:`TiltedLaw.delta`; `most` is an epsilon known to be
    enough, or infinite.
    """

    def excess(epsilon: float) -> float:
        return math.log(law.delta(epsilon)) - math.log(delta)

    if excess(0.0) <= 0:
        return 0.0
    high = _enough(excess, min(guess, most), law.tilt, most)
    if high is None:
        raise SearchError(
            f"delta must be above the rounding error of this composition, got {delta}; "
            "give a larger delta or compose fewer parts at a time."
        )
    at_high = excess(high)
    if at_high > 0:
        return most
    low = max(high + 1.2 * at_high / law.tilt - 1e-3 * high, 0.0)
    if (at_low := excess(low)) <= 0:
        low, at_low = 0.0, excess(0.0)
    return _regula_falsi(excess, (low, at_low), (high, at_high))


def _enough(
    excess: Callable[[float], float], start: float, tilt: float, most: float
) -> float | None:
    """Walk up until the excess is not positive, or to `most`."""
    epsilon = start
    for _ in range(64):
        if epsilon >= most:
            return most
        if (value := excess(epsilon)) <= 0:
            return epsilon
        epsilon = min(epsilon + (1 + value) / tilt, most)
    return None


def _regula_falsi(
    excess: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
) -> float:
    """Close in on the root (Illinois rule); the end returned has excess at most 0."""
    (a, at_a), (b, at_b) = low, high
    for _ in range(80):
        if b - a <= 1e-11 * b or at_b == 0:
            break
        middle = b - at_b * (b - a) / (at_b - at_a)
        # A point a hair above the chord's root makes the upper end move too.
        middle = min(max(middle + 2e-12 * b, a + 1e-12 * b), b - 1e-12 * b)
        value = excess(middle)
        if value <= 0:
            b, at_b, at_a = middle, value, at_a / 2
        else:
            a, at_a, at_b = middle, value, at_b / 2
    return b


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
        tally.errors.append(_multiply(spectrum, rows, tilted, plan.size))
    weights = irfft(spectrum, plan.size) if plan.size > 1 else np.ones(1)
    nodes = np.arange(plan.first, plan.first + plan.size, dtype=np.float64)
    below, above = tally.outside(plan)
    return TiltedLaw(
        mu=composition.mu,
        infinity=round_up(composition.infinity),
        tilt=plan.tilt,
        losses=plan.step * nodes,
        weights=np.maximum(np.roll(weights, -plan.first), 0.0),
        log_mass=math.fsum(tally.masses),
        error=1.01 * math.fsum(tally.errors),
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
    largest = np.maximum.reduceat(np.abs(rows.nodes), rows.starts) * abs(tilt * step)
    errors = _UNIT * (32 + 8 * largest)
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


def _payoff(gap: FloatArray, mu: float, tilt: float) -> FloatArray:
    r"""Bound :math:`e^{t g - K(t)} \delta_\mu(g)` from above, for each gap g.

    Here :math:`\delta_\mu(g) = E[(1 - e^{g - Z})_+]` over the Gaussian loss Z with
    cumulant K; the product lies in [0, 1/(1 + t)]. With
    :math:`a = \mu/2 - |g|/\mu` and the scaled complementary error function,

    .. math:: \delta_\mu(|g|) = \tfrac12 e^{-a^2/2}
       (\mathrm{erfcx}(-a/\sqrt2) - \mathrm{erfcx}((\mu - a)/\sqrt2)),

    and :math:`\delta_\mu(-g) = 1 - e^{-g} + e^{-g} \delta_\mu(g)`.
    """
    below = np.minimum(gap, 0.0)
    if mu == 0:
        return -np.exp(tilt * below) * np.expm1(below)
    size = np.abs(gap)
    exponent = tilt * gap - gaussian_cumulant(mu, tilt)
    a = mu / 2 - size / mu
    capped = np.minimum(a, 7.0)  # beyond, delta exceeds 1 - 1e-11 and 1 is used
    first = erfcx(capped / -math.sqrt(2))
    second = erfcx((mu - capped) / math.sqrt(2))
    gauss = (first - second + 256 * _UNIT * (first + second)) / 2
    gauss = np.where(a > 7.0, 1.0, gauss)
    inner = np.where(a > 7.0, 0.0, a * a / 2)
    log_size = np.abs(exponent) + (mu / 2 + size / mu) ** 2 + size
    value = gauss * np.exp(exponent + below - inner)
    value -= np.exp(exponent) * np.expm1(below)
    value *= 1 + 8 * _UNIT * log_size
    return value
