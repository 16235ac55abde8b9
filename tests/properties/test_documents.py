"""Any plan a document can hold comes back equal, through JSON and through TOML."""

from __future__ import annotations

import json
import tomllib

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from support.command import to_toml
from undertow.composition import plan_from_document, plan_schema, plan_to_document

VALIDATOR = jsonschema.Draft202012Validator(plan_schema())
LABELS = st.one_of(
    st.integers(-5, 50), st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
)
PARAMETERS = st.one_of(
    st.fractions(min_value=0, max_value=100).map(str),
    st.decimals(0, 10, places=6).map(str),
    st.integers(0, 9),
    st.floats(0, 10),
    st.just("inf"),
)
DELTAS = st.fractions(min_value=0, max_value=1).map(str)
LOSSES = st.one_of(
    PARAMETERS.map(ut.Pure),
    st.builds(ut.Approx, PARAMETERS, DELTAS),
    PARAMETERS.map(ut.ZCDP),
    PARAMETERS.map(ut.GDP),
    PARAMETERS.map(ut.GDP.from_square),
)
UNITS = st.sampled_from(
    [
        ut.Bounded(),
        ut.Unbounded(),
        ut.Edit(),
        ut.WEvent(3, single_user=True),
        ut.LTrajectory(4, periodic=True),
        ut.User(add_remove=True, max_times=2),
        ut.Group(ut.Event(), 3),
        ut.Edge(),
    ]
)


@st.composite
def tables(draw):
    cells = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
    multi = draw(st.booleans())
    cap = {"max_cells": draw(st.integers(1, 3))} if multi else {}
    size = draw(st.sampled_from([{}, {"size": 0}, {"size": 3}, {"max_size": 5}]))
    domain = ut.Table(cells, multi=multi, cell=draw(st.text(min_size=1)), **cap, **size)
    view = st.one_of(
        st.just(ut.Identity()),
        st.builds(
            lambda chosen, what: ut.Select(*chosen, statistic=what),
            st.lists(st.sampled_from(cells), min_size=1),
            st.sampled_from(["records", "count"]),
        ),
    )
    return domain, view


@st.composite
def streams(draw):
    users, times = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    values = draw(st.none() | st.lists(LABELS, min_size=1, max_size=3, unique=True))
    domain = ut.Stream(users, times, regular=draw(st.booleans()), values=values)
    moments, people = st.integers(0, times - 1), st.integers(0, users - 1)
    view = st.one_of(
        moments.map(ut.At),
        st.lists(moments, min_size=1).map(ut.Times),
        st.lists(people, min_size=1).map(ut.Users),
        moments.flatmap(
            lambda start: st.integers(1, times - start).map(
                lambda length: ut.Window(start, length)
            )
        ),
    )
    return domain, view


@st.composite
def graphs(draw):
    vertices = draw(st.integers(2, 9))
    domain = ut.Graph(vertices, max_degree=draw(st.none() | st.integers(0, 9)))
    vertex = st.integers(0, vertices - 1)
    pair = st.lists(vertex, min_size=2, max_size=2, unique=True).map(tuple)
    view = st.one_of(
        vertex.map(ut.Degree),
        vertex.map(ut.IncidentEdges),
        st.lists(pair, min_size=1).map(ut.VertexPairs),
        st.integers(3, 6).map(ut.CliqueCount),
    )
    return domain, view


@st.composite
def rows(draw):
    ids = draw(st.integers(1, 9) | st.lists(LABELS, min_size=1, unique=True))
    domain = ut.Rows(ids, free_ids=draw(st.booleans()))
    block = st.integers(0, 2)
    view = st.one_of(
        st.lists(st.sampled_from(list(domain.ids)), min_size=1).map(ut.Ids),
        st.builds(ut.RandomBlock, block, st.just(3), st.text(max_size=3)),
        st.builds(ut.RowPosition, block, st.just(3)),
        st.builds(ut.SortedPosition, block, st.just(3)),
    )
    return domain, view


@st.composite
def plans(draw):
    domain, views = draw(st.one_of(tables(), streams(), graphs(), rows()))
    claims = st.lists(
        st.builds(ut.Claim, LOSSES, UNITS, st.sampled_from(["view", "common"])),
        min_size=1,
        max_size=3,
    )
    releases = draw(
        st.lists(
            st.tuples(st.text(min_size=1, max_size=5), claims, views),
            min_size=1,
            max_size=4,
        )
    )
    return ut.Plan(
        domain,
        [ut.Release.with_claims(name, c, view=view) for name, c, view in releases],
    )


@given(plans())
def test_a_plan_comes_back_equal_through_json(plan):
    text = json.dumps(plan_to_document(plan), allow_nan=False)
    again = plan_from_document(json.loads(text))
    assert again.domain == plan.domain
    assert again.releases == plan.releases
    assert plan_to_document(again) == plan_to_document(plan)


@given(plans())
def test_what_is_written_is_valid_by_the_published_schema(plan):
    VALIDATOR.validate(plan_to_document(plan))


@given(plans())
def test_a_plan_comes_back_equal_through_toml(plan):
    document = plan_to_document(plan)
    text = "".join(f"{key} = {to_toml(value)}\n" for key, value in document.items())
    again = plan_from_document(tomllib.loads(text))
    assert again.domain == plan.domain
    assert again.releases == plan.releases
