"""Which ledger a release is charged to, and how a missing one is made."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._address import refused_name
from undertow.composition import domain_to_document
from undertow.errors import AssumptionError, LedgerError, MismatchError, PlanError
from undertow.privacy.loss import ZCDP, Approx, Loss
from undertow.release.allotment import calibrate_rho
from undertow.release.table_place import table_of
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain import Stream, Table
from undertow.spaces.granularity import Event, LTrajectory, User, WEvent

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger
    from undertow.release.document import ReleaseDocument
    from undertow.release.plan import ReleasePlan

__all__ = [
    "create_ledger",
    "file_of",
    "frame_of",
    "has_ledger",
    "init_command",
    "is_named",
    "ledger_address",
    "open_ledger",
    "require_ledger",
]

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
    stated = None if document.ledger is None else document.ledger.url
    named = stated if given is None else given
    refusal = None if named is None else refused_name(named)
    if refusal is not None:
        raise PlanError(f"ledger {refusal}.")
    if named is not None:
        _require_file(named)
    if given is not None:
        return given
    if document.ledger is not None:
        url = document.ledger.url
        path = file_of(url)
        return url if path is None else str(document.path(str(path)))
    place = table_of(document)
    default = None if place is None else place.ledger
    if place is None or default is None:
        raise PlanError(
            "ledger must be given for a table in memory or on a server, got none; name "
            "a file, or the address of a PostgreSQL ledger."
        )
    former = place.former_ledger
    if former is not None and former.is_file() and not default.exists():
        return str(former)
    return str(default)


def _require_file(named: str) -> None:
    """Refuse what could never be a ledger before a command to make it is said."""
    from undertow.ledger.reader import require_kept

    if named.lower().startswith("file:") and not Path(named).exists():
        raise PlanError(
            "ledger must be a path without file: before it, got one with it; leave it "
            "out, or put ./ before a file of that name."
        )
    file_of(named)  # which refuses options
    require_kept(named)


def file_of(address: str) -> Path | None:
    """Return the file of an address, as ledgers read it; None for that of a server.

    Raises
    ------
    PlanError
        If the address has options, which might put the ledger elsewhere.
    """
    if "://" not in address:
        return Path(address)
    if not address.startswith(_SQLITE):
        return None
    from sqlalchemy.engine import make_url

    url = make_url(address)
    if url.query:
        raise PlanError(
            "ledger must be an address without options, got one with some; name a file."
        )
    return Path(url.database or "")


def has_ledger(address: str, *, looking: bool = False) -> bool:
    """Tell whether there is something to open, or a ledger would be made.

    Parameters
    ----------
    address : str
        From :func:`ledger_address`.
    looking : bool
        Whether nothing may be written, not even beside the file. What is in a journal
        alone then counts as a ledger.

    Raises
    ------
    PlanError
        If the folder in which it would be made is not there.
    """
    path = file_of(address)
    if path is None or not _is_empty(path, looking=looking):
        return True
    if not path.parent.is_dir():
        raise PlanError(f"ledger must be in a folder that exists, got {path}.")
    return False


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
    path = file_of(address)
    dataset = None if stated is None else stated.dataset
    if path is not None and not has_ledger(address):
        try:
            return create_ledger(plan, address, dataset=dataset or path.stem)
        except LedgerError:
            if _is_empty(path):
                raise
    ledger = BudgetLedger.open(address if path is None else path)
    if dataset is not None and ledger.dataset != dataset:
        found, name = ledger.dataset, ledger.name
        ledger.close()
        raise LedgerError(
            f"{name} must be the ledger of {dataset!r}, got that of {found!r}; name "
            "another one."
        )
    return ledger


def create_ledger(plan: ReleasePlan, address: str, *, dataset: str) -> BudgetLedger:
    """Make a ledger whose one budget is what a release promises, at its granularity."""
    from undertow.ledger import BudgetLedger

    path = file_of(address)
    return BudgetLedger.create(
        address if path is None else path,
        dataset=dataset,
        domain=plan.domain,
        budgets={plan.promise.granularity: _budget(plan)},
    )


def is_named(document: ReleaseDocument) -> bool:
    """Tell whether a release file says where its ledger is."""
    ledger = document.ledger
    return ledger is not None and "url" in ledger.model_fields_set


def init_command(plan: ReleasePlan, address: str, *, dataset: str) -> str:
    """Return the command that makes the ledger of a release on purpose.

    Parameters
    ----------
    plan : ReleasePlan
        Of the release.
    address : str
        Where the ledger would be.
    dataset : str
        What the release is called, where it does not name its data set.
    """
    stated, file = plan.document.ledger, plan.document.file
    name = str(file_of(address) or address)
    # A relative path has lost the ./ by which it was told from an address.
    name = name if refused_name(name) is None else f"./{name}"
    words = ["undertow", "ledger", "init", name]
    words += ["--dataset", dataset if stated is None else stated.dataset]
    loss = _budget(plan)
    names = {"pure": ("epsilon",), "approx": ("epsilon", "delta"), "zcdp": ("rho",)}
    sizes = zip(names[loss.notion], loss.exact_parameters(), strict=True)
    said = ",".join(f"{name}:{size}" for name, size in sizes)
    words += ["--granularity", f"{plan.promise.granularity.name}={said}"]
    if file is not None:
        words += ["--release", str(file)]
    else:
        words += ["--domain", json.dumps(domain_to_document(plan.domain))]
    return shlex.join(words)


def frame_of(plan: ReleasePlan) -> dict[str, Any]:
    """Return what units and times of the ledger's domain stand for in a release."""
    return plan.timeline.frame(plan.document.source)


