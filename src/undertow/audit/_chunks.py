"""Many trials in parts of bounded size, each with its own child of the seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

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
        """Run so many trials; only the main phase, number 1, is saved and shown."""
        main = phase == 1
        return run_chunks(
            _Part(trials, count, self.chunk),
            chunks=-(-count // self.chunk),
            seed=self._phase_seed(phase),
            fingerprint=f"{job}; {count} trials by {self.chunk}; phase {phase}",
            workers=self.workers if main else 1,
            checkpoint=self.checkpoint if main else None,
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

    def __call__(self, seed: np.random.SeedSequence, index: int) -> Counts:
        """Run part `index`."""
        size = min(self.chunk, self.count - index * self.chunk)
        return self.trials(size, np.random.default_rng(seed))
