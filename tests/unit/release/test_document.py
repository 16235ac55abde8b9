"""The release file: what it means, what it refuses, and in which words."""

from __future__ import annotations

import json
import re
import stat
from copy import deepcopy
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command import invoke
from undertow._address import masked
from undertow._text import LARGEST_FILE
from undertow.errors import PlanError
from undertow.release.document._part import (
    BoundsPart,
    LedgerPart,
    OutputPart,
    SourcePart,
    Window,
)
from undertow.release.document._promise import CorrelationPart, PromisePart, ThreatPart
from undertow.release.document.release_document import (
    DISCOVER,
    QueryPart,
    ReleaseDocument,
    read_release,
    release_from_mapping,
    release_schema,
)
from undertow.release.language.expression import FUNCTIONS, parse_expression

VALIDATOR = jsonschema.Draft202012Validator(release_schema())
EXAMPLE = """
[source]
table = "steps.parquet"
unit = "person_id"
time = "ts"

[promise]
granularity = "user"
epsilon = "1.0"
correlation = { model = "markov", states = "active", fit = "public.csv" }

[bounds]
rows_per_unit = 50

[[queries]]
name = "active by hour"
select = "count"
where = "steps > 0"
by = ["hour"]
keys = { hour = "0..23" }
share = 2
"""
BASE: dict[str, Any] = {
    "source": {"table": "steps.parquet", "unit": "person_id", "time": "ts"},
    "promise": {"granularity": "user", "epsilon": "1.0"},
    "bounds": {"rows_per_unit": 50},
    "queries": [
        {
            "name": "active",
            "select": "count",
            "where": "steps > 0",
            "by": ["hour"],
            "keys": {"hour": "0..23"},
        }
    ],
}
GONE = object()
HOURLY = {"per": {"window": "1h"}, "start": "2026-01-01", "horizon": "365d"}


def changed(**changes: Any) -> dict[str, Any]:
    """Return the base with changes such as ``promise__epsilon=2``."""
    mapping = deepcopy(BASE)
    for path, value in changes.items():
        *places, last = path.split("__")
        part: Any = mapping
        for place in places:
            part = part[int(place)] if place.isdigit() else part.setdefault(place, {})
        if value is GONE:
            part.pop(last)
        else:
            part[last] = value
    return mapping


def read(**changes: Any) -> ReleaseDocument:
    return release_from_mapping(changed(**changes))


def asked(**fields: Any) -> ReleaseDocument:
    """Return the base with another only query."""
    return read(queries=[{"name": "q", **fields}])


def refusal(mapping: Any) -> str:
    with pytest.raises(PlanError) as caught:
        release_from_mapping(mapping)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "\t" not in sentence
    assert len(sentence) < 400
    assert caught.value.__cause__ is None
    return sentence


def test_the_example_of_the_format_is_read(tmp_path):
    file = tmp_path / "release.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    document = read_release(file)
    query = document.queries[0]
    assert document.promise.epsilon == 1
    assert document.promise.currency == "epsilon"
    assert document.promise.confidence == Fraction(19, 20)
    assert document.promise.correlation is not None
    assert document.promise.correlation.model == "markov"
    assert document.source.kind == "user"
    assert document.source.users == 10**9
    assert query.where == parse_expression("steps > 0")
    assert query.public_keys == (tuple(range(24)),)
    assert query.share == 2
    assert query.cells == 24
    assert document.path("public.csv") == tmp_path / "public.csv"
    assert document.path("/data/x.csv") == Path("/data/x.csv")


@pytest.mark.parametrize("value", ["0.1", 0.1, "1/10", Fraction(1, 10), "1e-1"])
def test_budgets_are_the_decimals_that_were_written(value):
    assert read(promise__epsilon=value).promise.epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("promise", "currency"),
    [
        ({"epsilon": 1}, "epsilon"),
        ({"epsilon": 1, "delta": "1e-6"}, "approximate"),
        ({"rho": "0.5"}, "rho"),
        ({"mu": 1}, "mu"),
    ],
)
def test_a_promise_is_in_one_currency(promise, currency):
    assert read(promise=promise).promise.currency == currency


def test_an_advantage_comes_with_its_attacker():
    document = read(
        promise={"advantage": 0.1},
        threat={"categories": ["home", "work"], "prior": [3, 1]},
    )
    assert document.threat is not None
    threat = document.threat.to_threat()
    assert document.promise.currency == "advantage"
    assert threat.support == ("home", "work")
    assert threat.best_guess == pytest.approx(0.75)


