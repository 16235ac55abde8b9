"""What a run reads, what a unit of the accounting is, and how totals run on.

The windows of a release are read one by one, or all at once; running totals add up few
noisy nodes of a binary tree. The times are said as plain values and in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import PlanError
from undertow.release.document.time import EPOCH, epoch_us, in_utc, read_moment
from undertow.release.engine.job import Bounding, Slice
from undertow.release.plan.noise import ClaimUnit
from undertow.spaces import Event, Identity, Stream, Table, Unbounded, User, Window
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.unit import parse_granularity
from undertow.spaces.unit.table import Bounded

ADDING = ("unbounded", "add-remove")
"""Parts of the names of granularities in which units come and go."""

# Runs up to which the composition of all of them is worked out.
_MOST_RUNS = 100_000
_BEGINNING = -(2**62)
_DAY_US = 86_400_000_000
_CSV = (".csv", ".csv.gz", ".csv.zst", ".tsv")


@dataclass(frozen=True, slots=True)
class Timeline:
    """The windows of a release, which of them this run reads, and all its runs.

    Parameters
    ----------
    kind : {"user", "window", "event"}
        Over what the rows of a unit are counted.
    domain : Domain
        The databases the accounting ranges over.
    unit : ClaimUnit
        What one step of every claim is.
    slice : Slice or None
        The times this run reads; None for all.
    run : int or None
        Number of this run, from 1, where every window has a run of its own.
    runs : int
        How many runs the promise covers.
    window_us : int or None
        Length of a window.
    asked : bool
        Whether the time of the run was stated.
    """

    kind: str
    domain: Domain
    unit: ClaimUnit
    slice: Slice | None
    run: int | None
    runs: int
    window_us: int | None
    asked: bool = False

    @classmethod
    def of(cls, source: Any, *, as_of: date | str | None, continual: bool) -> Timeline:
        """Return the timeline of a source part.

        Parameters
        ----------
        source : SourcePart
            With `kind`, `time`, `start`, `horizon`, `window_us`, `windows`, `users`.
        as_of : date, datetime or str, optional
            The time of a run; it reads the last window that is over by then.
        continual : bool
            Whether every window has a run of its own even if `as_of` is not given;
            the first one is then planned.

        Raises
        ------
        PlanError
            If `as_of` is no time, or no window of the horizon ends at or before it.
        """
        moment = run_moment(as_of)
        if source.kind == "window":
            return cls._windowed(source, moment, continual=continual)
        claim = ClaimUnit(User(add_remove=True), User())
        domain: Domain = Stream(source.users, 1)
        if source.kind == "event":
            claim, domain = ClaimUnit(Unbounded(), Bounded()), Table()
        part = _plain_slice(source, moment)
        asked = moment is not None
        return cls(source.kind, domain, claim, part, None, 1, None, asked)

    @classmethod
    def _windowed(
        cls, source: Any, moment: datetime | None, *, continual: bool
    ) -> Timeline:
        start, length = epoch_us(source.start), source.window_us
        run: int | None = None
        first, last = 0, source.windows
        if moment is not None or continual:
            run = _run_at(source, moment)
            first, last = run - 1, run
        # A second claim would make the accounts of many runs slow.
        swap = Event() if run is None else None
        return cls(
            "window",
            Stream(source.users, source.windows),
            ClaimUnit(Event(add_remove=True), swap),
            Slice(source.time, start + first * length, start + last * length),
            run,
            1 if run is None else source.windows,
            length,
            moment is not None,
        )

    @property
    def start_us(self) -> int:
        """The start of the first window."""
        assert self.slice is not None
        assert self.window_us is not None
        return self.slice.start - ((self.run or 1) - 1) * self.window_us

    @property
    def windows_read(self) -> int:
        """How many windows a run reads; 1 where there are no windows."""
        if isinstance(self.domain, Stream) and self.run is None:
            return self.domain.times
        return 1

    def require_over(self, now: datetime) -> None:
        """Refuse a run for a time that is still to come.

        Its output would be that of a window with a part of its rows, and stay so. A
        run for which no time is stated reads what there is.

        Raises
        ------
        PlanError
            If what the run reads ends after `now`.
        """
        if self.slice is None or not (self.asked or self.run is not None):
            return
        if self.slice.stop > epoch_us(now):
            end = EPOCH + timedelta(microseconds=self.slice.stop)
            raise PlanError(
                "as_of must be a time that is over, got a run that reads up to "
                f"{end.isoformat()}; wait until then, because its output is kept."
            )

    def views(self) -> tuple[View, ...]:
        """Return what a query sees in each run."""
        if self.kind != "window":
            return (Identity(),)
        if self.run is None:
            return (Window(0, self.windows_read),)
        return tuple(Window(at, 1) for at in range(self.runs))

    def view(self) -> View:
        """Return what a query sees in this run."""
        views = self.views()
        return views[0 if self.run is None else self.run - 1]

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of a running total that this run releases: one."""
        assert self.run is not None
        return (run_node(self.run),)

    def tree_views(self) -> tuple[View, ...]:
        """Return the views of all nodes of a running total, one for every run."""
        return tuple(
            node_view(run_node(run), windows_per_run=1)
            for run in range(1, self.runs + 1)
        )

    def node_slice(self, node: Node) -> Slice:
        """Return the times that a node covers."""
        assert self.slice is not None
        assert self.window_us is not None
        start = self.start_us
        return Slice(
            self.slice.column,
            start + (node.first - 1) * self.window_us,
            start + node.last * self.window_us,
        )

    def granularity(self, name: str, *, correlated: bool) -> Granularity:
        """Return the promised granularity on this domain.

        Raises
        ------
        PlanError
            If it makes no sense on the domain.
        """
        if self.kind == "event" and name in ("event", "event:add-remove"):
            return Bounded() if correlated else Unbounded()
        target = parse_granularity(name)
        try:
            target.require_domain(self.domain)
        except ValueError:
            first = ("event",) if self.kind == "event" else ()
            names = (*first, *self.usual())
            kind = "rows" if self.kind == "event" else "units"
            raise PlanError(
                f"promise.granularity must fit source.per, got {name!r} for a table of "
                f"{kind}; it can be {', '.join(names)}."
            ) from None
        return target

    def replaces_units(self, target: Granularity) -> bool:
        """Tell whether one change at a granularity may replace all that a unit has."""
        if not isinstance(self.domain, Stream):
            return False
        return target == User() or (target == Event() and self.domain.times == 1)

    def usual(self) -> tuple[str, ...]:
        """Return the granularities a plan is priced at, the weakest first."""
        if self.kind == "event":
            return ("unbounded", "bounded")
        if self.kind == "user":
            return ("user:add-remove", "user")
        assert self.window_us is not None
        day = _DAY_US // self.window_us
        windows = self.domain.times if isinstance(self.domain, Stream) else 1
        shown = (f"w-event:{day}",) if 1 < day < windows else ()
        return ("event:add-remove", "event", *shown, "user:add-remove", "user")

    def frame(self, source: Any) -> dict[str, Any]:
        """Return what units and times stand for, so that charges can be put together.

        Two files whose units are other columns, or whose windows start elsewhere or
        have another length, number other things alike. So do files that read a column
        of a CSV file as other things: a date is the first hour of its day.
        """
        found: dict[str, Any] = {"unit": None if self.kind == "event" else source.unit}
        if source.people is not None:
            found["people"] = source.people
        if self.window_us is not None:
            found |= {
                "time": source.time,
                "window": self.window_us,
                "start": self.start_us,
            }
        for role in ("unit", "time"):
            kind = source.types.get(
                found.get(role), "text" if _is_csv(source) else None
            )
            if found.get(role) is not None and kind is not None:
                found[f"type of {role}"] = str(kind)
        return found

    def bounding(self, source: Any, bounds: Any) -> Bounding:
        """Return how the engine bounds the rows of a unit."""
        if self.kind == "event" or source.unit is None:
            return Bounding(None, None)
        windowed = self.kind == "window"
        return Bounding(
            source.unit,
            bounds.rows_per_unit,
            self.window_us if windowed else None,
            source.time if windowed else None,
        )


