"""Two-sided goodness of fit of both noise sources.

Every test compares binned counts with the exact law by chi-square and rejects at 1e-6,
so a correct secure source, which has no seed, fails each of them once in a million
runs.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from undertow.mechanisms.noise.bits import uniform_below
from undertow.mechanisms.noise.lattice import LatticeGaussian, LatticeLaplace
from undertow.mechanisms.noise.secure import OpenDPSource, SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
DRAWS = 200_000
SOURCES = [
    pytest.param(SecureSource(), id="secure"),
    pytest.param(SimulatedSource(2026), id="simulated"),
]
FACTORS = [(1.0, True), (0.8, False), (1.25, False)]


def exact_law(kind, scale):
    """Return the support and the probabilities of a law, by brute force."""
    reach = math.ceil(scale * (25 if kind != "gaussian" else 8)) + 2
    support = np.arange(0 if kind == "geometric" else -reach, reach + 1)
    ratio = np.abs(support) / scale
    weights = np.exp(-(ratio**2) / 2 if kind == "gaussian" else -ratio)
    return support, weights / weights.sum()


def p_value(values, support, law, *, bins=300):
    """Return the chi-square p-value of draws against a law on consecutive integers."""
    cumulative = np.cumsum(law)
    cuts = np.unique(np.searchsorted(cumulative, np.arange(1, bins) / bins))
    upper = support[cuts]  # bins are the integers up to each cut
    expected = np.diff(np.concatenate([[0.0], cumulative[cuts], [1.0]])) * values.size
    counts = np.bincount(np.searchsorted(upper, values), minlength=upper.size + 1)
    large = expected > 5
    observed = [*counts[large], counts[~large].sum()]
    wanted = [*expected[large], expected[~large].sum()]
    if wanted[-1] <= 5:  # too little for a bin of its own
        observed = [*observed[:-2], observed[-2] + observed[-1]]
        wanted = [*wanted[:-2], wanted[-2] + wanted[-1]]
    statistic = sum((o - w) ** 2 / w for o, w in zip(observed, wanted, strict=True))
    return float(stats.chi2.sf(statistic, len(wanted) - 1))


def draw(source, kind, scale, size=DRAWS):
    parameter = str(scale * scale) if kind == "gaussian" else str(scale)
    return getattr(source, kind)(Fraction(parameter), size).values


@pytest.mark.parametrize(("factor", "accept"), FACTORS)
@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(37, 10), 50, 1000])
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "geometric"])
@pytest.mark.parametrize("source", SOURCES)
def test_noise_has_its_scale_and_no_other(source, kind, scale, factor, accept):
    values = draw(source, kind, scale)
    law = exact_law(kind, float(scale) * factor)
    assert (p_value(values, *law) > FALSE_ALARM) == accept


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.slow
def test_noise_of_scale_a_million_has_its_law(source, kind):
    assert p_value(draw(source, kind, 10**6), *exact_law(kind, 1e6)) > FALSE_ALARM


@pytest.mark.parametrize("modulus", [2, 7, 64])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("source", SOURCES)
def test_residues_have_their_law_so_that_steps_leave_no_trace(source, kind, modulus):
    support, law = exact_law(kind, 600.0)
    residues = np.bincount(support % modulus, weights=law)
    values = draw(source, kind, 600) % modulus
    assert p_value(values, np.arange(modulus), residues) > FALSE_ALARM


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_neighbouring_draws_are_independent(kind):
    values = draw(SecureSource(), kind, 40)
    table, _, _ = np.histogram2d(values[::2] % 8, values[1::2] % 8, bins=8)
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM
    signs, _, _ = np.histogram2d(values[::2] > 0, values[1::2] > 0, bins=2)
    assert stats.chi2_contingency(signs).pvalue > FALSE_ALARM


# Scales at which products come close to the machine word: the wide steps, the coarse
# comparison constants and the change to Python integers.
@pytest.mark.parametrize(
    ("kind", "scale", "size"),
    [
        ("laplace", 2**40 + 1, DRAWS),
        ("laplace", 2**54, DRAWS),
        ("gaussian", 2**24 + 1, DRAWS),
        ("gaussian", 3 * 2**28, 50_000),
        ("laplace", 2**70, 3000),
        ("gaussian", 2**40, 3000),
    ],
)
def test_noise_near_the_machine_word_has_its_law(kind, scale, size):
    values = draw(SecureSource(), kind, scale, size)
    coarse = np.array([value * 1000 // scale for value in values.tolist()])
    support = np.arange(-45_000, 45_000)
    law = stats.laplace(scale=1000) if kind == "laplace" else stats.norm(scale=1000)
    probabilities = np.diff(law.cdf(np.arange(-45_000, 45_001)))
    assert p_value(coarse, support, probabilities, bins=100) > FALSE_ALARM


@pytest.mark.parametrize(("factor", "accept"), FACTORS)
@pytest.mark.parametrize("source", SOURCES)
def test_coins_have_their_probability_and_no_other(source, factor, accept):
    for values, probability in (
        (source.bernoulli("1/3", DRAWS).values, 1 / 3),
        (source.bernoulli_exp("1.5", DRAWS).values, math.exp(-1.5)),
    ):
        test = stats.binomtest(int(values.sum()), DRAWS, probability * factor)
        assert (test.pvalue > FALSE_ALARM) == accept


@pytest.mark.parametrize("source", SOURCES)
def test_uniform_integers_are_uniform(source):
    values = source.uniform(1000, DRAWS).values
    assert p_value(values, np.arange(1000), np.full(1000, 1e-3)) > FALSE_ALARM


def test_uniform_integers_by_bare_remainder_would_not_pass():
    class Words:
        width = 8

        def __init__(self):
            self.rng = np.random.default_rng(1)

        def words(self, count):
            return self.rng.integers(256, size=count).astype(np.uint16)

    law = np.arange(200), np.full(200, 1 / 200)
    assert p_value(uniform_below(Words(), DRAWS, bound=200), *law) > FALSE_ALARM
    assert p_value(Words().words(DRAWS) % 200, *law) < FALSE_ALARM


@pytest.mark.parametrize("scale", [1.0, 3.5, 40.0])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_secure_noise_and_opendp_noise_have_one_law(kind, scale):
    ours = draw(SecureSource(), kind, scale)
    theirs = draw(OpenDPSource(), kind, scale, 20_000)
    cuts = np.unique(np.floor(np.quantile(ours, np.linspace(0.02, 0.98, 40))))
    table = [np.bincount(np.searchsorted(cuts, v)) for v in (ours, theirs)]
    assert stats.chi2_contingency(np.array(table)).pvalue > FALSE_ALARM
    wider = draw(SecureSource(), kind, scale * 1.25)
    table[0] = np.bincount(np.searchsorted(cuts, wider))
    assert stats.chi2_contingency(np.array(table)).pvalue < FALSE_ALARM


@pytest.mark.parametrize(("scale", "shift"), [(1, 1), (Fraction(7, 2), 3), (20, 1)])
def test_laplace_log_ratios_of_neighbours_stay_within_epsilon(scale, shift):
    epsilon = shift / float(scale)
    support, law = exact_law("laplace", float(scale))
    ratios = np.log(law[shift:]) - np.log(law[:-shift])
    assert np.abs(ratios).max() == pytest.approx(epsilon, rel=1e-9)  # from the law
    first = draw(SecureSource(), "laplace", scale)
    second = draw(SecureSource(), "laplace", scale) + shift
    events = np.flatnonzero(law * DRAWS > 50)
    for event in support[events]:  # and the counts are consistent with it
        hits = int((first == event).sum()), int((second == event).sum())
        for one in hits:
            test = stats.binomtest(
                one, sum(hits), 1 / (1 + math.exp(-epsilon)), alternative="greater"
            )
            assert test.pvalue > FALSE_ALARM / (2 * events.size)


def test_half_the_noise_breaks_the_log_ratio_of_neighbours():
    first = draw(SecureSource(), "laplace", 1)
    second = draw(SecureSource(), "laplace", 1) + 1
    hits = int((first <= 0).sum()), int((second <= 0).sum())
    chance = 1 / (1 + math.exp(-0.5))  # what a claim of epsilon 1/2 allows
    test = stats.binomtest(hits[0], sum(hits), chance, alternative="greater")
    assert test.pvalue < FALSE_ALARM


@pytest.mark.parametrize("variance", [Fraction(1, 4), 1, Fraction(9, 2), 100])
@pytest.mark.parametrize("shift", [1, 2])
def test_the_gaussian_law_keeps_its_zcdp_and_attains_no_less(variance, shift):
    """Renyi divergences of the exact law, against alpha * rho, Theorem 4 of CKS."""
    support = np.arange(-400.0, 401.0)
    total = np.exp(-(support**2) / (2 * float(variance))).sum()
    rho = shift**2 / (2 * float(variance))
    for alpha in (1.25, 1.5, 2.0, 3.0, 8.0):
        exponent = -alpha * (support - shift) ** 2 - (1 - alpha) * support**2
        moment = np.exp(exponent / (2 * float(variance))).sum() / total
        divergence = math.log(moment) / (alpha - 1)
        assert divergence <= alpha * rho * (1 + 1e-12)
        if (alpha * shift).is_integer():
            assert divergence == pytest.approx(alpha * rho, rel=1e-9)


def test_the_discrete_gaussian_is_not_gaussian_dp():
    """One point of its trade-off curve lies below that of mu = 1/sigma."""
    support = np.arange(-40, 41)
    weights = np.exp(-(support**2) / 2.0)
    law = weights / weights.sum()
    level, power = law[support >= 1].sum(), law[support >= 0].sum()
    gaussian_power = stats.norm.sf(stats.norm.isf(level) - 1.0)
    assert power > gaussian_power + 0.01


@pytest.mark.parametrize("kind", [LatticeLaplace, LatticeGaussian])
def test_lattice_noise_has_the_spread_of_its_calibration(kind):
    noise = kind.calibrate(1, "1/2", coordinates=1)
    values = noise.sample(np.full(DRAWS, 0.25)).values - 0.25
    law = stats.laplace(scale=2) if kind is LatticeLaplace else stats.norm(scale=1)
    assert stats.kstest(values, law.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(values * 1.25, law.cdf).pvalue < FALSE_ALARM


def test_continuous_draws_have_their_laws():
    source = SimulatedSource(8)
    laplace = source.continuous_laplace(3, DRAWS).values
    gaussian = source.continuous_gaussian(9, DRAWS).values
    assert stats.kstest(laplace, stats.laplace(scale=3).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(gaussian, stats.norm(scale=3).cdf).pvalue > FALSE_ALARM
