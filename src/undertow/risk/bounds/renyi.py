r"""Rényi and zero-concentrated guarantees as inputs of the bounds on the advantage.

A bound on a divergence gives a bound on the total variation, and a whole privacy curve,
which is sharper for an attacker who knows nothing.

References
----------
.. [1] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
   Privacy*, NeurIPS 2020.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_non_negative, check_positive
from undertow.privacy import ZCDP
from undertow.privacy.variation import total_variation
from undertow.risk.bounds._parts import LARGEST
from undertow.risk.bounds.accounted import AccountedTradeOff, tradeoff_from_curve

__all__ = ["divergence_variation", "tradeoff_from_rdp"]

Floats = NDArray[np.float64]

_KNOTS = 512


def tradeoff_from_rdp(
    divergence: float, *, order: float, knots: int = _KNOTS
) -> AccountedTradeOff:
    r"""Return a trade-off function that a Rényi guarantee of one order promises.

    .. math:: \delta(\varepsilon) = \min\Bigl\{\mathrm{TV}, \;
       \frac{e^{(\alpha-1)(\rho - \varepsilon)}}{\alpha}
       \Bigl(1 - \frac1\alpha\Bigr)^{\alpha - 1}\Bigr\}

    Parameters
    ----------
    divergence : float
        The bound :math:`\rho` on the Rényi divergence in both orders; non-negative and
        finite.
    order : float
        The order :math:`\alpha`, above 1 and finite. A :math:`\rho`-zCDP mechanism
        has :math:`\alpha\rho` at every order.
    knots : int, optional
        Number of points of the curve.

    Returns
    -------
    AccountedTradeOff
        With TV from :func:`divergence_variation`.

    Notes
    -----
    The conversion of Canonne, Kamath and Steinke, *The Discrete Gaussian for
    Differential Privacy* (2020), Proposition 12: with
    :math:`\alpha > 1`, :math:`(1 - 1/t)_+ \le t^{\alpha-1}(1-1/\alpha)^{\alpha-1}/
    \alpha`, applied to the likelihood ratio.

    Examples
    --------
    >>> f = tradeoff_from_rdp(0.5, order=5.0)
    >>> round(f.delta(2.0), 6)
    0.000203
    """
    rho = check_positive(divergence, "divergence") if divergence else 0.0
    alpha = check_positive(order, "order")
    if alpha <= 1:
        raise ValueError(f"order must be above 1, got {order}.")
    total = divergence_variation(rho)
    shape = (alpha - 1.0) * math.log1p(-1.0 / alpha) - math.log(alpha)

    def deltas(levels: Floats) -> Floats:
        exponent = (alpha - 1.0) * (rho - levels) + shape
        return np.minimum(total, np.exp(np.minimum(0.0, exponent)) * (1.0 + 1e-12))

    reach = min(LARGEST, rho + max(1.0, 40.0 + shape) / (alpha - 1.0))
    return tradeoff_from_curve(
        deltas, reach=reach, knots=knots, source=f"Rényi order {alpha:g}"
    )


def divergence_variation(divergence: float) -> float:
    r"""Bound the total variation by a Kullback-Leibler divergence, rounded up.

    .. math:: \mathrm{TV} \le \min\bigl\{\sqrt{D/2}, \; \sqrt{1 - e^{-D}}\bigr\}

    Parameters
    ----------
    divergence : float
        D, or a Rényi divergence of any order above 1, which is no smaller: the
        parameter of zCDP, or that of Rényi DP.

    Notes
    -----
    The inequalities of Pinsker and of Bretagnolle and Huber. Give the number to
    :func:`~undertow.risk.bounds.variation_bound`.

    Examples
    --------
    >>> round(divergence_variation(0.02), 9), round(divergence_variation(5.0), 9)
    (0.1, 0.996625332)
    """
    return total_variation(ZCDP(check_non_negative(divergence, "divergence")))
