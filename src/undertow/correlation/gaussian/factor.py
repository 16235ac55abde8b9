"""Closed forms of the Gaussian factor: group size and largest correlation suffice."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from undertow._numeric import greatest_float, nudge_down
from undertow._validate import check_choice, check_count, check_finite
from undertow.errors import NotApplicable
from undertow.privacy.exact import exact, round_down, round_up

__all__ = ["gaussian_correlation_limit", "gaussian_crossover", "gaussian_factor"]

Variant = Literal["sharp", "thesis", "intermediate"]
_VARIANTS = ("sharp", "thesis", "intermediate")


def gaussian_factor(
    group: int,
    correlation: float,
    *,
    variant: Variant = "sharp",
    sd_ratio: float = 1.0,
) -> float:
    r"""Return how many times the DP level leaks when correlations are limited.

    With m records in a group and correlations of at most :math:`\rho < 1/(m-2)`:

    .. math::
        h_{\text{sharp}} &= 1 + \max\{(m-1)\rho,\; \rho/(1-(m-2)\rho)\} \\
        h_{\text{intermediate}} &= 1 + \max_{0 \le k \le m-2}
            (m-k-1)(k+1)\rho/(1-k\rho) \\
        h_{\text{thesis}} &= 1 + m^2\rho/(4(1-(m-2)\rho))

    Parameters
    ----------
    group : int
        Most records that depend on each other, m.
    correlation : float
        Largest absolute correlation rho, in [0, 1).
    variant : {"sharp", "thesis", "intermediate"}
        Which closed form; the sharp one is never larger than the others.
    sd_ratio : float
        Largest ratio of standard deviations in a group; the sharp form only.

    Returns
    -------
    float
        Rounded up; 1 if the group has one record or nothing correlates.

    Raises
    ------
    NotApplicable
        If ``correlation * (group - 2) >= 1``, or if standard deviations differ and the
        variant needs equal ones.

    Notes
    -----
    ``"thesis"`` is Theorem 6.14 of [1]_ (Proposition 6.4 of [2]_), ``"intermediate"``
    its Equation 6.29; ``"sharp"`` is proved on the theory page "Gaussian leakage" and
    is attained for correlations of at most 1/(m-1). Different standard deviations
    multiply the excess over 1 by their ratio. Without clipping a factor may pass m;
    after clipping the general bound m holds as well.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> gaussian_factor(3, 0.275), round(gaussian_factor(3, 0.275, variant="thesis"), 6)
    (1.55, 1.853448)
    """
    m, rho = check_count(group, "group"), _check_correlation(correlation)
    check_choice(variant, "variant", choices=_VARIANTS)
    ratio = _check_ratio(sd_ratio, variant)
    if m == 1 or rho == 0:
        return 1.0
    if rho * (m - 2) >= 1:
        raise NotApplicable(
            "correlation * (group - 2) must be below 1 (Theorem 6.14), got "
            f"{float(rho * (m - 2)):.6g} for groups of {m}; give the covariance "
            "(method='covariance' or 'structured'), or use method='general'."
        )
    if variant == "intermediate":
        return _intermediate(m, rho)
    if variant == "thesis":
        return round_up(1 + m * m * rho / (4 * (1 - (m - 2) * rho)))
    return round_up(1 + ratio * max((m - 1) * rho, rho / (1 - (m - 2) * rho)))


def gaussian_crossover(group: int) -> float:
    r"""Return the correlation up to which Theorem 6.14 beats the general bound.

    .. math:: \rho \le \frac{4(m-1)}{5m^2 - 12m + 8}

    Parameters
    ----------
    group : int
        Most records that depend on each other, m; at least 2.

    Notes
    -----
    Equation 6.43 of the thesis; about 0.8/m for large groups.

    Examples
    --------
    >>> gaussian_crossover(4)
    0.3
    """
    m = check_count(group, "group", minimum=2)
    return round_down(Fraction(4 * (m - 1), 5 * m * m - 12 * m + 8))


def gaussian_correlation_limit(
    factor: float, group: int, *, variant: Variant = "sharp"
) -> float:
    r"""Return the largest correlation that costs at most `factor`.

    .. math:: \rho_{\text{thesis}} = \frac{4(h-1)}{m^2 + 4(h-1)(m-2)}, \qquad
              \rho_{\text{sharp}} = \min\Bigl\{\frac{h-1}{m-1},
              \frac{h-1}{1+(h-1)(m-2)}\Bigr\}

    Parameters
    ----------
    factor : float
        Noise accepted, as a multiple h of that for independent records; above 1.
    group : int
        Most records that depend on each other, m; at least 2.
    variant : {"sharp", "thesis", "intermediate"}
        Which closed form is inverted.

    Returns
    -------
    float
        Rounded down, so that :func:`gaussian_factor` at it is at most `factor`; just
        below 1 where no correlation costs more.

    Notes
    -----
    Corollary 6.5 of the master's thesis for ``"thesis"``, where the error is counted
    with respect to the clipped sum.

    Examples
    --------
    >>> gaussian_correlation_limit(2.0, 101)
    0.01
    >>> round(gaussian_correlation_limit(2.0, 100, variant="thesis"), 12)
    0.00038491147
    """
    m = check_count(group, "group", minimum=2)
    check_choice(variant, "variant", choices=_VARIANTS)
    if check_finite(factor, "factor") <= 1:
        raise ValueError(f"factor must be above 1, got {factor}.")
    more = Fraction(float(factor)) - 1
    if variant == "intermediate":
        return _intermediate_limit(factor, m)
    if variant == "thesis":
        limit = 4 * more / (m * m + 4 * more * (m - 2))
    else:
        limit = min(more / (m - 1), more / (1 + more * (m - 2)))
    if limit >= 1:
        return nudge_down(1.0)
    nearest = float(limit)  # read again through its shortest decimal form
    return nearest if exact(nearest) <= limit else nudge_down(nearest)


def _intermediate(m: int, rho: Fraction) -> float:
    def at(k: int) -> Fraction:
        return (m - k - 1) * (k + 1) * rho / (1 - k * rho)

    # Concave over positive and affine: it grows, then falls.
    low, high = 0, m - 2
    while low < high:
        middle = (low + high) // 2
        if at(middle) < at(middle + 1):
            low = middle + 1
        else:
            high = middle
    return round_up(1 + at(low))


def _intermediate_limit(factor: float, m: int) -> float:
    def within(rho: float) -> bool:
        try:
            return gaussian_factor(m, rho, variant="intermediate") <= factor
        except NotApplicable:
            return False

    return greatest_float(within, low=0.0, high=1.0)


def _check_correlation(correlation: float) -> Fraction:
    number = check_finite(correlation, "correlation")
    if not 0 <= number < 1:
        raise ValueError(f"correlation must be in [0, 1), got {correlation}.")
    return Fraction(exact(number))


def _check_ratio(sd_ratio: float, variant: str) -> Fraction:
    ratio = check_finite(sd_ratio, "sd_ratio")
    if ratio < 1:
        raise ValueError(f"sd_ratio must be at least 1, got {sd_ratio}.")
    if ratio > 1 and variant != "sharp":
        raise NotApplicable(
            "standard deviations must be equal (Definition 6.9), got a ratio of "
            f"{ratio:.6g}; use variant='sharp', or the covariance."
        )
    return Fraction(exact(ratio))
