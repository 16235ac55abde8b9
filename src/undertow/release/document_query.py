"""One query of a release file, checked as far as it can be without the data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from undertow.release.document_errors import Fault, nearest, shown
from undertow.release.document_fields import (
    Formula,
    Measured,
    Name,
    Part,
    Positive,
    Probability,
    readable_name,
    signed,
)
from undertow.release.keys import DISCOVER, Key, Keys, parse_all_keys

__all__ = ["QueryPart", "Select"]

Select = Literal[
    "count", "count_distinct", "sum", "mean", "variance", "quantile", "histogram"
]
"""What a query can ask for."""

_BOUNDED = ("sum", "mean", "variance", "quantile")
_MOST_BINS = 10_000
_NARROWEST = Fraction(1, 2**100)  # a step of less could be below what doubles hold
_ENDLESS = "; without public ends one row could change the answer without limit"
_WHERE_USED = {
    "column": (*_BOUNDED, "histogram"),
    "low": (*_BOUNDED, "histogram"),
    "high": (*_BOUNDED, "histogram"),
    "bins": ("histogram",),
    "quantiles": ("quantile",),
    "candidates": ("quantile",),
}


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
    def cuts(self) -> tuple[Fraction, ...] | None:
        """The cut points of a histogram, or the candidates of a quantile."""
        if self.select == "histogram" and self.bins is not None:
            return self._spaced(self.bins, 1)
        return self._spaced(self.candidates, 0) if self.select == "quantile" else None

    @property
    def cells(self) -> int:
        """The number of public cells, the bins or candidates counted; 0 unknown."""
        if self.keys is DISCOVER:
            return 0
        inner = 1
        if self.cuts is not None:
            inner = len(self.cuts) - (self.select == "histogram")
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
        for field in sorted(self.model_fields_set & set(_WHERE_USED)):
            if self.select not in _WHERE_USED[field]:
                raise Fault(field, f"must be left out of a {self.select}, got a value")
        self._check_column()
        self._check_keys()
        if self.running and self.select not in ("count", "sum"):
            raise Fault(
                "running", f"must be false for a {self.select}; only count and sum run"
            )
        return self

    def _check_column(self) -> None:
        listed = self.select == "histogram" and isinstance(self.bins, tuple)
        needed = ["column"] if self.select in _WHERE_USED["column"] else []
        needed += ["bins"] if self.select == "histogram" else []
        ends = ["low", "high"] if needed and not listed else []
        for field in needed + ends:
            if getattr(self, field) is None:
                rest = f"must be given for a {self.select}, got nothing"
                endless = field in ends and self.select != "histogram"
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
        if self.select != "quantile":
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
