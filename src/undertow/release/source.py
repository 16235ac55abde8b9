"""Tables that a release reads: files, databases, and objects in memory."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from undertow._address import refused_name
from undertow.errors import EngineError, PlanError, UndertowError
from undertow.release._arguments import path_text
from undertow.release._extras import load
from undertow.release.engine_sql import Backend, backend_of, type_name
from undertow.release.limits import ended_by, ran_out_of_memory, stops_postgres
from undertow.release.source_collated import has_collations
from undertow.release.source_lines import Misfits
from undertow.release.source_names import absent
from undertow.release.source_own import require_own_functions
from undertow.release.source_stored import is_guessed, is_stored
from undertow.release.time_format import TimeFormat, read_time

__all__ = [
    "Source",
    "SourceSpec",
    "guarded",
    "open_source",
    "texts_as_written",
]

Types = Mapping[str, str | TimeFormat]
"""Columns and what they hold, or how they write their times."""

_NAMES = {"duckdb": "DuckDB", "postgres": "PostgreSQL", "pyspark": "Spark"}
_STATED = ("bool", "date", "float", "int", "text", "timestamp")
_TEXTS = ("spark.sql.variable.substitute", "spark.sql.parser.escapedStringLiterals")


@runtime_checkable
class SourceSpec(Protocol):
    """What a release file says about its table."""

    @property
    def table(self) -> str | None:
        """A file, or a connection URL."""

    @property
    def relation(self) -> str | None:
        """The table or view in a database."""

    @property
    def format(self) -> str | None:
        """The format of a file whose name does not end with it."""

    @property
    def types(self) -> Types:
        """The types of the columns of a CSV file; formats of times in any table."""


@dataclass(eq=False)
class Source:
    """A table on an engine, open for reading.

    Parameters
    ----------
    table : Ibis table
        The rows.
    backend : {"duckdb", "postgres", "pyspark"}
        The engine.
    closing : callable
        Ends what was opened for it.
    stamp : callable
        Returns what changes when the table is written to; for files.
    stored : bool
        Whether every statement reads the same rows, unless they are written to; a view
        or an expression may give others to each.
    collated : bool
        Whether text may compare as equal without being the same.
    unread : mapping of str to str
        For columns whose type nothing states, the sentence that refuses their use.
    opened : object, optional
        What `stamp` returned before the table was opened; by default what it returns
        now.
    opening_copy : callable, optional
        Opens a copy of the rows without what the engine stops at, for files that it
        may stop at; returns None if there cannot be one.
    written : Ibis table or None
        The rows before some of their columns of text are read as other types.
    counted : callable
        Returns how many cells of some columns hold anything before they are read as
        their types, where `written` does not tell.
    lines : bool
        Whether the first line of a CSV file, which may be a row, names the columns.
    misfits : callable
        Counts the rows of CSV files that are not like their first lines.

    Notes
    -----
    A context manager; leaving it closes the source.
    """

    table: Any
    backend: Backend
    closing: Callable[[], None] = field(default=lambda: None, repr=False)
    stamp: Callable[[], Any] = field(default=lambda: None, repr=False)
    stored: bool = field(default=True, repr=False)
    collated: bool = field(default=False, repr=False)
    unread: Mapping[str, str] = field(default_factory=dict, repr=False)
    opened: Any = field(default=None, repr=False)
    opening_copy: Callable[[], Source | None] | None = field(default=None, repr=False)
    _copy: Source | None = field(default=None, repr=False)
    written: Any = field(default=None, repr=False)
    counted: Callable[[Sequence[str]], Mapping[str, int]] = field(
        default=lambda names: {}, repr=False
    )
    lines: bool = field(default=False, repr=False)
    misfits: Callable[[], Misfits | None] = field(default=lambda: None, repr=False)
    _held: list[Callable[[], Any]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.opened is None:
            self.opened = self.stamp()

    def __repr__(self) -> str:
        return f"Source on {_NAMES[self.backend]} with {len(self.columns)} columns"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.columns)

    def filled(self, names: Sequence[str]) -> dict[str, int]:
        """Count the cells of some columns that hold anything, as they are stored.

        Columns that are stored as what they are read as may be left out.
        """
        found = dict(self.counted(names))
        stored = () if self.written is None else self.written.columns
        text = [name for name in names if name in stored]
        if text:
            cells = [self.written[name].count() for name in text]
            counts = {f"c{at}": count for at, count in enumerate(cells)}
            [row] = self.execute(self.written.aggregate(**counts)).to_pylist()
            found |= zip(text, map(int, row.values()), strict=True)
        return found

    def close(self) -> None:
        """End connections, and remove what was spilled to disk."""
        self._held.clear()
        copy, self._copy, self.opening_copy = self._copy, None, None
        if copy is not None:
            copy.close()
        closing, self.closing = self.closing, lambda: None
        closing()

    def execute(self, table: Any) -> Any:
        """Run an Ibis table on the engine and return an Arrow table.

        Raises
        ------
        EngineError
            If the engine fails; its own words may hold data and are not repeated.
        """
        with guarded(self.backend):
            return table.to_pyarrow()

    def kept(self, table: Any) -> Any:
        """Keep rows on the engine for several queries, where it can for a reader.

        PostgreSQL creates nothing in a read-only session and computes them again.
        """
        if self.backend == "postgres":
            return table
        with guarded(self.backend):
            if self.backend == "pyspark":
                held = table.cache()
                self._held.append(held.release)
                return held
            engine = self.table.get_backend()
            name = f"undertow_kept_{secrets.token_hex(8)}"
            held = engine.create_table(name, table, temp=True)
            self._held.append(lambda: engine.raw_sql(f"DROP TABLE temp.main.{name}"))
            return held

    def without_faults(self) -> Source | None:
        """Return a copy of the rows at which the engine does not stop.

        None where there is none: only files are copied, and only as they were opened.
        """
        if self._copy is None and self.opening_copy is not None:
            opening, self.opening_copy = self.opening_copy, None
            if self.stamp() == self.opened:
                self._copy = opening()
        return self._copy

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Give up what was kept for the queries inside, at the end of them.

        Raises
        ------
        EngineError
            If a file was written to meanwhile, so that bounds may not hold.
        """
        try:
            try:
                yield
            except EngineError:
                self._require_as_opened()
                raise
            self._require_as_opened()
        finally:
            held, self._held = self._held, []
            for release in held:
                with guarded(self.backend):
                    release()

    def _require_as_opened(self) -> None:
        if self.stamp() != self.opened:
            raise EngineError(
                "the table must stay as it is while it is read, got a file that "
                "was written to; run the release again."
            ) from None


