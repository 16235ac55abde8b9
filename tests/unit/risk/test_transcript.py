from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.risk import transcript
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    ChannelStream,
    MechanismSampler,
)
from undertow.risk.exact import advantage
from undertow.risk.likelihood import estimate_advantage
from undertow.risk.threat import Prior, Threat
from undertow.risk.transcript import (
    JointSampler,
    chain_channel,
    joint_channel,
    multinomial_rows,
    repeat_channel,
)

FIRST = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
SECOND = Channel([[0.9, 0.1], [0.4, 0.6]])
PRIOR = Prior(2, [0.7, 0.3])
THREAT = Threat(PRIOR)


def test_the_joint_law_is_the_product_with_the_last_release_fastest():
    joint = joint_channel(FIRST, SECOND, support=range(2))
    assert isinstance(joint, Channel)
    expected = [np.kron(a, b) for a, b in zip(FIRST.matrix, SECOND.matrix, strict=True)]
    np.testing.assert_allclose(joint.matrix, expected, atol=1e-15)
    assert joint.support == (0, 1)


def test_mechanisms_may_be_released_together():
    joint = joint_channel(RandomizedResponse("ab", 1), SECOND, support="ab")
    assert joint.matrix.shape == (2, 4)


def test_a_stream_of_the_joint_law_has_the_same_columns(monkeypatch):
    sources = [FIRST, SECOND, FIRST, SECOND]
    whole = joint_channel(*sources, support=range(2))
    for held in (1, 2, 5, 12, 30):
        monkeypatch.setattr("undertow.risk.transcript._HELD", held)
        stream = joint_channel(*sources, support=range(2))
        assert isinstance(stream, ChannelStream)
        columns = np.concatenate(list(stream.blocks(7)), axis=1)
        np.testing.assert_allclose(columns, whole.matrix, rtol=1e-13)
        assert advantage(stream, THREAT).value == pytest.approx(
            advantage(whole, THREAT).value, abs=1e-12
        )


def test_repetition_merges_orders_and_keeps_the_risk():
    for times in (1, 2, 5):
        merged = repeat_channel(FIRST, times, support=range(2))
        full = joint_channel(*[FIRST] * times, support=range(2))
        assert merged.outputs == math.comb(times + 2, 2)
        for threat in (THREAT, Threat.membership(PRIOR)):
            assert advantage(merged, threat).value == pytest.approx(
                advantage(full, threat).value, abs=1e-12
            )


def test_repetition_agrees_with_exact_fractions():
    p = Fraction(1, 3)
    once = Channel([[1 / 3, 2 / 3], [2 / 3, 1 / 3]])
    laws = repeat_channel(once, 12, support=range(2)).matrix
    exact = [float(math.comb(12, k) * p**k * (1 - p) ** (12 - k)) for k in range(13)]
    np.testing.assert_allclose(np.sort(laws[0]), np.sort(exact), rtol=1e-13)


def test_repetition_of_a_constant_says_nothing():
    nothing = Channel([[0.5, 0.5], [0.5, 0.5]])
    assert repeat_channel(nothing, 50, support=range(2)).outputs == 1
    certain = repeat_channel(Channel(np.eye(2)), 3, support=range(2))
    assert advantage(certain, Threat(Prior.uniform(2))).value == pytest.approx(0.5)


def test_many_repetitions_stay_probabilities():
    laws = repeat_channel(SECOND, 3000, support=range(2)).matrix
    assert laws.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-9)


def test_a_chain_lets_the_second_release_depend_on_the_first():
    seconds = [SECOND, Channel([[0.5, 0.5], [0.5, 0.5]]), Channel([[1.0], [1.0]])]
    chained = chain_channel(FIRST, seconds.__getitem__, support=range(2))
    columns = []
    for a, second in enumerate(seconds):
        columns += [FIRST.matrix[:, a] * c for c in second.matrix.T]
    np.testing.assert_allclose(chained.matrix, np.array(columns).T)


def test_a_chain_of_the_same_release_is_the_joint_channel(monkeypatch):
    joint = joint_channel(FIRST, SECOND, support=range(2))
    chained = chain_channel(FIRST, lambda seen: SECOND, support=range(2))
    np.testing.assert_allclose(chained.matrix, joint.matrix)
    monkeypatch.setattr("undertow.risk.transcript._HELD", 3)
    stream = chain_channel(FIRST, lambda seen: SECOND, support=range(2))
    assert isinstance(stream, ChannelStream)
    columns = np.concatenate(list(stream.blocks(100)), axis=1)
    np.testing.assert_allclose(columns, joint.matrix)


def test_what_is_too_large_is_refused_with_the_way_out(monkeypatch):
    with pytest.raises(NotApplicable, match="use repeat_channel"):
        joint_channel(*[FIRST] * 40, support=range(2))
    with pytest.raises(NotApplicable, match="with a JointSampler"):
        repeat_channel(FIRST, 10_001, support=range(2))
    wide = Channel(np.random.default_rng(0).dirichlet(np.ones(40), size=2))
    with pytest.raises(NotApplicable, match="with a JointSampler"):
        repeat_channel(wide, 40, support=range(2))
    monkeypatch.setattr("undertow.risk.transcript.TRANSCRIPT_LIMIT", 8)
    with pytest.raises(NotApplicable, match="at most 8e"):
        chain_channel(FIRST, lambda seen: SECOND, support=range(2))


