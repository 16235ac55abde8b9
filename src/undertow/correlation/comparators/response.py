r"""Randomized response on a symmetric binary chain, as printed, and its accuracy.

Chakrabarti et al. flip each bit of a symmetric two-state chain. The flip probability
printed for a promise is kept here to redraw the comparison of the sources; it is *not*
a guarantee, whichever way its coefficient is read (see the comparators page).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from undertow._validate import (
    check_count,
    check_non_negative,
    check_probability,
)

__all__ = [
    "PrintedResponse",
    "printed_response",
    "response_accuracy",
    "response_accuracy_normal",
    "response_confidence",
    "response_law",
]

# Above this many records the two binomial laws are convolved by FFT, whose error is
# absolute (about 1e-16) instead of relative.
_DIRECT = 10_000


@dataclass(frozen=True, slots=True)
class PrintedResponse:
    """The flip probability printed for a promise: literature, not a guarantee.

    Parameters
    ----------
    flip : float
        Probability with which each bit is flipped.
    target : float
        The promise it was printed for.
    switch : float
        The chain's coefficient r.
    """

    flip: float
    target: float
    switch: float
    source: ClassVar[str] = "Chakrabarti et al., through the thesis, Section 6.4.2.1"
    attackers: ClassVar[str] = "not established"
    is_guarantee: ClassVar[bool] = False

    @property
    def level(self) -> float:
        """The DP level of the mechanism: ln((1 - flip) / flip)."""
        return (
            math.inf if self.flip == 0 else math.log1p(-self.flip) - math.log(self.flip)
        )


def printed_response(target: float, switch: float) -> PrintedResponse:
    r"""Return the flip probability printed for a symmetric chain.

    .. math:: \rho = \frac{4 + r(re^B - 2) - \sqrt{r^2 e^B (4 + r(re^B - 4))}}
                          {8 + 2r(re^B + r - 4)}

    the smaller root of :math:`(1 - (2 - r)\rho)^2 = r^2 e^B \rho (1 - \rho)`.

    Parameters
    ----------
    target : float
        The promise B; non-negative.
    switch : float
        The coefficient r, in (0, 1]; r = 1 gives :math:`1/(1 + e^B)`.

    Notes
    -----
    Section 6.4.2.1 of [1]_. The text calls r the probability to stay while its matrix
    stays with 1 - r; the formula fits neither. With flip probability r of the chain it
    over-protects for small targets and fails for large ones (r = 0.2, B = 8: leakage
    8.84); with r/2 it fails even against someone who knows no other record. The same
    mechanism with ``1/(1 + exp(epsilon))`` at the exact two-state level is sound.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(printed_response(2.0, 0.4).flip, 6)
    0.31055
    """
    B, r = check_non_negative(target, "target"), check_probability(switch, "switch")
    if r == 0:
        raise ValueError("switch must be positive, got 0.0.")
    t = math.exp(-B)  # the root with e^B divided out: no overflow, no cancellation
    linear = 2 * (2 - r) * t + r * r
    flip = 2 * t / (linear + r * math.sqrt(r * r + 4 * (1 - r) * t))
    return PrintedResponse(flip, B, r)


def response_law(ones: int, zeros: int, *, flip: float) -> NDArray[np.float64]:
    r"""Return the law of the number of reported ones.

    .. math:: \Pr[Z = k] = \sum_i \binom{n_1}{i}\binom{n-n_1}{k-i}
        (1-\rho)^{n-n_1-k+2i}\rho^{n_1+k-2i}

    Parameters
    ----------
    ones, zeros : int
        True counts.
    flip : float
        Probability with which each bit is flipped.

    Notes
    -----
    Equations 6.71 and 6.72 of the thesis with corrected exponents: as printed the
    "probabilities" sum to :math:`(2(1-\rho))^{n-n_1}`. Computed as the convolution of
    two binomial laws, by FFT above 10000 records.

    Examples
    --------
    >>> [float(p) for p in response_law(1, 0, flip=0.25)]
    [0.25, 0.75]
    """
    ones = check_count(ones, "ones", minimum=0)
    zeros = check_count(zeros, "zeros", minimum=0)
    flip = check_probability(flip, "flip")
    kept, raised = _binomial(ones, flip)[::-1], _binomial(zeros, flip)
    if ones + zeros <= _DIRECT:
        return np.convolve(kept, raised)
    from scipy.signal import fftconvolve

    law = np.asarray(fftconvolve(kept, raised), dtype=float)
    law[law < 0] = 0.0  # rounding of the transform, below 1e-15
    return law


def response_confidence(alpha: float, *, records: int, ones: int, flip: float) -> float:
    r"""Return :math:`\Pr[|\hat n_1 - n_1| \ge \alpha]` of the unbiased count.

    The estimate is :math:`\hat n_1 = (Z - n\rho)/(1 - 2\rho)`.

    Parameters
    ----------
    alpha : float
        Error; non-negative.
    records, ones : int
        Number of records, and of true ones among them.
    flip : float
        Probability with which each bit is flipped; below 1/2.

    Examples
    --------
    >>> round(response_confidence(5, records=500, ones=250, flip=0.187598), 5)
    0.68826
    """
    alpha = check_non_negative(alpha, "alpha")
    errors, law = _errors(records, ones, flip)
    return 1.0 if alpha == 0 else float(min(1.0, law[errors >= alpha].sum()))


def response_accuracy(beta: float, *, records: int, ones: int, flip: float) -> float:
    """Return the error that is reached with probability at most `beta`.

    The probability is a step function of the error; the value returned is the end of
    the first step at or below `beta`: every larger error has at most that probability.

    Parameters
    ----------
    beta : float
        Probability; in (0, 1].
    records, ones, flip
        As in :func:`response_confidence`.

    Examples
    --------
    >>> round(response_accuracy(0.05, records=700, ones=350, flip=0.31055), 2)
    63.34
    """
    beta = check_probability(beta, "beta")
    if beta == 0:
        raise ValueError("beta must be positive, got 0.0.")
    errors, law = _errors(records, ones, flip)
    if beta == 1:
        return 0.0
    order = np.argsort(-errors, kind="stable")
    reached = np.cumsum(law[order])
    over = np.flatnonzero(reached > beta)
    return float(errors[order][over[0]]) if over.size else 0.0


def response_accuracy_normal(beta: float, *, records: int, flip: float) -> float:
    r"""Return the normal approximation of that error.

    .. math:: \alpha \approx z_{1-\beta/2}\sqrt{n\rho(1-\rho)}/(1-2\rho)

    Examples
    --------
    >>> round(response_accuracy_normal(0.05, records=700, flip=0.31055), 2)
    63.33
    """
    beta = check_probability(beta, "beta", open_interval=True)
    records, flip = check_count(records, "records"), _check_flip(flip)
    spread = math.sqrt(records * flip * (1 - flip))
    return float(-ndtri(beta / 2)) * spread / (1 - 2 * flip)


def _errors(
    records: int, ones: int, flip: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the absolute error of each number of reported ones, and its law."""
    records = check_count(records, "records")
    ones, flip = check_count(ones, "ones", minimum=0), _check_flip(flip)
    if ones > records:
        raise ValueError(f"ones must be at most records, got {ones} of {records}.")
    reported = np.arange(records + 1)
    mean = ones * (1 - 2 * flip) + records * flip
    errors = np.abs(reported - mean) / (1 - 2 * flip)
    return errors, response_law(ones, records - ones, flip=flip)


def _check_flip(flip: float) -> float:
    flip = check_probability(flip, "flip")
    if flip >= 0.5:
        raise ValueError(f"flip must be below 1/2, got {flip}.")
    return flip


def _binomial(trials: int, p: float) -> NDArray[np.float64]:
    k = np.arange(trials + 1)
    logs = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    return np.asarray(np.exp(logs + xlogy(k, p) + xlog1py(trials - k, -p)))
