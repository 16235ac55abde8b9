"""Long runs in chunks: the same answer whatever the workers, and after a kill."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._files import write_whole
from undertow._validate import check_count, check_positive
from undertow.errors import AuditError

Counts = dict[str, NDArray[np.int64]]
"""Counts by name; a single count is an array without axes."""

Work = Callable[[np.random.SeedSequence, int], Mapping[str, Any]]
"""One chunk: from its seed and its number to its counts."""

Progress = Callable[[int, int, Counts], None]
"""Called with the chunks done, the chunks in all, and the counts so far."""


class Step(NamedTuple):
    """Part of a chunk is done, or the chunk with its counts.

    `saved` returns the part in a form that JSON holds, or None if there is none.
    """

    saved: Callable[[], Any] | None
    counts: Mapping[str, Any] | None = None


_LARGEST = 2**62
# Equal parts of a run after which progress is told.
_MARKS = 128
# Blocks of chunks for several workers take between these seconds.
_SHORT, _LONG = 0.25, 1.0
# A measured audit takes at least this share of the time, else the next has so many
# times more trials, up to so many; beyond another share single trials tell enough.
_SHARE, _GROWTH, _MEASURED, _KNOWN = 0.02, 8, 2_000_000, 0.2


def run_chunks(
    work: Work,
    *,
    chunks: SupportsIndex,
    seed: SupportsIndex,
    fingerprint: str,
    workers: SupportsIndex = 1,
    checkpoint: str | os.PathLike[str] | Place | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Run all chunks and return the sum of their counts.

    Parameters
    ----------
    work : callable
        From a seed sequence and the number of the chunk to a mapping of names to whole
        numbers or arrays of them; the same names and shapes from every chunk. With
        methods ``steps(seed, index, begun)``, which yields a `Step` for each part and
        at last the counts, and ``restored(saved)``, which reads what a step has saved
        (``begun`` is that or None), a checkpoint keeps parts of a chunk as well, if
        there is one worker. With an attribute ``fresh``, a `Freshness`, batches are
        refused that another worker has drawn before.
    chunks : int
        How many.
    seed : int
        Chunk i is seeded by the i-th child of ``SeedSequence(seed)``.
    fingerprint : str
        What is being run, in words or JSON: all that the counts depend on besides the
        seed and the number of chunks.
    workers : int, optional
        Processes; more than one needs joblib, and a `work` that can be pickled. They
        take some seconds to start: runs of less than a minute are faster with one.
    checkpoint : path, optional
        A file, readable by its owner alone, that is replaced as a whole about every
        second and when the run ends or is interrupted. If it is there, the run goes on
        from it; a kill costs a second's work, or the chunk, or the part of one, that
        was under way.
    progress : callable, optional
        Called after 1, 2, 4, ... chunks, and after every 128th part of them.

    Returns
    -------
    dict of str to ndarray of int64
        The same for every number of workers and after every interruption.

    Raises
    ------
    AuditError
        If the checkpoint belongs to another job or is damaged, if a chunk returns
        anything but whole numbers, or if joblib is asked for and not installed.

    Notes
    -----
    Counts hold no output of the mechanism and no record; what `steps` saves of a begun
    chunk may. Not checkable: that `work` depends on its two arguments alone.

    Examples
    --------
    >>> def heads(seed, index):
    ...     return {"heads": np.random.default_rng(seed).integers(2, size=100).sum()}
    >>> int(run_chunks(heads, chunks=10, seed=1, fingerprint="coins")["heads"])
    488
    """
    total = check_count(chunks, "chunks")
    root = check_count(seed, "seed", minimum=0)
    hands = check_count(workers, "workers")
    section = _section(checkpoint, _job(fingerprint, root, total))
    held = saved = _resume(section, total, work)
    try:
        for now in _advance(work, root, held, total, hands):
            held = now
            if progress is not None and not held.part and _is_mark(held.done, total):
                copies = {name: array.copy() for name, array in held.counts.items()}
                progress(held.done, total, copies)
            if section is not None and section.due():
                _save(section, held)
                saved = held
    finally:
        if section is not None and held is not saved:
            _save(section, held)
    return held.counts


