"""The report of a private release: what was promised, what it costs, what came out.

A page in HTML or in Markdown, of the same words; in Markdown charts are left to their
tables.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from undertow.errors import PlanError
from undertow.report import _release_section as sections
from undertow.report._release_html import release_html
from undertow.report._release_section import release_sections
from undertow.report._release_words import Record, shown_cell, shown_guess, shown_text
from undertow.report.page import (
    markdown_list,
    markdown_table,
    markdown_terms,
    markdown_text,
    write_whole,
)


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """One page about one release, or about the plan of one.

    Parameters
    ----------
    record : mapping
        The record of a run, plain values as the ledger keeps them; without answers it
        is a plan. A key ``charge`` may hold `number`, `key` and `hash` of the ledger's
        entry, and ``new_budget`` the ledger that the run has made.
    """

    record: Record

    def to_html(self) -> str:
        """Return the page as self-contained HTML."""
        return release_page(self.record)

    def to_markdown(self) -> str:
        """Return the page as Markdown; charts are left to their tables."""
        return release_markdown(release_sections(self.record))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page whole or not at all, for its owner alone.

        Parameters
        ----------
        path : str or path-like
            Ends with ``.html``, ``.htm`` or ``.md``.

        Raises
        ------
        PlanError
            If it ends otherwise or cannot be written.
        """
        place = Path(path)
        kind = place.suffix.lower()
        if kind not in (".html", ".htm", ".md"):
            raise PlanError(f"report must end with .html or .md, got {place.name!r}.")
        text = self.to_markdown() if kind == ".md" else self.to_html()
        write_whole(place, text, private=True)


def release_page(record: Record) -> str:
    """Return the report of a release as one self-contained HTML page."""
    return release_html(release_sections(record))


# The report of a release as Markdown: the same words, charts left to their tables.


def release_markdown(release: sections.Release) -> str:
    """Return the report of a release as Markdown."""
    parts = [
        f"# {markdown_text(release.title)}",
        *_run(release),
        markdown_text(release.made),
        *_state(release),
        "## What was promised",
        f"**{markdown_text(release.promise)}**",
        "## What it costs",
        _costs(release.costs),
        sections.MEANING,
        *_correlation(release.correlation),
        *_risk(release.risk),
        "## Queries" if release.is_plan else "## Results",
        *([] if release.is_plan else _run(release)),
        *([markdown_list(release.counted)] if release.counted else []),
        *(part for query in release.queries for part in _query(query)),
        "## What is not protected",
        markdown_list(release.unprotected),
        "## Assumptions checked",
        markdown_list(release.checked),
        "## Assumptions not checked",
        markdown_list(release.unchecked),
        "## Theorems",
        markdown_list(release.theorems),
        "## How it was made",
        markdown_terms(release.facts),
    ]
    return "\n\n".join(parts) + "\n"


def _state(release: sections.Release) -> list[str]:
    if release.is_plan:
        return ["This is a plan: no data were read and nothing was charged."]
    if release.simulated:
        return ["**The noise was simulated: do not publish these numbers.**"]
    return []


def _run(release: sections.Release) -> list[str]:
    return [f"**{markdown_text(release.run)}**"] if release.run else []


def _costs(costs: sections.Costs) -> str:
    rows = [
        [
            f"{row.words}{f' ({costs.tag})' if row.promised else ''}",
            row.name,
            *row.costs,
            shown_guess(row.chance),
        ]
        for row in costs.rows
    ]
    header = ["what may change", "name", *costs.heads, sections.GUESSES]
    return markdown_table(rows, header=header)


def _correlation(correlation: sections.Correlation) -> list[str]:
    words = markdown_text(correlation.words)
    parts = ["## What a correlated attacker learns", words]
    if correlation.facts:
        parts.append(markdown_terms(correlation.facts))
    return parts


def _risk(card: sections.RiskCard | None) -> list[str]:
    if card is None:
        return ["## Risk card", markdown_text(sections.NO_RISK)]
    return ["## Risk card", markdown_text(card.sentence), markdown_terms(card.facts)]


def _query(query: sections.Query) -> list[str]:
    title = f"### {markdown_text(shown_text(query.name))}"
    rest = [] if query.answer is None else _answer(query.answer)
    return [title, markdown_text(query.words), *rest]


def _answer(answer: sections.Answer) -> list[str]:
    keys, parts = len(answer.columns) - 3, []
    if answer.total > len(answer.rows):
        parts.append(
            f"The first {len(answer.rows):,} of {answer.total:,} cells; all of them "
            "are in the file of the table."
        )
    shown = [
        [
            str(value) if at < keys and type(value) is int else shown_cell(value)
            for at, value in enumerate(row)
        ]
        for row in answer.rows
    ]
    names = [markdown_text(shown_text(name)) for name in answer.columns]
    parts.append(markdown_table(shown, header=names))
    if answer.notes:
        parts.append(markdown_list(answer.notes))
    return parts
