"""What a comparator hands back, and the comparators that have a closed formula.

A noise scale, and against whom it was meant: group scaling, Yang et al., Zhao et al.,
the printed Gaussian bound, and randomized response on a symmetric binary chain, whose
printed flip probability is *not* a guarantee (see the comparators page).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.gaussian.method import gaussian_factor
from undertow.correlation.gaussian.shift import check_covariance
from undertow.correlation.level import check_level
from undertow.correlation.markov.projective import column_ratio
from undertow.errors import InfeasibleTarget, NotApplicable
from undertow.numeric.rounding import inflate

EVERY_ATTACKER = "anyone who knows any subset of the other records"
"""The attackers of Bayesian differential privacy: all (K, i)."""

NO_KNOWLEDGE = "someone who knows no other record"
"""The attackers of the Markov quilt mechanism: K is empty."""

ROUNDING_MARGIN = 1e-12
"""Relative margin by which every scale is raised to cover its own rounding."""


@dataclass(frozen=True, slots=True)
class ComparatorScale:
    """The Laplace scale with which a method keeps, or claims to keep, a promise.

    Two scales compare only if they are meant against the same attackers, and a scale
    that is no guarantee compares with nothing: `attackers` and `is_guarantee` are part
    of the number.

    Parameters
    ----------
    method : str
        Short name of the method.
    source : str
        Where the method is defined.
    target : float
        The promise: largest change of log-odds.
    noise_scale : float
        Scale of the Laplace noise; infinite where the method gives none, for the reason
        in `note`: out of its reach, a hypothesis fails, or too many laws to list.
    attackers : str
        The class of attackers the method speaks of.
    is_guarantee : bool
        Whether it is proved that the scale keeps the Bayesian-DP leakage within
        `target` against every attacker, under the model.
    model : str
        The model in words.
    note : str
        What was chosen, what fails, or why no scale can be given.

    Examples
    --------
    >>> row = ComparatorScale("group", "Theorem 6.3", 1.0, 5.0, EVERY_ATTACKER, True)
    >>> row.is_feasible, row.to_dict()["noise_scale"]
    (True, 5.0)
    """

    method: str
    source: str
    target: float
    noise_scale: float
    attackers: str
    is_guarantee: bool
    model: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.noise_scale > 0:
            raise ValueError(f"noise_scale must be positive, got {self.noise_scale}.")

    @property
    def is_feasible(self) -> bool:
        """Whether the method gives a finite noise scale."""
        return math.isfinite(self.noise_scale)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for tables and JSON; an infinite scale becomes None."""
        return {
            "model": self.model,
            "method": self.method,
            "target": self.target,
            "noise_scale": self.noise_scale if self.is_feasible else None,
            "attackers": self.attackers,
            "is_guarantee": self.is_guarantee,
            "source": self.source,
            "note": self.note,
        }


def raised(scale: float) -> float:
    """Return `scale` raised by :data:`ROUNDING_MARGIN`."""
    return inflate(scale, ROUNDING_MARGIN)


# Comparators with a closed formula: group scaling, Yang et al., Zhao et al.


def group_scale(
    target: float, group: int, *, sensitivity: float = 1.0
) -> ComparatorScale:
    r"""Return the scale :math:`m\Delta/B` of group scaling (dependent DP).

    Parameters
    ----------
    target : float
        The promise; positive and finite.
    group : int
        Most records that depend on each other, m.
    sensitivity : float
        Most that one record moves the query.

    Notes
    -----
    Noise for m records at once. Dependent differential privacy [1]_ does so with an
    estimated dependence in place of m - 1; Theorem 6.3 of [2]_ proves the plain form
    sound against every attacker.

    References
    ----------
    .. [1] C. Liu, S. Chakraborty and P. Mittal, *Dependence Makes You Vulnerable:
       Differential Privacy Under Dependent Tuples*, NDSS 2016.
    .. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(group_scale(1.0, 3, sensitivity=100).noise_scale, 6)
    300.0
    """
    target, group = check_positive(target, "target"), check_count(group, "group")
    change = check_positive(sensitivity, "sensitivity")
    return ComparatorScale(
        "group",
        "group scaling; thesis, Theorem 6.3",
        target,
        raised(group * change / target),
        EVERY_ATTACKER,
        True,
        note=f"{group} records may move together",
    )


def yang_scale(target: float, records: int, *, width: float = 1.0) -> ComparatorScale:
    r"""Return the scale :math:`nM/B` of Yang et al. for a sum of correlated records.

    Parameters
    ----------
    target : float
        The promise; positive and finite.
    records : int
        Number n of records in the sum.
    width : float
        Width M of the range of one record.

    Notes
    -----
    Yang et al. [1]_ find the leakage ``n M / scale`` for a sum under Gaussian
    conditionals whose correlation is free: it is the general bound with all n records
    in one group, and sound for that reason against every attacker.

    References
    ----------
    .. [1] B. Yang, I. Sato and H. Nakagawa, *Bayesian Differential Privacy on
       Correlated Data*, SIGMOD 2015.

    Examples
    --------
    >>> round(yang_scale(2.0, 10, width=20).noise_scale, 6)
    100.0
    """
    target, records = check_positive(target, "target"), check_count(records, "records")
    width = check_positive(width, "width")
    return ComparatorScale(
        "yang",
        "Yang, Sato and Nakagawa (2015)",
        target,
        raised(records * width / target),
        EVERY_ATTACKER,
        True,
        note=f"the general bound with all {records} records in one group",
    )


