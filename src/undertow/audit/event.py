"""Events that tell two inputs apart: where to look, and how to choose.

Scores given, learned, or read from the last digits of floats; the intervals and labels
that are worth counting; and the event with the best lower limit.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from undertow.audit._outcome import outcome, shortened
from undertow.audit.claim import Parameter
from undertow.errors import AuditError
from undertow.numeric.array import Bools, Floats

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


# Which intervals and which outputs of two inputs are worth counting.
#
# They are read off one part of the training outputs; nothing here certifies anything.

# Outputs that are looked at one by one for being common, and for telling apart.
_LABELS = 1024
# Cut points of a score, and those of them that bound intervals.
_CUTS = 128
_ENDS = 32
# What an output of the second input weighs against in the search for narrow intervals,
# and the share of all outputs that makes an interval narrow: less than grids resolve.
_WEIGHTS = (4.0, 16.0, 64.0, 256.0)
_NARROW = 1.0 / 16.0


def proposed_labels(seen: Counter[Any], other: Counter[Any]) -> list[Any]:
    """Return outputs that occur twice or more: the commonest, and the most telling.

    Those are the 1,024 whose frequencies differ most for their size; so a rare output
    of one input is not hidden by thousands of common ones.

    Examples
    --------
    >>> proposed_labels(Counter("aab"), Counter("ac"))
    ['a']
    """
    pooled = seen + other
    found = [item for item in pooled.most_common(_LABELS) if item[1] > 1]
    if len(found) == _LABELS:
        first, second = seen.total(), other.total()

        def apart(label: Any) -> float:
            gap = abs(seen[label] * second - other[label] * first)
            return gap / math.sqrt(pooled[label])

        rest = (label for label, count in pooled.items() if count > 1)
        found += [(label, 0) for label in heapq.nlargest(_LABELS, rest, key=apart)]
    return list(dict.fromkeys(label for label, _ in found))


def proposed_spans(first: Floats, second: Floats) -> list[tuple[float, float]]:
    """Return half-lines, intervals between sample quantiles, and narrow intervals.

    Parameters
    ----------
    first, second : ndarray
        Scores of both inputs, sorted.
    """
    cuts = _cuts(np.sort(np.concatenate([first, second])), second)
    return [*_spans(cuts), *_narrow_spans(first, second)]


def _cuts(pooled: Floats, second: Floats) -> Floats:
    """Return sample quantiles, and the points just outside the second input's range."""
    places = np.linspace(0, len(pooled) - 1, _CUTS).round().astype(int)
    outside = np.nextafter(second[[0, -1]], [-np.inf, np.inf])
    return np.unique(np.concatenate([pooled[places], outside]))


def _spans(cuts: Floats) -> Iterator[tuple[float, float]]:
    for cut in cuts.tolist():
        yield cut, np.inf
        yield -np.inf, cut
    ends = cuts[np.unique(np.linspace(0, len(cuts) - 1, _ENDS).round().astype(int))]
    for number, low in enumerate(ends.tolist()):
        for high in ends[number:].tolist():
            yield low, high


def _narrow_spans(first: Floats, second: Floats) -> Iterator[tuple[float, float]]:
    """Find the intervals in which the first input outweighs the second most.

    The one that maximises the share of the first less some times that of the second,
    by running sums; only if it is too narrow for the grid of quantiles.
    """
    pooled = np.concatenate([first, second])
    values, place, counts = np.unique(pooled, return_inverse=True, return_counts=True)
    own, other = (
        np.bincount(part, minlength=len(values)) / len(part)
        for part in np.split(place, [len(first)])
    )
    held = np.concatenate([[0], np.cumsum(counts)])
    for weight in _WEIGHTS:
        running = np.concatenate([[0.0], np.cumsum(own - weight * other)])
        least = np.minimum.accumulate(running[:-1])
        stop = int(np.argmax(running[1:] - least))
        start = int(np.argmin(running[: stop + 1]))
        if held[stop + 1] - held[start] < _NARROW * len(pooled):
            yield float(values[start]), float(values[stop])


# Scores learned from training outputs, for outputs that are vectors.


