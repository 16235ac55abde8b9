"""Whether an event of a learned or a finer score is better than the others.

Scores that are made from training runs follow the noise of these, and they are many
more events: the best of many in training need not be the best in truth. So an event of
such a score has to win by more than chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from undertow.audit.claim import Claim
from undertow.audit.events import (
    LabelEvent,
    Score,
    ScoreEvent,
    View,
    best_event,
    lower_limits,
)

__all__ = ["Contestant", "Measure", "Outputs", "Tier"]

# About the events of one score that are tried, and those of them that differ much.
_EVENTS, _DIFFERENT = 1000.0, 30.0
# Parts of the runs that are left out in turn.
_PARTS = 20

Outputs = tuple[NDArray[Any], NDArray[Any]]
"""Of two inputs, or two parts of one."""


Tier = Literal["usual", "whole", "learned", "digits"]
"""Which scores an event comes from: each has to beat those before it."""


class Contestant(NamedTuple):
    """An event, its pair in order, what it promises, and the runs that say so."""

    value: float
    pair: tuple[int, int]
    event: LabelEvent | ScoreEvent
    runs: Outputs
    tier: Tier


@dataclass(frozen=True)
class Measure:
    """How events are compared: by the limit that they would certify in training.

    Parameters
    ----------
    tested : Claim
        Whose parameter and delta count.
    confidence : float
        Of the audit.
    """

    tested: Claim
    confidence: float

    def best(
        self,
        pair: tuple[int, int],
        proposal: Outputs,
        selection: Outputs,
        *,
        scores: tuple[Score, ...],
        views: tuple[View | None, ...] = (None,),
        tier: Tier = "usual",
    ) -> Contestant:
        """Return the best event of some scores, and of repeated outputs or views.

        Limits of other than the usual scores are widened for the number of their
        events, which keeps rare events with a lucky count from the contest.
        """
        found = best_event(
            proposal,
            selection,
            scores=scores,
            views=views,
            tail=self._tail if tier == "usual" else self._tail / _EVENTS,
            delta=self.tested.delta,
            parameter=self.tested.parameter,
        )
        return Contestant(found.value, pair, found.event, selection, tier)

    def surpasses(self, challenger: Contestant, best: Contestant) -> bool:
        """Return whether the limit of the first is higher by more than chance.

        Chance is a standard deviation of the difference, by the jackknife over
        twentieths of the runs, which knows that both may count the same runs. Both
        limits are widened, as both events were picked for their counts.
        """
        gaps = self._limits(challenger) - self._limits(best)
        whole, without = float(gaps[0]), gaps[1:]
        parts = len(without)
        variance = (parts - 1) / parts * float(((without - without.mean()) ** 2).sum())
        return whole > math.sqrt(variance)

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _limits(self, one: Contestant) -> NDArray[np.float64]:
        """Return the limit of all runs, then of all but each part of them."""
        hits, sizes = zip(*(_counts(one.event, run) for run in one.runs), strict=True)
        limits = [
            lower_limits(
                k,
                j,
                trials=(int(n), int(m)),
                tail=self._tail / _DIFFERENT,
                delta=self.tested.delta,
                parameter=self.tested.parameter,
            )
            for k, j, n, m in zip(*hits, *sizes, strict=True)
        ]
        # Nothing is certified below 0.
        return np.maximum(np.array(limits, dtype=np.float64), 0.0)


def _counts(
    event: LabelEvent | ScoreEvent, run: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return hits and runs: of all, then without each part."""
    parts = np.array_split(event.holds(run), _PARTS)
    hits = np.array([int(part.sum()) for part in parts])
    sizes = np.array([len(part) for part in parts])
    return (
        np.concatenate([[hits.sum()], hits.sum() - hits]),
        np.concatenate([[sizes.sum()], sizes.sum() - sizes]),
    )
