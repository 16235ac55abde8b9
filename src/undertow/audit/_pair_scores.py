"""Which numbers of an output are looked at when two inputs are told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit._low_bits import lowest_bit, negative_zeros
from undertow.audit._pair_joint import apart, joint_scores
from undertow.audit._pair_table import Fields, Numbers, OnRows, given_outputs
from undertow.audit._pair_whole import MOST, Cell, differing, digit_scores, whole_scores
from undertow.audit.events import Score
from undertow.audit.learned import learned_scores
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = [
    "ScoreChoice",
    "asked_scores",
    "columns_left_out",
    "finer_scores",
    "pair_scores",
]

ScoreFunction = Callable[[Any], Any]
ScoreChoice = str | ScoreFunction | Sequence[str | ScoreFunction] | None
"""What a user may ask for besides the outputs themselves."""

# Coordinates of a vector that are tried one by one.
_COORDINATES = 64
_LEFT_OUT = (
    "of {} numbers in an output {} were looked at one by one, and up to {} together"
)
# Places of numbers in other outputs that are tried one by one.
_FIELDS = 16
# Whole numbers that are told one by one.
_FEW = 64
# Decimals to which a log ratio is kept, so that equal ratios are equal.
_DIGITS = 9


def pair_scores(
    subject: Subject,
    pair: tuple[int, int],
    outputs: tuple[Any, Any],
    *,
    choice: ScoreChoice,
    seed: int,
) -> tuple[Score, ...]:
    """Return the scores to try on a pair.

    Parameters
    ----------
    subject : Subject
        Its likelihood ratio is tried if it has a method ``log_likelihood``.
    pair : pair of int
        Numbers of the inputs.
    outputs : pair of arrays
        Training outputs of both, from which a score may be learned.
    choice : "learned", "bits", "values", callable, sequence of these or None
        What to try besides; "values" adds nothing.
    seed : int
        For learning.

    Notes
    -----
    A number is its own score; of a vector up to 64 coordinates are tried, those in
    which the training outputs differ most, and a difference, a sum and a product of
    two, where they tell more than each alone. Where zeros have a negative sign, which
    no comparison of numbers shows, their number is a score too; and where most whole
    numbers occur once, so that they are not compared one by one, their lowest bit.
    Of outputs of another kind, or of several kinds, the numbers in them are scores;
    what they tell together, and their digits, are `finer_scores`.
    """
    found = [*_usual(*outputs), *_likelihood(subject, pair)]
    for one in asked_scores(choice):
        if one == "learned":
            found += learned_scores(outputs[0], outputs[1], seed=seed)
        elif one == "bits":
            found.append(_bits(*outputs))
        elif callable(one):
            found.append(_named(one))
        elif one != "values":
            raise ValueError(
                "score must be 'learned', 'bits', 'values', 'time' or functions, got "
                f"{choice!r}."
            )
    return tuple(found)


def asked_scores(choice: ScoreChoice) -> list[str | ScoreFunction]:
    """Return what a user has asked for, one by one.

    Examples
    --------
    >>> asked_scores(None), asked_scores("bits"), asked_scores(("bits", "time"))
    ([], ['bits'], ['bits', 'time'])
    """
    if choice is None:
        return []
    if callable(choice) or isinstance(choice, str):
        return [choice]
    return list(choice)


def finer_scores(first: Any, second: Any, *, digits: bool) -> tuple[Score, ...]:
    """Return scores of the last digits, or of all numbers of an output together.

    Parameters
    ----------
    first, second : array
        Training outputs of two inputs, from which the scores are made.
    digits : bool
        Which of the two.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=400)
    >>> [score.words for score in finer_scores(noise, 1 + noise, digits=True)]
    ['lowest bit of output']
    >>> finer_scores(noise, 1 + noise, digits=False)  # it is all of the output
    ()
    """
    table: Fields | Numbers | None = Numbers.of(first, second)
    if table is None:
        table = Fields(first, second)
    return tuple((digit_scores if digits else whole_scores)(table, first, second))


def columns_left_out(first: Any, second: Any) -> tuple[str, ...]:
    """Return which numbers of an output were not looked at, in sentences.

    Examples
    --------
    >>> columns_left_out(np.zeros((2, 65)), np.zeros((2, 65)))
    ('of 65 numbers in an output 64 were looked at one by one, and up to 128 together',)
    """
    numbers = Numbers.of(first, second)
    if numbers is None:
        fields = Fields(first, second)
        many, most = len(fields.places) + fields.left_out, _FIELDS
    else:
        many, most = len(numbers.words), _COORDINATES
    return () if many <= most else (_LEFT_OUT.format(many, most, MOST),)


def _usual(first: NDArray[Any], second: NDArray[Any]) -> list[Score]:
    """Return the scores of the numbers that most outputs are, or that are in them."""
    numbers = Numbers.of(first, second)
    if numbers is not None:
        (one, all_one), (two, all_two) = numbers.split(first), numbers.split(second)
        natural = _natural(one, two)
        missing = not (all_one.all() and all_two.all())
        return [
            Score(score.words, OnRows(numbers, score.function), True, missing)
            for score in natural
        ]
    fields = Fields(first, second)
    found = differing(fields.rows(first), fields.rows(second))
    tried = np.argsort(-found, kind="stable")[:_FIELDS]
    return [
        Score(fields.words[k], Cell(fields, k), True, True)
        for k in sorted(tried.tolist())
        if found[k] > 0
    ]


def _natural(first: NDArray[Any], second: NDArray[Any]) -> list[Score]:
    if first.dtype.kind not in "biuf":
        return []
    signed = [Score("negative zeros of output", negative_zeros)]
    if not any(negative_zeros(part).any() for part in (first, second)):
        signed = []
    if first.ndim == 1:
        few = max(_FEW, len(first) // 2)
        wide = first.dtype.kind in "iu" and len(np.unique(first)) > few
        parity = [Score("lowest bit of output", lowest_bit)] if wide else []
        return [Score("output", _as_float), *signed, *parity]
    tried = list(range(first.shape[1]))
    if len(tried) > _COORDINATES:
        found = apart(_as_float(first), _as_float(second))
        tried = sorted(np.argsort(-found, kind="stable")[:_COORDINATES].tolist())
    named = [Score(f"coordinate {k} of output", _Coordinate(k)) for k in tried]
    return [*named, *signed, *joint_scores(first, second, tried=tried)]


def _likelihood(subject: Subject, pair: tuple[int, int]) -> list[Score]:
    if not hasattr(subject, "log_likelihood"):
        return []
    return [Score("log likelihood ratio", _LikelihoodRatio(subject, pair))]


def _bits(first: NDArray[Any], second: NDArray[Any]) -> Score:
    numbers = Numbers.of(first, second)
    if numbers is None or numbers.kind.kind != "f" or numbers.shape:
        raise AuditError(
            f"score must be another one for outputs that are no floats, got 'bits' for "
            f"{first.dtype}."
        )
    gaps = not all(numbers.split(part)[1].all() for part in (first, second))
    return Score("lowest bit of output", OnRows(numbers, lowest_bit), True, gaps)


def _named(function: ScoreFunction) -> Score:
    if isinstance(function, Score):
        return Score(function.words, _Given(function))
    words = getattr(function, "__name__", "score")
    return Score(words, _Given(Score(words, function)))


class _Given:
    """A score of the user, of the runs that returned something; can be pickled.

    A run that raised has the least score of all.
    """

    def __init__(self, score: Score) -> None:
        self.score = score

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        told, read = given_outputs(np.asarray(outputs))
        scores = np.full(len(outputs), -np.inf)
        if read.any():
            scores[read] = self.score(told)
        return scores


def _as_float(outputs: Any) -> NDArray[np.float64]:
    return np.asarray(outputs, dtype=np.float64)


class _Coordinate:
    """One coordinate of each output; can be pickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        return _as_float(outputs[:, self.number])


class _LikelihoodRatio:
    """Log density of the first input less that of the second; can be pickled."""

    def __init__(self, subject: Any, pair: tuple[int, int]) -> None:
        self.subject, self.pair = subject, pair

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        logs = np.asarray(self.subject.log_likelihood(outputs, self.pair))
        nowhere = np.isneginf(logs).all(axis=1)
        with np.errstate(invalid="ignore"):
            ratio = logs[:, 0] - logs[:, 1]
        # What the stated law holds impossible on both inputs tells them not apart.
        return np.where(nowhere, 0.0, np.round(ratio, _DIGITS))
