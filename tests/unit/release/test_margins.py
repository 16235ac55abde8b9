"""Tables that fit their noisy margins best, against dense linear algebra."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

from undertow.release.plan.answer import Margins, least_squares, non_negative, rounded

SHAPES = [(3, 2, 2), (3, 1, 2), (1, 2, 1), (1, 1, 1), (3, 1, 1)]


def random_margins(seed: int, *, spread: float = 0.7) -> Margins:
    rng = np.random.default_rng(seed)
    weights = 10 ** rng.uniform(-spread, spread, len(SHAPES))
    numbers = [rng.normal(0.5, 3, size=shape) for shape in SHAPES]
    return Margins(list(zip(numbers, weights.tolist(), strict=True)))


def dense(margins: Margins) -> tuple[np.ndarray, np.ndarray]:
    rows, right = [], []
    for numbers, weight in margins.tables:
        for place in product(*(range(n) for n in numbers.shape)):
            mask = np.zeros(margins.shape)
            pairs = zip(place, numbers.shape, strict=True)
            mask[tuple(slice(None) if n == 1 else i for i, n in pairs)] = 1
            rows.append(np.sqrt(weight) * mask.ravel())
            right.append(np.sqrt(weight) * numbers[place])
    return np.array(rows), np.array(right)


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_agrees_with_the_normal_equations(seed):
    margins = random_margins(seed)
    matrix, right = dense(margins)
    best = np.linalg.lstsq(matrix, right, rcond=None)[0]
    np.testing.assert_allclose(least_squares(margins).ravel(), best, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_margins_are_settled_from_the_coarsest_on(seed, spread):
    margins = random_margins(seed, spread=spread)
    cells, start = non_negative(margins), least_squares(margins)
    assert cells.min() >= 0
    assert cells.sum() == pytest.approx(max(0.0, start.sum()), abs=0.05)
    zones, sexes = (start.sum(axis=axes) for axes in ((1, 2), (1,)))
    wanted = nearest(zones, max(0.0, start.sum()))
    np.testing.assert_allclose(cells.sum(axis=(1, 2)), wanted, atol=0.05)
    rows = [nearest(row, total) for row, total in zip(sexes, wanted, strict=True)]
    np.testing.assert_allclose(cells.sum(axis=1), rows, atol=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_the_finest_table_is_the_one_of_an_active_set_method(seed):
    rng = np.random.default_rng(seed)
    shapes = [(4, 3), (4, 1), (1, 3)]
    tables = [(rng.normal(0.5, 3, size=shape), 1.0) for shape in shapes]
    margins = Margins(tables)
    start = least_squares(margins)
    firm = [(start, 1.0)]
    for axis in (1, 0):
        sums = np.maximum(start.sum(axis=axis, keepdims=True), 0.0)
        firm.append((sums, 1000.0))
    matrix, right = dense(Margins(firm))
    best, _ = nnls(matrix, right)
    np.testing.assert_allclose(non_negative(margins).ravel(), best, atol=1e-4)


def nearest(numbers, total):
    """The nearest numbers that are not negative and have this sum, by sorting."""
    ordered = np.sort(numbers)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, len(numbers) + 1)
    above = np.flatnonzero(ordered > shifts)
    return np.maximum(numbers - shifts[above[-1]], 0.0) if len(above) else 0 * numbers


@pytest.mark.parametrize("size", [5, 500, 20_000])
def test_cells_and_a_total_become_the_nearest_cells_with_that_total(size):
    rng = np.random.default_rng(size)
    cells = rng.laplace(0, 10, size)
    cells[:3] += 300
    margins = Margins([(cells, 1 / 200), (np.array([900.0]), 1 / 200)])
    start = least_squares(margins)
    wanted = nearest(start, start.sum())
    np.testing.assert_allclose(non_negative(margins), wanted, atol=0.02)
    assert non_negative(margins).sum() == pytest.approx(start.sum(), abs=0.3)


def test_an_axis_with_one_key_is_not_taken_for_a_margin():
    cells, total = np.array([[1.0], [2.0]]), np.array([[6.0]])
    margins = Margins([(cells, 1.0), (total, 1.0)])
    np.testing.assert_allclose(least_squares(margins), [[2.0], [3.0]])
    np.testing.assert_allclose(non_negative(margins), [[2.0], [3.0]], atol=1e-6)


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e3])
def test_a_total_of_many_empty_cells_is_not_drowned_by_their_noise(weight):
    rng = np.random.default_rng(3)
    cells = rng.laplace(0, 1, size=20_000)
    cells[:3] += 10
    margins = Margins([(cells, 0.5), (np.array([30.0]), weight)])
    total = non_negative(margins).sum()
    assert total == pytest.approx(max(0.0, least_squares(margins).sum()), abs=0.1)
    assert np.maximum(cells, 0).sum() > 9_000


@pytest.mark.parametrize("seed", range(10))
def test_rounding_moves_cells_by_less_than_one_and_margins_by_little(seed):
    rng = np.random.default_rng(seed)
    cells = rng.exponential(0.4, size=(30, 20))
    shapes = [(30, 20), (30, 1), (1, 20), (1, 1)]
    margins = Margins([(np.zeros(shape), 1.0) for shape in shapes])
    found = rounded(cells, margins)
    assert (np.abs(found - cells) < 1).all()
    assert (found == np.rint(found)).all()
    assert abs(found.sum() - cells.sum()) <= 0.5
    for axis in (0, 1):
        assert np.abs((found - cells).sum(axis=axis)).max() <= 2


def test_rounding_leaves_whole_numbers_alone():
    cells = np.array([[3.0, -1.0], [0.0, 7.0]])
    margins = Margins([(cells, 1.0), (cells.sum(axis=0, keepdims=True), 1.0)])
    assert (rounded(cells, margins) == cells).all()
