r"""Risk of DP-SGD: noise multiplier, steps, sampling, and how records are replaced.

Gradients are clipped to norm C and Gaussian noise of standard deviation
:math:`\sigma C` is added to their sum, T times. With full batches, replacing a record
moves the sum by up to 2C, so that a step is :math:`(2/\sigma)`-GDP; adding or removing
one moves it by C. The advantage is about replacing. Without knowledge of the target the
factor 2 can still be avoided, by comparing with the run in which the target's gradient
is zero.

Where the target's gradient takes part in a step with probability q only, the success of
reconstruction is bounded by the trade-off function of the subsampled pair, and
simulated with certified limits.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
.. [2] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import (
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from undertow.errors import SearchError
from undertow.numeric.array import Floats
from undertow.numeric.rounding import DOZENS, UNIT, inflate, nudge_down, nudge_up
from undertow.numeric.search import bisect_each, least_float
from undertow.privacy import (
    Alternative,
    Bound,
    Calibration,
    Estimate,
    GaussianTradeOff,
    PrivacyLossDistribution,
    PureTradeOff,
    TradeOff,
    gdp_delta,
    round_up,
)
from undertow.privacy.tradeoff import levels
from undertow.privacy.variation import reconstruction_bound
from undertow.risk.bounds._parts import (
    BARE,
    BLIND,
    LARGEST,
    LOWERED,
    advantage,
    capped,
    check_target,
    envelope,
    gain,
    reach_of,
    uniform_disagreement,
)
from undertow.risk.bounds.tradeoff import AccountedTradeOff, uniform_gaussian_bound
from undertow.risk.intervals import clopper_pearson

Adjacency = Literal["replace", "add_remove"]
KnowledgeOf = Literal["none", "any"]

_FULL_BATCHES = (
    "full batches, per-record clipping, and independent Gaussian noise in every step"
)
_CLOSE = (
    "the clipped gradients of any two candidate records differ by at most the clipping "
    "norm, which is false in general: not a guarantee"
)
_UNIFORM = ("the prior is uniform", "only the exact record counts")
_LEAST_SIGMA, _LARGEST_SIGMA = 1e-3, 1e300


def sgd_mu(
    noise_multiplier: float, steps: int, *, adjacency: Adjacency = "replace"
) -> float:
    r"""Return the GDP parameter of full-batch DP-SGD, rounded up.

    .. math:: \mu = 2\sqrt{T}/\sigma \text{ (replace)}, \qquad
       \mu = \sqrt{T}/\sigma \text{ (add or remove)}

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; positive.
    steps : int
        Number T of full-batch steps; at least 1.
    adjacency : {"replace", "add_remove"}
        How neighbours differ.

    Notes
    -----
    Example 5.17 of [1]_ takes :math:`1/\sigma` a step under replacement; two clipped
    gradients can differ by twice the clipping norm.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> sgd_mu(20.0, 100) >= 1.0, round(sgd_mu(20.0, 100), 12)
    (True, 1.0)
    """
    sigma = check_positive(noise_multiplier, "noise_multiplier")
    steps = check_count(steps, "steps")
    check_choice(adjacency, "adjacency", choices=("replace", "add_remove"))
    factor = 2.0 if adjacency == "replace" else 1.0
    return nudge_up(factor * math.sqrt(steps) / sigma, 4)


def zero_out_bound(
    noise_multiplier: float, steps: int, *, best_guess: float, worst_guess: float = 0.0
) -> Bound:
    r"""Bound the advantage against DP-SGD by the run without the target's gradient.

    .. math:: \mathrm{RAD} \le 1 - G_\mu(\kappa^+) - \kappa^-, \quad
       \mu = \sqrt{T}/\sigma

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; positive.
    steps : int
        Number T of full-batch steps; at least 1.
    best_guess, worst_guess : float
        Success :math:`\kappa^+` and :math:`\kappa^-` of the best and the worst guess
        without looking; 0 for the worst if the attacker may decline.

    Returns
    -------
    Bound
        On the advantage of an attacker without knowledge, rounded up.

    Notes
    -----
    Proved on the page "Risk of DP-SGD". Any prior and success rule. Not checkable: that
    nothing is known of the target, and that a normalising constant does not depend on
    the target. With knowledge the bound is not available.

    Examples
    --------
    >>> round(zero_out_bound(22.8, 100, best_guess=0.1, worst_guess=0.1).value, 6)
    0.099627
    """
    f = GaussianTradeOff(sgd_mu(noise_multiplier, steps, adjacency="add_remove"))
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    apart = round_up(Fraction(high) - Fraction(low))
    value = capped(gain(f, low=high, high=high) + apart, 1.0)
    return advantage(value, "zero-out reference", unchecked=(*BLIND, _FULL_BATCHES))


def sgd_bound(
    noise_multiplier: float,
    steps: int,
    *,
    size: int,
    knowledge: KnowledgeOf = "none",
    adjacency: Adjacency = "replace",
) -> Bound:
    r"""Bound the advantage against DP-SGD on m equally likely records.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; positive.
    steps : int
        Number T of full-batch steps; at least 1.
    size : int
        Number m of equally likely candidate records; at least 1.
    knowledge : {"none", "any"}
        Whether the attacker may know something of the target, such as its label.
    adjacency : {"replace", "add_remove"}
        ``"add_remove"`` reproduces Example 5.17 of the thesis; it is **not a
        guarantee** and says so among its hypotheses.

    Returns
    -------
    Bound
        Without knowledge the smaller of form (c) of Theorem 5.11 at
        :math:`2\sqrt{T}/\sigma` and :func:`zero_out_bound`; with any knowledge Theorem
        5.2 at :math:`2\sqrt{T}/\sigma`.

    Notes
    -----
    Not checkable: the mechanism is the full-batch algorithm, the prior is uniform and
    only the exact record counts. Subsampled batches need the trade-off function of an
    accountant and :func:`~undertow.risk.bounds.tradeoff_bound`.

    Examples
    --------
    >>> round(sgd_bound(22.0, 100, size=10, adjacency="add_remove").value, 9)
    0.099628928
    """
    m = check_count(size, "size")
    check_choice(knowledge, "knowledge", choices=("none", "any"))
    mu = sgd_mu(noise_multiplier, steps, adjacency=adjacency)
    if adjacency == "add_remove":
        return _printed(mu, m, knowledge=knowledge)
    if knowledge == "any":
        spread = uniform_disagreement(m)
        value = capped(GaussianTradeOff(mu).total_variation() * spread, spread)
        unchecked = (*BARE, _FULL_BATCHES, _UNIFORM[0])
        return advantage(value, "Theorem 5.2", unchecked=unchecked)
    zero = _zeroed(noise_multiplier, steps, m)
    sharp = uniform_gaussian_bound(mu, m)
    best = sharp if sharp.value <= zero.value else zero
    value = min(best.value, uniform_disagreement(m))
    return advantage(value, best.theorem, unchecked=(*BLIND, _FULL_BATCHES, *_UNIFORM))


def calibrate_sgd(
    target: float,
    steps: int,
    *,
    size: int,
    knowledge: KnowledgeOf = "none",
    adjacency: Adjacency = "replace",
) -> Calibration:
    r"""Return the least noise multiplier that keeps m suspects within a target.

    Parameters
    ----------
    target : float
        The advantage allowed, in (0, 1].
    steps : int
        Number T of full-batch steps; at least 1.
    size : int
        Number m of equally likely candidate records; at least 1.
    knowledge, adjacency : str
        As for :func:`sgd_bound`.

    Returns
    -------
    Calibration
        Rounded up, the bound evaluated at it; 0 if no attack passes the target. Its
        `alternatives` hold what the other routes ask for, and what the thesis prints.

    Notes
    -----
    For one target the zero-out reference needs
    :math:`\sigma = \sqrt{T}/(\Phi^{-1}(1-\frac1m) - \Phi^{-1}(1-\frac1m-\gamma))`. In
    print, round noise up: 22.730872 is 22.74.

    Examples
    --------
    >>> round(calibrate_sgd(0.1, 100, size=10).value, 6)
    22.730872
    >>> round(calibrate_sgd(0.1, 100, size=10, knowledge="any").value, 6)
    71.576685
    >>> for other in calibrate_sgd(0.1, 100, size=10).alternatives:
    ...     print(f"{other.parameter:.4f}", other.name)
    39.5251 Theorem 5.11(c), uniform prior
    43.8663 Theorem 5.11, uniform prior
    71.5767 Theorem 5.2
    21.9332 Example 5.17 as printed
    """
    target, m = check_target(target), check_count(size, "size")
    sgd_bound(1.0, steps, size=m, knowledge=knowledge, adjacency=adjacency)

    def bound(sigma: float) -> Bound:
        return sgd_bound(sigma, steps, size=m, knowledge=knowledge, adjacency=adjacency)

    if target >= uniform_disagreement(m):
        achieved = advantage(uniform_disagreement(m), "total disclosure")
        method = "the target is never binding: no attack has a larger advantage"
        return Calibration("noise_multiplier", 0.0, achieved, method)
    sigma = _least_sigma(bound, target)
    achieved = bound(sigma)
    others = tuple(
        _alternative(name, reason, route, target)
        for name, reason, route in _routes(steps, m, knowledge, adjacency)
        if name != achieved.theorem
    )
    method = "bisection over the floats"
    return Calibration("noise_multiplier", sigma, achieved, method, others)


def _alternative(
    name: str, reason: str, route: Callable[[float], Bound], target: float
) -> Alternative:
    try:
        return Alternative(name, reason, _least_sigma(route, target))
    except SearchError:  # the rounding of the route alone passes the target
        return Alternative(name, f"{reason}; not reachable in floats")


def _least_sigma(bound: Callable[[float], Bound], target: float) -> float:
    return least_float(
        lambda sigma: bound(sigma).value <= target,
        low=_LEAST_SIGMA,
        high=_LARGEST_SIGMA,
    )


def _routes(
    steps: int, size: int, knowledge: KnowledgeOf, adjacency: Adjacency
) -> Iterator[tuple[str, str, Callable[[float], Bound]]]:
    """Yield name, reason and bound of each way to state the risk of a run."""

    def sgd(known: KnowledgeOf, change: Adjacency) -> Callable[[float], Bound]:
        return lambda sigma: sgd_bound(
            sigma, steps, size=size, knowledge=known, adjacency=change
        )

    def uniform(sharpen: bool) -> Callable[[float], Bound]:
        return lambda sigma: uniform_gaussian_bound(
            sgd_mu(sigma, steps), size, sharpen=sharpen
        )

    proved = "proved for replacing a record, mu = 2 sqrt(T)/sigma"
    if knowledge == "none":
        zero = "proved by the run without the target's gradient, mu = sqrt(T)/sigma"
        yield "zero-out reference", zero, lambda sigma: _zeroed(sigma, steps, size)
        yield "Theorem 5.11(c), uniform prior", f"{proved}; sharper form", uniform(True)
        yield "Theorem 5.11, uniform prior", f"{proved}; as in print", uniform(False)
    yield "Theorem 5.2", f"{proved}; holds for any knowledge", sgd("any", "replace")
    if adjacency == "replace":
        printed = "not a guarantee: takes mu = sqrt(T)/sigma for replacing a record"
        yield "Example 5.17 as printed", printed, sgd(knowledge, "add_remove")


def _zeroed(sigma: float, steps: int, size: int) -> Bound:
    level = 1.0 / size
    return zero_out_bound(
        sigma,
        steps,
        best_guess=nudge_up(level) if size > 1 else 1.0,
        worst_guess=nudge_down(level),
    )


def _printed(mu: float, size: int, *, knowledge: KnowledgeOf) -> Bound:
    """Return what Example 5.17 of the thesis prints."""
    theorem = "Example 5.17 as printed: not a guarantee for replacing a record"
    unchecked = (*BARE, _FULL_BATCHES, *_UNIFORM, _CLOSE)
    if knowledge == "any":
        spread = uniform_disagreement(size)
        value = capped(GaussianTradeOff(mu).total_variation() * spread, spread)
    else:
        value = uniform_gaussian_bound(mu, size, sharpen=False).value
    return advantage(value, theorem, unchecked=unchecked)


# Success of reconstruction against subsampled DP-SGD.
#
# Each of T steps adds Gaussian noise of standard deviation :math:`\sigma` to a sum in
# which the target's gradient, of norm at most 1, takes part with probability q. Against
# the run without the target the pair of one step is
#
# .. math:: Q = N(0, \sigma^2), \qquad P = (1-q)\,N(0, \sigma^2) + q\,N(1, \sigma^2),
#
# and :math:`T(Q, P)(\alpha) = (1-q)(1-\alpha) + q\,G_{1/\sigma}(\alpha)`. Success is
# bounded by :math:`1 - T(Q, P)(\kappa^+)`: the reference is the null.
#
# References
# ----------
# .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
#    thesis, KIT, 2025.


_KNOTS = 1024
_FINE = 2048
_SAMPLED_BATCHES = (
    "Poisson batches, per-record clipping, and independent Gaussian noise in every step"
)
_SLACK = 8 * UNIT


class SubsampledTradeOff(TradeOff):
    r"""The trade-off function of one Gaussian step on a Poisson batch.

    .. math:: T(Q, P)(\alpha) = (1-q)(1-\alpha) + q\,G_\mu(\alpha)

    Parameters
    ----------
    mu : float
        Clipping norm over the noise's standard deviation; positive and finite.
    sampling_rate : float
        Chance q that the target is in the batch, in (0, 1].
    reverse : bool, optional
        True for :math:`T(P, Q)`: the run with the target is the null.

    Notes
    -----
    Not symmetric: `inverse` is the function of the other order, and `symmetrised` the
    guarantee for adding or removing a record.

    Examples
    --------
    >>> f = SubsampledTradeOff(1.0, 0.5)
    >>> round(1 - float(f(0.1)), 10), round(1 - float(f.inverse()(0.1)), 10)
    (0.2445718458, 0.1737715728)
    """

    def __init__(
        self, mu: float, sampling_rate: float, *, reverse: bool = False
    ) -> None:
        self._mu = check_positive(mu, "mu")
        self._rate = check_probability(sampling_rate, "sampling_rate")
        if self._rate == 0:
            raise ValueError("sampling_rate must be positive, got 0.")
        self._reverse = reverse

    def __call__(self, alpha: ArrayLike) -> Floats:
        """Return the type II error of the likelihood-ratio test."""
        level = levels(alpha)
        return self._backward(level) if self._reverse else self._forward(level)

    def _forward(self, level: Floats) -> Floats:
        gauss = GaussianTradeOff(self._mu)(level)
        return np.asarray((1.0 - self._rate) * (1.0 - level) + self._rate * gauss)

    def _backward(self, level: Floats) -> Floats:
        # The greatest type I error of the other order whose type II is at least this.
        return bisect_each(
            lambda alpha: self._forward(alpha) >= level,
            inside=np.zeros_like(level),
            outside=np.ones_like(level),
            rounds=80,
        )

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up, in closed form."""
        q = self._rate
        if epsilon > LARGEST:
            epsilon = LARGEST
        if not self._reverse:
            inner = math.log1p(math.expm1(epsilon) / q)
            return min(1.0, inflate(q * gdp_delta(self._mu, _lowered(inner)), DOZENS))
        # sup_S c Q(S) - q e^epsilon N(1)(S) grows with c, which is rounded up.
        share = min(q, 1.0 - math.exp(min(epsilon, 40.0)) * (1.0 - q) + _SLACK)
        if share <= 0:
            return 0.0
        inner = max(0.0, math.log(q / share) + epsilon - 4 * _SLACK)
        return min(1.0, inflate(share * gdp_delta(self._mu, inner), DOZENS))

    def inverse(self) -> SubsampledTradeOff:
        """Return the function of the pair in the other order."""
        return SubsampledTradeOff(self._mu, self._rate, reverse=not self._reverse)

    def __repr__(self) -> str:
        order = ", reverse=True" if self._reverse else ""
        return f"SubsampledTradeOff({self._mu}, {self._rate}{order})"


