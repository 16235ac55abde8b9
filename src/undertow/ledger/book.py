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
from undertow.errors import LedgerError, MismatchError, UndertowError
from undertow.ledger.chain import read_entries
from undertow.ledger.record import Entry, Head, canonical
from undertow.ledger.tally import Tally
from undertow.ledger.terms import Limit, Terms
from undertow.privacy.loss import Loss
from undertow.spaces.base import View
from undertow.spaces.domain import Stream
from undertow.spaces.view import Identity

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
        self._whole = True

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
            try:
                self.enter(entry)
            except _UNREADABLE:
                at = f"entry {entry.number}"
                raise LedgerError(_BROKEN.format(at=at)) from None
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
                self._enter_frame(entry.body.get("frame"), releases)
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

    def require_frame(
        self,
        frame: Mapping[str, Any] | None,
        releases: Sequence[Release] | None = None,
    ) -> None:
        """Refuse releases whose units or times are not those of earlier charges.

        What times stand for may be left out by releases that see all of them, so that
        a release of whole units goes with releases of their windows. As what columns
        are read may be left out by all: only some tables leave it to the reader.

        Parameters
        ----------
        frame : mapping or None
            What users and times stand for; None states nothing.
        releases : sequence of Release, optional
            What is charged; without it nothing may be left out.

        Raises
        ------
        MismatchError
            If earlier charges state another frame.
        """
        if frame is None or self.frame is None or dict(frame) == self.frame:
            return
        whole = releases is not None and self._see_all(releases)
        lacks = {name for name in self.frame if name not in frame}
        adds = {name for name in frame if name not in self.frame}
        other = {n for n in {*frame} - adds if frame[n] != self.frame[n]}
        other |= lacks - _LEFT_OUT - (_OF_TIMES if whole else frozenset())
        other |= adds - _LEFT_OUT - (_OF_TIMES if self._whole else frozenset())
        people = frame.get("people")
        if people is not None and people == self.frame.get("people"):
            other -= _OF_UNITS
        if not other:
            return
        raise MismatchError(
            "the release must mean the same units and times as earlier charges, got "
            f"another {' and '.join(self._told(name, frame) for name in sorted(other))}"
            "; state what they state, or use a ledger of its own, whose budget comes "
            "on top: whoever is in both loses what both allow together."
        )

    def _told(self, name: str, frame: Mapping[str, Any]) -> str:
        """Return the name of a difference, with both types where it is one of types."""
        theirs = (self.frame or {}).get(name)
        if name not in _OF_TYPES or theirs is None or frame.get(name) is None:
            return name
        return f"{name} (read as {frame[name]} here and as {theirs} there)"

    def _enter_frame(
        self, frame: Mapping[str, Any] | None, releases: Sequence[Release]
    ) -> None:
        """Put what a charge states beside what earlier ones did."""
        if frame is not None:
            self.frame = {**frame, **(self.frame or {})}
            self._whole = self._whole and self._see_all(releases)

    def _see_all(self, releases: Sequence[Release]) -> bool:
        """Tell whether what times stand for is nothing to some releases.

        Where there is one time, a user who is not there at that time is nowhere; so
        data at other times, which whole users have as well, would be miscounted.
        """
        domain = self._terms.domain
        several = isinstance(domain, Stream) and domain.times > 1
        return several and all(isinstance(r.view, Identity) for r in releases)

    def require_fit(self, releases: Sequence[Release]) -> None:
        """Refuse views that do not fit the domain, or declare a false constant."""
        fresh = [release for release in releases if release.view not in self._fitting]
        Plan(self._terms.domain, fresh)
        self._fitting.update(release.view for release in fresh)


# Names of a frame that say what times are.
_OF_TIMES = frozenset({"start", "time", "window"})
# Names that say as what a column is read; earlier versions did not state them.
_OF_TYPES = frozenset({"type of time", "type of unit"})
_LEFT_OUT = _OF_TYPES | {"people"}
# Names that say where the people are, of no matter where they are named themselves.
_OF_UNITS = frozenset({"unit", "type of unit"})
# What comes of an entry that no ledger wrote.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    UndertowError,
    ValueError,
)
_BROKEN = (
    "the ledger must be as it was written, got a chain that breaks at {at}; run "
    "undertow ledger verify and restore a copy."
)
