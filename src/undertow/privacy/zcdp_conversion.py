"""From zero-concentrated DP to one (epsilon, delta) point."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from undertow._numeric import keep_exact, log_down, nudge_up
from undertow.privacy.exact import Exact, Number, exact, round_up, sqrt_up
from undertow.privacy.loss import ZCDP, Approx

__all__ = ["open_delta", "zcdp_to_approx"]


def zcdp_to_approx(
    loss: ZCDP,
    *,
    delta: Number,
    method: Literal["standard", "optimal"] = "standard",
) -> Approx:
    r"""Convert :math:`\rho`-zCDP to :math:`(\varepsilon, \delta)`-DP.

    Parameters
    ----------
    loss : ZCDP
        What is known.
    delta : int, float, str, Decimal or Fraction
        In :math:`(0, 1)`.
    method : {"standard", "optimal"}
        ``"standard"`` is :math:`\varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}` [1]_;
        ``"optimal"`` the smaller

        .. math:: \varepsilon = \inf_{\alpha > 1} \; \alpha\rho
                  + \frac{\ln(1/\delta) - \ln\alpha}{\alpha - 1}
                  + \ln\left(1 - \frac1\alpha\right)

        of [2]_, Proposition 12 and Corollary 13.

    Returns
    -------
    Approx
        Delta as given, epsilon rounded up.

    Notes
    -----
    Every :math:`\alpha` gives a valid bound, so the search for the best one cannot
    make the result unsafe. For Gaussian noise :func:`gdp_to_approx` is exact and
    smaller than both.

    References
    ----------
    .. [1] M. Bun and T. Steinke, *Concentrated Differential Privacy: Simplifications,
       Extensions, and Lower Bounds*, TCC 2016, Proposition 1.3.
    .. [2] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for
       Differential Privacy*, NeurIPS 2020.

    Examples
    --------
    >>> zcdp_to_approx(ZCDP("0.5"), delta="1e-5")
    Approx(epsilon=5.29852591219, delta=0.00001)
    >>> zcdp_to_approx(ZCDP("0.5"), delta="1e-5", method="optimal").epsilon < 4.73
    True
    """
    target = open_delta(exact(delta, "delta"))
    if method not in ("standard", "optimal"):
        raise ValueError(f'method must be "standard" or "optimal", got {method!r}.')
    (rho,) = loss.exact_parameters()
    if rho == math.inf:
        return Approx(math.inf, target)
    if rho == 0:
        return Approx(0, target)
    surprise = Fraction(-log_down(target))  # ln(1/delta), rounded up
    rho = Fraction(rho)
    standard = rho + Fraction(sqrt_up(4 * rho * surprise))
    if method == "standard":
        return Approx(keep_exact(round_up(standard)), target)
    best = min(_best_order(round_up(rho), round_up(surprise)), round_up(standard))
    return Approx(keep_exact(max(best, 0.0)), target)


def _best_order(rho: float, surprise: float) -> float:
    """Minimise the bound over alpha = 1 + e^t by golden section; it is quasi-convex."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    # The best alpha - 1 is near sqrt(surprise / rho).
    low = -40.0
    high = max(0.0, 0.5 * (math.log(surprise + 1.0) - math.log(rho))) + 5.0
    for _ in range(100):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _order_bound(left, rho, surprise) <= _order_bound(right, rho, surprise):
            high = right
        else:
            low = left
    return _order_bound((low + high) / 2.0, rho, surprise)


def _order_bound(t: float, rho: float, surprise: float) -> float:
    excess = math.exp(t)  # alpha - 1
    terms = (
        rho * (1.0 + excess),
        surprise / excess,
        -math.log1p(excess) / excess,
        # ln(1 - 1/alpha); as a difference of logarithms it would lose its digits.
        -math.log1p(1.0 / excess),
    )
    size = math.fsum(abs(term) for term in terms)
    # Each term carries a few rounding errors relative to itself.
    return nudge_up(math.fsum(terms) + 2.0**-49 * size)


def open_delta(delta: Exact) -> Fraction:
    """Return a delta strictly between 0 and 1, exactly."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}.")
    return Fraction(delta)
