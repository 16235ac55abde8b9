"""Several families at equal risk, instead of at equal epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from undertow.privacy.result import _Shown
from undertow.risk.calibrate import RiskCalibration, calibrate
from undertow.risk.families.base import Family
from undertow.risk.threat import Threat

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison(_Shown):
    """Families at equal risk.

    Parameters
    ----------
    target : float
        The advantage that each may have.
    threat : str
        In words; another threat may turn the order round.
    rows : tuple of RiskCalibration
        One per family.
    """

    target: float
    threat: str
    rows: tuple[RiskCalibration, ...]

    def best(self, kind: str) -> RiskCalibration:
        """Return the row of best utility of a kind, ``"error"`` or ``"deviation"``.

        A row whose target never binds takes part with its utility in the limit.
        """
        rows = [
            r for r in self.rows if r.utility is not None and r.utility.kind == kind
        ]
        if not rows:
            raise ValueError(f"kind must be one that a row has, got {kind!r}.")
        return min(rows, key=_utility_value)


def _utility_value(row: RiskCalibration) -> float:
    return math.inf if row.utility is None else row.utility.value


def compare(
    families: Iterable[Family],
    threat: Threat,
    *,
    advantage: float,
    users: int = 10_000,
    confidence: float = 0.95,
) -> Comparison:
    """Calibrate several families to the same advantage.

    Parameters
    ----------
    families : iterable of Family
        On the records of the threat.
    threat : Threat
        Whom the promise is against; the order may turn round under another one.
    advantage : float
        The target, positive.
    users, confidence
        For the stated utility.

    Returns
    -------
    Comparison
        One calibration per family, in the order given. Where the target never binds,
        the utility is what is approached as epsilon grows or the noise vanishes.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> from undertow.risk.families import grr, oue
    >>> table = compare([grr(10), oue(10)], Threat(Prior.uniform(10)), advantage=0.1)
    >>> [(row.family, row.shown) for row in table.rows]
    [('grr', '0.8109'), ('oue', '1.1593')]
    """
    if np.ndim(advantage):
        raise TypeError(f"advantage must be one number, got {advantage!r}.")
    rows = [
        calibrate(
            family,
            threat,
            advantage=advantage,
            alternatives=False,
            users=users,
            confidence=confidence,
        )
        for family in families
    ]
    return Comparison(float(advantage), threat.summary, tuple(rows))
