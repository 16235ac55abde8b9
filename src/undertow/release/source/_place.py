"""Where the table of a release is, and which files a name or pattern stands for.

Each file is read once, and tables are told apart whatever they are called by.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from undertow._address import Address, is_address, read_address
from undertow.errors import PlanError

if TYPE_CHECKING:
    from undertow.release.document.release_document import ReleaseDocument


_MARKS = "*?["
_FILE_SCHEME = "duckdb://"


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table that a release file names.

    Parameters
    ----------
    file : Path or None
        The whole path of a file, a folder or a pattern; aliases are one file.
    address : Address or None
        That of a server, where the table is no file.
    relation : str
        The table or view in a database; empty where there is none.
    absolute : bool
        Whether the name is a whole path, and not one from the folder of the release.
    """

    file: Path | None
    address: Address | None
    relation: str
    absolute: bool

    def identities(self, start: Path | None) -> tuple[str, ...]:
        """Return the names of the table, that under which it is charged first.

        Parameters
        ----------
        start : Path or None
            The folder of the ledger; None where that is on a server.

        Notes
        -----
        A relative name is told by the path from the ledger, so that both can be moved
        together; a whole path by itself. Each is found under the other name as well.
        Of an address everything counts but its secrets.
        """
        if self.address is not None:
            return (self.address.identity(self.relation),)
        assert self.file is not None
        names = [str(self.file)]
        if start is not None:
            near = Path(os.path.relpath(self.file, start.resolve())).as_posix()
            names.insert(1 if self.absolute else 0, near)
        return tuple(json.dumps(["file", name, self.relation]) for name in names)

    @property
    def ledger(self) -> Path | None:
        """Where its ledger is by default; None for a server.

        Files that are read together by a pattern have it among them, unless it would
        be one of the files that the pattern stands for.
        """
        if self.file is None:
            return None
        folder = _base(self.file)
        if folder is None:
            return self.file.with_suffix(".ledger")
        inside = folder / f"{folder.name or 'tables'}.ledger"
        return inside if not inside.match(self.file.name) else _outside(folder)

    @property
    def former_ledger(self) -> Path | None:
        """Where earlier versions made the ledger of a pattern: beside its folder."""
        folder = None if self.file is None else _base(self.file)
        return None if folder is None else _outside(folder)


def whole_path(path: Path) -> Path:
    """Return a path without links; unlike ``Path.resolve``, also of links in a circle.

    The table is refused later, in its own words.
    """
    return Path(os.path.realpath(path))


def table_of(document: ReleaseDocument) -> TablePlace | None:
    """Return where the table of a release is; None for one in memory."""
    source = document.source
    if source.table is None:
        return None
    if is_address(source.table):
        address = read_address(source.table)
        relation = source.relation or address.fragment
        if address.scheme != "spark" or not _is_file(document.path(relation)):
            return TablePlace(None, address, relation, absolute=True)
        name, relation = relation, ""
    else:
        name, relation = _name_of(document)
    file = whole_path(document.path(name))
    return TablePlace(file, None, relation, absolute=Path(name).is_absolute())


def _name_of(document: ReleaseDocument) -> tuple[str, str]:
    """Return the file that a release names, and the table or view in it."""
    source = document.source
    name, relation = source.table or "", source.relation or ""
    if name[: len(_FILE_SCHEME)].lower() == _FILE_SCHEME:
        name = name[len(_FILE_SCHEME) :]
    if not relation and "#" in name and not document.path(name).exists():
        name, _, relation = name.rpartition("#")
    return name, relation


def former_place(document: ReleaseDocument, start: Path | None) -> str | None:
    """Return what told a file from others named alike in the keys of earlier versions.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release.
    start : Path or None
        The folder of the ledger; None where that is on a server.

    Notes
    -----
    The path from the ledger to a file that was named relative to its release; None for
    whole paths, addresses of servers, and tables in memory.
    """
    name = _relative_name(document)
    if name is None:
        return None
    table = whole_path(document.path(name))
    return (
        str(table) if start is None else Path(os.path.relpath(table, start)).as_posix()
    )


def absent_table(document: ReleaseDocument) -> PlanError | None:
    """Return the refusal of a table that is named as a file and not there.

    None for one that is there, on a server, read by Spark or in memory.
    """
    source = document.source
    if source.table is None or is_address(source.table):
        return None
    name, _ = _name_of(document)
    try:
        listed_files(name, document.path(""), source.format)
    except PlanError as fault:
        return fault
    except OSError:
        return None  # whether it is there cannot be seen: who reads it will be told
    return None


def files_of(document: ReleaseDocument) -> list[Path] | None:
    """Return the files that a table stands for; None for one that is no file there.

    Which files they are and how many is public; so are their times and sizes to whoever
    runs a release, but those are kept nowhere.
    """
    table = table_of(document)
    if table is None or table.file is None:
        return None
    try:
        return listed_files(str(table.file), Path(), document.source.format)
    except (PlanError, OSError):
        return None


def is_pattern(file: Path) -> bool:
    """Tell whether a name stands for several files."""
    return any(mark in str(file) for mark in _MARKS) and not file.exists()


def _base(file: Path) -> Path | None:
    """Return the folder in which a pattern starts; None if the name is no pattern."""
    folder = file
    while is_pattern(folder):
        folder = folder.parent
    return None if folder == file else folder


def _outside(folder: Path) -> Path:
    return folder.with_suffix(".ledger")


def _is_file(path: Path) -> bool:
    """Tell whether Spark reads a relation as files, and not from its catalogue."""
    return path.name.lower().endswith(".parquet") or path.is_dir()


def _relative_name(document: ReleaseDocument) -> str | None:
    """Return the name of a file or pattern that depends on where it is said."""
    source = document.source
    if source.table is None:
        return None
    scheme, sign, name = source.table.partition("://")
    if not sign:
        name = source.table
    elif scheme.lower() == "spark":
        name = source.relation or unquote(urlsplit(source.table).fragment)
        if not name.lower().endswith(".parquet") and not document.path(name).is_dir():
            return None
    elif scheme.lower() != "duckdb":
        return None
    return None if Path(name).is_absolute() else name


# The files that a path, a pattern or a folder stands for, each of them once.

_MOST_FILES = 100_000

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
    if path.is_symlink() and not path.exists():
        raise PlanError(f"table must name a file, got {text!r}, a link to nothing.")
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
