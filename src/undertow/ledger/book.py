"""What a process knows of the history: read once, then only what is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from undertow.composition import (
    Plan,
    Release,
    domain_to_document,
    plan_from_document,
)
from undertow.errors import LedgerError, MismatchError
from undertow.ledger.chain import read_entries
from undertow.ledger.record import Entry, Head, canonical
from undertow.ledger.tally import Tally
from undertow.ledger.terms import Limit, Terms
from undertow.privacy.loss import Loss
from undertow.spaces.base import View

__all__ = ["Book"]


class Book:
    """The charges up to some head, added up.

    Parameters
    ----------
    terms : Terms
        What was agreed.
    start : str
        The hash the chain starts from.
    """

    def __init__(self, terms: Terms, start: str) -> None:
        self._terms, self._start = terms, start
        self._domain = domain_to_document(terms.domain)
        self._read: dict[str, Release] = {}
        self._fitting: set[View] = set()
        self.forget()

    def forget(self) -> None:
        """Go back to the start of the chain; what is needed is read again."""
        self._tallies = {
            notion: Tally(self._terms.domain, notion)
            for notion in {limit.budget.notion for limit in self._terms.limits}
        }
        self.head = Head(0, self._start)
        self.frame: dict[str, Any] | None = None

    def follow(self, link: Connection, head: Head) -> None:
        """Read what was written since, and check how it is chained.

        Raises
        ------
        LedgerError
            If the chain does not lead from what was known to `head`.
        """
        if head == self.head:
            return
        for entry, kept in read_entries(link, after=self.head.count):
            self._check(entry, kept)
            self.enter(entry)
            if self.head.count == head.count:
                break
        if self.head != head:
            raise LedgerError(_BROKEN.format(at=f"entry {self.head.count}"))

    def enter(self, entry: Entry, releases: Sequence[Release] | None = None) -> None:
        """Take in the next entry; an interrupted entry is read again later."""
        try:
            if entry.kind == "charge":
                if releases is None:
                    releases = self.read(entry.body["releases"])
                for tally in self._tallies.values():
                    tally.add(releases)
                if self.frame is None:
                    self.frame = entry.body.get("frame")
            self.head = Head(entry.number, entry.hash)
        except BaseException:
            self.forget()
            raise

    def read(self, documents: Iterable[Mapping[str, Any]]) -> list[Release]:
        """Read releases back; equal ones are read once."""
        return [self._one(document) for document in documents]

    def after(self, releases: Sequence[Release] = ()) -> dict[str, Loss]:
        """Return the loss of every limit, with `releases` charged as well."""
        return {
            limit.name: self._tallies[limit.budget.notion].loss(
                limit.granularity, extra=releases
            )
            for limit in self._terms.limits
        }

    def alone(self, limit: Limit, releases: Sequence[Release]) -> Loss:
        """Return what some releases lose by themselves."""
        tally = self._tallies[limit.budget.notion]
        return tally.alone(limit.granularity, releases)

    def _check(self, entry: Entry, kept: str) -> None:
        expected = (self.head.count + 1, self.head.hash, kept)
        if (entry.number, entry.body.get("previous"), entry.hash) != expected:
            raise LedgerError(_BROKEN.format(at=f"entry {self.head.count + 1}"))

    def _one(self, document: Mapping[str, Any]) -> Release:
        # Names differ from run to run; what is charged does not depend on them.
        text = canonical({**document, "name": "r"})
        if text not in self._read:
            plan = plan_from_document(
                {"domain": self._domain, "releases": [{**document, "name": "r"}]}
            )
            self._read[text] = plan.releases[0]
        return self._read[text]

    def require_frame(self, frame: Mapping[str, Any] | None) -> None:
        """Refuse releases whose units or times are not those of earlier charges."""
        if frame is None or self.frame is None or dict(frame) == self.frame:
            return
        names = sorted({*frame, *self.frame})
        other = [n for n in names if frame.get(n) != self.frame.get(n)]
        raise MismatchError(
            "the release must mean the same units and times as earlier charges, got "
            f"another {' and '.join(other)}; use a ledger of its own, and know that "
            "the two do not add up."
        )

    def require_fit(self, releases: Sequence[Release]) -> None:
        """Refuse views that do not fit the domain, or declare a false constant."""
        fresh = [release for release in releases if release.view not in self._fitting]
        Plan(self._terms.domain, fresh)
        self._fitting.update(release.view for release in fresh)


_BROKEN = (
    "the ledger must be as it was written, got a chain that breaks at {at}; run "
    "undertow ledger verify and restore a copy."
)
