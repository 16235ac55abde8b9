import math

import pytest

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import projective_leakage, ratio_diameter
from undertow.correlation.markov.published import (
    GammaTheorem,
    ZhaoTheorem,
    accuracy_factor,
    gamma_budget,
    gamma_leakage,
    largest_gamma,
    ratio_threshold,
)
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget, NotApplicable

ANY = AnyQuery()
CHAIN = MarkovChain([[0.882, 0.118], [0.305, 0.695]], length=288)


def test_the_bound_is_epsilon_plus_four_log_gamma():
    found = GammaTheorem().bound(CHAIN, 1.0, query=ANY)
    assert found.value == pytest.approx(1 + 4 * math.log(0.882 / 0.118), rel=1e-14)
    assert "6.20" in found.theorem
    assert gamma_leakage(0.5, 1.0).value == 0.5


def test_the_number_of_records_caps_the_function():
    assert gamma_leakage(0.1, 7.5, size=3).value == pytest.approx(0.3)
    assert gamma_leakage(0.1, 7.5, size=3).method == "general"
    assert gamma_leakage(0.1, 7.5, size=288).method == "gamma"


def test_calibrating_and_bounding_cancel():
    for target in (8.05, 9.0, 20.0, 1e4):
        level = GammaTheorem().invert(CHAIN, target, query=ANY)
        achieved = GammaTheorem().bound(CHAIN, level, query=ANY).value
        assert achieved <= target
        assert achieved == pytest.approx(target, rel=1e-12)


def test_a_target_at_the_limit_is_infeasible_because_noise_would_be_infinite():
    least = 4 * math.log(2.0)
    with pytest.raises(InfeasibleTarget, match=r"'projective'.*'general'") as refusal:
        gamma_budget(least, 2.0)
    assert refusal.value.least == pytest.approx(least)
    assert gamma_budget(least + 1e-6, 2.0) == pytest.approx(1e-6, rel=1e-6)


def test_independent_uniform_records_cost_nothing():
    assert gamma_budget(0.3, 1.0) == 0.3
    assert accuracy_factor(0.3, 1.0) == 1.0


def test_zhao_is_never_below_the_column_ratio_bound_that_proves_it():
    for epsilon in (0.01, 1.0, 10.0):
        found = ZhaoTheorem().bound(CHAIN, epsilon, query=ANY)
        proved = epsilon + 4 * math.log(CHAIN.omega)
        assert found.value == pytest.approx(epsilon + 6 * math.log(CHAIN.omega))
        assert projective_leakage(epsilon, ratio_diameter(CHAIN.omega)).value <= proved
        assert proved <= found.value
    level = ZhaoTheorem().invert(CHAIN, 12.0, query=ANY)
    assert ZhaoTheorem().bound(CHAIN, level, query=ANY).value <= 12.0
    with pytest.raises(InfeasibleTarget, match="'zhao'") as refusal:
        ZhaoTheorem().invert(CHAIN, 10.0, query=ANY)
    assert refusal.value.least == pytest.approx(6 * math.log(CHAIN.omega))


def test_zeros_are_refused_with_what_works():
    golden = MarkovChain([[0.5, 0.5], [1.0, 0.0]])
    for method in (GammaTheorem(), ZhaoTheorem()):
        with pytest.raises(NotApplicable, match="'steps', or 'general'"):
            method.bound(golden, 1.0, query=ANY)
        with pytest.raises(NotApplicable, match="'steps', or 'general'"):
            method.invert(golden, 9.0, query=ANY)


def test_the_threshold_is_where_the_two_bounds_meet():
    gamma = ratio_threshold(0.5, 20)
    assert gamma_leakage(0.5, gamma).value == pytest.approx(20 * 0.5)
    assert ratio_threshold(1.0, 10**6) == math.inf


def test_the_accuracy_factor_and_the_largest_gamma_are_inverse():
    for factor in (1.01, 2.0, 5.0, 100.0):
        gamma = largest_gamma(6.0, factor)
        assert accuracy_factor(6.0, gamma) == pytest.approx(factor, rel=1e-9)


def test_no_factor_reaches_beyond_the_limit():
    assert largest_gamma(5.0, math.inf) == pytest.approx(math.exp(1.25))
    with pytest.raises(InfeasibleTarget):
        accuracy_factor(5.0, largest_gamma(5.0, math.inf))
    with pytest.raises(ValueError, match="factor must be above 1"):
        largest_gamma(5.0, 1.0)
