"""A certified lower bound on leakage from runs of a black box.

Attackers, pairs, known values and events are all chosen on training runs; one choice is
then tested on fresh runs, so that no correction for the search is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.correlation.empirical.attackers import Trial, propose_trials
from undertow.correlation.model import Model
from undertow.correlation.result import LeakageEstimate

__all__ = ["BlackBox", "Verdict", "estimate_leakage", "verify_claim"]

BlackBox = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
"""From databases, one a row, to one output each."""

_THRESHOLDS = 33
_FEW_OUTPUTS = 64
# Quantiles beyond those, from both ends.
_TAILS = (0.001, 0.002, 0.005, 0.01, 0.02)


@dataclass(frozen=True, slots=True)
class _Event:
    """A set of outputs: one value, or a half-line."""

    kind: Literal["==", ">=", "<="]
    value: float

    def count(self, outputs: NDArray[Any]) -> int:
        if self.kind == "==":
            return int((outputs == self.value).sum())
        return int(
            (
                outputs >= self.value if self.kind == ">=" else outputs <= self.value
            ).sum()
        )

    @property
    def words(self) -> str:
        return f"output {self.kind} {self.value:.6g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether runs refute a claimed leakage.

    Parameters
    ----------
    status : {"violated", "not refuted"}
        A claim is never confirmed by runs.
    claimed : float
        The leakage claimed.
    estimate : LeakageEstimate
        What was measured, with the attacker who shows it.
    """

    status: Literal["violated", "not refuted"]
    claimed: float
    estimate: LeakageEstimate


def estimate_leakage(
    model: Model,
    mechanism: BlackBox,
    *,
    samples: int = 100_000,
    trials: Sequence[Trial] | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LeakageEstimate:
    """Return a lower bound on the leakage of a black box, with stated confidence.

    Parameters
    ----------
    model : Model
        The law of the records; it draws the unknown ones given the known.
    mechanism : callable
        Takes databases (one a row) and a generator, returns one number a row.
    samples : int
        Runs for each secret, in the test and, all trials together, in training.
    trials : sequence of Trial, optional
        Attackers and pairs; by default a heuristic list.
    pairs : sequence of pairs, optional
        Secrets to tell apart, for the heuristic list.
    confidence : float
        Chance that the leakage is at least ``low``.
    seed : int
        Reproduces everything.

    Returns
    -------
    LeakageEstimate
        Its `low` is the certified bound; `high` is infinite, because no number of runs
        bounds a leakage from above.

    Notes
    -----
    One-sided Clopper-Pearson limits on the probability of the chosen event under each
    secret, the error shared. Never a guarantee of privacy.

    Examples
    --------
    >>> from undertow.correlation import JointTable
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> def noisy_sum(rows, rng):
    ...     return rows.sum(axis=1) + rng.laplace(size=len(rows))
    >>> found = estimate_leakage(flatmates, noisy_sum, samples=40_000, seed=1)
    >>> 1.6 < found.low < 1.7762
    True
    """
    samples = check_count(samples, "samples", minimum=100)
    confidence = check_probability(confidence, "confidence", open_interval=True)
    search, train, test = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    listed = (
        list(trials)
        if trials is not None
        else propose_trials(model, pairs=pairs, rng=search)
    )
    if not listed:
        raise ValueError("trials must not be empty.")
    runs = max(100, samples // len(listed))
    error = (1 - confidence) / 2
    best, event, flip = _train(model, mechanism, listed, runs, error=error, rng=train)
    counts = _counts(model, mechanism, best, event, samples, rng=test)
    hits, misses = counts[::-1] if flip else counts
    low = max(0.0, _lower_log_ratio(hits, misses, samples, error=error))
    point = math.log((hits + 0.5) / (misses + 0.5))
    pair = best.pair[::-1] if flip else best.pair
    return LeakageEstimate(
        max(point, low),
        low,
        math.inf,
        confidence,
        samples,
        seed,
        "Clopper-Pearson on a held-out half",
        adversary=best.adversary,
        pair=(pair[0], pair[1]),
        event=event.words,
        tried=len(listed),
    )


def verify_claim(
    model: Model, mechanism: BlackBox, claimed: float, **options: Any
) -> Verdict:
    """Try to refute a claimed leakage; options as in :func:`estimate_leakage`.

    Returns
    -------
    Verdict
        ``"violated"`` if the certified lower bound passes the claim.
    """
    claimed = check_non_negative(claimed, "claimed")
    found = estimate_leakage(model, mechanism, **options)
    status: Literal["violated", "not refuted"]
    status = "violated" if found.low > claimed else "not refuted"
    return Verdict(status, claimed, found)


def _train(
    model: Model,
    mechanism: BlackBox,
    trials: Sequence[Trial],
    runs: int,
    *,
    error: float,
    rng: np.random.Generator,
) -> tuple[Trial, _Event, bool]:
    best: tuple[float, Trial, _Event, bool] | None = None
    for trial in trials:
        first, second = (
            _outputs(model, mechanism, trial.evidence(x), runs, rng=rng)
            for x in trial.pair
        )
        for event in _events(np.concatenate([first, second])):
            hits, misses = event.count(first), event.count(second)
            for flip, (a, b) in enumerate(((hits, misses), (misses, hits))):
                value = _lower_log_ratio(a, b, runs, error=error)
                if best is None or value > best[0]:
                    best = (value, trial, event, bool(flip))
    assert best is not None
    return best[1:]


def _counts(
    model: Model,
    mechanism: BlackBox,
    trial: Trial,
    event: _Event,
    runs: int,
    *,
    rng: np.random.Generator,
) -> tuple[int, int]:
    first, second = (
        event.count(_outputs(model, mechanism, trial.evidence(x), runs, rng=rng))
        for x in trial.pair
    )
    return first, second


def _outputs(
    model: Model,
    mechanism: BlackBox,
    evidence: dict[int, Any],
    runs: int,
    *,
    rng: np.random.Generator,
) -> NDArray[Any]:
    outputs = np.asarray(mechanism(model.sample_given(evidence, runs, rng=rng), rng))
    if outputs.shape != (runs,) or not np.issubdtype(outputs.dtype, np.number):
        raise ValueError(
            f"mechanism must return one number for each of the {runs} databases, "
            f"got an array of shape {outputs.shape}."
        )
    return outputs


def _events(pooled: NDArray[Any]) -> list[_Event]:
    values, counts = np.unique(pooled, return_counts=True)
    few = len(values) <= _FEW_OUTPUTS
    common = np.sort(np.argsort(-counts, kind="stable")[:_FEW_OUTPUTS])
    events = [_Event("==", float(values[k])) for k in common if few or counts[k] > 1]
    if not few:
        shares = [*np.linspace(0, 1, _THRESHOLDS)[1:-1], *_TAILS]
        shares += [1.0 - share for share in _TAILS]
        values = np.unique(np.quantile(pooled, shares))
    for value in values:
        events += [_Event(">=", float(value)), _Event("<=", float(value))]
    return events


def _lower_log_ratio(hits: int, misses: int, runs: int, *, error: float) -> float:
    """Return a lower limit of log(p/q) from counts of one event under two secrets."""
    if hits == 0:
        return -math.inf
    low = float(betaincinv(hits, runs - hits + 1, error))
    high = (
        1.0
        if misses == runs
        else float(betaincinv(misses + 1, runs - misses, 1 - error))
    )
    return math.log(low) - math.log(high) if low > 0 else -math.inf
