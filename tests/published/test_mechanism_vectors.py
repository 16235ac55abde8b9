"""Vectors of the base mechanisms, with the identifiers of the test index."""

import math

import numpy as np
import pytest

from undertow.mechanisms.accuracy import (
    accuracy_interval,
    gaussian_accuracy,
    gaussian_confidence,
    laplace_accuracy,
    laplace_confidence,
)
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.privacy.gaussian import gaussian_sigma
from undertow.privacy.loss import GDP, Pure
from undertow.spaces.metric import AbsoluteDifference, DiscreteMetric, LpNorm


def test_T_3_1_binary_randomized_response_loses_exactly_one():
    mechanism = RandomizedResponse(2, 1)
    assert float(mechanism.keep_probability) == pytest.approx(0.731058578630, abs=5e-13)
    assert mechanism.pair_loss(0, 1).epsilon == 1.0
    assert mechanism.loss(DiscreteMetric()).epsilon == 1.0
    log_ratio = mechanism.log_pmf(0, 0) - mechanism.log_pmf(0, 1)
    assert log_ratio == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        pytest.param(1, 1e-5, 3.73063163482, id="T-4.7-1-1e-5"),
        pytest.param(0.5, 1e-5, 7.03182667558, id="T-4.7-0.5-1e-5"),
        pytest.param(1, 1e-6, 4.22467888933, id="T-4.7-1-1e-6"),
        pytest.param(2, 1e-5, 1.99381244564, id="T-4.7-2-1e-5"),
        pytest.param(3, 1e-5, 1.39059345667, id="T-4.7-3-1e-5"),
    ],
)
def test_T_4_7_the_analytic_sigma_makes_the_mechanism_private(epsilon, delta, sigma):
    least = gaussian_sigma(1, epsilon, delta=delta)
    assert least == pytest.approx(sigma, abs=1e-11)
    assert GaussianMechanism(least).approx_loss(epsilon).delta <= delta
    assert GaussianMechanism(least - 1e-6).approx_loss(epsilon).delta > delta


def test_T_4_8_laplace_accuracy_is_the_logarithm_of_twenty():
    assert laplace_accuracy(1, 0.05) == pytest.approx(2.995732273554, abs=1e-12)
    assert laplace_accuracy(1, 0.05) >= math.log(20)
    assert LaplaceMechanism(1).accuracy(0.05) == laplace_accuracy(1, 0.05)
    assert laplace_confidence(1, math.log(20)) == pytest.approx(0.05)


def test_T_4_8_gaussian_accuracy_exact_and_by_the_tail_bound():
    assert gaussian_accuracy(1, 0.05) == pytest.approx(1.959963984540, abs=1e-12)
    tail = gaussian_accuracy(1, 0.05, method="tail")
    assert tail == pytest.approx(2.716203031481, abs=1e-12)
    assert gaussian_confidence(1, 1.959963984540054) == pytest.approx(0.05)
    assert GaussianMechanism(1).accuracy(0.05) == gaussian_accuracy(1, 0.05)


def test_E16_an_accurate_answer_of_32_means_31_to_33():
    # The example printed after Definition 2.7 of the thesis says 31 to 32.
    assert accuracy_interval(32, 1) == (31.0, 33.0)
    scale = 1 / math.log(20)  # makes the Laplace answer (1, 0.05)-accurate
    mechanism = LaplaceMechanism(scale)
    assert mechanism.accuracy(0.05) == pytest.approx(1)
    inside = mechanism.cdf(33.0, 32.0) - mechanism.cdf(31.0, 32.0)
    assert inside == pytest.approx(0.95)
    printed = mechanism.cdf(32.0, 32.0) - mechanism.cdf(31.0, 32.0)
    assert printed == pytest.approx(0.475)


def test_section_4_3_base_mechanisms_are_private_in_their_norms():
    assert LaplaceMechanism(4, dimension=3).loss(LpNorm(1)) == Pure("1/4")
    assert GaussianMechanism(4, dimension=3).loss(LpNorm(2)) == GDP("1/4")


def test_section_7_8_the_value_level_loss_can_be_below_the_sensitivity_bound():
    # Two neighbours whose counts happen to agree cost nothing at this pair.
    mechanism = LaplaceMechanism.calibrate(1, "0.5")
    assert mechanism.loss(AbsoluteDifference()) == Pure("0.5")
    assert mechanism.pair_loss(17, 17) == Pure(0)
    assert mechanism.pair_loss(17, 18) == Pure("0.5")


def test_warner_and_geometric_laws_agree_on_one_bit():
    # A discrete Laplace count truncated to {0, 1} is randomised response.
    from undertow.mechanisms.bounded_noise import TruncatedMechanism
    from undertow.mechanisms.discrete import DiscreteLaplaceMechanism

    bit = TruncatedMechanism(DiscreteLaplaceMechanism(1), 0, 1)
    law = np.exp(bit.log_pmf(np.array([0, 1]), 0))
    assert law == pytest.approx(RandomizedResponse(2, 1).pmf(0))
    assert bit.loss(AbsoluteDifference()).epsilon == pytest.approx(1)
