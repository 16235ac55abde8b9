"""Published and derived numbers of audits, by id."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.audit_tables import BEIJING, PORTO
from undertow.audit._trial import FixedTrials, Source, reader_of
from undertow.audit.certificate import (
    claim_p_value,
    epsilon_from_advantage,
    epsilon_from_success,
    success_ceiling,
    success_epsilon,
)
from undertow.audit.claim import Claim
from undertow.audit.inversion import family_success
from undertow.audit.local import audit_local, ldp_auditor, ldp_auditor_epsilon
from undertow.audit.runner import Campaign
from undertow.mechanisms.local import (
    GeneralizedResponse,
    SummationHistogram,
    UnaryEncoding,
    hash_buckets,
    subset_size,
    unary_success,
)
from undertow.mechanisms.noise.simulated import SimulatedSource

MILLION = 10**6
NAMES = ("grr", "ssf", "ssr", "sue", "oue", "she", "the", "blh", "olh")


def near(value, tolerance=5e-5):
    return pytest.approx(value, abs=tolerance)


def rows(text):
    return [tuple(float(x) for x in line.split()) for line in text.strip().split("\n")]


def population(name, level, m):
    """Black-box inverse of the closed-form success of the attack."""
    if name in ("ssf", "ssr"):
        rule = "floor" if name == "ssf" else "nearest"
        size = subset_size(m, level, rule=rule)
        success = family_success("ss", level, categories=m, subset=size)
    else:
        success = family_success(name, level, categories=m)
    return epsilon_from_success(success, m)


@pytest.mark.parametrize("row", rows(PORTO), ids=lambda row: f"epsilon={row[0]:g}")
def test_A9_3_porto_black_box_inversion_of_every_protocol(row):
    level, *expected = row
    for name, value in zip(NAMES, expected, strict=False):
        assert population(name, level, 3052) == near(value), name


@pytest.mark.parametrize("row", rows(BEIJING), ids=lambda row: f"epsilon={row[0]:g}")
def test_A9_3_beijing_black_box_inversion_of_every_protocol(row):
    level, *expected = row
    for name, value in zip(NAMES, expected, strict=False):
        assert population(name, level, 5356) == near(value), name


def test_A9_3_every_cell_of_both_tables_is_there():
    assert [len(row) for row in rows(PORTO)] == [10] * 12 + [9] * 3
    assert [len(row) for row in rows(BEIJING)] == [10] * 7 + [9] * 2


@pytest.mark.parametrize(
    ("m", "level", "half", "quarter", "certified"),
    [
        (3052, 1, 0.7723, 0.7522, 0.9204),
        (3052, 10, 9.6012, 9.5694, 9.9929),
        (3052, 15, 12.1471, 12.0242, 14.9245),
        (3052, 20, None, None, 19.1597),
        (5356, 1, 0.6943, 0.6678, 0.8935),
        (5356, 10, 9.5758, 9.5430, 9.9941),
    ],
)
def test_T_9_1_expected_counts_of_randomised_response(
    m, level, half, quarter, certified
):
    keep = family_success("grr", level, categories=m)
    hits, false = round(MILLION * keep), round(MILLION * (1 - keep) / (m - 1))
    assert success_epsilon(hits, MILLION, m).value == near(certified)
    for tail, expected in (("half", half), ("quarter", quarter)):
        if expected is not None:
            value = ldp_auditor_epsilon(hits, false, trials=MILLION, tail=tail)
            assert value == near(expected)


def test_T_9_1_the_expected_counts_are_those_printed():
    keep = family_success("grr", 10, categories=3052)
    assert round(MILLION * keep) == 878337
    assert round(MILLION * (1 - keep) / 3051) == 40


@pytest.mark.parametrize(("m", "ceiling"), [(3052, 20.3116), (5356, 20.8741)])
def test_A9_1_the_largest_certificate_of_a_million_trials(m, ceiling):
    assert success_ceiling(MILLION, m) == near(ceiling)


@pytest.mark.parametrize(
    ("level", "expected"),
    [(1, 1.3135), (2, 2.1272), (3, 3.0489), (4, 4.0185), (5, 5.0070), (10, 10.0004)],
)
def test_A9_5_a_lie_from_the_whole_domain_raises_epsilon(level, expected):
    m = 3052
    p = family_success("grr", level, categories=m)
    assert epsilon_from_success(p + (1 - p) / m, m) == near(expected)
    assert math.log(1 + math.exp(level) * m / (m - 1)) == near(expected)


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (3052, {1: 5.8359, 5: 6.2600, 8: 8.4046, 10: 11.8335}),
        (5356, {1: 6.3942, 5: 6.6577, 8: 8.4158, 10: 10.8332}),
    ],
    ids=["porto", "beijing"],
)
def test_A9_5_a_raised_probability_of_the_truth(m, expected):
    for level, value in expected.items():
        p = family_success("grr", level, categories=m) + 0.1
        assert epsilon_from_success(p, m) == near(value)


def buggy_unary(name, level, m):
    """Success of the attack if the true bit is not reset before it is set."""
    if name == "sue":
        p = 1 / (1 + math.exp(-level / 2))
        q = 1 - p
    else:
        p, q = 0.5, 1 / (1 + math.exp(level))
    return unary_success(m, keep=p + q - p * q, noise=q)


@pytest.mark.parametrize(
    ("name", "level", "porto", "beijing"),
    [
        ("sue", 0.25, 0.4714, 0.4713),
        ("sue", 0.5, 0.5436, 0.5435),
        ("oue", 0.25, 0.4961, 0.4960),
        ("oue", 0.5, 0.6015, 0.6014),
        ("oue", 0.75, 0.7223, None),
    ],
)
def test_A9_5_a_bit_that_is_not_reset(name, level, porto, beijing):
    assert epsilon_from_success(buggy_unary(name, level, 3052), 3052) == near(porto)
    if beijing is not None:
        value = epsilon_from_success(buggy_unary(name, level, 5356), 5356)
        assert value == near(beijing)


def test_A9_5_the_true_loss_of_the_bit_that_is_not_reset():
    p = 1 / (1 + math.exp(-0.125))
    q = 1 - p
    kept = p + q - p * q
    assert math.log(kept * (1 - q) / ((1 - kept) * q)) == near(1.2288)


def test_A9_5_pairs_certify_nearly_all_of_the_true_loss_of_that_bug():
    # The success on 3052 values certifies 0.3677 of it.
    p = 1 / (1 + math.exp(-0.125))
    q = 1 - p
    subject = UnaryEncoding(50, keep=p + q - p * q, noise=q)
    result = audit_local(subject, Claim.pure("0.25"), trials=100_000, seed=1)
    assert result.violated
    assert 1.18 < result.epsilon_certified < 1.2288


@pytest.mark.parametrize(
    ("m", "bug", "level", "limit"),
    [
        (3052, "domain", 1, 1.2462),
        (3052, "domain", 2, 2.0823),
        (3052, "domain", 3, 3.0206),
        (3052, "sue", 0.25, 0.3677),
        (3052, "oue", 0.25, 0.3934),
        (3052, "sue", 0.5, 0.4431),
        (3052, "oue", 0.5, 0.5046),
        (5356, "domain", 1, 1.2233),
        (5356, "domain", 2, 2.0672),
        (5356, "domain", 3, 3.0113),
        (5356, "sue", 0.25, 0.3322),
        (5356, "oue", 0.25, 0.3605),
        (5356, "sue", 0.5, 0.4082),
        (5356, "oue", 0.5, 0.4728),
    ],
)
def test_A9_5_certified_limits_at_the_expected_counts(m, bug, level, limit):
    if bug == "domain":
        p = family_success("grr", level, categories=m)
        success = p + (1 - p) / m
    else:
        success = buggy_unary(bug, level, m)
    value = success_epsilon(round(MILLION * success), MILLION, m).value
    assert value == near(limit)
    alarm = (m, bug, level) not in {
        (3052, "sue", 0.5),
        (5356, "sue", 0.5),
        (5356, "oue", 0.5),
    }
    assert (value > level) == alarm


@pytest.mark.parametrize(
    ("advantage", "m", "expected"),
    [
        (0.1, 2, 0.405465),
        (0.1, 100, 2.504379),
        (0.5, 10, 2.602690),
        (0.726140, 3052, 8.999999),
        (0.0, 10, 0.0),
        (-0.01, 10, -0.116410),
        (0.9, 10, math.inf),
    ],
)
def test_R11_1_from_an_advantage_to_epsilon(advantage, m, expected):
    assert epsilon_from_advantage(advantage, m) == pytest.approx(expected, abs=1e-6)


def test_R11_1_the_claim_of_one_on_ten_values():
    claim = Claim.pure(1)
    assert claim.success_limit(10) == near(0.231969, 1e-6)
    assert claim_p_value(claim, 450, 1000, 10) == pytest.approx(7.2e-52, rel=0.01)
    assert epsilon_from_success(0.45, 10) == near(1.996554, 1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grr", {1: 0.0335, 5: 0.0048, 9: 0.0022, 12: 0.0074}),
        ("oue", {1: 0.0554, 5: 0.0064, 9: 0.0067, 12: 0.108}),
    ],
)
def test_R11_1_standard_errors_of_the_mechanism_specific_estimate(name, expected):
    m, step = 3052, 1e-4
    for level, error in expected.items():
        s = family_success(name, level, categories=m)
        up, down = (
            family_success(name, level + sign * step, categories=m) for sign in (1, -1)
        )
        slope = (up - down) / (2 * step)
        value = math.sqrt(s * (1 - s) / MILLION) / slope
        assert value == near(error, 6e-4 if error > 0.1 else 6e-5)


@pytest.mark.parametrize(
    ("alpha", "tail", "ceiling"),
    [
        (0.01, "quarter", 12.025172),
        (0.01, "half", 12.1481),
        (0.01, "whole", 12.2883),
        (0.05, "half", 12.5102),
    ],
)
def test_R11_2_ceilings_of_ldp_auditor(alpha, tail, ceiling):
    value = ldp_auditor_epsilon(MILLION, 0, trials=MILLION, alpha=alpha, tail=tail)
    assert value == near(ceiling, 1e-6 if tail == "quarter" else 5e-5)


def test_A9_2_both_audits_have_the_same_population_value():
    m, level = 3052, 3.0
    success = family_success("oue", level, categories=m)
    ratio = math.log(success * (m - 1) / (1 - success))
    assert epsilon_from_success(success, m) == pytest.approx(ratio, abs=1e-12)


def test_AE19_a_hundred_repetitions_are_not_the_design_of_eight_by_forty():
    # Success 0.703 at epsilon 10: the exhaustive design has 320 trials.
    spread = math.sqrt(0.703 * 0.297)
    assert spread / math.sqrt(8 * 40) == near(0.026, 5e-4)
    assert spread / math.sqrt(100) == near(0.046, 5e-4)


def test_AE20_thirty_steps_would_read_a_third_of_the_data():
    batch, rate = 500, 0.01
    records = batch / rate
    assert records == 50_000
    assert 30 * batch / records == pytest.approx(0.3)
    assert 30 * records / batch == 3000  # the steps of thirty epochs


def test_AE21_the_sample_size_of_the_tables_is_the_number_of_targets():
    # Entries from 100 targets have these errors, whatever is run once per target.
    errors = [math.sqrt(p * (1 - p) / 100) for p in (0.86, 0.5)]
    assert errors == [near(0.035, 5e-4), near(0.05, 5e-4)]
    assert 0.08 / errors[0] == near(2.3, 0.05)


def test_AE24_the_raised_probability_is_a_sum_not_a_factor():
    m, level = 3052, 1
    p = family_success("grr", level, categories=m)
    assert epsilon_from_success(p + 0.1, m) == near(5.8359)
    # A factor of 1.1 or of 0.1 would hardly show, or hide.
    assert epsilon_from_success(1.1 * p, m) == near(1.0954, 1e-3)
    assert epsilon_from_success(0.1 * p, m) < 0


def test_trap_a11_densities_underflow_and_ties_are_broken_at_random():
    wide = SummationHistogram(3052, 1)
    reports = wide.sample(np.zeros(1, dtype=int), source=SimulatedSource(1)).values
    log_density = wide.log_density(reports, 0)[0]
    assert np.isfinite(log_density)
    assert math.exp(log_density) == 0.0
    protocol, n = SummationHistogram(20, 1), 40_000
    rates, first = [], []
    for value in (0, 19):
        truths = np.full(n, value)
        told = protocol.sample(truths, source=SimulatedSource(value)).values
        rng = np.random.default_rng(value)
        rates.append(reader_of(protocol, 20).hits(told, truths, rng=rng).mean())
        first.append((np.clip(told, 0, 1).argmax(axis=1) == value).mean())
    expected = protocol.attack_success()
    assert rates == [near(expected, 5 * math.sqrt(expected / n))] * 2
    assert first == [near(0.500050, 0.0125), near(0.000571, 0.0006)]


def test_trap_a12_the_rule_of_rounding_changes_the_curves():
    m, level = 5356, 8
    assert subset_size(m, level) == 1
    assert subset_size(m, level, rule="nearest") == 2
    assert population("ssf", level, m) - population("ssr", level, m) > 0.44
    assert hash_buckets(0.5) == 2
    assert hash_buckets(0.5, rule="nearest") == 3


def test_trap_a14_tails_are_named_and_streams_are_not_shared():
    tails = ("whole", "half", "quarter")
    values = [ldp_auditor_epsilon(MILLION, 0, trials=MILLION, tail=t) for t in tails]
    assert values == [near(12.29, 5e-3), near(12.15, 5e-3), near(12.03, 5e-3)]
    source = Source(GeneralizedResponse(2, 1))
    campaign = Campaign(7, 1000)
    runs = [
        campaign.run(FixedTrials(source, 0, 0), 10_000, phase=phase, job="x")["hits"]
        for phase in (2, 2, 3)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


class Shifted:
    """Randomised response whose probability of the truth is raised and clipped."""

    name = "shifted"

    def __init__(self, categories, level, shift):
        self.inputs = range(categories)
        p = family_success("grr", level, categories=categories)
        self.keep = min(1.0, p + shift)

    def sample(self, value, size, *, rng):
        m = len(self.inputs)
        lies = (value + rng.integers(1, m, size=size)) % m
        return np.where(rng.random(size) < self.keep, value, lies)


def test_trap_a16_a_clipped_probability_has_no_estimate_but_a_certificate():
    subject = Shifted(64, 11, 0.1)
    assert subject.keep == 1.0
    result = audit_local(subject, Claim.pure(11), trials=100_000, seed=1)
    assert result.epsilon_estimate == math.inf
    assert 11 < result.epsilon_certified <= result.power["ceiling"] < math.inf
    assert result.violated
    assert result.to_dict()["epsilon_estimate"] == "inf"


def test_trap_a17_the_trials_that_were_run_are_stored():
    result = audit_local(GeneralizedResponse(7, 1), Claim.pure(1), trials=9_999, seed=1)
    assert result.trials == 9_999
    deciding = [m.trials for m in result.methods if m.decides]
    assert deciding == [9_999 - 499]


def test_trap_a18_a_negative_advantage_stays_negative():
    assert epsilon_from_advantage(-0.01, 10) < 0
    assert epsilon_from_success(0.05, 10) < 0


@pytest.mark.statistical
def test_A9_2_ldp_auditor_certifies_less_than_the_pairs():
    """False-alarm rate below 1e-6: the gap is forty standard errors."""
    from undertow.mechanisms.local import OptimizedUnary

    protocol = OptimizedUnary(100, 1)
    theirs = ldp_auditor(protocol, trials=50_000, seed=1).epsilon
    ours = audit_local(protocol, Claim.pure(1), trials=100_000, seed=1)
    assert theirs < 0.6 < 0.93 < ours.epsilon_certified
