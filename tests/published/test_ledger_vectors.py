"""Worked examples of the ledger, the stream budget and the allocation."""

from __future__ import annotations

from fractions import Fraction

import pytest

import undertow as ut
from undertow.errors import BudgetExceeded
from undertow.mechanisms import GaussianMechanism


def release(name, loss, *, unit, view=None, setting="view"):
    view = ut.Identity() if view is None else view
    return ut.Release(name, loss, unit=unit, view=view, setting=setting)


def test_T_1_2_three_tenths_exhaust_three_tenths_exactly():
    ledger = ut.Ledger(ut.Table(("a", "b")), {ut.Unbounded(): ut.Pure("0.3")})
    for at in range(3):
        ledger.spend(release(f"r{at}", ut.Pure("0.1"), unit=ut.Unbounded()))
    room = ledger.remaining(
        ut.Unbounded(), view=ut.Identity(), unit=ut.Unbounded(), setting="view"
    )
    assert room == ut.Pure(0)
    for amount in ("1e-300", "0.1"):
        with pytest.raises(BudgetExceeded):
            ledger.spend(release("more", ut.Pure(amount), unit=ut.Unbounded()))
    ledger.spend(release("nothing", ut.Pure(0), unit=ut.Unbounded()))


def test_T_1_2_floats_are_read_as_the_decimals_their_author_wrote():
    ledger = ut.Ledger(ut.Table(("a", "b")), {ut.Unbounded(): ut.Pure(0.3)})
    for at in range(3):
        ledger.spend(release(f"r{at}", ut.Pure(0.1), unit=ut.Unbounded()))
    assert ledger.loss(ut.Unbounded()).loss == ut.Pure("0.3")


def test_T_14_1_adaptive_exploration_of_roads():
    unit = ut.Unbounded()
    ledger = ut.Ledger(ut.Table(("A", "B", "C", "D")), {unit: ut.Pure(1)})

    def count(road, epsilon):
        view = ut.Select(road)
        return release(f"count {road}", ut.Pure(epsilon), unit=unit, view=view)

    ledger.spend(release("noisy max", ut.Pure("0.5"), unit=unit))
    ledger.spend(count("A", "0.5"))
    assert ledger.loss(unit).loss == ut.Pure(1)
    ledger.spend(count("B", "0.5"))
    report = ledger.loss(unit)
    assert report.loss == ut.Pure(1)
    assert report.sequential == ut.Pure("1.5")
    assert ledger.loss(ut.Bounded()).loss == ut.Pure(2)
    with pytest.raises(BudgetExceeded):
        ledger.spend(count("A", "0.1"))
    ledger.spend(count("C", "0.5"))
    assert ledger.loss(unit).loss == ut.Pure(1)


def test_T_14_2_stream_budget_over_windows_of_three():
    ledger = ut.WindowLedger(3, ut.Pure("0.7"))
    for epsilon in ("0.1", "0.1", "0.5"):
        ledger.spend(ut.Pure(epsilon))
        ledger.advance()
    with pytest.raises(BudgetExceeded):
        ledger.spend(ut.Pure("0.2"))
    for epsilon in ("0.1", "0.1", "0.5"):
        ledger.spend(ut.Pure(epsilon))
        assert ledger.loss() == ut.Pure("0.7")
        ledger.advance()


@pytest.fixture
def mixed_ledger():
    ledger = ut.Ledger(
        ut.Stream(1000, 24),
        {
            ut.User(): ut.Pure(6),
            ut.WEvent(3): ut.Pure("2.5"),
            ut.Event(): ut.Pure(1),
        },
    )
    ledger.spend(release("model", ut.Pure("0.5"), unit=ut.User()))
    ledger.spend(release("traffic", ut.Pure("0.1"), unit=ut.Event()))
    ledger.spend(release("alerts", ut.Pure("0.3"), unit=ut.WEvent(3)))
    return ledger


