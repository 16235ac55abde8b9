"""What a release report lists: queries, assumptions, theorems, how it was made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from undertow._address import masked, shown_address
from undertow.correlation.units import WholeUnitsMethod
from undertow.report.release_limits import is_by_row, without_owner
from undertow.report.release_words import (
    Record,
    all_costs,
    guess_bound,
    loss_words,
    shown_cell,
    shown_guess,
    shown_level,
    shown_text,
    shown_up,
)

__all__ = [
    "Facts",
    "answer_words",
    "checked",
    "correlation_words",
    "made_facts",
    "made_words",
    "query_words",
    "risk_facts",
    "theorems",
    "unchecked",
    "wide_note",
]

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
    if windowed and leak["method"] != WholeUnitsMethod.name:
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
    if query["select"] in ("count", "histogram"):
        return "rows"
    if query["select"] == "count_distinct":
        return f"different values of {shown_text(unit)}" if unit else "units"
    column = shown_text(query["column"])
    return column if query["select"] == "quantile" else f"{query['select']} of {column}"


def query_words(query: Mapping[str, Any], error: Mapping[str, Any]) -> str:
    """Say in words what a query asks and how its answers are made."""
    # Here, so that reports of audits do without the libraries of a release.
    from undertow.release.period import period_words
    from undertow.release.plan_shown import mechanism_words

    noise = mechanism_words(error["mechanism"])
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
    if query["select"] == "quantile":
        rows = shown_cell(math.ceil(error["half_width"]))
        return f"the rank of an answer is off by at most {rows} rows"
    if query["select"] in ("mean", "variance"):
        return f"± {width} divided by the number of rows of the cell,"
    return f"± {width} {shown_text(error['unit'])}"


def wide_note(query: Mapping[str, Any], rows: Sequence[Any]) -> tuple[str, ...]:
    """Say that an interval as wide as the stated ends tells nothing, if one is."""
    if query["select"] not in ("mean", "quantile"):
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
    from undertow.release.period import run_fact
    from undertow.release.record import check_words

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
