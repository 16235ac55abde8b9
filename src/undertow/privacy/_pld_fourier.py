r"""Certified composition of privacy losses by a tilted Fourier transform.

A part is a dominating pair (P, Q) seen through its loss :math:`L = \ln(dP/dQ)` under P.
Gaussian parts merge in closed form and never meet the grid. Every other part is put on
the grid :math:`\{j h\}` by *connecting the dots* [1]_: mass p at a loss between two
nodes is split between them so that both its P-mass and its Q-mass :math:`p e^{-L}`
survive. The hockey-stick curve of the result is the chord of the original at the nodes,
hence above it: the discretised pair dominates.

The law of the composed loss is computed after an exponential (Esscher) tilt
:math:`p_t(l) \propto p(l) e^{tl}` that moves its bulk to the losses which decide the
answer, so that rounding is relative to delta and not to 1. The result is an upper
bound: every source of error is bounded and added. Where to look (tilt, grid, window)
decides how tight an answer is, never whether it is an upper bound.

=============================== =====================================================
source                          how it is kept on the safe side
=============================== =====================================================
losses off the grid             connected dots dominate
losses below the window         Chernoff bound of the tilted mass, added
losses above the window         Chernoff bound of the mass itself, added
wrap-around into the window     only adds mass
rounding of the transforms      at most `error` a node (`_transform_error`), added
rounding of masses, cumulants   factor ``1 + slack``
Gaussian parts                  in closed form, never on the grid
=============================== =====================================================

References
----------
.. [1] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, *Connect the Dots:
   Tighter Discrete Approximations of Privacy Loss Distributions*, PoPETs 2022(4).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from undertow.errors import SearchError
from undertow.numeric.array import Floats
from undertow.numeric.exact import round_up
from undertow.numeric.rounding import HANDFUL, UNIT, nudge_up
from undertow.numeric.search import bisect, golden_section

IntArray = NDArray[np.int64]

_MOST_LATTICE_LOSSES = 256
_WIDEST_RATIO = 2.0**53
_FINEST_LATTICE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """One direction of a discrete pair: P-masses at finite losses, and at infinity.

    `largest` is the largest finite loss; the floats in `losses` are rounded up.
    """

    losses: Floats
    masses: Floats
    infinity: Fraction
    largest: Fraction


@dataclass(frozen=True, slots=True)
class GaussianPart:
    """The pair N(mu, 1) against N(0, 1)."""

    mu: float


@dataclass(frozen=True, slots=True)
class LaplacePart:
    """Laplace noise of scale 1 shifted by `largest`; `epsilon` is that rounded up."""

    epsilon: float
    largest: Fraction


@dataclass(frozen=True, slots=True)
class AtomicPart:
    """A discrete pair; `key` says which, so that equal parts are composed once."""

    key: tuple[str | float | bytes | Fraction, ...]
    forward: Atoms = field(compare=False, repr=False)
    backward: Atoms = field(compare=False, repr=False)
    symmetric: bool = field(compare=False, repr=False)


Part = GaussianPart | LaplacePart | AtomicPart


@dataclass(frozen=True, slots=True)
class Composition:
    """All parts of one direction as flat arrays.

    Attributes
    ----------
    mu : float
        The Gaussian parts merged, rounded up.
    laplace, laplace_counts : ndarray
        Parameters of the Laplace parts and how often each occurs.
    losses, masses, starts, counts : ndarray
        The atomic parts end to end, where each begins, and how often it occurs.
    infinity : Fraction
        P-mass of infinite loss of the whole composition, rounded up where several
        parts have one.
    largest : Fraction
        The largest finite loss of the gridded parts together.
    """

    mu: float
    laplace: Floats
    laplace_counts: Floats
    losses: Floats
    masses: Floats
    starts: IntArray
    counts: Floats
    infinity: Fraction
    largest: Fraction

    @property
    def on_grid(self) -> bool:
        """Whether any part is not Gaussian."""
        return bool(self.laplace.size or self.counts.size)

    @property
    def size(self) -> float:
        """How many parts meet the grid, with repetition."""
        return float(self.laplace_counts.sum() + self.counts.sum())

    def cumulant(self, tilt: float) -> float:
        r"""Return :math:`\ln E[e^{tL}]` of the non-Gaussian parts. O(atoms)."""
        total = 0.0
        if self.laplace.size:
            total += float(self.laplace_counts @ _laplace_cumulant(self.laplace, tilt))
        if self.counts.size:
            lengths = np.diff(self.starts, append=self.losses.size)
            exponents = np.where(self.masses > 0, tilt * self.losses, -np.inf)
            shift = np.maximum.reduceat(exponents, self.starts)
            terms = self.masses * np.exp(exponents - np.repeat(shift, lengths))
            logs = shift + np.log(np.add.reduceat(terms, self.starts))
            total += float(self.counts @ logs)
        return total

    def total_cumulant(self, tilt: float) -> float:
        """Return the cumulant with the Gaussian parts."""
        return self.cumulant(tilt) + gaussian_cumulant(self.mu, tilt)

    def reach(self) -> float:
        """Return the largest absolute finite loss of a single gridded part."""
        largest = float(self.laplace.max(initial=0.0))
        return max(largest, float(np.abs(self.losses).max(initial=0.0)))

    def bounds(self) -> tuple[float, float]:
        """Return about the smallest and largest finite loss of the gridded parts."""
        low = -float(self.laplace @ self.laplace_counts)
        if self.counts.size:
            low += float(np.minimum.reduceat(self.losses, self.starts) @ self.counts)
        return low, float(self.largest)

    def spread(self, step: float) -> float:
        r"""Bound the variance that connecting the dots adds.

        Each part adds at most :math:`h^2/4`, and at most :math:`h E|L|`.
        """
        quarter = step * step / 4
        added = np.minimum(quarter, step * self.laplace) @ self.laplace_counts
        if self.counts.size:
            size = np.add.reduceat(self.masses * np.abs(self.losses), self.starts)
            added += np.minimum(quarter, step * size) @ self.counts
        return float(added)

    def lattice(self) -> float:
        """Return a step of which every loss is a multiple, or 0 if none is plain."""
        sizes = np.unique(np.abs(self.losses[self.losses != 0]))
        if self.laplace.size or not 0 < sizes.size <= _MOST_LATTICE_LOSSES:
            return 0.0
        with np.errstate(over="ignore"):
            ratios = sizes / sizes[0]
        if ratios[-1] > _WIDEST_RATIO:
            return 0.0
        for divisor in range(1, _FINEST_LATTICE + 1):
            multiples = ratios * divisor
            if np.all(np.abs(multiples - np.rint(multiples)) <= 1e-12 * multiples):
                return float(sizes[0] / divisor)
        return 0.0


def gaussian_cumulant(mu: float, tilt: float) -> float:
    """Return the cumulant of the Gaussian loss N(mu^2/2, mu^2)."""
    return 0.5 * mu * mu * tilt * (1 + tilt)


def _laplace_cumulant(epsilon: Floats, tilt: float) -> Floats:
    # E e^{tL} = e^{-eps/2} (cosh(k eps) + sinh(k eps) / (2k)) with k = t + 1/2.
    slope = max(abs(tilt + 0.5), 1e-12)
    decay = -np.expm1(-2 * slope * epsilon)  # 1 - e^{-2 k eps}
    bracket: Floats = np.log1p(-decay / 2 + decay / (4 * slope))
    return slope * epsilon - epsilon / 2 + bracket


def gather(parts: Sequence[tuple[Part, int]], *, reverse: bool) -> Composition:
    """Flatten the parts of one direction. O(total number of atoms)."""
    laplace = [(p, n) for p, n in parts if isinstance(p, LaplacePart)]
    atomic = [
        (p.backward if reverse else p.forward, n)
        for p, n in parts
        if isinstance(p, AtomicPart)
    ]
    sizes = np.array([a.losses.size for a, _ in atomic], dtype=np.int64)
    return Composition(
        mu=_merged_mu(parts),
        laplace=np.array([p.epsilon for p, _ in laplace], dtype=np.float64),
        laplace_counts=np.array([n for _, n in laplace], dtype=np.float64),
        losses=np.concatenate([np.empty(0), *(a.losses for a, _ in atomic)]),
        masses=np.concatenate([np.empty(0), *(a.masses for a, _ in atomic)]),
        starts=np.cumsum(sizes) - sizes,
        counts=np.array([n for _, n in atomic], dtype=np.float64),
        infinity=_merged_infinity([(a.infinity, n) for a, n in atomic if a.infinity]),
        largest=sum((n * p.largest for p, n in laplace), Fraction(0))
        + sum((n * a.largest for a, n in atomic), Fraction(0)),
    )


def _merged_infinity(masses: Sequence[tuple[Fraction, int]]) -> Fraction:
    if any(round_up(mass) >= 1 for mass, _ in masses):
        return Fraction(1)
    if not masses or (len(masses) == 1 and masses[0][1] == 1):
        return masses[0][0] if masses else Fraction(0)
    logs = math.fsum(n * math.log1p(-round_up(mass)) for mass, n in masses)
    return min(Fraction(1), Fraction(-math.expm1(logs) * (1 + HANDFUL)))


def _merged_mu(parts: Sequence[tuple[Part, int]]) -> float:
    gaussian = [(p.mu, n) for p, n in parts if isinstance(p, GaussianPart)]
    unit = max((mu for mu, _ in gaussian), default=0.0)
    if not unit:
        return 0.0
    # In units of the largest, so that no square that matters underflows. Four
    # roundings a term, halved by the root, and three more: below 6 units.
    root = math.sqrt(math.fsum(n * (mu / unit) ** 2 for mu, n in gaussian))
    return nudge_up(unit * root * (1 + 8 * UNIT))


@dataclass(frozen=True, slots=True)
class Rows:
    """Some parts on the grid, end to end: mass `masses[a]` at node `nodes[a]`."""

    nodes: IntArray
    masses: Floats
    starts: IntArray
    counts: Floats

    def ends(self) -> tuple[int, int]:
        """Return the lowest and highest node that all rows together can reach."""
        outer = np.iinfo(np.int64).max
        lows = np.where(self.masses > 0, self.nodes, outer)
        highs = np.where(self.masses > 0, self.nodes, -outer)
        return (
            self._sum(np.minimum.reduceat(lows, self.starts)),
            self._sum(np.maximum.reduceat(highs, self.starts)),
        )

    def _sum(self, nodes: IntArray) -> int:
        pairs = zip(nodes.tolist(), self.counts.tolist(), strict=True)
        return sum(node * int(count) for node, count in pairs)


def grid_rows(composition: Composition, step: float, *, budget: int) -> Iterator[Rows]:
    """Yield the connected dots of the parts, a bounded number of rows at a time.

    Parameters
    ----------
    composition : Composition
        One direction.
    step : float
        Grid step; its multiples up to the reach must be exact floats.
    budget : int
        Rows times the longest row stay near this many entries.

    Notes
    -----
    O(nodes) time. Every mass has a relative error of a few units in the last place.
    """
    epsilon, counts = composition.laplace, composition.laplace_counts
    longest = int(2 * float(epsilon.max(initial=0.0)) / step) + 3
    rows = max(1, budget // longest)
    for first in range(0, epsilon.size, rows):
        part = slice(first, first + rows)
        yield _laplace_rows(epsilon[part], counts[part], step)
    if composition.counts.size:
        yield from _atomic_rows(composition, step, budget)


def _atomic_rows(composition: Composition, step: float, budget: int) -> Iterator[Rows]:
    starts, counts = composition.starts, composition.counts
    stops = np.append(starts[1:], composition.losses.size)
    rows = max(1, budget // int(2 * (stops - starts).max()))
    for first in range(0, counts.size, rows):
        last = min(first + rows, counts.size)
        part = slice(int(starts[first]), int(stops[last - 1]))
        below, offset = _cells(composition.losses[part], step)
        masses = composition.masses[part]
        up = np.expm1(-offset) / math.expm1(-step)
        down = np.exp(-offset) * np.expm1(offset - step) / math.expm1(-step)
        yield Rows(
            nodes=np.stack([below, below + 1], axis=1).ravel(),
            masses=np.stack([masses * down, masses * up], axis=1).ravel(),
            starts=2 * (starts[first:last] - starts[first]),
            counts=counts[first:last],
        )


def _cells(losses: Floats, step: float) -> tuple[IntArray, Floats]:
    """Return the node at or below each loss, and the exact way up from it."""
    node = np.floor(losses / step)
    node -= losses - node * step < 0  # the quotient may have been rounded up
    node += losses - node * step >= step
    return node.astype(np.int64), losses - node * step


def _laplace_rows(epsilon: Floats, counts: Floats, step: float) -> Rows:
    # Density e^{(L - eps)/2} / 4 on (-eps, eps), mass 1/2 at eps, e^{-eps}/2 at -eps.
    # A node inside gets e^{(L - eps)/2} tanh(h/4); node -j gets e^{-jh} times node j.
    inner, offset = _cells(epsilon, step)
    sizes = 2 * inner + 3
    starts = np.cumsum(sizes) - sizes
    nodes = np.arange(int(sizes.sum())) - np.repeat(starts + inner + 1, sizes)
    masses = np.exp((nodes * step - np.repeat(epsilon, sizes)) / 2)
    masses *= math.tanh(step / 4)
    top, last = _laplace_ends(offset, step)
    last = last + np.where(inner > 0, math.tanh(step / 4) * np.exp(-offset / 2) / 2, 0)
    masses[starts + sizes - 1] = top
    masses[starts] = top * np.exp(-(inner + 1) * step)
    masses[starts + sizes - 2] = last
    masses[starts + 1] = last * np.exp(-inner * step)
    middle = starts[inner == 0] + 1  # both half cells meet in the node 0
    masses[middle] *= 2
    return Rows(nodes=nodes, masses=masses, starts=starts, counts=counts)


def _laplace_ends(offset: Floats, step: float) -> tuple[Floats, Floats]:
    """Return the masses that the last, partial cell and its atom give to its nodes."""
    half = -np.expm1(-offset / 2)
    atom = -np.exp(-offset) * np.expm1(offset - step)
    smooth = -np.exp(-offset / 2) * half * np.expm1(offset / 2 - step)
    whole = -math.expm1(-step)
    return half / whole, (atom + smooth) / (2 * whole)


_LOG_OUTSIDE = 33.0  # the window leaves about e^-33 of the tilted law outside
_FEWEST_ALONE, _FEWEST, _MOST, _MOST_LATTICE = 1 << 15, 1 << 13, 1 << 22, 1 << 18
_ROW = 1 << 19
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
    found = golden_section(
        lambda s: objective(math.exp(s)), math.log(low), math.log(high), width=0.05
    )
    return math.exp((found.low + found.high) / 2)


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
    finest = bisect(
        lambda s: composition.spread(math.exp(s)) <= most,
        inside=-80.0,
        outside=10.0,
        rounds=40,
    )
    different = composition.laplace.size + composition.counts.size
    fewest = max(_FEWEST, _FEWEST_ALONE // different)
    return min(math.exp(finest), width / fewest, 1 / tilt)


def _short(step: float, reach: float) -> float:
    """Round a step so that its multiples up to twice the reach are exact floats."""
    bits = 50 - math.ceil(math.log2(reach / step + 8))
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(math.ldexp(mantissa, bits)), exponent - bits)


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

    def add(self, rows: Rows, plan: Plan) -> Floats:
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
    rounding = 16 * UNIT * math.fsum(map(abs, terms))
    return math.exp(min(math.fsum(terms) + rounding, 0.0))


def _transform_error(size: int) -> float:
    r"""Bound the error of a transform of a vector of 1-norm 1 by :math:`8u \log_2 N`.

    Each output is a sum over the inputs along at most :math:`\log_2 N` radix-2 passes,
    and a pass costs one twiddle, one complex product and one sum, below :math:`5u`.
    """
    return 8 * UNIT * math.log2(size)


def _tilt(rows: Rows, step: float, tilt: float) -> tuple[Floats, Floats, Floats]:
    """Return the rows tilted and normalised, their cumulants and relative errors."""
    lengths = np.diff(rows.starts, append=rows.nodes.size)
    exponents = np.where(rows.masses > 0, (tilt * step) * rows.nodes, -np.inf)
    shift = np.maximum.reduceat(exponents, rows.starts)
    terms = rows.masses * np.exp(exponents - np.repeat(shift, lengths))
    sums = np.add.reduceat(terms, rows.starts)
    reach = np.maximum.reduceat(np.abs(rows.nodes), rows.starts) * step
    # Masses are exponentials of losses, tilted ones of losses times the tilt.
    errors = UNIT * (32 + 8 * reach * (1 + abs(tilt)))
    return terms / np.repeat(sums, lengths), shift + np.log(sums), errors


def _multiply(
    spectrum: NDArray[np.complex128], rows: Rows, tilted: Floats, size: int
) -> float:
    """Multiply the spectra of the rows into `spectrum`, in blocks.

    Returns the error this may cause in an entry of the inverse transform: all factors
    have modulus at most 1, so errors of factors add.
    """
    from scipy.fft import rfft  # slow to import

    stops = np.append(rows.starts[1:], rows.nodes.size)
    height = max(1, _BLOCK // size)
    once = _transform_error(size) + 4 * UNIT
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


_UNDERFLOW = 1e-290
# Deviations of a Gaussian loss at which its tail has no mass in floats.
_FAR = 1e100


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
    losses: Floats
    weights: Floats
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
        slack = self.slack + 16 * UNIT * (1000 + size)
        logarithm = math.log(inside + _UNDERFLOW) + self.log_mass + gauss
        finite = math.exp(min(logarithm - self.tilt * epsilon + slack, 0.0))
        total = (finite + self.above + self.infinity) * (1 + 8 * UNIT)
        return min(1.0, max(total, sys.float_info.min))


def smallest_epsilon(
    law: TiltedLaw, delta: float, *, guess: float, most: float
) -> float:
    """Return an epsilon whose certified delta is at most `delta`, nearly the least.

    About ten evaluations of :meth:`TiltedLaw.delta`; `most` is an epsilon known to be
    enough, or infinite.
    """

    def excess(epsilon: float) -> float:
        found = law.delta(epsilon)
        distance = math.log(found) - math.log(delta)
        # Logarithms of neighbouring floats may coincide; the sign must not.
        return min(distance, 0.0) if found <= delta else max(distance, UNIT)

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


def _payoff(gap: Floats, mu: float, tilt: float) -> Floats:
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
    # Far beyond the Gaussian loss its share is 0, and no square may leave the floats.
    size = np.minimum(np.abs(gap), mu * _FAR)
    exponent = tilt * gap - gaussian_cumulant(mu, tilt)
    a = mu / 2 - size / mu
    capped = np.minimum(a, 7.0)  # beyond, delta exceeds 1 - 1e-11 and 1 is used
    first = erfcx(capped / -math.sqrt(2))
    second = erfcx((mu - capped) / math.sqrt(2))
    gauss = (first - second + 256 * UNIT * (first + second)) / 2
    gauss = np.where(a > 7.0, 1.0, gauss)
    inner = np.where(a > 7.0, 0.0, a * a / 2)
    # The tail loses digits to its square; what is lost without a tail does not.
    plain = 8 * UNIT * (np.abs(exponent) + size)
    square = 8 * UNIT * (mu / 2 + size / mu) ** 2
    value = gauss * np.exp(exponent + below - inner) * (1 + plain + square)
    # Above zero the second term vanishes, and its factor may pass the floats.
    rest = np.exp(np.where(gap < 0, exponent, 0.0)) * np.expm1(below)
    value -= rest * (1 + plain)
    return value
