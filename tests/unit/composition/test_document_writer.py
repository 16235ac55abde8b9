"""Writing documents: what reads back equal, and what is refused."""

from __future__ import annotations

import json

import pytest

import undertow as ut
from support.documents import VALID, valid
from undertow.composition import (
    domain_to_document,
    plan_from_document,
    plan_to_document,
    release_to_document,
)
from undertow.errors import PlanError
from undertow.spaces import Cells, FunctionMetric, LpNorm


@pytest.mark.parametrize("name", VALID)
def test_a_plan_reads_back_equal(name):
    plan = plan_from_document(valid(name))
    text = json.dumps(plan_to_document(plan), allow_nan=False)
    again = plan_from_document(json.loads(text))
    assert again.domain == plan.domain
    assert again.releases == plan.releases


DOMAINS = [
    ut.Table(),
    ut.Table(("a", 1, "1")),
    ut.Table(("a", "b"), size=0),
    ut.Table(("a", "b"), max_size=0, cell="zone"),
    ut.Table(("a", "b"), multi=True, max_cells=1, values_per_cell=3),
    ut.Table(("a", "b"), cell="d", attributes=("d", "age")),
    ut.Table(("a", "b"), cell="d", attributes={"age": (1, 2), "d": ("b", "a")}),
    ut.Table(attributes=("x", "y")),
    ut.Rows(0),
    ut.Rows(3, free_ids=True),
    ut.Rows(("x", 7), values=("u", "v")),
    ut.Rows(2, attributes={"x": (1, 2), "y": ("p", "q")}),
    ut.Stream(2, 3),
    ut.Stream(2, 3, regular=True, values=(1, 2)),
    ut.Stream(2, 3, clusters={"a": "k", "b": 2}),
    ut.Stream(2, 3, values=("b", "a"), clusters={"a": "k", "b": "k"}),
    ut.Graph(4),
    ut.Graph(4, max_degree=0),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_domain_reads_back_equal(domain):
    document = {
        "domain": json.loads(json.dumps(domain_to_document(domain))),
        "releases": valid("no view")["releases"],
    }
    assert plan_from_document(document).domain == domain


@pytest.mark.parametrize(
    "domain",
    [
        ut.FiniteDomain((1, 2)),
        ut.Table((("a", 1), ("b", 2))),
        ut.Table((True, "x")),
        ut.Table((0.5, "x")),
        ut.Table(attributes={"a": (1, 2), "b": None}),
        ut.Stream(2, 2, clusters={1: "k", "b": "k"}),
        ut.Rows(2, values=((1, 2), (3, 4))),
    ],
    ids=repr,
)
def test_a_domain_that_would_read_back_otherwise_is_refused(domain):
    with pytest.raises(PlanError):
        domain_to_document(domain)


def release(view=None, unit=None, loss=None):
    return ut.Release(
        "r",
        ut.Pure(1) if loss is None else loss,
        unit=ut.Bounded() if unit is None else unit,
        view=ut.Identity() if view is None else view,
        setting="view",
    )


@pytest.mark.parametrize(
    ("loss", "written"),
    [
        (ut.Pure("1/3"), {"epsilon": "1/3"}),
        (ut.Pure("inf"), {"epsilon": "inf"}),
        (ut.Approx(1, "1e-5"), {"epsilon": "1", "delta": "1/100000"}),
        (ut.ZCDP("0.5"), {"rho": "1/2"}),
        (ut.GDP("1.5"), {"mu": "3/2"}),
        (ut.GDP("inf"), {"mu": "inf"}),
        (ut.GDP.from_square(2), {"mu_squared": "2"}),
    ],
)
def test_losses_are_written_exactly(loss, written):
    (claim,) = release_to_document(release(loss=loss))["claims"]
    assert claim["loss"] == written


@pytest.mark.parametrize(
    "view",
    [
        Cells([0], [1]),
        ut.Clip(0, 1),
        ut.Select(("a", 1)),
        ut.Chain(ut.Identity(), ut.Identity()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_views_that_exist_only_as_code_are_refused(view):
    with pytest.raises(PlanError, match="view of release 'r'"):
        release_to_document(release(view=view))


@pytest.mark.parametrize(
    "unit",
    [
        ut.Relation("step", lambda a, b: True),
        ut.Relation("event", lambda a, b: True),
        FunctionMetric("user", lambda a, b: 0.0),
        ut.Group(ut.Relation("bounded", lambda a, b: True), 2),
        LpNorm(3),
    ],
    ids=lambda u: u.name,
)
def test_units_that_exist_only_as_code_are_refused_even_under_a_known_name(unit):
    with pytest.raises(PlanError, match="unit must be one a document can hold"):
        release_to_document(release(unit=unit))
