"""Losses whose exact sums grow long: refused before they are charged, never after."""

from __future__ import annotations

from fractions import Fraction

import pytest

import undertow as ut
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger

DOMAIN = ut.Stream(10, 4)


def release(epsilon: Fraction | str) -> ut.Release:
    loss = ut.Pure(epsilon)
    return ut.Release("r", loss, unit=ut.User(), view=ut.At(1), setting="view")


def charge_all(ledger: BudgetLedger, ends: list[int]) -> None:
    for end in ends:
        ledger.charge([release(Fraction(1, end))], key=str(end)[-2:])


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "t.ledger"
    budgets = {ut.User(): ut.Pure(1)}
    with BudgetLedger.create(made, dataset="t", domain=DOMAIN, budgets=budgets):
        return made


def test_sums_of_many_digits_are_read_back(path):
    ends = [10**450 + n for n in (1, 3, 7, 9)]  # without common divisors but 2
    with BudgetLedger.open(path) as ledger:
        for end in ends:
            assert ledger.charge([release(Fraction(1, end))], key=f"1/{end % 10}")
    with BudgetLedger.open(path) as ledger:
        spent = ledger.losses()["user"].exact_parameters()[0]
        assert ledger.charge([release(Fraction(1, ends[0]))], key="1/1").repeated
    assert spent == sum(Fraction(1, end) for end in ends)
    assert verify_ledger(path) == []


def test_a_sum_too_long_to_be_read_back_is_not_charged(path):
    ends = [10**450 + n for n in range(1, 24, 2)]
    with BudgetLedger.open(path) as ledger:
        with pytest.raises(LedgerError, match="fractions of at most 3900 digits"):
            charge_all(ledger, ends)
        assert 0 < ledger.head.count < len(ends)
        assert ledger.states()["charged"] == ledger.head.count
        assert ledger.find(f"{10**450 + 2 * ledger.head.count + 1}"[-2:]) is None
        same = [release(Fraction(1, ends[0]))]  # adds no digits
        assert ledger.charge(same, key="again").state == "charged"
    assert verify_ledger(path) == []


def test_a_loss_that_others_could_not_read_is_not_charged(path):
    with (
        BudgetLedger.open(path) as ledger,
        pytest.raises(ValueError, match="at most 480 digits above and below"),
    ):
        ledger.charge([release(Fraction(1, 10**1100))], key="k")
    with BudgetLedger.open(path) as ledger:
        assert ledger.charge([release("0.5")], key="k").number == 1


def test_a_budget_too_long_to_be_written_is_one_sentence(tmp_path):
    budgets = {ut.User(): ut.Pure(Fraction(1, 10**5000))}
    made = tmp_path / "t.ledger"
    with pytest.raises(LedgerError, match="fractions of at most 3900 digits"):
        BudgetLedger.create(made, dataset="t", domain=DOMAIN, budgets=budgets)
    assert not made.exists()