def test_an_attacker_may_know_groups_and_miss_by_a_tolerance():
    document = read(threat={"categories": 4, "knowledge": [0, 0, 1, 1], "tolerance": 1})
    assert document.threat is not None
    threat = document.threat.to_threat()
    assert len(threat.fibres) == 2
    assert threat.best_guess == pytest.approx(0.75)


def test_windows_are_counted_from_the_start_to_the_horizon():
    source = read(**{f"source__{key}": value for key, value in HOURLY.items()}).source
    assert source.kind == "window"
    assert source.per == Window(3_600_000_000)
    assert source.window_us == 3_600_000_000
    assert source.windows == 365 * 24
    assert source.start == datetime(2026, 1, 1)


def test_rows_can_be_the_unit():
    document = read(source__per="event", bounds=GONE)
    assert document.source.kind == "event"
    assert document.source.window_us is None
    assert document.source.windows is None
    lone = read(source__unit=GONE, source__per="user", bounds=GONE)
    assert lone.source.unit is None


def test_a_unit_that_was_forgotten_is_asked_for():
    sentence = refusal(changed(source__unit=GONE, bounds=GONE))
    assert sentence.startswith("source.unit must name the column that says whose rows")
    assert 'say so with per = "event" and promise.granularity = "event"' in sentence


def test_groups_and_rows_in_each_bound_the_rows_too():
    bounds = read(bounds={"groups_per_unit": 3, "rows_per_group": 2}).bounds
    assert bounds.bound_rows
    assert bounds.given == ("groups_per_unit", "rows_per_group")


def test_native_dates_and_times_are_read_as_utc():
    native = dict(HOURLY, start=date(2026, 1, 1))
    source = read(**{f"source__{key}": value for key, value in native.items()}).source
    assert source.start == datetime(2026, 1, 1)
    zoned = dict(HOURLY, start="2026-01-01T02:00:00+02:00")
    source = read(**{f"source__{key}": value for key, value in zoned.items()}).source
    assert source.start == datetime(2026, 1, 1)


def test_equal_bins_and_listed_bins_are_cut_exactly():
    fields = {"select": "histogram", "column": "x"}
    equal = asked(**fields, low=0, high="0.3", bins=3).queries[0]
    assert equal.cuts == tuple(Fraction(at, 10) for at in range(4))
    assert equal.cells == 3
    listed = asked(**fields, bins=[0, "1/3", 2.5]).queries[0]
    assert listed.cuts == (0, Fraction(1, 3), Fraction(5, 2))
    assert listed.cells == 2


def test_candidates_of_quantiles_include_both_ends():
    fields = {"select": "quantile", "column": "x", "low": -1, "high": 1}
    query = asked(**fields).queries[0]
    assert query.quantiles == (Fraction(1, 2),)
    assert query.cuts is not None
    assert (query.cuts[0], query.cuts[-1], len(query.cuts)) == (-1, 1, 257)
    assert asked(**fields, candidates=3).queries[0].cuts == (-1, 0, 1)
    assert asked(**fields, candidates=[-1, "0.5"]).queries[0].cells == 2
    assert asked(select="count").queries[0].cuts is None
    assert asked(select="count").queries[0].cells == 1


def test_discovered_keys_need_delta_and_have_no_cells_yet():
    document = read(promise__delta="1e-9", queries__0__keys="discover")
    query = document.queries[0]
    assert query.discover
    assert query.keys is DISCOVER
    assert query.public_keys is None
    assert query.cells == 0


def test_parts_of_the_time_are_derived_where_the_table_has_none():
    document = read(columns={"hour": "floor(hour(ts) / 2)", "old": "age > 60"})
    derived = document.derived(["ts", "age", "month"])
    assert sorted(derived) == ["date", "hour", "minute", "old", "weekday", "year"]
    assert derived["hour"] == parse_expression("floor(hour(ts) / 2)")
    assert derived["year"] == parse_expression("year(ts)")
    assert read(source__time=GONE).derived(["a"]) == {}


def test_the_time_column_may_have_any_name():
    derived = read(source__time='t"s').derived([])
    assert derived["hour"].columns == {'t"s'}


SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"qeuries": []},
        "qeuries must be a key of the format, got 'qeuries' (did you mean",
    ),
    (
        {"promise__epsilom": 1},
        "promise.epsilom must be a key of the format, got 'epsilom'",
    ),
    ({"queries__0__wheer": "a"}, "queries[0].wheer must be a key of the format, got"),
    ({"source__zzz": 1}, "source.zzz must be a key of the format, got 'zzz' (known: "),
    (
        {"promise": GONE},
        "promise must be given, got nothing; write [promise] and, below it, epsilon =",
    ),
    (
        {"queries": GONE},
        "queries must be given, got nothing; write [[queries]] and, below it, name",
    ),
    (
        {"queries": {"name": "n", "select": "count"}},
        "queries must be a list, got a table; write [[queries]] in two pairs of",
    ),
    ({"queries": []}, "queries must have a length of at least 1, got 0."),
    ({"queries": "a"}, "queries must be a list, got 'a'."),
    ({"queries": [3]}, "queries[0] must be a table, got 3."),
    ({"source": 3}, "source must be a table, got 3."),
    ({"source__table": GONE}, "source.table must be given, got nothing."),
    ({"source__table": 3}, "source.table must be text, got 3."),
    ({"source__table": ""}, "source.table must have 1 to 4096 characters, got 0."),
    ({"source__table": "a\0"}, "source.table must be Unicode text without NUL"),
    (
        {"source__format": "cvs"},
        "source.format must be one of csv, parquet, duckdb, sq",
    ),
    (
        {"source__unit": "u" * 129},
        "source.unit must have 1 to 128 characters, got 129.",
    ),
    ({"source__unit": "ts"}, "source.time must be another column than unit, got 'ts'."),
    ({"source__users": 0}, "source.users must be at least 1, got 0."),
    ({"source__users": 2.5}, "source.users must be a whole number, got 2.5."),
    ({"source__users": True}, "source.users must be a whole number, got true."),
    (
        {"source__per": "people"},
        'source.per must be "user", "event" or { window = "1h"',
    ),
    (
        {"source__per": {"windw": "1h"}},
        'source.per must be "user", "event" or { window',
    ),
    ({"source__per": {}}, 'source.per must be "user", "event" or { window = "1h" }'),
    ({"source__per": {"window": "1x"}}, "source.per.window must be a positive whole"),
    (
        {"source__per": {"window": 1}},
        "source.per.window must be text such as '1h', got",
    ),
    (
        {"source__per": {"window": "1h"}},
        "source.start must be given where per is a win",
    ),
    (
        {"source__horizon": "1d"},
        "source.start must be given with horizon, got nothing.",
    ),
    (
        {"source__start": "soon"},
        "source.start must be a time such as '2026-01-31', got",
    ),
    (
        {"source__start": "2026-01-01", "source__time": GONE},
        "source.time must be given with start, got nothing.",
    ),
    (
        {
            f"source__{k}": v
            for k, v in (HOURLY | {"start": "2026-01-01T00:30"}).items()
        },
        "source.start must be the start of a window of 1h counted from 1970-01-01, got",
    ),
    (
        {f"source__{k}": v for k, v in (HOURLY | {"horizon": "90m"}).items()},
        "source.horizon must be whole windows of 1h, got 90m.",
    ),
    (
        {
            f"source__{k}": v
            for k, v in (HOURLY | {"per": {"window": "1s"}, "horizon": "3650d"}).items()
        },
        "source.horizon must be at most 1000000 windows, got more; use longer windows, "
        "or a shorter horizon.",
    ),
    (
        {"source__per": "event"},
        "bounds.rows_per_unit must be left out where source.per",
    ),
    (
        {"source__unit": GONE, "source__per": "user"},
        "bounds.rows_per_unit must be left out where source.unit",
    ),
    (
        {"bounds": GONE},
        "bounds.rows_per_unit must be given, got nothing; without it one",
    ),
    ({"bounds": {"rows_per_group": 2}}, "bounds.rows_per_unit must be given, got noth"),
    ({"bounds__rows_per_unit": 0}, "bounds.rows_per_unit must be at least 1, got 0."),
    (
        {"bounds__rows_per_unit": "5"},
        "bounds.rows_per_unit must be a whole number, got",
    ),
    ({"promise__epsilon": 0}, "promise.epsilon must be positive, got 0."),
    ({"promise__epsilon": -1.5}, "promise.epsilon must be positive, got -1.5."),
    ({"promise__epsilon": "--1"}, "promise.epsilon must be a number, got '--1'."),
    ({"promise__epsilon": "inf"}, "promise.epsilon must be finite, got inf."),
    ({"promise__epsilon": float("nan")}, "promise.epsilon must be a number, got nan."),
    (
        {"promise__epsilon": "one"},
        "promise.epsilon must be a number such as 0.5 or 1/3",
    ),
    (
        {"promise__epsilon": True},
        "promise.epsilon must be a number such as 0.5 or '1/3'",
    ),
    (
        {"promise__epsilon": [1]},
        "promise.epsilon must be a number such as 0.5 or '1/3'",
    ),
    ({"promise__epsilon": "9" * 2000}, "promise.epsilon must be a number of at most"),
    (
        {"promise__epsilon": "1e999"},
        "promise.epsilon must lie between 1e-400 and 1e400",
    ),
    ({"promise__epsilon": 2**100}, "promise.epsilon must be below 2^100 in size, got"),
    ({"promise__delta": 1}, "promise.delta must lie strictly between 0 and 1, got 1."),
    (
        {"promise__confidence": 0},
        "promise.confidence must lie strictly between 0 and 1",
    ),
    (
        {"promise__rho": 1},
        "promise must give one of epsilon, rho, mu, advantage, got ep",
    ),
    (
        {"promise__epsilon": GONE},
        "promise must give one of epsilon, rho, mu, advantage",
    ),
    (
        {"promise": {"rho": 1, "delta": "1e-6"}},
        "promise.delta must come with epsilon, got it with rho.",
    ),
    ({"promise": {"advantage": "0.1"}}, "threat must be given with promise.advantage"),
    (
        {"promise__granularity": "usr"},
        "promise.granularity must be a known name, got 'u",
    ),
    (
        {"promise__granularity": "w" * 201},
        "promise.granularity must have a length of at",
    ),
    (
        {"promise": {"rho": 1, "correlation": {"model": "blocks", "group": 2}}},
        "promise.correlation must come with epsilon alone, got rho.",
    ),
    (
        {"promise__correlation": {"model": "markof"}},
        "promise.correlation.model must be one of markov, gaussian, blocks, got 'm",
    ),
    (
        {"promise__correlation": {"model": "markov"}},
        "promise.correlation must give fit or gamma or transition, got nothing.",
    ),
    (
        {"promise__correlation": {"model": "blocks", "group": 2, "phi": 1}},
        "promise.correlation.phi must be left out of a blocks model, got a value.",
    ),
    (
        {"promise__correlation": {"model": "markov", "fit": "a.csv"}},
        "promise.correlation.states must name the column that fit holds, got nothing.",
    ),
    (
        {"promise__correlation": {"model": "gaussian", "correlation": 0.5}},
        "promise.correlation.group must be given with correlation, got nothing.",
    ),
    (
        {"promise__correlation": {"model": "gaussian", "phi": 0.5}},
        "promise.correlation.length must be given with phi, got nothing.",
    ),
    (
        {"promise__correlation": {"model": "markov", "transition": [[1]]}},
        "promise.correlation.transition must be a square matrix of 2 to 1000 rows.",
    ),
    (
        {"promise__correlation": {"model": "markov", "transition": [[1, 0], [1, 1]]}},
        "promise.correlation.transition[1] must be non-negative and sum to 1, got the",
    ),
    ({"threat": {"categories": 1}}, "threat.categories must be 2 to 10000, got 1."),
    (
        {"threat": {"categories": "a"}},
        "threat.categories must be a number of categories",
    ),
    (
        {"threat": {"categories": ["a", 1.5]}},
        "threat.categories[1] must be text or a nu",
    ),
    (
        {"threat": {"categories": ["a", "a"]}},
        "threat.categories must name each category",
    ),
    (
        {"threat": {"categories": 3, "prior": [1]}},
        "threat.prior must give 3 weights, got",
    ),
    (
        {"threat": {"categories": 2, "prior": [0, 0]}},
        "threat.prior must be non-negative",
    ),
    (
        {"threat": {"categories": 2, "knowledge": [0]}},
        "threat.knowledge must give 2 grou",
    ),
    (
        {"threat": {"categories": ["a", "b"], "tolerance": 1}},
        "threat.tolerance must be left out where categories are names.",
    ),
    ({"columns": {"a": "b +"}}, "columns.a must have a value, a column or a function"),
    ({"columns": {"a": 3}}, "columns.a must be text such as 'steps > 0', got 3."),
    (
        {"columns": {"a": "b", "b": "a"}},
        "columns.a must not depend on itself, got a cir",
    ),
    ({"columns": {"a": "a + 1"}}, "columns.a must not depend on itself, got a circle."),
    ({"columns": {"ts": "a"}}, "columns.ts must not be the unit or the time."),
    (
        {"queries": BASE["queries"] * 2},
        "queries[1].name must differ from the others, go",
    ),
    ({"queries__0__name": ""}, "queries[0].name must have 1 to 128 characters, got 0."),
    ({"queries__0__name": GONE}, "queries[0].name must be given, got nothing."),
    (
        {"queries__0__select": "cuont"},
        "queries[0].select must be one of count, count_di",
    ),
    (
        {"queries__0__where": "steps >"},
        "queries[0].where must have a value, a column or",
    ),
    (
        {"queries__0__by": "hour"},
        "queries[0].by must be a list, got 'hour'; write [\"hour\"].",
    ),
    ({"queries__0__by": True}, "queries[0].by must be a list, got true."),
    ({"queries__0__by": "h" * 61}, "queries[0].by must be a list, got 'hhh"),
    (
        {"queries__0__by": ["hour", "hour"]},
        "queries[0].by[1] must differ from those bef",
    ),
    (
        {"queries__0__keys": GONE},
        "queries[0].keys.hour must list the public keys, got n",
    ),
    ({"queries__0__keys": {"hour": [1, 1]}}, "queries[0].keys.hour must hold each key"),
    (
        {"queries__0__keys": {"hour": [None]}},
        "queries[0].keys.hour[0] must be a whole n",
    ),
    (
        {"queries__0__keys": {"hour": "discover"}},
        "queries[0].keys.hour must be public k",
    ),
    ({"queries__0__keys__zone": ["a"]}, "queries[0].keys.zone must be a column of by"),
    (
        {"queries__0__keys": 3},
        'queries[0].keys must be "discover" or a table such as {',
    ),
    (
        {"queries__0__keys": "discover"},
        "queries[0].keys must be public where the promis",
    ),
    (
        {"queries__0__keys": "discover", "queries__0__by": [], "promise__delta": 0.1},
        "queries[0].by must name the columns to discover, got none.",
    ),
    ({"queries__0__share": 0}, "queries[0].share must be positive, got 0."),
    ({"queries__0__share": "-1/2"}, "queries[0].share must be positive, got '-1/2'."),
    (
        {"queries__0__column": "x"},
        "queries[0].column must be left out of a count, got a",
    ),
    (
        {"queries__0__low": 1},
        "queries[0].low must be left out of a count, got a value.",
    ),
    (
        {"queries__0__consistent": ["round"]},
        "queries[0].consistent[0] must be one of no",
    ),
    (
        {"queries__0__running": True},
        "queries[0].running must have source.per = { window",
    ),
    (
        {"queries__0__select": "count_distinct", "queries__0__running": True},
        "queries[0].running must be false for a count_distinct; only count and",
    ),
    (
        {
            "source__unit": GONE,
            "source__per": "user",
            "bounds": GONE,
            "queries__0__select": "count_distinct",
        },
        "queries[0].select must be count where source.unit is not given, got c",
    ),
    (
        {"queries__0__keys__hour": "0..1000000"},
        "queries[0].keys.hour must hold at most",
    ),
    (
        {"output__format": "xlsx"},
        "output.format must be one of csv, parquet, got 'xlsx'",
    ),
    ({"ledger": {"url": "sqlite:///a"}}, "ledger.dataset must be given, got nothing."),
]


