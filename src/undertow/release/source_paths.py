"""The files that a path, a pattern or a folder stands for, each of them once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from undertow.errors import PlanError

__all__ = [
    "engine_paths",
    "existing_part",
    "folder_columns",
    "folders_of",
    "listed_files",
    "plain_name",
    "stamp_of",
]

_MOST_FILES = 100_000
_MARKS = "*?["
_MARK = re.compile(r"[*?[]")
_SPECIAL = re.compile(r"[*?[\\]")
_COLUMN = re.compile(r"([^=?]+)=[^=]*")


def listed_files(text: str, root: Path, form: str | None) -> list[Path]:
    """Return the files that a path, pattern or folder stands for.

    Parameters
    ----------
    text : str
        As a release file names them.
    root : Path
        Where relative paths start.
    form : str or None
        The stated format: a folder is one of CSV files only if that says so.

    Raises
    ------
    PlanError
        If there is no such file, or one is there under several names: its rows would
        count as often, and no bound would know that they are the same.
    """
    if not text or "\0" in text:
        raise PlanError("table must name a file, got an empty name or a NUL.")
    path = root / text
    if path.is_dir():
        ending = "*.csv" if form == "csv" else "*.parquet"
        found = sorted(p for p in path.rglob(ending) if p.is_file())
    elif path.exists():
        found = [path]
    elif any(mark in text for mark in _MARKS):
        start = existing_part(path)
        pattern = str(path.relative_to(start))
        found = sorted(p for p in start.glob(pattern) if p.is_file())
    else:
        raise PlanError(f"table must name a file, got {text!r}, which does not exist.")
    if not found:
        raise PlanError(f"table must name files, got {text!r}, which has none.")
    if len(found) > _MOST_FILES:
        raise PlanError(f"table must be at most {_MOST_FILES} files, got more.")
    if not all(p.is_file() for p in found):
        raise PlanError(f"table must name a regular file, got {text!r}, which is none.")
    _require_once(found)
    return [p.resolve() for p in found]


def _require_once(files: Iterable[Path]) -> None:
    seen: dict[tuple[int, int], Path] = {}
    for file in files:
        state = file.stat()
        first = seen.setdefault((state.st_dev, state.st_ino), file)
        if first is not file:
            raise PlanError(
                f"table must name each file once, got {file.name}, which is another "
                f"name of {first.name}; remove the link, or name the files one by one."
            )


def existing_part(path: Path) -> Path:
    """Return the folder that a pattern starts in, or the path itself if it is there.

    What is there is meant by its name, even if that could be a pattern.
    """
    while not path.exists():
        path = path.parent
    return path


def plain_name(file: Path, folder: Path, place: int) -> Path:
    """Return a file by a name that DuckDB takes for no pattern and no other file.

    By a backslash it means a slash, and then it cannot even look at a folder.

    Parameters
    ----------
    file : Path
        The file.
    folder : Path
        A private folder, for a link where the name is another.
    place : int
        Which of the files it is.
    """
    if not _SPECIAL.search(str(file)):
        return file
    link = folder.joinpath(f"file-{place}", *folders_of(file), f"rows{file.suffix}")
    link.parent.mkdir(parents=True)
    link.symlink_to(file)
    return link


def engine_paths(connection: Any, files: Sequence[Path]) -> list[str]:
    """Return the patterns by which DuckDB reads each of some files, and no other.

    It takes the name of a file for a pattern: ``a[1].csv`` would be read as ``a1.csv``.

    Parameters
    ----------
    connection : Ibis backend
        DuckDB.
    files : sequence of Path
        Each of them once.

    Raises
    ------
    PlanError
        If DuckDB finds other files by them, or one of them twice.
    """
    patterns = [_MARK.sub(r"[\g<0>]", str(file)) for file in files]
    found = connection.con.execute("SELECT file FROM glob(?)", [patterns]).fetchall()
    if sorted(row[0] for row in found) != sorted(map(str, files)):
        raise PlanError(
            "table must name files that DuckDB can tell apart, got names that it takes "
            r"for others; rename the files and their folders, without *, ?, [ and \."
        )
    return patterns


def folder_columns(files: Sequence[Path], text: str, root: Path) -> tuple[str, ...]:
    """Return the columns that the folders of some files state, as in ``year=2026/``.

    Parameters
    ----------
    files : sequence of Path
        From :func:`listed_files`.
    text : str
        As a release file names them: what stands above it is no column.
    root : Path
        Where relative paths start.

    Raises
    ------
    PlanError
        If the folders of one file state others than those of the first.
    """
    base = root / text
    while any(mark in str(base) for mark in _MARKS) and not base.exists():
        base = base.parent
    base = base.resolve()
    first = _stated(files[0], base)
    for file in files:
        if _stated(file, base) != first:
            raise PlanError(
                "the folders of a table must state the same columns in the same order, "
                f"got {file.name}, whose folders are not those of {files[0].name}; "
                "move it."
            )
    return first


def _stated(file: Path, base: Path) -> tuple[str, ...]:
    parts = file.relative_to(base).parts if file.is_relative_to(base) else file.parts
    found = (_COLUMN.fullmatch(part) for part in parts[:-1])
    return tuple(match[1] for match in found if match is not None)


def folders_of(file: Path) -> list[str]:
    """Return the folders above a file that DuckDB takes for columns, from the top."""
    return [part for part in file.parts[:-1] if _COLUMN.fullmatch(part)]


def stamp_of(files: Sequence[Path]) -> list[tuple[int, ...] | None]:
    """Return what changes when one of the files is written, replaced or removed."""
    return [_state(path) for path in files]


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns
