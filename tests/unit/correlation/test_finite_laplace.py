"""Laplace mixtures and the exact Laplace engine."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.correlation.finite import exact as extended
from undertow.correlation.finite import laplace as engine
from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable, answer_rounding
from undertow.correlation.finite.laplace import (
    LaplaceJointTheorem,
    laplace_leakage,
    laplace_ratio_suprema,
    laplace_ratio_supremum,
)
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
)
from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms import LaplaceMechanism

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])


def chain(length: int) -> JointTable:
    P = np.array([[0.882, 0.118], [0.305, 0.695]])
    table = np.array([0.305, 0.118]) / 0.423
    for _ in range(length - 1):
        table = table[..., None] * P
    return JointTable(table)


def grid_supremum(support, p, q, scale):
    """Search a fine grid between and beyond the centres."""
    low, high = support[0] - 3 * scale, support[-1] + 3 * scale
    outputs = np.linspace(low, high, 20_001)
    noise = np.exp(-np.abs(outputs[:, None] - support) / scale)
    return float(np.log((noise @ p) / (noise @ q)).max())


@pytest.mark.parametrize("seed", range(8))
def test_the_supremum_over_all_outputs_is_reached_at_a_centre(seed):
    rng = np.random.default_rng(seed)
    support = np.sort(rng.normal(size=5))
    p, q = rng.dirichlet(np.full(5, 0.3), size=2)
    scale = rng.uniform(0.1, 3)
    found = laplace_ratio_supremum(support, p, q, scale=scale)
    searched = grid_supremum(support, p, q, scale)
    assert searched <= found + 1e-12
    assert searched == pytest.approx(found, abs=0.02)


def test_wide_supports_do_not_underflow():
    found = laplace_ratio_supremum([0, 1, 5000], [1, 0, 0], [0, 0, 1], scale=1)
    assert found == 5000.0
    mixed = laplace_ratio_supremum(
        [0, 1, 5000], [0.5, 0.25, 0.25], [0.25, 0.5, 0.25], scale=1
    )
    left = (0.5 + 0.25 / math.e) / (0.25 + 0.5 / math.e)
    assert mixed == pytest.approx(math.log(left), abs=1e-12)


def test_both_recursions_agree_where_either_may_be_used(monkeypatch):
    rng = np.random.default_rng(0)
    support, laws = np.arange(7.0), rng.dirichlet(np.ones(7), size=(2, 30))
    narrow = laplace_ratio_suprema(support, *laws, scale=0.5)
    monkeypatch.setattr("undertow.correlation.finite.laplace._SPREAD", 0.0)
    assert laplace_ratio_suprema(support, *laws, scale=0.5) == pytest.approx(
        narrow, abs=1e-13
    )


def test_mixtures_are_checked():
    with pytest.raises(ValueError, match="strictly increasing"):
        laplace_ratio_supremum([0, 0], [1, 0], [0, 1], scale=1)
    with pytest.raises(ValueError, match="finite"):
        laplace_ratio_supremum([0, np.nan], [1, 0], [0, 1], scale=1)
    with pytest.raises(ValueError, match="p must be non-negative and sum to one"):
        laplace_ratio_supremum([0, 1], [0.5, 0.4], [0, 1], scale=1)
    with pytest.raises(ValueError, match="q must have one weight"):
        laplace_ratio_supremum([0, 1], [1, 0], [1], scale=1)
    with pytest.raises(ValueError, match="scale must be positive"):
        laplace_ratio_supremum([0, 1], [1, 0], [0, 1], scale=0)


def test_centres_of_discrete_noise_must_lie_on_its_lattice():
    half = Fraction(1, 2)
    on = laplace_ratio_supremum([0, 0.5], [1, 0], [0, 1], scale=1, step=half)
    assert on == 0.5
    with pytest.raises(AssumptionError, match=r"multiples of the noise step 1/2"):
        laplace_ratio_supremum([0, 0.3], [1, 0], [0, 1], scale=1, step=half)


def test_discrete_noise_has_its_supremum_at_a_centre_too():
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(4), size=2)
    support = np.array([0, 2, 3, 7])
    outputs = np.arange(-50, 58)
    noise = np.exp(-np.abs(outputs[:, None] - support) / 1.7)
    searched = np.log((noise @ p) / (noise @ q)).max()
    found = laplace_ratio_supremum(support, p, q, scale=1.7, step=Fraction(1))
    assert found == pytest.approx(searched, abs=1e-13)


@pytest.mark.parametrize(
    "query",
    [
        CountQuery(),
        CountQuery([0, 2]),
        LinearQuery(),
        LinearQuery([1.0, -2.0, 0.5]),
        LinearQuery(clip=(0.5, 1.5)),
        max,
        lambda database: database[0] * database[1] - database[2],
    ],
)
def test_the_engine_agrees_with_the_kernel_route(query):
    rng = np.random.default_rng(8)
    joint = JointTable(rng.dirichlet(np.full(27, 0.5)).reshape(3, 3, 3))
    kernel_route = exact_leakage(joint, LaplaceMechanism("0.7"), query=query)
    found = laplace_leakage(joint, 0.7, query=query)
    assert found.value == pytest.approx(kernel_route.value, abs=1e-11)
    assert found.is_exact


def test_groups_are_done_on_their_own_without_changing_the_value():
    pmf = np.einsum("ac,b->abc", FLATMATES.pmf, [0.3, 0.7])
    joint = JointTable(pmf)
    found = laplace_leakage(joint, 1.0, query=CountQuery())
    whole = exact_leakage(joint, LaplaceMechanism(1), query=CountQuery())
    assert found.value == pytest.approx(whole.value, abs=1e-10)
    assert found.witness.details["known"] == [1]
    assert "output" not in found.witness.details


def test_secrets_outside_the_scope_are_not_compared():
    joint = JointTable([[0.4, 0.1, 0.1], [0.1, 0.1, 0.2]], [[0, 1], [0, 1, 9]])
    near = laplace_leakage(joint, 1.0, query=LinearQuery(gap=1.0))
    far = laplace_leakage(joint, 1.0, query=LinearQuery())
    assert near.scope.summary == "secrets at most 1 apart"
    assert near.value < far.value
    with pytest.raises(NotApplicable, match=r"no two secrets are compared"):
        laplace_leakage(joint, 1.0, query=LinearQuery(gap=0.5))


def test_values_outside_the_clip_interval_are_secrets_too():
    joint = JointTable([[0.4, 0.1, 0.1], [0.1, 0.1, 0.2]], [[0, 1], [0, 1, 9]])
    for clip in ((0, 1), (3, 4), (0.5, 20)):
        found = laplace_leakage(joint, 1.0, query=LinearQuery(clip=clip))
        whole = exact_leakage(joint, LaplaceMechanism(1), query=LinearQuery(clip=clip))
        assert found.scope.is_every_pair
        assert found.value == pytest.approx(whole.value, abs=1e-11)
        assert found.value > 0


def test_a_wide_gap_scope_is_the_every_pair_value():
    joint = JointTable([[0.4, 0.1, 0.1], [0.1, 0.1, 0.2]], [[0, 1], [0, 1, 9]])
    everything = laplace_leakage(joint, 1.0, query=LinearQuery())
    wide = laplace_leakage(joint, 1.0, query=LinearQuery(gap=9.0))
    assert wide.value == everything.value


def test_leakage_at_no_budget_and_of_constant_records_is_zero():
    method = LaplaceJointTheorem()
    assert method.bound(FLATMATES, 0.0, query=CountQuery()).value == 0.0
    constant = JointTable(FLATMATES.pmf, values=[3, 3])
    assert method.bound(constant, 1.0, query=LinearQuery()).value == 0.0
    assert method.invert(constant, 1.0, query=LinearQuery()) == 1.0


@pytest.mark.parametrize("query", [AnyQuery(), LipschitzQuery(clip=(0, 1))])
def test_queries_without_known_answers_are_not_for_this_method(query):
    method = LaplaceJointTheorem()
    for level in (0.0, 1.0):
        with pytest.raises(NotApplicable, match="use the program"):
            method.bound(FLATMATES, level, query=query)
    with pytest.raises(NotApplicable, match="use the program"):
        method.invert(FLATMATES, 1.0, query=query)
    assert method.too_costly(FLATMATES, query=query) is None


@pytest.mark.parametrize("target", [1e-6, 0.1, 1.0, 3.0, 50.0])
def test_the_budget_is_the_largest_level_within_the_target(target):
    method, query = LaplaceJointTheorem(), CountQuery()
    level = method.invert(FLATMATES, target, query=query)
    assert method.bound(FLATMATES, level, query=query).value <= target
    more = method.bound(FLATMATES, level * (1 + 1e-8), query=query).value
    assert more > target


def test_large_tables_are_left_out_unless_asked_for(monkeypatch):
    method, query = LaplaceJointTheorem(), CountQuery()
    assert method.too_costly(chain(10), query=query) is None
    monkeypatch.setattr(engine, "_CHEAP", 26)
    reason = method.too_costly(FLATMATES, query=query)
    assert reason == "the exact Laplace engine would tabulate 27 probabilities"
    monkeypatch.setattr(extended, "_LARGEST", 26)
    with pytest.raises(NotApplicable, match="got 27"):
        method.bound(FLATMATES, 1.0, query=query)


def test_ten_records_of_a_chain_have_their_known_value():
    found = laplace_leakage(chain(10), 1.0, query=CountQuery())
    assert found.value == pytest.approx(3.385712545, abs=1e-9)


def test_answers_are_checked_against_the_lattice_of_discrete_noise():
    laplace_leakage(FLATMATES, 1.0, query=CountQuery(), step=Fraction(1))
    with pytest.raises(AssumptionError, match="multiples"):
        laplace_leakage(FLATMATES, 1.0, query=LinearQuery(0.5), step=Fraction(1))


def flatmates_leakage(epsilon):
    """The leakage of the noisy count of two flatmates, with many digits."""
    with mpmath.workdps(700):
        e = mpmath.e ** mpmath.mpf(epsilon)
        nine, one = (mpmath.mpf(float(p)) for p in FLATMATES.pmf[0])
        return mpmath.log((nine * e**2 + one * e) / (nine + one * e))


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


def test_rounding_of_cancelling_values_is_priced_in():
    values = [[0.3, 0.6], [1e16], [-1e16]]
    joint = JointTable(np.full((2, 1, 1), 0.5), values)
    query = LinearQuery()
    assert answer_rounding(joint, query) > 0.3
    assert laplace_leakage(joint, 1.0, query=query).value >= 0.3
    whole = JointTable(np.full((2, 1), 0.5), [[0, 1], [5]])
    assert answer_rounding(whole, query) == 0.0
