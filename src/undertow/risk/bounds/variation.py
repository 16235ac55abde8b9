r"""Bounds from :math:`(\varepsilon, \delta)` and total variation, and their inverses.

Whatever the attacker knows: :math:`\mathrm{RAD} \le \mathrm{TV}(M)\,(1 - \kappa_\pi)`
for every prior, success rule and knowledge, and for pure DP also
:math:`\mathrm{RAD} \le \tanh(\varepsilon/4)`, without any prior at all.

For an attacker who knows nothing: Proposition 5.13 for any success rule, Lemma 5.14,
Theorem 5.15 and Corollary 5.16 for the exact record among finitely many, and bounds on
the success of reconstruction, with what they say of the advantage.

Over several releases the exact advantage has no composition theorem; total variations
and trade-off functions do.

A *calibration* returns the largest epsilon at which a bound, evaluated there, stays
within the target, and refuses where none does; an *audit* bounds epsilon from below by
an advantage that some attack attains, and says 0 where nothing follows.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_count,
    check_finite,
    check_non_negative,
    check_probability,
)
from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.numeric.array import complements, read_floats
from undertow.numeric.array import disagreement as spread_of
from undertow.numeric.rounding import (
    DOZENS,
    UNIT,
    expm1_up,
    inflate,
    log_down,
    nudge_down,
)
from undertow.numeric.search import greatest_float
from undertow.privacy import (
    GDP,
    ZCDP,
    Approx,
    Bound,
    Calibration,
    Loss,
    Pure,
    PureTradeOff,
    TradeOff,
    round_up,
    total_variation,
)
from undertow.privacy.variation import loss_tradeoff, reconstruction_bound
from undertow.risk.bounds._parts import (
    BARE,
    BLIND,
    LARGEST,
    PriorLike,
    advantage,
    calibrated_epsilon,
    capacity,
    capped,
    disagreement,
    law,
    parameters,
    read_size,
    uniform_disagreement,
)

_PAIRS = 200_000_000


def variation_bound(
    guarantee: Loss | TradeOff | float,
    *,
    collision: float = 0.0,
    sharpen: bool = True,
) -> Bound:
    r"""Bound the advantage of every attack, whatever it knows of its target.

    .. math:: \mathrm{RAD} \le \mathrm{TV}(M)\,(1 - \kappa_\pi)

    Parameters
    ----------
    guarantee : Loss, TradeOff or float
        What the mechanism promises; a number is its total variation.
    collision : float, optional
        The collision probability of the prior, or anything below it; 0 by default,
        which holds for every prior, continuous ones included.
    sharpen : bool, optional
        Take the smaller of this and :func:`prior_free_bound`, for a pure guarantee;
        ignored for others, where no such cap is known.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Theorem 5.2 of [1]_. Tight for randomized response under every prior, and for the
    uniform prior on two records. Checked: nothing. Not checkable: independent records,
    and a guarantee for replacing one record; twice the parameter of adding or removing
    one, in general.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(variation_bound(Pure(1), collision=0.5).value, 8)
    0.23105858
    """
    total, spread = _variation(guarantee), disagreement(collision)
    plain = advantage(capped(total * spread, spread), "Theorem 5.2")
    if not (sharpen and isinstance(guarantee, Pure)):
        return plain
    sharp = prior_free_bound(guarantee.epsilon)
    return plain if plain.value <= sharp.value else sharp


def prior_free_bound(epsilon: float) -> Bound:
    r"""Bound the advantage against a pure-DP mechanism for all threats at once.

    .. math:: \mathrm{RAD} \le \tanh(\varepsilon/4)

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter for replacing a record, in :math:`[0, \infty]`.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Proved on the page "Bounds on the advantage". Holds for every prior, discrete or
    continuous, every success rule and every knowledge. Attained by randomized response
    on :math:`m = e^{\varepsilon/2} + 1` records with the uniform prior where that is
    whole. For :math:`\delta > 0` it is not claimed.

    Examples
    --------
    >>> round(prior_free_bound(1.0).value, 6)
    0.244919
    """
    epsilon = check_non_negative(epsilon, "epsilon")
    value = capped(math.tanh(epsilon / 4.0), 1.0)
    return advantage(value, "prior-free cap tanh(epsilon/4)", checked=("pure DP",))


def uniform_prior_bound(epsilon: float, size: int) -> Bound:
    r"""Bound the advantage under a uniform prior, whatever the attacker knows.

    .. math:: \mathrm{RAD} \le \max_{1 \le k < m}
       \frac{k (m-k) (e^\varepsilon - 1)}{m (k e^\varepsilon + m - k)}

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter for replacing a record, in :math:`[0, \infty]`.
    size : int
        Number m of equally likely records; at least 1.

    Returns
    -------
    Bound
        On the advantage, rounded up; never above :func:`prior_free_bound`.

    Notes
    -----
    Proved on the page "Bounds on the advantage". Checked: nothing. Not checkable: that
    the prior is uniform.

    Examples
    --------
    >>> round(uniform_prior_bound(1.0, 3).value, 6)
    0.242784
    """
    epsilon, m = check_non_negative(epsilon, "epsilon"), read_size(size)
    decay = math.exp(-epsilon)
    # The summand is concave in k with its peak at m / (1 + e^(epsilon/2)).
    peak = m / (1.0 + math.exp(min(epsilon, 1400.0) / 2.0))
    near = {max(1, min(m - 1, round(peak) + step)) for step in (-1, 0, 1)}
    shares = [k * (m - k) * -math.expm1(-epsilon) / (k + (m - k) * decay) for k in near]
    value = capped(max(shares) / m if m > 1 else 0.0, uniform_disagreement(m))
    unchecked = (*BARE, "the prior is uniform")
    return advantage(value, "uniform-prior cap", unchecked=unchecked)


def pairwise_variation_bound(distances: ArrayLike, prior: PriorLike) -> Bound:
    r"""Bound the advantage by the total variation between every two records.

    .. math:: \mathrm{RAD} \le \sum_{x \ne y} \pi_x \pi_y \,
       \mathrm{TV}(M(D_x), M(D_y))

    Parameters
    ----------
    distances : array_like of shape (m, m)
        Total variations in [0, 1], upper bounds of them at least; the diagonal is not
        read.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records.

    Returns
    -------
    Bound
        On the advantage, rounded up; never above Theorem 5.2.

    Notes
    -----
    What the proof of Theorem 5.2 gives before the largest pair is taken; shown on the
    page "Bounds on the advantage". For every knowledge and success rule.

    Examples
    --------
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    >>> round(pairwise_variation_bound(variation_matrix(P), [0.5, 0.3, 0.2]).value, 9)
    0.288
    """
    pi, total = law(prior), read_floats(distances, "distances")
    if total.shape != (len(pi), len(pi)):
        raise ValueError(
            f"distances must have shape ({len(pi)}, {len(pi)}), got {total.shape}."
        )
    np.fill_diagonal(total, 0.0)
    if not np.all((total >= 0) & (total <= 1)):
        raise ValueError("distances must lie in [0, 1].")
    margin = 8 * UNIT * (len(pi) + 8)
    value = min(1.0, inflate(float(pi @ total @ pi), margin))
    return advantage(value, "Theorem 5.2, pairwise")


def variation_matrix(channel: ArrayLike) -> NDArray[np.float64]:
    r"""Return the total variation between every two rows of a channel, rounded up.

    Parameters
    ----------
    channel : array_like of shape (m, k)
        Row x is the law of the output on record x.

    Returns
    -------
    ndarray of shape (m, m)
        :math:`\frac12 \|P_x - P_y\|_1`; time of order :math:`m^2 k`.

    Raises
    ------
    ValueError
        If a row is no law, or the work passes 2e8 additions.

    Examples
    --------
    >>> variation_matrix([[0.75, 0.25], [0.25, 0.75]]).round(12).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    rows = read_floats(channel, "channel")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"channel must be a matrix, got shape {rows.shape}.")
    rows = np.stack([law(row) for row in rows])
    if len(rows) * rows.size > _PAIRS:
        raise ValueError(
            f"channel must need at most {_PAIRS} additions, got "
            f"{len(rows) * rows.size}; use variation_bound with the largest one."
        )
    half = np.array([np.abs(rows - row).sum(axis=1) / 2.0 for row in rows])
    # Each of the k differences is rounded once, relative to its two entries.
    slack = np.where(half > 0, 2 * UNIT * (rows.shape[1] + 8), 0.0)
    return np.asarray(np.minimum(1.0, half + slack), dtype=np.float64)


