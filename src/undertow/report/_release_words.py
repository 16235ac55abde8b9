"""The words of a release report: promise, costs and numbers as a reader needs them.

Upper limits are rounded up wherever they are shown.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from scipy.special import expit, ndtr

from undertow.numeric.exact import format_up
from undertow.risk.card import points

Record = Mapping[str, Any]
"""Plain values, as a run keeps them."""

_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu": "μ"}
_TIMES = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}
_LONGEST = 200
_ROUNDING = Fraction(1, 10**12)
# Classes of characters that are written from right to left.
_LEFTWARD = ("R", "AL", "AN")
_DIGITS = 4
# They turn the text around them, so that a key could look like another one.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e") | frozenset(
    "\u2066\u2067\u2068\u2069"
)


def shown_text(text: str, *, most: int = _LONGEST) -> str:
    r"""Return text of the data or of the release file, tame and not too long.

    Parameters
    ----------
    text : str
        Anything.
    most : int, optional
        Characters of it that are shown.

    Notes
    -----
    What is written from right to left is isolated, so that no number of the sentence
    around it changes its place.

    Examples
    --------
    >>> shown_text("a\u202eb\x00")
    'a⟨U+202E⟩b⟨U+0000⟩'
    """
    tame = _tamed(text, most)
    turns = any(unicodedata.bidirectional(character) in _LEFTWARD for character in tame)
    return f"\u2068{tame}\u2069" if turns else tame


def _tamed(text: str, most: int = _LONGEST) -> str:
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(_tame(character) for character in cut)


def _tame(character: str) -> str:
    plain = unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
    if plain and character not in _TURNING:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def shown_cell(value: Any) -> str:
    """Return a cell of a table for reading.

    Examples
    --------
    >>> [shown_cell(v) for v in (12345, 0.123456789, None, True, "a")]
    ['12,345', '0.123457', '–', 'true', 'a']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return _tamed(str(value))


def shown_up(value: Any) -> str:
    """Return an upper limit with four digits, rounded up.

    Examples
    --------
    >>> shown_up(0.0238095), shown_up(0.9999999999999952), shown_up("inf")
    ('0.02381', '1', '∞')
    """
    if float(value) == math.inf:
        return "∞"
    # Read as the decimal that is written, so that 0.1 stays 0.1.
    return format_up(Fraction(str(value)), _DIGITS)


def shown_level(confidence: float) -> str:
    """Return a confidence in percent."""
    return f"{100 * confidence:.6g} %"


def loss_words(loss: Record) -> str:
    """Return a loss such as ``ε = 1, δ = 0.00001``.

    Examples
    --------
    >>> loss_words({"notion": "pure", "epsilon": 0.5})
    'ε = 0.5'
    """
    return ", ".join(
        f"{symbol} = {shown_up(loss[name])}"
        for name, symbol in _SYMBOLS.items()
        if name in loss
    )


def guess_bound(loss: Record) -> float:
    r"""Return how often two equally likely cases are told apart at most.

    .. math:: \frac{e^\varepsilon + \delta}{1 + e^\varepsilon}, \quad \Phi(\mu / 2),
       \quad \tfrac12 + \tfrac12 \min\{\sqrt{\rho / 2}, \sqrt{1 - e^{-\rho}}\}

    Notes
    -----
    The best test between two neighbouring tables. For zCDP the divergence is at most
    :math:`\rho`, and total variation is bounded by Pinsker and by Bretagnolle and
    Huber.

    Examples
    --------
    >>> round(guess_bound({"notion": "pure", "epsilon": 1.0}), 4)
    0.7311
    """
    if "mu" in loss:
        return float(ndtr(float(loss["mu"]) / 2))
    if "rho" in loss:
        rho = float(loss["rho"])
        apart = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
        return 0.5 + 0.5 * min(1.0, apart)
    miss = float(expit(-float(loss["epsilon"])))
    return 1.0 - (1.0 - float(loss.get("delta", 0.0))) * miss


def shown_guess(chance: float) -> str:
    """Return a chance in cases of a hundred, one digit, rounded up.

    Examples
    --------
    >>> shown_guess(0.73106), shown_guess(0.99999)
    ('73.2', '100')
    """
    tenths = min(1000, math.ceil(1000 * chance * (1 + 1e-12)))
    return f"{tenths / 10:g}"


def _window(record: Record) -> str:
    """Return the length of a window in words, or nothing."""
    per = record["document"]["source"]["per"]
    if not isinstance(per, Mapping):
        return ""
    found = re.fullmatch(r"(\d+)([wdhms])", str(per["window"]))
    if found is None:
        return shown_text(str(per["window"]))
    number, unit = int(found[1]), _TIMES[found[2]]
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _thing(name: str, record: Record) -> str:
    """Return what one protected change touches; empty if there are no words for it."""
    unit = record["document"]["source"]["unit"]
    person = "one person" if unit else "one row"
    cell = f"{person} in any one window of {_window(record)}"
    if name in ("unbounded", "bounded", "bounded:ordered"):
        return "one row"
    if name in ("event", "event:add-remove"):
        return f"the data of {cell}"
    if found := re.fullmatch(r"w-event:(\d+)(:single-user)?", name):
        times = f"{found[1]} windows of {_window(record)} in a row"
        if found[2]:
            return f"the data of {person}, within {times}"
        return f"the data of {person} in each of {times}, the same or another each time"
    if found := re.fullmatch(r"user(?::add-remove)?:max-times=(\d+)", name):
        return f"the data of {person} in at most {found[1]} windows"
    if name in ("user", "user:add-remove"):
        return f"all data of {person}" if unit else person
    return ""


