r"""Events that tell two inputs apart: where to look, and how to choose.

An event is a set of outputs. Families of events are proposed from one part of the
training outputs and counted on another, so that an event which only fits the outputs
it was made from is not chosen. Nothing here certifies anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from undertow.audit._low_bits import lowest_bit, residue
from undertow.audit._outcome import outcome
from undertow.audit._proposals import proposed_labels, proposed_spans
from undertow.audit.claim import Parameter
from undertow.audit.outputs import shortened
from undertow.errors import AuditError

__all__ = [
    "Candidate",
    "LabelEvent",
    "Score",
    "ScoreEvent",
    "View",
    "best_event",
    "lower_limits",
    "lowest_bit",
    "output_labels",
    "residue",
    "seen_labels",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Outputs that are named in the words of an event.
_NAMED = 6


@dataclass(frozen=True)
class Score:
    """A number for each output, and its name.

    Parameters
    ----------
    words : str
        What it is, such as ``"output"``.
    function : callable
        From outputs to an array of one number each.
    partial : bool, optional
        Whether an output may have no such number, which is nan then: no interval holds
        it.
    missing : bool, optional
        Whether some training outputs had none, so that words have to tell of it.
    """

    words: str
    function: Callable[[Any], Any]
    partial: bool = False
    missing: bool = False

    def __call__(self, outputs: Any) -> Floats:
        """Return the score of each output."""
        try:
            scores = np.asarray(self.function(outputs), dtype=np.float64)
        except AuditError:
            raise
        except Exception as fault:  # any code, on outputs of any type
            raise AuditError(
                f"score must give a number for every output, got "
                f"{type(fault).__name__} from {self.words!r}; return outputs of one "
                "type, or give another score."
            ) from fault
        stray = not self.partial and np.isnan(scores).any()
        if scores.shape != (len(outputs),) or stray:
            raise AuditError(
                f"score must give one number for each of {len(outputs)} outputs, got "
                f"shape {scores.shape}{' with nan' if stray else ''}."
            )
        return scores


@dataclass(frozen=True)
class View:
    """Something of each output that is one of several: its type, its length.

    Parameters
    ----------
    words : str
        What it is, such as ``"type of output"``.
    function : callable
        From outputs to a list of one label each.
    """

    words: str
    function: Callable[[Any], list[Any]]


@dataclass(frozen=True)
class ScoreEvent:
    """The outputs whose score lies in a closed interval."""

    score: Score
    low: float
    high: float

    def holds(self, outputs: Any) -> Bools:
        """Return which outputs are in the event."""
        values = self.score(outputs)
        return np.asarray((values >= self.low) & (values <= self.high))

    @property
    def words(self) -> str:
        """The event as a person would say it."""
        return self._inside(f"{self.low:.6g}", f"{self.high:.6g}")

    @property
    def exact(self) -> str:
        """The event in words, with every digit of its ends."""
        return self._inside(repr(float(self.low)), repr(float(self.high)))

    @property
    def complement(self) -> str:
        """All other outputs in words, with every digit of the ends."""
        name, low, high = self.score.words, float(self.low), float(self.high)
        parts = [f"{name} < {low!r}"] if low != -np.inf else []
        parts += [f"{name} > {high!r}"] if high != np.inf else []
        parts += [f"no {name}"] if self.score.missing else []
        return " or ".join(parts) or f"no {name}"

    def _inside(self, low: str, high: str) -> str:
        name = self.score.words
        if self.low == -np.inf and self.high == np.inf:
            return f"{name} is a number"
        if self.high == np.inf:
            return f"{name} >= {low}"
        return (
            f"{name} <= {high}" if self.low == -np.inf else f"{low} <= {name} <= {high}"
        )


@dataclass(frozen=True)
class LabelEvent:
    """The outputs that are one of several, or of which a view is."""

    labels: tuple[Any, ...]
    view: View | None = None

    def holds(self, outputs: Any) -> Bools:
        """Return which outputs are in the event."""
        wanted, seen = frozenset(self.labels), seen_labels(outputs, self.view)
        return np.array([label in wanted for label in seen], bool)

    @property
    def name(self) -> str:
        """What is one of several."""
        return "output" if self.view is None else self.view.words

    @property
    def words(self) -> str:
        """The event as a person would say it."""
        shown = ", ".join(shortened(repr(label)) for label in self.labels[:_NAMED])
        more = len(self.labels) - _NAMED
        if len(self.labels) == 1:
            return f"{self.name} = {shown}"
        return f"{self.name} in {{{shown}{f' and {more} more' if more > 0 else ''}}}"

    @property
    def exact(self) -> str:
        """The event with every label in full."""
        return f"{self.name} in {{{', '.join(map(repr, self.labels))}}}"

    @property
    def complement(self) -> str:
        """All other outputs in words, with every label in full."""
        return f"{self.name} not in {{{', '.join(map(repr, self.labels))}}}"


@dataclass(frozen=True)
class Candidate:
    """An event with what it promised in training."""

    value: float
    event: LabelEvent | ScoreEvent


def output_labels(outputs: Any) -> list[Any]:
    """Return each output as something that can be hashed; rows become tuples.

    Examples
    --------
    >>> output_labels(np.array([[0, 1], [1, 1]]))
    [(0, 1), (1, 1)]
    """
    array = np.asarray(outputs)
    listed: list[Any] = array.tolist()
    if array.dtype.kind == "V":
        return list(map(outcome, listed))
    if array.ndim > 1:
        listed = list(map(tuple, listed))
    if array.dtype.kind == "f":  # nan does not equal itself
        unread = np.isnan(array).any(axis=tuple(range(1, array.ndim)))
        for place in np.flatnonzero(unread):
            listed[place] = outcome(listed[place])
    return listed


def seen_labels(outputs: Any, view: View | None) -> list[Any]:
    """Return each output, or what a view tells of it."""
    return output_labels(outputs) if view is None else view.function(outputs)


def lower_limits(
    hits_p: Any,
    hits_q: Any,
    *,
    trials: tuple[int, int],
    tail: float,
    delta: float = 0.0,
    parameter: Parameter = "epsilon",
) -> Floats:
    """Return what counts of many events would certify; unrounded, to compare events.

    Examples
    --------
    >>> lower_limits([900], [100], trials=(1000, 1000), tail=0.005).round(3)
    array([1.929])
    """
    k, j = np.asarray(hits_p, dtype=float), np.asarray(hits_q, dtype=float)
    n, m = trials
    low = np.where(
        k > 0, betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, tail), 0
    )
    inner = np.minimum(j, m - 1)
    high = np.where(j < m, betaincinv(inner + 1, m - inner, 1 - tail), 1.0)
    if parameter == "mu":
        with np.errstate(invalid="ignore"):
            gap = ndtri(low) - ndtri(high)
        return np.asarray(np.where(np.isnan(gap), -np.inf, gap))
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
        two = np.log(np.maximum(1 - high - delta, 0.0)) - np.log(1 - low)
    return np.asarray(np.fmax(one, two))


def best_event(
    proposal: tuple[Any, Any],
    selection: tuple[Any, Any],
    *,
    scores: tuple[Score, ...],
    views: tuple[View | None, ...] = (None,),
    tail: float,
    delta: float = 0.0,
    parameter: Parameter = "epsilon",
) -> Candidate:
    """Return the event that tells the first input from the second best in training.

    Parameters
    ----------
    proposal, selection : pair of outputs
        Of the two inputs; events are proposed from one part and counted on the other.
    scores : tuple of Score
        Whose half-lines and intervals are tried.
    views : tuple of View or None, optional
        Of which sets of equal labels are tried; None stands for the outputs themselves.
    tail : float
        Error probability of each limit in the comparison.
    delta, parameter
        Of the claim.

    Notes
    -----
    Outputs that occur at least twice, the 1,024 commonest and as many in which the
    inputs differ most, are tried one by one and as unions in the order of their
    estimated ratio. For each score: 128 thresholds from both sides, the intervals
    between 32 of them, the range of the second input included, and up to four narrower
    intervals in which the first input outweighs the second. Ties go to the event tried
    first.

    Examples
    --------
    >>> first, second = np.repeat([0, 1], [90, 10]), np.repeat([0, 1], [20, 80])
    >>> best_event((first, second), (first, second), scores=(), tail=0.05).event.words
    'output = 0'
    """
    trials = (len(selection[0]), len(selection[1]))
    best: Candidate | None = None
    families = [_label_family(proposal, selection, view) for view in views]
    families += [_score_family(score, proposal, selection) for score in scores]
    for hits_p, hits_q, event_at in families:
        if not len(hits_p):
            continue
        values = lower_limits(
            hits_p, hits_q, trials=trials, tail=tail, delta=delta, parameter=parameter
        )
        top = int(values.argmax())
        if best is None or values[top] > best.value:
            best = Candidate(float(values[top]), event_at(top))
    alone = not scores and views == (None,)
    if best is None or (alone and _mostly_once(proposal)):
        raise AuditError(
            "outputs must repeat, be numbers or have a score, got labels that mostly "
            "occur once; give a score."
        )
    return best


def _mostly_once(proposal: tuple[Any, Any]) -> bool:
    """Tell whether events of labels would leave most outputs out, unseen."""
    seen = Counter(label for part in proposal for label in output_labels(part))
    once = sum(count == 1 for count in seen.values())
    return 2 * once > seen.total()


_Family = tuple[Any, Any, Callable[[int], LabelEvent | ScoreEvent]]


def _label_family(
    proposal: tuple[Any, Any], selection: tuple[Any, Any], view: View | None
) -> _Family:
    """Count single outputs, and unions of those of largest ratio."""
    seen, other = (Counter(seen_labels(part, view)) for part in proposal)
    order = sorted(
        proposed_labels(seen, other),
        key=lambda label: ((seen[label] + 0.5) / (other[label] + 0.5), seen[label]),
        reverse=True,
    )
    place = {label: number for number, label in enumerate(order)}
    single = [_tally(seen_labels(part, view), place) for part in selection]
    hits = [np.concatenate([s, np.cumsum(s)]) for s in single]

    def event_at(number: int) -> LabelEvent:
        if number < len(order):
            return LabelEvent((order[number],), view)
        return LabelEvent(tuple(order[: number - len(order) + 1]), view)

    return hits[0], hits[1], event_at


def _tally(labels: list[Any], place: dict[Any, int]) -> NDArray[np.int64]:
    numbers = [place.get(label, len(place)) for label in labels]
    return np.bincount(numbers, minlength=len(place) + 1)[: len(place)]


def _score_family(
    score: Score, proposal: tuple[Any, Any], selection: tuple[Any, Any]
) -> _Family:
    """Count half-lines from both sides, and intervals."""
    numbers = [score(part) for part in proposal]
    first, second = (np.sort(part[~np.isnan(part)]) for part in numbers)
    spans = proposed_spans(first, second) if first.size and second.size else []
    if score.missing:  # whether there is a number tells something, too
        spans.append((-np.inf, np.inf))
    low, high = np.array([s[0] for s in spans]), np.array([s[1] for s in spans])
    hits = []
    for part in selection:
        scored = score(part)
        values = np.sort(scored[~np.isnan(scored)])
        upto = np.searchsorted(values, high, side="right")
        hits.append(upto - np.searchsorted(values, low, side="left"))
    return hits[0], hits[1], lambda number: ScoreEvent(score, *spans[number])
