"""Post-processing: signs, whole numbers, and margins that add up."""

import numpy as np
import pytest

from undertow.release.engine.job import Grid
from undertow.release.plan.answer import QueryAnswer, Table, add_up, settle_rows

KEYS = {"zone": ("a", "b", "c"), "hour": (0, 1), "sex": ("f", "m")}


def table(columns, numbers, *, deviation=1.0, same=(None,), consistent=()):
    grid = Grid(columns, tuple(KEYS[column] for column in columns))
    rows = [
        (*cell, x, x - 5, x + 5) for cell, x in zip(grid.cells(), numbers, strict=True)
    ]
    answer = QueryAnswer(
        "+".join(columns),
        (*columns, "estimate", "low", "high"),
        rows,
        0.95,
        deviation=deviation,
    )
    return Table(answer, grid, same, consistent)


def estimates(answer):
    return [row[-3] for row in answer.rows]


def test_margins_add_up_whatever_the_order_of_columns_and_tables():
    rng = np.random.default_rng(2)
    tables = [
        table(("zone",), rng.normal(20, 5, 3)),
        table(("hour", "zone"), rng.normal(10, 5, 6), deviation=2.0),
        table((), [70.0]),
        table(("hour",), rng.normal(30, 5, 2), deviation=0.5),
    ]
    zone, both, total, hour = (estimates(answer) for answer in add_up(tables))
    grid = np.array(both).reshape(2, 3)
    np.testing.assert_allclose(grid.sum(axis=0), zone)
    np.testing.assert_allclose(grid.sum(axis=1), hour)
    assert grid.sum() == pytest.approx(total[0])


def test_margins_add_up_in_whole_non_negative_numbers_if_asked():
    rng = np.random.default_rng(3)
    tables = [
        table(
            ("zone", "hour"),
            rng.normal(0, 4, 6),
            consistent=("non-negative", "integer"),
        ),
        table(("zone",), rng.normal(3, 4, 3)),
    ]
    both, zone = (estimates(answer) for answer in add_up(tables))
    assert all(isinstance(x, int) and x >= 0 for x in both + zone)
    assert np.array(both).reshape(3, 2).sum(axis=1).tolist() == zone


def test_intervals_stay_and_the_notes_say_so():
    tables = [table(("zone",), [1.0, 2.0, 3.0]), table((), [9.0])]
    answers = add_up(tables)
    assert [row[-2:] for row in answers[0].rows] == [(-4, 6), (-3, 7), (-2, 8)]
    assert "intervals are those of the answer before" in answers[0].notes[-1]


def test_tables_of_other_rows_or_other_keys_are_left_alone():
    other = table(("zone",), [1.0, 2.0, 3.0], same=("steps > 0",))
    answers = add_up([other, table((), [9.0])])
    assert estimates(answers[0]) == [1.0, 2.0, 3.0]
    assert estimates(answers[1]) == [9.0]


def test_the_better_known_table_moves_less():
    sharp = table((), [9.0], deviation=1e-6)
    cells, total = add_up([table(("zone",), [1.0, 2.0, 3.0]), sharp])
    assert estimates(total)[0] == pytest.approx(9.0, abs=1e-6)
    assert estimates(cells) == pytest.approx([2.0, 3.0, 4.0], abs=1e-6)


def test_rows_are_rounded_and_raised_by_themselves():
    rows = [("a", -2.6, -8.0, 3.0), ("b", 2.5, 1.0, 3.0)]
    settled, notes = settle_rows(rows, ("non-negative", "integer"))
    assert settled == [("a", 0, 0, 3.0), ("b", 2, 1.0, 3.0)]
    assert len(notes) == 2


def test_ends_that_may_be_negative_stay():
    settled, _ = settle_rows([(-2, -8, 3)], ("non-negative",), non_negative=False)
    assert settled == [(0, -8, 3)]


def test_intervals_hold_the_estimates_that_margins_ask_for():
    tables = [
        table(("zone",), [10.0, 20.0, 30.0], deviation=0.1),
        table((), [90.0], deviation=10.0),
    ]
    zone, total = add_up(tables)
    [(value, low, high)] = total.rows
    assert value == pytest.approx(60, abs=0.01)
    assert (low, high) == (value, 95.0)
    assert [row[-2:] for row in zone.rows] == [(5, 15), (15, 25), (25, 35)]


def test_an_interval_holds_its_rounded_estimate():
    assert settle_rows([("a", 2.6, 2.5, 2.7)], ["integer"])[0] == [("a", 3, 2.5, 3)]
