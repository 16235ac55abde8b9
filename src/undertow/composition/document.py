"""Plans as documents: nested mappings in, a `Plan` out, and the other way.

The shape of a document stands in one table (the kinds of domain and view, the keys of
a loss), which the reader, the writer and the JSON Schema follow. A reader says in one
sentence what is wrong and where; a writer refuses what only exists as Python code.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.errors import PlanError
from undertow.numeric.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Attributes, Graph, Rows, Stream, Table
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    LpNorm,
    ZeroMetric,
)
from undertow.spaces.unit import parse_granularity
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

# The shape of a plan document, as one table that both reader and schema follow.

_NUMBER = {"type": ["number", "string"]}
_COUNT = {"type": "integer", "minimum": 1}
# What is listed one by one (times, rows, vertices) is bounded: a larger number is a
# slip of the pen, and would exhaust the memory.
_MOST = 10_000_000
_EXTENT = {"type": "integer", "minimum": 1, "maximum": _MOST}
_SIZE = {"type": "integer", "minimum": 0}
_INDEX = _SIZE
_LABEL = {"type": ["string", "integer"]}
_LABELS = {"type": "array", "items": _LABEL, "minItems": 1}
_INDICES = {"type": "array", "items": _INDEX, "minItems": 1}
_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_FLAG = {"type": "boolean"}
_TEXT = {"type": "string", "minLength": 1}
_ATTRIBUTES = {
    "anyOf": [_NAMES, {"type": "object", "additionalProperties": _LABELS}],
}
_PAIR = {"type": "array", "items": _INDEX, "minItems": 2, "maxItems": 2}

CONTINUOUS: dict[str, Any] = {
    **_FLAG,
    "description": "whether the loss is about continuous noise, which no budget takes",
}
"""What ``continuous`` of a ``loss`` may hold."""

SETTING: dict[str, Any] = {"enum": ["view", "common"]}
"""What ``setting`` may hold."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a document: what it holds, and whether it must be there."""

    schema: dict[str, Any]
    required: bool = True


def _optional(schema: dict[str, Any]) -> Field:
    return Field(schema, required=False)


DOMAINS: dict[str, dict[str, Field]] = {
    "table": {
        "cells": _optional(_LABELS),
        "cell": _optional(_TEXT),
        "size": _optional(_SIZE),
        "max_size": _optional(_SIZE),
        "multi": _optional(_FLAG),
        "max_cells": _optional(_COUNT),
        "values_per_cell": _optional(_COUNT),
        "attributes": _optional(_ATTRIBUTES),
    },
    "rows": {
        "ids": Field({"anyOf": [{**_EXTENT, "minimum": 0}, _LABELS]}),
        "values": _optional(_LABELS),
        "attributes": _optional(_ATTRIBUTES),
        "free_ids": _optional(_FLAG),
    },
    "stream": {
        "users": Field(_COUNT),
        "times": Field(_EXTENT),
        "regular": _optional(_FLAG),
        "values": _optional(_LABELS),
        "clusters": _optional({"type": "object", "additionalProperties": _LABEL}),
    },
    "graph": {"vertices": Field(_EXTENT), "max_degree": _optional(_SIZE)},
}
"""The keys of ``[domain]`` for each kind."""

VIEWS: dict[str, dict[str, Field]] = {
    "identity": {},
    "cell": {
        "cell": Field({"anyOf": [_LABEL, _LABELS]}),
        "statistic": _optional({"enum": ["records", "count"]}),
    },
    "attributes": {"names": Field(_NAMES)},
    "ids": {"ids": Field(_LABELS)},
    "random-block": {
        "block": Field(_INDEX),
        "of": Field(_COUNT),
        "salt": Field({"type": "string"}),
    },
    "row-position": {"block": Field(_INDEX), "of": Field(_COUNT)},
    "sorted-position": {"block": Field(_INDEX), "of": Field(_COUNT)},
    "time": {"at": Field({"anyOf": [_INDEX, _INDICES]})},
    "window": {"start": Field(_INDEX), "length": Field(_EXTENT)},
    "users": {"users": Field(_INDICES)},
    "locations": {"values": Field(_LABELS)},
    "degree": {"vertex": Field(_INDEX)},
    "incident-edges": {"vertex": Field(_INDEX)},
    "vertex-pairs": {"pairs": Field({"type": "array", "items": _PAIR, "minItems": 1})},
    "clique-count": {"max_size": Field({**_EXTENT, "minimum": 3})},
}
"""The keys of a ``view`` for each kind."""

