"""What observed data say of a model: counts, confidence limits, goodness of fit.

The fits themselves stand with the models: :func:`fit_markov` and
:func:`fit_markov_private` with the chain, :func:`fit_gaussian` with the Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, ndtr, xlog1py, xlogy

from undertow._validate import check_probability
from undertow.errors import ModelError
from undertow.numeric.search import bisect_each

MISSING = -1
"""Code of a missing record."""


def code_series(
    series: Sequence[Any],
    *,
    states: Sequence[Hashable] | None = None,
    missing: Iterable[Hashable] = (),
) -> tuple[list[NDArray[np.int64]], tuple[Hashable, ...]]:
    """Return series as arrays of state codes, and the states in order.

    Parameters
    ----------
    series : sequence
        One series of states, or a sequence of series. None and nan are missing.
    states : sequence, optional
        All states, in order; by default those that occur, sorted.
    missing : iterable, optional
        Further marks of a missing record.

    Raises
    ------
    ModelError
        If fewer than two states occur or are named, or a state is not among them.

    Examples
    --------
    >>> code_series(["a", "b", None, "a"])
    ([array([ 0,  1, -1,  0])], ('a', 'b'))
    """
    runs = [list(run) for run in series] if _is_nested(series) else [list(series)]
    marks = set(missing)
    seen = {_plain(x) for run in runs for x in run if not _is_missing(x, marks)}
    listed = tuple(states) if states is not None else tuple(_sorted(seen))
    if len(set(listed)) != len(listed):
        raise ModelError("states must be distinct, got one twice.")
    if len(listed) < 2:
        found = f"only {listed[0]!r}" if listed else "none"
        raise ModelError(
            f"a chain must have at least two states, got {found}; name all states "
            "if others can occur."
        )
    stray = seen - set(listed)
    if stray:
        # Which one is a private record.
        raise ModelError(
            f"every record must be one of the {len(listed)} states or missing, got "
            "another value; name all states."
        )
    codes = {state: code for code, state in enumerate(listed)}
    coded = [
        np.array([MISSING if _is_missing(x, marks) else codes[_plain(x)] for x in run])
        for run in runs
    ]
    return [run.astype(np.int64) for run in coded], listed


def count_transitions(
    runs: Sequence[NDArray[np.int64]], states: int
) -> NDArray[np.int64]:
    """Return how often each state followed each; pairs with a missing one dropped.

    Examples
    --------
    >>> count_transitions([np.array([0, 1, -1, 1, 1])], 2).tolist()
    [[0, 1], [0, 1]]
    """
    counts = np.zeros((states, states), dtype=np.int64)
    for run in runs:
        kept = (run[:-1] != MISSING) & (run[1:] != MISSING)
        np.add.at(counts, (run[:-1][kept], run[1:][kept]), 1)
    return counts


def count_triples(runs: Sequence[NDArray[np.int64]], states: int) -> NDArray[np.int64]:
    """Return how often each state followed each pair of states."""
    counts = np.zeros((states, states, states), dtype=np.int64)
    for run in runs:
        now = run[:-2], run[1:-1], run[2:]
        kept = (now[0] != MISSING) & (now[1] != MISSING) & (now[2] != MISSING)
        np.add.at(counts, tuple(part[kept] for part in now), 1)
    return counts


def _is_nested(series: Sequence[Any]) -> bool:
    if isinstance(series, np.ndarray):
        return series.ndim > 1
    return any(isinstance(item, list | tuple | np.ndarray) for item in series)


def _is_missing(value: Any, marks: set[Hashable]) -> bool:
    plain = _plain(value)
    if plain is None or type(plain).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(plain, float) and math.isnan(plain)) or plain in marks


def _plain(value: Any) -> Hashable:
    plain: Hashable = value.item() if isinstance(value, np.generic) else value
    return plain


def _sorted(values: set[Hashable]) -> list[Hashable]:
    try:
        return sorted(values)  # type: ignore[type-var]  # falls back where not ordered
    except TypeError:
        return sorted(values, key=repr)


# Confidence limits for a transition probability, valid at a random sample size.
#
# The number of departures from a state is random and depends on what was seen, so the
# textbook binomial limits do not apply to the rows of a chain. The limits here hold at
# every sample size at once: the k-th departure from a state is the k-th of a sequence
# of independent draws, the ratio of a uniform mixture of likelihoods to the likelihood
# of the true probability is a martingale along it, and Ville's inequality bounds the
# chance that it ever passes :math:`1/\alpha`.

_HALVINGS = 60


def anytime_interval(
    hits: float, misses: float, *, error: float
) -> tuple[float, float]:
    r"""Return limits for a probability from independent trials, at any stopping time.

    .. math:: \{p : B(k+1, n-k+1) \le p^k (1-p)^{n-k} / \alpha\}

    Parameters
    ----------
    hits, misses : float
        Number of trials that did and did not come out; non-negative.
    error : float
        Chance that the limits ever miss the truth, in (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper limit.

    Notes
    -----
    Robbins' mixture with a uniform weight and Ville's inequality: valid for every
    number of trials simultaneously, hence for a random one.

    Examples
    --------
    >>> low, high = anytime_interval(10, 90, error=0.05)
    >>> round(low, 4), round(high, 4)
    (0.0288, 0.2283)
    """
    error = check_probability(error, "error", open_interval=True)
    low, high = anytime_limits(np.array([hits]), np.array([misses]), error=error)
    return float(low[0]), float(high[0])


def anytime_limits(
    hits: NDArray[np.float64], misses: NDArray[np.float64], *, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return :func:`anytime_interval` for arrays of counts, entry by entry."""
    k, rest = np.asarray(hits, float), np.asarray(misses, float)
    if not (np.isfinite(k).all() and np.isfinite(rest).all()):
        raise ValueError("hits and misses must be finite.")
    if (k < 0).any() or (rest < 0).any():
        raise ValueError("hits and misses must be non-negative.")
    total = k + rest
    centre = np.divide(k, total, out=np.full_like(k, 0.5), where=total > 0)
    least = betaln(k + 1, rest + 1) + math.log(error)
    low = _edge(k, rest, least, inside=centre, outside=np.zeros_like(k))
    high = _edge(k, rest, least, inside=centre, outside=np.ones_like(k))
    return low, high


def _edge(
    k: NDArray[np.float64],
    rest: NDArray[np.float64],
    least: NDArray[np.float64],
    *,
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Bisect to where the log likelihood falls below `least`; end on the outer side."""
    return bisect_each(
        lambda share: ~(xlogy(k, share) + xlog1py(rest, -share) >= least),
        inside=outside,
        outside=inside,
        rounds=_HALVINGS,
    )


# Does the model fit? Tests whose failure sends one back to the general bound.

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