def learned_scores(first: Any, second: Any, *, seed: int) -> tuple[Score, ...]:
    """Return two scores that are large for outputs of the first input.

    Parameters
    ----------
    first, second : array of shape (n,) or (n, k)
        Numeric outputs of the two inputs.
    seed : int
        For the second classifier.

    Returns
    -------
    tuple of Score
        The decision functions of a logistic regression and of boosted trees.

    Raises
    ------
    AuditError
        If scikit-learn is not installed, or the outputs are not numbers.

    Notes
    -----
    How good a classifier is decides how much an audit can find, never whether what it
    finds is right.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sample = rng.normal(size=(200, 2))
    >>> linear, _ = learned_scores(sample + 1, sample, seed=0)
    >>> bool(linear(np.ones((1, 2)))[0] > linear(np.zeros((1, 2)))[0])
    True
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise AuditError(
            "score must be another one without scikit-learn, got 'learned'; run "
            "pip install 'undertow[learn]'."
        ) from None
    rows = np.concatenate([_rows(first), _rows(second)])
    truth = np.repeat([1, 0], [len(first), len(second)])
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=seed % 2**32)
    with _one_thread():
        return tuple(
            Score(words, _Decision(model.fit(rows, truth)))
            for words, model in (("linear score", linear), ("score of trees", trees))
        )


def _one_thread() -> Any:
    """Return a context in which scikit-learn uses one thread.

    Threads of several workers would wait for each other, for minutes where the cores
    are busy, and sums in another order would not give the same score.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    return threadpool_limits(limits=1)


