"""What a process knows of the history: read once, and added up while it is exact.

The book reads the charges that were written since it last looked, and keeps a tally of
them for each notion of the budgets. Claims about the same view in the same unit are
added before they are priced, so that a history of a hundred thousand counts of one
column costs as much as one of them. On a stream a new release is priced with those
charges alone that a change which moves it can move as well.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import is_not
from typing import Any

import numpy as np
from sqlalchemy import Connection

from undertow.composition import (
    Claim,
    Plan,
    Release,
    compose_coded,
    domain_to_document,
    plan_from_document,
)
from undertow.composition._charge import FITS, loss_of, squared_rate, tag_of
from undertow.errors import (
    LedgerError,
    MismatchError,
    NotionMismatchError,
    UndertowError,
)
from undertow.ledger._database import read_entries
from undertow.ledger.record import Entry, Head, Limit, Terms, canonical
from undertow.numeric.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.change import Column
from undertow.spaces.domain import Stream
from undertow.spaces.unit import Event, WEvent
from undertow.spaces.view import At, Identity, Times, Window


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


# All that was charged, merged as far as the sum stays exact.
#
# The cost of a claim at influence :math:`a` is :math:`\varepsilon a` for pure losses,
# :math:`\rho a^2` for zCDP and :math:`\mu^2 a^2` for GDP: linear in the parameter.
# Claims about the same view in the same unit can therefore be added before they are
# priced, and a history of a hundred thousand counts of one column costs as much as one
# of them. What is not linear (approximate losses, pure ones read as GDP) is counted,
# not added.

_ZERO: dict[str, Loss] = {
    "pure": Pure(0),
    "zcdp": ZCDP(0),
    "gdp": GDP(0),
    "approx": Approx(0, 0),
}


@dataclass(frozen=True, slots=True)
class _Item:
    """Releases that share their claims: how many, or one with their sum."""

    columns: tuple[Column, ...]
    losses: tuple[Loss, ...]
    count: int
    adds: bool

    @property
    def rate(self) -> Exact:
        """The parameter that the others are in proportion to."""
        return self.losses[0].exact_parameters()[0]

    def __add__(self, other: _Item) -> _Item:
        if not self.adds:
            return _Item(self.columns, self.losses, self.count + other.count, False)
        pairs = zip(self.losses, other.losses, strict=True)
        return _Item(self.columns, tuple(a + b for a, b in pairs), 1, True)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Releases on top of a tally: the items they change, and losses with them."""

    releases: tuple[Release, ...] = ()
    changed: dict[Hashable, _Item] = field(default_factory=dict)
    losses: dict[Granularity, Loss] = field(default_factory=dict)


