"""What the commands of `undertow risk` find, and the JSON records of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import NotApplicable
from undertow.numeric.rounding import inflate, nudge_up
from undertow.privacy.loss import Loss, Pure
from undertow.privacy.result import to_plain
from undertow.risk import (
    BoundRow,
    Channel,
    Risk,
    Threat,
    advantage,
    best_bound,
    named_bound,
    success_rate,
)
from undertow.risk.bounds import variation_matrix
from undertow.risk.calibration import RiskCalibration
from undertow.risk.families import Family
from undertow.risk.families.base import closed_view, uniform_prior
from undertow.risk.utility import Utility, utility_at

__all__ = [
    "Found",
    "Row",
    "advantage_record",
    "assess",
    "best_rows",
    "calibration_record",
    "comparison_record",
    "level_record",
    "row_at",
]

# Covers the rounding of a total variation and of a loss read off a table.
_MARGIN = 1e-12


@dataclass(frozen=True, slots=True)
class Found:
    """The risk of one release under one threat, and what goes with it."""

    release: str
    risk: Risk
    baseline: float
    success: float | None
    success_reason: str
    variation: float | None
    variation_reason: str
    bounds: tuple[BoundRow, ...]

    @property
    def exact(self) -> bool:
        """Whether an attack attains the advantage."""
        return self.risk.tight is True


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism of a comparison; without a parameter, the reason why.

    `called` is the name in a sentence. Where the target does not bind, the utility is
    the limit.
    """

    name: str
    level: dict[str, Any]
    advantage: float | None = None
    exact: bool = False
    method: str = ""
    structure: dict[str, int] | None = None
    utility: Utility | None = None
    reason: str = ""
    binding: bool = True
    called: str = ""


def assess(
    source: Family | Channel, threat: Threat, *, parameter: float | None = None
) -> Found:
    """Work out the risk of a family at a parameter, or of a channel."""
    if isinstance(source, Channel):
        return _assess(source, threat, advantage(source, threat), channel=source)
    assert parameter is not None
    risk = source.risk(parameter, threat)
    law = source.source(source.level(parameter), threat)
    return _assess(source, threat, risk, channel=law, parameter=parameter)


def _assess(
    source: Family | Channel,
    threat: Threat,
    risk: Risk,
    *,
    channel: Any,
    parameter: float | None = None,
) -> Found:
    table = channel if isinstance(channel, Channel) else None
    success, why = _success(channel, threat, risk)
    variation, missing = _variation(source, table, parameter)
    loss = None
    if isinstance(source, Family):
        assert parameter is not None
        loss = source.loss(parameter)
    bounds = _bounds(threat, risk, _guarantee(loss, table, variation), variation)
    return Found(
        _release(source, parameter),
        risk,
        threat.informed_guess,
        success,
        why,
        variation,
        missing,
        bounds,
    )


def _release(source: Family | Channel, parameter: float | None) -> str:
    if isinstance(source, Channel):
        return f"a channel of {source.size} records and {source.outputs} outputs"
    return f"{source.name} with {source.parameter} {parameter:.6g}"


def _success(law: Any, threat: Threat, risk: Risk) -> tuple[float | None, str]:
    """Return how often the best attack succeeds, or why that is not known."""
    if threat.informed_guess >= 1.0:
        return 1.0, "a guess without the output is always right"
    if risk.tight is True and closed_view(threat) == "none" and uniform_prior(threat):
        blind = 1.0 / len(threat.prior)
        return min(1.0, nudge_up(blind + risk.value)), "blind guess plus advantage"
    if law is None:
        return None, (
            "needs a list of all outputs, which are too many here; the advantage needs "
            "none"
        )
    try:
        return success_rate(law, threat).value, "the exact engine"
    except NotApplicable as refusal:
        return None, str(refusal)


def _variation(
    source: Family | Channel, table: Channel | None, parameter: float | None
) -> tuple[float | None, str]:
    """Return the largest total variation between two records, rounded up."""
    if isinstance(source, Family) and source.name != "exponential":
        assert parameter is not None
        level = np.array([source.level(parameter)])
        value = float(source.variation(level)[0])
        return min(1.0, inflate(value, _MARGIN)), ""
    assert table is not None
    try:
        return float(variation_matrix(table.matrix).max()), ""
    except ValueError as refusal:
        return None, str(refusal)


def _guarantee(
    loss: Loss | None, table: Channel | None, variation: float | None
) -> Loss | float:
    """Return the promise that bounds start from: stated, or read off the table."""
    if loss is not None:
        return loss
    assert table is not None
    seen = table.matrix[:, table.matrix.max(axis=0) > 0]
    if seen.min() > 0:
        ratios = np.log(seen.max(axis=0)) - np.log(seen.min(axis=0))
        return Pure(float(ratios.max()) + _MARGIN)
    return 1.0 if variation is None else variation


