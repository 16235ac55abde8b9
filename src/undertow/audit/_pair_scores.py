"""Which numbers of an output are looked at when two inputs are told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit._low_bits import negative_zeros
from undertow.audit._pair_joint import apart, joint_scores
from undertow.audit.events import Score, lowest_bit
from undertow.audit.learned import learned_scores
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = ["ScoreChoice", "pair_scores"]

ScoreFunction = Callable[[Any], Any]
ScoreChoice = str | ScoreFunction | Sequence[str | ScoreFunction] | None
"""What a user may ask for besides the outputs themselves."""

# Coordinates of a vector that are tried one by one.
_COORDINATES = 64
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
    choice : "learned", "bits", callable, sequence of these or None
        What to try besides.
    seed : int
        For learning.

    Notes
    -----
    A number is its own score; of a vector up to 64 coordinates are tried, those in
    which the training outputs differ most, and a difference, a sum and a product of
    two, where they tell more than each alone. That misses what more coordinates
    together tell: then ask for ``"learned"``. Where zeros have a negative sign, which
    no comparison of numbers shows, their number is a score too; and where most whole
    numbers occur once, so that they are not compared one by one, their lowest bit.
    """
    natural = [*_natural(*outputs), *_likelihood(subject, pair)]
    if choice is None:
        return tuple(natural)
    asked = [choice] if callable(choice) or isinstance(choice, str) else choice
    found = list(natural)
    for one in asked:
        if one == "learned":
            found += learned_scores(outputs[0], outputs[1], seed=seed)
        elif one == "bits":
            found.append(_bits(outputs[0]))
        elif callable(one):
            found.append(_named(one))
        else:
            raise ValueError(
                f"score must be 'learned', 'bits' or functions, got {choice!r}."
            )
    return tuple(found)


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


def _bits(outputs: NDArray[Any]) -> Score:
    if outputs.dtype.kind != "f" or outputs.ndim != 1:
        raise AuditError(
            f"score must be another one for outputs that are no floats, got 'bits' for "
            f"{outputs.dtype}."
        )
    return Score("lowest bit of output", lowest_bit)


def _named(function: ScoreFunction) -> Score:
    if isinstance(function, Score):
        return function
    return Score(getattr(function, "__name__", "score"), function)


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
