"""Losses: exact, immutable, hashable, and never mixed."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import NotionMismatchError
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure

budgets = st.one_of(st.fractions(min_value=0, max_value=10**6), st.just(math.inf))
deltas = st.fractions(min_value=0, max_value=1)
losses = st.one_of(
    st.builds(Pure, budgets),
    st.builds(Approx, budgets, deltas),
    st.builds(ZCDP, budgets),
    st.builds(GDP, budgets),
    st.builds(GDP.from_square, budgets),
)


def test_three_tenths_are_three_tenths_and_a_fourth_is_too_much():
    spent = Pure("0.1") + Pure("0.1") + Pure("0.1")
    assert spent == Pure("0.3")
    assert spent.within(Pure("0.3"))
    assert not (spent + Pure("1e-300")).within(Pure("0.3"))


@given(budgets, budgets)
def test_pure_and_zcdp_add_and_gdp_adds_in_squares(a, b):
    assert Pure(a) + Pure(b) == Pure(a + b)
    assert ZCDP(a) + ZCDP(b) == ZCDP(a + b)
    square = math.inf if math.inf in (a, b) else a**2 + b**2
    assert GDP(a) + GDP(b) == GDP.from_square(square)


@given(budgets, deltas, budgets, deltas)
def test_approximate_losses_add_in_both_coordinates_up_to_delta_one(a, x, b, y):
    total = Approx(a, x) + Approx(b, y)
    assert total.exact_parameters() == (a + b, min(x + y, 1))
    assert total.no_guarantee == (x + y >= 1)
    assert total.is_infinite == (a + b == math.inf or x + y >= 1)


@given(losses)
def test_zero_is_neutral_and_every_loss_is_within_itself(loss):
    assert loss + type(loss).zero() == loss
    assert loss.within(loss)
    assert type(loss).zero().within(loss)


@given(losses)
def test_losses_survive_pickling_and_copying_and_keep_their_hash(loss):
    for twin in (
        pickle.loads(pickle.dumps(loss)),
        copy.copy(loss),
        copy.deepcopy(loss),
    ):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert type(twin) is type(loss)


@given(st.fractions(min_value=0, max_value=10**6))
def test_shown_floats_are_rounded_up(value):
    assert Fraction(Pure(value).epsilon) >= value
    assert Fraction(ZCDP(value).rho) >= value
    assert Fraction(GDP.from_square(value).mu) ** 2 >= value
    assert Fraction(Approx(value, min(value, 1)).delta) >= min(value, 1)


@given(losses)
def test_the_dictionary_holds_the_notion_and_the_floats(loss):
    shown = loss.to_dict()
    assert shown.pop("notion") == loss.notion
    assert all(type(value) is float for value in shown.values())


@pytest.mark.parametrize("loss", [Pure(1), Approx(1, 0), ZCDP(1), GDP(1)])
def test_losses_are_immutable(loss):
    name = type(loss).__slots__[0]
    with pytest.raises(AttributeError, match="immutable"):
        setattr(loss, name, 2)
    with pytest.raises(AttributeError):
        loss.anything = 2


@pytest.mark.parametrize("first", [Pure(1), Approx(1, 0), ZCDP(1), GDP(1)])
@pytest.mark.parametrize("second", [Pure(1), Approx(1, 0), ZCDP(1), GDP(1)])
def test_different_notions_neither_add_nor_compare_nor_equal(first, second):
    if type(first) is type(second):
        assert first == second
        return
    assert first != second
    with pytest.raises(NotionMismatchError, match="convert one of them"):
        first + second
    with pytest.raises(NotionMismatchError, match="convert one of them"):
        first.within(second)


def test_equal_losses_written_differently_are_one_key():
    table = {Pure("0.5"): 1, GDP(2): 2}
    assert table[Pure("1/2")] == 1
    assert table[GDP.from_square(4)] == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: Pure(-1),
        lambda: Pure(math.nan),
        lambda: Approx(1, 2),
        lambda: Approx(-1, 0),
        lambda: ZCDP("-1/2"),
        lambda: GDP(-0.5),
        lambda: GDP.from_square(-1),
    ],
)
def test_what_is_no_loss_is_refused(call):
    with pytest.raises(ValueError, match="must be"):
        call()


def test_a_loss_does_not_add_to_a_number():
    with pytest.raises(TypeError):
        Pure(1) + 1
    with pytest.raises(TypeError):
        Loss()


def test_losses_read_back_as_what_they_show():
    assert repr(Approx(1, "1e-5")) == "Approx(epsilon=1, delta=0.00001)"
    assert str(GDP(2)) == repr(GDP(2)) == "GDP(mu=2)"
    assert repr(Pure(math.inf)) == "Pure(epsilon=inf)"
    assert repr(GDP(math.inf)) == "GDP(mu=inf)"


@given(
    st.fractions(min_value=0, max_value=100), st.fractions(min_value=0, max_value=100)
)
def test_a_loss_shows_at_least_what_it_costs(a, b):
    shown = repr(Pure(a) + Pure(b)).removeprefix("Pure(epsilon=").removesuffix(")")
    assert Fraction(shown) >= a + b
