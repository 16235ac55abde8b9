"""Earlier published statements: superseded bounds, corrected, and conjectures.

Sauer's Theorems 4 and 5 are kept for comparison: as printed they lack a delta and are
false, as corrected they hold and are never smaller than Theorem 5.2 and Proposition
5.13 of the thesis. Corollary 2 is the uniform bound from a mechanism's own trade-off
function, on the interval of Lemma 3.

Statements without a proof are for plots and comparison, never a guarantee. A
`Conjecture` is not a `Bound`: no function that takes or returns guarantees accepts it,
and it carries what is known of its truth. Theorems 7 and 8 are a fractional knapsack
over pairs of records; that program itself is exact, what is not proved is that it
bounds the advantage.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
.. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_choice,
    check_count,
    check_non_negative,
    check_probability,
)
from undertow.errors import AssumptionError
from undertow.numeric.rounding import (
    DOZENS,
    UNIT,
    expm1_up,
    inflate,
    nudge_down,
    nudge_up,
)
from undertow.numeric.search import bisect
from undertow.privacy import ApproxTradeOff, Bound, Loss, TradeOff, to_plain
from undertow.privacy.variation import loss_tradeoff, total_variation
from undertow.risk.bounds._parts import (
    BLIND,
    PriorLike,
    advantage,
    capped,
    disagreement,
    gain,
    law,
    parameters,
    uniform_disagreement,
)
from undertow.risk.bounds.variation import region_capacity, uniform_guess_bound

Statement = Literal["theorem-4", "theorem-5"]

_SUPERSEDED = (
    "superseded: Theorem 5.2 and Proposition 5.13 of the thesis are never larger"
)
_TOLERANCE = 1e-9


def superseded_bound(
    loss: Loss,
    *,
    size: int,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
    statement: Statement = "theorem-5",
    clip: bool = True,
) -> Bound:
    r"""Evaluate an earlier bound on the advantage, corrected; for comparison.

    .. math:: \min\Bigl\{\kappa^+(e^\varepsilon - 1) + \delta m, \;
       \tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}\Bigr\}, \qquad
       \min\Bigl\{\kappa^+(e^\varepsilon - 1) + \delta m, \;
       \kappa^+(m-1)\tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}
       + \kappa^+ - \kappa^-\Bigr\}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    size : int
        Number m of records; at least 1.
    best_guess, worst_guess : float
        Success :math:`\kappa^+`, :math:`\kappa^-` of the best and the worst guess
        without looking.
    collision : float, optional
        The collision probability of the prior; the bound is cut at 1 minus it.
    statement : {"theorem-4", "theorem-5"}
        The first formula, or the second, which is about the exact record only.
    clip : bool, optional
        False for the formula as it stands, which may exceed 1.

    Returns
    -------
    Bound
        On the advantage of an attacker without knowledge, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Theorems 4 and 5 of [1]_ with :math:`2\delta` added, without which both are false;
    proved on the page "Published risk bounds". Not checkable: no knowledge; exact
    success for Theorem 5.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> flat = dict(size=100, best_guess=0.01, worst_guess=0.01)
    >>> round(superseded_bound(Approx(1, "1e-5"), **flat).value, 10)
    0.0181828183
    """
    check_choice(statement, "statement", choices=("theorem-4", "theorem-5"))
    epsilon, delta = parameters(loss)
    m = check_count(size, "size")
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    second = total_variation(loss)
    unchecked: tuple[str, ...] = (*BLIND, _SUPERSEDED)
    if statement == "theorem-5":
        second = high * (m - 1) * second + (high - low)
        unchecked = (*unchecked, "only the exact record counts")
    first = (expm1_up(epsilon) * high if high > 0 else 0.0) + delta * m
    value = inflate(min(first, second), DOZENS)
    value = min(value, disagreement(collision)) if clip else value
    name = f"Sauer, Theorem {statement[-1]}, corrected"
    return advantage(value, name, unchecked=unchecked)


def uniform_interval(size: int, *, loss: Loss | None = None) -> tuple[float, float]:
    r"""Return where the false-positive rate of a symmetric attack can lie.

    .. math:: a = \frac{1-\delta}{m - 1 + e^\varepsilon}, \qquad
       b = \min\Bigl\{\frac{1 + \delta e^{-\varepsilon}}{m - 1 + e^{-\varepsilon}},
       \frac{1}{m-1}\Bigr\}

    Parameters
    ----------
    size : int
        Number m of equally likely records; at least 2.
    loss : Pure or Approx, optional
        What is known of the mechanism; without it the interval is
        :math:`[0, 1/(m-1)]`.

    Returns
    -------
    tuple of float
        The ends, rounded outwards and cut at 1.

    Notes
    -----
    Lemma 3 of Sauer (2025); Theorem 8 there prints :math:`1 - \delta e^{-\varepsilon}`
    for the numerator of b, and its proof moves a 1 out of the denominator. Proved on
    the page "Published risk bounds".

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> low, high = uniform_interval(4, loss=Pure(math.log(3)))
    >>> round(low, 12), round(high, 12)
    (0.166666666667, 0.3)
    """
    m = check_count(size, "size", minimum=2)
    widest = 1.0 if m == 2 else nudge_up(1.0 / (m - 1))
    if loss is None:
        return 0.0, widest
    epsilon, delta = parameters(loss)
    decay = math.exp(-epsilon)
    low = (1.0 - delta) * decay / (1.0 + (m - 1) * decay)
    high = (1.0 + delta * decay) / (m - 1 + decay)
    return max(0.0, nudge_down(low, 8)), min(widest, nudge_up(high, 8))


def uniform_interval_bound(
    guarantee: Loss | TradeOff, size: int, *, loss: Loss | None = None
) -> Bound:
    r"""Bound the chance to name one of m equally likely records by the mechanism's f.

    .. math:: \mathrm{RAD} \le \frac{m-1}{m} \max_{\alpha \in [a, b]}
       1 - f(\alpha) - \alpha

    Parameters
    ----------
    guarantee : GDP or TradeOff
        The trade-off function of the mechanism itself, in both orders.
    size : int
        Number m of equally likely records; at least 2.
    loss : Pure or Approx, optional
        A guarantee the mechanism has besides. It narrows the interval of
        :func:`uniform_interval`, and Corollary 5.16 is taken where it is smaller.

    Returns
    -------
    Bound
        On the advantage of an attacker without knowledge, rounded up.

    Raises
    ------
    AssumptionError
        For the generic function of :math:`(\varepsilon, \delta)`-DP, for which the
        interval may hold the peak and Corollary 5.16 is smaller.

    Notes
    -----
    Corollary 2 of [1]_, proved on the page "Published risk bounds".
    :func:`~undertow.risk.bounds.uniform_tradeoff_bound` is never larger without
    `loss`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> round(uniform_interval_bound(GDP(1), 8).value, 10)
    0.2889307901
    """
    f, m = mechanism_curve(guarantee), check_count(size, "size", minimum=2)
    low, high = uniform_interval(m, loss=loss)
    spread = uniform_disagreement(m)
    value = capped(spread * gain(f, low=low, high=high), spread)
    unchecked = (*BLIND, "the prior is uniform", "only the exact record counts")
    plain = advantage(value, "Sauer, Corollary 2", unchecked=unchecked)
    if loss is None:
        return plain
    generic = uniform_guess_bound(loss, m)
    return plain if plain.value <= generic.value else generic


def symmetrised_channel(channel: ArrayLike) -> NDArray[np.float64]:
    r"""Return a channel averaged over all simultaneous relabellings of its records.

    Parameters
    ----------
    channel : array_like of shape (m, m)
        Row-stochastic: the chance of each guess for each record.

    Returns
    -------
    ndarray of shape (m, m)
        :math:`p = \operatorname{tr} C / m` on the diagonal, :math:`(1-p)/(m-1)`
        elsewhere.

    Raises
    ------
    ValueError
        If the channel is not square and row-stochastic.

    Notes
    -----
    Lemma 2 of Sauer (2025): the average keeps the trace, hence the success under a
    uniform prior, and every :math:`(\varepsilon, \delta)` or f guarantee.

    Examples
    --------
    >>> symmetrised_channel([[0.8, 0.2], [0.4, 0.6]]).round(12).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    C = np.asarray(channel, dtype=np.float64)
    if C.ndim != 2 or C.shape[0] != C.shape[1] or len(C) < 2:
        raise ValueError(
            f"channel must be square with at least 2 records, got shape {C.shape}."
        )
    if not (np.all(C >= 0) and np.all(np.abs(C.sum(axis=1) - 1.0) <= _TOLERANCE)):
        raise ValueError(
            "channel must be row-stochastic: rows of chances that sum to 1."
        )
    m = len(C)
    kept = float(np.trace(C)) / m
    average = np.full((m, m), (1.0 - kept) / (m - 1))
    np.fill_diagonal(average, kept)
    return average


