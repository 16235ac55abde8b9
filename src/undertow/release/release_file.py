"""A release from Python: load a file or take a table, plan, and run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow.errors import LedgerError, LimitReached, MissingLedger, PlanError
from undertow.release.document._error import path_text
from undertow.release.document.release_document import (
    ReleaseDocument,
    read_release,
    release_from_mapping,
)
from undertow.release.finding import TableCheck, check_table
from undertow.release.plan.planned_release import ReleasePlan, plan_release
from undertow.release.plan.timeline import Timeline, run_moment
from undertow.release.run._earlier import (
    require_kept_ledger,
    require_newest,
    require_one_budget,
)
from undertow.release.run._ledger_place import (
    NewBudget,
    create_ledger,
    file_of,
    has_ledger,
    init_command,
    is_latest,
    is_named,
    ledger_address,
    new_budget,
    open_ledger,
)
from undertow.release.run._limit import RunWatch
from undertow.release.run.protocol import (
    Progress,
    foreseen,
    read_table,
    run_release,
    with_charge,
)
from undertow.release.run.record import ReleaseRun
from undertow.release.source._place import absent_table

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger


_LEDGER = "a ledger, the name of a file or an address"


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseFile:
    """A release that can be planned and run.

    Parameters
    ----------
    document : ReleaseDocument
        What it says.
    title : str
        What it is called.
    table : object, optional
        The table in memory, where the document names none.

    See Also
    --------
    load : from a TOML file.
    from_table : from an object in memory.
    """

    document: ReleaseDocument
    title: str
    table: Any = None

    def plan(self, *, as_of: date | str | None = None) -> ReleasePlan:
        """Return cost, noise and expected error; no data is read, nothing charged.

        The time may be still to come; a plain date is its midnight in UTC. Without
        it, the first run of a running total is planned, and else one run that reads
        the whole horizon.
        """
        return plan_release(self.document, as_of=run_moment(as_of))

    def check(self, *, as_of: date | str | None = None) -> TableCheck:
        """Compare the release with its table, for the owner of the table alone.

        Rows are counted at every step on which the release may lose them: exact numbers
        without noise, no part of a release. Nothing is written and nothing is charged.
        """
        return check_table(self.plan(as_of=as_of), table=self.table)

    def run(
        self,
        *,
        ledger: BudgetLedger | str | os.PathLike[str] | None = None,
        as_of: date | str | None = None,
        output: str | os.PathLike[str] | None = None,
        repeat: int = 1,
        recount: int = 1,
        command: str | None = None,
        progress: Progress | None = None,
        note: Progress | None = None,
        made: Callable[[NewBudget], None] | None = None,
        time_limit_s: float | None = None,
        memory_mb: int | None = None,
        ending: Callable[[str], None] | None = None,
    ) -> ReleaseRun:
        """Charge the ledger, release, and write the files.

        Parameters
        ----------
        ledger : BudgetLedger, str or path, optional
            One that is there. By default what the file says, or the file beside the
            table with the ending ``.ledger``: that one alone is made, with the promise
            as its budget, once the table has been read; not if anything says that
            releases of the table were charged before, or if there is a ledger of the
            same people nearby.
        as_of : date, datetime or str, optional
            The time of the run of a continual release; not one still to come. Running
            totals need it; without them, one run reads the whole horizon if it is left
            out.
        output : str or path, optional
            The folder; by default what the file says, and nothing is written for a
            table in memory. It must hold no other release.
        repeat, recount, command, progress, note
            As in :func:`~undertow.release.run.protocol.run_release`.
        made : callable, optional
            Told of the ledger that the run has made, if it makes one: also where it is
            refused afterwards.
        time_limit_s : float, optional
            The most seconds that the run may take until its noise is drawn.
        memory_mb : int, optional
            The most memory that this process may have, in millions of bytes, with all
            that it has already.
        ending : callable, optional
            Called with a sentence where the run cannot be left ten seconds after it met
            a limit; a program gives what ends its process.

        Raises
        ------
        PlanError
            Among others, if there is a running total and `as_of` is not given.
        LimitReached
            If the run meets a limit. Once the table is read it is charged then, without
            an output: whether a limit is met depends on the rows.
        """
        self._require_time(as_of)
        with RunWatch(
            time_limit_s=time_limit_s, memory_mb=memory_mb, ending=ending
        ) as watch:
            try:
                plan = watch.bounded(lambda: self.plan(as_of=as_of))
            except LimitReached as fault:
                raise LimitReached(
                    f"{fault}; no row was read yet and nothing is charged: run it "
                    "again with a larger limit."
                ) from None
            about: dict[str, Any] = {
                "table": self.table,
                "folder": self._folder(plan.timeline, output),
                "title": self.title,
                "repeat": repeat,
                "recount": recount,
                "progress": progress,
                "watch": watch,
            }
            named = {"command": command, "note": note}
            return self._run(plan, ledger, about=about, named=named, made=made)

    def _run(
        self,
        plan: ReleasePlan,
        ledger: BudgetLedger | str | os.PathLike[str] | None,
        *,
        about: dict[str, Any],
        named: dict[str, Any],
        made: Callable[[NewBudget], None] | None,
    ) -> ReleaseRun:
        """Read a table whose ledger is not there yet, make that, and run."""
        from undertow.ledger import BudgetLedger

        if isinstance(ledger, BudgetLedger):
            return run_release(plan, ledger, **about, **named)
        given = None if ledger is None else path_text(ledger, "ledger", kind=_LEDGER)
        address = ledger_address(self.document, given=given)
        read, absent = None, absent_table(self.document)
        new: list[NewBudget] = []

        def told() -> None:
            new.append(self._new_budget(plan, address, after=True))
            if made is not None:
                made(new[0])

        path = file_of(address)
        if absent is not None and path is not None and not path.exists():
            raise absent  # before anything is said of ledgers
        if not has_ledger(address):  # it fixes the budget for good, so it is made last
            self._require_new(plan, address, about["folder"], given=given is not None)
            try:
                read = read_table(plan, **about)
            except LimitReached as fault:
                with self._open(plan, address, made=told) as opened:
                    raise with_charge(
                        fault,
                        plan,
                        opened,
                        title=self.title,
                        repeat=about["repeat"],
                    ) from None
        with self._open(plan, address, made=told) as opened:
            done = run_release(plan, opened, reading=read, **about, **named)
        return replace(done, new_budget=new[0]) if new else done

    def create_ledger(
        self,
        address: str | os.PathLike[str],
        *,
        dataset: str | None = None,
        as_of: date | str | None = None,
    ) -> BudgetLedger:
        """Make a ledger for this release on purpose, with the promise as its budget.

        Parameters
        ----------
        address : str or path
            Where there is none yet.
        dataset : str, optional
            The data set whose budget this is; by default the title of the release.
        as_of : date, datetime or str, optional
            The time of the first run of a continual release.

        See Also
        --------
        undertow.ledger.BudgetLedger.create : with other budgets.
        """
        place = path_text(address, "address", kind=_LEDGER)
        return create_ledger(
            self.plan(as_of=as_of), place, dataset=dataset or self.title
        )

    def new_budget(self, *, as_of: date | str | None = None) -> NewBudget | None:
        """Return the ledger that a run that names none would make; None if it is there.

        Raises
        ------
        PlanError
            If nothing says where a ledger would be.
        """
        address = ledger_address(self.document)
        if is_named(self.document) or has_ledger(address, looking=True):
            return None
        return self._new_budget(self.plan(as_of=as_of), address, after=False)

    def _new_budget(self, plan: ReleasePlan, address: str, *, after: bool) -> NewBudget:
        return new_budget(plan, address, dataset=self.title, after=after)

    def notes(self, *, as_of: date | str | None = None) -> list[str]:
        """Return what a person should know before a run that names no ledger.

        Whether it would return an answer that is stored, whether its question was
        answered under other names, and whether the same people were charged elsewhere.
        Nothing is written, and no data is read.

        Raises
        ------
        PlanError
            If nothing says where a ledger would be.
        """
        from undertow.ledger import BudgetLedger

        if as_of is None and self._has_totals():
            return []
        address, plan = ledger_address(self.document), self.plan(as_of=as_of)
        if not has_ledger(address, looking=True):
            return []
        with BudgetLedger.open(file_of(address) or address, read_only=True) as opened:
            return foreseen(plan, opened, self.folder(as_of=as_of))

    def require_ledger(self, *, as_of: date | str | None = None) -> None:
        """Refuse what a run that names no ledger would be refused for.

        Nothing is written.

        Raises
        ------
        BudgetError
            If its ledger was lost, or there is one of the same people nearby, or it is
            an older copy.
        LedgerError
            If the ledger that the file names is not there.
        PlanError
            If the table is not there, or nothing says where a ledger would be.
        """
        address, absent = ledger_address(self.document), absent_table(self.document)
        path, folder = file_of(address), self.folder(as_of=as_of)
        if absent is not None and path is not None and not path.exists():
            raise absent
        if not has_ledger(address, looking=True):
            self._require_new(self.plan(as_of=as_of), address, folder, given=False)
        elif is_latest(address):
            from undertow.ledger import BudgetLedger

            with BudgetLedger.open(address, read_only=True) as opened:
                require_newest(self.document, opened, folder)

    def _open(
        self, plan: ReleasePlan, address: str, *, made: Callable[[], None]
    ) -> BudgetLedger:
        """Open or make the ledger of a run; say how one on a server is made."""
        try:
            return open_ledger(plan, address, made=made)
        except MissingLedger:
            if file_of(address) is not None:
                raise
            command = init_command(plan, address, dataset=self.title)
            # One address alone, whose password is found whatever it is.
            raise MissingLedger(
                "the database that is named for this release must hold a ledger, got "
                "none; look for a typing mistake, or make it on purpose with "
                f"{command}."
            ) from None

    def _require_new(
        self, plan: ReleasePlan, address: str, folder: Path | None, *, given: bool
    ) -> None:
        """Refuse to make a ledger that is named, or where there was or is another."""
        command = init_command(plan, address, dataset=self.title)
        require_kept_ledger(
            self.document, ledger=address, folder=folder, named=given, made_by=command
        )
        if given or is_named(self.document):
            raise LedgerError(
                f"{file_of(address)} must be a ledger, since it is named for this "
                f"release, got none; look for a typing mistake, or make it on purpose "
                f"with {command}."
            )
        require_one_budget(
            self.document, ledger=address, folder=folder, made_by=command
        )

    def folder(
        self,
        *,
        as_of: date | str | None = None,
        output: str | os.PathLike[str] | None = None,
    ) -> Path | None:
        """Return where a run writes its files; None if it writes none."""
        source, running = self.document.source, self._has_totals()
        timeline = Timeline.of(source, as_of=as_of, continual=running)
        return self._folder(timeline, output)

    def _has_totals(self) -> bool:
        return any(query.running for query in self.document.queries)

    def _require_time(self, as_of: date | str | None) -> None:
        # Run 1 would be meant, whose stored output passes for the latest total.
        if as_of is None and self._has_totals():
            raise PlanError(
                "as_of must be given for a running total, got nothing; give the time "
                "of the run, such as --as-of 2026-01-02T00:00."
            )

    def _folder(
        self, timeline: Timeline, output: str | os.PathLike[str] | None
    ) -> Path | None:
        if output is not None:
            folder = Path(path_text(output, "output"))
        elif self.table is not None:
            return None
        else:
            folder = self.document.path(self.document.output.folder)
        run = timeline.run
        return folder if run is None else folder / f"run-{run:06d}"


def load(path: str | os.PathLike[str]) -> ReleaseFile:
    """Load a release file.

    Raises
    ------
    PlanError
        If it is no release file.
    """
    file = Path(path_text(path, "path"))
    return ReleaseFile(read_release(file), file.stem)


def from_table(
    table: Any, release: Mapping[str, Any], *, title: str = "release"
) -> ReleaseFile:
    """Make a release of a table in memory.

    Parameters
    ----------
    table : object
        A pandas, Polars or Arrow table, or an Ibis expression.
    release : mapping
        As in a release file, without ``source.table``.
    title : str, optional
        What it is called.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"person": [1, 2, 2], "zone": ["A", "A", "B"]})
    >>> release = from_table(visits, {
    ...     "source": {"unit": "person"},
    ...     "promise": {"granularity": "user", "epsilon": "1"},
    ...     "bounds": {"rows_per_unit": 2},
    ...     "queries": [{"name": "visits", "select": "count", "by": ["zone"],
    ...                  "keys": {"zone": ["A", "B", "C"]}}],
    ... })
    >>> release.plan().queries[0].mechanism
    'discrete Laplace noise of scale 4'
    """
    document = release_from_mapping(release, in_memory=True)
    return ReleaseFile(document, title, table)
