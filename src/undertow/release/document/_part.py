"""Parts of a release file on table, people and outputs, and the kinds of its values.

Each value is read strictly and written exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from undertow._address import is_address, read_address, refused_name, shown_address
from undertow.errors import PlanError
from undertow.numeric.exact import exact
from undertow.release.document._error import Fault, nearest, shown
from undertow.release.document.time import (
    TimeFormat,
    epoch_us,
    in_utc,
    parse_duration,
    read_moment,
    written_duration,
)
from undertow.release.language.expression import Expression, parse_expression

# The kinds of values in a release file, each read strictly and written exactly.

_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string"}]}
_NUMBERS = (int, float, str, Decimal, Fraction)
_LARGEST = 2**100


class Part(BaseModel):
    """A part of a release file: frozen, strict, and closed to unknown keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, shown_address(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        return repr(self)


def signed(value: Any) -> Fraction:
    """Read a finite number of either sign exactly.

    Examples
    --------
    >>> signed(-0.1), signed("1/3")
    (Fraction(-1, 10), Fraction(1, 3))
    """
    minus = False
    if isinstance(value, str):
        text = value.strip()
        minus, value = text.startswith("-"), text.removeprefix("-").lstrip()
        if value.startswith(("-", "+")):
            raise ValueError(f"must be a number, got {shown(text)}")
    elif isinstance(value, int | float | Decimal | Fraction) and value < 0:
        minus, value = True, -value
    number = _exact(value)
    if number >= _LARGEST:
        raise ValueError("must be below 2^100 in size, got a larger number")
    return -number if minus else number


def _exact(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ValueError(f"must be a number such as 0.5 or '1/3', got {shown(value)}")
    try:
        number = exact(value, "\t")
    except (TypeError, ValueError) as fault:
        raise ValueError(str(fault).lstrip().rstrip(".")) from None
    if not isinstance(number, Fraction):
        raise ValueError("must be finite, got inf")
    return number


def _positive(value: Any) -> Fraction:
    number = signed(value)
    if number <= 0:
        raise ValueError(f"must be positive, got {shown(value)}")
    return number


def _probability(value: Any) -> Fraction:
    number = _exact(value)
    if not 0 < number < 1:
        raise ValueError(f"must lie strictly between 0 and 1, got {shown(value)}")
    return number


def readable_name(value: str) -> str:
    """Check a name of a column or query: 1 to 128 characters without NUL."""
    if not 1 <= len(value) <= 128:
        raise ValueError(f"must have 1 to 128 characters, got {len(value)}")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("must be Unicode text without NUL, got other text")
    return value


def _url(value: str) -> str:
    if not 1 <= len(value) <= 4096:
        raise ValueError(f"must have 1 to 4096 characters, got {len(value)}")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("must be Unicode text without NUL, got other text")
    if is_address(value):
        read_address(value)  # what is not understood cannot be shown in part
    refusal = refused_name(value)
    if refusal is not None:
        raise ValueError(refusal)
    return value


def _folder(value: str) -> str:
    refusal = refused_name(value, kind="a folder")
    if refusal is not None:
        raise ValueError(refusal)
    return _url(value)


def _duration(value: Any) -> int:
    try:
        return parse_duration(value, name="")
    except (TypeError, ValueError) as fault:
        raise ValueError(str(fault).lstrip()) from None


def _moment(value: Any) -> datetime:
    moment = read_moment(value) if isinstance(value, str) else None
    if isinstance(value, datetime):
        moment = in_utc(value)
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    if moment is None:
        raise ValueError(f"must be a time such as '2026-01-31', got {shown(value)}")
    return moment


def _formula(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise ValueError(f"must be text such as 'steps > 0', got {shown(value)}")
    try:
        return parse_expression(value, name="")
    except PlanError as fault:
        raise ValueError(str(fault).lstrip()) from None


def _written(number: Fraction) -> str:
    return str(number)


Positive = Annotated[
    Fraction,
    PlainValidator(_positive),
    PlainSerializer(_written),
    WithJsonSchema(_NUMBER | {"description": "positive; text is read exactly"}),
]
"""A positive number, exact."""

Probability = Annotated[
    Fraction,
    PlainValidator(_probability),
    PlainSerializer(_written),
    WithJsonSchema(_NUMBER | {"description": "between 0 and 1; text is read exactly"}),
]
"""A number strictly between 0 and 1, exact."""

Measured = Annotated[
    Fraction,
    PlainValidator(signed),
    PlainSerializer(_written),
    WithJsonSchema(_NUMBER | {"description": "text is read exactly"}),
]
"""A finite number, exact."""

Name = Annotated[
    str, AfterValidator(readable_name), Field(json_schema_extra={"maxLength": 128})
]
"""The name of a column or query."""

Url = Annotated[str, AfterValidator(_url), PlainSerializer(shown_address)]
"""A path or connection URL; its password is never written."""

Folder = Annotated[str, AfterValidator(_folder), PlainSerializer(shown_address)]
"""The path of a folder, and no address."""

Duration = Annotated[
    int,
    PlainValidator(_duration),
    PlainSerializer(written_duration),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+[wdhms]$"}),
]
"""A length of time, kept in microseconds."""

Moment = Annotated[
    datetime,
    PlainValidator(_moment),
    PlainSerializer(datetime.isoformat),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in UTC without a zone."""

Formula = Annotated[
    Expression,
    PlainValidator(_formula),
    PlainSerializer(str),
    WithJsonSchema({"type": "string"}),
]
"""An expression over the columns of a row."""


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
