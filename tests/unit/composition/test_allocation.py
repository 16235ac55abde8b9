"""Splitting a budget."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import undertow as ut
from undertow.errors import InfiniteLossError, NotionMismatchError, PlanError


def regions(number=10, *, loss=None, setting="common", unit=None):
    plan = ut.Plan(ut.Table(range(number), cell="region"))
    plan.add_each(
        ut.Pure(1) if loss is None else loss,
        unit=ut.Bounded() if unit is None else unit,
        setting=setting,
    )
    return plan


def composed(plan, target, allocation):
    releases = [
        ut.Release.with_claims(
            r.name,
            [ut.Claim(allocation.losses[r.name], c.unit, c.setting) for c in r.claims],
            view=r.view,
        )
        for r in plan.releases
    ]
    return ut.Plan(plan.domain, releases).loss(target).loss


def test_weights_give_important_releases_less_noise():
    plan = regions(3)
    equal = ut.allocate(plan, ut.Bounded(), total=ut.Pure(1))
    weighted = ut.allocate(
        plan, ut.Bounded(), total=ut.Pure(1), weights={"region 0": 100.0}
    )
    assert weighted.scales["region 0"] < equal.scales["region 0"]
    assert weighted.scales["region 1"] > equal.scales["region 1"]
    assert composed(plan, ut.Bounded(), weighted).within(ut.Pure(1))


@pytest.mark.parametrize("total", [ut.Pure(1), ut.ZCDP("0.3"), ut.GDP("1.7")])
def test_the_allocation_composes_to_at_most_the_total(total):
    plan = regions(5)
    allocation = ut.allocate(
        plan, ut.Bounded(), total=total, weights={"region 2": 7.0, "region 4": 0.3}
    )
    assert composed(plan, ut.Bounded(), allocation).within(total)
    assert allocation.gap < 1e-5


def test_one_release_gets_everything():
    allocation = ut.allocate(regions(1), ut.Bounded(), total=ut.Pure("0.4"))
    assert allocation.losses == {"region 0": ut.Pure("0.4")}
    assert allocation.scales == {"region 0": 2.5}
    assert allocation.total_variance == pytest.approx(12.5)


def test_a_release_no_change_touches_may_be_published_as_it_is():
    plan = regions(2)
    plan.add(
        ut.Release(
            "size",
            ut.Pure(1),
            unit=ut.AbsoluteDifference(),
            view=ut.Select(0, 1, statistic="count"),
            setting="view",
        )
    )
    allocation = ut.allocate(plan, ut.Bounded(), total=ut.Pure(1))
    assert allocation.untouched == ("size",)
    assert allocation.losses["size"].is_infinite
    assert allocation.scales["size"] == 0
    assert allocation.losses["region 0"] == ut.Pure("0.5")


def test_a_plan_no_change_touches_needs_no_noise():
    plan = ut.Plan(
        ut.Table((0, 1)),
        [
            ut.Release(
                "size",
                ut.Pure(1),
                unit=ut.AbsoluteDifference(),
                view=ut.Select(0, 1, statistic="count"),
                setting="view",
            )
        ],
    )
    allocation = ut.allocate(plan, ut.Bounded(), total=ut.Pure(1))
    assert allocation.untouched == ("size",)
    assert allocation.total_variance == 0


def test_scales_are_rounded_up():
    allocation = ut.allocate(regions(3), ut.Unbounded(), total=ut.Pure(3))
    for scale in allocation.scales.values():
        assert Fraction(scale) * 3 >= 1


def test_the_record_is_plain():
    record = ut.allocate(regions(2), ut.Bounded(), total=ut.GDP(1)).to_dict()
    json.dumps(record, allow_nan=False)
    assert set(record) == {"losses", "scales", "total_variance", "gap", "untouched"}


@pytest.mark.parametrize(
    ("change", "fault", "message"),
    [
        ({"total": ut.Approx(1, 0)}, NotionMismatchError, "total must be"),
        ({"total": ut.Pure("inf")}, NotionMismatchError, "total must be"),
        ({"total": ut.Pure(0)}, ValueError, "total must be"),
        ({"weights": {"x": 1.0}}, ValueError, "weights must name releases, got 'x'"),
        ({"weights": {"region 0": 0.0}}, ValueError, "positive and finite"),
        ({"minimise": "regret"}, ValueError, "minimise must be one of"),
    ],
)
def test_wrong_wishes_are_refused(change, fault, message):
    with pytest.raises(fault, match=message):
        ut.allocate(regions(2), ut.Bounded(), **({"total": ut.Pure(1)} | change))


def test_repeated_names_cannot_be_allocated():
    plan = regions(2)
    plan.add(plan.releases[0])
    with pytest.raises(ValueError, match="different names"):
        ut.allocate(plan, ut.Bounded(), total=ut.Pure(1))


def test_an_empty_plan_cannot_be_allocated():
    with pytest.raises(PlanError):
        ut.allocate(ut.Plan(ut.Table((0,))), ut.Bounded(), total=ut.Pure(1))


def test_infinite_reach_is_refused_with_its_change():
    with pytest.raises(InfiniteLossError, match="whatever its budget") as caught:
        ut.allocate(regions(2, setting="view"), ut.Bounded(), total=ut.Pure(1))
    assert caught.value.witness is not None
