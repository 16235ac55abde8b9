r"""Privacy losses of single parts, their cumulants, and their laws on a grid.

A part is a dominating pair (P, Q) seen through its loss
:math:`L = \ln(dP/dQ)` under P. Gaussian parts merge in closed form and never meet the
grid. Every other part is put on the grid :math:`\{j h\}` by *connecting the dots*
[1]_: mass p at a loss between two nodes is split between them so that both its P-mass
and its Q-mass :math:`p e^{-L}` survive. The hockey-stick curve of the result is the
chord of the original at the nodes, hence above it: the discretised pair dominates.

References
----------
.. [1] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, *Connect the Dots:
   Tighter Discrete Approximations of Privacy Loss Distributions*, PoPETs 2022(4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import nudge_up
from undertow.privacy.exact import round_up

__all__ = [
    "AtomicPart",
    "Atoms",
    "Composition",
    "FloatArray",
    "GaussianPart",
    "LaplacePart",
    "Part",
    "Rows",
    "gather",
    "grid_rows",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST_LATTICE_LOSSES = 256
_WIDEST_RATIO = 2.0**53
_FINEST_LATTICE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """One direction of a discrete pair: P-masses at finite losses, and at infinity.

    `largest` is the largest finite loss; the floats in `losses` are rounded up.
    """

    losses: FloatArray
    masses: FloatArray
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
    laplace: FloatArray
    laplace_counts: FloatArray
    losses: FloatArray
    masses: FloatArray
    starts: IntArray
    counts: FloatArray
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


def _laplace_cumulant(epsilon: FloatArray, tilt: float) -> FloatArray:
    # E e^{tL} = e^{-eps/2} (cosh(k eps) + sinh(k eps) / (2k)) with k = t + 1/2.
    slope = max(abs(tilt + 0.5), 1e-12)
    decay = -np.expm1(-2 * slope * epsilon)  # 1 - e^{-2 k eps}
    bracket: FloatArray = np.log1p(-decay / 2 + decay / (4 * slope))
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
    return min(Fraction(1), Fraction(-math.expm1(logs) * (1 + 2.0**-48)))


def _merged_mu(parts: Sequence[tuple[Part, int]]) -> float:
    gaussian = [(p.mu, n) for p, n in parts if isinstance(p, GaussianPart)]
    unit = max((mu for mu, _ in gaussian), default=0.0)
    if not unit:
        return 0.0
    # In units of the largest, so that no square that matters underflows. Four
    # roundings a term, halved by the root, and three more: below 6 units.
    root = math.sqrt(math.fsum(n * (mu / unit) ** 2 for mu, n in gaussian))
    return nudge_up(unit * root * (1 + 8 * 2.0**-53))


@dataclass(frozen=True, slots=True)
class Rows:
    """Some parts on the grid, end to end: mass `masses[a]` at node `nodes[a]`."""

    nodes: IntArray
    masses: FloatArray
    starts: IntArray
    counts: FloatArray

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


def _cells(losses: FloatArray, step: float) -> tuple[IntArray, FloatArray]:
    """Return the node at or below each loss, and the exact way up from it."""
    node = np.floor(losses / step)
    node -= losses - node * step < 0  # the quotient may have been rounded up
    node += losses - node * step >= step
    return node.astype(np.int64), losses - node * step


def _laplace_rows(epsilon: FloatArray, counts: FloatArray, step: float) -> Rows:
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


def _laplace_ends(offset: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the masses that the last, partial cell and its atom give to its nodes."""
    half = -np.expm1(-offset / 2)
    atom = -np.exp(-offset) * np.expm1(offset - step)
    smooth = -np.exp(-offset / 2) * half * np.expm1(offset / 2 - step)
    whole = -math.expm1(-step)
    return half / whole, (atom + smooth) / (2 * whole)
