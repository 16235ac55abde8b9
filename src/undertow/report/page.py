"""The parts of a page: self-contained HTML, or Markdown; written whole or not at all.

A page loads nothing: no script, no font, no picture from elsewhere. Everything that was
not written here is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from undertow import _files
from undertow.errors import PlanError

Rows = Sequence[Sequence[str]]
"""Cells of a table, row by row."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c8c8c8;
  --soft: #f3f3f3; --bad: #b04400; --mark: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --paper: #161616;
  --line: #4a4a4a; --soft: #242424; --bad: #ff9a5a; --mark: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 46rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; }
.verdict { padding: .75rem 1rem; background: var(--soft);
  border-left: .4rem solid var(--mark); font-size: 1.1rem; }
.verdict.bad { border-color: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th, thead ~ tbody td { overflow-wrap: normal; }
svg { display: block; width: 100%; max-width: 36rem; height: auto; }
svg text { fill: var(--ink); font: 15px system-ui, sans-serif; }
.axis { stroke: var(--line); } .claim { stroke: var(--ink); stroke-dasharray: 6 4; }
.certified { stroke: var(--mark); fill: none; stroke-width: 2; }
.point { fill: var(--mark); }
figure { margin: 0; } figcaption { font-size: .9rem; }
.lead { margin-top: 0; font-size: .9rem; } tr.aside { opacity: .7; }
dl { font-size: .9rem; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 1rem; }
@media (min-width: 40rem) { dl { display: grid; gap: .3rem 1rem;
  grid-template-columns: minmax(8rem, max-content) 1fr; } dd { margin: 0; } }
@media (max-width: 34rem) { .wide { font-size: .85rem; }
  th, td { padding-right: .3rem; } }
@media print { body { max-width: none; padding: 0; font-size: .85rem; } }
"""
# What Markdown reads as more than a character.
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")


def html_page(title: str, body: Sequence[str]) -> str:
    """Return a whole page; the parts of `body` are HTML already.

    Examples
    --------
    >>> page = html_page("1 < 2", ["<p>so it is</p>"])
    >>> "<title>1 &lt; 2</title>" in page, "http" in page
    (True, False)
    """
    shown = html.escape(title)
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n"
    )
    inside = "\n".join(body)
    return (
        f"{head}<body>\n<main>\n<h1>{shown}</h1>\n{inside}\n</main>\n</body>\n</html>\n"
    )


def html_table(
    rows: Rows, *, header: Sequence[str] = (), aside: Collection[int] = ()
) -> str:
    """Return a table that scrolls sideways on a narrow screen.

    Without a header the first cell of each row is its heading. The rows of the numbers
    `aside` are shown weaker.
    """
    lines = []
    if header:
        cells = "".join(f'<th scope="col">{html.escape(x)}</th>' for x in header)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    for number, (first, *rest) in enumerate(rows):
        lead = html.escape(first)
        opening = f"<td>{lead}</td>" if header else f'<th scope="row">{lead}</th>'
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in rest)
        kind = ' class="aside"' if number in aside else ""
        lines.append(f"<tr{kind}>{opening}{cells}</tr>")
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def html_list(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    lines = "\n".join(f"<li>{html.escape(item)}</li>" for item in items)
    return f"<ul>\n{lines}\n</ul>"


def html_terms(terms: Rows) -> str:
    """Return terms, each with its meaning."""
    lines = "\n".join(
        f"<dt>{html.escape(term)}</dt>\n<dd>{html.escape(meaning)}</dd>"
        for term, meaning in terms
    )
    return f"<dl>\n{lines}\n</dl>"


def markdown_text(text: str) -> str:
    r"""Return text on one line that Markdown shows as it is.

    Examples
    --------
    >>> print(markdown_text("a_b | <c>"))
    a\_b \| \<c\>
    """
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def markdown_table(rows: Rows, *, header: Sequence[str]) -> str:
    """Return a table in the common dialect."""
    lines = [header, ["---"] * len(header)]
    shown = ["| " + " | ".join(cells) + " |" for cells in lines]
    for row in rows:
        shown.append("| " + " | ".join(markdown_text(cell) for cell in row) + " |")
    return "\n".join(shown)


def markdown_list(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    return "\n".join(f"- {markdown_text(item)}" for item in items)


def markdown_terms(terms: Rows) -> str:
    """Return terms, each with its meaning, as a list."""
    return "\n".join(
        f"- **{markdown_text(term)}**: {markdown_text(meaning)}"
        for term, meaning in terms
    )


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a report as a whole, so that a kill leaves the old one or the new one.

    Parameters
    ----------
    path : Path
        Its place.
    text : str
        All of it.
    private : bool
        Whether only its owner may read it.

    Raises
    ------
    PlanError
        If it cannot be written; nothing is left behind.
    """
    try:
        content = text.encode("utf-8", "backslashreplace")
        _files.write_whole(path, content, private=private)
    except OSError as fault:
        raise PlanError(
            f"report must be a file that can be written, got {path}: {fault.strerror}."
        ) from None
