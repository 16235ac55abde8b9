"""Sums of charges: what is added, what is counted, what is left out."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.composition import Claim
from undertow.errors import LedgerError, NotionMismatchError
from undertow.ledger import LeakageBudget
from undertow.ledger._book import Tally, TimeIndex, reach_of
from undertow.ledger.record import read_entry

DAY = ut.Stream(1000, 24)


def release(loss, view, *, unit=None):
    return ut.Release("r", loss, unit=unit or ut.User(), view=view, setting="view")


def test_losses_of_one_view_are_added():
    tally = Tally(DAY, "pure")
    tally.add([release(ut.Pure("0.1"), ut.At(1)) for _ in range(10)])
    assert len(tally) == 1
    assert tally.loss(ut.User()) == ut.Pure(1)


def test_approximate_losses_of_one_view_are_counted_not_added():
    tally = Tally(DAY, "approx")
    loss = ut.Approx("0.1", "1e-6")
    several = [release(loss, ut.At(1)) for _ in range(5)]
    tally.add(several)
    assert len(tally) == 1
    plan = ut.Plan(DAY, several)
    target = ut.Group(ut.User(), 2)
    assert tally.loss(target) == plan.evaluate(target, notion="approx").loss


def test_releases_whose_claims_are_not_in_proportion_stay_apart():
    def two(first, second):
        claims = [
            Claim(ut.Pure(first), ut.User(), "view"),
            Claim(ut.Pure(second), ut.Event(), "view"),
        ]
        return ut.Release.with_claims("r", claims, view=ut.At(1))

    tally = Tally(DAY, "pure")
    tally.add([two("0.1", "0.2"), two("0.2", "0.4"), two("0.2", "0.1"), two(0, 1)])
    assert len(tally) == 3


def test_nothing_costs_nothing():
    for notion, zero in [("pure", ut.Pure(0)), ("approx", ut.Approx(0, 0))]:
        assert Tally(DAY, notion).loss(ut.User()) == zero


@pytest.mark.parametrize("loss", [0, "inf"])
def test_constant_and_raw_releases_are_priced(loss):
    tally = Tally(DAY, "pure")
    tally.add([release(ut.Pure(loss), ut.At(1))])
    assert tally.loss(ut.User()) == ut.Pure(loss)


def test_a_release_without_a_usable_claim_is_refused_and_leaves_no_trace():
    tally = Tally(DAY, "pure")
    with pytest.raises(NotionMismatchError):
        tally.add([release(ut.Pure(1), ut.At(1)), release(ut.GDP(1), ut.At(1))])
    assert len(tally) == 0


def test_far_charges_do_not_make_a_charge_dearer():
    tally = Tally(DAY, "pure")
    for at in range(20):
        tally.add([release(ut.Pure("0.1"), ut.At(at), unit=ut.Event())])
        assert tally.loss(ut.WEvent(3)) == ut.Pure(f"{min(at + 1, 3)}/10")


def test_a_release_with_two_claims_does_not_bring_far_charges_back(monkeypatch):
    claims = [
        Claim(ut.Pure(1), ut.User(), "view"),
        Claim(ut.Pure(1), ut.Event(), "view"),
    ]
    tally = Tally(DAY, "pure")
    tally.add([ut.Release.with_claims("whole", claims, view=ut.Identity())])
    for at in range(20):
        tally.add([release(ut.Pure("0.1"), ut.At(at), unit=ut.Event())])
    tally.loss(ut.Event())
    seen = []
    compose = Tally._compose
    monkeypatch.setattr(
        Tally, "_compose", lambda s, t, i: seen.append(len(i)) or compose(s, t, i)
    )
    tally.loss(ut.Event(), extra=[release(ut.Pure("0.1"), ut.At(3), unit=ut.Event())])
    assert max(seen) == 2


def test_the_reach_of_a_change():
    assert [reach_of(g) for g in (ut.Event(), ut.WEvent(5), ut.User())] == [1, 5, None]


def test_near_keys_are_those_within_reach_and_those_everywhere():
    index = TimeIndex()
    for at in range(10):
        index.add(at, ut.At(at))
    index.add("all", ut.Identity())
    index.add("window", ut.Window(7, 2))
    assert index.near([ut.At(5)], reach=1) == {5, "all"}
    assert index.near([ut.At(5)], reach=3) == {3, 4, 5, 6, 7, "all", "window"}
    assert index.near([ut.Times([0, 9])], reach=100) == {*range(10), "all", "window"}
    assert index.near([ut.At(1), ut.Identity()], reach=1) is None


def test_a_text_that_is_no_entry_is_refused():
    for text in ("", "[]", "{}", "nonsense"):
        with pytest.raises(LedgerError, match="as the ledger wrote it"):
            read_entry(text)


def test_a_leakage_budget_needs_a_granularity():
    with pytest.raises(TypeError, match="granularity must be a Granularity"):
        LeakageBudget(1, 1, "user", "theorem")
