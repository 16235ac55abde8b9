"""What a release report says, section by section, in no markup language.

Each renderer takes its words from here alone, so that two of them cannot differ in what
they promise; what they leave out or draw is theirs. Queries, assumptions, theorems and
how it was made are listed; so is what the numbers leave out and the promise leaves
open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from undertow._address import masked, shown_address
from undertow.correlation.group import WholeUnitsTheorem
from undertow.report._release_words import (
    Record,
    all_costs,
    cost_rows,
    granularity_words,
    guess_bound,
    loss_words,
    promise_sentence,
    shown_cell,
    shown_guess,
    shown_level,
    shown_text,
    shown_up,
)

if TYPE_CHECKING:
    from undertow.release.document._select import SelectKind

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
    from undertow.release.plan.timeline import run_words

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
    return leak is not None and leak["method"] == WholeUnitsTheorem.name


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
    if _kind(query).binned:
        return (*query["by"], query["column"])
    return tuple(answer["columns"][:-3])


# What a release report lists: queries, assumptions, theorems, how it was made.

Facts = tuple[tuple[str, str], ...]
"""Headings with their texts."""

# As in the text of a plan, which needs the libraries of a release.
_EMPTY_WINDOWS = "having no rows in a window is one of the values the model speaks of"
# Characters of a sentence that are shown; some name inputs.
_LONGEST = 600
_MODELS = {
    "markov": "a Markov chain: each record depends on the one before",
    "gaussian": "jointly normal records with limited correlation",
    "blocks": "groups of records that may depend on each other in any way",
}


def _shown(facts: Iterable[tuple[str, Any]]) -> Facts:
    """Return the facts that say something."""
    return tuple(
        (shown_text(name), shown_text(str(text), most=_LONGEST))
        for name, text in facts
        if text
    )


def _once(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shown_text(item, most=_LONGEST) for item in items))


def correlation_words(record: Record) -> tuple[str, Facts]:
    """Say what an attacker learns who knows how records depend; and the details."""
    plan = record["plan"]
    leak, cost = plan["leakage"], all_costs(record)[plan["granularity"]]
    if leak is None:
        return _independent_words(record), ()
    level = {"notion": "pure", "epsilon": leak["value"]}
    words = (
        "Records that depend on each other tell more than each by itself. An attacker "
        f"who knows how they depend learns at most ε = {shown_up(leak['value'])} and "
        f"is right in at most {shown_guess(guess_bound(level))} of 100 cases between "
        "two equally likely values. If the records were independent, the same release "
        f"would tell at most {loss_words(cost)}."
    )
    stated = record["document"]["promise"]["correlation"] or {}
    witness = leak["witness"] or {}
    facts = (
        ("stated model", _model_words(stated)),
        ("covers", leak["model"]),
        ("attackers", leak["attackers"]),
        ("secrets", leak["scope"]),
        ("hardest attacker", witness.get("summary", "")),
        ("bound", leak["theorem"]),
        *(("taken on trust", text) for text in _trusted(record)),
    )
    return words, _shown(facts)


def _model_words(stated: Mapping[str, Any]) -> str:
    """Say what kind of model was stated."""
    if stated.get("phi") is not None:
        return "jointly normal records in a series: each depends on the one before"
    return _MODELS.get(stated.get("model", ""), "")


def _trusted(record: Record) -> tuple[str, ...]:
    """Return what the stated model takes on trust."""
    leak = record["plan"]["leakage"]
    found = tuple(leak["unchecked"])
    windowed = isinstance(record["document"]["source"]["per"], Mapping)
    if windowed and leak["method"] != WholeUnitsTheorem.name:
        found += (_EMPTY_WINDOWS,)
    return found


def _independent_words(record: Record) -> str:
    costs = all_costs(record)
    words = (
        "No model of how records depend on each other was stated. The costs above hold "
        "for every table, but each says what follows from one change. If a change of "
        "one record comes with changes of others, an attacker who knows this can learn "
        "more about it."
    )
    if is_by_row(record):
        return f"{words} {without_owner(record)}"
    if "user" in costs:
        words += (
            " Whatever the data of one person have to do with each other, all of them "
            f"together cost {loss_words(costs['user'])}; what people have to do with "
            "one another is not covered."
        )
    return words


def risk_facts(record: Record) -> Facts:
    """Return the lines of the risk card, which covers all runs of the promise."""
    plan, card = record["plan"], record["plan"]["risk"]
    level = plan["granularity"]
    cost = all_costs(record)[level]
    baseline, ceiling = float(card["baseline"]), float(card["ceiling"])
    holds = f"every release of {loss_words(cost)} at {level} level"
    if plan["leakage"] is not None:
        leaked = shown_up(plan["leakage"]["value"])
        holds += f" that leaks at most ε = {leaked} under the stated model"
    facts = [
        ("attacker", card["threat"]),
        ("right without this release", f"at most {100 * baseline:.3g} of 100 cases"),
        (
            "more often right because of it",
            f"at most {card['points']} of 100 cases, than the same attack is about "
            "somebody else who did not take part; full disclosure would give at most "
            f"{100 * ceiling:.3g}",
        ),
        ("holds for", holds),
        ("proved by", card["theorem"]),
    ]
    for other in card["others"]:
        gain = other["advantage"]
        told = other["note"] if gain is None else f"at most {shown_up(gain)}"
        facts.append((other["threat"], told))
    return _shown(facts)


def answer_words(query: Mapping[str, Any], *, unit: str | None = None) -> str:
    """Say what the numbers of an answer are; `unit` is the column of the unit."""
    kind = _kind(query)
    if kind.counts == "units" and unit:
        return f"different values of {shown_text(unit)}"
    if kind.counts is not None:
        return kind.counts
    column = shown_text(query["column"])
    return column if kind.ranked else f"{query['select']} of {column}"


def _kind(query: Mapping[str, Any]) -> SelectKind:
    # Here, so that reports of audits do without the libraries of a release.
    from undertow.release.document._select import KINDS

    return KINDS[query["select"]]


def query_words(query: Mapping[str, Any], error: Mapping[str, Any]) -> str:
    """Say in words what a query asks and how its answers are made."""
    # Here, so that reports of audits do without the libraries of a release.
    from undertow.release.plan.planned_release import noise_words
    from undertow.release.plan.timeline import period_words

    noise = noise_words(error)
    words = query["select"].replace("_", " ")
    if query["column"]:
        words += f" of {shown_text(query['column'])}"
    if query["where"]:
        words += f" where {shown_text(query['where'])}"
    if query["by"]:
        words += f", by {shown_text(', '.join(query['by']))}"
    if error["cells"] is None:
        words += "; keys are discovered"
    else:
        cells = error["cells"]
        words += f"; {cells:,} cell{'' if cells == 1 else 's'}"
    if query["running"]:
        words += "; running total"
    if times := period_words(error):
        words += f"; {times}"
    return (
        f"{words[0].upper()}{words[1:]}. {noise[0].upper()}{noise[1:]}: "
        f"{_off(query, error)} with "
        f"{shown_level(error['confidence'])} confidence, each cell by itself."
    )


def _off(query: Mapping[str, Any], error: Mapping[str, Any]) -> str:
    """Say how far an answer is off by its noise."""
    width = shown_cell(error["half_width"])
    if _kind(query).ranked:
        rows = shown_cell(math.ceil(error["half_width"]))
        return f"the rank of an answer is off by at most {rows} rows"
    if _kind(query).averaged:
        return f"± {width} divided by the number of rows of the cell,"
    return f"± {width} {shown_text(error['unit'])}"


def wide_note(query: Mapping[str, Any], rows: Sequence[Any]) -> tuple[str, ...]:
    """Say that an interval as wide as the stated ends tells nothing, if one is."""
    if not _kind(query).between:
        return ()
    low, high = (float(Fraction(str(query[end]))) for end in ("low", "high"))
    ends = ((row[-2], row[-1]) for row in rows if None not in row[-2:])
    if not any(first <= low and last >= high for first, last in ends):
        return ()
    return (
        f"an interval from {shown_cell(low)} to {shown_cell(high)} says nothing beyond "
        "the stated ends: there are too few rows for this noise, and the estimate "
        "means nothing either",
    )


def _sentence(text: str) -> str:
    """Return a statement of a result as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def checked(record: Record) -> tuple[str, ...]:
    """Return the assumptions that were checked or enforced."""
    plan, source = record["plan"], record["document"]["source"]
    limit = record["document"]["bounds"]["rows_per_unit"]
    found = ["The noise of every query adds up to no more than the promise, exactly."]
    if limit is not None and source["unit"]:
        where = " in each window" if isinstance(source["per"], Mapping) else ""
        rows = "one row" if limit == 1 else f"{limit:,} rows"
        found.append(
            f"No more than {rows} of each {source['unit']}{where}: the engine leaves "
            "others out."
        )
    if record["answers"] and not any(a["simulated"] for a in record["answers"]):
        found.append("Whole-number noise from the system's secure source; no seed.")
    if "charge" in record:
        found.append("The ledger was charged before any noise was drawn.")
    found += [_sentence(text) for text in (plan["leakage"] or {}).get("checked", ())]
    found += _of_advantage(record, "checked")
    return _once(found)


