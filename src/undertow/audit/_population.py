r"""What a claim allows, and which epsilon a rate would mean: populations, not samples.

No confidence limit enters the inverses, so that they estimate and never certify.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

from scipy.special import bdtrc

from undertow._validate import check_count, check_probability
from undertow.audit.claim import Claim
from undertow.numeric.rounding import nudge_up

__all__ = [
    "claim_p_value",
    "epsilon_from_advantage",
    "epsilon_from_success",
    "trials_needed",
]

# Covers the rounding of the incomplete beta function in a p-value.
_MARGIN = 1e-9


def epsilon_from_success(
    success: float, categories: SupportsIndex, *, delta: float = 0.0
) -> float:
    r"""Return the epsilon at which a success rate is the largest possible.

    .. math:: \ln\frac{(s - \delta)(m - 1)}{1 - s}

    Parameters
    ----------
    success : float
        How often one of m equally likely values is named; a population value.
    categories : int
        The m; at least two.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    float
        Signed: negative below the success of blind guessing, infinite at 1. An
        estimate, never a certificate.

    Notes
    -----
    Inverse of Corollary 5.16 (thesis, Equation 5.60) in terms of the success.

    Examples
    --------
    >>> round(epsilon_from_success(0.45, 10), 6)
    1.996554
    """
    s, m = check_probability(success, "success"), _read_categories(categories)
    kept = s - check_probability(delta, "delta")
    if s == 1.0:
        return math.inf if kept > 0 else -math.inf
    if kept <= 0:
        return -math.inf
    return math.log(kept) + math.log(m - 1) - math.log1p(-s)


def epsilon_from_advantage(
    advantage: float, categories: SupportsIndex, *, delta: float = 0.0
) -> float:
    r"""Return the epsilon at which an advantage is the largest possible.

    .. math:: \ln\frac{1 + (\gamma - \delta) m}{1 - \gamma m/(m-1)}

    Parameters
    ----------
    advantage : float
        The :math:`\gamma`, from -1/m to 1 - 1/m; a population value.
    categories : int
        The m; at least two.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    float
        Signed; infinite where the formula is undefined, at total disclosure.

    Examples
    --------
    >>> round(epsilon_from_advantage(0.5, 10), 6)
    2.60269
    """
    m = _read_categories(categories)
    if not -1 / m <= advantage <= nudge_up(1 - 1 / m, 2):
        raise ValueError(
            f"advantage must be in [-1/m, 1 - 1/m] for m = {m}, got {advantage}."
        )
    lost = check_probability(delta, "delta")
    top, left = 1.0 + (advantage - lost) * m, 1.0 - advantage * m / (m - 1)
    if top <= 0:
        return -math.inf
    return math.log(top) - math.log(left) if left > 1e-15 else math.inf


def claim_p_value(
    claim: Claim,
    successes: SupportsIndex,
    trials: SupportsIndex,
    categories: SupportsIndex,
) -> float:
    """Return the largest probability, under a claim, of at least so many successes.

    Rounded up by a relative 1e-9; independent trials with uniform targets.

    Examples
    --------
    >>> f"{claim_p_value(Claim.pure(1), 450, 1000, 10):.1e}"
    '7.2e-52'
    """
    n = check_count(trials, "trials")
    k = check_count(successes, "successes", minimum=0)
    if k > n:
        raise ValueError(f"successes must be at most the {n} trials, got {k}.")
    limit = claim.success_limit(categories)
    tail = 1.0 if k == 0 else float(bdtrc(k - 1, n, limit))
    return min(1.0, tail * (1.0 + _MARGIN))


def trials_needed(
    claim: Claim, categories: SupportsIndex, *, confidence: float = 0.99
) -> int:
    r"""Return the least number of trials that can refute a claim at all.

    .. math:: \lfloor \ln\beta / \ln s \rfloor + 1

    with s the largest success under the claim: fewer successes in a row, even without
    a failure, have a p-value above :math:`\beta`.

    Examples
    --------
    >>> trials_needed(Claim.pure(1), 10), trials_needed(Claim.pure(10), 2)
    (4, 101438)
    """
    tail = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    limit = claim.success_limit(categories)
    if limit >= 1.0:
        raise ValueError(
            f"claim must leave room for a refutation by fewer than 10^12 trials, got "
            f"{claim}; no audit can refute it."
        )
    return math.floor(math.log(tail) / math.log(limit)) + 1


def _read_categories(categories: SupportsIndex) -> int:
    return check_count(categories, "categories", minimum=2)