def test_bad_releases_get_one_clear_sentence():
    with pytest.raises(ValueError, match="at least one release"):
        joint_channel(support=range(2))
    with pytest.raises(MismatchError, match="row for each of the 3 records"):
        joint_channel(FIRST, support=range(3))
    with pytest.raises(NotApplicable, match="stream of columns"):
        joint_channel(ChannelStream(lambda: [np.eye(2)], 2), support=range(2))
    with pytest.raises(TypeError, match="then must be callable"):
        chain_channel(FIRST, [SECOND] * 3, support=range(2))
    with pytest.raises(TypeError, match="methods sample and log_likelihood"):
        JointSampler()
    with pytest.raises(MismatchError, match="one batch for each of the 1 releases"):
        JointSampler(ChannelSampler(FIRST)).log_likelihood(([0], [0]))


def test_joint_draws_estimate_the_exact_joint_advantage():
    sampler = JointSampler(ChannelSampler(FIRST), ChannelSampler(SECOND))
    exact = advantage(joint_channel(FIRST, SECOND, support=range(2)), THREAT).value
    found = estimate_advantage(
        sampler, THREAT, trials=20_000, confidence=0.999, rng=np.random.default_rng(2)
    )
    assert found.low <= exact <= found.high
    assert found.value == pytest.approx(exact, abs=0.006)


def test_two_laplace_answers_leak_more_than_one():
    once = MechanismSampler(LaplaceMechanism(1), [0.0, 1.0])
    uniform = Threat(Prior.uniform(2))
    one, two = (
        estimate_advantage(source, uniform, trials=9000, rng=np.random.default_rng(5))
        for source in (once, JointSampler(once, once))
    )
    assert two.low > one.high
    assert two.high < 2 * one.low


def test_every_multiset_is_listed_once():
    listed = transcript._multisets(4, 3)
    brute = {c for c in itertools.product(range(5), repeat=3) if sum(c) == 4}
    assert sorted(map(tuple, listed.tolist())) == sorted(brute)


def exact_repeated(channel, pmf, times):
    """Add up the best gains over all counts of two outputs, with 50 digits."""
    with mp.workdps(50):
        rows = [[mp.mpf(p) for p in row] for row in channel]
        rows = [[p / mp.fsum(row) for p in row] for row in rows]
        weights = [mp.mpf(p) for p in pmf]
        weights = [p / mp.fsum(weights) for p in weights]
        total = mp.mpf(0)
        for n in range(times + 1):
            ways = mp.binomial(times, n)
            law = [ways * p**n * q ** (times - n) for p, q in rows]
            mean = mp.fsum(w * v for w, v in zip(weights, law, strict=True))
            total += max(w * (v - mean) for w, v in zip(weights, law, strict=True))
        return total


@pytest.mark.parametrize("low", [1e-3, 0.4])
def test_many_repetitions_are_never_less_risky_than_they_are(low):
    channel = [[p, 1 - p] for p in (low, 1.1 * low, 2 * low)]
    pmf, times = [0.5, 0.3, 0.2], 5000
    repeated = repeat_channel(Channel(channel), times, support=range(3))
    found = advantage(repeated, Threat(Prior(3, pmf))).value
    exact = exact_repeated(channel, pmf, times)
    assert 0 <= mp.mpf(found) - exact < 1e-13


@pytest.mark.parametrize(("times", "kinds"), [(1, 4), (25, 3), (700, 2), (9000, 2)])
def test_multinomial_rows_are_right_to_the_last_digit(times, kinds):
    rng = np.random.default_rng(times)
    laws = rng.dirichlet(np.full(kinds, 0.7), 2)
    counts = rng.multinomial(times, laws[0], 20)
    rows = multinomial_rows(laws, counts)
    with mp.workdps(50):
        for law, row in zip(laws, rows, strict=True):
            for count, found in zip(counts, row, strict=True):
                exact = mp.factorial(times)
                for n, p in zip(count.tolist(), law.tolist(), strict=True):
                    exact *= mp.mpf(p) ** n / mp.factorial(n)
                if exact > 1e-290:
                    assert abs(found / exact - 1) <= 1.01 * 2.0**-53


def test_records_are_handled_in_parts(monkeypatch):
    laws = np.random.default_rng(0).dirichlet([1, 1], 5)
    counts = np.array([[k, 6 - k] for k in range(7)])
    whole = multinomial_rows(laws, counts)
    monkeypatch.setattr("undertow.risk.transcript._ENTRIES", 30)
    assert np.array_equal(multinomial_rows(laws, counts), whole)
    assert whole.sum(axis=1) == pytest.approx(1, abs=1e-15)
