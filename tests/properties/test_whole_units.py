"""Whole units, by enumeration: dependence inside of a unit costs nothing.

Every database of a few units with a few records each, every attacker (each other record
unknown, or known with each value), every secret and every output. Nothing of the
library's engines is used.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.correlation import IndependentUnits, JointTable, exact_leakage, leakage

SLACK = 1e-9
SMALL = [(1, 2, 3), (2, 1, 3), (2, 2, 2), (2, 3, 2), (3, 1, 2), (3, 2, 2)]


def databases(units, records, states):
    """Return all databases as an array (database, unit, record)."""
    every = itertools.product(range(states), repeat=units * records)
    return np.array(list(every)).reshape(-1, units, records)


def series_law(series, start, transition):
    """Return the probability of each row of states under a chain."""
    found = start[series[:, 0]].astype(float)
    for now, then in itertools.pairwise(series.T):
        found = found * transition[now, then]
    return found


def product_law(tables, chains):
    """Return the law of independent units, each with a chain of its own."""
    parts = [series_law(tables[:, at], *chain) for at, chain in enumerate(chains)]
    return np.prod(parts, axis=0)


def unit_level(tables, kernel):
    """Return the most that replacing one unit's series changes the output law."""
    worst = 0.0
    for at in range(tables.shape[1]):
        rest = np.delete(tables, at, axis=1).reshape(len(tables), -1)
        for same in np.unique(rest, axis=0):
            rows = np.log(kernel[(rest == same).all(axis=1)])
            worst = max(worst, float((rows.max(axis=0) - rows.min(axis=0)).max()))
    return worst


def output_laws(law, kernel, events):
    """Return the law of the output given each event that can happen."""
    weights = events * law
    totals = weights.sum(axis=1)
    possible = totals > 0
    return (weights[possible] / totals[possible, None]) @ kernel


def largest_ratio(laws):
    if len(laws) < 2:
        return 0.0
    return float((np.log(laws.max(axis=0)) - np.log(laws.min(axis=0))).max())


def record_leakage(tables, law, kernel):
    """Return the leakage about one record to the worst attacker, by enumeration."""
    flat = tables.reshape(len(tables), -1)
    values = range(int(flat.max()) + 1)
    size, worst = flat.shape[1], 0.0
    for target in range(size):
        others = [j for j in range(size) if j != target]
        secrets = np.array([flat[:, target] == value for value in values])
        for known in itertools.product([None, *values], repeat=len(others)):
            fits = np.ones(len(flat), dtype=bool)
            for j, value in zip(others, known, strict=True):
                if value is not None:
                    fits &= flat[:, j] == value
            worst = max(worst, largest_ratio(output_laws(law, kernel, secrets & fits)))
    return worst


def series_leakage(tables, law, kernel):
    """Return the leakage about a whole series to who knows any of the others."""
    count, units, records = tables.shape
    values = range(int(tables.max()) + 1)
    worst = 0.0
    for at in range(units):
        all_series = np.unique(tables[:, at], axis=0)
        secrets = np.array([(tables[:, at] == one).all(axis=1) for one in all_series])
        rest = np.delete(tables, at, axis=1).reshape(count, -1)
        for known in itertools.product([None, *values], repeat=(units - 1) * records):
            fits = np.ones(count, dtype=bool)
            for j, value in enumerate(known):
                if value is not None:
                    fits &= rest[:, j] == value
            worst = max(worst, largest_ratio(output_laws(law, kernel, secrets & fits)))
    return worst


def noisy_count(tables, epsilon):
    """Return the count of all 1s with truncated geometric noise for whole units."""
    records, most = tables.shape[2], tables.shape[1] * tables.shape[2]
    counts = tables.sum(axis=(1, 2))[:, None]
    ratio, outputs = math.exp(-epsilon / records), np.arange(most + 1)[None, :]
    inner = ratio ** abs(outputs - counts) * (1 - ratio) / (1 + ratio)
    ends = ratio ** abs(outputs - counts) / (1 + ratio)
    return np.where((outputs == 0) | (outputs == most), ends, inner)


def one_bit(tables, epsilon):
    """Return randomized response about the first record of the first unit alone."""
    true = 1 / (1 + math.exp(-epsilon))
    first = (tables[:, 0, 0] == 0)[:, None]
    return np.where(first, [[true, 1 - true]], [[1 - true, true]])


def whole_series(tables, epsilon):
    """Return randomized response about the series of the first unit."""
    kinds, place = np.unique(tables[:, 0], axis=0, return_inverse=True)
    kernel = np.ones((len(tables), len(kinds)))
    kernel[np.arange(len(tables)), place.reshape(-1)] = math.exp(epsilon)
    return kernel / kernel.sum(axis=1, keepdims=True)


