"""Audits of local protocols: the strongest of three methods, chosen on a pilot.

With the result made of the counts, its certificate as the trials double, and
LDP-Auditor for comparison.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from undertow._validate import check_choice, check_count, check_index, check_probability
from undertow.audit._method import (
    Method,
    Pairs,
    Reconstruct,
    Single,
    Tally,
    candidates,
    choose,
    pilot_size,
    total_trials,
)
from undertow.audit._size import (
    TESTS,
    Stage,
    early_sizes,
    early_stages,
    last_confidence,
    least_between,
    least_trials,
)
from undertow.audit._trial import CELLS, FixedTrials, Source, UniformTrials
from undertow.audit.certificate import (
    SequentialTest,
    epsilon_from_success,
    trials_needed,
)
from undertow.audit.claim import Claim
from undertow.audit.inversion import Inversion, estimate_protocol_level
from undertow.audit.record import RecordedSubject, in_random_order
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import Campaign, Counts, Progress
from undertow.audit.threat import audit_threat, check_threat, is_plain_threat
from undertow.errors import AuditError, UndertowError
from undertow.results import Estimate, _Shown
from undertow.risk.intervals import clopper_pearson
from undertow.risk.threat import Threat

_CHUNK = 1 << 16
_CELLS_HELD = 1 << 23
# Numbers in a table of posteriors.
_TABLE_HELD = 1 << 20
# Looks at a stage before the last one.
_EARLY_LOOKS = 8
# Reports of a subject by which dependence shows.
_GUARDED = 5_000


def audit_local(
    subject: Any,
    claim: Claim,
    *,
    trials: SupportsIndex,
    confidence: float = 0.99,
    seed: SupportsIndex,
    reader: Any = None,
    workers: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    baseline: bool = False,
    chunk: SupportsIndex | None = None,
    threat: Threat | None = None,
) -> AuditResult:
    r"""Audit a protocol by which each client reports its own value.

    Parameters
    ----------
    subject : LocalProtocol or Subject
        A protocol with ``sample(values, *, source)``, or a subject with ``inputs`` and
        ``sample(value, size, *, rng)``.
    claim : Claim
        What is promised; adding or removing a record is tested at its price for
        replacing one.
    trials : int
        Reports to draw in all.
    confidence : float, optional
        Probability that a true claim is not refuted, and that the certificate holds.
    seed : int
        Makes the run repeatable, whatever the workers and the order of the parts.
    reader : LocalProtocol, optional
        How the reports of a subject are read, if they are not values themselves.
    workers, checkpoint, progress
        As in :func:`~undertow.audit.runner.run_chunks`, for the certifying trials.
    baseline : bool, optional
        Also run LDP-Auditor, on as many trials again.
    chunk : int, optional
        Trials held in memory at a time. Each part has a seed of its own, so another
        size gives other, equally valid counts.
    threat : Threat, optional
        A prior on the values, in their order, a success rule and what is known of the
        target. The attack is then the best one against it, its advantage is measured
        on targets of the prior, and the sharpest bound for the threat is inverted. By
        default every value is equally likely and nothing is known, which gives the
        largest certificate if the code treats its values alike.

    Returns
    -------
    AuditResult
        The verdict is ``"violated"`` only if the certificate exceeds the claim.

    Raises
    ------
    ValueError
        If so few trials could not refute the claim whatever they show.
    AssumptionError
        If the claim allows all the advantage that there is against the threat.

    Notes
    -----
    Proofs: the page *Local audits*. The method, value and event are chosen on the pilot
    alone, whose trials are independent of the others, so that one certificate at the
    full level decides. Against a threat there is no choice, and Theorem 4 of that page
    holds for all trials, each of O(categories). Not checkable: that the trials are
    independent, and that the code run here is the code in use. O(trials) time for
    pairs, O(trials x categories) where the attack has to list a support; memory
    O(chunk x report + categories).

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> result = audit_local(OptimizedUnary(20, 1), Claim.pure("0.9"),
    ...                      trials=100_000, seed=1)
    >>> result.verdict, 0.95 < result.epsilon_certified < 1
    ('violated', True)
    """
    root, n = check_count(seed, "seed", minimum=0), check_count(trials, "trials")
    _require_values(claim)
    source = Source(in_random_order(subject, root), reader)
    level = check_probability(confidence, "confidence", open_interval=True)
    hands = check_count(workers, "workers")
    source.check_copies(workers=hands, checkpoint=checkpoint)
    size = _chunk_size(source, chunk)
    campaign = Campaign(root, size, hands, checkpoint, progress)
    plain = threat is None or is_plain_threat(check_threat(threat, source))
    if threat is None or plain:
        result = _audit_uniform(source, claim, n, level, campaign)
    else:
        sizes = replace(campaign, chunk=_table_chunk(source, chunk))
        result = audit_threat(
            source, claim, threat=threat, trials=n, confidence=level, campaign=sizes
        )
    if not baseline:
        return result
    return replace(result, baseline=_baseline(source, campaign, n, claim))


def _require_values(claim: Claim) -> None:
    """Refuse a claim about inputs of which one has a record more: values have not."""
    if claim.adjacency == "one-apart":
        raise AuditError(
            "claim must be about values that replace each other, got adjacency "
            "'one-apart'; a client always has a value: state 'local' or 'add-remove'."
        )


def _audit_uniform(
    source: Source, claim: Claim, n: int, confidence: float, campaign: Campaign
) -> AuditResult:
    """Audit with uniform values, by the method that a pilot chooses."""
    needed = trials_needed(claim, source.categories, confidence=confidence)
    few = _pilot_share(claim, source.categories, trials=n, needed=needed)
    source.check_fresh(n)
    sizes = (few, n - few)
    pilot, methods, chosen = _pilot(source, campaign, claim, confidence, sizes)
    job = f"audit_local of {source.identity} by {chosen!r}, with the attack"
    counts = campaign.run(chosen.trials(source), n - few, phase=1, job=job)
    return local_result(
        source, chosen, methods=methods, counts=(pilot, counts), seed=campaign.seed
    )


def audit_until_refuted(
    subject: Any,
    claim: Claim,
    *,
    trials: SupportsIndex,
    confidence: float = 0.99,
    seed: SupportsIndex,
    reader: Any = None,
    progress: Progress | None = None,
    chunk: SupportsIndex | None = None,
) -> AuditResult:
    r"""Audit a local protocol and stop as soon as its claim is refuted.

    Parameters
    ----------
    subject, claim, seed, reader
        As in :func:`audit_local`.
    trials : int
        The most reports to draw. The first choice is made on 128 of them and tested on
        twice as many, then on four times as many as long as that takes at most a tenth
        of all; the last on a twentieth of those left, and it is tested on the rest.
    confidence : float, optional
        Probability that a true claim is never refuted, however often one looks.
    progress : callable, optional
        Called after each look with the looks of a stage so far, the most there can be
        in it, and its counts.
    chunk : int, optional
        Trials between two looks; by default a hundredth of all, and at most an eighth
        of those of an earlier stage.

    Returns
    -------
    AuditResult
        With `trials` the number that was drawn. The certificate holds at all times; it
        is somewhat below that of :func:`audit_local` on as many trials.

    Notes
    -----
    Method and event are chosen on pilots, each with those before it; then Theorem 4 of
    the page *Audit certificates* replaces the fixed limits, at error levels of the
    stages that sum to that of the audit. Before the claim about a subject is refuted
    5,000 reports have been drawn, so that runs which depend on each other show.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> result = audit_until_refuted(OptimizedUnary(20, 2), Claim.pure(1),
    ...                              trials=100_000, seed=1)
    >>> result.verdict, result.trials < 5_000
    ('violated', True)
    """
    root, n = check_count(seed, "seed", minimum=0), check_count(trials, "trials")
    _require_values(claim)
    source = Source(in_random_order(subject, root), reader)
    level = check_probability(confidence, "confidence", open_interval=True)
    size = _chunk_size(source, chunk)
    step = size if chunk is not None else min(size, n // 100 + 1)
    stages, needed = _stages(claim, source.categories, n, level)
    source.check_fresh(n)
    drawn, pilot, result = 0, Counts(), None
    goal = claim.for_replacement().level
    for number, stage in enumerate(stages):
        # Phases 0 and 1 are those of the last stage, as of an audit without others.
        phase = 0 if stage.last else 2 * number + 2
        whole = Campaign(root, size).run(
            UniformTrials(source, pilot=True), stage.choice, phase=phase, job="pilot"
        )
        pilot = _sum(pilot, whole)
        methods = candidates(pilot, claim, source.categories, stage.confidence)
        chosen = choose(methods, pilot, stage.runs)
        each = step if stage.last else max(1, min(step, stage.runs // _EARLY_LOOKS))
        parts = Campaign(root, each).parts(
            chosen.trials(source), stage.runs, phase=phase + 1
        )
        counts, looks = Counts(), -(-stage.runs // each)
        for done, part in enumerate(parts, start=1):
            counts = _sum(counts, part)
            if progress is not None:
                progress(done, looks, {name: counts[name].copy() for name in counts})
            if chosen.certify_anytime(chosen.tally(counts))[0] > goal:
                break
        drawn += stage.choice + int(counts["trials"][0])
        result = local_result(
            source,
            chosen,
            methods=methods,
            counts=(pilot, counts),
            seed=root,
            stopped=True,
        )
        if result.violated:
            _guard(source, drawn, root)
            break
    assert result is not None
    assert result.advantage is not None
    # The errors of the stages sum to that of the audit, for these limits too.
    return replace(
        result,
        confidence=level,
        trials=drawn,
        power={**result.power, "trials_needed": needed},
        advantage=replace(result.advantage, confidence=level),
    )


def _stages(claim: Claim, m: int, n: int, confidence: float) -> tuple[list[Stage], int]:
    """Return the stages, and the least trials that refute without earlier ones."""
    needed = SequentialTest(claim, m, confidence).trials_needed()
    few = _pilot_share(claim, m, trials=n, needed=needed)
    whole = [Stage(few, n - few, confidence, last=True)]

    def cost(size: int) -> int:
        return (1 + TESTS) * size

    sizes, level = early_sizes(n, cost), last_confidence(confidence)
    left = n - sum(map(cost, sizes))
    rest = SequentialTest(claim, m, level).trials_needed()
    if not sizes or left < total_trials(rest, m):
        return whole, total_trials(needed, m)
    few = pilot_size(left, m)
    last = Stage(few, left - few, level, last=True)
    return [*early_stages(sizes, confidence), last], total_trials(needed, m)


def _sum(counts: Counts, part: Counts) -> Counts:
    return {name: counts.get(name, 0) + part[name] for name in part}


def _guard(source: Source, drawn: int, root: int) -> None:
    """Draw from a subject until dependence would have shown; nothing is counted."""
    left = _GUARDED - drawn
    recorded = isinstance(source.subject, RecordedSubject)
    if source.grouped and not recorded and left > 0:
        rng = np.random.default_rng((root, 6))
        source.draw(rng.integers(source.categories, size=left), rng=rng)


def _pilot(
    source: Source,
    campaign: Campaign,
    claim: Claim,
    confidence: float,
    sizes: tuple[int, int],
) -> tuple[Counts, tuple[Method, ...], Method]:
    """Run the pilot; return its counts, the methods, and the one it chooses."""
    trials = UniformTrials(source, pilot=True)
    counts = campaign.run(trials, sizes[0], phase=0, job="pilot")
    methods = candidates(counts, claim, source.categories, confidence)
    return counts, methods, choose(methods, counts, sizes[1])


def _pilot_share(claim: Claim, m: int, *, trials: int, needed: int) -> int:
    """Return the size of the pilot if the other trials can refute the claim."""
    total = total_trials(needed, m)
    if trials < total:
        raise ValueError(
            f"trials must be at least {total} to be able to refute {claim}, got "
            f"{trials}."
        )
    return pilot_size(trials, m)


def _chunk_size(source: Source, chunk: SupportsIndex | None) -> int:
    if chunk is not None:
        return check_count(chunk, "chunk")
    if source.grouped:  # one call of the subject per value and part
        return _CHUNK
    return max(256, min(_CHUNK, _CELLS_HELD // source.categories))


def _table_chunk(source: Source, chunk: SupportsIndex | None) -> int:
    """Return how many trials have their posteriors in memory at a time."""
    if chunk is not None:
        return check_count(chunk, "chunk")
    return max(64, min(_CHUNK, _TABLE_HELD // source.categories))


def _baseline(
    source: Source, campaign: Campaign, trials: int, claim: Claim
) -> dict[str, Any]:
    reported = ldp_auditor(
        source.subject,
        reader=source.reader_given,
        trials=max(1, trials // 2),
        delta=claim.for_replacement().delta,
        seed=campaign.seed,
        chunk=campaign.chunk,
    )
    return reported.to_dict()


# From the counts of a local audit to its result.

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
    return estimate_protocol_level(source.protocol, *attack[:2], confidence=confidence)


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
    detectable = _detectable(method, seen, certify)
    power = {
        "trials_needed": total_trials(needed, m),
        "ceiling": certify(seen._replace(hits=seen.trials, against=0))[0],
        "can_refute": detectable is not None,
        "detectable": math.inf if detectable is None else detectable,
    }
    alike = _needed_alike(method, counts, certify) if detectable is None else None
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
        if not drawn < total <= _LONGEST:
            return total > drawn
        both, n, m = (
            round(number * total / drawn)
            for number in (seen.hits + seen.against, seen.trials, seen.against_trials)
        )
        return certify(Tally(min(both, n), n, max(0, both - n), m))[0] > goal

    if seen.hits + seen.against == 0:
        return None
    needed = least_trials(reaches)
    return needed if needed <= _LONGEST else None


def _detectable(
    method: Method, seen: Tally, certify: Callable[[Tally], tuple[float, float]]
) -> float | None:
    """Return the estimate from which as many informative trials would refute.

    None if no outcome of them would.
    """
    goal = method.claim.for_replacement().level
    both = seen.hits + seen.against
    fewest, most = max(0, both - seen.against_trials), min(both, seen.trials)

    def split(hits: int) -> Tally:
        return seen._replace(hits=hits, against=both - hits)

    least = least_between(fewest, most + 1, lambda k: certify(split(k))[0] > goal)
    return None if least > most else method.claimed(split(least))


# The certificate of an audit as its trials double.
#
# Every point is the certificate of so many trials alone. It holds with the confidence
# of the audit for that number fixed beforehand, not for all points at once; the verdict
# rests on the last.

# Halvings of the trials that are shown.
_STEPS = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """Certificates after more and more trials.

    Parameters
    ----------
    points : tuple of pairs of int and float
        Trials, and the certified parameter after them; rising in the trials.
    how : str
        Where the points come from, in one sentence.
    """

    points: tuple[tuple[int, float], ...]
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return the points and their origin, ready for JSON."""
        listed = [{"trials": n, "certified": value} for n, value in self.points]
        return {"points": listed, "how": self.how}


