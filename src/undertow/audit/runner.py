r"""Long runs in chunks: the same answer whatever the workers, and after a kill.

Every chunk has its own seed and returns counts; counts are added. So neither the number
of workers nor an interruption changes a result, and memory does not grow with trials.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.audit.subjects import AuditError

__all__ = ["Counts", "Progress", "Work", "run_chunks"]

Counts = dict[str, NDArray[np.int64]]
"""Counts by name; a single count is an array without axes."""

Work = Callable[[np.random.SeedSequence, int], Mapping[str, Any]]
"""One chunk: from its seed and its number to its counts."""

Progress = Callable[[int, int, Counts], None]
"""Called with the chunks done, the chunks in all, and the counts so far."""

_FORMAT = "undertow audit checkpoint 1"
# Chunks that each worker does between two writes of the checkpoint.
_ROUND = 4
_LARGEST = 2**62


def run_chunks(
    work: Work,
    *,
    chunks: SupportsIndex,
    seed: SupportsIndex,
    fingerprint: str,
    workers: SupportsIndex = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Run all chunks and return the sum of their counts.

    Parameters
    ----------
    work : callable
        From a seed sequence and the number of the chunk to a mapping of names to whole
        numbers or arrays of them; the same names and shapes from every chunk.
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
        A file that is replaced as a whole every few chunks, readable by its owner
        alone. If it is there, the run goes on from it.
    progress : callable, optional
        Called after every few chunks.

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
    Counts hold no output of the mechanism and no record. Not checkable: that `work`
    depends on its two arguments alone.

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
    job = _job(fingerprint, root, total)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise AuditError(
            f"checkpoint must be a file in a folder that is there, got {path}."
        )
    done, counts = _resume(path, job)
    left = [index for index in range(total) if index not in done]
    mapper = _serial if hands == 1 else _parallel(hands)
    for start in range(0, len(left), hands * _ROUND):
        block = left[start : start + hands * _ROUND]
        for part in mapper(work, root, block):
            counts = _add(counts, _read_counts(part))
        done.update(block)
        if path is not None:
            _save(path, job, done, counts)
        if progress is not None:
            progress(len(done), total, {k: v.copy() for k, v in counts.items()})
    return counts


def _child(root: int, index: int) -> np.random.SeedSequence:
    """Return the child of that number, as spawning would, without the others."""
    return np.random.SeedSequence(root, spawn_key=(index,))


def _serial(work: Work, root: int, block: list[int]) -> list[Mapping[str, Any]]:
    return [work(_child(root, index), index) for index in block]


def _parallel(hands: int) -> Callable[[Work, int, list[int]], list[Mapping[str, Any]]]:
    try:
        import joblib
    except ImportError:
        raise AuditError(
            f"workers must be 1 without joblib, got {hands}; run "
            "pip install 'undertow[learn]'."
        ) from None

    def run(work: Work, root: int, block: list[int]) -> list[Mapping[str, Any]]:
        pool = joblib.Parallel(n_jobs=hands, backend="loky")
        return list(pool(joblib.delayed(work)(_child(root, i), i) for i in block))

    return run


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


def _resume(path: Path | None, job: str) -> tuple[set[int], Counts]:
    """Return what the checkpoint holds: nothing if there is no such file."""
    if path is None or not path.exists():
        return set(), {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["format"] != _FORMAT:
            raise ValueError("another format")
        owner, done = str(saved["job"]), {int(index) for index in saved["done"]}
        counts = {k: np.array(v, dtype=np.int64) for k, v in saved["counts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AuditError(
            f"checkpoint must be a whole file of an interrupted run, got {path.name}, "
            f"which is damaged ({type(error).__name__}); delete it to start again."
        ) from None
    if owner != job:
        raise AuditError(
            f"checkpoint must belong to this job, got {path.name} of another one; name "
            "another file, or use the arguments and the seed that it was made with."
        )
    return done, counts


def _save(path: Path, job: str, done: set[int], counts: Counts) -> None:
    """Replace the file as a whole, so that a kill leaves the old or the new one."""
    held = {name: array.tolist() for name, array in counts.items()}
    saved = {"format": _FORMAT, "job": job, "done": sorted(done), "counts": held}
    # Made with mode 0600.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(saved, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
