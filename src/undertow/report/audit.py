"""The report of an audit: what was run, what came out, and what it cannot show."""

from __future__ import annotations

import html
import platform
from dataclasses import dataclass

import numpy as np
import scipy

from undertow._version import __version__
from undertow.audit import AuditResult, Claim
from undertow.audit.curve import Curve
from undertow.report.page import (
    html_list,
    html_page,
    html_table,
    markdown_list,
    markdown_table,
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
_POWER = {
    "trials_needed": "trials needed to refute it at all",
    "ceiling": "largest certificate of so many trials",
    "detectable": "estimate from which it would be refuted",
}
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ"}
_POINTWISE = "Each point holds by itself, not all of them at once."
# Characters of a witness that are shown; its inputs may be whole data sets.
_LONGEST = 400
_METHODS = ("method", "certified", "estimate", "trials", "decides")


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

    Examples
    --------
    >>> result = AuditResult("code", Claim.pure(1), 1.2, confidence=0.99, trials=1000,
    ...                      epsilon_certified=1.2)
    >>> print(AuditReport(result, (("function", "m:f"),)).markdown().splitlines()[0])
    # Audit of code
    """

    result: AuditResult
    run: Facts = ()
    version: str = ""
    curve: Curve | None = None

    def html(self) -> str:
        """Return the page as self-contained HTML."""
        bad = " bad" if self.result.violated else ""
        sentence = html.escape(verdict_sentence(self.result))
        body = [f'<p class="verdict{bad}">{sentence}</p>']
        if self.curve is not None:
            body += _html_figure(self.result, self.curve)
        body += ["<h2>Numbers</h2>", html_table(self._numbers())]
        if self.result.methods:
            body.append(html_table(self._methods(), header=_METHODS))
        body += ["<h2>What was run</h2>", html_table((*self.run, *self._versions()))]
        body += ["<h2>What an audit cannot show</h2>", html_list(_LIMITS)]
        return html_page(self._title(), body)

    def markdown(self) -> str:
        """Return the page as Markdown; the picture is a sentence and a table."""
        parts = [
            f"# {markdown_text(self._title())}",
            f"**{markdown_text(verdict_sentence(self.result))}**",
            "## Numbers",
            markdown_table(self._numbers(), header=("quantity", "value")),
        ]
        if self.result.methods:
            parts.append(markdown_table(self._methods(), header=_METHODS))
        if self.curve is not None:
            parts += _markdown_figure(self.result, self.curve)
        facts = (*self.run, *self._versions())
        parts += ["## What was run", markdown_table(facts, header=("what", "value"))]
        parts += ["## What an audit cannot show", markdown_list(_LIMITS)]
        return "\n\n".join(parts) + "\n"

    def _title(self) -> str:
        return f"Audit of {self.result.subject}"

    def _numbers(self) -> Facts:
        found = self.result
        name = _SYMBOLS[found.claim.parameter]
        seed = "none: the runs cannot be repeated" if found.seed is None else found.seed
        return (
            ("claim", claim_words(found.claim)),
            ("verdict", found.verdict),
            (f"certified {name}", shown_certificate(found)),
            ("confidence", f"{found.confidence:g}"),
            ("estimate of ε, no evidence", _number(found.epsilon_estimate)),
            ("trials", str(found.trials)),
            ("seed", str(seed)),
            *_evidence(found),
            *((_POWER.get(k, k), _number(x)) for k, x in found.power.items()),
        )

    def _methods(self) -> list[tuple[str, ...]]:
        return [
            (
                method.name,
                shown_down(method.certified),
                _number(method.estimate),
                str(method.trials),
                "yes" if method.decides else "no",
            )
            for method in self.result.methods
        ]

    def _versions(self) -> Facts:
        known = (("version of what was audited", self.version),) if self.version else ()
        return (
            *known,
            ("undertow", __version__),
            ("Python", platform.python_version()),
            ("numpy", np.__version__),
            ("scipy", scipy.__version__),
        )


def verdict_sentence(result: AuditResult) -> str:
    """Say the verdict in one sentence, with all that it rests on.

    Examples
    --------
    >>> print(verdict_sentence(AuditResult("code", Claim.pure(1), 1.20009,
    ...     confidence=0.99, trials=1000, epsilon_certified=1.20009)))
    The claim is violated: ε is at least 1.2 with confidence 0.99, above the claimed 1.
    """
    claim, tested = result.claim, result.claim.for_replacement()
    symbol = _SYMBOLS[claim.parameter]
    if tested.delta:
        symbol += f" at δ = {tested.delta:g}"
    said = f"the claimed {claim.level:.10g}"
    if claim.adjacency == "add-remove":
        said = f"{tested.level:.10g}, which {said} is for replacing a record"
    certificate = f"{shown_certificate(result)} with confidence {result.confidence:g}"
    if result.violated:
        return (
            f"The claim is violated: {symbol} is at least {certificate}, above {said}."
        )
    return (
        f"The claim is not refuted: {result.trials} trials certify {symbol} of at "
        f"least {certificate}, not above {said}; this does not prove it."
    )


def claim_words(claim: Claim) -> str:
    """Write a claim the way people do.

    Examples
    --------
    >>> print(claim_words(Claim.approx(1, 1e-6)))
    ε = 1, δ = 1e-06 (replace)
    """
    values = {k: v for k, v in claim.loss.to_dict().items() if k in _SYMBOLS}
    parts = (f"{_SYMBOLS[name]} = {value:.10g}" for name, value in values.items())
    return f"{', '.join(parts)} ({claim.adjacency})"


def shown_certificate(result: AuditResult) -> str:
    """Return the certificate cut down to four decimals, or whole if that hides it."""
    cut = shown_down(result.certified)
    level = result.claim.for_replacement().level
    hidden = result.violated and float(cut) <= level
    return repr(result.certified) if hidden else cut


def _evidence(found: AuditResult) -> Facts:
    rows = []
    if found.advantage is not None:
        seen = found.advantage
        shown = f"{seen.value:.6g}, between {seen.low:.6g} and {seen.high:.6g}"
        rows.append(("advantage of the attack", shown))
    if found.witness is not None:
        rows.append(("witness", found.witness.summary[:_LONGEST]))
    if found.baseline is not None:
        level = _number(found.baseline.get("epsilon"))
        rows.append(("LDP-Auditor, for comparison", level))
    return tuple(rows)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.10g}"


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
        markdown_table(_points(curve), header=("trials", "certified")),
    ]
