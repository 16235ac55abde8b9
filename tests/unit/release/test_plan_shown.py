"""A plan in words: whose rows are meant, and how far an answer may be off."""

import re
from types import SimpleNamespace

import pytest

from support.release_plans import COUNT, WINDOWED, release_plan
from undertow.release.plan.planned_release import plan_text
from undertow.release.run.record import ReleaseRun

ROWS = {"table": "t.csv", "per": "user"}
VALUE = {"name": "v", "column": "v", "low": 0, "high": 1}


def shown(queries=(COUNT,), **parts):
    return plan_text(release_plan({"epsilon": 1}, list(queries), **parts), markup=False)


def test_rows_that_belong_to_nobody_are_said_to_be_protected_by_themselves():
    assert "each row is protected by itself" in shown(source=ROWS, bounds={})
    assert "each row" not in shown()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"name": "n", "select": "count"}, ", 1 cell\n"),
        ({**VALUE, "select": "mean"}, "where these are 1000"),
        ({**VALUE, "select": "quantile"}, "v: rank off by at most "),
    ],
)
def test_errors_are_told_in_words(query, words):
    assert words in shown([query]) + "\n"


DAYS = {**WINDOWED, "per": {"window": "1d"}, "horizon": "7d"}


def of_day(day, queries=(COUNT,), **source):
    promise = {"epsilon": 1, "granularity": "event"}
    return release_plan(promise, queries, source={**DAYS, **source}, as_of=day)


def test_a_plan_says_from_when_until_when_its_run_reads():
    total = {**COUNT, "name": "total", "running": True}
    plan = of_day("2026-01-05", [COUNT, total])
    record = plan.to_dict()
    day = ("2026-01-04T00:00:00+00:00", "2026-01-05T00:00:00+00:00")
    assert (record["from"], record["until"]) == day
    spans = [(query["from"], query["until"]) for query in record["queries"]]
    assert spans == [day, ("2026-01-01T00:00:00+00:00", day[1])]
    assert plan_text(plan, markup=False).startswith(
        "run\n4 of 7: 2026-01-04 00:00 to 2026-01-05 00:00 UTC; "
        "running totals from 2026-01-01 00:00 UTC on\n\npromise\n"
    )


def test_a_plan_without_times_names_none():
    record = release_plan({"epsilon": 1}).to_dict()
    assert record["from"] is record["until"] is None
    assert shown().startswith("promise\n")
    until = release_plan({"epsilon": 1}, as_of="2026-01-05")
    assert until.to_dict()["from"] is None
    assert "times read\nbefore 2026-01-05 00:00 UTC\n" in plan_text(until, markup=False)


def test_the_times_of_a_run_are_in_utc_whatever_the_offset_of_the_start():
    plan = of_day("2026-01-02", start="2026-01-01T02:00:00+02:00")
    assert plan.to_dict()["from"] == "2026-01-01T00:00:00+00:00"


def test_the_end_of_a_run_tells_which_one_it_was():
    plan = of_day("2026-01-05").to_dict()
    done = ReleaseRun({"plan": plan}, SimpleNamespace(number=9), None, {}, False, False)
    assert done.story == (
        "Charged as entry 9 of the ledger. "
        "Run 4 of 7: 2026-01-04 00:00 to 2026-01-05 00:00 UTC."
    )


def test_losses_are_written_as_people_do_and_rounded_up():
    text = plan_text(release_plan({"epsilon": "1/3"}), markup=False)
    assert "ε = 0.333334 at user level" in text
    assert "protects         cost          worst cases added up  worst change\n" in text
    assert "\nuser             ε = 0.333334  ε = 0.333334 " in text
    assert "Pure(" not in text
    both = plan_text(release_plan({"epsilon": 1, "delta": "1e-6"}), markup=False)
    assert both.startswith("promise\nε = 1, δ = 0.000001 at user level\n")


def test_errors_are_rounded_up_to_whole_ranks_and_told_in_the_unit_of_the_column():
    text = shown(
        [{**VALUE, "select": "quantile"}, {**VALUE, "name": "s", "select": "sum"}]
    )
    assert re.search(r"v: rank off by at most \d+ rows", text)
    assert re.search(r"noise of scale \d{1,3}, drawn in steps of ", text)