def projected_variation_bound(
    guarantee: Loss | TradeOff | float, prior: PriorLike, *, labels: ArrayLike
) -> Bound:
    r"""Bound the advantage where the mechanism reads a function of the record only.

    Parameters
    ----------
    guarantee : Loss, TradeOff or float
        What the mechanism promises; a number is its total variation.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records.
    labels : array_like of shape (m,)
        The value :math:`\psi(x)` that the mechanism reads, for each record.

    Returns
    -------
    Bound
        Theorem 5.2 with the collision probability of :math:`\psi(X)`: records that look
        the same to the mechanism add nothing.

    Notes
    -----
    Shown on the page "Bounds on the advantage". Not checkable: that the output depends
    on the record through `labels` only.

    Examples
    --------
    >>> people = [0.1, 0.4, 0.3, 0.2]  # young and ill, young, old and ill, old
    >>> round(projected_variation_bound(Pure(1), people, labels=[1, 0, 1, 0]).value, 6)
    0.221816
    """
    pi, read = law(prior), np.asarray(labels)
    if read.shape != pi.shape:
        raise ValueError(
            f"labels must be one for each of the {len(pi)} records, got shape "
            f"{read.shape}."
        )
    _, cells = np.unique(read, return_inverse=True)
    masses = np.bincount(cells, weights=pi).astype(np.float64)
    spread = min(1.0, inflate(spread_of(masses), 8 * UNIT * (len(pi) + 8)))
    value = capped(_variation(guarantee) * spread, 1.0)
    unchecked = (*BARE, "the output depends on the record through the labels only")
    plain = advantage(value, "Theorem 5.2, projected", unchecked=unchecked)
    if isinstance(guarantee, Pure):
        return min(plain, prior_free_bound(guarantee.epsilon), key=lambda b: b.value)
    return plain


def _variation(guarantee: Loss | TradeOff | float) -> float:
    """Return the total variation a guarantee allows, rounded up."""
    if isinstance(guarantee, TradeOff):
        return guarantee.total_variation()
    if isinstance(guarantee, Loss):
        return total_variation(guarantee)
    return check_probability(guarantee, "guarantee")


# Bounds from :math:`(\varepsilon, \delta)`-DP for an attacker who knows nothing.
#
# Any success rule: Proposition 5.13. The exact record among finitely many: Lemma 5.14,
# Theorem 5.15 and, for a uniform prior, Corollary 5.16.
#
# References
# ----------
# .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
#    Correlated Data*, PhD thesis, KIT, 2026.

_EXACT = (*BLIND, "only the exact record counts")


def baseline_bound(
    loss: Loss,
    *,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
    sharpen: bool = True,
) -> Bound:
    r"""Bound the advantage of an attacker without knowledge, for any success rule.

    .. math:: \mathrm{RAD} \le \min\Bigl\{
       \kappa^+ (e^\varepsilon - 1) + (1-\kappa)\delta, \;
       (1-\kappa^-)(1 - e^{-\varepsilon}) + \delta e^{-\varepsilon}, \;
       \tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}(1-\kappa)\Bigr\}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    best_guess : float
        Success :math:`\kappa^+` of the best guess without looking, over all guesses.
    worst_guess : float, optional
        Success :math:`\kappa^-` of the worst; 0 if the attacker may decline to answer.
    collision : float, optional
        The collision probability of the prior; 0 for a continuous one.
    sharpen : bool, optional
        False for the first term as printed, with :math:`\delta` whole.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Proposition 5.13 of [1]_; :math:`\delta` in the first term is sharpened to
    :math:`(1-\kappa)\delta`, which Theorem 5.11(b) gives. Not checkable: that nothing
    is known of the target.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> loss, baselines = Approx(2, "1e-5"), dict(best_guess=0.1, worst_guess=0.1)
    >>> round(baseline_bound(loss, **baselines, collision=0.1).value, 6)
    0.638915
    """
    epsilon, delta = parameters(loss)
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    spread = disagreement(collision)
    lost = spread * delta if sharpen else delta
    rising = (expm1_up(epsilon) * high if high > 0 else 0.0) + lost
    falling = -math.expm1(-epsilon) * (1.0 - low) + delta * math.exp(-epsilon)
    value = min(rising, falling, total_variation(loss) * spread)
    return advantage(capped(value, spread), "Proposition 5.13", unchecked=BLIND)


def region_capacity(guarantee: Loss | TradeOff, size: int) -> float:
    r"""Bound the total gain over the regions of an attack that names one of m records.

    .. math:: \sum_x \Pr[\Theta_x \mid x] - \Pr[\Theta_x] \le
       \Gamma = \frac{(m-1)(e^\varepsilon - 1 + \delta m)}{e^\varepsilon + m - 1}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        For another guarantee than :math:`(\varepsilon, \delta)` the least value along
        its privacy curve.
    size : int
        Number m of records; at least 1.

    Returns
    -------
    float
        Rounded up, at most :math:`m - 1`.

    Notes
    -----
    Lemma 5.14 of Guerra-Balboa (2026).

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> round(region_capacity(Pure(1), 4), 6)
    0.901468
    """
    m = read_size(size)
    f = guarantee if isinstance(guarantee, TradeOff) else loss_tradeoff(guarantee)
    return min(float(m - 1), inflate(capacity(f, m), DOZENS))


def exact_guess_bound(guarantee: Loss | TradeOff, prior: PriorLike) -> Bound:
    r"""Bound the chance to name the record, beyond luck, for any finite prior.

    .. math:: \mathrm{RAD} \le \max\Bigl\{\textstyle\sum_x \pi_x \gamma_x :
       0 \le \gamma_x \le \mathrm{TV}\,(1-\pi_x), \; \sum_x \gamma_x \le \Gamma\Bigr\}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        What the mechanism promises for neighbours in both orders.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.

    Returns
    -------
    Bound
        On the advantage, rounded up. Time of order :math:`m \log m`.

    Notes
    -----
    Theorem 5.15 of Guerra-Balboa (2026): the maximum is a fractional knapsack, filled
    in the order of falling :math:`\pi_x`. It is evaluated in the dual form
    :math:`\lambda\Gamma + \mathrm{TV}\sum_x (1-\pi_x)(\pi_x - \lambda)_+`, valid for
    every :math:`\lambda \ge 0`. Records of probability 0 are dropped first, which makes
    :math:`\Gamma` smaller. Never above Theorem 5.2; where :math:`\delta m` is large and
    the prior skew, Proposition 5.13 can be smaller. Not checkable: exact success, no
    knowledge.

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> round(exact_guess_bound(Pure(1), [0.4, 0.3, 0.2, 0.1]).value, 9)
    0.268095769
    """
    masses = law(prior)
    pi = np.sort(masses[masses > 0])[::-1]
    room = region_capacity(guarantee, len(pi))
    if isinstance(guarantee, TradeOff):
        total = guarantee.total_variation()
    else:
        total = total_variation(guarantee)
    sizes = total * complements(pi)
    full = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
    price = float(pi[full]) if full < len(pi) else 0.0
    paid = sizes * np.maximum(0.0, pi - price)
    value = price * room + math.fsum(paid.tolist())
    ceiling = inflate(spread_of(pi), DOZENS)
    return advantage(capped(value, ceiling), "Theorem 5.15", unchecked=_EXACT)


