"""The report of an audit: what was run, what came out, and what it cannot show.

One page in HTML or Markdown; the words of claim, verdict, numbers and terms; and what
was claimed against what was certified over trials, as an inline picture that needs no
library.
"""

from __future__ import annotations

import html
import math
import platform
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from undertow._version import __version__
from undertow.audit import AuditResult, Claim
from undertow.audit.inversion import Inversion
from undertow.audit.local import Curve
from undertow.numeric.display import shown_down
from undertow.report.page import (
    html_list,
    html_page,
    html_table,
    html_terms,
    markdown_list,
    markdown_table,
    markdown_terms,
    markdown_text,
)

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


# An audit in plain words: its claim, its verdict, its numbers and its terms.

SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ"}
"""Parameters of a claim as people write them."""
METHOD_HEADINGS = ("method", "certified", "estimate", "ceiling", "trials", "role")
"""Columns of `method_rows`."""

_CHANGES = {
    "replace": "replacing one record",
    "add-remove": "adding or removing one record",
    "one-apart": "adding or removing one record, which one input has more",
    "local": "local",
}
_METHODS = {
    "reconstruct against the threat": "the attack names the value behind each report "
    "as the threat allows, and a bound on its advantage is turned round",
    "reconstruct": "the attack names the value behind each report",
    "pairs": "each value is compared with a random other one",
    "value": "one value that stands out is compared with the others",
    "event on a pair": "an event in the outputs is counted on two neighbouring inputs",
}
_STATUS = {
    "saturated": "saturated: from here on the attack's success hardly grows, so no "
    "upper limit follows",
    "blind": "blind: the attack is right no more often than a guess without the report",
    "jump": "jump: no level gives just this success; the next larger one is stated",
}
_MEANINGS = {
    "ε": "the promise: one person's data makes no output more than e^ε times as "
    "likely (δ: but for a share δ). Smaller is more private.",
    "μ": "the promise: what the outputs tell of one person is at most what one draw "
    "tells of two normal laws at distance μ. Smaller is more private.",
}


def claim_words(claim: Claim) -> str:
    """Write a claim the way people do.

    Examples
    --------
    >>> print(claim_words(Claim.approx(1, 1e-6)))
    ε = 1, δ = 1e-06, replacing one record
    """
    values = {k: v for k, v in claim.loss.to_dict().items() if k in SYMBOLS}
    parts = [f"{SYMBOLS[name]} = {value:.10g}" for name, value in values.items()]
    return ", ".join([*parts, _CHANGES[claim.adjacency]])


def verdict_sentence(result: AuditResult) -> str:
    """Say the verdict in one sentence, with all that it rests on.

    Examples
    --------
    >>> print(verdict_sentence(AuditResult("code", Claim.pure(1), 1.20009,
    ...     confidence=0.99, trials=1000, epsilon_certified=1.20009)))
    The claim is violated: ε is at least 1.2 with confidence 0.99, above the claimed 1.
    """
    claim, tested = result.claim, result.claim.for_replacement()
    symbol = SYMBOLS[claim.parameter]
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
    end = "this does not prove it"
    if result.power.get("can_refute") is False:
        end = "so many trials of this kind could not have refuted it"
    return (
        f"The claim is not refuted: {result.trials} trials certify {symbol} of at "
        f"least {certificate}, not above {said}; {end}."
    )


def shown_certificate(result: AuditResult) -> str:
    """Return the certificate cut down to four decimals, or whole if that hides it."""
    cut = shown_down(result.certified)
    level = result.claim.for_replacement().level
    hidden = result.violated and float(cut) <= level
    return repr(result.certified) if hidden else cut


def shown_number(value: float | None) -> str:
    """Return a number with at most four decimals.

    Examples
    --------
    >>> [shown_number(value) for value in (1.23456, 100_000, math.inf, None)]
    ['1.2346', '100000', '∞', 'unknown']
    """
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def inversion_row(found: Inversion) -> tuple[str, str]:
    """Return heading and text of the level that fits a known protocol.

    Examples
    --------
    >>> for words in inversion_row(Inversion("oue", 7.2, 6.9, math.inf, "saturated")):
    ...     print(words)
    ε, if it is OUE
    at least 6.9 fits; saturated: from here on the attack's success hardly grows, so no upper limit follows
    """  # noqa: E501 - a line of output
    symbol = "μ" if found.family == "gaussian" else "ε"
    low, value, high = (shown_number(x) for x in (found.low, found.value, found.high))
    if found.status == "saturated":
        shown = f"at least {shown_down(found.low)} fits"
    else:
        shown = f"{value} (from {low} to {high})"
    why = _STATUS.get(found.status)
    return f"{symbol}, if it is {_family(found)}", f"{shown}; {why}" if why else shown


