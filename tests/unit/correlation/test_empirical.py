"""Leakage measured from runs: lower bounds that hold, claims that fall."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from undertow.correlation.empirical import (
    KernelSettings,
    Trial,
    _lower_log_ratio,
    estimate_laplace_leakage,
    estimate_leakage,
    estimate_tail_leakage,
    kernel_leakage,
    propose_trials,
    random_trial,
    verify_claim,
)
from undertow.correlation.empirical import kernel_density_estimate as kernel_density
from undertow.correlation.finite.joint import JointTable, two_point_law
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
EXACT = 1.7761366
ALONE = Trial(Adversary(0), (1, 0))


def noisy_sum(rows, rng):
    return rows.sum(axis=1) + rng.laplace(size=len(rows))


def test_the_lower_bound_is_near_the_exact_leakage_and_below_it():
    found = estimate_leakage(FLATMATES, noisy_sum, samples=100_000, seed=3)
    assert 1.6 < found.low < EXACT
    assert found.high == math.inf
    assert found.pair in ((1, 0), (0, 1))
    assert found.event
    assert found.seed == 3


def test_the_same_seed_gives_the_same_estimate():
    runs = [estimate_leakage(FLATMATES, noisy_sum, samples=2000, seed=7) for _ in "ab"]
    assert runs[0] == runs[1]


@pytest.mark.statistical
def test_the_lower_bound_passes_the_truth_no_more_often_than_stated():
    """Chance of each miss at most 0.1; false-alarm rate of the test 1e-6."""
    passed = sum(
        estimate_leakage(
            FLATMATES, noisy_sum, samples=1000, trials=[ALONE], confidence=0.9, seed=s
        ).low
        > EXACT
        for s in range(200)
    )
    assert passed <= stats.binom.isf(1e-6, 200, 0.1)


def test_a_fixed_event_at_a_hundred_thousand_runs_gives_the_published_range():
    rng = np.random.default_rng(0)
    hits, misses = rng.binomial(100_000, [0.4683940, 0.0792949])
    low = _lower_log_ratio(hits, misses, 100_000, error=0.025)
    assert 1.70 < low < 1.79


def test_no_hits_say_nothing():
    assert _lower_log_ratio(0, 5, 10, error=0.05) == -math.inf
    assert _lower_log_ratio(10, 10, 10, error=0.05) < 0


def test_a_false_claim_is_violated_and_a_true_one_is_not_refuted():
    false = verify_claim(FLATMATES, noisy_sum, 1.0, samples=50_000, seed=1)
    assert false.status == "violated"
    assert false.estimate.low > 1.0
    true = verify_claim(FLATMATES, noisy_sum, 1.8, samples=20_000, seed=1)
    assert true.status == "not refuted"


def test_answers_that_sometimes_have_no_noise_are_found():
    def lapse(rows, rng):
        noisy = rows.sum(axis=1) + 4 * rng.laplace(size=len(rows))
        return np.where(rng.random(len(rows)) < 0.05, rows.sum(axis=1), noisy)

    joint = JointTable.independent([[0.5, 0.5], [0.5, 0.5]])
    found = estimate_leakage(joint, lapse, samples=20_000, seed=2)
    assert found.low > 3
    assert found.event.startswith("output == ")


def test_what_only_a_tail_tells_is_found():
    def far(rows, rng):
        noise = rng.laplace(scale=4, size=len(rows))
        return np.where(rng.random(len(rows)) < 0.01 * rows[:, 0], 1000, 0) + noise

    joint = JointTable.independent([[0.5, 0.5]])
    found = estimate_leakage(joint, far, samples=100_000, seed=2)
    assert found.low > 3


def test_finite_outputs_are_tested_value_by_value():
    def tell_parity(rows, rng):
        return (rows.sum(axis=1) + (rng.random(len(rows)) < 0.1)) % 2

    joint = JointTable.independent([[0.5, 0.5], [0.5, 0.5]])
    found = estimate_leakage(joint, tell_parity, samples=20_000, seed=2)
    assert found.low == pytest.approx(math.log(9), abs=0.2)
    assert found.adversary is not None
    assert len(found.adversary.known) == 1


def test_attackers_of_a_long_chain_include_none_and_all_known():
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=12)
    trials = propose_trials(chain, count=20, rng=np.random.default_rng(1))
    known = {len(trial.adversary.known) for trial in trials}
    assert {0, 2, 11} <= known
    assert {trial.pair for trial in trials} == {(0, 1), (1, 0)}


def test_real_records_need_named_secrets():
    model = Gaussian([[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ModelError, match="pairs"):
        propose_trials(model, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda rows, rng: rows, "one number"),
        (lambda rows, rng: np.array(["a"] * len(rows)), "one number"),
    ],
)
def test_a_box_that_returns_something_else_is_refused(mechanism, words):
    with pytest.raises(ValueError, match=words):
        estimate_leakage(FLATMATES, mechanism, samples=200, trials=[ALONE])


def test_no_trials_are_refused():
    with pytest.raises(ValueError, match="trials"):
        estimate_leakage(FLATMATES, noisy_sum, trials=[])
    with pytest.raises(ValueError, match="trials"):
        estimate_laplace_leakage(FLATMATES, 1.0, query=LinearQuery(), trials=[])


def test_known_likelihoods_estimate_the_leakage_closely():
    found = estimate_laplace_leakage(
        FLATMATES, 1.0, query=LinearQuery(), samples=20_000, seed=1
    )
    assert found.low - 0.02 < EXACT < found.high + 0.02
    assert found.value == pytest.approx(EXACT, abs=0.05)


def test_E1_known_likelihoods_of_independent_records():
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], length=10)
    found = estimate_laplace_leakage(
        chain, 0.5, query=CountQuery(), samples=20_000, seed=1
    )
    assert found.value == pytest.approx(0.5, abs=0.03)


def test_likelihoods_need_an_answer_to_each_database():
    with pytest.raises(NotApplicable, match="count or a linear query"):
        estimate_laplace_leakage(FLATMATES, 1.0, query=AnyQuery(), trials=[ALONE])


def test_tails_of_gaussian_records_leak_the_shift():
    model = Gaussian([[1.0, 0.6], [0.6, 1.0]])
    query = LinearQuery(gap=1.0)
    trial = Trial(Adversary(0), (1.0, 0.0))
    found = estimate_tail_leakage(model, 0.5, query=query, trial=trial, seed=2)
    assert found == pytest.approx(0.5 * 1.6, abs=0.02)


def test_a_table_with_values_is_summed_by_value():
    joint = JointTable([[0.4, 0.1], [0.1, 0.4]], [[0, 2], [0, 2]])
    found = estimate_laplace_leakage(
        joint, 1.0, query=LinearQuery(), trials=[ALONE], samples=20_000, seed=3
    )
    exact = math.log(
        (0.8 * math.exp(2) + 0.2 * math.exp(1)) / (0.8 + 0.2 * math.exp(1))
    )
    assert found.value == pytest.approx(exact, abs=0.05)


def test_the_kernel_density_of_a_normal_sample_is_normal():
    rng = np.random.default_rng(4)
    sample = rng.normal(size=50_000)
    places = np.linspace(-2, 2, 41)
    assert kernel_density(sample, places) == pytest.approx(
        stats.norm.pdf(places), abs=0.02
    )


def test_trap_l13_kernel_densities_overshoot_independent_records():
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], length=10)

    def noisy_count(rows, rng):
        return rows.sum(axis=1) + rng.laplace(scale=2, size=len(rows))

    found = kernel_leakage(
        chain,
        noisy_count,
        pairs=[(0, 1)],
        settings=KernelSettings(attackers=40, samples=20_000, points=200),
        rng=np.random.default_rng(1),
    )
    assert found > 0.55  # the truth is 0.5: what is called a lower bound is none


def test_random_attackers_of_the_thesis_never_know_nothing():
    from undertow.correlation.empirical import random_trial

    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], length=4)
    rng = np.random.default_rng(2)
    drawn = [
        random_trial(chain, pairs=[(0, 1)], include_empty=False, rng=rng)
        for _ in range(60)
    ]
    assert {len(trial.adversary.known) for trial in drawn} == {1, 2, 3}


POINT = JointTable([[1.0, 0.0], [0.0, 0.0]])


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
