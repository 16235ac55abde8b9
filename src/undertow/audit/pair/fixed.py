"""Audits by one event on one pair of inputs, for any kind of output.

The number of trials is fixed beforehand: plan, run, and turn one event and its counts
into a certificate, an estimate and a witness.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from undertow._validate import check_count, check_positive, check_probability
from undertow.audit._outcome import shortened
from undertow.audit._size import least_between, least_runs
from undertow.audit.certificate import event_epsilon, event_mu
from undertow.audit.claim import Claim
from undertow.audit.event import LabelEvent, ScoreEvent
from undertow.audit.pair._choice import Choice, Search, read_pairs, stream_seed
from undertow.audit.pair._draw import (
    BATCH,
    TIME_NOTE,
    EventTest,
    Pair,
    as_timing,
    draw_outputs,
    timed_runs,
)
from undertow.audit.pair._score import ScoreChoice, asked_scores
from undertow.audit.record import RecordedSubject, in_random_order
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import (
    Counts,
    Progress,
    affordable_trials,
    places,
    run_chunks,
)
from undertow.audit.subject import (
    Subject,
    check_copies,
    is_seeded,
    require_pace,
    subject_identity,
)
from undertow.errors import AuditError
from undertow.privacy.tradeoff import attack_epsilon_bound, attack_mu_bound
from undertow.results import Estimate, Witness, to_plain
from undertow.risk.intervals import clopper_pearson

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
    >>> from undertow.audit.subject import MechanismSubject
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
    result = pair_result(test, claim, level, counts, drawn, root)
    if result.violated and isinstance(subject, RecordedSubject):
        if subject.perhaps_copied:
            raise AuditError(
                f"{subject.name} must hold every run once to refute a claim, got "
                f"{subject.repeated:,} outputs with all digits of a float that occur "
                "several times; remove copies, such as rows of an earlier export, or, "
                "if the outputs are of a short list, write a name for each."
            )
        if subject.repeated:
            notes += (_REPEATED.format(count=subject.repeated),)
    if not result.violated:
        hits = (int(counts["p"]), int(counts["q"]))
        tested = claim.for_replacement()
        if by_default and not recorded:
            notes += (_DEFAULT.format(trials=TRIALS),)
        more = longer_note(tested, hits, test.sizes, level, seconds=seconds)
        notes += (more,)
    return replace(result, notes=(*result.notes, *notes))


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
        recorded = {number: subject.available(number) for number in used}
        if trials is not None:  # equal shares of what was asked for
            most = check_count(trials, "trials")
            recorded = {n: min(recorded[n], most // len(used)) for n in used}
        train = {n: min(recorded[n] // 2, TRAINING // len(used)) for n in used}
        test = {n: recorded[n] - train[n] for n in used}
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


# From one event and its counts to a certificate, an estimate and a witness.

Certify = Callable[
    [Claim, tuple[int, int], tuple[int, int], float], tuple[float, float]
]
"""From a tested claim, hits, trials and a confidence to limits, and that of epsilon."""

FEWEST = 8
"""Runs of each input that a choice needs."""
TRAINING = 2_000_000
"""Most runs used for the choice, all inputs together."""

_LARGEST = 2**49
_STILL = (
    "among the runs that chose the event, all of one input gave the same output: there "
    "is no noise, or it is drawn once and kept; then this is about the kept value"
)


def pair_trials_needed(claim: Claim, *, confidence: float = 0.99) -> int:
    """Return how many trials a pair audit needs to be able to refute a claim at all.

    Examples
    --------
    >>> pair_trials_needed(Claim.pure(1)), pair_trials_needed(Claim.pure(10))
    (68, 466824)
    """
    high = runs_needed(claim, confidence=confidence)
    # Two inputs, and as many runs again, or the most used, for the choice.
    return max(4 * FEWEST, 2 * high + min(2 * high, TRAINING))


def runs_needed(claim: Claim, *, confidence: float) -> int:
    """Return how many certifying runs on each input can refute a claim at all."""
    tested = claim.for_replacement()

    def reaches(n: int) -> bool:
        return certify_counts(tested, (n, 0), (n, n), confidence)[0] > tested.level

    return least_runs(reaches, claim, most=_LARGEST)


def certify_counts(
    tested: Claim, hits: tuple[int, int], trials: tuple[int, int], confidence: float
) -> tuple[float, float]:
    """Return the certified limits of the claimed parameter, and of epsilon."""
    counts = (hits[0], trials[0], hits[1], trials[1])
    epsilon = event_epsilon(*counts, delta=tested.delta, confidence=confidence).value
    if tested.parameter == "epsilon":
        return epsilon, epsilon
    return event_mu(*counts, confidence=confidence).value, epsilon


def _estimates(
    tested: Claim, hits: tuple[int, int], trials: tuple[int, int]
) -> tuple[float, float]:
    """Return point estimates of the claimed parameter and of epsilon, half a hit added.

    A limit on the rates would make the same formulas certificates.
    """
    rates = [(k + 0.5) / (n + 1) for k, n in zip(hits, trials, strict=True)]
    epsilon = attack_epsilon_bound(tpr=rates[0], fpr=rates[1], delta=tested.delta)
    if tested.parameter == "epsilon":
        return epsilon, epsilon
    return attack_mu_bound(tpr=rates[0], fpr=rates[1]), epsilon


def _advantage(
    hits: tuple[int, int], trials: tuple[int, int], confidence: float, seed: int | None
) -> Estimate:
    """Return half the difference of the rates, and its interval."""
    each = 1.0 - (1.0 - confidence) / 2.0
    (p, q), (n, m) = hits, trials
    low_p, high_p = clopper_pearson(p, n, confidence=each)
    low_q, high_q = clopper_pearson(q, m, confidence=each)
    value = (p / n - q / m) / 2
    return Estimate(
        value,
        min(value, (low_p - high_q) / 2),
        max(value, (high_p - low_q) / 2),
        confidence,
        n + m,
        seed,
        "Clopper-Pearson limits of two rates",
    )


def pair_power(
    tested: Claim,
    hits_q: int,
    trials: tuple[int, int],
    confidence: float,
    *,
    needed: int,
    certify: Certify = certify_counts,
) -> dict[str, float]:
    """Return what so many runs could have found, the second rate as it was seen."""
    n = trials[0]

    def reached(hits: int, against: int) -> float:
        return certify(tested, (hits, against), trials, confidence)[0]

    power: dict[str, float] = {"trials_needed": needed, "ceiling": reached(n, 0)}
    if reached(n, hits_q) <= tested.level:
        return {**power, "can_refute": False, "detectable": math.inf}
    least = least_between(0, n, lambda hits: reached(hits, hits_q) > tested.level)
    detectable = _estimates(tested, (least, hits_q), trials)[0]
    return {**power, "can_refute": True, "detectable": detectable}


def job_fingerprint(test: EventTest, claim: Claim, confidence: float) -> str:
    """Return all that the counts of the certifying half depend on, but the seed."""
    parts = [
        subject_identity(test.subject),
        test.pair,
        test.event.exact,
        test.sizes,
        test.batch,
        str(claim),
        confidence,
    ]
    return json.dumps(parts)


def pair_result(
    test: EventTest,
    claim: Claim,
    confidence: float,
    counts: Counts,
    drawn: int,
    root: int,
) -> AuditResult:
    """Return the outcome of the counts, after `drawn` runs in all."""
    tested = claim.for_replacement()
    hits, trials = (int(counts["p"]), int(counts["q"])), test.sizes
    certified, epsilon = certify_counts(tested, hits, trials, confidence)
    estimate, epsilon_estimate = _estimates(tested, hits, trials)
    seed = root if is_seeded(test.subject) else None
    needed = pair_trials_needed(claim, confidence=confidence)
    power = pair_power(tested, hits[1], trials, confidence, needed=needed)
    method = MethodResult(
        f"event on a pair: {test.event.words}",
        estimate,
        certified,
        sum(trials),
        decides=True,
        parameter=tested.parameter,
        ceiling=power["ceiling"],
    )
    return AuditResult(
        _title(test.subject),
        claim,
        certified,
        confidence=confidence,
        trials=drawn,
        epsilon_certified=epsilon,
        epsilon_estimate=epsilon_estimate,
        advantage=_advantage(hits, trials, confidence, seed),
        methods=(method,),
        witness=_witness(test, hits) if certified > tested.level else None,
        power=power,
        seed=seed,
        estimate=estimate,
        notes=_notes(test, hits),
        times=bool(getattr(test.subject, "times", False)),
    )


def longer_note(
    tested: Claim,
    hits: tuple[int, int],
    trials: tuple[int, int],
    confidence: float,
    *,
    certify: Certify = certify_counts,
    seconds: float | None = None,
) -> str:
    """Return which claims ten times as many runs could refute, in a sentence.

    Examples
    --------
    >>> print(longer_note(Claim.pure(3), (900, 100), (1000, 1000), 0.99))
    ten times as many trials would certify about 2.112 by the same event, if its rates \
