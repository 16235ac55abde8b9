"""How the runs of a pair are drawn and counted: in batches, parts and chunks.

Slow functions are drawn part by part, running times in one random order; the certifying
half counts one event in chunks of runs.
"""

from __future__ import annotations

import ast
import base64
import io
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from undertow.audit._outcome import Row, TimedRun, is_vector, outcome, read_outcomes
from undertow.audit.event import LabelEvent, Score, ScoreEvent, View, output_labels
from undertow.audit.record import (
    Freshness,
    RecordedSubject,
    check_apart,
    check_steady,
    order_entropy,
    require_once,
)
from undertow.audit.runner import Step
from undertow.audit.subject import CallableSubject, Subject
from undertow.errors import AuditError

Pair = tuple[int, int]

BATCH = 10_000
"""Runs of one input in a batch."""
UNIT = 256
"""Runs in a batch of a function that is called for each; a repeated coin shows."""

# Independent batches agree so well with probability at most exp(-40).
_REPETITION = 40.0


class _Begun(NamedTuple):
    """What is done of a chunk: hits of whole batches, and the parts of the next one."""

    hits: tuple[int, ...]
    parts: tuple[Part, ...]

    def saved(self) -> dict[str, Any] | None:
        """Return it in a form that JSON holds; None if there is none."""
        if not self.parts:
            return {"hits": self.hits, "outputs": None, "stand": None}
        texts = [encoded(part.outputs) for part in self.parts]
        if None in texts:
            return None
        return {"hits": self.hits, "outputs": texts, "stand": self.parts[-1].stand}