def mechanism_curve(guarantee: Loss | TradeOff) -> TradeOff:
    r"""Return a mechanism's own trade-off function; refuse the generic one.

    Parameters
    ----------
    guarantee : GDP or TradeOff
        What the mechanism promises.

    Raises
    ------
    AssumptionError
        For a pure or approximate guarantee, whose function is the generic one.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> mechanism_curve(GDP(1))
    GaussianTradeOff(mu=1.0)
    """
    f = guarantee if isinstance(guarantee, TradeOff) else loss_tradeoff(guarantee)
    if isinstance(f, ApproxTradeOff):
        raise AssumptionError(
            "guarantee must be the trade-off function of the mechanism itself "
            f"(Corollary 2), got the generic {f}; use uniform_guess_bound or "
            "exact_guess_bound, which are smaller."
        )
    return f


# Published statements without a proof: for plots and comparison, never a guarantee.
#
# A `Conjecture` is not a `Bound`: no function that takes or returns guarantees accepts
# it, and it carries what is known of its truth.
#
# References
# ----------
# .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
#    thesis, KIT, 2025.

_BLACK_BOX = (
    "numerically validated, not proved: no violation by the worst mechanism, a linear "
    "program, on 21,000 random and adversarial instances"
)
_CURVE = (
    "numerically validated, not proved: no violation by the best attack on 38,000 "
    "random channels"
)
_FALSE = (
    "false: with the denominator as printed the worst mechanism exceeds it on about "
    "half of 400 random instances"
)


