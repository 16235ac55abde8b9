"""Which ledger a release is charged to, and how a missing one is made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from undertow.errors import LedgerError, PlanError
from undertow.privacy.loss import ZCDP, Approx, Loss
from undertow.release.allotment import calibrate_rho

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger
    from undertow.release.document import ReleaseDocument
    from undertow.release.plan import ReleasePlan

__all__ = ["ledger_address", "open_ledger"]

_SQLITE = "sqlite:///"


def ledger_address(document: ReleaseDocument, *, given: str | None = None) -> str:
    """Return where the ledger of a release is: as given, as stated, or beside it.

    Parameters
    ----------
    document : ReleaseDocument
        Its ``ledger.url``, if any; relative files start at the folder of the release.
    given : str, optional
        Takes precedence; relative to the working directory.

    Notes
    -----
    Without either, the ledger is the file beside the table, of the table's name and
    with the ending ``.ledger``: all releases of one table find the same one.

    Raises
    ------
    PlanError
        If the table is in memory or on a server, so that nothing says where.
    """
    if given is not None:
        return given
    table = document.source.table
    if document.ledger is not None:
        url = document.ledger.url
        path = url.removeprefix(_SQLITE)
        return str(document.path(path)) if url != path or "://" not in url else url
    if table is None or "://" in table:
        raise PlanError(
            "ledger must be given for a table in memory or on a server, got none; name "
            "a file, or the address of a PostgreSQL ledger."
        )
    # Aliases of one file find one ledger.
    file = document.path(table.partition("#")[0])
    while any(mark in file.name for mark in "*?["):  # a pattern: its folder
        file = file.parent
    return str(file.resolve().with_suffix(".ledger"))


def open_ledger(plan: ReleasePlan, address: str) -> BudgetLedger:
    """Open the ledger of a release; make it if there is no such file.

    A ledger that is made has one budget: what the release promises, at its granularity.
    So a second, different release of the same data is refused until somebody makes a
    ledger with a larger budget on purpose (``undertow ledger init``). A file with
    nothing in it was left by a run that was killed while it made the ledger; the ledger
    is made then. Where several runs make it at once, one does and the others open it.

    Raises
    ------
    LedgerError
        If it is for another data set or cannot be opened.
    """
    from undertow.ledger import BudgetLedger

    stated = plan.document.ledger
    path = Path(address.removeprefix(_SQLITE))
    dataset = path.stem if stated is None else stated.dataset
    is_file = "://" not in address or address.startswith(_SQLITE)
    if is_file and _is_empty(path):
        if not path.parent.is_dir():
            raise PlanError(f"ledger must be in a folder that exists, got {path}.")
        try:
            return BudgetLedger.create(
                path,
                dataset=dataset,
                domain=plan.domain,
                budgets={plan.promise.granularity: _budget(plan)},
            )
        except LedgerError:
            if _is_empty(path):
                raise
    ledger = BudgetLedger.open(path if is_file else address)
    if stated is not None and ledger.dataset != dataset:
        found, name = ledger.dataset, ledger.name
        ledger.close()
        raise LedgerError(
            f"{name} must be the ledger of {dataset!r}, got that of {found!r}; name "
            "another one."
        )
    return ledger


def _is_empty(path: Path) -> bool:
    """Tell whether there is no file, or one in which nothing was made yet."""
    if not path.exists():
        return True
    try:
        # As any reader would: a file of SQLite with no table in it.
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as link:
            [found] = link.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        return False
    return bool(found == 0)


def _budget(plan: ReleasePlan) -> Loss:
    """Return the budget that keeps the promise over all runs that it covers.

    Several runs that meet in one unit would each pay the whole delta of an (epsilon,
    delta) budget; in zCDP they add up, and the total converts to the promise.
    """
    promise = plan.promise
    if not isinstance(promise.total, Approx) or plan.timeline.runs == 1:
        return promise.total
    if promise.keys_delta:
        return promise.total
    epsilon = Fraction(promise.total.exact_parameters()[0])
    return ZCDP(calibrate_rho(epsilon, promise.conversion_delta))
