"""Ledgers as records and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow._text import on_one_line
from undertow.composition import domain_to_document
from undertow.numeric.exact import Exact, exact, round_down, sqrt_down
from undertow.privacy.loss import GDP, Loss
from undertow.privacy.result import shown_loss

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Entry

__all__ = [
    "budget_records",
    "print_budgets",
    "print_history",
    "print_models",
    "summary_record",
]


def budget_records(ledger: BudgetLedger) -> list[dict[str, Any]]:
    """Return every budget with what is spent (rounded up) and left (rounded down)."""
    return [
        {
            "name": state.name,
            "granularity": state.granularity.name,
            "budget": _exact_record(state.budget),
            "spent": _exact_record(state.spent),
            "left": _exact_record(state.left, down=True),
        }
        for state in ledger.budget_states()
    ]


def summary_record(ledger: BudgetLedger) -> dict[str, Any]:
    """Return what `undertow ledger show --json` prints."""
    head = ledger.head
    return {
        "ledger": ledger.name,
        "dataset": ledger.dataset,
        "domain": domain_to_document(ledger.domain),
        "budgets": budget_records(ledger),
        "models": {name: m.to_document() for name, m in ledger.models.items()},
        "charges": ledger.states(),
        "head": {"count": head.count, "hash": head.hash},
    }


def print_budgets(ledger: BudgetLedger) -> None:
    """Print one line a budget."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("protects", "budget", "spent", "left"):
        table.add_column(heading, overflow="fold")
    for state in ledger.budget_states():
        left = _floored(state.left)
        table.add_row(
            Text(on_one_line(state.name)),
            shown_loss(state.budget),
            shown_loss(state.spent),
            shown_loss(left),
        )
    Console().print(table)


def print_models(ledger: BudgetLedger) -> None:
    """Print one line a correlation model: what may leak, and by which theorem."""
    for name, model in ledger.models.items():
        said = model.model.get("summary") or model.model.get("model") or "as stated"
        line = (
            f"model:{name} keeps what leaks about one {model.granularity.name} within "
            f"{float(exact(model.leakage)):g} by {model.theorem}; model: {said}."
        )
        Console().print(Text(on_one_line(line)), soft_wrap=True)


def print_history(entries: Sequence[Entry]) -> None:
    """Print one line an entry."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("entry", "time", "what", "key", "label"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        clock = " (clock set back)" if entry.clock_back else ""
        said = entry.body.get("label") or entry.body.get("reason") or ""
        table.add_row(
            str(entry.number),
            f"{entry.time[:19]}{clock}",
            entry.kind,
            Text(on_one_line(entry.key)),
            Text(on_one_line(str(said))),
        )
    Console().print(table)


def _exact_record(loss: Loss, *, down: bool = False) -> dict[str, Any]:
    from undertow.ledger.record import loss_to_document

    numbers = loss.to_dict()
    if down:
        numbers.update(zip(loss.names, _floats_below(loss), strict=True))
    shown = {k: "inf" if v == math.inf else v for k, v in numbers.items()}
    return {**shown, "exact": loss_to_document(loss)["exact"]}


def _floats_below(loss: Loss) -> list[float]:
    """Return the parameters as floats that are not larger."""
    values = loss.exact_parameters()
    if isinstance(loss, GDP):
        return [sqrt_down(value) for value in values]
    return [math.inf if value == math.inf else round_down(value) for value in values]


def _floored(loss: Loss) -> Loss:
    """Return a loss of few digits, no larger than `loss`."""
    values = [_few_digits(value) for value in loss.exact_parameters()]
    if isinstance(loss, GDP):
        return GDP(_few_digits(_floats_below(loss)[0]))
    return type(loss)(*values)


def _few_digits(value: Exact) -> Exact:
    if value == math.inf:
        return value
    context, whole = Context(prec=6, rounding=ROUND_FLOOR), Fraction(value)
    top, bottom = Decimal(whole.numerator), Decimal(whole.denominator)
    return Fraction(context.divide(top, bottom))
