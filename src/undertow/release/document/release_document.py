"""The release file as a whole: what is promised, from which data, to which queries.

Every query is checked as far as it can be without the data. The cells of its table are
named by public keys before the data is read, or their keys are discovered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from undertow._address import masked
from undertow._text import parse_toml, read_text_file
from undertow.errors import PlanError
from undertow.release.document._error import (
    Fault,
    nearest,
    path_text,
    refused,
    require_text_keys,
    shown,
)
from undertow.release.document._part import (
    BoundsPart,
    CheckPart,
    Formula,
    LedgerPart,
    Measured,
    Name,
    OutputPart,
    Part,
    Positive,
    Probability,
    SourcePart,
    readable_name,
    signed,
)
from undertow.release.document._promise import PromisePart, ThreatPart
from undertow.release.document._select import FIELDS, KINDS, Select, SelectKind
from undertow.release.document.time import read_date
from undertow.release.language.expression import Expression, parse_expression

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
        if query.kind.counts == "units" and each:
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


# Public keys: the cells of a table are named before the data is read.

Key = bool | int | str | date
"""What names a cell."""

MOST_CELLS = 10**6
_LONGEST_KEY = 1000
_FORMS = '"0..23", "2026-01-01..2026-01-31" or a list such as ["A", "B"]'
_KINDS = {bool: "booleans", int: "whole numbers", str: "texts", date: "dates"}


class Discover(Enum):
    """The one value that stands for keys found by partition selection."""

    DISCOVER = "discover"


DISCOVER: Final = Discover.DISCOVER

Keys = dict[str, tuple[Key, ...]] | Literal[Discover.DISCOVER]
"""The keys of each column, or `DISCOVER` for all of them together."""


def parse_all_keys(value: Any, *, name: str = "keys") -> Keys:
    """Read what a query says about its keys.

    Parameters
    ----------
    value : str or mapping
        ``"discover"``, or for each column what :func:`parse_keys` reads.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        If the keys of a column have no such form, repeat, or are too many.

    Examples
    --------
    >>> parse_all_keys({"hour": "0..2", "zone": ["A", "B"]})
    {'hour': (0, 1, 2), 'zone': ('A', 'B')}
    """
    if value is DISCOVER or value == "discover":
        return DISCOVER
    if not isinstance(value, Mapping):
        raise ValueError(
            f'{name} must be "discover" or a table such as {{ hour = "0..23", zone = '
            f'["A", "B"] }}, got {_shown(value)}.'
        )
    return {
        str(column): parse_keys(keys, name=f"{name}.{str(column)[:60]}")
        for column, keys in value.items()
    }


def parse_keys(value: Any, *, name: str = "keys") -> tuple[Key, ...]:
    """Read the public keys of one column, each once, types as written.

    Parameters
    ----------
    value : str or sequence
        A range of whole numbers or ISO dates with both ends included, or a list of
        whole numbers, texts, dates or booleans, all of one type.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        If the value has no such form, a key repeats, or there are over a million.

    Examples
    --------
    >>> parse_keys("-1..1")
    (-1, 0, 1)
    >>> parse_keys("2026-02-28..2026-03-01")
    (datetime.date(2026, 2, 28), datetime.date(2026, 3, 1))
    """
    if isinstance(value, str):
        return _range(value, name)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(f"{name} must be {_FORMS}, got {_shown(value)}.")
    if not value:
        raise ValueError(f"{name} must hold at least one key, got none.")
    if len(value) > MOST_CELLS:
        raise ValueError(
            f"{name} must hold at most {MOST_CELLS} keys, got {len(value)}."
        )
    keys = tuple(_key(key, f"{name}[{at}]") for at, key in enumerate(value))
    _one_type(keys, name)
    _each_once(keys, name)
    return keys


def _range(text: str, name: str) -> tuple[Key, ...]:
    if text == "discover":
        raise ValueError(
            f"{name} must be public keys, got 'discover'; discovery is for all columns "
            'of a query together: keys = "discover".'
        )
    first, dots, last = (part.strip() for part in text[:60].partition(".."))
    days = read_date(first), read_date(last)
    if dots and days[0] is not None and days[1] is not None:
        return _dates(days[0], days[1], name)
    low, high = _whole(first), _whole(last)
    if not dots or len(text) > 60 or low is None or high is None:
        raise ValueError(f"{name} must be {_FORMS}, got {_shown(text)}.")
    _check_size(high - low + 1, name)
    return tuple(range(low, high + 1))


def _dates(first: date, last: date, name: str) -> tuple[Key, ...]:
    days = (last - first).days + 1
    _check_size(days, name)
    return tuple(first + timedelta(days=day) for day in range(days))


def _check_size(size: int, name: str) -> None:
    if size < 1:
        raise ValueError(
            f"{name} must run from low to high, got a range that is empty."
        )
    if size > MOST_CELLS:
        raise ValueError(f"{name} must hold at most {MOST_CELLS} keys, got {size}.")


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    return int(text) if abs(int(text)) < 2**63 else None


def _key(key: Any, name: str) -> Key:
    if isinstance(key, bool):
        return key
    if isinstance(key, int):
        if not -(2**63) <= key < 2**63:
            raise ValueError(f"{name} must fit in 64 bits, got {_shown(key)}.")
        return int(key)
    if isinstance(key, datetime):
        raise ValueError(
            f"{name} must be a date without a time, got a time; group by date(...), "
            "hour(...) or minute(...) of it."
        )
    if isinstance(key, date):
        return key
    if isinstance(key, str):
        return _text(key, name)
    out = "; make it whole with floor(...) in [columns]"
    raise ValueError(
        f"{name} must be a whole number, text, date or boolean, got {_shown(key)}"
        f"{out if isinstance(key, float) else ''}."
    )


def _text(key: str, name: str) -> str:
    if len(key) > _LONGEST_KEY:
        raise ValueError(
            f"{name} must have at most {_LONGEST_KEY} characters, got {len(key)}."
        )
    if "\0" in key or any("\ud800" <= letter <= "\udfff" for letter in key):
        raise ValueError(f"{name} must be Unicode text without NUL, got other text.")
    return str(key)


def _one_type(keys: tuple[Key, ...], name: str) -> None:
    kinds = sorted({_KINDS.get(type(key), "dates") for key in keys})
    if len(kinds) > 1:
        raise ValueError(f"{name} must be of one type, got {' and '.join(kinds)}.")


def _each_once(keys: tuple[Key, ...], name: str) -> None:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise ValueError(
                f"{name} must hold each key once, got {_shown(key)} twice."
            )
        seen.add(key)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else None
    if text is not None:
        return repr(text if len(text) <= 40 else text[:37] + "...")
    if isinstance(value, int | float | date):
        return str(value)[:40]
    return f"a value of type {type(value).__name__}"


# One query of a release file, checked as far as it can be without the data.

_MOST_BINS = 10_000
_NARROWEST = Fraction(1, 2**100)  # a step of less could be below what doubles hold
_ENDLESS = "; without public ends one row could change the answer without limit"


def _cuts(value: Any) -> int | tuple[Fraction, ...]:
    """Read a number of equal bins, or the cut points between them."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= _MOST_BINS:
            raise ValueError(f"must be 1 to {_MOST_BINS}, got {shown(value)}")
        return value
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= _MOST_BINS + 1:
        raise ValueError(
            f"must be a number or a list of 2 to {_MOST_BINS + 1} numbers, "
            f"got {shown(value)}"
        )
    cuts = tuple(map(signed, value))
    for at in range(1, len(cuts)):
        if cuts[at] <= cuts[at - 1]:
            raise ValueError(f"[{at}] must be larger than the number before it")
    return cuts