def uniform_guess_bound(loss: Loss, size: int) -> Bound:
    r"""Bound the chance to name one of m equally likely records, beyond luck.

    .. math:: \mathrm{RAD} \le \frac{m-1}{m} \cdot
       \frac{e^\varepsilon - 1 + \delta m}{e^\varepsilon + m - 1}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    size : int
        Number m of records; at least 1.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Corollary 5.16 of Guerra-Balboa (2026); attained by randomized response for pure DP.
    Not checkable: exact success, a uniform prior, no knowledge.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> round(uniform_guess_bound(Approx(1, "1e-5"), 10).value, 9)
    0.131976997
    """
    epsilon, delta = parameters(loss)
    m = read_size(size)
    decay = math.exp(-epsilon)
    top = -math.expm1(-epsilon) + delta * m * decay
    value = (m - 1) / m * (top / (1.0 + (m - 1) * decay))
    value = capped(value, uniform_disagreement(m))
    unchecked = (*_EXACT, "the prior is uniform")
    tight = True if delta == 0 else None
    return advantage(value, "Corollary 5.16", unchecked=unchecked, tight=tight)


# The advantage over several releases: compose the guarantee, then bound the risk.
#
# The exact advantage has no composition theorem; total variations and trade-off
# functions do. Three rules bound the total variation of the whole, and the least is
# taken:
#
# * the product, :math:`1 - \prod_i (1 - \mathrm{TV}_i)`;
# * the tensor product of the trade-off functions, which for Gaussian ones is
#   :math:`\mu = \sqrt{\sum \mu_i^2}` and for equal pure ones is binomial, exactly;
# * :math:`\tanh(\sum \varepsilon_i / 4)` on the advantage, for pure releases.
#
# References
# ----------
# .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
#    Correlated Data*, PhD thesis, KIT, 2026.
# .. [2] P. Kairouz, S. Oh and P. Viswanath, *The Composition Theorem for Differential
#    Privacy*, ICML 2015.

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
    return min(1.0, inflate(-math.expm1(kept), DOZENS * (1.0 - kept)))


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


# Bounds on the success of reconstruction, and what they say of the advantage.
#
# Reconstruction robustness bounds a probability of success, which luck and a skewed
# prior raise without any leak; the advantage does not count those. Both bounds here are
# false as soon as the attacker knows anything of the target.
#
# References
# ----------
# .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
#    Correlated Data*, PhD thesis, KIT, 2026.


def success_bound(
    guarantee: Loss | TradeOff, *, best_guess: float, knowledge: bool = False
) -> Bound:
    r"""Bound the probability that a reconstruction succeeds.

    .. math:: \gamma \le 1 - f(\kappa^+), \qquad
       \gamma \le \kappa^+ e^\varepsilon \text{ for pure DP}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        What the mechanism promises for neighbours in both orders.
    best_guess : float
        Success :math:`\kappa^+` of the best guess without looking.
    knowledge : bool, optional
        Whether the attacker knows anything of the target; refused.

    Returns
    -------
    Bound
        On the probability of success, the smaller of the two, rounded up.

    Raises
    ------
    AssumptionError
        With knowledge of the target, where both bounds are false; for a zCDP loss.

    Notes
    -----
    Equations 2.3 and 2.6 of [1]_. The second is never larger than the first for a pure
    guarantee.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> round(success_bound(GDP(1), best_guess=0.1).value, 9)
    0.389143692
    """
    if knowledge:
        raise AssumptionError(
            "knowledge must be False for a bound on reconstruction (Equations 2.3 and "
            "2.6), got True; use variation_bound, which bounds the advantage for any "
            "knowledge."
        )
    high = check_probability(best_guess, "best_guess")
    value, theorem = reconstruction_bound(guarantee, baseline=high), "Equation 2.6"
    if isinstance(guarantee, Pure):
        ratio = reconstruction_bound(guarantee, baseline=high, method="ratio")
        if ratio < value:
            value, theorem = ratio, "Equation 2.3"
    return Bound(value, theorem, BLIND, quantity="success")


