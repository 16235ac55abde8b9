"""From the counts of a local audit to its result."""

from __future__ import annotations

import math
from collections.abc import Callable

from undertow.audit._choice import total_trials
from undertow.audit._methods import Method, Tally
from undertow.audit._population import trials_needed
from undertow.audit._trials import Source
from undertow.audit.inversion import Inversion
from undertow.audit.protocol_level import estimate_protocol_level
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import Counts
from undertow.audit.sequential import SequentialTest
from undertow.numeric.rounding import greatest_int
from undertow.privacy.result import Estimate
from undertow.risk.intervals import clopper_pearson

__all__ = ["local_result"]

# Trials beyond which nobody asks how many more are needed.
_LONGEST = 10**12


def local_result(
    source: Source,
    chosen: Method,
    *,
    methods: tuple[Method, ...],
    counts: tuple[Counts, Counts],
    seed: int,
    stopped: bool = False,
) -> AuditResult:
    """Return the result of the chosen method on its own trials.

    If the trials `stopped` by what they showed, only limits that hold at all times are
    used, and the advantage is that of the pilot.
    """
    pilot, main = counts
    tally = chosen.tally(main)
    certify = chosen.certify_anytime if stopped else chosen.certify
    certified, epsilon = certify(tally)
    claim, level = chosen.claim, chosen.confidence
    known = seed if source.seeded else None
    attack = _attack_counts(pilot, main, stopped=stopped)
    power = _power(chosen, main, source.categories, stopped=stopped)
    return AuditResult(
        source.name,
        claim,
        certified,
        level,
        int(main["trials"][0]) + int(pilot["trials"][0]),
        epsilon,
        epsilon_estimate=max(0.0, chosen.estimate(tally)),
        advantage=_advantage(attack, source.categories, level, known),
        methods=tuple(
            _deciding_row(m, main, certified, float(power["ceiling"]))
            if m is chosen
            else _pilot_row(m, pilot)
            for m in methods
        ),
        witness=chosen.witness(main)
        if certified > claim.for_replacement().level
        else None,
        power=power,
        seed=known,
        inversion=_inversion(source, attack, level),
        estimate=chosen.claimed(tally),
    )


def _deciding_row(
    method: Method, main: Counts, certified: float, ceiling: float
) -> MethodResult:
    return MethodResult(
        method.name,
        method.claimed(method.tally(main)),
        certified,
        int(main["trials"][0]),
        True,
        method.claim.parameter,
        ceiling,
    )


def _pilot_row(method: Method, pilot: Counts) -> MethodResult:
    tally, tried = method.tally(pilot), method.choices(pilot)
    certified, _ = method.certify(tally, tried=tried)
    return MethodResult(
        method.name,
        method.claimed(tally),
        certified,
        int(pilot["trials"][0]),
        False,
        method.claim.parameter,
        method.ceiling(tally, tried=tried),
    )


def _attack_counts(
    pilot: Counts, main: Counts, *, stopped: bool
) -> tuple[int, int, str]:
    """Return successes and trials of the simple attack, and which trials they are.

    The larger of the two numbers of trials, both of which were fixed before the data.
    """
    few = int(pilot["trials"][0])
    for hits, trials in (("successes", "trials"), ("attack_hits", "attack_trials")):
        if hits in main and not stopped and int(main[trials][0]) >= few:
            return int(main[hits][0]), int(main[trials][0]), "certifying"
    return int(pilot["successes"][0]), few, "choosing"


def _advantage(
    attack: tuple[int, int, str], m: int, confidence: float, seed: int | None
) -> Estimate:
    hits, n, which = attack
    low, high = clopper_pearson(hits, n, confidence=confidence)
    blind = 1.0 / m
    method = f"Clopper-Pearson, uniform targets, on {n} {which} trials"
    return Estimate(
        hits / n - blind, low - blind, high - blind, confidence, n, seed, method
    )


def _inversion(
    source: Source, attack: tuple[int, int, str], confidence: float
) -> Inversion | None:
    """Return the level that the attack tells if the code is the protocol it is read by.

    None if it is read by none, or by one that belongs to no family.
    """
    told = source.reader_given
    if told is None:
        told = getattr(source.subject, "protocol", source.subject)
    return estimate_protocol_level(told, *attack[:2], confidence=confidence)


def _power(
    method: Method, counts: Counts, m: int, *, stopped: bool
) -> dict[str, float]:
    """Return what these trials could have shown, by the limits that were used."""
    claim, level, seen = method.claim, method.confidence, method.tally(counts)
    certify = method.certify_anytime if stopped else method.certify
    needed = (
        SequentialTest(claim, m, level).trials_needed()
        if stopped
        else trials_needed(claim, m, confidence=level)
    )
    found = _detectable(method, seen, certify)
    power = {
        "trials_needed": total_trials(needed, m),
        "ceiling": certify(seen._replace(hits=seen.trials, against=0))[0],
        "can_refute": found is not None,
        "detectable": math.inf if found is None else found,
    }
    alike = _needed_alike(method, counts, certify) if found is None else None
    return power if alike is None else {**power, "trials_alike": total_trials(alike, m)}


def _needed_alike(
    method: Method, counts: Counts, certify: Callable[[Tally], tuple[float, float]]
) -> int | None:
    """Return about how many trials could refute, if as large a share is informative.

    None if no number up to 10^12 is found.
    """
    goal, seen = method.claim.for_replacement().level, method.tally(counts)
    drawn = int(counts["trials"][0])

    def reaches(total: int) -> bool:
        both, n, m = (
            round(number * total / drawn)
            for number in (seen.hits + seen.against, seen.trials, seen.against_trials)
        )
        return certify(Tally(min(both, n), n, max(0, both - n), m))[0] > goal

    def beyond(total: int) -> bool:
        return total <= drawn or (total <= _LONGEST and not reaches(total))

    if seen.hits + seen.against == 0:
        return None
    needed = 1 + greatest_int(beyond)
    return needed if needed <= _LONGEST else None


def _detectable(
    method: Method, seen: Tally, certify: Callable[[Tally], tuple[float, float]]
) -> float | None:
    """Return the estimate from which as many informative trials would refute.

    None if no outcome of them would.
    """
    goal = method.claim.for_replacement().level
    both = seen.hits + seen.against
    low = max(0, both - seen.against_trials)
    high = min(both, seen.trials) + 1
    most = high
    while high - low > 1:
        mid = (low + high) // 2
        if certify(seen._replace(hits=mid, against=both - mid))[0] > goal:
            high = mid
        else:
            low = mid
    if high == most:
        return None
    return method.claimed(seen._replace(hits=high, against=both - high))
