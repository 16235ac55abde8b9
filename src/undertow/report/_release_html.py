"""The report of a release as one HTML page, with charts and tables that sort.

The page may run its own script, which it names by its digest, and nothing else; charts
are drawn without any library.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from undertow.report._release_section import (
    GUESSES,
    MEANING,
    NO_RISK,
    Answer,
    Correlation,
    Costs,
    Query,
    Release,
    RiskCard,
)
from undertow.report._release_words import (
    shown_cell,
    shown_guess,
    shown_level,
    shown_text,
)

# Rows of a table that are seen at once, on any screen.
_WITHOUT_SCROLLING = 8
_BLIND = "The first part of a bar: right by blind guessing."


def release_html(release: Release) -> str:
    """Return the report of a release as one self-contained HTML page."""
    body = [
        *_opening(release),
        *_costs(release.costs),
        *_correlation(release.correlation),
        *_risk(release.risk),
        *(_expected(release) if release.is_plan else _results(release)),
        *_fine_print(release),
    ]
    return release_shell(release.title, body)


def _opening(release: Release) -> list[str]:
    parts = [*_run(release), f'<p class="lead">{html.escape(release.made)}</p>']
    if release.is_plan:
        parts.append(
            '<p class="warning"><strong>This is a plan.</strong> No data were read and '
            "nothing was charged.</p>"
        )
    if release.simulated:
        parts.append(
            '<p class="warning"><strong>The noise was simulated.</strong> It can be '
            "computed again and taken off: do not publish these numbers.</p>"
        )
    words = html.escape(release.promise)
    return [*parts, "<h2>What was promised</h2>", f'<p class="promise">{words}</p>']


def _run(release: Release) -> list[str]:
    """Return the times that the numbers are for, where they are known."""
    return [f'<p class="run">{html.escape(release.run)}</p>'] if release.run else []


def _costs(costs: Costs) -> list[str]:
    rows, marked = [], None
    for number, row in enumerate(costs.rows):
        marked = number if row.promised else marked
        tag = f" · {costs.tag}" if row.promised else ""
        what = f"{html.escape(row.words)}<code>{html.escape(row.name)}{tag}</code>"
        rows.append([what, *row.costs, _guess(row.chance)])
    header = ["what may change", *costs.heads, GUESSES]
    return [
        "<h2>What it costs</h2>",
        f"<p>{costs.of}, as a statement about smaller and larger changes of the "
        f"table. In bold: {costs.promised}</p>",
        plain_table(rows, header=header, marked=marked),
        f'<p class="quiet">{MEANING} {_BLIND}</p>',
    ]


def _guess(chance: float) -> str:
    return f"{shown_guess(chance)}{meter(chance)}"


def _correlation(correlation: Correlation) -> list[str]:
    parts = [
        "<h2>What a correlated attacker learns</h2>",
        f"<p>{html.escape(correlation.words)}</p>",
    ]
    if not correlation.levels:
        return parts
    rows = [[one.case, one.loss, _guess(one.chance)] for one in correlation.levels]
    table = plain_table(rows, header=("if", "at most", GUESSES), marked=1)
    return [*parts, table, facts_list(correlation.facts)]


def _risk(card: RiskCard | None) -> list[str]:
    parts = ["<h2>Risk card</h2>"]
    if card is None:
        return [*parts, f"<p>{NO_RISK}</p>"]
    return [
        *parts,
        '<div class="card">',
        f'<p class="big">{html.escape(card.points)} <small>percentage points at '
        "most</small></p>",
        f"<p>{html.escape(card.sentence)}</p>",
        meter(card.reached, blind=card.baseline),
        f'<p class="quiet">{_BLIND}</p>',
        facts_list(card.facts),
        "</div>",
    ]


def _expected(release: Release) -> list[str]:
    facts = [(shown_text(query.name), query.words) for query in release.queries]
    heading = "<h2>What it will answer, and how well</h2>"
    return [heading, *_counted(release), facts_list(facts)]


def _counted(release: Release) -> list[str]:
    """Return which rows count, before any number is read."""
    return [sentence_list(release.counted)] if release.counted else []


def _results(release: Release) -> list[str]:
    parts = ["<h2>Results</h2>", *_run(release), *_counted(release)]
    for query in release.queries:
        if query.answer is not None:
            parts += _answer(query, query.answer)
    return parts


def _answer(query: Query, answer: Answer) -> list[str]:
    parts = [
        "<section>",
        f"<h3><bdi>{html.escape(shown_text(query.name))}</bdi></h3>",
        f'<p class="quiet">{html.escape(query.words)}</p>',
    ]
    if answer.total > len(answer.rows):
        parts.append(
            f'<p class="warning">The first {len(answer.rows):,} of {answer.total:,} '
            "cells are shown; all of them are in the file of the table.</p>"
        )
    parts.append(_picture(query.name, answer))
    parts.append(answer_table(query.name, answer.columns, answer.rows))
    if len(answer.rows) > _WITHOUT_SCROLLING:
        parts.append(
            f'<p class="quiet screen">{len(answer.rows):,} rows: the table scrolls.</p>'
        )
    if answer.notes:
        parts.append(sentence_list(answer.notes))
    return [*parts, "</section>"]


def _picture(name: str, answer: Answer) -> str:
    """Return the chart of an answer; of a single number, the number."""
    if answer.total == 1:
        return _single(answer.rows[0], answer.unit, answer.confidence)
    if not answer.total:
        return "<p>No key was released: none was there often enough.</p>"
    drawn = {
        "name": name,
        "columns": list(answer.columns),
        "confidence": answer.confidence,
    }
    return cell_chart(drawn, answer.rows, unit=answer.unit, by=answer.by)


def _single(row: Sequence[Any], unit: str, confidence: float) -> str:
    estimate, low, high = (html.escape(shown_cell(value)) for value in row[-3:])
    return (
        f'<p><span class="big">{estimate} <small>{html.escape(unit)}</small></span> '
        f"between {low} and {high} with {shown_level(confidence)} confidence</p>"
    )


def _fine_print(release: Release) -> list[str]:
    return [
        "<h2>What is not protected</h2>",
        sentence_list(release.unprotected),
        "<h2>Assumptions</h2>",
        "<h3>Checked</h3>",
        sentence_list(release.checked),
        "<h3>Not checked: taken on trust</h3>",
        sentence_list(release.unchecked),
        "<h2>Theorems</h2>",
        sentence_list(release.theorems),
        "<h2>How it was made</h2>",
        facts_list(release.facts),
    ]


# The parts of a release report in HTML: shell, tables that sort, bars and lists.

# Characters of a key up to which it stays on one line.
_SHORT = 24


@cache
def _resource(name: str) -> str:
    return (resources.files("undertow.report") / name).read_text("utf-8")


def release_shell(title: str, body: Sequence[str]) -> str:
    """Return a whole page; the parts of `body` are HTML already.

    The page may run its own script, which it names by its digest, and nothing else.

    Examples
    --------
    >>> page = release_shell("1 < 2", [])
    >>> "<title>1 &lt; 2</title>" in page, "http:" in page, "https:" in page
    (True, False, False)
    """
    style, script = _resource("release.css"), _resource("release.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    shown, inside = html.escape(title), "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{shown}</h1>\n{inside}\n</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def sentence_list(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    lines = "\n".join(f"<li>{html.escape(item)}</li>" for item in items)
    return f"<ul>\n{lines}\n</ul>"


def facts_list(facts: Sequence[tuple[str, str]]) -> str:
    """Return headings with their texts."""
    lines = "\n".join(
        f"<dt>{html.escape(name)}</dt>\n<dd><bdi>{html.escape(text)}</bdi></dd>"
        for name, text in facts
    )
    return f"<dl>\n{lines}\n</dl>"


def meter(chance: float, *, blind: float = 0.5) -> str:
    """Return a bar of a chance, the part that blind guessing reaches paler."""
    reached, base = 100 * min(1.0, chance), 100 * min(1.0, blind)
    return (
        '<span class="meter" aria-hidden="true">'
        f'<span style="width: {reached:.2f}%"></span>'
        f'<i style="width: {min(base, reached):.2f}%"></i></span>'
    )


def plain_table(
    rows: Sequence[Sequence[str]], *, header: Sequence[str], marked: int | None = None
) -> str:
    """Return a table whose cells are HTML already; the row `marked` stands out."""
    heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    lines = []
    for number, row in enumerate(rows):
        kind = ' class="promised"' if number == marked else ""
        first, *rest = row
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        lines.append(f'<tr{kind}><td class="long">{first}</td>{cells}</tr>')
    inside = "\n".join(lines)
    return (
        '<div class="box whole" tabindex="0" role="region" aria-label="Table">\n'
        f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{inside}\n</tbody>\n"
        "</table>\n</div>"
    )


def answer_table(name: str, columns: Sequence[str], rows: Sequence[Any]) -> str:
    """Return the answers of a query as a table whose headings sort it.

    Parameters
    ----------
    name : str
        Of the query.
    columns : sequence of str
        Keys, then estimate, low and high.
    rows : sequence of sequences
        The rows that are shown.
    """
    keys = len(columns) - 3
    heads = "".join(
        f'<th scope="col" aria-sort="none"{_kind(at >= keys)} data-name="{column}">'
        f'<button type="button">{column}</button></th>'
        for at, column in enumerate(html.escape(shown_text(name)) for name in columns)
    )
    lines = "\n".join(
        f'<tr data-i="{number}">'
        + "".join(_cell(value, key=at < keys) for at, value in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    label = html.escape(shown_text(name))
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{label}: table">\n'
        f'<table class="sortable">\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>\n</div>"
    )


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""


def _cell(value: Any, *, key: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = shown_cell(value)
        kind = "long" if len(shown) > _SHORT else "key" if key else "number"
        return f'<td class="{kind}"><bdi>{html.escape(shown)}</bdi></td>'
    shown = str(value) if key else shown_cell(value)
    raw = html.escape(json.dumps(value))
    return f'<td{_kind(not key)} data-v="{raw}">{html.escape(shown)}</td>'


# Released cells with their intervals, drawn without any library.
#
# The picture stretches with the page and its words do not: dots and lines keep their
# width, and the labels are text beside the picture.

_WIDTH, _HEIGHT = 1000, 100
_MOST_LABELS, _MOST_EDGES = 7, 40
_MOST_NARROW = 3
_BILLION = 1e9
# The width of a letter, in percent of the chart on the narrowest screen.
_LETTER = 2.6
# Thickness of a dot and of an interval, by the number of cells they go up to.
_THICK = ((60, "8px", "4px"), (200, "5px", "2px"), (math.inf, "3px", "1px"))

Rows = Sequence[Sequence[Any]]


def key_words(names: Sequence[str], keys: Sequence[Any]) -> str:
    """Name a cell by its keys."""
    pairs = zip(names, keys, strict=True)
    return ", ".join(f"{shown_text(n)} {_key(k)}" for n, k in pairs)


def _key(value: Any) -> str:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if plain else shown_cell(value)


def _number(value: Any) -> float | None:
    """Return a finite number, or None where there is none to draw."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis of the estimates."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, rows: Rows) -> _Scale:
        ends = [_number(value) for row in rows for value in row[-3:]]
        drawn = [end for end in ends if end is not None] or [0.0, 1.0]
        low, high = min(drawn), max(drawn)
        if 0 < low < high / 2:
            low = 0.0
        elif low / 2 < high < 0:
            high = 0.0
        if high == low:
            low, high = low - 1, high + 1
        step = _step(high - low)
        return cls(step * math.floor(low / step), step * math.ceil(high / step), step)

    def y(self, value: float) -> float:
        return round(_HEIGHT * (self.high - value) / (self.high - self.low), 2)

    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + k * self.step for k in range(count + 1)]


