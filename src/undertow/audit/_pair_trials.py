"""The certifying trials of pairs, in which the simple attack is counted as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from undertow.audit._reading import CELLS
from undertow.audit._trials import Source
from undertow.audit.runner import Counts
from undertow.mechanisms.local import (
    SubsetSelection,
    SummationHistogram,
    UnaryEncoding,
)

__all__ = ["PairTrials"]

# Cells of a support table that a trial may cost on average.
_CELLS_EACH = 16


@dataclass(frozen=True, slots=True)
class PairTrials:
    """Uniform targets, each with another uniform value.

    Counts ``pooled`` by cell on all trials, and ``attack_hits`` of the simple attack on
    the first ``attack_trials`` of them: on all where a report tells the size of its
    support by itself, else on as many as tables of 16 cells a trial pay for.
    """

    source: Source

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        m, reader = self.source.categories, self.source.reader
        targets = rng.integers(m, size=size)
        reports = self.source.draw(targets, rng=rng)
        others = (targets + rng.integers(1, m, size=size)) % m
        cells = reader.cells(reports, targets, others)
        share = self._attacked(size)
        hits = reader.hits(reports[:share], targets[:share], rng=rng)
        return {
            "trials": np.array([size]),
            "pooled": np.bincount(cells, minlength=len(CELLS)),
            "attack_trials": np.array([share]),
            "attack_hits": np.array([np.count_nonzero(hits)]),
        }

    def _attacked(self, size: int) -> int:
        """Return on how many reports the attack is run."""
        protocol = getattr(self.source.reader, "protocol", None)
        sized = UnaryEncoding | SubsetSelection | SummationHistogram
        if protocol is None or isinstance(protocol, sized):
            return size
        return min(size, max(1, size * _CELLS_EACH // self.source.categories))
