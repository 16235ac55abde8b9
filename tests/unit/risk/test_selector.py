"""The selector: every row with its value or its reason, and the least of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import (
    GDP,
    ZCDP,
    Approx,
    GaussianTradeOff,
    LaplaceTradeOff,
    PiecewiseLinearTradeOff,
    Pure,
)
from undertow.risk.bounds import Baselines, tradeoff_from_callable
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.selector import (
    best_bound,
    best_success_bound,
    calibrate_black_box,
    named_bound,
)
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

SKEW = Prior(4, [0.4, 0.3, 0.2, 0.1])
FLAT = Prior.uniform(10)
NEED_NO_KNOWLEDGE = [
    "trade-off",
    "uniform trade-off",
    "baselines",
    "exact guess",
    "uniform guess",
]


def applying(report):
    return {row.name for row in report.rows if row.applies}


@pytest.mark.parametrize(
    ("guarantee", "threat", "expected"),
    [
        (
            Pure(1),
            Threat(FLAT),
            {
                "total variation",
                "prior-free cap",
                "uniform-prior cap",
                "trade-off",
                "baselines",
                "exact guess",
                "uniform guess",
                "linear program",
            },
        ),
        (
            Approx(1, "1e-5"),
            Threat(SKEW),
            {"total variation", "trade-off", "baselines", "exact guess"},
        ),
        (
            Approx(1, "1e-5"),
            Threat(SKEW, Success.within("absolute", 1)),
            {"total variation", "trade-off", "baselines"},
        ),
        (
            Approx(1, "1e-5"),
            Threat(SKEW, knowledge=Knowledge.full()),
            {"total variation"},
        ),
        (
            GDP(1),
            Threat(FLAT),
            {"total variation", "trade-off", "uniform trade-off", "exact guess"},
        ),
        (LaplaceTradeOff(1.0), Threat.membership(FLAT), {"total variation"}),
        (ZCDP("0.1"), Threat(FLAT), {"total variation"}),
        (0.2, Threat(FLAT), {"total variation"}),
        (
            Pure(1),
            Threat.membership(SKEW),
            {"total variation", "prior-free cap", "linear program"},
        ),
    ],
)
def test_the_rows_that_apply_are_those_of_the_table(guarantee, threat, expected):
    report = best_bound(guarantee, threat)
    assert applying(report) == expected
    values = [row.value for row in report.rows if row.applies]
    assert report.value == min(values)
    assert all(row.reason for row in report.rows)
    assert all(row.value is None for row in report.rows if not row.applies)


@pytest.mark.parametrize("name", NEED_NO_KNOWLEDGE)
def test_rows_without_knowledge_are_refused_with_any(name):
    guarantee = GDP(1) if name == "uniform trade-off" else Pure(1)
    assert named_bound(guarantee, Threat(FLAT), name=name).value > 0
    with pytest.raises(AssumptionError, match="no knowledge"):
        named_bound(guarantee, Threat.membership(FLAT), name=name)


def test_knowledge_that_never_varies_is_none():
    constant = Knowledge.from_labels([7] * 10)
    report = best_bound(Pure(1), Threat(FLAT, knowledge=constant))
    assert report.value == best_bound(Pure(1), Threat(FLAT)).value


def test_declining_removes_the_worst_guess():
    rule = Success.within("absolute", 1)
    free = Baselines.of(Threat(SKEW, rule, abstain=True))
    forced = Baselines.of(Threat(SKEW, rule))
    assert free.worst_guess == 0 < forced.worst_guess
    assert forced.worst_guess <= 0.3
    assert forced.best_guess >= 0.9


def test_baselines_lie_on_the_safe_side_of_the_threat():
    rng = np.random.default_rng(5)
    for _ in range(20):
        pmf = rng.dirichlet(np.ones(7))
        known = Baselines.of(Threat(Prior(7, pmf)))
        assert known.collision <= math.fsum(pmf * pmf)
        assert known.collision == pytest.approx(float(pmf @ pmf), abs=1e-14)
        assert known.exact
        assert not known.uniform
    assert Baselines.of(Threat(Prior(3, [1.0, 0.0, 0.0]))).collision == 1


def test_an_attribute_is_not_the_exact_record():
    people = Prior([(0, 0), (0, 1), (1, 0)], [0.4, 0.3, 0.3])
    threat = Threat.attribute(people, target=lambda r: r[1])
    assert not Baselines.of(threat).exact
    with pytest.raises(AssumptionError, match="exact success"):
        named_bound(Pure(1), threat, name="exact guess")


def test_checked_hypotheses_are_named_and_independence_is_not_among_them():
    bound = named_bound(Approx(1, 0), Threat(FLAT), name="uniform guess")
    assert {"no knowledge", "exact success", "uniform prior"} <= set(bound.checked)
    assert "the records are independent" in bound.unchecked
    assert not any("knows nothing" in text for text in bound.unchecked)


def test_a_continuous_prior_is_given_by_its_numbers():
    known = Baselines(0.0, 0.2, 0.1)
    report = best_bound(Approx("0.1", 0), known)
    assert applying(report) == {"total variation", "trade-off", "baselines"}
    assert report.value == pytest.approx(0.2 * math.expm1(0.1), rel=1e-9)


def test_the_report_can_be_printed_as_json():
    plain = best_bound(GDP(1), Threat(FLAT)).to_dict()
    assert plain["name"] == "uniform trade-off"
    assert plain["rows"][-1]["name"] == "exact advantage"
    assert "output law" in plain["rows"][-1]["reason"]


def test_a_known_output_law_is_preferred_whatever_is_claimed():
    channel = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    true = best_bound(Pure(math.log(7)), threat, source=channel)
    assert true.name == "exact advantage"
    assert true.value == pytest.approx(0.242, abs=1e-12)
    assert all(row.value >= true.value for row in true.rows if row.applies)
    false = best_bound(Pure("0.1"), threat, source=channel)
    assert false.value == true.value
    assert min(row.value for row in false.rows if row.applies) < false.value


def test_the_exact_advantage_needs_a_whole_threat():
    with pytest.raises(TypeError, match="Threat"):
        best_bound(Pure(1), Baselines(0.5, 0.5, 0.5), source=Channel(np.eye(2)))


def test_success_is_bounded_without_knowledge_only():
    assert best_success_bound(Pure(1), Threat(FLAT)).value == pytest.approx(0.271828)
    with pytest.raises(AssumptionError, match="False"):
        best_success_bound(Pure(1), Threat.membership(FLAT))


def test_the_function_of_a_loss_gives_the_same_bound():
    by_loss = best_bound(GDP(1), Threat(SKEW)).value
    by_function = best_bound(GaussianTradeOff(1.0), Threat(SKEW)).value
    assert by_loss == pytest.approx(by_function, rel=1e-11)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("target", [0.01, 0.2, 0.5])
def test_black_box_calibration_is_safe_and_cannot_be_raised(target, delta):
    for threat in (Threat(SKEW), Threat.membership(SKEW), Threat(FLAT)):
        answer = calibrate_black_box(target, threat, delta=delta)
        assert answer.achieves.value <= target
        raised = answer.value * (1 + 1e-6)
        loss = Approx(raised, delta) if delta else Pure(raised)
        assert best_bound(loss, threat).value > target


def test_black_box_calibration_knows_its_limits():
    assert calibrate_black_box(0.95, Threat(FLAT)).value == math.inf
    with pytest.raises(InfeasibleTarget):
        calibrate_black_box(1e-4, Threat(FLAT), delta=1e-3)


@pytest.mark.parametrize("guarantee", ["pure", True, None])
def test_other_guarantees_are_refused(guarantee):
    with pytest.raises(TypeError, match=r"undertow\.risk\.advantage"):
        best_bound(guarantee, Threat(FLAT))


def test_unknown_rows_are_refused():
    with pytest.raises(ValueError, match="one of"):
        named_bound(Pure(1), Threat(FLAT), name="magic")
    with pytest.raises(ValueError, match="collision"):
        Baselines(2.0, 0.1, 0.1)


def test_what_an_accounted_curve_rests_on_reaches_the_report():
    curve = tradeoff_from_callable(GaussianTradeOff(1.0), source="a library")
    report = best_bound(curve, Threat(Prior.uniform(10)))
    assert curve.unchecked
    assert set(curve.unchecked) <= set(report.best.unchecked)


def added(threat):
    """Return the threat for guarantees about adding or removing a record."""
    return replace(threat, adjacency="add-remove")


@pytest.mark.parametrize(
    ("stated", "replaced"),
    [
        (Pure("0.5"), Pure(1)),
        (Approx(1, "1e-6"), Approx(2, (1 + math.e) * 1e-6)),
        (GDP("0.5"), GDP(1)),
        (ZCDP("0.1"), ZCDP("0.4")),
        (0.2, 0.4),
        (0.7, 1.0),
        (GaussianTradeOff(0.5), GaussianTradeOff(1.0)),
        (LaplaceTradeOff(0.5), LaplaceTradeOff(1.0)),
    ],
    ids=str,
)
def test_adding_or_removing_costs_twice_for_replacing(stated, replaced):
    for threat in (Threat(FLAT), Threat.membership(SKEW), Threat(SKEW)):
        found = best_bound(stated, added(threat))
        direct = best_bound(replaced, threat)
        for one, other in zip(found.rows, direct.rows, strict=True):
            assert one.applies == other.applies
            if one.applies:
                assert one.value == pytest.approx(other.value, rel=1e-9)
        assert found.value > best_bound(stated, threat).value


def test_total_variation_of_two_steps_is_added_not_multiplied():
    """Two steps of 0.3 in opposite directions reach 0.6, more than 1 - 0.7^2."""
    known = added(Threat.membership(Prior.uniform(2)))
    step = Channel([[0.8, 0.2], [0.2, 0.8]])
    exact = best_bound(0.3, known, source=step).value
    found = named_bound(0.3, known, name="total variation").value
    assert exact == pytest.approx(0.3, abs=1e-12)
    assert found == pytest.approx(0.3, abs=1e-12)
    assert (1 - 0.7**2) / 2 < exact <= found
    with pytest.raises(ValueError, match="guarantee must"):
        best_bound(1.5, known)


def test_a_lopsided_function_is_first_made_to_hold_in_both_orders():
    lopsided = PiecewiseLinearTradeOff([0, 0.1, 1], [0.9, 0.6, 0])
    both = lopsided.symmetrised()
    found = best_bound(lopsided, added(Threat(SKEW))).value
    grid = np.linspace(0, 1, 401)
    curve = PiecewiseLinearTradeOff(grid, both(1 - both(grid)))
    assert found == pytest.approx(best_bound(curve, Threat(SKEW)).value, rel=1e-3)
    assert found > best_bound(lopsided.group(2), Threat(SKEW)).value


def test_a_guarantee_that_is_not_restated_is_exceeded():
    """Without the target a fair coin: ln 2 for each step, ln 3 across."""
    channel, step = Channel([[0.25, 0.75], [0.75, 0.25]]), math.log(2)
    threat = Threat(Prior.uniform(2))
    report = best_bound(Pure(step), added(threat), source=channel)
    assert report.value == pytest.approx(0.25)
    assert all(row.value >= report.value for row in report.rows if row.applies)
    assert best_bound(Pure(step), threat).value == pytest.approx(1 / 6)


def test_rows_say_that_the_guarantee_was_restated():
    report = best_bound(Pure(1), added(Threat(FLAT)))
    rows = [row for row in report.rows if row.applies]
    assert all("restated from adding or removing" in row.reason for row in rows)
    for row in rows:
        assert "the guarantee is for adding or removing one record" in (
            row.bound.unchecked
        )
        assert not any("replacing" in text for text in row.bound.unchecked)
        assert row.bound.tight is None
    curve = tradeoff_from_callable(GaussianTradeOff(1.0), source="a library")
    best = best_bound(curve, added(Threat(FLAT))).best
    assert not any("replacing" in text for text in best.unchecked)
    assert any("curve" in text for text in best.unchecked)


def test_the_adjacency_travels_with_the_baselines():
    known = Baselines.of(added(Threat(FLAT)))
    assert best_bound(Pure(1), known).value == best_bound(Pure(2), Threat(FLAT)).value
    with pytest.raises(ValueError, match="adjacency must be one of"):
        Baselines(0.1, 0.1, 0.1, adjacency="zero-out")


def test_success_by_adding_or_removing_is_bounded_at_the_price_of_replacing():
    bound = best_success_bound(Pure("0.5"), added(Threat(FLAT)))
    assert bound.value == pytest.approx(0.1 * math.e)
    assert not any("replacing" in text for text in bound.unchecked)
    with pytest.raises(TypeError, match="must be a Loss"):
        best_success_bound(0.5, added(Threat(FLAT)))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("target", [0.01, 0.2, 0.5])
def test_calibration_returns_the_epsilon_as_it_is_stated(target, delta):
    skewed = Prior(11, np.arange(1, 12) / 66)  # too many records for the program
    for threat in (Threat(skewed), Threat.membership(skewed)):
        answer = calibrate_black_box(target, added(threat), delta=delta)
        assert answer.achieves.value <= target
        raised = answer.value * (1 + 1e-6)
        loss = Approx(raised, delta) if delta else Pure(raised)
        assert best_bound(loss, added(threat)).value > target
        if not delta:
            direct = calibrate_black_box(target, threat).value
            assert answer.value == pytest.approx(direct / 2, rel=1e-9)
    assert calibrate_black_box(0.95, added(Threat(FLAT))).value == math.inf


def test_a_target_at_the_rounded_ceiling_is_not_called_never_binding():
    # 1 - 0.3 rounds down as a float: it is below the largest advantage there is.
    assert Fraction(1.0 - 0.3) < 1 - Fraction(0.3)
    threat = Baselines(0.3, 0.5, 0.1)
    assert calibrate_black_box(1.0 - 0.3, threat).value < math.inf
    assert calibrate_black_box(0.7000000000000001, threat).value == math.inf


def test_hypotheses_that_the_caller_declares_are_not_called_checked():
    read = best_bound(Pure(1), Threat(Prior.uniform(4))).best
    declared = best_bound(
        Pure(1), Baselines(0.25, 0.25, 0.25, exact=True, pmf=(0.25,) * 4)
    ).best
    assert read.value == pytest.approx(declared.value, rel=1e-12)
    assert "no knowledge" in read.checked
    assert "no knowledge" not in declared.checked
    assert any("knows nothing" in text for text in declared.unchecked)
    assert not any("knows nothing" in text for text in read.unchecked)


def test_one_record_has_no_risk_and_any_epsilon():
    for threat in (
        Threat(Prior.uniform(1)),
        Threat.membership(Prior.uniform(1)),
        Threat(Prior.uniform(1), abstain=True),
    ):
        assert advantage(Channel([[0.3, 0.7]]), threat).value == 0.0
        assert best_bound(Pure(1), threat).value <= 1e-15
        assert calibrate_black_box(0.1, threat).value == math.inf


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 700.0, 1e4, math.inf])
def test_every_row_is_a_number_at_extreme_levels(epsilon):
    for prior in (Prior.uniform(3), Prior(3, [1.0, 1e-300, 0.0])):
        for threat in (Threat(prior), Threat.membership(prior)):
            for row in best_bound(Pure(epsilon), threat).rows:
                assert row.value is None or 0.0 <= row.value <= 1.0
