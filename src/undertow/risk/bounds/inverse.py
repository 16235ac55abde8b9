r"""From a tolerated advantage to epsilon, and from an observed one: the inverses.

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
from fractions import Fraction

from undertow._arrays import disagreement as spread_of
from undertow._numeric import inflate, log_down, nudge_down
from undertow._validate import check_count, check_finite, check_probability
from undertow.privacy import Approx, Bound, Calibration, Loss, Pure
from undertow.risk.bounds._parts import (
    BARE,
    BLIND,
    MARGIN,
    PriorLike,
    calibrated_epsilon,
    disagreement,
    law,
    uniform_disagreement,
)
from undertow.risk.bounds.approximate import (
    baseline_bound,
    exact_guess_bound,
    uniform_guess_bound,
)
from undertow.risk.bounds.variation import variation_bound

__all__ = [
    "calibrate_baseline",
    "calibrate_exact_guess",
    "calibrate_uniform_guess",
    "calibrate_variation",
    "uniform_guess_epsilon_bound",
    "variation_epsilon_bound",
]

_EXACT = (*BLIND, "only the exact record counts")


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
    ceiling = inflate(spread_of(pi), MARGIN)
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
    return value if value in (0.0, math.inf) else nudge_down(value * (1.0 - MARGIN))


def _loss(epsilon: float, delta: float) -> Loss:
    return Approx(epsilon, delta) if delta else Pure(epsilon)