def _of_advantage(record: Record, kind: str) -> list[str]:
    """Return what the step from a promised advantage to a loss rests on."""
    if record["document"]["promise"]["advantage"] is None:
        return []
    achieved = record["plan"]["calibration"]["achieves"]
    return [_sentence(f"for the advantage, {text}") for text in achieved[kind]]


def unchecked(record: Record) -> tuple[str, ...]:
    """Return what must be taken on trust."""
    plan, source = record["plan"], record["document"]["source"]
    found = [
        "Keys, bounds, conditions and the promise were chosen without looking at the "
        "protected data.",
    ]
    if source["unit"]:
        found.append(f"Each value of {source['unit']} stands for one person, always.")
    else:
        found.append("Every row belongs to somebody else: no column says whose it is.")
    if isinstance(source["per"], Mapping):
        found.append(f"There are at most {source['users']:,} people.")
        found.append(f"{source['time']} says when, in UTC where it names no zone.")
    found.append("Nobody else sees the engine's memory, logs or temporary files.")
    if plan["leakage"] is not None:
        found += [_sentence(text) for text in _trusted(record)]
    found += _of_advantage(record, "unchecked")
    warnings = (plan["risk"] or {}).get("warnings", ())
    found += [_sentence(f"in the risk card, {text}") for text in warnings]
    return _once(found)


