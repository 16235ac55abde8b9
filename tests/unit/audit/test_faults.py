"""The bug fixtures: what they claim, what their laws say, and how they are named."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from undertow.audit.subject import Subject
from undertow_studies.faults import (
    FAULTS,
    BitsLaw,
    Fault,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    ResponseLaw,
    TraceLaw,
    certain_subset,
    channel_epsilon,
    data_bounds,
    double_report,
    endless_threshold,
    forgotten_split,
    full_level_flip,
    missing_reset,
    named_fault,
    raised_truth,
    unhalved_exponent,
    value_seeded_hash,
    variance_as_deviation,
    whole_domain_lie,
)
from undertow_studies.faults.law import geometric_masses, joint_masses
from undertow_studies.faults.noise import threshold_masses

ALL = [pytest.param(name, id=name) for name in FAULTS]
INFINITE = {
    "certain-subset",
    "data-bounds",
    "fixed-noise",
    "float-noise",
    "noiseless-queries",
    "observed-keys",
    "one-sided-noise",
    "value-seeded-hash",
    "value-seeded-response",
    "variance-as-deviation",
}


def law_level(law):
    return law.mu if isinstance(law, GaussianLaw) else law.epsilon


def test_there_are_enough_faults_and_each_has_its_own_name_and_sentence():
    faults = [named_fault(name) for name in FAULTS]
    assert len(faults) >= 14
    assert [fault.name for fault in faults] == list(FAULTS) == sorted(FAULTS)
    assert len({fault.bug for fault in faults}) == len(faults) - 1  # two encodings
    assert all(fault.bug.endswith(".") for fault in faults)


@pytest.mark.parametrize("name", ALL)
def test_the_broken_code_exceeds_its_claim_and_the_repair_does_not(name):
    fault = named_fault(name)
    claimed = fault.claim.level
    assert fault.level == law_level(fault.broken.law) > 1.3 * claimed
    assert law_level(fault.repaired.law) <= claimed * (1 + 1e-12)
    assert law_level(fault.repaired.law) >= 0.39 * claimed  # noise is not wasted
    assert math.isinf(fault.epsilon) == (name in INFINITE)


@pytest.mark.parametrize("name", ALL)
def test_every_epsilon_is_the_largest_log_ratio_of_its_table(name):
    fault = named_fault(name)
    for code in (fault.broken, fault.repaired):
        matrix = getattr(code.law, "matrix", None)
        if matrix is None:
            assert isinstance(code.law, LaplaceLaw | GaussianLaw | TraceLaw)
            continue
        assert len(matrix) == len(code.subject.inputs)
        assert channel_epsilon(matrix) == pytest.approx(code.law.epsilon, rel=1e-12)
        worst = max(_log_ratio(p, q) for p in matrix for q in matrix)
        assert worst == pytest.approx(code.law.epsilon, rel=1e-12)


def _log_ratio(p, q):
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    return max(math.inf if b == 0 else math.log(a / b) for a, b in pairs)


@pytest.mark.parametrize("name", ALL)
def test_the_codes_are_subjects_that_repeat_from_a_seed(name):
    fault = named_fault(name)
    for code in (fault.broken, fault.repaired):
        subject = code.subject
        assert isinstance(subject, Subject)
        assert subject.seeded
        assert subject.forkable
        last = len(subject.inputs) - 1
        runs = [subject.sample(last, 7, rng=np.random.default_rng(3)) for _ in "ab"]
        assert np.array_equal(*runs)
        copy = pickle.loads(pickle.dumps(subject))
        again = copy.sample(last, 7, rng=np.random.default_rng(3))
        assert np.array_equal(runs[0], again)
        assert len(subject.sample(0, 0, rng=np.random.default_rng(3))) == 0


@pytest.mark.parametrize("level", [0.3, 1.0, 2.5])
def test_the_true_epsilons_have_their_closed_forms(level):
    m = 6
    lie = math.log(1 + math.exp(level) * m / (m - 1))
    assert whole_domain_lie(m, level).epsilon == pytest.approx(lie, rel=1e-12)
    assert double_report(m, level).epsilon == pytest.approx(2 * level, rel=1e-12)
    assert forgotten_split(4, level).epsilon == pytest.approx(4 * level, rel=1e-12)
    assert full_level_flip(m, level).epsilon == pytest.approx(2 * level, rel=1e-12)
    both = level + math.log((math.exp(level) * 10 + 1) / (math.exp(level) + 10))
    assert unhalved_exponent(level).epsilon == pytest.approx(both, rel=1e-12)
    for kind, p in (("sue", 1 / (1 + math.exp(-level / 2))), ("oue", 0.5)):
        q = 1 - p if kind == "sue" else 1 / (1 + math.exp(level))
        kept = p + q - p * q
        true = math.log(kept / ((1 - p) * q))
        assert missing_reset(kind, m, level).epsilon == pytest.approx(true, rel=1e-12)


def test_the_missing_half_of_the_exponent_costs_at_most_twice_the_claim():
    assert 1 < unhalved_exponent(1.0).epsilon < 2


def test_different_noise_scales_have_no_finite_epsilon():
    law = data_bounds().broken.law
    (a, b), (r, s) = law.answers, law.scales

    def log_ratio(y):
        return abs(y - a) / r - abs(y - b) / s - math.log(s / r)

    assert log_ratio(1e3) > 1e3
    assert log_ratio(1e6) > 1e6
    assert law.epsilon == math.inf


def test_gathered_tails_change_no_epsilon():
    for reach in (2, 8, 40):
        rows = [geometric_masses(0.7, c, reach=reach) for c in (0, 1)]
        assert all(sum(row) == pytest.approx(1) for row in rows)
        assert channel_epsilon(rows) == pytest.approx(0.7, rel=1e-12)
        one = [geometric_masses(0.7, c, reach=reach, one_sided=True) for c in (0, 1)]
        assert all(sum(row) == pytest.approx(1) for row in one)
        assert channel_epsilon(one) == math.inf


def test_independent_columns_multiply():
    rows = [joint_masses([np.array([p, 1 - p])] * 3) for p in (0.2, 0.6)]
    assert rows[0][0] == pytest.approx(0.008)
    assert channel_epsilon(rows) == pytest.approx(3 * math.log(3), rel=1e-12)


def test_on_the_answer_one_no_output_has_a_bit_below_the_grid():
    law = named_fault("float-noise").broken.law
    noise = np.concatenate(
        [np.random.default_rng(1).laplace(size=100_000), [0.5, -0.5, 2.0**-60, -1.0]]
    )
    tiny = np.ldexp(np.random.default_rng(2).random(10_000), -40)
    for scale in (1e-3, 1.0, 30.0):
        assert not law.trace(1.0 + scale * noise).any()
        assert not law.trace(1.0 - scale * tiny).any()
    assert law.clean == 1


def test_on_the_answer_zero_an_output_of_positive_probability_bears_the_trace():
    fault = named_fault("float-noise")
    uniforms = np.arange(1, 64) / 64  # each is drawn with probability 2^-53
    assert fault.broken.law.trace(-np.log(uniforms)).any()
    drawn = fault.broken.subject.sample(0, 20_000, rng=np.random.default_rng(1))
    assert 0.2 < fault.broken.law.trace(drawn).mean() < 0.3


def test_the_repaired_float_noise_leaves_no_such_trace():
    fault = named_fault("float-noise")
    for value in (0, 1):
        drawn = fault.repaired.subject.sample(
            value, 2_000, rng=np.random.default_rng(1)
        )
        assert not fault.broken.law.trace(drawn).any()


def laplace_tail(gap, scale):
    return math.exp(-gap / scale) / 2 if gap > 0 else 1 - math.exp(gap / scale) / 2


def test_the_law_of_a_threshold_is_its_integral():
    queries, scales = (0.0, 1.0, 0.25), (0.7, 1.3)

    def integrand(t, bits, seen):
        value = math.exp(-abs(t - 0.5) / scales[0]) / (2 * scales[0])
        for q, bit in list(zip(queries, bits, strict=True))[:seen]:
            above = laplace_tail(t - q, scales[1])
            value *= above if bit else 1 - above
        return value

    for stop, bits, seen in [
        (False, (0, 1, 1), 3),
        (False, (1, 0, 0), 3),
        (True, (0, 1, 0), 2),
        (True, (0, 0, 0), 3),
    ]:
        exact, _ = integrate.quad(
            integrand, -40, 40, args=(bits, seen), points=[0, 0.25, 0.5, 1], limit=400
        )
        masses = threshold_masses(queries, scales, stop=stop)
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        number = int("".join(map(str, bits)), 2)
        assert masses[number] == pytest.approx(exact, abs=1e-10)


def test_queries_without_noise_have_the_law_of_the_threshold_alone():
    masses = threshold_masses((0.0, 1.0), (2.0, 0.0), stop=False)
    tail = math.exp(-0.25) / 2
    assert masses == pytest.approx([tail, 1 - 2 * tail, 0.0, tail], abs=1e-12)


@pytest.mark.parametrize("level", [0.5, 1.0, 3.0])
def test_a_threshold_that_stops_keeps_its_claim_and_an_endless_one_does_not(level):
    sizes = [endless_threshold(level, queries=k) for k in (2, 6, 10)]
    assert all(fault.repaired.law.epsilon <= level for fault in sizes)
    losses = [fault.epsilon for fault in sizes]
    assert losses == sorted(losses)
    assert losses[-1] > 1.9 * level


def test_a_hash_that_is_fixed_for_all_clients_is_no_fault():
    buckets = np.array([0, 1, 1, 2, 0, 3])  # any public function of the value
    keep, g = 1 / (1 + 3 * math.exp(-1)), 4
    rows = np.where(np.arange(g) == buckets[:, None], keep, (1 - keep) / (g - 1))
    assert channel_epsilon(rows) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0, 0.0]], "two or more inputs"),
        ([[0.5, 0.4], [0.5, 0.5]], "sum to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], "sum to 1"),
    ],
)
def test_a_table_that_is_no_law_is_refused(matrix, words):
    with pytest.raises(ValueError, match=words):
        FiniteLaw(matrix, np.asarray)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: whole_domain_lie(1), "categories"),
        (lambda: raised_truth(shift=-0.1), "shift"),
        (lambda: forgotten_split(9), "at most 8"),
        (lambda: certain_subset(21), "from 3 to 20"),
        (lambda: value_seeded_hash(17), "at most 16"),
        (lambda: missing_reset("rappor"), "encoding"),
        (lambda: variance_as_deviation(1.0), "below 1"),
        (lambda: endless_threshold(queries=3), "even"),
        (lambda: endless_threshold(queries=12), "at most 10"),
        (lambda: BitsLaw(13, 0.5, 0.25).matrix, "at most 12"),
        (lambda: BitsLaw(4, 1.0, 0.25), "keep"),
        (lambda: ResponseLaw(4, 1.5), "keep"),
        (lambda: named_fault("none"), "name"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_what_cannot_be_built_is_refused_with_one_sentence(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_the_audit_takes_other_trials_and_another_confidence():
    fault = named_fault("wrong-sensitivity")
    assert isinstance(fault, Fault)
    result = fault.audit(seed=2, trials=1_000, confidence=0.999)
    assert (result.trials, result.confidence, result.violated) == (1_000, 0.999, True)


def row(fault):
    """Return the line of the table on the page that describes the faults."""
    sign = "μ" if fault.claim.parameter == "mu" else "ε"
    true = "∞" if math.isinf(fault.level) else f"{fault.level:.4f}"
    cells = (
        f"`{fault.name}`",
        f"{sign} = {fault.claim.level:g}",
        true,
        f"{fault.trials:,}",
        fault.method,
        fault.bug,
    )
    return f"| {' | '.join(cells)} |"


def test_the_page_lists_every_fault_with_its_claim_its_truth_and_its_trials():
    page = Path(__file__).parents[3] / "docs" / "theory" / "audit-faults.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line.startswith("| `")]
    assert listed == [row(named_fault(name)) for name in FAULTS]
