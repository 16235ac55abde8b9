r"""The trade-off function of a finite channel, over all pairs of inputs.

Of one pair it is piecewise linear, with a corner for each output in the order of the
likelihood ratios. What holds for all pairs is the greatest convex function below all
corners.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import NotApplicable
from undertow.privacy.tradeoff_numeric import convex_floor
from undertow.risk.bounds.accounted import AccountedTradeOff

__all__ = ["tradeoff_from_channel"]

Floats = NDArray[np.float64]

_UNIT = 2.0**-53
_TOLERANCE = 1e-9
# Outputs of ordered pairs in all, and of those held at a time.
_LARGEST = 10**8
_ENTRIES = 1 << 19


def tradeoff_from_channel(channel: ArrayLike) -> AccountedTradeOff:
    r"""Return the trade-off function of a finite channel, over all pairs of inputs.

    Parameters
    ----------
    channel : array_like of shape (m, k)
        Row-stochastic: the chance of each output for each input; at least 2 inputs.

    Returns
    -------
    AccountedTradeOff
        The convex hull of the least function over all ordered pairs, lowered by
        :math:`10^{-14} + 8k\,2^{-53}` for rounding.

    Raises
    ------
    ValueError
        If the channel has fewer than 2 rows, or a row is no distribution.
    NotApplicable
        If :math:`m^2 k` exceeds 100 million.

    Notes
    -----
    Time :math:`O(m^2 k \log k)`, memory :math:`O(mk)`.

    Examples
    --------
    >>> f = tradeoff_from_channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(f(0.125)), 12), round(f.total_variation(), 12)
    (0.625, 0.5)
    """
    laws = _read_laws(channel)
    lowered = 1e-14 + 8 * laws.shape[1] * _UNIT
    x, y = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    for null in laws:
        for alphas, betas in _corners(null, laws):
            betas[:, 1:] = np.maximum(0.0, betas[:, 1:] - lowered)
            # Most corners lie above those of other pairs.
            below = betas < np.interp(alphas, x, y)
            x, y = convex_floor(
                np.concatenate([x, alphas[below]]), np.concatenate([y, betas[below]])
            )
    return AccountedTradeOff.through(x, y, source="channel", unchecked=())


def _read_laws(channel: ArrayLike) -> Floats:
    laws = np.array(channel, dtype=np.float64)
    if laws.ndim != 2 or len(laws) < 2 or laws.shape[1] == 0:
        raise ValueError(
            f"channel must have at least 2 rows of chances, got shape {laws.shape}."
        )
    total = laws.sum(axis=1, keepdims=True)
    if not ((laws >= 0).all() and (np.abs(total - 1.0) <= _TOLERANCE).all()):
        raise ValueError(
            "channel must be row-stochastic: rows of chances that sum to 1."
        )
    if len(laws) * laws.size > _LARGEST:
        raise NotApplicable(
            f"channel must have at most {_LARGEST:.0e} outputs of ordered pairs, got "
            f"{len(laws) * laws.size:.1e}; merge outputs, or give a privacy curve to "
            "tradeoff_from_curve."
        )
    return np.asarray(laws / total)


def _corners(null: Floats, laws: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Hand out the corners against a null, a row for each alternative."""
    step = max(1, _ENTRIES // len(null))
    for start in range(0, len(laws), step):
        others = laws[start : start + step]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = np.where(others > 0, others / null, 0.0)
        order = np.argsort(-ratios, axis=1, kind="stable")
        alphas = np.zeros((len(others), len(null) + 1))
        betas = np.zeros_like(alphas)
        # Both are summed from their small end, so that tails keep their digits.
        np.cumsum(null[order], axis=1, out=alphas[:, 1:])
        chances = np.take_along_axis(others, order, axis=1)[:, ::-1]
        betas[:, :-1] = np.cumsum(chances, axis=1)[:, ::-1]
        betas[:, 0] = 1.0
        yield np.minimum(alphas, 1.0), betas
