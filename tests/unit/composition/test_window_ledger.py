"""The endless w-event budget."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.errors import BudgetExceeded, NotionMismatchError


def test_only_the_window_is_remembered():
    ledger = ut.WindowLedger(3, ut.Pure(1), longest_view=2)
    for _ in range(1000):
        ledger.spend(ut.Pure("1/3"))
        ledger.advance()
    assert ledger.time == 1000
    assert len(ledger._charges) == 3 - 1 + 2
    assert len(ledger._windows) == 2


def test_what_left_the_window_can_be_spent_again():
    ledger = ut.WindowLedger(2, ut.Pure(1))
    ledger.spend(ut.Pure(1))
    ledger.advance()
    assert not ledger.fits(ut.Pure("0.001"))
    ledger.advance()
    assert ledger.fits(ut.Pure(1))


@pytest.mark.parametrize("steps", [3, 4, 1000, 10**9])
def test_a_long_wait_empties_every_window(steps):
    ledger = ut.WindowLedger(3, ut.Pure(1))
    ledger.spend(ut.Pure(1))
    ledger.advance(steps)
    assert ledger.loss() == ut.Pure(0)
    assert ledger.time == steps


def test_a_refused_spend_changes_nothing():
    ledger = ut.WindowLedger(2, ut.Pure(1), longest_view=2)
    ledger.spend(ut.Pure("0.5"))
    ledger.advance()
    with pytest.raises(BudgetExceeded, match="must fit every window of 2 times"):
        ledger.spend(ut.Pure("0.4"), view_length=2)
    assert ledger.loss() == ut.Pure("0.5")
    ledger.spend(ut.Pure("0.5"))


def test_a_view_of_several_times_counts_once_per_time_it_shares_with_a_window():
    ledger = ut.WindowLedger(3, ut.Pure("0.9"), longest_view=3)
    ledger.advance(2)
    ledger.spend(ut.Pure("0.1"), view_length=3)
    assert ledger.loss() == ut.Pure("0.3")
    ledger.advance()
    ledger.spend(ut.Pure("0.1"), view_length=3)
    assert ledger.loss() == ut.Pure("0.5")  # the window that ends now: 2 + 3 shares


def test_a_long_view_is_charged_to_windows_that_have_ended():
    ledger = ut.WindowLedger(1, ut.Pure("0.3"), longest_view=2)
    ledger.spend(ut.Pure("0.3"))
    ledger.advance()
    assert ledger.fits(ut.Pure("0.1"))
    assert not ledger.fits(ut.Pure("0.1"), view_length=2)


@pytest.mark.parametrize("notion", [ut.Pure, ut.ZCDP, ut.GDP])
def test_infinite_budgets_and_losses_leave_when_the_window_moves_on(notion):
    ledger = ut.WindowLedger(2, notion("inf"))
    ledger.spend(notion(1))
    ledger.spend(notion("inf"))
    assert ledger.loss() == notion("inf")
    ledger.advance()
    assert ledger.loss() == notion("inf")
    ledger.advance()
    assert ledger.loss() == notion(0)
    finite = ut.WindowLedger(2, notion(1))
    assert not finite.fits(notion("inf"))


def test_squares_add_for_gaussian_budgets():
    ledger = ut.WindowLedger(2, ut.GDP(1))
    ledger.spend(ut.GDP("0.6"))
    ledger.advance()
    assert ledger.fits(ut.GDP("0.8"))
    assert not ledger.fits(ut.GDP("0.8000001"))


@pytest.mark.parametrize("w", [10**9, 10**30])
def test_very_long_windows_take_no_room_until_time_passes(w):
    ledger = ut.WindowLedger(w, ut.Pure(1))
    ledger.spend(ut.Pure(1))
    ledger.advance(5)
    assert ledger.loss() == ut.Pure(1)


@pytest.mark.parametrize(
    ("call", "fault", "message"),
    [
        (lambda: ut.WindowLedger(0, ut.Pure(1)), ValueError, "w must be"),
        (lambda: ut.WindowLedger(2, ut.Approx(1, 0)), NotionMismatchError, "budget"),
        (lambda: ut.WindowLedger(2, 1), NotionMismatchError, "budget must be"),
        (
            lambda: ut.WindowLedger(2, ut.Pure(1), longest_view=0),
            ValueError,
            "longest_view",
        ),
        (
            lambda: ut.WindowLedger(2, ut.Pure(1)).spend(ut.GDP(1)),
            NotionMismatchError,
            "loss must be Pure like the budget",
        ),
        (
            lambda: ut.WindowLedger(2, ut.Pure(1)).fits(ut.Pure(1), view_length=2),
            ValueError,
            "view_length must be at most 1, got 2",
        ),
        (
            lambda: ut.WindowLedger(2, ut.Pure(1), longest_view=5).fits(
                ut.Pure(1), view_length=2
            ),
            ValueError,
            "at most 1",
        ),
        (lambda: ut.WindowLedger(2, ut.Pure(1)).advance(0), ValueError, "steps"),
    ],
)
def test_wrong_calls_are_refused(call, fault, message):
    with pytest.raises(fault, match=message):
        call()


def test_views_of_several_times_are_pure_only():
    ledger = ut.WindowLedger(2, ut.GDP(1), longest_view=2)
    ledger.advance()
    with pytest.raises(NotionMismatchError, match="charged as Pure"):
        ledger.spend(ut.GDP("0.1"), view_length=2)
