"""The persistent budget of a data set: charge first, then draw noise, then store.

`BudgetLedger` is what changes a ledger, `LedgerReader` what can be asked of one without
changing it. What callers give and what comes back from the database is checked.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from threading import RLock
from typing import Any, Self

from sqlalchemy import insert

from undertow.composition import Release, release_to_document
from undertow.composition._charge import loss_of
from undertow.composition.release import require_drawn
from undertow.errors import BudgetError, BudgetExceeded, LedgerError, MismatchError
from undertow.ledger._book import Book
from undertow.ledger._database import (
    Writer,
    count_kinds,
    migrate,
    read_entries,
    read_head,
    read_key,
    read_output,
    read_terms,
    schema_of,
    upgrade_schema,
)
from undertow.ledger._database import (
    head as head_table,
)
from undertow.ledger._database import (
    terms as terms_table,
)
from undertow.ledger._place import Place, place_of
from undertow.ledger.fault import Fault, faults_of
from undertow.ledger.record import (
    Charge,
    Entry,
    Head,
    LeakageBudget,
    Limit,
    Terms,
    bits_of,
    canonical,
    charge_of,
    digest,
    instant,
    loss_to_document,
    plain_text,
)
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity

# What can be asked of a ledger without changing it.


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


# What callers give and what comes back from the database, checked.

LARGEST_OUTPUT = 512 * 2**20
"""The most bytes one stored output may have."""

_LONGEST_KEY = 500
_MOST_BITS = 1590  # such a fraction is read back; it is written with 1000 characters


def checked_releases(
    releases: Iterable[Release],
) -> tuple[tuple[Release, ...], list[dict[str, Any]]]:
    """Return releases and their documents."""
    asked = tuple(releases)
    if not asked:
        raise ValueError("releases must hold at least one release, got none.")
    for release in asked:
        if not isinstance(release, Release):
            raise TypeError(
                f"releases must hold Release objects, got {type(release).__name__}."
            )
        require_drawn(
            f"release {release.name!r}", (claim.loss for claim in release.claims)
        )
        if any(bits_of(claim.loss) > _MOST_BITS for claim in release.claims):
            raise ValueError(
                f"the loss of release {release.name!r} must be a fraction of at most "
                "480 digits above and below, got a longer one; round it up."
            )
    return asked, [release_to_document(release) for release in asked]


def require_key(key: str) -> None:
    """Refuse a key that is no short text."""
    fits = isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY
    if not fits or not key.isprintable():
        raise ValueError(
            f"key must be a text of 1 to {_LONGEST_KEY} printable characters, got "
            "another value."
        )


def plain(details: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return details as JSON reads them back."""
    try:
        text = canonical(dict(details or {}))
        text.encode("utf-8")
        found: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            "details must be texts, finite numbers, lists and mappings, got another "
            "value."
        ) from None
    return found


def require_same(entry: Entry, documents: list[dict[str, Any]]) -> None:
    """Refuse a key that was charged for other releases."""
    if canonical(entry.body["releases"]) != canonical(documents):
        raise LedgerError(
            f"key {entry.key!r} must name one charge, got other releases than those "
            f"charged under it in entry {entry.number}; choose another key."
        )


def checked_output(output: bytes) -> bytes:
    """Return an output as bytes of a size that can be kept."""
    if not isinstance(output, bytes | bytearray | memoryview):
        raise TypeError(f"output must be bytes, got {type(output).__name__}.")
    content = bytes(output)
    if len(content) > LARGEST_OUTPUT:
        raise ValueError(
            f"output must have at most {LARGEST_OUTPUT} bytes, got {len(content)}; "
            "release fewer cells at once."
        )
    return content


def checked_stored(content: bytes | None, entry: Entry) -> bytes:
    """Return stored bytes if they are those that were written."""
    if content is None or digest(content) != entry.body["sha256"]:
        raise LedgerError(
            f"the output of charge {entry.key!r} must be as it was stored, got other "
            "bytes; run undertow ledger verify and restore a copy."
        )
    return content


def left_of(budget: Loss, spent: Loss) -> Loss:
    """Return the budget less what is spent, exactly; zero where nothing is left."""
    pairs = zip(budget.exact_parameters(), spent.exact_parameters(), strict=True)
    left = [
        math.inf if total == math.inf else max(Fraction(0), total - used)
        for total, used in pairs
    ]
    return loss_of(budget.notion, *left)
