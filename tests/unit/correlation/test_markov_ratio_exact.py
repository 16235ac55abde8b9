import math

import numpy as np
import pytest

from support import markov_oracle
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.published import RatioTheorem, largest_log_ratio
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget, NotApplicable

ANY = AnyQuery()
BACKWARD = [[0.1, 0.1, 0.8], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]


@pytest.mark.parametrize("seed", range(12))
def test_it_equals_brute_force_over_all_attackers(seed):
    rng = np.random.default_rng(seed)
    states, size = (3, int(rng.integers(2, 6))) if seed % 3 else (2, 6)
    start = rng.dirichlet(np.ones(states))
    if seed % 4 == 0:
        start[0] = 0.0
        start /= start.sum()
    one = markov_oracle.random_rows(rng, states)
    many = [markov_oracle.random_rows(rng, states) for _ in range(size - 1)]
    for chain, steps in (
        (MarkovChain(one, start, size), [one] * (size - 1)),
        (MarkovChain(many, start), many),
    ):
        law = markov_oracle.chain_law(start, steps)
        exact = markov_oracle.largest_log_ratio(law)
        assert largest_log_ratio(chain) == pytest.approx(exact, abs=1e-9)
        assert largest_log_ratio(chain) >= exact - 1e-12


def test_a_time_varying_chain_without_a_start_covers_every_start():
    rng = np.random.default_rng(5)
    steps = [markov_oracle.random_rows(rng, 2) for _ in range(3)]
    limit = largest_log_ratio(MarkovChain(steps))
    for _ in range(20):
        start = rng.dirichlet([0.3, 0.3])
        assert largest_log_ratio(MarkovChain(steps, start)) <= limit + 1e-12


def test_five_records_are_as_bad_as_any_number():
    P = [[0.9, 0.1], [0.1, 0.9]]
    five = largest_log_ratio(MarkovChain(P, length=5))
    assert five == pytest.approx(2 * math.log((9**2 + 1) / 2))
    assert largest_log_ratio(MarkovChain(P)) == pytest.approx(five)
    assert largest_log_ratio(MarkovChain(P, length=10**6)) == pytest.approx(five)
    assert largest_log_ratio(MarkovChain(P, length=4)) < five


def test_it_is_never_above_four_log_omega():
    rng = np.random.default_rng(6)
    for _ in range(50):
        P = markov_oracle.random_rows(rng, 3)
        chain = MarkovChain(P, rng.dirichlet(np.ones(3)))
        assert largest_log_ratio(chain) <= 4 * math.log(chain.omega) * (1 + 1e-12)


def test_independent_records_and_one_record_cost_nothing():
    assert largest_log_ratio(MarkovChain([[0.2, 0.8], [0.2, 0.8]])) == 0.0
    assert largest_log_ratio(MarkovChain(BACKWARD, length=1)) == 0.0


def test_zeros_are_refused():
    with pytest.raises(NotApplicable, match="use method 'steps'"):
        largest_log_ratio(MarkovChain([[0.5, 0.5], [1.0, 0.0]]))


def test_the_method_adds_it_to_epsilon_and_refuses_targets_below_it():
    chain = MarkovChain(BACKWARD, length=5)
    rho = largest_log_ratio(chain)
    assert rho == pytest.approx(6.728534791252292)
    found = RatioTheorem().bound(chain, 0.5, query=ANY)
    assert found.value == pytest.approx(0.5 + rho)
    level = RatioTheorem().invert(chain, 7.0, query=ANY)
    assert level == pytest.approx(7.0 - rho)
    assert RatioTheorem().bound(chain, level, query=ANY).value <= 7.0
    with pytest.raises(InfeasibleTarget) as refusal:
        RatioTheorem().invert(chain, 6.0, query=ANY)
    assert refusal.value.least == pytest.approx(rho)
