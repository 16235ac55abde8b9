"""The folder of a run: its tables and its manifest, all of them whole or none.

Files are readable by their owner alone. Everything is first written beside its place
and flushed to the disk; then the files take their names one by one, the manifest last.
It names the digest of every file, so that a folder is whole exactly if its manifest is
there and its digests agree.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._files import fill
from undertow.errors import PlanError
from undertow.release.plan.answer import arrow_column, column_types
from undertow.release.run._limit import locked_part, sweep_parts

if TYPE_CHECKING:
    pass


MANIFEST = "manifest.json"
"""The file that is written last."""

_FORMULA = ("=", "+", "-", "@", "\N{MINUS SIGN}")
_BREAKS = ("\t", "\r", "\n")
_LARGEST_MANIFEST = 64 * 2**20
_LONGEST_NAME = 60
_TABLE = re.compile(r"\d{2,}-[a-z0-9-]+\.(csv|parquet)")


def table_bytes(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    kind: str,
    types: Sequence[str] | None = None,
) -> bytes:
    r"""Return a table as CSV or Parquet.

    Parameters
    ----------
    columns : sequence of str
        The header.
    rows : sequence of sequences
        Text, whole numbers, floats, truth values, dates or None.
    kind : {"csv", "parquet"}
        In CSV, text that a spreadsheet would take for a formula gets an apostrophe in
        front, in the header as well: its first sign that can be seen is ``=``, ``+``,
        ``-`` or ``@`` in any width, or it starts with a tab or a line break.
    types : sequence of str, optional
        Types of the columns in the words of JSON Schema, which Parquet keeps; by
        default those of the rows.

    Examples
    --------
    >>> table_bytes(["zone", "n"], [["=1+1", 3]], kind="csv")
    b"zone,n\r\n'=1+1,3\r\n"
    """
    if kind == "parquet":
        stated = {"columns": columns, "rows": rows, "types": types}
        return _parquet_bytes(columns, rows, column_types(stated))
    if kind != "csv":
        raise ValueError(f"kind must be csv or parquet, got {kind!r}.")
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow([_disarmed(name) for name in columns])
    table.writerows([[_shown_cell(cell) for cell in row] for row in rows])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _shown_cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return _disarmed(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, date | datetime):
        return cell.isoformat()
    return cell if cell is None or isinstance(cell, int) else repr(cell)


def _disarmed(text: str) -> str:
    """Return text that no spreadsheet runs.

    Some of them skip what cannot be seen, and read signs of another width as the plain
    ones.
    """
    seen = (sign for sign in text if unicodedata.category(sign)[0] not in "CZ")
    first = unicodedata.normalize("NFKC", next(seen, ""))
    dangerous = text.startswith(_BREAKS) or first.startswith(_FORMULA)
    return f"'{text}" if dangerous else text


def _parquet_bytes(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[str]
) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = [
        arrow_column(pa, [row[i] for row in rows], kind) for i, kind in enumerate(types)
    ]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, names=list(columns)), sink)
    return sink.getvalue()


def file_names(queries: Sequence[str], *, kind: str) -> list[str]:
    """Return a plain file name for each query, numbered so that none meet.

    Examples
    --------
    >>> file_names(["Active by hour", "../x"], kind="csv")
    ['01-active-by-hour.csv', '02-x.csv']
    """
    names = []
    for number, query in enumerate(queries, start=1):
        plain = unicodedata.normalize("NFKD", query).encode("ascii", "ignore").decode()
        words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_LONGEST_NAME]
        names.append(f"{number:02d}-{words or 'query'}.{kind}")
    return names


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, before anything is charged.

    Raises
    ------
    PlanError
        If there is a file of that name or on the way to it, or the nearest folder is
        not writable.
    """
    if folder.exists() and not folder.is_dir():
        raise PlanError(f"output must be a folder, got the file {folder}.")
    nearest = folder
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise PlanError(f"output must be a folder that can be written, got {folder}.")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None if it has none, empty if it is unknown."""
    path = folder / MANIFEST
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _LARGEST_MANIFEST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_files(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write all files or none of them; return their SHA-256 digests.

    Tables that the manifest names which was there before, and the new one does not, are
    removed if they are as they were written: a folder holds what its manifest names.

    Parameters
    ----------
    folder : Path
        Made if it is not there, for its owner alone.
    files : mapping of str to bytes
        By name; `MANIFEST` takes its name last.

    Raises
    ------
    PlanError
        If they cannot be written; what was there before stays.
    """
    last = sorted(files, key=lambda name: (name == MANIFEST, name))
    parts: dict[str, Path] = {}
    held: list[int] = []
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep_parts(folder)
        for name in last:
            parts[name], handle = locked_part(folder, name)
            held.append(handle)
            fill(handle, files[name])
        _take_names(folder, parts)
    except OSError as fault:
        raise PlanError(
            f"output must be a folder that can be written, got {folder}: "
            f"{fault.strerror}; what was released is kept in the ledger, and the next "
            "run writes it."
        ) from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
        for handle in held:
            os.close(handle)
    return {name: hashlib.sha256(files[name]).hexdigest() for name in last}


def _take_names(folder: Path, parts: Mapping[str, Path]) -> None:
    """Rename the parts, the manifest last; until then there is none.

    A kill in between leaves files without a manifest, and the next run writes all of
    them again.
    """
    for name in _named_before(folder) - set(parts):
        (folder / name).unlink(missing_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for name, part in parts.items():
        os.replace(part, folder / name)
    _flush_folder(folder)


def _named_before(folder: Path) -> set[str]:
    """Return the tables of the manifest that are as it says; none of anybody else."""
    tables = (read_manifest(folder) or {}).get("tables")
    found = set()
    for table in tables if isinstance(tables, list) else ():
        name, digest = (
            (table.get("file"), table.get("sha256"))
            if isinstance(table, dict)
            else (None, None)
        )
        if not (isinstance(name, str) and _TABLE.fullmatch(name)):
            continue
        path = folder / name
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == digest:
                    found.add(name)
    return found


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