@contextmanager
def guarded(backend: str) -> Iterator[None]:
    """Replace what an engine says on failure by one sentence without data."""
    try:
        with warnings.catch_warnings():
            # What Ibis, the engines and Arrow say to each other is not for the reader.
            warnings.simplefilter("ignore")
            yield
    except (UndertowError, MemoryError):
        raise
    except Exception as fault:
        # Of other faults the kind may depend on what is in a row.
        outer = any(base.__name__ == "OperationalError" for base in type(fault).__mro__)
        kind = type(fault).__name__ if outer else "an error"
        if kind == "OutOfMemoryException":
            ran_out_of_memory()
        raise EngineError(
            f"{_NAMES.get(backend, backend)} must finish the query, got {kind}; check "
            "the table and the engine, whose own message may hold data and is not "
            "shown."
        ) from None


def open_source(
    spec: SourceSpec | Any,
    *,
    folder: str | Path | None = None,
    types: Types | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
) -> Source:
    """Open a table for reading.

    Parameters
    ----------
    spec : SourceSpec, str, Path or table
        What a release file says about its table; or a file or connection URL; or a
        table in memory: pandas, Polars or Arrow, or an Ibis table.
    folder : str or Path, optional
        Where relative paths start; by default the working directory.
    types : mapping of str to str or TimeFormat, optional
        Types of the columns of a CSV file given by its name: ``bool``, ``date``,
        ``float``, ``int``, ``text`` or ``timestamp``; others are text. Of a pandas
        table, types of the columns that may hold anything, which are read only then. A
        value that is not of its type is missing. Formats of times go with any table.
    memory_mb : int, optional
        Memory that DuckDB may use, by default two thirds of the machine's, at most
        3000; what does not fit is spilled to a private folder.
    threads : int, optional
        Threads of DuckDB, by default all.

    Returns
    -------
    Source
        A context manager.

    Raises
    ------
    PlanError
        If there is no such table, or it cannot be read as what its name says.
    EngineError
        If a server cannot be reached.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with open_source(pa.table({"zone": ["A", "B"]})) as source:
    ...     source
    Source on DuckDB with 1 columns
    """
    forms = _forms(spec, types)
    if forms:
        plain, kinds = _without_forms(spec, types)
        source = open_source(
            plain, folder=folder, types=kinds, memory_mb=memory_mb, threads=threads
        )
        return _with_times(source, forms)
    from undertow.release.source_files import Limits, open_file
    from undertow.release.source_memory import open_memory
    from undertow.release.source_servers import is_url, open_url

    limits = Limits.of(memory_mb, threads)
    if types is not None and not isinstance(types, Mapping):
        raise PlanError(
            f"types must be a mapping of columns to types, got {type(types).__name__}."
        )
    for name, stated in (types or {}).items():
        if not isinstance(name, str) or stated not in _STATED:
            raise PlanError(
                f"types must map names of columns to {', '.join(_STATED)}, got "
                f"{str(stated)[:60]!r} for {str(name)[:60]!r}."
            )
    if isinstance(spec, (str, Path)):
        text, relation, form = str(spec), None, None
        kinds = _plain(types)
    elif isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        text, relation, form = spec.table, spec.relation, spec.format
        kinds = _plain(spec.types)
    elif isinstance(spec, load("ibis").Table):
        if types:
            raise PlanError("types must be left out for an Ibis table, got some.")
        return _open_ibis(spec)
    else:
        return open_memory(spec, types=_plain(types), limits=limits)
    root = Path.cwd() if folder is None else Path(path_text(folder, "folder"))
    refusal = refused_name(text) if isinstance(spec, str) else None
    if refusal is not None:
        raise PlanError(f"table {refusal}.")
    if is_url(text):
        if kinds:
            raise PlanError("source.types must be left out for a server, got some.")
        return open_url(text, relation, root=root, limits=limits)
    return open_file(text, relation, root=root, form=form, types=kinds, limits=limits)


