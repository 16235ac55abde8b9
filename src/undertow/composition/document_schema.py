"""The shape of a plan document, as one table that both reader and schema follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CONTINUOUS",
    "DOMAINS",
    "LOSSES",
    "SETTING",
    "VIEWS",
    "Field",
    "described",
    "fits",
    "plan_schema",
]

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
