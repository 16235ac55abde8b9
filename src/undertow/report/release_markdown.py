"""The report of a release as Markdown: the same words, charts left to their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from undertow.report.page import (
    markdown_list,
    markdown_table,
    markdown_terms,
    markdown_text,
)
from undertow.report.release_facts import (
    checked,
    correlation_words,
    made_facts,
    query_words,
    risk_facts,
    theorems,
    unchecked,
    unprotected,
)
from undertow.report.release_parts import MOST_ROWS
from undertow.report.release_words import (
    Record,
    cost_rows,
    promise_sentence,
    shown_cell,
    shown_guess,
    shown_text,
)

__all__ = ["release_markdown"]


def release_markdown(record: Record) -> str:
    """Return the report of a release as Markdown."""
    parts = [
        f"# Private release: {markdown_text(shown_text(record['title']))}",
        *_state(record),
        "## What was promised",
        f"**{markdown_text(promise_sentence(record))}**",
        "## What it costs",
        _costs(record),
        *_correlation(record),
        *_risk(record),
        "## Results" if record["answers"] else "## Queries",
        *_queries(record),
        "## What is not protected",
        markdown_list(unprotected(record)),
        "## Assumptions checked",
        markdown_list(checked(record)),
        "## Assumptions not checked",
        markdown_list(unchecked(record)),
        "## Theorems",
        markdown_list(theorems(record)),
        "## How it was made",
        markdown_terms(made_facts(record)),
    ]
    return "\n\n".join(parts) + "\n"


def _state(record: Record) -> list[str]:
    if not record["answers"]:
        return ["This is a plan: no data were read and nothing was charged."]
    if any(answer["simulated"] for answer in record["answers"]):
        return ["**The noise was simulated: do not publish these numbers.**"]
    return []


def _costs(record: Record) -> str:
    rows, runs = [], record["plan"]["runs"]
    for name, words, cost, chance, later in cost_rows(record):
        promised = " (promised)" if name == record["plan"]["granularity"] else ""
        costs = [cost, later] if later else [cost]
        rows.append([words + promised, name, *costs, shown_guess(chance)])
    several = record["plan"]["horizon_costs"]
    heads = ["cost of this run", f"cost of all {runs:,} runs"] if several else ["cost"]
    last = "right guesses of 100, at most"
    return markdown_table(rows, header=["what may change", "name", *heads, last])


def _correlation(record: Record) -> list[str]:
    words, facts = correlation_words(record)
    parts = ["## What a correlated attacker learns", markdown_text(words)]
    return [*parts, markdown_terms(facts)] if facts else parts


def _risk(record: Record) -> list[str]:
    card = record["plan"]["risk"]
    if card is None:
        return ["## Risk card", "No attacker was stated."]
    words = markdown_text(shown_text(card["sentence"]))
    return ["## Risk card", words, markdown_terms(risk_facts(record))]


def _queries(record: Record) -> list[str]:
    parts: list[str] = []
    asked = zip(record["document"]["queries"], record["plan"]["queries"], strict=True)
    answers: Sequence[Any] = record["answers"] or [None] * len(
        record["plan"]["queries"]
    )
    for (query, error), answer in zip(asked, answers, strict=True):
        parts.append(f"### {markdown_text(shown_text(query['name']))}")
        parts.append(markdown_text(query_words(query, error)))
        if answer is not None:
            parts += _answer(answer)
    return parts


def _answer(answer: Mapping[str, Any]) -> list[str]:
    rows, keys = answer["rows"], len(answer["columns"]) - 3
    parts = []
    if len(rows) > MOST_ROWS:
        parts.append(
            f"The first {MOST_ROWS:,} of {len(rows):,} cells; all of them are in the "
            "file of the table."
        )
    shown = [
        [
            str(value) if at < keys and type(value) is int else shown_cell(value)
            for at, value in enumerate(row)
        ]
        for row in rows[:MOST_ROWS]
    ]
    names = [markdown_text(shown_text(name)) for name in answer["columns"]]
    parts.append(markdown_table(shown, header=names))
    if answer["notes"]:
        parts.append(markdown_list([shown_text(note) for note in answer["notes"]]))
    return parts