def success_advantage_bound(success: Bound | float, *, worst_guess: float) -> Bound:
    r"""Bound the advantage by a bound on success, without knowledge of the target.

    .. math:: \mathrm{RAD} \le \mathrm{Succ} - \kappa^-

    Parameters
    ----------
    success : Bound or float
        Upper bound on the probability of success.
    worst_guess : float
        Success :math:`\kappa^-` of the worst guess; 0 if the attacker may decline.

    Returns
    -------
    Bound
        On the advantage, rounded up, at least 0.

    Notes
    -----
    The advantage is the success less the average prior mass of the guessed sets, and no
    set has less than :math:`\kappa^-`. Shown on the page "Bounds on the advantage".

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> attack = success_bound(GDP(1), best_guess=0.1)
    >>> round(success_advantage_bound(attack, worst_guess=0.1).value, 9)
    0.289143692
    """
    bound = success if isinstance(success, Bound) else Bound(success, "given")
    top = check_probability(bound.value, "success")
    low = check_probability(worst_guess, "worst_guess")
    value = max(0.0, round_up(Fraction(top) - Fraction(low)))
    theorem = f"success minus the worst guess, by {bound.theorem}"
    return advantage(value, theorem, unchecked=BLIND)


def calibrate_success(target: float, *, best_guess: float) -> Calibration:
    """Return the largest pure epsilon whose reconstruction success is within a target.

    Parameters
    ----------
    target : float
        The probability of success allowed, in [0, 1].
    best_guess : float
        Success of the best guess without looking.

    Returns
    -------
    Calibration
        Rounded down; infinite for a target of 1.

    Raises
    ------
    InfeasibleTarget
        If the target is not above `best_guess`, which needs no output at all.

    Notes
    -----
    Inverse of :func:`success_bound`, evaluated at the value returned.

    Examples
    --------
    >>> round(calibrate_success(0.3, best_guess=0.1).value, 6)
    1.098612
    """
    goal = check_probability(target, "target")
    least = success_bound(Pure(0), best_guess=best_guess)

    def bound(epsilon: float) -> Bound:
        return success_bound(Pure(epsilon), best_guess=best_guess)

    if goal == 1:
        method = "the target is never binding: every probability is at most 1"
        return Calibration("epsilon", math.inf, bound(math.inf), method)
    if least.value > goal:
        raise InfeasibleTarget(
            f"target must be greater than the success {least.value:.6g} of a guess "
            f"without any output, got {target}; ask for an advantage instead.",
            least=least.value,
        )
    value = greatest_float(lambda e: bound(e).value <= goal, low=0.0, high=LARGEST)
    return Calibration("epsilon", value, bound(value), "bisection over the floats")


# From a tolerated advantage to epsilon, and from an observed one: the inverses.
#
# A *calibration* returns the largest epsilon at which a bound, evaluated there, stays
# within the target, and refuses where none does; an *audit* bounds epsilon from below
# by an advantage that some attack attains, and says 0 where nothing follows.
#
# References
# ----------
# .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
#    Correlated Data*, PhD thesis, KIT, 2026.


def calibrate_variation(
    target: float, *, delta: float = 0.0, collision: float = 0.0, sharpen: bool = True
) -> Calibration:
    r"""Return the largest epsilon whose advantage is within a target for any knowledge.

    .. math:: \varepsilon = \ln\frac{1 + g - 2\delta}{1 - g}, \quad
       g = \gamma/(1 - \kappa_\pi)

    Parameters
    ----------
    target : float
        The advantage :math:`\gamma` allowed, in (0, 1].
    delta : float, optional
        Of the approximate guarantee; 0 for pure DP.
    collision : float, optional
        The collision probability of the prior, or anything below it.
    sharpen : bool, optional
        Use the cap :math:`\tanh(\varepsilon/4)` too, for pure DP.

    Returns
    -------
    Calibration
        Rounded down; infinite if the target is not below :math:`1 - \kappa_\pi`.

    Raises
    ------
    InfeasibleTarget
        If the bound passes the target at :math:`\varepsilon = 0`, where it is
        :math:`\delta (1 - \kappa_\pi)`.

    Notes
    -----
    Inverse of Theorem 5.2 and of the cap, whichever allows more.

    Examples
    --------
    >>> round(calibrate_variation(0.1).value, 6)
    0.401341
    >>> round(calibrate_variation(0.1, sharpen=False).value, 6)
    0.200671
    """
    lost = check_probability(delta, "delta")

    def bound(epsilon: float) -> Bound:
        loss = _loss(epsilon, lost)
        return variation_bound(loss, collision=collision, sharpen=sharpen)

    return calibrated_epsilon(target, bound, ceiling=disagreement(collision))


