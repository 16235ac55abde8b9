r"""The risk of a release on one card, in the words of whoever has to decide.

What an attacker reaches with and without the person's participation, how much of that
is due to taking part, which statement says so, and what other attackers would gain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from undertow.errors import UndertowError
from undertow.results import _Shown
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families.base import Family, closed_view, uniform_prior
from undertow.risk.finite import OptimalAttack, Risk, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Threat

_WARNINGS = (
    "records are taken as independent; correlated records can be worse",
    "the prior is taken as public; one counted on the private data leaks them",
    "the guarantee is about replacing a record, not about adding or removing one",
)
# Outputs of a table up to which the best attack itself is worked out.
_TABLE = 4096
# What the margins of computed advantages may add, as a share: taken off before an
# advantage is rounded up to be read, so that it is not rounded up twice.
_RAISED = 1e-11
# Hypotheses that the first two warnings state.
_STATED = ("the target is independent of the other records", "the prior is public")


@dataclass(frozen=True, slots=True)
class OtherThreat(_Shown):
    """The advantage of another attacker on the same release.

    Parameters
    ----------
    threat : str
        What is different, in words.
    advantage : float or None
        None where it could not be computed.
    exact : bool
        Whether it is exact, or a bound.
    note : str
        Why there is no number.
    """

    threat: str
    advantage: float | None
    exact: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class RiskCard(_Shown):
    """What a release discloses about one person, under one threat.

    Parameters
    ----------
    sentence : str
        The finding in one sentence.
    advantage : float
        Success due to taking part, with a margin that covers the rounding of its
        computation.
    points : str
        The same for reading, in percentage points rounded up, without that margin.
    share : float
        Of the largest advantage that there is under this threat.
    ceiling : float
        That largest advantage.
    baseline : float
        Best success without any output, from prior and knowledge.
    success_with, success_without : float, optional
        Success of the attack of largest advantage if the person took part, and if not;
        None where that attack was not worked out.
    release, threat : str
        What was assessed.
    exact : bool
        Whether an attack attains the advantage.
    theorem : str
        What proves it.
    others : tuple of OtherThreat
        Other knowledge and other thresholds.
    warnings : tuple of str
        What must be taken on trust.
    """

    sentence: str
    advantage: float
    points: str
    share: float
    ceiling: float
    baseline: float
    success_with: float | None
    success_without: float | None
    release: str
    threat: str
    exact: bool
    theorem: str
    others: tuple[OtherThreat, ...] = ()
    warnings: tuple[str, ...] = ()


def points(advantage: float) -> str:
    """Return an advantage in percentage points with one digit, rounded up.

    A float is read as the decimal it is written as.

    Examples
    --------
    >>> points(0.05), points(0.0501), points(0.0)
    ('5.0', '5.1', '0.0')
    """
    exact = Decimal(repr(float(advantage))) * 100
    return str(exact.quantize(Decimal("0.1"), rounding=ROUND_CEILING))


def risk_card(
    source: Any,
    threat: Threat,
    *,
    parameter: float | None = None,
    what: str = "record",
    etas: Sequence[float] | None = None,
) -> RiskCard:
    """State the risk of a release to one person in words.

    Parameters
    ----------
    source : Family, Channel, ScalarChannel or mechanism
        What is released; a family needs its `parameter`.
    threat : Threat
        Whom the card is about.
    parameter : float, optional
        Of the family.
    what : str, optional
        What is guessed, for the sentence, such as ``"working hours"``.
    etas : sequence of float, optional
        Other thresholds to report for records that are numbers; by default a tenth and
        a quarter of their range.

    Returns
    -------
    RiskCard
        The advantage, never rounded down, and what goes with it.

    Raises
    ------
    TypeError
        If a family comes without a parameter, or anything else with one.

    Notes
    -----
    Success alone says little: an attacker who always names the likeliest record may be
    right most of the time and learns nothing. The card puts the part that is due to
    taking part first (thesis, Definition 5.1).

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> from undertow.risk.families import laplace
    >>> card = risk_card(
    ...     laplace(range(1, 12)),
    ...     Threat(Prior.uniform(range(1, 12))),
    ...     parameter=1.0,
    ...     what="number of visits",
    ... )
    >>> print(card.sentence[:61])
    A person's exact number of visits can be guessed 4.5 points m
    >>> card.sentence.endswith("more often because they took part.")
    True
    """
    if isinstance(source, Family) != (parameter is not None):
        raise TypeError(
            "parameter must be given for a family and only then, got "
            f"{parameter!r} for {type(source).__name__}."
        )
    found = _measured(source, threat, parameter)
    present = _participation(source, threat, parameter, found)
    return RiskCard(
        _sentence(found, threat, what),
        found.value,
        _shown(found),
        min(1.0, found.share),
        found.ceiling,
        threat.informed_guess,
        *present,
        _release(source, parameter),
        threat.summary,
        found.tight is True,
        found.theorem,
        tuple(_others(source, threat, parameter, etas)),
        (*_WARNINGS, *_doubts(source, found)),
    )


def _measured(source: Any, threat: Threat, parameter: float | None) -> Risk:
    if parameter is None:
        return advantage(source, threat)
    family: Family = source
    return family.risk(parameter, threat)


def _participation(
    source: Any, threat: Threat, parameter: float | None, found: Risk
) -> tuple[float | None, float | None]:
    """Return the success of the best attack with and without participation."""
    if found.tight is not True:
        return None, None
    if closed_view(threat) == "none" and uniform_prior(threat):
        blind = 1.0 / len(threat.prior)
        return min(1.0, blind + found.value), blind
    table = source
    if parameter is not None:
        table = source.source(source.level(parameter), threat)
    if not isinstance(table, Channel) or table.outputs > _TABLE:
        return None, None
    decision = OptimalAttack(table, threat).decision()
    seen = attack_risk(table, threat, decision=decision)
    return seen.success, seen.correction


def _sentence(found: Risk, threat: Threat, what: str) -> str:
    aim, kinds = _aim(threat.success.summary, what), len(np.unique(threat.labels))
    if found.value == 0.0:
        return f"Taking part does not help this attacker to guess a person's {aim}."
    gain = ("" if found.tight is True else "at most ") + _shown(found)
    if kinds == len(threat.prior):
        return (
            f"Somebody who knows a person's {what} says 'took part' {gain} points more "
            "often if they did than if they did not."
        )
    knower = f" by somebody who knows {threat.knowledge.summary}" if kinds > 1 else ""
    return (
        f"A person's {aim} can be guessed{knower} {gain} points more often because "
        "they took part."
    )


def _shown(found: Risk) -> str:
    return points(found.value * (1.0 - _RAISED))


def _aim(rule: str, what: str) -> str:
    """Return what is guessed, in the words of the success rule."""
    if rule == "the exact record":
        return f"exact {what}"
    if rule.startswith("within"):
        return f"{what} to {rule}"
    named = rule.removeprefix("the ").removeprefix("right ")
    return what if what != "record" else named


def _others(
    source: Any, threat: Threat, parameter: float | None, etas: Sequence[float] | None
) -> Iterator[OtherThreat]:
    size = len(threat.prior)
    kinds = len(np.unique(threat.labels))
    if kinds > 1:
        yield _other(
            source,
            replace(threat, knowledge=Knowledge.none()),
            parameter,
            "no knowledge",
        )
    if kinds < size:
        known = replace(threat, knowledge=Knowledge.full())
        yield _other(source, known, parameter, "the whole record known")
    for eta in _thresholds(threat, etas):
        rule = Success.within("absolute", eta)
        if rule.summary != threat.success.summary:
            yield _other(
                source,
                replace(threat, success=rule),
                parameter,
                f"a guess {rule.summary}",
            )


def _other(
    source: Any, threat: Threat, parameter: float | None, label: str
) -> OtherThreat:
    try:
        found = _measured(source, threat, parameter)
    except UndertowError as refusal:
        return OtherThreat(label, None, False, str(refusal))
    return OtherThreat(label, found.value, found.tight is True)


def _thresholds(threat: Threat, etas: Sequence[float] | None) -> Sequence[float]:
    if etas is not None:
        return etas
    numbers = [
        float(record)
        for record in threat.support
        if isinstance(record, int | float | np.number) and not isinstance(record, bool)
    ]
    if len(numbers) < len(threat.prior):
        return ()
    reach = max(numbers) - min(numbers)
    return (reach / 10.0, reach / 4.0)


def _release(source: Any, parameter: float | None) -> str:
    if parameter is None:
        return repr(source)
    return f"{source.name} with {source.parameter} {parameter:.6g}"


def _doubts(source: Any, found: Risk) -> Iterator[str]:
    yield from (f"taken on trust: {x}" for x in found.unchecked if x not in _STATED)
    if isinstance(source, Family):
        yield from source.caveats
    if found.tight is not True:
        yield "the advantage is an upper bound; the exact one may be smaller"
    if found.ceiling == 0.0:
        yield "under this threat there is nothing to learn, whatever is released"
    elif math.isclose(found.value, found.ceiling, rel_tol=1e-3):
        yield "the release discloses nearly all that there is to learn"
