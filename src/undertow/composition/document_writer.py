"""Plans as documents, the other way: releases and domains to nested mappings."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.errors import PlanError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, Loss
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.granularity import parse_granularity
from undertow.spaces.metric import AbsoluteDifference, LpNorm
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

__all__ = ["domain_to_document", "plan_to_document", "release_to_document"]

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
_METRIC_NAMES = {AbsoluteDifference(): "absolute", LpNorm(1): "l1", LpNorm(2): "l2"}


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
    return {
        "name": release.name,
        "view": write(release.view),
        "claims": [_claim(claim) for claim in release.claims],
    }


def domain_to_document(domain: Domain) -> dict[str, Any]:
    """Return a domain as a document; keys at their default are left out."""
    if isinstance(domain, Table):
        if domain.attributes and len(domain.attributes[0]) != 0:
            attributes: Any = list(domain.attribute_names)
        else:
            attributes = None
        return _without_none(
            kind="table",
            cells=list(domain.cells) or None,
            cell=domain.cell if domain.cell != "cell" else None,
            size=domain.size,
            max_size=domain.max_size,
            multi=domain.multi or None,
            max_cells=domain.max_cells,
            values_per_cell=domain.values_per_cell,
            attributes=attributes,
        )
    if isinstance(domain, Rows):
        return {"kind": "rows", "ids": list(domain.ids)}
    if isinstance(domain, Stream):
        clusters = None if domain.clusters is None else dict(domain.clusters)
        return _without_none(
            kind="stream",
            users=domain.users,
            times=domain.times,
            regular=domain.regular or None,
            clusters=clusters,
        )
    if isinstance(domain, Graph):
        cap = domain.max_degree
        return _without_none(kind="graph", vertices=domain.vertices, max_degree=cap)
    raise PlanError(
        f"domain must be a table, rows, stream or graph, got {type(domain).__name__}."
    )


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "loss": _loss(claim.loss),
        "unit": _unit(claim.unit),
        "setting": claim.setting,
    }


def _loss(loss: Loss) -> dict[str, str]:
    names = [name for name in loss.to_dict() if name != "notion"]
    values = loss.exact_parameters()
    if isinstance(loss, GDP):
        # Only the square is exact; a document holds mu, so it must be a fraction too.
        root = loss.exact_root()
        if root is None:
            raise PlanError(f"mu must be a fraction to be written, got {loss}.")
        values = (root,)
    return {n: _exact_text(v) for n, v in zip(names, values, strict=True)}


def _exact_text(value: Exact) -> str:
    return "inf" if value == float("inf") else str(Fraction(value))


def _unit(unit: Metric) -> str:
    name = _METRIC_NAMES.get(unit, unit.name)
    if name not in _METRIC_NAMES.values():
        parse_granularity(name)  # raises for a unit that only exists as Python code
    return name


def _block(view: Any) -> dict[str, int]:
    return {"block": view.block, "of": view.of}


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=repr)


def _without_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
