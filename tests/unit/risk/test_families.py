"""Families: every curve against tables made here, routes, refusals and extremes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import AssumptionError, MismatchError, NotApplicable
from undertow.mechanisms.local import (
    SubsetSelection,
    ThresholdHistogram,
    hashing_advantage,
    she_advantage,
)
from undertow.risk.calibration import calibrate
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families import (
    FAMILIES,
    blh,
    exponential,
    family,
    finite,
    gaussian,
    gaussian_sum,
    grr,
    laplace,
    laplace_sum,
    olh,
    oue,
    she,
    ss,
    sue,
    the,
)
from undertow.risk.families.base import SubsetWeights, closed_view, identity_advantage
from undertow.risk.families.central import _epsilons
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

SKEW = np.array([0.1, 0.4, 0.2, 0.3])


def response_table(size, epsilon):
    table = np.full((size, size), 1.0) + (math.exp(epsilon) - 1) * np.eye(size)
    return table / table.sum(axis=1, keepdims=True)


def bits_table(size, keep, noise):
    rows = []
    for x in range(size):
        row = [
            math.prod(
                (keep if i == x else noise) if bit else 1 - (keep if i == x else noise)
                for i, bit in enumerate(word)
            )
            for word in product((0, 1), repeat=size)
        ]
        rows.append(row)
    return np.array(rows)


def subset_table(size, epsilon, chosen):
    p = chosen * math.exp(epsilon) / (chosen * math.exp(epsilon) + size - chosen)
    held = p / math.comb(size - 1, chosen - 1)
    missed = (1 - p) / math.comb(size - 1, chosen)
    sets = list(combinations(range(size), chosen))
    return np.array([[held if x in s else missed for s in sets] for x in range(size)])


def hash_table(size, epsilon, buckets):
    keep = math.exp(epsilon) / (math.exp(epsilon) + buckets - 1)
    lie = (1 - keep) / (buckets - 1)
    hashes = list(product(range(buckets), repeat=size))
    return np.array(
        [
            [(keep if h[x] == b else lie) / len(hashes) for h in hashes for b in
             range(buckets)]
            for x in range(size)
        ]
    )  # fmt: skip


def encodings(epsilon):
    e = math.exp(epsilon)
    root = math.exp(epsilon / 2)
    threshold = ThresholdHistogram(4, epsilon)
    return {
        "grr": (grr(4), response_table(4, epsilon)),
        "oue": (oue(4), bits_table(4, 0.5, 1 / (e + 1))),
        "sue": (sue(4), bits_table(4, root / (root + 1), 1 / (root + 1))),
        "the": (
            the(4),
            bits_table(4, float(threshold.keep), float(threshold.noise)),
        ),
        "ss": (
            ss(4),
            subset_table(4, epsilon, SubsetSelection(4, epsilon).subset),
        ),
        "blh": (blh(4), hash_table(4, epsilon, 2)),
        "olh": (olh(4), hash_table(4, epsilon, math.floor(e + 1))),
    }


THREATS = {
    "uniform": Threat(Prior.uniform(4)),
    "skew": Threat(Prior(4, SKEW)),
    "member": Threat.membership(Prior(4, SKEW)),
    "zero": Threat(Prior(4, [0.5, 0.5, 0.0, 0.0])),
    "declining": Threat(Prior(4, SKEW), abstain=True),
    "within": Threat(Prior(4, SKEW), Success.within("absolute", 1)),
    "label": Threat(Prior(4, SKEW), knowledge=Knowledge.from_labels([0, 0, 1, 1])),
    "attribute": Threat.attribute(
        Prior(4, SKEW), target=lambda r: r % 2, known=lambda r: r // 2
    ),
}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.3])
@pytest.mark.parametrize("threat", sorted(THREATS))
@pytest.mark.parametrize("name", ["grr", "oue", "sue", "the", "ss", "blh", "olh"])
def test_a_family_has_the_risk_of_its_whole_table(name, threat, epsilon):
    found, table = encodings(epsilon)[name]
    truth = advantage(Channel(table), THREATS[threat]).value
    risk = found.risk(epsilon, THREATS[threat])
    if risk.tight:
        assert risk.value == pytest.approx(truth, abs=1e-9)
    else:  # hashing beyond exact success: the bound for every hash
        assert name in ("blh", "olh")
        assert threat in ("within", "label", "attribute")
        assert risk.value >= truth
        assert "every threat" in risk.theorem


@pytest.mark.parametrize("size", [2, 5, 60])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, 40.0])
def test_noisy_histograms_have_their_own_closed_form(size, epsilon):
    threat = Threat(Prior.uniform(size))
    found = she(size).risk(epsilon, threat)
    assert found.value == pytest.approx(she_advantage(size, epsilon), abs=1e-11)
    assert found.tight


def test_noisy_histograms_fall_back_to_total_variation_and_say_so():
    found = she(3).risk(1.0, Threat(Prior(3, [0.5, 0.3, 0.2])))
    assert found.tight is None
    assert "no exact route" in found.theorem
    tv = 1 - math.exp(-0.5) * 1.25
    assert found.value == pytest.approx(tv * 0.62, abs=1e-9)
    # thresholding the same vector gives less
    assert found.value > the(3).risk(1.0, Threat(Prior(3, [0.5, 0.3, 0.2]))).value


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 3.0, 20.0])
def test_the_best_threshold_is_explicit(epsilon):
    gap, noise = the(5)._bits(np.array([epsilon]))
    protocol = ThresholdHistogram(5, epsilon)
    assert noise[0] == pytest.approx(float(protocol.noise), rel=1e-6)
    assert gap[0] == pytest.approx(float(protocol.keep - protocol.noise), rel=1e-6)
    assert 1 - gap[0] - noise[0] == pytest.approx((1 - noise[0]) / (3 - 4 * noise[0]))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_on_uneven_answers_has_the_integral_of_the_largest_density(kind):
    answers, scale = np.array([0.0, 0.1, 0.5, 0.55, 1.0]), 0.4
    law = stats.laplace if kind == "laplace" else stats.norm

    def top(t):
        return law.pdf(t, answers, scale).max()

    points = sorted([*answers, *((answers[1:] + answers[:-1]) / 2)])
    total, _ = integrate.quad(top, -12, 13, points=points, limit=400)
    make = (
        laplace(answers, parameter="scale") if kind == "laplace" else gaussian(answers)
    )
    risk = make.risk(scale, Threat(Prior.uniform(5)))
    assert risk.value == pytest.approx((total - 1) / 5, abs=1e-8)


def test_other_threats_on_numbers_go_to_the_engine():
    answers = [0, 1, 3]
    threat = Threat.membership(Prior(answers, [0.2, 0.3, 0.5]))
    made = laplace(answers)
    from undertow.risk.scalar import ScalarChannel

    channel = ScalarChannel(made.mechanism(2.0), answers)
    assert made.risk(2.0, threat).value == pytest.approx(
        advantage(channel, threat).value, abs=1e-12
    )
    assert made.risk(2.0, threat).tight


def test_epsilon_and_noise_are_two_names_of_one_gaussian():
    threat = Threat(Prior.uniform(6))
    by_level = gaussian(range(6), parameter="epsilon", delta=1e-6)
    by_noise = gaussian(range(6))
    sigma = by_level.noise(1.5)
    assert by_level.risk(1.5, threat).value == pytest.approx(
        by_noise.risk(sigma, threat).value, rel=1e-11
    )
    assert not by_noise.rises
    assert by_level.rises


def test_sums_range_over_the_integers_and_their_sensitivity():
    threat = Threat(Prior.uniform(range(1, 12)))
    assert laplace_sum(1, 11).sensitivity == 10
    assert laplace_sum(1, 11).risk(1.0, threat).value == pytest.approx(
        0.044337, abs=1e-6
    )
    assert gaussian_sum(0, 4).records == 5
    with pytest.raises(ValueError, match="rising integers"):
        laplace_sum(3, 3)


def test_the_exponential_mechanism_is_its_table():
    scores = np.array([[0.0, 1.0, 2.0], [2.0, 0.5, 0.0], [1.0, 1.0, 1.5]])
    made = exponential(scores, sensitivity=2.0)
    table = np.array([made.mechanism(1.7).pmf(row) for row in scores])
    threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    assert made.risk(1.7, threat).value == pytest.approx(
        advantage(Channel(table), threat).value, abs=1e-12
    )
    assert not made.monotone
    assert made.loss(1.0) is None


def test_a_function_of_channels_is_a_family():
    made = finite(lambda e: Channel(response_table(3, e)), 3, monotone=True)
    threat = Threat(Prior.uniform(3))
    assert made.risk(1.0, threat).value == pytest.approx(
        grr(3).risk(1.0, threat).value, abs=1e-11
    )
    with pytest.raises(TypeError, match="callable"):
        finite(3, 3)


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "ss", "blh", "she", "the"])
def test_a_level_of_ten_thousand_is_neither_nan_nor_above_the_limit(name):
    made, threat = FAMILIES[name](50), Threat(Prior.uniform(50))
    risk = made.risk(1e4, threat).value
    assert risk == pytest.approx(made.curve(threat).limit, abs=1e-9)
    assert 0 < risk <= threat.ceiling


@pytest.fixture(scope="module")
def million():
    return Threat(Prior.uniform(10**6))


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "ss", "blh", "olh", "the"])
def test_a_million_categories_take_no_table(name, million):
    made = FAMILIES[name](10**6)
    levels = np.array([3.0])
    curve = made.curve(million)
    assert curve.exact
    assert 0 < curve.raised(levels)[0] < 1e-3


def test_hashing_without_trust_in_the_hash_is_a_bound():
    threat = Threat(Prior.uniform(30))
    for make in (blh, olh):
        trusting, wary = make(30), make(30, ideal=False)
        assert trusting.risk(1.0, threat).tight
        assert wary.risk(1.0, threat).tight is None
        assert wary.risk(1.0, threat).value > trusting.risk(1.0, threat).value
    assert olh(30).risk(1.0, threat).value == pytest.approx(
        hashing_advantage(30, 1.0, buckets=3), rel=1e-9
    )


@pytest.mark.parametrize("make", [grr, sue, oue, ss, blh, olh, she, the])
def test_one_category_is_refused_in_one_sentence(make):
    with pytest.raises(ValueError, match="at least 2, got 1"):
        make(1)


def test_a_threat_on_other_records_is_refused():
    with pytest.raises(MismatchError, match="4 records of grr, got 3"):
        grr(4).risk(1.0, Threat(Prior.uniform(3)))
    with pytest.raises(TypeError, match="must be a Threat"):
        grr(4).risk(1.0, Prior.uniform(4))


def test_a_sensitivity_below_the_range_is_refused():
    with pytest.raises(AssumptionError, match="at least the range 10"):
        laplace(range(11), sensitivity=1)


def test_delta_belongs_to_epsilon():
    with pytest.raises(ValueError, match="delta must be given for epsilon"):
        gaussian(range(3), parameter="epsilon")
    with pytest.raises(ValueError, match="only then"):
        gaussian(range(3), delta=1e-5)


def test_answers_must_be_numbers_that_differ():
    with pytest.raises(ValueError, match="differ"):
        laplace([1, 1])
    with pytest.raises(ValueError, match="at least two finite"):
        laplace([1, math.nan])
    with pytest.raises(ValueError, match="finite table"):
        exponential([[1.0, 2.0]])


def test_names_of_the_command_line_lead_to_families():
    assert family("ss", 12).structural == "subset"
    assert set(FAMILIES) >= {"laplace-sum", "gaussian-sum", "exponential", "olh"}
    with pytest.raises(ValueError, match="name must be one of"):
        family("rappor", 3)


def test_losses_and_variations_of_families_are_those_of_their_mechanisms():
    assert float(grr(5).loss(1.0).epsilon) == pytest.approx(1.0)
    assert float(laplace(range(5)).loss(2.0).epsilon) == pytest.approx(2.0)
    assert gaussian(range(5)).loss(4.0).mu == pytest.approx(1.0)
    assert gaussian(range(5), parameter="epsilon", delta=1e-3).loss(1.0).delta > 0
    protocol = ss(10).mechanism(1.0, structure=3)
    level, size = np.array([1.0]), np.array([3])
    assert ss(10).variation(level, size)[0] == pytest.approx(protocol.total_variation())


def test_views_tell_which_closed_form_applies():
    assert closed_view(THREATS["uniform"]) == "none"
    assert closed_view(THREATS["member"]) == "full"
    assert closed_view(THREATS["within"]) is None
    assert closed_view(THREATS["label"]) is None
    assert "grr" in repr(grr(3))


@pytest.mark.parametrize("size", [2, 10, 300])
def test_optimised_hashing_tends_to_half_the_ceiling_at_any_epsilon(size):
    protocol, threat = olh(size), Threat(Prior.uniform(size))
    limit = (size - 1) / (2 * size)
    levels = [10.0, 20.0, 30.0, 36.7, 40.0, 41.0, 700.0, 705.0, 745.0, 800.0, 1e4]
    risks = [protocol.risk(level, threat) for level in levels]
    values = np.array([risk.value for risk in risks])
    assert (np.diff(values) >= -1e-15).all()
    assert (values <= limit * (1 + 2e-12)).all()
    assert values[2:] == pytest.approx(limit, rel=1e-9)
    assert all(risk.tight for risk in risks)
    shares = protocol.variation(np.array([705.0, 1e4, np.inf]))
    assert shares.tolist() == [0.5, 0.5, 0.5]


def test_the_guarantee_of_hashing_needs_no_buckets():
    for epsilon in (1.0, 21.0):
        assert olh(5).loss(epsilon) == olh(5).mechanism(epsilon).loss()
    assert float(olh(5).loss(800.0).epsilon) == 800.0
    olh(5).require_parameter(800.0)
    with pytest.raises(ValueError, match="at most 10000"):
        olh(5).require_parameter(20_000.0)


def test_protocols_are_called_in_capitals():
    called = [FAMILIES[name](3).called for name in ("the", "grr", "ss", "olh")]
    assert called == ["THE", "GRR", "SS", "OLH"]
    assert laplace_sum(0, 3).called == "laplace-sum"


def enumerated_advantage(answers, prior, scale: float) -> float:
    """Return the advantage of the best guess of the record, over all whole outputs."""
    reach = int(60 * scale) + 5
    outputs = np.arange(min(answers) - reach, max(answers) + reach + 1)
    laws = np.exp(-np.abs(outputs - np.array(answers)[:, None]) / scale)
    laws *= math.tanh(1 / scale / 2)
    weights = np.array(prior)[:, None] * (laws - prior @ laws)
    return float(weights.max(axis=0).sum())


@pytest.mark.parametrize("seed", range(12))
def test_noise_in_whole_numbers_has_the_risk_of_all_its_outputs(seed):
    rng = np.random.default_rng(seed)
    answers = rng.choice(np.arange(-9, 10), int(rng.integers(2, 6)), replace=False)
    prior = rng.dirichlet(np.ones(len(answers)))
    threat = Threat(Prior(len(answers), prior))
    whole, plain = laplace(answers, step=1), laplace(answers)
    for epsilon in (0.1, 1.0, 7.0):
        scale = whole.noise(epsilon)
        truth = enumerated_advantage(answers.tolist(), threat.prior.pmf, scale)
        found = whole.risk(epsilon, threat).value
        assert found == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert plain.risk(epsilon, threat).value <= found + 1e-12
        finer = laplace(answers, step="0.25").risk(epsilon, threat).value
        assert plain.risk(epsilon, threat).value - 1e-12 <= finer <= found + 1e-12
    target = 0.5 * whole.risk(5.0, threat).value
    chosen = calibrate(whole, threat, advantage=target, alternatives=False)
    scale = float(whole.mechanism(chosen.value).scale)
    kept = enumerated_advantage(answers.tolist(), threat.prior.pmf, scale)
    assert kept <= target * (1 + 1e-12)
    assert kept == pytest.approx(target, rel=1e-8)


@pytest.mark.parametrize("gap", [1, 2, 3, 8])
def test_the_variation_of_noise_in_whole_numbers_is_exact(gap):
    for epsilon in (0.2, 1.0, 6.0):
        scale = gap / epsilon
        points = np.arange(-2000, 2001)
        laws = np.exp(-np.abs(points - np.array([[0], [gap]])) / scale)
        laws *= math.tanh(1 / scale / 2)
        truth = np.abs(laws[0] - laws[1]).sum() / 2
        found = laplace([0, gap], step=1).variation(np.array([epsilon, math.inf]))
        assert found[0] == pytest.approx(truth, rel=1e-9)
        assert found[1] == pytest.approx(1.0)


def test_answers_off_the_lattice_and_other_steps_are_refused():
    with pytest.raises(AssumptionError, match="multiples of the step 1"):
        laplace([0, 0.5], step=1)
    for step in (3, "0.3", 0):
        with pytest.raises(ValueError, match="step must be a power of two"):
            laplace([0, 3], step=step)
    wide = laplace([0, 10**9], step=1)
    with pytest.raises(NotApplicable, match="span at most"):
        wide.risk(1.0, Threat(Prior.uniform(2)))


@pytest.mark.parametrize("mu", [1e-6, 0.01, 1.0, 30.0, 1e4, 1e10])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_epsilon_of_a_mu_is_rounded_down_and_close(mu, delta):
    found = float(_epsilons(np.array([mu]), delta)[0])
    with mpmath.workdps(60):

        def lost(epsilon):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            tail = mpmath.ncdf(-m / 2 - e / m)
            return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * tail

        if found == 0.0:
            assert lost(0) <= delta * (1 + 1e-5)
            return
        assert lost(found) >= delta
        assert lost(found * (1 + 1e-5)) < delta


def test_scores_that_move_more_than_the_sensitivity_are_refused():
    scores = [[0.0, 3.0], [2.0, 0.0]]
    with pytest.raises(AssumptionError, match=r"at least 3\.0"):
        exponential(scores, sensitivity=1.0)
    with pytest.raises(AssumptionError, match="monotone_scores must be False"):
        exponential(scores, sensitivity=3.0, monotone_scores=True)
    kept = exponential([[0.0, 0.0], [2.0, 1.0]], sensitivity=2, monotone_scores=True)
    assert kept.records == 2


def test_the_default_sensitivity_is_never_below_the_exact_range():
    answers = [-0.1, 1e-17, 0.7]
    family = laplace(answers)
    assert Fraction(family.sensitivity) >= Fraction(0.7) + Fraction(0.1)
    with pytest.raises(
        AssumptionError, match=r"at least the range 0\.30000000000000004"
    ):
        laplace([0.1, 0.4], sensitivity=0.3)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        gaussian([0, 1], parameter="epsilon", delta=0.0)


def test_the_published_record_has_the_risk_of_the_engine_under_every_threat():
    rng = np.random.default_rng(3)
    for _ in range(250):
        m = int(rng.integers(2, 9))
        pmf = rng.dirichlet(np.full(m, rng.choice([0.05, 1.0])))
        places = (rng.choice(30, m, replace=False) / 10).tolist()
        rows = (rng.random((m + 2, m)) < rng.choice([0.2, 0.7])) | np.eye(
            m + 2, m, dtype=bool
        )
        success = [
            Success.exact(),
            Success.attribute(lambda r: round(10 * r) % 3),
            Success.within("absolute", float(rng.choice([0.1, 0.5, 5.0]))),
            Success.within("absolute", 0.3, guesses=[1.05, 99.0]),
            Success.from_matrix(rows),
        ][rng.integers(5)]
        known = [
            Knowledge.none(),
            Knowledge.full(),
            Knowledge.from_labels(rng.integers(0, 3, m).tolist()),
        ][rng.integers(3)]
        threat = Threat(
            Prior(places, pmf), success, known, abstain=bool(rng.random() < 0.3)
        )
        engine = advantage(Channel(np.eye(m)), threat).value
        assert identity_advantage(threat) == pytest.approx(engine, abs=1e-13)
        assert (identity_advantage(threat) > 0) == (engine > 0)


def test_larger_sets_tell_less_under_every_threat():
    rng = np.random.default_rng(5)
    for _ in range(20):
        prior = Prior(7, rng.dirichlet(np.full(7, 0.5)))
        rows = (rng.random((7, 7)) < 0.3) | np.eye(7, dtype=bool)
        labels = Knowledge.from_labels(rng.integers(0, 3, 7).tolist())
        for threat in (
            Threat(prior),
            Threat(prior, Success.from_matrix(rows)),
            Threat(prior, Success.from_matrix(rows), labels),
        ):
            values = SubsetWeights(7, threat)(np.arange(1, 7))
            assert (np.diff(values) <= 1e-12).all()