def affordable_trials(
    audit: Callable[[int], Any],
    *,
    seconds: float,
    least: SupportsIndex,
    each: float = 0.0,
    most: SupportsIndex = 10_000_000,
) -> int:
    """Return how many trials an audit can have in so many seconds, about.

    Parameters
    ----------
    audit : callable
        Runs an audit of so many trials; what it finds is not used.
    seconds : float
        Time for all trials.
    least, most : int
        Limits of the answer.
    each : float, optional
        Seconds that one trial takes at least, if it is known; where the least number
        takes a fifth of the time, nothing more is measured.

    Returns
    -------
    int
        At least `least`, and above it cut to the first digit.

    Examples
    --------
    >>> affordable_trials(print, seconds=60, least=10, each=2.0, most=1000)
    30
    """
    time_left = check_positive(seconds, "seconds")
    low, high = check_count(least, "least"), check_count(most, "most")
    if low * each >= _KNOWN * time_left:
        return max(low, min(high, _rounded_down(time_left / each)))
    size = low
    while True:
        start = time.monotonic()
        audit(size)
        taken = max(time.monotonic() - start, size * each, 1e-9)
        if taken >= _SHARE * time_left or size >= min(high, _MEASURED):
            break
        size = min(size * _GROWTH, high, _MEASURED)
    return max(low, min(high, _rounded_down(size * time_left / taken)))


def _rounded_down(number: float) -> int:
    """Return a number of at least 1 cut to its first digit."""
    power = int(10 ** math.floor(math.log10(max(1.0, number))))
    return power * max(1, int(number / power))


class _Held(NamedTuple):
    """So many chunks, from the first on, their counts, and a part of the next one.

    `begun` is such a part as `restored` returned it.
    """

    done: int
    counts: Counts
    part: Step | None = None
    begun: Any = None


def _advance(
    work: Work, root: int, held: _Held, total: int, hands: int
) -> Iterator[_Held]:
    """Run the other chunks; yield what is held after each of them, or their parts."""
    if hands == 1 and hasattr(work, "steps"):
        yield from _stepwise(work, root, held, total)
        return
    mapper = _serial if hands == 1 else _Workers(hands)
    while held.done < total:
        for part in mapper(work, root, range(held.done, total)):
            held = _Held(held.done + 1, _add(held.counts, _read_counts(part)))
            yield held


def _stepwise(work: Any, root: int, held: _Held, total: int) -> Iterator[_Held]:
    while held.done < total:
        for step in work.steps(_child(root, held.done), held.done, held.begun):
            if step.counts is None:
                held = _Held(held.done, held.counts, step)
            else:
                counts = _add(held.counts, _read_counts(step.counts))
                held = _Held(held.done + 1, counts)
            yield held