def subsampled_tradeoff(
    noise_multiplier: float, steps: int, *, sampling_rate: float, knots: int = _KNOTS
) -> TradeOff:
    r"""Return the trade-off function of DP-SGD against the run without the target.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; positive.
    steps : int
        Number T of steps; at least 1.
    sampling_rate : float
        Chance q that a record is in a batch, in [0, 1].
    knots : int, optional
        Pieces of the composed function; time is of order
        :math:`k^2 \log k \log T`.

    Returns
    -------
    TradeOff
        :math:`T(Q, P)`, the run without the target as the null, nowhere above the
        exact function. ``.symmetrised()`` holds for adding or removing a record in
        both orders, and ``.symmetrised().group(2)`` for replacing one.

    Notes
    -----
    Full batches are Gaussian, one step is closed; else the tensor power of a
    piecewise-linear function below that of one step. For hundreds of steps at a small
    rate the total variation comes out a few per cent high;
    :func:`subsampled_distribution` is sharper there.

    Examples
    --------
    >>> f = subsampled_tradeoff(1.0, 10, sampling_rate=0.1, knots=400)
    >>> abs((1 - float(f(0.1))) - 0.1952) < 0.001
    True
    """
    mu = sgd_mu(noise_multiplier, 1, adjacency="add_remove")
    count = check_count(steps, "steps")
    rate = check_probability(sampling_rate, "sampling_rate")
    if rate == 0:
        return PureTradeOff(0.0)
    if rate == 1:
        return GaussianTradeOff(sgd_mu(noise_multiplier, count, adjacency="add_remove"))
    step = SubsampledTradeOff(mu, rate)
    if count == 1:
        return step
    return _tangents(step, knots).power(count, knots=knots)


