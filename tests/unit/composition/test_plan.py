"""Plans: what is added, what it costs, and what is refused."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.errors import (
    InfiniteLossError,
    MismatchError,
    NotionMismatchError,
    PlanError,
    VacuousGranularityError,
)
from undertow.spaces.unit import Local

CITY = ut.Table(("N", "S", "E", "W"), cell="district")
BUDGETS = {"N": "0.5", "S": "1.0", "E": "0.3", "W": "0.8"}


def city(setting="common", *, domain=CITY, unit=None, losses=ut.Pure):
    unit = ut.Bounded() if unit is None else unit
    return ut.Plan(
        domain,
        [
            ut.Release(c, losses(e), unit=unit, view=ut.Select(c), setting=setting)
            for c, e in BUDGETS.items()
        ],
    )


def test_a_plan_keeps_its_releases_in_order():
    plan = city()
    assert len(plan) == 4
    assert [release.name for release in plan.releases] == list(BUDGETS)
    assert plan.domain == CITY


def test_a_view_must_fit_the_domain_when_it_is_added():
    plan = city()
    stray = ut.Release(
        "x", ut.Pure(1), unit=ut.Bounded(), view=ut.Select("X"), setting="view"
    )
    with pytest.raises(ValueError, match="cells must be cells of the table"):
        plan.add(stray)
    assert len(plan) == 4


@pytest.mark.parametrize("wrong", [None, "x", ut.Pure(1)])
def test_only_domains_and_releases_make_a_plan(wrong):
    with pytest.raises(TypeError, match="domain must be a Domain"):
        ut.Plan(wrong)
    with pytest.raises(TypeError, match="release must be a Release"):
        city().add(wrong)


def test_an_empty_plan_has_no_loss():
    with pytest.raises(PlanError, match="at least one release"):
        ut.Plan(CITY).loss(ut.Bounded())


def test_moves_have_their_own_price():
    plan = city()
    assert plan.move_cost("N", "E") == ut.Pure("0.8")
    assert plan.move_cost("N", "N") == ut.Pure("0.5")
    assert plan.move_cost("S", "W") == plan.loss(ut.Bounded()).loss


def test_moves_need_a_table():
    plan = ut.Plan(ut.Stream(2, 3))
    plan.add_each(ut.Pure(1), unit=ut.Event(), setting="view")
    with pytest.raises(MismatchError, match="moves between cells need a table"):
        plan.move_cost(0, 1)


def test_records_are_priced_cell_by_cell():
    plan = city("view", unit=ut.Unbounded(), losses=ut.GDP)
    assert plan.records_loss({"N": -1, "S": 2}) == ut.GDP.from_square("4.25")
    assert plan.records_loss({}) == ut.GDP(0)


def test_infinite_losses_raise_unless_a_report_is_wanted():
    plan = city("view")
    with pytest.raises(InfiniteLossError):
        plan.loss(ut.Bounded())
    assert plan.loss(ut.Bounded(), on_infinite="report").loss.is_infinite
    with pytest.raises(ValueError, match="on_infinite must be one of"):
        plan.loss(ut.Bounded(), on_infinite="ignore")


def test_with_setting_restates_every_claim_and_nothing_else():
    plan = city("view")
    common = plan.with_setting("common")
    assert common.loss(ut.Bounded()).loss == ut.Pure("1.8")
    assert {r.setting for r in plan.releases} == {"view"}
    assert [r.loss for r in common.releases] == [r.loss for r in plan.releases]
    assert common.with_setting("view").releases == plan.releases


def test_with_setting_refuses_another_setting_even_on_an_empty_plan():
    with pytest.raises(ValueError, match="setting must be one of"):
        ut.Plan(CITY).with_setting("both")


def test_followed_by_leaves_the_plan_alone():
    plan = city()
    longer = plan.followed_by(plan.releases[0])
    assert (len(plan), len(longer)) == (4, 5)
    assert longer.releases[-1] == plan.releases[0]


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "a", "a #1"), ("a #2", "a", "a", "a #3", "a #3'")]
)
def test_repeated_names_are_numbered_and_no_contribution_is_lost(names):
    plan = ut.Plan(
        ut.Table(("x",)),
        [
            ut.Release(
                name,
                ut.Pure(1),
                unit=ut.Unbounded(),
                view=ut.Identity(),
                setting="view",
            )
            for name in names
        ],
    )
    report = plan.loss(ut.Unbounded())
    assert len(report.contributions) == len(names)
    assert report.loss == ut.Pure(len(names))


def test_contributions_add_up_to_the_loss_at_the_witness():
    report = city().loss(ut.Bounded())
    assert report.contributions == {"S": ut.Pure(1), "W": ut.Pure("0.8")}
    assert report.witness.details["example"] == (("S", "S", "S"), ("S", "S", "W"))


def test_add_each_takes_every_cell_time_or_vertex():
    for domain, number in (
        (CITY, 4),
        (ut.Stream(5, 7), 7),
        (ut.Graph(6), 6),
    ):
        plan = ut.Plan(domain)
        plan.add_each(ut.Pure(1), unit=ut.FreeLunch(), setting="common")
        assert len(plan) == number


def test_loss_at_distance_keeps_the_distance_of_each_view():
    plan = ut.Plan(ut.Table(range(20), cell="hospital", multi=True, max_cells=3))
    plan.add_each(ut.Approx(1, "1e-5"), unit=ut.Bounded(), setting="common")
    two = plan.loss_at_distance(2, target=ut.Bounded()).loss
    assert two.epsilon == 12
    assert two.delta == pytest.approx(2.230969097e-4, rel=1e-9)
    assert plan.loss_at_distance(1, target=ut.Bounded()).loss == ut.Approx(6, "6e-5")
    with pytest.raises(ValueError, match="distance must be a whole number"):
        plan.loss_at_distance(0, target=ut.Bounded())


@pytest.mark.parametrize("delta", ["nan", "2", "-1", "x"])
def test_a_wrong_delta_is_refused_even_where_it_is_not_needed(delta):
    with pytest.raises(ValueError, match="delta must be"):
        city().loss(ut.Bounded(), delta=delta)


def test_losses_of_different_notions_need_a_delta_to_meet():
    plan = city(losses=lambda e: ut.GDP(e) if e != "1.0" else ut.Approx(1, "1e-6"))
    with pytest.raises(NotionMismatchError, match="delta must be given"):
        plan.loss(ut.Bounded())
    report = plan.loss(ut.Bounded(), delta="1e-5")
    assert isinstance(report.loss, ut.Approx)
    assert report.loss.delta == pytest.approx(1.1e-5)


def test_a_granularity_without_neighbours_is_refused():
    fixed = ut.Table(("N", "S", "E", "W"), size=5)
    with pytest.raises(VacuousGranularityError):
        city(domain=fixed).loss(ut.Unbounded())


def test_a_granularity_of_another_domain_is_refused():
    with pytest.raises(MismatchError, match="domain must be of kind"):
        city().loss(ut.Event())


def test_table_reports_every_granularity_in_order():
    targets = [ut.Bounded(), ut.Unbounded(), ut.Edit()]
    reports = city().table(targets)
    assert [r.granularity for r in reports] == ["bounded", "unbounded", "edit"]
    assert [r.loss for r in reports] == [ut.Pure("1.8"), ut.Pure(1), ut.Pure("1.8")]


@pytest.mark.parametrize("setting", ["view", "common"])
@pytest.mark.parametrize(
    ("domain", "view"),
    [
        (ut.Table(("a", "b"), values_per_cell=2, max_size=2), ut.Select("a")),
        (ut.Table(("a", "b"), values_per_cell=2, size=1), ut.Select("a")),
        (ut.Rows(3, values=(0, 1)), ut.Ids([0])),
        (ut.Rows(3, values=(0, 1)), ut.Ids([0, 1])),
        (ut.Rows(3, values=(0, 1)), ut.Identity()),
        (ut.Stream(2, 2, values=(0, 1)), ut.At(0)),
        (ut.Stream(1, 2, values=(0, 1)), ut.At(0)),
        (ut.Graph(3), ut.Degree(0)),
        (ut.Graph(3), ut.IncidentEdges(0)),
    ],
)
@pytest.mark.parametrize("wrap", [lambda unit: unit, lambda unit: ut.Group(unit, 2)])
def test_a_local_claim_is_accepted_or_refused_whatever_the_target(
    domain, view, setting, wrap
):
    plan = ut.Plan(
        domain,
        [ut.Release("r", ut.Pure(1), unit=wrap(Local()), view=view, setting=setting)],
    )
    units = (ut.Bounded(), ut.Edit(), ut.BoundedById(), ut.User(), ut.Event())
    refused, accepted = 0, 0
    for base in (*units, ut.Unbounded(), ut.Edge(), ut.Node(), ut.FreeLunch()):
        for target in (base, ut.Group(base, 2)):
            try:
                target.require_domain(domain)
                plan.loss(target)
            except MismatchError as fault:
                refused += "data of one person" in str(fault)
            except VacuousGranularityError:
                continue
            else:
                accepted += 1
    assert refused + accepted > 1
    assert 0 in (refused, accepted)


@pytest.mark.parametrize(
    ("domain", "cell", "told"),
    [
        (ut.Table(("N", "S")), "W", "has the cells N, S"),
        (ut.Table(attributes=("age", "zip")), "age", "age is a column and no cell"),
        (ut.Table(attributes=("age", "zip")), "W", r"has no cells: .* Project"),
        (ut.Table(), "W", "has no cells"),
    ],
)
def test_a_view_of_cells_that_are_none_says_what_the_table_has(domain, cell, told):
    release = ut.Release(
        "r", ut.Pure(1), unit=ut.Bounded(), view=ut.Select(cell), setting="common"
    )
    with pytest.raises(ValueError, match=told):
        ut.Plan(domain, [release])
