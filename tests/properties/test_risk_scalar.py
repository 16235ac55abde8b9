"""What holds for every noisy number: sides, caps and orders."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from undertow.mechanisms import (
    ClampedMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TruncatedMechanism,
)
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, success_rate
from undertow.risk.scalar import ScalarChannel
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

BINS = 400


@st.composite
def cases(draw):
    """Return answers in [0, 10], a threat of any kind, and a scale."""
    m = draw(st.integers(2, 7))
    answers = draw(st.lists(st.integers(0, 20), min_size=m, max_size=m))
    weights = draw(st.lists(st.integers(0, 9), min_size=m, max_size=m))
    weights[draw(st.integers(0, m - 1))] += 1
    pmf = np.array(weights) / sum(weights)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    hits = np.eye(m, dtype=bool) | (rng.random((m, m)) < 0.3)
    rules = [
        Success.exact(),
        Success.within("absolute", draw(st.integers(0, m))),
        Success.from_matrix(hits),
    ]
    labels = rng.integers(0, 3, m)
    knows = [
        Knowledge.none(),
        Knowledge.full(),
        Knowledge.attributes(lambda record: int(labels[record])),
    ]
    threat = Threat(
        Prior(range(m), pmf),
        draw(st.sampled_from(rules)),
        draw(st.sampled_from(knows)),
        draw(st.booleans()),
    )
    return np.array(answers) / 2, threat, draw(st.floats(0.2, 50))


def binned(law, answers):
    """The channel of an output rounded to bins: a post-processing."""
    span = 10 * law.std()
    edges = np.linspace(answers.min() - span, answers.max() + span, BINS + 1)
    below = law.cdf(edges - answers[:, None])
    laws = np.diff(below, prepend=0.0, append=1.0, axis=1)
    return Channel(laws), edges[1] - edges[0]


@settings(max_examples=40)
@given(cases())
def test_laplace_lies_between_its_bins_and_what_they_can_lose(case):
    answers, threat, b = case
    coarse, width = binned(stats.laplace(scale=b), answers)
    low = advantage(coarse, threat).value
    value = advantage(ScalarChannel(LaplaceMechanism(b), answers), threat).value
    # In a bin every likelihood stays within a factor e^(width/b).
    assert low - 1e-11 <= value <= low + 2 * math.expm1(width / b) + 1e-9


@settings(max_examples=40)
@given(cases())
def test_gaussian_lies_between_its_bins_and_what_they_can_lose(case):
    answers, threat, sigma = case
    coarse, width = binned(stats.norm(scale=sigma), answers)
    low = advantage(coarse, threat).value
    value = advantage(ScalarChannel(GaussianMechanism(sigma), answers), threat).value
    # A density is off its mean in bins by at most their width times its variation.
    assert low - 1e-11 <= value <= low + 2 * width * 0.8 / sigma + 1e-8


@settings(max_examples=40)
@given(cases())
def test_caps_hold_for_every_threat(case):
    answers, threat, b = case
    spread = np.ptp(answers[threat.prior.pmf > 0])
    for noise, variation in (
        (LaplaceMechanism(b), -math.expm1(-spread / (2 * b))),
        (GaussianMechanism(b), 2 * stats.norm.cdf(spread / (2 * b)) - 1),
    ):
        channel = ScalarChannel(noise, answers)
        risk = advantage(channel, threat)
        assert risk.value <= variation * threat.ceiling * (1 + 1e-9)
        assert success_rate(channel, threat).value >= threat.informed_guess - 1e-12
        low = risk.value - risk.witness.details["gap"]
        if isinstance(noise, LaplaceMechanism):
            assert low <= math.tanh(spread / (4 * b)) + 1e-12


@settings(max_examples=40)
@given(cases())
def test_knowing_more_and_less_noise_never_lower_the_risk(case):
    answers, threat, b = case
    told = Threat(threat.prior, threat.success, Knowledge.full(), threat.abstain)
    for family in (LaplaceMechanism, GaussianMechanism):
        plain = advantage(ScalarChannel(family(b), answers), threat).value
        more = advantage(ScalarChannel(family(b), answers), told).value
        less = advantage(ScalarChannel(family(b / 2), answers), threat).value
        if threat.abstain:
            assert plain <= more + 3e-9
        assert plain <= less + 3e-9


@settings(max_examples=40)
@given(cases(), st.floats(-2, 4), st.floats(0.5, 9))
def test_clamping_never_raises_the_risk_and_outside_the_answers_keeps_it(
    case, low, width
):
    answers, threat, b = case
    for family, same in ((LaplaceMechanism, True), (GaussianMechanism, False)):
        plain = advantage(ScalarChannel(family(b), answers), threat).value
        inner = ClampedMechanism(family(b), low, low + width)
        assert advantage(ScalarChannel(inner, answers), threat).value <= plain + 2e-9
        outer = ClampedMechanism(family(b), -1, 11)
        if same:
            kept = advantage(ScalarChannel(outer, answers), threat).value
            assert abs(kept - plain) < 1e-11


@settings(max_examples=40)
@given(cases())
def test_truncation_far_out_is_no_truncation(case):
    answers, threat, b = case
    wide = 60 * b
    for family in (LaplaceMechanism, GaussianMechanism):
        plain = advantage(ScalarChannel(family(b), answers), threat).value
        cut = TruncatedMechanism(family(b), -wide, 10 + wide)
        kept = advantage(ScalarChannel(cut, answers), threat).value
        assert abs(kept - plain) < 3e-9
