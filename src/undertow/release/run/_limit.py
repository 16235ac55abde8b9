"""Limits of a run, and the private files that no run leaves behind.

A thread looks at the clock and at the memory of the process. Where a limit is met it
stops the engines, and raises an exception in the thread of the run, but only in the
parts of a run that may be left anywhere: planning, reading, drawing. The ledger and the
files are never left in the middle. A command that is still not over some seconds later
is ended like a killed one, of which the ledger knows how to go on.

Time that passes while noise is drawn counts for nothing, and counts anew from there:
how long a draw takes depends on what is drawn, and a run that is cut short by it would
choose among draws (Theorem 2 of the page *The ledger*).

What a run makes for itself alone is locked while it lives, and what a killed run left
of that is removed by the next one.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from undertow._validate import check_count
from undertow.errors import LimitReached, PlanError
from undertow.release.document.time import parse_duration

_T = TypeVar("_T")
_PAUSE_S = 0.02
_GRACE_S = 10.0
_AGAIN_S = 5.0  # where what was raised was swallowed
_PATIENCE_S = 1.0  # for a server that was asked to give up a query
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_MB = 10**6
_LEAST_MB = 150
_FORM = re.compile(r"([0-9]{1,9})(MB|GB)\Z", re.ASCII)
_STATM = Path("/proc/self/statm")
_MARGIN = 0.05
"""The part of a limit that is left for what is taken between two looks."""


class _Ended(BaseException):
    """Raised in the thread of a run by its watch; nothing catches it by mistake."""


class RunWatch:
    """Ends a run that meets a limit.

    Parameters
    ----------
    time_limit_s : float, optional
        The most seconds before the noise is drawn, and again after it.
    memory_mb : int, optional
        The most memory that the process may have, in millions of bytes.
    ending : callable, optional
        Called with a sentence where a run is not over ten seconds after it met a limit;
        ends the process.

    Raises
    ------
    PlanError
        If a limit is not positive, or the memory of a process cannot be seen here.

    Notes
    -----
    What counts as memory is what the process has in the machine (resident). Limits of
    the address space are none: the engines reserve far more than they use.
    """

    def __init__(
        self,
        *,
        time_limit_s: float | None = None,
        memory_mb: int | None = None,
        ending: Callable[[str], None] | None = None,
    ) -> None:
        self.time_limit_s = _checked_time(time_limit_s)
        self.memory_mb = _checked_memory(memory_mb)
        self._ending = ending
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._stops: list[Callable[[float], None]] = []
        self._removing: list[Callable[[], None]] = []
        self._deadline = math.inf
        self._met: str | None = None  # what was met, in words
        self._met_at, self._sent_at = math.inf, math.nan
        self._inside: int | None = None  # the thread that may be ended
        self._thread: threading.Thread | None = None
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._before = -1
        self._signalled_at = math.inf
        self._hook = sys.unraisablehook
        self._token: Token[RunWatch | None] | None = None

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        main = threading.current_thread() is threading.main_thread()
        if self._ending is not None and main:
            # An engine may not look for signals: a command stops it for them.
            self._wakeup = socket.socketpair()
            for end in self._wakeup:
                end.setblocking(False)
            number = self._wakeup[1].fileno()
            self._before = signal.set_wakeup_fd(number, warn_on_full_buffer=False)
        limits = self.time_limit_s, self.memory_mb, self._wakeup
        if any(limit is not None for limit in limits):
            self.count_anew()
            self._hook, sys.unraisablehook = sys.unraisablehook, self._unheard
            name = "undertow-limits"
            self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._wakeup is not None:
            signal.set_wakeup_fd(self._before)
        if self._token is not None:
            _current.reset(self._token)
        if self._thread is not None:
            self._thread.join()
            for end in self._wakeup or ():
                end.close()
            if sys.unraisablehook == self._unheard:
                sys.unraisablehook = self._hook

    def count_anew(self) -> None:
        """Give the run its whole time from now on."""
        if self.time_limit_s is not None:
            self._deadline = time.monotonic() + self.time_limit_s

    def bounded(self, work: Callable[[], _T], *, timed: bool = True) -> _T:
        """Do a part of a run that may be left anywhere.

        Parameters
        ----------
        work : callable
            The part.
        timed : bool
            Whether its time counts; it must not where noise is drawn.

        Raises
        ------
        LimitReached
            If a limit was met.
        """
        if self._thread is None:
            return work()
        try:
            if not timed and self._met is None:
                self._deadline = math.inf
            self._begin()
            try:
                return work()
            finally:
                self._end()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            self._end()
            if self._met is None:
                raise
            self._remove()
            raise LimitReached(self._met) from None
        finally:
            if not timed:
                self.count_anew()

    def _begin(self) -> None:
        with self._lock:
            if self._met is not None:
                raise _Ended
            self._inside = threading.get_ident()

    def _end(self) -> None:
        """Let nothing more be raised, whatever is on its way."""
        while True:
            try:
                with self._lock:
                    self._inside = None
                    sent = self._met is not None
            except _Ended:
                continue
            if sent:
                self._take()
            return

    def _take(self) -> None:
        """Raise and catch what may be on its way, so that nothing stays pending.

        Python 3.11 would look for it at every step from then on, and for ever at the
        first call that is profiled, if it were only taken back.
        """
        with suppress(_Ended):
            _raise_in(threading.get_ident(), _Ended)
            while True:  # it is raised at one of the next steps
                time.sleep(0)

    def _unheard(self, fault: sys.UnraisableHookArgs) -> None:
        """Raise once more what was swallowed where nothing can be raised."""
        if fault.exc_type is _Ended:
            self._sent_at = math.nan
        else:
            self._hook(fault)

    def _watch(self) -> None:
        """Look, again and again, until the run is over."""
        while not self._over.wait(_PAUSE_S):
            if self._met is None:
                self._look()
            now = time.monotonic()
            if self._met is not None:
                self._stop(now)
            elif self._is_signalled(now) and self._inside is not None:
                self._stop_engines(now - self._signalled_at)

    def _is_signalled(self, now: float) -> bool:
        """Tell whether a signal has come that the command answers."""
        if self._wakeup is not None and self._signalled_at == math.inf:
            with suppress(BlockingIOError):
                if set(self._wakeup[0].recv(64)) & _SIGNALS:
                    self._signalled_at = now
        return self._signalled_at < math.inf

    def _stop_engines(self, since: float) -> None:
        for stop in list(self._stops):
            with suppress(Exception):
                stop(since)

    def _look(self) -> None:
        if time.monotonic() >= self._deadline:
            self._meet(memory=False)
        elif self.memory_mb is not None:
            if resident_mb() >= self.memory_mb * (1 - _MARGIN):
                self._meet(memory=True)

    def _meet(self, *, memory: bool) -> None:
        """Note that a limit was met; how much was taken is not said."""
        if memory:
            assert self.memory_mb is not None
            most = f"{written_memory(self.memory_mb)} of memory"
        else:
            assert self.time_limit_s is not None
            most = f"{self.time_limit_s:g} seconds"
        with self._lock:
            if self._met is None:
                self._met = f"the run must take at most {most}, got more"
                self._met_at = time.monotonic()

    def _stop(self, now: float) -> None:
        """Stop the engines and raise in the run; late, end the process."""
        with self._lock:
            inside = self._inside
            if inside is not None and not now - self._sent_at < _AGAIN_S:
                _raise_in(inside, _Ended)
                self._sent_at = now
        if inside is not None:
            self._stop_engines(now - self._met_at)
        if self._ending is not None and now - self._met_at > _GRACE_S:
            self._remove()
            self._ending(
                f"{self._met}; it was ended where it was, and what was charged is in "
                "the ledger: run it again with a larger limit."
            )

    def _remove(self) -> None:
        """Remove what the run would have removed at its end."""
        for remove in list(self._removing):
            with suppress(Exception):
                remove()


_current: ContextVar[RunWatch | None] = ContextVar("undertow_watch", default=None)


def ended_by(stop: Callable[[float], None]) -> None:
    """Have an engine stopped, where the run that opens it meets a limit.

    Parameters
    ----------
    stop : callable
        Called again and again until the run has left the engine, with the seconds since
        the limit was met; must not wait.
    """
    watch = _current.get()
    if watch is not None:
        watch._stops.append(stop)


def removed_by(remove: Callable[[], None]) -> None:
    """Have something removed, where the run that makes it meets a limit.

    Parameters
    ----------
    remove : callable
        May be called more than once.
    """
    watch = _current.get()
    if watch is not None:
        watch._removing.append(remove)


def limited_s() -> float | None:
    """Return the time limit of the run that asks, in seconds; None if it has none."""
    watch = _current.get()
    return None if watch is None else watch.time_limit_s


def ran_out_of_memory() -> None:
    """Note that an engine used up its part of the memory, where the run has a limit."""
    watch = _current.get()
    if watch is not None and watch.memory_mb is not None:
        watch._meet(memory=True)


def engine_memory_mb() -> int | None:
    """Return the memory that DuckDB may count; None where the run has no limit.

    Notes
    -----
    Half of what the process does not have yet: DuckDB counts about two thirds of what
    it takes, and the answers are read into Python.

    Raises
    ------
    PlanError
        If too little is left to read any table.
    """
    watch = _current.get()
    if watch is None or watch.memory_mb is None:
        return None
    taken = resident_mb()
    if watch.memory_mb - taken < _LEAST_MB:
        raise PlanError(
            f"memory must be at least {math.ceil(taken) + _LEAST_MB} MB for this run, "
            f"got {watch.memory_mb} MB; Python and its libraries take much of it."
        )
    return int(watch.memory_mb - taken) // 2


def stops_postgres(connection: Any) -> Callable[[float], None]:
    """Return what ends the query of a connection, whether or not its server answers.

    Parameters
    ----------
    connection : psycopg.Connection
        Of the run.
    """
    asked: list[threading.Thread] = []

    def stop(since: float) -> None:
        if not asked:  # the server ends the query, and may be slow to hear
            asked.append(threading.Thread(target=connection.cancel, daemon=True))
            asked[0].start()
        elif since > _PATIENCE_S:
            with socket.socket(fileno=os.dup(connection.fileno())) as link:
                link.shutdown(socket.SHUT_RDWR)

    return stop


def time_limit_of(text: str) -> float:
    """Read a time limit, such as 90s, 30m or 2h, as seconds.

    Raises
    ------
    PlanError
        If it has another form.
    """
    try:
        return parse_duration(text, name="time limit") / 10**6
    except ValueError as fault:
        raise PlanError(str(fault)) from None


def memory_of(text: str) -> int:
    """Read a limit of memory, such as 6GB or 800MB, as millions of bytes.

    Raises
    ------
    PlanError
        If it has another form.

    Examples
    --------
    >>> memory_of("6GB"), written_memory(800)
    (6000, '800MB')
    """
    found = _FORM.match(text)
    if found is None or int(found[1]) == 0:
        raise PlanError(
            "memory must be a positive whole number and one of MB and GB, such as "
            f"6GB, got {text[:40]!r}."
        )
    return int(found[1]) * (1000 if found[2] == "GB" else 1)


def written_memory(memory_mb: int) -> str:
    """Write a limit of memory as :func:`memory_of` reads it."""
    whole, rest = divmod(memory_mb, 1000)
    return f"{memory_mb}MB" if rest else f"{whole}GB"


def resident_mb() -> float:
    """Return the memory that this process has in the machine, in millions of bytes."""
    pages = int(_STATM.read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def _checked_time(time_limit_s: float | None) -> float | None:
    if time_limit_s is None:
        return None
    number = not isinstance(time_limit_s, bool) and isinstance(
        time_limit_s, int | float
    )
    if not number or not 0 < time_limit_s < math.inf:
        raise PlanError(
            f"time_limit_s must be a positive number of seconds, got {time_limit_s!r}."
        )
    return float(time_limit_s)


def _checked_memory(memory_mb: int | None) -> int | None:
    if memory_mb is None:
        return None
    try:
        memory_mb = check_count(memory_mb, "memory_mb")
    except (TypeError, ValueError) as fault:
        raise PlanError(str(fault)) from None
    if not _STATM.exists():
        raise PlanError(
            "memory can be limited on Linux alone, got a system without /proc; set a "
            "limit of the system's own."
        )
    return memory_mb


def _raise_in(thread: int, fault: type[BaseException]) -> None:
    """Raise an exception in a thread at its next step, instead of any on its way."""
    raised = ctypes.py_object(fault)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


# What a run makes for itself alone, and what killed runs left of that.
#
# Parts of files and folders of spilled rows are locked while their run lives. The
# kernel gives the lock up however the run ends, so that what is not locked is nobody's
# any more, and the next run removes it.

_PART = re.compile(r"\..+\.[0-9a-f]{12}\.part", re.DOTALL)
_PREFIX = "undertow-"
_FOLDER = re.compile(r"undertow-[a-z0-9_]{8}")
_LOCK = "undertow.lock"
_OWN = os.O_CLOEXEC | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OWN


def locked_part(folder: Path, name: str) -> tuple[Path, int]:
    """Make an empty file beside the place of `name`, locked while this run lives.

    Returns
    -------
    Path
        The file.
    int
        Its open handle, which holds the lock.
    """
    while True:
        path = folder / f".{name}.{secrets.token_hex(6)}.part"
        handle = os.open(path, _NEW, 0o600)
        if _is_ours(handle):
            return path, handle
        os.close(handle)


def sweep_parts(folder: Path) -> None:
    """Remove the parts that killed runs left in a folder."""
    for part in folder.glob(".*.part"):
        if _PART.fullmatch(part.name):  # else of another program
            with _left(part) as left:
                if left:
                    part.unlink(missing_ok=True)


def private_folder() -> tuple[Path, Callable[[], None]]:
    """Make a temporary folder that only the user can read, locked while this run lives.

    Folders that killed runs of the same user left are removed first.

    Returns
    -------
    Path
        The folder.
    callable
        Removes it with all that is in it.
    """
    _sweep_folders(Path(tempfile.gettempdir()))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        handle = os.open(folder / _LOCK, _NEW, 0o600)
        if _is_ours(handle):
            break
        os.close(handle)

    held = [handle]

    def closing() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        while held:  # a run that is cut short here calls it again
            os.close(held.pop())

    removed_by(closing)
    return folder, closing


def _is_ours(handle: int) -> bool:
    """Lock a new file; False if another run swept it away before it was locked."""
    fcntl.flock(handle, fcntl.LOCK_EX)
    return bool(os.fstat(handle).st_nlink)


@contextmanager
def _left(path: Path | str, folder: int | None = None) -> Iterator[bool]:
    """Tell whether a file is a regular one that no living run holds; then it is held.

    Links are not followed, and what cannot be opened is left alone.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | _OWN, dir_fd=folder)
    except OSError:
        yield False
        return
    try:
        yield stat.S_ISREG(os.fstat(handle).st_mode) and _locks(handle)
    finally:
        os.close(handle)


def _locks(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a living run has it, or the file system knows no locks
        return False
    return True


def _sweep_folders(place: Path) -> None:
    """Remove the folders that killed runs of this user left."""
    try:
        names = [name for name in os.listdir(place) if _FOLDER.fullmatch(name)]
    except OSError:
        return
    for name in names:
        try:
            folder = os.open(place / name, os.O_RDONLY | os.O_DIRECTORY | _OWN)
        except OSError:
            continue
        try:
            state = os.fstat(folder)
            if state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) == 0o700:
                _sweep_folder(place / name, folder)
        finally:
            os.close(folder)


def _sweep_folder(path: Path, folder: int) -> None:
    """Remove the files of a folder whose run is dead, the lock last, and the folder."""
    with _left(_LOCK, folder) as left:
        if not left:
            return
        try:
            for name in sorted(os.listdir(folder), key=lambda name: name == _LOCK):
                os.unlink(name, dir_fd=folder)
            path.rmdir()
        except OSError:
            return  # another run removes it too, or somebody put a folder there
