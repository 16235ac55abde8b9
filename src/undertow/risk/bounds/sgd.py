r"""Risk of full-batch DP-SGD: noise multiplier, steps, and how records are replaced.

Gradients are clipped to norm C and Gaussian noise of standard deviation
:math:`\sigma C` is added to their sum, T times. Replacing a record moves the sum by up
to 2C, so that a step is :math:`(2/\sigma)`-GDP; adding or removing one moves it by C.
The advantage is about replacing. Without knowledge of the target the factor 2 can still
be avoided, by comparing with the run in which the target's gradient is zero.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Literal

from undertow._numeric import least_float, nudge_down, nudge_up
from undertow._validate import (
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from undertow.errors import SearchError
from undertow.privacy import (
    Alternative,
    Bound,
    Calibration,
    GaussianTradeOff,
    round_up,
)
from undertow.risk.bounds._curve import gain
from undertow.risk.bounds._parts import (
    BARE,
    BLIND,
    advantage,
    capped,
    check_target,
    uniform_disagreement,
)
from undertow.risk.bounds.tradeoff import uniform_gaussian_bound

__all__ = ["calibrate_sgd", "sgd_bound", "sgd_mu", "zero_out_bound"]

Adjacency = Literal["replace", "add_remove"]
KnowledgeOf = Literal["none", "any"]

_RUN = "full batches, per-record clipping, and independent Gaussian noise in every step"
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
    return advantage(value, "zero-out reference", unchecked=(*BLIND, _RUN))


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
        unchecked = (*BARE, _RUN, _UNIFORM[0])
        return advantage(value, "Theorem 5.2", unchecked=unchecked)
    zero = _zeroed(noise_multiplier, steps, m)
    sharp = uniform_gaussian_bound(mu, m)
    best = sharp if sharp.value <= zero.value else zero
    value = min(best.value, uniform_disagreement(m))
    return advantage(value, best.theorem, unchecked=(*BLIND, _RUN, *_UNIFORM))


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
    unchecked = (*BARE, _RUN, *_UNIFORM, _CLOSE)
    if knowledge == "any":
        spread = uniform_disagreement(size)
        value = capped(GaussianTradeOff(mu).total_variation() * spread, spread)
    else:
        value = uniform_gaussian_bound(mu, size, sharpen=False).value
    return advantage(value, theorem, unchecked=unchecked)
