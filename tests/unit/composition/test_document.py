"""Reading documents: a plan, or one sentence."""

from __future__ import annotations

import contextlib
import datetime
import math

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from support.documents import VALID, districts, valid
from undertow.composition import plan_from_document, plan_schema, plan_to_document
from undertow.composition.document import DOMAINS, VIEWS, described, fits
from undertow.errors import PlanError
from undertow.privacy import GDP
from undertow.privacy.loss import shown_loss


@pytest.mark.parametrize("name", VALID)
def test_every_kind_of_document_reads(name):
    document = valid(name)
    plan = plan_from_document(document)
    assert len(plan) == len(document["releases"])
    assert document == VALID[name], "reading must not change the document"


def test_every_kind_of_domain_and_view_is_among_them():
    domains = {document["domain"]["kind"] for document in VALID.values()}
    views = {
        release.get("view", {}).get("kind", "identity")
        for document in VALID.values()
        for release in document["releases"]
    }
    assert domains == set(DOMAINS)
    assert views == set(VIEWS)


def test_each_view_becomes_the_object_it_names():
    views = [release.view for release in plan_from_document(valid("hours")).releases]
    assert views == [
        ut.At(3),
        ut.Times([0, 5]),
        ut.Window(1, 3),
        ut.Users([0, 4]),
        ut.Identity(),
    ]
    graph = plan_from_document(valid("graph"))
    assert graph.releases[2].view == ut.VertexPairs([(0, 1), (1, 2)])
    places = plan_from_document(valid("places"))
    assert places.releases[0].view == ut.Locations(["north"])
    assert plan_from_document(valid("ids")).releases[0].view == ut.Ids(["x"])


def test_losses_are_read_exactly():
    losses = [r.loss for r in plan_from_document(valid("notions")).releases]
    assert losses[:3] == [
        ut.Approx(1, "1e-5"),
        ut.GDP(math.inf),
        ut.GDP.from_square("1/2"),
    ]


def spoilt(path, value):
    """Return the districts with one place replaced."""
    document = districts()
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