def theorems(record: Record) -> tuple[str, ...]:
    """Return the statements that the numbers rest on."""
    plan = record["plan"]
    found = [f"costs: {name}" for name in plan["theorems"]]
    if plan["calibration"] is not None:
        found.append(f"calibration: {plan['calibration']['achieves']['theorem']}")
    if plan["leakage"] is not None:
        found.append(f"leakage: {plan['leakage']['theorem']}")
    if plan["risk"] is not None:
        found.append(f"risk: {plan['risk']['theorem']}")
    return _once(found)


def made_words(record: Record) -> str:
    """Return when it was made, to the minute."""
    moment = datetime.fromisoformat(record["made"]).astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _budget_words(new: Mapping[str, Any] | None) -> str:
    """Say that a ledger was made for the release, without telling where it is."""
    if new is None:
        return ""
    whose = new["people"] or (f"the unit {new['unit']}" if new["unit"] else "rows")
    return (
        f"this run made the ledger, with a budget of {loss_words(new['budget'])} at "
        f"{new['granularity']} level for {whose}; people counted elsewhere have "
        "another one, and what the two allow adds up"
    )


def made_facts(record: Record) -> Facts:
    """Return how the release was made: ledger entry, date, command, versions."""
    # Here, so that reports of audits do without the libraries of a release.
    from undertow.release.plan.timeline import run_fact
    from undertow.release.run.record import check_words

    charge, plan = record.get("charge"), record["plan"]
    check = record.get("check")
    entry = "none: nothing was charged"
    if charge is not None:
        entry = f"entry {charge['number']}, hash {charge['hash']}"
    facts = (
        ("ledger", entry),
        ("new budget", _budget_words(record.get("new_budget"))),
        ("charged under", "" if charge is None else charge["key"]),
        ("count before it", check_words(check) if check else ""),
        ("date", made_words(record)),
        ("command", masked(record["command"] or "")),
        run_fact(plan),
        ("table", shown_address(record["document"]["source"]["table"] or "in memory")),
        ("engine", record["engine"]),
        ("release file", f"fingerprint {plan['fingerprint']}"),
        *record["versions"].items(),
    )
    return _shown(facts)


# What the numbers of a release leave out, and what its promise leaves open.

