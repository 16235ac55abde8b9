"""Risks, calibrations and cards in the terminal: the answer first, then the reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.cli.risk_results import Found, Row, best_rows
from undertow.privacy.result import Alternative
from undertow.risk.calibration import RiskCalibration
from undertow.risk.card import RiskCard, points
from undertow.risk.threat import Threat

__all__ = [
    "print_advantage",
    "print_calibration",
    "print_card",
    "print_comparison",
    "shown_down",
    "shown_up",
]

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
