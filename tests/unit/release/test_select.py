"""What is true of the kinds of queries, and of their encodings."""

from fractions import Fraction
from typing import get_args

import pytest

from undertow.errors import PlanError
from undertow.release.document._select import FIELDS, KINDS, Select
from undertow.release.document.release_document import release_from_mapping
from undertow.release.plan.planned_release import plan_release

STATED = {
    "column": "v",
    "low": 0,
    "high": 8,
    "bins": 4,
    "quantiles": [0.5],
    "candidates": 9,
}


def planned(select, **fields):
    kind = KINDS[select]
    stated = {name: STATED[name] for name in sorted(kind.fields)} | fields
    whole = {
        "source": {"table": "t.csv", "unit": "person"},
        "promise": {"epsilon": 1},
        "bounds": {"rows_per_unit": 2},
        "queries": [{"name": "q", "select": select, **stated}],
    }
    (query,) = plan_release(release_from_mapping(whole)).queries
    return query


def test_every_kind_that_can_be_asked_for_is_described():
    assert tuple(KINDS) == get_args(Select)
    assert frozenset(STATED) == FIELDS


@pytest.mark.parametrize("select", KINDS)
def test_a_kind_has_its_fields_and_no_others(select):
    assert planned(select).kind is KINDS[select]
    for name in sorted(FIELDS - KINDS[select].fields):
        with pytest.raises(PlanError, match=f"{name} must be left out of a {select}"):
            planned(select, **{name: STATED[name]})


@pytest.mark.parametrize("select", KINDS)
def test_what_a_kind_says_is_what_its_encoding_does(select):
    query, kind = planned(select), KINDS[select]
    _, unit = query.encoding.half_width(query.share.noise, 0.05)
    assert (kind.counts is not None) == (unit == kind.counts)
    assert kind.averaged == unit.endswith("divided by the rows of the cell")
    assert kind.ranked == (unit == "rows of rank")
    assert kind.binned == (query.encoding.label_columns == ("from", "to"))


@pytest.mark.parametrize(
    ("select", "most"),
    [
        ("count", 3),
        ("count_distinct", 3),
        ("histogram", 3),
        ("quantile", 3),
        ("sum", 24),
        ("mean", 24),
        ("variance", 48),
    ],
)
def test_a_group_shows_at_most_what_its_rows_can(select, most):
    assert planned(select).encoding.largest(3) == most


def test_a_sum_shows_its_end_that_is_farther_from_zero():
    assert planned("sum", low=-20).encoding.largest(3) == 60


@pytest.mark.parametrize(("select", "power"), [("sum", 1), ("mean", 1)])
def test_a_whole_number_of_noise_stands_for_a_step(select, power):
    query = planned(select)
    assert query.step == query.job.value.step**power


def test_a_whole_number_in_a_variance_stands_for_a_square():
    query = planned("variance")
    assert query.step == query.job.value.step**2


@pytest.mark.parametrize("select", ["count", "count_distinct", "histogram", "quantile"])
def test_a_whole_number_in_a_count_stands_for_one(select):
    assert planned(select).step == Fraction(1)


def test_tables_of_rows_alone_add_up():
    assert [name for name in KINDS if planned(name).encoding.is_table] == ["count"]
