r"""Divergences between finite distributions, and the exact loss of a finite mechanism.

A mechanism with finitely many inputs and outputs is a table: row D is the law of the
output on database D. Its exact pure loss is read off singletons, and is itself a
pseudometric on the databases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import VacuousGranularityError
from undertow.numeric.array import read_law

_TOLERANCE = 1e-12


class Violation(NamedTuple):
    """The pair of databases and the output at which a promise is exceeded the most.

    Attributes
    ----------
    pair : tuple of int
        Ordered: the output is likelier on the first database.
    output : int
        Column of the table.
    loss : float
        Log ratio of the two probabilities.
    allowed : float
        What the metric allows.
    """

    pair: tuple[int, int]
    output: int
    loss: float
    allowed: float


def renyi_divergence(p: ArrayLike, q: ArrayLike, *, alpha: float) -> float:
    r"""Return the Rényi divergence of order `alpha` between two finite laws.

    .. math:: D_\alpha(P \| Q) = \frac{1}{\alpha-1} \ln \sum p^\alpha q^{1-\alpha}

    Parameters
    ----------
    p, q : array_like
        Probabilities of the same outputs.
    alpha : float
        At least 1; 1 is the Kullback-Leibler divergence, ``inf`` the largest log
        ratio.

    Returns
    -------
    float
        To nearest; infinite if `p` has mass where `q` has none.

    Notes
    -----
    Definition VI.9 of the paper [1]_.

    References
    ----------
    .. [1] P. Guerra-Balboa, À. Miranda-Pascual, J. Parra-Arnau and T. Strufe,
       *Composition in Differential Privacy for General Granularity Notions*.

    Examples
    --------
    >>> round(renyi_divergence([0.75, 0.25], [0.25, 0.75], alpha=math.inf), 12)
    1.098612288668
    """
    if not alpha >= 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}.")
    table = _table(np.stack([np.asarray(p, dtype=float), np.asarray(q, dtype=float)]))
    mass, other = table[:, table[0] > 0]
    if np.any(other == 0):
        return math.inf
    ratio = np.log(mass) - np.log(other)
    if alpha == math.inf:
        return float(ratio.max())
    if alpha == 1:
        return max(0.0, math.fsum(mass * ratio))
    exponents = (alpha - 1.0) * ratio
    peak = float(exponents.max())
    total = math.log(math.fsum(mass * np.exp(exponents - peak)))
    return max(0.0, (peak + total) / (alpha - 1.0))


def exact_loss_matrix(pmf: ArrayLike) -> NDArray[np.float64]:
    r"""Return the least metric for which a finite mechanism is private.

    Parameters
    ----------
    pmf : array_like of shape (databases, outputs)
        Row D is the law of the output on D.

    Returns
    -------
    ndarray of shape (databases, databases)
        Largest absolute log ratio over the outputs; outputs impossible on both sides
        are skipped, on one side infinite. Symmetric, zero diagonal, triangle
        inequality.

    Notes
    -----
    Definition 2.5 of [1]_: the supremum over events is attained on single outputs.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> exact_loss_matrix([[1, 0], [0.5, 0.5]]).tolist()
    [[0.0, inf], [inf, 0.0]]
    """
    logs = _logs(_table(pmf))
    return np.array([np.abs(_log_ratios(row, logs)).max(axis=1) for row in logs])


def is_d_private(
    pmf: ArrayLike, metric: ArrayLike, *, atol: float = _TOLERANCE
) -> tuple[bool, Violation | None]:
    """Return whether a finite mechanism keeps a metric's promise on every pair.

    Parameters
    ----------
    pmf : array_like of shape (databases, outputs)
        Row D is the law of the output on D.
    metric : array_like of shape (databases, databases)
        Largest loss allowed between each pair; may be infinite.
    atol : float
        Excess attributed to rounding.

    Returns
    -------
    bool
        The verdict.
    Violation or None
        The worst excess, if there is one.

    Notes
    -----
    Definition 2.5 of Guerra-Balboa (2026).

    Examples
    --------
    >>> is_d_private([[0.75, 0.25], [0.25, 0.75]], [[0, 1], [1, 0]])[1].pair
    (0, 1)
    """
    table = _table(pmf)
    allowed = np.asarray(metric, dtype=float)
    if allowed.shape != (len(table), len(table)) or not np.all(allowed >= 0):
        raise ValueError(
            "metric must be a square matrix of non-negative numbers with one row per "
            f"database ({len(table)}), got shape {allowed.shape}."
        )
    loss = exact_loss_matrix(table)
    with np.errstate(invalid="ignore"):
        excess = np.where(allowed == math.inf, -math.inf, loss - allowed)
    worst = np.unravel_index(int(excess.argmax()), excess.shape)
    first, second = int(worst[0]), int(worst[1])
    if excess[first, second] <= atol:
        return True, None
    return False, _violation(table, (first, second), float(allowed[first, second]))


def tightest_epsilon(pmf: ArrayLike, neighbours: Iterable[tuple[int, int]]) -> float:
    """Return the least epsilon of a finite mechanism over given neighbours.

    Parameters
    ----------
    pmf : array_like of shape (databases, outputs)
        Row D is the law of the output on D.
    neighbours : iterable of (int, int)
        Pairs of rows; one order of each is enough.

    Raises
    ------
    VacuousGranularityError
        If there are no neighbours: nothing would be promised.

    Notes
    -----
    To nearest. Proposition 2.6 of Guerra-Balboa (2026): the guarantee at distance n is
    n times this.

    Examples
    --------
    >>> round(tightest_epsilon([[0.75, 0.25], [0.25, 0.75]], [(0, 1)]), 12)
    1.098612288668
    """
    logs = _logs(_table(pmf))
    losses = [np.abs(_log_ratios(logs[i], logs[[j]])).max() for i, j in neighbours]
    if not losses:
        raise VacuousGranularityError(
            "neighbours must not be empty, got no pair; a granularity without "
            "neighbours promises nothing."
        )
    return float(max(losses))


def _violation(
    table: NDArray[np.float64], pair: tuple[int, int], allowed: float
) -> Violation:
    first, second = pair
    logs = _logs(table)
    ratios = _log_ratios(logs[first], logs[[second]])[0]
    output = int(np.abs(ratios).argmax())
    if ratios[output] < 0:
        first, second = second, first
    return Violation((first, second), output, abs(float(ratios[output])), allowed)


def _logs(table: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table), dtype=float)


def _log_ratios(
    row: NDArray[np.float64], others: NDArray[np.float64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        ratios = row - others
    # Impossible on both sides: no information.
    both = (row == -math.inf) & (others == -math.inf)
    return np.where(both, 0.0, ratios)


def _table(pmf: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(pmf, dtype=float)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            "pmf must have one row per database and one column per output, "
            f"got shape {table.shape}."
        )
    for number, row in enumerate(table):
        read_law(row, f"row {number} of pmf", tolerance=_TOLERANCE, normalised=False)
    return table
