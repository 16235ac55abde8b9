"""From one event and its counts to a certificate, an estimate and a witness."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from undertow.audit._identity import subject_identity
from undertow.audit._pair_chunks import EventTest
from undertow.audit.certify import event_epsilon, event_mu
from undertow.audit.claim import Claim
from undertow.audit.events import LabelEvent, ScoreEvent
from undertow.audit.outputs import shortened
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import Counts
from undertow.audit.subjects import Subject, is_seeded
from undertow.errors import AuditError
from undertow.privacy.result import Estimate, Witness, to_plain
from undertow.privacy.tradeoff import attack_epsilon_bound, attack_mu_bound
from undertow.risk.intervals import clopper_pearson

__all__ = [
    "FEWEST",
    "TRAINING",
    "certify_counts",
    "job_fingerprint",
    "longer_note",
    "pair_result",
    "pair_trials_needed",
    "runs_needed",
]

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

    high = 1
    while not reaches(high):
        high *= 2
        if high > _LARGEST:
            raise AuditError(
                f"claim must be refutable with at most {_LARGEST} runs, got {claim}; "
                "no audit here can be that long."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


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


def _power(
    claim: Claim, hits_q: int, trials: tuple[int, int], confidence: float
) -> dict[str, float]:
    tested, (n, _) = claim.for_replacement(), trials
    power: dict[str, float] = {
        "trials_needed": pair_trials_needed(claim, confidence=confidence),
        "ceiling": certify_counts(tested, (n, 0), trials, confidence)[0],
    }
    low, high = 0, n
    if certify_counts(tested, (n, hits_q), trials, confidence)[0] <= tested.level:
        return {**power, "can_refute": False, "detectable": math.inf}
    while high - low > 1:
        middle = (low + high) // 2
        value = certify_counts(tested, (middle, hits_q), trials, confidence)[0]
        low, high = (low, middle) if value > tested.level else (middle, high)
    found = _estimates(tested, (high, hits_q), trials)[0]
    return {**power, "can_refute": True, "detectable": found}


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
    power = _power(claim, hits[1], trials, confidence)
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


def _told(event: LabelEvent | ScoreEvent) -> str:
    """Return the event in words that are true to the last digit."""
    return event.exact if isinstance(event, ScoreEvent) else event.words


def _told_rest(event: LabelEvent | ScoreEvent) -> str:
    """Return all other outputs in words, those of an interval to the last digit."""
    if isinstance(event, ScoreEvent):
        return event.complement
    told = event.words.removeprefix(f"{event.name} ")
    if told[0] == "=":
        return f"{event.name} is not {told[2:]}"
    return f"{event.name} not {told}"


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
    pair, sizes, words = test.pair, test.sizes, (_told(test.event), test.event.exact)
    if hits[0] / sizes[0] + hits[1] / sizes[1] > 1:
        pair, sizes = pair[::-1], sizes[::-1]
        hits = (sizes[0] - hits[1], sizes[1] - hits[0])
        words = (_told_rest(test.event), test.event.complement)
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
