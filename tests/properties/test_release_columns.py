"""No cell of any type, in any role, moves any statistic further than claimed.

Tables of random types are written in every form; a row, or the rows of a unit, are
added, removed and replaced. Groups that are discovered are compared one by one.
"""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.release_plans import release_plan
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

KEY = bytes(range(32))
START = 1_767_225_600  # 2026 in seconds
FLOATS = [0.5, 2.0, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, 5e-324, 0.1]
FLOATS += [-1e308, 2.0**53, 2.0**63]
TEXTS = ["A", "a", "", " ", "\0", "\x1f", "A\0B", "y" * 40_000, "é", "e\u0301", "ß"]
DAYS = [0, -1, 20_454, 2**31 - 1, -(2**31), 2_932_896, 2_932_897, -719_162, -719_163]
TENTHS = ["0.1", "-0.9", "1e-38"]


def ticks(unit: int, *, far: bool = True) -> list[int]:
    some = [0, START * unit, START * unit - 1, -(2**62), 2**63 - 1, 1 - 2**63]
    return [*some, 2**62] if far else some[:3]


TYPES: dict[str, tuple[Any, list[Any], str]] = {
    "float": (pa.float32(), [0.5, math.nan, math.inf, -0.0, 3e38, 1e-45], "number"),
    "double": (pa.float64(), FLOATS, "number"),
    "int8": (pa.int8(), [-128, 127, 0, 1], "whole"),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1, 0, 1], "whole"),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, 1], "whole"),
    "uint8": (pa.uint8(), [0, 255, 1], "whole"),
    "uint32": (pa.uint32(), [0, 2**32 - 1, 1], "whole"),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 2**63, 2**53 + 1, 1], "whole"),
    "decimal(4, 2)": (
        pa.decimal128(4, 2),
        list(map(Decimal, ["99.99", "-99.99", "0.01"])),
        "number",
    ),
    "decimal(38, 38)": (pa.decimal128(38, 38), list(map(Decimal, TENTHS)), "number"),
    "decimal(38, 0)": (
        pa.decimal128(38, 0),
        [Decimal(10**37), Decimal(-(10**37)), Decimal(2**63), Decimal(1)],
        "number",
    ),
    "date": (pa.date32(), DAYS, "day"),
    "seconds": (pa.timestamp("s"), ticks(1), "time"),
    "milliseconds": (pa.timestamp("ms"), ticks(1000), "time"),
    "microseconds": (pa.timestamp("us"), ticks(10**6), "time"),
    "nanoseconds": (pa.timestamp("ns"), ticks(10**9, far=False), "time"),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), ticks(10**6), "time"),
    "bool": (pa.bool_(), [True, False], "truth"),
    "text": (pa.string(), TEXTS, "text"),
    "large text": (pa.large_string(), TEXTS, "text"),
    "words": (pa.dictionary(pa.int32(), pa.string()), TEXTS, "text"),
    "coded whole": (
        pa.dictionary(pa.int32(), pa.int64()),
        [1, 2, 2**53 + 1, -(2**63)],
        "whole",
    ),
    "coded double": (pa.dictionary(pa.int32(), pa.float64()), FLOATS, "number"),
}
WHERE = {
    "number": [
        *["x * x > 2", "floor(x) = 0", "x is null", "x >= 0 or x < 0", "abs(x) < 3"],
        *["-x < 1", "x / x = 1", "x between 0 and 1", "x in (0, 2)", "not x > 1"],
    ],
    "whole": ["x % 7 = 1", "x + x > 0", "x * x > 2", "x / 3 > 1", f"x = {2**53 + 1}"],
    "day": ["year(x) = 2026", "x > date('2000-01-01')", "weekday(x) = 0"],
    "time": [
        *["hour(x) = 0", "date(x) = date('2026-01-01')", "year(x) > 2000"],
        *["x < timestamp('2026-01-01T00:00:00')", "x is null", "minute(x) = 59"],
    ],
    "truth": ["x", "not x", "x is null"],
    "text": ["x = 'A'", "lower(x) = 'a'", "length(x) > 1", "x != 'a'", "x is null"],
}
GROUPED = {
    "whole": [0, 1, 127, 2**53 + 1, 2**63 - 1, -(2**63)],
    "day": "1969-12-31..1970-01-02",
    "truth": [True, False],
    "text": ["A", "a", "", "é"],
}
ENDS = [(0, 1), ("0.1", "0.7"), (-3, 2), (2**49, 2**49 + 2), ("0.001", "0.0010001")]


def column(kind: str, cells: list[Any]) -> pa.Array:
    stored = TYPES[kind][0]
    if pa.types.is_timestamp(stored):
        return pa.array(cells, pa.int64()).view(stored)
    if pa.types.is_date(stored):
        return pa.array(cells, pa.int32()).view(stored)
    if pa.types.is_dictionary(stored):
        return pa.array(cells, stored.value_type).dictionary_encode()
    return pa.array(cells, stored)