LOSSES: tuple[tuple[str, ...], ...] = (
    ("epsilon",),
    ("epsilon", "delta"),
    ("rho",),
    ("mu",),
    ("mu_squared",),
)
"""The key sets of a ``loss``, each with or without ``continuous``."""


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan document."""
    claim = {
        "loss": {"oneOf": [_loss_schema(keys) for keys in LOSSES]},
        "unit": {
            **_TEXT,
            "description": "a granularity, or absolute, discrete, l1, l2, zero",
        },
        "setting": SETTING,
    }
    release = {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "view": {"oneOf": [_kind_schema(*item) for item in VIEWS.items()]},
            **claim,
            "claims": {"type": "array", "minItems": 1, "items": _closed(claim)},
        },
        "required": ["name"],
        "oneOf": [{"required": list(claim)}, {"required": ["claims"]}],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Undertow plan",
        "type": "object",
        "properties": {
            "domain": {"oneOf": [_kind_schema(*item) for item in DOMAINS.items()]},
            "releases": {"type": "array", "minItems": 1, "items": release},
        },
        "required": ["domain", "releases"],
        "additionalProperties": False,
    }


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _loss_schema(keys: tuple[str, ...]) -> dict[str, Any]:
    schema = _closed(dict.fromkeys(keys, _NUMBER))
    schema["properties"]["continuous"] = CONTINUOUS
    return schema


def _kind_schema(kind: str, fields: dict[str, Field]) -> dict[str, Any]:
    schema = _closed(
        {"kind": {"const": kind}} | {k: f.schema for k, f in fields.items()}
    )
    schema["required"] = ["kind", *(k for k, f in fields.items() if f.required)]
    return schema


_TYPES: dict[str, type | tuple[type, ...]] = {
    "array": (list, tuple),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": Mapping,
    "string": str,
}
_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a table of keys",
    "string": "a text",
}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value fits a schema of the subset used here.

    Stricter than JSON Schema in one point: 5.0 is no whole number.

    Examples
    --------
    >>> fits(["a", 1], _LABELS), fits([], _LABELS), fits(True, _COUNT)
    (True, False, False)
    """
    if "enum" in schema:
        return isinstance(value, str) and value in list(schema["enum"])
    if "anyOf" in schema:
        return any(fits(value, option) for option in schema["anyOf"])
    if not any(_is(value, name) for name in _names(schema)):
        return False
    if isinstance(value, str):
        return len(value) >= int(schema.get("minLength", 0))
    if isinstance(value, list | tuple):
        most = schema.get("maxItems", len(value))
        if not schema.get("minItems", 0) <= len(value) <= most:
            return False
        return all(fits(item, schema["items"]) for item in value)
    if isinstance(value, Mapping):
        return all(
            isinstance(key, str) and fits(item, schema["additionalProperties"])
            for key, item in value.items()
        )
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return bool(low <= value <= high) or isinstance(value, float)