FIRST = ("releases", 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("colour",), 1, "the plan must hold only domain, releases, got the unknown"),
        (("domain", "cels"), ["a"], "unknown key 'cels'; did you mean 'cells'"),
        ((*FIRST, "unti"), "x", "'unti'; did you mean 'unit'"),
        ((*FIRST, "view", "cels"), 1, "view of release 'count N' \\(cell\\)"),
        ((*FIRST, "loss"), {"epsilon": 1, "gamma": 2}, "loss of release 'count N'"),
        ((*FIRST, "loss"), {"epsilon": "-1"}, "epsilon must be non-negative, got -1"),
        ((*FIRST, "loss"), {"epsilon": math.nan}, "epsilon must be a number, got nan"),
        ((*FIRST, "loss"), {"epsilon": "nan"}, "epsilon must be a number, got nan"),
        ((*FIRST, "loss"), {"epsilon": 1, "delta": 1.1}, "delta must be at most 1"),
        ((*FIRST, "loss"), {"epsilon": True}, "epsilon must be an int, float"),
        ((*FIRST, "loss"), {"epsilon": [1]}, "epsilon must be an int, float"),
        ((*FIRST, "loss"), {"epsilon": "one"}, "such as 0.5 or 1/3, got 'one'"),
        ((*FIRST, "loss"), {"epsilon": "1e999"}, "must lie between"),
        ((*FIRST, "loss"), {}, "got nothing"),
        ((*FIRST, "loss"), 0.5, "must be a table of keys, got 0.5"),
        ((*FIRST, "name"), "", "name of releases\\[0\\] must be a non-empty text"),
        ((*FIRST, "name"), ["a"], "must be a non-empty text, got \\['a'\\]"),
        ((*FIRST, "unit"), 3, "must be a granularity name, got 3"),
        ((*FIRST, "unit"), "boundd", "the nearest is 'bounded'"),
        ((*FIRST, "unit"), "group:1:" * 9000 + "edit", "must be a granularity name"),
        ((*FIRST, "setting"), "both", "setting of release 'count N' must be 'view'"),
        ((*FIRST, "setting"), ["view"], "must be 'view' or 'common'"),
        ((*FIRST, "view"), "N", "view of release 'count N' must be a table of keys"),
        ((*FIRST, "view"), {"kind": ["cell"]}, "kind of view .* must be one of"),
        ((*FIRST, "view"), {"kind": "sell"}, "must be one of identity, cell"),
        ((*FIRST, "view"), {"kind": "cell"}, "must have the key 'cell'"),
        ((*FIRST, "view"), {"kind": "cell", "cell": 1.5}, "a text or a whole number"),
        ((*FIRST, "view"), {"kind": "cell", "cell": []}, "a list of at least 1"),
        ((*FIRST, "view", "cell"), "X", "cells must be cells of the table, got X;"),
        ((*FIRST, "view", "statistic"), "mean", "must be 'records' or 'count'"),
        ((*FIRST, "view"), {"kind": "time", "at": 1}, "domain of kind stream"),
        ((*FIRST, "claims"), [], "must give either claims or loss"),
        (("domain", "cells"), "NSEW", "cells of domain must be a list"),
        (("domain", "cells"), [True, False], "each a text or a whole number"),
        (("domain", "cells"), ["N", "N"], "cells must not repeat"),
        (("domain", "cells"), [["N"]], "each a text"),
        (("domain", "size"), "5", "size of domain must be a whole number"),
        (("domain", "size"), 5.0, "must be a whole number of at least 0, got 5.0"),
        (("domain", "size"), -1, "at least 0, got -1"),
        (("domain", "multi"), "yes", "must be true or false"),
        (("domain", "max_cells"), 2, "max_cells must come with multi=True"),
        (("domain", "kind"), "tables", "kind of domain must be one of table, rows"),
        (("domain", "kind"), None, "kind of domain must be one of"),
        (("domain",), [], "domain must be a table of keys"),
        (("releases",), [], "at least one release, got none"),
        (("releases",), {"a": 1}, "releases must be a list"),
        (("releases",), [3], "releases\\[0\\] must be a table of keys, got 3"),
        (("domain", "cell"), datetime.date(2026, 1, 1), "must be a non-empty text"),
    ],
)
def test_each_mistake_is_one_sentence_that_names_its_place(path, value, message):
    with pytest.raises(PlanError, match=message) as caught:
        plan_from_document(spoilt(path, value))
    text = str(caught.value)
    assert text.endswith((".", "?"))
    assert len(text) < 400
    assert "\n" not in text


@pytest.mark.parametrize("key", ["name", "loss", "unit", "setting"])
def test_missing_keys_are_named(key):
    document = districts()
    del document["releases"][1][key]
    with pytest.raises(PlanError, match=key):
        plan_from_document(document)


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("hours", ("domain", "users"), 2.5, "users of domain must be a whole number"),
        ("hours", ("domain", "times"), 10**12, "at most 10000000"),
        ("hours", ("domain", "times"), True, "must be a whole number"),
        ("hours", (*FIRST, "view", "at"), 6, "numbered from 0 to 5 on this stream"),
        ("hours", (*FIRST, "view", "at"), "noon", "must be a whole number"),
        ("hours", (*FIRST, "view", "at"), [[1]], "must be a whole number"),
        ("graph", (*FIRST, "view", "vertex"), 6, "between 0 and 5, got 6"),
        ("graph", ("releases", 2, "view", "pairs"), [[1, 1]], "two different vertices"),
        ("graph", ("releases", 2, "view", "pairs"), [[1, 2, 3]], "a list of 2"),
        ("blocks", (*FIRST, "view", "block"), 2, "block must be an integer from 0"),
        ("ids", (*FIRST, "view", "ids"), ["z"], "ids must be ids of the rows"),
        ("places", ("domain", "clusters"), {"p": 1.5}, "clusters of domain"),
        ("claims", (*FIRST, "claims"), {}, "must be a non-empty list"),
        ("claims", (*FIRST, "claims", 0), 7, "must be a table of keys, got 7"),
        ("claims", (*FIRST, "claims", 0), {"loss": {}}, "loss of release 'two'"),
    ],
)
def test_mistakes_in_other_kinds_are_named(name, path, value, message):
    document = valid(name)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(PlanError, match=message):
        plan_from_document(document)


