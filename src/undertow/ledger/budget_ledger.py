"""The persistent budget of a data set: charge first, then draw noise, then store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from sqlalchemy import insert

from undertow.composition import Release
from undertow.errors import BudgetError, BudgetExceeded, LedgerError
from undertow.ledger._guard import (
    checked_output,
    checked_releases,
    checked_stored,
    left_of,
    plain,
    require_key,
    require_same,
)
from undertow.ledger.chain import (
    Writer,
    read_key,
    read_output,
)
from undertow.ledger.charge import Charge, charge_of
from undertow.ledger.connection import Place, place_of
from undertow.ledger.reader import LedgerReader, require_kept
from undertow.ledger.record import (
    Head,
    digest,
    instant,
    loss_to_document,
    plain_text,
)
from undertow.ledger.tables import head as head_table
from undertow.ledger.tables import terms as terms_table
from undertow.ledger.terms import LeakageBudget, Limit, Terms
from undertow.ledger.upgrade import schema_of, upgrade_schema
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity

__all__ = ["BudgetLedger"]


class BudgetLedger(LedgerReader):
    r"""A budget that outlives the process, shared by everyone who releases.

    A charge is committed before noise is drawn, and the output is committed before
    anyone sees it. Writers take turns, so the sum of what is charged never passes a
    budget, whoever asks at the same time. Entries are only ever added, and each holds
    the hash of the one before it.

    See Also
    --------
    BudgetLedger.create : make one.
    BudgetLedger.open : use one.

    Notes
    -----
    What is charged depends on the releases alone, never on the data, so mechanism, loss
    and view may be chosen from earlier outputs, by
    the theorems of :class:`undertow.composition.Ledger`. Checked: budgets, chain and
    keys. Not checkable: that the releases charged are the releases made.

    Examples
    --------
    >>> import tempfile, undertow as ut
    >>> from undertow.ledger import BudgetLedger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = BudgetLedger.create(
    ...     f"{folder.name}/steps.ledger", dataset="steps",
    ...     domain=ut.Stream(1000, 24), budgets={ut.User(): ut.Pure(1)})
    >>> hour = ut.Release("hour 8", ut.Pure("0.25"), unit=ut.User(),
    ...                   view=ut.At(8), setting="view")
    >>> paid = ledger.charge([hour], key="2026-01-01")
    >>> ledger.store(paid, b"count,42")
    b'count,42'
    >>> ledger.charge([hour], key="2026-01-01").state
    'done'
    >>> ledger.remaining(ut.User())
    Pure(epsilon=0.75)
    >>> ledger.close(); folder.cleanup()
    """

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str],
        *,
        dataset: str,
        domain: Domain,
        budgets: Mapping[Granularity, Loss],
        models: Mapping[str, LeakageBudget] | None = None,
    ) -> Self:
        """Make a ledger at a path or URL that holds none.

        Parameters
        ----------
        url : str or path
            A file, made readable by its owner alone, or ``postgresql://user@host/name``.
        dataset : str
            The data set whose budget this is.
        domain : Domain
            The databases the guarantee ranges over.
        budgets : mapping of Granularity to Loss
            The most that may be lost at each granularity.
        models : mapping of str to LeakageBudget, optional
            Correlation models by name.

        Raises
        ------
        LedgerError
            If there is a ledger already, the place cannot be written, or would not be
            kept.
        PlanError
            If the domain or a granularity exists as Python code only.
        """
        now = instant(datetime.now(UTC))
        terms = Terms(dataset, domain, dict(budgets), dict(models or {}), now)
        text = terms.to_text()
        require_kept(url)
        place = place_of(url)
        with place.closed_on_fault():
            place.claim()
            with place.writing() as link:
                _require_none(schema_of(link), place)
                upgrade_schema(link)
                row = {"id": 1, "body": text, "hash": digest(text)}
                link.execute(insert(terms_table), row)
                row = {"id": 1, "count": 0, "hash": digest(text), "time": now}
                link.execute(insert(head_table), row)
            place.settle()
        return cls(place, terms, start=digest(text))

    def charge(
        self,
        releases: Iterable[Release],
        *,
        key: str,
        label: str = "",
        details: Mapping[str, Any] | None = None,
        frame: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Charge releases together, or refuse them together.

        Parameters
        ----------
        releases : iterable of Release
            What is about to be released.
        key : str
            The caller's name for this spend. A key is charged once: the same releases
            under the same key return what is known of it and take nothing.
        label : str
            What a person calls it.
        details : mapping, optional
            Kept with the entry; no private value belongs here.
        frame : mapping, optional
            What users and times of the domain stand for outside, such as the column of
            the unit and the start and length of a window. All charges that state it
            must agree: views of different frames cannot be told apart or put together.
            Where the stream has several times, releases that see all of it may leave
            out ``time``, ``start`` and ``window``; all may leave out ``type of unit``
            and ``type of time``.

        Raises
        ------
        BudgetExceeded
            If a budget would be passed; nothing is charged then.
        MismatchError
            If earlier charges state another frame.
        AssumptionError
            If a claim is about continuous noise, which nobody draws.
        LedgerError
            If the key was charged for other releases, or the ledger cannot be written.
        """
        asked, documents = checked_releases(releases)
        require_key(key)
        content: dict[str, Any] = {
            "label": plain_text(label, "label"),
            "details": plain(details),
            "releases": documents,
        }
        if frame is not None:
            content["frame"] = plain(frame)
        with self._lock:
            with self._place.writing() as link:
                writer = Writer(link)
                found = read_key(link, key)
                if found:
                    require_same(found["charge"], documents)
                    return charge_of(found, repeated=True)
                after = self._fitting(link, writer.head, asked)
                self._book.require_frame(content.get("frame"), asked)
                content["losses"] = {k: loss_to_document(v) for k, v in after.items()}
                entry = writer.append("charge", key, content)
            # Reached only when the transaction is committed.
            self._book.enter(entry, asked)
        return charge_of({"charge": entry}, repeated=False)

    def store(
        self,
        charge: Charge,
        output: bytes,
        *,
        details: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Commit the output of a charge and return the one that is committed.

        Hand out what this returns and nothing else: where somebody stored an output of
        the same charge in the meantime, that one is returned, and `output` is dropped.

        Raises
        ------
        BudgetError
            If the charge was closed without an output.
        """
        content = checked_output(output)
        with self._lock:
            committed = self._stored(charge, content, plain(details))
            # Before anybody sees it: a copy without the journal must know it as well.
            self._place.settle()
        return committed

    def _stored(self, charge: Charge, content: bytes, details: dict[str, Any]) -> bytes:
        """Commit an output unless there is one, and return the one that there is."""
        with self._place.writing() as link:
            writer = Writer(link)
            found = self._known(read_key(link, charge.key), charge)
            if "output" in found:
                return checked_stored(read_output(link, charge.number), found["output"])
            if "failure" in found:
                raise BudgetError(
                    f"charge {charge.key!r} must be open to store an output, got one "
                    "that was closed; charge another key."
                )
            writer.store(charge.number, content)
            writer.append(
                "output",
                charge.key,
                {
                    "charge": charge.number,
                    "sha256": digest(content),
                    "size": len(content),
                    "details": details,
                },
            )
        return content

    def fail(self, charge: Charge, reason: str) -> Charge:
        """Close a charge that will have no output; what it took stays taken."""
        with self._lock, self._place.writing() as link:
            writer = Writer(link)
            found = self._known(read_key(link, charge.key), charge)
            if "output" in found:
                raise BudgetError(
                    f"charge {charge.key!r} must be open to be closed, got one whose "
                    "output is stored."
                )
            if "failure" not in found:
                content = {
                    "charge": charge.number,
                    "reason": plain_text(reason, "reason"),
                }
                found["failure"] = writer.append("failure", charge.key, content)
        return charge_of(found, repeated=True)

    def _fitting(
        self, link: Any, head: Head, releases: Sequence[Release]
    ) -> dict[str, Loss]:
        """Return the losses after a charge, or refuse it."""
        self._book.follow(link, head)
        self._book.require_fit(releases)
        after = self._book.after(releases)
        for limit in self._terms.limits:
            if not after[limit.name].within(limit.budget):
                raise self._refusal(limit, after[limit.name], releases)
        return after

    def _refusal(
        self, limit: Limit, after: Loss, releases: Sequence[Release]
    ) -> BudgetExceeded:
        spent = self._book.after()[limit.name]
        asked = self._book.alone(limit, releases)
        left = left_of(limit.budget, spent)
        return BudgetExceeded(
            f"the charge must fit the {limit.name} budget of {limit.budget}, got "
            f"{spent} spent, {asked} asked and {left} left, which comes to {after}; "
            "spend less, or release through views that exhausted units do not touch.",
            witness={"limit": limit.name, "spent": spent, "asked": asked, "left": left},
        )


def _require_none(schema: int | None, place: Place) -> None:
    if schema is not None:
        raise LedgerError(
            f"{place.name} must hold no ledger yet, got one; open it, or choose "
            "another path."
        )
