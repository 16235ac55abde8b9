"""How simulated outputs are drawn: which target, how many runs, in which batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice, check_count
from undertow.risk.threat import Threat

__all__ = ["Design", "Draws", "Progress", "Sampler", "batches", "plan_draws"]

Design = Literal["plain", "exhaustive", "clustered"]
"""Independent targets; every record equally often; several runs of drawn targets."""

Progress = Callable[[int, int], None]
"""Called with the number of outputs done, and of all outputs."""

_DESIGNS = ("plain", "exhaustive", "clustered")


@runtime_checkable
class Sampler(Protocol):
    """Anything that runs a mechanism on a target: a black box is enough."""

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw outputs.

        Parameters
        ----------
        record : int
            Number of the record that takes part, as in ``threat.support``.
        size : int
            Number of independent outputs.
        rng : numpy.random.Generator
            Stream of the mechanism.

        Returns
        -------
        ndarray with `size` along its first axis, or any object for `size` outputs
            Whatever the attack reads; arrays are joined to larger batches.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """A plan: how many outputs of each record, and which of them are one target's.

    Parameters
    ----------
    design : {"plain", "exhaustive", "clustered"}
        Where the targets come from.
    records, counts : ndarray of int, of shape (k,)
        The records that are run, each at least once, and how often.
    runs : int
        Consecutive outputs of the same target.
    """

    design: Design
    records: NDArray[np.intp]
    counts: NDArray[np.intp]
    runs: int

    @property
    def total(self) -> int:
        """Number of outputs."""
        return int(self.counts.sum())

    def unit_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average over the runs of each target, or of each record if exhaustive."""
        return np.asarray(values.reshape(-1, self.runs).mean(axis=1))


def plan_draws(
    threat: Threat,
    *,
    design: str,
    trials: SupportsIndex | None,
    runs: SupportsIndex | None,
    rng: np.random.Generator,
) -> Draws:
    """Draw the targets and group them by record, which changes no law."""
    pmf = threat.prior.pmf
    possible = np.flatnonzero(pmf > 0)
    if check_choice(design, "design", choices=_DESIGNS) == "exhaustive":
        each = _rounds(trials, runs, len(possible))
        counts = np.full(len(possible), each, dtype=np.intp)
        return Draws("exhaustive", possible, counts, each)
    if trials is None or (design == "clustered") == (runs is None or runs == 1):
        raise ValueError(
            "trials must be given, with runs of at least 2 for the clustered design "
            f"and none for the plain one, got trials {trials} and runs {runs}."
        )
    each = 1 if runs is None else check_count(runs, "runs")
    targets = rng.multinomial(check_count(trials, "trials"), pmf)
    drawn = np.flatnonzero(targets)
    counts = (targets[drawn] * each).astype(np.intp)
    return Draws("plain" if each == 1 else "clustered", drawn, counts, each)


def batches(
    sampler: Sampler, plan: Draws, *, width: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], Any]]:
    """Hand out records and outputs, about `width` at a time, in the plan's order.

    Arrays of several records are joined, so that an attack is called once per batch;
    other objects come one record at a time.
    """
    kept: list[tuple[int, Any]] = []
    held = 0
    for record, count in zip(plan.records.tolist(), plan.counts.tolist(), strict=True):
        for start in range(0, count, width):
            size = min(width, count - start)
            outputs = sampler.sample(record, size, rng=rng)
            joins = isinstance(outputs, np.ndarray)
            if joins and len(outputs) != size:
                raise ValueError(
                    f"a sampler must return {size} outputs when asked for them, got "
                    f"{len(outputs)}."
                )
            if kept and (not joins or held + size > width):
                yield _joined(kept, held)
                kept, held = [], 0
            if joins:
                kept.append((record, outputs))
                held += size
            else:
                yield np.full(size, record, dtype=np.intp), outputs
    if kept:
        yield _joined(kept, held)


def _joined(kept: list[tuple[int, Any]], held: int) -> tuple[NDArray[np.intp], Any]:
    records = np.empty(held, dtype=np.intp)
    start = 0
    for record, outputs in kept:
        records[start : start + len(outputs)] = record
        start += len(outputs)
    return records, np.concatenate([outputs for _, outputs in kept])


def _rounds(
    trials: SupportsIndex | None, runs: SupportsIndex | None, records: int
) -> int:
    """Return how often every record is run, at least `trials` outputs in all."""
    if trials is None and runs is None:
        raise ValueError("runs must be given for the exhaustive design, or trials.")
    if trials is None:
        return check_count(runs or 0, "runs")
    each = -(-check_count(trials, "trials") // records)
    if runs is not None and runs != each:
        raise ValueError(
            f"runs must be {each} for {trials} trials of {records} records, got "
            f"{runs}; leave one of them out."
        )
    return each
