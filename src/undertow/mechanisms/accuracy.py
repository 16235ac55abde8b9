r"""How far a noisy answer is from the truth: accuracy and confidence, both ways.

An answer is :math:`(\alpha,\beta)`-accurate if its error is at least :math:`\alpha`
with probability at most :math:`\beta`. For k coordinates the error is the largest of
the coordinates' errors, and the union bound replaces :math:`\beta` by
:math:`\beta/k`; the scalar formula is never used for a vector.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import erfc, erfinv, ndtri

from undertow._validate import check_choice
from undertow.mechanisms.base import float_size, read_dimension
from undertow.mechanisms.noise.draw import read_positive
from undertow.numeric.exact import Number, exact, round_up
from undertow.numeric.rounding import inflate, nudge_up

# Covers the rounding of the logarithm, the square root and the normal quantile.
_MARGIN = 1e-14
_METHODS = ("exact", "tail")
_LARGE = 10**300
_SMALLEST_SHARE = Fraction(1, 10**300)
# Errors in noise sizes beyond which no tail has mass in floats.
_FARTHEST = 10**9


def laplace_scale(sensitivity: Number, epsilon: Number) -> float:
    r"""Return the Laplace scale :math:`\Delta/\varepsilon`, rounded up.

    Parameters
    ----------
    sensitivity : int, float, str, Decimal or Fraction
        Most that one change moves the answer in :math:`\ell_1`; positive and finite.
    epsilon : int, float, str, Decimal or Fraction
        The pure loss to spend; positive and finite.

    Notes
    -----
    Definition 2.8 of Guerra-Balboa (2026). The loss recomputed from the returned
    scale is at most `epsilon`.

    Examples
    --------
    >>> laplace_scale(2, "0.5")
    4.0
    """
    delta = read_positive(sensitivity, "sensitivity")
    scale = round_up(delta / read_positive(epsilon, "epsilon"))
    if scale == math.inf:
        raise ValueError(
            "sensitivity over epsilon must be in the range of floats, got "
            f"{sensitivity} over {epsilon}; give the values in a larger unit."
        )
    return scale


def laplace_accuracy(scale: Number, beta: Number, *, k: int = 1) -> float:
    r"""Return the error that Laplace noise reaches with probability at most `beta`.

    .. math:: \alpha = b \ln(k/\beta)

    Parameters
    ----------
    scale : int, float, str, Decimal or Fraction
        The b; positive and finite.
    beta : int, float, str, Decimal or Fraction
        In (0, 1].
    k : int
        Number of coordinates; the error is the largest of theirs.

    Notes
    -----
    Proposition 2.10 of Guerra-Balboa (2026), exact for k = 1; a union bound for k > 1.
    Rounded up.

    Examples
    --------
    >>> round(laplace_accuracy(1, 0.05), 12)
    2.995732273554
    """
    b, share = read_positive(scale, "scale"), _share(beta, k)
    return inflate(float_size(b, "scale") * log_ratio(1 / share), _MARGIN)


def laplace_confidence(scale: Number, alpha: Number, *, k: int = 1) -> float:
    r"""Return the probability that Laplace noise errs by at least `alpha`.

    Parameters
    ----------
    scale : int, float, str, Decimal or Fraction
        Positive and finite.
    alpha : int, float, str, Decimal or Fraction
        The error; non-negative.
    k : int
        Number of coordinates.

    Notes
    -----
    The inverse of :func:`laplace_accuracy`; capped at 1.

    Examples
    --------
    >>> round(laplace_confidence(2, 4), 6)
    0.135335
    """
    b, error = read_positive(scale, "scale"), exact(alpha, "alpha")
    exponent = float(min(error / b, _FARTHEST))
    return _capped(read_dimension(k) * math.exp(-exponent), exponent)


def gaussian_accuracy(
    sigma: Number, beta: Number, *, k: int = 1, method: str = "exact"
) -> float:
    r"""Return the error that Gaussian noise reaches with probability at most `beta`.

    .. math:: \alpha = \sigma\,\Phi^{-1}(1-\beta/2k) \le \sigma\sqrt{2\ln(2k/\beta)}

    Parameters
    ----------
    sigma : int, float, str, Decimal or Fraction
        Positive and finite.
    beta : int, float, str, Decimal or Fraction
        In (0, 1].
    k : int
        Number of coordinates; the error is the largest of theirs.
    method : {"exact", "tail"}
        The quantile, or the tail bound on the right.

    Notes
    -----
    Proposition 2.12 of Guerra-Balboa (2026). The quantile is exact for k = 1; for k > 1
    a union bound. Rounded up.

    Examples
    --------
    >>> round(gaussian_accuracy(1, 0.05), 12)
    1.95996398454
    >>> round(gaussian_accuracy(1, 0.05, method="tail"), 12)
    2.716203031481
    """
    s, share = float_size(read_positive(sigma, "sigma"), "sigma"), _share(beta, k)
    if check_choice(method, "method", choices=_METHODS) == "tail":
        return inflate(s * math.sqrt(2 * log_ratio(2 / share)), _MARGIN)
    return inflate(s * _normal_quantile(share), _MARGIN)


def gaussian_confidence(
    sigma: Number, alpha: Number, *, k: int = 1, method: str = "exact"
) -> float:
    r"""Return the probability that Gaussian noise errs by at least `alpha`.

    Parameters
    ----------
    sigma : int, float, str, Decimal or Fraction
        Positive and finite.
    alpha : int, float, str, Decimal or Fraction
        The error; non-negative.
    k : int
        Number of coordinates.
    method : {"exact", "tail"}
        The normal tail, or its bound :math:`2e^{-\alpha^2/2\sigma^2}`.

    Notes
    -----
    The inverse of :func:`gaussian_accuracy`; capped at 1.

    Examples
    --------
    >>> round(gaussian_confidence(1, 1.959963984540054), 12)
    0.05
    """
    s, count = read_positive(sigma, "sigma"), read_dimension(k)
    ratio = float(min(exact(alpha, "alpha") / s, _FARTHEST))
    exponent = ratio * ratio / 2
    if check_choice(method, "method", choices=_METHODS) == "tail":
        return _capped(2 * count * math.exp(-exponent), exponent)
    return _capped(count * float(erfc(ratio / math.sqrt(2))), exponent)


def accuracy_interval(answer: Number, alpha: Number) -> tuple[float, float]:
    r"""Return where the truth lies for an :math:`(\alpha,\beta)`-accurate answer.

    Parameters
    ----------
    answer : int, float or Fraction
        The noisy answer.
    alpha : int, float, str, Decimal or Fraction
        Its accuracy, non-negative.

    Returns
    -------
    tuple of float
        The interval :math:`[a-\alpha, a+\alpha]`, rounded outwards; the truth is in it
        with probability at least :math:`1-\beta`.

    Notes
    -----
    Definition 2.7 of Guerra-Balboa (2026). The example printed after it gives the
    interval of an answer 32 with :math:`\alpha = 1` as 31 to 32; noise has two sides,
    and the interval is 31 to 33.

    Examples
    --------
    >>> accuracy_interval(32, 1)
    (31.0, 33.0)
    """
    centre, error = Fraction(answer), exact(alpha, "alpha")
    return -round_up(error - centre), round_up(centre + error)


def _normal_quantile(share: Fraction) -> float:
    """Return z with a two-sided normal tail of `share`."""
    if share > Fraction(1, 2):  # the complement keeps its digits
        return math.sqrt(2) * float(erfinv(float(1 - share)))
    if share < _SMALLEST_SHARE:  # the tail bound, which is sharp there
        return math.sqrt(2 * log_ratio(2 / share))
    return -float(ndtri(float(share) / 2))


def _share(beta: Number, k: int) -> Fraction:
    """Return beta / k: each coordinate's part of the failure probability."""
    total = exact(beta, "beta", at_most=1)
    if total == 0:
        raise ValueError(
            f"beta must be in (0, 1], got {beta}; no finite error has probability 0."
        )
    return Fraction(total) / read_dimension(k)


def log_ratio(ratio: Fraction) -> float:
    """Return the logarithm of a number of at least 1, however large."""
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    if ratio < _LARGE:  # two logarithms would cancel
        return math.log(float(ratio))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _capped(probability: float, exponent: float) -> float:
    """Round up a tail whose exponent, hence its relative error, may be large."""
    return min(1.0, nudge_up(inflate(probability, _MARGIN * (1 + exponent))))
