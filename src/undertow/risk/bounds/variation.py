r"""Bounds that hold whatever the attacker knows: total variation and its sharpenings.

.. math:: \mathrm{RAD} \le \mathrm{TV}(M)\,(1 - \kappa_\pi)

for every prior, success rule and knowledge; for pure DP also
:math:`\mathrm{RAD} \le \tanh(\varepsilon/4)`, without any prior at all.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import disagreement as spread_of
from undertow._arrays import read_floats
from undertow._numeric import inflate
from undertow._validate import check_non_negative, check_probability
from undertow.privacy import (
    Bound,
    Loss,
    Pure,
    TradeOff,
    total_variation,
)
from undertow.risk.bounds._parts import (
    BARE,
    PriorLike,
    advantage,
    capped,
    disagreement,
    law,
    read_size,
    uniform_disagreement,
)

__all__ = [
    "pairwise_variation_bound",
    "prior_free_bound",
    "projected_variation_bound",
    "uniform_prior_bound",
    "variation_bound",
    "variation_matrix",
]

_PAIRS = 200_000_000


def variation_bound(
    guarantee: Loss | TradeOff | float,
    *,
    collision: float = 0.0,
    sharpen: bool = True,
) -> Bound:
    r"""Bound the advantage of every attack, whatever it knows of its target.

    .. math:: \mathrm{RAD} \le \mathrm{TV}(M)\,(1 - \kappa_\pi)

    Parameters
    ----------
    guarantee : Loss, TradeOff or float
        What the mechanism promises; a number is its total variation.
    collision : float, optional
        The collision probability of the prior, or anything below it; 0 by default,
        which holds for every prior, continuous ones included.
    sharpen : bool, optional
        Take the smaller of this and :func:`prior_free_bound`, for a pure guarantee;
        ignored for others, where no such cap is known.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Theorem 5.2 of [1]_. Tight for randomized response under every prior, and for the
    uniform prior on two records. Checked: nothing. Not checkable: independent records,
    and a guarantee for replacing one record; twice the parameter of adding or removing
    one, in general.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(variation_bound(Pure(1), collision=0.5).value, 8)
    0.23105858
    """
    total, spread = _variation(guarantee), disagreement(collision)
    plain = advantage(capped(total * spread, spread), "Theorem 5.2")
    if not (sharpen and isinstance(guarantee, Pure)):
        return plain
    sharp = prior_free_bound(guarantee.epsilon)
    return plain if plain.value <= sharp.value else sharp


def prior_free_bound(epsilon: float) -> Bound:
    r"""Bound the advantage against a pure-DP mechanism for all threats at once.

    .. math:: \mathrm{RAD} \le \tanh(\varepsilon/4)

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter for replacing a record, in :math:`[0, \infty]`.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Proved on the page "Bounds on the advantage". Holds for every prior, discrete or
    continuous, every success rule and every knowledge. Attained by randomized response
    on :math:`m = e^{\varepsilon/2} + 1` records with the uniform prior where that is
    whole. For :math:`\delta > 0` it is not claimed.

    Examples
    --------
    >>> round(prior_free_bound(1.0).value, 6)
    0.244919
    """
    epsilon = check_non_negative(epsilon, "epsilon")
    value = capped(math.tanh(epsilon / 4.0), 1.0)
    return advantage(value, "prior-free cap tanh(epsilon/4)", checked=("pure DP",))


def uniform_prior_bound(epsilon: float, size: int) -> Bound:
    r"""Bound the advantage under a uniform prior, whatever the attacker knows.

    .. math:: \mathrm{RAD} \le \max_{1 \le k < m}
       \frac{k (m-k) (e^\varepsilon - 1)}{m (k e^\varepsilon + m - k)}

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter for replacing a record, in :math:`[0, \infty]`.
    size : int
        Number m of equally likely records; at least 1.

    Returns
    -------
    Bound
        On the advantage, rounded up; never above :func:`prior_free_bound`.

    Notes
    -----
    Proved on the page "Bounds on the advantage". Checked: nothing. Not checkable: that
    the prior is uniform.

    Examples
    --------
    >>> round(uniform_prior_bound(1.0, 3).value, 6)
    0.242784
    """
    epsilon, m = check_non_negative(epsilon, "epsilon"), read_size(size)
    decay = math.exp(-epsilon)
    # The summand is concave in k with its peak at m / (1 + e^(epsilon/2)).
    peak = m / (1.0 + math.exp(min(epsilon, 1400.0) / 2.0))
    near = {max(1, min(m - 1, round(peak) + step)) for step in (-1, 0, 1)}
    shares = [k * (m - k) * -math.expm1(-epsilon) / (k + (m - k) * decay) for k in near]
    value = capped(max(shares) / m if m > 1 else 0.0, uniform_disagreement(m))
    unchecked = (*BARE, "the prior is uniform")
    return advantage(value, "uniform-prior cap", unchecked=unchecked)


def pairwise_variation_bound(distances: ArrayLike, prior: PriorLike) -> Bound:
    r"""Bound the advantage by the total variation between every two records.

    .. math:: \mathrm{RAD} \le \sum_{x \ne y} \pi_x \pi_y \,
       \mathrm{TV}(M(D_x), M(D_y))

    Parameters
    ----------
    distances : array_like of shape (m, m)
        Total variations in [0, 1], upper bounds of them at least; the diagonal is not
        read.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records.

    Returns
    -------
    Bound
        On the advantage, rounded up; never above Theorem 5.2.

    Notes
    -----
    What the proof of Theorem 5.2 gives before the largest pair is taken; shown on the
    page "Bounds on the advantage". For every knowledge and success rule.

    Examples
    --------
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    >>> round(pairwise_variation_bound(variation_matrix(P), [0.5, 0.3, 0.2]).value, 9)
    0.288
    """
    pi, total = law(prior), read_floats(distances, "distances")
    if total.shape != (len(pi), len(pi)):
        raise ValueError(
            f"distances must have shape ({len(pi)}, {len(pi)}), got {total.shape}."
        )
    np.fill_diagonal(total, 0.0)
    if not np.all((total >= 0) & (total <= 1)):
        raise ValueError("distances must lie in [0, 1].")
    margin = 2.0**-50 * (len(pi) + 8)
    value = min(1.0, inflate(float(pi @ total @ pi), margin))
    return advantage(value, "Theorem 5.2, pairwise")


def variation_matrix(channel: ArrayLike) -> NDArray[np.float64]:
    r"""Return the total variation between every two rows of a channel, rounded up.

    Parameters
    ----------
    channel : array_like of shape (m, k)
        Row x is the law of the output on record x.

    Returns
    -------
    ndarray of shape (m, m)
        :math:`\frac12 \|P_x - P_y\|_1`; time of order :math:`m^2 k`.

    Raises
    ------
    ValueError
        If a row is no law, or the work passes 2e8 additions.

    Examples
    --------
    >>> variation_matrix([[0.75, 0.25], [0.25, 0.75]]).round(12).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    rows = read_floats(channel, "channel")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"channel must be a matrix, got shape {rows.shape}.")
    rows = np.stack([law(row) for row in rows])
    if len(rows) * rows.size > _PAIRS:
        raise ValueError(
            f"channel must need at most {_PAIRS} additions, got "
            f"{len(rows) * rows.size}; use variation_bound with the largest one."
        )
    half = np.array([np.abs(rows - row).sum(axis=1) / 2.0 for row in rows])
    # Each of the k differences is rounded once, relative to its two entries.
    slack = np.where(half > 0, 2.0**-52 * (rows.shape[1] + 8), 0.0)
    return np.asarray(np.minimum(1.0, half + slack), dtype=np.float64)


