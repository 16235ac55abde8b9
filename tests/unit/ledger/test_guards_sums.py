"""Sums of charges against the plan of all of them, and what a ledger hashes."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

import undertow as ut
from undertow.ledger import LeakageBudget
from undertow.ledger._book import Tally
from undertow.ledger.record import Terms, canonical

DAY = ut.Stream(10, 3)
LOSSES = {
    "pure": [ut.Pure("1/3"), ut.Pure("0.2")],
    "zcdp": [ut.ZCDP("1/3"), ut.Pure("0.2")],
    "gdp": [ut.GDP("1/3"), ut.GDP("0.2")],
    "approx": [ut.Approx("1/3", "1e-6"), ut.Pure("0.2")],
}


@pytest.mark.parametrize("notion", LOSSES)
@pytest.mark.parametrize("target", [ut.User(), ut.Event(), ut.WEvent(2)])
def test_every_order_of_charges_costs_what_their_plan_does(notion, target):
    kinds = [
        ut.Release("r", loss, unit=ut.User(), view=view, setting="view")
        for loss in LOSSES[notion]
        for view in (ut.At(0), ut.At(1), ut.Identity())
    ]
    for several in combinations_with_replacement(kinds, 3):
        truth = ut.Plan(DAY, several).evaluate(target, notion=notion).loss
        one_by_one = Tally(DAY, notion)
        for release in several:
            one_by_one.add([release])
        together = Tally(DAY, notion)
        together.add(several)
        assert one_by_one.loss(target) == truth
        assert together.loss(target) == truth
        assert Tally(DAY, notion).loss(target, extra=several) == truth


def test_equal_records_have_one_text_whatever_their_order():
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == canonical(
        {"a": {"c": 3, "d": 2}, "b": 1}
    )


def test_a_model_at_a_level_that_the_domain_lacks_is_refused():
    budget = LeakageBudget(
        leakage=1, epsilon="0.5", granularity=ut.WEvent(2), theorem="t"
    )
    with pytest.raises(ut.errors.UndertowError, match="of kind stream or finite"):
        Terms("steps", ut.Table(), {ut.Unbounded(): ut.Pure(1)}, {"m": budget}, "now")
