"""Why leakages are not added."""

from __future__ import annotations

from typing import NoReturn

from undertow.correlation.result import Leakage
from undertow.errors import CompositionError
from undertow.privacy.result import Witness

__all__ = ["compose_leakages"]


def compose_leakages(*leakages: Leakage) -> NoReturn:
    r"""Refuse to add leakages, which is no bound, and say what is one.

    Raises
    ------
    CompositionError
        Always. Its witness is a law of two bits and a mechanism that leak 0.7180751
        once and 1.4615494 twice, more than the sum 1.4361502.

    Notes
    -----
    The talk [1]_ lists sequential composition among the properties of BDP; it does not
    hold for sums of leakages. After one output the attacker's law of the other records
    is no longer the model's, so that the second release may tell more than it could
    alone. Proved on the theory page of correlated composition.

    References
    ----------
    .. [1] P. Guerra-Balboa, *Balancing Privacy and Utility in Correlated Data*, talk,
       INRIA Montpellier, 2025.

    Examples
    --------
    >>> from undertow.correlation.general import general_leakage
    >>> try:
    ...     compose_leakages(general_leakage(1, 2), general_leakage(1, 2))
    ... except CompositionError as refusal:
    ...     print(refusal.source)
    Bayesian DP does not compose by adding leakages
    """
    shown = " + ".join(f"{each.value:.6g}" for each in leakages) or "nothing"
    raise CompositionError(
        f"leakages must not be added, got {shown}: two runs can leak 1.4615494 where "
        "each alone leaks 0.7180751; use CorrelatedAccountant, which adds DP levels "
        "and converts once.",
        witness=_counterexample(),
        source="Bayesian DP does not compose by adding leakages",
    )


def _counterexample() -> Witness:
    return Witness(
        "adversary",
        "aims at the first of two bits and knows nothing, seeing twice, at DP level "
        "0.5, the noisy count or each bit through randomized response",
        {
            "joint": ((0.09, 0.01), (0.45, 0.45)),
            "epsilon": 0.5,
            "runs": 2,
            "leakage_once": 0.7180751,
            "leakage_twice": 1.4615494,
        },
    )