@pytest.mark.parametrize(
    ("target", "epsilon"),
    [
        pytest.param(ut.Event(), "0.9", id="story 4, event"),
        pytest.param(ut.WEvent(3), "2.1", id="story 4, w-event"),
        pytest.param(ut.User(), "5.3", id="story 4, user"),
        pytest.param(ut.WEvent(3, single_user=True), "1.1", id="story 4, single user"),
    ],
)
def test_story_4_one_ledger_at_several_granularities(mixed_ledger, target, epsilon):
    assert mixed_ledger.loss(target).loss == ut.Pure(epsilon)


def test_story_4_a_quote_and_its_refusal(mixed_ledger):
    more = release("x", ut.Pure("0.1"), unit=ut.Event())
    assert mixed_ledger.quote(more) == {
        ut.Event(): ut.Pure("1.0"),
        ut.WEvent(3): ut.Pure("2.4"),
        ut.User(): ut.Pure("7.7"),
    }
    before = mixed_ledger.to_json()
    with pytest.raises(BudgetExceeded, match=r"user: Pure\(epsilon=7\.7\) > .*=6"):
        mixed_ledger.spend(more)
    assert mixed_ledger.to_json() == before


def regions(loss=None):
    plan = ut.Plan(ut.Table(range(10), cell="region"))
    loss = ut.Pure(1) if loss is None else loss
    plan.add_each(loss, unit=ut.Bounded(), setting="common")
    return plan


def hours():
    plan = ut.Plan(ut.Stream(1000, 24))
    plan.add_each(ut.Pure(1), unit=ut.Event(), setting="view")
    return plan


@pytest.mark.parametrize(
    ("target", "epsilon", "scale"),
    [
        pytest.param(ut.Bounded(), "0.5", 2, id="story 10, bounded"),
        pytest.param(ut.Unbounded(), "1", 1, id="story 10, unbounded"),
    ],
)
def test_story_10_ten_regions(target, epsilon, scale):
    allocation = ut.allocate(regions(), target, total=ut.Pure(1))
    assert set(allocation.losses.values()) == {ut.Pure(epsilon)}
    assert set(allocation.scales.values()) == {scale}


def test_story_10_without_views_every_region_gets_a_tenth():
    plan = ut.Plan(
        ut.Table(range(10)),
        [release(f"r{at}", ut.Pure(1), unit=ut.Bounded()) for at in range(10)],
    )
    allocation = ut.allocate(plan, ut.Bounded(), total=ut.Pure(1))
    assert set(allocation.losses.values()) == {ut.Pure("0.1")}
    assert set(allocation.scales.values()) == {10}


@pytest.mark.parametrize(
    ("target", "share", "variance"),
    [
        pytest.param(ut.WEvent(3), Fraction(1, 3), 24 * 18, id="story 10, w-event"),
        pytest.param(ut.User(), Fraction(1, 24), 24 * 2 * 24**2, id="story 10, user"),
    ],
)
def test_story_10_twenty_four_hours(target, share, variance):
    allocation = ut.allocate(hours(), target, total=ut.Pure(1))
    for loss in allocation.losses.values():
        assert float(loss.exact_parameters()[0]) == pytest.approx(share, rel=1e-6)
    assert allocation.total_variance == pytest.approx(variance, rel=1e-9)


def test_story_10_gaussian_regions():
    allocation = ut.allocate(regions(ut.GDP(1)), ut.Bounded(), total=ut.GDP(1))
    for loss in allocation.losses.values():
        assert loss.mu == pytest.approx(0.7071067811865475, rel=1e-12)
    for scale in allocation.scales.values():
        assert scale == pytest.approx(1.4142135623730951, rel=1e-12)


def test_story_6_two_regions_cost_the_square_root_of_two():
    counts = [
        ut.count_release(f"n{cell}", GaussianMechanism(1), cells=cell)
        for cell in range(10)
    ]
    plan = ut.Plan(ut.Table(range(10)), counts)
    assert plan.records_loss({0: 1, 1: 1}) == ut.GDP.from_square(2)
    assert plan.loss(ut.Bounded()).to_approx("1e-5").epsilon == pytest.approx(
        6.572970, abs=1e-6
    )