def subsampled_distribution(
    noise_multiplier: float, steps: int, *, sampling_rate: float, knots: int = _FINE
) -> PrivacyLossDistribution:
    r"""Return the privacy-loss distribution of DP-SGD for adding or removing a record.

    Parameters
    ----------
    noise_multiplier, steps, sampling_rate
        As for :func:`subsampled_tradeoff`.
    knots : int, optional
        Lines drawn below the function of one step.

    Returns
    -------
    PrivacyLossDistribution
        Its deltas are certified upper bounds, for both orders. Sharper than
        :func:`subsampled_tradeoff` for many steps at a small rate, and without a sense
        of order; :func:`~undertow.risk.bounds.tradeoff_from_pld` makes it a trade-off
        function.

    Notes
    -----
    The pair of a piecewise-linear function below that of a step dominates the step.

    Examples
    --------
    >>> pld = subsampled_distribution(1.0, 300, sampling_rate=0.01)
    >>> round(pld.delta(0.0), 3)
    0.088
    """
    count = check_count(steps, "steps")
    mu = sgd_mu(noise_multiplier, 1, adjacency="add_remove")
    rate = check_probability(sampling_rate, "sampling_rate")
    if rate == 0:
        return PrivacyLossDistribution.identity()
    if rate == 1:
        return PrivacyLossDistribution.from_gaussian(mu).self_compose(count)
    atoms = _tangents(SubsampledTradeOff(mu, rate), knots).atoms
    return PrivacyLossDistribution.from_pmfs(atoms.q, atoms.p).self_compose(count)


