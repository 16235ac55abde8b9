r"""A channel under a threat, reduced to sums over the possible records.

Between neighbouring answers every Laplace density is :math:`e^{\pm\theta/b}` times a
constant, so gains on a cell are fixed by those at the answers; Gaussian gains are
written on the distinct answers. Records of no probability take no part, but may be
guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.risk._finite import WORK_LIMIT
from undertow.risk._sets import HitSets
from undertow.risk.scalar.breakpoints import fold_cells
from undertow.risk.scalar.enclosure import Enclosure, enclose
from undertow.risk.scalar.known import enclose_known
from undertow.risk.scalar.laws import ScalarLaw
from undertow.risk.scalar.source import ScalarChannel
from undertow.risk.threat import Threat

__all__ = ["Problem", "Setting"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_UNIT = 2.0**-53
# Narrower cells hold nothing that the margin does not cover.
_NARROWEST = 1e-290
# Entries of the arrays held at a time.
_ENTRIES = 1 << 21


@dataclass(frozen=True, slots=True)
class _Fibre:
    """Possible records that share what is known, and the sets that guesses hit."""

    records: NDArray[np.intp]
    sets: HitSets
    silent: NDArray[np.intp]  # sets whose gains cancel
    declines: bool

    @property
    def asks(self) -> bool:
        """Whether the target may be both hit and missed."""
        hit = self.sets.sizes > 0
        return bool(hit.any()) and (self.declines or not hit.all())

    def sums(self, weights: Floats) -> Floats:
        """Add a column of weights over each set: shape (columns, guesses)."""
        sums = self.sets.sums(weights[self.records])
        if self.silent.size:
            sums[self.silent] = 0.0
        if self.declines:
            sums = np.concatenate([sums, np.zeros((1, sums.shape[1]))])
        return np.ascontiguousarray(sums.T)


@dataclass(frozen=True, slots=True)
class Setting:
    """A threat, reduced to the possible records.

    Parameters
    ----------
    possible : ndarray of bool
        Which records have positive probability.
    pmf : ndarray
        Their probabilities.
    fibres : tuple
        Those that share what is known, with the sets that guesses hit.
    centred : bool
        Whether gains over the prior are summed, or the success itself.
    """

    possible: NDArray[np.bool_]
    pmf: Floats
    fibres: tuple[_Fibre, ...]
    centred: bool

    @classmethod
    def of(cls, threat: Threat, *, centred: bool) -> Setting:
        """Read a threat."""
        possible = threat.prior.pmf > 0
        number = np.cumsum(possible) - 1
        kept = [f[possible[f]] for f in threat.fibres]
        kept = [f for f in kept if len(f)]
        sets = threat.success.sets(threat.support, kept)
        whole = centred and len(kept) == 1
        fibres = tuple(
            _Fibre(number[f], s, np.flatnonzero(s.full & whole), threat.abstain)
            for f, s in zip(kept, sets, strict=True)
        )
        return cls(possible, threat.prior.pmf[possible], fibres, centred)

    @property
    def idle(self) -> bool:
        """Whether all guesses gain nothing: each hits every record, or none."""
        if not self.centred or len(self.fibres) > 1:
            return False
        sets = self.fibres[0].sets
        return bool((sets.full | (sets.sizes == 0)).all())


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring places under one of the laws; rays leave from some of them."""

    law: int
    edges: Floats
    rays: tuple[int, ...]


