"""The report of an audit: whole, honest, self-contained and safe to open."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser

import pytest

from undertow._version import __version__
from undertow.audit import AuditResult, Claim, MethodResult, audit_local
from undertow.audit.local import Curve, recorded_curve, repeated_curve
from undertow.errors import PlanError
from undertow.mechanisms.local import GeneralizedResponse
from undertow.report import AuditReport, verdict_sentence, write_whole
from undertow.report.audit import claim_words, shown_certificate
from undertow.results import Estimate, Witness

VOID = {"meta", "line", "circle", "polyline", "br"}
EVIL = "<script>alert('x')</script> | `code` & *more*"


def outcome(certified: float = 1.23456, claim: Claim | None = None) -> AuditResult:
    return AuditResult(
        EVIL,
        Claim.pure(1) if claim is None else claim,
        certified,
        confidence=0.99,
        trials=4000,
        epsilon_certified=certified,
        epsilon_estimate=1.4,
        advantage=Estimate(0.2, 0.1, 0.3, 0.99, 2000, 7, "limits"),
        methods=(
            MethodResult(EVIL, 1.4, certified, 2000, True, ceiling=5.5),
            MethodResult("pairs", 0.9, 0.3, 200),
        ),
        witness=Witness("event", EVIL),
        power={"trials_needed": 68, "ceiling": 5.0, "detectable": 1.1},
        baseline={"epsilon": 0.7},
        seed=7,
    )


CURVE = Curve(((1000, 0.9), (2000, 1.1), (4000, 1.23456)), "From somewhere.")
REPORT = AuditReport(
    outcome(),
    (("function", EVIL),),
    "peer 1.2",
    CURVE,
    title="OUE on 20 values",
    date="2026-11-15 12:00 UTC",
    command="undertow audit ldp --protocol oue",
)


class Reader(HTMLParser):
    """Check that every element is closed, and keep what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_report_says_what_was_run_what_came_out_and_what_it_cannot_show(form):
    page = getattr(REPORT, form)()
    text = read(page).text if form == "html" else page
    for words in (
        verdict_sentence(REPORT.result),
        "ε = 1, replacing one record",
        "1.2345",
        "0.99",
        "4000",
        "peer 1.2",
        __version__,
        "numpy",
        "LDP-Auditor",
        "What an audit cannot show",
        "Each point holds by itself",
        "Audit of OUE on 20 values",
        "2026-11-15 12:00 UTC",
        "undertow audit ldp --protocol oue",
        "What the words mean",
        "decides",
        "comparison only",
    ):
        assert words in text, words
    assert "1.2346" not in text


def test_rows_on_which_the_verdict_does_not_rest_are_shown_weaker():
    rows = [
        (attributes.get("class"), tag)
        for tag, attributes in read(REPORT.html()).seen
        if tag == "tr" and attributes.get("class")
    ]
    assert rows == [("aside", "tr")]
    page = REPORT.html()
    assert '<tr class="aside"><td>pairs</td>' in page
    assert "tr.aside {" in page


def test_a_report_without_date_and_command_has_no_empty_rows():
    page = AuditReport(outcome()).markdown()
    assert "| command |" not in page
    assert "| date |" not in page
    assert " on ." not in page


def test_notes_of_a_result_are_told_once():
    result = AuditResult(
        "code",
        Claim.pure(1),
        0.0,
        confidence=0.99,
        trials=10,
        epsilon_certified=0.0,
        notes=("all alike",),
    )
    for run in ((), (("note", "all alike"),)):
        page = AuditReport(result, run).markdown()
        assert page.count("all alike") == 1


def test_the_page_is_well_formed_and_loads_nothing():
    page = REPORT.html()
    reader = read(page)
    tags = {tag for tag, _ in reader.seen}
    assert not tags & {"script", "link", "img", "iframe", "object", "template"}
    assert "http" not in page
    assert "url(" not in page
    assert EVIL in reader.text


def test_the_page_fits_a_phone_and_both_schemes():
    page = REPORT.html()
    reader = read(page)
    names = [attributes.get("name") for tag, attributes in reader.seen if tag == "meta"]
    assert "viewport" in names
    for rule in ("max-width", "overflow-x: auto", "prefers-color-scheme: dark"):
        assert rule in page
    assert not re.search(r"\b(min-)?width: *[0-9]{3,}px", page)
    assert page.count('<div class="wide"><table>') == page.count("<table>")


def test_the_picture_has_the_points_the_claim_and_a_text_alternative():
    reader = read(REPORT.html())
    (svg,) = [attributes for tag, attributes in reader.seen if tag == "svg"]
    dots = [a for tag, a in reader.seen if tag == "circle"]
    claim, _legend = [a for t, a in reader.seen if a.get("class") == "claim"]
    assert svg["role"] == "img"
    assert "1.2345 after 4000 trials; above the claimed 1" in svg["aria-label"]
    heights = [float(dot["cy"]) for dot in dots]
    assert heights == sorted(heights, reverse=True)
    # Between the certificates 0.9 and 1.1 lies the claim.
    assert heights[0] > float(claim["y1"]) > heights[1]
    places = [float(dot["cx"]) for dot in dots]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


@pytest.mark.parametrize("top", [1e-4, 0.3, 1.0, 9.0, 1e5])
def test_a_picture_of_one_point_of_any_size_is_drawn(top):
    result = outcome(certified=top)
    report = AuditReport(result, curve=Curve(((1, top),), "Once."))
    reader = read(report.html())
    dots = [a for tag, a in reader.seen if tag == "circle"]
    assert len(dots) == 1
    assert 0 < float(dots[0]["cx"]) < 480
    assert 0 < float(dots[0]["cy"]) < 300


