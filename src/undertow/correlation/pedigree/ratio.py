r"""The largest log-ratio of two Laplace mixtures, for many pairs at once.

Between neighbouring support points the ratio of two mixtures of Laplace densities of
one scale is a Möbius function of :math:`e^{2s/b}`, hence monotone, and outside the
support it is constant. Its supremum over all outputs is therefore attained at a support
point; for discrete Laplace noise on the same lattice it is the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow.errors import NotApplicable

__all__ = ["WorstPair", "log_densities", "raised_worst_pair", "worst_pair"]

Laws = NDArray[np.float64]

# Beyond this exponent the kernel leaves the range of floats; logarithms are used.
_LARGEST_EXPONENT = 600.0
# Largest span in noise scales: far beyond any use, and far from overflow.
_LARGEST_SPAN = 1e9
# Margins that cover the rounding of products, sums and logarithms: relative to the
# value, and relative to what the noise can tell at all, should the value be far less.
_MARGIN = 1e-12
_SLACK = 1e-14
# Entries handled at once.
_CHUNK = 2_000_000


@dataclass(frozen=True, slots=True)
class WorstPair:
    """The largest log-ratio, and where: row, the two states, the output's degree."""

    value: float
    row: int
    pair: tuple[int, int]
    output: int


def log_densities(laws: Laws, unit: float) -> Laws:
    r"""Return :math:`\ln \sum_j p_j e^{-u|i-j|}` at every support point i.

    Parameters
    ----------
    laws : ndarray of shape (..., T)
        Probabilities of the support points 0, ..., T - 1; each law sums to one or is
        all zero.
    unit : float
        Exponent u of one step: step over noise scale.

    Notes
    -----
    Near 0 it is computed as ``log1p`` of the sum with ``expm1``, so that differences
    keep their relative accuracy as u tends to 0.
    """
    points = np.arange(laws.shape[-1], dtype=float)
    exponents = -unit * np.abs(points[:, None] - points[None, :])
    if -exponents.min() > _LARGEST_EXPONENT:
        return _log_sums(laws, exponents)
    moved = laws @ np.expm1(exponents)
    with np.errstate(divide="ignore"):
        far = np.log(laws @ np.exp(exponents))
    near = np.log1p(np.maximum(moved, -0.75))
    return np.where(moved > -0.5, near, far)


def _log_sums(laws: Laws, exponents: Laws) -> Laws:
    with np.errstate(divide="ignore"):
        logs = np.log(laws)
    total = np.full_like(logs, -np.inf)
    for j in range(laws.shape[-1]):
        total = np.logaddexp(total, logs[..., j : j + 1] + exponents[j])
    return total


def worst_pair(laws: Laws, unit: float) -> WorstPair:
    """Return the largest log-ratio between two possible states of one row.

    Parameters
    ----------
    laws : ndarray of shape (rows, states, T)
        For each row and state the law of the value; all zero for impossible states.
    unit : float
        Exponent of one step.

    Returns
    -------
    WorstPair
        Value 0 at row -1 if no row has two possible states.

    Examples
    --------
    >>> laws = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> worst_pair(laws, 0.5)
    WorstPair(value=0.5, row=0, pair=(0, 1), output=0)
    """
    best = WorstPair(0.0, -1, (0, 0), 0)
    rows = max(1, _CHUNK // (laws.shape[1] * laws.shape[2]))
    for start in range(0, laws.shape[0], rows):
        found = _worst_in(laws[start : start + rows], unit)
        if found.value > best.value:
            best = WorstPair(found.value, start + found.row, found.pair, found.output)
    return best


def raised_worst_pair(laws: Laws, unit: float) -> tuple[float, WorstPair]:
    """Return the largest log-ratio, rounded up, and where it is attained.

    Raises
    ------
    NotApplicable
        If the noise is so small that exponents could leave the range of floats.

    Notes
    -----
    Raised by 1e-12 of the value, and by 1e-14 of the whole span in noise scales (at
    most 1), which matters only where the value is far below the DP level.
    """
    span = unit * (laws.shape[-1] - 1) if laws.size else 0.0
    if span > _LARGEST_SPAN:
        raise NotApplicable(
            f"elimination needs a query that spans at most {_LARGEST_SPAN:.0e} noise "
            f"scales, got {span:.3g}; use the general bound."
        )
    worst, told = worst_pair(laws, unit), min(1.0, span)
    return inflate(worst.value, _MARGIN) + _SLACK * told, worst


def _worst_in(laws: Laws, unit: float) -> WorstPair:
    logs = log_densities(laws, unit)
    possible = laws.max(axis=-1) > 0
    best = WorstPair(0.0, -1, (0, 0), 0)
    for x, y in combinations(range(laws.shape[1]), 2):
        both = possible[:, x] & possible[:, y]
        if not both.any():
            continue
        rows = np.flatnonzero(both)
        ratio = logs[rows, x] - logs[rows, y]
        for sign, pair in ((1, (x, y)), (-1, (y, x))):
            at = int(np.argmax(sign * ratio))
            row, output = divmod(at, ratio.shape[1])
            value = sign * float(ratio[row, output])
            if value > best.value:
                best = WorstPair(value, int(rows[row]), pair, output)
    return best
