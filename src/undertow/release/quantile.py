r"""Histograms and quantiles from noisy counts of public bins.

Quantiles are read off the noisy cumulative counts of a histogram of public candidates:
one release answers all of them, every currency has it, and the answer comes with an
interval of values. The exponential mechanism would choose a single quantile with a
smaller error in rank, but gives no interval, pays for every further quantile, and takes
a time that depends on private scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.release.intervals import IntegerNoise
from undertow.release.job import Aggregates
from undertow.release.measure import Encoding, Estimate, Integers
from undertow.release.sensitivity import Contribution, Reach

__all__ = ["Histogram", "Quantiles"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Histogram(Encoding):
    """Count rows in public bins.

    Parameters
    ----------
    cuts : tuple of Fraction
        The ends of the bins, increasing.
    """

    cuts: tuple[Fraction, ...]
    measures = ("rows",)

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.cuts) - 1

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """The ends of each bin."""
        ends = [_plain(cut) for cut in self.cuts]
        return tuple(pairwise(ends))

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the two ends."""
        return ("from", "to")

    @property
    def note(self) -> str:
        """Where numbers outside go."""
        return "numbers outside the bins are counted in the first or the last one"

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the counts of all bins."""
        return contribution.row_reach()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the counts, one row per cell and one column per bin."""
        counts = [int(k) for k in aggregates.measures["rows"]]
        return np.array(counts, dtype=np.object_).reshape(-1, self.bins)

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return the noisy counts bin by bin, with the quantile of the noise."""
        t = noise.radius(beta)
        return [(int(k), int(k) - t, int(k) + t) for k in noisy.ravel().tolist()]

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the radius of the interval of one count."""
        return float(noise.radius(beta)), "rows"


@dataclass(frozen=True, slots=True)
class Quantiles(Histogram):
    r"""Quantiles of a number, to the resolution of public candidates.

    Parameters
    ----------
    cuts : tuple of Fraction
        The candidates, increasing.
    quantiles : tuple of Fraction
        Which quantiles, each in (0, 1).

    Notes
    -----
    With the counts :math:`h_k` of the bins, the q-quantile lies in the first bin i with
    :math:`D_i = (1-q)\sum_{k\le i} h_k - q\sum_{k>i} h_k \ge 0`. The hypothesis that it
    lies in bin i is refused if the noisy :math:`D_i` is below :math:`-t_i` or the noisy
    :math:`D_{i-1}` above :math:`t_{i-1}`, where the noise in :math:`D_i` passes
    :math:`t_i` with probability at most beta / 2. The bin of the quantile is refused
    with probability at most beta, so the hull of the bins that are not refused is an
    interval. No union over bins is needed. See the page *Release quantiles*.
    """

    quantiles: tuple[Fraction, ...] = (Fraction(1, 2),)

    @property
    def whole(self) -> bool:
        """Whether estimates are whole numbers; they lie between candidates."""
        return False

    @property
    def non_negative(self) -> bool:
        """Whether the truth cannot be negative."""
        return self.cuts[0] >= 0

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """The quantiles."""
        return tuple((float(q),) for q in self.quantiles)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The name of the column that says which quantile."""
        return ("quantile",)

    @property
    def note(self) -> str:
        """To what the answers refer."""
        return (
            "quantiles are found to the bin between two candidates; numbers outside "
            "count in the first or the last bin"
        )

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return each quantile of each cell with an interval of values."""
        counts = noisy.astype(np.float64)
        columns = [
            self._quantile(counts, q, noise=noise, beta=beta) for q in self.quantiles
        ]
        return [found for cell in zip(*columns, strict=True) for found in cell]

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the largest error in rank."""
        widest = max(
            max(self._radii(q, noise=noise, beta=beta)) for q in self.quantiles
        )
        return widest, "rows of rank"

    def _radii(self, q: Fraction, *, noise: IntegerNoise, beta: float) -> list[float]:
        """Return the t of each bin; its noise has two weights only."""
        up, down, bins = float(1 - q), float(q), self.bins
        return [
            noise.sum_radius([up, down], beta / 2, counts=[at + 1, bins - at - 1])
            for at in range(bins)
        ]

    def _quantile(
        self, counts: Array, q: Fraction, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return one quantile of every cell."""
        radii = np.array(self._radii(q, noise=noise, beta=beta))
        gaps = np.cumsum(counts, axis=1) - float(q) * counts.sum(axis=1, keepdims=True)
        # The second term covers the rounding of the sums.
        reach = radii + 1e-12 * np.abs(counts).sum(axis=1, keepdims=True)
        kept = gaps >= -reach
        kept[:, 1:] &= gaps[:, :-1] <= reach[:, :-1]
        kept[~kept.any(axis=1)] = True
        first = np.argmax(kept, axis=1)
        last = self.bins - np.argmax(kept[:, ::-1], axis=1)
        cuts = np.array([float(cut) for cut in self.cuts])
        low, high = cuts[first], cuts[last]
        best = np.clip(self._interpolated(counts, gaps), low, high)
        found = (best.tolist(), low.tolist(), high.tolist())
        return list(zip(*found, strict=True))

    def _interpolated(self, counts: Array, gaps: Array) -> Array:
        """Return where the noisy distance in rank first passes zero."""
        cuts, cells = np.array([float(cut) for cut in self.cuts]), np.arange(len(gaps))
        reached = gaps >= 0
        at = np.where(reached.any(axis=1), np.argmax(reached, axis=1), self.bins - 1)
        inside = counts[cells, at]
        before = gaps[cells, at] - inside
        part = np.where(inside > 0, -before / np.where(inside > 0, inside, 1.0), 0.5)
        return np.asarray(
            cuts[at] + (cuts[at + 1] - cuts[at]) * np.clip(part, 0.0, 1.0)
        )


def _plain(cut: Fraction) -> int | float:
    return int(cut) if cut.denominator == 1 else float(cut)
