"""Times in a declared format are read as Python's strptime reads them."""

from __future__ import annotations

import re
from datetime import date, datetime
from random import Random

import pyarrow as pa
import pytest

from support.release_times import FORMATS, near_misses, read_by_python
from undertow.errors import PlanError
from undertow.release import open_source, release_from_mapping, release_schema
from undertow.release.document.time import DIRECTIVES, TimeFormat


def read(texts, form, kind="timestamp"):
    table = pa.table({"place": range(len(texts)), "text": texts})
    with open_source(table, types={"text": TimeFormat(kind, form)}) as source:
        found = source.execute(source.table.order_by("place")).to_pydict()
    return found["text"]


@pytest.mark.parametrize("form", FORMATS)
def test_texts_are_read_as_python_reads_them_and_what_it_refuses_is_missing(form):
    texts = near_misses(form, Random(form), 400)
    expected = [read_by_python(text, form) for text in texts]
    assert read(texts, form) == expected
    assert 0.2 < sum(time is None for time in expected) / len(texts) < 0.9


def test_days_that_no_calendar_has_are_missing():
    texts = ["31/02/2024", "29/02/2023", "29/02/2024", "29/02/1900", "29/02/2000"]
    texts += ["31/04/2024", "00/01/2024", "01/13/2024", "01/00/2024", "01/01/0000"]
    leap = [None, None, date(2024, 2, 29), None, date(2000, 2, 29)]
    assert read(texts, "%d/%m/%Y", "date") == leap + [None] * 5


def test_one_digit_is_enough_where_something_follows_and_blanks_are_not_passed_over():
    texts = ["1/2/2024 3:4", "01/02/2024 03:04", " 1/2/2024 3:4", "1/2/2024 3:4 "]
    texts += [
        "1/2/2024  3:4",
        "1/2/2024 3:4\n",
        "1/2/2024\t3:4",
        "1/2/24 3:4",
        "",
        None,
    ]
    moment = datetime(2024, 2, 1, 3, 4)
    assert read(texts, "%d/%m/%Y %H:%M") == [moment, moment] + [None] * 8


def test_numbers_without_a_mark_between_have_all_their_digits():
    assert read(["20240201", "2024021", "202421"], "%Y%m%d", "date") == [
        date(2024, 2, 1),
        None,
        None,
    ]


def test_hours_end_at_23_and_those_of_half_days_at_12():
    texts = ["1/1/2024 24:00", "1/1/2024 23:59", "1/1/2024 23:60"]
    found = read(texts, "%d/%m/%Y %H:%M")
    assert found == [None, datetime(2024, 1, 1, 23, 59), None]
    texts = ["1/1/2024 12:30 AM", "1/1/2024 12:30 pm", "1/1/2024 0:30 AM"]
    found = read(texts, "%d/%m/%Y %I:%M %p")
    assert found == [datetime(2024, 1, 1, 0, 30), datetime(2024, 1, 1, 12, 30), None]


def test_digits_of_other_scripts_and_hostile_texts_are_missing():
    texts = [
        "٠١/٠٢/٢٠٢٤",
        "1/2/2024\0",
        "1" * 5000,
        "-1/2/2024",
        "1/2/+024",
        "1/2/2e24",
    ]
    assert read(texts, "%d/%m/%Y", "date") == [None] * len(texts)


