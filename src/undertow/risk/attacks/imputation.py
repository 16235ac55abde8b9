"""The imputation attack: predict the sensitive attribute from the public ones.

It learns from other people's records and never looks at what was released, so that its
advantage is zero however often it is right. A figure that shows otherwise is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.errors import MismatchError, ModelError
from undertow.risk.threat import Threat

__all__ = ["Classifier", "ImputationGuess", "expand_classes"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


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
    >>> from undertow.risk.prior import Prior
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