def projected_variation_bound(
    guarantee: Loss | TradeOff | float, prior: PriorLike, *, labels: ArrayLike
) -> Bound:
    r"""Bound the advantage where the mechanism reads a function of the record only.

    Parameters
    ----------
    guarantee : Loss, TradeOff or float
        What the mechanism promises; a number is its total variation.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records.
    labels : array_like of shape (m,)
        The value :math:`\psi(x)` that the mechanism reads, for each record.

    Returns
    -------
    Bound
        Theorem 5.2 with the collision probability of :math:`\psi(X)`: records that look
        the same to the mechanism add nothing.

    Notes
    -----
    Shown on the page "Bounds on the advantage". Not checkable: that the output depends
    on the record through `labels` only.

    Examples
    --------
    >>> people = [0.1, 0.4, 0.3, 0.2]  # young and ill, young, old and ill, old
    >>> round(projected_variation_bound(Pure(1), people, labels=[1, 0, 1, 0]).value, 6)
    0.221816
    """
    pi, read = law(prior), np.asarray(labels)
    if read.shape != pi.shape:
        raise ValueError(
            f"labels must be one for each of the {len(pi)} records, got shape "
            f"{read.shape}."
        )
    _, cells = np.unique(read, return_inverse=True)
    masses = np.bincount(cells, weights=pi).astype(np.float64)
    spread = min(1.0, inflate(spread_of(masses), 2.0**-50 * (len(pi) + 8)))
    value = capped(_variation(guarantee) * spread, 1.0)
    unchecked = (*BARE, "the output depends on the record through the labels only")
    plain = advantage(value, "Theorem 5.2, projected", unchecked=unchecked)
    if isinstance(guarantee, Pure):
        return min(plain, prior_free_bound(guarantee.epsilon), key=lambda b: b.value)
    return plain


def _variation(guarantee: Loss | TradeOff | float) -> float:
    """Return the total variation a guarantee allows, rounded up."""
    if isinstance(guarantee, TradeOff):
        return guarantee.total_variation()
    if isinstance(guarantee, Loss):
        return total_variation(guarantee)
    return check_probability(guarantee, "guarantee")
