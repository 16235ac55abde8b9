r"""Attacks on a released model: the sensitive value it seems to have seen.

The attacker knows the public part and the label of a target, completes it with every
candidate value :math:`s_i`, and asks the model. Three published rules turn its answers
into a guess. What is released is the model, so a batch of outputs is a batch of models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_non_negative
from undertow.errors import MismatchError, ModelError
from undertow.risk.threat import Threat

__all__ = [
    "ModelGuess",
    "ReleasedModel",
    "choose_confident",
    "choose_consistent",
    "choose_weighted",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class ReleasedModel(Protocol):
    """What is asked of a released model: probabilities of its classes."""

    def predict_proba(self, features: Any) -> Any:
        """Return a probability for each class, one row per record."""


def choose_weighted(confidence: ArrayLike, weights: ArrayLike) -> int:
    r"""Choose the candidate of largest weight times confidence in the true label.

    .. math:: \arg\max_i \; w_i \, \Pr_{\text{model}}[y \mid x, s_i]

    Parameters
    ----------
    confidence : array_like of shape (candidates,)
        Probability that the model gives to the true label under each candidate.
    weights : array_like of shape (candidates,)
        The shares of the candidates in the population (Yeom's rule), or what an imputer
        says of this target (white-box correlation attack, used as a black box).

    Returns
    -------
    int
        Number of the candidate; the first of equals.

    Notes
    -----
    Attacks 7 and 9 of [1]_. The confidence is that in the label *y* of the target, not
    in the candidate, as a phrase of the source has it.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 7.2.2.

    Examples
    --------
    >>> choose_weighted([0.2, 0.6, 0.9], [0.7, 0.2, 0.1])
    0
    """
    told, share = _vector(confidence, "confidence"), _vector(weights, "weights")
    _require_equal(told, share, "weights")
    return int((told * share).argmax())


def choose_confident(
    confidence: ArrayLike, weights: ArrayLike, *, average_loss: float
) -> int:
    r"""Choose the likeliest candidate among those that look like training records.

    A candidate looks like one if :math:`-\ln \Pr[y \mid x, s_i]` is at most the average
    loss on the training data: the membership variant of Yeom's rule.

    Parameters
    ----------
    confidence, weights
        As for :func:`choose_weighted`.
    average_loss : float
        Average training loss, in nats.

    Returns
    -------
    int
        The first of equals; with no candidate inside, the first of all.

    Examples
    --------
    >>> choose_confident([0.2, 0.6, 0.9], [0.7, 0.2, 0.1], average_loss=0.6)
    1
    """
    told, share = _vector(confidence, "confidence"), _vector(weights, "weights")
    _require_equal(told, share, "weights")
    limit = check_non_negative(average_loss, "average_loss")
    inside = told >= np.exp(-limit)
    return int((share * inside).argmax())


def choose_consistent(
    predicted: ArrayLike, confidence: ArrayLike, *, label: int
) -> int:
    """Choose by which candidates the model predicts the true label under (CSMIA).

    Exactly one candidate fits: that one. None fits: the one of least confidence.
    Several fit: the most confident of these.

    Parameters
    ----------
    predicted : array_like of int, of shape (candidates,)
        Predicted class under each candidate.
    confidence : array_like of shape (candidates,)
        Probability of the predicted class.
    label : int
        The true class of the target.

    Returns
    -------
    int
        The first of equals.

    Notes
    -----
    Attack 8 of A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
    2025.

    Examples
    --------
    >>> choose_consistent([0, 0, 0], [0.9, 0.6, 0.8], label=1)
    1
    >>> choose_consistent([1, 1, 0], [0.7, 0.8, 0.95], label=1)
    1
    """
    sure = _vector(confidence, "confidence")
    fits = np.asarray(predicted) == label
    _require_equal(sure, fits, "predicted")
    if not fits.any():
        return int(sure.argmin())
    return int(np.where(fits, sure, -np.inf).argmax())


Rule = Callable[[Floats, int, int], int]
"""From the table [candidate, class], the label and the fibre to a candidate."""


class ModelGuess:
    """Guess a sensitive attribute from released models.

    Parameters
    ----------
    threat : Threat
        Whose knowledge is the public part and the label of the target.
    rows : sequence of array_like of shape (candidates, columns)
        For each fibre, the target completed with every candidate value.
    labels : sequence of int
        For each fibre, the class of the target, as a column of ``predict_proba``.
    names : sequence of sequence of int
        For each fibre, the number into ``threat.guesses`` that names each candidate.
    rule : callable
        From the table of probabilities (candidates, classes), the label and the number
        of the fibre to the number of a candidate; such as one of the rules here.

    Notes
    -----
    One query of ``candidates`` rows for each model and fibre. The correction needs the
    attack on every target for every model, and no further training.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> class Memory:  # gives away the value 1
    ...     def predict_proba(self, features):
    ...         seen = np.asarray(features)[:, -1] == 1
    ...         return np.stack([1.0 - 0.9 * seen, 0.9 * seen], axis=1)
    >>> people = Prior.uniform([("ann", 0), ("ann", 1)])
    >>> threat = Threat.attribute(people, target=lambda r: r[1], known=lambda r: r[0])
    >>> attack = ModelGuess(
    ...     threat,
    ...     rows=[[[0.5, 0], [0.5, 1]]],
    ...     labels=[1],
    ...     names=[[0, 1]],
    ...     rule=lambda table, y, z: choose_weighted(table[:, y], [0.5, 0.5]),
    ... )
    >>> attack.guess([Memory()], 0, rng=np.random.default_rng(0)).tolist()
    [1]
    """

    __slots__ = ("_labels", "_names", "_rows", "_rule")
    deterministic: ClassVar[bool] = True

    def __init__(
        self,
        threat: Threat,
        *,
        rows: Sequence[ArrayLike],
        labels: Sequence[int],
        names: Sequence[Sequence[int]],
        rule: Rule,
    ) -> None:
        fibres = len(threat.fibres)
        for given, name in ((rows, "rows"), (labels, "labels"), (names, "names")):
            if len(given) != fibres:
                raise MismatchError(
                    f"{name} must have one entry for each of the {fibres} fibres, got "
                    f"{len(given)}."
                )
        self._rows = [np.asarray(table, dtype=np.float64) for table in rows]
        self._names = [
            np.array(
                [check_index(g, "names", size=len(threat.guesses)) for g in listed]
            )
            for listed in names
        ]
        for table, named in zip(self._rows, self._names, strict=True):
            if table.ndim != 2 or len(table) != len(named):
                raise MismatchError(
                    "rows must hold one row of numbers for each candidate named, got "
                    f"shape {table.shape} for {len(named)}."
                )
        self._labels, self._rule = list(labels), rule

    def guess(
        self, outputs: Sequence[ReleasedModel], known: int, *, rng: np.random.Generator
    ) -> Indices:
        """Return the guess from each released model."""
        fibre = check_index(known, "known", size=len(self._rows))
        label, named = self._labels[fibre], self._names[fibre]
        guesses = [
            named[self._rule(self._ask(model, fibre), label, fibre)]
            for model in outputs
        ]
        return np.asarray(guesses, dtype=np.intp)

    def _ask(self, model: ReleasedModel, fibre: int) -> Floats:
        table = np.asarray(model.predict_proba(self._rows[fibre]), dtype=np.float64)
        if table.ndim != 2 or len(table) != len(self._rows[fibre]):
            raise ModelError(
                "predict_proba must return one row for each record asked, got shape "
                f"{table.shape}."
            )
        return table

    def __repr__(self) -> str:
        return f"ModelGuess({len(self._rows)} fibres)"


def _vector(values: ArrayLike, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not vector.size or not (vector >= 0).all():
        raise ValueError(
            f"{name} must be one non-negative number for each candidate, got shape "
            f"{vector.shape}."
        )
    return vector


def _require_equal(first: NDArray[Any], second: NDArray[Any], name: str) -> None:
    if first.shape != second.shape:
        raise MismatchError(
            f"{name} must have one entry for each of the {first.size} candidates, got "
            f"shape {second.shape}."
        )