@dataclass(frozen=True, slots=True)
class _Plain:
    """What a release file says about its table, formats of times aside."""

    table: str
    relation: str | None
    format: str | None
    types: dict[str, str]


def _forms(spec: Any, types: Types | None) -> dict[str, TimeFormat]:
    """Return the formats of times among the types that are stated."""
    stated = types if isinstance(types, Mapping) else {}
    if isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        stated = spec.types
    return {n: kind for n, kind in stated.items() if isinstance(kind, TimeFormat)}


def _without_forms(spec: Any, types: Types | None) -> tuple[Any, dict[str, str]]:
    """Return what is opened where formats are taken for text."""
    if isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        kinds = _plain(spec.types)
        return _Plain(spec.table, spec.relation, spec.format, kinds), {}
    kinds = _plain(types)
    # Columns that hold anything are read as text, which others are by themselves.
    dtypes = getattr(spec, "dtypes", {}) if _is_pandas(spec) else {}
    text = [name for name in _forms(spec, types) if str(dtypes.get(name)) == "object"]
    return spec, kinds | dict.fromkeys(text, "text")


def _plain(types: Types | None) -> dict[str, str]:
    """Return the types that are stated, formats of times aside."""
    stated = (types or {}).items()
    return {n: kind for n, kind in stated if not isinstance(kind, TimeFormat)}