def require_ledger(plan: ReleasePlan, ledger: BudgetLedger) -> None:
    """Refuse a ledger that a release cannot be charged to.

    A ledger of windows takes releases per user as well: they see all times, and rows
    outside of the windows cost no more than rows inside (proved on the page *The
    ledger*). Any other difference of domains is refused.

    Raises
    ------
    MismatchError
        If the domain or the meaning of units and times is another.
    AssumptionError
        If the promised granularity has no budget, or the ledger holds a budget or a
        model at a granularity that rows outside of the windows are not priced at.
    """
    if ledger.domain != plan.domain:
        _require_windows(plan, ledger)
    promised = plan.promise.granularity
    if promised not in ledger.budgets:
        known = ", ".join(sorted(other.name for other in ledger.budgets))
        raise AssumptionError(
            f"the ledger {ledger.name} must hold a budget at the promised granularity "
            f"{promised.name}, got {known}; make one with undertow ledger init."
        )
    ledger.require_frame(frame_of(plan), plan.releases)


def _require_windows(plan: ReleasePlan, ledger: BudgetLedger) -> None:
    """Refuse a ledger of another domain, unless its windows take whole users."""
    ours, found = plan.domain, ledger.domain
    windows = found.times if isinstance(found, Stream) else 1
    longer = Stream(plan.document.source.users, windows)
    if plan.timeline.kind != "user" or found != longer:
        raise MismatchError(
            f"the ledger {ledger.name} must be made for {_said(ours)}, got one for "
            f"{_said(found)}; {_way_out(plan, ledger)}."
        )
    promised = plan.promise.granularity
    if promised not in (User(), User(add_remove=True)):
        raise AssumptionError(
            "promise.granularity must be user or user:add-remove where the ledger "
            f"counts windows, got {promised.name}, which is another thing there."
        )
    _require_levels(ledger, windows)


def _require_levels(ledger: BudgetLedger, windows: int) -> None:
    """Refuse levels at which rows outside of the windows might cost more."""
    for level in ledger.budgets:
        if not _prices_outside(level, windows):
            raise AssumptionError(
                "budgets of a ledger that takes releases per user must be at user, "
                f"event, l-trajectory or w-event level, of at most {windows} windows "
                f"unless of a single user, got {level.name}; rows outside of the "
                "windows are not priced there."
            )
    for name, model in ledger.models.items():
        if not isinstance(model.granularity, User):
            raise AssumptionError(
                "models of a ledger that takes releases per user must be at user "
                f"level, got {model.granularity.name} for {name!r}; they say nothing "
                "about rows outside of the windows."
            )


def _said(domain: Domain) -> str:
    """Say what a domain is, as far as releases differ in it."""
    if domain == Table():
        return "a table of rows"
    if isinstance(domain, Stream) and domain == Stream(domain.users, domain.times):
        rest = "as a whole" if domain.times == 1 else f"in {domain.times} windows"
        return f"{domain.users} users {rest}"
    return repr(domain)


def _way_out(plan: ReleasePlan, ledger: BudgetLedger) -> str:
    """Say what to do about a ledger of another domain."""
    ours, found = plan.domain, ledger.domain
    if not (isinstance(ours, Stream) and isinstance(found, Stream)):
        return (
            "a unit may have any number of rows, so that losses of rows and of units "
            "have no sum in one ledger; use a ledger of its own, whose budget comes on "
            "top for whoever is in both"
        )
    if ours.users != found.users:
        return "state the same source.users, or use a ledger of its own"
    if found.times == 1:
        return (
            "a ledger that takes releases per user and per window is made by undertow "
            "ledger init with --release and the file of the windows"
        )
    return "state the same source.horizon and source.per, or use a ledger of its own"


def _prices_outside(target: Granularity, times: int) -> bool:
    """Tell whether a change outside of the windows costs what one inside does."""
    if isinstance(target, WEvent):
        return target.single_user or target.w <= times
    return isinstance(target, Event | LTrajectory | User)


def _is_empty(path: Path, *, looking: bool = False) -> bool:
    """Tell whether there is no file, or one in which nothing was made yet."""
    from undertow.ledger.still import is_still, sqlite_uri

    try:
        # SQLite would remove the journal that is left of a file with nothing in it.
        if path.stat().st_size == 0:
            return path.is_file()
    except OSError:
        return not path.exists()
    still = is_still(path)
    try:
        found = _tables(sqlite_uri(path, still=still or looking))
        return found == 0 and (still or not looking)
    except sqlite3.OperationalError:
        if looking:
            return False
    except sqlite3.Error:
        return False
    try:
        # A kill while the file was set up leaves a journal that a writer rolls back.
        return _tables(path.absolute().as_uri() + "?mode=rw") == 0
    except sqlite3.Error:
        return False


def _tables(address: str) -> int:
    """Return how many tables are in a file, as any reader would count them."""
    with closing(sqlite3.connect(address, uri=True)) as link:
        [found] = link.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(found)


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
