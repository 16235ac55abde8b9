"""What a check counts is what an independent walk over the rows counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest

from support.release_tables import COLUMNS, KINDS, mistaken_rows, store_rows
from undertow.release import check_table, from_table, load, plan_release
from undertow.release.document.release_document import ReleaseDocument

FORM = "%d/%m/%Y %H:%M"
KEYS = ["Mitte", "nord", "south"]
ROWS, GROUPS, PER_GROUP, LOW, HIGH = 4, 1, 2, 10, 50


def release(kind, table, **changes):
    source = {"unit": "person", "time": "ts", "start": "2026-03-01", "horizon": "20d"}
    types = {"ts": {"timestamp": FORM}}
    if kind == "csv":
        types["minutes"] = "int"
    named = {} if kind in ("pandas", "polars", "arrow") else {"table": table}
    by = {"by": ["zone"], "keys": {"zone": KEYS}}
    ends = {"column": "minutes", "low": LOW, "high": HIGH}
    return {
        "source": {**source, "types": types, **named},
        "promise": {"epsilon": "1"},
        "bounds": {
            "rows_per_unit": ROWS,
            "groups_per_unit": GROUPS,
            "rows_per_group": PER_GROUP,
        },
        "queries": [
            {"name": "visits", "select": "count", "where": "minutes > 12", **by},
            {"name": "length", "select": "mean", **ends, **by},
            {"name": "people", "select": "count_distinct"},
        ],
        **changes,
    }


def checked(kind, rows, folder, **changes):
    table = store_rows(rows, kind, folder)
    mapping = release(kind, table, **changes)
    if "table" not in mapping["source"]:
        return from_table(table, mapping).check()
    return check_table(planned(mapping, folder))


def planned(mapping, folder):
    document = ReleaseDocument.model_validate(mapping)
    document._file = folder / "visits.toml"
    return plan_release(document)


def read_time(text):
    try:
        return None if text is None else datetime.strptime(text, FORM)
    except ValueError:
        return None


def over(sizes, most):
    """Return the groups above a bound, what they have too much, and all there is."""
    above = [size for size in sizes if size > most]
    return len(above), sum(above) - most * len(above), sum(sizes)


def walked(rows):
    """Count as the engine should, one row at a time."""
    times = [read_time(row[2]) for row in rows]
    span = datetime(2026, 3, 1), datetime(2026, 3, 21)
    here = [t is not None and span[0] <= t < span[1] for t in times]
    inside = [row for row, is_here in zip(rows, here, strict=True) if is_here]
    kept = [row for row in inside if row[0] is not None]
    queries = []
    for name in ("visits", "length", "people"):
        on = [r for r in kept if name != "visits" or (r[3] is not None and r[3] > 12)]
        unknown = sum(name == "visits" and r[3] is None for r in kept)
        count = on
        keys = {}
        if name != "people":
            zones = Counter(r[1] for r in on)
            folded = {key.lower() for key in KEYS}
            other = {z: n for z, n in zones.items() if z and z not in KEYS}
            keys = {
                "matched": sum(zones[key] for key in KEYS),
                "missing": zones[None],
                "other": sum(other.values()),
                "near": sum(n for z, n in other.items() if z.strip().lower() in folded),
            }
            count = [r for r in on if r[1] in KEYS]
        void = below = above = 0
        if name == "length":
            numbers = [r[3] for r in count]
            void = numbers.count(None)
            below = sum(x is not None and x < LOW for x in numbers)
            above = sum(x is not None and x > HIGH for x in numbers)
            count = [r for r in count if r[3] is not None]
        cell = [(r[0], None if name == "people" else r[1]) for r in count]
        pairs = Counter(cell)
        groups = Counter(where for _, where in cell)
        queries.append(
            {
                "read": len(kept),
                "where_false": len(kept) - len(on) - unknown,
                "where_unknown": unknown,
                **keys,
                "value": (void, below, above),
                "rows": len(count),
                "units": len({r[0] for r in count}),
                "empty": 0 if name == "people" else len(KEYS) - len(groups),
                "by_key": {} if name == "people" else dict(groups),
                "rows_per_group": over(pairs.values(), PER_GROUP),
                "groups_per_unit": over(Counter(p for p, _ in pairs).values(), GROUPS),
            }
        )
    return {
        "rows": len(rows),
        "missing": [
            sum(r[0] is None for r in rows),
            sum(r[1] is None for r in rows),
            sum(t is None for t in times),
            sum(r[3] is None for r in rows),
        ],
        "unread": sum(
            t is None and r[2] is not None for t, r in zip(times, rows, strict=True)
        ),
        "outside": len(rows) - len(inside),
        "homeless": len(inside) - len(kept),
        "units": len({r[0] for r in kept}),
        "alike": len({r[0] for r in kept}) - len({r[0].strip().lower() for r in kept}),
        "rows_per_unit": over(Counter(r[0] for r in kept).values(), ROWS),
        "queries": queries,
    }


def told(facts):
    """Return the same of a check."""

    def bound(found):
        return found.above, found.dropped, found.whole

    columns = {column.name: column for column in facts.columns}
    queries = []
    for query in facts.queries:
        keys, value = {}, (0, 0, 0)
        for part in query.keys:
            names = ("matched", "missing", "other", "near")
            keys = {name: asdict(part)[name] for name in names}
        if query.value is not None:
            value = query.value.missing, query.value.below, query.value.above
        queries.append(
            {
                "read": query.read,
                "where_false": query.where_false,
                "where_unknown": query.where_unknown,
                **keys,
                "value": value,
                "rows": query.rows,
                "units": query.units,
                "empty": query.empty,
                "by_key": query.keys[0].rows if query.keys else {},
                **{found.name: bound(found) for found in query.bounds},
            }
        )
    return {
        "rows": facts.rows,
        "missing": [columns[name].missing for name in COLUMNS],
        "unread": columns["ts"].unread,
        "outside": facts.outside,
        "homeless": facts.homeless,
        "units": facts.units,
        "alike": facts.alike,
        **{found.name: bound(found) for found in facts.bounds},
        "queries": queries,
    }


QUICK = ("csv", "parquet", "pandas")
CASES = [
    pytest.param(
        kind, seed, marks=() if kind in QUICK and not seed else pytest.mark.slow
    )
    for kind in KINDS
    for seed in range(6)
]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_every_source_is_counted_as_a_walk_over_its_rows_counts(kind, seed, tmp_path):
    rows = mistaken_rows(seed)
    found = checked(kind, rows, tmp_path).facts
    assert told(found) == walked(rows)
    assert found.queries[0].rows > 0


def test_nothing_is_written_or_charged_and_no_row_is_repeated(tmp_path):
    rows = [("p-canary", "zone-canary", "time-canary", 99)] * 30
    found = checked("csv", rows, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits.csv"]
    assert "canary" not in str(found) + str(found.to_dict()) + repr(found)


def test_an_empty_table_is_one_finding(tmp_path):
    (tmp_path / "visits.csv").write_text("person,zone,ts,minutes\n")
    found = check_table(planned(release("csv", "visits.csv"), tmp_path))
    assert found.findings == (
        "The table has no rows: check that source.table names the right one.",
    )
    assert found.noise_alone == ("visits", "length", "people")


PLAIN = """
[source]
table = "visits.csv"
unit = "person"
types = { minutes = "int", day = "date" }
[promise]
epsilon = "1"
[bounds]
rows_per_unit = 1
"""
COUNT = '[[queries]]\nname = "q"\nselect = "count"\n'


def findings_of(folder: Path, lines, query, head=PLAIN):
    (folder / "visits.csv").write_text("\n".join(["person,zone,day,minutes", *lines]))
    (folder / "visits.toml").write_text(head + query)
    return load(folder / "visits.toml").check()


def people(count, rest):
    return [f"{at},{rest}" for at in range(count)]


@pytest.mark.parametrize(
    ("rest", "query", "words"),
    [
        (
            "A,3.1.2026,5",
            COUNT + 'by = ["day"]\nkeys = { day = "2026-01-01..2026-01-09" }',
            'declare types = { day = { date = "%d.%m.%Y" } }',
        ),
        (
            "A,someday,5",
            COUNT + "where = \"day > date('2026-01-01')\"",
            'such as types = { day = { date = "%d/%m/%Y" } }',
        ),
        (
            "A,2026-01-03,5 min",
            COUNT + 'where = "minutes > 3"',
            "do not hold whole numbers|holds whole numbers: they count as missing; "
            "state another type",
        ),
        (
            "mitte,2026-01-03,5",
            COUNT + 'by = ["zone"]\nkeys = { zone = ["Mitte"] }',
            "100 rows have a zone that only differs from a key in case or in blanks",
        ),
        (
            "Mitte ,2026-01-03,5",
            COUNT + 'by = ["zone"]\nkeys = { zone = ["Mitte"] }',
            "100 rows have a zone that only differs from a key in case or in blanks",
        ),
        (
            "west,2026-01-03,5",
            COUNT + 'by = ["zone"]\nkeys = { zone = ["Mitte"] }',
            "all of the rows match no key of zone",
        ),
        (
            "A,2026-01-03,5",
            COUNT + 'where = "minutes > 30"',
            "where of query 'q' is true for no row",
        ),
        (
            "A,2026-01-03,5000",
            COUNT.replace("count", "sum") + 'column = "minutes"\nlow = 0\nhigh = 60',
            "none of the numbers of minutes are below the lower end and all above",
        ),
    ],
)
def test_each_mistake_is_found_with_its_way_out(rest, query, words, tmp_path):
    found = findings_of(tmp_path, people(100, rest), query)
    assert any(word in line for word in words.split("|") for line in found.findings)


def test_a_release_in_order_has_no_findings(tmp_path):
    query = COUNT + 'by = ["zone"]\nkeys = { zone = ["A"] }'
    found = findings_of(tmp_path, people(200, "A,2026-01-03,5"), query)
    assert (found.findings, found.noise_alone) == ((), ())
    assert "Nothing stands out." in str(found)


def test_groups_below_their_noise_are_told_of(tmp_path):
    query = COUNT + 'by = ["zone"]\nkeys = { zone = ["A", "B"] }'
    found = findings_of(tmp_path, people(3, "A,2026-01-03,5"), query)
    assert found.noise_alone == ("q",)
    assert any("more than its noise of ± " in line for line in found.findings)


def test_rows_above_a_bound_are_told_of(tmp_path):
    lines = people(200, "A,2026-01-03,5") * 3
    found = findings_of(tmp_path, lines, COUNT)
    assert any(
        "bounds.rows_per_unit = 1 drops 66.7 % of the 600 rows" in line
        for line in found.findings
    )


def test_people_whose_names_differ_in_case_or_blanks_are_told_of(tmp_path):
    lines = [f"{who},A,2026-01-03,5" for k in range(20) for who in (f"p{k}", f"P{k} ")]
    found = findings_of(tmp_path, lines, COUNT)
    assert (found.facts.units, found.facts.alike) == (40, 20)
    assert any(
        "20 of 40 units differ from another one only in case" in line
        for line in found.findings
    )


def test_discovered_keys_below_the_threshold_are_told_of(tmp_path):
    head = PLAIN.replace('epsilon = "1"', 'epsilon = "1"\ndelta = "1e-6"')
    query = COUNT.replace("count", "count_distinct")
    query += 'by = ["zone"]\nkeys = "discover"'
    found = findings_of(tmp_path, people(12, "A,2026-01-03,5"), query, head)
    assert found.facts.queries[0].passing == 0
    assert any("as many units as the threshold" in line for line in found.findings)
    found = findings_of(tmp_path, people(500, "A,2026-01-03,5"), query, head)
    assert found.facts.queries[0].passing == 1
    assert found.noise_alone == ()


def keyed(by, keys, name="q"):
    listed = ", ".join(f"{column} = {some}" for column, some in keys.items())
    return (
        f'[[queries]]\nname = "{name}"\nselect = "count"\nby = {by}\n'
        f"keys = {{ {listed} }}\n".replace("'", '"')
    )


def test_every_key_without_a_row_is_named_once_for_all_queries(tmp_path):
    keys = {"zone": ["A", "B", "C", "D"]}
    query = keyed(["zone"], keys) + keyed(["zone"], keys, "r")
    lines = [f"{at},{'AB'[at % 2]},2026-01-03,5" for at in range(200)]
    found = findings_of(tmp_path, lines, query)
    assert found.findings == (
        "In queries 'q' and 'r', 2 of 4 keys of zone are in no row: 'C', 'D'; their "
        "cells hold noise alone.",
    )
    assert found.noise_alone == ()


def test_of_many_keys_without_a_row_the_first_are_named(tmp_path):
    query = keyed(["minutes"], {"minutes": '"0..99"'.replace('"', "'")})
    found = findings_of(tmp_path, people(200, "A,2026-01-03,5"), query)
    [sentence] = found.findings
    assert "99 of 100 keys of minutes are in no row: 0, 1, 2, 3, 4, 6, " in sentence
    assert sentence.endswith(", 20, and 79 more; their cells hold noise alone.")


def test_the_spellings_of_rows_and_keys_are_shown_side_by_side(tmp_path):
    lines = people(60, "north,2026-01-03,5") + people(40, " NORTH,2026-01-03,5")
    lines += people(50, "south,2026-01-03,5")
    query = keyed(["zone"], {"zone": ["North", "south"]})
    found = findings_of(tmp_path, lines, query)
    [sentence] = [line for line in found.findings if "only differs" in line]
    assert (
        "100 rows have a zone that only differs from a key in case or in blanks at "
        "its ends, such as 'north' in the rows and 'North' among the keys; ' NORTH' in "
        "the rows and 'North' among the keys: write the keys as the table does"
    ) in sentence


def test_rows_at_no_key_are_told_of_however_few_they_are_and_not_repeated(tmp_path):
    lines = [*people(199, "A,2026-01-03,5"), "x,zone-canary,2026-01-03,5"]
    found = findings_of(tmp_path, lines, keyed(["zone"], {"zone": ["A"]}))
    assert found.findings == (
        "In query 'q', 1 of 200 rows match no key of zone and are left out: if that is "
        "not meant, add their keys.",
    )
    assert "canary" not in str(found) + str(found.to_dict())


def test_the_column_that_holds_the_keys_is_named(tmp_path):
    (tmp_path / "visits.csv").write_text(
        "\n".join(
            ["person,zone,day,minutes,district"]
            + [f"{at},{at},2026-01-03,5,{'AB'[at % 2]}" for at in range(200)]
        )
    )
    query = keyed(["zone", "minutes"], {"zone": ["A", "B"], "minutes": [5]})
    (tmp_path / "visits.toml").write_text(PLAIN + query)
    found = load(tmp_path / "visits.toml").check()
    assert found.findings[0] == (
        "In query 'q', all of the rows match no key of zone, but 200 rows of the table "
        "have one of these keys in the column 'district': group by that one, or write "
        "the keys of zone."
    )
    assert not any("minutes" in line for line in found.findings)


def test_a_column_all_of_whose_keys_are_there_is_not_blamed_for_another(tmp_path):
    query = keyed(["zone", "minutes"], {"zone": ["A", "B"], "minutes": [7]})
    lines = [f"{at},{'AB'[at % 2]},2026-01-03,5" for at in range(200)]
    found = findings_of(tmp_path, lines, query)
    assert found.noise_alone == ("q",)
    assert any("match no key of minutes" in line for line in found.findings)
    assert not any("of zone" in line for line in found.findings)


def test_what_leaves_out_the_rows_of_a_key_is_named(tmp_path):
    query = keyed(["zone", "minutes"], {"zone": ["A", "B"], "minutes": [5]})
    lines = people(200, "A,2026-01-03,5") + people(20, "B,2026-01-03,6")
    found = findings_of(tmp_path, lines, query)
    assert any(
        "1 of 2 keys of zone have rows, of which none counts: 'B'; what leaves them "
        "out is minutes." in line
        for line in found.findings
    )


COMMAS = "200 rows with a comma at the end, which is one cell more than the first line"


@pytest.mark.parametrize(
    ("head", "rest", "words"),
    [
        ("person,zone,day,minutes", "A,2026-01-03,5,", COMMAS),
        (
            "person,zone,day,minutes,",
            "A,2026-01-03,5",
            "The file has 200 rows with 4 cells where the first line has 5;",
        ),
        (
            "person,zone,day,minutes",
            "A,B,2026-01-03,5",
            "The file has 200 rows with 5 cells where the first line has 4;",
        ),
        (
            "person,zone,day,minutes",
            '"A,2026-01-03,5',
            "The file has 200 rows with a quote that is not closed;",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_rows_that_are_not_like_the_first_line_are_the_one_thing_told(
    head, rest, words, ending, tmp_path
):
    lines = [f"{at},{rest}" for at in range(200)]
    (tmp_path / "visits.csv").write_bytes(ending.join([head, *lines, ""]).encode())
    (tmp_path / "visits.toml").write_text(PLAIN + keyed(["zone"], {"zone": ["A"]}))
    found = load(tmp_path / "visits.toml").check()
    assert words in found.findings[0]
    assert len(found.findings) == 1
    assert found.noise_alone == ("q",)
    assert found.facts.misfits.rows == 200


def test_some_rows_unlike_the_first_line_are_not_laid_to_the_columns(tmp_path):
    lines = people(200, "A,2026-01-03,5") + people(20, "A,2026-01-03,5,")
    lines += people(3, "A,5")
    found = findings_of(tmp_path, lines, keyed(["zone"], {"zone": ["A"]}))
    assert [line[:40] for line in found.findings] == [
        "The file has 20 rows with a comma at the",
        "The file has 3 rows with 3 cells where t",
    ]
    assert found.to_dict()["misfits"]["cells"] == [[3, 3], [5, 20]]


def test_a_row_that_is_too_long_is_told_of(tmp_path):
    lines = [*people(200, "A,2026-01-03,5"), f"x,{'A' * 2**23},2026-01-03,5"]
    found = findings_of(tmp_path, lines, keyed(["zone"], {"zone": ["A"]}))
    assert found.findings[0].startswith("The file has 1 row longer than 1,048,576 ")
    assert found.facts.misfits.long == 1
