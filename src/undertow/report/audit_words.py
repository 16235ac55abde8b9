"""An audit in plain words: its claim, its verdict, its numbers and its terms."""

from __future__ import annotations

import math
from typing import Any

from undertow.audit import AuditResult, Claim
from undertow.audit.inversion import Inversion
from undertow.report.page import shown_down

__all__ = [
    "METHOD_HEADINGS",
    "SYMBOLS",
    "claim_words",
    "glossary",
    "inversion_row",
    "method_rows",
    "power_rows",
    "shown_certificate",
    "shown_number",
    "verdict_sentence",
]

Facts = tuple[tuple[str, str], ...]

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
