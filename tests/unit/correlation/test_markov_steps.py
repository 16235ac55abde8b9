import math

import numpy as np
import pytest

from support.markov_oracle import chain_law, largest_leakage, random_rows
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import ProjectiveTheorem
from undertow.correlation.markov.steps import (
    StepTheorem,
    WindowTheorem,
    log_product,
    step_diameters,
    step_leakage,
    window_bound,
)
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget, NotApplicable

ANY = AnyQuery()
GOLDEN = [[0.5, 0.5], [1.0, 0.0]]


def ring(states):
    step = np.roll(np.eye(states), 1, axis=1)
    return 0.5 * np.eye(states) + 0.25 * (step + step.T)


def test_diameters_are_those_of_the_powers():
    chain = MarkovChain(ring(5))
    found = step_diameters(chain, most=12, until_useless=False)
    assert min(found) == 2
    for k, diameter in found.items():
        L = np.log(np.linalg.matrix_power(ring(5), k))
        gaps = L[:, None] - L[None]
        expected = (gaps.max(axis=2) - gaps.min(axis=2)).max()
        assert diameter == pytest.approx(expected, abs=1e-12)
        assert diameter >= expected - 1e-15


def test_stopping_early_never_loses_the_best_number_of_steps():
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = random_rows(rng, 3)
        P[rng.random((3, 3)) < 0.3] = 0
        P += 1e-3 * (np.eye(3) + np.roll(np.eye(3), 1, axis=1))
        chain = MarkovChain(P, renormalise=True)
        every, some = step_diameters(chain, until_useless=False), step_diameters(chain)
        for epsilon in (0.001, 0.1, 1.0, 10.0):
            assert (
                step_leakage(epsilon, some).value == step_leakage(epsilon, every).value
            )


def test_a_positive_chain_never_leaks_more_than_the_projective_bound():
    chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]])
    for epsilon in (0.01, 1.0, 5.0):
        assert StepTheorem().bound(
            chain, epsilon, query=ANY
        ).value <= ProjectiveTheorem().bound(chain, epsilon, query=ANY).value * (
            1 + 1e-12
        )


def test_the_bound_covers_all_mechanisms_on_a_chain_with_zeros():
    chain = MarkovChain(GOLDEN, length=4)
    law = chain_law(chain.initial_law(), [np.array(GOLDEN)] * 3)
    for epsilon in (0.1, 1.0):
        exact = largest_leakage(law, epsilon)
        assert exact <= StepTheorem().bound(chain, epsilon, query=ANY).value


def test_the_window_bound_is_never_below_the_step_bound():
    chain = MarkovChain(ring(6))
    diameters = step_diameters(chain, until_useless=False)
    for epsilon in (0.001, 0.1, 1.0, 10.0):
        assert (
            window_bound(epsilon, diameters).value
            >= step_leakage(epsilon, diameters).value
        )


def test_the_window_bound_is_the_minimum_over_both_window_lengths():
    diameters = step_diameters(MarkovChain(ring(6)), until_useless=False)
    for epsilon in (0.1, 1.0):
        expected = min(
            (a + b - 1) * epsilon + diameters[a] + diameters[b]
            for a in diameters
            for b in diameters
        )
        assert window_bound(epsilon, diameters).value == pytest.approx(expected)


@pytest.mark.parametrize("length", [None, 50])
@pytest.mark.parametrize("method", [StepTheorem(), WindowTheorem()])
def test_calibrating_and_bounding_cancel(method, length):
    chain = MarkovChain(ring(5), length=length)
    for target in (0.01, 0.5, 3.0, 40.0):
        level = method.invert(chain, target, query=ANY)
        achieved = method.bound(chain, level, query=ANY).value
        assert achieved <= target
        assert achieved == pytest.approx(target, rel=1e-9)


def test_the_window_bound_has_a_least_target_when_its_powers_end():
    slow = MarkovChain([[1 - 1e-4, 1e-4], [1e-4, 1 - 1e-4]])
    least = 2 * min(step_diameters(slow, until_useless=False).values())
    with pytest.raises(InfeasibleTarget, match="use method 'steps'") as refusal:
        WindowTheorem().invert(slow, 0.9 * least, query=ANY)
    assert refusal.value.least == pytest.approx(least)
    assert StepTheorem().invert(slow, 0.9 * least, query=ANY) > 0


def test_a_periodic_chain_is_refused_with_what_works():
    chain = MarkovChain([[0.0, 1.0], [1.0, 0.0]], length=100)
    with pytest.raises(NotApplicable, match="none up to k = 64; use 'general'"):
        StepTheorem().bound(chain, 1.0, query=ANY)


def test_one_record_leaks_its_level():
    found = StepTheorem().bound(MarkovChain(GOLDEN, length=1), 0.3, query=ANY)
    assert found.value == pytest.approx(0.3)


def test_two_records_are_capped_by_the_general_bound():
    chain = MarkovChain(ring(3), length=2)
    assert StepTheorem().bound(chain, 0.3, query=ANY).value <= 0.6 * (1 + 1e-15)


def test_a_time_varying_chain_takes_the_widest_product():
    first, second = np.array(GOLDEN), np.array([[0.6, 0.4], [1.0, 0.0]])
    chain = MarkovChain([first, second, first, second], [0.5, 0.5])
    found = step_diameters(chain, until_useless=False)
    products = [first @ second, second @ first]
    expected = max(
        abs(math.log(P[0, 0] * P[1, 1] / (P[0, 1] * P[1, 0]))) for P in products
    )
    assert 1 not in found
    assert found[2] == pytest.approx(expected)
    assert set(found) <= {2, 3, 4}


def test_products_that_underflow_are_formed_from_logarithms():
    tiny = 1e-200
    P = np.array([[1 - tiny, tiny, 0.0], [0.0, 1 - tiny, tiny], [tiny, 0.0, 1 - tiny]])
    found = step_diameters(MarkovChain(P, renormalise=True))
    # Two steps: a circulant of 1, 2e-200 and 1e-400, which no float holds.
    expected = math.log(2) + 600 * math.log(10)
    assert found[2] == pytest.approx(expected, rel=1e-12)


def test_log_products_match_plain_ones():
    rng = np.random.default_rng(1)
    A, B = rng.random((4, 4)), rng.random((4, 4))
    A[0, 1:] = 0.0
    B[0] = [0.0, 0.0, 0.0, 1.0]
    with np.errstate(divide="ignore"):
        logs = log_product(np.log(A), np.log(B))
        assert np.allclose(np.exp(logs), A @ B)
        low = log_product(np.log(A) - 500, np.log(B) - 500)
    assert np.allclose(np.exp(low + 1000), A @ B)
    assert low[0, 0] == -np.inf


def test_no_diameter_is_refused():
    with pytest.raises(ValueError, match="at least one number of steps"):
        step_leakage(1.0, {})


def test_large_chains_are_left_out_unless_asked_for_by_name():
    big = MarkovChain(np.full((400, 400), 1 / 400))
    assert "400 states" in StepTheorem().too_costly(big, query=ANY)
    assert StepTheorem().too_costly(MarkovChain(GOLDEN), query=ANY) is None


TWO = np.array([[0.7, 0.3], [0.4, 0.6]])


def test_the_window_bound_of_a_long_time_varying_chain_is_not_tried_unasked():
    chain = MarkovChain([TWO] * 1000, [0.5, 0.5])
    assert "never worse" in WindowTheorem().too_costly(chain, query=ANY)
    short = MarkovChain([TWO] * 10, [0.5, 0.5])
    assert WindowTheorem().too_costly(short, query=ANY) is None
