"""Groups and chains: exact where rational, rounded up where not."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import AssumptionError, InfiniteLossError
from undertow.privacy.gaussian import gaussian_sigma, gdp_delta
from undertow.privacy.group import (
    bracket,
    chain_approx,
    group,
    group_approx,
    group_delta,
    max_group_size,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure

budgets = st.fractions(min_value=0, max_value=20, max_denominator=1000)
deltas = st.fractions(min_value=0, max_value=1, max_denominator=10**9)


def true_bracket(n, epsilon):
    """Return the geometric sum of n terms."""
    with mpmath.workdps(60):
        ratio = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        return mpmath.fsum(ratio**j for j in range(n))


@given(st.integers(0, 40), st.fractions(min_value=0, max_value=15))
def test_the_bracket_is_the_geometric_sum_rounded_up(n, epsilon):
    truth = true_bracket(n, epsilon)
    value = bracket(n, epsilon)
    assert truth <= value <= truth * (1 + mpmath.mpf("1e-12"))


def test_the_bracket_at_its_ends():
    assert bracket(0, 3) == bracket(0, math.inf) == 0
    assert bracket(1, "0.3") == bracket(1, math.inf) == 1
    assert bracket(math.inf, 0) == math.inf
    assert bracket(2, 10**3) == bracket(2, math.inf) == math.inf
    assert bracket(7, 0) == 7
    assert bracket(3, "1e-400") == pytest.approx(3, rel=1e-15)
    assert bracket(3, "1e-400") >= 3


@given(st.fractions(min_value=Fraction(1, 100), max_value=5), st.integers(1, 12))
def test_the_bracket_grows_with_epsilon_and_with_distance(epsilon, n):
    assert bracket(n + 1, epsilon) > bracket(n, epsilon)
    assert bracket(n + 1, epsilon + Fraction(1, 10)) > bracket(n + 1, epsilon)


@given(budgets, deltas, st.integers(1, 6))
def test_a_group_is_a_chain_of_equal_steps(epsilon, delta, n):
    by_group = group_approx(epsilon, delta, n=n)
    by_chain = chain_approx([Approx(epsilon, delta)] * n)
    assert by_group.exact_parameters()[0] == by_chain.exact_parameters()[0]
    assert by_group.delta == pytest.approx(by_chain.delta, rel=1e-11)


def test_a_group_that_reaches_delta_one_says_so():
    assert not group_approx(1, 1e-5, n=12).no_guarantee
    assert group_approx(1, 1e-5, n=13).no_guarantee
    assert group_approx(1, 1e-5, n=13).delta == 1.0
    assert group_delta(1, 1e-5, n=13) > 2.5


@given(st.fractions(min_value=0, max_value=3), st.floats(1e-12, 0.5))
def test_the_largest_group_has_a_guarantee_and_the_next_has_none(epsilon, delta):
    n = max_group_size(epsilon, delta)
    assert group_delta(epsilon, delta, n=n) < 1 <= group_delta(epsilon, delta, n=n + 1)


def test_the_largest_group_at_its_ends():
    assert max_group_size(1, 0) == math.inf
    assert max_group_size(1, 1) == 0
    assert max_group_size(math.inf, "0.1") == 1
    assert max_group_size(0, "0.1") == 9
    assert max_group_size(0, Fraction(1, 10**30)) == 10**30 - 1


@given(budgets, st.fractions(min_value=0, max_value=50, max_denominator=100))
def test_pure_zcdp_and_gdp_groups_are_exact(budget, factor):
    assert group(Pure(budget), factor) == Pure(budget * factor)
    assert group(ZCDP(budget), factor) == ZCDP(budget * factor**2)
    assert group(GDP(budget), factor) == GDP(budget * factor)


@given(budgets, deltas)
def test_a_factor_of_one_changes_nothing(budget, delta):
    for loss in (Pure(budget), Approx(budget, delta), ZCDP(budget), GDP(budget)):
        assert group(loss, 1) == loss


def test_a_factor_of_zero_costs_nothing_even_from_an_infinite_loss():
    assert group(Pure(math.inf), 0) == Pure(0)
    assert group(ZCDP(math.inf), 0) == ZCDP(0)
    assert group(Approx(1, "0.1"), 0) == Approx(0, 0)


def test_an_infinite_loss_stays_infinite():
    assert group(Pure(math.inf), "1/2").is_infinite
    assert group(GDP(math.inf), 3).is_infinite
    assert group(Approx(math.inf, 0), 2) == Approx(math.inf, 0)
    assert group(Approx(math.inf, "0.1"), 2).no_guarantee


@pytest.mark.parametrize("loss", [Pure(0), Approx(0, 0), ZCDP(1), GDP(1)])
def test_an_infinite_factor_is_refused_for_every_notion(loss):
    with pytest.raises(InfiniteLossError, match="no chain of neighbours"):
        group(loss, math.inf)


def test_a_fractional_factor_is_refused_for_approximate_losses_only():
    with pytest.raises(AssumptionError, match="must be an integer"):
        group(Approx(1, "1e-5"), "1.5")
    assert group(Pure(1), "1.5") == Pure("1.5")


def test_the_bracket_at_half_a_step_would_be_false_for_gaussian_noise():
    mu = 1 / gaussian_sigma(1, 1, delta=1e-5)
    at_half = gdp_delta(mu / 2, 0.5)
    assert at_half == pytest.approx(3.918e-6, rel=1e-3)
    assert at_half > 1e-5 * bracket("0.5", 1) == pytest.approx(3.775e-6, rel=1e-3)


@given(
    st.lists(st.tuples(budgets, deltas), min_size=0, max_size=4),
)
def test_a_chain_is_the_nested_sum_rounded_up(pairs):
    chained = chain_approx([Approx(*pair) for pair in pairs])
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for epsilon, delta in reversed(pairs):
            growth = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            total = mpmath.mpf(delta.numerator) / delta.denominator + growth * total
        exact_delta = chained.exact_parameters()[1]
        value = mpmath.mpf(exact_delta.numerator) / exact_delta.denominator
        assert min(total, 1) <= value <= min(1, total * (1 + mpmath.mpf("1e-12")))
    assert chained.exact_parameters()[0] == sum((e for e, _ in pairs), Fraction(0))


def test_a_symmetric_chain_takes_the_worse_direction():
    steps = [Approx("0.5", "1e-6"), Approx(1, "2e-6")]
    both = chain_approx(steps, symmetric=True)
    assert both == chain_approx(steps[::-1])
    assert chain_approx(steps).delta < both.delta


def test_a_chain_is_never_beaten_by_a_mechanism_on_three_databases():
    rng = np.random.default_rng(3)
    for _ in range(50):
        rows = rng.dirichlet(np.ones(4), size=3)
        epsilon = rng.uniform(0, 1, size=2)
        steps = [_approx(rows[i], rows[i + 1], epsilon[i]) for i in range(2)]
        chained = chain_approx(steps)
        true = np.maximum(rows[0] - math.exp(chained.epsilon) * rows[2], 0).sum()
        assert true <= chained.delta + 1e-12


def _approx(p, q, epsilon):
    return Approx(epsilon, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))


def test_what_is_not_a_group_is_refused():
    with pytest.raises(ValueError, match="n must be a finite integer"):
        group_approx(1, 0, n=1.5)
    with pytest.raises(ValueError, match="n must be"):
        group_delta(1, 0, n=-1)
    with pytest.raises(TypeError, match="loss must be a Loss"):
        group("1", 2)
    with pytest.raises(TypeError, match="steps must be Approx"):
        chain_approx([Pure(1)])
