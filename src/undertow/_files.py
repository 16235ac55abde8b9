"""Files that are written whole: a kill leaves the old one or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def write_whole(
    path: Path,
    content: bytes,
    *,
    private: bool = False,
    part: tuple[Path, int] | None = None,
) -> None:
    """Write a file beside its place, onto the disk, and let it take its name.

    Parameters
    ----------
    path : Path
        The place, in a folder that is there.
    content : bytes
        All of the file.
    private : bool
        Whether only its owner may read it; else who may read new files.
    part : tuple of Path and int, optional
        An empty file in the same folder and its open handle, which stays open; by
        default a new one.

    Raises
    ------
    OSError
        If it cannot be written; no part is left behind.
    """
    if part is None:
        made = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        handle = os.open(made, _NEW, 0o600 if private else 0o666)
        try:
            write_whole(path, content, part=(made, handle))
        finally:
            os.close(handle)
        return
    made, handle = part
    try:
        fill(handle, content)
        os.replace(made, path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def fill(handle: int, content: bytes) -> None:
    """Write all of a file onto the disk."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)
