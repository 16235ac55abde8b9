"""Where the real data lie: a folder given by the caller or by ``UNDERTOW_DATA``.

No data set comes with the package. A loader reads one file of the folder; without a
folder, a study uses its documented stand-in and says so.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from undertow.errors import DataError


def data_folder(given: str | Path | None = None) -> Path | None:
    """Return the folder of the real data: `given`, else ``UNDERTOW_DATA``, else None.

    Raises
    ------
    DataError
        If the folder named does not exist.
    """
    named = given if given is not None else os.environ.get("UNDERTOW_DATA") or None
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise DataError(f"the data folder must exist, got {folder}.")
    return folder


def require_file(folder: Path, name: str) -> Path:
    """Return a file of the folder, or say that it is missing."""
    path = folder / name
    if not path.is_file():
        raise DataError(f"the data folder must hold {name}, got none in {folder}.")
    return path


def read_columns(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read the named columns of a CSV file as text; an empty cell is missing.

    Raises
    ------
    DataError
        If the file is not UTF-8 CSV, or a column is missing.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            header = rows.fieldnames or []
            missing = [name for name in names if name not in header]
            if missing:
                raise DataError(
                    f"{path} must have a column {missing[0]!r}, "
                    f"got {', '.join(header[:8]) or 'no header'}."
                )
            columns: dict[str, list[str]] = {name: [] for name in names}
            for row in rows:
                for name in names:
                    columns[name].append(row[name] or "")
    except UnicodeDecodeError:
        raise DataError(f"{path} must be UTF-8 text, got other bytes.") from None
    except csv.Error as fault:
        raise DataError(f"{path} must be a CSV file, got an error: {fault}.") from None
    return columns