@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        ("timestamp", "%d/%m/%Y %T", "'%T'"),
        ("timestamp", "%d/%m/%Y %", "'%'"),
        ("timestamp", "%d/%m/%Y %z", "'%z'"),
        ("timestamp", "%d/%m %H:%M", "must give the year, got none"),
        ("timestamp", "%d/%m/%Y %y", "must give the year once"),
        ("timestamp", "%d/%m/%Y %b", "must give the month once"),
        ("timestamp", "%d/%m/%Y %M", "must give the hour with the minute"),
        ("timestamp", "%d/%m/%Y %I:%M", "%I and %p together"),
        ("timestamp", "%d/%m/%Y %H:%M %p", "%I and %p together"),
        ("date", "%d/%m/%Y %H", "must leave the hour out of a date"),
        ("date", "", "1 to 100 characters"),
        ("date", "%d\n%m %Y", "printable ASCII"),
        ("date", "%Y年%m月%d日", "printable ASCII"),
    ],
)
def test_a_format_that_leaves_something_open_is_refused_by_name(kind, form, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        TimeFormat(kind, form)
    with pytest.raises(PlanError, match=re.escape(words)) as refused:
        mapping({"t": {kind: form}})
    assert str(refused.value).startswith(f"source.types.t.{kind} must ")


def mapping(types):
    return release_from_mapping(
        {
            "source": {"table": "a.csv", "unit": "p", "types": types},
            "promise": {"epsilon": "1"},
            "bounds": {"rows_per_unit": 1},
            "queries": [{"name": "all", "select": "count"}],
        }
    )


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"t": "timestmap"}, "did you mean timestamp?"),
        ({"t": {"time": "%H"}}, "did you mean timestamp?"),
        ({"t": 3}, "must be a type or { timestamp = "),
        ({"t": {"date": 3}}, "1 to 100 characters"),
        ({"t": {}}, "must be a type or"),
    ],
)
def test_a_type_that_is_none_is_refused_in_one_sentence(types, words):
    with pytest.raises(PlanError) as refused:
        mapping(types)
    assert words in str(refused.value)
    assert str(refused.value).startswith("source.types.t")


def test_a_format_is_written_as_it_was_read_and_tells_releases_apart():
    one, other = (mapping({"t": {"date": form}}) for form in ("%d.%m.%Y", "%m.%d.%Y"))
    assert one.to_dict()["source"]["types"] == {"t": {"date": "%d.%m.%Y"}}
    assert one.fingerprint() != other.fingerprint()
    assert one.source.types == {"t": TimeFormat("date", "%d.%m.%Y")}


def test_the_schema_knows_types_and_formats():
    import jsonschema

    schema = release_schema()
    document = mapping({"t": {"date": "%d.%m.%Y"}, "n": "int"}).to_dict()
    part = {"source": document["source"]}
    rule = {**schema, "required": ["source"]}
    jsonschema.Draft202012Validator(rule).validate(part)
    part["source"]["types"]["t"] = {"day": "%d"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(rule).validate(part)


def test_a_format_goes_with_columns_of_text_alone():
    form = {"n": TimeFormat("date", "%d.%m.%Y")}
    with pytest.raises(PlanError, match="format for columns of text, got int64 in 'n'"):
        open_source(pa.table({"n": [1]}), types=form)
    with pytest.raises(PlanError, match="must name columns of the table, got 'n'"):
        open_source(pa.table({"m": [1]}), types=form)


def test_every_directive_is_one_of_python_and_is_told_of():
    day = datetime(2024, 2, 1, 15, 4, 5, 6)
    for name, words in DIRECTIVES.items():
        assert words
        assert day.strftime(name)


@pytest.mark.parametrize(
    ("table", "types", "frame"),
    [
        ("a.csv", {}, {"unit": "text"}),
        ("a.csv", {"p": "int"}, {"unit": "int"}),
        ("a.csv", {"p": {"date": "%d.%m.%Y"}}, {"unit": "date as %d.%m.%Y"}),
        ("a.parquet", {}, {}),
        ("a.parquet", {"t": {"date": "%d.%m.%Y"}}, {}),
        ("a.parquet", {"p": {"date": "%d.%m.%Y"}}, {"unit": "date as %d.%m.%Y"}),
    ],
)
def test_a_ledger_is_told_what_units_are_read_as(table, types, frame):
    from undertow.release import plan_release
    from undertow.release.run._ledger_place import frame_of

    document = mapping(types)
    source = document.source.model_copy(update={"table": table})
    plan = plan_release(document.model_copy(update={"source": source}))
    assert {
        name.removeprefix("type of "): kind
        for name, kind in frame_of(plan).items()
        if name.startswith("type of ")
    } == frame
