"""Where the table of a release is, and what tells it from every other table."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from undertow._address import Address, is_address, read_address
from undertow.errors import PlanError
from undertow.release.source_paths import listed_files

if TYPE_CHECKING:
    from undertow.release.document import ReleaseDocument

__all__ = [
    "TablePlace",
    "absent_table",
    "files_of",
    "former_place",
    "is_pattern",
    "table_of",
    "whole_path",
]

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