def recorded_curve(
    result: AuditResult, looks: Sequence[Counts], *, categories: int
) -> Curve | None:
    """Read the curve of a local audit off the counts that its progress showed.

    Parameters
    ----------
    result : AuditResult
        Of :func:`~undertow.audit.audit_local`.
    looks : sequence of counts
        Handed to its `progress`, in order.
    categories : int
        Number of values.

    Returns
    -------
    Curve, optional
        None if the counts do not lead to the certificate of the result.
    """
    if not looks or "trials" not in looks[-1]:
        return None
    method = _method_of(result, looks[-1], categories)
    if method is None:
        return None
    kept: list[Counts] = []
    for counts in reversed(looks):
        if not kept or int(counts["trials"][0]) <= int(kept[-1]["trials"][0]) // 2:
            kept.append(counts)
    points = tuple(
        (int(counts["trials"][0]), method.certify(method.tally(counts))[0])
        for counts in reversed(kept[: _STEPS + 1])
    )
    return Curve(points, "From the counts of the first certifying trials of this run.")


def repeated_curve(
    audit: Callable[[int], AuditResult], result: AuditResult, *, steps: int = _STEPS
) -> Curve:
    """Run audits of a half, a quarter, ... of the trials; together at most as many.

    Parameters
    ----------
    audit : callable
        From a number of trials to the result of an audit of them.
    result : AuditResult
        The result of all trials: the last point.
    steps : int, optional
        Most halvings. It ends earlier where so few trials could not refute the claim.
    """
    points = [(result.trials, result.certified)]
    for step in range(1, steps + 1):
        try:
            smaller = audit(result.trials >> step)
        except (UndertowError, ValueError):
            break  # too few trials for any audit
        if smaller.trials >= points[-1][0]:
            break
        points.append((smaller.trials, smaller.certified))
    how = "From audits of a half, a quarter, ... of the trials."
    return Curve(tuple(reversed(points)), how)


