"""Does the model fit? Tests whose failure sends one back to the general bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, xlogy

from undertow.correlation.fitting.counting import count_transitions
from undertow.errors import ModelError

__all__ = ["GoodnessOfFit", "chain_checks", "normality_checks"]

_LEVEL = 0.01
# Least over greatest eigenvalue of a correlation matrix that is told from zero.
_SINGULAR = 1e-13


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """One test of a model assumption.

    Parameters
    ----------
    assumption : str
        What was tested.
    statistic : float
        The test statistic.
    p_value : float
        Chance of as large a statistic if the assumption holds, for long series.
    """

    assumption: str
    statistic: float
    p_value: float

    @property
    def rejects(self) -> bool:
        """Whether the assumption is rejected at one in a hundred."""
        return self.p_value < _LEVEL

    @property
    def summary(self) -> str:
        """The verdict in words."""
        verdict = "rejected" if self.rejects else "not rejected"
        return f"{self.assumption}: {verdict} (p = {self.p_value:.3g})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "assumption": self.assumption,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "rejected": self.rejects,
        }


def chain_checks(
    runs: Sequence[NDArray[np.int64]],
    size: int,
    triples: NDArray[np.int64],
) -> tuple[GoodnessOfFit, ...]:
    """Test order one against two, and one chain against two halves in time.

    Notes
    -----
    Likelihood-ratio tests with their asymptotic chi-squared laws (Anderson and
    Goodman, 1957).
    """
    order = _likelihood_ratio(triples, pooled=triples.sum(axis=0))
    halves = np.stack([count_transitions(part, size) for part in _halves(runs)])
    time = _likelihood_ratio(halves, pooled=np.asarray(halves.sum(axis=0)))
    return (
        _test("order one rather than two", order, size * (size - 1) ** 2),
        _test("one transition matrix for the whole time", time, size * (size - 1)),
    )


def normality_checks(rows: NDArray[np.float64]) -> tuple[GoodnessOfFit, ...]:
    """Test joint normality by Mardia's skewness and kurtosis (1970).

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        One row a group, complete.

    Raises
    ------
    ModelError
        If a column is a combination of the others.

    Notes
    -----
    Time ``n m**3``: the mean of the cubed products of all pairs of whitened rows is the
    sum of the squared third moments.
    """
    n, m = rows.shape
    white = _whitened(rows)
    third = np.einsum("na,nb,nc->abc", white, white, white, optimize=True) / n
    skew = n * float((third**2).sum()) / 6
    kurtosis = float(((white**2).sum(axis=1) ** 2).mean())
    shift = (kurtosis - m * (m + 2)) / np.sqrt(8 * m * (m + 2) / n)
    two_sided = float(2 * ndtr(-abs(shift)))
    return (
        _test("Gaussian skewness", skew, m * (m + 1) * (m + 2) // 6),
        GoodnessOfFit("Gaussian kurtosis", float(shift), two_sided),
    )


def _whitened(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the centred rows in coordinates with the identity as covariance."""
    centred = rows - rows.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).mean(axis=0))
    sizes, axes = np.linalg.eigh(np.atleast_2d(scaled.T @ scaled / len(rows)))
    if not sizes[0] > _SINGULAR * sizes[-1]:
        raise ModelError(
            "no column may be a combination of the others, got a correlation matrix "
            "that is singular; leave one out."
        )
    return np.asarray(scaled @ axes / np.sqrt(sizes))


def _likelihood_ratio(tables: NDArray[np.int64], *, pooled: NDArray[np.int64]) -> float:
    """Return twice the log likelihood gained by separate tables over the pooled one."""
    separate = tables / np.maximum(tables.sum(axis=-1, keepdims=True), 1)
    common = pooled / np.maximum(pooled.sum(axis=-1, keepdims=True), 1)
    gain = xlogy(tables, separate) - xlogy(
        tables, np.broadcast_to(common, tables.shape)
    )
    return float(2 * gain.sum())


def _halves(
    runs: Sequence[NDArray[np.int64]],
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    first, second = [], []
    for run in runs:
        middle = len(run) // 2
        first.append(run[: middle + 1])
        second.append(run[middle:])
    return first, second


def _test(assumption: str, statistic: float, freedom: int) -> GoodnessOfFit:
    positive = max(statistic, 0.0)
    return GoodnessOfFit(assumption, positive, float(chdtrc(freedom, positive)))
