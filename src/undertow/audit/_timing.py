"""Running times as outcomes: runs of all inputs in one random order, each timed.

A machine is slower at some times than at others. Where all runs of one input come
before those of the other, that alone tells them apart; so the order of the inputs is
drawn, independently of all times. What follows, and what it assumes: the page *Event
audits*, Proposition 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from undertow.audit._freshness import check_apart, check_steady
from undertow.audit._outcome import Row, TimedRun, is_vector, outcome
from undertow.audit.events import Score, View, output_labels
from undertow.audit.outputs import read_outcomes
from undertow.audit.recorded import RecordedSubject, require_once
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = ["TIME_NOTE", "as_timing", "timed_looks", "timed_runs", "untimed"]

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
