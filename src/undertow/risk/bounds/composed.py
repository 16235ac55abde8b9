r"""The advantage over several releases: compose the guarantee, then bound the risk.

The exact advantage has no composition theorem; total variations and trade-off functions
do. Three rules bound the total variation of the whole, and the least is taken:

* the product, :math:`1 - \prod_i (1 - \mathrm{TV}_i)`;
* the tensor product of the trade-off functions, which for Gaussian ones is
  :math:`\mu = \sqrt{\sum \mu_i^2}` and for equal pure ones is binomial, exactly;
* :math:`\tanh(\sum \varepsilon_i / 4)` on the advantage, for pure releases.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
.. [2] P. Kairouz, S. Oh and P. Viswanath, *The Composition Theorem for Differential
   Privacy*, ICML 2015.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from undertow._numeric import inflate
from undertow._validate import check_probability
from undertow.errors import AssumptionError
from undertow.privacy import (
    GDP,
    ZCDP,
    Bound,
    Loss,
    Pure,
    PureTradeOff,
    TradeOff,
    total_variation,
)
from undertow.privacy.variation import loss_tradeoff
from undertow.risk.bounds._parts import MARGIN, advantage, capped, disagreement
from undertow.risk.bounds.variation import prior_free_bound

__all__ = [
    "composed_bound",
    "composed_tradeoff",
    "composed_variation",
    "variation_product",
]

Releases = Sequence[Loss | TradeOff]


def variation_product(totals: Sequence[float]) -> float:
    r"""Bound the total variation of adaptive releases by the product rule, rounded up.

    .. math:: \mathrm{TV} \le 1 - \prod_i (1 - \mathrm{TV}_i)

    Parameters
    ----------
    totals : sequence of float
        Total variations in [0, 1], each the largest over neighbours and histories.

    Notes
    -----
    Remark after Theorem 5.2 of Guerra-Balboa (2026): by maximal couplings, step by
    step, the histories stay equal with at least the product. Far from sharp for many
    small releases.

    Examples
    --------
    >>> round(variation_product([0.5, 0.5]), 12)
    0.75
    """
    levels = [check_probability(total, "each total variation") for total in totals]
    if any(level == 1 for level in levels):
        return 1.0
    kept = math.fsum(math.log1p(-level) for level in levels)
    # A logarithm near 0 errs relative to itself, and so does what is left of 1.
    return min(1.0, inflate(-math.expm1(kept), MARGIN * (1.0 - kept)))


def composed_tradeoff(releases: Releases) -> TradeOff:
    """Return the trade-off function of adaptive releases together.

    Parameters
    ----------
    releases : sequence of Pure, Approx, GDP or TradeOff
        What each promises for replacing a record, whatever came before it.

    Returns
    -------
    TradeOff
        The tensor product, never above the exact one. Equal releases are joined first:
        exactly for pure and approximate ones, whose worst pair is binomial.

    Raises
    ------
    AssumptionError
        For a zCDP loss, which has no trade-off function of its own.

    Notes
    -----
    Use it with the bounds for a single release. Section 5.3 of Guerra-Balboa (2026);
    the binomial pair is due to Kairouz, Oh and Viswanath (2015).

    Examples
    --------
    >>> composed_tradeoff([GDP(3), GDP(4)])
    GaussianTradeOff(mu=5.0)
    """
    gaussian = sum((x for x in releases if isinstance(x, GDP)), GDP(0))
    others = Counter(
        x if isinstance(x, TradeOff) else loss_tradeoff(x)
        for x in releases
        if not isinstance(x, GDP)
    )
    whole: TradeOff | None = loss_tradeoff(gaussian) if gaussian != GDP(0) else None
    for f, count in others.items():
        part = f.power(count)
        whole = part if whole is None else whole.tensor(part)
    return PureTradeOff(0.0) if whole is None else whole


def composed_variation(releases: Releases) -> float:
    r"""Bound the total variation of adaptive releases together, rounded up.

    Parameters
    ----------
    releases : sequence of Loss or TradeOff
        What each promises for replacing a record, whatever came before it.

    Returns
    -------
    float
        The least of the product rule and the tensor product; zCDP releases are added
        up and joined to the rest by the product rule.

    Notes
    -----
    For n releases of one pure guarantee it is the total variation of two binomial laws
    with :math:`p = e^\varepsilon/(1 + e^\varepsilon)` and :math:`1 - p`, which is
    attained.

    Examples
    --------
    >>> round(composed_variation([Pure("0.1")] * 10), 6)
    0.122536
    """
    smooth = [x for x in releases if isinstance(x, ZCDP)]
    rest = [x for x in releases if not isinstance(x, ZCDP)]
    parts = [composed_tradeoff(rest).total_variation()] if rest else []
    if smooth:
        parts.append(total_variation(sum(smooth, ZCDP(0))))
    product = variation_product([_single(release) for release in releases])
    return min(product, variation_product(parts) if len(parts) > 1 else sum(parts))


def composed_bound(releases: Releases, *, collision: float = 0.0) -> Bound:
    r"""Bound the advantage over adaptive releases together, whatever is known.

    .. math:: \mathrm{RAD} \le \mathrm{TV}\,(1 - \kappa_\pi)

    Parameters
    ----------
    releases : sequence of Loss or TradeOff
        What each promises for replacing a record; at least one.
    collision : float, optional
        The collision probability of the prior, or anything below it.

    Returns
    -------
    Bound
        Theorem 5.2 at :func:`composed_variation`; for pure releases the smaller of that
        and :math:`\tanh(\sum\varepsilon_i/4)`.

    Raises
    ------
    AssumptionError
        Without any release.

    Notes
    -----
    Without knowledge of the target, the bounds for a single release apply to
    :func:`composed_tradeoff` and are sharper.

    Examples
    --------
    >>> round(composed_bound([Pure("0.1")] * 10, collision=0.5).value, 6)
    0.061268
    """
    if isinstance(releases, Loss | TradeOff):
        raise TypeError("releases must be a sequence of guarantees, got a single one.")
    if not releases:
        raise AssumptionError("releases must hold at least one guarantee, got none.")
    spread = disagreement(collision)
    value = capped(composed_variation(releases) * spread, spread)
    plain = advantage(value, "Theorem 5.2 for composed releases")
    pure = [release for release in releases if isinstance(release, Pure)]
    if len(pure) < len(releases):
        return plain
    sharp = prior_free_bound(sum(pure, Pure(0)).epsilon)
    return plain if plain.value <= sharp.value else sharp


def _single(release: Loss | TradeOff) -> float:
    if isinstance(release, TradeOff):
        return release.total_variation()
    return total_variation(release)
