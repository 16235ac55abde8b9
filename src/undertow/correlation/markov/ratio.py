r"""How different the rows of a transition matrix are: gamma, omega and the diameter.

``P[now, next]`` is row-stochastic throughout. Three numbers, each at most twice the
logarithm of the one before or equal to it:

* :func:`transition_ratio`, gamma: largest over smallest entry;
* :func:`column_ratio`, omega: the same within one column, at most gamma;
* :func:`projective_diameter`, Delta: largest logarithm of a cross ratio, at most
  ``2 log(omega)``. It does not change when rows or columns are scaled or the matrix is
  transposed, which is why known records, the start and the direction of time do not
  matter to bounds made of it.

All three are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import nudge_up
from undertow._validate import check_count
from undertow.errors import ModelError
from undertow.privacy.exact import round_up

__all__ = [
    "column_ratio",
    "log_diameter",
    "projective_diameter",
    "read_kernels",
    "read_length",
    "read_numbers",
    "transition_ratio",
]

Array = NDArray[np.float64]

# Rows may miss one by this much; printed matrices miss it by more.
_ROW_TOLERANCE = 1e-9
_UNIT = 2.0**-53
# Rows times columns of one block of row pairs: about 32 MB of floats.
_BLOCK = 4_000_000


def transition_ratio(transition: ArrayLike) -> float:
    r"""Return gamma, the largest over the smallest transition probability.

    .. math:: \gamma = \max_{x,y} P_{xy} / \min_{x,y} P_{xy}

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.

    Returns
    -------
    float
        At least 1, rounded up; infinite if an entry is zero.

    Notes
    -----
    Lemma 6.19 of Guerra-Balboa (2026). One exactly when every entry is ``1/s``:
    independent records that are not uniform have a gamma above one.

    Examples
    --------
    >>> round(transition_ratio([[0.818, 0.182], [0.371, 0.629]]), 6)
    4.494505
    """
    P = _read_kernel(transition)
    return _quotient_up(float(P.max()), float(P.min()))


def column_ratio(transition: ArrayLike) -> float:
    r"""Return omega, the largest ratio of two entries with the same next state.

    .. math:: \omega = \max_{x,x',y} P_{xy} / P_{x'y}

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.

    Returns
    -------
    float
        At least 1, at most gamma, rounded up; infinite if an entry is zero and
        another one in its column is not. One exactly for independent records.

    Examples
    --------
    >>> column_ratio([[0.9, 0.1], [0.8, 0.2]])
    2.0
    """
    P = _read_kernel(transition)
    columns = zip(P.max(axis=0).tolist(), P.min(axis=0).tolist(), strict=True)
    return max(_quotient_up(high, low) for high, low in columns if high > 0)


def projective_diameter(
    transition: ArrayLike | None = None,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> float:
    r"""Return Delta, the largest logarithm of a cross ratio of a matrix.

    .. math::
        \Delta = \log \max_{x,x',y,y'} \frac{P_{xy}\,P_{x'y'}}{P_{xy'}\,P_{x'y}}

    Parameters
    ----------
    transition : array_like of shape (s, s), optional
        Row-stochastic. Left out if an interval matrix is given.
    lower, upper : array_like of shape (s, s), optional
        Entrywise ends of an interval matrix; the result holds for every matrix
        between them.

    Returns
    -------
    float
        At least 0, rounded up; infinite if an entry is zero and the zeros do not
        fill whole columns. Zero for independent records.

    Notes
    -----
    Birkhoff's projective diameter. Always ``Delta <= 2 log(omega) <= 2 log(gamma)``.
    Cost s^3, in blocks of row pairs.

    Examples
    --------
    >>> round(projective_diameter([[0.882, 0.118], [0.305, 0.695]]), 10)
    2.8351075005
    >>> projective_diameter([[0.3, 0.7], [0.3, 0.7]])
    0.0
    """
    if (lower is None) != (upper is None) or (transition is None) == (lower is None):
        raise ValueError(
            "projective_diameter must be given transition, or both lower and upper."
        )
    if transition is not None:
        P = _read_kernel(transition)
        P = P[:, P.max(axis=0) > 0]  # a state nobody enters plays no part
        if (P == 0).any():
            return math.inf
        return 0.0 if (P == P[0]).all() else log_diameter(np.log(P))
    low, high = _read_interval(lower, upper)
    if (low == 0).any():
        return math.inf
    return log_diameter(np.log(low), np.log(high))


def log_diameter(
    low: Array, high: Array | None = None, *, entry_error: float = 0.0
) -> float:
    """Return the diameter of a matrix given by the logarithms of its entries.

    Parameters
    ----------
    low : ndarray of shape (r, s)
        Logarithms of the entries, or of their lower ends.
    high : ndarray of shape (r, s), optional
        Logarithms of the upper ends, for an interval matrix.
    entry_error : float
        Error of each logarithm beyond its rounding; added four times.
    """
    top = low if high is None else high
    rows, columns = low.shape
    block = max(1, _BLOCK // (rows * columns))
    widest = 0.0
    for start in range(0, rows, block):
        # Of row x over row x': largest at y, smallest at y' other than y.
        most = top[start : start + block, None, :] - low[None]
        least = most if high is None else low[start : start + block, None, :] - top
        widest = max(widest, _widest_gap(most, least, start, high is None))
    largest = float(max(np.abs(low).max(), np.abs(top).max()))
    return nudge_up(widest + 4 * (entry_error + 2 * _UNIT * largest), 4)


def read_kernels(
    transition: ArrayLike | Sequence[ArrayLike], *, renormalise: bool = False
) -> tuple[Array, str | None]:
    """Return one (s, s) or several (t, s, s) checked kernels, and what was corrected.

    Raises
    ------
    ModelError
        As :class:`~undertow.correlation.markov.chain.MarkovChain` does.
    """
    kernels = read_numbers(transition, "transition")
    if kernels.ndim not in (2, 3) or kernels.shape[-1] != kernels.shape[-2]:
        raise ModelError(
            "transition must be a square matrix, or a sequence of square matrices of "
            f"one size, got shape {kernels.shape}."
        )
    if kernels.shape[-1] < 2 or not kernels.size:
        raise ModelError(
            f"transition must have at least 2 states, got {kernels.shape[-1]}; a "
            "record with one state holds no secret."
        )
    _require_laws(kernels, "transition")
    sums = kernels.sum(axis=-1)
    off = np.abs(sums - 1)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    where = f"row {worst[-1]}" + (f" of step {worst[0]}" if kernels.ndim == 3 else "")
    note = f"rows of the transition matrix were renormalised ({where} summed to "
    if not renormalise:
        _require_sums(off[worst], where, float(sums[worst]))
        return _frozen(kernels), None
    if (sums <= 0).any():
        raise ModelError(f"transition must have a positive sum in {where}, got 0.")
    return _frozen(kernels / sums[..., None]), f"{note}{float(sums[worst]):.10g})"


def read_length(kernels: Array, length: int | None) -> int | None:
    """Return the number of records, which one kernel for each step determines."""
    given = None if length is None else check_count(length, "length")
    if kernels.ndim == 2:
        return given
    needed = len(kernels) + 1
    if given is not None and given != needed:
        raise ModelError(
            f"length must be {needed}, one more than the {needed - 1} transition "
            f"matrices, got {given}."
        )
    return needed


def _require_sums(off: float, where: str, total: float) -> None:
    if off > _ROW_TOLERANCE:
        raise ModelError(
            f"transition must have rows that sum to 1 within {_ROW_TOLERANCE:g}, got "
            f"{total:.12g} in {where}; renormalise it to divide rows by their "
            "sums."
        )


def _require_laws(kernels: Array, name: str) -> None:
    wrong = ~(kernels >= 0) | np.isinf(kernels)  # catches nan
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ModelError(
            f"{name} must have finite, non-negative entries, got "
            f"{float(kernels[place])} at {place}."
        )


def read_numbers(value: ArrayLike | Sequence[ArrayLike], name: str) -> Array:
    """Return a fresh array of floats, or say that `name` is none."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"{name} must be numbers in rows of one length, got {type(value).__name__}."
        ) from None