def _bounds(
    threat: Threat, risk: Risk, guarantee: Loss | float, variation: float | None
) -> tuple[BoundRow, ...]:
    rows = best_bound(guarantee, threat).rows
    # The selector was not told the law; what the law gives replaces its last row.
    kept = tuple(row for row in rows if row.name != "exact advantage")
    by_law = "total variation of the law"
    if variation is None:
        own = BoundRow(by_law, False, "needs the total variation, too large to list")
    else:
        bound = named_bound(variation, threat, name="total variation")
        own = BoundRow(by_law, True, "has the output law", bound)
    exact = risk.tight is True
    last = BoundRow(
        "exact advantage",
        exact,
        "has the output law" if exact else "no exact route under this threat",
        risk if exact else None,
    )
    return (*kept, own, last)


def advantage_record(found: Found, threat: Threat) -> dict[str, Any]:
    """Return the JSON record of an advantage, its keys fixed."""
    risk = found.risk
    return {
        "advantage": risk.value,
        "rero": found.success,
        "baseline": found.baseline,
        "exact": found.exact,
        "method": risk.theorem,
        "bounds": [
            {
                "name": row.name,
                "value": to_plain(row.value),
                "applies": row.applies,
                "reason": row.reason,
            }
            for row in found.bounds
        ],
        "tv": found.variation,
        "rero_reason": found.success_reason,
        "tv_reason": found.variation_reason,
        "release": found.release,
        "threat": threat.summary,
        "ceiling": risk.ceiling,
        "checked": list(risk.checked),
        "assumed": list(risk.unchecked),
    }


def level_record(family: Family, value: float, *, binding: bool) -> dict[str, Any]:
    """Return epsilon, and the noise where the family is chosen by or adds noise."""
    noise = getattr(family, "noise", None)
    if noise is None:
        return {"epsilon": to_plain(value)}
    name = "scale" if getattr(family, "kind", "") == "laplace" else "sigma"
    if not binding:
        return {"epsilon": "inf", name: 0.0}
    epsilon = value if family.rises else None
    found: dict[str, Any] = {"epsilon": epsilon, name: noise(value)}
    return found | ({"delta": family.delta} if family.delta else {})


def calibration_record(found: RiskCalibration, level: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON record of a calibration, its keys fixed."""
    return {
        **level,
        "achieved": found.achieves.value,
        "method": found.method,
        "alternatives": [
            {
                "method": other.name,
                "epsilon": to_plain(other.parameter),
                "reason": other.reason,
            }
            for other in found.alternatives
        ],
        "mechanism": found.family,
        "parameter": found.parameter,
        "target": found.target,
        "binding": found.binding,
        "exact": found.exact,
        "structure": None if found.structure is None else dict(found.structure),
        "utility": to_plain(found.utility),
        "theorem": found.achieves.theorem,
        "assumed": list(found.achieves.unchecked),
        "warnings": list(found.warnings),
        "covers": to_plain(found.covers),
    }


def row_at(
    family: Family,
    threat: Threat,
    *,
    parameter: float,
    users: int,
    confidence: float,
) -> Row:
    """Return the row of a family at a parameter that was given."""
    family.require_parameter(parameter)
    risk = family.risk(parameter, threat)
    utility = utility_at(family, parameter, users=users, confidence=confidence)
    how = risk.theorem
    if utility is None and parameter > family.largest:
        how += f"; no utility, deployable up to {family.parameter} {family.largest:g}"
    return Row(
        family.name,
        level_record(family, parameter, binding=True),
        risk.value,
        risk.tight is True,
        how,
        None,
        utility,
        called=family.called,
    )


def comparison_record(
    rows: tuple[Row, ...],
    threat: Threat,
    *,
    target: float | None,
    epsilon: float | None,
) -> dict[str, Any]:
    """Return the JSON record of a comparison."""
    return {
        "target": target,
        "epsilon": epsilon,
        "threat": threat.summary,
        "ceiling": threat.ceiling,
        "rows": [
            {
                "mechanism": row.name,
                **row.level,
                "advantage": row.advantage,
                "exact": row.exact,
                "method": row.method,
                "binding": row.binding,
                "structure": row.structure,
                "utility": to_plain(row.utility),
                "reason": row.reason,
            }
            for row in rows
        ],
        "best": best_rows(rows),
    }


def best_rows(rows: tuple[Row, ...]) -> dict[str, str]:
    """Return the mechanism of least error, and that of least deviation."""
    best: dict[str, str] = {}
    for kind in ("error", "deviation"):
        stated = [
            (row.utility.value, row.name)
            for row in rows
            if row.utility is not None and row.utility.kind == kind
        ]
        if stated and math.isfinite(min(stated)[0]):
            best[kind] = min(stated)[1]
    return best