class Tally:
    """The releases of a ledger, in one notion.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    notion : {"pure", "zcdp", "gdp", "approx"}
        That of the budgets this tally is compared with.
    """

    def __init__(self, domain: Domain, notion: str) -> None:
        self._domain, self._notion = domain, notion
        self._items: dict[Hashable, _Item] = {}
        self._rates: dict[Hashable, Loss] = {}
        self._index = TimeIndex()
        self._near = notion != "approx" and isinstance(domain, Stream)
        self._known: dict[Granularity, Loss] = {}
        self._trial = _Trial()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, releases: Iterable[Release]) -> None:
        """Write down releases that were charged."""
        several = tuple(releases)
        self._known = {
            target: self.loss(target, extra=several) for target in self._known
        }
        for key, item in self._try(several).changed.items():
            if key not in self._items:
                # All claims of a release are about one view.
                self._index.add(key, item.columns[0].view)
            self._items[key] = item
        self._trial = _Trial()

    def loss(self, target: Granularity, *, extra: Iterable[Release] = ()) -> Loss:
        """Return the loss at a granularity, `extra` included.

        Raises
        ------
        NotionMismatchError
            If a release makes no claim that can be stated in the notion.
        """
        several = tuple(extra)
        if not several:
            if target not in self._known:
                self._known[target] = self._whole(target, self._items)
            return self._known[target]
        trial = self._try(several)
        if target not in trial.losses:
            trial.losses[target] = self._after(target, trial)
        return trial.losses[target]

    def _try(self, several: tuple[Release, ...]) -> _Trial:
        """Return what some releases would change; the last answer is kept."""
        asked = self._trial.releases
        if len(asked) != len(several) or any(map(is_not, asked, several)):
            self._trial = _Trial(several, self._with(several), {})
        return self._trial

    def _after(self, target: Granularity, trial: _Trial) -> Loss:
        changed = trial.changed
        reach = reach_of(target) if self._near and self._items else None
        if reach is None:
            return self._whole(target, {**self._items, **changed})
        near = self._index.near([r.view for r in trial.releases], reach=reach)
        if near is None or len(near) > len(self._items) // 2:
            return self._whole(target, {**self._items, **changed})
        local = {key: self._items[key] for key in near}
        found, before = self._whole(target, {**local, **changed}), self.loss(target)
        return before if found.within(before) else found

    def _whole(self, target: Granularity, items: Mapping[Hashable, _Item]) -> Loss:
        if not items:
            return _ZERO[self._notion]
        if len(items) == 1:
            ((key, item),) = items.items()
            if item.adds and 0 < item.rate < math.inf:
                return self._scaled(target, key, item)
        return self._compose(target, items.values())

    def _scaled(self, target: Granularity, key: Hashable, item: _Item) -> Loss:
        """Return the loss of one item: its rate times the loss at rate one."""
        known = self._rates.get((target, key))
        if known is None:
            losses = tuple(_times(x, 1 / item.rate) for x in item.losses)
            unit = _Item(item.columns, losses, 1, True)
            known = self._rates[target, key] = self._compose(target, [unit])
        return _times(known, item.rate)

    def alone(self, target: Granularity, releases: Iterable[Release]) -> Loss:
        """Return the loss of some releases, as if nothing else had been charged."""
        return Tally(self._domain, self._notion).loss(target, extra=releases)

    def _with(self, releases: Iterable[Release]) -> dict[Hashable, _Item]:
        """Return the items that releases add to, after the addition."""
        changed: dict[Hashable, _Item] = {}
        for release in releases:
            key, item = self._read(release)
            known = changed.get(key) or self._items.get(key)
            changed[key] = item if known is None else known + item
        return changed

    def _read(self, release: Release) -> tuple[Hashable, _Item]:
        stated = [
            (_stated(claim.loss, self._notion), claim) for claim in release.claims
        ]
        usable = [(loss, claim) for loss, claim in stated if loss is not None]
        if not usable:
            held = ", ".join(sorted({c.loss.notion for c in release.claims}))
            raise NotionMismatchError(
                f"release {release.name!r} must make a claim that can be stated in "
                f"{self._notion}, got {held} only; give the ledger a budget in another "
                "notion, or add a claim."
            )
        losses = tuple(loss for loss, _ in usable)
        columns = tuple(_column(release, claim) for _, claim in usable)
        ratios = _ratios(losses, self._notion)
        adds = ratios is not None
        return (columns, ratios if adds else losses), _Item(columns, losses, 1, adds)

    def _compose(self, target: Granularity, items: Iterable[_Item]) -> Loss:
        columns: dict[Column, int] = {}
        losses: dict[Loss, int] = {}
        claims: list[tuple[int, int, int]] = []
        first = 0
        counts = []
        for item in items:
            for column, loss in zip(item.columns, item.losses, strict=True):
                at = columns.setdefault(column, len(columns))
                claims.append((at, losses.setdefault(loss, len(losses)), first))
                counts.append(item.count)
            first += item.count
        codes = _repeated(claims, counts)
        single = len(codes) == first
        return compose_coded(
            self._domain,
            target,
            columns=list(columns),
            losses=list(losses),
            column_codes=codes[:, 0],
            loss_codes=codes[:, 1],
            release_codes=None if single else codes[:, 2],
            notion=self._notion,
        ).loss


