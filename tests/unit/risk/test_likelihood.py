from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import MismatchError, ModelError
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.local import GeneralizedResponse, OptimizedHashing
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    LikelihoodSource,
    MechanismSampler,
    ProtocolSampler,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.finite import ABSTAIN, OptimalAttack
from undertow.risk.likelihood import (
    GaussianTranscript,
    LinearRule,
    PosteriorGain,
    estimate_advantage,
)
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])
ETA_1 = Success.within("absolute", 1)
RNG = np.random.default_rng

THREATS = {
    "none": Threat(SKEWED),
    "labels": Threat(SKEWED, knowledge=Knowledge.from_labels([0, 1, 0])),
    "membership": Threat.membership(SKEWED),
    "near": Threat(SKEWED, ETA_1),
    "near membership": Threat(SKEWED, ETA_1, Knowledge.full()),
    "abstain": Threat(SKEWED, ETA_1, Knowledge.full(), abstain=True),
    "attribute": Threat.attribute(
        SKEWED, target=lambda r: r == 2, known=lambda r: r > 0
    ),
}


@pytest.mark.parametrize("threat", THREATS.values(), ids=THREATS.keys())
def test_the_mean_gain_over_all_outputs_is_the_exact_advantage(threat):
    gain = PosteriorGain(ChannelSampler(P3), threat)
    overall = SKEWED.pmf @ P3.matrix
    mean = float(overall @ gain.best(np.arange(3)))
    assert mean == pytest.approx(advantage(P3, threat).value, abs=1e-12)


@pytest.mark.parametrize("threat", THREATS.values(), ids=THREATS.keys())
def test_the_estimate_covers_the_exact_advantage(threat):
    found = estimate_advantage(
        ChannelSampler(P3), threat, trials=20_000, confidence=0.999, rng=RNG(4)
    )
    exact = advantage(P3, threat).value
    assert found.low <= exact <= found.high
    assert found.value == pytest.approx(exact, abs=0.01)
    assert found.high - found.low < 0.06


@pytest.mark.parametrize(
    ("threat", "least"),
    [
        (THREATS["none"], 0.0),
        (THREATS["membership"], 0.0),
        (THREATS["abstain"], 0.0),
        (THREATS["near"], 0.0),  # record 1 is near everything
        (THREATS["near membership"], -1.0),
        (Threat(Prior.uniform(4), ETA_1), -1.0),
    ],
    ids=["none", "membership", "abstain", "centre", "near membership", "line"],
)
def test_the_range_of_gains_is_known_before_any_draw(threat, least):
    m = len(threat.prior)
    channel = Channel(RNG(0).dirichlet(np.ones(300) / 20, size=m))
    gain = PosteriorGain(ChannelSampler(channel), threat)
    gains = gain.best(np.flatnonzero(channel.matrix.sum(axis=0) > 0))
    assert gain.least == least
    assert gains.min() >= least - 1e-12
    assert gains.max() < 1


def test_gains_can_be_negative_where_no_answer_is_safe():
    # Known to be record 1, which every guess hits: seeing output 0 only loses.
    gain = PosteriorGain(ChannelSampler(P3), THREATS["near membership"])
    posterior = gain.posterior([0])[0]
    assert posterior[1] < SKEWED.pmf[1]
    parts = posterior - SKEWED.pmf
    expected = max(parts[0], 0) + parts[1] + max(parts[2], 0)
    assert gain.best([0])[0] == pytest.approx(expected, abs=1e-12)
    alone = Threat(Prior(3, [0.0, 1.0, 0.0]), ETA_1, Knowledge.full())
    assert PosteriorGain(ChannelSampler(P3), alone).best([0])[0] == pytest.approx(0.0)


def test_the_guess_is_that_of_the_optimal_attack():
    for threat in THREATS.values():
        gain = PosteriorGain(ChannelSampler(P3), threat)
        table = OptimalAttack(P3, threat).decision().table
        for known in range(len(threat.fibres)):
            answers = gain.guess(np.arange(3), known, rng=RNG(0))
            np.testing.assert_array_equal(answers, table[:, known])
    declining = PosteriorGain(ChannelSampler(P3), THREATS["abstain"])
    answers = declining.guess(np.arange(3), 1, rng=RNG(0))
    assert (answers == ABSTAIN).tolist() == [True, False, False]


def test_the_attack_of_largest_gain_attains_the_estimate():
    threat, source = (
        Threat.membership(Prior.uniform(4)),
        MechanismSampler(GaussianMechanism(1), [0.0, 1.0, 1.5, 4.0]),
    )
    best = estimate_advantage(source, threat, trials=20_000, rng=RNG(0))
    attack = PosteriorGain(source, threat)
    found = estimate_attack(source, attack, threat, trials=20_000, rng=RNG(0))
    assert found.advantage.value == pytest.approx(best.value, abs=0.02)


def test_two_scalar_records_have_half_their_total_variation():
    source = MechanismSampler(LaplaceMechanism(1), [0.0, 1.0])
    found = estimate_advantage(
        source, Threat(Prior.uniform(2)), trials=5000, rng=RNG(1)
    )
    assert found.low <= (1 - math.exp(-0.5)) / 2 <= found.high


def test_a_local_protocol_agrees_with_its_closed_form():
    protocol = OptimizedHashing(8, 1)
    truth = protocol.advantage_bound(knowledge="none").value
    found = estimate_advantage(
        ProtocolSampler(protocol), Threat(Prior.uniform(8)), trials=20_000, rng=RNG(2)
    )
    assert found.value == pytest.approx(truth, abs=0.01)


