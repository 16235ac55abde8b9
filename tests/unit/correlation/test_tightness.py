"""Laws that reach the general bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.correlation.finite.joint import two_point_law
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.group import (
    FAMILIES,
    tightness_law,
    tightness_leakage,
    tightness_lower_bound,
    tightness_parameter,
    tightness_pearson,
)


def exact_leakage(law, kernel):
    """Leakage over all four attackers, by enumeration; kernel[x1, x2, output]."""
    worst = 0.0
    for axis in (0, 1):
        J, Q = np.moveaxis(law, axis, 0), np.moveaxis(kernel, axis, 0)
        unknown = np.einsum("xu,xuy->xy", J / J.sum(1, keepdims=True), Q)
        worst = max(worst, abs(np.log(unknown[0] / unknown[1])).max())
        for u in (0, 1):
            if J[0, u] > 0 and J[1, u] > 0:
                worst = max(worst, abs(np.log(Q[0, u] / Q[1, u])).max())
    return worst


def response(epsilon):
    """Randomized response for each record."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    bit = np.array([[p, 1 - p], [1 - p, p]])
    return np.einsum("ai,bj->abij", bit, bit).reshape(2, 2, 4)


def noisy_sum(epsilon):
    grid = np.linspace(-2, 4, 601)
    sums = np.add.outer([0, 1], [0, 1])
    return np.exp(-epsilon * abs(grid - sums[..., None]))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("r", [2, 2.5, 3, 10, 1000])
def test_laws_are_laws(family, r):
    law = tightness_law(r, family=family)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-15)
    assert (law.min() > 0) == (family == "positive")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("r", [2, 3.5, 10, 1000])
def test_the_pearson_coefficient_is_that_of_the_law(family, r):
    law = tightness_law(r, family=family)
    x1, x2 = law[1].sum(), law[:, 1].sum()
    covariance = law[1, 1] - x1 * x2
    direct = covariance / math.sqrt(x1 * (1 - x1) * x2 * (1 - x2))
    assert tightness_pearson(r, family=family) == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("r", [2, 3, 10, 200])
def test_the_exact_leakage_matches_a_grid_of_outputs(family, r, epsilon):
    law = tightness_law(r, family=family)
    found = tightness_leakage(r, epsilon, family=family)
    assert found.is_exact
    assert found.value == pytest.approx(
        exact_leakage(law, noisy_sum(epsilon)), abs=1e-9
    )
    assert found.value >= exact_leakage(law, noisy_sum(epsilon))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("r", [2, 3, 10, 200])
def test_the_lower_bound_is_attained_by_both_mechanisms(family, r, epsilon):
    """The output (0, 0), or a sum far below, seen by who knows nothing."""
    law = tightness_law(r, family=family)
    bound = tightness_lower_bound(r, epsilon, family=family)
    for kernel in (response(epsilon), noisy_sum(epsilon)):
        first = np.einsum("xu,xu->x", law / law.sum(1, keepdims=True), kernel[..., 0])
        assert math.log(first[0] / first[1]) == pytest.approx(bound, abs=1e-9)
    assert (
        bound
        <= tightness_leakage(r, epsilon, family=family).value
        <= 2.0000001 * (epsilon)
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_sparse_family_has_its_closed_form(epsilon):
    for r in (2, 10, 1000):
        closed = epsilon + math.log((1 + r * math.exp(epsilon)) / (1 + r))
        found = tightness_leakage(r, epsilon, family="sparse").value
        assert found == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_leakage_tends_to_twice_the_level_and_pearson_to_zero(family):
    rs = [10.0**k for k in range(1, 7)]
    values = [tightness_leakage(r, 1.0, family=family).value for r in rs]
    pearsons = [tightness_pearson(r, family=family) for r in rs]
    assert values == sorted(values)
    assert values[-1] > 2 - 1e-5
    assert pearsons == sorted(pearsons, reverse=True)
    assert pearsons[-1] < 0.0011


def test_level_zero_leaks_nothing():
    assert tightness_leakage(5, 0.0).value == pytest.approx(0, abs=1e-15)
    assert tightness_lower_bound(5, 0.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("pearson", "epsilon", "slack"),
    [(0.1, 1.0, 0.01), (0.5, 0.2, 0.1), (0.01, 1, 1), (0.9, 3, 5), (0.3, 5, 0.1)],
)
def test_the_parameter_meets_both_demands_and_is_the_least(pearson, epsilon, slack):
    r = tightness_parameter(pearson, epsilon, slack=slack)

    def meets(r):
        low = tightness_lower_bound(r, epsilon, family="sparse") >= 2 * epsilon - slack
        return low and tightness_pearson(r, family="sparse") <= pearson

    assert meets(r)
    assert r == 2 or not meets(r - 1)


@pytest.mark.parametrize("r", [1.9, 0, -3, 1e7, math.nan])
def test_the_parameter_is_in_range(r):
    for call in (tightness_law, tightness_pearson):
        with pytest.raises(ValueError, match=r"r must be"):
            call(r)


def test_arguments_are_in_range():
    with pytest.raises(ValueError, match=r"family must be one of"):
        tightness_law(3, family="dense")
    with pytest.raises(ValueError, match=r"epsilon must be"):
        tightness_leakage(3, -1.0)
    with pytest.raises(ValueError, match=r"slack must be positive"):
        tightness_parameter(0.1, 1.0, slack=0)
    with pytest.raises(ValueError, match=r"epsilon must be at most 300"):
        tightness_parameter(0.1, 1000.0, slack=1)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_noisy_sum_of_two_points_leaks_the_whole_group(m):
    """Whoever knows nothing, or the constant record, sees the two databases."""
    law = two_point_law((0,) * m + (0,), (1,) * m + (0,))
    tau = 0.7
    logs = [-tau * abs(y) + tau * abs(y - m) for y in range(-2, m + 3)]
    found = laplace_leakage(law, 1 / tau, query=sum).value
    assert max(map(abs, logs)) == pytest.approx(m * tau)
    assert found == pytest.approx(m * tau)


def test_a_parameter_that_no_float_reaches_is_refused():
    with pytest.raises(ValueError, match=r"finite r"):
        tightness_parameter(1e-200, 1.0, slack=0.1)
