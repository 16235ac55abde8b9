"""Which ledger a release is charged to, how one is made, and which ones it fits."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._address import refused_name, shown_address
from undertow.composition import domain_to_document
from undertow.errors import (
    AssumptionError,
    LedgerError,
    MismatchError,
    PlanError,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, shown_loss
from undertow.release.plan._budget import calibrate_rho
from undertow.release.source._place import table_of
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain import Stream, Table
from undertow.spaces.unit import Event, LTrajectory, User, WEvent

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger
    from undertow.release.document.release_document import ReleaseDocument
    from undertow.release.plan.planned_release import ReleasePlan


_SQLITE = "sqlite:///"
_MANY = 10  # releases for which a larger ledger is proposed


@dataclass(frozen=True, slots=True, eq=False)
class NewBudget:
    """A ledger that a run makes by itself, or would make.

    Parameters
    ----------
    ledger : str
        Where it is.
    granularity : str
        What its one budget is for.
    budget : Loss
        What the release promises.
    unit, people : str or None
        Whose budget it is: the column of the unit, and the words of the release file.
    many : str or None
        The command that makes a ledger with room for several such releases, if there
        can be one: this one before the first run, another one after it.
    """

    ledger: str
    granularity: str
    budget: Loss
    unit: str | None
    people: str | None
    many: str | None

    def words(self) -> str:
        """Say what was made, and what to do where it is too small."""
        room = "It has room for this release alone."
        if self.many is not None:
            room = (
                "It has room for this release alone; further ones of the same people "
                "need a budget that is stated on purpose and adds to this one, such as "
                f"for {_MANY} of them, to be named with --ledger: {self.many}"
            )
        return (
            f"Made a new budget of {shown_loss(self.budget)} at {self.granularity} "
            f"level for {_people(self.unit, self.people)} at {_near(self.ledger)}; "
            f"people counted elsewhere have another one. {room}"
        )

    def coming(self) -> str:
        """Say what a run would make, and how to make a larger one before it."""
        said = (
            f"A run makes this ledger, with a new budget of {shown_loss(self.budget)} "
            f"at {self.granularity} level for {_people(self.unit, self.people)}: room "
            "for this release alone"
        )
        if self.many is None:
            return f"{said}."
        return (
            f"{said}. For several of the same people, as in a new file every week, "
            f"make it before the first run, such as for {_MANY} of them, and name it "
            f"with --ledger in each: {self.many}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "ledger": self.ledger,
            "granularity": self.granularity,
            "budget": self.budget.to_dict(),
            "unit": self.unit,
            "people": self.people,
            "many": self.many,
        }


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
    from undertow.ledger.budget_ledger import require_kept

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


def open_ledger(
    plan: ReleasePlan,
    address: str,
    *,
    made: Callable[[], None] | None = None,
) -> BudgetLedger:
    """Open the ledger of a release; make it if there is no such file.

    `made` is called where it was made here, and by nobody else meanwhile.

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
            new = create_ledger(plan, address, dataset=dataset or path.stem)
        except LedgerError:
            if _is_empty(path):
                raise
        else:
            if made is not None:
                made()
            return new
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


def is_latest(address: str) -> bool:
    """Tell whether a file is a ledger that is opened without being written to.

    One of an older schema is brought to the present one by whoever opens it.
    """
    from undertow.ledger._database import LATEST, schema_of
    from undertow.ledger._place import place_of

    if file_of(address) is None:
        return False
    place = place_of(address, read_only=True)
    try:
        with place.reading() as link:
            return schema_of(link) == LATEST
    finally:
        place.close()