def variation_epsilon_bound(
    observed: float, *, delta: float = 0.0, collision: float = 0.0
) -> Bound:
    r"""Bound epsilon from below by an advantage that some attack attains.

    Parameters
    ----------
    observed : float
        The advantage, from -1 to :math:`1 - \kappa_\pi`; a lower confidence limit of
        it in an audit.
    delta : float, optional
        At which epsilon is asked for.
    collision : float, optional
        The collision probability of the prior, or anything below it.

    Returns
    -------
    Bound
        Every :math:`(\varepsilon, \delta)` guarantee of the mechanism has at least this
        epsilon; rounded down, 0 where nothing follows, infinite at total disclosure.

    Notes
    -----
    Inverse of Theorem 5.2 and, for :math:`\delta = 0`, of the prior-free cap:
    :math:`4\,\mathrm{artanh}\,\gamma`.

    Examples
    --------
    >>> round(variation_epsilon_bound(0.2, collision=0.5).value, 6)
    0.847298
    """
    gamma, lost = _observed(observed), check_probability(delta, "delta")
    spread = disagreement(collision)
    if gamma > spread:
        raise ValueError(
            f"observed must be at most 1 - collision = {spread}, got {observed}; no "
            "attack has a larger advantage."
        )
    room = 1 - Fraction(float(collision))
    # With g = gamma / room the ratio is (1 + g - 2 delta) / (1 - g).
    value = _log_ratio(room + Fraction(gamma) - 2 * Fraction(lost) * room, room, gamma)
    if lost == 0 and gamma < 1:
        value = max(value, _lowered(4.0 * math.atanh(gamma)))
    return Bound(value if lost < 1 else 0.0, "Theorem 5.2", BARE)


def calibrate_baseline(
    target: float,
    *,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
    delta: float = 0.0,
) -> Calibration:
    """Return the largest epsilon at which Proposition 5.13 stays within a target.

    Parameters
    ----------
    target : float
        The advantage allowed, in (0, 1].
    best_guess, worst_guess, collision : float
        As for :func:`baseline_bound`.
    delta : float, optional
        Of the approximate guarantee; 0 for pure DP.

    Returns
    -------
    Calibration
        Rounded down; infinite if the target is not below ``1 - collision``.

    Raises
    ------
    InfeasibleTarget
        If the bound passes the target at epsilon 0.

    Examples
    --------
    >>> round(calibrate_baseline(0.1, best_guess=0.1, worst_guess=0.1).value, 6)
    0.693147
    """
    lost = check_probability(delta, "delta")

    def bound(epsilon: float) -> Bound:
        return baseline_bound(
            _loss(epsilon, lost),
            best_guess=best_guess,
            worst_guess=worst_guess,
            collision=collision,
        )

    return calibrated_epsilon(target, bound, ceiling=disagreement(collision))


def calibrate_exact_guess(
    target: float, prior: PriorLike, *, delta: float = 0.0
) -> Calibration:
    """Return the largest epsilon at which Theorem 5.15 stays within a target.

    Parameters
    ----------
    target : float
        The advantage allowed, in (0, 1].
    prior : Prior or array_like of shape (m,)
        Probabilities of the records.
    delta : float, optional
        Of the approximate guarantee; 0 for pure DP.

    Returns
    -------
    Calibration
        Rounded down; infinite if the target is not below ``1 - collision``.

    Raises
    ------
    InfeasibleTarget
        If the bound passes the target at epsilon 0.

    Examples
    --------
    >>> round(calibrate_exact_guess(0.268095769, [0.4, 0.3, 0.2, 0.1]).value, 6)
    1.0
    """
    pi, lost = law(prior), check_probability(delta, "delta")
    ceiling = inflate(spread_of(pi), DOZENS)
    return calibrated_epsilon(
        target,
        lambda epsilon: exact_guess_bound(_loss(epsilon, lost), pi),
        ceiling=ceiling,
    )


