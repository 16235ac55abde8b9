r"""Audits of local protocols: the strongest of three methods, chosen on a pilot.

*Reconstruct*: the simple attack names the value. *Pairs*: the report supports its value
and not a random other one, or the reverse. *Value*: the same for one value that stands
out. A twentieth of the trials chooses, the others certify; only counts are kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np

from undertow._validate import check_count, check_probability
from undertow.audit._choice import candidates, choose, pilot_size, total_trials
from undertow.audit._chunks import Campaign
from undertow.audit._methods import Method
from undertow.audit._population import trials_needed
from undertow.audit._report import local_result
from undertow.audit._threat_audit import audit_threat, check_threat, is_plain_threat
from undertow.audit._trials import Source, UniformTrials
from undertow.audit.baseline import ldp_auditor
from undertow.audit.claim import Claim
from undertow.audit.recorded import RecordedSubject, in_random_order
from undertow.audit.result import AuditResult
from undertow.audit.runner import Counts, Progress
from undertow.audit.sequential import SequentialTest
from undertow.errors import AuditError
from undertow.numeric.rounding import nudge_up
from undertow.risk.threat import Threat

__all__ = ["audit_local", "audit_until_refuted", "pilot_size"]

_CHUNK = 1 << 16
_CELLS_HELD = 1 << 23
# Numbers in a table of posteriors.
_TABLE_HELD = 1 << 20
# Stages before the last one: trials of the first choice, tests for each of them,
# growth, which part of all trials they may take, their share of the error, and looks.
_FIRST, _TESTS, _GROWTH, _PART, _ERROR, _EARLY_LOOKS = 128, 2, 4, 10, 0.25, 8
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
        found = _audit_uniform(source, claim, n, level, campaign)
    else:
        sizes = replace(campaign, chunk=_table_chunk(source, chunk))
        found = audit_threat(
            source, claim, threat=threat, trials=n, confidence=level, campaign=sizes
        )
    if not baseline:
        return found
    return replace(found, baseline=_baseline(source, campaign, n, claim))


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
    drawn, pilot, found = 0, Counts(), None
    goal = claim.for_replacement().level
    for number, stage in enumerate(stages):
        # Phases 0 and 1 are those of the last stage, as of an audit without others.
        phase = 0 if stage.last else 2 * number + 2
        whole = Campaign(root, size).run(
            UniformTrials(source, pilot=True), stage.pilot, phase=phase, job="pilot"
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
        drawn += stage.pilot + int(counts["trials"][0])
        found = local_result(
            source,
            chosen,
            methods=methods,
            counts=(pilot, counts),
            seed=root,
            stopped=True,
        )
        if found.violated:
            _guard(source, drawn, root)
            break
    assert found is not None
    assert found.advantage is not None
    # The errors of the stages sum to that of the audit, for these limits too.
    return replace(
        found,
        confidence=level,
        trials=drawn,
        power={**found.power, "trials_needed": needed},
        advantage=replace(found.advantage, confidence=level),
    )


@dataclass(frozen=True)
class _Stage:
    """Trials for a choice and then for its test, and the confidence of the test."""

    pilot: int
    runs: int
    confidence: float
    last: bool = False


def _stages(
    claim: Claim, m: int, n: int, confidence: float
) -> tuple[list[_Stage], int]:
    """Return the stages, and the least trials that refute without earlier ones."""
    needed = SequentialTest(claim, m, confidence).trials_needed()
    few = _pilot_share(claim, m, trials=n, needed=needed)
    whole = [_Stage(few, n - few, confidence, last=True)]
    sizes = _early_sizes(n)
    left, error = n - (1 + _TESTS) * sum(sizes), 1.0 - confidence
    last = nudge_up(1.0 - (1.0 - _ERROR) * error)
    rest = SequentialTest(claim, m, last).trials_needed()
    if not sizes or left < total_trials(rest, m):
        return whole, total_trials(needed, m)
    each = nudge_up(1.0 - _ERROR * error / len(sizes))
    few = pilot_size(left, m)
    early = [_Stage(size, _TESTS * size, each) for size in sizes]
    stages = [*early, _Stage(few, left - few, last, last=True)]
    return stages, total_trials(needed, m)


def _early_sizes(n: int) -> list[int]:
    """Return the sizes of the pilots before the last one."""
    sizes: list[int] = []
    size, spent = _FIRST, (1 + _TESTS) * _FIRST
    while spent <= n // _PART:
        sizes.append(size)
        size *= _GROWTH
        spent += (1 + _TESTS) * size
    return sizes


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
    found = ldp_auditor(
        source.subject,
        reader=source.reader_given,
        trials=max(1, trials // 2),
        delta=claim.for_replacement().delta,
        seed=campaign.seed,
        chunk=campaign.chunk,
    )
    return found.to_dict()
