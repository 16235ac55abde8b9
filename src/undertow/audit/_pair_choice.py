"""Which pair of inputs and which event a pair audit tests."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index
from undertow.audit._checkpoint import Place
from undertow.audit._freshness import probe
from undertow.audit._identity import subject_identity
from undertow.audit._pair_outcome import Pair, draw_outputs
from undertow.audit._pair_scores import ScoreChoice, pair_scores
from undertow.audit._pair_training import Runs, Training
from undertow.audit.claim import Claim
from undertow.audit.events import LabelEvent, ScoreEvent, best_event
from undertow.audit.subjects import AuditError, Subject

__all__ = ["Choice", "Search", "read_pairs", "stream_seed"]

_PAIRS = 4096
_LONG_SEED = 2**96


@dataclass(frozen=True)
class Choice:
    """A pair, an event, and the training outputs of both inputs."""

    pair: Pair
    event: LabelEvent | ScoreEvent
    earlier: tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Search:
    """What a choice depends on: the pairs in both orders, the claim, the scores."""

    subject: Subject
    claim: Claim
    pairs: list[Pair]
    confidence: float
    score: ScoreChoice
    root: int

    def run(
        self, sizes: dict[int, int], *, place: Place | None = None, fresh: bool = True
    ) -> Choice:
        """Draw so many runs of each input and choose; go on from a checkpoint.

        Before, refuse a subject that repeats its batches, if it is to draw anew.
        """
        section = None if place is None else place.section(self._job(sizes))
        training = Training(
            self.subject, sizes, stream=stream_seed(self.root), section=section
        )
        if fresh:
            draw, given = functools.partial(draw_outputs, self.subject), min(sizes)
            probe(draw, given, trials=sizes[given], name=self.subject.name)
        runs, kept = training.runs(), training.pair
        pairs = [p for p in self.pairs if kept is None or set(p) == set(kept)]
        pair, event = self._best(runs, pairs)
        training.choose(pair)
        return Choice(pair, event, (runs[pair[0]], runs[pair[1]]))

    def _best(
        self, runs: Runs, pairs: list[Pair]
    ) -> tuple[Pair, LabelEvent | ScoreEvent]:
        """Return the pair and event that did best in the second part of the runs."""
        tested, best = self.claim.for_replacement(), None
        made: dict[Pair, Any] = {}
        halves = {given: _halves(run) for given, run in runs.items()}
        for one, two in pairs:
            key = (min(one, two), max(one, two))
            proposal, selection = zip(halves[one], halves[two], strict=True)
            if key not in made:
                made[key] = pair_scores(
                    self.subject, key, proposal, choice=self.score, seed=self.root
                )
            found = best_event(
                proposal,
                selection,
                scores=made[key],
                tail=(1.0 - self.confidence) / 2.0,
                delta=tested.delta,
                parameter="mu" if tested.parameter == "mu" else "epsilon",
            )
            if best is None or found.value > best[0]:
                best = (found.value, (one, two), found.event)
        assert best is not None
        return best[1], best[2]

    def _job(self, sizes: dict[int, int]) -> str:
        parts = [
            subject_identity(self.subject),
            self.pairs,
            sorted(sizes.items()),
            str(self.claim),
            self.confidence,
            _score_words(self.score),
            self.root,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_pairs(pairs: Sequence[Pair] | str, size: int) -> list[Pair]:
    """Return the pairs of different inputs, in both orders."""
    if isinstance(pairs, str):
        if pairs != "auto":
            raise ValueError(
                f"pairs must be 'auto' or pairs of numbers, got {pairs!r}."
            )
        pairs = list(itertools.combinations(range(size), 2))
    listed = []
    if not all(np.ndim(pair) == 1 and len(pair) == 2 for pair in pairs):
        raise ValueError("pairs must be of two numbers each, got others.")
    for first, second in pairs:
        one = check_index(first, "pairs", size=size)
        two = check_index(second, "pairs", size=size)
        if one == two:
            raise ValueError(f"pairs must be of different inputs, got {one} twice.")
        listed += [(one, two), (two, one)]
    if not 0 < len(listed) <= 2 * _PAIRS:
        raise AuditError(
            f"pairs must be from 1 to {_PAIRS}, got {len(listed) // 2}; name those to "
            "try."
        )
    return list(dict.fromkeys(listed))


def stream_seed(root: int) -> int:
    """Return the seed of the streams: a hash of seeds of more than 96 bits.

    Four words of a seed fill the pool of a seed sequence; the words that tell training
    from certifying runs would then stand where those of the chunks do.
    """
    if root < _LONG_SEED:
        return root
    return int(np.random.SeedSequence(root).generate_state(1, np.uint64)[0])


def _score_words(score: ScoreChoice) -> list[str]:
    """Return the names of what is looked at; the event itself is compared later."""
    if score is None or isinstance(score, str):
        return [str(score)]
    functions = [score] if callable(score) else list(score)
    return [getattr(f, "__name__", type(f).__name__) for f in functions]


def _halves(run: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return run[: len(run) // 2], run[len(run) // 2 :]
