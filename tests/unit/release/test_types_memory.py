"""Columns in memory: no cell ends a run, and other types are refused in a sentence."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.release.engine import run_jobs
from undertow.release.job import Bounding, Job
from undertow.release.source import open_source


def objects(*cells) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(list(cells), dtype=object)})


def cells(table) -> list:
    with open_source(table) as source:
        return source.execute(source.table)["x"].to_pylist()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            ("a", "\ud800", "é", None, "", float("nan")),
            ["a", None, "é", None, "", None],
        ),
        ((1, 2**63, -(2**63), 2**70), [1, None, -(2**63), None]),
        ((1, pd.NA, 2**64, np.int64(5)), [1, None, None, 5]),
    ],
    ids=["text", "whole", "whole and missing"],
)
def test_a_cell_that_does_not_fit_is_missing(given, found):
    assert cells(objects(*given)) == found


def test_other_columns_are_as_they_were():
    table = objects("a", "\ud800").assign(n=[1, 2], day=pd.to_datetime(["2026"] * 2))
    with open_source(table) as source:
        kinds = [str(kind) for kind in source.table.schema().types]
    assert kinds == ["string", "int64", "timestamp(6)"]


@pytest.mark.parametrize(
    "table",
    [
        objects(1, "a"),
        objects(True, 1),
        objects(object(), object()),
        objects(Decimal("1.5"), Decimal("Infinity")),
        pd.DataFrame({"x": [1j, 2j]}),
    ],
    ids=["text and number", "truth", "objects", "infinite decimal", "complex"],
)
def test_a_mixed_column_is_refused_by_its_name(table):
    with pytest.raises(PlanError) as refusal:
        open_source(table)
    assert "column 'x' of the pandas table must hold" in str(refusal.value)
    assert refusal.value.__context__ is None  # which would say what could not be read


@pytest.mark.parametrize(
    ("table", "family"),
    [
        (pa.table({"x": pa.array([1], pa.decimal256(50, 0))}), "decimal256"),
        (pa.table({"x": pa.array([100], pa.decimal128(5, -2))}), "decimal128"),
        (pd.DataFrame({"x": np.array([1.5], dtype="float16")}), "halffloat"),
        (objects(Decimal("1.5"), Decimal("1e-60")), "decimal256"),
    ],
    ids=["wide", "negative scale", "half", "object"],
)
def test_a_type_that_duckdb_does_not_read_is_refused_by_its_name(table, family):
    sentence = f"column 'x' must be of a type that DuckDB reads, got {family};"
    with pytest.raises(PlanError, match=re.escape(sentence)):
        open_source(table)


def test_a_polars_type_that_arrow_has_not_is_refused():
    table = pl.DataFrame({"x": pl.Series([1, 2**100], dtype=pl.Int128)})
    with pytest.raises(PlanError, match="Polars table must be of types that Arrow has"):
        open_source(table)


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
