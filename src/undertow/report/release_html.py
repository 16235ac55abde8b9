"""The report of a release as one HTML page, with charts and tables that sort."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from undertow.report.release_chart import cell_chart
from undertow.report.release_parts import (
    answer_table,
    facts_list,
    meter,
    plain_table,
    release_shell,
    sentence_list,
)
from undertow.report.release_sections import (
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
from undertow.report.release_words import (
    shown_cell,
    shown_guess,
    shown_level,
    shown_text,
)

__all__ = ["release_html"]

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
