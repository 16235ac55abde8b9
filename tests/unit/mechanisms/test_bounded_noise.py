"""Clamped and truncated noise: exact laws, and losses that are not the same."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.loss import GDP, ZCDP, Pure
from undertow.spaces.metric import AbsoluteDifference

CONTINUOUS = [
    pytest.param(LaplaceMechanism(2), id="laplace"),
    pytest.param(LaplaceMechanism("0.3"), id="laplace-narrow"),
    pytest.param(LaplaceMechanism(90), id="laplace-wide"),
    pytest.param(GaussianMechanism(2), id="gaussian"),
    pytest.param(GaussianMechanism("0.3"), id="gaussian-narrow"),
    pytest.param(GaussianMechanism(90), id="gaussian-wide"),
]
LATTICE = [
    pytest.param(DiscreteLaplaceMechanism(2), id="laplace"),
    pytest.param(DiscreteLaplaceMechanism("0.3"), id="laplace-narrow"),
    pytest.param(DiscreteLaplaceMechanism(90), id="laplace-wide"),
    pytest.param(DiscreteGaussianMechanism(2), id="gaussian"),
    pytest.param(DiscreteGaussianMechanism("0.5"), id="gaussian-narrow"),
    pytest.param(DiscreteGaussianMechanism(90), id="gaussian-wide"),
]
KINDS = [ClampedMechanism, TruncatedMechanism]
UNIT = AbsoluteDifference()
POINTS = np.arange(-2, 8)


def lattice_logs(mechanism):
    return np.array([mechanism.log_pmf(POINTS, int(x)) for x in POINTS])


@pytest.mark.parametrize("base", CONTINUOUS)
@pytest.mark.parametrize("given", [0.0, 0.7, 3.0])
def test_a_truncated_density_integrates_to_one_and_to_its_cdf(base, given):
    mechanism = TruncatedMechanism(base, 0, 3)

    def mass(high):
        points = [p for p in (given, given - 1, given + 1) if 0 < p < high]
        return integrate.quad(
            lambda y: math.exp(mechanism.log_density(y, given)),
            0,
            high,
            points=points or None,
            limit=200,
        )[0]

    assert mass(3) == pytest.approx(1, abs=1e-7)
    for output in (0.2, 1.1, 2.9):
        assert mechanism.cdf(output, given) == pytest.approx(mass(output), abs=1e-7)
    assert (mechanism.cdf(-0.1, given), mechanism.cdf(3.0, given)) == (0, 1)
    assert mechanism.log_density(3.1, given) == -math.inf


def test_a_truncated_gaussian_is_that_of_scipy():
    mechanism = TruncatedMechanism(GaussianMechanism(2), 0, 3)
    textbook = stats.truncnorm(-0.5, 1, loc=1, scale=2)
    outputs = np.linspace(0, 3, 31)
    assert mechanism.log_density(outputs, 1) == pytest.approx(textbook.logpdf(outputs))
    assert mechanism.cdf(outputs, 1) == pytest.approx(textbook.cdf(outputs))


@pytest.mark.parametrize("base", CONTINUOUS)
@pytest.mark.parametrize("given", [0.0, 0.7, 5.0])
def test_a_clamped_law_has_atoms_that_complete_its_density(base, given):
    mechanism = ClampedMechanism(base, 0, 3)
    outputs = np.array([0.0, 3.0])
    atoms = np.exp(mechanism.log_density(outputs, given))
    points = [given] if 0 < given < 3 else None
    inside = integrate.quad(
        lambda y: math.exp(mechanism.log_density(y, given)),
        1e-12,
        3 - 1e-12,
        points=points,
        limit=200,
    )[0]
    assert atoms.sum() + inside == pytest.approx(1, abs=1e-7)
    assert mechanism.cdf(0.0, given) == pytest.approx(atoms[0])
    assert mechanism.cdf(1.0, given) == pytest.approx(base.cdf(1.0, given))
    assert mechanism.cdf(np.array([-1e-9, 3.0]), given).tolist() == [0, 1]
    assert mechanism.log_density(-0.1, given) == -math.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", LATTICE)
def test_a_bounded_lattice_law_sums_to_one_and_to_its_cdf(kind, base):
    mechanism = kind(base, -2, 7)
    laws = np.exp(lattice_logs(mechanism))
    assert laws.sum(axis=1) == pytest.approx(np.ones(10), abs=1e-12)
    cdf = np.array([mechanism.cdf(POINTS, int(x)) for x in POINTS])
    assert cdf == pytest.approx(np.cumsum(laws, axis=1), abs=1e-12)
    assert mechanism.cdf(0.5, 3) == mechanism.cdf(0, 3)


@pytest.mark.parametrize("base", LATTICE)
def test_a_bounded_lattice_law_is_the_base_moved_or_conditioned(base):
    outputs = np.arange(-3000, 3001)
    for given in (-2, 0, 7):
        law = np.exp(base.log_pmf(outputs, given))
        inside = (outputs >= -2) & (outputs <= 7)
        truncated = law[inside] / law[inside].sum()
        clamped = np.bincount(np.clip(outputs, -2, 7) + 2, weights=law)
        for kind, expected in (
            (TruncatedMechanism, truncated),
            (ClampedMechanism, clamped),
        ):
            ours = np.exp(kind(base, -2, 7).log_pmf(POINTS, given))
            assert ours == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", LATTICE)
def test_the_pair_loss_on_a_lattice_is_the_brute_force_supremum(kind, base):
    mechanism = kind(base, -2, 7)
    logs = lattice_logs(mechanism)
    for i in range(10):
        for j in range(10):
            exact = np.abs(logs[i] - logs[j]).max()
            claimed = mechanism.pair_loss(int(POINTS[i]), int(POINTS[j])).epsilon
            assert claimed == pytest.approx(exact, rel=1e-8, abs=1e-9)
            assert claimed >= exact * (1 - 1e-12) - 1e-13


@pytest.mark.parametrize("base", LATTICE)
def test_the_truncated_loss_per_unit_and_at_every_distance_is_exact(base):
    mechanism = TruncatedMechanism(base, -2, 7)
    logs = lattice_logs(mechanism)
    worst = {d: 0.0 for d in range(1, 10)}
    for i in range(10):
        for j in range(i):
            gap = np.abs(logs[i] - logs[j]).max()
            worst[i - j] = max(worst[i - j], gap)
    for distance, exact in worst.items():
        claimed = mechanism.worst_loss(distance).epsilon
        assert claimed == pytest.approx(exact, rel=1e-8, abs=1e-9)
    per_unit = max(gap / d for d, gap in worst.items())
    claimed = mechanism.loss(UNIT).epsilon
    assert claimed == pytest.approx(per_unit, rel=1e-8)
    assert claimed >= per_unit * (1 - 1e-12)


@pytest.mark.parametrize("base", LATTICE)
def test_the_clamped_pure_loss_per_unit_is_exact(base):
    mechanism = ClampedMechanism(base, -2, 7)
    logs = lattice_logs(mechanism)
    per_unit = max(
        np.abs(logs[i] - logs[j]).max() / (i - j) for i in range(10) for j in range(i)
    )
    claimed = mechanism.pure_loss(UNIT).epsilon
    assert claimed == pytest.approx(per_unit, rel=1e-8)
    assert claimed >= per_unit * (1 - 1e-12)


@pytest.mark.parametrize("base", CONTINUOUS)
def test_the_continuous_truncated_loss_is_exact_at_every_distance(base):
    mechanism = TruncatedMechanism(base, 0, 3)
    xs = np.linspace(0, 3, 49)
    logs = np.array([mechanism.log_density(xs, x) for x in xs.tolist()])
    for d in (1, 7, 24, 48):
        exact = np.abs(logs[d:] - logs[:-d]).max()
        claimed = mechanism.worst_loss(Fraction(d, 16)).epsilon
        assert claimed == pytest.approx(exact, rel=1e-8, abs=1e-9)
        assert claimed >= exact * (1 - 1e-12)
        assert claimed <= mechanism.loss(UNIT).epsilon * d / 16 * (1 + 1e-9)


@pytest.mark.parametrize("base", CONTINUOUS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_continuous_loss_per_unit_is_the_limit_of_close_pairs(kind, base):
    mechanism = kind(base, 0, 3)
    close = Fraction(1, 10**6)
    pair = mechanism.pair_loss(0, close).epsilon / float(close)
    if kind is TruncatedMechanism:
        per_unit = mechanism.loss(UNIT).epsilon
    else:
        per_unit = mechanism.pure_loss(UNIT).epsilon
    # The pair carries a margin of 1e-12 in the logarithm: up to 1e-3 per unit here.
    assert pair == pytest.approx(per_unit, rel=1e-3, abs=1e-3)


def test_truncating_laplace_noise_costs_up_to_twice_as_much_as_clamping():
    base = LaplaceMechanism(2)
    assert ClampedMechanism(base, 0, 10).loss(UNIT) == Pure("0.5")
    assert TruncatedMechanism(base, 0, 10).loss(UNIT) == Pure(1)
    constant = (2 - math.exp(-0.5) - math.exp(-4.5)) / (1 - math.exp(-5))
    expected = 0.5 + math.log(constant)
    assert TruncatedMechanism(base, 0, 10).worst_loss(1).epsilon == pytest.approx(
        expected
    )


def test_truncating_a_gaussian_costs_more_than_its_base_suggests():
    # The likelihood ratio of the base at the far end, without normalising constants,
    # would be (R^2 - (R - 1)^2) / 2 sigma^2; and the zCDP of the base is no bound.
    mechanism = TruncatedMechanism(GaussianMechanism(2), 0, 3)
    density = [stats.truncnorm(-m / 2, (3 - m) / 2, loc=m, scale=2) for m in (0, 1)]
    exact = density[1].logpdf(3) - density[0].logpdf(3)
    assert mechanism.worst_loss(1).epsilon == pytest.approx(exact)
    assert exact < (3**2 - 2**2) / 8


def test_a_wide_interval_gives_back_the_losses_of_the_base():
    wide = TruncatedMechanism(LaplaceMechanism(1), -60, 60)
    assert wide.pair_loss(0, 1).epsilon == pytest.approx(1)
    clamped = ClampedMechanism(GaussianMechanism(2), -60, 60)
    assert clamped.loss(UNIT) == GDP("1/2")
    assert ClampedMechanism(DiscreteGaussianMechanism(2), -60, 60).loss(UNIT) == ZCDP(
        "1/8"
    )


def test_clamping_reduces_the_loss_only_of_values_on_both_sides_of_the_interval():
    clamped = ClampedMechanism(LaplaceMechanism(1), 0, 1)
    assert clamped.pair_loss(5, 9) == Pure(4)
    assert clamped.pair_loss(-3, 4).epsilon < 5
    assert clamped.pair_loss(0, 1) == Pure(1)
    logs = [
        clamped.log_density(np.append(np.linspace(0, 1, 101), [0.0, 1.0]), x)
        for x in (-3.0, 4.0)
    ]
    exact = np.abs(logs[0] - logs[1]).max()
    assert clamped.pair_loss(-3, 4).epsilon == pytest.approx(exact)


@pytest.mark.parametrize("base", CONTINUOUS)
def test_a_truncated_release_lies_on_the_lattice_and_in_the_interval(base):
    mechanism = TruncatedMechanism(base, "0.1", "3.3")
    released = mechanism.released
    assert Fraction(1, 10) <= released.low < Fraction(1, 10) + base.released.step
    assert Fraction(33, 10) - base.released.step < released.high <= Fraction(33, 10)
    draw = mechanism.sample(np.full(20, 1.7), source=SimulatedSource(3))
    assert all(value in released.support(1.5) for value in draw.values.tolist())
    paid = mechanism.released_loss(1).epsilon
    assert paid == pytest.approx(mechanism.worst_loss(1).epsilon, rel=1e-5)
    assert released.released is released


def test_a_clamped_release_costs_what_its_base_costs():
    for base in (LaplaceMechanism(2), GaussianMechanism(2)):
        mechanism = ClampedMechanism(base, 0, 3)
        assert mechanism.released_loss("0.1") == base.released_loss("0.1")
    counts = ClampedMechanism(DiscreteLaplaceMechanism(2), 0, 3)
    assert counts.released_loss("1.5") == Pure("0.5")  # integers: at most 1 apart
    assert ClampedMechanism(DiscreteGaussianMechanism(2), 0, 3).released_loss(
        1
    ) == ZCDP("1/8")


def test_a_value_at_the_end_rounds_into_the_interval():
    mechanism = TruncatedMechanism(LaplaceMechanism(1), "0.1", "3.3")
    draw = mechanism.sample([0.1, 3.3], source=SimulatedSource(3))
    assert (draw.values >= 0.1).all()
    assert (draw.values <= 3.3).all()


@pytest.mark.parametrize("base", [*CONTINUOUS, *LATTICE])
def test_a_clamped_release_stays_in_the_interval(base):
    mechanism = ClampedMechanism(base, 0, 3)
    draw = mechanism.sample(np.full(50, 2), source=SimulatedSource(3))
    assert draw.simulated
    assert all(0 <= value <= 3 for value in draw.values.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_bounded_is_refused(kind):
    with pytest.raises(MismatchError, match="one coordinate"):
        kind(LaplaceMechanism(1, dimension=2), 0, 1)
    with pytest.raises(ValueError, match="low must be below high"):
        kind(LaplaceMechanism(1), 1, 1)
    with pytest.raises(ValueError, match="high must be finite"):
        kind(LaplaceMechanism(1), 0, "inf")
    with pytest.raises(MismatchError, match="multiples of the step 1"):
        kind(DiscreteLaplaceMechanism(1), 0, 1.5)


def test_truncation_needs_values_in_the_interval_and_on_the_lattice():
    mechanism = TruncatedMechanism(DiscreteLaplaceMechanism(1), 0, 4)
    with pytest.raises(AssumptionError, match="clip the value first"):
        mechanism.pair_loss(0, 5)
    with pytest.raises(MismatchError, match="multiple of the step"):
        mechanism.pair_loss(0, 0.5)
    with pytest.raises(AssumptionError, match="clip the value first"):
        mechanism.sample([2, 5])
