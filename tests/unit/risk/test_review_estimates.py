"""Transcripts to the last digit, limits of counts, and scoring many fibres."""

import math

import mpmath as mp
import numpy as np
import pytest

from undertow.errors import ModelError
from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk.channel import Channel, ProtocolSampler
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.intervals import (
    clopper_pearson,
    hoeffding_halfwidth,
    hoeffding_trials,
)
from undertow.risk.likelihood import GaussianTranscript
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat
from undertow.risk.transcript import multinomial_rows, repeat_channel


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


@pytest.mark.parametrize("count", [1, 7, 1000, 73_778])
def test_the_trials_asked_for_reach_the_half_width(count):
    bare = math.sqrt(math.log(40) / (2 * count))
    for shift in np.linspace(-2e-12, 4e-12, 25):
        wanted = bare * (1 + shift)
        assert hoeffding_halfwidth(hoeffding_trials(wanted)) <= wanted


def test_numbers_of_trials_beyond_floats_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="halfwidth must need at most"):
        hoeffding_trials(1e-200)
    with pytest.raises(ValueError, match="trials must be at most"):
        clopper_pearson(5, 10**400)


def test_unequal_trials_are_covered_at_every_extreme_mean():
    for n in range(1, 8):
        limits = [clopper_pearson(k, n, confidence=0.5, equal=False) for k in range(n)]
        lows = np.array([low for low, _ in limits] + [1.0 - limits[0][1]])
        lows[-1] = clopper_pearson(n, n, confidence=0.5, equal=False)[0]
        for zeros in range(n):
            for ones in range(n - zeros):
                rest = n - zeros - ones
                for low in lows[1:]:
                    p = (low * (1 - 1e-12) * n - ones) / rest
                    if 0 <= p <= 1:
                        law = np.array([1.0])
                        for q in [1.0] * ones + [p] * rest:
                            law = np.convolve(law, [1 - q, q])
                        law = np.append(law, np.zeros(zeros))
                        mean = (ones + rest * p) / n
                        assert law[lows > mean].sum() <= 0.25 + 1e-12


@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_noise_whose_square_is_no_float_is_refused(sigma):
    with pytest.raises(ModelError, match="another unit"):
        GaussianTranscript(np.eye(2), sigma)


class _Uniform:
    """Draws any category, and says so."""

    def __init__(self, size):
        self.size = size

    def guess(self, outputs, known, *, rng):
        return rng.integers(self.size, size=len(outputs))

    def guess_law(self, outputs, known):
        return np.full((len(outputs), self.size), 1 / self.size)


def test_the_success_rule_is_not_read_again_for_every_fibre():
    size, asked = 300, []

    def attribute(record):
        asked.append(record)
        return record

    threat = Threat(
        Prior.uniform(size),
        Success.attribute(attribute),
        Knowledge.attributes(lambda record: record // 2),
    )
    found = estimate_attack(
        ProtocolSampler(GeneralizedResponse(size, 1)),
        _Uniform(size),
        threat,
        trials=20,
        rng=np.random.default_rng(0),
    )
    assert found.advantage.value == pytest.approx(0, abs=1e-12)
    assert len(asked) < 40 * size
