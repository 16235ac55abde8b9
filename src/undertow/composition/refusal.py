"""The sentence a user reads when no finite loss holds, with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undertow.composition.report import Report
from undertow.errors import InfiniteLossError, UndertowError
from undertow.spaces.base import Granularity
from undertow.spaces.granularity import Bounded

if TYPE_CHECKING:
    from undertow.composition.plan import Plan

__all__ = ["infinite_loss_error"]


def infinite_loss_error(
    plan: Plan, target: Granularity, report: Report
) -> InfiniteLossError:
    """Return the refusal: what breaks, the pair that shows it, and the way out."""
    culprits = [name for name, loss in report.contributions.items() if loss.is_infinite]
    what = " and ".join(repr(name) for name in culprits[:2]) or "the plan"
    more = f" and {len(culprits) - 2} more" if len(culprits) > 2 else ""
    message = (
        f"the loss at {target.name} level must be finite, got inf: {what}{more} "
        f"cannot bound '{_change(report)}'{_pair(report)}; {_way_out(plan, target)}."
    )
    return InfiniteLossError(
        message, witness=report.witness, source=_source(plan, target)
    )


def _change(report: Report) -> str:
    return "any change" if report.witness is None else report.witness.summary


def _pair(report: Report) -> str:
    details = {} if report.witness is None else report.witness.details
    pair = details.get("example")
    if isinstance(pair, tuple) and len(pair) == 2:
        first, second = (_database(database) for database in pair)
        return f" ({first} versus {second})"
    return ""


def _database(database: object) -> str:
    """Write a multiset of records as people do; other databases as they are."""
    if isinstance(database, tuple) and not any(isinstance(r, tuple) for r in database):
        return "{" + ", ".join(map(str, database)) + "}"
    return str(database)


def _way_out(plan: Plan, target: Granularity) -> str:
    """Quote the price of the common-domain claim where that would be finite."""
    if any(c.setting == "view" for r in plan.releases for c in r.claims):
        try:
            price = plan.with_setting("common").loss(target, on_infinite="report")
        except UndertowError:
            price = None
        if price is not None and not price.loss.is_infinite:
            return (
                "prove each release private on the whole domain and state it in the "
                f"common setting, where the same losses compose to {price.loss}"
            )
    return (
        "state the losses in a unit that connects such databases, or ask for a "
        "granularity that the units imply"
    )


def _source(plan: Plan, target: Granularity) -> str | None:
    views = any(c.setting == "view" for r in plan.releases for c in r.claims)
    if isinstance(target, Bounded) and views:
        return "thesis, Example 2.16 (paper, Example II.9)"
    return None
