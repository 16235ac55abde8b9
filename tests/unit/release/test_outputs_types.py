"""Columns have the types that the query and the table state, rows or not."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release_plans import HOURS, count_aggregates, release_plan
from undertow.mechanisms import SimulatedSource
from undertow.release.engine.job import Aggregates
from undertow.release.plan.answer import column_types
from undertow.release.run._folder import table_bytes

VALUE = {"column": "v", "low": 0, "high": 2}
ARROW = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "null": pa.null(),
    "number": pa.float64(),
    "string": pa.string(),
}


def written(columns, rows, types=None):
    content = table_bytes(columns, rows, kind="parquet", types=types)
    return pq.read_table(io.BytesIO(content))


def answered(query, *, promise=None, **parts):
    plan = release_plan(promise or {"epsilon": 1}, [query], **parts)
    given = [count_aggregates(task.job, 7) for task in plan.tasks]
    (answer,) = plan.answer(given, source=SimulatedSource(2))
    return answer


def test_a_table_without_rows_keeps_the_types_it_states():
    kinds = list(ARROW)
    table = written(kinds, [], kinds)
    assert table.schema.types == list(ARROW.values())
    assert table.num_rows == 0


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ({"select": "count", **HOURS}, ["integer"] * 4),
        ({"select": "count_distinct", **HOURS}, ["integer"] * 4),
        (
            {"select": "count", "by": ["z"], "keys": {"z": ["a", "b"]}},
            ["string", *["integer"] * 3],
        ),
        (
            {"select": "count", "by": ["d"], "keys": {"d": "2026-01-01..2026-01-03"}},
            ["string", *["integer"] * 3],
        ),
        (
            {"select": "count", "by": ["b"], "keys": {"b": [True, False]}},
            ["boolean", *["integer"] * 3],
        ),
        ({"select": "sum", **VALUE}, ["number"] * 3),
        ({"select": "sum", **VALUE, "high": 2**33}, ["integer"] * 3),
        (
            {"select": "sum", **VALUE, "consistent": ["integer"]},
            ["integer", "number", "number"],
        ),
        ({"select": "mean", **VALUE}, ["number"] * 3),
        ({"select": "variance", **VALUE}, ["number"] * 3),
        ({"select": "histogram", **VALUE, "bins": 2}, ["integer"] * 5),
        (
            {"select": "histogram", **VALUE, "bins": 4},
            ["number", "number", *["integer"] * 3],
        ),
        ({"select": "quantile", **VALUE, "candidates": 5}, ["number"] * 4),
    ],
)
def test_an_answer_states_types_that_its_rows_have(query, types):
    answer = answered({"name": "q", **query})
    assert list(answer.types) == types
    stored = answer.to_dict()
    assert column_types(stored) == types
    table = written(stored["columns"], stored["rows"], stored["types"])
    assert table.schema.types == [ARROW[kind] for kind in types]
    assert [list(row.values()) for row in table.to_pylist()] == stored["rows"]
    empty = written(stored["columns"], [], stored["types"])
    assert empty.schema.types == table.schema.types


def test_an_answer_without_a_published_key_states_the_types_of_its_numbers():
    query = {"name": "d", "select": "count", "by": ["z"], "keys": "discover"}
    plan = release_plan({"epsilon": 1, "delta": "1e-6"}, [query])
    for cells in ((), ((3,),)):
        numbers = np.zeros(len(cells), dtype=np.int64)
        given = Aggregates(cells, {"rows": numbers, "units": numbers})
        (answer,) = plan.answer([given], source=SimulatedSource(1))
        assert answer.rows == []
        # The cells themselves are private: what they hold must not show.
        assert answer.types == ("null", "integer", "integer", "integer")


def test_types_are_widened_by_what_margins_made_of_the_numbers():
    answer = {"columns": ["estimate"], "types": ["integer"], "rows": [[1], [2.5]]}
    assert column_types(answer) == ["number"]
    assert written(["estimate"], answer["rows"], ["integer"])[
        "estimate"
    ].to_pylist() == [
        1.0,
        2.5,
    ]


def test_answers_of_earlier_versions_have_the_types_of_their_rows():
    answer = {"columns": ["k", "n"], "rows": [["a", 1], ["b", None]]}
    assert column_types(answer) == ["string", "integer"]
    assert column_types({**answer, "rows": []}) == ["null", "null"]
    assert column_types({**answer, "rows": [["a", 1], [2, 1]]}) == ["any", "integer"]


@pytest.mark.parametrize("size", [2**63 - 1, -(2**63), 2**70, 10**75, -(10**100)])
def test_whole_numbers_of_any_size_are_written_to_the_digit(size):
    found = written(["n"], [[size], [None], [3]])["n"].to_pylist()
    assert [None if n is None else int(n) for n in found] == [size, None, 3]


def test_a_column_of_several_types_is_text():
    found = written(["n"], [["a"], [1], [None]])["n"].to_pylist()
    assert found == ["a", "1", None]