def written(form: str, kind: str, rows: list[Any], folder: Path) -> Any:
    who, cells = ([row[at] for row in rows] for at in (0, 1))
    table = pa.table({"who": pa.array(who, pa.string()), "x": column(kind, cells)})
    if form == "arrow":
        return pa.concat_tables([table.slice(0, 2), table.slice(2)])
    if form == "pandas":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if form == "polars":
        return pl.from_arrow(table)
    folder.mkdir()
    if form == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as link:
            link.register("given", table)
            link.execute("CREATE TABLE t AS SELECT * FROM given")
        return folder / "t.duckdb"
    if form == "parquet":
        pq.write_table(table, folder / "a.parquet", row_group_size=100)
        return folder / "a.parquet"
    pq.write_table(table.slice(0, 1), folder / "a.parquet", use_dictionary=False)
    pq.write_table(table.slice(1), folder / "b.parquet", row_group_size=2)
    return str(folder / "*.parquet")


def query(rng: Random, kind: str, at: int) -> dict[str, Any]:
    """Return a random query about the column, of the statistics that it has."""
    family = TYPES[kind][2]
    numeric = family in ("number", "whole", "truth")
    values = ["sum", "mean", "variance", "quantile", "histogram"] if numeric else []
    select = rng.choice(["count", *values])
    found: dict[str, Any] = {"name": f"{select} {at}", "select": select}
    if select != "count":
        low, high = rng.choice(ENDS)
        found |= {"column": "x", "low": low, "high": high}
    if select == "quantile":
        found["candidates"] = 5
    if select == "histogram":
        found["bins"] = 3
    if rng.random() < 0.7:
        found["where"] = rng.choice(WHERE[family])
    if family in GROUPED and rng.random() < 0.6:
        found |= {"by": ["x"], "keys": {"x": GROUPED[family]}}
        if select == "count" and rng.random() < 0.5:
            found["keys"] = "discover"
    return found


def numbers(plan: Any, table: Any) -> list[dict[Any, int]]:
    """Return the numbers before the noise by cell, of each query."""
    with open_source(table, threads=1) as source:
        found = run_jobs(
            source,
            [task.job for task in plan.tasks],
            bounding=plan.bounding,
            key=KEY,
        )
    cells = []
    for asked, one in zip(plan.queries, found, strict=True):
        rows = asked.encoding.vector(one).ravel().tolist()
        names = one.cells if len(rows) == len(one.cells) else range(len(rows))
        cells.append(dict(zip(names, map(int, rows), strict=True)))
    return cells


def assert_near(plan: Any, mine: Any, theirs: Any, *, swapped: bool) -> None:
    for asked, one, two in zip(plan.queries, mine, theirs, strict=True):
        moves = [abs(one.get(k, 0) - two.get(k, 0)) for k in {*one, *two}]
        reach = asked.share.need.reach
        assert sum(moves) <= (reach.swap_total if swapped else reach.total), asked.name
        square = reach.swap_square if swapped else reach.square
        assert sum(move**2 for move in moves) <= square, asked.name


FORMS = ["arrow", "duckdb", "files", "pandas", "parquet", "polars"]
QUICK = [("double", "parquet"), ("coded double", "files"), ("uint64", "duckdb")]
CASES = [
    pytest.param(kind, form, marks=() if (kind, form) in QUICK else pytest.mark.slow)
    for kind in TYPES
    for form in FORMS
]


@pytest.mark.parametrize(("kind", "form"), CASES)
def test_no_cell_moves_any_statistic_further_than_claimed_or_ends_the_run(
    kind, form, tmp_path
):
    rng, cells = Random(f"{kind} {form}"), [*TYPES[kind][1], None]
    if kind == "seconds" and form in ("files", "parquet"):
        cells = [cell for cell in cells if abs(cell or 0) < 2**53]  # in milliseconds
    for number in range(3):
        unit = rng.choice([None, None, "who"])
        source = {"table": "t.csv", **({"unit": unit} if unit else {"per": "event"})}
        promise = {"epsilon": 1, "delta": "1e-6"}
        plan = release_plan(
            promise | {"granularity": "user" if unit else "event"},
            [query(rng, kind, at) for at in range(4)],
            bounds={"rows_per_unit": 2} if unit else {},
            source=source,
        )
        base = [(rng.choice("pq"), rng.choice(cells)) for _ in range(rng.randrange(6))]
        most, found = 4 if unit else 1, []
        for some in range(3):
            rows = list(base)
            for _ in range(rng.randint(1, most) if some else 0):
                rows.insert(rng.randint(0, len(rows)), ("x", rng.choice(cells)))
            folder = tmp_path / f"{number}-{some}"
            found.append(numbers(plan, written(form, kind, rows, folder)))
        without, mine, theirs = found
        assert_near(plan, mine, without, swapped=False)
        assert_near(plan, theirs, without, swapped=False)
        assert_near(plan, mine, theirs, swapped=True)
