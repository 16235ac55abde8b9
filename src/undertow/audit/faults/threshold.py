r"""Faults of the sparse vector technique: queries held against a noisy threshold.

With threshold noise of scale :math:`2/\varepsilon`, query noise of scale
:math:`4/\varepsilon` and a stop at the first query above, queries that move by at most
1 cost :math:`\varepsilon`. Both noises and the stop are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_positive
from undertow.audit.claim import Claim
from undertow.audit.events import Score
from undertow.audit.faults.base import Code, Fault, code_subject
from undertow.audit.faults.laws import FiniteLaw, binary_number

__all__ = ["endless_threshold", "noiseless_queries", "threshold_masses"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CENTER = 0.5
_MOST = 10
# Scales of the threshold noise integrated over, and nodes in each.
_SPAN = 40
_NODES = 24


def noiseless_queries(epsilon: float = 1.0) -> Fault:
    """Sparse vector technique that adds noise to the threshold alone.

    All queries are held against the same noisy threshold, so that their order shows.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> noiseless_queries().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    queries = [(0.0, 1.0), (1.0, 0.0)]
    return Fault(
        "noiseless-queries",
        "The threshold gets noise, the queries held against it get none.",
        Claim.pure(level),
        _code(queries, (2.0 / level, 0.0), stop=False, name="noiseless_queries"),
        _code(queries, (2.0 / level, 4.0 / level), stop=True, name="above_threshold"),
        trials=800,
    )


def endless_threshold(epsilon: float = 2.0, *, queries: int = 10) -> Fault:
    """Sparse vector technique that goes on after a query above the threshold.

    Every answer above the threshold would have to be paid for; here none is, and the
    loss grows with the number of queries.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.
    queries : int, optional
        An even number up to 10; one half moves up, the other one down.

    Examples
    --------
    >>> [round(endless_threshold(queries=k).epsilon, 4) for k in (6, 10)]
    [2.446, 4.1504]
    """
    level = check_positive(epsilon, "epsilon")
    k = check_count(queries, "queries", minimum=2)
    if k % 2 or k > _MOST:
        raise ValueError(f"queries must be even and at most {_MOST}, got {k}.")
    low, high = (0.0,) * (k // 2), (1.0,) * (k // 2)
    answers = [(*low, *high), (*high, *low)]
    return Fault(
        "endless-threshold",
        "Queries are answered without end, with the noise for one answer above.",
        Claim.pure(level),
        _code(answers, (2.0 / level, 4.0 / level), stop=False, name="endless"),
        _code(answers, (2.0 / level, 4.0 / level), stop=True, name="above_threshold"),
        trials=80_000,
        score=Score("answers above by half", partial(_balance, width=k)),
    )


def threshold_masses(
    queries: tuple[float, ...], scales: tuple[float, float], *, stop: bool
) -> Floats:
    r"""Return the law of the answers, one bit for each query: above or not.

    .. math:: P(b) = \int f(t) \prod_i
       P(q_i + N_i \ge t)^{b_i} P(q_i + N_i < t)^{1-b_i}\, dt

    Parameters
    ----------
    queries : tuple of float
        The true answers.
    scales : pair of float
        Of the Laplace noise on the threshold 1/2 and on each query, which may be 0.
    stop : bool
        Whether queries after the first one above are not looked at; their bits are 0.

    Returns
    -------
    ndarray of shape (2^k,)
        By the binary number of the bits, the first query leading: the output.

    Notes
    -----
    Gauss-Legendre quadrature between the queries and the threshold, where the integrand
    is smooth, and to 40 scales beyond; the error is below 1e-12.

    Examples
    --------
    >>> threshold_masses((0.0, 1.0), (2.0, 0.0), stop=False).round(4).tolist()
    [0.3894, 0.2212, 0.0, 0.3894]
    """
    nodes, weights = _rule(queries, scales[0])
    above = np.stack([_survival(nodes - q, scales[1]) for q in queries])
    k = len(queries)
    masses = np.zeros(1 << k)
    for number in range(1 << k):
        bits = np.array([number >> (k - 1 - i) & 1 for i in range(k)], dtype=bool)
        if stop and bits.sum() > 1:
            continue
        chance = np.where(bits[:, None], above, 1.0 - above)
        seen = int(bits.argmax()) + 1 if stop and bits.any() else k
        masses[number] = weights @ chance[:seen].prod(axis=0)
    return masses


def _rule(queries: tuple[float, ...], scale: float) -> tuple[Floats, Floats]:
    """Return nodes, and weights that hold the density of the threshold."""
    inner = sorted({*queries, _CENTER})
    tails = scale * np.arange(1.0, _SPAN + 1)
    ends = np.concatenate([inner[0] - tails[::-1], inner, inner[-1] + tails])
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    nodes = (middle[:, None] + half[:, None] * x).ravel()
    density = np.exp(-np.abs(nodes - _CENTER) / scale) / (2 * scale)
    return nodes, (half[:, None] * w).ravel() * density


def _survival(gap: Floats, scale: float) -> Floats:
    """Return the probability that noise reaches each gap."""
    if scale == 0.0:
        return (gap <= 0).astype(float)
    tail = np.exp(-np.abs(gap) / scale) / 2.0
    return np.where(gap > 0, tail, 1.0 - tail)


def _code(
    queries: Sequence[tuple[float, ...]],
    scales: tuple[float, float],
    *,
    stop: bool,
    name: str,
) -> Code:
    rows = [threshold_masses(answers, scales, stop=stop) for answers in queries]
    settings = {"scales": scales, "stop": stop, "width": len(queries[0])}
    subject = code_subject(_compare, queries, name=name, **settings)
    return Code(subject, FiniteLaw(rows, np.asarray))


def _compare(
    values: Any,
    rng: np.random.Generator,
    *,
    scales: tuple[float, float],
    stop: bool,
    width: int,
) -> Ints:
    answers = np.asarray(values, dtype=float).reshape(-1, width)
    threshold = _CENTER + scales[0] * rng.laplace(size=(len(answers), 1))
    noisy = answers + scales[1] * rng.laplace(size=answers.shape)
    above = noisy >= threshold
    if stop:
        above &= above.cumsum(axis=1) == 1
    return binary_number(above)


def _balance(outputs: Any, *, width: int) -> Ints:
    """Return the answers above in the second half less those in the first."""
    numbers = np.arange(1 << width)
    bits = numbers[:, None] >> np.arange(width) & 1  # the last query comes first
    last, first = np.split(bits, 2, axis=1)
    table = last.sum(axis=1) - first.sum(axis=1)
    return np.asarray(table[np.asarray(outputs, dtype=np.int64)])
