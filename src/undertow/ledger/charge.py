"""One spend of a budget, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from undertow.errors import LedgerError
from undertow.ledger.record import Entry, loss_from_document
from undertow.privacy.loss import Loss

__all__ = ["Charge", "State", "charge_of"]

State = Literal["charged", "done", "spoiled"]
"""``charged``: paid, no output stored yet, so none was ever handed out; ``done``: the
output is stored and is the only one there will be; ``spoiled``: closed without one."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A committed spend.

    Parameters
    ----------
    number : int
        The entry that holds it.
    key : str
        The caller's name for it; one key is charged once.
    state : {"charged", "done", "spoiled"}
        Where it stands.
    label : str
        What a person called it.
    time : str
        When it was charged.
    losses : mapping of str to Loss
        The loss at every budget after it.
    hash : str
        Of its entry.
    repeated : bool
        Whether the key had been charged before, so that nothing was taken now.
    reason : str
        Why it was closed, if it was.
    """

    number: int
    key: str
    state: State
    label: str
    time: str
    losses: Mapping[str, Loss]
    hash: str
    repeated: bool = False
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as a record, losses as floats rounded up."""
        return {
            "number": self.number,
            "key": self.key,
            "state": self.state,
            "label": self.label,
            "time": self.time,
            "losses": {name: loss.to_dict() for name, loss in self.losses.items()},
            "hash": self.hash,
            "repeated": self.repeated,
            "reason": self.reason,
        }


def charge_of(found: Mapping[str, Entry], *, repeated: bool) -> Charge:
    """Return the charge that entries of one key tell of.

    Raises
    ------
    LedgerError
        If they do not tell of one.
    """
    try:
        return _charge_of(found, repeated=repeated)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise LedgerError(
            "a charge must be as the ledger wrote it, got another entry; run undertow "
            "ledger verify."
        ) from None


def _charge_of(found: Mapping[str, Entry], *, repeated: bool) -> Charge:
    entry = found["charge"]
    state: State = "charged"
    if "output" in found:
        state = "done"
    elif "failure" in found:
        state = "spoiled"
    failure = found.get("failure")
    return Charge(
        number=entry.number,
        key=entry.key,
        state=state,
        label=entry.body["label"],
        time=entry.time,
        losses={
            name: loss_from_document(loss)
            for name, loss in entry.body["losses"].items()
        },
        hash=entry.hash,
        repeated=repeated,
        reason="" if failure is None else failure.body["reason"],
    )
