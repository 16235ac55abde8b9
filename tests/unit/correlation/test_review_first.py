"""Inputs at the edge: each of these once gave a wrong number, or none."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.correlation.attack import (
    calibrate_advantage,
    finite_attack,
    laplace_attack,
    optimal_attack,
    strongest_attack,
)
from undertow.correlation.calibrate import calibrate, calibrate_over
from undertow.correlation.empirical import (
    estimate_leakage,
    propose_trials,
    random_trial,
)
from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable, answer_rounding, two_point_law
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.finite.program import worst_case_kernel, worst_case_leakage
from undertow.correlation.floor import model_floor, native_mechanism, packing_beta
from undertow.correlation.gaussian.model import Gaussian, fit_gaussian
from undertow.correlation.group import Blocks
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import fit_markov, fit_markov_private
from undertow.correlation.pedigree import Pedigree, pedigree_adversary_leakage
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
)
from undertow.correlation.result import Adversary, posterior_probability_interval
from undertow.errors import ModelError, NotApplicable
from undertow.mechanisms import LaplaceMechanism

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
POINT = JointTable([[1.0, 0.0], [0.0, 0.0]])


def flatmates_leakage(epsilon):
    """The leakage of the noisy count of two flatmates, with many digits."""
    with mpmath.workdps(700):
        e = mpmath.e ** mpmath.mpf(epsilon)
        nine, one = (mpmath.mpf(float(p)) for p in FLATMATES.pmf[0])
        return mpmath.log((nine * e**2 + one * e) / (nine + one * e))


# Finite tables


def test_narrow_noise_on_a_table_with_impossible_secrets_is_computed():
    joint = JointTable([[0.5, 0.0], [0.25, 0.25]])
    found = laplace_leakage(joint, 0.001, query=CountQuery({1}))
    assert found.value == pytest.approx(2000 + math.log(2 / 3), rel=1e-12)


@pytest.mark.parametrize("exponent", [-300, -30, -18, -15, -12, -6, -1, 0, 1, 2, 3])
def test_the_laplace_engine_keeps_its_relative_accuracy_over_all_levels(exponent):
    epsilon = 10.0**exponent
    found = laplace_leakage(FLATMATES, 1 / epsilon, query=CountQuery()).value
    truth = flatmates_leakage(Fraction(1) / Fraction(1 / epsilon))
    assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -11)


@pytest.mark.parametrize("target", [1e-300, 1e-18, 1e-15, 1e-12, 1e-6, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("query", [CountQuery(), AnyQuery()])
def test_calibrated_levels_keep_tiny_and_huge_targets(target, query):
    found = calibrate(FLATMATES, target, query=query)
    scale = Fraction(found.noise_scale)
    assert flatmates_leakage(1 / scale) <= target
    assert found.epsilon > target / 2  # better than the general bound


def test_a_kernel_that_hardly_differs_leaks_something():
    found = exact_leakage(FLATMATES, LaplaceMechanism("1e20"), query=CountQuery())
    assert 1.8e-20 <= found.value <= 1e-13
    constant = np.full((2, 2, 3), 1 / 3)
    assert exact_leakage(FLATMATES, constant).value == 0.0


def test_secrets_beyond_the_clip_interval_are_told_apart():
    joint = JointTable([[0.5, 0.0], [0.0, 0.5]], values=[0, 10])
    query = LinearQuery(clip=(2, 8))
    assert leakage(joint, 1.0, query=query).value == pytest.approx(2.0)
    assert calibrate(joint, 1.0, query=query).epsilon == pytest.approx(0.5)


def test_a_gap_that_no_two_values_are_within_is_refused():
    joint = JointTable([[0.5, 0.0], [0.0, 0.5]], values=[0, 10])
    with pytest.raises(NotApplicable, match=r"no two secrets are compared"):
        leakage(joint, 1.0, query=LinearQuery(gap=1.0))


def test_rounding_of_cancelling_values_is_priced_in():
    values = [[0.3, 0.6], [1e16], [-1e16]]
    joint = JointTable(np.full((2, 1, 1), 0.5), values)
    query = LinearQuery()
    assert answer_rounding(joint, query) > 0.3
    assert laplace_leakage(joint, 1.0, query=query).value >= 0.3
    whole = JointTable(np.full((2, 1), 0.5), [[0, 1], [5]])
    assert answer_rounding(whole, query) == 0.0


@pytest.mark.parametrize("epsilon", [700.0, 1000.0, 1e6])
def test_the_program_takes_any_level(epsilon):
    joint = two_point_law((0, 0), (1, 1))
    found = worst_case_leakage(joint, epsilon).value
    assert found == pytest.approx(2 * epsilon, rel=1e-9)
    with pytest.raises(NotApplicable, match=r"epsilon must be at most 345"):
        worst_case_kernel(joint, epsilon)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 340.0])
def test_the_worst_kernel_is_dp(epsilon):
    joint = two_point_law((0, 0), (1, 1))
    everywhere = JointTable(np.full((2, 2), 0.25))
    kernel = worst_case_kernel(joint, epsilon)
    level = exact_leakage(everywhere, kernel, adversaries="informed").value
    assert level <= epsilon * (1 + 1e-9) + 1e-12


def test_a_table_that_hides_nothing_has_no_witness():
    found = exact_leakage(POINT, np.full((2, 2, 2), 0.5))
    assert found.value == 0.0
    assert found.witness is None
    count = laplace_leakage(POINT, 1.0, query=CountQuery())
    assert (count.value, count.witness) == (0.0, None)


def test_dependence_below_the_tolerance_is_covered_by_the_program():
    d = 9e-13
    joint = JointTable(np.array([[1 + d, 1 - d], [1 - d, 1 + d]]) / 4)
    assert joint.independent_groups() == ((0,), (1,))
    truth = 1 + math.log1p(d * (math.e - 1) / (math.e + 1))
    assert worst_case_leakage(joint, 1.0).value >= truth
    assert laplace_leakage(joint, 1.0, query=CountQuery()).value >= truth


@pytest.mark.parametrize("state", [True, np.True_, 1.0, 2, -1, "1"])
def test_known_states_are_whole_numbers_in_range(state):
    with pytest.raises(ValueError, match=r"must have a state in 0\.\.1"):
        FLATMATES.given({0: state})
    assert FLATMATES.given({0: np.int64(1)}).pmf.tolist() == pytest.approx([0.1, 0.9])


# Attacks


def test_attack_states_are_checked():
    with pytest.raises(ValueError, match=r"state must be in 0\.\.1, got 2"):
        optimal_attack(FLATMATES, 1.0, adversary=Adversary(0), pair=(2, 0))
    known = Adversary(0, {1}, {1: 2})
    with pytest.raises(ValueError, match=r"known state must be in 0\.\.1"):
        optimal_attack(FLATMATES, 1.0, adversary=known, pair=(1, 0))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("small", [1.0, 1e-4])
def test_the_strongest_attack_on_two_independent_bits_is_known(epsilon, small):
    joint = JointTable(np.full((2, 2), 0.25))
    found = strongest_attack(joint, epsilon, query=LinearQuery((1.0, small)))
    assert found.advantage == pytest.approx(-math.expm1(-epsilon / 2), rel=1e-12)


@pytest.mark.parametrize("advantage", [1e-14, 1e-9, 0.01, 0.5, 0.95, 1 - 1e-9])
def test_a_calibrated_advantage_is_kept_with_many_digits(advantage):
    found = calibrate_advantage(JointTable(np.full((2, 2), 0.25)), advantage)
    with mpmath.workdps(40):
        kept = mpmath.tanh(1 / (2 * mpmath.mpf(found.noise_scale)))
    assert kept <= advantage
    assert kept >= advantage * (1 - 1e-9)


def test_an_advantage_says_which_secrets_it_covers():
    query = LinearQuery(clip=(0, 1))
    found = calibrate_advantage(Gaussian([[1, 0.2], [0.2, 1]]), 0.5, query=query)
    assert found.scope.summary == "both secrets in [0, 1]"
    assert calibrate_advantage(FLATMATES, 0.5).scope.is_every_pair


def test_nothing_secret_is_no_attack():
    for table in (POINT, JointTable([[1.0]])):
        with pytest.raises(NotApplicable, match=r"two possible states"):
            strongest_attack(table, 1.0, query=CountQuery())


def test_trade_off_curves_are_convex_where_secrets_have_different_supports():
    who = {"adversary": Adversary(0), "pair": (0, 1)}
    for p, q in itertools.permutations(([0, 0.3, 0.7], [0.5, 0.5, 0], [0, 0, 1]), 2):
        for found in (
            finite_attack(p, q, **who),
            laplace_attack([0, 1, 3], p, q, scale=0.01, **who),
            laplace_attack([0, 1, 3], p, q, scale=5.0, **who),
        ):
            curve = found.tradeoff()
            assert curve.total_variation() == pytest.approx(found.advantage, abs=1e-3)


def test_attacks_are_between_laws():
    who = {"adversary": Adversary(0), "pair": (0, 1)}
    with pytest.raises(ModelError, match=r"sum to one"):
        finite_attack([0.5, 0.4], [0.5, 0.5], **who)
    with pytest.raises(ModelError, match=r"support must be increasing"):
        laplace_attack([1, 0], [0.5, 0.5], [0.1, 0.9], scale=1.0, **who)


# The best mechanism


@pytest.mark.slow
def test_the_best_mechanism_keeps_its_promise_where_the_solver_does_not():
    law = np.random.default_rng(3).dirichlet(np.ones(64)).reshape((2,) * 6)
    found = native_mechanism(JointTable(law), 1.0)
    assert found.leakage.value <= 1.0


@pytest.mark.parametrize("target", [1e-8, 800.0])
def test_the_best_mechanism_takes_any_promise(target):
    found = native_mechanism(FLATMATES, target)
    assert found.leakage.value <= target
    assert found.error == pytest.approx(0.9 if target < 1 else 0.0, abs=1e-4)


def test_the_best_mechanism_without_secrets_tells_the_truth():
    assert native_mechanism(POINT, 1.0).error == pytest.approx(0, abs=1e-12)
    assert native_mechanism(JointTable([[1.0]]), 1.0).error == 0.0


def test_programs_that_take_hours_are_refused():
    law = JointTable(np.full((2,) * 8, 2.0**-8))
    with pytest.raises(NotApplicable, match=r"at most 1000000 entries"):
        native_mechanism(law, 1.0)


# Estimates and fits


def test_attackers_who_rule_a_secret_out_are_not_tried():
    joint = two_point_law((0, 0), (1, 1))
    trials = propose_trials(joint, rng=np.random.default_rng(1))
    assert trials
    assert all(not trial.adversary.known for trial in trials)
    drawn = random_trial(
        joint, pairs=[(0, 1)], include_empty=True, rng=np.random.default_rng(2)
    )
    assert not drawn.adversary.known
    found = estimate_leakage(
        joint, lambda rows, rng: rows.sum(axis=1) + rng.laplace(size=len(rows))
    )
    assert 1.8 < found.low <= 2.0
    with pytest.raises(ModelError, match=r"some attacker must hold both secrets"):
        propose_trials(POINT, pairs=[(0, 1)], rng=np.random.default_rng(1))


def test_records_are_not_shown_in_messages():
    with pytest.raises(ModelError) as refusal:
        fit_markov_private([0, 1, 777] * 50, 1.0, states=[0, 1])
    assert "777" not in str(refusal.value)


def test_missing_records_of_every_float_type_are_missing():
    series = np.array([0, 1, np.nan, 1, 0, 0, 1], dtype=np.float32)
    assert fit_markov(series, public=True).missing == 1


def test_a_fit_below_the_least_level_is_refused():
    with pytest.raises(ValueError, match=r"at least 1e-12"):
        fit_markov_private([0, 1] * 50, 1e-20, states=[0, 1])


def test_columns_that_determine_each_other_are_refused():
    column = np.random.default_rng(1).normal(size=(50, 1))
    with pytest.raises(ModelError, match=r"combination of the others"):
        fit_gaussian(np.hstack([column, 2 * column]), public=True)


def test_normality_of_many_rows_needs_little_memory():
    rows = np.random.default_rng(1).normal(size=(200_000, 3))
    assert not fit_gaussian(rows, public=True).doubts


def test_skewness_is_the_mean_over_all_pairs():
    rows = np.random.default_rng(1).exponential(size=(40, 3))
    centred = rows - rows.mean(axis=0)
    products = centred @ np.linalg.solve(np.cov(rows.T, bias=True), centred.T)
    skew, kurtosis = fit_gaussian(rows, public=True).checks
    assert skew.statistic == pytest.approx(40 * (products**3).mean() / 6)
    mardia = ((np.diag(products) ** 2).mean() - 15) / math.sqrt(8 * 15 / 40)
    assert kurtosis.statistic == pytest.approx(mardia)


# Floors, odds, groups, sets of models, relatives


def test_a_floor_does_not_pass_what_the_records_can_do():
    uneven = JointTable([[0.4, 0.1], [0.1, 0.4]], values=[[0, 1], [0, 100]])
    assert model_floor(uneven, 1.0, query=LinearQuery(), beta=0.05) == 50.5
    assert model_floor(uneven, 1.0, query=CountQuery({0, 1}), beta=0.05) == 0.0
    steps = JointTable(np.full((3, 3), 1 / 9), values=[0, 2, 4])
    near = model_floor(steps, 1.0, query=LinearQuery(gap=3.0), beta=0.05)
    assert near == pytest.approx(1.0)  # independent records, two apart
    trio = Pedigree.nuclear(1, frequency=0.5)
    assert model_floor(trio, 1.0, query=LinearQuery(clip=(1, 9)), beta=0.05) == 1.5


def test_floors_are_rounded_down():
    found = model_floor(Blocks([3]), 1.0, query=LinearQuery(0.1, clip=(0, 1)), beta=0)
    assert Fraction(found) <= 3 * Fraction(0.1) / 2
    assert packing_beta(700.1, 3) <= 3 / (3 + mpmath.e ** mpmath.mpf(700.1))


def test_sensitivities_are_rounded_up():
    query = LinearQuery(0.7, clip=(0.1, 1.3))
    exact = Fraction(0.7) * (Fraction(1.3) - Fraction(0.1))
    assert Fraction(query.sensitivity(Blocks([2]))) >= exact
    median = LipschitzQuery(0.7, clip=(0.1, 1.3))
    assert Fraction(median.sensitivity(Blocks([2]))) >= exact


def test_probabilities_too_small_to_invert_still_move():
    low, high = posterior_probability_interval(5e-324, 10.0)
    assert low == 0.0
    assert high >= 1e-319


def test_a_query_that_nothing_moves_is_not_calibrated():
    with pytest.raises(ModelError, match=r"answered without noise"):
        calibrate(JointTable([[1.0]]), 1.0, query=LinearQuery())


def test_unbounded_records_have_no_per_record_bound():
    with pytest.raises(ModelError, match=r"clip="):
        leakage(Blocks([2]), 1.0, query=LinearQuery())


def test_sizes_whose_sum_overflows_are_refused():
    with pytest.raises(ModelError, match=r"at most 100000000 records"):
        Blocks([2**62] * 4)


def test_a_set_of_models_covers_only_what_each_covers():
    rho = np.full((5, 5), 0.05) + 0.95 * np.eye(5)
    query = LipschitzQuery(clip=(0, 1))
    found = calibrate_over(
        {"family": Gaussian(rho), "pairs": Blocks([2, 2, 1])}, 1.0, query=query
    )
    assert found.epsilon == 0.5  # of the pairs, whose bound covers every pair
    assert found.achieves.scope.summary == "both secrets in [0, 1]"
    trusted = " ".join(found.achieves.unchecked)
    assert "Gaussian" in trusted
    assert "mutually independent" in trusted


def test_relatives_that_cannot_occur_together_are_refused():
    trio = Pedigree.nuclear(1, frequency=0.5)
    impossible = Adversary(1, {0, 2}, {0: 0, 2: 2})
    with pytest.raises(ModelError, match=r"occur together"):
        pedigree_adversary_leakage(trio, 1.0, adversary=impossible)


def test_unknown_strangers_make_an_attackers_leakage_a_bound():
    pair = Pedigree([None, (0,), None], founder=[0.2, 0.3, 0.5])
    alone = Adversary(0, {2}, {2: 1})
    assert pedigree_adversary_leakage(pair, 1.0, adversary=alone).tight is True
    blurred = pedigree_adversary_leakage(pair, 1.0, adversary=Adversary(0))
    assert blurred.tight is None