@dataclass(frozen=True, slots=True)
class Conjecture:
    """A published number that nobody has proved; not a guarantee.

    Parameters
    ----------
    value : float
        What the statement claims.
    statement : str
        Where it is stated, and in which form.
    evidence : str
        What is known of its truth.
    refuted : bool
        Whether a counterexample is known.
    """

    value: float
    statement: str
    evidence: str
    refuted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        names = ("value", "statement", "evidence", "refuted")
        return {name: to_plain(getattr(self, name)) for name in names}


def black_box_conjecture(
    loss: Loss, prior: PriorLike, *, printed: bool = False
) -> Conjecture:
    r"""Evaluate Sauer's Theorem 7 for naming the exact record, a conjecture.

    .. math:: A = \frac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}, \qquad
       \Gamma = m(m-1)\,\frac{e^\varepsilon - 1 + m\delta}{e^\varepsilon + m - 1}

    in the knapsack over pairs, :func:`~undertow.risk.bounds.published.pair_knapsack`.

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    printed : bool, optional
        True for the capacity with the denominator :math:`e^\varepsilon + 2` of the
        print, which is refuted.

    Returns
    -------
    Conjecture
        Not a guarantee; at most :math:`1 - \kappa`.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Theorem 7 of [1]_ with the denominator corrected. Its argument drops pairs on which
    the attack gains less than nothing, which occur for optimal attacks. Use
    :func:`~undertow.risk.bounds.exact_guess_bound` (thesis, Theorem 5.15), which is
    proved and usually smaller.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> claim = black_box_conjecture(Pure(math.log(4)), [0.5, 0.3, 0.2])
    >>> round(claim.value, 9), claim.refuted
    (0.336, False)
    """
    epsilon, delta = parameters(loss)
    masses = law(prior)
    m, decay = len(masses), math.exp(-epsilon)
    last = 2.0 if printed else 1.0
    top = -math.expm1(-epsilon) + 2.0 * delta * decay
    capacity = min(1.0, top / (1.0 + last * decay))
    total = m * region_capacity(loss, m)
    value = _within(pair_knapsack(masses, capacity=capacity, total=total), masses)
    if printed:
        return Conjecture(value, "Sauer, Theorem 7 as printed", _FALSE, refuted=True)
    return Conjecture(value, "Sauer, Theorem 7, corrected", _BLACK_BOX)


