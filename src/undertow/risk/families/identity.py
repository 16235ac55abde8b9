r"""The risk of reports that are right for sure, which noisy protocols scale down.

Of the record itself,

.. math:: \sum_x \pi_x \Bigl[\max_{g \ni x} c_z(g) + \sum_{z' \ne z} \max_g c_{z'}(g)
   \Bigr], \qquad c_z(g) = \pi(\text{truths of fibre } z \text{ that } g \text{ misses})

with z the fibre of x: seeing the record, the best guess hits it and little else of its
fibre, and as little as it can of every other one. Of a set that holds the record, and
of an answer without noise, by closed form or by the exact engine.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.mechanisms.local import subset_advantage
from undertow.risk._finite import finite_advantage
from undertow.risk._sets import CellSets, HitSets, RunSets, read_places
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.families.base import CELLS, Structure, closed_view, uniform_prior
from undertow.risk.threat import Threat

__all__ = ["SubsetWeights", "answers_advantage", "identity_advantage"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_UNIT = 2.0**-53
# Records up to which answers are listed; records read by a scan over subset sizes.
_IDENTITY, _SCANNED = 20_000, 20_000_000


def identity_advantage(threat: Threat) -> float:
    """Return the advantage of the best attack if the record is published as it is.

    Parameters
    ----------
    threat : Threat
        Any prior, success rule and knowledge.

    Returns
    -------
    float
        Raised by a bound on its rounding; 0 where all guesses hit the same truths.

    Notes
    -----
    Proved on the page *Calibration in units of risk*, Proposition 3; thesis, Example
    5.4, for exact success. O(m log m) for exact or attribute success and on a line, one
    step per hit otherwise.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> round(identity_advantage(Threat(Prior(3, [0.5, 0.3, 0.2]))), 9)
    0.62
    """
    pmf, fibres = threat.prior.pmf, threat.fibres
    own, most, matters = np.zeros(len(pmf)), np.zeros(len(fibres)), False
    missed = threat.success.missed(threat.support) | threat.abstain
    wide = [z for z, fibre in enumerate(fibres) if len(fibre) > 1]
    for z, fibre in enumerate(fibres):
        if len(fibre) == 1 and missed[fibre[0]]:
            most[z], matters = pmf[fibre[0]], True
    found = threat.success.sets(threat.support, [fibres[z] for z in wide])
    for z, sets in zip(wide, found, strict=True):
        fibre = fibres[z]
        spared = _spared(sets, pmf[fibre])
        own[fibre] = _best_of_each(sets, spared, threat, fibre)
        most[z] = pmf[fibre].sum() if threat.abstain else spared.max()
        partial = ~sets.full & (sets.sizes > 0) if len(fibres) == 1 else ~sets.full
        several = len(fibres) > 1 and threat.abstain
        matters = matters or several or bool(partial.any())
    others = np.maximum(most.sum() - most, 0.0)
    total = float(pmf @ (own + others[threat.labels]))
    margin = (8 * len(pmf) + 64) * _UNIT
    return min(threat.ceiling, total + margin) if matters else 0.0


def _spared(sets: HitSets, pmf: Floats) -> Floats:
    """Return the mass of the fibre that each set leaves out."""
    left = pmf.sum() - sets.sums(pmf[:, None])[:, 0]
    return np.where(sets.full, 0.0, np.maximum(left, 0.0))


def _best_of_each(
    sets: HitSets, spared: Floats, threat: Threat, fibre: Indices
) -> Floats:
    """Return, for each truth of the fibre, the most spared by a set that holds it."""
    if isinstance(sets, CellSets):  # the cell that the truth itself names
        return np.asarray(spared[np.asarray(sets.member)[fibre]], dtype=float)
    if isinstance(sets, RunSets):
        return _best_of_runs(sets, spared, read_places(threat.support)[fibre])
    hits = threat.success.matrix(threat.support)[:, fibre]
    best = np.where(hits, spared[np.asarray(sets.member)][:, None], 0.0).max(axis=0)
    return np.asarray(best, dtype=float)


def _best_of_runs(sets: RunSets, spared: Floats, places: Floats) -> Floats:
    """Slide along the line: runs ordered by one end are ordered by the other."""
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(places))
    ranks[order] = np.arange(len(places))
    kept = np.flatnonzero(sets.sizes > 0)
    sizes = sets.sizes[kept]
    low = np.rint(sets.sums(ranks[:, None])[kept, 0] / sizes - (sizes - 1) / 2.0)
    sequence = np.argsort(low + (low + sizes) * 1e-9, kind="stable")
    low, high = low[sequence], (low + sizes)[sequence]
    at = np.arange(len(places))
    first = np.searchsorted(high, at, side="right")
    last = np.searchsorted(low, at, side="right")
    best = np.empty(len(places))
    best[order] = _range_maxima(spared[kept][sequence], first, last)
    return best


def _range_maxima(values: Floats, first: Indices, last: Indices) -> Floats:
    """Return the largest value in each range [first, last), by doubling windows."""
    found = np.empty(first.shape)
    window, table = 1, values
    while True:
        here = (last - first >= window) & (last - first < 2 * window)
        found[here] = np.maximum(table[first[here]], table[last[here] - window])
        if 2 * window > len(values):
            return found
        table = np.maximum(table[:-window], table[window:])
        window *= 2


def answers_advantage(answers: Floats, threat: Threat) -> float:
    """Return the advantage if the answer of each record is published without noise.

    The ceiling of the threat where it is attained, and for too many records.
    """
    values, place = np.unique(answers, return_inverse=True)
    told = len(values) == len(answers) and closed_view(threat) is not None
    if told or len(answers) > _IDENTITY:
        return threat.ceiling
    step = max(1, CELLS // len(answers))
    plain = ChannelStream(
        lambda: (
            np.equal.outer(place.reshape(-1), np.arange(len(values))[s : s + step])
            * 1.0
            for s in range(0, len(values), step)
        ),
        len(answers),
    )
    return finite_advantage(plain, threat).value


class SubsetWeights:
    """The advantage against sets of each size that hold the truth for sure."""

    def __init__(self, records: int, threat: Threat) -> None:
        self._m, self._threat, self._view = records, threat, closed_view(threat)
        self._known: dict[int, float] = {}

    def __call__(self, sizes: Structure) -> Floats:
        """Return the advantage for each size."""
        m = self._m
        if self._view == "full":
            return np.asarray((m - sizes) / (m - 1) * self._threat.ceiling)
        if self._view == "none" and uniform_prior(self._threat):
            return np.asarray((m - sizes) / (m * sizes))
        kinds = len(np.unique(sizes))
        if kinds * m > _SCANNED:
            raise NotApplicable(
                f"a scan over subset sizes must read at most {_SCANNED} records for a "
                f"prior that is not uniform, got {kinds} sizes of {m}; ask for one "
                "safe level, or use full knowledge, which is never smaller."
            )
        return np.array([self._weight(int(size)) for size in sizes])

    def _weight(self, size: int) -> float:
        if size not in self._known:
            self._known[size] = (
                self._listed(size)
                if self._view is None
                else subset_advantage(
                    self._m, math.inf, subset=size, prior=self._threat.prior.pmf
                )
            )
        return self._known[size]

    def _listed(self, size: int) -> float:
        sets = list(combinations(range(self._m), size))
        laws = np.zeros((self._m, len(sets)))
        for column, members in enumerate(sets):
            laws[list(members), column] = 1.0 / math.comb(self._m - 1, size - 1)
        return finite_advantage(Channel(laws, self._threat.support), self._threat).value
