"""The kinds of values in a release file, each read strictly and written exactly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from undertow._address import is_address, read_address, refused_name, shown_address
from undertow.errors import PlanError
from undertow.numeric.exact import exact
from undertow.release.document_errors import shown
from undertow.release.durations import parse_duration, written_duration
from undertow.release.expression import Expression, parse_expression
from undertow.release.moments import in_utc, read_moment

__all__ = [
    "Duration",
    "Folder",
    "Formula",
    "Measured",
    "Moment",
    "Name",
    "Part",
    "Positive",
    "Probability",
    "Url",
    "readable_name",
    "signed",
]

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
