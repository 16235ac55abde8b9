"""Laws that joint transcripts and measured advantages obey for every channel."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.risk.channel import Channel, ChannelSampler
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.intervals import clopper_pearson, empirical_bernstein
from undertow.risk.likelihood import PosteriorGain
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat
from undertow.risk.transcript import chain_channel, joint_channel, repeat_channel

SLACK = 1e-9


@st.composite
def problems(draw, channels=2):
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m = draw(st.integers(2, 4))
    sharpness = draw(st.sampled_from([0.2, 1.0, 5.0]))
    made = [
        Channel(rng.dirichlet(np.full(draw(st.integers(1, 3)), sharpness), size=m))
        for _ in range(channels)
    ]
    prior = Prior(m, rng.dirichlet(np.ones(m)))
    hits = np.eye(m, dtype=bool) | (
        rng.random((m, m)) < draw(st.sampled_from([0, 0.4]))
    )
    knowledge = Knowledge.from_labels(rng.integers(2, size=m).tolist())
    threat = Threat(
        prior, Success.from_matrix(hits), knowledge, abstain=draw(st.booleans())
    )
    return made, threat, rng


@settings(max_examples=80, deadline=None)
@given(problems())
def test_seeing_more_never_lowers_the_risk(problem):
    (first, second), threat, _ = problem
    joint = joint_channel(first, second, support=threat.support)
    both = advantage(joint, threat).value
    assert both >= advantage(first, threat).value - SLACK
    assert both >= advantage(second, threat).value - SLACK


@settings(max_examples=80, deadline=None)
@given(problems())
def test_the_order_of_releases_does_not_matter(problem):
    (first, second), threat, _ = problem
    one = joint_channel(first, second, support=threat.support)
    other = joint_channel(second, first, support=threat.support)
    gap = advantage(one, threat).value - advantage(other, threat).value
    assert abs(gap) <= SLACK


@settings(max_examples=60, deadline=None)
@given(problems(channels=1), st.integers(1, 4))
def test_multisets_carry_the_risk_of_all_orders(problem, times):
    (channel,), threat, _ = problem
    merged = repeat_channel(channel, times, support=threat.support)
    full = joint_channel(*[channel] * times, support=threat.support)
    assert merged.outputs <= channel.outputs**times
    gap = advantage(merged, threat).value - advantage(full, threat).value
    assert abs(gap) <= SLACK


@settings(max_examples=60, deadline=None)
@given(problems(channels=4))
def test_a_chain_leaks_at_least_what_its_first_release_leaks(problem):
    (first, *rest), threat, _ = problem
    chained = chain_channel(first, rest.__getitem__, support=threat.support)
    assert advantage(chained, threat).value >= advantage(first, threat).value - SLACK


@settings(max_examples=80, deadline=None)
@given(problems(channels=1))
def test_posterior_gains_average_to_the_exact_risk_within_their_range(problem):
    (channel,), threat, _ = problem
    gain = PosteriorGain(ChannelSampler(channel), threat)
    overall = threat.prior.pmf @ channel.matrix
    gains = gain.best(np.arange(channel.outputs))
    assert gains.min() >= gain.least - 1e-12
    assert gains.max() <= 1.0
    assert abs(float(overall @ gains) - advantage(channel, threat).value) <= SLACK


@settings(max_examples=40, deadline=None)
@given(problems(channels=1), st.sampled_from(["plain", "exhaustive", "clustered"]))
def test_an_attack_that_ignores_the_output_has_no_measured_advantage(problem, design):
    (channel,), threat, rng = problem
    answers = rng.integers(len(threat.guesses), size=len(threat.fibres))

    class Blind:
        def guess(self, outputs, known, *, rng):
            return np.full(len(outputs), answers[known])

    found = estimate_attack(
        ChannelSampler(channel),
        Blind(),
        threat,
        design=design,
        trials=None if design == "exhaustive" else 40,
        runs=None if design == "plain" else 2,
        confidence=0.9999,
        rng=rng,
    )
    assert found.advantage.low <= 0 <= found.advantage.high
    if design == "exhaustive":
        assert found.advantage.value == 0.0


@given(st.integers(1, 2000), st.data(), st.floats(0.51, 0.9999))
def test_limits_of_unequal_trials_contain_those_of_equal_ones(n, data, confidence):
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n, confidence=confidence)
    least, most = clopper_pearson(k, n, confidence=confidence, equal=False)
    assert 0 <= least <= low <= k / n <= high <= most <= 1
    more, _ = clopper_pearson(min(k + 1, n), n, confidence=confidence, equal=False)
    assert more >= least


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=50), st.floats(0.5, 0.999))
def test_bernstein_limits_hold_the_mean_and_widen_with_confidence(values, confidence):
    low, high = empirical_bernstein(
        values, confidence=confidence, lowest=-1.0, highest=1.0
    )
    wider = empirical_bernstein(values, confidence=0.9995, lowest=-1.0, highest=1.0)
    assert -1 <= wider[0] <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= wider[1] <= 1
