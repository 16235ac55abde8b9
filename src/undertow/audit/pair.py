r"""Audits by one event on one pair of inputs, for any kind of output.

The pair and the event are chosen on one half of the runs; their counts on the other
half, which nobody has looked at, carry the certificate. Proofs, and what such an audit
cannot see: the page *Event audits*.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index, check_probability
from undertow.audit._freshness import probe
from undertow.audit._pair_outcome import (
    BATCH,
    FEWEST,
    TRAINING,
    EventTest,
    Pair,
    certify_counts,
    draw_outputs,
    job_fingerprint,
    pair_result,
    pair_trials_needed,
)
from undertow.audit._pair_scores import ScoreChoice, pair_scores
from undertow.audit.claim import Claim
from undertow.audit.events import LabelEvent, ScoreEvent, best_event
from undertow.audit.recorded import RecordedSubject
from undertow.audit.result import AuditResult
from undertow.audit.runner import Progress, run_chunks
from undertow.audit.subjects import AuditError, Subject, draws_apart, is_seeded

__all__ = ["audit_pair", "pair_trials_needed"]

_TRIALS = 100_000
_PAIRS = 4096
_LONG_SEED = 2**96


def audit_pair(
    subject: Subject,
    claim: Claim,
    *,
    pairs: Sequence[Pair] | Literal["auto"] = "auto",
    trials: SupportsIndex | None = None,
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
        Runs in all, one half for the choice and one half for the certificate; 100,000
        by default, or all recorded runs.
    confidence : float, optional
        Probability that a true claim is not refuted.
    seed : int, optional
        Reproduces the audit if the subject is seeded.
    score : "learned", "bits", callable or sequence of callables, optional
        Numbers to look at besides the outputs themselves: classifiers of the outputs
        (scikit-learn), the lowest bits of floats, or functions from outputs to one
        number each, which must not depend on the other outputs of the batch.
    workers, checkpoint, progress
        As in :func:`~undertow.audit.runner.run_chunks`, for the certifying half.

    Returns
    -------
    AuditResult
        With the event and the pair as witness if the claim is refuted.

    Raises
    ------
    AuditError
        If the subject misbehaves or repeats its batches, if so few trials cannot refute
        the claim in any case, or if workers or a checkpoint are asked of a subject
        whose copies may repeat each other.

    Notes
    -----
    Theorem 1 of the page *Event audits*. One event is tested, so no correction for the
    search is due. Not checkable: independent runs, and that the inputs of a pair are
    neighbours. "Not refuted" is no proof: another pair, event or input may refute.

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
    _check_copies(subject, workers=workers, checkpoint=checkpoint)
    if isinstance(subject, RecordedSubject):
        subject = subject.shuffled(np.random.default_rng((root, 2)))
    stream = _stream_seed(root)
    chosen = _read_pairs(pairs, len(subject.inputs))
    plan = _plan(subject, chosen, trials, claim)
    recorded = isinstance(subject, RecordedSubject)
    _require_power(claim, plan, level, chosen, recorded=recorded)
    if not recorded:
        first = chosen[0][0]
        draw = functools.partial(draw_outputs, subject)
        probe(draw, first, trials=plan.train[first], name=subject.name)
    training = _train_runs(subject, plan, stream)
    pair, event = _choose(subject, claim, training, chosen, level, score, root)
    one, two = pair
    test = EventTest(
        subject,
        pair,
        event,
        sizes=(plan.test[one], plan.test[two]),
        earlier=(training[one], training[two]),
    )
    counts = run_chunks(
        test,
        chunks=test.chunks,
        seed=stream,
        fingerprint=job_fingerprint(test, claim, level),
        workers=workers,
        checkpoint=checkpoint,
        progress=progress,
    )
    drawn = sum(plan.train.values()) + sum(test.sizes)
    return pair_result(test, claim, level, counts, drawn, root)


@dataclass(frozen=True)
class _Plan:
    """Runs of each input for the choice, and for the certificate if chosen."""

    train: dict[int, int]
    test: dict[int, int]


def _check_copies(subject: Subject, *, workers: SupportsIndex, checkpoint: Any) -> None:
    if check_count(workers, "workers") > 1 and not draws_apart(subject):
        raise AuditError(
            f"workers must be 1 for {subject.name}, whose copies may draw the same "
            f"numbers, got {workers}; give it a function that takes a generator."
        )
    repeats = is_seeded(subject) and draws_apart(subject)
    if checkpoint is not None and not repeats:
        raise AuditError(
            f"checkpoint must be None for {subject.name}, which no seed repeats; give "
            "it a function that takes a generator."
        )


def _stream_seed(root: int) -> int:
    """Return the seed of the streams: a hash of seeds of more than 96 bits.

    Four words of a seed fill the pool of a seed sequence; the words that tell training
    from certifying runs would then stand where those of the chunks do.
    """
    if root < _LONG_SEED:
        return root
    return int(np.random.SeedSequence(root).generate_state(1, np.uint64)[0])


def _read_pairs(pairs: Sequence[Pair] | str, size: int) -> list[Pair]:
    """Return the pairs of different inputs, in both orders."""
    if isinstance(pairs, str):
        if pairs != "auto":
            raise ValueError(
                f"pairs must be 'auto' or pairs of numbers, got {pairs!r}."
            )
        pairs = list(itertools.combinations(range(size), 2))
    listed = []
    if not all(np.ndim(pair) == 1 and len(pair) == 2 for pair in pairs):
        raise ValueError("pairs must be of two numbers each, got others.")
    for first, second in pairs:
        one = check_index(first, "pairs", size=size)
        two = check_index(second, "pairs", size=size)
        if one == two:
            raise ValueError(f"pairs must be of different inputs, got {one} twice.")
        listed += [(one, two), (two, one)]
    if not 0 < len(listed) <= 2 * _PAIRS:
        raise AuditError(
            f"pairs must be from 1 to {_PAIRS}, got {len(listed) // 2}; name those to "
            "try."
        )
    return list(dict.fromkeys(listed))


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
        total = check_count(_TRIALS if trials is None else trials, "trials")
        share = min(total // 2, TRAINING) // len(used)
        train = dict.fromkeys(used, share)
        test = dict.fromkeys(used, (total - share * len(used)) // 2)
    if min(train.values()) < FEWEST or min(test.values()) < 1:
        raise AuditError(
            f"trials must leave {FEWEST} runs of each of {len(used)} inputs for the "
            f"choice, got {min(train.values())}; ask for at least "
            f"{max(2 * FEWEST * len(used), pair_trials_needed(claim))} trials, or name "
            "fewer pairs."
        )
    return _Plan(train, test)


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


def _train_runs(subject: Subject, plan: _Plan, root: int) -> dict[int, NDArray[Any]]:
    runs = {}
    for given, size in plan.train.items():
        # Apart from the seeds of the certifying half, whose entropy is the root alone.
        rng = np.random.default_rng(
            np.random.SeedSequence((root, 1), spawn_key=(given,))
        )
        parts = [
            draw_outputs(subject, given, min(BATCH, size - start), rng)
            for start in range(0, size, BATCH)
        ]
        runs[given] = np.concatenate(parts)
    shapes = {(_group(run.dtype), run.shape[1:]) for run in runs.values()}
    if len(shapes) > 1:
        listed = " and ".join(sorted(f"{k} of shape {s}" for k, s in shapes))
        raise AuditError(
            f"{subject.name} must return one type of output, got {listed} on different "
            "inputs."
        )
    return runs


def _group(kind: np.dtype[Any]) -> str:
    return "numbers" if kind.kind in "iuf" else kind.name


def _choose(
    subject: Subject,
    claim: Claim,
    training: dict[int, NDArray[Any]],
    pairs: list[Pair],
    confidence: float,
    score: ScoreChoice,
    root: int,
) -> tuple[Pair, LabelEvent | ScoreEvent]:
    """Return the pair and event that did best in the second part of the training."""
    tested, best = claim.for_replacement(), None
    made: dict[Pair, Any] = {}
    halves = {given: _halves(run) for given, run in training.items()}
    for one, two in pairs:
        key = (min(one, two), max(one, two))
        proposal, selection = zip(halves[one], halves[two], strict=True)
        if key not in made:
            made[key] = pair_scores(subject, key, proposal, choice=score, seed=root)
        found = best_event(
            proposal,
            selection,
            scores=made[key],
            tail=(1.0 - confidence) / 2.0,
            delta=tested.delta,
            parameter="mu" if tested.parameter == "mu" else "epsilon",
        )
        if best is None or found.value > best[0]:
            best = (found.value, (one, two), found.event)
    assert best is not None
    return best[1], best[2]


def _halves(run: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return run[: len(run) // 2], run[len(run) // 2 :]
