"""The ledger: spending, refusing, head-room, and its text form."""

from __future__ import annotations

import json

import pytest

import undertow as ut
from undertow.errors import (
    BudgetExceeded,
    InfiniteLossError,
    MismatchError,
    NotionMismatchError,
    PlanError,
)

ROADS = ut.Table(("A", "B", "C"))


def count(road, loss, *, unit=None, setting="view"):
    return ut.Release(
        f"count {road}",
        loss if isinstance(loss, ut.Loss) else ut.Pure(loss),
        unit=ut.Unbounded() if unit is None else unit,
        view=ut.Select(road),
        setting=setting,
    )


def roads(budget="1"):
    return ut.Ledger(ROADS, {ut.Unbounded(): ut.Pure(budget)})


def test_a_receipt_tells_place_name_losses_and_hash():
    ledger = roads()
    first = ledger.spend(count("A", "0.5"))
    second = ledger.spend(count("B", "0.25"))
    assert (first.index, second.index) == (0, 1)
    assert second.release == "count B"
    assert second.losses == {"unbounded": ut.Pure("0.5")}
    assert first.hash != second.hash
    assert len(first.hash) == 64


def test_a_refusal_names_the_budget_and_changes_nothing():
    ledger = roads()
    ledger.spend(count("A", "0.75"))
    before = ledger.to_json()
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend(count("A", "0.5"))
    assert "unbounded: Pure(epsilon=1.25) > Pure(epsilon=1)" in str(caught.value)
    assert caught.value.witness["unbounded"] == (ut.Pure("1.25"), ut.Pure(1))
    assert ledger.to_json() == before


def test_a_quote_changes_nothing():
    ledger = roads()
    before = ledger.to_json()
    assert ledger.quote(count("A", 5)) == {ut.Unbounded(): ut.Pure(5)}
    assert ledger.to_json() == before


def test_a_view_that_does_not_fit_changes_nothing():
    ledger = roads()
    with pytest.raises(ValueError, match="cells of the table"):
        ledger.spend(count("X", "0.5"))
    assert ledger.releases == ()


@pytest.mark.parametrize(
    ("budgets", "fault", "message"),
    [
        ({}, ValueError, "at least one granularity"),
        ({"user": ut.Pure(1)}, TypeError, "keyed by granularities"),
        ({ut.Unbounded(): 1}, TypeError, "must be a loss such as"),
        ({ut.Event(): ut.Pure(1)}, MismatchError, "must be of kind"),
    ],
)
def test_wrong_budgets_are_refused(budgets, fault, message):
    with pytest.raises(fault, match=message):
        ut.Ledger(ROADS, budgets)


def test_an_empty_ledger_has_lost_nothing_in_the_notion_of_its_budget():
    ledger = ut.Ledger(ROADS, {ut.Unbounded(): ut.GDP(1)})
    assert ledger.loss(ut.Unbounded()).loss == ut.GDP(0)
    assert ledger.loss(ut.Bounded()).loss == ut.Pure(0)


def test_losses_can_be_asked_where_there_is_no_budget():
    ledger = roads()
    ledger.spend(count("A", "0.5"))
    assert ledger.loss(ut.Bounded()).loss == ut.Pure(1)


def test_budgets_of_several_notions_hold_together():
    ledger = ut.Ledger(
        ROADS, {ut.Unbounded(): ut.Pure(1), ut.Bounded(): ut.ZCDP("0.6")}
    )
    after = ledger.quote(count("A", "0.5"))
    assert after == {ut.Unbounded(): ut.Pure("0.5"), ut.Bounded(): ut.ZCDP("0.5")}
    ledger.spend(count("A", "0.5"))
    with pytest.raises(BudgetExceeded, match="bounded: ZCDP"):
        ledger.spend(count("A", "0.5"))


def test_a_loss_that_cannot_be_stated_in_a_budget_is_refused_and_changes_nothing():
    ledger = roads()
    with pytest.raises(NotionMismatchError):
        ledger.spend(count("A", ut.GDP(1)))
    assert ledger.releases == ()
    approx = ut.Ledger(ROADS, {ut.Unbounded(): ut.Approx(1, "1e-5")})
    approx.spend(count("A", ut.Approx("0.5", "1e-6")))
    approx.spend(count("A", "0.5"))
    with pytest.raises(BudgetExceeded):
        approx.spend(count("A", ut.Approx(0, "1e-5")))
    with pytest.raises(NotionMismatchError):
        approx.spend(count("A", ut.GDP("0.1")))