def power_rows(result: AuditResult) -> Facts:
    """Return what the audit could have found, for people."""
    power, rows = result.power, []
    beyond = power.get("can_refute") is False
    if beyond:
        rows.append(("could the claim be refuted", "no, not by so many of this kind"))
    if "trials_alike" in power:
        alike = _about(math.ceil(power["trials_alike"]))
        rows.append(("trials of this kind needed", f"about {alike}"))
    elif "trials_needed" in power:
        needed = f"{math.ceil(power['trials_needed'])}"
        # What was seen is not as telling, or the claim could have been refuted.
        best = ", were the outputs as telling as can be" if beyond else ""
        rows.append(("trials needed at least", needed + best))
    if "ceiling" in power:
        most = shown_number(power["ceiling"])
        rows.append(("largest possible certificate", most))
    if "detectable" in power and power.get("can_refute") is not False:
        level = power["detectable"]
        shown = "none, on counts like these" if math.isinf(level) else f"{level:.4f}"
        rows.append(("refuted from an estimate of", shown))
    return tuple(rows)


def _about(count: int) -> str:
    """Return a count to two digits, not below it."""
    step = 10 ** max(0, len(str(count)) - 2)
    return str(-(-count // step) * step)


def method_rows(result: AuditResult) -> list[tuple[str, ...]]:
    """Return one row for each method, under `METHOD_HEADINGS`."""
    return [
        (
            method.name,
            shown_down(method.certified),
            shown_number(method.estimate),
            "unknown" if method.ceiling is None else shown_number(method.ceiling),
            str(method.trials),
            "decides" if method.decides else "comparison only",
        )
        for method in result.methods
    ]


def glossary(result: AuditResult) -> Facts:
    """Return the terms of a result and what they mean, in plain words."""
    symbol = SYMBOLS[result.parameter]
    share = f"{100 * (1 - result.confidence):.3g} %"
    terms = [
        (symbol, _MEANINGS[symbol]),
        (
            f"certified {symbol}",
            f"{symbol} is at least this large, with the stated confidence; the verdict "
            "rests on this alone.",
        ),
        (
            f"confidence {result.confidence:g}",
            f"of audits of code that keeps its claim, at most {share} find it "
            "violated.",
        ),
        ("estimate", "what the counts suggest. It may exceed the truth: no evidence."),
        ("trial", "one run of the code, and its output."),
    ]
    terms += _met_terms(result)
    for method in result.methods:
        name = next((key for key in _METHODS if method.name.startswith(key)), None)
        if name is not None and name not in dict(terms):
            terms.append((name, f"a method: {_METHODS[name]}."))
    return tuple(terms)


def _met_terms(result: AuditResult) -> list[tuple[str, str]]:
    """Return the terms that only some results have."""
    terms = []
    if result.advantage is not None:
        more = f"{100 * max(0.0, result.advantage.value):.2g}"
        terms.append(
            (
                "advantage",
                "how much more often the attack names the right input than someone who "
                f"has not seen the output: here about {more} more in 100 guesses.",
            )
        )
    if result.witness is not None:
        terms.append(("witness", "the event or attack that refutes the claim."))
    if result.inversion is not None:
        terms.append(
            (
                inversion_row(result.inversion)[0],
                "the level at which this protocol would be guessed as often. It "
                "presumes that the code is the protocol: an estimate, no evidence.",
            )
        )
    if result.baseline is not None:
        terms.append(
            ("LDP-Auditor", "a published audit of local protocols, for comparison.")
        )
    if any(method.ceiling is not None for method in result.methods):
        meaning = "the largest certificate that so many trials can give to any code."
        terms.append(("ceiling", meaning))
    if not all(method.decides for method in result.methods):
        meaning = "shown beside the verdict, which does not rest on it."
        terms.append(("comparison only", meaning))
    return terms


def _family(found: Any) -> str:
    name = str(found.family)
    return name if name in ("laplace", "gaussian") else name.upper()


# Claimed against certified over trials, as an inline picture that needs no library.

_WIDTH, _HEIGHT = 480, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 54, 52
# Heights of the name of the axis and of the legend, and where its second part starts.
_NAME, _LEGEND, _SECOND = 16, 38, 264
_SYMBOLS = {"epsilon": "ε", "mu": "μ"}


def curve_words(result: AuditResult, curve: Curve) -> str:
    """Say in one sentence what the picture shows."""
    symbol = _SYMBOLS[result.claim.parameter]
    level = result.claim.for_replacement().level
    (first, low), (last, high) = curve.points[0], curve.points[-1]
    ends = f"{shown_down(high)} after {last} trials"
    if len(curve.points) > 1:
        ends = f"{shown_down(low)} after {first} trials, " + ends
    side = "above" if high > level else "not above"
    return f"Certified {symbol}: {ends}; {side} the claimed {level:g}."


def curve_picture(result: AuditResult, curve: Curve) -> str:
    """Return the picture as SVG, with its words as text alternative."""
    frame = _Frame(result, curve)
    words = html.escape(curve_words(result, curve))
    parts = [*frame.axes(), *frame.claim(), *frame.certified()]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}">\n'
        f"<title>{words}</title>\n" + "\n".join(parts) + "\n</svg>"
    )