def _step(span: float) -> float:
    power = 10.0 ** math.floor(math.log10(span))
    return next(power * k for k in (0.2, 0.25, 0.5, 1.0, 2.0) if span <= 5 * power * k)


def chart_words(answer: dict[str, Any], rows: Rows) -> str:
    """Say what the chart shows, for whoever does not see it."""
    names = answer["columns"][:-3]
    drawn = [row for row in rows if _number(row[-3]) is not None]
    if not drawn:
        return "No cell has an estimate."
    least = min(drawn, key=lambda row: row[-3])
    most = max(drawn, key=lambda row: row[-3])
    ends = [
        f"{shown_cell(row[-3])} ({key_words(names, row[:-3])})" for row in (least, most)
    ]
    return (
        f"{len(rows):,} cells with intervals of {shown_level(answer['confidence'])} "
        f"confidence; estimates from {ends[0]} to {ends[1]}. The table has all of them."
    )


def cell_chart(
    answer: dict[str, Any], rows: Rows, *, unit: str, by: Sequence[str] | None = None
) -> str:
    """Return the chart of a query's answer as a figure.

    Parameters
    ----------
    answer : dict
        Name, columns and confidence of the answer.
    rows : sequence of sequences
        Keys, estimate, low and high of the cells that are shown, in order.
    unit : str
        What the numbers count.
    by : sequence of str, optional
        What the cells are parted by; by default the columns of their keys.
    """
    scale = _Scale.over(rows)
    words = html.escape(chart_words(answer, rows))
    name = html.escape(shown_text(answer["name"]))
    dot, thick = next((d, t) for most, d, t in _THICK if len(rows) <= most)
    labels = _axis_labels(scale) + _cell_labels(rows)
    level = shown_level(answer["confidence"])
    keys = ", ".join(answer["columns"][:-3] if by is None else by)
    axes = html.escape(shown_text(f"{unit} by {keys}" if keys else unit))
    return "\n".join(
        [
            f'<figure style="--dot: {dot}; --thick: {thick}">',
            f'<p class="unit" aria-hidden="true">{axes}</p>',
            '<div class="plot" tabindex="0" role="group" aria-roledescription="chart" '
            f'aria-label="{name}: the arrow keys read cell after cell">',
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" '
            f'role="img" aria-label="{words}">',
            *_grid(scale),
            *_edges(rows),
            *(_mark(at, row, len(rows), scale) for at, row in enumerate(rows)),
            "</svg>",
            *labels,
            "</div>",
            '<output class="readout" aria-live="polite">Point at the chart, touch it, '
            "or use the arrow keys, to read a cell.</output>",
            f"<figcaption>Dots: estimates. Lines: intervals of {level} confidence, "
            'each by itself. <span class="screen">The chart follows the order of the '
            "table.</span></figcaption>",
            "</figure>",
        ]
    )