MECHANISMS = [noisy_count, one_bit, whole_series]
HALF = np.array([0.5, 0.5])
FROZEN = np.array([[0.9999, 0.0001], [0.0001, 0.9999]])
LOOSE = np.array([[0.7, 0.3], [0.4, 0.6]])
ONE_WAY = np.array([[0.5, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda made: made.__name__)
def test_the_mechanisms_are_private_at_their_level_about_whole_units(mechanism):
    for units, records, _ in SMALL:
        kernel = mechanism(tables := databases(units, records, 2), 1.3)
        np.testing.assert_allclose(kernel.sum(axis=1), 1)
        assert unit_level(tables, kernel) == pytest.approx(1.3, abs=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    "transition", [FROZEN, LOOSE, ONE_WAY], ids=["frozen", "loose", "one way"]
)
@pytest.mark.parametrize("units", [2, 3])
def test_no_attacker_learns_more_than_the_level(mechanism, transition, units):
    tables = databases(units, 2, 2)
    law = product_law(tables, [(HALF, transition)] * units)
    kernel = mechanism(tables, 1.0)
    bound = leakage(IndependentUnits(), 1.0).value
    assert record_leakage(tables, law, kernel) <= bound + SLACK
    assert series_leakage(tables, law, kernel) <= bound + SLACK


@pytest.mark.parametrize("transition", [FROZEN, LOOSE], ids=["frozen", "loose"])
def test_the_level_is_reached_by_some_mechanism_whatever_the_chain(transition):
    tables = databases(2, 2, 2)
    law = product_law(tables, [(HALF, transition)] * 2)
    assert record_leakage(tables, law, one_bit(tables, 1.0)) == pytest.approx(1.0)


def test_a_count_reaches_the_level_where_records_hardly_change():
    # One record moves the count by 1 of the 3 that a unit does.
    tables = databases(2, 3, 2)
    kernel = noisy_count(tables, 1.0)
    frozen = product_law(tables, [(HALF, FROZEN)] * 2)
    uniform = np.full(len(tables), 1 / len(tables))
    assert 0.999 < record_leakage(tables, frozen, kernel) <= 1 + SLACK
    assert record_leakage(tables, uniform, kernel) == pytest.approx(1 / 3)


def test_units_that_depend_on_each_other_leak_more():
    tables = databases(2, 2, 2)
    same = (tables[:, 0] == tables[:, 1]).all(axis=1)
    law = product_law(tables, [(HALF, FROZEN)] * 2) * same
    kernel = noisy_count(tables, 1.0)
    assert record_leakage(tables, law / law.sum(), kernel) > 1.9


def test_the_enumeration_agrees_with_the_exact_engine():
    tables = databases(2, 2, 2)
    law = product_law(tables, [(HALF, LOOSE), (np.array([0.2, 0.8]), ONE_WAY)])
    for mechanism in MECHANISMS:
        kernel = mechanism(tables, 0.8)
        found = exact_leakage(
            JointTable(law.reshape(2, 2, 2, 2)), kernel.reshape(2, 2, 2, 2, -1)
        )
        ours = record_leakage(tables, law, kernel)
        assert ours == pytest.approx(found.value, abs=1e-9)


@st.composite
def cases(draw):
    """Return databases, a law of independent units and a positive kernel."""
    units, records, states = draw(st.sampled_from(SMALL))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = databases(units, records, states)
    if draw(st.booleans()):
        sharp = draw(st.sampled_from([0.05, 1.0]))  # nearly frozen, or mixing
        rows = np.full(states, sharp)
        law = product_law(
            tables,
            [(rng.dirichlet(rows), rng.dirichlet(rows, states)) for _ in range(units)],
        )
    else:  # any law inside of a unit
        law = np.ones(len(tables))
        for at in range(units):
            _, place = np.unique(tables[:, at], axis=0, return_inverse=True)
            law *= rng.dirichlet(np.full(place.max() + 1, 0.3))[place.reshape(-1)]
    scores = rng.normal(size=(len(tables), 3)) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    kernel = np.exp(scores)
    return tables, law / law.sum(), kernel / kernel.sum(axis=1, keepdims=True)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_any_law_inside_of_units_leaks_no_more_than_the_level(case):
    tables, law, kernel = case
    level = unit_level(tables, kernel)
    bound = leakage(IndependentUnits(), level).value
    assert record_leakage(tables, law, kernel) <= bound + SLACK
    assert series_leakage(tables, law, kernel) <= bound + SLACK
