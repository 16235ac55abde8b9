"""The shape of a plan document, as one table that both reader and schema follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DOMAINS", "LOSSES", "VIEWS", "Field", "plan_schema"]

_NUMBER = {"type": ["number", "string"]}
_COUNT = {"type": "integer", "minimum": 1}
_INDEX = {"type": "integer", "minimum": 0}
_LABEL = {"type": ["string", "integer"]}
_LABELS = {"type": "array", "items": _LABEL, "minItems": 1}
_INDICES = {"type": "array", "items": _INDEX, "minItems": 1}
_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_FLAG = {"type": "boolean"}
_TEXT = {"type": "string", "minLength": 1}


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
        "size": _optional(_COUNT),
        "max_size": _optional(_COUNT),
        "multi": _optional(_FLAG),
        "max_cells": _optional(_COUNT),
        "values_per_cell": _optional(_COUNT),
        "attributes": _optional(_NAMES),
    },
    "rows": {
        "ids": Field({"anyOf": [_COUNT, _LABELS]}),
        "attributes": _optional(_NAMES),
    },
    "stream": {
        "users": Field(_COUNT),
        "times": Field(_COUNT),
        "regular": _optional(_FLAG),
        "clusters": _optional({"type": "object", "additionalProperties": _LABEL}),
    },
    "graph": {"vertices": Field(_COUNT), "max_degree": _optional(_COUNT)},
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
    "random-block": {"block": Field(_INDEX), "of": Field(_COUNT), "salt": Field(_TEXT)},
    "row-position": {"block": Field(_INDEX), "of": Field(_COUNT)},
    "sorted-position": {"block": Field(_INDEX), "of": Field(_COUNT)},
    "time": {"at": Field({"anyOf": [_INDEX, _INDICES]})},
    "window": {"start": Field(_INDEX), "length": Field(_COUNT)},
    "users": {"users": Field(_INDICES)},
    "locations": {"values": Field(_LABELS)},
    "degree": {"vertex": Field(_INDEX)},
    "incident-edges": {"vertex": Field(_INDEX)},
    "vertex-pairs": {
        "pairs": Field({"type": "array", "items": _INDICES, "minItems": 1})
    },
    "clique-count": {"max_size": Field({"type": "integer", "minimum": 3})},
}
"""The keys of a ``view`` for each kind."""

LOSSES: tuple[tuple[str, ...], ...] = (
    ("epsilon",),
    ("epsilon", "delta"),
    ("rho",),
    ("mu",),
)
"""The key sets of a ``loss``."""


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan document."""
    claim = {
        "loss": {"oneOf": [_loss_schema(keys) for keys in LOSSES]},
        "unit": {**_TEXT, "description": "a granularity name, or absolute, l1, l2"},
        "setting": {"enum": ["view", "common"]},
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
    return _closed(dict.fromkeys(keys, _NUMBER))


def _kind_schema(kind: str, fields: dict[str, Field]) -> dict[str, Any]:
    schema = _closed(
        {"kind": {"const": kind}} | {k: f.schema for k, f in fields.items()}
    )
    schema["required"] = ["kind", *(k for k, f in fields.items() if f.required)]
    return schema