def described(schema: Mapping[str, Any]) -> str:
    """Return in words what fits a schema.

    Examples
    --------
    >>> described(_COUNT), described(_FLAG)
    ('a whole number of at least 1', 'true or false')
    """
    if "enum" in schema:
        return " or ".join(repr(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return ", or ".join(described(option) for option in schema["anyOf"])
    text = " or ".join(_WORDS[name] for name in _names(schema))
    if "minimum" in schema:
        text += f" of at least {schema['minimum']}"
    if "maximum" in schema:
        text += f" and at most {schema['maximum']}"
    if "minLength" in schema:
        text = "a non-empty text"
    if "items" in schema:
        exactly = "minItems" in schema and schema["minItems"] == schema.get("maxItems")
        number = f"{'' if exactly else 'at least '}{schema.get('minItems', 0)}"
        text += f" of {number}, each {described(schema['items'])}"
    if "additionalProperties" in schema:
        text += f", each {described(schema['additionalProperties'])}"
    return text


def _names(schema: Mapping[str, Any]) -> list[str]:
    kind = schema["type"]
    return [kind] if isinstance(kind, str) else kind


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


# A granularity name nests only as far as people write it; more is some other text.
_LONGEST_NAME = 200

_DOMAIN_CLASSES: dict[str, Callable[..., Domain]] = {
    "table": lambda cells=(), **rest: Table(tuple(cells), **rest),
    "rows": lambda ids, **rest: Rows(
        range(ids) if isinstance(ids, int) else tuple(ids), **rest
    ),
    "stream": lambda users, times, **rest: Stream(users, times, **rest),
    "graph": lambda vertices, **rest: Graph(vertices, **rest),
}
_VIEW_CLASSES: dict[str, Callable[..., View]] = {
    "identity": Identity,
    "cell": lambda cell, statistic="records": Select(*_many(cell), statistic=statistic),
    "attributes": lambda names: Project(*names),
    "ids": lambda ids: Ids(ids),
    "random-block": lambda block, of, salt: RandomBlock(block, of, salt),
    "row-position": lambda block, of: RowPosition(block, of),
    "sorted-position": lambda block, of: SortedPosition(block, of),
    "time": lambda at: At(at) if isinstance(at, int) else Times(at),
    "window": lambda start, length: Window(start, length),
    "users": lambda users: Users(users),
    "locations": lambda values: Locations(values),
    "degree": lambda vertex: Degree(vertex),
    "incident-edges": lambda vertex: IncidentEdges(vertex),
    "vertex-pairs": lambda pairs: VertexPairs(tuple(pair) for pair in pairs),
    "clique-count": lambda max_size: CliqueCount(max_size),
}
METRICS: dict[str, Metric] = {
    "absolute": AbsoluteDifference(),
    "discrete": DiscreteMetric(),
    "l1": LpNorm(1),
    "l2": LpNorm(2),
    "zero": ZeroMetric(),
}
"""The units of a document that are no granularities."""


def _squared_gdp(mu_squared: Any) -> Loss:
    return GDP.from_square(mu_squared)


_LOSS_CLASSES: dict[tuple[str, ...], Callable[..., Loss]] = dict(
    zip(LOSSES, (Pure, Approx, ZCDP, GDP, _squared_gdp), strict=True)
)


def plan_from_document(document: Mapping[str, Any]) -> Plan:
    """Build a plan from nested mappings, as a TOML file holds them.

    Parameters
    ----------
    document : mapping
        With ``domain`` and ``releases``; see
        :func:`undertow.composition.plan_schema`.

    Raises
    ------
    PlanError
        With one sentence naming the place, the requirement and what was found.

    Examples
    --------
    >>> plan = plan_from_document({
    ...     "domain": {"kind": "stream", "users": 1000, "times": 24},
    ...     "releases": [{"name": "hour-08", "loss": {"epsilon": "0.5"},
    ...                   "unit": "event", "view": {"kind": "time", "at": 8},
    ...                   "setting": "view"}],
    ... })
    >>> len(plan), plan.releases[0].loss
    (1, Pure(epsilon=0.5))
    """
    _known_keys(document, ("domain", "releases"), where="the plan")
    plan = Plan(domain_from_document(_required(document, "domain", where="the plan")))
    entries = _required(document, "releases", where="the plan")
    if not isinstance(entries, list | tuple) or not entries:
        raise PlanError(
            "releases must be a list of at least one release, "
            f"got {_shown(entries) if entries else 'none'}."
        )
    for at, entry in enumerate(entries):
        release = _read_release(_mapping(entry, f"releases[{at}]"), f"releases[{at}]")
        try:
            plan.add(release)
        except ValueError as fault:
            raise PlanError(f"release {release.name!r}: {fault}") from None
    return plan


def domain_from_document(entry: Any) -> Domain:
    """Build a domain from the mapping a document holds under ``domain``."""
    kind, values = _read_kind(entry, DOMAINS, where="domain")
    try:
        return _DOMAIN_CLASSES[kind](**values)
    except (TypeError, ValueError) as fault:
        raise PlanError(f"domain: {fault}") from None


def _read_release(entry: Mapping[str, Any], where: str) -> Release:
    single = ("loss", "unit", "setting")
    _known_keys(entry, ("name", "view", "claims", *single), where=where)
    name = _required(entry, "name", where=where)
    if not isinstance(name, str) or not name:
        raise PlanError(
            f"name of {where} must be a non-empty text, got {_shown(name)}."
        )
    where = f"release {_shown(name)}"
    view = _read_view(entry.get("view", {"kind": "identity"}), where)
    if "claims" not in entry:
        return Release.with_claims(name, [_read_claim(entry, where)], view=view)
    if any(key in entry for key in single):
        raise PlanError(
            f"{where} must give either claims or loss, unit and setting, got both."
        )
    claims = entry["claims"]
    if not isinstance(claims, list | tuple) or not claims:
        raise PlanError(
            f"claims of {where} must be a non-empty list, got {_shown(claims)}."
        )
    read = []
    for claim in claims:
        _known_keys(_mapping(claim, f"claims of {where}"), single, where=where)
        read.append(_read_claim(claim, where))
    return Release.with_claims(name, read, view=view)


def _read_claim(entry: Mapping[str, Any], where: str) -> Claim:
    loss = _read_loss(_required(entry, "loss", where=where), where)
    unit = _read_unit(_required(entry, "unit", where=where), where)
    if "setting" not in entry:
        raise PlanError(
            f"setting of {where} must be 'view' (private on what the view shows) or "
            "'common' (private on the whole domain), got none; there is no default, "
            "because the price differs."
        )
    _require_fit(entry["setting"], SETTING, f"setting of {where}")
    try:
        return Claim(loss, unit, entry["setting"])
    except (TypeError, ValueError) as fault:
        raise PlanError(f"{where}: {fault}") from None


def _read_loss(entry: Any, where: str) -> Loss:
    values = dict(_mapping(entry, f"loss of {where}"))
    continuous = values.pop("continuous", False)
    _require_fit(continuous, CONTINUOUS, f"continuous in the loss of {where}")
    for keys, build in _LOSS_CLASSES.items():
        if set(values) == set(keys):
            try:
                return build(**values).of_continuous_noise(continuous)
            except (TypeError, ValueError) as fault:
                raise PlanError(f"{where}: {fault}") from None
    raise PlanError(
        f"loss of {where} must hold epsilon, epsilon and delta, rho, mu, or "
        f"mu_squared, got {_listed(values)}."
    )


def _read_unit(text: Any, where: str) -> Metric:
    if not isinstance(text, str) or len(text) > _LONGEST_NAME:
        raise PlanError(
            f"unit of {where} must be a granularity name, got {_shown(text)}."
        )
    if text in METRICS:
        return METRICS[text]
    try:
        return parse_granularity(text)
    except ValueError as fault:
        raise PlanError(f"unit of {where}: {fault}") from None


def _read_view(entry: Any, where: str) -> View:
    kind, values = _read_kind(entry, VIEWS, where=f"view of {where}")
    try:
        return _VIEW_CLASSES[kind](**values)
    except (TypeError, ValueError) as fault:
        raise PlanError(f"view of {where}: {fault}") from None


def _read_kind(
    entry: Any, kinds: Mapping[str, Mapping[str, Field]], *, where: str
) -> tuple[str, dict[str, Any]]:
    values = dict(_mapping(entry, where))
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise PlanError(
            f"kind of {where} must be one of {', '.join(kinds)}, got {_shown(kind)}."
        )
    fields = kinds[kind]
    _known_keys(values, fields, where=f"{where} ({kind})")
    for key, field in fields.items():
        if field.required:
            _required(values, key, where=f"{where} ({kind})")
        if key in values:
            _require_fit(values[key], field.schema, f"{key} of {where}")
    return kind, values


def _require_fit(value: Any, schema: Mapping[str, Any], where: str) -> None:
    if not fits(value, schema):
        raise PlanError(f"{where} must be {described(schema)}, got {_shown(value)}.")


def _mapping(entry: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise PlanError(f"{where} must be a table of keys, got {_shown(entry)}.")
    return entry


def _required(values: Mapping[str, Any], key: str, *, where: str) -> Any:
    if key not in values:
        raise PlanError(f"{where} must have the key {key!r}, got {_listed(values)}.")
    return values[key]


def _known_keys(values: Mapping[str, Any], known: Iterable[str], *, where: str) -> None:
    known = tuple(known)
    for key in _mapping(values, where):
        if key not in known:
            near = difflib.get_close_matches(str(key)[:60], known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            allowed = ", ".join(known) or "no other key"
            raise PlanError(
                f"{where} must hold only {allowed}, got the unknown key "
                f"{_shown(key)}{hint}"
            )


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value)[:60] for value in list(values)[:8]) or "nothing"


def _shown(value: object) -> str:
    try:
        text = reprlib.repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


# Plans as documents, the other way: releases and domains to nested mappings.

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
            return {"mu_squared": exact_text(square)}
        return {"mu": exact_text(root)}
    values = loss.exact_parameters()
    return {n: exact_text(v) for n, v in zip(loss.names, values, strict=True)}


def exact_text(value: Exact) -> str:
    """Return an exact number as a fraction that reads back to it."""
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