def _grid(scale: _Scale) -> list[str]:
    return [
        f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{scale.y(t)}" y2="{scale.y(t)}"/>'
        for t in scale.ticks()
    ]


def _mark(at: int, row: Sequence[Any], count: int, scale: _Scale) -> str:
    estimate, low, high = (_number(value) for value in row[-3:])
    place = round(_WIDTH * (at + 0.5) / count, 2)
    parts = []
    if low is not None and high is not None:
        parts.append(f'<path class="span" d="M0 {scale.y(low)}V{scale.y(high)}"/>')
    if estimate is not None:
        parts.append(f'<path class="dot" d="M0 {scale.y(estimate)}h0"/>')
    inside = "".join(parts)
    return (
        f'<g class="mark" data-i="{at}" transform="translate({place} 0)">{inside}</g>'
    )


def _groups(rows: Rows) -> list[int]:
    """Return where the first key changes, or nothing if that says nothing."""
    if not rows or len(rows[0]) < 5:
        return []
    starts = [at for at, row in enumerate(rows) if not at or row[0] != rows[at - 1][0]]
    return starts if 1 < len(starts) <= len(rows) / 2 else []


def _edges(rows: Rows) -> list[str]:
    starts = _groups(rows)
    if len(starts) > _MOST_EDGES:
        return []
    places = [round(_WIDTH * at / len(rows), 2) for at in starts[1:]]
    return [
        f'<line class="edge" x1="{x}" x2="{x}" y1="0" y2="{_HEIGHT}"/>' for x in places
    ]


