"""Ledgers under random use: never overspent, never half spent, never edited."""

from __future__ import annotations

import contextlib
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.errors import BudgetExceeded, PlanError

SHARES = st.fractions(min_value=0, max_value=1, max_denominator=12)
ROADS = ("A", "B", "C")
TIMES = 5


def table_release(draw, name, loss):
    view = draw(
        st.sampled_from([ut.Identity(), *map(ut.Select, ROADS), ut.Select("A", "B")])
    )
    unit, setting = draw(
        st.sampled_from(
            [
                (ut.Unbounded(), "view"),
                (ut.Unbounded(), "common"),
                (ut.Edit(), "view"),
            ]
        )
    )
    return ut.Release(name, loss, unit=unit, view=view, setting=setting)


def stream_release(draw, name, loss):
    start = draw(st.integers(0, TIMES - 1))
    length = draw(st.integers(1, TIMES - start))
    unit = draw(st.sampled_from([ut.Event(), ut.User(), ut.WEvent(2)]))
    view = draw(st.sampled_from([ut.Identity(), ut.Window(start, length)]))
    return ut.Release(name, loss, unit=unit, view=view, setting="view")


CASES = {
    "table": (ut.Table(ROADS), [ut.Unbounded(), ut.Bounded()], table_release),
    "stream": (
        ut.Stream(4, TIMES),
        [ut.Event(), ut.WEvent(2), ut.User()],
        stream_release,
    ),
}
NOTIONS = {
    "pure": ut.Pure,
    "zcdp": ut.ZCDP,
    "gdp": ut.GDP.from_square,
    "approx": lambda share: ut.Approx(share, share / 1000),
}


@st.composite
def ledgers(draw, notions=tuple(NOTIONS)):
    """Return a ledger after some random spends, and a way to draw more releases."""
    domain, targets, build = CASES[draw(st.sampled_from(sorted(CASES)))]
    loss = NOTIONS[draw(st.sampled_from(notions))]
    ledger = ut.Ledger(domain, {t: loss(draw(SHARES)) for t in targets})
    for at in range(draw(st.integers(0, 5))):
        release = build(draw, f"r{at}", loss(draw(SHARES) / 3))
        with contextlib.suppress(BudgetExceeded):
            ledger.spend(release)
    return ledger, lambda name: build(draw, name, loss(draw(SHARES)))


@given(ledgers())
def test_no_budget_is_ever_passed(drawn):
    ledger, _ = drawn
    for target, budget in ledger.budgets.items():
        assert ledger.loss(target).loss.within(budget)


@given(ledgers())
def test_a_spend_does_what_its_quote_said_or_nothing(drawn):
    ledger, draw_release = drawn
    release, before = draw_release("next"), ledger.to_json()
    quote = ledger.quote(release)
    assert ledger.to_json() == before
    fits = all(quote[t].within(budget) for t, budget in ledger.budgets.items())
    try:
        receipt = ledger.spend(release)
    except BudgetExceeded:
        assert not fits
        assert ledger.to_json() == before
    else:
        assert fits
        assert receipt.losses == {t.name: loss for t, loss in quote.items()}
        assert {t: ledger.loss(t).loss for t in ledger.budgets} == quote


def with_parameter(loss, parameter):
    if isinstance(loss, ut.GDP):
        return ut.GDP.from_square(parameter)
    return type(loss)(parameter)


@given(ledgers(("pure", "zcdp", "gdp")))
def test_what_remains_is_exactly_the_largest_spend_that_fits(drawn):
    ledger, draw_release = drawn
    shape = draw_release("probe")
    rooms = [
        ledger.remaining(t, view=shape.view, unit=shape.unit, setting=shape.setting)
        for t in ledger.budgets
    ]
    (least,) = min(room.exact_parameters() for room in rooms)

    def fits(parameter):
        release = ut.Release(
            "probe",
            with_parameter(shape.loss, parameter),
            unit=shape.unit,
            view=shape.view,
            setting=shape.setting,
        )
        quote = ledger.quote(release)
        return all(quote[t].within(budget) for t, budget in ledger.budgets.items())

    assert least < math.inf, "every view here is touched by some change"
    assert fits(least)
    assert not fits(least + Fraction(1, 10**12))


@given(ledgers())
def test_a_ledger_comes_back_equal_and_spends_alike(drawn):
    ledger, draw_release = drawn
    again = ut.Ledger.from_json(ledger.to_json())
    assert again.to_json() == ledger.to_json()
    assert again.releases == ledger.releases
    release = draw_release("next")
    assert again.quote(release) == ledger.quote(release)


