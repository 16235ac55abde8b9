"""The persistent budget of a data set."""

from __future__ import annotations

from undertow.ledger import _extras as _extras  # first: it says what is missing
from undertow.ledger.budget_ledger import BudgetLedger
from undertow.ledger.charge import Charge
from undertow.ledger.reader import BudgetState
from undertow.ledger.record import Entry, Head
from undertow.ledger.terms import LeakageBudget
from undertow.ledger.verify import Fault, verify_ledger

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