@pytest.mark.parametrize(("changes", "words"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_mistake_is_one_sentence_that_names_the_place(changes, words):
    assert refusal(changed(**changes)).startswith(words)


@pytest.mark.parametrize("select", ["sum", "mean", "variance", "quantile"])
@pytest.mark.parametrize("missing", ["column", "low", "high"])
def test_numbers_need_a_column_and_both_ends(select, missing):
    fields = {"select": select, "column": "x", "low": 0, "high": 1}
    assert asked(**fields).queries[0].high == 1
    fields.pop(missing)
    sentence = refusal(changed(queries=[{"name": "q", **fields}]))
    reason = "; without public ends one row could change the answer without limit"
    assert sentence == (
        f"queries[0].{missing} must be given for a {select}, got nothing"
        f"{'' if missing == 'column' else reason}."
    )


@pytest.mark.parametrize(
    ("asked_for", "meant"),
    [
        ("average", "mean"),
        ("Median", "quantile, with quantiles = [0.5]"),
        ("percent", "mean, of a condition in [columns], with low = 0 and high = 1"),
        ("max", "quantile, with quantiles near 0 or 1"),
        ("distinct", "count_distinct"),
        ("cuont", "count"),
    ],
)
def test_what_people_ask_for_is_named_as_it_is_asked_here(asked_for, meant):
    sentence = refusal(changed(queries__0__select=asked_for))
    assert sentence.endswith(f"got {asked_for!r} (did you mean {meant}?).")


def test_a_level_in_words_of_everyday_language_is_named():
    people = refusal(changed(promise__granularity="patient"))
    assert people.endswith(
        "got 'patient'; people with all their rows are protected by user."
    )
    rows = refusal(changed(promise__granularity="row"))
    assert rows.endswith('are protected by event, with source.per = "event".')
    assert "protected by" not in refusal(changed(promise__granularity="usre"))


def test_missing_keys_are_asked_for_by_texts_and_by_ranges():
    sentence = refusal(changed(queries__0__keys=GONE))
    assert 'keys = { hour = ["A", "B"] } or { hour = "0..23" }' in sentence
    assert sentence.endswith('or use keys = "discover" with a promise.delta.')


def test_keys_of_another_column_name_the_one_that_was_meant():
    keys = {"hour": "0..23", "hours": "0..23"}
    assert refusal(changed(queries__0__keys=keys)) == (
        "queries[0].keys.hours must be a column of by, got another "
        "(did you mean hour?)."
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"low": 1, "high": 1, "bins": 2},
            "queries[0].low must be below high, got 1 and 1.",
        ),
        ({"low": "inf", "high": 1}, "queries[0].low must be finite, got inf."),
        ({"low": 0, "high": 2**100}, "queries[0].high must be below 2^100 in size"),
        (
            {"low": 0, "high": 1, "bins": 0},
            "queries[0].bins must be 1 to 10000, got 0.",
        ),
        (
            {"low": 0, "high": 1},
            "queries[0].bins must be given for a histogram, got no",
        ),
        (
            {"bins": [0, 1], "low": 0},
            "queries[0].low must be left out where bins lists",
        ),
        (
            {"bins": [0, 0]},
            "queries[0].bins[1] must be larger than the number before it.",
        ),
        (
            {"bins": [0]},
            "queries[0].bins must be a number or a list of 2 to 10001 numb",
        ),
        ({"bins": 4}, "queries[0].low must be given for a histogram, got nothing."),
    ],
)
def test_bins_that_are_none_are_refused(fields, words):
    query = {"name": "q", "select": "histogram", "column": "x", **fields}
    assert refusal(changed(queries=[query])).startswith(words)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"candidates": 1}, "queries[0].candidates must be at least 2, got 1."),
        ({"candidates": [0, 2]}, "queries[0].candidates must lie between low and high"),
        ({"quantiles": []}, "queries[0].quantiles must have a length of at least 1"),
        (
            {"quantiles": [0]},
            "queries[0].quantiles[0] must lie strictly between 0 and 1",
        ),
        ({"quantiles": [0.5, "1/2"]}, "queries[0].quantiles[1] must differ from those"),
    ],
)
def test_quantiles_that_are_none_are_refused(fields, words):
    query = {"name": "q", "select": "quantile", "column": "x", "low": 0, "high": 1}
    assert refusal(changed(queries=[query | fields])).startswith(words)