def calibrate_uniform_guess(
    target: float, size: int, *, delta: float = 0.0
) -> Calibration:
    r"""Return the largest epsilon that keeps m equally likely records within a target.

    .. math:: \varepsilon = \ln\frac{1 + \gamma m - \delta m}{1 - \gamma m/(m-1)}

    Parameters
    ----------
    target : float
        The advantage :math:`\gamma` allowed, in (0, 1].
    size : int
        Number m of records; at least 1.
    delta : float, optional
        Of the approximate guarantee; 0 for pure DP.

    Returns
    -------
    Calibration
        Rounded down; infinite if the target is not below :math:`1 - 1/m`.

    Raises
    ------
    InfeasibleTarget
        If the target is not above :math:`\delta(m-1)/m`, the bound at epsilon 0.

    Notes
    -----
    Inverse of Corollary 5.16 of Guerra-Balboa (2026), Equation 5.60 for
    :math:`\delta = 0`. The bound is evaluated at the value returned.

    Examples
    --------
    >>> round(calibrate_uniform_guess(0.1, 1000).value, 6)
    4.720592
    """
    m, lost = check_count(size, "size"), check_probability(delta, "delta")
    return calibrated_epsilon(
        target,
        lambda epsilon: uniform_guess_bound(_loss(epsilon, lost), m),
        ceiling=uniform_disagreement(m),
    )


def uniform_guess_epsilon_bound(
    observed: float, size: int, *, delta: float = 0.0
) -> Bound:
    r"""Bound epsilon from below by an advantage attained on m equally likely records.

    Parameters
    ----------
    observed : float
        The advantage, from -1 to :math:`1 - 1/m`; a lower confidence limit of it in
        an audit.
    size : int
        Number m of records; at least 2.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    Bound
        Every :math:`(\varepsilon, \delta)` guarantee of the mechanism has at least this
        epsilon; rounded down, 0 where nothing follows, infinite at total disclosure.

    Notes
    -----
    Equation 5.60 of Guerra-Balboa (2026), with its :math:`\delta`. Not checkable: that
    the attack named exact records, drawn uniformly, without knowledge of them.

    Examples
    --------
    >>> round(uniform_guess_epsilon_bound(0.5, 10).value, 6)
    2.60269
    """
    gamma, m = _observed(observed), check_count(size, "size", minimum=2)
    lost = check_probability(delta, "delta")
    ceiling = uniform_disagreement(m)
    if gamma > ceiling:
        raise ValueError(
            f"observed must be at most 1 - 1/size = {ceiling}, got {observed}; no "
            "attack has a larger advantage."
        )
    room = Fraction(m - 1, m)
    # The ratio is (1 + gamma m - delta m) / (1 - gamma / room).
    value = _log_ratio((1 + m * (Fraction(gamma) - Fraction(lost))) * room, room, gamma)
    unchecked = (*_EXACT, "the prior is uniform")
    return Bound(value if lost < 1 else 0.0, "Corollary 5.16", unchecked)


def _observed(observed: float) -> float:
    """Read an observed advantage; nothing follows from one that is not positive."""
    value = check_finite(observed, "observed")
    if not -1 <= value <= 1:
        raise ValueError(f"observed must be in [-1, 1], got {observed}.")
    return max(0.0, value)


def _log_ratio(top: Fraction, room: Fraction, gamma: float) -> float:
    """Return ln(top / (room - gamma)), rounded down, at least 0; all of it exact."""
    left = room - Fraction(gamma)
    if left <= 0:
        return math.inf if gamma > 0 else 0.0
    return max(0.0, log_down(top / left)) if top > left else 0.0


def _lowered(value: float) -> float:
    """Lower a computed epsilon by its rounding; 0 and infinity are exact."""
    return value if value in (0.0, math.inf) else nudge_down(value * (1.0 - DOZENS))


def _loss(epsilon: float, delta: float) -> Loss:
    return Approx(epsilon, delta) if delta else Pure(epsilon)