def _axis_labels(scale: _Scale) -> list[str]:
    return [
        f'<span class="label y" aria-hidden="true" style="top: {scale.y(tick)}%">'
        f"{_tick_words(tick)}</span>"
        for tick in scale.ticks()
    ]


def _tick_words(tick: float) -> str:
    if abs(tick) >= _BILLION:
        return f"{tick:.4g}"
    return f"{tick / 1e6:,.6g} M" if abs(tick) >= 1e6 else f"{tick:,.8g}"


@dataclass(frozen=True, slots=True)
class _Label:
    """The name of a cell or of a group: a row of it, its middle in percent, words."""

    row: int
    middle: float
    words: str


def _cell_labels(rows: Rows) -> list[str]:
    """Return the names of some cells or groups, of fewer of them on a narrow screen."""
    labels = _chosen(rows)
    kept = _narrow(labels)
    return [
        f'<span class="label x{"" if label in kept else " more"}" aria-hidden="true" '
        f'data-at="{label.row}" style="--at: {label.middle:.2f}%; '
        f"--letters: {len(label.words)}; --room: {_room(label, labels):.2f}%; "
        f'--narrow: {_room(label, kept):.2f}%">'
        f"<bdi>{html.escape(label.words)}</bdi></span>"
        for label in labels
    ]


def _chosen(rows: Rows) -> list[_Label]:
    """Return the labels that a wide screen has room for."""
    starts, count = _groups(rows), len(rows)
    spans = list(pairwise([*(starts or range(count)), count]))
    return [
        _Label(
            (first + stop) // 2,
            50 * (first + stop) / count,
            _words(rows[first][:1] if starts else rows[first][:-3]),
        )
        for first, stop in spans[:: math.ceil(len(spans) / _MOST_LABELS)]
    ]


def _words(keys: Sequence[Any]) -> str:
    return ", ".join(_key(key) for key in keys)


def _narrow(labels: Sequence[_Label]) -> Sequence[_Label]:
    """Return the labels of a narrow screen: few enough to be read whole, if two are."""
    first = 2 if len(labels) > _MOST_NARROW else 1
    tried = [labels[::step] for step in range(first, len(labels))]
    return next((some for some in tried if _fit(some)), labels[::first])


def _fit(labels: Sequence[_Label]) -> bool:
    """Tell whether all labels have room on a narrow screen."""
    return all(_LETTER * len(one.words) <= _room(one, labels) for one in labels)


def _room(label: _Label, labels: Sequence[_Label]) -> float:
    """Return the width a label may have without touching others, in percent.

    It has half the way to its neighbours on both sides. Near the edge of the chart,
    where it is moved inwards, it has what is left between the edge and that half way.
    """
    middle = label.middle
    ways = [abs(other.middle - middle) / 2 for other in labels if other != label]
    half, edge = min(ways, default=100.0), min(middle, 100 - middle)
    return min(2 * half, half + edge, 100.0)