def test_cells_are_counted_over_all_columns_and_queries():
    wide = {
        "select": "count",
        "by": ["a", "b"],
        "keys": {"a": "1..1000", "b": "1..600"},
    }
    assert asked(**wide).queries[0].cells == 600_000
    twice = [{"name": name, **wide} for name in "ab"]
    assert refusal(changed(queries=twice)) == (
        "queries must have at most 1000000 cells overall, got 1200000."
    )


def test_huge_lists_are_refused_without_comparing_all_pairs():
    many = [str(at) for at in range(200_000)]
    assert refusal(changed(queries__0__by=many)).startswith(
        "queries[0].by must have a length of at most 8, got 200000"
    )


def test_a_long_chain_of_derived_columns_is_read():
    chain = {f"c{at}": f"c{at - 1} + 1" for at in range(1, 1000)}
    assert len(read(columns=chain).columns) == 999


def test_a_typing_mistake_comes_before_what_it_leaves_missing():
    mapping = changed(queries__0__nmae="a", queries__0__name=GONE)
    assert refusal(mapping).startswith("queries[0].nmae must be a key of the format")


@pytest.mark.parametrize(
    "url",
    [
        "postgres://ann:s3cret@db/city",
        "postgres://ann@corp:s3cret@db/city",
        "postgres://ann:my s3cret@db/city",
        "postgres://:s3cret@db",
        "postgresql+psycopg://ann:s3cret@db/city?sslmode=x",
        "postgres://db/city?password=s3cret",
        "spark://h?auth_token=s3cret",
    ],
)
def test_passwords_are_shown_nowhere(url):
    assert "s3cret" not in masked(url)
    document = read(source__table=url, ledger={"url": url, "dataset": "d"})
    assert document.source.table == url
    shown = [repr(document), str(document.source), json.dumps(document.to_dict())]
    assert not [text for text in shown if "s3cret" in text]
    for changes in [
        {"source__table": url + "\0"},
        {"source__table": url * 400},
        {"source__format": url},
        {f"source__{url}": 1},
        {"promise__epsilon": url},
        {"promise__granularity": url},
        {"queries__0__keys": {"hour": url}},
        {"source__per": {url: 1}},
    ]:
        assert "s3cret" not in refusal(changed(**changes))


