"""Recorded runs from a file: one row for each, an input column and output columns."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
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
    """Read the runs of a ``.csv`` or ``.parquet`` file.

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
        If the file cannot be read, lacks a column, or has an empty cell in one.

    Notes
    -----
    A column of a CSV file is read as numbers if every cell is one, else as text.
    """
    names = (input_column, *output_columns)
    for name in names:
        if names.count(name) > 1:
            raise ModelError(
                f"--input-column and every --output-column must differ, got {name!r} "
                "twice."
            )
    kinds = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"the file must end in .csv or .parquet, got {path}.")
    inputs, *columns = kinds[path.suffix.lower()](path, names)
    if not inputs:
        raise ModelError(f"{path} must hold runs, got none.")
    if any(value != value for value in inputs):
        raise ModelError(f"{input_column} must hold inputs, got nan in {path}.")
    for name, column in zip(output_columns, columns, strict=True):
        if any(isinstance(value, float) and math.isnan(value) for value in column):
            raise ModelError(f"{name} must hold outputs, got nan in {path}.")
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
    cells = [row[place] if place < len(row) else "" for place in places]
    if not all(cell.strip() for cell in cells):
        raise ModelError(
            f"{path} must have an input and an output in every row, got an empty cell "
            f"on line {line}."
        )
    # Blanks are no part of an input; of an output they may be all that differs.
    return [cells[0].strip(), *cells[1:]]


def _values(cells: list[str]) -> list[Any]:
    """Return whole numbers, else numbers, else the text itself."""
    if all(_WHOLE.fullmatch(cell.strip()) for cell in cells):
        return [int(cell) for cell in cells]
    if all(_DECIMAL.fullmatch(cell.strip()) for cell in cells):
        return [float(cell) for cell in cells]
    return cells


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
    for name in names:
        if table[name].null_count:
            raise ModelError(
                f"{path} must have an input and an output in every row, got an empty "
                f"cell in {name!r}."
            )
    columns = [table[name].to_pylist() for name in names]
    # A column of vectors may be the only output, and no part of one.
    plain = columns if len(columns) > 2 else columns[:1]
    for name, column in zip(names, plain, strict=False):
        if column and not isinstance(column[0], str | int | float | bool):
            raise ModelError(
                f"{name} must hold numbers or text, got {type(column[0]).__name__}."
            )
    return columns


def _require_columns(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    for name in names:
        if header.count(name) != 1:
            listed = ", ".join(header[:12]) or "none"
            raise ModelError(
                f"{path} must have one column {name!r}, got the columns {listed[:200]}."
            )