def _method_of(result: AuditResult, counts: Counts, m: int) -> Method | None:
    """Return the method whose certificate on all counts is that of the result."""
    claim, level = result.claim, result.confidence
    methods: list[Method] = []
    if "pooled" in counts:
        methods += [Pairs(claim, level, turned) for turned in (False, True)]
    if "successes" in counts:
        methods.append(Reconstruct(claim, level, m))
    if "roles" in counts:
        methods += [
            Single(claim, level, 0, cell, turned)
            for cell in range(len(CELLS))
            for turned in (False, True)
        ]
    for method in methods:
        if method.certify(method.tally(counts))[0] == result.certified:
            return method
    return None


def running_estimate(counts: Counts, *, categories: int, delta: float) -> float | None:
    """Return a point estimate of epsilon from counts so far, where they show one.

    Examples
    --------
    >>> import numpy as np
    >>> counts = {"p": np.array(299), "q": np.array(99)}
    >>> round(running_estimate(counts, categories=2, delta=0.0), 2)
    1.1
    """
    if "successes" in counts:
        rate = float(counts["successes"][0] / counts["trials"][0])
        return float(epsilon_from_success(rate, categories, delta=delta))
    if "pooled" in counts:
        _, second, first, _ = counts["pooled"].tolist()
    elif "p" in counts:
        first, second = int(counts["p"]), int(counts["q"])
    else:
        return None
    return abs(math.log((first + 0.5) / (second + 0.5)))