class Problem:
    """Scalar channels on the same answers, in a setting.

    Parameters
    ----------
    channels : sequence of ScalarChannel
        Mechanisms, such as one at many scales; answers as of the first.
    setting : Setting
        Prior, hit sets and what is summed.

    Raises
    ------
    NotApplicable
        If the sums over guesses would take more than minutes.
    """

    __slots__ = ("answers", "laws", "setting")

    def __init__(self, channels: Sequence[ScalarChannel], setting: Setting) -> None:
        self.laws, self.setting = [c.law for c in channels], setting
        self.answers: Floats = channels[0].answers[setting.possible]
        sets = sum(f.sets.work + len(f.sets.sizes) for f in setting.fibres)
        work = 4.0 * sets * len(np.unique(self.answers)) * len(channels)
        if work > WORK_LIMIT / 100:
            raise NotApplicable(
                f"the scalar engine must need at most {WORK_LIMIT / 100:.0e} "
                f"additions, got {work:.1e}; merge answers, or use the bound by total "
                "variation, which needs no integral."
            )

    def solve(self, tolerance: float) -> list[Enclosure]:
        """Enclose the integral of the best guesses for each law, rounding included."""
        setting = self.setting
        if setting.idle or (setting.centred and np.ptp(self.answers) == 0):
            return [Enclosure(0.0, 0.0)] * len(self.laws)
        if all(law.family == "laplace" for law in self.laws):
            found = self._fold_laplace()
        else:
            found = [self._fold_gaussian(law, tolerance) for law in self.laws]
        # Sums over n records of at most unit mass, in prefix form, and exponentials.
        margin = (16 * len(setting.pmf) + 256) * _UNIT
        return [Enclosure(f.lower - margin, f.upper + margin) for f in found]

    def _centre(self, laws: Floats) -> Floats:
        """Return pi_x (p - mean p), or pi_x p for success."""
        pmf = self.setting.pmf
        if self.setting.centred:
            laws = laws - pmf @ laws
        return np.asarray(pmf[:, None] * laws)

    def _fold_laplace(self) -> list[Enclosure]:
        totals = [self._atoms(law) for law in self.laws]
        value, shortfall = np.array(totals), np.zeros(len(totals))
        sets = [len(f.sets.sizes) for f in self.setting.fibres]
        step = max(1, _ENTRIES // max([len(self.answers), *sets]))
        batch: list[_Block] = []
        for block in self._blocks(step):
            if sum(len(b.edges) for b in batch) + len(block.edges) > step + 1:
                self._fold_batch(batch, value, shortfall)
                batch = []
            batch.append(block)
        self._fold_batch(batch, value, shortfall)
        pairs = zip(value.tolist(), shortfall.tolist(), strict=True)
        return [Enclosure(v, v + lost) for v, lost in pairs]

    def _atoms(self, law: ScalarLaw) -> float:
        columns = self._centre(law.atoms(self.answers))
        tops = [f.sums(columns).max(axis=1).sum() for f in self.setting.fibres]
        return math.fsum(tops) if columns.size else 0.0

    def _blocks(self, step: int) -> Iterator[_Block]:
        """Cut the line at the answers and the ends of the interval."""
        for number, law in enumerate(self.laws):
            inside = (self.answers > law.low) & (self.answers < law.high)
            ends = np.concatenate([self.answers[inside], [law.low, law.high]])
            edges = np.unique(ends[np.isfinite(ends)])
            for start in range(0, max(1, len(edges) - 1), step):
                part = edges[start : start + step + 1]
                first = (0,) if start == 0 else ()
                last = (len(part) - 1,) if start + step >= len(edges) - 1 else ()
                yield _Block(number, part, first + last if law.kind == "plain" else ())

    def _fold_batch(
        self, batch: list[_Block], value: Floats, shortfall: Floats
    ) -> None:
        """Integrate over cells that no answer lies inside of, and over the rays.

        Beyond the outermost answers all ratios are constant: a ray has the gain at its
        end times b, and is there for plain noise only.
        """
        sizes = [len(block.edges) for block in batch]
        offsets = np.cumsum([0, *sizes])
        owner = np.repeat([block.law for block in batch], sizes)
        edges = np.concatenate([block.edges for block in batch])
        scales = np.array([law.scale for law in self.laws])[owner]
        rows = np.delete(np.arange(len(edges)), offsets[1:] - 1)
        pairs = zip(batch, offsets[:-1], strict=True)
        rays = np.array([o + k for b, o in pairs for k in b.rays], dtype=np.intp)
        gains = self._centre(self._laws_at(edges, scales, owner))
        widths = (edges[rows + 1] - edges[rows]) / scales[rows]
        rows, widths = rows[widths > _NARROWEST], widths[widths > _NARROWEST]
        for fibre in self.setting.fibres:
            values = fibre.sums(gains)
            found, lost = fold_cells(values, rows, widths)
            np.add.at(value, owner[rows], found)
            np.add.at(value, owner[rays], values[rays].max(axis=1))
            np.add.at(shortfall, owner[rows], lost)

    def _laws_at(self, edges: Floats, scales: Floats, owner: Indices) -> Floats:
        """Return the Laplace densities at the edges, per unit of the scale."""
        laws = np.abs(edges - self.answers[:, None])
        laws /= -scales
        np.exp(laws, out=laws)
        laws /= 2
        if any(law.kind == "truncated" for law in self.laws):
            weights = np.stack([law.weights(self.answers) for law in self.laws], axis=1)
            laws *= weights[:, owner]
        return laws

    def _fold_gaussian(self, law: ScalarLaw, tolerance: float) -> Enclosure:
        """Enclose fibre by fibre, the gains written on the distinct answers."""
        centres, place = np.unique(self.answers, return_inverse=True)
        laws = np.zeros((len(self.answers), len(centres)))
        laws[np.arange(len(place)), place.reshape(-1)] = 1.0
        weights, parts = self._centre(laws), []
        fibres = self.setting.fibres
        known = [f for f in fibres if len(f.records) == 1]
        if known and law.kind != "truncated":
            found = self._fold_known(known, law)
            # Otherwise answers too close for the roots go the general way.
            if found.upper - found.lower <= tolerance / 2:
                fibres = tuple(f for f in fibres if len(f.records) > 1)
                tolerance /= 2
                parts.append(found)
        for fibre in fibres:
            share = min(1.0, float(self.setting.pmf[fibre.records].sum()))
            gains = fibre.sums(weights).T
            parts.append(enclose(gains, centres, law, tolerance=tolerance * share))
        return Enclosure(
            math.fsum(part.lower for part in parts),
            math.fsum(part.upper for part in parts),
        )

    def _fold_known(self, fibres: Sequence[_Fibre], law: ScalarLaw) -> Enclosure:
        """Enclose the part of the records that are known."""
        pmf = self.setting.pmf
        if not self.setting.centred:
            # The known record is named, whatever the output.
            hit = [f.records[0] for f in fibres if (f.sets.sizes > 0).any()]
            sure = math.fsum(pmf[hit].tolist())
            return Enclosure(sure, sure)
        records = np.array([f.records[0] for f in fibres if f.asks], dtype=np.intp)
        centres, place = np.unique(self.answers, return_inverse=True)
        place, size = place.reshape(-1), len(centres)
        weights, masses = np.zeros(size), np.zeros(size)
        np.add.at(weights, place[records], pmf[records])
        np.add.at(masses, place, pmf)
        return enclose_known(weights, masses, centres, law)
