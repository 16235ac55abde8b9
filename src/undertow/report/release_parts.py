"""The parts of a release report in HTML: shell, tables that sort, bars and lists."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from undertow.report.release_words import shown_cell, shown_text

__all__ = [
    "answer_table",
    "facts_list",
    "meter",
    "plain_table",
    "release_shell",
    "sentence_list",
]

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
