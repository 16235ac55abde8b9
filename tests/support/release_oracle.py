"""Jobs in plain Python, row by row: what every engine must return."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from hashlib import md5, shake_256
from itertools import product
from typing import Any

from undertow.release.engine.job import Bounding, Job, Slice, Value
from undertow.release.language.expression import Expression
from undertow.release.language.meaning import Kind, evaluate

__all__ = ["Column", "oracle"]

P = 2**31 - 1
Row = dict[str, Any]


class Column:
    """A column of the random tables: its kind and the types engines give it."""

    def __init__(self, kind: Kind, postgres: str, places: int | None = None) -> None:
        self.kind, self.postgres, self.places = kind, postgres, places


def micros(value: Any) -> int:
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days * 86_400_000_000


def numbers(key: bytes, label: str) -> Iterable[int]:
    for counter in range(10**6):
        block = shake_256(key + f"|{label}|{counter}".encode()).digest(8)
        yield 1 + int.from_bytes(block, "big") % (P - 1)


def limbs(value: Any, key: bytes, places: int | None) -> list[int] | None:
    """The numbers of a value; None if it is too large to have any."""
    if isinstance(value, str):
        secret = shake_256(key + b"|text").hexdigest(16)
        digest = md5((secret + value).encode()).hexdigest()
        return [int(digest[:7], 16), int(digest[7:14], 16)]
    if isinstance(value, datetime):
        number = micros(value)
    elif isinstance(value, date):
        number = (value - date(1970, 1, 1)).days
    elif isinstance(value, int):
        number = int(value)
    elif isinstance(value, float):
        if not abs(value) < 2.0**42:
            return None
        number = math.floor(value * 2**20)
    else:
        if abs(value) >= 10**11:
            return None
        digits = min(6 if places is None else places, 6)
        unit = Decimal(1).scaleb(-digits)
        number = int(value.quantize(unit, rounding=ROUND_HALF_UP).scaleb(digits))
    number %= 2**64
    if isinstance(value, datetime):
        return [number % 2**31, number // 2**31 % 2**31]
    if isinstance(value, date):
        return [number % 2**31]
    return [number % 2**31, number // 2**31 % 2**31, number // 2**62]


def place(
    values: Sequence[Any], places: Sequence[int | None], key: bytes, label: str
) -> int:
    source = iter(numbers(key, label))
    h = next(source)
    for value, digits in zip(values, places, strict=True):
        missing, large, *factors = (next(source) for _ in range(5))
        if value is None:
            h += missing
            continue
        parts = limbs(value, key, digits)
        if parts is None:
            h += large
            continue
        h += sum(a * x for a, x in zip(factors, parts, strict=False)) % P
    return mixed(h, iter(numbers(key, f"{label}/mix")))


def mixed(h: int, source: Iterator[int]) -> int:
    b = [next(source) for _ in range(4)]
    return sum(c * h**i for i, c in enumerate(b)) % P


def place_of_copy(place: int, copy: int, key: bytes, label: str) -> int:
    if copy == 0:
        return place
    source = iter(numbers(key, f"{label}/copies"))
    c, d = next(source), next(source)
    return mixed((c * place + d * copy) % P, source)


def order(values: Sequence[Any], digits: Any, key: bytes, label: str) -> Any:
    ties = [v for v in values if isinstance(v, (float, Decimal))]
    return place(values, digits, key, label), [
        (math.isnan(v), 0 if math.isnan(v) else v) for v in ties
    ]


def coded(number: Any, value: Value) -> int | None:
    if number is None or (isinstance(number, float) and math.isnan(number)):
        return None
    if isinstance(number, float):
        low, high = float(value.low), float(value.high)
        scaled = (min(max(number, low), high) - low) * 2.0**-value.exponent
        return min(math.floor(scaled + 0.5), value.most)
    clipped = min(max(Fraction(number), value.low), value.high)
    return math.floor((clipped - value.low) / value.step + Fraction(1, 2))


def binned(number: Any, cuts: Sequence[Fraction]) -> int | None:
    if number is None or (isinstance(number, float) and math.isnan(number)):
        return None
    if isinstance(number, float) and math.isinf(number):
        return len(cuts) - 2 if number > 0 else 0
    return sum(Fraction(number) >= cut for cut in cuts[1:-1])


def first(
    rows: list[Row], most: int, within: Any, ordering: Any, key: bytes
) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[within(row)].append(row)
    kept = []
    for group in groups.values():
        seen: Counter[int] = Counter()
        placed = []
        for row in sorted(group, key=ordering):
            place, ties = ordering(row)
            moved = place_of_copy(place, seen[place], key, "rows")
            seen[place] += 1
            placed.append((moved, ties, row))
        placed.sort(key=lambda found: found[:2])
        kept += [row for _, _, row in placed[:most]]
    return kept


class oracle:  # noqa: N801
    """The measures of jobs on rows, for a given key."""

    def __init__(
        self,
        rows: Sequence[Row],
        columns: Mapping[str, Column],
        *,
        derived: Mapping[str, Expression],
        bounding: Bounding,
        slice: Slice | None,
        key: bytes,
    ) -> None:
        self.columns, self.derived, self.key = columns, derived, key
        self.bounding, self.slice, self.all = bounding, slice, list(rows)
        self.kinds = {name: column.kind for name, column in columns.items()}

    def value(self, row: Row, name: str) -> Any:
        if name not in self.derived:
            return row[name]
        expression = self.derived[name]
        return evaluate(expression, row, kinds=self.kinds, derived=self.derived)

    def used(self, jobs: Sequence[Job]) -> list[str]:
        names = {self.bounding.unit}
        names |= {self.bounding.time} if self.bounding.window_us is not None else set()
        for job in jobs:
            names |= {*job.by, job.bin_column}
            names |= {job.value.column} if job.value else set()
            names |= job.where.columns if job.where else set()
        for name in [n for n in names if n in self.derived]:
            names |= self.derived[name].columns
        return sorted(n for n in names if n is not None and n not in self.derived)

    def window(self, row: Row) -> int | None:
        if self.bounding.unit is None or self.bounding.window_us is None:
            return None
        return micros(row[self.bounding.time]) // self.bounding.window_us

    def kept(self, jobs: Sequence[Job]) -> list[Row]:
        rows, bounding, part = self.all, self.bounding, self.slice
        if part is not None:
            times = [(row, row[part.column]) for row in rows]
            rows = [
                row
                for row, time in times
                if time is not None and part.start <= micros(time) < part.stop
            ]
        if bounding.unit is None:
            return rows
        rows = [row for row in rows if row[bounding.unit] is not None]
        if bounding.window_us is not None:
            rows = [row for row in rows if row[bounding.time] is not None]
        if bounding.rows is None:
            return rows
        return first(
            rows,
            bounding.rows,
            lambda row: (row[bounding.unit], self.window(row)),
            lambda row: self.rank(row, jobs),
            self.key,
        )

    def rank(self, row: Row, jobs: Sequence[Job]) -> Any:
        names = self.used(jobs)
        digits = [self.columns[name].places for name in names]
        return order([row[name] for name in names], digits, self.key, "rows")

    def cell(self, row: Row, job: Job) -> tuple[Any, ...] | None:
        keys = [self.value(row, name) for name in job.by]
        if any(key is None for key in keys):
            return None
        if job.grid is not None:
            listed = zip(keys, job.grid.keys, strict=True)
            if any(key not in public for key, public in listed):
                return None
        if job.bins is not None:
            keys.append(binned(self.value(row, str(job.bin_column)), job.bins))
        return None if None in keys else tuple(keys)

    def counted(self, job: Job, rows: list[Row]) -> list[Row]:
        found = []
        for row in rows:
            if job.where is not None:
                meant = evaluate(job.where, row, kinds=self.kinds, derived=self.derived)
                if meant is not True:
                    continue
            number = None if job.value is None else self.value(row, job.value.column)
            code = 0 if job.value is None else coded(number, job.value)
            cell = self.cell(row, job)
            if code is not None and cell is not None:
                found.append(row | {"*cell": cell, "*code": code})
        return found

    def bounded(self, job: Job, jobs: Sequence[Job], rows: list[Row]) -> list[Row]:
        unit = self.bounding.unit
        if unit is None:
            return rows
        if job.rows_per_group is not None:
            rows = first(
                rows,
                job.rows_per_group,
                lambda r: (r[unit], self.window(r), r["*cell"]),
                lambda r: self.rank(r, jobs),
                self.key,
            )
        if job.groups_per_unit is not None:
            rows = self.few_cells(job, rows, unit)
        return rows

    def few_cells(self, job: Job, rows: list[Row], unit: str) -> list[Row]:
        owners = {(r[unit], self.window(r), r["*cell"]) for r in rows}
        pairs = [{"unit": u, "window": w, "cell": c} for u, w, c in owners]

        def ordering(pair: Row) -> Any:
            values = [pair["unit"]]
            if pair["window"] is not None:
                values.append(pair["window"] * self.bounding.window_us)
            values += pair["cell"]
            digits = [None] * len(values)
            return order(values, digits, self.key, f"cells/{job.name}")

        kept = first(
            pairs,
            job.groups_per_unit,
            lambda p: (p["unit"], p["window"]),
            ordering,
            self.key,
        )
        left = {(p["unit"], p["window"], p["cell"]) for p in kept}
        return [r for r in rows if (r[unit], self.window(r), r["*cell"]) in left]

    def run(self, jobs: Sequence[Job]) -> list[tuple[Any, dict[str, list[int]]]]:
        kept = self.kept(jobs)
        return [self.answer(job, jobs, kept) for job in jobs]

    def answer(self, job: Job, jobs: Sequence[Job], kept: list[Row]) -> Any:
        rows = self.bounded(job, jobs, self.counted(job, kept))
        if job.grid is None:
            found = {r["*cell"] for r in rows}
            cells = sorted(found, key=lambda c: tuple(map(str, c)))
        else:
            keys = list(job.grid.keys)
            keys += [tuple(range(len(job.bins) - 1))] if job.bins is not None else []
            cells = list(product(*keys))
        unit = self.bounding.unit
        measures: dict[str, list[int]] = {name: [] for name in job.measures}
        for cell in cells:
            here = [r for r in rows if r["*cell"] == cell]
            owners = len(here) if unit is None else len({r[unit] for r in here})
            codes = [r["*code"] for r in here]
            all_measures = {
                "rows": len(here),
                "units": owners,
                "sum": sum(codes),
                "squares": sum(c * c for c in codes),
            }
            for name in job.measures:
                measures[name].append(all_measures[name])
        return tuple(cells), measures