@pytest.mark.parametrize("document", [None, [], "plan", 3, {1: 2}, {}])
def test_other_objects_are_no_documents(document):
    with pytest.raises(PlanError):
        plan_from_document(document)


def test_very_long_values_are_shortened_in_the_sentence():
    for value in ("x" * 10_000, list(range(10_000)), 10**5000):
        with pytest.raises(PlanError) as caught:
            plan_from_document(spoilt(("domain", "multi"), value))
        assert len(str(caught.value)) < 200


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["cell", "view", "event", "inf", "1/3", "nan", "table"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(item, path=()):
    """Yield every path into a nested document."""
    yield path
    if isinstance(item, dict | list):
        children = item.items() if isinstance(item, dict) else enumerate(item)
        for key, child in children:
            yield from places(child, (*path, key))


@given(st.data())
def test_spoilt_documents_give_a_plan_or_a_plan_error(data):
    document = valid(data.draw(st.sampled_from(sorted(VALID))))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([p for p in places(document) if p]))
        place = document
        for key in path[:-1]:
            place = place[key]
        action = data.draw(st.sampled_from(["replace", "delete", "insert"]))
        if action == "replace":
            place[path[-1]] = data.draw(JUNK)
        elif action == "delete":
            del place[path[-1]]
        elif isinstance(place, dict):
            place[data.draw(st.text(max_size=3))] = data.draw(JUNK)
    with contextlib.suppress(PlanError):  # any other exception fails the test
        assert len(plan_from_document(document)) == len(document["releases"])


@given(JUNK)
def test_junk_is_never_a_plan(junk):
    with pytest.raises(PlanError):
        plan_from_document(junk)


@pytest.mark.parametrize(
    "schema",
    [
        field.schema
        for kinds in (DOMAINS, VIEWS)
        for f in kinds.values()
        for field in f.values()
    ],
)
def test_every_field_can_be_described_and_refuses_null(schema):
    assert described(schema)
    assert not fits(None, schema)


def test_a_loss_of_continuous_noise_is_read_written_and_shown_as_one():
    document = {
        "domain": {"kind": "table", "cells": ["N", "S"]},
        "releases": [
            {
                "name": "r",
                "loss": {"mu": "1/2", "continuous": True},
                "unit": "absolute",
                "view": {"kind": "cell", "cell": "N", "statistic": "count"},
                "setting": "view",
            }
        ],
    }
    jsonschema.Draft202012Validator(plan_schema()).validate(document)
    plan = plan_from_document(document)
    (loss,) = [claim.loss for claim in plan.releases[0].claims]
    assert loss.continuous
    assert loss == GDP("0.5")
    assert repr(loss) == "GDP(mu=0.5, continuous=True)"
    assert loss.to_dict() == {"notion": "gdp", "mu": 0.5, "continuous": True}
    assert shown_loss(loss) == shown_loss(GDP("0.5"))
    again = plan_from_document(plan_to_document(plan))
    assert again.releases[0].loss.continuous
    document["releases"][0]["loss"]["continuous"] = "yes"
    with pytest.raises(PlanError, match=r"continuous .* must be true or false"):
        plan_from_document(document)
    document["releases"][0]["loss"]["continuous"] = False
    assert not plan_from_document(document).releases[0].loss.continuous
