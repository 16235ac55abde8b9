"""Laplace and Gaussian noise on a lattice: law, loss, exact delta, refusals."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms import discrete as gaussian_sum
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.loss import ZCDP, Approx, Pure
from undertow.spaces.metric import AbsoluteDifference, LpNorm

LAWS = [
    pytest.param(DiscreteLaplaceMechanism("0.3"), id="laplace-narrow"),
    pytest.param(DiscreteLaplaceMechanism(7), id="laplace"),
    pytest.param(DiscreteLaplaceMechanism(7, exponent=-2), id="laplace-quarters"),
    pytest.param(DiscreteGaussianMechanism("0.3"), id="gaussian-narrow"),
    pytest.param(DiscreteGaussianMechanism(7), id="gaussian"),
    pytest.param(DiscreteGaussianMechanism(7, exponent=-2), id="gaussian-quarters"),
]


def lattice(mechanism, reach=400):
    return np.arange(-reach, reach + 1) * float(mechanism.step)


def brute_pmf(mechanism, given, outputs):
    """Return the law from its definition."""
    gap = np.abs(outputs - given)
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        weights = np.exp(-gap / float(mechanism.scale))
    else:
        weights = np.exp(-(gap**2) / (2 * float(mechanism.variance)))
    return weights / weights.sum()


@pytest.mark.parametrize("mechanism", LAWS)
def test_the_law_is_the_normalised_exponential_and_sums_to_one(mechanism):
    outputs, given = lattice(mechanism, 1000), 3.0
    law = np.exp(mechanism.log_pmf(outputs, given))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law == pytest.approx(brute_pmf(mechanism, given, outputs), abs=1e-14)


@pytest.mark.parametrize("mechanism", LAWS)
def test_the_cdf_is_the_running_sum_of_the_law(mechanism):
    outputs = lattice(mechanism, 2000)
    running = np.cumsum(np.exp(mechanism.log_pmf(outputs, 0.0)))
    assert mechanism.cdf(outputs, 0.0) == pytest.approx(running, abs=1e-12)
    between = outputs + 0.4 * float(mechanism.step)
    assert mechanism.cdf(between, 0.0) == pytest.approx(running, abs=1e-12)


@pytest.mark.parametrize("mechanism", LAWS)
def test_outputs_off_the_lattice_are_impossible(mechanism):
    off = float(mechanism.step) / 3
    assert mechanism.log_pmf(off, 0.0) == -math.inf
    assert off not in mechanism.support(0.0)
    assert 5 * float(mechanism.step) in mechanism.support(0.0)


def test_the_discrete_laplace_law_is_that_of_scipy():
    outputs = np.arange(-30, 31)
    ours = DiscreteLaplaceMechanism(2).log_pmf(outputs, 0)
    assert ours == pytest.approx(stats.dlaplace(0.5).logpmf(outputs))


@pytest.mark.parametrize("mechanism", LAWS[:3])
def test_the_laplace_loss_is_the_supremum_of_the_log_ratio(mechanism):
    outputs = lattice(mechanism)
    logs = [mechanism.log_pmf(outputs, x) for x in (0.0, 1.0, 3.0)]
    for first, second, gap in ((0, 1, 1), (0, 2, 3), (1, 2, 2)):
        worst = np.abs(logs[first] - logs[second]).max()
        claimed = mechanism.pair_loss((0, 1, 3)[first], (0, 1, 3)[second])
        assert claimed == Pure(gap / mechanism.scale)
        assert worst == pytest.approx(claimed.epsilon, rel=1e-9)
    assert mechanism.loss(AbsoluteDifference()) == Pure(1 / mechanism.scale)


def test_the_gaussian_loss_is_zcdp_and_bounds_every_renyi_divergence():
    mechanism = DiscreteGaussianMechanism(2)
    outputs = np.arange(-80, 81)
    for t in (1, 3):
        rho = mechanism.pair_loss(0, t).rho
        assert rho == t**2 / 8
        p = mechanism.log_pmf(outputs, 0)
        q = mechanism.log_pmf(outputs, t)
        for order in (1.01, 1.5, 2, 8):
            terms = np.exp(order * p + (1 - order) * q)
            divergence = math.log(math.fsum(terms)) / (order - 1)
            assert divergence <= order * rho + 1e-9
    # Tight at whole orders: shifting by whole steps keeps the normalising constant.
    terms = np.exp(2 * mechanism.log_pmf(outputs, 0) - mechanism.log_pmf(outputs, 1))
    assert math.log(terms.sum()) == pytest.approx(2 * 1 / 8)


def test_the_loss_of_several_coordinates_uses_their_norm():
    laplace = DiscreteLaplaceMechanism(2, dimension=3)
    assert laplace.pair_loss((0, 0, 0), (1, -1, 2)) == Pure(2)
    assert laplace.loss(LpNorm("inf")) == Pure("1.5")
    gaussian = DiscreteGaussianMechanism(2, dimension=3)
    assert gaussian.pair_loss((0, 0, 0), (1, -1, 2)) == ZCDP("0.75")
    assert gaussian.loss(LpNorm(1)) == ZCDP("1/8")


@pytest.mark.parametrize("sigma", ["0.5", 1, 3, "20.5"])
@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0, 0.1, 1, 3, 10])
def test_delta_is_the_sum_of_the_positive_part(sigma, distance, epsilon):
    mechanism = DiscreteGaussianMechanism(sigma)
    outputs = np.arange(-900, 901)
    p = np.exp(mechanism.log_pmf(outputs, distance))
    q = np.exp(mechanism.log_pmf(outputs, 0))
    expected = math.fsum(np.maximum(p - math.exp(epsilon) * q, 0))
    delta = mechanism.approx_loss(epsilon, distance=distance).delta
    # Differences of doubles are good to about 1e-17.
    assert delta == pytest.approx(expected, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize("sigma", ["0.5", 3])
@pytest.mark.parametrize("epsilon", [0, "0.1", 1, 10])
def test_delta_is_rounded_up_from_the_sum_to_sixty_digits(sigma, epsilon):
    with localcontext() as context:
        context.prec, budget, s = 60, Decimal(epsilon), Decimal(sigma)
        weights = {k: (-(Decimal(k) ** 2) / (2 * s * s)).exp() for k in range(-99, 99)}
        norm = sum(weights.values())
        gaps = [weights[k - 2] - budget.exp() * weights[k] for k in range(-97, 99)]
        exact = Fraction(sum(gap for gap in gaps if gap > 0) / norm)
    delta = DiscreteGaussianMechanism(sigma).approx_loss(epsilon, distance=2).delta
    assert exact <= Fraction(delta) <= exact * (1 + Fraction(1, 10**11))


def test_a_delta_below_the_doubles_is_never_reported_as_zero():
    assert 0 < DiscreteGaussianMechanism(1).approx_loss(100).delta <= 1e-323


def test_delta_of_the_discrete_law_is_not_that_of_gaussian_dp():
    # The trade-off curve of the lattice law is above the Gaussian one in places: at
    # sigma = 1 its delta exceeds the curve of mu = 1, so mu = 1 is not a guarantee.
    exact = DiscreteGaussianMechanism(1).approx_loss(1).delta
    assert exact == pytest.approx(0.141351, abs=1e-6)
    assert exact > gdp_delta(1.0, 1.0) + 0.01


@pytest.mark.parametrize("sigma", [50, 300, 5000])
@pytest.mark.parametrize("epsilon", ["0.01", 1, 4])
def test_the_bound_for_fine_lattices_is_above_the_sum_and_close_to_it(sigma, epsilon):
    budget, t, variance = Fraction(epsilon), sigma // 4, Fraction(sigma) ** 2
    c = math.ceil(budget * variance / t + Fraction(t, 2))
    exact = gaussian_sum.delta_up(variance, t, budget)
    bound = gaussian_sum.delta_smooth(variance, t, epsilon=budget, c=c)
    assert exact <= bound
    if epsilon != 4:
        assert bound <= exact * (1 + 100 / sigma**2 * 5)


def test_delta_on_a_fine_lattice_is_that_of_the_continuous_law():
    mechanism = DiscreteGaussianMechanism(1, exponent=-24)
    delta = mechanism.approx_loss(1, distance=1).delta
    assert delta == pytest.approx(gdp_delta(1.0, 1.0), rel=1e-10)


def test_delta_grows_with_the_distance_and_falls_with_epsilon():
    mechanism = DiscreteGaussianMechanism("2.5")
    by_distance = [mechanism.approx_loss(1, distance=t).delta for t in range(12)]
    by_epsilon = [mechanism.approx_loss(e, distance=3).delta for e in range(8)]
    assert by_distance == sorted(by_distance)
    assert by_epsilon == sorted(by_epsilon, reverse=True)


def test_delta_at_the_ends_and_off_the_lattice():
    mechanism = DiscreteGaussianMechanism(2)
    assert mechanism.approx_loss(1, distance=0) == Approx(1, 0)
    assert mechanism.approx_loss(1, distance="inf") == Approx(1, 1)
    assert mechanism.approx_loss("inf") == Approx("inf", 0)
    rounded = mechanism.approx_loss(1, distance="1.2")
    assert rounded == mechanism.approx_loss(1, distance=2)


def test_delta_of_several_coordinates_is_refused_with_the_way_out():
    with pytest.raises(AssumptionError, match="convert the zCDP loss"):
        DiscreteGaussianMechanism(1, dimension=2).approx_loss(1)


def test_the_tabulated_and_the_smooth_tail_agree_where_both_hold():
    mechanism = DiscreteGaussianMechanism(4000)
    steps = np.array([1.0, 100.0, 4000.0, 40_000.0, 100_000.0, 159_000.0, 300_000.0])
    smooth = gaussian_sum.log_tail_smooth(steps, 4000.0**2)
    assert mechanism._log_tail(steps) == pytest.approx(smooth, rel=1e-12, abs=1e-10)


def test_tails_beyond_the_table_are_exact():
    mechanism = DiscreteGaussianMechanism(2)
    far = np.array([-90.0, -100.0])  # 45 and 50 sigma
    direct = [
        math.log(
            math.fsum(
                math.exp(-(k * k - m * m) / 8) for k in range(int(m), int(m) + 99)
            )
        )
        - m * m / 8
        - math.log(math.sqrt(8 * math.pi))
        for m in -far
    ]
    assert mechanism.noise_log_cdf(far) == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize("mechanism", LAWS)
def test_a_seeded_draw_stays_on_the_lattice(mechanism):
    draw = mechanism.sample(np.array([1.0, -2.0, 7.0]), source=SimulatedSource(1))
    assert draw.simulated
    assert all(v in mechanism.support(0) for v in draw.values.tolist())
    assert (draw.values.dtype.kind == "i") == (mechanism.exponent == 0)


def test_values_off_the_lattice_are_refused_with_the_way_out():
    with pytest.raises(MismatchError, match="LaplaceMechanism or GaussianMechanism"):
        DiscreteLaplaceMechanism(1).sample([0.5])
    with pytest.raises(MismatchError, match="multiples of the step 1"):
        DiscreteLaplaceMechanism(1).pair_loss(0, 0.5)


@pytest.mark.parametrize("kind", [DiscreteLaplaceMechanism, DiscreteGaussianMechanism])
@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"exponent": 0.5}, TypeError),
        ({"exponent": True}, TypeError),
        ({"exponent": 5000}, ValueError),
        ({"dimension": 0}, ValueError),
    ],
)
def test_bad_parameters_are_refused(kind, options, fault):
    with pytest.raises(fault, match="must be"):
        kind(1, **options)


def test_the_variance_is_kept_exactly():
    mechanism = DiscreteGaussianMechanism.from_variance("1/2")
    assert mechanism.pair_loss(0, 1) == ZCDP(1)
    assert mechanism.sigma == pytest.approx(math.sqrt(0.5))
