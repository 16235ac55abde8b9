"""The local protocols as objects: exact law, loss, support, estimation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms import RandomizedResponse, SecureSource, SimulatedSource
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
    calibrate_subset,
    estimate_frequencies,
    frequency_from_counts,
    frequency_variance,
    hash_bucket,
    hashing_advantage,
    hashing_variation,
)
from undertow.mechanisms.local._bitset import count_bits
from undertow.mechanisms.local.hashing import REPORT

M = 5
PROTOCOLS = {
    "grr": GeneralizedResponse(M, "1.3"),
    "ue": UnaryEncoding(M, keep="0.8", noise="0.3"),
    "sue": SymmetricUnary(M, "1.3"),
    "oue": OptimizedUnary(M, "1.3"),
    "the": ThresholdHistogram(M, "1.3"),
    "ss": SubsetSelection(M, "1.3", subset=2),
    "lh": OptimizedHashing(M, "1.3"),
    "blh": BinaryHashing(M, "1.3"),
}


def all_reports(protocol):
    """Return every output of a finite protocol; for hashing, of a few seeds."""
    if isinstance(protocol, GeneralizedResponse):
        return np.arange(protocol.categories)
    if isinstance(protocol, LocalHashing):
        pairs = itertools.product([3, 5, 2**63 + 1, 77], range(protocol.buckets))
        return np.array(list(pairs), dtype=REPORT)
    rows = np.arange(1 << protocol.categories, dtype="<u4")[:, None]
    if isinstance(protocol, SubsetSelection):
        return rows[count_bits(rows) == protocol.subset]
    return rows


def law(protocol):
    reports = all_reports(protocol)
    table = [protocol.log_pmf(reports, x) for x in range(protocol.categories)]
    channel = np.exp(np.array(table))
    # Seeds are uniform on 2^64; the few listed ones stand for all.
    return channel * (2.0**62 if isinstance(protocol, LocalHashing) else 1.0)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_law_of_every_input_sums_to_one(protocol):
    np.testing.assert_allclose(law(protocol).sum(axis=1), 1.0, atol=1e-13)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_loss_is_the_largest_log_ratio_and_stays_in_the_budget(protocol):
    reports = all_reports(protocol)
    logs = np.array([protocol.log_pmf(reports, x) for x in range(M)])
    largest = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert protocol.loss().epsilon == pytest.approx(largest, abs=1e-13)
    assert protocol.loss().exact_parameters()[0] <= protocol.epsilon


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_total_variation_is_the_largest_over_pairs(protocol):
    channel = law(protocol)
    largest = np.abs(channel[:, None] - channel[None, :]).sum(axis=2).max() / 2
    found = protocol.total_variation()
    assert found >= largest - 1e-13
    if not isinstance(protocol, LocalHashing):  # there it holds for every hash
        assert found == pytest.approx(largest, abs=1e-11)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if "lh" not in name])
def test_keep_and_noise_are_the_support_probabilities(name):
    protocol = PROTOCOLS[name]
    channel, support = law(protocol), protocol.support(all_reports(protocol))
    shares = channel @ support
    expected = np.full((M, M), float(protocol.noise))
    np.fill_diagonal(expected, float(protocol.keep))
    np.testing.assert_allclose(shares, expected, atol=1e-13)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("knowledge", ["none", "full"])
def test_the_advantage_bound_holds_and_is_attained_where_it_says_so(
    protocol, knowledge
):
    prior = np.array([0.35, 0.05, 0.3, 0.2, 0.1])
    channel = law(protocol)
    gain = prior[:, None] * (channel - prior @ channel)
    if knowledge == "full":
        exact = np.maximum(gain, 0).sum()
    else:
        exact = gain.max(axis=0).sum()
    bound = protocol.advantage_bound(prior, knowledge=knowledge)
    assert bound.value >= exact - 1e-13
    if bound.tight:
        assert bound.value == pytest.approx(exact, abs=1e-11)
    else:
        assert isinstance(protocol, LocalHashing)


@pytest.mark.parametrize("g", [2, 3, 9])
@pytest.mark.parametrize("prior", [None, [0.35, 0.05, 0.3, 0.2, 0.1]])
@pytest.mark.parametrize("knowledge", ["none", "full"])
def test_the_hashing_bound_covers_every_hash_and_the_ideal_one(g, prior, knowledge):
    protocol = LocalHashing(M, "1.3", buckets=g)
    bound = protocol.advantage_bound(prior, knowledge=knowledge).value
    pi = np.full(M, 0.2) if prior is None else np.array(prior)
    inner = np.full((g, g), float(protocol.odds * protocol.keep))
    np.fill_diagonal(inner, float(protocol.keep))
    worst = 0.0
    for h in itertools.product(range(g), repeat=M if g < 9 else 3):
        channel = inner[list(h) + [0, 1][: M - len(h)]]
        gain = pi[:, None] * (channel - pi @ channel)
        full = np.maximum(gain, 0).sum()
        worst = max(worst, full if knowledge == "full" else gain.max(axis=0).sum())
    ideal = hashing_advantage(M, 1.3, buckets=g, prior=prior, knowledge=knowledge)
    assert max(worst, ideal) <= bound + 1e-13
    if prior is None and g < 9:
        assert worst == pytest.approx(bound, abs=0.06)


def test_families_whose_advantage_may_fall_say_so():
    assert not SubsetSelection.monotone
    assert not OptimizedHashing.monotone
    assert not ThresholdHistogram.monotone
    assert GeneralizedResponse.monotone
    assert OptimizedUnary.monotone
    assert BinaryHashing.monotone


def test_generalised_response_has_the_law_of_randomised_response():
    ours, theirs = GeneralizedResponse(4, "0.7"), RandomizedResponse(4, "0.7")
    assert ours.keep == theirs.keep_probability
    np.testing.assert_allclose(
        np.exp(ours.log_pmf(np.arange(4), 2)), theirs.pmf(2), rtol=1e-14
    )
    assert ours.loss() == theirs.loss()


def test_enormous_levels_are_exact_rationals():
    protocol = OptimizedUnary(4, 10_000)
    assert 0 < protocol.noise < Fraction(1, 10**4000)
    reports = np.array([[0b0001], [0b0011]], dtype="<u4")
    assert protocol.log_pmf(reports, 0).tolist() == pytest.approx(
        [math.log(0.5), math.log(0.5) - 10_000]
    )
    with pytest.raises(ValueError, match="positive and at most 10000"):
        OptimizedUnary(4, 10_001)
    with pytest.raises(ValueError, match="positive and at most 10000"):
        GeneralizedResponse(4, 0)


def test_a_set_of_the_wrong_size_is_impossible():
    protocol = SubsetSelection(M, 1, subset=2)
    assert protocol.log_pmf(np.array([[0b111]], dtype="<u4"), 0)[0] == -math.inf


def test_a_calibrated_subset_is_deployed_with_its_size():
    chosen = calibrate_subset(1000, 0.1)
    protocol = SubsetSelection(1000, chosen.value, subset=chosen.subset)
    assert protocol.advantage_bound().value <= 0.1


def test_the_variation_of_hashing_in_a_guarantee_assumes_no_ideal_hash():
    protocol = BinaryHashing(9, 1)
    ideal = hashing_variation(1.0, buckets=2)
    assert protocol.total_variation() == pytest.approx(2 * ideal)


def test_too_many_buckets_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match="OptimizedUnary"):
        OptimizedHashing(10, 30)


def test_hash_values_are_fixed_and_collide_as_often_as_chance():
    seeds = np.arange(20_000)
    first, second = (hash_bucket(seeds, x, buckets=7) for x in (0, 1))
    assert hash_bucket(1234567, [0], buckets=2**31).tolist() == [
        6457827717110365317 % 2**31
    ]
    share = float((first == second).mean())
    assert abs(share - 1 / 7) < 5 * math.sqrt(6 / 49 / 20_000)


def test_real_histograms_need_a_simulated_source_and_small_batches():
    protocol = SummationHistogram(4, 1)
    with pytest.raises(TypeError, match="ThresholdHistogram"):
        protocol.sample([0], source=SecureSource())
    wide = SummationHistogram(1000, 1)
    with pytest.raises(ValueError, match="in batches"):
        wide.sample(np.zeros(100_001, dtype=int), source=SimulatedSource(1))
    with pytest.raises(MismatchError, match="use log_density"):
        protocol.log_pmf([[0.0, 0.0, 0.0, 0.0]], 0)


def test_real_histograms_have_their_laplace_density_and_bound():
    protocol = SummationHistogram(3, 2)
    rows = np.array([[0.3, -1.0, 2.0]])
    # Scale 1: the distance from the one-hot vector is 0.3 + 1 + 1.
    expected = 3 * math.log(0.5) - 2.3
    assert protocol.log_density(rows, 2)[0] == pytest.approx(expected)
    assert protocol.support(rows).tolist() == [[False, False, True]]
    assert protocol.loss().epsilon == 2.0
    full = protocol.advantage_bound(knowledge="full")
    assert full.value >= protocol.advantage_bound().value
    assert full.tight is None
    with pytest.raises(MismatchError, match="rows of 3 numbers"):
        protocol.log_density([[1.0, 2.0]], 0)


def test_ties_of_real_histograms_are_all_supported():
    protocol = SummationHistogram(3, 2)
    assert protocol.support([[1.5, 3.0, 0.2]]).tolist() == [[True, True, False]]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_simulated_draw_is_stamped_and_repeats_with_its_seed(protocol):
    values = np.arange(40) % M
    draws = [protocol.sample(values, source=SimulatedSource(4)) for _ in range(2)]
    assert draws[0].simulated
    np.testing.assert_array_equal(draws[0].values, draws[1].values)
    secure = protocol.sample(values)
    assert not secure.simulated
    assert np.isfinite(protocol.log_pmf(secure.values, 0)).all()
    assert protocol.sample(np.zeros(0, dtype=int)).values.shape[0] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_counts_are_the_columns_of_the_support(protocol):
    draw = protocol.sample(np.arange(700) % M, source=SimulatedSource(5))
    counts = protocol.support(draw.values).sum(axis=0)
    np.testing.assert_array_equal(protocol.support_counts(draw.values), counts)


def test_guesses_lie_in_the_support_or_anywhere_if_it_is_empty():
    protocol = OptimizedUnary(40, 2)
    rng = np.random.default_rng(1)
    rows = protocol.sample(np.arange(200) % 40, source=SimulatedSource(6)).values
    guesses = protocol.sample_guesses(rows, rng=rng)
    table = protocol.support(rows)
    inside = table[np.arange(200), guesses]
    assert (inside == table.any(axis=1)).all()
    blank = np.zeros((4000, 2), dtype="<u4")
    assert len(set(protocol.sample_guesses(blank, rng=rng).tolist())) == 40


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_estimate_is_unbiased_with_its_exact_variance(protocol):
    if isinstance(protocol, LocalHashing):
        protocol = LocalHashing(M, "1.3", buckets=3)
    p, q, n = float(protocol.keep), float(protocol.noise), 50
    truth = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    mean = n * (truth * p + (1 - truth) * q)
    found = frequency_from_counts(protocol, mean, reports=n)
    np.testing.assert_allclose(found.frequencies, truth, atol=1e-12)
    # A sum of independent coins: n f of them with p, the rest with q.
    spread = n * (truth * p * (1 - p) + (1 - truth) * q * (1 - q)) / (n * (p - q)) ** 2
    np.testing.assert_allclose(
        frequency_variance(protocol, truth, reports=n), spread, rtol=1e-12
    )
    np.testing.assert_allclose(found.variances, spread, rtol=1e-9)


def test_response_estimates_sum_to_one():
    protocol = GeneralizedResponse(6, 1)
    draw = protocol.sample(np.arange(999) % 6, source=SimulatedSource(3))
    found = estimate_frequencies(protocol, draw.values)
    assert math.fsum(found.frequencies) == pytest.approx(1.0, abs=1e-12)
    assert (found.reports, found.protocol) == (999, "GRR")


def test_the_variance_of_optimised_unary_is_the_published_one():
    for epsilon in (0.5, 1.0, 4.0):
        E = math.exp(epsilon)
        found = frequency_variance(OptimizedUnary(9, epsilon), 0.0, reports=1)
        assert found == pytest.approx(4 * E / (E - 1) ** 2)


def test_malformed_reports_and_values_are_refused():
    protocol = OptimizedUnary(35, 1)
    with pytest.raises(MismatchError, match="rows of 2 32-bit words"):
        protocol.support(np.zeros((1, 3), dtype="<u4"))
    with pytest.raises(MismatchError, match="no bit beyond"):
        protocol.support(np.array([[0, 8]], dtype="<u4"))
    with pytest.raises(ValueError, match=r"categories in 0\.\.34"):
        protocol.sample([35])
    with pytest.raises(TypeError, match="array of integers"):
        protocol.sample([0.5])
    with pytest.raises(MismatchError, match="seed and one of"):
        BinaryHashing(5, 1).support(np.zeros(2))
    with pytest.raises(MismatchError, match="one entry per category"):
        frequency_from_counts(protocol, [1, 2], reports=3)
    with pytest.raises(ValueError, match="0 < noise < keep < 1"):
        UnaryEncoding(3, keep=0.2, noise=0.4)
    with pytest.raises(ValueError, match="given must be in"):
        protocol.log_pmf(np.zeros((1, 2), dtype="<u4"), 35)


def test_reports_that_say_nothing_estimate_nothing():
    blank = GeneralizedResponse(3, Fraction(1, 10**30))
    assert blank.keep == blank.noise
    with pytest.raises(AssumptionError, match="raise epsilon"):
        frequency_variance(blank, 0.1, reports=5)


def test_a_protocol_is_shown_in_one_short_line():
    assert repr(OptimizedUnary(4, 10_000)).startswith("OptimizedUnary(4, 10000, keep=")
    assert repr(SubsetSelection(10, 1)) == "SubsetSelection(10, 1, subset=2)"
    assert repr(BinaryHashing(10, 1)) == "BinaryHashing(10, 1, buckets=2)"
    assert repr(GeneralizedResponse(10, 1)) == "GeneralizedResponse(10, 1)"
    assert OptimizedUnary(4, 1) == OptimizedUnary(4, "1.0")
    assert OptimizedUnary(4, 1) != SymmetricUnary(4, 1)


def test_a_star_import_does_not_hide_the_knowledge_of_a_threat():
    from undertow import risk
    from undertow.mechanisms import local

    shared = set(risk.__all__) & set(local.__all__)
    assert all(getattr(risk, name) is getattr(local, name) for name in shared)
    assert "Knowledge" not in local.__all__