class _Decision:
    """A fitted classifier as a function of outputs; can be pickled."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        with _one_thread():
            return np.asarray(self.model.decision_function(_rows(outputs)))


def _rows(outputs: Any) -> NDArray[np.float64]:
    array = np.asarray(outputs)
    if array.dtype.kind not in "biuf":
        raise AuditError(
            "score must be a function for outputs that are not numbers, got 'learned'."
        )
    if not np.isfinite(array).all():
        raise AuditError(
            "score must be a function for outputs that may be infinite, got 'learned'."
        )
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


# Scores of the last digits of floats, where noise leaves traces of the answer.

# The lowest bit of zero: above that of every float.
_NO_BIT = 1100.0
# Bits of the uniform numbers that usual samplers take the logarithm of, and how many of
# them are tried around the one that was probably drawn.
_UNIFORM, _AROUND = 53, range(-3, 4)
# Outputs on which a centre and a scale are tried first; how many have to be reached.
_FIRST, _FEW, _REACHED = 4, 64, 0.999
# Relative distance from the estimate at which scales are tried, and centres of so many
# digits.
_NEAR, _CENTRES = 0.05, 16
# Beyond it a float has no six digits after the point; of residues so many are kept.
_WHOLE, _DECIMALS = 2.0**30, 6


def lowest_bit(outputs: Any) -> Floats:
    r"""Return the exponent of the lowest set bit of each number.

    For :math:`y = m 2^e` with m odd this is e; it is 1100 for zero and infinity.
    Noise added in floating-point arithmetic leaves traces of the true answer there; of
    whole numbers it tells which are odd.

    Notes
    -----
    The rounded sum of a number of size :math:`2^a` and a noise is a multiple of the
    spacing near the larger of the two, so small outputs have more trailing zeros than
    outputs of the input 0 [1]_, [2]_.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.
    .. [2] S. Haney, D. Desfontaines, L. Hartman, R. Shrestha, M. Hay,
       *Precision-based Attacks and Interval Refining*, 2022.

    Examples
    --------
    >>> lowest_bit([1.0, 0.75, 6.0])
    array([ 0., -2.,  1.])
    >>> lowest_bit(np.array([2**60 + 1, -6]))
    array([0., 1.])
    """
    if np.asarray(outputs).dtype.kind in "iu":
        bits = np.asarray(outputs).astype(np.uint64)  # all of them, beyond 2^53 too
        alone = (bits & (~bits + np.uint64(1))).astype(np.float64)
        return np.where(bits == 0, _NO_BIT, np.log2(np.where(bits == 0, 1.0, alone)))
    values = np.asarray(outputs, dtype=np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    place = np.log2(lowest.astype(np.float64)) + exponent - 53
    return np.where(digits == 0, _NO_BIT, place)


def negative_zeros(outputs: Any) -> Floats:
    """Return how many zeros with a negative sign each output has.

    They equal other zeros, and are printed otherwise.

    Examples
    --------
    >>> negative_zeros([0.0, -0.0, -1.0])
    array([0., 1., 0.])
    """
    values = np.asarray(outputs)
    if values.dtype.kind != "f":
        return np.zeros(len(values))
    found = np.signbit(values) & (values == 0.0)
    return np.asarray(found.reshape(len(values), -1).sum(axis=1), dtype=np.float64)


def residue(outputs: Any, *, bits: int) -> Floats:
    r"""Return what is left of each output modulo :math:`2^{-bits}`, as a share.

    Examples
    --------
    >>> residue([0.25, 0.375], bits=2)
    array([0. , 0.5])
    """
    scaled = np.ldexp(np.asarray(outputs, dtype=np.float64), bits)
    return np.asarray(scaled - np.floor(scaled))


def decimal_residue(outputs: Any, *, digits: int) -> Floats:
    r"""Return what is left of each number modulo :math:`10^{-digits}`, as a share.

    From -1/2 to 1/2, so that multiples of that step are near 0 however they were
    rounded; to six decimals, and to none where a float has no such digits: 0.

    Examples
    --------
    >>> decimal_residue([0.25, 1.253, 0.1 + 0.2], digits=2)
    array([0. , 0.3, 0. ])
    """
    values = np.asarray(outputs, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = values * 10.0**digits
        told = np.where(np.abs(scaled) < _WHOLE, scaled, 0.0)
        left = np.round(told - np.round(told), _DECIMALS) + 0.0
    return np.where(np.isnan(values), np.nan, left)


def laplace_reach(outputs: Any, *, centre: Any, scale: Any) -> Floats:
    r"""Return 1 for each number that textbook Laplace noise can reach, 0 for others.

    That noise is :math:`\pm b \ln v`, where v is one of the multiples of
    :math:`2^{-53}` up to 1, and it is added to the answer c, each step rounded. Far
    from c these sums are fewer than the floats between them [1]_.

    Parameters
    ----------
    outputs : array_like
        Numbers.
    centre, scale : float or array
        The answer c and the scale b; several at once by the rules of broadcasting.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.

    Examples
    --------
    >>> noisy = 10 + np.random.default_rng(1).laplace(size=10_000)
    >>> float(laplace_reach(noisy, centre=10, scale=1).mean()) > 0.999
    True
    >>> float(laplace_reach(noisy, centre=11, scale=1).mean()) < 0.96
    True
    """
    values = np.asarray(outputs, dtype=np.float64)
    with np.errstate(all="ignore"):
        drawn = np.round(np.ldexp(np.exp(-np.abs(values - centre) / scale), _UNIFORM))
        found = np.zeros(drawn.shape, dtype=bool)
        for step in _AROUND:
            for logs in _logs(np.ldexp(np.maximum(drawn + step, 1.0), -_UNIFORM)):
                for noise in (scale * logs, logs / (1.0 / scale)):
                    found |= (centre + noise == values) | (centre - noise == values)
    return np.where(np.isnan(values), np.nan, found.astype(np.float64))


def _logs(uniform: Floats) -> Iterator[Floats]:
    """Yield logarithms as samplers take them: those of numpy and of the C library.

    The generators of numpy use the second. Before version 2 the first may differ from
    them in the last digit, which decides here.
    """
    yield np.log(uniform)
    if not _logs_agree():
        yield np.asarray([math.log(x) for x in uniform.ravel()]).reshape(uniform.shape)


@cache
def _logs_agree() -> bool:
    some = np.random.default_rng(0).random(4096) + 2.0**-_UNIFORM
    return bool((np.log(some) == [math.log(x) for x in some]).mean() > 0.999)


def textbook_laplace(outputs: Floats) -> tuple[float, float] | None:
    """Return centre and scale of textbook Laplace noise that reaches the outputs.

    Tried are numbers of few digits near the median and the mean distance from it.

    Examples
    --------
    >>> noise = np.random.default_rng(1).laplace(scale=2, size=4000)
    >>> textbook_laplace(3 + noise), textbook_laplace(3 + noise.round(6))
    ((3.0, 2.0), None)
    """
    values = outputs[np.isfinite(outputs)]
    if len(values) < _FEW:
        return None
    middle = float(np.median(values))
    spread = float(np.abs(values - middle).mean())
    if not 1e-6 < spread < 1e9:
        return None
    error = 4.0 * spread / np.sqrt(len(values))
    far = values[np.argsort(-np.abs(values - middle))[:_FEW]]  # where reach is thin
    tried = [(c, b) for c in _short_numbers(middle, error) for b in _scales(spread)]
    for few in (_FIRST, _FEW):
        laws = np.array(tried, dtype=np.float64).reshape(-1, 2, 1)
        told = laplace_reach(far[:few], centre=laws[:, 0], scale=laws[:, 1])
        tried = [tried[place] for place in np.flatnonzero(told.min(axis=1, initial=1))]
    for centre, scale in tried[:_FIRST]:
        if laplace_reach(values, centre=centre, scale=scale).mean() > _REACHED:
            return centre, scale
    return None


def _short_numbers(middle: float, error: float) -> list[float]:
    """Return numbers of up to three decimals near one, those of fewest digits first."""
    found: list[float] = []
    for digits in range(4):
        first = np.ceil((middle - error) * 10.0**digits)
        last = np.floor((middle + error) * 10.0**digits)
        if last - first < _CENTRES:
            found += [float(k) / 10.0**digits for k in np.arange(first, last + 1)]
    return list(dict.fromkeys(found))


def _scales(spread: float) -> list[float]:
    """Return numbers of two digits near one, and reciprocals of such."""
    near = [round(spread * (1 + shift), 12) for shift in np.linspace(-_NEAR, _NEAR, 41)]
    whole = [float(f"{number:.2g}") for number in near]
    inverse = [1.0 / float(f"{1.0 / number:.2g}") for number in near]
    return sorted(
        dict.fromkeys([*whole, *inverse]), key=lambda scale: abs(scale - spread)
    )