def _cuts_written(value: int | tuple[Fraction, ...]) -> int | list[str]:
    return value if isinstance(value, int) else [str(cut) for cut in value]


def _keys(value: Any) -> Keys:
    keys = parse_all_keys(value, name="")
    for column in keys if isinstance(keys, dict) else ():
        readable_name(column)
    return keys


def _keys_written(keys: Keys) -> str | dict[str, list[bool | int | str]]:
    if keys is DISCOVER:
        return "discover"
    return {column: [_key_written(key) for key in ks] for column, ks in keys.items()}


def _key_written(key: Key) -> bool | int | str:
    # A date and the text that looks like it are different keys.
    return key if isinstance(key, bool | int | str) else f"date {key.isoformat()}"


def _once(values: Sequence[Any]) -> Any:
    seen = set()
    for at, value in enumerate(values):
        if value in seen:
            raise ValueError(f"[{at}] must differ from those before, got it twice")
        seen.add(value)
    return values


Cuts = Annotated[
    int | tuple[Fraction, ...],
    PlainValidator(_cuts),
    PlainSerializer(_cuts_written),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "minItems": 2}]}),
]
KeysField = Annotated[
    Keys,
    PlainValidator(_keys),
    PlainSerializer(_keys_written),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "discover"},
                {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}]
                    },
                },
            ]
        }
    ),
]


