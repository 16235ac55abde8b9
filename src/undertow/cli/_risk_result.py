"""What the commands of `undertow risk` find, as JSON records and in the terminal.

The answer first, then the reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from undertow.cli._output import (
    bare_table,
    or_dash,
    print_alternatives,
    print_assumptions,
    print_facts,
    print_line,
)
from undertow.numeric.display import shown_down, shown_up
from undertow.results import to_plain
from undertow.risk import RiskAssessment, Threat
from undertow.risk.calibration import RiskCalibration
from undertow.risk.card import RiskCard, points
from undertow.risk.families import Family
from undertow.risk.utility import Utility, utility_at


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


def advantage_record(assessment: RiskAssessment, threat: Threat) -> dict[str, Any]:
    """Return the JSON record of an advantage, its keys fixed."""
    risk = assessment.risk
    return {
        "advantage": risk.value,
        "rero": assessment.success,
        "baseline": assessment.baseline,
        "exact": assessment.exact,
        "method": risk.theorem,
        "bounds": [
            {
                "name": row.name,
                "value": to_plain(row.value),
                "applies": row.applies,
                "reason": row.reason,
            }
            for row in assessment.bounds
        ],
        "tv": assessment.variation,
        "rero_reason": assessment.success_reason,
        "tv_reason": assessment.variation_reason,
        "release": assessment.release,
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
    level: dict[str, Any] = {"epsilon": epsilon, name: noise(value)}
    return level | ({"delta": family.delta} if family.delta else {})


def calibration_record(
    calibration: RiskCalibration, level: dict[str, Any]
) -> dict[str, Any]:
    """Return the JSON record of a calibration, its keys fixed."""
    return {
        **level,
        "achieved": calibration.achieves.value,
        "method": calibration.method,
        "alternatives": [
            {
                "method": other.name,
                "epsilon": to_plain(other.parameter),
                "reason": other.reason,
            }
            for other in calibration.alternatives
        ],
        "mechanism": calibration.family,
        "parameter": calibration.parameter,
        "target": calibration.target,
        "binding": calibration.binding,
        "exact": calibration.exact,
        "structure": None
        if calibration.structure is None
        else dict(calibration.structure),
        "utility": to_plain(calibration.utility),
        "theorem": calibration.achieves.theorem,
        "assumed": list(calibration.achieves.unchecked),
        "warnings": list(calibration.warnings),
        "covers": to_plain(calibration.covers),
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


# Risks, calibrations and cards in the terminal: the answer first, then the reasons.

# Decimals of a risk.
_RISK = 6
_SYMBOLS = {"epsilon": "ε", "scale": "scale", "sigma": "σ"}


def print_advantage(assessment: RiskAssessment, threat: Threat) -> None:
    """Print an advantage: the gain, the numbers beside it, what bounds say."""
    console, value = Console(), assessment.risk.value
    gain = f"{points(value)} points more often because the person took part"
    if assessment.exact:
        sentence = f"advantage = {_shown_risk(value)}: the best attack succeeds {gain}"
    else:
        sentence = (
            f"advantage ≤ {_shown_risk(value)}: an attack succeeds at most {gain}"
        )
    print_line(console, sentence)
    print_line(console, f"release: {assessment.release}")
    print_line(console, f"against: {threat.summary}")
    print_line(console, f"by: {assessment.risk.theorem}")
    console.print()
    print_facts(console, _advantage_rows(assessment))
    print_assumptions(console, assessment.risk.checked, assessment.risk.unchecked)
    console.print()
    table = bare_table("bound on the advantage", "value", "applies")
    for row in assessment.bounds:
        table.add_row(row.name, or_dash(_shown_risk, row.value), Text(_applies(row)))
    console.print(table)


def _advantage_rows(assessment: RiskAssessment) -> list[tuple[str, str]]:
    return [
        (
            "success of the best attack",
            _or_reason(assessment.success, assessment.success_reason),
        ),
        ("success without the output", f"{assessment.baseline:.6g}"),
        ("largest advantage there is", f"{assessment.risk.ceiling:.6g}"),
        (
            "total variation",
            _or_reason(assessment.variation, assessment.variation_reason),
        ),
    ]


def print_calibration(
    calibration: RiskCalibration, level: dict[str, Any], called: str
) -> None:
    """Print a calibration: the parameter, the risk at it, what other routes allow."""
    console = Console()
    if calibration.binding:
        print_line(
            console,
            f"{_level(level)} for {called}: no attack under this threat has an "
            f"advantage above {calibration.target:g}",
        )
        print_line(
            console, f"by: {calibration.achieves.theorem} ({calibration.method})"
        )
    else:
        kept = f"any {_SYMBOLS[calibration.parameter]}{_tried(calibration.value)}"
        print_line(
            console,
            f"{kept} for {called} keeps the advantage within {calibration.target:g}: "
            f"{calibration.method}",
        )
    rows = [("advantage there", _shown_risk(calibration.achieves.value))]
    rows += [(name, str(x)) for name, x in (calibration.structure or {}).items()]
    if calibration.utility is not None:
        rows.append((calibration.utility.summary, shown_up(calibration.utility.value)))
    console.print()
    print_facts(console, rows)
    if calibration.covers is not None:
        print_line(console, f"holds for: {calibration.covers.summary}")
    print_assumptions(
        console, calibration.achieves.checked, calibration.achieves.unchecked
    )
    for warning in calibration.warnings:
        print_line(console, f"note: {warning}")
    print_alternatives(
        console,
        calibration.alternatives,
        titles=("other routes", "ε", "why"),
        shown=shown_down,
    )


def print_comparison(
    rows: tuple[Row, ...],
    threat: Threat,
    *,
    target: float | None,
    epsilon: float | None,
) -> None:
    """Print several mechanisms at equal risk, or at equal epsilon."""
    console = Console()
    at = f"advantage {target:g}" if epsilon is None else f"ε = {epsilon:g}"
    best = best_rows(rows)
    for kind, name in best.items():
        row = next(row for row in rows if row.name == name)
        print_line(console, f"at {at}, {row.called} has the least {kind}{_limit(row)}")
    if not best:
        print_line(console, f"at {at}, no mechanism here has a stated utility")
    print_line(console, f"against: {threat.summary}")
    console.print()
    table = bare_table("mechanism", "parameter", "advantage", "utility", "how")
    for row in rows:
        table.add_row(
            row.name,
            _level(row.level, row.structure) if row.binding else _any(row),
            ("" if row.exact else "≤ ") + or_dash(_shown_risk, row.advantage),
            "–" if row.utility is None else shown_up(row.utility.value),
            Text(row.reason or row.method),
        )
    console.print(table)
    # The words of a limit only where no other row has the kind.
    late = sorted(rows, key=lambda row: row.binding)
    words = {row.utility.kind: row.utility.summary for row in late if row.utility}
    for kind, summary in words.items():
        print_line(console, f"{kind}: {summary}")
    print_line(console, "note: under another threat the order may turn round")


def print_card(card: RiskCard) -> None:
    """Print a risk card: its sentence, its numbers, other attackers, its warnings."""
    console = Console()
    print_line(console, card.sentence)
    console.print()
    share = f"{points(card.share)} % of the largest there is, {card.ceiling:.6g}"
    sign = "" if card.exact else "at most "
    rows = [
        ("advantage", f"{sign}{card.points} points, {share}"),
        ("best guess without the release", f"{card.baseline:.6g}"),
    ]
    if card.success_with is not None and card.success_without is not None:
        rows.append(("success if they took part", _shown_risk(card.success_with)))
        rows.append(("success if they did not", f"{card.success_without:.6g}"))
    rows += [
        ("release", card.release),
        ("attacker", card.threat),
        ("by", card.theorem),
    ]
    print_facts(console, rows)
    if card.others:
        console.print()
        table = bare_table("other attackers", "points", "kind")
        for other in card.others:
            gain, kind = "–", other.note
            if other.advantage is not None:
                gain = points(other.advantage)
                kind = "exact" if other.exact else "upper bound"
            table.add_row(Text(other.threat), gain, Text(kind))
        console.print(table)
    console.print()
    for warning in card.warnings:
        print_line(console, f"note: {warning}")


def _level(level: dict[str, Any], structure: dict[str, int] | None = None) -> str:
    """Return parameters for reading: epsilon cut down, noise rounded up."""
    parts = []
    for name, symbol in _SYMBOLS.items():
        value = level.get(name)
        if value is not None:
            number = math.inf if value == "inf" else float(value)
            cut = shown_down if name == "epsilon" else shown_up
            parts.append(f"{symbol} = {cut(number)}")
    if level.get("delta"):
        parts.append(f"δ = {level['delta']:g}")
    parts += [f"{name} = {value}" for name, value in (structure or {}).items()]
    return ", ".join(parts) or "–"


def _any(row: Row) -> str:
    if "sigma" in row.level:
        return "any σ"
    return f"any ε{_tried(row.level['epsilon'])}"


def _tried(value: object) -> str:
    """Name the largest level tried, where nothing is known beyond."""
    known = not isinstance(value, float) or value in (0.0, math.inf)
    return "" if known else f" up to {value:g}"


def _limit(row: Row) -> str:
    """Return in brackets that a utility is a limit, where it is."""
    if row.binding or row.utility is None:
        return ""
    return f" ({_any(row)}; in the limit {shown_up(row.utility.value)})"


def _applies(row: Any) -> str:
    return row.reason if not row.applies else f"yes: {row.reason}"


def _or_reason(value: float | None, reason: str) -> str:
    return f"– ({reason})" if value is None else _shown_risk(value)


def _shown_risk(value: float) -> str:
    return shown_up(value, _RISK)
