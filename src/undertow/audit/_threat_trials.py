"""Trials against a threat: targets of its prior, the guess that gains most, its score.

The guess is the one whose hit set gains most from prior to posterior, within what is
known of the target. The law of the reports serves to choose it and never enters the
certificate.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit._moments import score_counts
from undertow.audit._reading import ValueReader
from undertow.audit._trials import Source
from undertow.audit.runner import Counts
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    SubsetSelection,
    SummationHistogram,
    UnaryEncoding,
)
from undertow.risk.success import HitSets
from undertow.risk.threat import Threat

__all__ = ["ThreatScorer", "ThreatTrials", "report_likelihood"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Entries of a table of which records each set holds; made where it is small.
_TABLE = 1 << 24
# Least share of a likelihood: only what is chosen depends on it.
_LEAST = 1e-290
# Protocols whose law depends on the value only by whether the report supports it.
_SUPPORTED = GeneralizedResponse | LocalHashing | SubsetSelection | UnaryEncoding


def report_likelihood(source: Source, reports: Any, level: float) -> Floats:
    """Return the likelihood of each value as a share of the largest one.

    A subject without a protocol is read as one whose report favours the values that it
    supports by the `level`.
    """
    told = source.reader_given
    if told is None:
        told = getattr(source.subject, "protocol", source.subject)
    if isinstance(told, _SUPPORTED):
        return _favoured(told.support(reports), told.loss().epsilon)
    if isinstance(told, SummationHistogram):
        table = np.asarray(reports, dtype=np.float64)
        rate = float(told.epsilon) / 2.0
        return _shares(rate * (np.abs(table) - np.abs(table - 1.0)))
    if isinstance(told, LocalProtocol):
        values = range(source.categories)
        logs = np.stack([told.log_density(reports, x) for x in values], axis=1)
        return _shares(logs)
    if isinstance(source.reader, ValueReader):
        named = source.reader._read(reports)[:, None] == np.arange(source.categories)
        return _favoured(named, level)
    return _favoured(told.support(reports), level)


def _favoured(table: Any, level: float) -> Floats:
    least = max(_LEAST, math.exp(-level))
    return np.where(np.asarray(table, dtype=bool), 1.0, least)


def _shares(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.maximum(shares, _LEAST))


class _Group:
    """A fibre of several records: its hit sets, their masses, a guess for each."""

    def __init__(
        self, fibre: int, records: NDArray[np.intp], sets: HitSets, pmf: Floats
    ) -> None:
        self.fibre, self.records, self.sets = fibre, records, sets
        self.masses: Floats = sets.sums(pmf[records, None])[:, 0]
        self._guesses = np.unique(sets.member, return_index=True)[1]
        n = len(records)
        small = n * len(self.masses) <= _TABLE
        self._inside = sets.sums(np.eye(n)) > 0.5 if small else None

    def hits(self, top: Ints, targets: Ints, threat: Threat) -> NDArray[np.bool_]:
        """Return whether the guess with each hit set hits the target of its report."""
        if self._inside is not None:
            place = np.searchsorted(self.records, targets)
            return np.asarray(self._inside[top, place])
        guesses = self._guesses[top]
        found = threat.success.hits(threat.support, guesses=guesses, truths=targets)
        return np.asarray(found)


class ThreatScorer:
    """Scores reports of known targets: the hit, less what guessing alone would hit.

    Parameters
    ----------
    threat : Threat
        Prior, success rule and knowledge.
    """

    def __init__(self, threat: Threat) -> None:
        self.threat, self._pmf = threat, threat.prior.pmf
        self._labels, fibres = threat.labels, threat.fibres
        several = [z for z, fibre in enumerate(fibres) if len(fibre) > 1]
        sets = threat.success.sets(threat.support, [fibres[z] for z in several])
        self._groups = [
            _Group(z, fibres[z], found, self._pmf)
            for z, found in zip(several, sets, strict=True)
        ]
        self._single, self._hit, self._miss = self._read_single(fibres)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest score that there is."""
        least, most = 0.0, 0.0
        for group in self._groups:
            least += 0.0 if self.threat.abstain else float(group.masses.min())
            most += float(group.masses.max())
        alone = self._pmf[self._single]
        least += float(alone[self._hit & ~self._miss].sum())
        most += float(alone[self._hit].sum())
        return -min(1.0, most), 1.0 - least

    @property
    def identity(self) -> str:
        """What the scores depend on besides the reports, in a few characters."""
        digest = hashlib.sha256(self._pmf.tobytes() + self._labels.tobytes())
        for part in (self._single, self._hit, self._miss):
            digest.update(part.tobytes())
        for group in self._groups:
            # Sums of weights of no simple ratios tell the sets apart.
            weights = np.sqrt(np.arange(2.0, len(group.records) + 2.0))
            digest.update(np.asarray(group.sets.member, dtype=np.int64).tobytes())
            digest.update(group.sets.sums(weights[:, None]).tobytes())
        return f"{digest.hexdigest()} abstain={self.threat.abstain}"

    def scores(
        self, likelihood: Floats, targets: Ints
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Return whether each guess hits its target, and the score.

        The likelihood of each value is up to a factor of the report alone; positive.
        """
        gains = likelihood * self._pmf
        gains /= gains.sum(axis=1, keepdims=True)
        gains -= self._pmf
        hits, base = self._alone(gains, targets)
        threat = self.threat
        for group in self._groups:
            best = group.sets.sums(gains[:, group.records].T)
            top = best.argmax(axis=0)
            made = (best.max(axis=0) >= 0.0) | (not threat.abstain)
            base += np.where(made, group.masses[top], 0.0)
            own = np.flatnonzero((self._labels[targets] == group.fibre) & made)
            hits[own] = group.hits(top[own], targets[own], threat)
        return hits, hits - base

    def _alone(self, gains: Floats, targets: Ints) -> tuple[NDArray[np.bool_], Floats]:
        """Score the targets of which everything is known: named if they gain."""
        hits = np.zeros(len(targets), dtype=bool)
        if not len(self._single):
            return hits, np.zeros(len(targets))
        named = self._hit & ((gains[:, self._single] > 0.0) | ~self._miss)
        place = np.full(len(self._pmf), -1)
        place[self._single] = np.arange(len(self._single))
        mine = place[targets]
        hits = (mine >= 0) & named[np.arange(len(targets)), mine]
        return hits, named @ self._pmf[self._single]

    def _read_single(
        self, fibres: tuple[NDArray[np.intp], ...]
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the records known in full, and if a guess can hit or miss each."""
        alone = [fibre for fibre in fibres if len(fibre) == 1]
        sets = self.threat.success.sets(self.threat.support, alone)
        records = np.array([fibre[0] for fibre in alone], dtype=np.intp)
        hit = np.array([bool((s.sizes > 0).any()) for s in sets], dtype=bool)
        miss = np.array([bool((s.sizes == 0).any()) for s in sets], dtype=bool)
        return records, hit, miss | self.threat.abstain


class ThreatTrials:
    """One report of each target drawn from the prior.

    Counts ``trials``, ``threat_hits``, and the sums of the scores.

    Parameters
    ----------
    source : Source
        The reports.
    threat : Threat
        Its records are the values of the source, in order.
    level : float
        Of the law by which reports without a protocol are read.
    """

    def __init__(self, source: Source, threat: Threat, level: float) -> None:
        self.source, self.level = source, level
        self.scorer = ThreatScorer(threat)
        running = np.cumsum(threat.prior.pmf)
        self._running = running / running[-1]

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        drawn = np.searchsorted(self._running, rng.random(size), side="right")
        targets = drawn.astype(np.int64)
        reports = self.source.draw(targets, rng=rng)
        likelihood = report_likelihood(self.source, reports, self.level)
        hits, scores = self.scorer.scores(likelihood, targets)
        return {
            "trials": np.array([size]),
            "threat_hits": np.array([np.count_nonzero(hits)]),
            **score_counts(scores),
        }
