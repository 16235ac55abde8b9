"""Conjectures cannot be mistaken for bounds, and their knapsack is exact."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from undertow.errors import AssumptionError
from undertow.privacy import GDP, ZCDP, Approx, Bound, Calibration, Pure
from undertow.risk.bounds import (
    Conjecture,
    black_box_conjecture,
    curve_conjecture,
    pair_knapsack,
    success_advantage_bound,
)
from undertow.risk.selector import best_bound
from undertow.risk.threat import Prior, Threat

SKEW = [0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    "claim",
    [
        black_box_conjecture(Pure(1), SKEW),
        black_box_conjecture(Pure(1), SKEW, printed=True),
        curve_conjecture(GDP(1), SKEW),
    ],
    ids=["theorem 7", "theorem 7 printed", "theorem 8"],
)
def test_a_conjecture_is_no_bound(claim):
    assert type(claim) is Conjecture
    assert not isinstance(claim, Bound | Calibration)
    assert "not proved" in claim.evidence or claim.refuted
    with pytest.raises((TypeError, ValueError)):
        success_advantage_bound(claim, worst_guess=0.1)
    with pytest.raises((TypeError, ValueError, AssumptionError)):
        best_bound(claim, Threat(Prior(4, SKEW)))
    assert json.loads(json.dumps(claim.to_dict()))["statement"] == claim.statement


def test_no_row_of_the_selector_is_a_conjecture():
    for guarantee in (Pure(1), Approx(1, "1e-5"), GDP(1)):
        report = best_bound(guarantee, Threat(Prior(4, SKEW)))
        rows = [row for row in report.rows if row.bound is not None]
        assert rows
        assert all(isinstance(row.bound, Bound) for row in rows)
        assert not any("Sauer" in row.bound.theorem for row in rows)


def test_priors_are_read_from_objects_and_in_any_order():
    values = [
        black_box_conjecture(Pure(1), Prior(4, SKEW)).value,
        black_box_conjecture(Pure(1), SKEW[::-1]).value,
        black_box_conjecture(Pure(1), SKEW).value,
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-12)


def test_conjectures_saturate():
    spread = 1 - sum(p * p for p in SKEW)
    assert black_box_conjecture(Pure(0), SKEW).value == 0
    assert black_box_conjecture(Pure(900), SKEW).value == pytest.approx(spread)
    assert curve_conjecture(GDP(50), SKEW).value == pytest.approx(spread)
    assert black_box_conjecture(Pure(1), [1.0, 0.0]).value == 0


def test_losses_without_parameters_are_refused():
    with pytest.raises(AssumptionError):
        black_box_conjecture(ZCDP("0.1"), SKEW)
    with pytest.raises(AssumptionError):
        curve_conjecture(ZCDP("0.1"), SKEW)


def test_the_knapsack_at_its_ends():
    every = 1 - sum(p * p for p in SKEW)
    assert pair_knapsack(SKEW, capacity=0.0, total=5.0) == 0
    assert pair_knapsack(SKEW, capacity=0.5, total=0.0) == pytest.approx(0, abs=1e-15)
    assert pair_knapsack(SKEW, capacity=0.5, total=99) == pytest.approx(0.5 * every)
    # Room for one ordered pair: the two likeliest records.
    assert pair_knapsack(SKEW, capacity=1.0, total=1.0) == pytest.approx(0.12)


def test_the_knapsack_reads_ties_and_zeros():
    prior = [0.5, 0.5, 0.0, 0.0]
    assert pair_knapsack(prior, capacity=1.0, total=12.0) == pytest.approx(0.5)
    flat = np.full(50, 0.02)
    value = pair_knapsack(flat, capacity=0.7, total=100.0)
    assert value == pytest.approx(100.0 * 0.02**2, rel=1e-12)


def test_the_knapsack_of_explicit_pairs_for_many_records():
    rng = np.random.default_rng(8)
    prior = rng.dirichlet(np.full(300, 0.3))
    products = np.sort(np.outer(prior, prior)[np.triu_indices(300, 1)])[::-1]
    total, capacity = 20_000.5, 0.4
    full = int(total // (2 * capacity))
    value = 2 * capacity * products[:full].sum()
    value += (total - 2 * capacity * full) * products[full]
    fast = pair_knapsack(prior, capacity=capacity, total=total)
    assert fast == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_the_knapsack_refuses_unbounded_rooms(bad):
    with pytest.raises(ValueError, match="capacity"):
        pair_knapsack(SKEW, capacity=bad, total=1.0)
    with pytest.raises(ValueError, match="total"):
        pair_knapsack(SKEW, capacity=1.0, total=bad)
