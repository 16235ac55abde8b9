"""What a run makes for itself alone, and what killed runs left of that.

Parts of files and folders of spilled rows are locked while their run lives. The kernel
gives the lock up however the run ends, so that what is not locked is nobody's any more,
and the next run removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from undertow.release.limits import removed_by

__all__ = ["locked_part", "private_folder", "sweep_parts"]

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
