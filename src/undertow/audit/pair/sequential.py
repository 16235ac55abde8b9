"""Audits of a pair of inputs that stop as soon as the claim is refuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, SupportsIndex

import numpy as np

from undertow._validate import check_count, check_probability
from undertow.audit._size import (
    TESTS,
    Stage,
    early_sizes,
    early_stages,
    last_confidence,
    least_runs,
)
from undertow.audit.certificate import (
    proportion_sequence,
    ratio_mu_sequence,
    ratio_sequence,
)
from undertow.audit.claim import Claim
from undertow.audit.pair._choice import Choice, Search, read_pairs, stream_seed
from undertow.audit.pair._draw import BATCH, EventTest, Pair
from undertow.audit.pair._score import ScoreChoice, asked_scores
from undertow.audit.pair.fixed import (
    FEWEST,
    TRIALS,
    longer_note,
    pair_power,
    pair_result,
)
from undertow.audit.program import OutOfTimeError
from undertow.audit.record import RecordedSubject
from undertow.audit.result import AuditResult
from undertow.audit.runner import Counts, Progress
from undertow.audit.subject import Subject, require_pace
from undertow.errors import AuditError
from undertow.results import Estimate

# Runs for the choice: a tenth, but so many of a short audit and so many of a long one.
_LEAST, _MOST = 2_000, 200_000
_LOOKS = 100
_LARGEST = 2**52
# Runs of each input by which dependence shows; made in any case before a refutation.
_GUARDED = 512


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
        As in :func:`~undertow.audit.pair.fixed.audit_pair`; recorded runs cannot be
        stopped.
    trials : int, optional
        The most runs, 100,000 by default. The first choice is made on 128 runs of each
        input and tested on twice as many, then on four times as many as long as that
        takes at most a tenth of all runs; the last on a tenth, at least 2,000 or half
        and at most 200,000, and it is tested on all that are left.
    confidence : float, optional
        Probability that a true claim is never refuted, however often one looks.
    progress : callable, optional
        Called at every look with the batches of a stage done, the most there can be in
        it, and the hits ``p`` and ``q`` of the stage so far.
    chunk : int, optional
        Runs on each input between two looks, at most 10,000; by default a hundredth of
        those of the last stage, and at most an eighth of those of an earlier one.

    Returns
    -------
    AuditResult
        With `trials` the number that was run. The certificate holds at all times; it is
        somewhat below that of :func:`~undertow.audit.pair.fixed.audit_pair` on as many
        runs.

    Raises
    ------
    AuditError
        If the subject misbehaves, repeats its batches or is recorded, or if so few
        trials cannot refute the claim in any case. A program that passes its time limit
        after the first look ends the run, which is told in a note.

    Notes
    -----
    Theorem 4 of the page *Audit certificates*, on events that were fixed before, at
    error levels of the stages that sum to that of the audit. Before a claim is refuted
    each input has been run 512 times, so that runs which depend on each other show.
    Not checkable: independent runs, and that the inputs of a pair are neighbours.

    Examples
    --------
    >>> from undertow.audit.subject import MechanismSubject
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    >>> for level in (0.5, 1.0):
    ...     found = audit_pair_until_refuted(subject, Claim.pure(level), seed=1)
    ...     print(found.verdict, found.trials < 10_000)
    violated True
    not refuted False
    """
    level = check_probability(confidence, "confidence", open_interval=True)
    root = check_count(seed, "seed", minimum=0)
    if isinstance(subject, RecordedSubject):
        raise AuditError(
            "subject must be run to be stopped, got recorded runs; use audit_pair."
        )
    if "time" in asked_scores(score):
        raise AuditError(
            "score must be without 'time' in an audit that stops early, got it; use "
            "audit_pair, which runs the inputs in one random order."
        )
    listed = read_pairs(pairs, len(subject.inputs))
    plan = _plan(listed, TRIALS if trials is None else trials, claim, level)
    most = max(max(stage.choice, stage.runs) for stage in plan.stages)
    require_pace(subject, min(BATCH, most))
    search = Search(subject, claim, listed, level, score, root)
    drawn, result = 0, None
    for number, stage in enumerate(plan.stages, start=1):
        step = _step(stage.runs, chunk, last=stage.last)
        try:
            choice = search.run(dict.fromkeys(plan.used, stage.choice))
        except OutOfTimeError:
            if result is None:
                raise
            return _ended(result)
        looks = _Looks(subject, choice, runs=stage.runs, batch=step)
        key = () if stage.last else (number,)
        streams = _Streams(stream_seed(root), key)
        counts = _until_refuted(looks, claim, stage.confidence, streams, progress)
        drawn += stage.choice * len(plan.used) + 2 * counts["runs"]
        result = _result(looks, claim, level, counts, drawn, (stage, plan.needed), root)
        if result.violated:
            looks.guard(stage.choice + counts["runs"], streams)
            return result
        if "ended" in counts:
            return _ended(result)
    assert result is not None
    return result


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
    """Inputs that occur, the stages, and how many runs are needed in any case."""

    used: tuple[int, ...]
    stages: tuple[Stage, ...]
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

    def cost(size: int) -> int:  # of a choice over all inputs, tested on two of them
        return size * len(used) + 2 * TESTS * size

    sizes, level = early_sizes(total, cost), last_confidence(confidence)
    left = total - sum(map(cost, sizes))
    if not _reaches(claim, level, len(used), left):
        sizes, level, left = [], confidence, total
    choice, runs = _split(left, len(used))
    last = Stage(choice, runs, level, last=True)
    return _Plan(used, (*early_stages(sizes, confidence), last), needed)


