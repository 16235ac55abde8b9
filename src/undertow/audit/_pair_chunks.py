"""The certifying half of a pair audit: chunks of runs in which one event is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from undertow.audit._freshness import Freshness, order_entropy
from undertow.audit._pair_draw import Drawer, Part, decoded, encoded, generator, joined
from undertow.audit._timing import untimed
from undertow.audit.events import LabelEvent, ScoreEvent
from undertow.audit.runner import Step
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = ["BATCH", "UNIT", "EventTest", "Pair", "repeats", "stands_still"]

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
