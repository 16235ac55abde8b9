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
from undertow.audit._identity import code_words, subject_identity
from undertow.audit._pair_chunks import Pair
from undertow.audit._pair_contest import Contestant, Measure, Outputs
from undertow.audit._pair_draw import draw_outputs, is_divisible
from undertow.audit._pair_scores import ScoreChoice, pair_scores
from undertow.audit._pair_training import Kept, Runs, Training
from undertow.audit.claim import Claim
from undertow.audit.events import LabelEvent, Score, ScoreEvent
from undertow.audit.learned import learned_scores
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

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

        Before, refuse a subject that repeats its batches, if it is to draw anew; a
        function that is called for each run knows of no batches.
        """
        section = None if place is None else place.section(self._job(sizes))
        training = Training(
            self.subject, sizes, stream=stream_seed(self.root), section=section
        )
        if fresh and not is_divisible(self.subject):
            draw, given = functools.partial(draw_outputs, self.subject), min(sizes)
            probe(draw, given, trials=sizes[given], name=self.subject.name)
        runs = training.runs()
        best = self._best(runs, training.kept)
        training.choose(Kept((min(best.pair), max(best.pair)), best.learned))
        return Choice(best.pair, best.event, (runs[best.pair[0]], runs[best.pair[1]]))

    def _best(self, runs: Runs, kept: Kept | None) -> Contestant:
        """Return the pair and event that did best in the second part of the runs.

        An event of a learned score is taken only if it beats the best of the others by
        more than chance; what was chosen before is chosen again.
        """
        pairs = [p for p in self.pairs if kept is None or set(p) == set(kept.pair)]
        halves = {given: _halves(run) for given, run in runs.items()}
        if kept is not None:
            return self._winner(halves, pairs, learned=kept.learned)
        usual = self._winner(halves, pairs, learned=False)
        if "learned" not in self._asked:
            return usual
        learned = self._winner(halves, pairs, learned=True)
        return learned if self._measure.surpasses(learned, usual) else usual

    def _winner(
        self, halves: dict[int, Outputs], pairs: list[Pair], *, learned: bool
    ) -> Contestant:
        """Return the best event over all pairs, of learned scores or of the others."""
        made: dict[Pair, tuple[Score, ...]] = {}
        found = []
        for pair in pairs:
            key = (min(pair), max(pair))
            proposal, selection = zip(*(halves[given] for given in pair), strict=True)
            if key not in made:
                made[key] = self._scores(key, proposal, learned=learned)
            found.append(
                self._measure.best(
                    pair, proposal, selection, scores=made[key], learned=learned
                )
            )
        return max(found, key=lambda one: one.value)

    def _scores(
        self, key: Pair, proposal: Outputs, *, learned: bool
    ) -> tuple[Score, ...]:
        if learned:
            return learned_scores(proposal[0], proposal[1], seed=self.root)
        others = [one for one in self._asked if one != "learned"]
        return pair_scores(self.subject, key, proposal, choice=others, seed=self.root)

    @property
    def _asked(self) -> list[Any]:
        """What to look at besides the outputs, one by one."""
        if self.score is None:
            return []
        if callable(self.score) or isinstance(self.score, str):
            return [self.score]
        return list(self.score)

    @property
    def _measure(self) -> Measure:
        return Measure(self.claim.for_replacement(), self.confidence)

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
    """Return the names and the code of what is looked at."""
    if score is None or isinstance(score, str):
        return [str(score)]
    listed = [score] if callable(score) else list(score)
    named = [f if isinstance(f, str) else _function_name(f) for f in listed]
    return [*named, *(word for f in listed for word in code_words(f))]


def _function_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _halves(run: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return run[: len(run) // 2], run[len(run) // 2 :]
