"""Sequential composition as the yardstick."""

from __future__ import annotations

import pytest

import undertow as ut

HOURS = ut.Stream(1000, 24)


def sequential(plan, target):
    return plan.loss(target, on_infinite="report").sequential


@pytest.mark.parametrize(
    ("loss", "target", "expected"),
    [
        (ut.Pure("0.1"), ut.Event(), ut.Pure("2.4")),
        (ut.GDP("0.1"), ut.WEvent(3), ut.GDP.from_square("0.24")),
        (ut.ZCDP("0.1"), ut.User(), ut.ZCDP("2.4")),
        (ut.Approx("0.1", "1e-6"), ut.User(), ut.Approx("2.4", "2.4e-5")),
    ],
    ids=lambda item: getattr(item, "notion", getattr(item, "name", "")),
)
def test_each_release_pays_its_own_worst_case(loss, target, expected):
    plan = ut.Plan(HOURS)
    plan.add_each(loss, unit=ut.Event(), setting="view")
    assert sequential(plan, target) == expected


def test_the_baseline_is_never_below_the_composed_loss():
    windows = ut.Plan(
        HOURS,
        [
            ut.Release(
                f"w{start}",
                ut.Pure("0.1"),
                unit=ut.Event(),
                view=ut.Window(start, 3),
                setting="view",
            )
            for start in range(22)
        ],
    )
    for target in (ut.Event(), ut.WEvent(3), ut.LTrajectory(3), ut.User()):
        report = windows.loss(target)
        assert report.loss.within(report.sequential)
    assert sequential(windows, ut.WEvent(3)) == ut.Pure("6.6")


def test_several_claims_count_once_each_at_their_cheapest():
    claims = (
        ut.Claim(ut.Pure(1), ut.Unbounded(), "common"),
        ut.Claim(ut.Pure(1), ut.Bounded(), "common"),
    )
    plan = ut.Plan(
        ut.Table(("a", "b")),
        [ut.Release.with_claims(c, claims, view=ut.Select(c)) for c in ("a", "b")],
    )
    assert sequential(plan, ut.Bounded()) == ut.Pure(2)
    assert sequential(plan, ut.Unbounded()) == ut.Pure(2)