def _times(loss: Loss, factor: Exact) -> Loss:
    return loss_of(loss.notion, loss.exact_parameters()[0] * factor)


def _column(release: Release, claim: Claim) -> Column:
    return Column(release.view, claim.unit, claim.setting)


def _stated(loss: Loss, notion: str) -> Loss | None:
    """Return the loss in the form that adds up in `notion`; None if it has none."""
    if tag_of(loss) not in FITS[notion]:
        return None
    if notion == "pure":
        return loss_of("pure", loss.exact_parameters()[0])
    return loss_of("zcdp", squared_rate(loss, "zcdp")) if notion == "zcdp" else loss


def _ratios(losses: tuple[Loss, ...], notion: str) -> tuple[Fraction, ...] | None:
    """Return each loss over the first; None where losses must not be added.

    The cheapest of several claims is found per change. It is the same claim for two
    releases whose losses are in proportion, and only then can they be added.
    """
    if notion == "approx" or (
        notion == "gdp" and any(tag_of(x) == "pure" for x in losses)
    ):
        return None
    values = [loss.exact_parameters()[0] for loss in losses]
    if len(values) == 1:
        return (Fraction(1),)
    if values[0] == 0 or math.inf in values:
        return None
    return tuple(Fraction(value) / Fraction(values[0]) for value in values)


def _repeated(claims: list[tuple[int, int, int]], counts: list[int]) -> np.ndarray:
    """Write each claim as often as its release was charged, releases numbered on."""
    codes = np.array(claims, dtype=np.int64)
    times = np.array(counts, dtype=np.int64)
    if (times == 1).all():
        return codes
    long = np.repeat(codes, times, axis=0)
    starts = np.repeat(np.cumsum(times) - times, times)
    long[:, 2] += np.arange(len(long)) - starts
    return long


# Which charges one more release can meet, on a stream.
#
# A change at event level touches one time, one at w-event level at most `w` consecutive
# times. If a new release sees the times :math:`S`, a change that moves it lies within
# :math:`w - 1` of a time in :math:`S`, and moves no release whose times are all farther
# away. So with :math:`L` the loss before and :math:`N` the releases that are near,
#
# .. math:: \max_\kappa \sum_{i} c_i(\kappa)
#           = \max\Bigl(L, \max_\kappa \sum_{i \in N} c_i(\kappa)\Bigr):
#
# a class that does not move the new release costs what it did before, and one that does
# is moved by near releases only; the right side has no term that the left has not. The
# cost of a charge is then that of its neighbourhood, however long the stream runs.


def reach_of(target: Granularity) -> int | None:
    """Return how many consecutive times one change can touch; None if unbounded."""
    if isinstance(target, Event):
        return 1
    return target.w if isinstance(target, WEvent) else None


def times_of(view: View) -> frozenset[int] | None:
    """Return the times a view sees; None if it may see all of them."""
    return view.times if isinstance(view, At | Times | Window) else None


class TimeIndex:
    """Keys of releases, found by the times they see."""

    def __init__(self) -> None:
        self._everywhere: set[Hashable] = set()
        self._at: dict[int, set[Hashable]] = {}

    def add(self, key: Hashable, view: View) -> None:
        """Write down a key and what it sees."""
        times = times_of(view)
        if times is None:
            self._everywhere.add(key)
            return
        for time in times:
            self._at.setdefault(time, set()).add(key)

    def near(self, views: Iterable[View], *, reach: int) -> set[Hashable] | None:
        """Return the keys that a change moving one of `views` can move as well.

        Parameters
        ----------
        views : iterable of View
            What the new releases see.
        reach : int
            How many consecutive times one change can touch.

        Returns
        -------
        set or None
            None where that may be all of them.
        """
        found = set(self._everywhere)
        for view in views:
            times = times_of(view)
            if times is None:
                return None
            span = {t + step for t in times for step in range(1 - reach, reach)}
            if len(span) > len(self._at):
                span = {t for t in self._at if t in span}
            for time in span:
                found |= self._at.get(time, set())
        return found