# LDP-Auditor, the audit of two fixed values that others are compared with.
#
# Its population value for a symmetric protocol is that of Corollary 5.16; what it
# loses, it loses to two confidence limits and a rare false positive.

Tail = Literal["quarter", "half", "whole"]
"""Share of the error level in each of the two tails: the code's, the paper's, all."""

_SHARES = {"quarter": 4, "half": 2, "whole": 1}


@dataclass(frozen=True, slots=True)
class Baseline(_Shown):
    """What LDP-Auditor reports.

    Parameters
    ----------
    epsilon : float
        Log of the ratio of its two limits, at least 0.
    true_positives, false_positives, trials : int
        Its counts; trials are for each of the two values.
    values : tuple of int
        The value looked for, and the other one.
    alpha : float
        Its error level.
    tail : {"quarter", "half", "whole"}
        Share of it in each tail.
    """

    epsilon: float
    true_positives: int
    false_positives: int
    trials: int
    values: tuple[int, int]
    alpha: float
    tail: Tail


def ldp_auditor_epsilon(
    true_positives: SupportsIndex,
    false_positives: SupportsIndex,
    *,
    trials: SupportsIndex,
    alpha: float = 0.01,
    delta: float = 0.0,
    tail: Tail = "quarter",
) -> float:
    r"""Return what LDP-Auditor makes of its counts.

    .. math:: \ln\frac{L(\mathrm{TP}) - \delta}{U(\mathrm{FP})}

    Parameters
    ----------
    true_positives, false_positives : int
        How often the attack names the value, on it and on the other value.
    trials : int
        On each of the two values.
    alpha : float, optional
        Error level.
    delta : float, optional
        At which epsilon is asked for.
    tail : {"quarter", "half", "whole"}, optional
        Share of alpha in each tail: the published code passes alpha/2 to a two-sided
        routine, its paper means alpha/2; ``"whole"`` is not valid for both at once.

    Returns
    -------
    float
        Signed; minus infinity where the limit does not pass delta.

    Notes
    -----
    The ceiling at a million trials is 12.0252, 12.1481 or 12.2883 by the tail; the
    12.25 of the thesis and of Sauer is none of them.

    Examples
    --------
    >>> round(ldp_auditor_epsilon(10**6, 0, trials=10**6), 6)
    12.025172
    """
    n, share = check_count(trials, "trials"), _SHARES[_read_tail(tail)]
    alpha = check_probability(alpha, "alpha", open_interval=True)
    each = 1.0 - alpha / share
    low = clopper_pearson(true_positives, n, confidence=each, side="lower")[0]
    high = clopper_pearson(false_positives, n, confidence=each, side="upper")[1]
    kept = low - check_probability(delta, "delta")
    return math.log(kept / high) if kept > 0 else -math.inf


