"""Columns in memory: no cell ends a run, and other types are refused in a sentence."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release import from_table
from undertow.release.engine.job import Bounding, Job, Value
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source


def objects(*cells) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(list(cells), dtype=object)})


def cells(table, **types) -> list:
    with open_source(table, types=types) as source:
        return source.execute(source.table)["x"].to_pylist()


def counted(table, where=None, **types) -> int:
    condition = None if where is None else parse_expression(where)
    with open_source(table, types=types) as source:
        [found] = run_jobs(source, [Job("c", ("rows",), where=condition)])
    return int(found.measures["rows"][0])


NOON = datetime(2026, 1, 1, 12)
MIXED = (
    None,
    float("nan"),
    float("inf"),
    -0.0,
    0.5,
    2.0,
    True,
    np.True_,
    7,
    np.int64(8),
    2**53 + 1,
    -(2**63),
    2**63,
    2**70,
    Decimal("1.5"),
    Decimal("Infinity"),
    "a",
    "\ud800",
    "",
    date(2026, 1, 2),
    NOON,
    NOON.replace(tzinfo=timezone(timedelta(hours=1))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    pd.Timestamp("2026-01-01T12:00:00.123456789"),
    pd.NaT,
    b"a",
    object(),
    [1],
)
READ = {
    "bool": {6: True, 7: True},
    "date": {19: date(2026, 1, 2)},
    "float": {
        2: float("inf"),
        3: -0.0,
        4: 0.5,
        5: 2.0,
        8: 7.0,
        9: 8.0,
        14: 1.5,
        15: float("inf"),
    },
    "int": {3: 0, 5: 2, 8: 7, 9: 8, 10: 2**53 + 1, 11: -(2**63)},
    "text": {16: "a", 18: ""},
    "timestamp": {
        20: NOON,
        21: NOON - timedelta(hours=1),
        23: NOON.replace(microsecond=123456),
    },
}


@pytest.mark.parametrize("kind", READ)
def test_a_cell_is_read_as_its_column_is_stated_whatever_is_in_others(kind):
    found = cells(objects(*MIXED), x=kind)
    assert {at: cell for at, cell in enumerate(found) if cell is not None} == READ[kind]
    alone = [cells(objects(cell), x=kind)[0] for cell in MIXED]
    assert alone == found


def test_one_cell_does_not_decide_what_whole_numbers_are():
    many = [2**53 + 1] * 1000
    where = f"v = {2**53}"
    for more in ([], [0.5]):
        table = pd.DataFrame({"v": pd.Series(many + more, dtype=object)})
        assert counted(table, where, v="int") == 0
        with pytest.raises(PlanError, match="'v' of the pandas table must have a type"):
            counted(table, where)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "\ud800", "é", None, ""], dtype=pd.StringDtype("python")),
        pd.Series(
            pd.Categorical.from_codes(
                [0, 1, 2, -1, 3],
                pd.Index(["a", "\ud800", "é", ""], dtype=pd.StringDtype("python")),
            )
        ),
    ],
    ids=["text", "category"],
)
def test_text_that_is_no_unicode_is_missing(column):
    assert cells(pd.DataFrame({"x": column})) == ["a", None, "é", None, ""]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "xx", "b", None]),
        pa.array(["a", "xx", "b", None], pa.large_string()),
        pa.array(["a", "xx", "b", None], pa.string_view()),
        pa.array(["a", "xx", "b", None]).dictionary_encode(),
        pa.array(["a", "a", "xx", "b", None]).dictionary_encode(),
    ],
    ids=["plain", "large", "view", "dictionary", "repeated"],
)
def test_arrow_text_that_is_no_utf_8_is_missing(column):
    # Arrow does not look: two letters become two bytes that are none.
    raw = column.dictionary if pa.types.is_dictionary(column.type) else column
    size = {"large_string": pa.large_binary()}.get(str(raw.type), pa.binary())
    broken = [b"\xff\xfe" if x == b"xx" else x for x in raw.cast(size).to_pylist()]
    if pa.types.is_string_view(raw.type):
        bad = pa.array(broken, pa.binary_view()).view(pa.string_view())
    else:
        bad = pa.Array.from_buffers(
            raw.type, len(raw), pa.array(broken, size).buffers()
        )
    if pa.types.is_dictionary(column.type):
        bad = pa.DictionaryArray.from_arrays(column.indices, bad, safe=False)
    wanted = [None if x == "xx" else x for x in column.to_pylist()]
    assert cells(pa.table({"x": bad})) == wanted
    job = Job("c", ("rows", "units"), by=("x",))
    with open_source(pa.table({"x": bad})) as source:
        [found] = run_jobs(source, [job])
    assert found.cells == (("a",), ("b",))


def test_numbers_of_a_category_stay_numbers():
    table = pd.DataFrame({"x": pd.Categorical([3, 5, 3])})
    assert cells(table) == [3, 5, 3]
    assert counted(table, "x > 4") == 1


def test_other_columns_are_as_they_were():
    table = objects("a", "\ud800").assign(n=[1, 2], day=pd.to_datetime(["2026"] * 2))
    with open_source(table, types={"x": "text"}) as source:
        kinds = [str(kind) for kind in source.table.schema().types]
    assert kinds == ["string", "int64", "timestamp(6)"]


UNTYPED = {
    "text and number": objects(1, "a"),
    "text": objects("a", "b"),
    "whole numbers": objects(1, 2),
    "nothing": objects(),
    "complex": pd.DataFrame({"x": [1j, 2j]}),
    "none complex": pd.DataFrame({"x": np.array([], dtype=complex)}),
    "period": pd.DataFrame({"x": pd.period_range("2026", periods=2)}),
    "sparse": pd.DataFrame({"x": pd.arrays.SparseArray([0, 1])}),
    "categories": pd.DataFrame({"x": pd.Categorical([1, "a"])}),
    "intervals": pd.DataFrame({"x": pd.cut(pd.Series([1, 2]), 2)}),
}


@pytest.mark.parametrize("name", UNTYPED)
def test_a_column_without_a_type_is_refused_by_its_name_where_it_is_used(name):
    table = UNTYPED[name].assign(y=1)
    assert counted(table) == counted(table, "y = 1") == len(table)
    with pytest.raises(PlanError) as refusal:
        counted(table, "x = 1")
    assert "column 'x' of the pandas table must" in str(refusal.value)
    assert "astype" in str(refusal.value)
    assert refusal.value.__context__ is None  # which would say what could not be read


@pytest.mark.parametrize(
    ("table", "types"),
    [
        (pd.DataFrame({"x": [1]}), {"x": "int"}),
        (pa.table({"x": [1]}), {"x": "int"}),
        (pl.DataFrame({"x": [1]}), {"x": "int"}),
        (objects(1), {"y": "int"}),
        (objects(1), {"x": "decimal"}),
        (ibis.memtable(pa.table({"x": [1]})), {"x": "int"}),
    ],
    ids=["pandas", "arrow", "polars", "absent", "unknown", "ibis"],
)
def test_a_type_that_cannot_be_stated_is_refused(table, types):
    with pytest.raises(PlanError, match="types must"):
        open_source(table, types=types)


def test_a_table_of_ibis_whose_types_are_those_of_its_cells_is_refused():
    with pytest.raises(PlanError, match="must have columns of types of their own"):
        open_source(ibis.memtable(objects(1, 2)))
    whole = pd.DataFrame({"x": [1, 2]})
    assert counted(ibis.memtable(whole, schema={"x": "int64"})) == 2


def test_a_release_states_the_types_of_a_table_in_memory(tmp_path):
    table = objects(*["a"] * 500).assign(who=range(500))
    release = {
        "source": {"unit": "who", "types": {"x": "text"}},
        "promise": {"granularity": "user", "epsilon": "1"},
        "bounds": {"rows_per_unit": 1},
        "queries": [
            {"name": "q", "select": "count", "by": ["x"], "keys": {"x": ["a"]}}
        ],
    }
    stated = from_table(table, release)
    stated.create_ledger(tmp_path / "t.ledger").close()
    done = stated.run(ledger=tmp_path / "t.ledger")
    [[key, number, *_]] = done.answers[0]["rows"]
    assert key == "a"
    assert abs(number - 500) < 100


@pytest.mark.parametrize(
    ("table", "family"),
    [
        (pa.table({"x": pa.array([1], pa.decimal256(50, 0))}), "decimal256"),
        (pa.table({"x": pa.array([100], pa.decimal128(5, -2))}), "decimal128"),
        (pd.DataFrame({"x": np.array([1.5], dtype="float16")}), "halffloat"),
    ],
    ids=["wide", "negative scale", "half"],
)
def test_a_type_that_duckdb_does_not_read_is_refused_by_its_name(table, family):
    sentence = f"column 'x' must be of a type that DuckDB reads, got {family};"
    with pytest.raises(PlanError, match=re.escape(sentence)):
        open_source(table)


def test_a_polars_type_that_arrow_has_not_is_refused():
    table = pl.DataFrame({"x": pl.Series([1, 2**100], dtype=pl.Int128)})
    with pytest.raises(PlanError, match="Polars table must be of types that Arrow has"):
        open_source(table)


def test_what_a_lazy_frame_fails_on_is_in_no_message():
    table = pl.LazyFrame({"x": ["1", "secret"]}).with_columns(
        pl.col("x").cast(pl.Int64)
    )
    with pytest.raises(EngineError, match="Polars must finish the query") as refusal:
        open_source(table)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "a", "b", None], pa.large_string()),
        pa.array(["a", "a", "b", None], pa.string_view()),
        pa.DictionaryArray.from_arrays([0, 1, 2, 3], ["a", "a", "b", None]),
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), ["a", "b"]),
        pl.Series(["a", "a", "b", None], dtype=pl.Enum(["b", "a"])).to_arrow(),
    ],
    ids=["large", "view", "dictionary", "runs", "enum"],
)
def test_text_is_bounded_however_it_is_kept(column):
    with open_source(pa.table({"x": column})) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows", "units"))], bounding=Bounding("x", 1)
        )
    assert found.measures["rows"].tolist() == [2]
    assert found.measures["units"].tolist() == [2]


def test_parts_of_nanosecond_times_are_read():
    stamps = np.array(["2026-02-01T00:30:00.000000001"], dtype="datetime64[ns]")
    table = pd.DataFrame({"person": [1], "ts": stamps})
    job = Job(
        "c", ("rows",), where=parse_expression("year(ts) = 2026 and month(ts) = 2")
    )
    with open_source(table) as source:
        [answer] = run_jobs(source, [job], bounding=Bounding("person", 1))
    assert answer.measures["rows"].tolist() == [1]


def test_unsigned_numbers_are_added_up():
    table = pa.table({"n": pa.array([0, 5, 2**64 - 1], type=pa.uint64())})
    value = Value("n", Fraction(0), Fraction(10), 0)
    with open_source(table) as source:
        [answer] = run_jobs(source, [Job("s", ("sum",), value=value)])
    assert answer.measures["sum"].tolist() == [15]