@pytest.mark.parametrize("certified", [0.0, 0.05, 0.5, 1.0, 3.0])
def test_no_label_leaves_the_picture_or_lies_on_the_axis(certified):
    curve = Curve(((10, certified), (20, certified)), "Twice.")
    page = AuditReport(outcome(certified), curve=curve).html()
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', page)
    assert all(0 <= float(x) <= 480 and 0 < float(y) < 320 for x, y, _ in labels)
    (low,) = [float(y) for _, y, words in labels if words.startswith("certified")]
    (axis,) = [float(y) for _, y, words in labels if words == "20"]
    assert low < axis - 10


def test_no_label_of_the_picture_crosses_a_line_or_another():
    """A letter is at most 10 units wide at the size of the picture."""
    page = REPORT.html()
    labels = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<', page
    )
    spans = []
    for x, y, anchor, words in labels:
        width = 10.0 * len(words)
        start = float(x) - (width if anchor == "end" else 0.0)
        spans.append((float(y), start, start + width, words))
    for k, (y, start, stop, words) in enumerate(spans):
        assert -12 <= start, words
        for other, low, high, _ in spans[:k]:
            assert abs(y - other) > 12 or stop < low or high < start, words
    lines = re.findall(r'<line class="claim" x1="([\d.]+)" y1="([\d.]+)"', page)
    inside = max(float(y) for _, y in lines)
    assert all(abs(y - inside) > 8 or stop <= 48 for y, _, stop, _ in spans)


def test_markdown_shows_names_as_they_are():
    page = REPORT.markdown()
    assert "<script>" not in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)
    assert r"\<script\>" in page


def test_what_is_not_known_is_left_out():
    bare = AuditResult(
        "code", Claim.pure(1), 0.5, confidence=0.9, trials=10, epsilon_certified=0.5
    )
    page = AuditReport(bare).markdown()
    assert "cannot be repeated" in page
    assert "witness" not in page
    assert "LDP-Auditor" not in page
    assert "<svg" not in AuditReport(bare).html()


def test_the_sentence_never_says_that_a_claim_is_true():
    said = verdict_sentence(outcome(0.5))
    assert said.startswith("The claim is not refuted: 4000 trials")
    assert "does not prove it" in said


def test_the_sentence_states_the_price_of_replacing_a_record():
    claim = Claim.approx(1, 1e-6, adjacency="add-remove")
    assert "2, which the claimed 1 is for replacing a record" in verdict_sentence(
        outcome(3.0, claim)
    )
    assert "δ = 3.7" in verdict_sentence(outcome(3.0, claim))
    assert claim_words(Claim.gaussian(0.5)) == "μ = 0.5, replacing one record"


def test_a_certificate_just_above_the_claim_is_shown_as_such():
    close = outcome(1.00000001)
    assert close.violated
    assert float(shown_certificate(close)) > 1


def test_a_curve_is_read_off_the_counts_of_the_run():
    looks = []
    protocol, claim = GeneralizedResponse(4, 1), Claim.pure(1, adjacency="local")

    def keep(done, total, counts):
        looks.append(counts)

    result = audit_local(
        protocol, claim, trials=50_000, seed=1, chunk=500, progress=keep
    )
    curve = recorded_curve(result, looks, categories=4)
    assert curve is not None
    assert curve.points[-1] == (result.trials - 2500, result.certified)
    assert len(curve.points) >= 4
    assert recorded_curve(result, looks[:-1], categories=4) is None
    assert recorded_curve(result, [], categories=4) is None
    assert curve.to_dict()["points"][-1]["certified"] == result.certified


def test_a_curve_of_smaller_audits_ends_where_these_are_too_small():
    protocol, claim = GeneralizedResponse(4, 1), Claim.pure(1, adjacency="local")

    def audit(trials: int) -> AuditResult:
        return audit_local(protocol, claim, trials=trials, seed=1)

    result = audit(64)
    curve = repeated_curve(audit, result)
    assert [n for n, _ in curve.points] == [8, 16, 32, 64]
    assert curve.points[0][1] == audit(8).certified
    assert curve.points[-1][1] == result.certified


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_whole(path, "one")
    assert path.read_text(encoding="utf-8") == "one"

    def refuse(part, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PlanError, match="No space left"):
        write_whole(path, "two")
    assert path.read_text(encoding="utf-8") == "one"
    assert os.listdir(tmp_path) == ["report.html"]


def test_an_interrupt_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    def interrupt(part, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.md", "one")
    assert os.listdir(tmp_path) == []


def test_the_picture_in_markdown_crosses_the_line_of_the_claim_if_refuted():
    lines = REPORT.markdown().split("```text\n")[1].split("\n```")[0].splitlines()
    bars = [line.split(" ", 1)[1].split("│") for line in lines[:-1]]
    assert [line.split()[0] for line in lines[:-1]] == ["1000", "2000", "4000"]
    assert len({len(left) for left, _ in bars}) == 1
    assert [right != "" for _, right in bars] == [False, True, True]
    assert bars[0][0].count("█") == 28  # of 32, for 0.9 of the claimed 1
    assert len(bars[1][1]) < len(bars[2][1])
    assert lines[-1].endswith("└ claimed ε = 1")


@pytest.mark.parametrize("certified", [0.0, 0.999_999, 1.0])
def test_no_bar_in_markdown_crosses_the_claim_without_a_refutation(certified):
    curve = Curve(((1000, 0.0), (4000, certified)), "From somewhere.")
    page = AuditReport(outcome(certified), curve=curve).markdown()
    bars = [line for line in page.splitlines() if "│" in line]
    assert len(bars) == 2
    assert all(line.endswith("│") for line in bars)