def printed_gaussian_scale(
    covariance: ArrayLike, target: float, *, width: float = 1.0
) -> ComparatorScale:
    r"""Return the scale of Theorem 6.14 as the sources apply it to measured data.

    .. math:: b = \frac{M}{B}\left(1 + \frac{m^2\rho}{4(1 - (m-2)\rho)}\right)

    Parameters
    ----------
    covariance : array_like of shape (m, m)
        Covariance of one group; only its largest correlation and its size are read.
    target : float
        The promise; positive and finite.
    width : float
        Width M of the clip interval.

    Notes
    -----
    The theorem is for equal variances (Definition 6.9 of [1]_). Section 6.5 of [1]_
    applies it to heights and scores whose variances differ, where it may under-protect:
    a guarantee only if the standard deviations are equal.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> row = printed_gaussian_scale([[416.596, 137.244], [137.244, 225.0]], 1.0)
    >>> round(row.noise_scale, 4), row.is_guarantee
    (1.4483, False)
    """
    cov, target = check_covariance(covariance), check_positive(target, "target")
    width = check_positive(width, "width")
    variances = np.diag(cov)
    sd = np.sqrt(variances)
    correlation = cov / np.outer(sd, sd)
    rho = float(np.abs(correlation - np.diag(np.diag(correlation))).max())
    rho = inflate(rho, 2.0**-50)
    factor = gaussian_factor(len(cov), rho, variant="thesis")
    ratio, equal = float(sd.max() / sd.min()), bool(np.ptp(variances) == 0)
    note = "" if equal else f"; standard deviations differ by {ratio:.4g} (needs 1)"
    return ComparatorScale(
        "thesis-as-printed",
        "thesis, Theorem 6.14, with the largest correlation of the data",
        target,
        raised(factor * width / target),
        EVERY_ATTACKER,
        equal,
        note=f"largest correlation {rho:.6g}{note}",
    )


def zhao_leakage(epsilon: float, transition: ArrayLike) -> float:
    r"""Return the bound of Zhao et al. on a Markov chain.

    .. math:: \mathrm{BDPL} \le \varepsilon + 6 \ln\omega, \qquad
        \omega = \max_{x, x', y} P_{xy} / P_{x'y}

    Examples
    --------
    >>> P = [[0.882, 0.118], [0.305, 0.695]]
    >>> round(zhao_leakage(0.0, P), 6)
    10.639363
    """
    return inflate(check_level(epsilon) + _offset(transition), ROUNDING_MARGIN)


def zhao_scale(
    target: float, transition: ArrayLike, *, sensitivity: float = 1.0
) -> ComparatorScale:
    r"""Return the scale :math:`\Delta/(B - 6\ln\omega)` of Zhao et al.

    Parameters
    ----------
    target : float
        The promise; must exceed six times the log column ratio.
    transition : array_like of shape (s, s)
        Row-stochastic, no zero entry.
    sensitivity : float
        Most that one record moves the query.

    Raises
    ------
    NotApplicable
        If an entry of `transition` is zero.
    InfeasibleTarget
        If `target` is not above the offset.

    Notes
    -----
    Known through the master's thesis [1]_ (Equations 20 and 280), which says that no
    proof is available. It holds nevertheless: the bound ``epsilon + 4 ln omega`` is
    proved in this documentation and is smaller.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> P = [[0.882, 0.118], [0.305, 0.695]]
    >>> round(zhao_scale(11.0, P).noise_scale, 4)
    2.7729
    """
    target = check_positive(target, "target")
    change = check_positive(sensitivity, "sensitivity")
    offset = _offset(transition)
    if target <= offset:
        raise InfeasibleTarget(
            f"target must be above 6 ln omega = {offset:.6g} (Zhao et al.), got "
            f"{target}; use the closed Markov bound, which reaches every target.",
            least=offset,
        )
    return ComparatorScale(
        "zhao",
        "Zhao et al., through the master's thesis, Equation 280",
        target,
        raised(change / (target - offset)),
        EVERY_ATTACKER,
        True,
        note="no proof by its authors is available; implied by the omega^4 bound",
    )


def _offset(transition: ArrayLike) -> float:
    ratio = column_ratio(transition)
    if ratio == math.inf:
        raise NotApplicable(
            "transition must have no zero entry (Zhao et al.), got one; use the closed "
            "Markov bound on a positive power."
        )
    return inflate(6 * math.log(ratio), ROUNDING_MARGIN)


# Randomized response on a symmetric binary chain, as printed, and its accuracy.
#
# Chakrabarti et al. flip each bit of a symmetric two-state chain. The flip probability
# printed for a promise is kept here to redraw the comparison of the sources; it is
# *not* a guarantee, whichever way its coefficient is read (see the comparators page).

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
    source = "Chakrabarti et al., through the thesis, Section 6.4.2.1"
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
