"""The release report in a real browser: quiet, inert, sortable, and wide enough."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

from support.release_plans import COUNT, WINDOWED
from support.release_records import (
    EVIL,
    finished_record,
    hostile_record,
    planned_record,
)
from undertow.report import ReleaseReport

pytestmark = pytest.mark.browser

PAGES = ["hostile", "large", "plan", "wide"]


def wide_record():
    """Return a record whose names are long and cannot be broken anywhere."""
    record = hostile_record()
    record["title"] = record["command"] = "t" * 400
    for answer in record["answers"]:
        answer["name"] = "n" * 400
        answer["rows"] = [
            ["k" * 300 if k == EVIL else k for k in row] for row in answer["rows"]
        ]
    return record


def numbers_record():
    """Return a record whose numbers would sort otherwise if they were text."""
    record = finished_record({"epsilon": 1})
    values = [1234, -12, 0.25, -5000, 99, None]
    record["answers"][0]["rows"] = [[k, v, v, v] for k, v in enumerate(values)]
    return record


def labels_record():
    """Return a record whose charts have many labels, and labels near both edges."""
    days = {"day": "2026-01-01..2026-01-07"}
    both = {"sex": ["female", "male"]}
    grouped = {**COUNT, "by": ["day", "sex"], "keys": {**days, **both}}
    bins = {"column": "kg", "low": 0, "high": 110, "bins": 11}
    queries = [
        {**grouped, "name": "grouped"},
        {**COUNT, "name": "days", "by": ["day"], "keys": days},
        {**COUNT, "name": "two", "by": ["sex"], "keys": both},
        {"name": "bins", "select": "histogram", **bins},
    ]
    return finished_record({"epsilon": 1}, queries)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    keys = {"a": "0..49", "b": "0..40"}
    large = [{**COUNT, "by": ["a", "b"], "keys": keys}]
    records = {
        "hostile": hostile_record(),
        "large": finished_record({"epsilon": 1}, large),
        "plan": planned_record(
            {"rho": "0.1", "granularity": "w-event:24"},
            source=WINDOWED,
            as_of="2026-01-01T03:00",
        ),
        "wide": wide_record(),
        "numbers": numbers_record(),
        "labels": labels_record(),
    }
    for name, record in records.items():
        ReleaseReport(record).write(folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in records}


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(chromium, address, *, width=1000, **settings):
    """Open a page from its file; anything it says or asks for fails the test."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, **settings)
    said: list[str] = []
    asked: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda fault: said.append(str(fault)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.route(
        "**/*", lambda route: (asked.append(route.request.url), route.continue_())
    )
    page.goto(address)
    yield page
    context.close()
    assert said == []
    assert asked == [address]


def column(page, at, section=0):
    cells = page.locator("section").nth(section).locator(f"td:nth-child({at})")
    return cells.all_text_contents()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_overflows_and_the_page_is_quiet(chromium, pages, name, width, scheme):
    with opened(chromium, pages[name], width=width, color_scheme=scheme) as page:
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        spilling = page.evaluate(
            """width => [...document.querySelectorAll("main *")].filter(e =>
                 !e.closest(".box, .plot") && e.getBoundingClientRect().right > width)
               .map(e => e.outerHTML.slice(0, 80))""",
            width,
        )
        assert spilling == []


def test_tables_sort_by_click_and_the_chart_follows(chromium, pages):
    with opened(chromium, pages["hostile"]) as page:
        section = page.locator("section").first
        head = section.locator("th").nth(2)
        before = [int(text) for text in column(page, 3)]
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert [int(text) for text in column(page, 3)] == sorted(before)
        first = section.locator("tbody tr").first.get_attribute("data-i")
        mark = section.locator(f'.mark[data-i="{first}"]')
        assert mark.get_attribute("transform") == "translate(25 0)"
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert [int(text) for text in column(page, 3)] == sorted(before)[::-1]
        section.locator("th button").first.click()
        assert head.get_attribute("aria-sort") == "none"


def test_tables_sort_by_keyboard_and_text_as_text(chromium, pages):
    with opened(chromium, pages["hostile"]) as page:
        button = page.locator("section th button").nth(1)
        button.focus()
        page.keyboard.press("Enter")
        found = column(page, 2)
        assert found[0].startswith("<script>")
        assert found[4] == "a"
        page.keyboard.press("Space")
        assert column(page, 2)[0] == "west & east"
        outline = "e => getComputedStyle(e).outlineWidth"
        assert button.evaluate(outline) == "3px"


def test_numbers_sort_as_numbers(chromium, pages):
    with opened(chromium, pages["numbers"]) as page:
        page.locator("section th button").nth(1).click()
        assert column(page, 2) == ["-5,000", "-12", "0.25", "99", "1,234", "–"]
        assert column(page, 1) == ["3", "1", "2", "4", "0", "5"]


def test_a_large_table_sorts_whole(chromium, pages):
    with opened(chromium, pages["large"]) as page:
        page.locator("section th button").nth(1).click()
        found = [int(text) for text in column(page, 2)]
        assert len(found) == 2000
        assert found == sorted(found)


def test_the_chart_is_read_by_pointer_and_by_keyboard(chromium, pages):
    with opened(chromium, pages["hostile"]) as page:
        section = page.locator("section").nth(1)
        plot, said = section.locator(".plot"), section.locator(".readout")
        rows = [
            row.locator("td").all_text_contents()
            for row in section.locator("tbody tr").all()
        ]
        told = [f"hour {k}: {e}, between {a} and {b}" for k, e, a, b in rows]
        plot.hover()
        assert said.text_content() in told[1:3]
        assert section.locator(".mark.near").count() == 1
        plot.focus()
        for key, at in (("Home", 0), ("ArrowRight", 1), ("ArrowLeft", 0), ("End", 3)):
            page.keyboard.press(key)
            assert said.text_content() == told[at]
        page.keyboard.press("ArrowRight")
        assert said.text_content() == told[3]
        assert section.locator("tr.seen").count() == 1


def test_what_the_chart_says_of_a_hostile_key_is_text(chromium, pages):
    with opened(chromium, pages["hostile"]) as page:
        section = page.locator("section").first
        section.locator(".plot").focus()
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        assert "<script>alert(1)</script>" in section.locator(".readout").text_content()
        assert page.locator("script").count() == 1
        section.locator("th button").nth(1).click()
        assert page.locator("script").count() == 1


def test_the_policy_stops_a_script_that_is_not_the_page_s_own(chromium, pages):
    context = chromium.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(pages["hostile"])
    page.evaluate(
        """() => { const s = document.createElement("script");
                   s.textContent = "window.broken = 1"; document.body.append(s); }"""
    )
    assert page.evaluate("window.broken") is None
    assert any("Content Security Policy" in text for text in said)
    context.close()


def test_light_and_dark_differ_and_both_can_be_read(chromium, pages):
    papers = []
    for scheme in ("light", "dark"):
        with opened(chromium, pages["hostile"], color_scheme=scheme) as page:
            colours = page.evaluate(
                """() => { const s = getComputedStyle(document.documentElement);
                     return Object.fromEntries(["ink", "soft-ink", "mark", "warn",
                       "good", "paper", "card"].map(n =>
                       [n, s.getPropertyValue("--" + n).trim()])); }"""
            )
            body = "getComputedStyle(document.body).backgroundColor"
            papers.append(page.evaluate(body))
        for behind in ("paper", "card"):
            for front in ("ink", "soft-ink", "mark", "warn"):
                assert contrast(colours[front], colours[behind]) >= 4.5, (front, behind)
    assert papers[0] != papers[1]


def contrast(front: str, behind: str) -> float:
    """Return the ratio that WCAG defines for two colours such as ``#1a2330``."""
    light, dark = sorted((luminance(front), luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_paper_shows_whole_tables_in_light_colours(chromium, pages):
    with opened(chromium, pages["hostile"], color_scheme="dark") as page:
        assert page.pdf(format="A4").startswith(b"%PDF")
        page.emulate_media(media="print", color_scheme="dark")
        body = "getComputedStyle(document.body)"
        assert page.evaluate(f"{body}.backgroundColor") == "rgb(255, 255, 255)"
        box = page.locator("section .box").first
        assert box.evaluate("e => getComputedStyle(e).maxHeight") == "none"
        assert not page.locator(".readout").first.is_visible()
        # Buttons are not repeated on the next page, so that names stand for them.
        head = page.locator("section th").first
        assert not head.locator("button").is_visible()
        named = "e => getComputedStyle(e, '::before').content"
        assert head.evaluate(named) == '"day"'


def test_the_page_can_be_read_without_scripts(chromium, pages):
    with opened(chromium, pages["hostile"], java_script_enabled=False) as page:
        assert page.locator("section tbody tr").count() == 25
        assert page.locator("h2").first.text_content() == "What was promised"


def test_assistive_programs_find_names_for_charts_tables_and_the_page(chromium, pages):
    with opened(chromium, pages["hostile"]) as page:
        assert page.locator("html").get_attribute("lang") == "en"
        pictures = page.get_by_role("img")
        assert pictures.count() == 2
        for picture in pictures.all():
            assert "cells with intervals" in picture.get_attribute("aria-label")
        assert page.get_by_role("heading", level=1).count() == 1
        assert page.get_by_role("table").count() == 3 + 2
        for region in page.get_by_role("region").all():
            assert region.get_attribute("aria-label")


@pytest.mark.parametrize("width", [400, 1200])
def test_labels_of_cells_are_whole_and_apart_also_after_sorting(chromium, pages, width):
    with opened(chromium, pages["labels"], width=width) as page:
        for section in page.locator("section").all():
            plot = section.locator(".plot").bounding_box()
            check_labels(section, plot)
        two = page.locator("section").nth(2).locator(".label.x")
        assert [label.is_visible() for label in two.all()] == [True, True]
        grouped = page.locator("section").first
        grouped.locator("th button").nth(1).click()
        label = grouped.locator(".label.x").first
        row = grouped.locator("tbody tr").nth(int(label.get_attribute("data-at")))
        named = grouped.locator(f'.mark[data-i="{row.get_attribute("data-i")}"]')
        at = named.evaluate("e => e.transform.baseVal[0].matrix.e / 10")
        assert label.evaluate(
            "e => parseFloat(e.style.getPropertyValue('--at'))"
        ) == pytest.approx(at, abs=0.01)


def check_labels(section, plot):
    """Require that no label of a chart is cut, spills, or touches another one."""
    labels = [one for one in section.locator(".label.x").all() if one.is_visible()]
    assert len(labels) > 1
    end = plot["x"] - 1
    for label in labels:
        box = label.bounding_box()
        assert label.evaluate("e => e.scrollWidth <= e.clientWidth")
        assert box["x"] >= end
        end = box["x"] + box["width"]
    assert end <= plot["x"] + plot["width"] + 1
