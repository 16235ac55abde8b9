"""What can be asked of a ledger without changing it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

from undertow.composition import Release
from undertow.errors import LedgerError, MismatchError
from undertow.ledger._guard import checked_releases, checked_stored, left_of
from undertow.ledger.book import Book
from undertow.ledger.chain import (
    count_kinds,
    read_entries,
    read_head,
    read_key,
    read_output,
    read_terms,
)
from undertow.ledger.charge import Charge, charge_of
from undertow.ledger.connection import Place, place_of
from undertow.ledger.record import Entry, Head, digest
from undertow.ledger.terms import LeakageBudget, Terms
from undertow.ledger.upgrade import migrate
from undertow.ledger.verify import Fault, faults_of
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity

__all__ = ["BudgetState", "LedgerReader", "require_kept"]


def require_kept(address: str | os.PathLike[str]) -> None:
    """Refuse what SQLite forgets with the process: the budget would come back.

    Parameters
    ----------
    address : str or path
        As :meth:`LedgerReader.open` takes it. Options of a SQLite address can put the
        database in memory, so that there must be none.

    Raises
    ------
    LedgerError
        If the address is one of memory, or has options.
    """
    kind, sign, rest = os.fspath(address).partition("://")
    if sign and not kind.startswith("sqlite"):
        return
    file, _, options = rest.partition("?") if sign else (kind, "", "")
    if options or os.path.normpath(file).lstrip("/") == ":memory:":
        raise LedgerError(
            "a ledger must be a file that is kept, got "
            f"{'an address with options' if options else 'one in memory'}; give a path "
            "such as steps.ledger."
        )


@dataclass(frozen=True, slots=True)
class BudgetState:
    """One budget and where it stands.

    Parameters
    ----------
    name : str
        Its granularity, or ``model:`` and the name of a model.
    granularity : Granularity
        Where the loss is taken.
    budget, spent, left : Loss
        The most there may be, what there is, and the difference.
    """

    name: str
    granularity: Granularity
    budget: Loss
    spent: Loss
    left: Loss


class LedgerReader:
    """The questions a ledger answers.

    Parameters
    ----------
    place : Place
        Its database.
    terms : Terms
        What was agreed.
    start : str
        The hash its chain starts from.
    """

    def __init__(self, place: Place, terms: Terms, *, start: str) -> None:
        self._place, self._terms, self._start = place, terms, start
        self._book = Book(terms, start)
        self._lock = RLock()

    @classmethod
    def open(cls, url: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """Open a ledger; one of an older schema is copied and brought up to date.

        Parameters
        ----------
        url : str or path
            Where it is.
        read_only : bool, optional
            Whether it is only looked at: a file of the present schema and its folder
            need not be writable, nothing is left beside it, and charging is refused.

        Raises
        ------
        LedgerError
            If there is none, it is of a newer schema, its terms were edited, or the
            address is one of memory.
        """
        require_kept(url)
        place = place_of(url, read_only=read_only)
        place.require_file()
        with place.closed_on_fault():
            migrate(place)
            with place.reading() as link:
                text, kept = read_terms(link)
                if kept != digest(text):
                    raise LedgerError(
                        f"{place.name} must have the terms that were agreed, got "
                        "edited ones; run undertow ledger verify and restore a copy."
                    )
            return cls(place, Terms.from_text(text), start=digest(text))

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._place.name

    @property
    def dataset(self) -> str:
        """The data set whose budget this is."""
        return self._terms.dataset

    @property
    def domain(self) -> Domain:
        """The databases the guarantee ranges over."""
        return self._terms.domain

    @property
    def budgets(self) -> dict[Granularity, Loss]:
        """The most that may be lost at each granularity."""
        return dict(self._terms.budgets)

    @property
    def models(self) -> dict[str, LeakageBudget]:
        """Correlation models by name."""
        return dict(self._terms.models)

    @property
    def start(self) -> str:
        """The hash of the terms: copies of a ledger share it, other ledgers do not."""
        return self._start

    @property
    def head(self) -> Head:
        """Where the chain ends; keep its hash elsewhere to have an outside witness."""
        with self._place.reading() as link:
            return read_head(link)

    @property
    def frame(self) -> dict[str, Any] | None:
        """What users and times stand for, as charges state it; None if none does."""
        with self._following():
            found = self._book.frame
        return None if found is None else dict(found)

    def require_frame(
        self, frame: Mapping[str, Any], releases: Iterable[Release] | None = None
    ) -> None:
        """Refuse a release whose units or times are not those of earlier charges.

        Parameters
        ----------
        frame : mapping
            What users and times stand for.
        releases : iterable of Release, optional
            What would be charged. If they see all times, the frame may leave out what
            times stand for; without `releases` it may not.

        Raises
        ------
        MismatchError
            If earlier charges state another frame.
        """
        asked = None if releases is None else list(releases)
        with self._following():
            self._book.require_frame(frame, asked)

    def quote(self, releases: Iterable[Release]) -> dict[str, Loss]:
        """Return the loss at every budget if `releases` were charged; takes nothing."""
        asked, _ = checked_releases(releases)
        with self._following():
            self._book.require_fit(asked)
            return self._book.after(asked)

    def find(self, key: str) -> Charge | None:
        """Return what is known of a key, or None if it was never charged."""
        with self._place.reading() as link:
            found = read_key(link, key)
        return charge_of(found, repeated=True) if found else None

    def output(self, charge: Charge) -> bytes | None:
        """Return the stored output of a charge, or None if none was stored.

        Raises
        ------
        LedgerError
            If the stored bytes are not those that were written.
        """
        with self._place.reading() as link:
            found = self._known(read_key(link, charge.key), charge)
            if "output" not in found:
                return None
            stored = checked_stored(read_output(link, charge.number), found["output"])
        # Whoever stored it may have been killed before it was in the file itself.
        self._place.settle()
        return stored

    def output_head(self, charge: Charge) -> Head | None:
        """Return where the chain ended when the output of a charge was stored.

        Kept elsewhere, it shows an older copy of the ledger: that lacks it.
        """
        with self._place.reading() as link:
            found = self._known(read_key(link, charge.key), charge).get("output")
        return None if found is None else Head(found.number, found.hash)

    def holds(self, count: int, digest: str) -> bool:
        """Tell whether the chain passes through a head that was kept elsewhere.

        Parameters
        ----------
        count : int
            How many entries there were.
        digest : str
            The hash of the last of them.
        """
        if count < 1:
            return digest == self._start
        with self._place.reading() as link:
            for entry, _ in read_entries(link, after=count - 1, limit=1):
                return (entry.number, entry.hash) == (count, digest)
        return False

    def losses(self) -> dict[str, Loss]:
        """Return what was lost at every budget so far."""
        with self._following():
            return self._book.after()

    def remaining(self, granularity: Granularity) -> Loss:
        """Return what is left of a budget for a unit that lost the most.

        A release on a view that this unit does not touch may lose more; ask
        :meth:`quote`.
        """
        if granularity not in self._terms.budgets:
            names = ", ".join(known.name for known in self._terms.budgets)
            raise MismatchError(
                f"granularity must have a budget in this ledger, got "
                f"{granularity.name}; budgets are for {names}."
            )
        return left_of(
            self._terms.budgets[granularity], self.losses()[granularity.name]
        )

    def budget_states(self) -> list[BudgetState]:
        """Return every budget, models included, with what is spent and left."""
        spent = self.losses()
        return [
            BudgetState(
                limit.name,
                limit.granularity,
                limit.budget,
                spent[limit.name],
                left_of(limit.budget, spent[limit.name]),
            )
            for limit in self._terms.limits
        ]

    def history(self, *, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Return entries in order, from the one after number `after`."""
        with self._place.reading() as link:
            return [entry for entry, _ in read_entries(link, after=after, limit=limit)]

    def close(self) -> None:
        """Close the connections; the ledger itself stays."""
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def states(self) -> dict[str, int]:
        """Return how many charges stand where: charged, done, spoiled."""
        with self._place.reading() as link:
            found = count_kinds(link)
        done, spoiled = found.get("output", 0), found.get("failure", 0)
        waiting = found.get("charge", 0) - done - spoiled
        return {"charged": waiting, "done": done, "spoiled": spoiled}

    def verify(self, *, head: str | None = None) -> list[Fault]:
        """Return what is not as it was written; empty if all is.

        Parameters
        ----------
        head : str, optional
            A hash of this ledger kept elsewhere: it must still be in the chain.
        """
        with self._place.reading() as link:
            return faults_of(link, head=head)

    def export(self) -> dict[str, Any]:
        """Return terms, entries and head as one record; outputs by their digests."""
        with self._place.reading() as link:
            text, _ = read_terms(link)
            head = read_head(link)
            entries = [entry.to_dict() for entry, _ in read_entries(link)]
        return {
            "terms": json.loads(text),
            "entries": entries,
            "head": {"count": head.count, "hash": head.hash},
        }

    @contextmanager
    def _following(self) -> Iterator[None]:
        """Bring the book up to date with what others wrote."""
        with self._lock:
            with self._place.reading() as link:
                self._book.follow(link, read_head(link))
            yield

    def _known(self, found: dict[str, Entry], charge: Charge) -> dict[str, Entry]:
        entry = found.get("charge")
        if entry is None or entry.hash != charge.hash:
            raise LedgerError(
                f"charge {charge.key!r} must be one of this ledger, got another."
            )
        return found