class _Frame:
    """Where trials (log scale) and levels lie in the picture."""

    def __init__(self, result: AuditResult, curve: Curve) -> None:
        self.symbol = _SYMBOLS[result.claim.parameter]
        self.level = result.claim.for_replacement().level
        self.points = curve.points
        logs = [math.log2(max(1, n)) for n, _ in curve.points]
        self.low, self.high = min(logs) - 0.25, max(logs) + 0.25
        self.top = 1.15 * max(self.level, *(value for _, value in curve.points))

    def x(self, trials: int) -> float:
        share = (math.log2(max(1, trials)) - self.low) / (self.high - self.low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - value / self.top * height, 1)

    def axes(self) -> list[str]:
        floor, end = self.y(0.0), _WIDTH - _RIGHT
        parts = [
            _line("axis", (_LEFT, floor), (end, floor)),
            _line("axis", (_LEFT, _TOP), (_LEFT, floor)),
            _text((_LEFT, _NAME), f"privacy parameter {self.symbol}"),
            _text((end, _HEIGHT - 10), "trials (log scale)", anchor="end"),
        ]
        step = _step(self.top)
        for k in range(math.floor(self.top / step) + 1):
            shown = _text((_LEFT - 8, self.y(k * step) + 4), f"{k * step:g}", "end")
            parts.append(shown)
        first, last = self.points[0][0], self.points[-1][0]
        parts.append(_text((end, floor + 18), f"{last:,}", "end"))
        if first != last:
            parts.append(_text((_LEFT, floor + 18), f"{first:,}"))
        return [*parts, *(self._tick(trials, floor) for trials, _ in self.points)]

    def _tick(self, trials: int, floor: float) -> str:
        return _line("axis", (self.x(trials), floor), (self.x(trials), floor + 4))

    def claim(self) -> list[str]:
        height, end = self.y(self.level), _WIDTH - _RIGHT
        words = f"claimed {self.symbol} = {self.level:g}"
        return [
            _line("claim", (_LEFT, height), (end, height)),
            _line("claim", (_SECOND, _LEGEND - 5), (_SECOND + 24, _LEGEND - 5)),
            _text((_SECOND + 32, _LEGEND), words),
        ]

    def certified(self) -> list[str]:
        places = [(self.x(n), self.y(value)) for n, value in self.points]
        path = " ".join(f"{x},{y}" for x, y in places)
        dots = [f'<circle class="point" cx="{x}" cy="{y}" r="4"/>' for x, y in places]
        words = f"certified {shown_down(self.points[-1][1])}"
        return [
            f'<polyline class="certified" points="{path}"/>',
            *dots,
            _line("certified", (_LEFT, _LEGEND - 5), (_LEFT + 24, _LEGEND - 5)),
            _text((_LEFT + 32, _LEGEND), words),
        ]


def _step(top: float) -> float:
    """Return a round step that divides the axis into two to five parts."""
    power = 10.0 ** math.floor(math.log10(top))
    return next(power * k for k in (0.2, 0.5, 1.0, 2.0) if top / (power * k) < 5.5)


def _line(name: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    return (
        f'<line class="{name}" x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" '
        f'y2="{end[1]}"/>'
    )


def _text(place: tuple[float, float], words: str, anchor: str = "start") -> str:
    x, y = place
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(words)}</text>'