@pytest.mark.parametrize(
    "name",
    [
        "host=db password=s3cret user=ann",
        "host=db pass=s3cret",
        "postgres//ann:s3cret@db/city",
        "ann:s3cret@db/city",
        "sqlite:///ann:s3cret@db",
    ],
)
def test_a_name_that_may_hold_a_password_is_refused_and_not_repeated(name):
    for changes in (
        {"source__table": name},
        {"ledger": {"url": name, "dataset": "d"}},
        {"output": {"folder": name}},
    ):
        said = refusal(changed(**changes))
        assert "got a name that may hold a password and is not repeated" in said
        assert "s3cret" not in said
    assert read(source__table=f"./{name.partition('///')[2] or name}")


@pytest.mark.parametrize(
    "url",
    [
        "postgres://ann:s3cret@p@ss/w:rd@db/city",
        "postgres://ann:s3cret",
        "postgres://ann:s3/cret@db/city",
        "postgres://ann:x#s3cret@db/city",
        "postgres://db:5432/s3cret?name=a@b",
        "postgres://ann:s3cret\n@db/city",
    ],
)
def test_an_address_that_can_be_read_in_two_ways_is_refused_and_not_repeated(url):
    for changes in ({"source__table": url}, {"ledger": {"url": url, "dataset": "d"}}):
        said = refusal(changed(**changes))
        assert "must be an address that can be read in one way" in said
        assert "s3" not in said