def init_command(
    plan: ReleasePlan, address: str, *, dataset: str, times: int = 1
) -> str:
    """Return the command that makes the ledger of a release on purpose.

    Parameters
    ----------
    plan : ReleasePlan
        Of the release.
    address : str
        Where the ledger would be; a password is left out of the command.
    dataset : str
        What the release is called, where it does not name its data set.
    times : int
        For how many releases like this one there is room.
    """
    stated, file = plan.document.ledger, plan.document.file
    place = file_of(address)
    shown = shown_address(address) if place is None else _near(str(place))
    if place is not None and refused_name(shown) is not None:
        shown = f"./{shown}"  # by which a path is told from an address
    words = ["undertow", "ledger", "init", shown]
    words += ["--dataset", dataset if stated is None else stated.dataset]
    words += [
        "--granularity",
        f"{plan.promise.granularity.name}={_said_sizes(plan, times)}",
    ]
    if file is not None:
        words += ["--release", str(file)]
    else:
        words += ["--domain", json.dumps(domain_to_document(plan.domain))]
    return shlex.join(words)


def new_budget(
    plan: ReleasePlan, address: str, *, dataset: str, after: bool
) -> NewBudget:
    """Return what a run makes where there is no ledger yet.

    Parameters
    ----------
    plan : ReleasePlan
        Of the release.
    address : str
        Where the ledger is or would be.
    dataset : str
        What the release is called, where it does not name its data set.
    after : bool
        Whether it is there, so that a larger one needs another name.
    """
    source = plan.document.source
    return NewBudget(
        address,
        plan.promise.granularity.name,
        _budget(plan),
        None if source.kind == "event" else source.unit,
        source.people,
        enlarged(plan, address, dataset=dataset, after=after),
    )


def enlarged(
    plan: ReleasePlan, address: str, *, dataset: str, after: bool
) -> str | None:
    """Return the command that makes a ledger for several releases like this one.

    Parameters
    ----------
    plan, address, dataset, after
        As in :func:`new_budget`.

    Returns
    -------
    str or None
        None where several together would have a delta of 1 or more, and for a server.
    """
    loss, path = _budget(plan), file_of(address)
    if isinstance(loss, Approx) and _MANY * loss.exact_parameters()[1] >= 1:
        return None
    if path is None:
        return None
    base, number = path, 2
    while after and path.exists():
        path = base.with_name(f"{base.stem}-{number}{base.suffix}")
        number += 1
    return init_command(plan, str(path), dataset=dataset, times=_MANY)


def people_words(document: ReleaseDocument) -> str:
    """Say whose rows a release counts, as far as its file tells."""
    source = document.source
    return _people(None if source.kind == "event" else source.unit, source.people)


def _people(unit: str | None, people: str | None) -> str:
    if people is not None:
        return repr(people)
    return "rows" if unit is None else f"the unit {unit!r}"


def _near(place: str) -> str:
    """Return a file below the working directory by its name from there."""
    path, here = Path(place), Path.cwd()
    if "://" in place or not path.is_absolute() or not path.is_relative_to(here):
        return place
    return os.path.relpath(path, here)


def _said_sizes(plan: ReleasePlan, times: int) -> str:
    """Return so many times the budget of a release in the words of ``ledger init``."""
    loss = _budget(plan)
    names = {
        "pure": ("epsilon",),
        "approx": ("epsilon", "delta"),
        "zcdp": ("rho",),
        "gdp": ("mu",),
    }
    sizes = [times * Fraction(size) for size in loss.exact_parameters()]
    if isinstance(loss, GDP):  # its square adds up
        whole = GDP.from_square(sizes[0])
        root = whole.exact_root()
        sizes = [Fraction(repr(whole.mu)) if root is None else root]
    return ",".join(
        f"{name}:{size}" for name, size in zip(names[loss.notion], sizes, strict=True)
    )


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
    from undertow.ledger._place import is_still, sqlite_uri

    try:
        # SQLite would remove the journal that is left of a file with nothing in it.
        if path.stat().st_size == 0:
            return path.is_file()
    except OSError:
        return not path.exists()
    still = is_still(path)
    try:
        found = _tables_in(sqlite_uri(path, still=still or looking))
        return found == 0 and (still or not looking)
    except sqlite3.OperationalError:
        if looking:
            return False
    except sqlite3.Error:
        return False
    try:
        # A kill while the file was set up leaves a journal that a writer rolls back.
        return _tables_in(path.absolute().as_uri() + "?mode=rw") == 0
    except sqlite3.Error:
        return False


def _tables_in(address: str) -> int:
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