stay as they are: claims below that could be refuted
    """
    first, second = ((10 * k, 10 * n) for k, n in zip(hits, trials, strict=True))
    value = certify(tested, (first[0], second[0]), (first[1], second[1]), confidence)[0]
    about = "" if seconds is None else f", in about {10 * seconds:g} s,"
    if value <= 0:
        return (
            f"ten times as many trials{about} would certify nothing by the same event, "
            "if its rates stay as they are: look at other inputs, or for other events"
        )
    return (
        f"ten times as many trials{about} would certify about {value:.4g} by the same "
        "event, if its rates stay as they are: claims below that could be refuted"
    )


def _notes(test: EventTest, hits: tuple[int, int]) -> tuple[str, ...]:
    """Return what a reader should know of the outputs."""
    # The certifying runs are counted and not kept: they agree in what was counted.
    certain = all(k in (0, n) for k, n in zip(hits, test.sizes, strict=True))
    return (*((_STILL,) if test.still and certain else ()), *test.notes)


def _title(subject: Subject) -> str:
    return f"{subject.name} {subject.version}".strip()


def _exact_words(event: LabelEvent | ScoreEvent) -> str:
    """Return the event in words that are true to the last digit."""
    return event.exact if isinstance(event, ScoreEvent) else event.words


def _words_of_rest(event: LabelEvent | ScoreEvent) -> str:
    """Return all other outputs in words, those of an interval to the last digit."""
    if isinstance(event, ScoreEvent):
        return event.complement
    outputs = event.words.removeprefix(f"{event.name} ")
    if outputs[0] == "=":
        return f"{event.name} is not {outputs[2:]}"
    return f"{event.name} not {outputs}"


def _plain(given: Any) -> Any:
    """Return an input, or its words if it holds what a report cannot: a nan."""
    try:
        to_plain(given)
    except ValueError:
        return repr(given)
    return given


def _witness(test: EventTest, hits: tuple[int, int]) -> Witness:
    """Return the event, or all other outputs where these tell the inputs apart.

    The other outputs, with the inputs exchanged, carry the certificate exactly if the
    rates of the event sum to more than 1.
    """
    pair, sizes, words = (
        test.pair,
        test.sizes,
        (_exact_words(test.event), test.event.exact),
    )
    if hits[0] / sizes[0] + hits[1] / sizes[1] > 1:
        pair, sizes = pair[::-1], sizes[::-1]
        hits = (sizes[0] - hits[1], sizes[1] - hits[0])
        words = (_words_of_rest(test.event), test.event.complement)
    first, second = (test.subject.inputs[given] for given in pair)
    summary = (
        f"{words[0]}: {hits[0]} of {sizes[0]} runs on {shortened(repr(first))}, "
        f"{hits[1]} of {sizes[1]} on {shortened(repr(second))}"
    )
    details = {
        "pair": (_plain(first), _plain(second)),
        "event": words[1],
        "hits": hits,
        "trials": sizes,
    }
    return Witness("event", summary, details)
