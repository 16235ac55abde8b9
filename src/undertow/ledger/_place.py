"""Where a ledger lives: files and servers, transactions, and faults in one sentence.

A charge that is committed must stay committed: on the disk when the commit returns, in
the file that others see, and after everything that was committed before.

A ledger that is only looked at is read without writing anything, not even beside it.
It keeps its journal beside it (``-wal``) while somebody has it open, with an index of
it in shared memory (``-shm``). SQLite makes both for a reader too, and leaves them
behind where that reader may not write; in a folder closed to writing it gives up.
There are two cases.

* The journal holds something: somebody has the ledger open, or was killed. What is in
  it counts, so the file is opened in the mode ``ro``, which sees it and takes part in
  SQLite's locks. The index is there already, or has to be made.
* The journal is not there or empty: all that was ever committed is in the file itself,
  and it is opened as ``immutable``, which makes, locks and writes nothing. That would
  not be safe if the file were written to meanwhile. A writer who comes now writes to a
  journal first, and to the file when the journal is put into it; so the file is
  compared before and after, and what was read from one that changed is thrown away.

For that nothing here opens the file itself. A process that closes a file gives up all
its locks on it, those of its other connections too; the next to leave would then take
itself for the last one and remove a journal that is still written to.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from undertow._address import is_address, read_address, refused_name, shown_address
from undertow.errors import LedgerError, UndertowError

_PATIENCE_S = 60
_PAUSE_S = 0.02
_POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg")
# What the drivers say, and what a person can do about it. Their own words may hold
# values, so they are never repeated.
_REASONS = {
    "readonly": ("is read-only", "make it and its folder writable"),
    "read-only": ("is read-only", "make it and its folder writable"),
    "permission denied": ("is not yours to use", "ask for the rights to it"),
    "disk is full": ("has no room left", "free some space"),
    "disk i/o error": ("could not be written", "check the disk it is on"),
    "no space left": ("has no room left", "free some space"),
    "is locked": ("is busy with another writer", "try again"),
    "not a database": ("is no SQLite file", "give the path of a ledger"),
    "malformed": ("is damaged", "restore it from a copy"),
    "decode": ("is damaged", "restore it from a copy"),
    "constraint": ("was edited", "run undertow ledger verify"),
    "duplicate column": ("was edited", "restore it from a copy"),
    "unable to open": ("cannot be opened", "check the path and its rights"),
    "no such column": ("holds no ledger", "make one with undertow ledger init"),
    "no such table": ("holds no ledger", "make one with undertow ledger init"),
    "already exists": ("was made by somebody else just now", "open it"),
    "does not exist": ("holds no ledger", "make one with undertow ledger init"),
    "append-only": ("is append-only", "add an entry instead"),
    "connection": ("cannot be reached", "check the address and that it runs"),
}
# A journal that has to be rolled back: somebody was killed while it was written to.
_HALF_WRITTEN = (
    "was left in the middle of a write by a process that was killed",
    "let the next run or undertow ledger init open it, which finishes that",
)
_UNUSABLE = "{} must be a ledger that can be used, but it {}; {}."
# Waits for readers of older states, and makes the file itself durable.
_CARRY_OVER = "PRAGMA wal_checkpoint(FULL)"
# Faults of the place where a file is, and not of what is in it.
_OF_THE_DISK = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_PLACES: WeakSet[Place] = WeakSet()


class Place:
    """The database of one ledger.

    Parameters
    ----------
    url : URL
        With a driver this package supports.
    read_only : bool
        Whether it is only looked at. A SQLite file then needs no rights but to read it,
        in a folder that may be closed to writing.
    """

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        self.url, self.read_only = url, read_only
        self.path = Path(url.database or "").absolute() if self.is_file else None
        wait = _PATIENCE_S
        self._engine = writing_engine(url, self.path, patience_s=wait)
        if self.path is not None and read_only:
            self._engine = reading_engine(self.path, patience_s=wait)
            self._still = reading_engine(self.path, still=True, patience_s=wait)
        self._process = os.getpid()
        _PLACES.add(self)

    @property
    def is_file(self) -> bool:
        """Whether it is one SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def name(self) -> str:
        """How messages call it, without a password."""
        if self.path is not None:
            return str(Path(self.url.database or ""))
        return shown_address(self.url.render_as_string(hide_password=False))

    def claim(self) -> None:
        """Create the file, readable by its owner alone, unless it is there.

        It keeps its journal beside it (``-wal``), so that readers do not wait.
        """
        if self.path is None:
            return
        try:
            if not self.path.exists():
                _make_file(self.path)
            _prepare_file(self.path)
        except sqlite3.Error as fault:
            if getattr(fault, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK:
                state, way = _reason(fault)
                raise LedgerError(
                    f"{self.name} must be a place where a file can be made, but it "
                    f"{state}; {way}."
                ) from None
            raise LedgerError(
                f"{self.name} must be a new path or an empty file, got another file; "
                "choose another path."
            ) from None
        except OSError as fault:
            raise LedgerError(
                f"{self.name} must be a place where a file can be made, got "
                f"{fault.strerror}; choose another path."
            ) from None

    def require_file(self) -> None:
        """Refuse a path with no file: opening must not make an empty one."""
        if self.path is None:
            return
        try:
            mode = self.path.stat().st_mode
        except OSError:
            raise LedgerError(
                f"{self.name} must be a ledger, got no such file; make one with "
                "undertow ledger init."
            ) from None
        if not stat.S_ISREG(mode):
            raise LedgerError(f"{self.name} must be a ledger, got no plain file.")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the ledger.

        Raises
        ------
        LedgerError
            If the file was written to meanwhile and is open to read alone.
        """
        before = None
        if self.path is not None and self.read_only:
            before = stamp_of(self.path)
            before = before if is_still(self.path) else None
        still = before is not None
        try:
            with self._faults(), self._link(still=still) as link:
                if self.path is None:  # SQLite's readers see one state anyway
                    link = link.execution_options(isolation_level="REPEATABLE READ")
                with link.begin():
                    yield link
        except UndertowError:
            self._require_same(before)
            raise
        self._require_same(before)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that no other writer can overlap.

        It is committed at the end of the block, and only then; after a fault nothing of
        it remains.

        Raises
        ------
        LedgerError
            If it is open to read alone, or there is no writing to it.
        """
        if self.read_only:
            raise LedgerError(
                f"{self.name} must be open for writing, got it open to read alone; "
                "open it without read_only."
            )
        with self._faults(), self._link() as link:
            link = link.execution_options(undertow_writes=True)
            with link.begin():
                self._require_files(link)
                yield link
            self._require_files(link)

    def settle(self) -> None:
        """Carry every commit from the journal into the file, on the disk.

        A copy of the file alone, without its journal, then holds all of them.

        Raises
        ------
        LedgerError
            If a reader or another writer is in the way for too long.
        """
        if self.path is None or self.read_only:
            return
        end = time.monotonic() + _PATIENCE_S
        while not self._carry_over():
            # SQLite does not wait by itself for another process that does the same.
            if time.monotonic() > end:
                raise LedgerError(_UNUSABLE.format(self.name, *_REASONS["is locked"]))
            time.sleep(_PAUSE_S)

    def _carry_over(self) -> bool:
        """Try to put the whole journal into the file, and tell whether it is there."""
        try:
            with self._faults(), self._link() as link:
                driver: Any = link.connection.dbapi_connection
                waiting, _, _ = driver.execute(_CARRY_OVER).fetchone()
        except sqlite3.Error as fault:
            if getattr(fault, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            state, way = _reason(fault)
            raise LedgerError(_UNUSABLE.format(self.name, state, way)) from None
        return not waiting

    @contextmanager
    def closed_on_fault(self) -> Iterator[None]:
        """Leave no connection behind where opening fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _require_same(self, before: tuple[int, ...] | None) -> None:
        """Refuse what was read while somebody wrote, if nothing kept them apart."""
        if self.path is not None and before not in (None, stamp_of(self.path)):
            raise LedgerError(
                f"{self.name} must stay as it is while it is read, got a file that was "
                "written to; try again."
            ) from None

    def _require_files(self, link: Connection) -> None:
        """Refuse to write to a file or a journal that is not in its place any more."""
        if self.path is None:
            return
        names, known = link.info[FILES]
        found = files_of(*names)
        whole = (found[3] is None) == (found[6] is None)  # a journal and its index
        if found == known and found[2] == 1 and whole:
            return
        link.invalidate()  # the next transaction opens what is there then
        if found[2] is not None and found[2] > 1:
            raise LedgerError(
                f"{self.name} must be a file of one name, got one of {found[2]}: each "
                "would have a journal of its own; keep one of them, and copy instead."
            )
        raise LedgerError(
            f"{self.name} must stay in its place while it is open, got another file or "
            "journal there, or none; see that nobody moves it, and try again."
        )

    def _link(self, *, still: bool = False) -> Connection:
        if os.getpid() != self._process:  # connections do not survive a fork
            self._engine.dispose(close=False)
            self._process = os.getpid()
        return (self._still if still else self._engine).connect()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as fault:
            state, way = _reason(fault)
            raise LedgerError(_UNUSABLE.format(self.name, state, way)) from None


def _close_all() -> None:
    """Close what is open before the process forks.

    SQLite would take the locks of the parent for those of the child, which has none:
    the parent, once it leaves, removes the journal that the child goes on writing to.
    """
    for place in list(_PLACES):
        place.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)


def _reason(fault: Exception) -> tuple[str, str]:
    cause = getattr(fault, "orig", fault)
    if getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return _HALF_WRITTEN
    words = str(cause).lower()
    for sign, reason in _REASONS.items():
        if sign in words:
            return reason
    return f"failed ({type(fault).__name__})", "look at its server"


def place_of(address: str | os.PathLike[str], *, read_only: bool = False) -> Place:
    """Return the place of a path or of a database URL.

    Parameters
    ----------
    address : str or path
        A path to a file, ``sqlite:///path``, or ``postgresql://user@host/name``.
    read_only : bool
        Whether it is only looked at.

    Raises
    ------
    LedgerError
        If it is neither, or the driver is not installed.
    """
    text = os.fspath(address)
    if not text:
        raise LedgerError("a ledger must have a path or a URL, got an empty text.")
    # A path is a file, whatever its name; a text may be an address.
    refusal = refused_name(text) if isinstance(address, str) else None
    if refusal is not None:
        raise LedgerError(f"a ledger {refusal}.")
    if "://" not in text:
        return Place(URL.create("sqlite", database=text), read_only=read_only)
    try:
        server = read_address(text) if is_address(text) else None
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(
            "a ledger's URL must be read in one way, got another text; write at signs, "
            "colons, slashes, question and number signs and percent signs in a user or "
            "password as %40 %3A %2F %3F %23 %25, and the rest such as sqlite:///file "
            "or postgresql://user@host/name."
        ) from None
    if server is not None and server.fragment:
        raise LedgerError("a ledger's URL must name no table after #, got one.")
    if server is not None and url.drivername in _POSTGRESQL:
        named = url.set(database=server.database or None)
        return _postgresql(named, read_only=read_only)
    if url.drivername not in ("sqlite", "sqlite+pysqlite") or not url.database:
        raise LedgerError(
            "a ledger must be a SQLite file or a PostgreSQL database, got "
            f"{url.drivername!r}; give a path, or postgresql://user@host/name."
        )
    return Place(url, read_only=read_only)


def _postgresql(url: URL, *, read_only: bool) -> Place:
    try:
        return Place(url.set(drivername="postgresql+psycopg"), read_only=read_only)
    except (ImportError, NoSuchModuleError):
        raise LedgerError(
            "psycopg must be installed for a ledger on PostgreSQL, got no such module; "
            "run pip install 'undertow[postgres]'."
        ) from None


def _make_file(path: Path) -> None:
    """Create a file that its owner alone reads, unless another process just did."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not path.exists():  # a link that leads nowhere
            raise


def _prepare_file(path: Path) -> None:
    """Set the journal of a new file; wait while another process does so."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with closing(sqlite3.connect(path)) as link:
                return _set_journal(link)
        except sqlite3.OperationalError as fault:
            # SQLite does not wait by itself where the journal is changed.
            busy = fault.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > end:
                raise
        time.sleep(_PAUSE_S)


def _set_journal(link: sqlite3.Connection) -> None:
    """Set the journal of a new file; leave every other database as it is."""
    tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master")}
    if tables and "ledger_version" not in tables:
        raise sqlite3.DatabaseError("this database holds something else")
    if not tables:
        link.execute("PRAGMA journal_mode = WAL")


FILES = "undertow_files"
"""Where a connection keeps the names of the files it has opened, and which they are."""

_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)


def writing_engine(url: URL, path: Path | None, *, patience_s: float) -> Engine:
    """Return an engine that reads and writes.

    Parameters
    ----------
    url : URL
        Of a server, or of a SQLite file.
    path : Path or None
        The whole path of the file: SQLite would take a name that starts with ``file:``
        for an address.
    patience_s : float
        How long a writer to a file waits for another, in seconds.
    """
    if path is None:
        # A writer must see what was committed while it waited for the one before it.
        level = "READ COMMITTED"
        server = create_engine(url, pool_pre_ping=True, isolation_level=level)
        event.listen(server, "connect", _prepare_server)
        return server
    file = url.set(database=str(path), query={})
    engine = create_engine(file, connect_args={"timeout": patience_s})

    def note(_: Any, record: Any) -> None:
        names = names_of(path)
        record.info[FILES] = names, files_of(*names)

    event.listen(engine, "connect", _prepare)  # which opens the journal
    event.listen(engine, "connect", note)
    event.listen(engine, "begin", _begin)
    return engine


def reading_engine(path: Path, *, still: bool = False, patience_s: float) -> Engine:
    """Return an engine that cannot write, and connects anew for each transaction.

    Parameters
    ----------
    path : Path
        The file.
    still : bool
        Whether nobody writes to it meanwhile.
    patience_s : float
        How long it waits for a writer, in seconds.
    """

    def connect() -> sqlite3.Connection:
        where = sqlite_uri(path, still=still)
        return sqlite3.connect(
            where, uri=True, timeout=patience_s, check_same_thread=False
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    """Take transactions in our own hands; a commit is on the disk when it returns."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _prepare_server(connection: Any, _: Any) -> None:
    """Have a commit on the disk when it returns, where the server does not ask for it.

    A charge that a crash of the server takes back would have been released for nothing.
    """
    cursor = connection.cursor()
    cursor.execute(_DURABLE)
    cursor.close()
    connection.commit()


def _begin(link: Connection) -> None:
    writes = link.get_execution_options().get("undertow_writes", False)
    link.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def is_still(path: Path) -> bool:
    """Tell whether all of a ledger is in its file, with no journal to be seen.

    Neither that which a ledger has nor that of other databases (``-journal``).
    """
    journals = (names_of(path)[1], f"{os.path.realpath(path)}-journal")
    try:
        return path.is_file() and not any(map(_holds, journals))
    except OSError:
        return False  # the driver will say what is wrong


def _holds(journal: str) -> bool:
    try:
        return os.stat(journal).st_size > 0
    except FileNotFoundError:
        return False


def names_of(path: Path) -> tuple[str, str, str]:
    """Return a file, its journal and the index of that, where SQLite has them.

    An alias of the file has no journal of its own.
    """
    real = os.path.realpath(path)
    return str(path), f"{real}-wal", f"{real}-shm"


def files_of(*names: str | Path) -> tuple[int | None, ...]:
    """Return which files some names stand for, and under how many names they are.

    Where a ledger and its journal are not the ones that a connection has opened, what
    it writes is lost.
    """
    found: list[int | None] = []
    for name in names:
        try:
            state = os.stat(name)
        except OSError:
            found += [None, None, None]
        else:
            found += [state.st_dev, state.st_ino, state.st_nlink]
    return tuple(found)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written to; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def sqlite_uri(path: Path, *, still: bool) -> str:
    """Return the address under which SQLite only reads a file.

    Examples
    --------
    >>> sqlite_uri(Path("/data/a b.ledger"), still=True)
    'file:///data/a%20b.ledger?mode=ro&immutable=1'
    """
    options = "?mode=ro&immutable=1" if still else "?mode=ro"
    return f"{path.absolute().as_uri()}{options}"
