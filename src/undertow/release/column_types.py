"""The types of the columns of an answer, in the words of JSON Schema.

They are stated from the query and from the types that the table itself declares, so
that an answer without rows has them too, and no type depends on what the rows hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from undertow.release.job import Job
from undertow.release.measure import Encoding

__all__ = ["answer_types", "arrow_column", "arrow_word", "column_types", "value_type"]

_INT64 = 2**63
_DECIMAL_DIGITS = 76
_WORDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    date: "string",
    Decimal: "string",
}


def value_type(value: Any) -> str:
    """Return the type of a value as it is written; dates are text.

    Examples
    --------
    >>> value_type(True), value_type(3), value_type(date(2026, 1, 31))
    ('boolean', 'integer', 'string')
    """
    for kind in type(value).__mro__:
        if kind in _WORDS:
            return _WORDS[kind]
    return "null" if value is None else "string"


def arrow_word(kind: Any) -> str:
    """Return the type of an Arrow column in the same words, as its values are written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_word(pa.int32()), arrow_word(pa.date32())
    ('integer', 'string')
    """
    from pyarrow import types

    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    return "number" if types.is_floating(kind) else "string"


def answer_types(
    job: Job,
    encoding: Encoding,
    *,
    kinds: Sequence[str] = (),
    consistent: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the types of the columns of a query's answer, before there are rows.

    Parameters
    ----------
    job : Job
        With its public keys, if it has any.
    encoding : Encoding
        What is estimated.
    kinds : sequence of str
        The types of discovered keys, from the schema of the table; "null" if unknown.
    consistent : sequence of str
        What is done after the noise; "integer" rounds estimates.
    """
    keys: Sequence[str] = kinds or ("null",) * len(job.by)
    if job.grid is not None:
        keys = [_common({value_type(key) for key in some}) for some in job.grid.keys]
    labels = [
        _common({value_type(label) for label in column})
        for column in zip(*encoding.labels, strict=True)
    ]
    ends = "integer" if encoding.whole else "number"
    estimate = "integer" if "integer" in consistent else ends
    return (*keys, *labels, estimate, ends, ends)


def column_types(answer: Mapping[str, Any]) -> list[str]:
    """Return the type of each column of a stored answer.

    Those stated with it, widened where its rows hold more; an answer of an earlier
    version states none.

    Examples
    --------
    >>> answer = {"columns": ["zone", "estimate"], "rows": []}
    >>> column_types({**answer, "types": ["string", "integer"]})
    ['string', 'integer']
    >>> column_types({**answer, "rows": [["A", 1], ["B", 2.5]]})
    ['string', 'number']
    """
    stated = answer.get("types") or ["null"] * len(answer["columns"])
    found = [{kind} for kind in stated]
    for row in answer["rows"]:
        for kinds, value in zip(found, row, strict=True):
            kinds.add(value_type(value))
    return [_common(kinds) for kinds in found]


def _common(kinds: set[str]) -> str:
    some = kinds - {"null"}
    if some == {"integer", "number"}:
        return "number"
    return some.pop() if len(some) == 1 else "any" if some else "null"


def arrow_column(arrow: Any, values: Sequence[Any], kind: str) -> Any:
    """Return a column for Arrow.

    Whole numbers beyond 64 bits are decimals, beyond 76 digits text, as is a column of
    several types.
    """
    plain = {
        "boolean": arrow.bool_(),
        "null": arrow.null(),
        "number": arrow.float64(),
        "string": arrow.string(),
    }
    if kind in plain:
        made = float if kind == "number" else str if kind == "string" else lambda x: x
        cells = [None if value is None else made(value) for value in values]
        return arrow.array(cells, plain[kind])
    sizes = [abs(value) for value in values if isinstance(value, int)]
    most = max(sizes, default=0)
    if kind == "integer" and most < _INT64:
        return arrow.array(values, arrow.int64())
    if kind == "integer" and most < 10**_DECIMAL_DIGITS:
        digits = [None if value is None else Decimal(value) for value in values]
        return arrow.array(digits, arrow.decimal256(_DECIMAL_DIGITS, 0))
    texts = [None if value is None else str(value) for value in values]
    return arrow.array(texts, arrow.string())
