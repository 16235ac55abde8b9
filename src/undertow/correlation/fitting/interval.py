r"""Confidence limits for a transition probability, valid at a random sample size.

The number of departures from a state is random and depends on what was seen, so the
textbook binomial limits do not apply to the rows of a chain. The limits here hold at
every sample size at once: the k-th departure from a state is the k-th of a sequence of
independent draws, the ratio of a uniform mixture of likelihoods to the likelihood of
the true probability is a martingale along it, and Ville's inequality bounds the chance
that it ever passes :math:`1/\alpha`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from undertow._validate import check_probability

__all__ = ["anytime_interval", "anytime_limits"]

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
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        kept = xlogy(k, middle) + xlog1py(rest, -middle) >= least
        inside = np.where(kept, middle, inside)
        outside = np.where(kept, outside, middle)
    return outside