def _comes_and_goes(name: str) -> bool:
    return "add-remove" in name or name == "unbounded"


def granularity_words(name: str, record: Record) -> str:
    """Say what may change at a granularity.

    Examples
    --------
    >>> source = {"per": {"window": "8h"}, "unit": "person"}
    >>> granularity_words("event", {"document": {"source": source}})
    'the data of one person in any one window of 8 hours, replaced by any other'
    """
    if found := re.fullmatch(r"group:(\d+):(.+)", name):
        return (
            f"{found[1]} changes at once, each: {granularity_words(found[2], record)}"
        )
    thing = _thing(name, record)
    if not thing:
        return f"a change of the kind {shown_text(name)}"
    if name.startswith("w-event"):
        return f"{thing}, replaced by any other"
    end = "there or not" if _comes_and_goes(name) else "replaced by any other"
    return f"{thing}, {end}"


def _question(record: Record) -> str:
    """Return what somebody who sees the release may ask."""
    name = record["plan"]["granularity"]
    thing = _thing(name, record)
    if not thing:
        change = granularity_words(name, record)
        return f"which of two equally likely tables is the true one, {change} apart,"
    if _comes_and_goes(name):
        verb = "is" if thing == "one row" else "are"
        return f"whether {thing} {verb} in the table, yes and no being equally likely,"
    return f"which of two equally likely versions of {thing} is the true one"


def promise_sentence(record: Record) -> str:
    """Say in one plain sentence what was promised."""
    stated = record["document"]["promise"]
    if stated["advantage"] is not None:
        return _advantage_sentence(record)
    # As it was stated, and not as the floats that a plan keeps, which are rounded up.
    loss = {
        name: Fraction(str(stated[name]))
        for name in _SYMBOLS
        if stated[name] is not None
    }
    known = "even if they know all other data"
    if stated["correlation"] is not None:
        known = (
            "even if they know how the records depend on each other, within the "
            "stated model, and any of the other records"
        )
    return (
        f"Whoever sees {_seen(record)} and asks {_question(record)} is right in at "
        f"most {shown_guess(guess_bound(loss))} of 100 cases ({loss_words(loss)}), "
        f"{known}."
    )


def _seen(record: Record) -> str:
    plan = record["plan"]
    if plan["horizon_costs"] is None:
        return "this release"
    return f"all {plan['runs']:,} runs of this release"


def _advantage_sentence(record: Record) -> str:
    plan = record["plan"]
    gain = points(float(Fraction(str(record["document"]["promise"]["advantage"]))))
    about = _thing(plan["granularity"], record)
    threat = "" if plan["risk"] is None else f" ({plan['risk']['threat']})"
    return (
        f"The attacker of the stated threat{shown_text(threat)} is right at most "
        f"{gain} percentage points more often because {about or 'what is protected'} "
        f"went into {_seen(record)}."
    )


def all_costs(record: Record) -> dict[str, Any]:
    """Return what all runs of the promise cost, by granularity."""
    plan = record["plan"]
    return _capped(plan["horizon_costs"] or plan["costs"], record)


def _capped(costs: Record, record: Record) -> dict[str, Any]:
    """Return costs, that of the promised level without the rounding of its floats.

    It is at most the promise, by exact arithmetic before a plan is made; the floats
    that a plan keeps are rounded up, and would be shown as a little more.
    """
    name, stated = record["plan"]["granularity"], record["document"]["promise"]
    kept = dict(costs[name])
    for key in _SYMBOLS:
        if key in kept and stated[key] is not None:
            most = Fraction(str(stated[key]))
            if most < float(kept[key]) <= most * (1 + _ROUNDING):
                kept[key] = most
    return {**costs, name: kept}


def cost_rows(record: Record) -> list[tuple[str, str, str, float, str]]:
    """Return each granularity: name, what may change, cost, guesses, cost of all runs.

    The last is empty where there is one run only. The cheapest comes first.
    """
    plan = record["plan"]
    whole, several = all_costs(record), plan["horizon_costs"] is not None
    run = _capped(plan["costs"], record)
    rows = [
        (
            name,
            granularity_words(name, record),
            loss_words(loss),
            guess_bound(whole[name]),
            loss_words(whole[name]) if several else "",
        )
        for name, loss in run.items()
    ]
    return sorted(rows, key=lambda row: _size(whole, row[0]))


def _size(costs: Record, name: str) -> float:
    loss = costs[name]
    return next(float(loss[key]) for key in ("epsilon", "rho", "mu") if key in loss)