def _with_times(source: Source, forms: Mapping[str, TimeFormat]) -> Source:
    """Read columns of text as the times that they write; close what has none."""
    try:
        read = _times(source, forms)
    except BaseException:
        source.close()
        raise
    written = source.table if source.written is None else source.written
    opening = source.opening_copy
    return replace(
        source,
        table=source.table.mutate(**read),
        written=written,
        opening_copy=None if opening is None else partial(_copied, opening, forms),
    )


def _copied(
    opening: Callable[[], Source | None], forms: Mapping[str, TimeFormat]
) -> Source | None:
    """Open the copy of a source, and read its times like those of the source."""
    copy = opening()
    return None if copy is None else _with_times(copy, forms)


def _times(source: Source, forms: Mapping[str, TimeFormat]) -> dict[str, Any]:
    """Return the columns that write times.

    Raises
    ------
    PlanError
        If there is no such column, or it is not of text.
    """
    table = source.table
    for name in forms:
        if name not in source.columns:
            why = absent(name, source.columns, wanted=forms, lines=source.lines)
            raise PlanError(
                f"source.types must name columns of the table, got {name[:60]!r}{why}."
            )
        kind = table[name].type()
        if not kind.is_string():
            raise PlanError(
                f"source.types must give a format for columns of text, got "
                f"{type_name(kind)} in {name[:60]!r}; leave the format out."
            )
    return {
        name: read_time(table[name], form, source.backend, collated=source.collated)
        for name, form in forms.items()
    }


def _open_ibis(table: Any) -> Source:
    backend = backend_of(table)
    if backend == "duckdb":
        ended_by(lambda since: table.get_backend().con.interrupt())
    elif backend == "postgres":
        ended_by(stops_postgres(table.get_backend().con))
    for held in table.op().find(load("ibis.expr.operations").InMemoryTable):
        if any(str(kind) == "object" for kind in getattr(_frame(held), "dtypes", ())):
            raise PlanError(
                "an Ibis table of a pandas table must have columns of types of their "
                "own, got one of dtype object, whose type Ibis takes from the cells; "
                "convert it with astype."
            )
    if backend == "pyspark":
        session = table.get_backend()._session
        zone = session.conf.get("spark.sql.session.timeZone")
        if zone not in ("UTC", "Etc/UTC", "Z", "GMT"):
            raise PlanError(
                f"the time zone of the Spark session must be UTC, got {zone}; set "
                "spark.sql.session.timeZone."
            )
    with guarded(backend):
        if backend == "duckdb" and is_guessed(table):
            raise PlanError(
                "an Ibis table must not read CSV or JSON, whose types DuckDB takes "
                "from the rows; give the name of a CSV file, or create a table of it."
            )
        require_own_functions(table, backend)
        stored, collated = is_stored(table, backend), has_collations(table, backend)
        closing = texts_as_written(session) if backend == "pyspark" else _nothing
    return Source(table, backend, closing, stored=stored, collated=collated)


def _frame(held: Any) -> Any:
    """Return the pandas table that an Ibis table in memory was made of, if any."""
    frame = getattr(held.data, "obj", None)
    return frame if _is_pandas(frame) else None


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas"


def texts_as_written(session: Any) -> Callable[[], None]:
    """Let Spark take keys and names as they are; return what undoes it.

    It would replace ${env:...} in them, and may be set to leave backslashes doubled.
    """
    before = {setting: session.conf.get(setting) for setting in _TEXTS}
    for setting in _TEXTS:
        session.conf.set(setting, "false")

    def closing() -> None:
        with guarded("pyspark"):
            for setting, value in before.items():
                session.conf.set(setting, value)

    return closing


def _nothing() -> None:
    """Leave what somebody else has opened."""
