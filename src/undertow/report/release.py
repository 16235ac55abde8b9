"""The report of a private release: what was promised, what it costs, what came out."""

from __future__ import annotations

import html
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undertow.errors import PlanError
from undertow.report.release_chart import cell_chart
from undertow.report.release_facts import (
    answer_words,
    checked,
    correlation_words,
    made_facts,
    made_words,
    query_words,
    risk_facts,
    theorems,
    unchecked,
    unprotected,
)
from undertow.report.release_markdown import release_markdown
from undertow.report.release_parts import (
    MOST_ROWS,
    answer_table,
    facts_list,
    meter,
    plain_table,
    release_shell,
    sentence_list,
)
from undertow.report.release_words import (
    Record,
    all_costs,
    cost_rows,
    guess_bound,
    loss_words,
    promise_sentence,
    shown_cell,
    shown_guess,
    shown_level,
    shown_text,
)

__all__ = ["ReleaseReport", "release_page"]

_BLIND = "Pale: right by blind guessing."


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """One page about one release, or about the plan of one.

    Parameters
    ----------
    record : mapping
        The record of a run, plain values as the ledger keeps them; without answers it
        is a plan. A key ``charge`` may hold `number`, `key` and `hash` of the ledger's
        entry.
    """

    record: Record

    def to_html(self) -> str:
        """Return the page as self-contained HTML."""
        return release_page(self.record)

    def to_markdown(self) -> str:
        """Return the page as Markdown; charts are left to their tables."""
        return release_markdown(self.record)

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
        _write_private(place, text.encode("utf-8", "backslashreplace"))


