"""The report of an audit: what was run, what came out, and what it cannot show."""

from __future__ import annotations

import html
import math
import platform
from dataclasses import dataclass

import numpy as np
import scipy

from undertow._version import __version__
from undertow.audit import AuditResult
from undertow.audit.curve import Curve
from undertow.report.audit_words import (
    METHOD_HEADINGS,
    SYMBOLS,
    claim_words,
    glossary,
    inversion_row,
    method_rows,
    power_rows,
    shown_certificate,
    shown_number,
    verdict_sentence,
)
from undertow.report.page import (
    html_list,
    html_page,
    html_table,
    html_terms,
    markdown_list,
    markdown_table,
    markdown_terms,
    markdown_text,
    shown_down,
)
from undertow.report.picture import curve_picture, curve_words

__all__ = ["AuditReport", "claim_words", "shown_certificate", "verdict_sentence"]

Facts = tuple[tuple[str, str], ...]

_LIMITS = (
    "That the claim is true. Only a refutation is evidence; another attack, input, "
    "event or more trials may still refute it.",
    "Anything about inputs that were not tried, or about code other than what ran.",
    "That runs were independent of each other, and that the inputs compared are "
    "neighbours: both are taken on trust.",
    "That a point estimate is the truth. It may exceed it; no verdict rests on it.",
)
_POINTWISE = "Each point holds by itself, not all of them at once."
# Characters of a witness that are shown; its inputs may be whole data sets.
_LONGEST = 400
# Characters of a picture in Markdown between nothing and the largest level shown.
_COLUMNS = 40


@dataclass(frozen=True, slots=True)
class AuditReport:
    """One page about one audit.

    Parameters
    ----------
    result : AuditResult
        What came out.
    run : tuple of pairs of str
        What was run: heading and text of each line.
    version : str, optional
        Of what was audited, if known.
    curve : Curve, optional
        Certificates as the trials double, for the picture.
    title : str, optional
        What was audited, in words; by default as the result calls it.
    date : str, optional
        When it was run.
    command : str, optional
        The command line that ran it, without private values.

    Examples
    --------
    >>> from undertow.audit import Claim
    >>> result = AuditResult("code", Claim.pure(1), 1.2, confidence=0.99, trials=1000,
    ...                      epsilon_certified=1.2)
    >>> print(AuditReport(result, (("function", "m:f"),)).markdown().splitlines()[0])
    # Audit of code
    """

    result: AuditResult
    run: Facts = ()
    version: str = ""
    curve: Curve | None = None
    title: str = ""
    date: str = ""
    command: str = ""

    def html(self) -> str:
        """Return the page as self-contained HTML."""
        found, bad = self.result, " bad" if self.result.violated else ""
        body = [
            f'<p class="lead">{html.escape(self._lead())}</p>',
            f'<p class="verdict{bad}">{html.escape(verdict_sentence(found))}</p>',
        ]
        if self.curve is not None:
            body += _html_figure(found, self.curve)
        body += ["<h2>Numbers</h2>", html_table(self._numbers())]
        if found.methods:
            beside = [k for k, row in enumerate(found.methods) if not row.decides]
            rows = method_rows(found)
            body.append("<h2>Methods</h2>")
            body.append(html_table(rows, header=METHOD_HEADINGS, aside=beside))
        body += ["<h2>What was run</h2>", html_table(self._facts())]
        body += ["<h2>What an audit cannot show</h2>", html_list(_LIMITS)]
        body += ["<h2>What the words mean</h2>", html_terms(glossary(found))]
        return html_page(self._title(), body)

    def markdown(self) -> str:
        """Return the page as Markdown; the picture is one of characters."""
        found = self.result
        parts = [
            f"# {markdown_text(self._title())}",
            markdown_text(self._lead()),
            f"**{markdown_text(verdict_sentence(found))}**",
            "## Numbers",
            markdown_table(self._numbers(), header=("quantity", "value")),
        ]
        if found.methods:
            rows = method_rows(found)
            parts += ["## Methods", markdown_table(rows, header=METHOD_HEADINGS)]
        if self.curve is not None:
            parts += _markdown_figure(found, self.curve)
        facts = markdown_table(self._facts(), header=("what", "value"))
        parts += ["## What was run", facts]
        parts += ["## What an audit cannot show", markdown_list(_LIMITS)]
        parts += ["## What the words mean", markdown_terms(glossary(found))]
        return "\n\n".join(parts) + "\n"

    def _title(self) -> str:
        return f"Audit of {self.title or self.result.subject}"

    def _lead(self) -> str:
        made = f"Made by undertow {__version__}"
        return f"{made} on {self.date}." if self.date else f"{made}."

    def _numbers(self) -> Facts:
        found = self.result
        name = SYMBOLS[found.parameter]
        rows = [
            ("claim", claim_words(found.claim)),
            ("verdict", found.verdict),
            (f"certified {name}", shown_certificate(found)),
            ("confidence", f"{found.confidence:g}"),
            (f"estimate of {name}, no evidence", shown_number(found.estimate)),
        ]
        if found.parameter == "mu":
            rows.append(("certified ε at δ = 0", shown_down(found.epsilon_certified)))
        if found.inversion is not None:
            rows.append(inversion_row(found.inversion))
        return (*rows, ("trials", str(found.trials)), *_evidence(found))

    def _facts(self) -> Facts:
        seed = self.result.seed
        repeated = "none: the runs cannot be repeated" if seed is None else str(seed)
        given = (("command", self.command), ("date", self.date))
        audited = ("version of what was audited", self.version)
        notes = (("note", note) for note in self.result.notes)
        return (
            *(row for row in given if row[1]),
            *self.run,
            *(row for row in notes if row not in self.run),
            ("seed", repeated),
            *(row for row in (audited,) if row[1]),
            ("undertow", __version__),
            ("Python", platform.python_version()),
            ("numpy", np.__version__),
            ("scipy", scipy.__version__),
        )


