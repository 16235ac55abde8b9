"""Recorded runs from a file: one row for each, an input column and output columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from undertow.audit.recorded import RecordedSubject
from undertow.errors import ModelError

__all__ = ["read_records_file"]

_LARGEST_FIELD = 1 << 20
# Codes such as 007 and 1_2 are text: as numbers, different ones would be equal.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # -0 is a float, as its sign would be lost
_DECIMAL = re.compile(
    r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|[+-]?inf)"
)


def read_records_file(
    path: Path, *, input_column: str, output_columns: Sequence[str]
) -> RecordedSubject:
    """Read the runs of a ``.csv``, ``.jsonl`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
        The file; its ending says its kind.
    input_column : str
        Name of the column with the inputs.
    output_columns : sequence of str
        Names of the columns that make up an output; several make a vector, or a tuple
        where one of them is text.

    Raises
    ------
    ModelError
        If the file cannot be read, lacks a column, or has a row without an input.

    Notes
    -----
    A column of a CSV file is read as numbers if every cell that is not empty is one,
    else as text; an empty cell is the output None. In a JSON Lines file each line is an
    object, and an output any JSON value.
    """
    names = (input_column, *output_columns)
    for name in names:
        if names.count(name) > 1:
            raise ModelError(
                f"--input-column and every --output-column must differ, got {name!r} "
                "twice."
            )
    kinds = {".csv": _read_csv, ".jsonl": _read_lines, ".parquet": _read_parquet}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"the file must end in .csv, .jsonl or .parquet, got {path}.")
    inputs, *columns = kinds[path.suffix.lower()](path, names)
    if not inputs:
        raise ModelError(f"{path} must hold runs, got none.")
    for value in inputs:
        if not isinstance(value, str | int | float | bool):
            kind = "none" if value is None else type(value).__name__
            raise ModelError(
                f"{input_column} must hold a number or text in every row of {path}, "
                f"got {kind}."
            )
        if value != value:
            raise ModelError(f"{input_column} must hold inputs, got nan in {path}.")
    outputs = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return RecordedSubject(inputs, outputs, name=path.name)


def _read_csv(path: Path, names: Sequence[str]) -> list[list[Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, _long_fields():
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            _require_columns(path, names, header)
            places = [header.index(name) for name in names]
            rows = [_cells(path, row, places, reader.line_num) for row in reader if row]
    except OSError as fault:
        raise ModelError(
            f"the file must be readable, got {path}: {fault.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} must be UTF-8 text, got other bytes.") from None
    except csv.Error as fault:
        raise ModelError(f"{path} must be a CSV file, got an error: {fault}.") from None
    return [_values([row[k] for row in rows]) for k in range(len(names))]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow long cells while a file is read: the limit belongs to the process."""
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _cells(path: Path, row: list[str], places: list[int], line: int) -> list[str]:
    if max(places) >= len(row):
        raise ModelError(
            f"{path} must have every column in every row, got a row of {len(row)} on "
            f"line {line}."
        )
    cells = [row[place] for place in places]
    if not cells[0].strip():
        raise ModelError(
            f"{path} must have an input in every row, got an empty cell on line {line}."
        )
    # Blanks are no part of an input; of an output they may be all that differs.
    return [cells[0].strip(), *cells[1:]]


def _values(cells: list[str]) -> list[Any]:
    """Return whole numbers, else numbers, else text; None for an empty cell."""
    told = [cell for cell in cells if cell]
    read: Callable[[str], Any] = str
    if all(_WHOLE.fullmatch(cell.strip()) for cell in told):
        read = int
    elif all(_DECIMAL.fullmatch(cell.strip()) for cell in told):
        read = float
    return [read(cell) if cell else None for cell in cells]


def _read_lines(path: Path, names: Sequence[str]) -> list[list[Any]]:
    rows: list[dict[str, Any]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    rows.append(_object(path, line, number, names))
    except OSError as fault:
        raise ModelError(
            f"the file must be readable, got {path}: {fault.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} must be UTF-8 text, got other bytes.") from None
    return [[row[name] for row in rows] for name in names]


def _object(path: Path, line: str, number: int, names: Sequence[str]) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ModelError(
            f"{path} must hold a JSON object on each line, got none on line {number}."
        )
    for name in names:
        if name not in told:
            raise ModelError(
                f"{path} must have {name!r} on every line, got none on line {number}; "
                "write null for no output."
            )
    return told


def _read_parquet(path: Path, names: Sequence[str]) -> list[list[Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ModelError(
            "pyarrow must be installed to read .parquet, got none; run "
            "pip install 'undertow[data]', or save the runs as .csv."
        ) from None
    try:
        _require_columns(path, names, parquet.read_schema(path).names)
        table = parquet.read_table(path, columns=list(names))
    except OSError as fault:
        reason = fault.strerror or str(fault).splitlines()[0]
        raise ModelError(f"the file must be readable, got {path}: {reason}.") from None
    except pyarrow.ArrowException as fault:
        reason = str(fault).splitlines()[0].rstrip(".")[:120]
        raise ModelError(f"{path} must be a Parquet file, got: {reason}.") from None
    return [table[name].to_pylist() for name in names]


def _require_columns(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    for name in names:
        if header.count(name) != 1:
            listed = ", ".join(header[:12]) or "none"
            raise ModelError(
                f"{path} must have one column {name!r}, got the columns {listed[:200]}."
            )
