"""Scores learned from training outputs, for outputs that are vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit.events import Score
from undertow.errors import AuditError

__all__ = ["learned_scores"]


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
