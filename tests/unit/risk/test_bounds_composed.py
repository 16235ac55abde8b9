"""Several releases: product rule, tensor products, and the exact binomial pair."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from undertow.errors import AssumptionError
from undertow.privacy import (
    GDP,
    ZCDP,
    Approx,
    GaussianTradeOff,
    LaplaceTradeOff,
    Pure,
    total_variation,
)
from undertow.risk.bounds import (
    composed_bound,
    composed_tradeoff,
    composed_variation,
    prior_free_bound,
    tradeoff_bound,
    variation_product,
)


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 10), ("1", 5), ("2", 3)])
def test_equal_pure_releases_are_two_binomials(epsilon, count):
    e = math.exp(float(epsilon))
    p, k = e / (1 + e), range(count + 1)
    laws = [stats.binom.pmf(k, count, q) for q in (p, 1 - p)]
    exact = abs(laws[0] - laws[1]).sum() / 2
    value = composed_variation([Pure(epsilon)] * count)
    assert value == pytest.approx(exact, rel=1e-9)
    assert value >= exact * (1 - 1e-14)


def test_the_product_rule_is_exact_arithmetic():
    assert variation_product([]) == 0
    assert variation_product([0.2, 1.0]) == 1
    assert variation_product([1e-18] * 3) == pytest.approx(3e-18, rel=1e-12)
    assert variation_product([0.1, 0.3]) == pytest.approx(0.37, rel=1e-12)
    assert variation_product([0.1, 0.3]) >= 0.37


def test_different_pure_releases_compose_below_the_product_rule():
    releases = [Pure("0.3"), Pure("0.7"), Pure("0.3")]
    rates = [math.exp(e) / (1 + math.exp(e)) for e in (0.3, 0.7, 0.3)]
    exact = 0.0
    for bits in range(8):
        first = second = 1.0
        for i, rate in enumerate(rates):
            bit = bits >> i & 1
            first *= rate if bit else 1 - rate
            second *= 1 - rate if bit else rate
        exact += abs(first - second) / 2
    value = composed_variation(releases)
    assert value == pytest.approx(exact, rel=1e-9)
    product = variation_product([total_variation(loss) for loss in releases])
    assert value < product


def test_gaussian_releases_add_their_squares():
    assert composed_tradeoff([GDP(3), GDP(4)]) == GaussianTradeOff(5.0)
    value = composed_variation([GDP("0.1")] * 100)
    assert value == pytest.approx(math.erf(1 / math.sqrt(8)), rel=1e-9)


def test_mixed_releases_and_the_empty_one():
    assert composed_variation([]) == 0
    assert composed_tradeoff([]).total_variation() == 0
    parts = [GDP(1), Approx(1, "1e-3"), LaplaceTradeOff(0.5)]
    mixed = composed_variation(parts)
    singles = [total_variation(GDP(1)), total_variation(parts[1]), 1 - math.exp(-0.25)]
    assert max(singles) < mixed < variation_product(singles)


def test_zcdp_releases_are_added_up():
    many = composed_variation([ZCDP("0.01")] * 4)
    assert many == total_variation(ZCDP("0.04"))
    mixed = composed_variation([ZCDP("0.04"), Pure(1)])
    expected = variation_product([total_variation(ZCDP("0.04")), math.tanh(0.5)])
    assert mixed == pytest.approx(expected, rel=1e-12)


def test_pure_releases_are_capped_without_a_prior():
    few = composed_bound([Pure(1), Pure(1)])
    assert few.value == prior_free_bound(2.0).value
    many = composed_bound([Pure("0.1")] * 10, collision=0.5)
    assert many.value < prior_free_bound(1.0).value
    assert composed_bound([GDP(1)], collision=0.5).theorem.startswith("Theorem 5.2")


def test_without_knowledge_the_composed_function_is_sharper():
    known = {"best_guess": 0.1, "worst_guess": 0.1, "collision": 0.1}
    f = composed_tradeoff([Pure("0.1")] * 10)
    sharp = tradeoff_bound(f, **known).value
    assert sharp < composed_bound([Pure("0.1")] * 10, collision=0.1).value


def test_no_release_is_refused():
    with pytest.raises(AssumptionError, match="at least one"):
        composed_bound([])
    with pytest.raises(ValueError, match="total variation"):
        variation_product([1.5])
