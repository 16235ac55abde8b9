"""The continuous Laplace mechanism: law, loss, lattice release, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import (
    InfiniteLossError,
    MismatchError,
    UnboundedSensitivityError,
)
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.loss import Pure
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    LpNorm,
    Scaled,
    SymmetricDifference,
)


@pytest.mark.parametrize("scale", ["0.3", 2, 50])
def test_the_density_is_the_textbook_one_and_integrates_to_one(scale):
    mechanism, b = LaplaceMechanism(scale), float(scale)
    outputs = np.linspace(-4 * b, 9 * b, 101)
    textbook = stats.laplace(loc=1.5, scale=b)
    assert mechanism.log_density(outputs, 1.5) == pytest.approx(
        textbook.logpdf(outputs)
    )
    assert mechanism.cdf(outputs, 1.5) == pytest.approx(textbook.cdf(outputs))
    mass = integrate.quad(
        lambda y: math.exp(mechanism.log_density(y, 0.0)),
        -40 * b,
        40 * b,
        points=[0],
        limit=200,
    )[0]
    assert mass == pytest.approx(1, abs=1e-9)


def test_the_cdf_is_the_integral_of_the_density_up_to_the_output():
    mechanism = LaplaceMechanism(2)
    below = integrate.quad(
        lambda y: math.exp(mechanism.log_density(y, 1.0)), -80, 2.7, points=[1.0]
    )[0]
    assert mechanism.cdf(2.7, 1.0) == pytest.approx(below, abs=1e-9)


def test_every_real_number_and_nothing_else_is_an_output():
    for mechanism in (LaplaceMechanism(1), GaussianMechanism(1)):
        support = mechanism.support(0.0)
        assert -1e300 in support
        assert math.inf not in support


def test_the_cdf_keeps_its_relative_precision_in_the_far_tail():
    assert LaplaceMechanism(1).cdf(-600.0, 0.0) == pytest.approx(math.exp(-600) / 2)


def test_several_coordinates_multiply():
    mechanism, single = LaplaceMechanism(2, dimension=2), LaplaceMechanism(2)
    outputs = np.array([[0.0, 1.0], [3.0, -1.0]])
    given = (0.5, 0.25)
    for law in ("log_density", "cdf"):
        parts = [getattr(single, law)(outputs[:, i], given[i]) for i in (0, 1)]
        joined = parts[0] + parts[1] if law == "log_density" else parts[0] * parts[1]
        assert getattr(mechanism, law)(outputs, given) == pytest.approx(joined)


@pytest.mark.parametrize(
    ("metric", "dimension", "epsilon"),
    [
        (AbsoluteDifference(), 1, "1/2"),
        (LpNorm(1), 3, "1/2"),
        (Scaled(LpNorm(1), "1/4"), 3, 2),
        (LpNorm("inf"), 3, "3/2"),
    ],
)
def test_the_loss_per_unit_of_a_metric_is_exact(metric, dimension, epsilon):
    assert LaplaceMechanism(2, dimension=dimension).loss(metric) == Pure(epsilon)


@pytest.mark.parametrize(
    ("metric", "factor"), [(Euclidean(), math.sqrt(3)), (LpNorm(3), 3 ** (2 / 3))]
)
def test_the_loss_in_an_irrational_norm_is_rounded_up(metric, factor):
    epsilon = LaplaceMechanism(1, dimension=3).loss(metric).exact_parameters()[0]
    assert epsilon == pytest.approx(factor, rel=1e-14)
    if isinstance(metric, Euclidean):
        assert Fraction(epsilon) ** 2 >= 3
    else:
        assert Fraction(epsilon) ** 3 >= 9


def test_no_norm_factor_is_below_what_a_random_vector_needs():
    rng = np.random.default_rng(1)
    vectors = np.concatenate([rng.normal(size=(200, 4)), np.ones((1, 4)), np.eye(4)])
    for q in (1, 1.5, 2, 3, math.inf):
        norms = np.linalg.norm(vectors, ord=q, axis=1)
        worst = (np.abs(vectors).sum(axis=1) / norms).max()
        loss = LaplaceMechanism(1, dimension=4).loss(LpNorm(q)).epsilon
        assert worst == pytest.approx(loss, rel=1e-12)
        assert worst <= loss * (1 + 1e-12)


def test_the_pair_loss_is_the_supremum_of_the_log_ratio():
    mechanism = LaplaceMechanism("0.7")
    outputs = np.linspace(-5, 5, 2001)
    ratio = mechanism.log_density(outputs, 0.2) - mechanism.log_density(outputs, 1.3)
    assert np.abs(ratio).max() == pytest.approx(1.1 / 0.7)
    assert mechanism.pair_loss(0.2, 1.3) == Pure("11/7")


def test_the_value_level_loss_is_below_the_sensitivity_bound_where_values_agree():
    mechanism = LaplaceMechanism(1, dimension=2)
    assert mechanism.pair_loss((3, 4), (3, 4)) == Pure(0)
    assert mechanism.pair_loss((3, 4), (4, 2)) == Pure(3)


def test_trap_28_no_free_lunch_loss_is_quoted_for_the_inner_mechanism():
    with pytest.raises(InfiniteLossError, match="discrete metric") as refusal:
        LaplaceMechanism(1).loss(DiscreteMetric())
    assert refusal.value.witness == (0, math.inf)
    assert refusal.value.source == "thesis, Remark A.4"


@pytest.mark.parametrize(
    ("metric", "dimension"), [(SymmetricDifference(), 1), (AbsoluteDifference(), 2)]
)
def test_a_metric_that_does_not_compare_such_values_is_refused(metric, dimension):
    with pytest.raises(MismatchError, match="metric must compare vectors"):
        LaplaceMechanism(1, dimension=dimension).loss(metric)


def test_a_release_lies_on_the_lattice_its_description_names():
    mechanism = LaplaceMechanism("0.7")
    released = mechanism.released
    assert released.step == Fraction(1, 2**25)
    assert released.scale == Fraction(7, 10)
    draw = mechanism.sample(np.linspace(-1, 1, 100))
    assert not draw.simulated
    assert all(value in released.support(0.0) for value in draw.values.tolist())


@pytest.mark.parametrize("sensitivity", ["0.1", "1/3", 1, "2.5"])
@pytest.mark.parametrize("coordinates", [1, 4])
def test_the_released_loss_charges_for_rounding_and_nothing_more(
    sensitivity, coordinates
):
    mechanism = LaplaceMechanism(3, dimension=4)
    step, delta = mechanism.released.step, Fraction(sensitivity)
    paid = mechanism.released_loss(sensitivity, coordinates=coordinates)
    epsilon = Fraction(paid.exact_parameters()[0])
    assert delta / 3 <= epsilon < (delta + coordinates * step) / 3


def test_the_released_loss_is_reached_by_two_values_that_round_apart():
    mechanism = LaplaceMechanism(1)
    released = mechanism.released
    step = float(released.step)
    # Half a step apart, on both sides of a rounding boundary.
    outputs = np.arange(-20, 21) * step
    ratio = released.log_pmf(outputs, 0.0) - released.log_pmf(outputs, step)
    claimed = mechanism.released_loss(Fraction(1, 10) * released.step)
    assert np.abs(ratio).max() == pytest.approx(claimed.epsilon, rel=1e-6)
    assert claimed == Pure(released.step)


def test_calibration_keeps_the_exact_budget():
    mechanism = LaplaceMechanism.calibrate(3, "0.1")
    assert mechanism.scale == 30
    assert mechanism.released_loss(3) == Pure("0.1")


def test_free_and_unbounded_sensitivities_are_told_apart():
    assert LaplaceMechanism(1).released_loss(0) == Pure(0)
    with pytest.raises(UnboundedSensitivityError, match="sensitivity must be finite"):
        LaplaceMechanism(1).released_loss("inf")


def test_a_seeded_draw_repeats_and_is_stamped():
    mechanism = LaplaceMechanism(1)
    one, two = (mechanism.sample([1.0, 2.0], source=SimulatedSource(5)) for _ in "ab")
    assert one.simulated
    assert one.values.tolist() == two.values.tolist()


@pytest.mark.parametrize("scale", [0, -1, "inf", math.nan])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be"):
        LaplaceMechanism(scale)


@pytest.mark.parametrize("dimension", [0, -1])
def test_a_bad_dimension_is_refused(dimension):
    with pytest.raises(ValueError, match="dimension must be"):
        LaplaceMechanism(1, dimension=dimension)


def test_vectors_of_the_wrong_length_are_refused():
    mechanism = LaplaceMechanism(1, dimension=2)
    with pytest.raises(MismatchError, match="first must have 2 coordinates, got 3"):
        mechanism.pair_loss((1, 2, 3), (1, 2))
    with pytest.raises(MismatchError, match="given must have 2 finite coordinates"):
        mechanism.log_density((1, 2), (1, 2, 3))
    with pytest.raises(MismatchError, match="output must have 2 coordinates"):
        mechanism.log_density((1, 2, 3), (1, 2))
    with pytest.raises(MismatchError, match="values must have 2 coordinates"):
        mechanism.sample([1.0, 2.0, 3.0])


def test_a_continuous_law_has_no_probability_mass():
    with pytest.raises(MismatchError, match="use log_density"):
        LaplaceMechanism(1).log_pmf(0.0, 0.0)


def test_equal_descriptions_are_equal_and_hash_alike():
    assert LaplaceMechanism("0.5") == LaplaceMechanism(0.5)
    assert len({LaplaceMechanism("0.5"), LaplaceMechanism("1/2")}) == 1