class EventTest:
    """One chunk of the certifying half; can be sent to another process.

    Parameters
    ----------
    subject : Subject
        What is run.
    pair : pair of int
        Numbers of the inputs.
    event : LabelEvent or ScoreEvent
        What is counted.
    sizes : pair of int
        Runs on each input, all chunks together.
    earlier : pair of arrays
        Training outputs of each input, which no batch may repeat.
    notes : tuple of str, optional
        What a reader should know of the choice.

    Notes
    -----
    A chunk is one batch of each input. Of a function that is called for each run it is
    small, and what is done of it can be kept after about every quarter of a second.
    """

    def __init__(
        self,
        subject: Subject,
        pair: Pair,
        event: LabelEvent | ScoreEvent,
        *,
        sizes: tuple[int, int],
        earlier: tuple[NDArray[Any], NDArray[Any]],
        notes: tuple[str, ...] = (),
    ) -> None:
        self.subject, self.pair, self.notes = subject, pair, notes
        self.event, self.sizes = event, sizes
        earlier = (untimed(earlier[0]), untimed(earlier[1]))
        self.earlier = tuple(part[:BATCH] for part in earlier)
        self.still = stands_still(*earlier)
        self._drawer = Drawer(subject)
        self.fresh = Freshness(subject.name)
        for given, part in zip(pair, earlier, strict=True):
            for start in range(0, len(part), BATCH):
                self.fresh.check(given, part[start : start + BATCH])
        self.batch = min(UNIT, BATCH) if self._drawer.divisible else BATCH
        self.chunks = -(-max(sizes) // self.batch)

    def __call__(self, seed: np.random.SeedSequence, index: int) -> dict[str, int]:
        *_, last = self.steps(seed, index, None)
        return dict(last.counts or {})

    def steps(
        self, seed: np.random.SeedSequence, index: int, begun: _Begun | None
    ) -> Iterator[Step]:
        """Run a chunk, or what is left of one that was begun, and yield after parts."""
        held = _Begun((), ()) if begun is None else begun
        for side in range(len(held.hits), 2):
            size = min(self.batch, max(0, self.sizes[side] - index * self.batch))
            rng = _stream(seed, side, held.parts[-1].stand if held.parts else None)
            left = size - sum(len(part.outputs) for part in held.parts)
            for part in self._drawer.parts(self.pair[side], left, rng=rng):
                held = held._replace(parts=(*held.parts, part))
                left -= len(part.outputs)
                if left:
                    yield Step(held.saved)
            hits = self._hits(side, [part.outputs for part in held.parts])
            held = _Begun((*held.hits, hits), ())
            if side == 0:
                yield Step(held.saved)
        yield Step(None, {"p": held.hits[0], "q": held.hits[1]})

    def restored(self, saved: Any) -> _Begun:
        """Return what a step of `steps` has saved."""
        hits = tuple(int(count) for count in saved["hits"])
        if saved["outputs"] is None:
            return _Begun(hits, ())
        outputs = [decoded(text) for text in saved["outputs"]]
        _stream(np.random.SeedSequence(0), 0, saved["stand"])
        if len(hits) > 1 or sum(map(len, outputs)) > self.batch:
            raise ValueError("more than a chunk")
        return _Begun(hits, tuple(Part(one, saved["stand"]) for one in outputs))

    def _drawn(self, side: int, size: int, rng: np.random.Generator) -> int:
        """Return the hits of a batch of so many runs."""
        parts = self._drawer.parts(self.pair[side], size, rng=rng)
        return self._hits(side, [part.outputs for part in parts])

    def _hits(self, side: int, parts: list[NDArray[Any]]) -> int:
        if not parts:
            return 0
        outputs = joined(parts, name=self.subject.name)
        plain = untimed(outputs)
        if repeats(self.earlier[side], plain):
            raise AuditError(
                f"{self.subject.name} must draw anew in every batch, got the same "
                "outputs in the same order; do not seed it with a constant."
            )
        self.fresh.check(self.pair[side], plain)
        return int(self.event.holds(outputs).sum())


def _stream(
    chunk: np.random.SeedSequence, side: int, stand: Any
) -> np.random.Generator:
    """Return the generator of one input in a chunk, where it stands."""

    def seed(spawned: int) -> np.random.SeedSequence:
        # The child of that number, whatever was spawned before.
        return np.random.SeedSequence(
            chunk.entropy,
            spawn_key=(*chunk.spawn_key, side),
            n_children_spawned=spawned,
        )

    return generator(seed, stand)


def stands_still(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether each input has one output alone, of any type, and they differ.

    Examples
    --------
    >>> stands_still(np.full(9, 0.25), np.full(9, 1.25))
    True
    >>> stands_still(np.array(["n = 103.2"] * 9), np.array(["n = 99.7"] * 9))
    True
    >>> stands_still(np.zeros(9), np.ones(9))
    True
    >>> stands_still(np.zeros(9), np.zeros(9))
    False
    """
    if not (len(first) and len(second)):
        return False
    runs = (first.tolist(), second.tolist())
    one, two = (repr(run[0]) for run in runs)
    if one == two or not all(repr(item) == one for item in runs[0]):
        return False
    return all(repr(item) == two for item in runs[1])


def repeats(earlier: NDArray[Any], later: NDArray[Any]) -> bool:
    r"""Return whether two batches agree too well to be independent.

    Notes
    -----
    Proposition 6 of the page *Event audits*: independent runs agree in their first m
    outputs with probability at most :math:`e^{-m H}`, where H is the entropy of the
    frequencies among them. Agreement is called repetition if m H exceeds 40.

    Examples
    --------
    >>> coins = np.random.default_rng(1).integers(2, size=100)
    >>> repeats(coins, coins), repeats(coins, 1 - coins), repeats(coins[:9], coins[:9])
    (True, False, False)
    """
    m = min(len(earlier), len(later))
    if m == 0 or not _agree(earlier[:m], later[:m]):
        return False
    return order_entropy(later[:m]) > _REPETITION


def _agree(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether outputs are the same one by one; nan is itself."""
    gaps = first.dtype.kind == second.dtype.kind == "f"
    return bool(np.array_equal(first, second, equal_nan=gaps))


# How the runs of one input are drawn: in batches, of slow functions part by part.
#
# A function that is called once for each run draws the same numbers however its runs
# are grouped. So its batches are drawn in parts of about a quarter of a second, after
# each of which its outputs and its generator can be kept; no result depends on the
# clock.

# A part takes about between these seconds.
_SHORT, _LONG = 0.1, 0.4


class Part(NamedTuple):
    """Outputs, and where their generator stands after them."""

    outputs: NDArray[Any]
    stand: Any


class Drawer:
    """Draws batches of one subject, part by part where parts are no other runs.

    Parameters
    ----------
    subject : Subject
        What is run.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.divisible = subject, is_divisible(subject)
        self._pace = 1

    def parts(
        self, given: int, size: int, *, rng: np.random.Generator
    ) -> Iterator[Part]:
        """Draw so many runs of an input and yield them as they come."""
        left = size
        while left:
            outputs = self._timed(given, left, rng)
            yield Part(outputs, _stand(rng))
            left -= len(outputs)

    def _timed(self, given: int, left: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw a part, and adapt the size of the next one to its time."""
        if not self.divisible:
            return draw_outputs(self.subject, given, left, rng)
        start = time.monotonic()
        outputs = draw_outputs(self.subject, given, min(left, self._pace), rng)
        taken = time.monotonic() - start
        if taken > _LONG:
            self._pace = max(1, self._pace // 2)
        elif taken < _SHORT and len(outputs) == self._pace:
            self._pace *= 2
        return outputs


def is_divisible(subject: Subject) -> bool:
    """Return whether a subject is a function that is called once for each run.

    Examples
    --------
    >>> flip = CallableSubject(lambda bit, rng: bit ^ (rng.random() < 0.25), [0, 1])
    >>> is_divisible(flip)
    True
    """
    return isinstance(subject, CallableSubject) and not subject.vectorised


def draw_outputs(
    subject: Subject, given: int, size: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Run a subject and return whatever its runs ended in."""
    run = getattr(subject, "outcomes", subject.sample)
    return read_outcomes(run(given, size, rng=rng), size, name=subject.name)


def joined(outputs: Sequence[NDArray[Any]], *, name: str) -> NDArray[Any]:
    """Return the outputs of several parts as if they had been drawn at once.

    Examples
    --------
    >>> joined([np.array([1]), np.array([0.5])], name="f")
    array([1, 0.5], dtype=object)
    """
    kinds = {(part.dtype, part.shape[1:]) for part in outputs}
    if len(kinds) == 1 and not outputs[0].dtype.hasobject:
        return np.concatenate(outputs)
    items = [part.tolist() if part.ndim == 1 else list(part) for part in outputs]
    listed = list(itertools.chain.from_iterable(items))
    return read_outcomes(listed, len(listed), name=name)


def generator(
    seed: Callable[[int], np.random.SeedSequence], stand: Any
) -> np.random.Generator:
    """Return a generator where it stood.

    Parameters
    ----------
    seed : callable
        From a number of children that were spawned to the seed of the generator.
    stand : pair or None
        Of the generator when it was left: its state and the children it had spawned.
    """
    state, spawned = (None, 0) if stand is None else stand
    rng = np.random.default_rng(seed(spawned))
    if state is not None:
        rng.bit_generator.state = state
    return rng


def _stand(rng: np.random.Generator) -> Any:
    seed: Any = rng.bit_generator.seed_seq
    return rng.bit_generator.state, seed.n_children_spawned


def encoded(outputs: NDArray[Any]) -> dict[str, Any] | None:
    """Return outputs in a form that JSON holds; None if there is none.

    Examples
    --------
    >>> decoded(encoded(np.array([1.5, 2.0])))
    array([1.5, 2. ])
    >>> encoded(np.array([object()])) is None
    True
    """
    if not outputs.dtype.hasobject:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, outputs, allow_pickle=False)
        return {"array": base64.b64encode(buffer.getvalue()).decode("ascii")}
    items = outputs.tolist()
    if all(type(item) is str for item in items):
        return {"labels": items}
    text = repr(items)
    try:
        # Equal words are equal values of equal types.
        same = repr(ast.literal_eval(text)) == text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return {"literals": text} if same else None


def decoded(kept: dict[str, Any]) -> NDArray[Any]:
    """Return the outputs that `encoded` has written."""
    if "array" in kept:
        buffer = io.BytesIO(base64.b64decode(kept["array"], validate=True))
        return np.asarray(np.lib.format.read_array(buffer, allow_pickle=False))
    items = kept["labels"] if "labels" in kept else ast.literal_eval(kept["literals"])
    labels = np.empty(len(items), dtype=np.object_)
    for place, item in enumerate(items):
        labels[place] = item
    return labels


# Running times as outcomes: runs of all inputs in one random order, each timed.
#
# A machine is slower at some times than at others. Where all runs of one input come
# before those of the other, that alone tells them apart; so the order of the inputs is
# drawn, independently of all times. What follows, and what it assumes: the page *Event
# audits*, Proposition 10.

TIME_NOTE = (
    "running times were looked at, in nanoseconds on this machine; the inputs ran in "
    "one random order, and the first runs of each were dropped"
)
"""What a reader of an audit of times should know."""

# Runs of each input that are made first and dropped: at most, and as a part of all.
_WARM, _SHARE = 64, 8


class _Timing(Protocol):
    """A subject whose runs are made, and timed, one by one."""

    def run_timed(
        self, order: Sequence[int], *, rng: np.random.Generator
    ) -> list[tuple[Any, int]]:
        """Run the inputs of these numbers; return outputs and nanoseconds."""


def as_timing(subject: Subject) -> _Timing:
    """Return a subject as one whose runs can be timed, or refuse it.

    Of a vectorised function runs are made together and have no times of their own.
    """
    if not hasattr(subject, "run_timed") or getattr(subject, "vectorised", False):
        raise AuditError(
            f"score must be without 'time' for {subject.name}, whose runs are not made "
            "one by one; audit a function that is not vectorised, or a command."
        )
    return cast("_Timing", subject)


def timed_runs(
    subject: Subject, used: Sequence[int], *, trials: int, root: int
) -> RecordedSubject:
    """Run inputs in random order, and return the runs with their times.

    Parameters
    ----------
    subject : Subject
        With a method ``run_timed``.
    used : sequence of int
        Numbers of its inputs, each of which gets an equal share of the runs.
    trials : int
        Runs in all, besides those that are dropped.
    root : int
        The seed of the order.

    Raises
    ------
    AuditError
        If runs share their noise.
    """
    share = trials // len(used)
    rng, order_rng = np.random.default_rng((root, 4)), np.random.default_rng((root, 5))
    timing = as_timing(subject)
    warm = np.repeat(used, min(_WARM, share // _SHARE + 1))
    timing.run_timed(order_rng.permutation(warm).tolist(), rng=rng)
    order: list[int] = order_rng.permutation(np.repeat(used, share)).tolist()
    made = timing.run_timed(order, rng=rng)
    outputs = read_outcomes([o for o, _ in made], len(made), name=subject.name)
    numbers = np.array(order)
    for given in used:
        run = outputs[numbers == given]
        check_apart(run, name=subject.name)
        check_steady(run, name=subject.name)
        require_once(run, name=subject.name)
    runs = np.empty(len(made), dtype=np.object_)
    for place, (output, taken) in enumerate(made):
        runs[place] = TimedRun(
            Row(output) if is_vector(output) else outcome(output), taken
        )
    return RecordedSubject.timed(subject, numbers, runs)


def untimed(outputs: NDArray[Any]) -> NDArray[Any]:
    """Return outputs without their times; those that have none as they are.

    Examples
    --------
    >>> runs = np.array([TimedRun(1.5, 300), TimedRun(2.0, 400)], dtype=object)
    >>> untimed(runs)
    array([1.5, 2. ])
    """
    if not _is_timed(outputs):
        return outputs
    listed = [run.output for run in outputs.tolist()]
    return read_outcomes(listed, len(listed), name="")


def _is_timed(outputs: NDArray[Any]) -> bool:
    return outputs.dtype == object and len(outputs) > 0 and type(outputs[0]) is TimedRun


class _Untimed:
    """A function of outputs as one of timed runs, which share what was read of them."""

    def __init__(self, function: Callable[[Any], Any], kept: list[Any]) -> None:
        self.function, self._kept = function, kept

    def __call__(self, outputs: NDArray[Any]) -> Any:
        for timed, plain in self._kept:
            if timed is outputs:
                return self.function(plain)
        plain = untimed(outputs)
        self._kept[:] = [*self._kept[-7:], (outputs, plain)]
        return self.function(plain)


def timed_looks(
    scores: Sequence[Score], views: Sequence[View | None], *, times: bool
) -> tuple[tuple[Score, ...], tuple[View | None, ...]]:
    """Return scores and views of outputs as those of timed runs, and of the times."""
    kept: list[Any] = []
    told = [
        Score(one.words, _Untimed(one.function, kept), one.partial, one.missing)
        for one in scores
    ]
    seen = [
        View("output", _Untimed(output_labels, kept))
        if view is None
        else View(view.words, _Untimed(view.function, kept))
        for view in views
    ]
    own = [Score("running time in nanoseconds", _nanoseconds)] if times else []
    return (*told, *own), tuple(seen)


def _nanoseconds(outputs: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([float(run.nanoseconds) for run in outputs.tolist()])
