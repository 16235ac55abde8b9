"""Total variation and what an attacker gains, against enumeration."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import AssumptionError
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.privacy.tradeoff import ApproxTradeOff, GaussianTradeOff, PureTradeOff
from undertow.privacy.variation import (
    advantage_bound,
    attribute_advantage,
    loss_tradeoff,
    reconstruction_bound,
    total_variation,
    total_variation_power,
)


def response(epsilon):
    keep = 1 / (1 + math.exp(-epsilon))
    return np.array([[keep, 1 - keep], [1 - keep, keep]])


@given(st.floats(1e-6, 30), st.floats(0, 1))
def test_variation_of_approximate_dp_is_its_formula_rounded_up(epsilon, delta):
    value = total_variation(Approx(epsilon, delta))
    with mpmath.workdps(50):
        growth = mpmath.exp(mpmath.mpf(str(epsilon)))
        exact_delta = mpmath.mpf(str(delta))
        truth = (growth - 1 + 2 * exact_delta) / (growth + 1)
        assert truth <= value <= truth * (1 + mpmath.mpf("1e-13"))


@given(st.floats(1e-8, 60))
def test_variation_of_gdp_is_its_formula_rounded_up(mu):
    with mpmath.workdps(50):
        truth = mpmath.erf(mpmath.mpf(str(mu)) / mpmath.sqrt(8))
        assert truth <= total_variation(GDP(mu)) <= truth * (1 + mpmath.mpf("1e-13"))


@given(st.floats(0.01, 5))
def test_variation_of_pure_dp_is_attained_by_randomized_response(epsilon):
    rows = response(epsilon)
    attained = np.abs(rows[0] - rows[1]).sum() / 2
    assert total_variation(Pure(epsilon)) == pytest.approx(attained, rel=1e-12)


@given(st.floats(1e-4, 8))
def test_variation_of_zcdp_is_above_that_of_gaussian_noise(rho):
    mu = math.sqrt(2 * rho)
    bound = total_variation(ZCDP(rho))
    assert math.erf(mu / math.sqrt(8)) <= bound <= 1
    assert bound <= math.sqrt(rho / 2) * (1 + 1e-12)


def test_variation_at_the_ends():
    assert total_variation(Pure(0)) == total_variation(GDP(0)) == 0
    assert total_variation(ZCDP(0)) == total_variation(Approx(0, 0)) == 0
    for loss in (Pure(math.inf), GDP(math.inf), ZCDP(math.inf), Approx(0, 1)):
        assert total_variation(loss) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_exact_power_is_the_variation_of_all_joint_outputs(n, epsilon):
    rows = response(epsilon)
    joint = [
        [
            math.prod(row[y] for y in outputs)
            for outputs in itertools.product((0, 1), repeat=n)
        ]
        for row in rows
    ]
    attained = np.abs(np.subtract(*joint)).sum() / 2
    assert total_variation_power(Pure(epsilon), n) == pytest.approx(attained, rel=1e-12)
    generic = total_variation_power(Pure(epsilon), n, method="generic")
    assert generic == pytest.approx(1 - (1 - total_variation(Pure(epsilon))) ** n)
    assert attained <= generic * (1 + 1e-12)


def test_powers_at_the_ends_and_of_zcdp():
    assert total_variation_power(GDP(1), 0) == 0
    assert total_variation_power(Pure(math.inf), 3, method="generic") == 1
    assert total_variation_power(ZCDP("0.1"), 4) == total_variation(ZCDP("0.4"))
    assert total_variation_power(Approx(0, "0.1"), 2) == pytest.approx(0.19)


@given(
    st.floats(0.05, 3),
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.integers(0, 2**31),
)
def test_no_attack_on_randomized_response_passes_the_advantage_bound(
    epsilon, weights, seed
):
    size = len(weights)
    prior = np.array(weights) / sum(weights)
    rng = np.random.default_rng(seed)
    channel = rng.uniform(1, math.exp(epsilon / 2), size=(size, 3))
    channel /= channel.sum(axis=1, keepdims=True)
    bound = advantage_bound(Pure(epsilon), prior=prior)
    for attack in itertools.product(range(size), repeat=3):
        assert attribute_advantage(prior, channel, attack=attack) <= bound + 1e-12


def test_the_advantage_bound_is_attained_by_randomized_response():
    advantage = attribute_advantage([0.5, 0.5], response(1.0), attack=[0, 1])
    assert advantage == pytest.approx(advantage_bound(Pure(1), prior=[0.5, 0.5]))
    assert advantage / 0.5 == pytest.approx(advantage_bound(Pure(1)))


def test_reconstruction_bounds_hold_for_every_attack_on_a_small_channel():
    rng = np.random.default_rng(11)
    for _ in range(40):
        prior = rng.dirichlet(np.ones(3))
        channel = rng.uniform(1, 2, size=(3, 4))
        channel /= channel.sum(axis=1, keepdims=True)
        logs = np.log(channel)
        epsilon = max(np.abs(a - b).max() for a, b in itertools.combinations(logs, 2))
        best = (prior[:, None] * channel).max(axis=0).sum()
        for method in ("ratio", "tradeoff"):
            bound = reconstruction_bound(
                Pure(float(epsilon)), baseline=prior.max(), method=method
            )
            assert best <= bound + 1e-12


@given(st.floats(0, 6), st.floats(0, 1))
def test_the_trade_off_bound_is_never_above_the_ratio_bound(epsilon, baseline):
    loss = Pure(epsilon)
    sharp = reconstruction_bound(loss, baseline=baseline)
    ratio = reconstruction_bound(loss, baseline=baseline, method="ratio")
    assert baseline <= sharp <= ratio * (1 + 1e-12) + 1e-12


def test_reconstruction_at_the_ends():
    assert reconstruction_bound(Pure(math.inf), baseline=0.1, method="ratio") == 1
    assert reconstruction_bound(Pure(math.inf), baseline=0.0, method="ratio") == 0
    assert reconstruction_bound(GDP(math.inf), baseline=0.0) == 1
    assert reconstruction_bound(GaussianTradeOff(1.0), baseline=1.0) == 1
    assert reconstruction_bound(Approx(1, "0.25"), baseline=0.0) == pytest.approx(0.25)


def test_each_loss_has_its_trade_off_function_but_zcdp():
    assert loss_tradeoff(Pure(1)) == PureTradeOff(1)
    assert loss_tradeoff(Approx(1, "0.5")) == ApproxTradeOff(1, 0.5)
    assert loss_tradeoff(GDP(2)) == GaussianTradeOff(2)
    with pytest.raises(AssumptionError, match="convert it to Approx"):
        loss_tradeoff(ZCDP(1))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: loss_tradeoff(1.0), TypeError),
        (lambda: total_variation_power(Pure(1), -1), ValueError),
        (lambda: total_variation_power(Pure(1), 2, method="best"), ValueError),
        (lambda: advantage_bound(Pure(1), prior=[0.5, 0.6]), ValueError),
        (lambda: advantage_bound(Pure(1), prior=[-0.5, 1.5]), ValueError),
        (
            lambda: reconstruction_bound(GDP(1), baseline=0.1, method="ratio"),
            AssumptionError,
        ),
        (lambda: reconstruction_bound(GDP(1), baseline=1.1), ValueError),
        (lambda: attribute_advantage([0.5, 0.5], [[1.0]], attack=[0]), ValueError),
        (lambda: attribute_advantage([1.0], [[1.0]], attack=[1]), ValueError),
        (lambda: attribute_advantage([1.0], [[0.9]], attack=[0]), ValueError),
    ],
)
def test_what_does_not_apply_is_refused(call, error):
    with pytest.raises(error, match="must"):
        call()
