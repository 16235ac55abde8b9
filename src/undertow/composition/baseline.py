"""What the parts cost: each release alone, and each release at the worst change."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from undertow.composition.engine import EngineResult
from undertow.composition.engine_cost import claim_cost
from undertow.composition.engine_price import front_loss
from undertow.privacy.exact import Exact, Number
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.change import Charge, Column, change_family
from undertow.spaces.view import At, Degree, IncidentEdges, Select, Window

__all__ = ["release_shares", "sequential_baseline"]


def release_shares(result: EngineResult, *, delta: Number | None) -> list[Loss]:
    """Return what each release costs at the change that attains the loss."""
    kinds = result.table.kind_of
    _, first = np.unique(kinds, return_index=True)
    share = [
        front_loss(
            result.contribution(int(release)),
            notion=result.ledger.notion,
            concentrated=result.ledger.concentrated,
            delta=delta,
        )
        for release in first
    ]
    return [share[kind] for kind in kinds.tolist()]


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
    reach: dict[Hashable, Exact] = {}
    ledger, table = result.ledger, result.table
    sums: list[Exact] = [0] * ledger.coordinates
    for claims, count in zip(ledger.claims, table.counts.tolist(), strict=True):
        cost = min(
            claim_cost(
                table.losses[at],
                _reach(domain, target, table.columns[column], reach),
                notion=ledger.notion,
                concentrated=ledger.concentrated,
            )
            for column, at in claims
        )
        sums = [s + count * c for s, c in zip(sums, cost, strict=True)]
    return front_loss(
        tuple(sums),
        notion=ledger.notion,
        concentrated=ledger.concentrated,
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
