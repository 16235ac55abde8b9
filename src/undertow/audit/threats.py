r"""Which privacy parameter an advantage against a given threat needs.

Under a prior, a success rule and knowledge of the target there is no closed inverse;
the sharpest proved bound is inverted by bisection instead. Proof: the page *Local
audits*, Theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from undertow._validate import check_finite, check_probability
from undertow.audit.claim import Claim
from undertow.errors import AssumptionError
from undertow.numeric.rounding import greatest_float
from undertow.privacy.loss import GDP, Approx, Loss, Pure
from undertow.privacy.result import Bound
from undertow.risk.bounds.baselines import Baselines
from undertow.risk.selector import best_bound
from undertow.risk.threat import Threat

__all__ = ["advantage_epsilon", "advantage_limit", "advantage_mu"]

# Largest parameter searched.
_LARGEST = 700.0
# How far below the root of the linear program an answer may lie.
_ACCURACY = 1e-9


def advantage_epsilon(advantage: float, threat: Threat, *, delta: float = 0.0) -> Bound:
    r"""Return the epsilon that an advantage against a threat needs.

    .. math:: \sup\{\varepsilon : B(\varepsilon, \delta) < \gamma\}

    with B the least of the proved bounds on the advantage that apply to the threat.

    Parameters
    ----------
    advantage : float
        The :math:`\gamma`: a lower confidence limit makes the result a certificate with
        that confidence, a measured value makes it an estimate.
    threat : Threat
        Prior, success rule and knowledge; of guarantees for replacing a record.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    Bound
        Every mechanism with this advantage has at least this epsilon; rounded down.
        Infinite where no finite one allows it, 0 where all of them do. Names the
        bound that was inverted.

    Raises
    ------
    AssumptionError
        If the threat is about adding or removing a record, or has a certain target.

    Notes
    -----
    A mechanism with a smaller epsilon also satisfies the larger one returned, at which
    the bound is below the advantage: no monotonicity of the bounds is used. Rows that
    need an attacker without knowledge are left out where he has some.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> skewed = Prior(3, [0.5, 0.3, 0.2])
    >>> found = advantage_epsilon(0.2, Threat(skewed))
    >>> round(found.value, 4), found.theorem
    (0.8873, 'linear program over pure-DP mechanisms')
    >>> round(advantage_epsilon(0.2, Threat.membership(skewed)).value, 4)
    0.8473
    """
    lost = check_probability(delta, "delta")

    def loss(level: float) -> Loss:
        return Approx(level, lost) if lost else Pure(level)

    return _inverse(advantage, threat, loss, "epsilon")


def advantage_mu(advantage: float, threat: Threat) -> Bound:
    """Return the mu of Gaussian DP that an advantage against a threat needs.

    Parameters and result as in :func:`advantage_epsilon`.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> round(advantage_mu(0.2, Threat(Prior(3, [0.5, 0.3, 0.2]))).value, 4)
    0.8591
    """
    return _inverse(advantage, threat, GDP, "mu")


def advantage_limit(claim: Claim, threat: Threat) -> Bound:
    """Return the largest advantage that a claim allows against a threat.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    >>> round(advantage_limit(Claim.pure(1), threat).value, 4)
    0.2258
    """
    return best_bound(claim.for_replacement().loss, _read(threat)).best


def _inverse(
    advantage: float, threat: Threat, loss: Callable[[float], Loss], quantity: str
) -> Bound:
    gamma, known = check_finite(advantage, "advantage"), _read(threat)
    if gamma >= threat.ceiling:
        return Bound(math.inf, "total disclosure", quantity=quantity)
    plain = replace(known, program=None)

    def excess(level: float, held: Baselines = known) -> float:
        return best_bound(loss(level), held).value - gamma

    value = 0.0
    if excess(0.0, plain) < 0.0:
        value = greatest_float(
            lambda level: excess(level, plain) < 0.0, low=0.0, high=_LARGEST
        )
    if known.program is not None and isinstance(loss(1.0), Pure):
        value = _raised(excess, value)
    at = best_bound(loss(value), known).best
    return Bound(value, at.theorem, at.unchecked, at.checked, quantity)


def _raised(excess: Callable[[float], float], value: float) -> float:
    """Return a level from `value` on at which the excess is still negative.

    Few evaluations, as the linear program costs milliseconds; the answer is checked.
    """
    from scipy.optimize import brentq

    if excess(value) >= 0.0:
        return value
    top = 2.0 * value + 1.0
    while top < _LARGEST and excess(top) < 0.0:
        top = 2.0 * top
    if excess(top) < 0.0:
        return top
    root = float(brentq(excess, value, top, xtol=1e-12, rtol=1e-12))
    slack = _ACCURACY * max(1.0, root)
    while root - slack > value:
        if excess(root - slack) < 0.0:
            return root - slack
        slack *= 2.0
    return value


def _read(threat: Threat) -> Baselines:
    """Return what the bounds read of a threat, after the checks."""
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
    if threat.adjacency != "replace":
        raise AssumptionError(
            "threat must be about replacing a record, got 'add-remove'; state that "
            "adjacency in the claim."
        )
    if threat.ceiling <= 0.0:
        raise AssumptionError(
            "threat must have a target that is not certain, got a prior on one record; "
            "no bound can be inverted."
        )
    return Baselines.of(threat)
