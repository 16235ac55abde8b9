"""How far a bounded unit moves counts: against every table it can have."""

from itertools import product

import pytest

from undertow.errors import PlanError
from undertow.release.plan.noise import Contribution, Reach

BOUNDS = [
    (rows, groups, per_group, cells)
    for rows in (1, 2, 5)
    for groups in (None, 1, 2)
    for per_group in (None, 1, 3)
    for cells in (1, 2, 3)
]


def allowed(rows, groups, per_group, cells):
    """Yield every vector of row counts that one unit can have."""
    most = rows if per_group is None else min(rows, per_group)
    for vector in product(range(most + 1), repeat=cells):
        if sum(vector) <= rows and sum(x > 0 for x in vector) <= (groups or cells):
            yield vector


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_reach_of_row_counts_is_the_largest_over_all_units(bounds):
    reach = Contribution(*bounds).row_reach()
    units = list(allowed(*bounds))
    assert reach.total == max(sum(unit) for unit in units)
    assert reach.square == max(sum(x**2 for x in unit) for unit in units)
    assert reach.touched >= max(sum(x > 0 for x in unit) for unit in units)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_replacing_a_unit_moves_row_counts_no_further_than_stated(bounds):
    reach = Contribution(*bounds).row_reach()
    units = list(allowed(*bounds))
    moves = [
        [abs(x - y) for x, y in zip(old, new, strict=True)]
        for old in units
        for new in units
    ]
    assert reach.swap_total >= max(sum(move) for move in moves)
    assert reach.swap_square >= max(sum(x**2 for x in move) for move in moves)


def test_replacing_is_exact_for_one_number_and_for_cells_that_do_not_meet():
    one = Contribution(rows=5, groups=None, per_group=None, cells=1).row_reach()
    two = Contribution(rows=5, groups=None, per_group=None, cells=2).row_reach()
    assert (one.swap_total, one.swap_square) == (5, 25)
    assert (two.swap_total, two.swap_square) == (10, 50)


def test_numbers_of_units_move_by_one_in_each_cell_that_a_unit_reaches():
    reach = Contribution(rows=50, groups=4, per_group=None, cells=24).unit_reach()
    assert reach == Reach(4, 4, 4, 8, 8)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_replacing_a_unit_moves_numbers_of_units_exactly_as_far_as_stated(bounds):
    reach = Contribution(*bounds).unit_reach()
    units = [[x > 0 for x in unit] for unit in allowed(*bounds)]
    moved = max(
        sum(x != y for x, y in zip(old, new, strict=True))
        for old in units
        for new in units
    )
    assert (reach.swap_total, reach.swap_square) == (moved, moved)


def test_replacing_moves_no_cell_by_more_than_a_unit_may_have_in_it():
    reach = Contribution(rows=50, groups=None, per_group=3, cells=2).row_reach()
    assert reach == Reach(6, 18, 2, 6, 18)


def test_a_unit_counts_in_no_more_cells_than_it_has_rows():
    assert Contribution(2, None, None, 24).unit_reach().total == 2


def test_rows_may_be_bounded_by_cells_and_rows_per_cell_alone():
    assert Contribution(None, 3, 4, 24).row_reach() == Reach(12, 48, 3, 24, 96)


def test_unbounded_rows_are_refused():
    with pytest.raises(PlanError, match=r"rows_per_unit must be given"):
        Contribution(None, 3, None, 24).row_reach()
    with pytest.raises(PlanError, match=r"groups_per_unit must be given"):
        Contribution(None, None, 3, None).unit_reach()


def test_a_reach_that_knows_no_sign_takes_replacing_for_two_steps():
    reach = Reach(3, 5, 2)
    assert (reach.swap_total, reach.swap_square) == (6, 20)
    assert reach.times(2) == Reach(6, 20, 2, 12, 80)
