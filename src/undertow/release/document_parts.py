"""The parts of a release file about the table, the people in it, and the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from undertow.release.document_errors import Fault, nearest, shown
from undertow.release.document_fields import (
    Duration,
    Folder,
    Moment,
    Name,
    Part,
    Probability,
    Url,
)
from undertow.release.durations import parse_duration, written_duration
from undertow.release.moments import epoch_us
from undertow.release.time_format import TimeFormat

__all__ = [
    "BoundsPart",
    "CheckPart",
    "LedgerPart",
    "OutputPart",
    "SourcePart",
    "Window",
]

MOST_WINDOWS = 10**6
_PER = 'must be "user", "event" or { window = "1h" }'


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of a unit are counted in each window of this length.

    Windows are aligned to the Unix epoch, in UTC.
    """

    length_us: int


def _per(value: Any) -> Literal["user", "event"] | Window:
    if isinstance(value, Window):
        return value
    if value == "user":
        return "user"
    if value == "event":
        return "event"
    if not isinstance(value, dict):
        raise ValueError(f"{_PER}, got {shown(value)}")
    unknown = [key for key in value if key != "window"]
    if unknown or not value:
        key = unknown[0] if unknown else ""
        raise ValueError(f"{_PER}, got {shown(key)}{nearest(key, ['window'])}")
    try:
        return Window(parse_duration(value["window"], name="window"))
    except (TypeError, ValueError) as fault:
        raise ValueError(f".{fault}") from None


def _per_written(value: str | Window) -> str | dict[str, str]:
    if isinstance(value, Window):
        return {"window": written_duration(value.length_us)}
    return value


Per = Annotated[
    Literal["user", "event"] | Window,
    PlainValidator(_per),
    PlainSerializer(_per_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["user", "event"]},
                {
                    "type": "object",
                    "properties": {"window": {"type": "string"}},
                    "required": ["window"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


_KINDS = ("bool", "date", "float", "int", "text", "timestamp")


def _column_type(value: Any) -> str | TimeFormat:
    if isinstance(value, TimeFormat):
        return value
    if isinstance(value, str):
        if value not in _KINDS:
            known = ", ".join(_KINDS)
            got = f"{shown(value)}{nearest(value, _KINDS)}"
            raise ValueError(f"must be one of {known}, or {_FORMAT}, got {got}")
        return value
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"must be a type or {_FORMAT}, got {shown(value)}")
    [(kind, text)] = value.items()
    if kind not in ("date", "timestamp"):
        near = nearest(kind, ("date", "timestamp"))
        raise ValueError(f"must be {_FORMAT}, got {shown(kind)}{near}")
    try:
        return TimeFormat(kind, text)
    except ValueError as fault:
        raise ValueError(f".{kind} {fault}") from None


def _type_written(value: str | TimeFormat) -> str | dict[str, str]:
    return value.written if isinstance(value, TimeFormat) else value


_FORMAT = '{ timestamp = "%d/%m/%Y %H:%M" }'

ColumnType = Annotated[
    str | TimeFormat,
    PlainValidator(_column_type),
    PlainSerializer(_type_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(_KINDS)},
                *(
                    {
                        "type": "object",
                        "properties": {kind: {"type": "string", "maxLength": 100}},
                        "required": [kind],
                        "additionalProperties": False,
                    }
                    for kind in ("date", "timestamp")
                ),
            ]
        }
    ),
]
"""What a column of a CSV file holds, or how a column of text writes its times. Guessing
it from the rows would let the row of one person change how the rows of all others are
read."""