def _is_mark(done: int, total: int) -> bool:
    """Return whether progress is told: by the number of chunks, never by the clock."""
    step = -(-total // _MARKS)
    return done == total or done % step == 0 or done & (done - 1) == 0


def _child(root: int, index: int) -> np.random.SeedSequence:
    """Return the child of that number, as spawning would, without the others."""
    return np.random.SeedSequence(root, spawn_key=(index,))


def _serial(work: Work, root: int, left: range) -> list[Mapping[str, Any]]:
    """Run the first of the chunks that are left."""
    return [work(_child(root, left[0]), left[0])]


def _share(work: Any, root: int, block: range) -> list[tuple[Mapping[str, Any], Any]]:
    """Run some chunks in a worker; return their counts and how their batches began."""
    fresh = getattr(work, "fresh", None)
    found = []
    for index in block:
        part = work(_child(root, index), index)
        found.append((part, [] if fresh is None else fresh.drain()))
    return found


class _Workers:
    """Runs a block of chunks in processes; blocks are sized to take half a second."""

    def __init__(self, hands: int) -> None:
        try:
            import joblib
        except ImportError:
            raise AuditError(
                f"workers must be 1 without joblib, got {hands}; run "
                "pip install 'undertow[learn]'."
            ) from None
        self.joblib, self.hands, self.each = joblib, hands, 1

    def __call__(self, work: Work, root: int, left: range) -> list[Mapping[str, Any]]:
        block = left[: self.hands * self.each]
        size = -(-len(block) // self.hands)
        shares = [block[at : at + size] for at in range(0, len(block), size)]
        start = time.monotonic()
        parts = self._run(work, root, shares)
        taken = time.monotonic() - start
        if taken < _SHORT:
            self.each *= 2
        elif taken > _LONG:
            self.each = max(1, self.each // 2)
        return parts

    def _run(
        self, work: Work, root: int, shares: list[range]
    ) -> list[Mapping[str, Any]]:
        from concurrent.futures.process import BrokenProcessPool

        pool = self.joblib.Parallel(n_jobs=self.hands, backend="loky")
        call = self.joblib.delayed(_share)
        try:
            found = pool(call(work, root, share) for share in shares)
        except BrokenProcessPool as error:
            raise self._broken(work, error) from None
        fresh = getattr(work, "fresh", None)
        for _, marks in (pair for pairs in found for pair in pairs):
            if fresh is not None:
                fresh.admit(marks)
        return [part for pairs in found for part, _ in pairs]

    def _broken(self, work: Work, error: Exception) -> AuditError:
        told = str(getattr(getattr(work, "subject", None), "name", "the work"))
        if "un-serialize" in str(error):
            return AuditError(
                f"workers must be 1 for {told}, which another process cannot read, got "
                f"{self.hands}; define it in a module that can be imported there."
            )
        return AuditError(
            f"{told} must not end its process, got a worker that stopped; look for "
            "os._exit, a crash of compiled code, or too little memory."
        )


def _read_counts(part: Mapping[str, Any]) -> Counts:
    counts: Counts = {}
    for name, value in part.items():
        array = np.asarray(value)
        if array.dtype.kind not in "iu":
            raise AuditError(
                f"a chunk must return whole numbers, got {array.dtype} for {name!r}."
            )
        if array.size and int(array.max()) > _LARGEST:
            raise AuditError(f"counts must be below 2^62, got more for {name!r}.")
        counts[name] = array.astype(np.int64)
    return counts


def _add(counts: Counts, part: Counts) -> Counts:
    if not counts:
        return part
    shapes, others = (
        {name: array.shape for name, array in side.items()} for side in (counts, part)
    )
    if shapes != others:
        raise AuditError(
            f"every chunk must return the same names and shapes, got {others} after "
            f"{shapes}."
        )
    return {name: np.asarray(array + part[name]) for name, array in counts.items()}


def _job(fingerprint: str, root: int, total: int) -> str:
    described = json.dumps([fingerprint, root, total])
    return hashlib.sha256(described.encode()).hexdigest()


def _section(
    checkpoint: str | os.PathLike[str] | Place | None, job: str
) -> Section | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, Place):
        checkpoint = Place(Checkpoint(checkpoint), "counts")
    return checkpoint.section(job)


def _resume(section: Section | None, total: int, work: Any) -> _Held:
    """Return what the checkpoint holds: nothing if there is no such file."""
    state = None if section is None else section.read()
    if section is None or state is None:
        return _Held(0, {})
    try:
        done = check_count(state["done"], "done", minimum=0)
        counts = {k: np.array(v, dtype=np.int64) for k, v in state["counts"].items()}
        if done > total:
            raise ValueError("more chunks than there are")
        if (done and not counts) or any((c < 0).any() for c in counts.values()):
            raise ValueError("no counts")
        part = state.get("part")
        begun = None if part is None else work.restored(part)
    except UNREADABLE as error:
        raise section.damaged(error) from None
    return _Held(done, counts, begun=begun)


def _save(section: Section, held: _Held) -> None:
    counts = {name: array.tolist() for name, array in held.counts.items()}
    part = None if held.part is None or held.part.saved is None else held.part.saved()
    section.save({"done": held.done, "counts": counts, "part": part})


# Many trials in parts of bounded size, each with its own child of the seed.

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


# One file from which an interrupted run goes on, written by the clock.

UNREADABLE = (
    ValueError, KeyError, TypeError, AttributeError, SyntaxError, EOFError,
    OverflowError, RecursionError,
)  # fmt: skip
"""What reading a state may raise that is not what was saved."""

_FORMAT = "undertow audit checkpoint 2"
_OLDER = "undertow audit checkpoint 1"
# Seconds between two writes: of work that a kill may cost, unless a write takes more
# than a twentieth of it.
_INTERVAL = 1.0
_WRITES = 20.0


class Checkpoint:
    """A file in sections, each of one job; replaced as a whole, for its owner alone.

    Parameters
    ----------
    path : path
        Of the file; read at once if it is there.

    Raises
    ------
    AuditError
        If the folder is not there, or the file is damaged or of another format.

    Notes
    -----
    A kill leaves the file before or after a write, never a part of one. Sections that
    are not written again keep their text.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise AuditError(
                f"checkpoint must be a file in a folder that is there, got {self.path}."
            )
        held = _read(self.path) if self.path.exists() else {}
        self._held: dict[str, Any] = held
        self._texts = {name: json.dumps(part) for name, part in held.items()}
        self._interval, self._last = _INTERVAL, time.monotonic()

    def section(self, name: str, fingerprint: str) -> Section:
        """Return the part of one job; refuse one that another job has written."""
        found = self._held.get(name)
        strange = any(_is_phase(other) != _is_phase(name) for other in self._held)
        if strange or (found is not None and found["job"] != fingerprint):
            raise AuditError(
                f"checkpoint must belong to this job, got {self.path.name} of another "
                "one; name another file, or use the arguments and the seed that it was "
                "made with."
            )
        return Section(self, name, fingerprint)

    def state(self, name: str) -> Any:
        """Return what a section held when the file was read; None for nothing."""
        found = self._held.get(name)
        return None if found is None else found["state"]

    def due(self) -> bool:
        """Return whether it is time to write again."""
        return time.monotonic() - self._last >= self._interval

    def write(self, name: str, part: dict[str, Any]) -> None:
        """Replace one section and the file."""
        start = time.monotonic()
        self._texts[name] = json.dumps(part)
        held = ", ".join(f"{json.dumps(k)}: {text}" for k, text in self._texts.items())
        _replace(self.path, f'{{"format": "{_FORMAT}", "sections": {{{held}}}}}')
        self._last = time.monotonic()
        self._interval = max(_INTERVAL, _WRITES * (self._last - start))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a checkpoint a job is to keep its state."""

    checkpoint: Checkpoint
    name: str

    def section(self, fingerprint: str) -> Section:
        """Return the section for one job; refuse that of another."""
        return self.checkpoint.section(self.name, fingerprint)


@dataclass(frozen=True, slots=True)
class Section:
    """What one job keeps in a checkpoint."""

    checkpoint: Checkpoint
    name: str
    fingerprint: str

    def read(self) -> Any:
        """Return what was saved; None for nothing."""
        return self.checkpoint.state(self.name)

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return self.checkpoint.due()

    def save(self, state: Any) -> None:
        """Keep a state that JSON can hold."""
        part = {"job": self.fingerprint, "state": state}
        self.checkpoint.write(self.name, part)

    def damaged(self, error: Exception) -> AuditError:
        """Return what to raise if the state is not what was saved."""
        return _damaged(self.checkpoint.path, error)


def places(
    path: str | os.PathLike[str] | None, *names: str
) -> tuple[Place | None, ...]:
    """Return places of these names in one file; None for each without a file."""
    if path is None:
        return (None,) * len(names)
    checkpoint = Checkpoint(path)
    return tuple(Place(checkpoint, name) for name in names)


def _is_phase(name: str) -> bool:
    """Return whether a section is of a local audit; else it is of a pair audit."""
    return name.startswith("phase ")


def _damaged(path: Path, error: Exception) -> AuditError:
    return AuditError(
        f"checkpoint must be a whole file of an interrupted run, got {path.name}, "
        f"which is damaged ({type(error).__name__}); delete it to start again."
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        found = saved["format"]
        if found == _OLDER:
            raise AuditError(
                f"checkpoint must have the format of this version, got {path.name} of "
                "an older one; finish it with the version that wrote it, or delete it "
                "to start again."
            )
        if found != _FORMAT:
            raise ValueError("another format")
        sections = {str(k): dict(part) for k, part in saved["sections"].items()}
        for part in sections.values():
            part["job"], part["state"]
    except AuditError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, error) from None
    return sections


def _replace(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode("utf-8"), private=True)
    except OSError as error:
        raise AuditError(
            f"checkpoint must be a file that can be written, got {path}: "
            f"{error.strerror or error}."
        ) from None