class QueryPart(Part):
    """One table of answers."""

    name: Name
    """The name of the answers; each name once."""
    select: Select
    """What is asked for."""
    column: Name | None = None
    """The number that is summed, averaged, cut or ranked."""
    where: Formula | None = None
    """Which rows count."""
    by: Annotated[tuple[Name, ...], AfterValidator(_once)] = Field(
        default=(), strict=False, max_length=8
    )
    """The columns grouped by."""
    keys: KeysField = Field(default_factory=dict)
    """The public keys of each column of by, or "discover"."""
    share: Positive | None = None
    """The share of the budget, relative to the other queries."""
    low: Measured | None = None
    """The public lower end of the numbers; smaller ones are raised to it."""
    high: Measured | None = None
    """The public upper end of the numbers; larger ones are lowered to it."""
    bins: Cuts | None = None
    """The number of equal bins from low to high, or the cut points."""
    quantiles: Annotated[tuple[Probability, ...], AfterValidator(_once)] = Field(
        default=(Fraction(1, 2),), strict=False, min_length=1, max_length=100
    )
    """The quantiles that are asked for."""
    candidates: Cuts = 257
    """The number of equally spaced candidates from low to high, or the candidates."""
    running: bool = False
    """Whether the counts run on from the start of the windows."""
    consistent: Annotated[
        tuple[Literal["non-negative", "integer"], ...], AfterValidator(_once)
    ] = Field(default=(), strict=False)
    """What is done to the answers after the noise."""

    @property
    def discover(self) -> bool:
        """Whether the keys are found by partition selection."""
        return self.keys is DISCOVER

    @property
    def public_keys(self) -> tuple[tuple[Key, ...], ...] | None:
        """The keys of each column of `by` in order, or None if discovered."""
        if self.keys is DISCOVER:
            return None
        return tuple(self.keys[column] for column in self.by)

    @property
    def kind(self) -> SelectKind:
        """What is true of every query that asks for the same."""
        return KINDS[self.select]

    @property
    def cuts(self) -> tuple[Fraction, ...] | None:
        """The cut points of a histogram, or the candidates of a quantile."""
        if self.kind.binned and self.bins is not None:
            return self._spaced(self.bins, 1)
        return self._spaced(self.candidates, 0) if self.kind.ranked else None

    @property
    def cells(self) -> int:
        """The number of public cells, the bins or candidates counted; 0 unknown."""
        if self.keys is DISCOVER:
            return 0
        inner = 1
        if self.cuts is not None:
            inner = len(self.cuts) - self.kind.binned
        return prod(map(len, self.keys.values())) * inner

    def _spaced(
        self, cuts: int | tuple[Fraction, ...], more: int
    ) -> tuple[Fraction, ...]:
        if not isinstance(cuts, int):
            return cuts
        assert self.low is not None
        assert self.high is not None
        steps = cuts - 1 + more
        return tuple(
            self.low + (self.high - self.low) * at / steps for at in range(steps + 1)
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field in sorted(self.model_fields_set & (FIELDS - self.kind.fields)):
            raise Fault(field, f"must be left out of a {self.select}, got a value")
        self._check_column()
        self._check_keys()
        if self.running and not self.kind.runs:
            others = " and ".join(name for name, kind in KINDS.items() if kind.runs)
            raise Fault(
                "running", f"must be false for a {self.select}; only {others} run"
            )
        return self

    def _check_column(self) -> None:
        listed = self.kind.binned and isinstance(self.bins, tuple)
        needed = ["column"] if "column" in self.kind.fields else []
        needed += ["bins"] if self.kind.binned else []
        ends = ["low", "high"] if needed and not listed else []
        for field in needed + ends:
            if getattr(self, field) is None:
                rest = f"must be given for a {self.select}, got nothing"
                endless = field in ends and not self.kind.binned
                raise Fault(field, rest + (_ENDLESS if endless else ""))
        if listed:
            for field in sorted(self.model_fields_set & {"low", "high"}):
                raise Fault(field, "must be left out where bins lists the cut points")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise Fault("low", f"must be below high, got {self.low} and {self.high}")
        if self.low is not None and self.high is not None:
            if self.high - self.low < _NARROWEST:
                raise Fault("high", "must be above low by at least 2^-100, got less")
        self._check_candidates()

    def _check_candidates(self) -> None:
        if not self.kind.ranked:
            return
        if self.candidates == 1:
            raise Fault("candidates", "must be at least 2, got 1")
        cuts = self.cuts
        assert cuts is not None
        assert self.low is not None
        assert self.high is not None
        if cuts[0] < self.low or cuts[-1] > self.high:
            raise Fault("candidates", "must lie between low and high, got others")

    def _check_keys(self) -> None:
        if self.keys is DISCOVER:
            if not self.by:
                raise Fault("by", "must name the columns to discover, got none")
            return
        for column in self.by:
            if column not in self.keys:
                raise Fault(
                    f"keys.{column[:60]}",
                    "must list the public keys, got nothing; publishing only the keys "
                    "that occur would show who is there, so state them as in keys = "
                    f'{{ {column[:60]} = ["A", "B"] }} or {{ {column[:60]} = "0..23" }}'
                    ', or use keys = "discover" with a promise.delta',
                )
        for column in self.keys:
            if column not in self.by:
                raise Fault(
                    f"keys.{column[:60]}",
                    f"must be a column of by, got another{nearest(column, self.by)}",
                )