class SourcePart(Part):
    """The table and whose data its rows are."""

    table: Url | None = None
    """A CSV or Parquet file, a DuckDB or SQLite file, or a connection URL."""
    relation: Name | None = None
    """The table or view inside a database."""
    format: Literal["csv", "parquet", "duckdb", "sqlite"] | None = None
    """The format of a file whose name does not end with it."""
    types: dict[Name, ColumnType] = Field(default_factory=dict, max_length=1000)
    """Types of the columns of a CSV file, others are text, and of columns of pandas
    that have no type of their own. The format of times, as in
    { timestamp = "%d/%m/%Y %H:%M" }, of text in any table."""
    unit: Name | None = None
    """The column of the protected unit; without it every row is its own unit."""
    people: Name | None = None
    """Whose rows they are, such as "card holders": tables of the same people share a
    ledger, whatever their columns are called."""
    time: Name | None = None
    """The time column; times without a zone are UTC."""
    per: Per = "user"
    """Over what the rows of a unit are counted."""
    start: Moment | None = None
    """The start of the first window."""
    horizon: Duration | None = None
    """How long releases go on, counted from start."""
    users: int = Field(default=10**9, ge=1, le=10**15)
    """A public upper bound on the number of units."""

    @property
    def kind(self) -> Literal["user", "window", "event"]:
        """What is counted: a unit, a unit in a window, or a row."""
        return "window" if isinstance(self.per, Window) else self.per

    @property
    def window_us(self) -> int | None:
        """The length of a window in microseconds, if there are windows."""
        return self.per.length_us if isinstance(self.per, Window) else None

    @property
    def windows(self) -> int | None:
        """The number of windows from start to the end of the horizon."""
        if self.window_us is None or self.horizon is None:
            return None
        return self.horizon // self.window_us

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.unit is not None and self.unit == self.time:
            raise Fault("time", f"must be another column than unit, got {self.unit!r}")
        if self.kind == "window":
            self._check_windows()
        elif self.horizon is not None and self.start is None:
            raise Fault("start", "must be given with horizon, got nothing")
        if self.start is not None and self.time is None:
            raise Fault("time", "must be given with start, got nothing")
        return self

    def _check_windows(self) -> None:
        for field in ("unit", "time", "start", "horizon"):
            if getattr(self, field) is None:
                raise Fault(field, "must be given where per is a window, got nothing")
        assert self.window_us is not None
        assert self.horizon is not None
        assert self.start is not None
        length = written_duration(self.window_us)
        if epoch_us(self.start) % self.window_us:
            raise Fault(
                "start",
                f"must be the start of a window of {length} counted from 1970-01-01, "
                f"got {self.start.isoformat()}",
            )
        if self.horizon % self.window_us:
            got = written_duration(self.horizon)
            raise Fault("horizon", f"must be whole windows of {length}, got {got}")
        if self.horizon // self.window_us > MOST_WINDOWS:
            rest = "use longer windows, or a shorter horizon"
            raise Fault(
                "horizon", f"must be at most {MOST_WINDOWS} windows, got more; {rest}"
            )


class BoundsPart(Part):
    """How much of the data of one unit counts."""

    rows_per_unit: int | None = Field(default=None, ge=1, le=10**9)
    """Most rows of a unit, or of a unit in a window."""
    groups_per_unit: int | None = Field(default=None, ge=1, le=10**9)
    """Most cells of a query in which a unit counts."""
    rows_per_group: int | None = Field(default=None, ge=1, le=10**9)
    """Most rows of a unit in one cell."""

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the bounds that are stated."""
        return tuple(
            name
            for name in ("rows_per_unit", "groups_per_unit", "rows_per_group")
            if getattr(self, name) is not None
        )

    @property
    def bound_rows(self) -> bool:
        """Whether the number of rows that count for a unit is limited."""
        return self.rows_per_unit is not None or (
            self.groups_per_unit is not None and self.rows_per_group is not None
        )


class CheckPart(Part):
    """A small count with noise before the release, which stops one that finds little.

    The least number of units, or rows, that count in any query is counted.
    """

    units_at_least: int | None = Field(default=None, ge=1, le=10**15)
    """The noisy number of units from which on the release is made."""
    rows_at_least: int | None = Field(default=None, ge=1, le=10**15)
    """The noisy number of rows from which on the release is made."""
    share: Probability = Fraction(1, 100)
    """The part of the budget of one count."""
    tries: int = Field(default=3, ge=1, le=100)
    """How many counts of a run the budget has room for, those that stop it included."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [self.units_at_least, self.rows_at_least]
        if sum(limit is not None for limit in given) != 1:
            got = "both" if None not in given else "nothing"
            raise Fault("", f"must give units_at_least or rows_at_least, got {got}")
        if self.share * self.tries >= 1:
            got = f"{float(self.share):g} and {self.tries}"
            raise Fault("share", f"must leave a budget after all tries, got {got}")
        return self


class OutputPart(Part):
    """Where the answers go."""

    folder: Folder = "release"
    """The folder that is written."""
    format: Literal["csv", "parquet"] = "csv"
    """The format of the tables."""
    consistency: bool = False
    """Whether nested counts are adjusted so that margins add up."""


class LedgerPart(Part):
    """The ledger that is charged."""

    url: Url = "sqlite:///undertow-ledger.sqlite"
    """SQLite or PostgreSQL, as a SQLAlchemy URL."""
    dataset: Name
    """The name of the data set in the ledger."""
