"""Samplers of the local protocols against their exact laws, two-sided.

Each test rejects at 1e-6: a correct sampler on a secure source fails each of them once
in a million runs, and a seeded one passes for ever. Wrong parameters are rejected.
"""

import math

import numpy as np
import pytest
from scipy import stats

from undertow.mechanisms import SecureSource, SimulatedSource
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    UnaryEncoding,
    estimate_frequencies,
    frequency_variance,
    hash_bucket,
)
from undertow.mechanisms.local._bitset import count_bits, unpack

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
# Two-sided normal quantile of the false-alarm rate.
QUANTILE = float(stats.norm.isf(FALSE_ALARM / 2))
SOURCES = [
    pytest.param(SecureSource, id="secure"),
    pytest.param(lambda: SimulatedSource(23), id="simulated"),
]
M, N = 4, 40_000
FINITE = {
    "ue": (UnaryEncoding(M, keep="0.7", noise="0.2"), {"keep": "0.7", "noise": "0.22"}),
    "sue": (SymmetricUnary(M, 1), {"epsilon": "1.15"}),
    "oue": (OptimizedUnary(M, 1), {"epsilon": "1.15"}),
    "the": (ThresholdHistogram(M, 2), {"epsilon": "2.3"}),
    "ss": (SubsetSelection(M, 1, subset=2), {"epsilon": "1.15", "subset": 2}),
}


def chi_square(counts, law):
    """Return the p-value of counts against a law without small cells."""
    expected = np.asarray(law) * np.sum(counts)
    assert expected.min() > 5
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def packed_law(protocol, given):
    outputs = np.arange(1 << M, dtype="<u4")[:, None]
    return np.exp(protocol.log_pmf(outputs, given))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("given", [0, 3])
def test_bit_reports_follow_their_law_and_no_other(name, source, given):
    protocol, other = FINITE[name]
    draw = protocol.sample(np.full(N, given), source=source())
    counts = np.bincount(draw.values[:, 0], minlength=1 << M)
    law = packed_law(protocol, given)
    seen = law > 0
    assert counts[~seen].sum() == 0
    assert chi_square(counts[seen], law[seen]) > FALSE_ALARM
    wrong = packed_law(type(protocol)(M, **other), given)
    assert chi_square(counts[seen], wrong[seen]) < FALSE_ALARM


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("level", "accept"), [("1", True), ("1.15", False)])
def test_responses_follow_their_law_and_no_other(source, level, accept):
    reports = GeneralizedResponse(6, 1).sample(np.full(N, 2), source=source()).values
    law = np.exp(GeneralizedResponse(6, level).log_pmf(np.arange(6), 2))
    p_value = chi_square(np.bincount(reports, minlength=6), law)
    assert (p_value > FALSE_ALARM) == accept


