"""Divergences and exact losses, against enumeration of all events."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import VacuousGranularityError
from undertow.privacy.divergence import (
    exact_loss_matrix,
    is_d_private,
    renyi_divergence,
    tightest_epsilon,
)


@st.composite
def tables(draw, rows=3, columns=4):
    weights = st.lists(st.integers(0, 9), min_size=columns, max_size=columns).filter(
        any
    )
    table = np.array([draw(weights) for _ in range(rows)], dtype=float)
    return table / table.sum(axis=1, keepdims=True)


def loss_over_events(p, q):
    worst = 0.0
    for size in range(1, len(p) + 1):
        for event in itertools.combinations(range(len(p)), size):
            a, b = p[list(event)].sum(), q[list(event)].sum()
            if a > 0 or b > 0:
                worst = max(
                    worst, abs(math.log(a / b)) if a > 0 and b > 0 else math.inf
                )
    return worst


@given(tables())
def test_the_loss_over_all_events_is_attained_on_single_outputs(table):
    matrix = exact_loss_matrix(table)
    for i, j in itertools.product(range(3), repeat=2):
        assert matrix[i, j] == pytest.approx(
            loss_over_events(table[i], table[j]), abs=1e-9
        )


@given(tables(rows=4))
def test_the_exact_loss_is_a_pseudometric(table):
    d = exact_loss_matrix(table)
    assert np.array_equal(d, d.T)
    assert np.all(np.diag(d) == 0)
    for i, j, k in itertools.product(range(4), repeat=3):
        assert d[i, k] <= d[i, j] + d[j, k] + 1e-12


@given(tables())
def test_a_mechanism_is_private_for_its_own_loss_and_no_smaller_one(table):
    d = exact_loss_matrix(table)
    assert is_d_private(table, d) == (True, None)
    finite = np.where(np.isfinite(d), d, 0)
    if d.max() > 0:
        kept, violation = is_d_private(table, 0.9 * finite)
        assert not kept
        assert violation.loss == pytest.approx(d[violation.pair])
        first, second = (table[row, violation.output] for row in violation.pair)
        assert first > second
        assert violation.allowed < violation.loss


def test_an_infinite_distance_promises_nothing():
    table = [[1.0, 0.0], [0.0, 1.0]]
    assert is_d_private(table, [[0, math.inf], [math.inf, 0]]) == (True, None)
    kept, violation = is_d_private(table, [[0, 100], [math.inf, 0]])
    assert not kept
    assert violation == ((0, 1), 0, math.inf, 100.0)


@given(tables())
def test_the_tightest_epsilon_is_the_largest_loss_over_the_edges(table):
    d = exact_loss_matrix(table)
    assert tightest_epsilon(table, [(0, 1), (2, 1)]) == max(d[0, 1], d[2, 1])


@given(tables(rows=2), st.floats(1.01, 40))
def test_renyi_divergence_is_its_sum(table, alpha):
    p, q = table
    value = renyi_divergence(p, q, alpha=alpha)
    if np.any((p > 0) & (q == 0)):
        assert value == math.inf
        return
    here = p > 0
    direct = math.log((p[here] ** alpha * q[here] ** (1 - alpha)).sum()) / (alpha - 1)
    assert value == pytest.approx(max(direct, 0), rel=1e-9, abs=1e-9)


@given(tables(rows=2))
def test_renyi_divergence_grows_with_its_order_from_kl_to_the_largest_ratio(table):
    p, q = table
    values = [
        renyi_divergence(p, q, alpha=a) for a in (1, 1.0001, 2, 10, 1e4, math.inf)
    ]
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values))
    if values[-1] < math.inf:
        assert values[0] == pytest.approx(values[1], abs=1e-3)
        assert values[-2] == pytest.approx(values[-1], abs=1e-3)


def test_a_large_order_does_not_overflow():
    assert renyi_divergence([0.9, 0.1], [0.1, 0.9], alpha=1e6) == pytest.approx(
        math.log(9), rel=1e-5
    )


def test_no_neighbours_is_refused_not_zero():
    with pytest.raises(VacuousGranularityError, match="promises nothing"):
        tightest_epsilon([[1.0], [1.0]], [])


@pytest.mark.parametrize(
    "call",
    [
        lambda: exact_loss_matrix([0.5, 0.5]),
        lambda: exact_loss_matrix([[0.5, 0.6]]),
        lambda: exact_loss_matrix([[1.5, -0.5]]),
        lambda: exact_loss_matrix([[math.nan, 1.0]]),
        lambda: is_d_private([[1.0], [1.0]], [[0.0]]),
        lambda: is_d_private([[1.0], [1.0]], [[0, -1], [-1, 0]]),
        lambda: renyi_divergence([1.0], [1.0], alpha=0.5),
    ],
)
def test_what_is_no_table_metric_or_order_is_refused(call):
    with pytest.raises(ValueError, match="must"):
        call()
