"""Properties of leakage, calibration and accounting under groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.correlation.accountant import CorrelatedAccountant
from undertow.correlation.calibrate import calibrate, calibrate_over
from undertow.correlation.floor import accuracy_floor, packing_floor
from undertow.correlation.group import (
    Blocks,
    Independent,
    block_leakage,
    tightness_leakage,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import LinearQuery
from undertow.correlation.result import Adversary, posterior_probability_interval

sizes = st.lists(st.integers(1, 6), min_size=1, max_size=6)
levels = st.floats(1e-6, 1e4)
weights = st.lists(st.floats(0.01, 100), min_size=36, max_size=36)


def weighted(model: Blocks, listed: list[float]) -> LinearQuery:
    return LinearQuery(listed[: model.size], clip=(0, 1))


@given(sizes, levels, weights)
def test_calibration_inverts_leakage(sizes, target, listed):
    model = Blocks(sizes)
    for query in (None, weighted(model, listed)):
        found = calibrate(model, target, query=query)
        again = leakage(model, found.epsilon, query=query).value
        assert again == pytest.approx(target, rel=1e-9)
        assert again <= target * (1 + 1e-15)


@given(sizes, levels, weights)
def test_leakage_then_calibration_returns_the_level(sizes, epsilon, listed):
    model = Blocks(sizes)
    for query in (None, weighted(model, listed)):
        value = leakage(model, epsilon, query=query).value
        level = calibrate(model, value, query=query).epsilon
        assert level == pytest.approx(epsilon, rel=1e-9)


@given(sizes, levels, st.floats(1, 100))
def test_leakage_grows_with_the_level(sizes, epsilon, factor):
    model = Blocks(sizes)
    assert leakage(model, epsilon).value <= leakage(model, epsilon * factor).value


@given(sizes, levels)
def test_leakage_grows_with_the_group(sizes, epsilon):
    larger = [size + 1 for size in sizes]
    assert (
        leakage(Blocks(sizes), epsilon).value < leakage(Blocks(larger), epsilon).value
    )


@given(sizes, levels)
def test_groups_of_one_are_independent_records(sizes, epsilon):
    alone = Blocks([1] * len(sizes))
    value = leakage(alone, epsilon).value
    assert value == pytest.approx(leakage(Independent(), epsilon).value, rel=1e-15)
    assert leakage(Blocks(sizes), epsilon).value >= epsilon


@given(sizes, levels, weights, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(sizes, epsilon, listed, random):
    model = Blocks(sizes)
    order = list(range(model.size))
    random.shuffle(order)
    moved = Blocks.from_labels(model.labels[order])
    changes = np.array(listed[: model.size])
    one = block_leakage(model, epsilon, sensitivities=changes).value
    other = block_leakage(moved, epsilon, sensitivities=changes[order]).value
    assert one == pytest.approx(other, rel=1e-12)
    assert leakage(model, epsilon).value == leakage(moved, epsilon).value


@given(sizes, levels, st.data())
def test_knowing_more_never_helps_beyond_the_group(sizes, epsilon, data):
    model = Blocks(sizes)
    target = data.draw(st.integers(0, model.size - 1))
    others = [j for j in range(model.size) if j != target]
    known = data.draw(st.sets(st.sampled_from(others))) if others else set()
    one = block_leakage(model, epsilon, adversary=Adversary(target, known)).value
    none = block_leakage(model, epsilon, adversary=Adversary(target)).value
    assert epsilon <= one <= none <= leakage(model, epsilon).value * (1 + 1e-15)


@given(st.lists(st.decimals(0, 1, places=3), min_size=1, max_size=6), sizes)
def test_the_order_of_releases_does_not_matter(spends, sizes):
    model = Blocks(sizes)
    ahead, back = CorrelatedAccountant(model, 1e6), CorrelatedAccountant(model, 1e6)
    for one, other in zip(spends, reversed(spends), strict=True):
        ahead.spend(one)
        back.spend(other)
    assert ahead.spent().value == back.spent().value
    total = float(sum(spends))
    assert ahead.spent().value == pytest.approx(leakage(model, total).value)


@settings(max_examples=50)
@given(
    sizes,
    st.lists(
        st.tuples(st.decimals("0.001", 1, places=3), st.sets(st.integers(0, 5))),
        max_size=6,
    ),
)
def test_the_ledger_is_the_worst_group(sizes, spends):
    model = Blocks(sizes)
    accountant = CorrelatedAccountant(model, 1e6)
    charged = [0.0] * len(sizes)
    for epsilon, drawn in spends:
        blocks = {block % len(sizes) for block in drawn}
        accountant.spend(epsilon, blocks=blocks or None)
        for block in blocks or range(len(sizes)):
            charged[block] += float(epsilon)
    worst = max(m * c for m, c in zip(sizes, charged, strict=True))
    assert accountant.spent().value == pytest.approx(worst, rel=1e-12)


@given(st.lists(sizes, min_size=1, max_size=4), levels)
def test_a_set_keeps_the_promise_under_each_of_its_models(listed, target):
    models = [Blocks(sizes) for sizes in listed]
    found = calibrate_over(models, target)
    for model in models:
        assert leakage(model, found.epsilon).value <= target * (1 + 1e-15)
    assert found.epsilon == min(calibrate(m, target).epsilon for m in models)


@given(st.floats(0, 20), st.floats(0, 0.999), st.floats(0.01, 1e6))
def test_packing_never_falls_below_the_plain_floor(target, beta, change):
    plain = accuracy_floor(target, beta, max_change=change)
    packed = packing_floor(target, beta, max_change=change)
    if plain is not None:
        assert packed == pytest.approx(plain, rel=1e-15)
    if packed is not None:
        assert packed <= change / 2


@given(st.floats(0, 1), st.floats(0, 800), st.floats(0, 10))
def test_posteriors_widen_with_leakage(prior, bound, more):
    low, high = posterior_probability_interval(prior, bound)
    lower, higher = posterior_probability_interval(prior, bound + more)
    assert 0 <= lower <= low <= prior <= high <= higher <= 1


@given(st.floats(2, 1e5), st.floats(1e-3, 20), st.sampled_from(["positive", "sparse"]))
def test_tight_laws_lie_between_the_level_and_the_general_bound(r, epsilon, family):
    value = tightness_leakage(r, epsilon, family=family).value
    assert epsilon <= value <= 2 * epsilon * (1 + 1e-12)