class TestRemaining:
    def ask(self, ledger, road, **rest):
        options = {"unit": ut.Unbounded(), "setting": "view"} | rest
        return ledger.remaining(ut.Unbounded(), view=ut.Select(road), **options)

    def test_untouched_views_keep_their_head_room(self):
        ledger = roads()
        ledger.spend(count("A", "0.7"))
        assert self.ask(ledger, "A") == ut.Pure("0.3")
        assert self.ask(ledger, "B") == ut.Pure(1)

    def test_exhausted_views_have_none(self):
        ledger = roads("0.7")
        ledger.spend(count("A", "0.7"))
        assert self.ask(ledger, "A") == ut.Pure(0)

    def test_squares_remain_for_gaussian_budgets(self):
        ledger = ut.Ledger(ROADS, {ut.Unbounded(): ut.GDP(1)})
        ledger.spend(count("A", ut.GDP("0.6")))
        assert self.ask(ledger, "A") == ut.GDP("0.8")

    def test_a_view_no_change_touches_may_have_everything(self):
        ledger = ut.Ledger(ROADS, {ut.Bounded(): ut.Pure(1)})
        whole = ut.Select("A", "B", "C", statistic="count")
        room = ledger.remaining(
            ut.Bounded(), view=whole, unit=ut.AbsoluteDifference(), setting="view"
        )
        assert room == ut.Pure("inf")

    def test_an_infinite_budget_leaves_everything(self):
        assert self.ask(roads("inf"), "A") == ut.Pure("inf")

    def test_where_not_even_zero_fits_it_is_refused(self):
        with pytest.raises(InfiniteLossError, match="whatever its loss"):
            self.ask(roads(), "A", unit=ut.Bounded())
        with pytest.raises(BudgetExceeded):
            roads().spend(count("A", 0, unit=ut.Bounded()))

    def test_it_is_asked_of_a_budget_in_one_parameter(self):
        with pytest.raises(MismatchError, match="must have a budget"):
            roads().remaining(
                ut.Bounded(), view=ut.Select("A"), unit=ut.Bounded(), setting="view"
            )
        ledger = ut.Ledger(ROADS, {ut.Unbounded(): ut.Approx(1, 0)})
        with pytest.raises(NotionMismatchError, match="use quote"):
            self.ask(ledger, "A")


class TestText:
    def ledger(self):
        ledger = ut.Ledger(
            ROADS, {ut.Unbounded(): ut.GDP(2), ut.Bounded(): ut.Approx(9, "0.1")}
        )
        ledger.spend(count("A", "1/3"))
        ledger.spend(count("B", ut.Pure("0.1")))
        return ledger

    def test_it_reads_back_and_goes_on(self):
        ledger = self.ledger()
        again = ut.Ledger.from_json(ledger.to_json())
        assert again.releases == ledger.releases
        assert again.budgets == ledger.budgets
        assert again.domain == ledger.domain
        assert again.to_json() == ledger.to_json()
        assert again.spend(count("C", "1")).hash == ledger.spend(count("C", "1")).hash

    def test_an_empty_ledger_reads_back(self):
        empty = roads()
        assert ut.Ledger.from_json(empty.to_json()).to_json() == empty.to_json()

    def test_irrational_and_infinite_gaussian_losses_are_written_exactly(self):
        ledger = ut.Ledger(ROADS, {ut.Unbounded(): ut.GDP("inf")})
        ledger.spend(count("A", ut.GDP.from_square("1/2")))
        ledger.spend(count("A", ut.GDP("inf")))
        again = ut.Ledger.from_json(ledger.to_json())
        assert [r.loss for r in again.releases] == [
            ut.GDP.from_square("1/2"),
            ut.GDP("inf"),
        ]

    @pytest.mark.parametrize(
        "edit",
        [
            lambda d: d["entries"][0]["release"].update(name="other"),
            lambda d: d["entries"][0]["losses"].update(unbounded=["1/9"]),
            lambda d: d["entries"][1].update(index=1.0),
            lambda d: d["entries"][1].update(note="hello"),
            lambda d: d["entries"][1].update(hash="0" * 64),
            lambda d: d["entries"][1].update(previous="0" * 64),
            lambda d: d["entries"].pop(0),
            lambda d: d["entries"].pop(),
            lambda d: d["entries"].reverse(),
            lambda d: d["entries"].append(d["entries"][0]),
            lambda d: d["domain"].update(cells=["A", "B", "C", "D"]),
            lambda d: d["budgets"]["unbounded"].update(exact=["400"]),
            lambda d: d.update(head="0" * 64),
            lambda d: d.update(entries=[]),
        ],
    )
    def test_every_edit_is_found(self, edit):
        document = json.loads(self.ledger().to_json())
        edit(document)
        with pytest.raises(PlanError):
            ut.Ledger.from_json(json.dumps(document))

    @pytest.mark.parametrize(
        "text",
        ["", "null", "[]", "{}", "3", "[" * 100_000, "1" * 5000, '{"domain": {}}'],
    )
    def test_other_texts_are_no_ledger(self, text):
        with pytest.raises(PlanError, match="text must be a ledger"):
            ut.Ledger.from_json(text)

    def test_what_exists_only_as_code_is_spent_but_not_written(self):
        domain = ut.FiniteDomain((0, 1, 2))
        ledger = ut.Ledger(domain, {ut.FreeLunch(): ut.Pure(1)})
        step = ut.Relation("step", lambda a, b: abs(a - b) == 1)
        ledger.spend(
            ut.Release(
                "r", ut.Pure("0.25"), unit=step, view=ut.Identity(), setting="view"
            )
        )
        assert ledger.loss(ut.FreeLunch()).loss == ut.Pure("0.5")
        with pytest.raises(PlanError, match="got FiniteDomain"):
            ledger.to_json()
