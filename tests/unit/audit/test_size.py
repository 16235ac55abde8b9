"""Sizes of audits: the least trials that can refute, and stages that share an error."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.audit import Claim
from undertow.audit._size import (
    TESTS,
    early_sizes,
    early_stages,
    last_confidence,
    least_between,
    least_runs,
    least_trials,
)
from undertow.errors import AuditError


@given(st.integers(1, 10**7), st.integers(2, 20))
def test_early_stages_take_a_tenth_of_all_trials_and_no_further_one_would_fit(
    total, inputs
):
    def cost(size: int) -> int:
        return size * inputs + 2 * TESTS * size

    sizes = early_sizes(total, cost)
    assert sizes == [128 * 4**k for k in range(len(sizes))]
    spent = sum(map(cost, sizes))
    assert spent <= total / 10 < spent + cost(128 * 4 ** len(sizes))


@given(st.floats(0.5, 0.999999), st.integers(1, 12))
def test_the_errors_of_all_stages_sum_to_that_of_the_audit_at_most(confidence, count):
    stages = early_stages([128] * count, confidence)
    errors = [1 - Fraction(stage.confidence) for stage in stages]
    errors.append(1 - Fraction(last_confidence(confidence)))
    whole = 1 - Fraction(confidence)
    assert whole * (1 - Fraction(1, 10**6)) <= sum(errors) <= whole
    assert errors[-1] == pytest.approx(0.75 * float(whole), rel=1e-6)


@given(st.integers(1, 10**9))
def test_the_least_number_is_found_wherever_it_is(least):
    assert least_trials(lambda n: n >= least) == least
    assert least_between(0, 10**9 + 1, lambda n: n >= least) == least


def test_where_only_the_upper_end_reaches_it_is_returned():
    assert least_between(3, 9, lambda n: False) == 9
    assert least_between(8, 9, lambda n: True) == 9


@pytest.mark.parametrize("most", [1, 2, 7, 8, 1000])
def test_a_claim_out_of_reach_is_refused_and_one_at_the_limit_is_not(most):
    claim = Claim.pure(1)
    assert least_runs(lambda n: n >= most, claim, most=most) == most
    with pytest.raises(AuditError, match=f"at most {most} runs"):
        least_runs(lambda n: n > most, claim, most=most)
