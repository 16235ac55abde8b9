"""What is wrong between a release and its table, in sentences with the way out.

They are made from exact numbers and are for the owner of the table alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from undertow._text import on_one_line
from undertow.errors import EngineError
from undertow.release._examination import (
    BoundFacts,
    ColumnFacts,
    KeyFacts,
    QueryFacts,
    TableFacts,
    examine,
)
from undertow.release.document._error import types_entry
from undertow.release.plan.planned_release import ReleasePlan
from undertow.release.run.protocol import open_table
from undertow.release.source._plain_file import LONGEST_ROW, Misfits

NOTICE = (
    "For the owner of the table alone: these numbers are exact and carry no noise; "
    "do not publish them. Nothing is written and nothing is charged."
)
"""What stands first in every check."""

# Shares from which on it is told what is left out on purpose.
_MANY, _MOST = 0.2, 0.5
_FEW = 0.01
_KEYS_NAMED, _EMPTY_NAMED = 5, 20
_LONGEST = 60
_KEYS_LISTED = 1000
_WORDS = {
    "bool": "truth values",
    "boolean": "truth values",
    "date": "dates as 2026-01-31",
    "float": "numbers",
    "float64": "numbers",
    "int": "whole numbers",
    "int64": "whole numbers",
    "timestamp": "times as 2026-01-31 12:00",
    "timestamp(6)": "times as 2026-01-31 12:00",
}


@dataclass(frozen=True, slots=True, repr=False)
class TableCheck:
    """What a release would find in its table, for the owner of the table alone.

    Parameters
    ----------
    facts : TableFacts
        Exact numbers.

    See Also
    --------
    check_table : makes one.
    """

    facts: TableFacts

    def __repr__(self) -> str:
        return f"TableCheck of {len(self.facts.queries)} queries"

    @property
    def findings(self) -> tuple[str, ...]:
        """Sentences about what is lost, and what to do about it."""
        return tuple(_findings(self.facts))

    @property
    def noise_alone(self) -> tuple[str, ...]:
        """The queries whose tables would hold nothing but noise."""
        return tuple(query.name for query in self.facts.queries if query.noise_alone)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was counted, step by step."""
        return tuple(_sentences(self.facts))

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain values."""
        found = asdict(self.facts)
        for query in found["queries"]:
            for part in query["keys"]:
                rows = list(part["rows"].items())[:_KEYS_LISTED]
                part["rows"] = [[_plain(key), count] for key, count in rows]
                for some in ("empty", "absent"):
                    part[some] = [_plain(key) for key in part[some][:_KEYS_LISTED]]
        if found["misfits"] is not None:
            found["misfits"]["cells"] = [*map(list, found["misfits"]["cells"].items())]
        return {
            "notice": NOTICE,
            "findings": list(self.findings),
            "noise_alone": list(self.noise_alone),
            **found,
        }

    @property
    def lines(self) -> tuple[str, ...]:
        """The check as text, whose lines are those of no cell of the table."""
        parts = [NOTICE, "", *self.sentences, ""]
        parts += [f"- {sentence}" for sentence in self.findings]
        parts += [] if self.findings else ["Nothing stands out."]
        return tuple(map(on_one_line, parts))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def check_table(plan: ReleasePlan, *, table: Any = None) -> TableCheck:
    """Compare a release with its table; nothing is written and nothing is charged.

    Parameters
    ----------
    plan : ReleasePlan
        What would be run.
    table : object, optional
        A table in memory, where the file names none.

    Returns
    -------
    TableCheck
        Exact numbers without noise: not for publication.

    Raises
    ------
    PlanError
        If a run would be refused, because a column is not there or of another type.
    EngineError
        If the table cannot be read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from undertow.release import plan_release, release_from_mapping
    >>> plan = plan_release(release_from_mapping({
    ...     "source": {"unit": "person"},
    ...     "promise": {"epsilon": "1"},
    ...     "bounds": {"rows_per_unit": 1},
    ...     "queries": [{"name": "visits", "select": "count", "by": ["zone"],
    ...                  "keys": {"zone": ["mitte"]}}],
    ... }, in_memory=True))
    >>> visits = pa.table({"person": range(100), "zone": ["Mitte"] * 100})
    >>> found = check_table(plan, table=visits)
    >>> found.noise_alone
    ('visits',)
    >>> print(found.findings[0])
    In query 'visits', 100 rows have a zone that only differs from a key in case or in blanks at its ends, such as 'Mitte' in the rows and 'mitte' among the keys: write the keys as the table does; for case, group by a derived column such as "lower(zone)" with keys in lower case, and for blanks clean the column.
    """  # noqa: E501 - a line of output
    with open_table(plan, table) as source:
        try:
            return TableCheck(examine(plan, source))
        except EngineError as fault:
            failed = fault
        # As for a run: a row may have stopped the engine, and a copy has no such row.
        again = source.without_faults()
        if again is None:
            raise failed from None
        return TableCheck(examine(plan, again))


def _plain(key: Any) -> Any:
    return key if isinstance(key, str | int) else str(key)


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _share(part: int, whole: int) -> str:
    """Return a share in percent that is none or all only if it is just that."""
    if part in (0, whole):
        return "all" if part else "none"
    percent = 100 * part / whole
    if part and percent < 0.1:
        return "less than 0.1 %"
    if part < whole and percent > 99.9:
        return "more than 99.9 %"
    return f"{percent:.3g} %"


def _is_many(part: int, whole: int, share: float) -> bool:
    return part > 0 and part >= share * whole


def _sentences(facts: TableFacts) -> Iterator[str]:
    """Say what was counted, from the table to the cells."""
    yield f"{_rows(facts.rows)} in the table."
    for column in facts.columns:
        text = f"{column.name}: read as {column.kind}, {column.missing:,} missing"
        if column.unread:
            text += f", {column.unread:,} of them with text that was not read"
        yield f"{text}."
    if facts.outside is not None:
        span = _span(facts)
        yield f"{_rows(facts.outside)} outside of the times that the run reads{span}."
    if facts.units is not None:
        yield f"{_rows(facts.homeless)} without a unit; {facts.units:,} units."
    yield from (_bound_sentence(bound) for bound in facts.bounds)
    for query in facts.queries:
        yield from _query_sentences(query)


def _span(facts: TableFacts) -> str:
    if facts.times is None or None in facts.times:
        return ""
    first, last = facts.times
    return f"; the table has times from {first} to {last}"


def _bound_sentence(bound: BoundFacts) -> str:
    what = "cells" if bound.name == "groups_per_unit" else "rows"
    where = "groups" if bound.name == "rows_per_group" else "units"
    return (
        f"{bound.name} = {bound.most}: {bound.above:,} {where} above it, "
        f"{bound.dropped:,} of {bound.whole:,} {what} dropped."
    )


def _query_sentences(query: QueryFacts) -> Iterator[str]:
    name = f"query {query.name!r}"
    lost = ""
    if query.where_false or query.where_unknown:
        lost = (
            f"; where leaves out {query.where_false:,}, and {query.where_unknown:,} on "
            "which it has no value"
        )
    yield f"{name}: {_rows(query.read)} read{lost}."
    for part in query.keys:
        near = f" ({part.near:,} but for case and blanks)" if part.near else ""
        yield (
            f"{name}, {part.column}: {part.matched:,} rows at a key, {part.other:,} at "
            f"none{near}, {part.missing:,} missing; {_at_keys(part)}."
        )
    if query.value is not None:
        value = query.value
        yield (
            f"{name}, {value.column}: {value.missing:,} missing, {value.below:,} below "
            f"the lower end, {value.above:,} above the upper one."
        )
    yield from (f"{name}, {_bound_sentence(bound)}" for bound in query.bounds)
    groups = "1 group" if query.cells == 1 else f"{query.cells:,} groups"
    some = f"{query.empty:,} of them without a row"
    if query.passing is not None:
        some = f"{query.passing:,} of them with as many units as the threshold"
    yield (
        f"{name}: {_rows(query.rows)} of {query.units:,} units count before bounds, in "
        f"{groups}, {some}; the noise is ± {query.half_width:.6g}."
    )


def _at_keys(part: KeyFacts) -> str:
    """Return the rows at the first keys."""
    listed = [f"{key} {count:,}" for key, count in [*part.rows.items()][:_KEYS_NAMED]]
    more = len(part.rows) - len(listed)
    listed += [f"and {more:,} keys more"] if more > 0 else []
    return ", ".join(listed) or "no key has a row"


def _findings(facts: TableFacts) -> Iterator[str]:
    if not facts.rows:
        yield "The table has no rows: check that source.table names the right one."
        return
    yield from _misfit_findings(facts.misfits)
    broken = 0 if facts.misfits is None else facts.misfits.rows
    if broken >= facts.rows:
        return
    for column in facts.columns:
        yield from _column_findings(column, facts.rows - broken, broken)
    yield from _time_findings(facts)
    if _is_many(facts.homeless - broken, facts.rows, _FEW):
        yield (
            f"{_share(facts.homeless, facts.rows)} of the rows have no unit and belong "
            "to nobody: they are left out; fill the column of source.unit, or name "
            "another one."
        )
    if facts.alike:
        yield (
            f"{facts.alike:,} of {facts.units:,} units differ from another one only in "
            "case or in blanks at their ends: a person behind two of them counts "
            "twice, and the promise is that much weaker; clean the column of "
            "source.unit."
        )
    for bound in facts.bounds:
        yield from _bound_findings(bound, "")
    asking: dict[str, list[str]] = {}
    for query in facts.queries:
        for sentence in _keys_findings(query):
            asking.setdefault(sentence, []).append(repr(query.name))
    for sentence, names in asking.items():
        yield f"In {_one_query(names)}, {sentence}"
    for query in facts.queries:
        yield from _query_findings(query)


def _one_query(names: Sequence[str]) -> str:
    *others, last = names
    return f"queries {', '.join(others)} and {last}" if others else f"query {last}"


def _misfit_findings(misfits: Misfits | None) -> Iterator[str]:
    """Say which rows of a CSV file are missing as a whole."""
    if misfits is None:
        return
    first = f"the first line has {misfits.columns:,}"
    missing = "such rows are missing as a whole"
    rest = dict(misfits.cells)
    if misfits.trailing:
        rest[misfits.columns + 1] -= misfits.trailing
        yield (
            f"The file has {_rows(misfits.trailing)} with a comma at the end, which is "
            f"one cell more than {first}; {missing}: take the comma away, or add one "
            "to the first line."
        )
    for size, rows in rest.items():
        if rows:
            yield (
                f"The file has {_rows(rows)} with {size:,} cells where {first}; "
                f"{missing}: write cells with commas in quotes, or name in the first "
                "line as many columns as the rows have."
            )
    if misfits.unclosed:
        yield (
            f"The file has {_rows(misfits.unclosed)} with a quote that is not closed; "
            f"{missing}: double the quotes inside of quotes."
        )
    if misfits.long:
        yield (
            f"The file has {_rows(misfits.long)} longer than {LONGEST_ROW:,} bytes; "
            f"{missing}: shorten them."
        )


def _column_findings(column: ColumnFacts, rows: int, broken: int) -> Iterator[str]:
    """Say what is not read in the column of some rows, besides those missing whole."""
    missing = column.missing - broken
    if not column.unread:
        if missing == rows:
            yield f"Column {column.name!r} is empty: name another one, or fill it."
        return
    filled = rows - missing + column.unread
    kind = column.kind
    words = _WORDS.get(kind, f"written as {kind.partition(' as ')[2] or kind}")
    share = _share(column.unread, filled)
    start = "None" if share == "all" else share[0].upper() + share[1:]
    verb = "holds" if share == "all" else "do not hold"
    yield (
        f"{start} of the {filled:,} filled cells of {column.name!r} {verb} {words}: "
        f"they count as missing; {_way_out(column)}."
    )


def _way_out(column: ColumnFacts) -> str:
    name, kind = column.name, column.kind.partition(" ")[0].partition("(")[0]
    if kind not in ("date", "timestamp"):
        return "state another type in source.types, or clean the column"
    if not column.formats:
        return f"declare how they are written, such as {types_entry(name, kind)}"
    (form, count), *others = column.formats
    entry = types_entry(name, kind, form=form)
    text = f"{count:,} of its cells are written as {form}; declare {entry}"
    if others:
        text += f" (or {others[0][0]}, which reads as many: only you know which it is)"
    return text


def _time_findings(facts: TableFacts) -> Iterator[str]:
    if facts.outside is None or not facts.outside:
        return
    inside = facts.rows - facts.outside
    if not inside:
        yield (
            f"No row has a time that the run reads{_span(facts)}: check source.time, "
            "source.start and source.horizon, and --as-of."
        )
    elif _is_many(facts.outside, facts.rows, _MOST):
        yield (
            f"{_share(facts.outside, facts.rows)} of the rows are outside of the times "
            f"that the run reads{_span(facts)}: check source.start, source.horizon and "
            "--as-of."
        )


def _bound_findings(bound: BoundFacts, where: str) -> Iterator[str]:
    if _is_many(bound.dropped, bound.whole, _MANY):
        what = "cells of units" if bound.name == "groups_per_unit" else "rows"
        yield (
            f"{where}bounds.{bound.name} = {bound.most} drops "
            f"{_share(bound.dropped, bound.whole)} of the {bound.whole:,} {what}: the "
            "answers are about the rest; a larger bound keeps more, and adds noise."
        )


def _query_findings(query: QueryFacts) -> Iterator[str]:
    name = f"query {query.name!r}"
    left = query.read - query.where_false - query.where_unknown
    if query.read and not left:
        yield f"where of {name} is true for no row: check its columns and constants."
    elif _is_many(query.where_unknown, query.read, _MOST):
        yield (
            f"where of {name} has no value on {_share(query.where_unknown, query.read)}"
            " of the rows, which are left out: check the columns that it names."
        )
    yield from _value_findings(query)
    for bound in query.bounds:
        yield from _bound_findings(bound, f"In {name}, ")
    yield from _noise_findings(query)


def _keys_findings(query: QueryFacts) -> Iterator[str]:
    """Say what is lost at the keys of a query, which is named by whoever asks."""
    left = query.read - query.where_false - query.where_unknown
    for part in query.keys:
        yield from _key_findings(part, left)
        hidden = [key for key in part.empty if key not in part.absent]
        others = [other.column for other in query.keys if other is not part]
        if query.value is not None and query.value.missing:
            others.append(query.value.column)
        if query.rows and hidden and others:
            yield (
                f"{_number_of(hidden, part)} of {part.column} have rows, of which none "
                f"counts: {_named(hidden)}; what leaves them out is "
                f"{' or '.join(others)}."
            )


def _key_findings(part: KeyFacts, rows: int) -> Iterator[str]:
    column, other = part.column, part.other - part.near
    if part.near:
        yield (
            f"{_rows(part.near)} {_have(part.near)} a {column} that only differs from "
            f"a key in case or in blanks at its ends{_spelled(part)}: write the keys "
            "as the table does; for case, group by a derived column such as "
            f'"lower({column})" with keys in lower case, and for blanks clean the '
            "column."
        )
    if other and part.elsewhere is not None:
        name, there = part.elsewhere
        yield (
            f"{_share(other, rows)} of the rows match no key of {column}, but "
            f"{_rows(there)} of the table {_have(there)} one of these keys in the "
            f"column {name[:_LONGEST]!r}: group by that one, or write the keys of "
            f"{column}."
        )
    elif _is_many(other, rows, _MOST):
        yield (
            f"{_share(other, rows)} of the rows match no key of {column}: check the "
            "keys, or the type of the column."
        )
    elif other:
        yield (
            f"{other:,} of {_rows(rows)} match no key of {column} and are left out: if "
            "that is not meant, add their keys."
        )
    if _is_many(part.missing, rows, _FEW):
        yield f"{_share(part.missing, rows)} of the rows have no {column}."
    if part.matched and part.absent:
        yield (
            f"{_number_of(part.absent, part)} of {column} "
            f"{'is' if len(part.absent) == 1 else 'are'} in no row: "
            f"{_named(part.absent)}; their cells hold noise alone."
        )


def _number_of(keys: Sequence[Any], part: KeyFacts) -> str:
    return f"{len(keys):,} of {len(part.rows) + len(part.empty):,} keys"


def _named(keys: Sequence[Any]) -> str:
    """Return the first of some keys, texts in quotes."""
    listed = [_quoted(key) for key in keys[:_EMPTY_NAMED]]
    more = len(keys) - len(listed)
    return ", ".join([*listed, f"and {more:,} more"] if more else listed)


def _quoted(key: Any) -> str:
    if not isinstance(key, str):
        return str(key)
    return repr(key if len(key) <= _LONGEST else key[: _LONGEST - 3] + "...")


def _spelled(part: KeyFacts) -> str:
    """Say how the rows write keys, where that can be told without a doubt."""
    known = {_folded(key): key for key in (*part.rows, *part.empty) if _is_text(key)}
    pairs = [
        f"{_quoted(text)} in the rows and {_quoted(known[_folded(text)])} among the "
        "keys"
        for text, _ in part.spellings
        if _folded(text) in known
    ]
    return f", such as {'; '.join(pairs)}" if pairs else ""


def _folded(text: str) -> str:
    return text.strip().lower()


def _is_text(key: Any) -> bool:
    return isinstance(key, str)


def _value_findings(query: QueryFacts) -> Iterator[str]:
    value = query.value
    if value is None:
        return
    rows = query.rows + value.missing
    if _is_many(value.missing, rows, 0.1):
        yield (
            f"In query {query.name!r}, {_share(value.missing, rows)} of the numbers of "
            f"{value.column} are missing: their rows are left out."
        )
    if query.rows and _is_many(value.below + value.above, query.rows, 0.1):
        below, above = (_share(n, query.rows) for n in (value.below, value.above))
        yield (
            f"In query {query.name!r}, {below} of the numbers of {value.column} are "
            f"below the lower end and {above} above the upper one: they are taken for "
            "these ends; widen them if that is not meant."
        )


def _noise_findings(query: QueryFacts) -> Iterator[str]:
    name, noise = f"query {query.name!r}", f"± {query.half_width:.6g}"
    if query.rows == 0:
        yield f"No row counts in {name}: its table would hold nothing but noise."
    elif query.passing == 0:
        yield (
            f"No group of {name} has as many units as the threshold: its table would "
            "be empty but for chance; group by a coarser column."
        )
    elif query.drowned:
        yield (
            f"No group of {name} holds more than its noise of {noise}, the largest has "
            f"{query.most:,}: its table would hold nothing but noise; ask for fewer "
            "groups, promise more, or bound units to fewer rows."
        )
