r"""Bounds on the success of reconstruction, and what they say of the advantage.

Reconstruction robustness bounds a probability of success, which luck and a skewed prior
raise without any leak; the advantage does not count those. Both bounds here are false
as soon as the attacker knows anything of the target.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from fractions import Fraction

from undertow._numeric import greatest_float
from undertow._validate import check_probability
from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import Bound, Calibration, Loss, Pure, TradeOff, round_up
from undertow.privacy.variation import reconstruction_bound
from undertow.risk.bounds._parts import BLIND, LARGEST, advantage

__all__ = ["calibrate_success", "success_advantage_bound", "success_bound"]


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
