r"""Audits by one event on one pair of inputs, for any kind of output.

The pair and the event are chosen on one half of the runs; their counts on the other
half, which nobody has looked at, carry the certificate. Proofs, and what such an audit
cannot see: the page *Event audits*.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from undertow._validate import check_count, check_positive, check_probability
from undertow.audit._checkpoint import places
from undertow.audit._copies import check_copies
from undertow.audit._pair_choice import Choice, Search, read_pairs, stream_seed
from undertow.audit._pair_chunks import BATCH, EventTest, Pair
from undertow.audit._pair_draw import draw_outputs
from undertow.audit._pair_outcome import (
    FEWEST,
    TRAINING,
    certify_counts,
    job_fingerprint,
    longer_note,
    pair_result,
    pair_trials_needed,
)
from undertow.audit._pair_scores import ScoreChoice, asked_scores
from undertow.audit._timing import TIME_NOTE, as_timing, timed_runs
from undertow.audit.claim import Claim
from undertow.audit.recorded import RecordedSubject, in_random_order
from undertow.audit.result import AuditResult
from undertow.audit.runner import Progress, affordable_trials, run_chunks
from undertow.audit.subjects import Subject, require_pace
from undertow.errors import AuditError

__all__ = ["TRIALS", "audit_pair", "pair_trials_needed"]

TRIALS = 100_000
"""Runs of an audit of a pair if neither their number nor a time is stated."""

# Runs and seconds by which the time of one is measured, and fewest trials of an audit
# that is sized by time.
_RUNS, _LOOK, _LEAST = 1 << 16, 0.05, 2_000
_CHOSEN = (
    "{trials} trials were chosen as what {seconds:g} s allow; state {trials} trials to "
    "make as many again"
)
_FEWEST_CHOSEN = (
    "{trials} trials were made, the fewest that are chosen by a time, of which "
    "{seconds:g} s allow no more"
)
_REPEATED = (
    "{count} recorded outputs equal another one of their input: rows that were written "
    "down several times, as in exports that hold those of the days before, count "
    "several times and may refute a claim that holds; record every run once"
)
_DEFAULT = (
    "the number of trials was not stated: {trials} were made, whatever time they take, "
    "so that a seed repeats the audit; more trials, or a number of seconds for them, "
    "may show more"
)


def audit_pair(
    subject: Subject,
    claim: Claim,
    *,
    pairs: Sequence[Pair] | Literal["auto"] = "auto",
    trials: SupportsIndex | None = None,
    seconds: float | None = None,
    confidence: float = 0.99,
    seed: SupportsIndex = 0,
    score: ScoreChoice = None,
    workers: SupportsIndex = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    r"""Try to refute a claim by an event that one input makes much likelier.

    Parameters
    ----------
    subject : Subject
        What is run.
    claim : Claim
        Pure, approximate or Gaussian DP. A claim about adding or removing a record is
        tested as its consequence for replacing one; if the inputs themselves differ by
        one record more, state the claim without that adjacency.
    pairs : sequence of pairs of int or "auto", optional
        Numbers of neighbouring inputs; each pair is tried in both orders. By default
        every two inputs are neighbours.
    trials : int, optional
        Runs in all, one half for the choice and one half for the certificate; by
        default 100,000, whatever time they take, so that a seed repeats the audit, or
        all recorded runs. Where that default did not refute, a note says so.
    seconds : float, optional
        Instead of `trials`: about how long to run. Smaller audits are run first to
        measure how many trials that allows; a note tells the number, which makes as
        many again.
    confidence : float, optional
        Probability that a true claim is not refuted.
    seed : int, optional
        Reproduces the audit if the subject is seeded.
    score : "learned", "bits", "values", "time", callable or several, optional
        Numbers to look at besides the outputs themselves: classifiers of the outputs
        (scikit-learn), the lowest bits of floats before all else, or functions from
        outputs to one number each, which must not depend on the other outputs of the
        batch. A learned score is used only where it beats the others by more than
        chance, in training; so are, without being asked for, scores of whole vectors
        and of last digits. "values" leaves the digits out.
        "time" makes all runs one by one, the inputs in one random order, and looks at
        how long each takes, too; of functions that are not vectorised, and of commands,
        a process for each run.
    workers, progress
        As in :func:`~undertow.audit.runner.run_chunks`, for the certifying half.
    checkpoint : path, optional
        As there, for both halves. Besides counts it keeps the outputs of the choosing
        half and of a batch that was begun, so guard it as you would guard them. Of a
        function that is called for each run, every second is kept; of others, whole
        batches of 10,000.

    Returns
    -------
    AuditResult
        With the event and the pair as witness if the claim is refuted.

    Raises
    ------
    AuditError
        If the subject raises, tells nothing or returns nothing on every input, if it
        repeats its batches, if so few trials cannot refute
        the claim in any case, or if workers or a checkpoint are asked of a subject
        whose copies may repeat each other, or of timed runs.
    ValueError
        If both `trials` and `seconds` are given, or `seconds` with a checkpoint.

    Notes
    -----
    Theorem 1 of the page *Event audits*. One event is tested, so no correction for the
    search is due. Whatever a run ends in is an outcome: an exception, None, nan,
    another length or type. How long a run takes is looked at if asked for
    (Proposition 10), else a note says that it was not. Not checkable: independent
    runs, and that the inputs of a pair are neighbours. "Not refuted" is no proof:
    another pair, event or input may refute; a note tells what ten times the runs
    could. A prior means nothing for a pair: both inputs are given.

    Examples
    --------
    >>> from undertow.audit.subjects import MechanismSubject
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    >>> for level in (0.7, 1.0):
    ...     found = audit_pair(subject, Claim.pure(level), trials=40_000, seed=1)
    ...     print(found.verdict, round(found.certified, 2))
    violated 0.88
    not refuted 0.88
    """
    level = check_probability(confidence, "confidence", open_interval=True)
    root = check_count(seed, "seed", minimum=0)
    check_copies(subject, workers=workers, checkpoint=checkpoint)
    chosen = read_pairs(pairs, len(subject.inputs))
    notes: tuple[str, ...] = ()
    timed = "time" in asked_scores(score)
    if timed:
        _require_timing(subject, workers, checkpoint)
        notes = (TIME_NOTE,)
    by_default = trials is None and seconds is None
    if seconds is not None:
        _require_sizable(subject, trials, seconds, checkpoint)
        given: dict[str, Any] = {"pairs": pairs, "score": score, "seed": root}
        trials, fewest = _affordable(subject, claim, seconds, level, given)
        words = _CHOSEN if trials > fewest else _FEWEST_CHOSEN
        notes += (words.format(trials=trials, seconds=seconds),)
        seconds = seconds if trials > fewest else None
    if timed:
        count = check_count(TRIALS if trials is None else trials, "trials")
        used = sorted({number for pair in chosen for number in pair})
        subject = timed_runs(subject, used, trials=count, root=root)
    recorded = isinstance(subject, RecordedSubject)
    subject = in_random_order(subject, root)
    plan = _plan(subject, chosen, trials, claim)
    require_pace(subject, min(BATCH, max(*plan.train.values(), *plan.test.values())))
    _require_power(claim, plan, level, chosen, recorded=recorded)
    first, second = places(checkpoint, "choice", "counts")
    search = Search(subject, claim, chosen, level, score, root)
    choice = search.run(plan.train, place=first, fresh=not recorded)
    test = _event_test(subject, choice, plan)
    counts = run_chunks(
        test,
        chunks=test.chunks,
        seed=stream_seed(root),
        fingerprint=job_fingerprint(test, claim, level),
        workers=workers,
        checkpoint=second,
        progress=progress,
    )
    drawn = sum(plan.train.values()) + sum(test.sizes)
    found = pair_result(test, claim, level, counts, drawn, root)
    if found.violated and isinstance(subject, RecordedSubject) and subject.repeated:
        notes += (_REPEATED.format(count=subject.repeated),)
    if not found.violated:
        hits = (int(counts["p"]), int(counts["q"]))
        tested = claim.for_replacement()
        if by_default and not recorded:
            notes += (_DEFAULT.format(trials=TRIALS),)
        more = longer_note(tested, hits, test.sizes, level, seconds=seconds)
        notes += (more,)
    return replace(found, notes=(*found.notes, *notes))


def _require_timing(subject: Subject, workers: SupportsIndex, checkpoint: Any) -> None:
    """Refuse what runs in one random order, timed one by one, cannot have."""
    as_timing(subject)
    if check_count(workers, "workers") > 1:
        raise AuditError(
            f"workers must be 1 with score 'time', got {workers}: runs that share a "
            "machine delay each other."
        )
    if checkpoint is not None:
        raise AuditError(
            "checkpoint must be None with score 'time', got one: no seed repeats times."
        )


def _require_sizable(
    subject: Subject, trials: Any, seconds: float, checkpoint: Any
) -> None:
    """Refuse a time for what has a number of runs already."""
    check_positive(seconds, "seconds")
    if isinstance(subject, RecordedSubject):
        raise AuditError(
            f"seconds must be left out for recorded runs, got {seconds:g}; state how "
            "many trials to use."
        )
    if trials is not None or checkpoint is not None:
        beside = "trials" if trials is not None else "a checkpoint"
        raise ValueError(
            f"seconds must be left out beside {beside}, got {seconds:g}; state how "
            "many trials to run."
        )


def _affordable(
    subject: Subject,
    claim: Claim,
    seconds: float,
    confidence: float,
    given: dict[str, Any],
) -> tuple[int, int]:
    """Return how many trials so many seconds allow, by audits of few of them.

    Besides, the fewest that are ever returned.
    """
    rng = np.random.default_rng((given["seed"], 3))
    timed = "time" in asked_scores(given["score"])

    def run(trials: int) -> None:
        audit_pair(subject, claim, trials=trials, confidence=confidence, **given)

    def draw(runs: int) -> None:
        if timed:
            as_timing(subject).run_timed([0] * runs, rng=rng)
        else:
            draw_outputs(subject, 0, runs, rng)

    needed = pair_trials_needed(claim, confidence=confidence)
    least = max(_LEAST, 2 * needed, 4 * FEWEST * len(subject.inputs))
    trials = affordable_trials(
        run, seconds=seconds, least=least, each=_seconds_each(draw)
    )
    return trials, least


def _seconds_each(draw: Callable[[int], None]) -> float:
    """Return about how long one run takes, after the first one."""
    draw(1)
    size = 1
    while True:
        start = time.monotonic()
        draw(size)
        taken = time.monotonic() - start
        if taken >= _LOOK or size >= _RUNS:
            return taken / size
        size *= 4


@dataclass(frozen=True)
class _Plan:
    """Runs of each input for the choice, and for the certificate if chosen."""

    train: dict[int, int]
    test: dict[int, int]


def _event_test(subject: Subject, choice: Choice, plan: _Plan) -> EventTest:
    one, two = choice.pair
    sizes = (plan.test[one], plan.test[two])
    return EventTest(
        subject,
        choice.pair,
        choice.event,
        sizes=sizes,
        earlier=choice.earlier,
        notes=choice.notes,
    )


def _plan(
    subject: Subject, pairs: list[Pair], trials: SupportsIndex | None, claim: Claim
) -> _Plan:
    """Split the runs: half for the choice over all inputs, half for one pair."""
    used = sorted({number for pair in pairs for number in pair})
    if isinstance(subject, RecordedSubject):
        held = {number: subject.available(number) for number in used}
        if trials is not None:  # equal shares of what was asked for
            most = check_count(trials, "trials")
            held = {n: min(held[n], most // len(used)) for n in used}
        train = {n: min(held[n] // 2, TRAINING // len(used)) for n in used}
        test = {n: held[n] - train[n] for n in used}
    else:
        total = check_count(TRIALS if trials is None else trials, "trials")
        share = min(total // 2, TRAINING) // len(used)
        train = dict.fromkeys(used, share)
        test = dict.fromkeys(used, (total - share * len(used)) // 2)
    if min(train.values()) < FEWEST or min(test.values()) < 1:
        least = max(2 * FEWEST * len(used), pair_trials_needed(claim))
        raise AuditError(
            f"trials must leave {FEWEST} runs of each of {len(used)} inputs for the "
            f"choice, got {min(train.values())}; {_way_out(subject, used, least)}, or "
            "name fewer pairs."
        )
    return _Plan(train, test)


def _way_out(subject: Subject, used: list[int], least: int) -> str:
    if (
        isinstance(subject, RecordedSubject)
        and not subject.times
        and any(subject.available(number) < 2 * FEWEST for number in used)
    ):
        return f"record at least {least} runs, equally many of each input"
    return f"ask for at least {least} trials"


def _require_power(
    claim: Claim, plan: _Plan, confidence: float, pairs: list[Pair], *, recorded: bool
) -> None:
    tested = claim.for_replacement()
    best = max(
        certify_counts(
            tested, (plan.test[a], 0), (plan.test[a], plan.test[b]), confidence
        )[0]
        for a, b in pairs
    )
    if best <= tested.level:
        needed = pair_trials_needed(claim, confidence=confidence)
        given = sum(plan.train.values()) + 2 * max(plan.test.values())
        if recorded:  # runs of every input are set apart, not of one pair
            needed = -(-needed * len(plan.train) // 2)
            given = sum(plan.train.values()) + sum(plan.test.values())
        raise AuditError(
            f"trials must be at least {needed} for {claim} to be refutable at "
            f"confidence {confidence:g} at all, got {given}."
        )