def _is_csv(source: Any) -> bool:
    """Tell whether the columns of a table are what the release file says they are."""
    name = (source.table or "").lower()
    plain = any(isinstance(kind, str) for kind in source.types.values())
    return plain or source.format == "csv" or name.endswith(_CSV)


def _run_at(source: Any, moment: datetime | None) -> int:
    """Return the number of the last window that is over, the first if none is asked."""
    windows = source.windows
    if windows > _MOST_RUNS:
        raise PlanError(
            f"source.horizon must be at most {_MOST_RUNS} windows where each has a run "
            f"of its own, got {windows}; use longer windows or a shorter horizon."
        )
    if moment is None:
        return 1
    run = (epoch_us(moment) - epoch_us(source.start)) // source.window_us
    if not 1 <= run <= windows:
        raise PlanError(
            f"as_of must be a time at which one of the {windows} windows from "
            f"{source.start.isoformat()} on has just ended, got {moment.isoformat()}."
        )
    return int(run)


def run_moment(as_of: date | str | None) -> datetime | None:
    """Return the time of a run in UTC; a plain date is its midnight.

    Raises
    ------
    PlanError
        If it is neither a time nor the text of one.

    Examples
    --------
    >>> run_moment(date(2026, 1, 31))
    datetime.datetime(2026, 1, 31, 0, 0)
    """
    moment: datetime | None = None
    if isinstance(as_of, str):
        moment = read_moment(as_of)
    elif isinstance(as_of, datetime):
        moment = _in_utc(as_of)
    elif isinstance(as_of, date):
        moment = datetime.combine(as_of, time())
    if as_of is not None and moment is None:
        raise PlanError(
            f"as_of must be a time such as '2026-01-31T12:00', got {str(as_of)[:40]!r}."
        )
    return moment


