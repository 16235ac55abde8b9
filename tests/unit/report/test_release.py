"""The report of a release: whole, in order, honest, and safe to open."""

from __future__ import annotations

import itertools
import json
import re
import stat
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from support.release_plans import COUNT, WINDOWED
from support.release_records import (
    CHARGE,
    EVIL,
    finished_record,
    hostile_record,
    planned_record,
)
from undertow.errors import PlanError
from undertow.release import from_table
from undertow.report import ReleaseReport
from undertow.report.page import markdown_text
from undertow.report.release import release_page

VOID = {"meta", "line", "path", "br"}
HEADINGS = [
    "What was promised",
    "What it costs",
    "What a correlated attacker learns",
    "Risk card",
    "Results",
    "What is not protected",
    "Assumptions",
    "Theorems",
    "How it was made",
]


class Reader(HTMLParser):
    """Check that every element is closed, and keep what is there."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if any(re.fullmatch("h[1-6]", tag) for tag in self.open):
            level, before = self.headings[-1]
            self.headings[-1] = (level, before + data)
        if "script" not in self.open and "style" not in self.open:
            self.text += data

    def count(self, tag: str, **attributes: str) -> int:
        wanted = attributes.items()
        return sum(t == tag and wanted <= a.items() for t, a in self.seen)


@pytest.fixture(scope="module")
def hostile():
    return hostile_record()


@pytest.fixture(scope="module")
def page(hostile):
    return Reader(release_page(hostile))


def test_the_sections_come_in_order_and_no_heading_level_is_skipped(page):
    assert [text for level, text in page.headings if level == 2] == HEADINGS
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_nothing_of_the_data_or_the_file_becomes_markup(page, hostile):
    assert page.count("script") == 1
    assert "<script>alert(1)</script>" in page.text
    allowed = {"class", "style", "data-i", "data-v", "data-at", "data-name"}
    allowed |= {"tabindex", "role"}
    allowed |= {"scope", "type", "transform", "d", "x1", "x2", "y1", "y2", "viewbox"}
    allowed |= {"preserveaspectratio", "lang", "charset", "content", "name"}
    for tag, attributes in page.seen:
        for name in attributes:
            assert name in allowed or name.startswith("aria-") or tag == "meta", name
    assert "\u202e" not in release_page(hostile)
    assert "⟨U+202E⟩" in page.text


def test_the_page_loads_nothing_and_runs_its_own_script_alone(hostile):
    text = release_page(hostile)
    policy = re.search(r'Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy[1])
    assert not re.search(r"(src|href)=|url\(|@import|https?:", text)


def test_the_ledger_entry_command_date_and_versions_are_there(page, hostile):
    for text in (CHARGE["hash"], CHARGE["key"], "entry 7", "undertow release run x"):
        assert text in page.text
    assert hostile["plan"]["fingerprint"] in page.text
    assert hostile["versions"]["duckdb"] in page.text
    assert hostile["made"][:10] in page.text


def test_every_cell_has_a_row_and_a_mark_and_one_cell_is_a_number(page, hostile):
    cells = [len(answer["rows"]) for answer in hostile["answers"]]
    assert cells == [20, 4, 1]
    assert page.count("tr", **{"data-i": "0"}) == 3
    assert page.count("g", **{"class": "mark"}) == 24
    assert page.count("svg", role="img") == 2
    assert page.count("th", **{"aria-sort": "none"}) == 5 + 4 + 3


def test_large_tables_are_cut_and_say_so():
    keys = {"a": "0..49", "b": "0..40"}
    record = finished_record(
        {"epsilon": 1}, [{**COUNT, "by": ["a", "b"], "keys": keys}]
    )
    found = Reader(release_page(record))
    assert "The first 2,000 of 2,050 cells" in found.text
    assert found.count("g", **{"class": "mark"}) == 2000
    markdown = ReleaseReport(record).to_markdown()
    assert "The first 2,000 of 2,050 cells" in markdown
    assert markdown.count("\n| ") < 2050


def test_a_plan_says_that_nothing_was_read_or_charged():
    record = planned_record({"epsilon": 1, "delta": "1e-6"})
    found = Reader(release_page(record))
    assert "This is a plan. No data were read" in found.text
    assert "none: nothing was charged" in found.text
    assert "secure source" not in found.text
    assert "± " in found.text
    assert found.count("table", **{"class": "sortable"}) == 0
    assert "no data were read" in ReleaseReport(record).to_markdown()


def test_simulated_noise_is_not_to_be_published():
    record = finished_record({"epsilon": 1})
    record["answers"][0]["simulated"] = True
    text = "do not publish these numbers"
    assert text in release_page(record)
    assert text in ReleaseReport(record).to_markdown()
    assert "secure source" not in release_page(record)


def test_a_release_without_keys_that_were_there_often_enough_is_shown():
    record = finished_record({"epsilon": 1})
    record["answers"][0]["rows"] = []
    assert "No key was released" in release_page(record)


def test_a_real_run_gives_a_report_in_both_formats(tmp_path):
    visits = pa.table({"person": [1, 2, 2, 3], "zone": ["A", "A", "B", None]})
    release = from_table(
        visits,
        {
            "source": {"unit": "person"},
            "promise": {"granularity": "user", "epsilon": "1"},
            "bounds": {"rows_per_unit": 2},
            "queries": [
                {
                    "name": "visits",
                    "select": "count",
                    "by": ["zone"],
                    "keys": {"zone": ["A", "B", "C"]},
                }
            ],
        },
        title="visits",
    )
    with release.create_ledger(tmp_path / "v.ledger") as ledger:
        done = release.run(ledger=ledger, output=tmp_path / "out")
    report = ReleaseReport(json.loads(json.dumps(done.record)))
    for name in ("r.html", "r.HTM", "r.md"):
        report.write(tmp_path / name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    estimate = f"{done.answers[0]['rows'][2][-3]:,}"
    for name in ("r.html", "r.md"):
        assert estimate in (tmp_path / name).read_text(encoding="utf-8")
    assert sorted(p.name for p in tmp_path.glob(".*")) == []


def test_a_report_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    report = ReleaseReport(planned_record({"epsilon": 1}))
    with pytest.raises(PlanError, match=r"report must end with \.html or \.md"):
        report.write(tmp_path / "r.pdf")
    with pytest.raises(PlanError, match="report must be a file that can be written"):
        report.write(tmp_path / "no" / "r.html")
    (tmp_path / "r.html").mkdir()
    with pytest.raises(PlanError, match="report must be a file that can be written"):
        report.write(str(tmp_path / "r.html"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_markdown_has_the_same_sections_and_escapes(hostile):
    text = ReleaseReport(hostile).to_markdown()
    found = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    kept = [name for name in HEADINGS if name != "Assumptions"]
    assert [name for name in found if "Assumptions" not in name] == kept
    assert "<script>" not in text
    assert "\\<script\\>" in text
    assert EVIL not in text


def test_costs_of_all_runs_stand_beside_those_of_one():
    record = planned_record(
        {"rho": "0.1", "granularity": "w-event:24"},
        source=WINDOWED,
        as_of="2026-01-01T03:00",
    )
    page = release_page(record)
    assert "cost of all 48 runs" in page
    assert "cost of all 48 runs" in ReleaseReport(record).to_markdown()
    # All data of a person cost what all runs cost, not what one does.
    assert "all of them together cost ρ = 0.2;" in page


DAYS = {**WINDOWED, "per": {"window": "1d"}, "horizon": "7d"}
FOURTH = "2026-01-04 00:00 to 2026-01-05 00:00 UTC"


def fourth_day(queries):
    promise = {"epsilon": 1, "granularity": "event"}
    record = planned_record(promise, queries, source=DAYS, as_of="2026-01-05")
    rows = [["a", 1, 0, 2], ["b", 1, 0, 2]]
    columns = ["hour", "estimate", "low", "high"]
    named = {"columns": columns, "rows": rows, "confidence": 0.95, "notes": []}
    record["answers"] = [
        {"name": query["name"], "simulated": False, **named} for query in queries
    ]
    return record


def without_times(record):
    """Return a record as versions stored it that named no times."""
    plan = dict(record["plan"])
    kept = [{**query} for query in plan["queries"]]
    for part in (plan, *kept):
        del part["from"], part["until"]
    return {**record, "plan": {**plan, "queries": kept}}


def test_a_run_of_several_says_at_its_top_and_with_its_results_which_day_it_is_for():
    page = release_page(fourth_day([COUNT]))
    said = f'<p class="run">Run 4 of 7: {FOURTH}.</p>'
    assert page.count(said) == 2
    assert page.index(said) < page.index("What was promised")
    assert page.rindex(said) > page.index("<h2>Results</h2>")
    assert f"4 cells; {FOURTH}." in page
    assert f"<bdi>4 of 7: {FOURTH}</bdi>" in page
    assert "<p>This run, one of 7, and all of them together, as a" in page
    assert "<p>One release, as a" not in page
    text = ReleaseReport(fourth_day([COUNT])).to_markdown()
    assert text.count(markdown_text(f"Run 4 of 7: {FOURTH}.")) == 2


def test_running_totals_are_for_all_days_from_the_first_on():
    page = release_page(fourth_day([COUNT, {**COUNT, "name": "r", "running": True}]))
    assert f"{FOURTH}; running totals from 2026-01-01 00:00 UTC on." in page
    assert f"4 cells; {FOURTH}." in page
    assert "running total; 2026-01-01 00:00 to 2026-01-05 00:00 UTC." in page


def test_a_release_of_some_times_says_which_and_one_of_all_says_nothing():
    days = {"table": "t.csv", "unit": "p", "time": "ts", "start": "2026-01-01T08:00:30"}
    record = planned_record({"epsilon": 1}, source={**days, "horizon": "1d"})
    page = release_page(record)
    assert "Times read: 2026-01-01 08:00:30 to 2026-01-02 08:00:30 UTC." in page
    assert "<p>One release, as a" in page
    open_end = release_page(planned_record({"epsilon": 1}, source=days))
    assert "Times read: 2026-01-01 08:00:30 UTC and later." in open_end
    assert 'class="run"' not in release_page(planned_record({"epsilon": 1}))


def test_records_that_name_no_times_are_shown_without_them():
    record = without_times(fourth_day([COUNT]))
    page = release_page(record)
    assert page.count('<p class="run">Run 4 of 7.</p>') == 2
    assert "2026-01-04" not in page
    assert "Run 4 of 7." in ReleaseReport(record).to_markdown()
    whole = without_times(planned_record({"epsilon": 1}))
    assert 'class="run"' not in release_page(whole)


def test_the_bins_of_a_histogram_are_named_by_the_column_that_is_cut():
    bins = {"column": "kg", "low": 0, "high": 100, "bins": 4}
    both = {"by": ["sex"], "keys": {"sex": ["f", "m"]}}
    queries = [
        {"name": "all", "select": "histogram", **bins},
        {"name": "each", "select": "histogram", **bins, **both},
    ]
    page = release_page(finished_record({"epsilon": 1}, queries))
    assert ">rows by kg</p>" in page
    assert ">rows by sex, kg</p>" in page
    assert "by from, to" not in page
