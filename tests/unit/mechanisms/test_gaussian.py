"""The continuous Gaussian mechanism: law, loss, lattice release, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import UnboundedSensitivityError
from undertow.mechanisms.continuous import GaussianMechanism
from undertow.privacy.gaussian import gaussian_sigma
from undertow.privacy.loss import GDP, ZCDP, Approx
from undertow.spaces.metric import AbsoluteDifference, Euclidean, LpNorm


@pytest.mark.parametrize("sigma", ["0.3", 2, 50])
def test_the_density_is_the_textbook_one_and_integrates_to_one(sigma):
    mechanism, s = GaussianMechanism(sigma), float(sigma)
    outputs = np.linspace(-4 * s, 9 * s, 101)
    textbook = stats.norm(loc=1.5, scale=s)
    assert mechanism.log_density(outputs, 1.5) == pytest.approx(
        textbook.logpdf(outputs)
    )
    assert mechanism.cdf(outputs, 1.5) == pytest.approx(textbook.cdf(outputs))
    mass = integrate.quad(
        lambda y: math.exp(mechanism.log_density(y, 0.0)), -12 * s, 12 * s
    )[0]
    assert mass == pytest.approx(1, abs=1e-9)


def test_the_cdf_is_the_integral_of_the_density_up_to_the_output():
    mechanism = GaussianMechanism(2)
    below = integrate.quad(
        lambda y: math.exp(mechanism.log_density(y, 1.0)), -30, 2.7, points=[1.0]
    )[0]
    assert mechanism.cdf(2.7, 1.0) == pytest.approx(below, abs=1e-9)


@pytest.mark.parametrize(
    ("metric", "dimension", "square"),
    [
        (AbsoluteDifference(), 1, "1/4"),
        (Euclidean(), 3, "1/4"),
        (LpNorm(1), 3, "1/4"),
        (LpNorm("inf"), 4, 1),
    ],
)
def test_the_loss_per_unit_of_a_metric_is_exact(metric, dimension, square):
    mechanism = GaussianMechanism(2, dimension=dimension)
    assert mechanism.loss(metric) == GDP.from_square(square)
    half = Fraction(square) / 2
    assert mechanism.loss(metric, notion="zcdp") == ZCDP(half)


def test_the_pair_loss_is_the_standardised_distance():
    mechanism = GaussianMechanism(2, dimension=2)
    assert mechanism.pair_loss((0, 0), (3, 4)) == GDP("2.5")
    assert mechanism.pair_loss((0, 0), (1, 1)) == GDP.from_square("0.5")
    assert mechanism.pair_loss((0, 0), (3, 4), notion="zcdp") == ZCDP("3.125")


def test_the_log_ratio_of_neighbours_is_gaussian_with_the_stated_shift():
    mechanism = GaussianMechanism("1.5")
    mu = float(mechanism.pair_loss(0, 2).mu)
    outputs = np.linspace(-5, 5, 101)
    ratio = mechanism.log_density(outputs, 2.0) - mechanism.log_density(outputs, 0.0)
    assert ratio == pytest.approx(mu * outputs / 1.5 - mu**2 / 2)


@pytest.mark.parametrize("epsilon", [0, 0.1, 1, 3])
def test_delta_is_the_integral_of_the_positive_part(epsilon):
    mechanism = GaussianMechanism("1.5")

    def excess(y):
        first = math.exp(mechanism.log_density(y, 2.0))
        return max(0.0, first - math.exp(epsilon + mechanism.log_density(y, 0.0)))

    kink = (epsilon + 2**2 / (2 * 1.5**2)) * 1.5**2 / 2
    expected = integrate.quad(excess, kink, 30)[0]
    delta = mechanism.approx_loss(epsilon, distance=2).delta
    assert delta == pytest.approx(expected, rel=1e-7)
    assert delta >= expected * (1 - 1e-9)


def test_delta_at_the_ends_of_the_distances():
    assert GaussianMechanism(1).approx_loss(1, distance=0) == Approx(1, 0)
    assert GaussianMechanism(1).approx_loss(1, distance="inf") == Approx(1, 1)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_the_calibrated_sigma_pays_at_most_the_asked_delta(epsilon):
    sigma = gaussian_sigma(1, epsilon, delta=1e-5)
    assert GaussianMechanism(sigma).approx_loss(epsilon).delta <= 1e-5
    assert GaussianMechanism(sigma * 0.999).approx_loss(epsilon).delta > 1e-5


def test_what_is_released_is_a_discrete_gaussian_and_charged_as_one():
    mechanism = GaussianMechanism("0.7", dimension=3)
    assert mechanism.released.variance == Fraction(49, 100)
    assert mechanism.released.step == Fraction(1, 2**25)
    paid = mechanism.released_loss(1)
    assert isinstance(paid, ZCDP)
    rho = Fraction(paid.exact_parameters()[0])
    assert Fraction(100, 98) <= rho < Fraction(100, 98) * (1 + Fraction(1, 2**22))


def test_one_touched_coordinate_on_the_lattice_costs_nothing_extra():
    assert GaussianMechanism(2, dimension=5).released_loss(1, coordinates=1) == ZCDP(
        "1/8"
    )


def test_rounding_never_moves_vectors_further_than_charged():
    mechanism = GaussianMechanism(1, dimension=3)
    step = mechanism.released.step
    rng = np.random.default_rng(2)
    for _ in range(200):
        x = rng.normal(size=3)
        y = x + rng.normal(size=3) * 3 * float(step)
        gap = np.floor(x / float(step) + 0.5) - np.floor(y / float(step) + 0.5)
        reach = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True))
        distance = Fraction(math.sqrt(reach)) * (1 + Fraction(1, 2**40))
        paid = mechanism.released_loss(distance).exact_parameters()[0]
        assert Fraction(int(gap @ gap)) * step**2 / 2 <= paid


def test_free_and_unbounded_sensitivities_are_told_apart():
    assert GaussianMechanism(1).released_loss(0) == ZCDP(0)
    with pytest.raises(UnboundedSensitivityError, match="sensitivity must be finite"):
        GaussianMechanism(1).released_loss("inf")


def test_a_variance_without_a_rational_root_is_kept_exactly():
    mechanism = GaussianMechanism.from_variance("1/2")
    assert mechanism.pair_loss(0, 1) == GDP.from_square(2)
    assert mechanism.sigma == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize("sigma", [0, -1, "inf"])
def test_a_bad_sigma_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be"):
        GaussianMechanism(sigma)


def test_an_unknown_notion_is_refused():
    with pytest.raises(ValueError, match="notion must be one of"):
        GaussianMechanism(1).loss(Euclidean(), notion="pure")