def _in_utc(moment: datetime) -> datetime | None:
    try:
        return in_utc(moment)
    except OverflowError:
        return None


def _plain_slice(source: Any, moment: datetime | None) -> Slice | None:
    """Return from `start` to the horizon, or to `moment` if that is earlier."""
    if source.start is None and moment is None:
        return None
    if source.time is None:
        raise PlanError("source.time must be given with as_of, got nothing.")
    start = _BEGINNING if source.start is None else epoch_us(source.start)
    stop = -_BEGINNING
    if source.horizon is not None:
        stop = start + source.horizon
    if moment is not None:
        stop = min(stop, epoch_us(moment))
    if stop <= start:
        raise PlanError(
            "as_of must be after source.start, got an earlier time; nothing would be "
            "read."
        )
    return Slice(source.time, start, stop)


# Running totals by a binary tree: every total is a sum of few noisy nodes.
#
# The runs are numbered 1, 2, ...; run t releases one node, once: the runs t - 2^l + 1
# to t, where 2^l is the largest power of two that divides t. The total of the runs 1 to
# t is the sum of the nodes of the binary digits of t.


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The runs `first` to `last`, both included, released in run `last`.

    Examples
    --------
    >>> Node(5, 8).level, str(Node(5, 8))
    (2, '5..8')
    """

    first: int
    last: int

    @property
    def level(self) -> int:
        """The level: the node covers two to this power many runs."""
        return (self.last - self.first + 1).bit_length() - 1

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def run_node(run: int) -> Node:
    """Return the node that a run releases: the only one ending there that totals add.

    Parameters
    ----------
    run : int
        Number of the run, from 1.

    Notes
    -----
    The nodes of a total end where the binary digits of its run do: the node of a digit
    2^l ends at the sum t of that digit and all larger ones, so that 2^l is the smallest
    digit of t. Its length is thus fixed by where it ends; smaller nodes that end at t
    would be paid for and never read. The total of run t itself ends with this node.

    Examples
    --------
    >>> [str(run_node(run)) for run in (1, 2, 3, 4, 6)]
    ['1..1', '1..2', '3..3', '1..4', '5..6']
    """
    _require_run(run)
    return Node(run - (run & -run) + 1, run)


def running_nodes(run: int) -> tuple[Node, ...]:
    """Return the nodes that add up to the total of the runs 1 to `run`, in order.

    Examples
    --------
    >>> [str(node) for node in running_nodes(7)]
    ['1..4', '5..6', '7..7']
    """
    _require_run(run)
    found: list[Node] = []
    first = 1
    for level in reversed(range(run.bit_length())):
        if run >> level & 1:
            found.append(Node(first, first + 2**level - 1))
            first += 2**level
    return tuple(found)


def running_total(nodes: Mapping[str, Sequence[Any]], run: int) -> NDArray[Any]:
    """Add up the stored noisy nodes of a run's total.

    Parameters
    ----------
    nodes : mapping of str to sequence
        Noisy whole numbers of each released node, by its name, one per cell.
    run : int
        Number of the run.

    Raises
    ------
    PlanError
        If a node that the total needs was not stored.

    Examples
    --------
    >>> running_total({"1..2": [5, 1], "3..3": [2, -1]}, 3).tolist()
    [7, 0]
    """
    parts = []
    for node in running_nodes(run):
        if str(node) not in nodes:
            raise PlanError(
                f"earlier outputs must hold the runs {node} of a running total, got "
                "none; run the release for the earlier times first."
            )
        parts.append([int(k) for k in nodes[str(node)]])
    if len({len(part) for part in parts}) > 1:
        raise PlanError(
            "earlier outputs must have the same cells in every run, got different "
            "numbers of them; start a new release where keys change."
        )
    return np.asarray(np.sum(np.array(parts, dtype=np.object_), axis=0))


def node_view(node: Node, *, windows_per_run: int) -> Window:
    """Return the windows that a node reads, numbered from 0.

    Notes
    -----
    A node is an ordinary release through this view. The nodes of one level are
    disjoint and leave gaps, so that a window lies in at most one node of every level;
    the first window lies in one of each. The engine charges an event for the nodes that
    hold its window, a block of w windows and a user for every window of theirs that a
    node reads, without being told about trees.

    Examples
    --------
    >>> node_view(Node(3, 4), windows_per_run=1)
    Window(start=2, length=2)
    """
    length = (node.last - node.first + 1) * windows_per_run
    return Window((node.first - 1) * windows_per_run, length)


def _require_run(run: int) -> None:
    if run < 1:
        raise ValueError(f"run must be at least 1, got {run}.")


# The times that the numbers of a run are for, as plain values and in words.


def period_record(timeline: Timeline, *, running: bool = False) -> dict[str, Any]:
    """Return from when until when a run reads, ISO 8601 in UTC; None where no end is.

    Parameters
    ----------
    timeline : Timeline
        Of the run.
    running : bool
        Whether totals run on from the start of the first window.
    """
    part = timeline.slice
    if part is None:
        return {"from": None, "until": None}
    start = timeline.start_us if running else part.start
    return {"from": _iso_moment(start), "until": _iso_moment(part.stop)}


def _iso_moment(microseconds: int) -> str | None:
    # An open end is stated as a time that no calendar has.
    try:
        moment = EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=UTC).isoformat()


def period_words(times: Mapping[str, Any]) -> str:
    """Say from when until when; empty if nothing is known, as in older records.

    Examples
    --------
    >>> period_words({"from": "2026-01-04T00:00:00+00:00",
    ...               "until": "2026-01-05T00:00:00+00:00"})
    '2026-01-04 00:00 to 2026-01-05 00:00 UTC'
    """
    start, stop = (_shown(times.get(end)) for end in ("from", "until"))
    if start and stop:
        return f"{start} to {stop} UTC"
    if start:
        return f"{start} UTC and later"
    return f"before {stop} UTC" if stop else ""


def _shown(moment: str | None) -> str:
    """Return a moment to the minute, or as exactly as it needs."""
    if moment is None:
        return ""
    found = datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None)
    whole = not found.second and not found.microsecond
    return found.isoformat(" ", "minutes" if whole else "auto")


def run_fact(plan: Mapping[str, Any]) -> tuple[str, str]:
    """Return which run it is and the times it is for, a heading and a text.

    Parameters
    ----------
    plan : mapping
        The record of a plan; those of earlier versions name no times.

    Examples
    --------
    >>> run_fact({"run": 4, "runs": 7, "queries": []})
    ('run', '4 of 7')
    """
    times = period_words(plan)
    if plan["run"] is None:
        return "times read", times
    number = f"{plan['run']:,} of {plan['runs']:,}"
    if not times:
        return "run", number
    begun = {query["from"] for query in plan["queries"]} - {plan["from"]}
    more = "".join(f"; running totals from {_shown(start)} UTC on" for start in begun)
    return "run", f"{number}: {times}{more}"


def run_words(plan: Mapping[str, Any]) -> str:
    """Say which run it is and the times it is for, in one sentence or none.

    Examples
    --------
    >>> run_words({"run": 4, "runs": 7, "queries": []})
    'Run 4 of 7.'
    """
    name, text = run_fact(plan)
    if not text:
        return ""
    return f"Run {text}." if name == "run" else f"Times read: {text}."
