"""Comparators with a closed formula: group scaling, Yang et al., Zhao et al."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from undertow._numeric import inflate
from undertow._validate import check_count, check_positive
from undertow.correlation.comparators.scale import (
    EVERY_ATTACKER,
    ROUNDING_MARGIN,
    ComparatorScale,
    raised,
)
from undertow.correlation.gaussian.covariance import check_covariance
from undertow.correlation.gaussian.factor import gaussian_factor
from undertow.correlation.markov.ratio import column_ratio
from undertow.correlation.method import check_level
from undertow.errors import InfeasibleTarget, NotApplicable

__all__ = [
    "group_scale",
    "printed_gaussian_scale",
    "yang_scale",
    "zhao_leakage",
    "zhao_scale",
]


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
