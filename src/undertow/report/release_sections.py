"""What a release report says, section by section, in no markup language.

Each renderer takes its words from here alone, so that two of them cannot differ in what
they promise; what they leave out or draw is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.correlation.units import WholeUnitsMethod
from undertow.report.release_facts import (
    Facts,
    answer_words,
    checked,
    correlation_words,
    made_facts,
    made_words,
    query_words,
    risk_facts,
    theorems,
    unchecked,
    wide_note,
)
from undertow.report.release_limits import counted, unprotected
from undertow.report.release_words import (
    Record,
    all_costs,
    cost_rows,
    guess_bound,
    loss_words,
    promise_sentence,
    shown_guess,
    shown_text,
)

__all__ = [
    "GUESSES",
    "MEANING",
    "MOST_ROWS",
    "NO_RISK",
    "Answer",
    "Correlation",
    "CostRow",
    "Costs",
    "Level",
    "Query",
    "Release",
    "RiskCard",
    "release_sections",
]

GUESSES = "right guesses of 100, at most"
"""The heading of a column of chances."""

MEANING = (
    "Right guesses: of somebody who knows all the rest and finds both versions equally "
    "likely; blind guessing is right in 50 of 100 cases."
)
"""What that column says."""

MOST_ROWS = 2000
"""Rows of a table that a report shows."""

NO_RISK = (
    "No attacker was stated, so there is no risk to put in numbers: add a [threat] to "
    "the release file."
)
"""What stands in place of a risk card."""

_PROMISE = "the promise."


@dataclass(frozen=True, slots=True)
class CostRow:
    """What may change, its name, the costs of a run and of all, and the best guess."""

    words: str
    name: str
    costs: tuple[str, ...]
    chance: float
    promised: bool


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs by granularity, their headings, what the promised row says, its tag.

    `of` says what costs it.
    """

    rows: tuple[CostRow, ...]
    heads: tuple[str, ...]
    promised: str
    tag: str
    of: str


@dataclass(frozen=True, slots=True)
class Level:
    """A case, what it tells at most, and the best guess in it."""

    case: str
    loss: str
    chance: float