def curve_conjecture(
    guarantee: Loss | TradeOff, prior: PriorLike, *, loss: Loss | None = None
) -> Conjecture:
    r"""Evaluate Sauer's Theorem 8 for naming the exact record, a conjecture.

    .. math:: A = \mathrm{TV}, \qquad \Gamma = m(m-1) \max_{\alpha \in [a, b]}
       1 - f(\alpha) - \alpha

    in the knapsack over pairs, with the interval of
    :func:`~undertow.risk.bounds.published.uniform_interval`.

    Parameters
    ----------
    guarantee : GDP or TradeOff
        The trade-off function of the mechanism itself, in both orders.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    loss : Pure or Approx, optional
        A guarantee the mechanism has besides, which narrows the interval.

    Returns
    -------
    Conjecture
        Not a guarantee; at most :math:`1 - \kappa`.

    Raises
    ------
    AssumptionError
        For the generic function of :math:`(\varepsilon, \delta)`-DP, where
        :func:`black_box_conjecture` is smaller.

    Notes
    -----
    Theorem 8 of [1]_, whose upper end prints a minus sign where Lemma 3 has a plus.
    Proved instead: :func:`~undertow.risk.bounds.exact_guess_bound` and
    :func:`~undertow.risk.bounds.tradeoff_bound`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> claim = curve_conjecture(GDP(1), [0.5, 0.3, 0.2])
    >>> round(claim.value, 6)
    0.237413
    """
    f = mechanism_curve(guarantee)
    masses = law(prior)
    m = len(masses)
    low, high = uniform_interval(m, loss=loss)
    total = m * (m - 1) * gain(f, low=low, high=high)
    value = pair_knapsack(masses, capacity=f.total_variation(), total=total)
    statement = "Sauer, Theorem 8, corrected"
    return Conjecture(_within(value, masses), statement, _CURVE)


def _within(value: float, masses: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Cut a value at the chance that two draws differ."""
    return min(value, math.fsum((masses * (1.0 - masses)).tolist()))


# The fractional knapsack over pairs of records.
#
# .. math:: \max\Bigl\{\textstyle\sum_{i \ne j} g_{ij}\,\pi_i \pi_j :
#    0 \le g_{ij} \le A, \; \sum_{i \ne j} g_{ij} \le \Gamma\Bigr\}
#
# Sauer's Theorems 7 and 8 are this program with two choices of :math:`A` and
# :math:`\Gamma`; the program itself is exact, what is not proved is that it bounds the
# advantage.
#
# References
# ----------
# .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
#    thesis, KIT, 2025.

_STEPS = 200


def pair_knapsack(prior: PriorLike, *, capacity: float, total: float) -> float:
    r"""Return the value of the pair knapsack, rounded up.

    Parameters
    ----------
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    capacity : float
        Largest weight A of one ordered pair; non-negative and finite.
    total : float
        Weight :math:`\Gamma` to be shared by all pairs; non-negative and finite.

    Returns
    -------
    float
        At least the optimum, above it by a relative 1e-12 at most.

    Raises
    ------
    ValueError
        If `capacity` or `total` is negative or infinite.

    Notes
    -----
    By duality the value is :math:`\min_{t \ge 0} t\,\Gamma + A \sum_{i \ne j}
    (\pi_i\pi_j - t)_+`, and every t gives an upper bound. The number and the sum of
    the products above t come from the sorted prior and its partial sums, so that one
    t costs :math:`O(m \log m)` and no pair is listed; t is found by bisection.

    Examples
    --------
    >>> round(pair_knapsack([0.5, 0.3, 0.2], capacity=0.6, total=3.0), 9)
    0.336
    """
    A = _finite(capacity, "capacity")
    room = _finite(total, "total")
    pi = np.sort(law(prior))
    # Sums of the largest entries, which lose no digits.
    sums = np.append(np.cumsum(pi[::-1])[::-1], 0.0)
    low, high = 0.0, float(pi[-1]) * float(pi[-1])
    duals = [_dual(pi, sums, price, A, room) for price in (low, high)]

    def falls(price: float) -> bool:
        duals.append(_dual(pi, sums, price, A, room))
        count, _ = _above(pi, sums, price)
        return A * count > room

    bisect(falls, inside=low, outside=high, rounds=_STEPS)
    return inflate(min(duals), DOZENS)


def _dual(
    pi: NDArray[np.float64],
    sums: NDArray[np.float64],
    price: float,
    capacity: float,
    total: float,
) -> float:
    """Return the dual value at a price, an upper bound of the knapsack."""
    count, value = _above(pi, sums, price)
    excess = max(0.0, value - price * count)
    # The difference loses digits of the sum; what it may lose is added back.
    return price * total + capacity * (excess + 2 * len(sums) * UNIT * value)


def _above(
    pi: NDArray[np.float64], sums: NDArray[np.float64], price: float
) -> tuple[int, float]:
    """Count and add the products of ordered pairs above a price."""
    m = len(pi)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        needed = np.where(pi > 0, price / pi, math.inf)
    first = np.searchsorted(pi, needed, side="right")
    own = np.arange(m) >= first
    count = int(np.sum(m - first) - np.count_nonzero(own))
    rows = pi * sums[first] - np.where(own, pi * pi, 0.0)
    return count, max(0.0, math.fsum(rows.tolist()))


def _finite(value: float, name: str) -> float:
    number = check_non_negative(value, name)
    if number == math.inf:
        raise ValueError(f"{name} must be finite, got inf.")
    return number
