"""What the parts cost: each release alone, and each release at the worst change."""

from __future__ import annotations

from collections.abc import Hashable

from undertow.composition.engine import EngineResult
from undertow.composition.engine_cost import claim_cost
from undertow.composition.engine_price import front_loss
from undertow.privacy.exact import Exact, Number
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.change import (
    Change,
    Charge,
    Column,
    Row,
    change_family,
    totals,
)
from undertow.spaces.view import At, Degree, IncidentEdges, Select, Window

__all__ = ["release_shares", "sequential_baseline"]


def release_shares(result: EngineResult, *, delta: Number | None) -> list[Loss]:
    """Return what each release costs at the change that attains the loss."""
    tally, losses, moved = result.tally, result.table.losses, result.row.influences
    known: dict[tuple[int, Exact], tuple[Exact, ...]] = {}
    stated: dict[tuple[Exact, ...], Loss] = {}

    def cost(column: int, at: int) -> tuple[Exact, ...]:
        key = (at, moved.get(column, 0))
        if key not in known:
            known[key] = claim_cost(
                losses[at], key[1], notion=tally.notion, concentrated=tally.concentrated
            )
        return known[key]

    shares = []
    for claims in tally.claims:
        values = min(cost(column, at) for column, at in claims)
        if values not in stated:
            stated[values] = _as_loss(values, result, delta)
        shares.append(stated[values])
    return [shares[kind] for kind in result.table.kind_of.tolist()]


def sequential_baseline(
    domain: Domain,
    target: Granularity,
    *,
    result: EngineResult,
    delta: Number | None,
) -> Loss:
    """Return the sum of the releases' own worst cases: composition without views.

    Always valid, and often several times the composed loss, because no single change
    is the worst case of every release.
    """
    known: dict[Hashable, Exact] = {}
    reach = {
        at: _reach(domain, target, column, known)
        for at, column in enumerate(result.table.columns)
    }
    apart = Row(Change("apart", "every release at its own worst change"), reach)
    values = totals(apart.price(result.tally.charges), result.tally.coordinates)
    return _as_loss(values, result, delta)


def _as_loss(
    values: tuple[Exact, ...], result: EngineResult, delta: Number | None
) -> Loss:
    return front_loss(
        values,
        notion=result.tally.notion,
        concentrated=result.tally.concentrated,
        delta=delta,
    )


def _reach(
    domain: Domain,
    target: Granularity,
    column: Column,
    known: dict[Hashable, Exact],
) -> Exact:
    """Return the most one change moves a column, asked once per shape of view."""
    key = (_shape(column.view, domain), column.unit, column.setting)
    if key not in known:
        family = change_family(domain, target, columns=(column,))
        known[key] = family.maximise([Charge((0,), _influence)]).value
    return known[key]


def _influence(influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
    return influences


def _shape(view: View, domain: Domain) -> Hashable:
    """Return what a view's reach depends on.

    Cells, vertices and times are interchangeable in the neighbour relations, so the
    reach of a view of one of them is that of any other. Cells of a table whose records
    are listed column by column are not: one of them may have no record.
    """
    if isinstance(view, At | Degree | IncidentEdges):
        return type(view)
    if isinstance(view, Window):
        return (Window, view.length)
    if isinstance(view, Select) and not getattr(domain, "attributes", ()):
        return (Select, len(view.cells), view.statistic)
    return view
