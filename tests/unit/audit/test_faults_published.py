"""Published and derived numbers of the bugs of Sauer, section 10.2, from their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.audit.certificate import epsilon_from_success
from undertow_studies.faults import (
    channel_epsilon,
    missing_reset,
    raised_truth,
    whole_domain_lie,
)
from undertow_studies.faults.law import BitsLaw

PORTO, BEIJING = 3052, 5356


def near(value):
    return pytest.approx(value, abs=5e-5)


def seen(fault):
    """Return the epsilon that reconstruction shows, however many trials are run."""
    m = len(fault.broken.subject.inputs)
    return epsilon_from_success(fault.success, m)


@pytest.mark.parametrize(
    ("level", "expected"),
    [(1, 1.3135), (2, 2.1272), (3, 3.0489), (4, 4.0185), (5, 5.0070), (10, 10.0004)],
)
def test_A9_5_the_law_of_a_lie_from_the_whole_domain_has_the_derived_epsilon(
    level, expected
):
    fault = whole_domain_lie(PORTO, float(level))
    assert seen(fault) == near(expected)
    assert fault.epsilon == near(expected)


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (PORTO, {1: 5.8359, 5: 6.2600, 8: 8.4046, 10: 11.8335}),
        (BEIJING, {1: 6.3942, 5: 6.6577, 8: 8.4158, 10: 10.8332}),
    ],
    ids=["porto", "beijing"],
)
def test_A9_5_the_law_of_a_raised_truth_has_the_derived_epsilon(m, expected):
    for level, value in expected.items():
        fault = raised_truth(m, float(level))
        assert seen(fault) == near(value)
        assert fault.epsilon == near(value)


@pytest.mark.parametrize(
    ("kind", "level", "porto", "beijing"),
    [
        ("sue", 0.25, 0.4714, 0.4713),
        ("sue", 0.5, 0.5436, 0.5435),
        ("oue", 0.25, 0.4961, 0.4960),
        ("oue", 0.5, 0.6015, 0.6014),
        ("oue", 0.75, 0.7223, None),
    ],
)
def test_A9_5_the_law_of_a_bit_that_is_not_reset_shows_the_derived_epsilon(
    kind, level, porto, beijing
):
    assert seen(missing_reset(kind, PORTO, level)) == near(porto)
    if beijing is not None:
        assert seen(missing_reset(kind, BEIJING, level)) == near(beijing)


def test_A9_5_the_true_epsilon_of_the_bit_that_is_not_reset():
    assert missing_reset("sue", PORTO, 0.25).epsilon == near(1.2288)
    # whatever the number of values, and as a table of all outputs of five
    assert missing_reset("sue", 5, 0.25).epsilon == near(1.2288)
    assert channel_epsilon(missing_reset("sue", 5, 0.25).broken.law.matrix) == near(
        1.2288
    )


def test_A9_5_at_oue_075_reconstruction_sees_nothing_and_the_pairs_do():
    fault = missing_reset("oue", PORTO, 0.75)
    assert seen(fault) < fault.claim.level < fault.epsilon


def test_the_success_against_unset_bits_is_that_of_the_table_of_all_reports():
    fault = missing_reset("oue", 6, 0.5)
    law = fault.broken.law
    assert isinstance(law, BitsLaw)
    bits = np.arange(64)[:, None] >> np.arange(6) & 1
    sizes = bits.sum(axis=1)
    guess = np.where(sizes[:, None] > 0, bits / np.maximum(sizes, 1)[:, None], 1 / 6)
    success = (law.matrix.T * guess).sum() / 6
    assert fault.success == pytest.approx(success, rel=1e-12)


@pytest.mark.parametrize("level", [11.0, 12.0, 20.0])
def test_trap_a16_a_truth_above_certainty_is_clipped_and_marked_infinite(level):
    fault = raised_truth(PORTO, level)
    assert fault.success == 1.0
    assert fault.epsilon == seen(fault) == math.inf
    drawn = fault.broken.subject.sample(5, 100, rng=np.random.default_rng(1))
    assert (drawn == 5).all()


def test_trap_a16_what_is_certified_of_a_certain_truth_is_finite_and_refutes():
    fault = raised_truth(64, 7.0)
    assert fault.success == 1.0
    result = fault.audit(seed=1, trials=20_000)
    assert result.epsilon_estimate == math.inf
    assert 7 < result.epsilon_certified < math.inf
    assert result.violated
