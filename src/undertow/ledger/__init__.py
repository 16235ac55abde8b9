"""The persistent budget of a data set."""

from __future__ import annotations

from undertow.ledger import _extras as _extras  # first: it says what is missing
from undertow.ledger.budget_ledger import BudgetLedger, BudgetState
from undertow.ledger.fault import Fault, verify_ledger
from undertow.ledger.record import Charge, Entry, Head, LeakageBudget

__all__ = [
    "BudgetLedger",
    "BudgetState",
    "Charge",
    "Entry",
    "Fault",
    "Head",
    "LeakageBudget",
    "verify_ledger",
]
