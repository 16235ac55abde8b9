"""Scores of the last digits of floats, where noise leaves traces of the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "decimal_residue",
    "laplace_reach",
    "lowest_bit",
    "negative_zeros",
    "residue",
    "textbook_laplace",
]

Floats = NDArray[np.float64]

# The lowest bit of zero: above that of every float.
_NO_BIT = 1100.0
# Bits of the uniform numbers that usual samplers take the logarithm of, and how many of
# them are tried around the one that was probably drawn.
_UNIFORM, _AROUND = 53, range(-3, 4)
# Outputs on which a centre and a scale are tried first; how many have to be reached.
_FIRST, _FEW, _REACHED = 4, 64, 0.999
# Relative distance from the estimate at which scales are tried, and centres of so many
# digits.
_NEAR, _CENTRES = 0.05, 16
# Beyond it a float has no six digits after the point; of residues so many are kept.
_WHOLE, _DECIMALS = 2.0**30, 6


def lowest_bit(outputs: Any) -> Floats:
    r"""Return the exponent of the lowest set bit of each number.

    For :math:`y = m 2^e` with m odd this is e; it is 1100 for zero and infinity.
    Noise added in floating-point arithmetic leaves traces of the true answer there; of
    whole numbers it tells which are odd.

    Notes
    -----
    The rounded sum of a number of size :math:`2^a` and a noise is a multiple of the
    spacing near the larger of the two, so small outputs have more trailing zeros than
    outputs of the input 0 [1]_, [2]_.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.
    .. [2] S. Haney, D. Desfontaines, L. Hartman, R. Shrestha, M. Hay,
       *Precision-based Attacks and Interval Refining*, 2022.

    Examples
    --------
    >>> lowest_bit([1.0, 0.75, 6.0])
    array([ 0., -2.,  1.])
    >>> lowest_bit(np.array([2**60 + 1, -6]))
    array([0., 1.])
    """
    if np.asarray(outputs).dtype.kind in "iu":
        bits = np.asarray(outputs).astype(np.uint64)  # all of them, beyond 2^53 too
        alone = (bits & (~bits + np.uint64(1))).astype(np.float64)
        return np.where(bits == 0, _NO_BIT, np.log2(np.where(bits == 0, 1.0, alone)))
    values = np.asarray(outputs, dtype=np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    place = np.log2(lowest.astype(np.float64)) + exponent - 53
    return np.where(digits == 0, _NO_BIT, place)


def negative_zeros(outputs: Any) -> Floats:
    """Return how many zeros with a negative sign each output has.

    They equal other zeros, and are printed otherwise.

    Examples
    --------
    >>> negative_zeros([0.0, -0.0, -1.0])
    array([0., 1., 0.])
    """
    values = np.asarray(outputs)
    if values.dtype.kind != "f":
        return np.zeros(len(values))
    found = np.signbit(values) & (values == 0.0)
    return np.asarray(found.reshape(len(values), -1).sum(axis=1), dtype=np.float64)


def residue(outputs: Any, *, bits: int) -> Floats:
    r"""Return what is left of each output modulo :math:`2^{-bits}`, as a share.

    Examples
    --------
    >>> residue([0.25, 0.375], bits=2)
    array([0. , 0.5])
    """
    scaled = np.ldexp(np.asarray(outputs, dtype=np.float64), bits)
    return np.asarray(scaled - np.floor(scaled))


def decimal_residue(outputs: Any, *, digits: int) -> Floats:
    r"""Return what is left of each number modulo :math:`10^{-digits}`, as a share.

    From -1/2 to 1/2, so that multiples of that step are near 0 however they were
    rounded; to six decimals, and to none where a float has no such digits: 0.

    Examples
    --------
    >>> decimal_residue([0.25, 1.253, 0.1 + 0.2], digits=2)
    array([0. , 0.3, 0. ])
    """
    values = np.asarray(outputs, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = values * 10.0**digits
        told = np.where(np.abs(scaled) < _WHOLE, scaled, 0.0)
        left = np.round(told - np.round(told), _DECIMALS) + 0.0
    return np.where(np.isnan(values), np.nan, left)


def laplace_reach(outputs: Any, *, centre: Any, scale: Any) -> Floats:
    r"""Return 1 for each number that textbook Laplace noise can reach, 0 for others.

    That noise is :math:`\pm b \ln v`, where v is one of the multiples of
    :math:`2^{-53}` up to 1, and it is added to the answer c, each step rounded. Far
    from c these sums are fewer than the floats between them [1]_.

    Parameters
    ----------
    outputs : array_like
        Numbers.
    centre, scale : float or array
        The answer c and the scale b; several at once by the rules of broadcasting.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.

    Examples
    --------
    >>> noisy = 10 + np.random.default_rng(1).laplace(size=10_000)
    >>> float(laplace_reach(noisy, centre=10, scale=1).mean()) > 0.999
    True
    >>> float(laplace_reach(noisy, centre=11, scale=1).mean()) < 0.96
    True
    """
    values = np.asarray(outputs, dtype=np.float64)
    with np.errstate(all="ignore"):
        drawn = np.round(np.ldexp(np.exp(-np.abs(values - centre) / scale), _UNIFORM))
        found = np.zeros(drawn.shape, dtype=bool)
        for step in _AROUND:
            for logs in _logs(np.ldexp(np.maximum(drawn + step, 1.0), -_UNIFORM)):
                for noise in (scale * logs, logs / (1.0 / scale)):
                    found |= (centre + noise == values) | (centre - noise == values)
    return np.where(np.isnan(values), np.nan, found.astype(np.float64))


def _logs(uniform: Floats) -> Iterator[Floats]:
    """Yield logarithms as samplers take them: those of numpy and of the C library.

    The generators of numpy use the second. Before version 2 the first may differ from
    them in the last digit, which decides here.
    """
    yield np.log(uniform)
    if not _logs_agree():
        yield np.asarray([math.log(x) for x in uniform.ravel()]).reshape(uniform.shape)


@cache
def _logs_agree() -> bool:
    some = np.random.default_rng(0).random(4096) + 2.0**-_UNIFORM
    return bool((np.log(some) == [math.log(x) for x in some]).mean() > 0.999)


def textbook_laplace(outputs: Floats) -> tuple[float, float] | None:
    """Return centre and scale of textbook Laplace noise that reaches the outputs.

    Tried are numbers of few digits near the median and the mean distance from it.

    Examples
    --------
    >>> noise = np.random.default_rng(1).laplace(scale=2, size=4000)
    >>> textbook_laplace(3 + noise), textbook_laplace(3 + noise.round(6))
    ((3.0, 2.0), None)
    """
    values = outputs[np.isfinite(outputs)]
    if len(values) < _FEW:
        return None
    middle = float(np.median(values))
    spread = float(np.abs(values - middle).mean())
    if not 1e-6 < spread < 1e9:
        return None
    error = 4.0 * spread / np.sqrt(len(values))
    far = values[np.argsort(-np.abs(values - middle))[:_FEW]]  # where reach is thin
    tried = [(c, b) for c in _short_numbers(middle, error) for b in _scales(spread)]
    for few in (_FIRST, _FEW):
        laws = np.array(tried, dtype=np.float64).reshape(-1, 2, 1)
        told = laplace_reach(far[:few], centre=laws[:, 0], scale=laws[:, 1])
        tried = [tried[place] for place in np.flatnonzero(told.min(axis=1, initial=1))]
    for centre, scale in tried[:_FIRST]:
        if laplace_reach(values, centre=centre, scale=scale).mean() > _REACHED:
            return centre, scale
    return None


def _short_numbers(middle: float, error: float) -> list[float]:
    """Return numbers of up to three decimals near one, those of fewest digits first."""
    found: list[float] = []
    for digits in range(4):
        first = np.ceil((middle - error) * 10.0**digits)
        last = np.floor((middle + error) * 10.0**digits)
        if last - first < _CENTRES:
            found += [float(k) / 10.0**digits for k in np.arange(first, last + 1)]
    return list(dict.fromkeys(found))


def _scales(spread: float) -> list[float]:
    """Return numbers of two digits near one, and reciprocals of such."""
    near = [round(spread * (1 + shift), 12) for shift in np.linspace(-_NEAR, _NEAR, 41)]
    whole = [float(f"{number:.2g}") for number in near]
    inverse = [1.0 / float(f"{1.0 / number:.2g}") for number in near]
    return sorted(
        dict.fromkeys([*whole, *inverse]), key=lambda scale: abs(scale - spread)
    )