def _evidence(found: AuditResult) -> Facts:
    rows = []
    if found.advantage is not None:
        seen = found.advantage
        shown = f"{seen.value:.4g}, between {seen.low:.4g} and {seen.high:.4g}"
        rows.append(("advantage of the attack", shown))
    if found.witness is not None:
        rows.append(("witness", found.witness.summary[:_LONGEST]))
    if found.baseline is not None:
        level = shown_number(found.baseline.get("epsilon"))
        rows.append(("LDP-Auditor, for comparison", level))
    return (*rows, *power_rows(found))


def _points(curve: Curve) -> list[tuple[str, str]]:
    return [(str(n), shown_down(value)) for n, value in curve.points]


def _html_figure(result: AuditResult, curve: Curve) -> list[str]:
    words = f"{curve_words(result, curve)} {curve.how} {_POINTWISE}"
    return [
        "<h2>Claimed and certified, as the trials grow</h2>",
        f"<figure>\n{curve_picture(result, curve)}",
        f"<figcaption>{html.escape(words)} Dashed: the claim.</figcaption>",
        "</figure>",
        "<details><summary>The points as a table</summary>",
        html_table(_points(curve), header=("trials", "certified")),
        "</details>",
    ]


def _markdown_figure(result: AuditResult, curve: Curve) -> list[str]:
    words = f"{curve_words(result, curve)} {curve.how} {_POINTWISE}"
    return [
        "## Claimed and certified, as the trials grow",
        markdown_text(words),
        "\n".join(["```text", *_bars(result, curve), "```"]),
        markdown_table(_points(curve), header=("trials", "certified")),
    ]


def _bars(result: AuditResult, curve: Curve) -> list[str]:
    """Draw one bar per point, with the claim as a line that only refutations cross."""
    level = result.claim.for_replacement().level
    values = [value for _, value in curve.points]
    top = max(level, *values)
    mark = math.floor(_COLUMNS * level / top) if top > 0 else 0
    width = max(len(str(n)) for n, _ in curve.points)
    lines = []
    for n, value in curve.points:
        below = math.floor(mark * min(1.0, value / level)) if level > 0 else 0
        beyond = (_COLUMNS - mark) * (value - level) / (top - level or 1.0)
        right = "█" * math.ceil(beyond) if value > level else ""
        lines.append(f"{n:>{width}} {'█' * below:<{mark}}│{right}")
    claimed = f"claimed {SYMBOLS[result.claim.parameter]} = {level:g}"
    return [*lines, f"{'':>{width}} {'':<{mark}}└ {claimed}"]
