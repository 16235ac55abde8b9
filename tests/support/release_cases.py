"""Random tables and release jobs, and how the tables reach each engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from support.release_oracle import Column, Row
from undertow.release.engine.job import Bounding, Grid, Job, Slice, Value
from undertow.release.language.expression import parse_expression
from undertow.release.language.meaning import Kind

__all__ = ["COLUMNS", "DERIVED", "Case", "arrow_table", "cases", "fill_postgres"]

COLUMNS = {
    "person": Column(Kind.WHOLE, "bigint"),
    "zone": Column(Kind.TEXT, "text"),
    "n": Column(Kind.WHOLE, "bigint"),
    "amount": Column(Kind.NUMBER, "numeric(18, 6)", 6),
    "x": Column(Kind.NUMBER, "double precision"),
    "ts": Column(Kind.TIME, "timestamptz"),
    "naive": Column(Kind.TIME, "timestamp"),
    "day": Column(Kind.DATE, "date"),
    "flag": Column(Kind.BOOLEAN, "boolean"),
}
ARROW = {
    "person": pa.int64(),
    "zone": pa.string(),
    "n": pa.int64(),
    "amount": pa.decimal128(18, 6),
    "x": pa.float64(),
    "ts": pa.timestamp("us", "UTC"),
    "naive": pa.timestamp("us"),
    "day": pa.date32(),
    "flag": pa.bool_(),
}
DERIVED = {
    "hour": parse_expression("hour(ts)"),
    "weekday": parse_expression("weekday(naive)"),
    "date": parse_expression("date(ts)"),
    "shout": parse_expression("upper(zone)"),
    "third": parse_expression("n % 3"),
}
ZONES = ("A", "a", "Zürich", "東京", "", "\u00e9", "e\u0301", "o'h", "b\\s", "\ue000")
START = datetime(2026, 1, 1, tzinfo=UTC)
EXTREMES = (0, 1, 5, -3, 2**63 - 1, -(2**63))
AMOUNTS = ("0.000", "1.005", "-2.500", "0.125", "99999999999.999999", "-31.415")
REALS = (math.nan, math.inf, -math.inf, 0.1, -0.0, 1e300, 2.5, 1 / 3, -7.25, 5e-324)


def random_rows(seed: int) -> list[Row]:
    """Return 0 to 60 rows with missing values and duplicates."""
    draw = Random(seed)

    def moment() -> datetime:
        if draw.random() < 0.05:
            return datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        shift = draw.choice([0, 1, 59_999_999, 3_600_000_000, 86_399_999_999])
        when = START + timedelta(days=draw.choice([-1, 0, 0, 0, 1]), microseconds=shift)
        return when.astimezone(draw.choice([UTC, timezone(timedelta(hours=5.5))]))

    def row() -> Row:
        found = {
            "person": draw.choice([1, 2, 3, 2**63 - 1]),
            "zone": draw.choice(ZONES),
            "n": draw.choice([*EXTREMES, *range(10)]),
            "amount": Decimal(draw.choice(AMOUNTS)),
            "x": draw.choice(REALS),
            "ts": moment(),
            "naive": _naive(moment().astimezone(UTC)),
            "day": draw.choice([date(2026, 1, 1), date(1960, 2, 29)]),
            "flag": draw.random() < 0.7,
        }
        return {name: v if draw.random() < 0.9 else None for name, v in found.items()}

    several = [row() for _ in range(draw.choice([0, 5, 20, 40]))]
    return several + draw.choices(several, k=len(several) // 2) if several else []


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


KEYS: dict[str, tuple[Any, ...]] = {
    "hour": tuple(range(24)),
    "weekday": (0, 2, 3, 6),
    "date": tuple(date(2025, 12, 30) + timedelta(days=i) for i in range(5)),
    "shout": ("A", "ZÜRICH", "ZüRICH", "東京", "absent"),
    "third": (0, 1, 2),
    "zone": (*ZONES, "absent"),
    "n": (*EXTREMES, 7),
    "day": (date(1960, 2, 29), date(2026, 1, 1), date(2026, 1, 2)),
    "flag": (False, True),
}
WHERE = (
    "n > 0",
    "zone != 'A' or x < 1",
    "flag",
    "amount between -3 and 1.005",
    "hour in (0, 23) and person is not null",
)
VALUES = (
    Value("n", Fraction(-10), Fraction(10), -4),
    Value("n", Fraction(1, 3), Fraction(37, 10), -2),
    Value("n", Fraction(-(2**63)), Fraction(2**63 - 1), 44),
    Value("amount", Fraction(-40), Fraction(100), -10),
    Value("amount", Fraction(1, 3), Fraction(2), -3),
    Value("x", Fraction(-1), Fraction(10), -20),
    Value("x", Fraction(1, 10), Fraction(3, 10), -30),
    Value("third", Fraction(0), Fraction(2), 0),
)
BINS = (
    ("n", (Fraction(-5), Fraction(0), Fraction(1), Fraction(9, 2), Fraction(10**20))),
    ("amount", (Fraction(-100), Fraction(0), Fraction(1, 3), Fraction(2))),
    ("x", (Fraction(-1), Fraction(1, 10), Fraction(1, 3), Fraction(9))),
)


@st.composite
def jobs(draw: st.DrawFn, name: str) -> Job:
    by = tuple(draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=2, unique=True)))
    value = draw(st.none() | st.sampled_from(VALUES))
    column, bins = draw(st.sampled_from([(None, None), *BINS]))
    discovered = bool(by) and draw(st.integers(0, 3)) == 0
    measures = ("rows", "units") if value is None else ("rows", "sum", "squares")
    where = draw(st.none() | st.sampled_from(WHERE))
    bound = st.sampled_from([None, 2, 1, 3])
    return Job(
        name,
        ("rows", "units") if discovered else measures,
        where=None if where is None else parse_expression(where),
        by=by,
        grid=None if discovered else Grid(by, tuple(KEYS[column] for column in by)),
        value=None if discovered else value,
        bins=bins,
        bin_column=column,
        groups_per_unit=draw(bound),
        rows_per_group=draw(bound),
    )


@dataclass(frozen=True)
class Case:
    """A table and what is asked of it."""

    rows: list[Row]
    jobs: tuple[Job, ...]
    bounding: Bounding
    slice: Slice | None
    key: bytes

    def arguments(self) -> dict[str, Any]:
        return {
            "columns": DERIVED,
            "bounding": self.bounding,
            "slice": self.slice,
            "key": self.key,
        }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    asked = tuple(draw(jobs(f"query {i}")) for i in range(draw(st.integers(1, 3))))
    unit = draw(st.sampled_from(["person", "zone", None]))
    most = draw(st.sampled_from([3, 2, 5, 1, None]))
    window = draw(st.sampled_from([None, None, 3_600_000_000, 86_400_000_000]))
    time = draw(st.sampled_from(["ts", "naive"]))
    bounding = Bounding(unit, most, window, time if window is not None else None)
    start = draw(st.sampled_from([-(2**62), 0, 1_767_225_600_000_000]))
    part = draw(st.none() | st.just(Slice(time, start, 1_767_312_000_000_000)))
    key = draw(st.binary(min_size=16, max_size=16))
    rows = random_rows(draw(st.integers(0, 2**32 - 1)))
    return Case(rows, asked, bounding, part, key)


def arrow_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema(ARROW))


def fill_postgres(connection: Any, rows: Sequence[Row], name: str = "visits") -> None:
    columns = ", ".join(f'"{c}" {column.postgres}' for c, column in COLUMNS.items())
    connection.execute(f'DROP TABLE IF EXISTS "{name}"'.encode())
    connection.execute(f'CREATE TABLE "{name}" ({columns})'.encode())
    marks = ", ".join(["%s"] * len(COLUMNS))
    with connection.cursor() as cursor:
        insert = f'INSERT INTO "{name}" VALUES ({marks})'.encode()
        cursor.executemany(insert, [tuple(row[c] for c in COLUMNS) for row in rows])
