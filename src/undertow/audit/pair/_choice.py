"""Which pair of inputs and which event a pair audit tests.

The runs of the choosing half, the contest between events of many scores, and how a
checkpoint keeps them.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index
from undertow.audit._outcome import Raised, Told
from undertow.audit.claim import Claim
from undertow.audit.event import (
    LabelEvent,
    Score,
    ScoreEvent,
    View,
    best_event,
    learned_scores,
    lower_limits,
)
from undertow.audit.pair._draw import (
    BATCH,
    Drawer,
    Pair,
    Part,
    decoded,
    draw_outputs,
    encoded,
    generator,
    is_divisible,
    joined,
    timed_looks,
    untimed,
)
from undertow.audit.pair._score import (
    ScoreChoice,
    asked_scores,
    columns_left_out,
    finer_scores,
    pair_scores,
)
from undertow.audit.pair._table import Numbers, OnRows, kind_views
from undertow.audit.record import check_apart, check_steady, probe
from undertow.audit.runner import UNREADABLE, Place, Section
from undertow.audit.subject import Subject, code_words, subject_identity
from undertow.errors import AuditError

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


# The runs of the choosing half, and how a checkpoint keeps them.
#
# A subject may take hours for them, and a choice needs them all again. So the outputs
# themselves are kept, as long as they are numbers or plain labels and not too large.

Runs = dict[int, NDArray[Any]]
"""Outputs by the number of the input."""

# Bytes of outputs that a checkpoint keeps.
_MOST = 1 << 27
# Runs of each input after which a function may be found broken, and the share of them.
_FIRST, _BROKEN = 64, 0.99


class Kept(NamedTuple):
    """What was chosen: a pair, the tier of the score, and what to know of it."""

    pair: Pair
    tier: Tier
    notes: tuple[str, ...] = ()


class Training:
    """Draws the runs of the choosing half, or reads them from a checkpoint.

    Parameters
    ----------
    subject : Subject
        What is run.
    sizes : dict of int to int
        Runs of each input.
    stream : int
        The seed.
    section : Section, optional
        Where the runs are kept, about every second and when they end or are
        interrupted, and then what was chosen.

    Raises
    ------
    AuditError
        If the section does not hold what was saved there.

    Notes
    -----
    Outputs that cannot be kept, or are more than 128 MiB, are drawn again from the
    seed: the result is the same, the time is not saved.
    """

    def __init__(
        self,
        subject: Subject,
        sizes: dict[int, int],
        *,
        stream: int,
        section: Section | None = None,
    ) -> None:
        self.subject, self.sizes, self.stream = subject, sizes, stream
        self.section = section
        self.kept: Kept | None = None
        self._drawer = Drawer(subject)
        self._parts: dict[int, list[Part]] = {}
        state = None if section is None else section.read()
        if section is not None and state is not None:
            try:
                self._restore(state)
            except UNREADABLE as error:
                raise section.damaged(error) from None

    def runs(self) -> Runs:
        """Return the runs of each input, or of the pair that was chosen before."""
        wanted = list(self.sizes) if self.kept is None else list(self.kept.pair)
        before = self._count()
        try:
            if self._drawer.divisible:  # a broken function is told at once
                for given in wanted:
                    self._draw(given, min(_FIRST, self.sizes[given]))
                _check_raised(self.subject.name, self._held(wanted), 1.0)
            for given in wanted:
                self._draw(given, self.sizes[given])
        finally:
            if self._count() > before:
                self._save()
        runs = self._held(wanted)
        plain = {given: untimed(run) for given, run in runs.items()}
        _check_returns(self.subject.name, plain)
        for run in plain.values():
            check_apart(run, name=self.subject.name)
            check_steady(run, name=self.subject.name)
        return runs

    def choose(self, kept: Kept) -> None:
        """Keep what was chosen, and the runs of the two inputs alone."""
        if self.kept is None:
            self.kept = kept
            self._parts = {given: self._parts[given] for given in kept.pair}
            self._save()

    def _held(self, wanted: list[int]) -> Runs:
        return {given: self._joined(given) for given in wanted}

    def _draw(self, given: int, size: int) -> None:
        parts = self._parts.setdefault(given, [])
        done = sum(len(part.outputs) for part in parts)
        rng = self._generator(given, parts[-1].stand if parts else None)
        while done < size:
            left = min(BATCH, size - done)
            for part in self._drawer.parts(given, left, rng=rng):
                # Outputs and what follows them are kept together, or neither is.
                parts.append(part)
                done += len(part.outputs)
                if self.section is not None and self.section.due():
                    self._save()

    def _generator(self, given: int, stand: Any) -> np.random.Generator:
        """Return the generator of an input, where it stands."""

        # Apart from the seeds of the certifying half, whose entropy is the root alone.
        def seed(spawned: int) -> np.random.SeedSequence:
            return np.random.SeedSequence(
                (self.stream, 1), spawn_key=(given,), n_children_spawned=spawned
            )

        return generator(seed, stand)

    def _joined(self, given: int) -> NDArray[Any]:
        outputs = [part.outputs for part in self._parts[given]]
        return joined(outputs, name=self.subject.name)

    def _count(self) -> int:
        return sum(len(p.outputs) for parts in self._parts.values() for p in parts)

    def _save(self) -> None:
        """Keep the runs so far and where their generators stand, if they allow it."""
        held = {k: self._joined(k) for k, parts in self._parts.items() if parts}
        if self.section is None or sum(run.nbytes for run in held.values()) > _MOST:
            return
        kept = {}
        for given, run in held.items():
            text = encoded(run)
            if text is None:
                return
            kept[str(given)] = {**text, "stand": self._parts[given][-1].stand}
        self.section.save({"runs": kept, "kept": self.kept})

    def _restore(self, state: dict[str, Any]) -> None:
        for name, text in state["runs"].items():
            given, run = int(name), decoded(text)
            size = self.sizes[given]
            whole = self._drawer.divisible or not len(run) % BATCH or len(run) == size
            if len(run) > size or not whole:
                raise ValueError("a part of a batch")
            self._generator(given, text["stand"])
            self._parts[given] = [Part(run, text["stand"])]
        if state["kept"] is not None:
            (first, second), tier, notes = state["kept"]
            if tier not in get_args(Tier):
                raise ValueError("no tier")
            pair = (int(first), int(second))
            self.kept = Kept(pair, tier, tuple(str(note) for note in notes))


def _check_returns(name: str, runs: Runs) -> None:
    """Refuse a function that raises, or tells nothing, on every input.

    In fewer runs, or on one input alone, that is an outcome like others.
    """
    _check_raised(name, runs, _BROKEN)
    opaque = [_those(run, _is_opaque) for run in runs.values()]
    if all(opaque) and all(map(_is_complete, opaque, runs.values())):
        kind = type(opaque[0][0].value).__name__
        raise AuditError(
            f"{name} must return outputs that can be compared, got {kind}, which tells "
            "nothing of itself; return numbers, text, or lists or dictionaries of them."
        )
    if all(map(_is_nothing, runs.values())):
        told = "None" if next(iter(runs.values())).dtype == object else "nan"
        raise AuditError(
            f"{name} must return a value, got {told} in every run; look for a missing "
            "return."
        )


def _check_raised(name: str, runs: Runs, most: float) -> None:
    """Refuse a function that raises in more than a share of the runs of every input."""
    found = [_those(run, _is_raised) for run in runs.values()]
    shares = [
        len(some) / len(run) for some, run in zip(found, runs.values(), strict=True)
    ]
    if min(shares) >= most:
        first = found[0][0]
        raise AuditError(
            f"{name} must not raise, got {first.kind}"
            f"{': ' + first.said if first.said else ''}, in {min(shares):.1%} of the "
            "runs or more on every input."
        )


def _those(run: NDArray[Any], is_one: Callable[[Any], bool]) -> list[Any]:
    if run.dtype != object:
        return []
    return [item for item in run.tolist() if is_one(item)]


def _is_raised(item: Any) -> bool:
    return isinstance(item, Raised)


def _is_opaque(item: Any) -> bool:
    return isinstance(item, Told) and item.opaque


def _is_complete(found: list[Any], run: NDArray[Any]) -> bool:
    return len(found) == len(run)


def _is_nothing(run: NDArray[Any]) -> bool:
    """Return whether no run returned a value."""
    if run.dtype == object:
        return all(item is None for item in run.tolist())
    return run.dtype.kind == "f" and bool(run.size and np.isnan(run).all())


# Whether an event of a learned or a finer score is better than the others.
#
# Scores that are made from training runs follow the noise of these, and they are many
# more events: the best of many in training need not be the best in truth. So an event
# of such a score has to win by more than chance.

# About the events of one score that are tried, and those of them that differ much.
_EVENTS, _DIFFERENT = 1000.0, 30.0
# Parts of the runs that are left out in turn.
_PARTS = 20

Outputs = tuple[NDArray[Any], NDArray[Any]]
"""Of two inputs, or two parts of one."""


Tier = Literal["usual", "whole", "learned", "digits"]
"""Which scores an event comes from: each has to beat those before it."""


class Contestant(NamedTuple):
    """An event, its pair in order, what it promises, and the runs that say so."""

    value: float
    pair: tuple[int, int]
    event: LabelEvent | ScoreEvent
    runs: Outputs
    tier: Tier


@dataclass(frozen=True)
class Measure:
    """How events are compared: by the limit that they would certify in training.

    Parameters
    ----------
    tested : Claim
        Whose parameter and delta count.
    confidence : float
        Of the audit.
    """

    tested: Claim
    confidence: float

    def best(
        self,
        pair: tuple[int, int],
        proposal: Outputs,
        selection: Outputs,
        *,
        scores: tuple[Score, ...],
        views: tuple[View | None, ...] = (None,),
        tier: Tier = "usual",
    ) -> Contestant:
        """Return the best event of some scores, and of repeated outputs or views.

        Limits of other than the usual scores are widened for the number of their
        events, which keeps rare events with a lucky count from the contest.
        """
        found = best_event(
            proposal,
            selection,
            scores=scores,
            views=views,
            tail=self._tail if tier == "usual" else self._tail / _EVENTS,
            delta=self.tested.delta,
            parameter=self.tested.parameter,
        )
        return Contestant(found.value, pair, found.event, selection, tier)

    def surpasses(self, challenger: Contestant, best: Contestant) -> bool:
        """Return whether the limit of the first is higher by more than chance.

        Chance is a standard deviation of the difference, by the jackknife over
        twentieths of the runs, which knows that both may count the same runs. Both
        limits are widened, as both events were picked for their counts.
        """
        gaps = self._limits(challenger) - self._limits(best)
        whole, without = float(gaps[0]), gaps[1:]
        parts = len(without)
        variance = (parts - 1) / parts * float(((without - without.mean()) ** 2).sum())
        return whole > math.sqrt(variance)

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _limits(self, one: Contestant) -> NDArray[np.float64]:
        """Return the limit of all runs, then of all but each part of them."""
        hits, sizes = zip(*(_counts(one.event, run) for run in one.runs), strict=True)
        limits = [
            lower_limits(
                k,
                j,
                trials=(int(n), int(m)),
                tail=self._tail / _DIFFERENT,
                delta=self.tested.delta,
                parameter=self.tested.parameter,
            )
            for k, j, n, m in zip(*hits, *sizes, strict=True)
        ]
        # Nothing is certified below 0.
        return np.maximum(np.array(limits, dtype=np.float64), 0.0)


def _counts(
    event: LabelEvent | ScoreEvent, run: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return hits and runs: of all, then without each part."""
    parts = np.array_split(event.holds(run), _PARTS)
    hits = np.array([int(part.sum()) for part in parts])
    sizes = np.array([len(part) for part in parts])
    return (
        np.concatenate([[hits.sum()], hits.sum() - hits]),
        np.concatenate([[sizes.sum()], sizes.sum() - sizes]),
    )
