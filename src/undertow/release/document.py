"""The release file as a whole: what is promised, from which data, to which queries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from undertow._address import masked
from undertow._text import LARGEST_FILE, parse_toml, read_text_file
from undertow.errors import PlanError
from undertow.release._arguments import path_text, require_text_keys
from undertow.release.document_errors import Fault, refused
from undertow.release.document_fields import Formula, Name, Part
from undertow.release.document_parts import (
    BoundsPart,
    CheckPart,
    LedgerPart,
    OutputPart,
    SourcePart,
)
from undertow.release.document_promise import PromisePart, ThreatPart
from undertow.release.document_query import QueryPart
from undertow.release.expression import Expression, parse_expression
from undertow.release.keys import MOST_CELLS

__all__ = [
    "LARGEST_FILE",
    "TIME_COLUMNS",
    "ReleaseDocument",
    "read_release",
    "release_from_mapping",
    "release_schema",
]

TIME_COLUMNS = ("date", "hour", "minute", "month", "weekday", "year")
"""Names that stand for parts of the time column where the table has no such column."""

_MOST_QUERIES = 1000


def _names_once(queries: tuple[QueryPart, ...]) -> tuple[QueryPart, ...]:
    seen: dict[str, int] = {}
    for at, query in enumerate(queries):
        if query.name in seen:
            raise ValueError(
                f"[{at}].name must differ from the others, got {query.name!r} twice"
            )
        seen[query.name] = at
    return queries


class ReleaseDocument(Part):
    """A release file, checked as far as it can be without the data.

    Notes
    -----
    Checked: every key is known, every value has its type and range, the parts fit
    together, and no query publishes keys that nobody declared. Not checkable here:
    that the columns exist and have fitting types.
    """

    source: SourcePart = Field(default_factory=SourcePart)
    """The table and whose data its rows are."""
    columns: dict[Name, Formula] = Field(default_factory=dict, max_length=1000)
    """Derived columns: a name and an expression each."""
    promise: PromisePart
    """What is promised."""
    threat: ThreatPart | None = None
    """The attacker that an advantage is promised against."""
    bounds: BoundsPart = Field(default_factory=BoundsPart)
    """How much of the data of one unit counts."""
    check: CheckPart | None = None
    """A small count with noise before the release."""
    queries: Annotated[tuple[QueryPart, ...], AfterValidator(_names_once)] = Field(
        strict=False, min_length=1, max_length=_MOST_QUERIES
    )
    """The tables of answers."""
    output: OutputPart = Field(default_factory=OutputPart)
    """Where the answers go."""
    ledger: LedgerPart | None = None
    """The ledger that is charged."""

    _file: Path | None = PrivateAttr(default=None)

    @property
    def file(self) -> Path | None:
        """The file it was read from, if any."""
        return self._file

    def path(self, text: str) -> Path:
        """Return a path of the file; relative ones start at the folder of the file."""
        return Path(text) if self._file is None else self._file.parent / text

    def derived(self, available: Iterable[str]) -> dict[str, Expression]:
        """Return the derived columns for a table that has the `available` ones.

        The parts of the time column are added where neither the table nor the file
        has a column of their name.
        """
        found = dict(self.columns)
        names = set(available)
        if self.source.time is not None:
            time = '"' + self.source.time.replace('"', '""') + '"'
            for name in TIME_COLUMNS:
                if name not in names and name not in found:
                    found[name] = parse_expression(f"{name}({time})", name=name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, defaults filled in, no password."""
        found = self.model_dump(mode="json")
        if self.check is None:  # as in files that know no such part or key
            del found["check"]
        if self.source.people is None:
            del found["source"]["people"]
        return found

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON of the document, in hex.

        Passwords are left out, so that the fingerprint can be published.
        """
        text = json.dumps(
            self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True
        )
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_unit()
        self._check_columns()
        self._check_bounds()
        self._check_promise()
        self._check_count()
        for at, query in enumerate(self.queries):
            self._check_query(query, f"queries[{at}]")
        cells = sum(query.cells for query in self.queries)
        if cells > MOST_CELLS:
            raise Fault(
                "queries", f"must have at most {MOST_CELLS} cells overall, got {cells}"
            )
        return self

    def _check_columns(self) -> None:
        for name in (self.source.unit, self.source.time):
            if name in self.columns:
                raise Fault(f"columns.{name[:60]}", "must not be the unit or the time")
        reads = {name: formula.columns for name, formula in self.columns.items()}
        open_ = set(reads)
        while open_:
            free = {name for name in open_ if not (reads[name] & open_)}
            if not free:
                name = min(open_)[:60]
                raise Fault(
                    f"columns.{name}", "must not depend on itself, got a circle"
                )
            open_ -= free

    def _check_unit(self) -> None:
        """Refuse a table whose rows belong to nobody, unless the file says so."""
        if self.source.unit is None and "per" not in self.source.model_fields_set:
            raise Fault(
                "source.unit",
                "must name the column that says whose rows they are, got nothing; "
                'where each row is somebody else\'s, say so with per = "event" and '
                'promise.granularity = "event"',
            )

    def _check_bounds(self) -> None:
        if self.source.kind == "event" or self.source.unit is None:
            event = self.source.kind == "event"
            reason = "source.per is event" if event else "source.unit is not given"
            for field in self.bounds.given:
                raise Fault(
                    f"bounds.{field}",
                    f"must be left out where {reason}: each row counts by itself",
                )
        elif not self.bounds.bound_rows:
            raise Fault(
                "bounds.rows_per_unit",
                "must be given, got nothing; without it one unit could change the "
                "answers without limit (or give groups_per_unit and rows_per_group)",
            )

    def _check_count(self) -> None:
        each = self.source.unit is None or self.source.kind == "event"
        if each and self.check is not None and self.check.units_at_least is not None:
            raise Fault(
                "check.units_at_least",
                "must be rows_at_least where each row counts by itself, got units",
            )

    def _check_promise(self) -> None:
        if self.promise.advantage is not None and self.threat is None:
            raise Fault("threat", "must be given with promise.advantage, got nothing")
        self._check_windows()

    def _check_windows(self) -> None:
        """Refuse a level of several windows where there is one: it says no more."""
        from undertow.spaces.unit import parse_granularity
        from undertow.spaces.unit.stream import LTrajectory, WEvent

        target = parse_granularity(self.promise.granularity)
        length = target.w if isinstance(target, WEvent) else 1
        length = target.length if isinstance(target, LTrajectory) else length
        given = "users as a whole" if self.source.kind == "user" else None
        given = "one window" if self.source.windows == 1 else given
        if length > 1 and given is not None:
            raise Fault(
                "promise.granularity",
                f"must count windows where it is {target.name}, got {given}; give "
                "several with source.per = { window = … }, or promise user level",
            )

    def _check_query(self, query: QueryPart, path: str) -> None:
        if query.discover and self.promise.delta is None:
            raise Fault(
                f"{path}.keys",
                'must be public where the promise has no delta, got "discover"; give '
                "promise.delta, or list the keys",
            )
        each = self.source.unit is None or self.source.kind == "event"
        if query.select == "count_distinct" and each:
            reason = "source.unit is not given"
            if self.source.unit is not None:
                reason = 'source.per is "event"'
            raise Fault(
                f"{path}.select",
                f"must be count where {reason}, got count_distinct",
            )
        if query.running and self.source.kind != "window":
            raise Fault(
                f"{path}.running", 'must have source.per = { window = "..." }, got none'
            )


def release_from_mapping(
    mapping: Mapping[str, Any], *, in_memory: bool = False
) -> ReleaseDocument:
    """Read a release from nested mappings, as a TOML file holds them.

    Parameters
    ----------
    mapping : mapping
        With ``promise``, ``queries`` and the other parts of the format.
    in_memory : bool
        Whether the table is an object, so that ``source.table`` is left out.

    Raises
    ------
    PlanError
        With one sentence naming the place, the requirement and what was found.

    Examples
    --------
    >>> document = release_from_mapping({
    ...     "source": {"table": "steps.parquet", "unit": "person", "time": "ts"},
    ...     "promise": {"epsilon": "1.0"},
    ...     "bounds": {"rows_per_unit": 50},
    ...     "queries": [{"name": "active", "select": "count", "where": "steps > 0",
    ...                  "by": ["hour"], "keys": {"hour": "0..23"}}],
    ... })
    >>> document.promise.epsilon, document.queries[0].cells
    (Fraction(1, 1), 24)
    """
    if not isinstance(mapping, Mapping):
        raise PlanError(f"the release must be a table, got {type(mapping).__name__}.")
    try:
        require_text_keys(mapping)
        document = ReleaseDocument.model_validate(dict(mapping))
    except ValidationError as fault:
        raise refused(fault, ReleaseDocument) from None
    except RecursionError:
        raise PlanError("the release must not be nested so deeply.") from None
    if in_memory != (document.source.table is None):
        rest = "left out for a table in memory" if in_memory else "given, got nothing"
        raise PlanError(f"source.table must be {rest}.")
    return document


def read_release(path: str | Path) -> ReleaseDocument:
    """Read a release from a TOML file.

    Raises
    ------
    PlanError
        If the file is missing, too large, not text, not TOML, or not a release.
    """
    file = Path(path_text(path, "path"))
    try:
        mapping = parse_toml(read_text_file(file, kind="release"))
    except RecursionError:
        raise PlanError(f"{file} must be a TOML file, got too deep nesting.") from None
    except PlanError:
        raise
    except ValueError as fault:  # TOML errors, and whole numbers of too many digits
        reason = masked(str(fault).splitlines()[0].rstrip(".")[:200])
        raise PlanError(
            f"{file} must be a TOML file, got an error: {reason}."
        ) from None
    document = release_from_mapping(mapping)
    document._file = file
    return document


def release_schema() -> dict[str, Any]:
    """Return the JSON Schema of a release file."""
    schema = ReleaseDocument.model_json_schema(mode="validation")
    # A file names its table; only a release of an object in memory does not.
    schema["$defs"]["SourcePart"]["required"] = ["table"]
    schema["required"] = ["source", *schema["required"]]
    schema["description"] = "A release file: the table, the promise and the queries."
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
