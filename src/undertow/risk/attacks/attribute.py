"""Attacks on a sensitive attribute: from a released model, and without any release.

The attacker knows the public part and the label of a target, completes it with every
candidate value :math:`s_i`, and asks the model. Three published rules turn its answers
into a guess. What is released is the model, so a batch of outputs is a batch of models.

The imputation attack predicts the attribute from the public ones, learns from other
people's records and never looks at what was released, so that its advantage is zero
however often it is right. A figure that shows otherwise is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_non_negative
from undertow.errors import MismatchError, ModelError
from undertow.numeric.array import Floats, Indices
from undertow.risk.threat import Threat


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
    >>> from undertow.risk.threat import Prior
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


# The imputation attack: predict the sensitive attribute from the public ones.
#
# It learns from other people's records and never looks at what was released, so that
# its advantage is zero however often it is right. A figure that shows otherwise is
# wrong.


class Classifier(Protocol):
    """What is asked of a classifier: the methods of scikit-learn's."""

    classes_: Any

    def fit(self, features: Any, labels: Any) -> Any:
        """Learn from features and classes."""

    def predict_proba(self, features: Any) -> Any:
        """Return a probability for each class in `classes_`, one row per record."""


class ImputationGuess:
    r"""Name the likeliest attribute given the public ones.

    Parameters
    ----------
    classifier : Classifier
        Unfitted; fitted here on `features` and `labels`.
    threat : Threat
        On records with a public and a sensitive part. Its knowledge must determine the
        public features.
    features : array_like of shape (n, columns)
        Public features of other people.
    labels : sequence of hashable
        Their sensitive attribute.
    public : callable
        From a record of the threat to its row of features.
    sensitive : callable
        From a record of the threat to its sensitive attribute.

    Attributes
    ----------
    probabilities : ndarray of shape (fibres, classes)
        What the classifier says of each fibre, a column for each class of the threat.

    Raises
    ------
    MismatchError
        If records of one fibre have different public features.

    Notes
    -----
    Attack 6 of [1]_. Classes are those of the records of the threat, in the order of
    their first appearance; one that the training data lack gets probability 0, and one
    that no record has is no answer. First of equals. The guess is a function of what is
    known: its advantage is 0 for every mechanism, prior and classifier.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 7.2.1.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> class Frequent:
    ...     def fit(self, features, labels):
    ...         self.classes_, counts = np.unique(labels, return_counts=True)
    ...         self.shares = counts / counts.sum()
    ...
    ...     def predict_proba(self, features):
    ...         return np.tile(self.shares, (len(features), 1))
    >>> people = Prior.uniform([(0, "no"), (0, "yes"), (1, "yes")])
    >>> threat = Threat.attribute(people, target=lambda r: r[1], known=lambda r: r[0])
    >>> attack = ImputationGuess(
    ...     Frequent(),
    ...     threat,
    ...     features=[[0], [0], [1]],
    ...     labels=["yes", "yes", "no"],
    ...     public=lambda r: [r[0]],
    ...     sensitive=lambda r: r[1],
    ... )
    >>> attack.guess(["any output"], 0, rng=np.random.default_rng(0)).tolist()
    [1]
    """

    __slots__ = ("_best", "probabilities", "threat")
    deterministic: ClassVar[bool] = True

    def __init__(
        self,
        classifier: Classifier,
        threat: Threat,
        *,
        features: ArrayLike,
        labels: Sequence[Hashable],
        public: Callable[[Any], Any],
        sensitive: Callable[[Any], Hashable],
    ) -> None:
        classifier.fit(np.asarray(features), np.asarray(labels))
        support = threat.support
        values = [sensitive(record) for record in support]
        classes = tuple(dict.fromkeys(values))
        rows = np.asarray([public(record) for record in support], dtype=np.float64)
        told = classifier.predict_proba(_fibre_rows(rows, threat.fibres))
        self.threat = threat
        self.probabilities = expand_classes(
            told, found=list(classifier.classes_), classes=classes
        )
        names = np.array([values.index(value) for value in classes], dtype=np.intp)
        self._best = names[self.probabilities.argmax(axis=1)]

    def guess(self, outputs: Any, known: int, *, rng: np.random.Generator) -> Indices:
        """Return the same guess for every output."""
        return np.full(len(outputs), self._answer(known), dtype=np.intp)

    def _answer(self, known: int) -> int:
        return int(self._best[check_index(known, "known", size=len(self._best))])

    def __repr__(self) -> str:
        size, classes = self.probabilities.shape
        return f"ImputationGuess({size} fibres, {classes} values)"


def expand_classes(
    probabilities: ArrayLike,
    *,
    found: Sequence[Hashable],
    classes: Sequence[Hashable],
) -> Floats:
    """Put the columns of a classifier in the order of all classes.

    Parameters
    ----------
    probabilities : array_like of shape (n, found)
        One column for each class in `found`.
    found : sequence of hashable
        Classes that the training data had, as the classifier orders them.
    classes : sequence of hashable
        All classes, in the order wanted.

    Returns
    -------
    ndarray of shape (n, classes)
        Zero for classes that were not found; columns of others are dropped.

    Raises
    ------
    ModelError
        If columns and classes found do not agree, or no class found is wanted.

    Examples
    --------
    >>> expand_classes([[0.3, 0.7]], found=["c", "a"], classes=["a", "b", "c"]).tolist()
    [[0.7, 0.0, 0.3]]
    """
    table = np.asarray(probabilities, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(found):
        raise ModelError(
            f"probabilities must have a column for each of the {len(found)} classes "
            f"found, got shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ModelError("probabilities must be finite numbers.")
    places = {value: place for place, value in enumerate(found)}
    kept = [
        (new, places[value]) for new, value in enumerate(classes) if value in places
    ]
    if not kept:
        raise ModelError("classes must have one that the classifier has learned.")
    full = np.zeros((len(table), len(classes)))
    for new, old in kept:
        full[:, new] = table[:, old]
    return full


def _fibre_rows(rows: Floats, fibres: Sequence[Indices]) -> Floats:
    """Return the features of each fibre, equal for all its records."""
    if rows.ndim != 2:
        raise ModelError("public must return one row of numbers for each record.")
    for fibre in fibres:
        if (rows[fibre] != rows[fibre[0]]).any():
            raise MismatchError(
                "the knowledge of the threat must determine the public features, got "
                "a fibre with several; use the same function for both."
            )
    return np.asarray(rows[[fibre[0] for fibre in fibres]])
