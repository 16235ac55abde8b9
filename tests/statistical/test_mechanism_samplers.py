"""Two-sided goodness of fit of every sampler against its own exact law.

Each test rejects at 1e-6. A secure source has no seed, so a correct sampler fails each
of these tests once in a million runs; a law whose parameter is off by a factor of 0.8
or 1.25 is always rejected.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from support.precision import precision_test
from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
FACTORS = [("1", True), ("0.8", False), ("1.25", False)]
SOURCES = [
    pytest.param(SecureSource, id="secure"),
    pytest.param(lambda: SimulatedSource(11), id="simulated"),
]
ADDITIVE = {
    "laplace": LaplaceMechanism,
    "gaussian": GaussianMechanism,
    "discrete laplace": DiscreteLaplaceMechanism,
    "discrete gaussian": DiscreteGaussianMechanism,
}


def chi_square(counts, law):
    """Return the p-value of counts against a law, small cells pooled."""
    counts, expected = np.asarray(counts, float), np.asarray(law) * np.sum(counts)
    large = expected >= 10
    observed = np.append(counts[large], counts[~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    if wanted[-1] < 10:
        observed, wanted = (
            np.append(a[:-2], a[-2] + a[-1]) for a in (observed, wanted)
        )
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return float(stats.chi2.sf(statistic, len(wanted) - 1))


def continuous_p_value(values, mechanism, given):
    return float(stats.kstest(values, lambda y: mechanism.cdf(y, given)).pvalue)


def lattice_p_value(values, mechanism, given, reach=200):
    outputs = np.arange(given - reach, given + reach + 1)
    law = np.exp(mechanism.log_pmf(outputs, given))
    counts = np.bincount(np.clip(values, outputs[0], outputs[-1]) - outputs[0])
    return chi_square(np.pad(counts, (0, len(outputs) - len(counts))), law)


def additive_p_value(values, mechanism, given):
    if mechanism.measure == "counting":
        return lattice_p_value(values, mechanism, given)
    return continuous_p_value(values, mechanism, given)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize(("factor", "accept"), FACTORS)
def test_additive_noise_has_its_scale_and_no_other(source, name, factor, accept):
    scale = Fraction("3.7")
    draw = ADDITIVE[name](scale).sample(np.full(30_000, 2), source=source())
    tested = ADDITIVE[name](scale * Fraction(factor))
    assert (additive_p_value(draw.values, tested, 2) > FALSE_ALARM) == accept


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize(("factor", "accept"), FACTORS)
def test_truncated_noise_has_its_scale_and_no_other(source, name, factor, accept):
    scale = Fraction("3.7")
    mechanism = TruncatedMechanism(ADDITIVE[name](scale), 0, 12)
    draw = mechanism.sample(np.full(12_000, 2), source=source())
    tested = TruncatedMechanism(ADDITIVE[name](scale * Fraction(factor)), 0, 12)
    assert (additive_p_value(draw.values, tested, 2) > FALSE_ALARM) == accept


@pytest.mark.parametrize("name", ["discrete laplace", "discrete gaussian"])
def test_a_narrow_interval_is_drawn_with_the_same_law(name):
    # Fewer than an eighth of a scale: proposed uniformly and kept by exact coins.
    mechanism = TruncatedMechanism(ADDITIVE[name](20), 0, 2)
    draw = mechanism.sample(np.zeros(4_000, dtype=int))
    law = np.exp(mechanism.log_pmf(np.arange(3), 0))
    counts = np.bincount(draw.values, minlength=3)
    assert chi_square(counts, law) > FALSE_ALARM


def test_the_uniform_proposal_rejects_a_wrong_law():
    # Steeper: 16 steps of which the interval covers two, so that coins matter.
    mechanism = TruncatedMechanism(DiscreteLaplaceMechanism(17, exponent=0), 0, 2)
    draw = mechanism.sample(np.zeros(60_000, dtype=int), source=SimulatedSource(8))
    counts = np.bincount(draw.values, minlength=3)
    assert chi_square(counts, np.exp(mechanism.log_pmf(np.arange(3), 0))) > FALSE_ALARM
    assert chi_square(counts, np.full(3, 1 / 3)) < FALSE_ALARM


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize(("factor", "accept"), FACTORS)
def test_clamped_noise_has_its_atoms_and_no_others(source, name, factor, accept):
    scale = Fraction("3.7")
    mechanism = ClampedMechanism(ADDITIVE[name](scale), 0, 6)
    draw = mechanism.sample(np.full(30_000, 2), source=source())
    tested = ClampedMechanism(ADDITIVE[name](scale * Fraction(factor)), 0, 6)
    cuts = np.array([0, 1, 2, 3, 4, 5])
    law = np.diff(np.concatenate([[0], tested.cdf(cuts, 2), [1]]))
    counts = np.bincount(np.searchsorted(cuts, draw.values), minlength=7)
    assert (chi_square(counts, law) > FALSE_ALARM) == accept


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("factor", "accept"), FACTORS)
def test_randomized_response_has_its_epsilon_and_no_other(source, factor, accept):
    draw = RandomizedResponse(4, 1).sample([1] * 30_000, source=source())
    law = RandomizedResponse(4, Fraction(factor)).pmf(1)
    counts = np.bincount(draw.values.astype(int), minlength=4)
    assert (chi_square(counts, law) > FALSE_ALARM) == accept


def choice(name, epsilon):
    if name == "softmax":
        return ExponentialMechanism(4, epsilon=epsilon)
    return NoisyMax(4, epsilon=epsilon, noise=name)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["softmax", "exponential", "gumbel", "laplace"])
def test_a_choice_has_its_epsilon_and_no_other(source, name):
    scores = [0, 1, "2.5", 2]
    size = 4_000
    draw = choice(name, 2).sample([scores] * size, source=source())
    counts = np.bincount(draw.values.astype(int), minlength=4)
    # Further off than above: these are slow to draw, and 4000 tell 0.8 from 1 only in
    # 99.5 of a hundred runs, but 0.7 in all but one of a thousand million.
    for factor, accept in (("1", True), ("0.7", False), ("1.4", False)):
        law = choice(name, 2 * Fraction(factor)).pmf(scores)
        assert (chi_square(counts, law) > FALSE_ALARM) == accept


def test_coordinates_are_independent():
    draw = LaplaceMechanism(1, dimension=2).sample(np.zeros((40_000, 2)))
    ranks = stats.spearmanr(draw.values[:, 0], draw.values[:, 1])
    assert ranks.pvalue > FALSE_ALARM
    assert stats.spearmanr(draw.values[:, 0], draw.values.sum(axis=1)).pvalue < 1e-9


# Gaussian noise is held to more than the log ratio it can reach inside the window, 0.75
# (slightly more when truncated); the others to their own pure loss.
RELEASES = {
    "laplace": (LaplaceMechanism(1), 1.0),
    "gaussian": (GaussianMechanism(1), 1.5),
    "discrete laplace": (DiscreteLaplaceMechanism(1, exponent=-10), 1.0),
    "discrete gaussian": (DiscreteGaussianMechanism(1, exponent=-10), 1.5),
    "clamped laplace": (ClampedMechanism(LaplaceMechanism(1), -4, 5), 1.0),
    "clamped gaussian": (ClampedMechanism(GaussianMechanism(1), -4, 5), 1.5),
}
for _name in ("laplace", "gaussian"):
    _truncated = TruncatedMechanism(RELEASES[_name][0], -4, 5)
    RELEASES[f"truncated {_name}"] = (
        _truncated,
        _truncated.released_loss(1).epsilon if _name == "laplace" else 1.6,
    )


@pytest.mark.parametrize("name", RELEASES)
def test_no_low_order_bit_of_a_release_gives_the_input_away(name):
    mechanism, epsilon = RELEASES[name]

    def release(value, count):
        return mechanism.sample(np.full(count, value)).secure_values()

    assert not precision_test(release, epsilon=epsilon, trials=10_000).distinguishes


def test_the_precision_test_would_catch_the_continuous_law_in_floats():
    rng = np.random.default_rng(3)

    def release(value, count):
        return value + rng.laplace(size=count)

    assert precision_test(release, epsilon=1.0, trials=10_000).distinguishes


def test_the_released_lattice_fits_the_ideal_law_to_its_step():
    mechanism = LaplaceMechanism(1)
    outputs = np.linspace(-5, 5, 101)
    gap = np.abs(mechanism.released.cdf(outputs, 0.0) - mechanism.cdf(outputs, 0.0))
    assert gap.max() < 2.0**-24
    assert math.isclose(mechanism.released.accuracy("0.05"), math.log(20), abs_tol=1e-6)
