"""What the audit studies share: repeated audits, reports, and what is read of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from undertow.audit import epsilon_from_advantage, ldp_auditor_epsilon
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow_studies.audit_fault import fault_target
from undertow_studies.audit_protocol import FIGURE_5_8
from undertow_studies.audit_repeat import (
    Audited,
    Repeats,
    Sampled,
    Target,
    audit_result,
    audited,
    black_box,
    ceiling_checks,
    certified,
    compared,
    expected_baseline,
    markers,
    reports_check,
    sample_fault,
    sample_protocol,
    sample_reading,
)
from undertow_studies.faults import missing_reset, whole_domain_lie
from undertow_studies.study import Panel

READ = (
    GeneralizedResponse,
    SubsetSelection,
    SymmetricUnary,
    OptimizedUnary,
    ThresholdHistogram,
    OptimizedHashing,
)


def target(protocol) -> Target:
    success = protocol.attack_success()
    return Target(protocol.name, float(protocol.epsilon), protocol.categories, success)


def test_repeats_leave_undefined_audits_out_of_their_mean():
    found = Repeats((1.0, 3.0, math.inf))
    assert (found.mean, found.undefined) == (2.0, 1)
    assert found.deviation == pytest.approx(math.sqrt(2))
    assert math.isnan(Repeats((math.inf,)).mean)
    assert math.isnan(Repeats((1.0, math.inf)).deviation)


def test_the_black_box_estimate_is_the_formula_in_the_advantage():
    known = Target("GRR", 2.0, 100, 0.07)
    by_advantage = epsilon_from_advantage(0.07 - 0.01, 100)
    assert black_box(known, 700, 10_000) == pytest.approx(by_advantage, abs=1e-12)
    assert known.population == pytest.approx(by_advantage, abs=1e-12)
    assert black_box(known, 10_000, 10_000) == math.inf


def test_a_mistake_is_equally_likely_for_every_wrong_value():
    known = Target("GRR", 2.0, 5, 0.6)
    assert known.success + 4 * known.mistake == pytest.approx(1.0)


@pytest.mark.parametrize(("m", "epsilon"), [(50, 1.0), (50, 6.0), (3052, 9.0)])
def test_the_expected_baseline_is_the_sum_over_all_false_positives(m, epsilon):
    known, n = target(GeneralizedResponse(m, epsilon)), 2000
    false = np.arange(0, 200)
    true = round(n * known.success)
    values = [max(0.0, ldp_auditor_epsilon(true, int(k), trials=n)) for k in false]
    mean = stats.binom.pmf(false, n, known.mistake) @ np.array(values)
    assert expected_baseline(known, trials=n) == pytest.approx(mean, abs=1e-6)


@pytest.mark.statistical
def test_repeated_audits_scatter_about_their_expectation():
    # Five audits: the mean is within six standard errors; false alarm below 1e-6.
    known, rng = target(GeneralizedResponse(100, 3.0)), np.random.default_rng(1)
    found = audited(known, trials=100_000, rng=rng)
    s = known.success
    error = math.sqrt(1 / (s * (1 - s) * 100_000 * 5))
    assert found.audit.mean == pytest.approx(3.0, abs=6 * error)
    expected = expected_baseline(known, trials=100_000)
    false = known.mistake * 100_000
    assert found.baseline.mean == pytest.approx(expected, abs=6 / math.sqrt(5 * false))
    again = audited(known, trials=100_000, rng=np.random.default_rng(1))
    assert again == found


def test_each_value_is_audited_equally_often_on_request():
    known, rng = target(GeneralizedResponse(100, 3.0)), np.random.default_rng(1)
    assert audited(known, trials=1050, per_value=10, rng=rng).trials == 1000


def test_certificates_lie_below_the_population_value():
    known = target(GeneralizedResponse(3052, 10.0))
    assert certified(known, trials=10**6) == pytest.approx(9.9929, abs=5e-5)
    assert certified(known, trials=10**4) < certified(known, trials=10**6)


def test_the_ceiling_is_none_of_the_printed_number():
    (check,) = ceiling_checks()
    assert (check.published, check.status) == (12.25, "erratum")
    assert check.ours == pytest.approx(12.0252, abs=5e-5)
    assert "12.1481" in check.note


def test_a_worse_audit_is_named_with_its_level():
    known = Target("GRR", 3.0, 10, 0.5)
    near, far = Repeats((3.1,)), Repeats((2.0,))
    good = Audited(known, 10, near, far)
    bad = Audited(known, 10, far, near)
    lost = Audited(known, 10, Repeats((math.inf,)), near)
    assert compared("here", [good, lost]).status == "match"
    check = compared("here", [good, bad])
    assert (check.ours, check.status) == ("not at ε = 3", "differs")


def test_the_table_has_the_deviation_of_every_repeated_point():
    points = {1.0: Repeats((1.0, 2.0)), 2.0: Repeats((2.0, math.inf))}
    panel = Panel("here", (markers("audit", points),), "x", "y")
    repeats = {("here", "audit, measured"): points}
    result = audit_result(FIGURE_5_8, [panel], [], repeats=repeats, data="none")
    assert result.header[-2:] == ("deviation", "undefined")
    assert [row[4:5] + row[6:] for row in result.rows] == [(1.5, 0), (2.0, 1)]
    bare = audit_result(FIGURE_5_8, [panel], [], repeats={}, data="none")
    assert bare.rows[0][-2:] == ("", "")


def test_too_many_or_too_few_right_guesses_are_unlikely():
    known = Target("GRR", 1.0, 100, 0.1)
    assert Sampled(known, 10_000, 1000).likely
    assert not Sampled(known, 10_000, 1200).likely
    assert not Sampled(known, 10_000, 800).likely
    checks = [
        reports_check("here", [Sampled(known, 10_000, k)]).status for k in (1000, 800)
    ]
    assert checks == ["not published", "differs"]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_what_the_attack_reads_decides_as_the_reports_do(kind, epsilon):
    # Twelve pairs of counts, each with false alarm 1e-6.
    protocol, rng = kind(12, epsilon), np.random.default_rng(3)
    known = target(protocol)
    assert sample_protocol(known, protocol, reports=20_000, rng=rng).likely
    assert sample_reading(known, protocol, trials=200_000, rng=rng).likely


def test_reading_is_for_reports_that_are_sets():
    protocol, rng = SummationHistogram(12, 1), np.random.default_rng(3)
    with pytest.raises(TypeError, match="protocol must report a set of values"):
        sample_reading(target(protocol), protocol, trials=10, rng=rng)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "fault",
    [whole_domain_lie(8, 1.0), missing_reset("sue", 8, 0.5)],
    ids=["response", "unary"],
)
def test_broken_code_succeeds_as_its_law_says_and_not_as_promised(fault):
    # Two-sided: the law of the code is accepted, that of the repair is not.
    rng = np.random.default_rng(5)
    known = fault_target(fault, 8, fault.claim.level)
    found = sample_fault(known, fault, reports=100_000, rng=rng)
    assert found.reports == 100_000
    assert found.likely
    honest = {"whole-domain-lie": GeneralizedResponse(8, 1.0)}
    protocol = honest.get(fault.name, SymmetricUnary(8, 0.5))
    assert not Sampled(target(protocol), found.reports, found.right).likely
