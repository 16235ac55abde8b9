"""What the commands of `undertow risk` find, as JSON records and in the terminal.

The answer first, then the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.errors import NotApplicable
from undertow.numeric.rounding import inflate, nudge_up
from undertow.privacy.loss import Loss, Pure
from undertow.results import Alternative, to_plain
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
from undertow.risk.card import RiskCard, points
from undertow.risk.families import Family
from undertow.risk.families.base import closed_view, uniform_prior
from undertow.risk.utility import Utility, utility_at

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


# Risks, calibrations and cards in the terminal: the answer first, then the reasons.

# Decimals of a parameter and of a risk.
_PARAMETER, _RISK = 4, 6
_SYMBOLS = {"epsilon": "ε", "scale": "scale", "sigma": "σ"}


def shown_down(value: float, digits: int = _PARAMETER) -> str:
    """Return a number with so many decimals, or digits if it is small, cut down.

    Examples
    --------
    >>> shown_down(2.504379), shown_down(0.00123456), shown_down(1.0)
    ('2.5043', '0.001234', '1')
    """
    return _shown(value, digits, ROUND_FLOOR)


def shown_up(value: float, digits: int = _PARAMETER) -> str:
    """Return a number with so many decimals, or digits if it is small, rounded up.

    Examples
    --------
    >>> shown_up(31.00001), shown_up(0.1), shown_up(0.0123456, 3)
    ('31.0001', '0.1', '0.0124')
    """
    return _shown(value, digits, ROUND_CEILING)


def _shown(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "∞"
    exact = Decimal(repr(value))
    if exact == 0:
        return "0"
    if exact.adjusted() > 15:  # such a float has no decimals
        return f"{value:.17g}"
    place = min(-digits, exact.adjusted() - digits + 1)
    return _plain(exact.quantize(Decimal(1).scaleb(place), rounding=rounding))


def _plain(number: Decimal) -> str:
    if number != 0 and number.adjusted() < -6:
        return f"{number.normalize():e}"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def print_advantage(found: Found, threat: Threat) -> None:
    """Print an advantage: the gain, the numbers beside it, what bounds say."""
    console, value = Console(), found.risk.value
    gain = f"{points(value)} points more often because the person took part"
    if found.exact:
        sentence = (
            f"advantage = {shown_up(value, _RISK)}: the best attack succeeds {gain}"
        )
    else:
        sentence = (
            f"advantage ≤ {shown_up(value, _RISK)}: an attack succeeds at most {gain}"
        )
    _line(console, sentence)
    _line(console, f"release: {found.release}")
    _line(console, f"against: {threat.summary}")
    _line(console, f"by: {found.risk.theorem}")
    console.print()
    _numbers(console, _advantage_rows(found))
    _assumptions(console, found.risk.checked, found.risk.unchecked)
    console.print()
    table = _table("bound on the advantage", "value", "applies")
    for row in found.bounds:
        table.add_row(row.name, _number(row.value), Text(_applies(row)))
    console.print(table)


def _advantage_rows(found: Found) -> list[tuple[str, str]]:
    return [
        ("success of the best attack", _or_reason(found.success, found.success_reason)),
        ("success without the output", f"{found.baseline:.6g}"),
        ("largest advantage there is", f"{found.risk.ceiling:.6g}"),
        ("total variation", _or_reason(found.variation, found.variation_reason)),
    ]


def print_calibration(
    found: RiskCalibration, level: dict[str, Any], called: str
) -> None:
    """Print a calibration: the parameter, the risk at it, what other routes allow."""
    console = Console()
    if found.binding:
        _line(
            console,
            f"{_level(level)} for {called}: no attack under this threat has an "
            f"advantage above {found.target:g}",
        )
        _line(console, f"by: {found.achieves.theorem} ({found.method})")
    else:
        _line(
            console,
            f"any {_SYMBOLS[found.parameter]}{_tried(found.value)} for {called} keeps "
            f"the advantage within {found.target:g}: {found.method}",
        )
    rows = [("advantage there", shown_up(found.achieves.value, _RISK))]
    rows += [(name, str(x)) for name, x in (found.structure or {}).items()]
    if found.utility is not None:
        rows.append((found.utility.summary, shown_up(found.utility.value)))
    console.print()
    _numbers(console, rows)
    if found.covers is not None:
        _line(console, f"holds for: {found.covers.summary}")
    _assumptions(console, found.achieves.checked, found.achieves.unchecked)
    for warning in found.warnings:
        _line(console, f"note: {warning}")
    _alternatives(console, found.alternatives)


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
        _line(console, f"at {at}, {row.called} has the least {kind}{_limit(row)}")
    if not best:
        _line(console, f"at {at}, no mechanism here has a stated utility")
    _line(console, f"against: {threat.summary}")
    console.print()
    table = _table("mechanism", "parameter", "advantage", "utility", "how")
    for row in rows:
        table.add_row(
            row.name,
            _level(row.level, row.structure) if row.binding else _any(row),
            ("" if row.exact else "≤ ") + _number(row.advantage),
            "–" if row.utility is None else shown_up(row.utility.value),
            Text(row.reason or row.method),
        )
    console.print(table)
    # The words of a limit only where no other row has the kind.
    late = sorted(rows, key=lambda row: row.binding)
    words = {row.utility.kind: row.utility.summary for row in late if row.utility}
    for kind, summary in words.items():
        _line(console, f"{kind}: {summary}")
    _line(console, "note: under another threat the order may turn round")


def print_card(card: RiskCard) -> None:
    """Print a risk card: its sentence, its numbers, other attackers, its warnings."""
    console = Console()
    _line(console, card.sentence)
    console.print()
    share = f"{points(card.share)} % of the largest there is, {card.ceiling:.6g}"
    sign = "" if card.exact else "at most "
    rows = [
        ("advantage", f"{sign}{card.points} points, {share}"),
        ("best guess without the release", f"{card.baseline:.6g}"),
    ]
    if card.success_with is not None and card.success_without is not None:
        rows.append(("success if they took part", shown_up(card.success_with, _RISK)))
        rows.append(("success if they did not", f"{card.success_without:.6g}"))
    rows += [
        ("release", card.release),
        ("attacker", card.threat),
        ("by", card.theorem),
    ]
    _numbers(console, rows)
    if card.others:
        console.print()
        table = _table("other attackers", "points", "kind")
        for other in card.others:
            gain, kind = "–", other.note
            if other.advantage is not None:
                gain = points(other.advantage)
                kind = "exact" if other.exact else "upper bound"
            table.add_row(Text(other.threat), gain, Text(kind))
        console.print(table)
    console.print()
    for warning in card.warnings:
        _line(console, f"note: {warning}")


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


def _alternatives(console: Console, others: Sequence[Alternative]) -> None:
    if not others:
        return
    table = _table("other routes", "ε", "why")
    for other in others:
        value = "–" if other.parameter is None else shown_down(other.parameter)
        table.add_row(other.name, value, Text(other.reason))
    console.print()
    console.print(table)


def _applies(row: Any) -> str:
    return row.reason if not row.applies else f"yes: {row.reason}"


def _or_reason(value: float | None, reason: str) -> str:
    return f"– ({reason})" if value is None else shown_up(value, _RISK)


def _number(value: float | None) -> str:
    return "–" if value is None else shown_up(value, _RISK)


def _numbers(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    table = Table(show_header=False, show_edge=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    console.print(table)


def _table(*titles: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _assumptions(
    console: Console, checked: Sequence[str], unchecked: Sequence[str]
) -> None:
    for title, texts in (("checked", checked), ("assumed", unchecked)):
        if texts:
            _line(console, f"{title}: {'; '.join(texts)}")


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)
