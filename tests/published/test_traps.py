"""The traps of composition, each with the error or the right number that answers it.

Statements are numbered as in P. Guerra-Balboa, *A Formal Study of Differential Privacy
in Complex and Correlated Data*, PhD thesis, KIT, 2026 ("thesis") and P. Guerra-Balboa,
À. Miranda-Pascual, J. Parra-Arnau and T. Strufe, *Composition in Differential Privacy
for General Granularity Notions* ("paper").
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import undertow as ut
from undertow.composition import (
    after_post_processing,
    best_common_bound,
    bounded_parallel,
    check_adaptive_step,
    compose_common,
    minimum_privacy_approx,
    overlap_loss,
    parallel_max,
    sequential,
)
from undertow.errors import (
    AssumptionError,
    FalsifiedClaimError,
    IncompatiblePartitionError,
    InfiniteLossError,
    NotionMismatchError,
    PlanError,
    UnboundedSensitivityError,
    UnprovedDependencyError,
    VacuousGranularityError,
)
from undertow.mechanisms import LaplaceMechanism, gaussian_accuracy, laplace_accuracy
from undertow.privacy import ext_scale, group, group_approx, max_group_size
from undertow.spaces import (
    Dependency,
    DiscreteMetric,
    Partition,
    ZeroMetric,
    certificate_for,
    check_domain,
    clique_metric,
    intrinsic_gap,
    min_privacy,
    preprocess,
    quotient_metric,
    sensitivity,
    transfer,
    transfer_factor,
    unique_maximal_clique,
)

CITY = ut.Table(("N", "S", "E", "W"), cell="district")
FOUR = {"N": "0.5", "S": "1.0", "E": "0.3", "W": "0.8"}


def release(name, loss, *, unit, view=None, setting="view"):
    view = ut.Identity() if view is None else view
    return ut.Release(name, loss, unit=unit, view=view, setting=setting)


def districts(setting, *, unit=None, losses=ut.Pure, domain=CITY, budgets=None):
    unit = ut.Bounded() if unit is None else unit
    return ut.Plan(
        domain,
        [
            release(c, losses(e), unit=unit, view=ut.Select(c), setting=setting)
            for c, e in (FOUR if budgets is None else budgets).items()
        ],
    )


def hourly(loss=ut.Pure):
    stream = ut.Stream(1000, 24)
    return ut.Plan(
        stream,
        [
            release(
                f"hour {t}",
                loss("0.5" if t in (8, 18) else "0.1"),
                unit=ut.Event(),
                view=ut.At(t),
            )
            for t in range(24)
        ],
    )


def test_trap_01_parallel_composition_under_replacement_is_refused_with_its_price():
    with pytest.raises(InfiniteLossError) as refusal:
        districts("view").loss(ut.Bounded())
    assert "common setting, where the same losses compose to Pure(epsilon=1.8)" in str(
        refusal.value
    )
    assert "Example 2.16" in refusal.value.source
    assert refusal.value.witness.details["example"] == (
        ("S", "S", "S"),
        ("S", "S", "W"),
    )


def test_trap_02_the_setting_must_be_stated_because_it_decides_the_price():
    with pytest.raises(TypeError, match="setting"):
        ut.Release("r", ut.Pure(1), unit=ut.Bounded(), view=ut.Identity())
    with pytest.raises(PlanError, match="there is no default"):
        ut.plan_from_document(
            {
                "domain": {"kind": "table", "cells": ["a"]},
                "releases": [{"name": "r", "loss": {"epsilon": 1}, "unit": "bounded"}],
            }
        )
    common, view = (
        districts(s).loss(ut.Bounded(), on_infinite="report").loss
        for s in ("common", "view")
    )
    assert (common, view) == (ut.Pure("1.8"), ut.Pure("inf"))


def test_trap_03_zero_times_an_infinite_distance_is_infinite():
    assert ext_scale(0, math.inf) == math.inf
    zeros = districts("view", losses=lambda e: ut.Pure(0))
    assert zeros.loss(ut.Bounded(), on_infinite="report").loss.is_infinite
    ignoring = release("constant", ut.Pure(0), unit=ZeroMetric(), view=ut.Select("N"))
    assert ut.Plan(CITY, [ignoring]).loss(ut.Bounded()).loss == ut.Pure(0)


@pytest.mark.parametrize("constant", [math.inf, None], ids=["infinite", "missing"])
def test_trap_04_preprocessing_without_a_finite_sensitivity_is_refused(constant):
    with pytest.raises(UnboundedSensitivityError):
        preprocess(ut.Pure("0.5"), constant)
    assert preprocess(ut.Pure("0.5"), 3) == ut.Pure("1.5")


def summed(constant):
    return ut.Lipschitz(
        "number of records",
        len,
        constant=constant,
        unit_from=ut.Unbounded(),
        unit_to=ut.AbsoluteDifference(),
    )


def test_trap_04_a_false_constant_is_refused_with_the_pair_that_shows_it():
    small = ut.Table(("a",), values_per_cell=1, max_size=2)
    plan = ut.Plan(small)
    true, false = (
        release("sum", ut.Pure(1), unit=ut.AbsoluteDifference(), view=summed(c))
        for c in (1, "0.5")
    )
    plan.add(true)
    with pytest.raises(FalsifiedClaimError) as refusal:
        plan.add(false)
    assert refusal.value.witness == ((), ("a",))
    assert plan.loss(ut.Unbounded()).loss == ut.Pure(1)
    chained = ut.Chain(ut.Identity(), summed("0.5"))
    with pytest.raises(FalsifiedClaimError):
        plan.add(release("sum", ut.Pure(1), unit=ut.AbsoluteDifference(), view=chained))


def test_trap_04_a_constant_that_cannot_be_checked_is_told_as_an_assumption():
    wide = release("sum", ut.Pure(1), unit=ut.AbsoluteDifference(), view=summed(1))
    report = ut.Plan(CITY, [wide]).loss(ut.Unbounded())
    assert report.loss == ut.Pure(1)
    assert any("number of records moves by at most 1" in a for a in report.assumptions)
    other = ut.Plan(CITY, [wide]).loss(ut.Group(ut.Unbounded(), 2))
    assert other.loss == ut.Pure(2)


def test_trap_05_a_granularity_without_neighbours_promises_nothing():
    fixed = ut.Table(("N", "S", "E", "W"), size=7)
    with pytest.raises(VacuousGranularityError):
        districts("common", domain=fixed).loss(ut.Unbounded())
    with pytest.raises(VacuousGranularityError):
        check_domain(fixed, ut.Unbounded())


@pytest.mark.parametrize(
    ("plan", "target", "word"),
    [
        (districts("common"), ut.Bounded(), "number of records"),
        (hourly(), ut.Event(), "how many users and times"),
        (hourly(), ut.LTrajectory(3), "recorded points"),
        (hourly(), ut.User(), "number of users"),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_trap_06_what_is_not_protected_is_listed(plan, target, word):
    assert any(word in text for text in plan.loss(target).unprotected)


def test_trap_06_add_remove_protects_everything():
    assert districts("common").loss(ut.Unbounded()).unprotected == ()


def test_trap_07_induced_distances_are_not_taken_for_intrinsic_ones():
    path = ut.FiniteDomain([("a",), ("a", "c"), ("a", "b", "c"), ("b", "c"), ("b",)])
    gap = intrinsic_gap(ut.Unbounded(), path, within=ut.Table())
    assert (gap.induced, gap.intrinsic) == (2, 4)
    assert ut.Unbounded().distance(("a",), ("b",), path) == 4


def test_trap_08_the_maximum_is_taken_once_over_the_sum():
    stream = ut.Stream(1000, 24)
    halves = [
        release(
            f"from {start}",
            ut.Pure("0.1"),
            unit=ut.Event(),
            view=ut.Window(start, 12),
        )
        for start in (0, 12)
    ]
    report = ut.Plan(stream, halves).loss(ut.WEvent(3))
    assert report.loss == ut.Pure("0.3")
    assert report.sequential == ut.Pure("0.6")


def test_trap_09_caps_come_from_the_domain_which_refuses_what_breaks_them():
    fleet = ut.Table(range(20), cell="hospital", multi=True, max_cells=3)
    plan = ut.Plan(fleet)
    plan.add_each(ut.Pure(1), unit=ut.Unbounded(), setting="view")
    report = plan.loss(ut.Unbounded())
    assert report.loss == ut.Pure(3)
    assert any("at most 3 cells (declared" in text for text in report.assumptions)
    assert ((frozenset(range(4)), 0),) not in fleet
    capped = hourly().loss(ut.User(max_times=4))
    assert any("at most 4" in text for text in capped.assumptions)


def test_trap_10_truncation_doubles_at_record_level():
    owners = ut.Table(("u", "v"), cell="user", values_per_cell=3, max_size=4)
    records = {"source": ut.Unbounded(), "target": ut.Unbounded()}
    assert sensitivity(ut.Truncate(2), owners, **records).value == 2
    stream = ut.Stream(2, 3, values=("p",))
    people = {"source": ut.User(), "target": ut.User()}
    assert sensitivity(ut.Truncate(2), stream, **people).value == 1


@pytest.mark.parametrize(
    ("partition", "granularity", "domain"),
    [
        (Partition.by_row_position(4), ut.BoundedById(), ut.Rows(4, free_ids=True)),
        (Partition.by_sorted_position(3), ut.BoundedById(), ut.Rows(3)),
    ],
    ids=["row position", "sorted"],
)
def test_trap_11_positions_are_no_stable_ids(partition, granularity, domain):
    certificate = certificate_for(granularity, partition, domain=domain)
    with pytest.raises(IncompatiblePartitionError):
        parallel_max([ut.Pure(1)] * 4, certificate=certificate)
    by_id = certificate_for(ut.BoundedById(), Partition.by_id(), domain=ut.Rows(4))
    losses = [ut.Pure("0.4"), ut.Pure("0.9")]
    assert parallel_max(losses, certificate=by_id) == ut.Pure("0.9")


def test_trap_12_blocks_computed_from_the_data_are_refused():
    quantiles = Partition.data_dependent("quartiles of the exact data")
    certificate = certificate_for(ut.Unbounded(), quantiles, domain=CITY)
    for setting in ("view", "common"):
        with pytest.raises(IncompatiblePartitionError):
            parallel_max([ut.Pure(1)] * 4, certificate=certificate, setting=setting)


def test_trap_13_a_mechanism_that_peeks_does_not_depend_on_its_view_alone():
    view = ut.Select("N")
    with pytest.raises(UnprovedDependencyError, match="also reads the grand total"):
        Dependency(view, "construction", also_reads=("the grand total",))
    with pytest.raises(UnprovedDependencyError):
        compose_common([(ut.Bounded(), view)])
    with pytest.raises(UnprovedDependencyError):
        Dependency(view, "attestation", by="", statement="")
    assumptions = districts("common").loss(ut.Bounded()).assumptions
    assert "every common-domain release reads nothing but its view" in assumptions


def test_trap_14_a_step_must_hold_for_every_declared_earlier_output():
    constant, leaking = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    tables, bound = {0: constant, 1: leaking}, [[0, 0], [0, 0]]
    assert check_adaptive_step(tables, [0], bound=bound) == []
    (violation,) = check_adaptive_step(tables, [0, 1], bound=bound)
    assert violation.source == "paper, Theorem V.2"
    report = districts("common").loss(ut.Bounded())
    assert any("for every earlier output" in text for text in report.assumptions)


def test_trap_15_releases_add_in_squares_and_distances_linearly():
    assert sequential([ut.GDP(3), ut.GDP(4)]) == ut.GDP(5)
    assert group(ut.GDP("0.3"), 3) == ut.GDP("0.9")
    assert sequential([ut.ZCDP("0.5")] * 3) == ut.ZCDP("1.5")
    assert group(ut.ZCDP("0.5"), 3) == ut.ZCDP("4.5")
    hundred = [release(f"r{k}", ut.GDP("0.1"), unit=ut.Bounded()) for k in range(100)]
    plan = ut.Plan(CITY, hundred)
    assert plan.loss(ut.Bounded()).loss == ut.GDP(1)
    assert plan.loss(ut.Group(ut.Bounded(), 2)).loss == ut.GDP(2)


def test_trap_16_delta_is_not_linear_in_the_group_and_is_void_from_thirteen():
    assert group_approx(1, "1e-5", n=2).delta == pytest.approx(3.718281828459e-5)
    assert max_group_size(1, "1e-5") == 12
    one = ut.Plan(CITY, [release("r", ut.Approx(1, "1e-5"), unit=ut.Bounded())])
    assert not one.loss(ut.Group(ut.Bounded(), 12)).loss.no_guarantee
    with pytest.raises(InfiniteLossError):
        one.loss(ut.Group(ut.Bounded(), 13))
    report = one.loss(ut.Group(ut.Bounded(), 13), on_infinite="report")
    assert report.loss.no_guarantee
    assert any("delta has reached 1" in text for text in report.warnings)


@pytest.mark.parametrize("notion", [ut.GDP, ut.ZCDP, ut.Pure])
def test_trap_17_an_approximate_loss_is_not_converted_back(notion):
    with pytest.raises(AssumptionError, match="must be convertible"):
        ut.convert(ut.Approx(1, "1e-5"), notion)
    plan = ut.Plan(CITY, [release("r", ut.Approx(1, "1e-5"), unit=ut.Bounded())])
    with pytest.raises(NotionMismatchError):
        plan.loss(ut.Bounded(), notion=notion.notion)


def test_trap_18_minimum_privacy_is_closed_to_a_metric():
    points = np.array([0.0, 1.0, 11.0, 12.0])
    distances = np.abs(points[:, None] - points[None, :])
    labels = ["1", "2,3", "2,3", "4"]
    least = min_privacy(distances, labels)
    closed = quotient_metric(distances, labels)
    assert least[0, 3] == 12
    assert least[0, 3] > least[0, 1] + least[2, 3], "no triangle inequality"
    assert closed[0, 3] == 2
    with pytest.raises(NotionMismatchError):
        quotient_metric(distances, labels, notion="approx")


def test_trap_19_the_delta_of_a_view_comes_from_its_own_fibres():
    distance = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    delta = [[0, 0.5, 0.5], [0.5, 0, 0.0], [0.5, 0.0, 0]]
    found = minimum_privacy_approx(distance, delta, labels=["a", "b", "c"])
    assert found.delta[0, 1] == 0.5, "the 0 between b and c is no help to a"


def test_trap_19_best_bounds_need_compatibility():
    proof = Dependency(None, "construction", statement="each count gets its block")
    losses = [ut.Approx(1, "1e-5"), ut.ZCDP(1)]
    for loss in losses:
        with pytest.raises(IncompatiblePartitionError):
            best_common_bound([loss, loss], dependency=proof)


def test_trap_20_replacement_does_not_give_add_remove():
    factor = transfer_factor(ut.Bounded(), ut.Unbounded(), domain=CITY)
    assert factor.factor == math.inf
    assert {len(database) for database in factor.pair} == {0, 1}
    with pytest.raises(InfiniteLossError):
        transfer(ut.Pure(1), math.inf)
    whole = ut.Plan(CITY, [release("r", ut.Pure(1), unit=ut.Bounded())])
    with pytest.raises(InfiniteLossError):
        whole.loss(ut.Unbounded())
    assert districts("common").loss(ut.Unbounded()).loss == ut.Pure(1)


def test_trap_21_user_level_does_not_cover_windows_that_mix_users():
    stream = ut.Stream(1000, 24)
    assert transfer_factor(ut.User(), ut.WEvent(3), domain=stream).factor == 3
    single = ut.WEvent(3, single_user=True)
    assert transfer_factor(ut.User(), single, domain=stream).factor == 1
    model = ut.Plan(stream, [release("model", ut.Pure("0.5"), unit=ut.User())])
    assert model.loss(ut.WEvent(3)).loss == ut.Pure("1.5")
    assert model.loss(single).loss == ut.Pure("0.5")


def test_trap_22_a_unique_maximum_clique_is_not_a_unique_maximal_one():
    clique = {(i, j) for i in range(4) for j in range(i + 1, 4)}
    graph = clique | {(0, 4), (1, 4)}
    without = graph - {(0, 1)}
    assert unique_maximal_clique(graph, (0, 1)) is None
    assert clique_metric(graph, without, max_size=5) == ut.Pure(4)
    with pytest.raises(AssumptionError):
        clique_metric(graph, without, max_size=5, assume_unique_maximal=True)


def test_trap_23_post_processing_that_reads_the_data_again_is_a_release():
    assert after_post_processing(ut.Pure(1), reads_data=False) == ut.Pure(1)
    with pytest.raises(AssumptionError, match="must not read the data again"):
        after_post_processing(ut.Pure(1), reads_data=True)


def test_trap_24_one_block_alone_costs_its_own_loss():
    assert bounded_parallel([ut.Pure("0.7")], setting="common") == ut.Pure("0.7")
    assert bounded_parallel([], setting="common") == ut.Pure(0)
    alone = districts("common", budgets={"N": "0.7"})
    assert alone.loss(ut.Bounded()).loss == ut.Pure("0.7")


@pytest.mark.parametrize("accuracy", [laplace_accuracy, gaussian_accuracy])
def test_trap_25_vectors_have_a_larger_error_than_scalars(accuracy):
    assert accuracy(1, 0.05, k=10) == accuracy(1, 0.005) > accuracy(1, 0.05)


def test_trap_26_budgets_do_not_drift_and_losses_round_up():
    ledger = ut.Ledger(CITY, {ut.Unbounded(): ut.Pure("0.3")})
    for k in range(3):
        ledger.spend(release(f"r{k}", ut.Pure(0.1), unit=ut.Unbounded()))
    assert ledger.loss(ut.Unbounded()).loss == ut.Pure("0.3")
    assert 0.1 + 0.1 + 0.1 > 0.3
    third = ut.Pure("1/3")
    assert Fraction(third.epsilon) > Fraction(1, 3)
    assert repr(third) == "Pure(epsilon=0.333333333334)"


@pytest.mark.parametrize(
    "target", [ut.Event(), ut.WEvent(3), ut.LTrajectory(3)], ids=lambda g: g.name
)
def test_trap_27_units_of_one_person_are_presumed_independent_and_this_is_said(target):
    assert any("independent" in text for text in hourly().loss(target).warnings)
    assert hourly().loss(ut.User()).warnings == ()


def test_trap_28_no_free_lunch_loss_is_quoted_for_the_inner_mechanism():
    with pytest.raises(InfiniteLossError) as refusal:
        LaplaceMechanism(1).loss(DiscreteMetric())
    assert refusal.value.source == "thesis, Remark A.4"


def test_trap_29_replacing_a_capped_user_touches_twice_the_cap():
    plan = hourly()
    assert plan.loss(ut.User(max_times=4)).loss == ut.Pure("1.6")
    assert plan.loss(ut.User(max_times=4, add_remove=True)).loss == ut.Pure("1.2")
    losses = [ut.Pure(e) for e in ("0.6", "0.5", "0.3", "0.2")]
    twice = overlap_loss(
        losses, 2, target=ut.Bounded(), unit=ut.Unbounded(), setting="view"
    )
    assert twice == ut.Pure("2.2")


def test_trap_30_the_two_largest_rule_keeps_to_its_setting():
    with pytest.raises(InfiniteLossError):
        bounded_parallel([ut.Pure(e) for e in FOUR.values()], setting="view")
    unbounded = districts("view", unit=ut.Unbounded())
    assert unbounded.loss(ut.Bounded()).loss == ut.Pure(2)
    steep = districts(
        "view", unit=ut.Unbounded(), budgets={"N": "1", "S": "0.1", "E": "0.1"}
    )
    assert steep.loss(ut.Bounded()).loss == ut.Pure(2)
    assert steep.with_setting("common").loss(ut.Bounded()).loss == ut.Pure(2)


def test_trap_31_delta_is_not_read_at_fractional_distances():
    count = release(
        "count",
        ut.Approx(1, "1e-5"),
        unit=ut.AbsoluteDifference(),
        view=ut.Select("N", statistic="count"),
    )
    with pytest.raises(AssumptionError, match="generated by neighbours"):
        ut.Plan(CITY, [count]).loss(ut.Bounded())
    with pytest.raises(ValueError, match="n must be"):
        group_approx(1, "1e-5", n=1.5)


def test_trap_32_closed_forms_are_not_used_on_restricted_classes():
    pair = frozenset({(0, 1), (2, 3)}), frozenset({(0, 2), (1, 3)})
    assert ut.Node().distance(*pair, ut.Graph(4)) == 2
    assert ut.Node().distance(*pair, ut.Graph(4, max_degree=1)) == 3
    day = ut.Stream(1, 3, clusters={"a": "A", "b": "B"})
    assert ut.Element().distance((("a", "b", None),), (("b", "a", None),), day) == 3
