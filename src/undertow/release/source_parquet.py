"""Parquet files as one table: the same columns, by the types that the files state.

DuckDB stops at text that is not UTF-8 and at times beyond its own, and would do so for
the row of one person. Such values are missing: where it stops, the files are read once
more from copies without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.source_arrow import bearable
from undertow.release.source_names import require_apart
from undertow.release.source_paths import engine_paths, folders_of

__all__ = ["copied_parquet", "open_parquet"]

_NAME = "undertow_source"
_ARROW = b"ARROW:schema"


def open_parquet(
    connection: Any, files: Sequence[Path], *, stated: tuple[str, ...]
) -> Any:
    """Read Parquet files.

    Parameters
    ----------
    connection : Ibis backend
        DuckDB.
    files : sequence of Path
        Each of them once.
    stated : tuple of str
        The columns that their folders state.

    Returns
    -------
    Ibis table
        The rows of all files.

    Raises
    ------
    PlanError
        If the files have different columns, or one that cannot be read as it is.
    """
    parquet = load("pyarrow.parquet")
    first: dict[str, str] = {}
    for file in files:
        schema = parquet.read_schema(str(file))
        require_apart(schema.names, where=file.name)
        _check_digits(schema)
        found = {field.name: _stored_type(field.type) for field in schema}
        first = first or found
        if found != first:
            # DuckDB would cast to the types of the first file, and fail on some rows.
            raise PlanError(
                "the Parquet files of a table must have the same columns of the same "
                f"types, got {file.name}, whose columns are not those of "
                f"{files[0].name}; write them alike."
            )
    if stated:
        # DuckDB would put the name of the folder in the place of what the file holds.
        require_apart([*first, *stated], where="the files and their folders")
    # The types of what folders state would be guessed from which folders there are.
    return connection.read_parquet(
        engine_paths(connection, files),
        table_name=_NAME,
        hive_partitioning=bool(stated),
        hive_types_autocast=False,
    )


def copied_parquet(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copy Parquet files without the values that DuckDB stops at, folder by folder.

    Parameters
    ----------
    files : sequence of Path
        The files.
    folder : Path
        A private folder for the copies.

    Returns
    -------
    list of Path
        The copies, below folders that state what those of the files do.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    copies = []
    for place, file in enumerate(files):
        copy = folder.joinpath(f"rows-{place}", *folders_of(file), "rows.parquet")
        copy.parent.mkdir(parents=True)
        with parquet.ParquetFile(str(file), metadata=_as_stored(file)) as original:
            schema = original.schema_arrow
            with parquet.ParquetWriter(str(copy), schema) as target:
                for batch in original.iter_batches():
                    columns = [
                        bearable(arrow.chunked_array([column])).cast(field.type)
                        for column, field in zip(batch.columns, schema, strict=True)
                    ]
                    target.write_table(arrow.table(columns, schema=schema))
        copies.append(copy)
    return copies


def _as_stored(file: Path) -> Any:
    """Return what a file says of its columns, without the types of Arrow.

    DuckDB does not know those either, and Arrow looks at text to make a dictionary.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    footer = arrow.BufferOutputStream()
    parquet.read_metadata(str(file)).write_metadata_file(footer)
    # A name of the same length: lengths stand before names.
    head, found, tail = footer.getvalue().to_pybytes().rpartition(_ARROW)
    written = head + (b"-" * len(_ARROW) if found else b"") + tail
    return parquet.read_metadata(arrow.BufferReader(written))


def _check_digits(schema: Any) -> None:
    """Refuse decimals that DuckDB reads as floating point, which merges units."""
    types = load("pyarrow").types
    for field in schema:
        if types.is_decimal256(field.type):
            raise PlanError(
                f"column {field.name!r} must have at most 38 digits, got "
                f"{field.type.precision}; write it as text or with fewer."
            )


def _stored_type(kind: Any) -> str:
    """Return what DuckDB reads of an Arrow type: Parquet stores no more than that."""
    types = load("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{'' if kind.tz is None else ', UTC'}]"
    return str(kind).removeprefix("large_").removesuffix("_view")
