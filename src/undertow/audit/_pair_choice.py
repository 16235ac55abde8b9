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
from undertow.audit._pair_contest import Contestant, Measure, Outputs, Tier
from undertow.audit._pair_draw import draw_outputs, is_divisible
from undertow.audit._pair_scores import (
    ScoreChoice,
    asked_scores,
    columns_left_out,
    finer_scores,
    pair_scores,
)
from undertow.audit._pair_table import Numbers, OnRows, kind_views
from undertow.audit._pair_training import Kept, Runs, Training
from undertow.audit._timing import timed_looks, untimed
from undertow.audit.claim import Claim
from undertow.audit.events import LabelEvent, Score, ScoreEvent, View
from undertow.audit.learned import learned_scores
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = ["Choice", "Search", "read_pairs", "stream_seed"]

_PAIRS = 4096
# Pairs whose digits, and whose coordinates together, are looked at.
_FINER = 64
_DIGITS = (
    "the event is about the last digits of the output, as left by noise that is added "
    "in floating-point arithmetic or rounded; without them the event would be {}: ask "
    "for it by score 'values'"
)
_PAIRS_LEFT = "{} of {} pairs of inputs were compared"
_TELLING = (
    "last digits, and all coordinates together, were looked at on the {} pairs of "
    "inputs that differed most"
)
_LONG_SEED = 2**96


@dataclass(frozen=True)
class Choice:
    """A pair, an event, the training outputs of both inputs, and what to know of it."""

    pair: Pair
    event: LabelEvent | ScoreEvent
    earlier: tuple[NDArray[Any], NDArray[Any]]
    notes: tuple[str, ...] = ()


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
        best, notes = self._best(runs, training.kept)
        training.choose(Kept((min(best.pair), max(best.pair)), best.tier, notes))
        earlier = (runs[best.pair[0]], runs[best.pair[1]])
        return Choice(best.pair, best.event, earlier, notes)

    def _best(
        self, runs: Runs, kept: Kept | None
    ) -> tuple[Contestant, tuple[str, ...]]:
        """Return the pair and event that did best in the second part of the runs.

        Besides, what a reader should know of the choice.

        An event of a finer score, and then one of a learned score, is taken only if it
        beats the best of the others by more than chance; what was chosen before is
        chosen again.
        """
        pairs = [p for p in self.pairs if kept is None or set(p) == set(kept.pair)]
        halves = {given: _halves(run) for given, run in runs.items()}
        if kept is not None:
            found = self._contestants(halves, pairs, kept.tier)
            return max(found, key=_value), kept.notes
        notes: tuple[str, ...] = ()
        usual = self._contestants(halves, pairs, "usual")
        telling, best = _most_telling(usual), max(usual, key=_value)
        rounds: list[tuple[Tier, list[Pair]]] = [("whole", telling)]
        if "learned" in self._asked:
            rounds.append(("learned", pairs))
        if "values" not in self._asked:
            rounds.append(("digits", telling))
        for tier, tried in rounds:
            found = self._contestants(halves, tried, tier)
            one = max(found, key=_value, default=best)
            if one is not best and self._measure.surpasses(one, best):
                notes = () if tier != "digits" else (_DIGITS.format(best.event.words),)
                best = one
        return best, (*notes, *self._left_out(runs, telling))

    def _left_out(self, runs: Runs, telling: list[Pair]) -> tuple[str, ...]:
        """Return what was not looked at, in sentences."""
        notes, size = [], len(self.subject.inputs)
        tried, every = len({frozenset(p) for p in self.pairs}), size * (size - 1) // 2
        if tried < every:
            notes.append(_PAIRS_LEFT.format(tried, every))
        if len(telling) < len(self.pairs):
            notes.append(_TELLING.format(_FINER))
        first, second = (untimed(runs[given]) for given in telling[0])
        return (*notes, *columns_left_out(first, second))

    def _contestants(
        self, halves: dict[int, Outputs], pairs: list[Pair], tier: Tier
    ) -> list[Contestant]:
        """Return the best event of each pair, of the scores of one tier."""
        made: dict[Pair, tuple[tuple[Score, ...], tuple[View | None, ...]]] = {}
        found = []
        for pair in pairs:
            key = (min(pair), max(pair))
            proposal, selection = zip(*(halves[given] for given in pair), strict=True)
            if key not in made:
                made[key] = self._looks(key, proposal, tier)
            scores, views = made[key]
            if scores or views:
                found.append(
                    self._measure.best(
                        pair, proposal, selection, scores=scores, views=views, tier=tier
                    )
                )
        return found

    def _looks(
        self, key: Pair, proposal: Outputs, tier: Tier
    ) -> tuple[tuple[Score, ...], tuple[View | None, ...]]:
        """Return the scores and views of a tier; None stands for the outputs."""
        if "time" in self._asked:
            one, two = map(untimed, proposal)
            looks = self._looks_at_outputs(key, (one, two), tier)
            return timed_looks(*looks, times=tier == "usual")
        return self._looks_at_outputs(key, proposal, tier)

    def _looks_at_outputs(
        self, key: Pair, proposal: Outputs, tier: Tier
    ) -> tuple[tuple[Score, ...], tuple[View | None, ...]]:
        if tier == "learned":
            return _learned(*proposal, seed=self.root), (None,)
        if tier in ("whole", "digits"):
            return finer_scores(*proposal, digits=tier == "digits"), ()
        others = [one for one in self._asked if one not in ("learned", "time")]
        scores = pair_scores(self.subject, key, proposal, choice=others, seed=self.root)
        exact = hasattr(self.subject, "outcomes") and not _is_whole(self.subject)
        return scores, (None, *kind_views(*proposal, exact=exact))

    @property
    def _asked(self) -> list[Any]:
        """What to look at besides the outputs, one by one."""
        return asked_scores(self.score)

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


def _value(one: Contestant) -> float:
    return one.value


def _most_telling(found: list[Contestant]) -> list[Pair]:
    """Return the pairs, in both orders, whose best events promise most."""
    ranked = sorted(found, key=_value, reverse=True)
    keys = dict.fromkeys((min(one.pair), max(one.pair)) for one in ranked)
    wanted = set(list(keys)[:_FINER])
    return [one.pair for one in found if (min(one.pair), max(one.pair)) in wanted]


def _learned(first: Any, second: Any, *, seed: int) -> tuple[Score, ...]:
    """Return learned scores of the outputs that are numbers as most of them are."""
    numbers = Numbers.of(first, second)
    if numbers is None:
        return learned_scores(first, second, seed=seed)
    (one, all_one), (two, all_two) = numbers.split(first), numbers.split(second)
    gaps = not (all_one.all() and all_two.all())
    return tuple(
        Score(score.words, OnRows(numbers, score.function), True, gaps)
        for score in learned_scores(one, two, seed=seed)
    )


def _is_whole(subject: Subject) -> bool:
    """Return whether outputs come as whole arrays, whose type is that of a batch."""
    return bool(getattr(subject, "vectorised", False))


def _halves(run: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return run[: len(run) // 2], run[len(run) // 2 :]