def _read_kernel(transition: ArrayLike) -> Array:
    kernels, _ = read_kernels(transition)
    if kernels.ndim != 2:
        raise ModelError(
            f"transition must be one square matrix, got shape {kernels.shape}."
        )
    return kernels


def _read_interval(
    lower: ArrayLike | None, upper: ArrayLike | None
) -> tuple[Array, Array]:
    assert lower is not None
    assert upper is not None
    low, high = read_numbers(lower, "lower"), read_numbers(upper, "upper")
    if low.shape != high.shape or low.ndim != 2 or low.shape[0] != low.shape[1]:
        raise ModelError(
            "lower and upper must be square matrices of one size, got shapes "
            f"{low.shape} and {high.shape}."
        )
    _require_laws(low, "lower")
    _require_laws(high, "upper")
    # Row sums of floats within the tolerance count as one.
    fits = (low.sum(axis=1) <= 1 + _ROW_TOLERANCE) & (
        high.sum(axis=1) >= 1 - _ROW_TOLERANCE
    )
    if (low > high).any() or not fits.all():
        raise ModelError(
            "lower and upper must enclose a transition matrix: entrywise in order, "
            "rows of lower summing to at most 1 and of upper to at least 1."
        )
    return low, high


def _widest_gap(most: Array, least: Array, start: int, is_exact: bool) -> float:
    """Return max over row pairs, y and y' of ``most[y] - least[y']``, y' not y."""
    if is_exact:
        return float((most.max(axis=2) - most.min(axis=2)).max())
    block, rows, _ = most.shape
    # The same row has the same entries, whatever they are: its cross ratio is one.
    same = (np.arange(start, start + block)[:, None] == np.arange(rows))[:, :, None]
    best, second = _two_largest(np.where(same, -np.inf, most))
    lowest = np.sort(least, axis=2)[:, :, :2]
    arg_most, arg_least = most.argmax(axis=2), least.argmin(axis=2)
    apart = np.where(
        arg_most != arg_least,
        best - lowest[:, :, 0],
        np.maximum(second - lowest[:, :, 0], best - lowest[:, :, 1]),
    )
    return float(max(apart.max(), 0.0))


def _two_largest(values: Array) -> tuple[Array, Array]:
    ordered = np.sort(values, axis=2)
    return ordered[:, :, -1], ordered[:, :, -2]


def _quotient_up(high: float, low: float) -> float:
    return math.inf if low == 0 else round_up(Fraction(high) / Fraction(low))


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