def test_the_fingerprint_is_of_the_meaning_and_without_passwords():
    base = read().fingerprint()
    assert len(base) == 64
    assert read(promise__epsilon=1).fingerprint() == base
    assert read(queries__0__keys={"hour": list(range(24))}).fingerprint() == base
    assert read(queries__0__where='("steps") > 0').fingerprint() == base
    assert read(promise__epsilon="1.0000000001").fingerprint() != base
    assert read(queries__0__where="steps >= 0").fingerprint() != base
    first = read(source__table="postgres://ann:one@db/city").fingerprint()
    assert read(source__table="postgres://ann:two@db/city").fingerprint() == first


def test_a_date_and_the_text_of_it_have_different_fingerprints():
    day = date(2026, 1, 1)
    dates = read(queries__0__keys={"hour": [day]}).fingerprint()
    assert read(queries__0__keys={"hour": ["2026-01-01"]}).fingerprint() != dates
    assert read(queries__0__keys={"hour": "2026-01-01..2026-01-01"}).fingerprint() == (
        dates
    )


def test_plain_values_show_windows_and_discovery_as_they_are_written():
    hourly = read(**{f"source__{key}": value for key, value in HOURLY.items()})
    source = hourly.to_dict()["source"]
    assert source["per"] == {"window": "1h"}
    assert source["start"] == "2026-01-01T00:00:00"
    assert source["horizon"] == "365d"
    found = read(promise__delta="1e-9", queries__0__keys="discover").to_dict()
    assert found["queries"][0]["keys"] == "discover"


def test_documents_are_frozen():
    document = read()
    with pytest.raises(ValueError, match="frozen"):
        document.promise = document.promise  # type: ignore[misc]


def test_a_table_in_memory_has_no_name():
    mapping = changed(source__table=GONE)
    assert release_from_mapping(mapping, in_memory=True).source.table is None
    with pytest.raises(PlanError, match="must be left out for a table in memory"):
        release_from_mapping(changed(), in_memory=True)


def test_parts_already_read_are_taken_as_they_are():
    document = read(**{f"source__{key}": value for key, value in HOURLY.items()})
    mapping = changed(queries__0__where=document.queries[0].where)
    mapping["source"] |= {"per": document.source.per, "start": document.source.start}
    mapping["source"] |= {"horizon": "365d"}
    assert release_from_mapping(mapping) == document


@pytest.mark.parametrize("value", [None, 3, "a", [1]])
def test_what_is_no_table_is_refused(value):
    with pytest.raises(PlanError, match=r"^the release must be a table, got "):
        release_from_mapping(value)