def _write_private(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except OSError as fault:
        raise PlanError(
            f"report must be a file that can be written, got {path}: {fault.strerror}."
        ) from None
    finally:
        part.unlink(missing_ok=True)


def release_page(record: Record) -> str:
    """Return the report of a release as one self-contained HTML page."""
    body = [
        *_opening(record),
        *_costs(record),
        *_correlation(record),
        *_risk(record),
        *(_results(record) if record["answers"] else _expected(record)),
        *_fine_print(record),
    ]
    return release_shell(f"Private release: {shown_text(record['title'])}", body)


def _opening(record: Record) -> list[str]:
    made = f"Made on {made_words(record)} by Undertow {record['versions']['undertow']}."
    parts = [f'<p class="lead">{html.escape(made)}</p>']
    if not record["answers"]:
        parts.append(
            '<p class="warning"><strong>This is a plan.</strong> No data were read and '
            "nothing was charged.</p>"
        )
    if any(answer["simulated"] for answer in record["answers"]):
        parts.append(
            '<p class="warning"><strong>The noise was simulated.</strong> It can be '
            "computed again and taken off: do not publish these numbers.</p>"
        )
    words = html.escape(promise_sentence(record))
    return [*parts, "<h2>What was promised</h2>", f'<p class="promise">{words}</p>']


def _costs(record: Record) -> list[str]:
    plan = record["plan"]
    rows: list[list[str]] = []
    marked = None
    for name, words, cost, chance, later in cost_rows(record):
        if name == plan["granularity"]:
            marked = len(rows)
        tag = " · promised" if name == plan["granularity"] else ""
        what = f"{html.escape(words)}<code>{html.escape(shown_text(name))}{tag}</code>"
        guess = f"{shown_guess(chance)}{meter(chance)}"
        rows.append([what, *([cost, later] if later else [cost]), guess])
    costs = ["cost"]
    if plan["horizon_costs"]:
        costs = ["cost of this run", f"cost of all {plan['runs']:,} runs"]
    header = ["what may change", *costs, "right guesses of 100, at most"]
    return [
        "<h2>What it costs</h2>",
        "<p>One release, as a statement about smaller and larger changes of the "
        f"table. {_promised_row(record)}</p>",
        plain_table(rows, header=header, marked=marked),
        '<p class="quiet">Right guesses: of somebody who knows all the rest and finds '
        f"both versions equally likely. {_BLIND}</p>",
    ]


def _promised_row(record: Record) -> str:
    stated = record["document"]["promise"]
    if stated["correlation"] is not None:
        return (
            "In bold: what is left to spend so that dependent records keep the promise."
        )
    if stated["advantage"] is not None:
        return "In bold: what the promised advantage comes down to."
    return "In bold: the promise."


def _correlation(record: Record) -> list[str]:
    plan = record["plan"]
    words, facts = correlation_words(record)
    parts = [
        "<h2>What a correlated attacker learns</h2>",
        f"<p>{html.escape(words)}</p>",
    ]
    if plan["leakage"] is None:
        return parts
    cost = all_costs(record)[plan["granularity"]]
    leak = {"notion": "pure", "epsilon": plan["leakage"]["value"]}
    rows = [
        [label, loss_words(loss), f"{shown_guess(chance)}{meter(chance)}"]
        for label, loss in (
            ("records are independent", cost),
            ("records depend on each other, as stated", leak),
        )
        for chance in (guess_bound(loss),)
    ]
    header = ("if", "at most", "right guesses of 100, at most")
    return [*parts, plain_table(rows, header=header, marked=1), facts_list(facts)]


def _risk(record: Record) -> list[str]:
    card = record["plan"]["risk"]
    parts = ["<h2>Risk card</h2>"]
    if card is None:
        return [
            *parts,
            "<p>No attacker was stated, so there is no risk to put in numbers: add "
            "<code>[threat]</code> to the release file.</p>",
        ]
    reached = float(card["baseline"]) + float(card["advantage"])
    return [
        *parts,
        '<div class="card">',
        f'<p class="big">{html.escape(card["points"])} <small>percentage points at '
        "most</small></p>",
        f"<p>{html.escape(shown_text(card['sentence']))}</p>",
        meter(reached, blind=float(card["baseline"])),
        f'<p class="quiet">{_BLIND}</p>',
        facts_list(risk_facts(record)),
        "</div>",
    ]


def _expected(record: Record) -> list[str]:
    facts = [
        (shown_text(query["name"]), query_words(query, error))
        for query, error in _queries(record)
    ]
    return ["<h2>What it will answer, and how well</h2>", facts_list(facts)]


def _queries(record: Record) -> list[tuple[Any, Any]]:
    pairs = zip(record["document"]["queries"], record["plan"]["queries"], strict=True)
    return list(pairs)


def _results(record: Record) -> list[str]:
    parts = ["<h2>Results</h2>"]
    if any(q["by"] and error["cells"] is not None for q, error in _queries(record)):
        parts.append(
            '<p class="quiet">Rows without a key, or with one that is not listed, do '
            "not count in a table by that key.</p>"
        )
    for (query, error), answer in zip(_queries(record), record["answers"], strict=True):
        parts += _answer(query, error, answer)
    return parts


def _answer(
    query: Mapping[str, Any], error: Mapping[str, Any], answer: dict[str, Any]
) -> list[str]:
    rows: Sequence[Any] = answer["rows"]
    shown, unit = rows[:MOST_ROWS], answer_words(query)
    name = html.escape(shown_text(answer["name"]))
    parts = [
        "<section>",
        f"<h3><bdi>{name}</bdi></h3>",
        f'<p class="quiet">{html.escape(query_words(query, error))}</p>',
    ]
    if len(rows) > MOST_ROWS:
        parts.append(
            f'<p class="warning">The first {MOST_ROWS:,} of {len(rows):,} cells are '
            "shown; all of them are in the file of the table.</p>"
        )
    if len(rows) == 1:
        parts.append(_single(rows[0], unit, answer["confidence"]))
    elif rows:
        parts.append(cell_chart(answer, shown, unit=unit))
    else:
        parts.append("<p>No key was released: none was there often enough.</p>")
    parts.append(answer_table(answer["name"], answer["columns"], shown))
    if answer["notes"]:
        parts.append(sentence_list([shown_text(note) for note in answer["notes"]]))
    return [*parts, "</section>"]


def _single(row: Sequence[Any], unit: str, confidence: float) -> str:
    estimate, low, high = (html.escape(shown_cell(value)) for value in row[-3:])
    return (
        f'<p><span class="big">{estimate} <small>{html.escape(unit)}</small></span> '
        f"between {low} and {high} with {shown_level(confidence)} confidence</p>"
    )


def _fine_print(record: Record) -> list[str]:
    return [
        "<h2>What is not protected</h2>",
        sentence_list(unprotected(record)),
        "<h2>Assumptions</h2>",
        "<h3>Checked</h3>",
        sentence_list(checked(record)),
        "<h3>Not checked: taken on trust</h3>",
        sentence_list(unchecked(record)),
        "<h2>Theorems</h2>",
        sentence_list(theorems(record)),
        "<h2>How it was made</h2>",
        facts_list(made_facts(record)),
    ]
