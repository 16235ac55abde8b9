"""Plans as documents, the other way: releases and domains to nested mappings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from undertow.composition.document import METRICS
from undertow.composition.document_schema import (
    DOMAINS,
    VIEWS,
    Field,
    described,
    fits,
)
from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.errors import PlanError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, Loss
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.domain_rows import Attributes
from undertow.spaces.granularity import parse_granularity
from undertow.spaces.view import (
    At,
    CliqueCount,
    Degree,
    Identity,
    Ids,
    IncidentEdges,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Users,
    VertexPairs,
    Window,
)

__all__ = [
    "domain_to_document",
    "granularity_to_document",
    "plan_to_document",
    "release_to_document",
]

_VIEW_KEYS: dict[type[View], Callable[[Any], dict[str, Any]]] = {
    Identity: lambda v: {"kind": "identity"},
    Select: lambda v: {
        "kind": "cell",
        "cell": _sorted(v.cells),
        "statistic": v.statistic,
    },
    Project: lambda v: {"kind": "attributes", "names": list(v.attributes)},
    Ids: lambda v: {"kind": "ids", "ids": _sorted(v.ids)},
    RandomBlock: lambda v: {"kind": "random-block", **_block(v), "salt": v.salt},
    RowPosition: lambda v: {"kind": "row-position", **_block(v)},
    SortedPosition: lambda v: {"kind": "sorted-position", **_block(v)},
    At: lambda v: {"kind": "time", "at": v.time},
    Times: lambda v: {"kind": "time", "at": sorted(v.times)},
    Window: lambda v: {"kind": "window", "start": v.start, "length": v.length},
    Users: lambda v: {"kind": "users", "users": sorted(v.users)},
    Locations: lambda v: {"kind": "locations", "values": _sorted(v.values)},
    Degree: lambda v: {"kind": "degree", "vertex": v.vertex},
    IncidentEdges: lambda v: {"kind": "incident-edges", "vertex": v.vertex},
    VertexPairs: lambda v: {
        "kind": "vertex-pairs",
        "pairs": sorted(map(list, v.pairs)),
    },
    CliqueCount: lambda v: {"kind": "clique-count", "max_size": v.max_size},
}
_METRIC_NAMES = {metric: name for name, metric in METRICS.items()}


def plan_to_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as a document that reads back to an equal plan.

    Raises
    ------
    PlanError
        If the plan holds a view, unit or domain that only exists as Python code.
    """
    return {
        "domain": domain_to_document(plan.domain),
        "releases": [release_to_document(release) for release in plan.releases],
    }


def release_to_document(release: Release) -> dict[str, Any]:
    """Return one release as a document, its losses as exact fractions."""
    write = _VIEW_KEYS.get(type(release.view))
    if write is None:
        raise PlanError(
            f"view of release {release.name!r} must be one a document can hold, "
            f"got {release.view.name}."
        )
    view = write(release.view)
    _require_writable(view, VIEWS, where=f"view of release {release.name!r}")
    return {
        "name": release.name,
        "view": view,
        "claims": [_claim(claim) for claim in release.claims],
    }


def domain_to_document(domain: Domain) -> dict[str, Any]:
    """Return a domain as a document; keys at their default are left out.

    Raises
    ------
    PlanError
        If the domain only exists as Python code: other kinds, labels that are neither
        text nor whole numbers, attributes of which only some list their values.
    """
    write = _DOMAIN_KEYS.get(type(domain))
    if write is None:
        kinds = ", ".join(DOMAINS)
        raise PlanError(f"domain must be one of {kinds}, got {type(domain).__name__}.")
    document = {
        key: value
        for key, value in write(domain).items()
        if value is not None and value is not False and value != []
    }
    _require_writable(document, DOMAINS, where="domain")
    return document