_INTERVALS = (
    "Intervals are about the noise alone: they are for the number counted within "
    "these limits, which may differ from that of the whole table."
)
_ROWS = "size: the number of records"
_WINDOWS = "the matrix shape: how many users and times"
# What neighbours share, in the words of somebody who reads no theorems.
_PUBLIC = {
    _WINDOWS: "how many people and how many windows of time there are",
    "the number of users": "how many people are in the table",
    "the set of users": "who is in the table",
    _ROWS: "how many rows there are",
}
# Somebody more or less changes them, which another cost than the promise may cover.
_SIZES = (_ROWS, _WINDOWS, "the number of users")
_ABSENCE = ("unbounded", "user:add-remove")


def is_by_row(record: Record) -> bool:
    """Tell whether each row is protected by itself, whoever it belongs to."""
    source = record["document"]["source"]
    return not source["unit"] or source["per"] == "event"


def without_owner(record: Record) -> str:
    """Say what protection of rows means for somebody who has several of them."""
    owner = record["document"]["source"]["unit"]
    reason = f"whatever its {owner}" if owner else "no column says whose it is"
    return (
        f"Each row is protected by itself ({reason}): about somebody with several rows "
        "more can be learnt than the promise says, the more rows the more."
    )


def counted(record: Record) -> tuple[str, ...]:
    """Say which rows and numbers count, so that nobody takes a part for the whole."""
    document = record["document"]
    pairs = zip(document["queries"], record["plan"]["queries"], strict=True)
    found = [*_rows_counted(document)]
    if any(query["by"] and error["cells"] is not None for query, error in pairs):
        found.append(
            "Rows without a key, or with one that is not listed, do not count in a "
            "table by that key."
        )
    if any(query["low"] is not None for query in document["queries"]):
        found.append("Numbers below or above the stated ends count as the nearest end.")
    return (*found, _INTERVALS) if found else ()


def _rows_counted(document: Mapping[str, Any]) -> list[str]:
    bounds, source = document["bounds"], document["source"]
    where = " in each window" if isinstance(source["per"], Mapping) else ""
    limits = (
        ("rows_per_unit", "row", where),
        ("groups_per_unit", "cell", " of a table"),
        ("rows_per_group", "row", " in one cell"),
    )
    parts = [
        f"{bounds[name]:,} {thing}{'' if bounds[name] == 1 else 's'}{place}"
        for name, thing, place in limits
        if bounds[name] is not None
    ]
    if not parts:
        return []
    unit = shown_text(str(source["unit"]))
    return [
        f"Of each {unit} count at most {', and at most '.join(parts)}, drawn by "
        f"chance. Where a {unit} has more, the rest is left out: counts and sums are "
        "then smaller than those of the whole table."
    ]


def unprotected(record: Record) -> tuple[str, ...]:
    """Return what the promise leaves open."""
    plan = record["plan"]
    change = granularity_words(plan["granularity"], record)
    rows = (without_owner(record),) if is_by_row(record) else ()
    public = (
        _public(shown_text(t, most=_LONGEST), record) for t in plan["unprotected"]
    )
    return (
        f"More than one such change at a time ({change}): the costs above say what "
        "larger changes cost.",
        *rows,
        *dict.fromkeys(public),
        _keys(record),
        "The release file itself: queries, conditions, bounds, shares and noise.",
        "That the release was run, when, how long it took, and whether it failed.",
        "What is true whether or not somebody took part: conclusions about everybody "
        "may be drawn about them too.",
        "What other releases about the same people tell: what they cost adds to this. "
        "Those charged to the same ledger stay within its budget together, which may "
        "be larger than this promise; nobody adds up the others.",
        "What is known from elsewhere.",
    )


def _public(text: str, record: Record) -> str:
    words = _PUBLIC.get(text, text)
    if is_by_row(record) and text == "the number of users":
        words = "how many rows there are"
    if text in _SIZES and _covers_absence(record):
        thing = "a row" if is_by_row(record) else "a person"
        words += (
            ": the promise is about data that are replaced by others. What it costs "
            f"that {thing} is there or not is said above"
        )
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _covers_absence(record: Record) -> bool:
    """Tell whether it has a finite cost that somebody is there or not."""
    losses = [loss for name, loss in all_costs(record).items() if name in _ABSENCE]
    return any(
        math.isfinite(float(loss[key]))
        for loss in losses
        for key in ("epsilon", "rho", "mu")
        if key in loss
    )


def _keys(record: Record) -> str:
    if any(error["cells"] is None for error in record["plan"]["queries"]):
        return (
            "The keys that are shown, where they were discovered: each was there for "
            "enough units, up to noise and δ. Listed keys, and how many, are public."
        )
    return "Which cells there are, how many, and their keys: they are public."
