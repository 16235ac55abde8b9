r"""Success of reconstruction against subsampled DP-SGD.

Each of T steps adds Gaussian noise of standard deviation :math:`\sigma` to a sum in
which the target's gradient, of norm at most 1, takes part with probability q. Against
the run without the target the pair of one step is

.. math:: Q = N(0, \sigma^2), \qquad P = (1-q)\,N(0, \sigma^2) + q\,N(1, \sigma^2),

and :math:`T(Q, P)(\alpha) = (1-q)(1-\alpha) + q\,G_{1/\sigma}(\alpha)`. Success is
bounded by :math:`1 - T(Q, P)(\kappa^+)`: the reference is the null.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate, nudge_down
from undertow._validate import check_count, check_positive, check_probability
from undertow.privacy import (
    Bound,
    GaussianTradeOff,
    PrivacyLossDistribution,
    PureTradeOff,
    TradeOff,
    gdp_delta,
)
from undertow.privacy.tradeoff_base import levels
from undertow.privacy.variation import reconstruction_bound
from undertow.risk.bounds._lines import LOWERED, envelope, reach_of
from undertow.risk.bounds._parts import BLIND, LARGEST, MARGIN
from undertow.risk.bounds.accounted import AccountedTradeOff
from undertow.risk.bounds.sgd import sgd_mu

__all__ = [
    "SubsampledTradeOff",
    "sgd_success_bound",
    "subsampled_distribution",
    "subsampled_tradeoff",
]

Floats = NDArray[np.float64]

_KNOTS = 1024
_FINE = 2048
_RUN = (
    "Poisson batches, per-record clipping, and independent Gaussian noise in every step"
)
_SLACK = 2.0**-50


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
        low, high = np.zeros_like(level), np.ones_like(level)
        for _ in range(80):
            middle = (low + high) / 2.0
            above = self._forward(middle) >= level
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.asarray(low, dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up, in closed form."""
        q = self._rate
        if epsilon > LARGEST:
            epsilon = LARGEST
        if not self._reverse:
            inner = math.log1p(math.expm1(epsilon) / q)
            return min(1.0, inflate(q * gdp_delta(self._mu, _lowered(inner)), MARGIN))
        # sup_S c Q(S) - q e^epsilon N(1)(S) grows with c, which is rounded up.
        share = min(q, 1.0 - math.exp(min(epsilon, 40.0)) * (1.0 - q) + _SLACK)
        if share <= 0:
            return 0.0
        inner = max(0.0, math.log(q / share) + epsilon - 4 * _SLACK)
        return min(1.0, inflate(share * gdp_delta(self._mu, inner), MARGIN))

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
    return Bound(value, theorem, (*BLIND, _RUN), quantity="success")


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