@settings(max_examples=40)
@given(ledgers(), st.data())
def test_any_edited_byte_is_detected(drawn, data):
    ledger, _ = drawn
    text = ledger.to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.characters(codec="ascii").filter(lambda c: c != text[at]))
    edited = text[:at] + byte + text[at + 1 :]
    with contextlib.suppress(json.JSONDecodeError, RecursionError):
        if json.loads(edited) == json.loads(text):
            return  # white space: the same ledger in other words
    with pytest.raises(PlanError):
        ut.Ledger.from_json(edited)


@given(
    st.integers(1, 4),
    st.fractions(0, 2, max_denominator=8),
    st.lists(
        st.tuples(st.fractions(0, 1, max_denominator=8), st.integers(1, 3)),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 3),
)
@pytest.mark.slow
def test_the_window_ledger_decides_as_the_ledger_on_a_stream(
    w, budget, spends, longest
):
    """One spend attempt per time, on the latest few times."""
    stream = ut.Stream(3, len(spends) + w)
    ledger = ut.Ledger(stream, {ut.WEvent(w): ut.Pure(budget)})
    window = ut.WindowLedger(w, ut.Pure(budget), longest_view=longest)
    for time, (epsilon, length) in enumerate(spends):
        length = min(length, longest, time + 1)
        release = ut.Release(
            f"r{time}",
            ut.Pure(epsilon),
            unit=ut.Event(),
            view=ut.Window(time - length + 1, length),
            setting="view",
        )
        fits = window.fits(ut.Pure(epsilon), view_length=length)
        quote = ledger.quote(release)[ut.WEvent(w)]
        assert fits == quote.within(ut.Pure(budget))
        if fits:
            ledger.spend(release)
            window.spend(ut.Pure(epsilon), view_length=length)
        assert window.loss().within(ledger.loss(ut.WEvent(w)).loss)
        window.advance()


@st.composite
def allocations(draw):
    domain, targets, build = CASES[draw(st.sampled_from(sorted(CASES)))]
    number = draw(st.integers(1, 5))
    releases = [build(draw, f"r{at}", ut.Pure(1)) for at in range(number)]
    total = draw(st.sampled_from([ut.Pure("0.7"), ut.ZCDP("0.2"), ut.GDP("1.3")]))
    target = draw(st.sampled_from(targets))
    weights = {
        f"r{at}": draw(st.floats(0.1, 10, allow_subnormal=False))
        for at in range(number)
    }
    return ut.Plan(domain, releases), target, total, weights


def restated(plan, parameters, total):
    releases = [
        ut.Release.with_claims(
            r.name,
            [ut.Claim(with_parameter(total, x), c.unit, c.setting) for c in r.claims],
            view=r.view,
        )
        for r, x in zip(plan.releases, parameters, strict=True)
    ]
    return ut.Plan(plan.domain, releases)


@settings(max_examples=25)
@given(allocations(), st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_an_allocation_is_feasible_and_not_beaten_by_random_points(drawn, seed):
    plan, target, total, weights = drawn
    found = ut.allocate(plan, target, total=total, weights=weights)
    names = [release.name for release in plan.releases]
    chosen = [found.losses[name].exact_parameters()[0] for name in names]
    finite = [0 if x == math.inf else x for x in chosen]
    assert restated(plan, finite, total).loss(target).loss.within(total)

    power = 2 if isinstance(total, ut.Pure) else 1
    importance = np.array([weights[name] for name in names])
    best = _cost(chosen, importance, power)
    generator = np.random.default_rng(seed)
    (cap,) = total.exact_parameters()
    for _ in range(12):
        spread = generator.choice([0.02, 0.3, 1.0])
        factors = np.exp(spread * generator.standard_normal(len(names)))
        trial = [
            Fraction(float(f)) * (1 if x in (0, math.inf) else x)
            for f, x in zip(factors, chosen, strict=True)
        ]
        (worst,) = restated(plan, trial, total).loss(target).loss.exact_parameters()
        if worst == 0:
            continue
        scaled = [x * cap / worst for x in trial]
        rival = [
            math.inf if c == math.inf else x
            for x, c in zip(scaled, chosen, strict=True)
        ]
        assert best <= _cost(rival, importance, power) * (1 + 1e-5)


def _cost(parameters, importance, power):
    inverse = [0.0 if x == math.inf else float(x) ** -power for x in parameters]
    return float(importance @ np.array(inverse))