def ldp_auditor(
    subject: Any,
    *,
    trials: SupportsIndex,
    values: tuple[int, int] | None = None,
    reader: Any = None,
    alpha: float = 0.01,
    delta: float = 0.0,
    tail: Tail = "quarter",
    seed: SupportsIndex,
    chunk: SupportsIndex = 1 << 14,
) -> Baseline:
    """Run LDP-Auditor on a protocol or subject.

    Parameters
    ----------
    subject, reader
        As in :func:`~undertow.audit.local.audit_local`.
    trials : int
        On each of the two values.
    values : tuple of int, optional
        The value looked for and the other one; by default the first and the last.
    alpha, delta, tail
        As in :func:`ldp_auditor_epsilon`.
    seed : int
        The two values have independent streams; the published code uses one seed for
        both, which makes its two counts dependent.
    chunk : int, optional
        Trials held in memory at a time.

    Returns
    -------
    Baseline
        For comparison; no verdict rests on it.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> found = ldp_auditor(GeneralizedResponse(10, 2), trials=20_000, seed=1)
    >>> 1.7 < found.epsilon < 2.1
    True
    """
    root, n = check_count(seed, "seed", minimum=0), check_count(trials, "trials")
    source = Source(in_random_order(subject, root), reader)
    m = source.categories
    pair = (0, m - 1) if values is None else values
    first, second = (check_index(value, "values", size=m) for value in pair)
    if first == second:
        raise ValueError(f"values must differ, got {first} twice.")
    campaign = Campaign(root, check_count(chunk, "chunk"))
    hits = [
        int(
            campaign.run(
                FixedTrials(source, value, first), n, phase=phase, job="LDP-Auditor"
            )["hits"][0]
        )
        for phase, value in ((2, first), (3, second))
    ]
    epsilon = ldp_auditor_epsilon(
        hits[0], hits[1], trials=n, alpha=alpha, delta=delta, tail=tail
    )
    counted = (hits[0], hits[1], n)
    return Baseline(max(0.0, epsilon), *counted, (first, second), alpha, tail)


def _read_tail(tail: str) -> str:
    return check_choice(tail, "tail", choices=tuple(_SHARES))
