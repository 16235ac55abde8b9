r"""Audits of local protocols: the strongest of three methods, chosen on a pilot.

*Reconstruct*: the simple attack names the value. *Pairs*: the report supports its value
and not a random other one, or the reverse. *Value*: the same for one value that stands
out. A twentieth of the trials chooses, the others certify; only counts are kept.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, SupportsIndex

from undertow._validate import check_count, check_probability
from undertow.audit._choice import candidates, choose, pilot_size, total_trials
from undertow.audit._chunks import Campaign, Counts
from undertow.audit._methods import Method
from undertow.audit._report import local_result
from undertow.audit._threat_audit import audit_threat, check_threat, is_plain_threat
from undertow.audit._trials import Source, UniformTrials
from undertow.audit.baseline import ldp_auditor
from undertow.audit.certify import trials_needed
from undertow.audit.claim import Claim
from undertow.audit.recorded import in_random_order
from undertow.audit.result import AuditResult
from undertow.audit.runner import Progress
from undertow.audit.sequential import SequentialTest
from undertow.errors import AuditError
from undertow.risk.threat import Threat

__all__ = ["audit_local", "audit_until_refuted", "pilot_size"]

_CHUNK = 1 << 16
_CELLS_HELD = 1 << 23
# Numbers in a table of posteriors.
_TABLE_HELD = 1 << 20


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
        The most reports to draw.
    confidence : float, optional
        Probability that a true claim is never refuted, however often one looks.
    progress : callable, optional
        Called after each look with the looks so far, those in all, and the counts.
    chunk : int, optional
        Trials between two looks; by default a hundredth of all.

    Returns
    -------
    AuditResult
        With `trials` the number that was drawn. The certificate holds at all times; it
        is somewhat below that of :func:`audit_local` on as many trials.

    Notes
    -----
    Method and event are chosen on a pilot; then Theorem 4 of the page *Audit
    certificates* replaces the fixed limits.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> result = audit_until_refuted(OptimizedUnary(20, 2), Claim.pure(1),
    ...                              trials=100_000, seed=1)
    >>> result.verdict, result.trials < 20_000
    ('violated', True)
    """
    root, n = check_count(seed, "seed", minimum=0), check_count(trials, "trials")
    _require_values(claim)
    source = Source(in_random_order(subject, root), reader)
    level = check_probability(confidence, "confidence", open_interval=True)
    size = _chunk_size(source, chunk)
    campaign = Campaign(root, size if chunk is not None else min(size, n // 100 + 1))
    needed = SequentialTest(claim, source.categories, level).trials_needed()
    few = _pilot_share(claim, source.categories, trials=n, needed=needed)
    source.check_fresh(n)
    pilot, methods, chosen = _pilot(source, campaign, claim, level, (few, n - few))
    goal, counts = claim.for_replacement().level, Counts()
    looks = -(-(n - few) // campaign.chunk)
    parts = campaign.parts(chosen.trials(source), n - few, phase=1)
    for done, part in enumerate(parts, start=1):
        counts = {name: counts.get(name, 0) + part[name] for name in part}
        if progress is not None:
            progress(done, looks, {name: counts[name].copy() for name in counts})
        if chosen.certify_anytime(chosen.tally(counts))[0] > goal:
            break
    return local_result(
        source,
        chosen,
        methods=methods,
        counts=(pilot, counts),
        seed=root,
        stopped=True,
    )


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
