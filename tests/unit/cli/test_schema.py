"""The published schema and the reader agree."""

from __future__ import annotations

import json
import tomllib
from importlib import resources

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.command import invoke
from support.documents import VALID, districts, valid
from undertow.composition import plan_from_document, plan_schema, plan_to_document
from undertow.errors import PlanError

SCHEMA = plan_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_command_prints_the_schema_as_one_object():
    result = invoke("schema", "plan")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_another_document_kind_is_one_sentence():
    result = invoke("schema", "poem")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "document must be one of plan, release, got 'poem'.\n"


@pytest.mark.parametrize("name", VALID)
def test_what_the_reader_accepts_is_valid(name):
    VALIDATOR.validate(valid(name))
    VALIDATOR.validate(plan_to_document(plan_from_document(valid(name))))


def test_the_bundled_plans_are_valid():
    folder = resources.files("undertow.cli") / "plans"
    files = [file for file in folder.iterdir() if file.name.endswith(".toml")]
    assert files
    for file in files:
        VALIDATOR.validate(tomllib.loads(file.read_text(encoding="utf-8")))


def tables(item, path=()):
    """Yield the path of every table in a document."""
    if isinstance(item, dict):
        yield path
        for key, child in item.items():
            yield from tables(child, (*path, key))
    elif isinstance(item, list):
        for at, child in enumerate(item):
            yield from tables(child, (*path, at))


@pytest.mark.parametrize("name", VALID)
def test_unknown_keys_are_refused_by_schema_and_reader_alike(name):
    for path in tables(VALID[name]):
        if path and path[-1] in ("clusters", "attributes"):
            continue  # their keys are the user's own
        document = valid(name)
        place = document
        for key in path:
            place = place[key]
        place["colour"] = 1
        assert not VALIDATOR.is_valid(document), path
        with pytest.raises(PlanError):
            plan_from_document(document)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 40),
    st.floats(allow_nan=False),
    st.sampled_from(["", "N", "cell", "bounded", "1/3"]),
    st.lists(st.sampled_from(["N", 1, 1.5, None]), max_size=3),
    st.dictionaries(st.sampled_from(["kind", "epsilon", "x"]), st.just("cell")),
)


@given(st.data())
def test_whatever_the_reader_accepts_is_valid(data):
    document = data.draw(st.sampled_from([districts(), *map(valid, VALID)]))
    path = data.draw(st.sampled_from(list(tables(document))))
    place = document
    for key in path:
        place = place[key]
    place[data.draw(st.sampled_from([*place, "size", "view", "claims"]))] = data.draw(
        JUNK
    )
    try:
        plan_from_document(document)
    except PlanError:
        return
    VALIDATOR.validate(document)
