"""One structure says what a release report says; both languages say all of it."""

from __future__ import annotations

import html

import pytest

from support.release_plans import WINDOWED
from support.release_records import (
    MARKOV,
    finished_record,
    hostile_record,
    planned_record,
)
from undertow.report import ReleaseReport
from undertow.report._release_html import release_html
from undertow.report._release_section import MOST_ROWS, release_sections
from undertow.report._release_words import shown_guess
from undertow.report.page import markdown_text
from undertow.report.release import release_markdown

RECORDS = {
    "hostile": hostile_record,
    "plan": lambda: planned_record({"epsilon": 1}),
    "plain": lambda: finished_record({"epsilon": 1}),
    "correlated plan": lambda: planned_record(
        {"epsilon": 1, "granularity": "event", "correlation": MARKOV},
        source=WINDOWED,
        threat={"categories": ["a", "b"]},
    ),
}


@pytest.fixture(scope="module", params=RECORDS)
def record(request):
    return RECORDS[request.param]()


def sentences(release):
    """Return every sentence of a release and every text of its facts."""
    yield from (release.title, release.run, release.promise)
    yield release.correlation.words
    yield from (*release.unprotected, *release.checked, *release.unchecked)
    yield from (*release.theorems, *release.counted)
    cards = () if release.risk is None else release.risk.facts
    for name, text in (*release.facts, *release.correlation.facts, *cards):
        yield from (name, text)
    for query in release.queries:
        yield query.words
        yield from () if query.answer is None else query.answer.notes


def test_both_languages_say_every_sentence(record):
    release = release_sections(record)
    page, text = release_html(release), release_markdown(release)
    for said in sentences(release):
        assert html.escape(said) in page
        assert markdown_text(said) in text


def test_both_languages_show_every_cost(record):
    release = release_sections(record)
    page, text = release_html(release), release_markdown(release)
    assert sum(row.promised for row in release.costs.rows) == 1
    for row in release.costs.rows:
        for cell in (row.words, row.name, *row.costs, shown_guess(row.chance)):
            assert html.escape(cell) in page
            assert markdown_text(cell) in text


def test_only_a_promised_cost_is_called_promised():
    plain = release_sections(planned_record({"epsilon": 1}))
    assert plain.costs.tag == "promised"
    modelled = release_sections(RECORDS["correlated plan"]())
    assert modelled.costs.tag == "keeps the promise"
    assert "· keeps the promise" in release_html(modelled)
    assert "(keeps the promise)" in release_markdown(modelled)


def test_long_tables_say_that_they_scroll():
    record = finished_record({"epsilon": 1})
    answer = record["answers"][0]
    row = list(answer["rows"][0])
    answer["rows"] = [row] * 8
    assert "the table scrolls" not in release_html(release_sections(record))
    answer["rows"] = [row] * 9
    assert "9 rows: the table scrolls." in release_html(release_sections(record))


def test_a_report_is_its_sections_rendered(record):
    report, release = ReleaseReport(record), release_sections(record)
    assert report.to_html() == release_html(release)
    assert report.to_markdown() == release_markdown(release)


def test_a_plan_has_no_answers_and_a_run_has_one_for_each_query(record):
    release = release_sections(record)
    assert release.is_plan == (not record["answers"])
    assert all((q.answer is None) == release.is_plan for q in release.queries)
    assert len(release.queries) == len(record["plan"]["queries"])


def test_long_tables_are_cut_and_counted_once_for_both():
    record = finished_record({"epsilon": 1})
    answer = record["answers"][0]
    answer["rows"] = (list(answer["rows"]) * (MOST_ROWS + 1))[: MOST_ROWS + 5]
    release = release_sections(record)
    found = release.queries[0].answer
    assert (len(found.rows), found.total) == (MOST_ROWS, MOST_ROWS + 5)
    for shown in (release_html(release), release_markdown(release)):
        assert f"The first 2,000 of {MOST_ROWS + 5:,} cells" in shown
