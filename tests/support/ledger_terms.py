"""The small ledger that tests of places and of reading alone share."""

from __future__ import annotations

from typing import Any

import undertow as ut

__all__ = ["RELEASE", "TERMS"]

TERMS: dict[str, Any] = {
    "dataset": "steps",
    "domain": ut.Stream(10, 4),
    "budgets": {ut.User(): ut.Pure(1)},
}
RELEASE = ut.Release(
    "count", ut.Pure("0.1"), unit=ut.User(), view=ut.At(1), setting="view"
)