@dataclass(frozen=True, slots=True)
class Correlation:
    """What an attacker learns who knows how records depend, beside one who does not."""

    words: str
    levels: tuple[Level, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class RiskCard:
    """The risk of the stated attacker; chances of guessing blindly and at most."""

    points: str
    sentence: str
    baseline: float
    reached: float
    facts: Facts


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of an answer that are shown, keys first, and how many there are.

    `by` are the columns that part the cells: of a histogram also the one that is cut.
    """

    columns: tuple[str, ...]
    rows: Sequence[Any]
    total: int
    unit: str
    by: tuple[str, ...]
    confidence: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, in words, and the answer if there is one."""

    name: str
    words: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class Release:
    """All that a report says. Names and columns of queries are as they came."""

    title: str
    made: str
    run: str
    is_plan: bool
    simulated: bool
    promise: str
    costs: Costs
    correlation: Correlation
    risk: RiskCard | None
    queries: tuple[Query, ...]
    counted: tuple[str, ...]
    unprotected: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    theorems: tuple[str, ...]
    facts: Facts


def release_sections(record: Record) -> Release:
    """Return what the report of a record says."""
    made = f"Made on {made_words(record)} by Undertow {record['versions']['undertow']}."
    asked = list(
        zip(record["document"]["queries"], record["plan"]["queries"], strict=True)
    )
    answers = record["answers"] or [None] * len(asked)
    return Release(
        f"Private release: {shown_text(record['title'])}",
        made,
        run=_run(record),
        is_plan=not record["answers"],
        simulated=any(answer["simulated"] for answer in record["answers"]),
        promise=promise_sentence(record),
        costs=_costs(record),
        correlation=_correlation(record),
        risk=_risk(record),
        queries=tuple(
            _query(query, error, answer, record["document"]["source"]["unit"])
            for (query, error), answer in zip(asked, answers, strict=True)
        ),
        counted=counted(record),
        unprotected=unprotected(record),
        checked=checked(record),
        unchecked=unchecked(record),
        theorems=theorems(record),
        facts=made_facts(record),
    )


def _run(record: Record) -> str:
    # Here, so that reports of audits do without the libraries of a release.
    from undertow.release.period import run_words

    return run_words(record["plan"])


def _costs(record: Record) -> Costs:
    plan = record["plan"]
    heads: tuple[str, ...] = ("cost",)
    of = "One release"
    if plan["horizon_costs"]:
        heads = ("cost of this run", f"cost of all {plan['runs']:,} runs")
        of = f"This run, one of {plan['runs']:,}, and all of them together"
    rows = tuple(
        CostRow(
            words,
            shown_text(name),
            (cost, later) if later else (cost,),
            chance,
            name == plan["granularity"],
        )
        for name, words, cost, chance, later in cost_rows(record)
    )
    promised = _promised(record)
    tag = "promised" if promised == _PROMISE else "keeps the promise"
    return Costs(rows, heads, promised, tag, of)


def _promised(record: Record) -> str:
    stated = record["document"]["promise"]
    if _is_inside(record):
        return _PROMISE
    if stated["correlation"] is not None:
        return "what is left to spend so that dependent records keep the promise."
    if stated["advantage"] is not None:
        return "what the promised advantage comes down to."
    return _PROMISE


def _correlation(record: Record) -> Correlation:
    plan = record["plan"]
    words, facts = correlation_words(record)
    if plan["leakage"] is None:
        return Correlation(words, (), facts)
    leaked = {"notion": "pure", "epsilon": plan["leakage"]["value"]}
    case = "records depend on each other, as stated"
    if _is_inside(record):
        words = _inside_words(leaked)
        case = "the records of one person depend on each other, in any way"
    cases = (
        ("records are independent", all_costs(record)[plan["granularity"]]),
        (case, leaked),
    )
    levels = tuple(
        Level(case, loss_words(loss), guess_bound(loss)) for case, loss in cases
    )
    return Correlation(words, levels, facts)


def _is_inside(record: Record) -> bool:
    """Tell whether the stated model is about the records inside of a whole unit."""
    leak = record["plan"]["leakage"]
    return leak is not None and leak["method"] == WholeUnitsMethod.name


def _inside_words(leaked: Mapping[str, Any]) -> str:
    return (
        "The records of one person may depend on each other, as the stated model says "
        "or in any other way. The promise is about all of them at once, so that this "
        f"costs nothing more: an attacker who knows how they depend learns at most "
        f"{loss_words(leaked)} about one of them, or about all together, and is right "
        f"in at most {shown_guess(guess_bound(leaked))} of 100 cases between two "
        "equally likely values. What people have to do with one another is not covered."
    )


def _risk(record: Record) -> RiskCard | None:
    card = record["plan"]["risk"]
    if card is None:
        return None
    baseline = float(card["baseline"])
    return RiskCard(
        card["points"],
        shown_text(card["sentence"]),
        baseline,
        baseline + float(card["advantage"]),
        risk_facts(record),
    )


def _query(
    query: Mapping[str, Any],
    error: Mapping[str, Any],
    answer: Mapping[str, Any] | None,
    unit: str | None,
) -> Query:
    words = query_words(query, error)
    if answer is None:
        return Query(query["name"], words, None)
    found = Answer(
        tuple(answer["columns"]),
        answer["rows"][:MOST_ROWS],
        len(answer["rows"]),
        answer_words(query, unit=unit),
        _by(query, answer),
        answer["confidence"],
        tuple(map(shown_text, (*answer["notes"], *wide_note(query, answer["rows"])))),
    )
    return Query(query["name"], words, found)


def _by(query: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, ...]:
    if query["select"] == "histogram":
        return (*query["by"], query["column"])
    return tuple(answer["columns"][:-3])