def _table(domain: Table) -> dict[str, Any]:
    # Attribute values of the cell column follow from the cells, and the number of
    # values per cell from the attributes; neither is written twice.
    known = {domain.cell: domain.cells} if domain.cells else {}
    return {
        "kind": "table",
        "cells": list(domain.cells),
        "cell": domain.cell if domain.cell != "cell" else None,
        "size": domain.size,
        "max_size": domain.max_size,
        "multi": domain.multi,
        "max_cells": domain.max_cells,
        "values_per_cell": None if domain.attributes else domain.values_per_cell,
        "attributes": _attributes(domain.attributes, known),
    }


def _rows(domain: Rows) -> dict[str, Any]:
    numbered = isinstance(domain.ids, range) and domain.ids == range(len(domain.ids))
    listed = domain.values is not None and not domain.attributes
    return {
        "kind": "rows",
        "ids": len(domain.ids) if numbered else list(domain.ids),
        "values": list(domain.values or ()) if listed else None,
        "attributes": _attributes(domain.attributes, {}),
        "free_ids": domain.free_ids,
    }


def _stream(domain: Stream) -> dict[str, Any]:
    clusters = None if domain.clusters is None else dict(domain.clusters)
    follows = clusters is not None and tuple(clusters) == domain.values
    return {
        "kind": "stream",
        "users": domain.users,
        "times": domain.times,
        "regular": domain.regular,
        "values": None if follows else list(domain.values or ()),
        "clusters": clusters,
    }


def _graph(domain: Graph) -> dict[str, Any]:
    return {
        "kind": "graph",
        "vertices": domain.vertices,
        "max_degree": domain.max_degree,
    }


_DOMAIN_KEYS: dict[type[Domain], Callable[[Any], dict[str, Any]]] = {
    Graph: _graph,
    Rows: _rows,
    Stream: _stream,
    Table: _table,
}


def _attributes(
    attributes: Attributes, known: Mapping[str, tuple[Hashable, ...]]
) -> Any:
    """Return names alone, or names with values; None where there are none."""
    listed = {n: v for n, v in attributes if v is not None and known.get(n) != v}
    if not listed:
        return [name for name, _ in attributes]
    open_names = [name for name, values in attributes if values is None]
    if open_names:
        raise PlanError(
            "attributes must all list their values or none of them to be written, "
            f"got {open_names[0]!r} without."
        )
    return {name: list(values or ()) for name, values in attributes}


def _require_writable(
    document: Mapping[str, Any], kinds: Mapping[str, Mapping[str, Field]], *, where: str
) -> None:
    """Refuse what a reader would refuse: labels that are no text or whole number."""
    for key, field in kinds[document["kind"]].items():
        if key in document and not fits(document[key], field.schema):
            raise PlanError(
                f"{key} of {where} must be {described(field.schema)} to be written, "
                "got other values."
            )


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "loss": _loss(claim.loss),
        "unit": _unit(claim.unit),
        "setting": claim.setting,
    }


def _loss(loss: Loss) -> dict[str, Any]:
    return _parameters(loss) | ({"continuous": True} if loss.continuous else {})


def _parameters(loss: Loss) -> dict[str, str]:
    if isinstance(loss, GDP):
        # What is exact is the square; mu is written where it is a fraction itself.
        (square,) = loss.exact_parameters()
        root = square if square == float("inf") else loss.exact_root()
        if root is None:
            return {"mu_squared": _exact_text(square)}
        return {"mu": _exact_text(root)}
    values = loss.exact_parameters()
    return {n: _exact_text(v) for n, v in zip(loss.names, values, strict=True)}


def _exact_text(value: Exact) -> str:
    return "inf" if value == float("inf") else str(Fraction(value))


def _unit(unit: Metric) -> str:
    return _METRIC_NAMES.get(unit) or granularity_to_document(unit)


def granularity_to_document(unit: Metric) -> str:
    """Return the name of a granularity that reads back to an equal one."""
    try:
        written = parse_granularity(unit.name)
    except ValueError:
        written = None
    if written != unit:  # a relation or function, perhaps under a known name
        raise PlanError(
            f"unit must be one a document can hold, got {unit.name}, which only "
            "exists as Python code."
        )
    return unit.name


def _block(view: Any) -> dict[str, int]:
    return {"block": view.block, "of": view.of}


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=repr)
