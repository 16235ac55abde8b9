"""Many trials in parts of bounded size, each with its own child of the seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.audit._checkpoint import places
from undertow.audit.runner import Counts, Progress, run_chunks

__all__ = ["Campaign", "Counts", "Trials"]

Trials = Callable[[int, np.random.Generator], Counts]
"""Runs so many trials and counts what happened."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """How the trials of an audit are cut and run; phases have seeds of their own.

    The counts are the same in whatever order the parts run.
    """

    seed: int
    chunk: int
    workers: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def run(self, trials: Trials, count: int, *, phase: int, job: str) -> Counts:
        """Run so many trials; the main phase, number 1, is shown and may be spread.

        It is saved, and so is the pilot, number 0, if its trials say what they are by
        `identity`: each in its section of one file.
        """
        main, told = phase == 1, getattr(trials, "identity", "")
        saved = main or (phase == 0 and bool(told))
        (place,) = places(self.checkpoint if saved else None, f"phase {phase}")
        return run_chunks(
            _Part(trials, count, self.chunk),
            chunks=-(-count // self.chunk),
            seed=self._phase_seed(phase),
            fingerprint=f"{job}; {told}; {count} trials by {self.chunk}; phase {phase}",
            workers=self.workers if main else 1,
            checkpoint=place,
            progress=self.progress if main else None,
        )

    def parts(self, trials: Trials, count: int, *, phase: int) -> Iterator[Counts]:
        """Run one part after another, seeded as in `run`."""
        part, root = _Part(trials, count, self.chunk), self._phase_seed(phase)
        for index in range(-(-count // self.chunk)):
            yield part(np.random.SeedSequence(root, spawn_key=(index,)), index)

    def _phase_seed(self, phase: int) -> int:
        words = np.random.SeedSequence(self.seed, spawn_key=(phase,)).generate_state(4)
        return int.from_bytes(words.astype("<u4").tobytes(), "little")


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a number of trials; the last may be smaller."""

    trials: Trials
    count: int
    chunk: int

    @property
    def subject(self) -> Any:
        """What is run, for messages."""
        return getattr(self.trials, "source", None)

    @property
    def fresh(self) -> Any:
        """What remembers the batches, if anything does."""
        return getattr(self.subject, "fresh", None)

    def __call__(self, seed: np.random.SeedSequence, index: int) -> Counts:
        """Run part `index`."""
        size = min(self.chunk, self.count - index * self.chunk)
        return self.trials(size, np.random.default_rng(seed))