def sgd_success_bound(
    noise_multiplier: float,
    steps: int,
    *,
    best_guess: float,
    sampling_rate: float = 1.0,
    knots: int = _KNOTS,
) -> Bound:
    r"""Bound the success of a reconstruction against DP-SGD.

    .. math:: \gamma \le 1 - T(Q, P)(\kappa^+)

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm; positive.
    steps : int
        Number T of steps; at least 1.
    best_guess : float
        Success :math:`\kappa^+` of the best guess without looking.
    sampling_rate : float, optional
        Chance that a record is in a batch; 1 for full batches.
    knots : int, optional
        As for :func:`subsampled_tradeoff`.

    Returns
    -------
    Bound
        On the probability of success, rounded up;
        :func:`~undertow.risk.bounds.success_advantage_bound` turns it into one on the
        advantage.

    Notes
    -----
    Corollary 3 of [1]_ with the order of the pair corrected: the null is the run
    without the target. Proved on the page "Published risk bounds". Any prior and
    success rule; not available with knowledge of the target.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> bound = sgd_success_bound(1.0, 1, best_guess=0.1, sampling_rate=0.5)
    >>> round(bound.value, 10)
    0.2445718458
    """
    high = check_probability(best_guess, "best_guess")
    f = subsampled_tradeoff(
        noise_multiplier, steps, sampling_rate=sampling_rate, knots=knots
    )
    value = reconstruction_bound(f, baseline=high)
    theorem = "Sauer, Corollary 3, with the reference as the null"
    return Bound(value, theorem, (*BLIND, _SAMPLED_BATCHES), quantity="success")


