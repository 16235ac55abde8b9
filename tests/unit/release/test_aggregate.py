"""Whole numbers per cell: the whole grid, exact sums, and types that fit."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.release.engine._dialect import _mark
from undertow.release.engine.job import Bounding, Grid, Job, Slice, Value
from undertow.release.engine.pipeline import decimal_places, run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

TOTAL = Grid((), ())


def run(table: dict[str, Any], job: Job, **options: Any) -> Any:
    with open_source(pa.table(table), threads=1) as source:
        [found] = run_jobs(source, [job], **options)
    return found


def total(values: Any, value: Value) -> tuple[int, int, int]:
    job = Job("x", ("rows", "sum", "squares"), grid=TOTAL, value=value)
    found = run({value.column: values}, job).measures
    return tuple(found[name].tolist()[0] for name in job.measures)


def codes(values: Any, value: Value) -> list[int]:
    """The code of each value: it is alone in its cell."""
    places = tuple(range(len(values)))
    grid = Grid(("place",), (places,))
    job = Job("x", ("sum",), by=("place",), grid=grid, value=value)
    return run({value.column: values, "place": places}, job).measures["sum"].tolist()


def test_absent_cells_are_zeros_in_the_order_of_the_grid():
    grid = Grid(("b", "a"), ((True, False), ("x", "y")))
    job = Job("q", ("rows",), by=("b", "a"), grid=grid)
    found = run({"a": ["y", "y", None], "b": [False, False, True]}, job)
    assert found.cells == ((True, "x"), (True, "y"), (False, "x"), (False, "y"))
    assert found.measures["rows"].tolist() == [0, 0, 0, 2]


def test_an_empty_table_gives_zeros():
    table = {"x": pa.array([], pa.int64())}
    value = Value("x", Fraction(0), Fraction(9), 0)
    job = Job("q", ("rows", "sum", "squares"), grid=TOTAL, value=value)
    assert {m: v.tolist() for m, v in run(table, job).measures.items()} == {
        "rows": [0],
        "sum": [0],
        "squares": [0],
    }


def test_discovered_groups_are_those_observed_sorted_as_text():
    job = Job("q", ("rows", "units"), by=("n",))
    found = run(
        {"n": [10, 9, 9, None], "who": [1, 1, 2, 3]},
        job,
        bounding=Bounding("who", None),
    )
    assert found.cells == ((10,), (9,))
    assert found.measures["units"].tolist() == [1, 2]


def test_however_many_groups_there_are_to_discover_they_are_taken():
    found = run({"n": list(range(20_000))}, Job("q", ("rows", "units"), by=("n",)))
    assert len(found.cells) == 20_000


def test_sums_beyond_64_bits_are_exact():
    value = Value("x", Fraction(0), Fraction(2**48), 0)
    rows, linear, squares = total(pa.array([2**48] * 70_000, pa.int64()), value)
    assert (rows, linear) == (70_000, 70_000 * 2**48)
    assert squares == 70_000 * 2**96


def test_integers_are_coded_exactly_up_to_the_ends_of_64_bits():
    value = Value("x", Fraction(-(2**63)), Fraction(2**63 - 1), 40)
    numbers = (-(2**63), -(2**63) + 2**39, -1, 0, 2**39, 2**63 - 1)
    assert codes(pa.array(numbers, pa.int64()), value) == [
        math.floor((n + 2**63) / Fraction(2**40) + Fraction(1, 2)) for n in numbers
    ]


@pytest.mark.parametrize("low", [Fraction(1, 3), Fraction(-7, 2), Fraction(2)])
@pytest.mark.parametrize("exponent", [-5, 0, 2])
def test_integers_are_coded_exactly_between_broken_ends(low, exponent):
    value = Value("x", low, low + Fraction(29, 2), exponent)
    numbers = tuple(range(-6, 20))
    assert codes(pa.array(numbers, pa.int64()), value) == [
        math.floor(
            (min(max(Fraction(n), low), value.high) - low) / value.step + Fraction(1, 2)
        )
        for n in numbers
    ]


def test_a_range_without_whole_numbers_has_its_two_ends():
    value = Value("x", Fraction(1, 5), Fraction(4, 5), -3)
    assert total([0, 1], value) == (2, value.most, value.most**2)
    beyond = Value("x", Fraction(2**64), Fraction(2**64 + 8), 0)
    assert total([0, 2**62], beyond) == (2, 0, 0)


@pytest.mark.parametrize("text", ["0.005", "1.005", "-9.999", "3.14", "99999.999"])
@pytest.mark.parametrize("low", [Fraction(0), Fraction(1, 3)])
def test_decimals_are_coded_exactly(text, low):
    value = Value("x", low, Fraction(4), -9)
    clipped = min(max(Fraction(text), value.low), value.high)
    expected = math.floor((clipped - low) / value.step + Fraction(1, 2))
    numbers = pa.array([Decimal(text), None], pa.decimal128(38, 3))
    assert total(numbers, value)[:2] == (1, expected)


def test_wide_decimals_are_read_to_the_places_that_fit():
    assert decimal_places(18, Value("x", Fraction(0), Fraction(100), -13)) >= 9
    assert decimal_places(2, Value("x", Fraction(0), Fraction(100), -13)) == 2
    with pytest.raises(PlanError, match=r"must be below 2\^51"):
        decimal_places(2, Value("x", Fraction(0), Fraction(2**60), 30))
    numbers = pa.array([Decimal("12.500000000000000001")], pa.decimal128(38, 18))
    value = Value("x", Fraction(0), Fraction(100), -13)
    assert total(numbers, value)[1] == 12.5 * 2**13


def test_floats_are_clipped_and_missing_ones_do_not_count():
    value = Value("x", Fraction(0), Fraction(1), -2)
    numbers = [math.nan, math.inf, -math.inf, 0.374, 0.376, None, -0.0]
    assert total(pa.array(numbers, pa.float64()), value)[:2] == (5, 4 + 0 + 1 + 2)


def test_truth_values_are_numbers():
    value = Value("x", Fraction(0), Fraction(1), 0)
    assert total([True, False, None, True], value) == (3, 2, 2)


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(28, 2)])
def test_bins_are_counted_from_their_inner_cuts(kind):
    cuts = tuple(map(Fraction, ("0", "1", "5/2", "4")))
    job = Job("q", ("rows",), grid=TOTAL, bins=cuts, bin_column="x")
    numbers = pa.array([-9, 0, 1, 2, 3, 4, 99, None], pa.int64()).cast(kind, safe=False)
    found = run({"x": numbers}, job)
    assert found.cells == ((0,), (1,), (2,))
    assert found.measures["rows"].tolist() == [2, 2, 3]


def test_a_cut_between_two_floats_belongs_to_the_upper_one():
    cut = Fraction(0.1) + Fraction(1, 2**80)
    job = Job(
        "q", ("rows",), grid=TOTAL, bins=(Fraction(0), cut, Fraction(1)), bin_column="x"
    )
    found = run({"x": [0.1, math.nextafter(0.1, 1)]}, job)
    assert found.measures["rows"].tolist() == [1, 1]


def test_a_lattice_that_is_too_fine_is_refused():
    with pytest.raises(PlanError, match=r"at most 2\^48 points"):
        total([1.0], Value("x", Fraction(0), Fraction(1), -60))


def test_many_keys_travel_as_one_text():
    keys = tuple(f"k'{i}\\" for i in range(500))
    job = Job("q", ("rows",), by=("k",), grid=Grid(("k",), (keys,)))
    found = run({"k": [keys[3], keys[499], "other", None]}, job)
    assert found.measures["rows"].sum() == 2
    assert found.measures["rows"][3] == 1
    scattered = tuple(range(0, 1000, 3))
    job = Job("q", ("rows",), by=("n",), grid=Grid(("n",), (scattered,)))
    assert run({"n": [3, 4, 999]}, job).measures["rows"].sum() == 2


def test_the_mark_between_keys_is_in_none_of_them():
    assert _mark(["\ue000", "\ue001"]) == "\ue002"


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        (["a"], (1,)),
        ([1], ("a",)),
        ([True], (1,)),
        ([1], (True,)),
        ([date(2026, 1, 1)], ("2026-01-01",)),
        ([1.5], (1,)),
    ],
    ids=["text", "whole", "truth", "number", "date", "float"],
)
def test_keys_of_another_type_are_refused(column, keys):
    job = Job("q", ("rows",), by=("k",), grid=Grid(("k",), (keys,)))
    with pytest.raises(PlanError, match=r"'k' must"):
        run({"k": column}, job)


def test_an_unknown_column_is_named_with_the_nearest_that_is_stated():
    job = Job("q", ("rows",), by=("zoen",), grid=Grid(("zoen",), (("a",),)))
    with pytest.raises(PlanError, match=r"got 'zoen' in query 'q' \(did you mean zone"):
        run({"zone": ["a"]}, job, bounding=Bounding("zone", 1))


def test_a_name_of_the_table_that_nobody_stated_is_not_repeated():
    job = Job("q", ("rows",), by=("zoen",), grid=Grid(("zoen",), (("a",),)))
    with pytest.raises(PlanError, match="got 'zoen'") as refusal:
        run({"zone": ["a"]}, job)
    assert "zone" not in str(refusal.value)


def test_text_has_no_codes():
    with pytest.raises(PlanError, match="must hold numbers"):
        total(["a"], Value("x", Fraction(0), Fraction(1), 0))


def test_a_column_that_cannot_be_put_in_order_is_refused():
    table = {"who": ["a", "a"], "n": [1, 2], "l": [[1], [2]]}
    job = Job("q", ("rows",), by=("l",), grid=Grid(("l",), ((1,),)))
    with pytest.raises(PlanError, match="'l' must hold"):
        run(table, job, bounding=Bounding("who", 1))


def test_a_slice_reads_its_times_and_no_others():
    at = pa.array([-1, 0, 5, 9, 10, None], pa.timestamp("us"))
    job = Job("q", ("rows",), grid=TOTAL)
    found = run({"at": at}, job, slice=Slice("at", 0, 10))
    assert found.measures["rows"].tolist() == [3]
    everything = run({"at": at}, job, slice=Slice("at", -(2**62), 2**62))
    assert everything.measures["rows"].tolist() == [5]
    days = {"at": pa.array([date(1970, 1, 1), date(1970, 1, 2)])}
    assert run(days, job, slice=Slice("at", 0, 10)).measures["rows"].tolist() == [1]
    with pytest.raises(PlanError, match="must hold times or dates"):
        run({"at": [1]}, job, slice=Slice("at", 0, 10))


def test_times_with_a_zone_are_read_in_utc():
    at = pa.array([3_600_000_000], pa.timestamp("us", "Asia/Kolkata"))
    grid = Grid(("hour",), (tuple(range(24)),))
    derived = {"hour": parse_expression("hour(at)")}
    job = Job("q", ("rows",), by=("hour",), grid=grid)
    found = run({"at": at}, job, columns=derived)
    assert found.measures["rows"].tolist().index(1) == 1


def test_aggregates_show_no_numbers():
    assert repr(run({"x": [1]}, Job("q", ("rows",), grid=TOTAL))) == (
        "Aggregates of 1 cells"
    )