def file_refusal(path: Path) -> str:
    with pytest.raises(PlanError) as caught:
        read_release(path)
    return str(caught.value)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    file = tmp_path / "release.toml"
    assert "got no such file" in file_refusal(file)
    assert "got a folder" in file_refusal(tmp_path)
    for content, words in [
        (b"\xff\xfe", "must be UTF-8 text, got other bytes."),
        (b"a = '\0'", "must be a TOML text file, got binary content."),
        (b"a = ", "must be a TOML file, got an error: Invalid value"),
        (b"a = " + b"[" * 100_000, "must be a TOML file, got too deep nesting."),
        (b"a = " + b"9" * 5000, "must be a TOML file, got an error: "),
        (b"#" * (LARGEST_FILE + 1), "must be a release file of at most 16 MiB, got"),
        (b"", "promise must be given, got nothing; write [promise] and"),
    ]:
        file.write_bytes(content)
        assert words in file_refusal(file)
    assert file_refusal(Path("a\0b")) == "path must be a file name, got one with NUL."


def test_a_file_without_permission_is_one_sentence(tmp_path, monkeypatch):
    file = tmp_path / "release.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    file.chmod(stat.S_IWUSR)

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert file_refusal(file).endswith(
        "must be a readable file, got Permission denied."
    )


def test_a_password_in_broken_toml_is_not_repeated(tmp_path):
    file = tmp_path / "release.toml"
    file.write_text('table = "postgres://ann:s3cret@db" x', encoding="utf-8")
    assert "s3cret" not in file_refusal(file)


def test_the_command_prints_the_schema_of_release_files():
    result = invoke("schema", "release")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == release_schema()
    jsonschema.Draft202012Validator.check_schema(release_schema())


def test_the_schema_accepts_what_the_reader_accepts():
    VALIDATOR.validate(BASE)
    hourly = changed(**{f"source__{key}": value for key, value in HOURLY.items()})
    VALIDATOR.validate(hourly)
    VALIDATOR.validate(changed(promise__delta="1e-9", queries__0__keys="discover"))


@pytest.mark.parametrize(
    "changes",
    [
        {"promise__epsilom": 1},
        {"source__table": GONE},
        {"promise": GONE},
        {"queries": []},
        {"queries__0__select": "cuont"},
        {"bounds__rows_per_unit": 0},
        {"source__per": "people"},
    ],
    ids=range(7),
)
def test_the_schema_refuses_what_it_can_see_is_wrong(changes):
    assert not VALIDATOR.is_valid(changed(**changes))


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
PLACES = [
    *(f"source__{key}" for key in ("table", "unit", "time", "per", "start", "users")),
    *(f"promise__{key}" for key in ("granularity", "epsilon", "delta", "correlation")),
    *(f"queries__0__{key}" for key in ("name", "select", "where", "by", "keys")),
    *(f"queries__0__{key}" for key in ("share", "low", "bins", "consistent")),
    *("source", "promise", "queries", "bounds", "threat", "columns", "ledger", "more"),
]


def outcome(mapping: Any) -> str:
    try:
        return release_from_mapping(mapping).fingerprint()
    except PlanError as fault:
        return str(fault)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), values)
def test_any_value_anywhere_is_read_or_refused_in_one_sentence(place, value):
    found = outcome(changed(**{place: value}))
    assert len(found) == 64 or (" must " in found and found.endswith("."))
    assert len(found) < 500


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "release-file.md"
SECTIONS = {
    "## `[source]`": SourcePart,
    "## `[promise]`": PromisePart,
    "### `promise.correlation`": CorrelationPart,
    "## `[threat]`": ThreatPart,
    "## `[bounds]`": BoundsPart,
    "## `[[queries]]`": QueryPart,
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_of_the_format_lists_the_keys_of_each_part(heading):
    text = PAGE.read_text(encoding="utf-8")
    section = text.split(f"\n{heading}", 1)[1].split("\n#", 1)[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.M)
    assert sorted(listed) == sorted(SECTIONS[heading].model_fields)


def test_the_page_of_the_format_lists_outputs_ledger_and_functions():
    text = PAGE.read_text(encoding="utf-8")
    for part, model in (("output", OutputPart), ("ledger", LedgerPart)):
        listed = re.findall(rf"^\| `{part}\.(\w+)` \|", text, re.M)
        assert sorted(listed) == sorted(model.model_fields)
    functions = re.search(r"^\| functions \|(.*)\|$", text, re.M)
    assert functions is not None
    named = set(re.findall(r"`(\w+)`", functions[1]))
    assert named == set(FUNCTIONS) - {"timestamp"}
