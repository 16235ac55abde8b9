"""For any charges, in any order, from any thread: the budget is kept, exactly."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from support.examples import given_examples
from undertow.composition import Claim, Ledger
from undertow.errors import BudgetExceeded
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger._book import Tally

TIMES = 4
STREAM = ut.Stream(50, TIMES)

fractions = st.fractions(min_value=0, max_value=1, max_denominator=40)
views = st.one_of(
    st.builds(ut.At, st.integers(0, TIMES - 1)),
    st.sets(st.integers(0, TIMES - 1), min_size=1).map(lambda t: ut.Times(sorted(t))),
    st.just(ut.Identity()),
)
units = st.sampled_from([ut.User(), ut.Event(), ut.User(add_remove=True)])
targets = st.sampled_from([ut.User(), ut.Event(), ut.WEvent(2)])
LOSSES = {
    "pure": fractions.map(ut.Pure),
    "zcdp": st.one_of(
        fractions.map(ut.ZCDP), fractions.map(ut.Pure), fractions.map(ut.GDP)
    ),
    "gdp": st.one_of(fractions.map(ut.GDP), fractions.map(ut.Pure)),
    "approx": st.one_of(
        fractions.map(ut.Pure),
        fractions.map(lambda e: ut.Approx(e, Fraction(1, 10**6))),
    ),
}


def releases(losses):
    claims = st.lists(
        st.builds(Claim, losses, units, st.just("view")), min_size=1, max_size=2
    )
    return st.builds(
        lambda claims, view: ut.Release.with_claims("r", claims, view=view),
        claims,
        views,
    )


def pure_releases(most=4):
    return st.lists(releases(LOSSES["pure"]), min_size=1, max_size=most)


def made(folder, budgets, name="a"):
    return BudgetLedger.create(
        Path(folder) / name, dataset="steps", domain=STREAM, budgets=budgets
    )


@pytest.mark.parametrize("notion", list(LOSSES))
@given_examples(15, 60, data=st.data(), target=targets)
def test_what_is_merged_costs_what_it_cost_apart(notion, data, target):
    made_of = st.lists(releases(LOSSES[notion]), min_size=1, max_size=6)
    several = data.draw(made_of)
    tally = Tally(STREAM, notion)
    tally.add(several[:-1])
    whole = ut.Plan(STREAM, several).evaluate(target, notion=notion).loss
    assert tally.loss(target, extra=several[-1:]) == whole


@pytest.mark.parametrize("notion", list(LOSSES))
@given_examples(15, 60, data=st.data(), target=targets)
def test_charges_far_away_are_left_out_without_a_difference(notion, data, target):
    stream = ut.Stream(50, 12)
    claim = st.builds(Claim, LOSSES[notion], units, st.sampled_from(["view", "common"]))
    claims = st.lists(claim, min_size=1, max_size=2)
    seen = st.one_of(
        st.builds(ut.At, st.integers(0, 11)),
        st.builds(ut.Window, st.integers(0, 9), st.integers(1, 3)),
        st.sets(st.integers(0, 11), min_size=1, max_size=3).map(ut.Times),
        st.sampled_from([ut.Identity(), ut.Users([3])]),
    )
    tally, plan = Tally(stream, notion), ut.Plan(stream)
    for stated, view in data.draw(
        st.lists(st.tuples(claims, seen), min_size=1, max_size=12)
    ):
        release = ut.Release.with_claims("r", stated, view=view)
        plan.add(release)
        whole = plan.evaluate(target, notion=notion).loss
        assert tally.loss(target, extra=[release]) == whole
        tally.add([release])
        assert tally.loss(target) == whole
    plan.add(release)
    assert (
        tally.loss(target, extra=[release]) == plan.evaluate(target, notion=notion).loss
    )


@given(st.lists(fractions, min_size=1, max_size=30), targets)
def test_one_view_charged_often_costs_the_sum(values, target):
    tally = Tally(STREAM, "pure")
    several = [
        ut.Release("r", ut.Pure(v), unit=ut.Event(), view=ut.At(1), setting="view")
        for v in values
    ]
    tally.add(several)
    assert len(tally) == 1
    assert tally.loss(target) == ut.Plan(STREAM, several).evaluate(target).loss


@given_examples(5, 15, st.lists(pure_releases(2), min_size=1, max_size=6))
def test_it_decides_as_the_ledger_in_memory_does(charges):
    budgets = {ut.User(): ut.Pure(1), ut.WEvent(2): ut.Pure("0.7")}
    memory = Ledger(STREAM, budgets)
    with tempfile.TemporaryDirectory() as folder, made(folder, budgets) as ledger:
        for at, several in enumerate(charges):
            fits = True
            trial = Ledger(STREAM, budgets)
            try:
                for release in (*memory.releases, *several):
                    trial.spend(release)
            except BudgetExceeded:
                fits = False
            try:
                ledger.charge(several, key=str(at))
                assert fits
                memory = trial
            except BudgetExceeded:
                assert not fits
        spent = {g.name: memory.loss(g).loss for g in budgets}
        assert ledger.losses() == spent
        with BudgetLedger.open(ledger.name) as again:
            assert again.losses() == spent
        assert verify_ledger(ledger.name) == []


@given_examples(5, 15, pure_releases(5), st.randoms(use_true_random=False))
def test_the_order_of_charges_does_not_matter(several, shuffle):
    budgets = {ut.User(): ut.Pure(1000), ut.Event(): ut.Pure(1000)}
    other = list(several)
    shuffle.shuffle(other)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(folder, budgets, "a") as first,
        made(folder, budgets, "b") as second,
    ):
        for at, (one, two) in enumerate(zip(several, other, strict=True)):
            first.charge([one], key=str(at))
            second.charge([two], key=str(at))
        assert first.losses() == second.losses()


@given_examples(5, 15, st.lists(fractions, min_size=4, max_size=24))
def test_threads_together_never_pass_the_budget(values):
    budget = Fraction(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(folder, {ut.User(): ut.Pure(budget)}) as ledger,
        BudgetLedger.open(ledger.name) as other,
    ):

        def spend(job):
            at, value = job
            release = ut.Release(
                "r", ut.Pure(value), unit=ut.User(), view=ut.At(1), setting="view"
            )
            try:
                (ledger if at % 2 else other).charge([release], key=str(at))
            except BudgetExceeded:
                return value, False
            return value, True

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(spend, enumerate(values)))
        spent = sum((v for v, kept in answers if kept), Fraction(0))
        assert spent <= budget
        assert ledger.losses() == {"user": ut.Pure(spent)}
        assert all(spent + v > budget for v, kept in answers if not kept)
        assert ledger.verify() == []