def _split(total: int, inputs: int) -> tuple[int, int]:
    """Return the runs of each input for the choice, and of a pair for the test."""
    choice = min(total // 2, max(total // 10, _LEAST), _MOST)
    train = choice // inputs
    return train, (total - train * inputs) // 2


def _reaches(claim: Claim, confidence: float, inputs: int, total: int) -> bool:
    """Return whether so many runs of a last stage can refute a claim at all."""
    tested = claim.for_replacement()
    train, n = _split(total, inputs)
    enough = train >= FEWEST and n > 0
    best = certify_anytime(tested, (n, 0), (n, n), confidence)[0] if enough else 0.0
    return best > tested.level


def _trials_needed(claim: Claim, confidence: float, inputs: int) -> int:
    """Return the least number of runs that can refute a claim, the choice included."""

    def reaches(total: int) -> bool:
        return _reaches(claim, confidence, inputs, total)

    return least_runs(reaches, claim, most=_LARGEST)


def _step(runs: int, chunk: SupportsIndex | None, *, last: bool) -> int:
    if chunk is None:
        return max(1, min(BATCH, runs // (_LOOKS if last else 8)))
    step = check_count(chunk, "chunk")
    if step > BATCH:
        raise ValueError(f"chunk must be at most {BATCH}, got {step}; look as often.")
    return min(step, runs)


class _Streams(NamedTuple):
    """The seeds of a stage: those of the last one have no key of their own."""

    root: int
    key: tuple[int, ...]

    def chunk(self, index: int) -> np.random.SeedSequence:
        """Return the seed of the batch of a number."""
        if not self.key:
            return np.random.SeedSequence(self.root, spawn_key=(index,))
        # Apart from the last stage and from the choices, by another word.
        return np.random.SeedSequence((self.root, 2), spawn_key=(*self.key, index))


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
            notes=choice.notes,
        )
        self.batch, self.chunks = batch, -(-runs // batch)

    def __call__(self, seed: np.random.SeedSequence, index: int) -> dict[str, int]:
        size = min(self.batch, self.sizes[0] - index * self.batch)
        streams = [np.random.default_rng(child) for child in seed.spawn(2)]
        hits = [self._drawn(side, size, rng) for side, rng in enumerate(streams)]
        return {"p": hits[0], "q": hits[1], "runs": size}

    def guard(self, done: int, streams: _Streams) -> None:
        """Run each input until dependence would have shown; nothing is counted."""
        left, index = _GUARDED - done, self.chunks
        while left > 0:
            size = min(self.batch, left)
            for side, child in enumerate(streams.chunk(index).spawn(2)):
                self._drawn(side, size, np.random.default_rng(child))
            left, index = left - size, index + 1


def _until_refuted(
    looks: _Looks,
    claim: Claim,
    confidence: float,
    streams: _Streams,
    progress: Progress | None,
) -> dict[str, int]:
    tested, counts = claim.for_replacement(), {"p": 0, "q": 0, "runs": 0}
    for index in range(looks.chunks):
        try:
            part = looks(streams.chunk(index), index)
        except OutOfTimeError:
            if not counts["runs"]:
                raise
            return {**counts, "ended": 1}  # what was done before it counts
        counts = {name: counts[name] + part[name] for name in counts}
        if progress is not None:
            progress(index + 1, looks.chunks, _hits_so_far(counts))
        hits, n = (counts["p"], counts["q"]), counts["runs"]
        if certify_anytime(tested, hits, (n, n), confidence)[0] > tested.level:
            break
    return counts


def _ended(result: AuditResult) -> AuditResult:
    """Return a result with a note that the time limit has ended the run."""
    note = "runs passed the time limit and ended the audit: this is about those before"
    return replace(result, notes=(*result.notes, note))


def _hits_so_far(counts: dict[str, int]) -> Counts:
    return {name: np.array(counts[name], dtype=np.int64) for name in ("p", "q")}


def _result(
    looks: _Looks,
    claim: Claim,
    confidence: float,
    counts: dict[str, int],
    drawn: int,
    planned: tuple[Stage, int],
    root: int,
) -> AuditResult:
    """Return the outcome of a fixed sample, with limits that hold at all times."""
    tested, n = claim.for_replacement(), counts["runs"]
    hits, looks.sizes = (counts["p"], counts["q"]), (n, n)
    stage, needed = planned
    fixed = pair_result(looks, claim, confidence, _hits_so_far(counts), drawn, root)
    certified, epsilon = certify_anytime(tested, hits, (n, n), stage.confidence)
    # All runs of the stage, with the second rate as it was seen.
    hits_q = round(counts["q"] * stage.runs / n)
    power = pair_power(
        tested,
        hits_q,
        (stage.runs, stage.runs),
        stage.confidence,
        needed=needed,
        certify=certify_anytime,
    )
    (method,) = fixed.methods
    shown = replace(
        method,
        name=f"{method.name}, looked at any time",
        certified=certified,
        ceiling=power["ceiling"],
    )
    notes = fixed.notes
    if certified <= tested.level:
        more = longer_note(
            tested, hits, (n, n), stage.confidence, certify=certify_anytime
        )
        notes = (*notes, more)
    return replace(
        fixed,
        notes=notes,
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
