"""Recorded runs from a file: one row for each, an input column and an output column."""

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
    path: Path, *, input_column: str, output_column: str
) -> RecordedSubject:
    """Read the runs of a ``.csv`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
        The file; its ending says its kind.
    input_column, output_column : str
        Names of the columns.

    Raises
    ------
    ModelError
        If the file cannot be read, lacks a column, or has an empty cell in one.

    Notes
    -----
    A column of a CSV file is read as numbers if every cell is one, else as text.
    """
    if input_column == output_column:
        raise ModelError(
            f"input-column and output-column must differ, got {input_column!r} twice."
        )
    kinds = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"the file must end in .csv or .parquet, got {path}.")
    names = (input_column, output_column)
    inputs, outputs = kinds[path.suffix.lower()](path, names)
    if not inputs:
        raise ModelError(f"{path} must hold runs, got none.")
    if any(value != value for value in inputs):
        raise ModelError(f"{input_column} must hold inputs, got nan in {path}.")
    if any(isinstance(value, float) and math.isnan(value) for value in outputs):
        raise ModelError(f"{output_column} must hold outputs, got nan in {path}.")
    return RecordedSubject(inputs, outputs, name=path.name)


def _read_csv(path: Path, names: tuple[str, str]) -> tuple[list[Any], list[Any]]:
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
    inputs, outputs = ([row[k] for row in rows] for k in (0, 1))
    return _values(inputs), _values(outputs)


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
    return [cells[0].strip(), cells[1]]


def _values(cells: list[str]) -> list[Any]:
    """Return whole numbers, else numbers, else the text itself."""
    if all(_WHOLE.fullmatch(cell.strip()) for cell in cells):
        return [int(cell) for cell in cells]
    if all(_DECIMAL.fullmatch(cell.strip()) for cell in cells):
        return [float(cell) for cell in cells]
    return cells


def _read_parquet(path: Path, names: tuple[str, str]) -> tuple[list[Any], list[Any]]:
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
    inputs, outputs = (table[name].to_pylist() for name in names)
    if inputs and not isinstance(inputs[0], str | int | float | bool):
        raise ModelError(
            f"{names[0]} must hold numbers or text, got {type(inputs[0]).__name__}."
        )
    return inputs, outputs


def _require_columns(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    for name in names:
        if header.count(name) != 1:
            listed = ", ".join(header[:12]) or "none"
            raise ModelError(
                f"{path} must have one column {name!r}, got the columns {listed[:200]}."
            )
