r"""What a loss lets an attacker do at most: total variation, advantage, reconstruction.

Every bound here presumes that the protected unit is independent of the rest of the
data; correlation breaks all of them (thesis, Example 2.25).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from undertow._validate import check_choice, check_count, check_probability
from undertow.errors import AssumptionError
from undertow.numeric.array import Floats, read_law
from undertow.numeric.exact import ext_scale, round_up
from undertow.numeric.rounding import HANDFUL, inflate
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.privacy.tradeoff import (
    ApproxTradeOff,
    GaussianTradeOff,
    PureTradeOff,
    TradeOff,
)

# Absolute error of 1 - f(alpha), which does not shrink with alpha: the quantile of a
# Gaussian function errs by a few units of 38, others by less.
_LEVEL_ROUNDING = 2.0**-45
_TOLERANCE = 1e-12


def loss_tradeoff(loss: Loss) -> TradeOff:
    """Return the trade-off function that a loss promises.

    Raises
    ------
    AssumptionError
        For a zCDP loss, which has no trade-off function of its own.

    Examples
    --------
    >>> loss_tradeoff(GDP(1))
    GaussianTradeOff(mu=1.0)
    """
    if isinstance(loss, Pure):
        return PureTradeOff(loss.epsilon)
    if isinstance(loss, Approx):
        return ApproxTradeOff(loss.epsilon, loss.delta)
    if isinstance(loss, GDP):
        return GaussianTradeOff(loss.mu)
    if isinstance(loss, ZCDP):
        raise AssumptionError(
            f"loss must have a trade-off function, got {loss}; convert it to Approx "
            "at a chosen delta first (undertow.privacy.convert)."
        )
    raise TypeError(f"loss must be a Loss, got {type(loss).__name__}.")


def total_variation(loss: Loss) -> float:
    r"""Bound the total variation between the outputs on neighbours, rounded up.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        The guarantee.

    Returns
    -------
    float
        :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)` for (approximate) DP,
        :math:`2\Phi(\mu/2) - 1` for GDP; both are attained. For zCDP the smaller of
        :math:`\sqrt{\rho/2}` and :math:`\sqrt{1 - e^{-\rho}}`.

    Notes
    -----
    Equation 2.5 of [1]_. zCDP bounds the Kullback-Leibler divergence by
    :math:`\rho`; the two forms are the inequalities of Pinsker and of Bretagnolle and
    Huber.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(total_variation(Pure(1)), 12), round(total_variation(GDP(1)), 12)
    (0.46211715726, 0.382924922548)
    """
    if isinstance(loss, ZCDP):
        return _zcdp_variation(loss.rho)
    if isinstance(loss, GDP):
        if loss.mu == math.inf:
            return 1.0
        return min(1.0, inflate(float(erf(loss.mu / math.sqrt(8.0))), HANDFUL))
    return loss_tradeoff(loss).total_variation()


def _zcdp_variation(rho: float) -> float:
    pinsker = math.sqrt(rho / 2.0)
    huber = math.sqrt(-math.expm1(-rho))
    return min(1.0, inflate(min(pinsker, huber), HANDFUL))


def total_variation_power(
    loss: Loss, n: int, *, method: Literal["generic", "exact"] = "exact"
) -> float:
    r"""Bound the total variation of `n` releases of one loss, rounded up.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        The guarantee of each release; adaptive choices are allowed.
    n : int
        Number of releases; non-negative.
    method : {"generic", "exact"}
        ``"generic"`` is :math:`1 - (1 - \mathrm{TV})^n`, ``"exact"`` the total
        variation of the n-fold tensor product of the trade-off function.

    Notes
    -----
    Equation 2.5 of Guerra-Balboa (2026) and the remark after it. For zCDP ``"exact"``
    is the bound at :math:`n\rho`.

    Examples
    --------
    >>> round(total_variation_power(GDP(1), 10), 12)
    0.886153701993
    >>> round(total_variation_power(GDP(1), 10, method="generic"), 12)
    0.991994654799
    """
    n = check_count(n, "n", minimum=0)
    check_choice(method, "method", choices=("generic", "exact"))
    if n == 0:
        return 0.0
    if method == "generic":
        single = total_variation(loss)
        if single == 1 or n == 1:
            return single
        return min(1.0, inflate(-math.expm1(n * math.log1p(-single)), HANDFUL))
    if isinstance(loss, ZCDP):
        (rho,) = loss.exact_parameters()
        return _zcdp_variation(round_up(ext_scale(rho, n)))
    return loss_tradeoff(loss).power(n).total_variation()


def advantage_bound(loss: Loss, *, prior: ArrayLike | None = None) -> float:
    r"""Bound the advantage of any membership or attribute attack, rounded up.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        The guarantee.
    prior : array_like, optional
        Probabilities of the attribute's values. Without it the bound is on the
        *normalised* advantage, with it on the advantage itself.

    Returns
    -------
    float
        The total variation, times :math:`1 - \kappa = 1 - \sum \pi^2` if a prior is
        given.

    Notes
    -----
    Equation 2.2 of Guerra-Balboa (2026), stated there for
    :math:`(\varepsilon, \delta)`-DP; attained by randomized response. Not checkable:
    that records are independent, without which the bound is false.

    Examples
    --------
    >>> round(advantage_bound(Pure(1)), 12)
    0.46211715726
    >>> round(advantage_bound(Pure(1), prior=[0.5, 0.5]), 12)
    0.23105857863
    """
    normalised = total_variation(loss)
    if prior is None:
        return normalised
    masses = _distribution(prior, "prior")
    # 1 - sum of squares, without the cancellation.
    disagreement = math.fsum(masses * (1.0 - masses))
    return min(1.0, inflate(normalised * disagreement, 2.0**-40))


def attribute_advantage(
    prior: ArrayLike, channel: ArrayLike, *, attack: ArrayLike
) -> float:
    r"""Return the advantage of an attack on one attribute.

    Success on the record behind the output minus success on a fresh draw.

    Parameters
    ----------
    prior : array_like of shape (k,)
        Probabilities of the attribute's values.
    channel : array_like of shape (k, m)
        Row x is the law of the output when the attribute is x.
    attack : array_like of int, shape (m,)
        The value guessed at each output.

    Notes
    -----
    Definition 2.17 of Guerra-Balboa (2026), without auxiliary knowledge. Divide by
    :math:`1 - \sum\pi^2` to normalise.

    Examples
    --------
    >>> keep = 0.75
    >>> attribute_advantage([0.5, 0.5], [[keep, 1 - keep], [1 - keep, keep]],
    ...                     attack=[0, 1])
    0.25
    """
    pi = _distribution(prior, "prior")
    rows = np.asarray(channel, dtype=float)
    guess = np.asarray(attack, dtype=int)
    if rows.ndim != 2 or rows.shape != (len(pi), len(guess)):
        raise ValueError(
            "channel must have one row per value and one column per output, "
            f"got shape {rows.shape} for {len(pi)} values and {len(guess)} outputs."
        )
    if not np.all((guess >= 0) & (guess < len(pi))):
        raise ValueError(f"attack must guess values in 0..{len(pi) - 1}, got {guess}.")
    for row in rows:
        _distribution(row, "each row of channel")
    member = float(pi[guess] @ rows[guess, np.arange(len(guess))])
    fresh = float((pi @ rows) @ pi[guess])
    return member - fresh


def reconstruction_bound(
    loss: Loss | TradeOff,
    *,
    baseline: float,
    method: Literal["ratio", "tradeoff"] = "tradeoff",
) -> float:
    r"""Bound the success of a reconstruction attack without auxiliary knowledge.

    Parameters
    ----------
    loss : Pure, Approx, GDP or TradeOff
        The guarantee.
    baseline : float
        :math:`\kappa^+`, the success of the best guess that ignores the output.
    method : {"ratio", "tradeoff"}
        ``"ratio"`` is :math:`\kappa^+ e^\varepsilon` for pure DP; ``"tradeoff"`` the
        never larger :math:`1 - f(\kappa^+)`.

    Returns
    -------
    float
        At most 1, rounded up.

    Raises
    ------
    AssumptionError
        For ``"ratio"`` with a loss that is not pure.

    Notes
    -----
    Equations 2.3 and 2.6 of Guerra-Balboa (2026). Not checkable: that the attack knows
    nothing about its target beyond the output and the other records; with such
    knowledge both are false.

    Examples
    --------
    >>> round(reconstruction_bound(Pure(1), baseline=0.5), 12)
    0.816060279414
    >>> round(reconstruction_bound(Pure(1), baseline=0.3, method="ratio"), 12)
    0.815484548538
    """
    check_choice(method, "method", choices=("ratio", "tradeoff"))
    baseline = check_probability(baseline, "baseline")
    if method == "tradeoff":
        f = loss if isinstance(loss, TradeOff) else loss_tradeoff(loss)
        return min(1.0, 1.0 - float(f(baseline)) + _LEVEL_ROUNDING)
    if not isinstance(loss, Pure):
        raise AssumptionError(
            f"loss must be pure for the ratio bound (Equation 2.3), got {loss}; use "
            'method="tradeoff".'
        )
    if baseline == 0 or loss.epsilon > 700:
        return 1.0 if baseline else 0.0
    return min(1.0, inflate(baseline * math.exp(loss.epsilon), HANDFUL))


def _distribution(masses: ArrayLike, name: str) -> Floats:
    vector = np.asarray(masses, dtype=np.float64)
    return read_law(vector, name, tolerance=_TOLERANCE, normalised=False)
