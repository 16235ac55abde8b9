"""Guesses of largest score, for finite outputs and for those with a likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.local.base import LocalProtocol
from undertow.risk._sampler import ProtocolSampler
from undertow.risk.attacks.base import read_outputs, sample_rows
from undertow.risk.decision import ABSTAIN
from undertow.risk.likelihood import LikelihoodSource, PosteriorGain
from undertow.risk.scalar import as_scalar
from undertow.risk.threat import Threat

__all__ = ["ScoreGuess"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Scores lie in [-1, 1]; closer ones count as equal.
_TIE = 1e-12


class ScoreGuess(ABC):
    """A guess of largest score, drawn uniformly among equals."""

    __slots__ = ("_outputs", "_posterior", "threat")

    def __init__(self, source: Any, threat: Threat) -> None:
        self.threat = threat
        self._posterior = _posterior(source, threat)
        self._outputs = 0 if self._posterior else self._tabulate(source)

    @abstractmethod
    def _tabulate(self, source: Any) -> int:
        """Read a finite source; return the number of its outputs."""

    @abstractmethod
    def _scores(self, posterior: PosteriorGain, outputs: Any, known: int) -> Floats:
        """Return the score of every guess given each output."""

    @abstractmethod
    def choices(self, output: Any, known: int) -> Indices:
        """Return the guesses of largest score; only ``ABSTAIN`` to decline."""

    def guess(self, outputs: Any, known: int, *, rng: np.random.Generator) -> Indices:
        """Draw a guess for each output; O(guesses) per distinct output."""
        if self._posterior is not None:
            laws = self.guess_law(outputs, known)
            return np.where(laws.any(axis=1), sample_rows(laws, rng=rng), ABSTAIN)
        seen = read_outputs(outputs, self._outputs)
        guesses = np.empty(len(seen), dtype=np.intp)
        for output in np.unique(seen):
            same = np.flatnonzero(seen == output)
            guesses[same] = rng.choice(self.choices(int(output), known), len(same))
        return guesses

    def guess_law(self, outputs: Any, known: int) -> Floats:
        """Return the law of the guess for each output; zeros where it declines."""
        if self._posterior is not None:
            scores = self._scores(self._posterior, outputs, known)
            best = scores >= scores.max(axis=1, keepdims=True) - _TIE
            laws = best / best.sum(axis=1, keepdims=True)
            laws[self._declined(scores)] = 0.0
            return np.asarray(laws)
        seen = read_outputs(outputs, self._outputs)
        laws = np.zeros((len(seen), len(self.threat.guesses)))
        for row, output in zip(laws, seen.tolist(), strict=True):
            best = self.choices(output, known)
            if best[0] >= 0:
                row[best] = 1.0 / len(best)
        return laws

    def _declined(self, scores: Floats) -> NDArray[np.bool_]:
        """Return where all guesses lose and none need be made."""
        return np.asarray(self.threat.abstain & (scores.max(axis=1) < -_TIE))

    def _chosen(self, output: Any, known: int) -> Indices:
        law = self.guess_law(np.asarray([output]), known)[0]
        chosen = np.flatnonzero(law)
        return chosen if chosen.size else np.array([ABSTAIN], dtype=np.intp)

    def __repr__(self) -> str:
        size = f"{len(self.threat.prior)} records, {self._outputs} outputs"
        seen = size if self._posterior is None else repr(self._posterior.source)
        return f"{type(self).__name__}({seen})"


def _posterior(source: Any, threat: Threat) -> PosteriorGain | None:
    """Read a source with a likelihood; None if it is a finite channel."""
    if isinstance(source, LocalProtocol):
        if source.categories != len(threat.support):
            raise MismatchError(
                f"the protocol must have a category for each of the "
                f"{len(threat.support)} records, got {source.categories}."
            )
        return PosteriorGain(ProtocolSampler(source), threat)
    number = as_scalar(source, threat.support)
    if number is not None:
        return PosteriorGain(number, threat)
    known = isinstance(source, LikelihoodSource)
    return PosteriorGain(source, threat) if known else None