@pytest.mark.parametrize("source", SOURCES)
def test_large_sets_have_their_size_and_are_exchangeable(source):
    m, n = 300, 4000
    protocol = SubsetSelection(m, "0.4")
    rows = protocol.sample(np.full(n, 7), source=source()).values
    assert protocol.subset == 120  # filled from random bits, not one by one
    assert (count_bits(rows) == protocol.subset).all()
    bits = unpack(rows, m)
    held = int(bits[:, 7].sum())
    assert stats.binomtest(held, n, float(protocol.keep)).pvalue > FALSE_ALARM
    # Given the set misses the truth, the others are a uniform set: columns vary as
    # without replacement, pairs meet as often as they should.
    others = np.delete(bits[~bits[:, 7]], 7, axis=1)
    k, rate = len(others), protocol.subset / (m - 1)
    spread = ((others.sum(axis=0) - k * rate) ** 2).sum() / (k * rate * (1 - rate))
    spread *= (m - 2) / (m - 1)
    assert stats.chi2.sf(spread, m - 2) > FALSE_ALARM
    assert stats.chi2.cdf(spread, m - 2) > FALSE_ALARM
    halves = others[:, : (m - 1) // 2].sum(axis=1)
    law = stats.hypergeom(m - 1, (m - 1) // 2, protocol.subset)
    z = (halves.mean() - law.mean()) / (law.std() / math.sqrt(k))
    assert abs(z) < QUANTILE
    ratio = halves.var() / law.var()
    assert abs(ratio - 1) < 1.2 * QUANTILE * math.sqrt(2 / k)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("g", [2, 5])
def test_hashed_reports_hide_the_bucket_of_the_truth(source, g):
    protocol = LocalHashing(50, "1.2", buckets=g)
    reports = protocol.sample(np.full(N, 31), source=source()).values
    home = hash_bucket(reports["seed"], 31, buckets=g)
    shift = (reports["bucket"].astype(int) - home) % g
    law = [float(protocol.keep)] + [float(protocol.odds * protocol.keep)] * (g - 1)
    assert chi_square(np.bincount(shift, minlength=g), law) > FALSE_ALARM
    # Another category is supported once in g times.
    away = int((hash_bucket(reports["seed"], 5, buckets=g) == reports["bucket"]).sum())
    assert stats.binomtest(away, N, 1 / g).pvalue > FALSE_ALARM
    assert stats.binomtest(away, N, float(protocol.keep)).pvalue < FALSE_ALARM


def test_real_histograms_have_laplace_noise_around_the_truth():
    protocol = SummationHistogram(3, 1)
    rows = protocol.sample(np.full(N, 1), source=SimulatedSource(9)).values
    noise = stats.laplace(scale=2.0)
    assert stats.kstest(rows[:, 1] - 1.0, noise.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(rows[:, 0], noise.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(rows[:, 1], noise.cdf).pvalue < FALSE_ALARM


ATTACKED = {
    "grr": GeneralizedResponse(12, 2),
    "sue": SymmetricUnary(12, 2),
    "oue": OptimizedUnary(12, 2),
    "the": ThresholdHistogram(12, 2),
    "ss": SubsetSelection(12, 1),
    "blh": BinaryHashing(12, 2),
    "olh": OptimizedHashing(12, 2),
    "she": SummationHistogram(12, 2),
}


@pytest.mark.parametrize("protocol", ATTACKED.values(), ids=ATTACKED)
def test_the_simple_attack_succeeds_as_often_as_its_formula(protocol):
    rng = np.random.default_rng(31)
    truths = rng.integers(12, size=N)
    reports = protocol.sample(truths, source=SimulatedSource(rng)).values
    hits = int((protocol.sample_guesses(reports, rng=rng) == truths).sum())
    rate = protocol.attack_success()
    assert stats.binomtest(hits, N, rate).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, N, rate + 0.02).pvalue < FALSE_ALARM


@pytest.mark.parametrize("given", [0, 11])
def test_ties_of_real_histograms_favour_no_category(given):
    protocol, rng = SummationHistogram(12, 1), np.random.default_rng(8)
    rows = protocol.sample(np.full(N, given), source=SimulatedSource(rng)).values
    hits = int((protocol.sample_guesses(rows, rng=rng) == given).sum())
    assert stats.binomtest(hits, N, protocol.attack_success()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("protocol", ATTACKED.values(), ids=ATTACKED)
def test_estimates_are_unbiased_with_their_stated_variance(protocol):
    rng = np.random.default_rng(77)
    truth = np.repeat([0, 1, 2], [600, 300, 100])
    shares = np.bincount(truth, minlength=12) / 1000
    runs = 200
    found = np.array(
        [
            estimate_frequencies(
                protocol, protocol.sample(truth, source=SimulatedSource(rng)).values
            ).frequencies
            for _ in range(runs)
        ]
    )
    variance = frequency_variance(protocol, shares, reports=1000)
    z = (found.mean(axis=0) - shares) / np.sqrt(variance / runs)
    # Twelve categories share the rate of false alarms.
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 24)
    ratio = ((found - shares) ** 2).mean(axis=0) / variance
    low, high = stats.chi2.ppf([FALSE_ALARM / 24, 1 - FALSE_ALARM / 24], runs) / runs
    assert low < ratio.min()
    assert ratio.max() < high
