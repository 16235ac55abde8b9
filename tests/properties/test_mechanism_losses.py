"""Properties every mechanism's loss and law must have, on drawn parameters."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax
from undertow.privacy.loss import Pure
from undertow.spaces.metric import AbsoluteDifference

UNIT = AbsoluteDifference()
scales = st.fractions(Fraction(1, 20), 50, max_denominator=40)
values = st.fractions(-30, 30, max_denominator=20)
integers = st.integers(-8, 8)
ADDITIVE = [
    LaplaceMechanism,
    GaussianMechanism,
    DiscreteLaplaceMechanism,
    DiscreteGaussianMechanism,
]
PURE = [LaplaceMechanism, DiscreteLaplaceMechanism]


def parameter(loss):
    return Fraction(loss.exact_parameters()[0])


@pytest.mark.parametrize("kind", ADDITIVE)
@given(scale=scales, x=integers, y=integers)
def test_the_pair_loss_is_the_loss_per_unit_times_the_distance(kind, scale, x, y):
    mechanism = kind(scale)
    distance = abs(x - y) if kind in PURE else (x - y) ** 2
    paid = parameter(mechanism.pair_loss(x, y))
    assert paid == parameter(mechanism.loss(UNIT)) * distance


@pytest.mark.parametrize("kind", PURE)
@given(scale=scales, x=integers, y=integers, output=st.integers(-300, 300))
def test_no_output_beats_the_pair_loss(kind, scale, x, y, output):
    mechanism = kind(scale)
    ratio = mechanism.log_density(output, x) - mechanism.log_density(output, y)
    assert abs(ratio) <= mechanism.pair_loss(x, y).epsilon * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize("bounded", [ClampedMechanism, TruncatedMechanism])
@given(scale=scales, x=integers, y=integers, output=integers)
@settings(max_examples=30)
def test_no_output_beats_the_bounded_pair_loss(kind, bounded, scale, x, y, output):
    mechanism = bounded(kind(scale), -8, 8)
    ratio = mechanism.log_density(output, x) - mechanism.log_density(output, y)
    paid = mechanism.pair_loss(x, y).epsilon
    assert abs(ratio) <= paid * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("kind", ADDITIVE)
@given(scale=scales, x=integers, y=integers, z=integers)
@settings(max_examples=30)
def test_the_truncated_loss_is_a_metric_below_its_unit(kind, scale, x, y, z):
    mechanism = TruncatedMechanism(kind(scale), -8, 8)
    xy, yz, xz = (parameter(mechanism.pair_loss(*p)) for p in ((x, y), (y, z), (x, z)))
    slack = Fraction(1, 10**7)
    assert xz <= xy + yz + slack
    assert parameter(mechanism.pair_loss(y, x)) == xy
    per_unit = parameter(mechanism.loss(UNIT))
    assert xy <= per_unit * abs(x - y) * (1 + slack) + slack
    assert xy <= parameter(mechanism.worst_loss(abs(x - y))) + slack


@given(scale=scales, sensitivity=st.fractions(Fraction(1, 1000), 40))
@pytest.mark.parametrize("kind", [LaplaceMechanism, GaussianMechanism])
def test_what_is_released_never_costs_less_than_the_ideal(kind, scale, sensitivity):
    mechanism = kind(scale)
    power = 1 if kind is LaplaceMechanism else 2
    ideal = (sensitivity / scale) ** power / power
    paid = parameter(mechanism.released_loss(sensitivity))
    rounded = ((sensitivity + mechanism.released.step) / scale) ** power / power
    assert ideal <= paid <= rounded


@given(epsilon=st.fractions(0, 40, max_denominator=1000), k=st.integers(2, 30))
def test_randomized_response_never_spends_more_than_epsilon(epsilon, k):
    mechanism = RandomizedResponse(k, epsilon)
    assert mechanism.loss().within(Pure(epsilon))
    assert epsilon - parameter(mechanism.loss()) < Fraction(1, 2**54)
    law = mechanism.exact_pmf(0)
    assert sum(law) == 1
    # ratio <= e^epsilon, through the floats on either side
    assert float(law[0] / law[1]) <= math.exp(float(epsilon)) * (1 + 1e-12)


scores = st.lists(st.fractions(-20, 20, max_denominator=8), min_size=3, max_size=3)


@pytest.mark.parametrize("noise", [None, "exponential", "laplace"])
@given(first=scores, second=scores, rate=st.fractions(Fraction(1, 10), 4))
@settings(max_examples=30)
def test_a_choice_never_loses_more_than_the_spread_of_its_scores(
    noise, first, second, rate
):
    if noise is None:
        mechanism = ExponentialMechanism(3, epsilon=rate)
    else:
        mechanism = NoisyMax(3, epsilon=rate, noise=noise)
    logs = mechanism.log_probabilities(first) - mechanism.log_probabilities(second)
    paid = mechanism.pair_loss(first, second).epsilon
    assert np.abs(logs).max() <= paid * (1 + 1e-9) + 1e-9
    reach = max(abs(a - b) for a, b in zip(first, second, strict=True))
    bound = float(parameter(mechanism.loss()) * reach)
    assert paid <= bound * (1 + 1e-9) + 1e-7


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
@given(given_scores=scores)
@settings(max_examples=30)
def test_a_choice_prefers_higher_scores_and_forgets_a_common_shift(noise, given_scores):
    mechanism = NoisyMax(3, epsilon=1, noise=noise)
    law = mechanism.pmf(given_scores)
    assert law.sum() == pytest.approx(1, abs=1e-11)
    order = np.argsort([float(s) for s in given_scores])
    assert (np.diff(law[order]) >= -1e-12).all()
    shifted = mechanism.pmf([s + 7 for s in given_scores])
    assert shifted == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize("kind", ADDITIVE)
@given(scale=scales, beta=st.floats(1e-9, 1), dimension=st.integers(1, 6))
@settings(max_examples=30)
def test_accuracy_and_confidence_are_inverse(kind, scale, beta, dimension):
    mechanism = kind(scale, dimension=dimension)
    alpha = mechanism.accuracy(beta)
    assert mechanism.confidence(alpha) <= beta * (1 + 1e-9)
    if alpha > 0 and kind in (LaplaceMechanism, GaussianMechanism):
        assert mechanism.confidence(alpha) == pytest.approx(beta, rel=1e-9)


@pytest.mark.parametrize("kind", ADDITIVE)
@given(scale=scales, x=values, output=st.floats(-100, 100))
def test_the_cdf_is_monotone_and_symmetric_about_the_value(kind, scale, x, output):
    mechanism = kind(scale)
    centre = float(round(x))
    outputs = np.sort(np.array([output, output + 0.5, centre, output + 3]))
    cdf = mechanism.cdf(outputs, centre)
    assert (np.diff(cdf) >= 0).all()
    gap = abs(output - centre)
    step = getattr(mechanism, "step", None)
    if step is None:
        mirrored = 1 - mechanism.cdf(centre - gap, centre)
    else:  # strictly below the mirror image
        mirrored = 1 - mechanism.cdf(centre - math.floor(gap) - 1, centre)
    assert mechanism.cdf(centre + gap, centre) == pytest.approx(mirrored, abs=1e-12)