def test_likelihoods_far_below_the_range_of_floats_do_no_harm():
    class Far:
        def sample(self, record, size, *, rng):
            return np.full(size, record)

        def log_likelihood(self, outputs):
            return np.where(np.arange(2) == outputs[:, None], -1e6, -1e6 - 1.0)

    assert isinstance(Far(), LikelihoodSource)
    found = estimate_advantage(Far(), Threat(Prior.uniform(2)), trials=50, rng=RNG(0))
    assert found.value == pytest.approx(math.tanh(0.5) / 2, abs=1e-9)


def test_an_impossible_output_is_refused():
    class Wrong(ChannelSampler):
        def log_likelihood(self, outputs):
            return np.full((len(outputs), 3), -np.inf)

    with pytest.raises(ModelError, match="finite likelihood"):
        estimate_advantage(Wrong(P3), Threat(SKEWED), trials=5, rng=RNG(0))


def test_a_record_of_no_mass_has_no_posterior():
    threat = Threat(Prior(3, [0.5, 0.5, 0.0]))
    posterior = PosteriorGain(ChannelSampler(P3), threat).posterior([0, 1, 2])
    assert (posterior[:, 2] == 0).all()
    assert posterior.sum(axis=1) == pytest.approx(np.ones(3))


def test_bad_sources_get_one_clear_sentence():
    with pytest.raises(TypeError, match="methods sample and log_likelihood"):
        estimate_advantage(object(), Threat(SKEWED), trials=5, rng=RNG(0))
    with pytest.raises(MismatchError, match="one column for each of the 2 records"):
        estimate_advantage(
            ChannelSampler(P3), Threat(Prior.uniform(2)), trials=5, rng=RNG(0)
        )


def test_progress_is_told_and_one_trial_is_enough():
    told = []
    found = estimate_advantage(
        ProtocolSampler(GeneralizedResponse(3, 1)),
        Threat(SKEWED),
        trials=1,
        progress=lambda done, total: told.append((done, total)),
        rng=RNG(0),
    )
    assert told == [(1, 1)]
    assert (found.low, found.high) == (min(0.0, found.value), 1.0)


def test_a_transcript_is_the_gaussian_mechanism_on_all_coordinates():
    rng = RNG(8)
    means = rng.normal(size=(4, 3, 5))
    transcript = GaussianTranscript.from_means(means, 2.0)
    flat = means.transpose(1, 0, 2).reshape(3, 20)
    released = flat[1] + 2.0 * rng.standard_normal((6, 20))
    logs = transcript.log_likelihood(released @ flat.T)
    mechanism = MechanismSampler(GaussianMechanism(2, dimension=20), flat)
    full = mechanism.log_likelihood(released)
    np.testing.assert_allclose(logs - logs[:, :1], full - full[:, :1], atol=1e-9)


def test_transcript_draws_have_the_mean_and_covariance_of_inner_products():
    gram = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.5], [1.0, 0.5, 0.5]])
    drawn = GaussianTranscript(gram, 3.0).sample(1, 200_000, rng=RNG(3))
    np.testing.assert_allclose(drawn.mean(axis=0), gram[1], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), 9 * gram, atol=0.2)


def test_two_candidates_have_half_the_gaussian_total_variation():
    transcript = GaussianTranscript.from_means([[[0.0], [1.0]]] * 9, 2.0)
    exact = (2 * stats.norm.cdf(1.5 / 2) - 1) / 2
    found = estimate_advantage(
        transcript, Threat(Prior.uniform(2)), trials=20_000, rng=RNG(0)
    )
    assert found.low <= exact <= found.high


@pytest.mark.parametrize(
    "gram",
    [np.ones(3), [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]], [[math.nan]]],
    ids=["vector", "indefinite", "skew", "nan"],
)
def test_what_is_no_gram_matrix_is_refused(gram):
    with pytest.raises(ModelError, match="gram must be"):
        GaussianTranscript(gram, 1.0)


def test_wrong_shapes_of_a_transcript_are_refused():
    with pytest.raises(ModelError, match="steps, candidates and coordinates"):
        GaussianTranscript.from_means(np.ones((2, 2)), 1.0)
    with pytest.raises(MismatchError, match="2 inner products"):
        GaussianTranscript(np.eye(2), 1.0).log_likelihood([1.0, 2.0])


def test_without_knowledge_the_linear_rule_guesses_like_the_exact_one():
    threat = Threat(Prior.uniform(6))
    transcript = GaussianTranscript(2 * np.eye(6), 1.0)
    outputs = transcript.sample(2, 500, rng=RNG(0))
    exact = PosteriorGain(transcript, threat).guess(outputs, 0, rng=RNG(1))
    linear = LinearRule(threat).guess(outputs, 0, rng=RNG(1))
    np.testing.assert_array_equal(exact, linear)


def test_the_linear_rule_names_a_record_outside_when_its_score_is_not_positive():
    rule = LinearRule(Threat.membership(Prior.uniform(3)))
    outputs = [[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]]
    first, second = rule.guess(outputs, 0, rng=RNG(0))
    assert first == 0
    assert second in (1, 2)


def test_the_linear_rule_is_for_exact_records():
    with pytest.raises(MismatchError, match="exact records"):
        LinearRule(Threat(SKEWED, ETA_1))


def test_orthogonal_reconstruction_is_an_integral():
    mu, m = 1.2, 8
    exact, _ = integrate.quad(
        lambda t: stats.norm.pdf(t - mu) * stats.norm.cdf(t) ** (m - 1), -9, 12
    )
    found = estimate_advantage(
        GaussianTranscript(mu**2 * np.eye(m), 1.0),
        Threat(Prior.uniform(m)),
        trials=20_000,
        rng=RNG(0),
    )
    assert found.low <= exact - 1 / m <= found.high


@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_noise_whose_square_is_no_float_is_refused(sigma):
    with pytest.raises(ModelError, match="another unit"):
        GaussianTranscript(np.eye(2), sigma)
