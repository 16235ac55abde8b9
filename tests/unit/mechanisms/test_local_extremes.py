"""Local protocols at extreme input, against enumeration and exact coins."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from undertow.errors import MismatchError
from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    calibrate_grr,
    calibrate_subset,
    estimate_frequencies,
    frequency_from_counts,
    frequency_variance,
    grr_advantage,
    hash_bucket,
    oue_advantage,
    she_advantage,
    subset_advantage,
)
from undertow.risk.threat import Prior


def normalised(prior):
    masses = [mpmath.mpf(float(mass)) for mass in prior]
    total = mpmath.fsum(masses)
    return [mass / total for mass in masses]


def unary_truth(prior, gap, q):
    """Sum the ascending formula with sixty digits."""
    pi = sorted(normalised(prior))
    below, running = [], mpmath.mpf(0)
    for mass in pi:
        below.append(running)
        running += mass
    total, weight = mpmath.mpf(0), 1 / (1 - q)
    for mass, less in zip(reversed(pi), reversed(below), strict=True):
        total += weight * mass * ((1 - mass) - q * less)
        weight *= 1 - q
        if weight < mpmath.mpf(10) ** -40:
            break
    return gap * total


@pytest.mark.slow
def test_running_sums_over_many_categories_stay_on_the_safe_side():
    # Equal steps are rounded the same way each time: the error grows with m.
    m = 100_000
    prior = (1.0 + np.arange(m) % 3) / math.fsum(1.0 + np.arange(m) % 3)
    with mpmath.workdps(60):
        q = 1 / (1 + mpmath.e)
        truth = unary_truth(prior, mpmath.mpf("0.5") - q, q)
        value = oue_advantage(m, 1.0, prior=prior)
        assert truth <= value <= truth * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("tail", [1e-7, 1e-12, 1e-17, 1e-30])
def test_closed_forms_keep_their_digits_near_a_point_mass(tail):
    prior = np.array([1.0 - tail, tail / 4, tail * 3 / 4])
    with mpmath.workdps(60):
        pi, x = normalised(prior), mpmath.exp(-1)
        differ = mpmath.fsum(p * (1 - p) for p in pi)
        full = {
            "grr": (1 - x) / (1 + 2 * x) * differ,
            "oue": (mpmath.mpf("0.5") - x / (1 + x)) * differ,
        }
        wins = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
        best = [pi[2], pi[0] + pi[2], pi[0] + pi[1]]
        sets = (1 - x) / (1 + 2 * x) * mpmath.fdot(pi, best)
        assert grr_advantage(3, 1.0, prior=prior) >= full["grr"]
        assert oue_advantage(3, 1.0, prior=prior, knowledge="full") >= full["oue"]
        assert grr_advantage(3, 1.0, prior=prior, success=wins) >= sets
        hashed = LocalHashing(3, 1, buckets=8).advantage_bound(prior).value
        p = 1 / (1 + 7 * x)
        assert hashed >= (p - x * p) * differ


def test_a_guess_that_wins_almost_always_keeps_the_digits_of_its_misses():
    prior = np.array([1e-7, 1e-7, 1.0 - 2e-7])
    wins = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
    with mpmath.workdps(60):
        pi, x = normalised(prior), mpmath.exp(-2)
        gap = (1 - x) / (1 + 2 * x)
        outside = [pi[1], pi[0], mpmath.mpf(0)]
        best = [max(o for g, o in enumerate(outside) if wins[g, t]) for t in range(3)]
        truth = gap * mpmath.fdot(pi, best)
        value = grr_advantage(3, 2.0, prior=prior, success=wins)
        assert truth <= value <= truth * (1 + mpmath.mpf(10) ** -11)


def test_a_prior_short_of_one_is_scaled():
    m = 10_000
    prior = np.full(m, 1.0 / m) * (1 - 9e-11)
    truth = grr_advantage(m, 1.0)
    assert grr_advantage(m, 1.0, prior=prior) == pytest.approx(truth, rel=1e-11, abs=0)


@pytest.mark.parametrize("m", [3, 5, 6, 7, 100])
def test_the_never_binding_target_is_compared_exactly(m):
    target = (m - 1) / m
    never = Fraction(target) >= Fraction(m - 1, m)
    for found in (calibrate_grr(m, target), calibrate_subset(m, target)):
        assert (found.value == math.inf) == never
        assert found.achieves.value <= target
    over = math.nextafter(target, 1.0)
    assert calibrate_grr(m, over).value == math.inf


@pytest.mark.parametrize("m", [3, 100, 1000])
def test_a_disclosed_histogram_is_not_rounded_down(m):
    assert Fraction(she_advantage(m, 1e4)) >= Fraction(m - 1, m)


def test_the_prior_of_a_threat_is_accepted():
    prior = Prior(3, [0.5, 0.3, 0.2])
    bound = GeneralizedResponse(3, 1).advantage_bound(prior)
    assert bound.value == grr_advantage(3, 1.0, prior=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_subset_selection_is_exact_for_every_size(size):
    m, pi = 4, [0.1, 0.2, 0.3, 0.4]
    with mpmath.workdps(40):
        x = mpmath.exp(-mpmath.mpf("1.3"))
        p = size / (size + (m - size) * x)
        inside, outside = math.comb(m - 1, size - 1), math.comb(m - 1, size)
        masses, none = normalised(pi), mpmath.mpf(0)
        for chosen in itertools.combinations(range(m), size):
            law = [p / inside if y in chosen else (1 - p) / outside for y in range(m)]
            seen = mpmath.fdot(masses, law)
            none += max(masses[y] * (law[y] - seen) for y in range(m))
        value = subset_advantage(m, 1.3, subset=size, prior=pi)
        assert none <= value <= none * (1 + mpmath.mpf(10) ** -11)


PROTOCOLS = {
    "GRR": GeneralizedResponse(6, 1.5),
    "SUE": SymmetricUnary(6, 1.5),
    "OUE": OptimizedUnary(6, 1.5),
    "SS": SubsetSelection(6, 0.5),
    "SS of many": SubsetSelection(60, 0.2),
    "BLH": BinaryHashing(6, 1.5),
    "LH with more buckets than categories": LocalHashing(6, 1.5, buckets=20),
    "SHE": SummationHistogram(6, 1.5),
    "THE": ThresholdHistogram(6, 1.5),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_estimated_frequencies_have_the_stated_mean_and_variance(name):
    # Each of the two checks fails by chance in about one run of a million.
    protocol, rng = PROTOCOLS[name], np.random.default_rng(11)
    n, rounds = 400, 300
    truths = np.repeat(np.arange(protocol.categories), n)[: n * protocol.categories]
    truths = np.concatenate([np.zeros(n // 2, dtype=np.int64), rng.permutation(truths)])
    truths = truths[:n]
    share = np.bincount(truths, minlength=protocol.categories) / n
    source = SimulatedSource(77)
    draws = [
        estimate_frequencies(protocol, protocol.sample(truths, source=source).values)
        for _ in range(rounds)
    ]
    found = np.array([draw.frequencies for draw in draws])
    spread = frequency_variance(protocol, share, reports=n)
    cells = protocol.categories
    limit = stats.norm.isf(1e-6 / (2 * cells))
    assert np.all(
        np.abs(found.mean(axis=0) - share) <= limit * np.sqrt(spread / rounds)
    )
    ratio = found.var(axis=0, ddof=1) / spread
    # Sums of hundreds of bits are nearly normal: variances err by sqrt(2/rounds).
    assert np.all(np.abs(ratio - 1.0) <= 1.5 * limit * math.sqrt(2.0 / rounds))
    stated = np.mean([draw.variances for draw in draws], axis=0)
    assert stated == pytest.approx(spread, rel=0.1)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["GRR", "SUE", "SS", "THE"])
def test_reports_follow_the_stated_law(name):
    # Chi-square over all reports; false alarm 1e-6.
    protocol = PROTOCOLS[name]
    n, truth = 60_000, 2
    values = protocol.sample(np.full(n, truth), source=SimulatedSource(5)).values
    kinds, counts = np.unique(values.reshape(n, -1)[:, 0], return_counts=True)
    reports = kinds if values.ndim == 1 else kinds[:, None].astype(values.dtype)
    expected = n * np.exp(protocol.log_pmf(reports, truth))
    assert expected.sum() == pytest.approx(n, rel=1e-3)
    kept = expected >= 5
    excess = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert excess <= stats.chi2.isf(1e-6, int(kept.sum()))


def test_the_secure_source_draws_reports_of_every_protocol():
    for protocol in PROTOCOLS.values():
        if protocol.name == "SHE":
            continue
        draw = protocol.sample([0, 5, 3])
        assert not draw.simulated
        assert protocol.support(draw.values).shape == (3, protocol.categories)


SENTENCES = {
    "a prior of words": (
        lambda: GeneralizedResponse(2, 1).advantage_bound(["a", "b"]),
        ValueError,
        "prior must be an array of numbers",
    ),
    "a source that is a word": (
        lambda: GeneralizedResponse(2, 1).sample([0], source="coins"),
        TypeError,
        "source must be a noise source",
    ),
    "vectors with nan": (
        lambda: SummationHistogram(2, 1).support([[math.nan, 0.0]]),
        MismatchError,
        "reports must be finite numbers",
    ),
    "vectors of words": (
        lambda: SummationHistogram(2, 1).support([["a", "b"]]),
        ValueError,
        "reports must be an array of numbers",
    ),
    "counts with nan": (
        lambda: frequency_from_counts(
            GeneralizedResponse(2, 1), [math.nan, 1.0], reports=3
        ),
        ValueError,
        "counts must be finite",
    ),
    "counts of words": (
        lambda: frequency_from_counts(GeneralizedResponse(2, 1), ["a", "b"], reports=3),
        ValueError,
        "counts must be an array of numbers",
    ),
    "a frequency that is nan": (
        lambda: frequency_variance(GeneralizedResponse(2, 1), math.nan, reports=3),
        ValueError,
        "frequency must be finite",
    ),
    "no buckets": (
        lambda: hash_bucket([1], [0], buckets=0),
        ValueError,
        "buckets must be a whole number",
    ),
    "reports that are a number": (
        lambda: BinaryHashing(3, 1).support_counts(3),
        MismatchError,
        "reports must be an array",
    ),
    "a success table of words": (
        lambda: grr_advantage(3, 1.0, success="x"),
        ValueError,
        "success must be a table of truth values",
    ),
    "categories beyond the floats": (
        lambda: grr_advantage(10**400, 1.0),
        ValueError,
        "categories must be at most",
    ),
}


@pytest.mark.parametrize("case", sorted(SENTENCES))
def test_bad_input_gets_one_clear_sentence(case):
    call, kind, words = SENTENCES[case]
    with pytest.raises(kind, match=words) as caught:
        call()
    assert str(caught.value).endswith(".")


def test_the_size_of_a_subset_is_a_plain_integer():
    assert type(SubsetSelection(10, 1, subset=np.int64(3)).subset) is int