def _tangents(f: SubsampledTradeOff, knots: int) -> AccountedTradeOff:
    """Return the greatest of finitely many lines below one step."""
    heights, slopes = [np.zeros(1)], [np.zeros(1)]
    for order, side in ((1.0, f), (-1.0, f.inverse())):
        grid = np.linspace(0.0, reach_of(side.delta), max(2, knots // 2))
        kept = 1.0 - np.array([side.delta(float(e)) for e in grid]) - LOWERED
        slopes.append(np.exp(order * grid))
        heights.append(kept if order > 0 else kept * slopes[-1])
    corners = envelope(np.concatenate(heights), np.concatenate(slopes))
    return AccountedTradeOff.through(*corners, source="one step", unchecked=())


def _lowered(level: float) -> float:
    return max(0.0, nudge_down(level, 16))


# Simulation of the success bound of subsampled DP-SGD, with certified limits.
#
# References
# ----------
# .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
#    thesis, KIT, 2025.


def estimate_sgd_success(
    noise_multiplier: float,
    steps: int,
    *,
    best_guess: float,
    sampling_rate: float,
    trials: int = 100_000,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> Estimate:
    r"""Estimate the bound of Corollary 3 by simulation, with certified limits.

    Parameters
    ----------
    noise_multiplier, steps, best_guess, sampling_rate
        As for :func:`sgd_success_bound`.
    trials : int, optional
        Number of runs simulated under each of the two laws.
    confidence : float, optional
        Chance that the interval holds the exact bound, in (0, 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Estimate
        Its upper limit is conservative: the threshold is an order statistic that is
        low enough with the stated confidence, and the share above it has a
        Clopper-Pearson limit. Time :math:`O(nT)`, memory :math:`O(n)`.

    Notes
    -----
    A quarter of the error goes to each of the two thresholds and the two shares. If the
    threshold t has :math:`Q(L \ge t) \ge \kappa^+`, the test :math:`L \ge t` is at
    least as powerful as every test of level :math:`\kappa^+` (Neyman and Pearson).
    :func:`sgd_success_bound` needs no simulation and is sharper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> run = dict(best_guess=0.1, sampling_rate=0.5, trials=4000)
    >>> answer = estimate_sgd_success(1.0, 1, **run, rng=rng)
    >>> answer.low < 0.2445718458 < answer.high
    True
    """
    sigma = check_positive(noise_multiplier, "noise_multiplier")
    count, n = check_count(steps, "steps"), check_count(trials, "trials")
    kappa = check_probability(best_guess, "best_guess", open_interval=True)
    rate = check_probability(sampling_rate, "sampling_rate", open_interval=True)
    error = (1.0 - check_probability(confidence, "confidence", open_interval=True)) / 4
    null = np.sort(_losses(n, count, sigma=sigma, rate=0.0, true_rate=rate, rng=rng))
    other = _losses(n, count, sigma=sigma, rate=rate, true_rate=rate, rng=rng)
    cuts = _thresholds(null, kappa, error)
    shares = [int(np.count_nonzero(other >= cut)) for cut in cuts]
    level = 1.0 - error
    low, _ = clopper_pearson(shares[0], n, confidence=level, side="lower")
    _, high = clopper_pearson(shares[2], n, confidence=level, side="upper")
    method = "order statistic and Clopper-Pearson"
    return Estimate(shares[1] / n, low, high, confidence, n, None, method)


def _losses(
    n: int,
    steps: int,
    *,
    sigma: float,
    rate: float,
    true_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Draw log-likelihood ratios of runs in which the target joins at `rate`."""
    total = np.zeros(n)
    stay, join = math.log1p(-true_rate), math.log(true_rate)
    for _ in range(steps):
        x = sigma * rng.standard_normal(n)
        if rate > 0:
            x += rng.random(n) < rate
        total += np.logaddexp(stay, join + (2.0 * x - 1.0) / (2.0 * sigma * sigma))
    return total


def _thresholds(null: Floats, kappa: float, error: float) -> tuple[float, float, float]:
    """Return a threshold surely high, the middle one, and one surely low."""
    from scipy.stats import binom

    n = len(null)
    # One rank to the safe side of what the quantile functions return.
    below = int(binom.ppf(error, n, 1.0 - kappa)) - 1
    above = int(binom.isf(error, n, 1.0 - kappa)) + 2
    middle = min(n - 1, max(0, math.ceil(n * (1.0 - kappa)) - 1))
    low = float(null[below - 1]) if below > 0 else -math.inf
    high = float(null[above - 1]) if above <= n else math.inf
    return high, min(high, max(low, float(null[middle]))), low
