r"""Audits of a pair of inputs that stop as soon as the claim is refuted.

The pair and the event are chosen on some runs; on the others the claim is tested after
every batch, with limits that hold at all times together. So one may stop whenever the
certificate exceeds the claim, at no price but somewhat wider limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from undertow._validate import check_count, check_probability
from undertow.audit._pair_choice import Choice, Search, read_pairs, stream_seed
from undertow.audit._pair_chunks import BATCH, EventTest, Pair
from undertow.audit._pair_outcome import FEWEST, pair_result
from undertow.audit._pair_scores import ScoreChoice
from undertow.audit.claim import Claim
from undertow.audit.recorded import RecordedSubject
from undertow.audit.result import AuditResult
from undertow.audit.runner import Counts, Progress
from undertow.audit.sequential import (
    proportion_sequence,
    ratio_mu_sequence,
    ratio_sequence,
)
from undertow.audit.subjects import Subject
from undertow.errors import AuditError
from undertow.privacy.result import Estimate
from undertow.privacy.tradeoff_attack import attack_epsilon_bound, attack_mu_bound

__all__ = ["audit_pair_until_refuted", "certify_anytime"]

_TRIALS = 100_000
# Runs for the choice: a tenth, but so many of a short audit and so many of a long one.
_LEAST, _MOST = 2_000, 200_000
_LOOKS = 100
_LARGEST = 2**52


def audit_pair_until_refuted(
    subject: Subject,
    claim: Claim,
    *,
    pairs: Sequence[Pair] | Literal["auto"] = "auto",
    trials: SupportsIndex | None = None,
    confidence: float = 0.99,
    seed: SupportsIndex = 0,
    score: ScoreChoice = None,
    progress: Progress | None = None,
    chunk: SupportsIndex | None = None,
) -> AuditResult:
    r"""Test an event on a pair of inputs, and stop as soon as the claim is refuted.

    Parameters
    ----------
    subject, claim, pairs, seed, score
        As in :func:`~undertow.audit.pair.audit_pair`; recorded runs cannot be stopped.
    trials : int, optional
        The most runs, 100,000 by default. A tenth of them, at least 2,000 or half and
        at most 200,000, are made in any case, for the choice.
    confidence : float, optional
        Probability that a true claim is never refuted, however often one looks.
    progress : callable, optional
        Called at every look with the batches done, the most there can be, and the hits
        ``p`` and ``q`` so far.
    chunk : int, optional
        Runs on each input between two looks, at most 10,000; by default a hundredth of
        them.

    Returns
    -------
    AuditResult
        With `trials` the number that was run. The certificate holds at all times; it is
        somewhat below that of :func:`~undertow.audit.pair.audit_pair` on as many runs.

    Raises
    ------
    AuditError
        If the subject misbehaves, repeats its batches or is recorded, or if so few
        trials cannot refute the claim in any case.

    Notes
    -----
    Theorem 4 of the page *Audit certificates*, on an event that was fixed before.
    Not checkable: independent runs, and that the inputs of a pair are neighbours.

    Examples
    --------
    >>> from undertow.audit.subjects import MechanismSubject
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    >>> for level in (0.5, 1.0):
    ...     found = audit_pair_until_refuted(subject, Claim.pure(level), seed=1)
    ...     print(found.verdict, found.trials < 20_000)
    violated True
    not refuted False
    """
    level = check_probability(confidence, "confidence", open_interval=True)
    root = check_count(seed, "seed", minimum=0)
    if isinstance(subject, RecordedSubject):
        raise AuditError(
            "subject must be run to be stopped, got recorded runs; use audit_pair."
        )
    listed = read_pairs(pairs, len(subject.inputs))
    plan = _plan(listed, _TRIALS if trials is None else trials, claim, level)
    step = _step(plan.runs, chunk)
    search = Search(subject, claim, listed, level, score, root)
    choice = search.run(dict.fromkeys(plan.used, plan.train))
    looks = _Looks(subject, choice, runs=plan.runs, batch=step)
    counts = _until_refuted(looks, claim, level, stream_seed(root), progress)
    return _result(looks, claim, level, counts, plan, root)


def certify_anytime(
    tested: Claim, hits: tuple[int, int], trials: tuple[int, int], confidence: float
) -> tuple[float, float]:
    """Return limits of the claimed parameter, and of epsilon, that hold at all times.

    Examples
    --------
    >>> value, epsilon = certify_anytime(Claim.pure(1), (900, 100), (1000, 1000), 0.99)
    >>> value == epsilon, round(value, 2)
    (True, 1.78)
    """
    first, second = (hits[0], trials[0]), (hits[1], trials[1])
    epsilon = ratio_sequence(
        first, second, delta=tested.delta, confidence=confidence
    ).value
    if tested.parameter == "epsilon":
        return epsilon, epsilon
    return ratio_mu_sequence(first, second, confidence=confidence).value, epsilon


@dataclass(frozen=True)
class _Plan:
    """Inputs that occur, runs of each for the choice, and of a pair for the test."""

    used: tuple[int, ...]
    train: int
    runs: int
    needed: int


def _plan(
    pairs: list[Pair], trials: SupportsIndex, claim: Claim, confidence: float
) -> _Plan:
    total = check_count(trials, "trials")
    used = tuple(sorted({number for pair in pairs for number in pair}))
    needed = _trials_needed(claim, confidence, len(used))
    if total < needed:
        raise AuditError(
            f"trials must be at least {needed} for {claim} to be refutable at "
            f"confidence {confidence:g} at any time, got {total}."
        )
    train, runs = _split(total, len(used))
    return _Plan(used, train, runs, needed)


def _split(total: int, inputs: int) -> tuple[int, int]:
    """Return the runs of each input for the choice, and of a pair for the test."""
    choice = min(total // 2, max(total // 10, _LEAST), _MOST)
    train = choice // inputs
    return train, (total - train * inputs) // 2


def _trials_needed(claim: Claim, confidence: float, inputs: int) -> int:
    """Return the least number of runs that can refute a claim, the choice included."""
    tested = claim.for_replacement()

    def reaches(total: int) -> bool:
        train, n = _split(total, inputs)
        enough = train >= FEWEST and n > 0
        best = certify_anytime(tested, (n, 0), (n, n), confidence)[0] if enough else 0.0
        return best > tested.level

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


def _step(runs: int, chunk: SupportsIndex | None) -> int:
    if chunk is None:
        return max(1, min(BATCH, runs // _LOOKS))
    step = check_count(chunk, "chunk")
    if step > BATCH:
        raise ValueError(f"chunk must be at most {BATCH}, got {step}; look as often.")
    return step


class _Looks(EventTest):
    """The batches between two looks; equally many runs on each input."""

    def __init__(
        self, subject: Subject, choice: Choice, *, runs: int, batch: int
    ) -> None:
        super().__init__(
            subject,
            choice.pair,
            choice.event,
            sizes=(runs, runs),
            earlier=choice.earlier,
        )
        self.batch, self.chunks = batch, -(-runs // batch)

    def __call__(self, seed: np.random.SeedSequence, index: int) -> dict[str, int]:
        size = min(self.batch, self.sizes[0] - index * self.batch)
        streams = [np.random.default_rng(child) for child in seed.spawn(2)]
        hits = [self._drawn(side, size, rng) for side, rng in enumerate(streams)]
        return {"p": hits[0], "q": hits[1], "runs": size}


def _until_refuted(
    looks: _Looks,
    claim: Claim,
    confidence: float,
    stream: int,
    progress: Progress | None,
) -> dict[str, int]:
    tested, counts = claim.for_replacement(), {"p": 0, "q": 0, "runs": 0}
    for index in range(looks.chunks):
        part = looks(np.random.SeedSequence(stream, spawn_key=(index,)), index)
        counts = {name: counts[name] + part[name] for name in counts}
        if progress is not None:
            progress(index + 1, looks.chunks, _hits_so_far(counts))
        hits, n = (counts["p"], counts["q"]), counts["runs"]
        if certify_anytime(tested, hits, (n, n), confidence)[0] > tested.level:
            break
    return counts


def _hits_so_far(counts: dict[str, int]) -> Counts:
    return {name: np.array(counts[name], dtype=np.int64) for name in ("p", "q")}


def _result(
    looks: _Looks,
    claim: Claim,
    confidence: float,
    counts: dict[str, int],
    plan: _Plan,
    root: int,
) -> AuditResult:
    """Return the outcome of a fixed sample, with limits that hold at all times."""
    tested, n = claim.for_replacement(), counts["runs"]
    hits, looks.sizes = (counts["p"], counts["q"]), (n, n)
    drawn = plan.train * len(plan.used) + 2 * n
    fixed = pair_result(looks, claim, confidence, _hits_so_far(counts), drawn, root)
    certified, epsilon = certify_anytime(tested, hits, (n, n), confidence)
    power = _power(tested, counts, plan, confidence)
    (method,) = fixed.methods
    shown = replace(
        method,
        name=f"{method.name}, looked at any time",
        certified=certified,
        ceiling=power["ceiling"],
    )
    return replace(
        fixed,
        certified=certified,
        epsilon_certified=epsilon,
        methods=(shown,),
        witness=fixed.witness if certified > tested.level else None,
        power=power,
        advantage=_advantage(hits, n, confidence, fixed.seed),
    )


def _advantage(
    hits: tuple[int, int], runs: int, confidence: float, seed: int | None
) -> Estimate:
    """Return half the difference of the rates, with limits that hold at all times."""
    each = 1.0 - (1.0 - confidence) / 2.0
    (low_p, high_p), (low_q, high_q) = (
        proportion_sequence(k, runs, confidence=each) for k in hits
    )
    return Estimate(
        (hits[0] - hits[1]) / (2 * runs),
        (low_p - high_q) / 2,
        (high_p - low_q) / 2,
        confidence,
        2 * runs,
        seed,
        "confidence sequences of two rates, valid at any time",
    )


def _power(
    tested: Claim, counts: dict[str, int], plan: _Plan, confidence: float
) -> dict[str, Any]:
    """Return what all runs together could have found, the second rate being as seen."""
    runs = (plan.runs, plan.runs)
    hits_q = round(counts["q"] * plan.runs / counts["runs"])

    def reached(hits: int, against: int) -> float:
        return certify_anytime(tested, (hits, against), runs, confidence)[0]

    power: dict[str, Any] = {
        "trials_needed": plan.needed,
        "ceiling": reached(plan.runs, 0),
        "can_refute": True,
        "detectable": math.inf,
    }
    if reached(plan.runs, hits_q) <= tested.level:
        return {**power, "can_refute": False}
    low, high = 0, plan.runs
    while high - low > 1:
        middle = (low + high) // 2
        over = reached(middle, hits_q) > tested.level
        low, high = (low, middle) if over else (middle, high)
    rates = [(k + 0.5) / (plan.runs + 1) for k in (high, hits_q)]
    return {**power, "detectable": _estimate(tested, rates)}


def _estimate(tested: Claim, rates: list[float]) -> float:
    """Return the claimed parameter of two rates."""
    if tested.parameter == "epsilon":
        return attack_epsilon_bound(tpr=rates[0], fpr=rates[1], delta=tested.delta)
    return attack_mu_bound(tpr=rates[0], fpr=rates[1])
