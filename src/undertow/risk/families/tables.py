"""Families of channels with finitely many outputs, given as a function of epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_positive
from undertow.errors import AssumptionError
from undertow.mechanisms import ExponentialMechanism
from undertow.privacy.loss import Loss
from undertow.risk._finite import Risk
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families.base import Family, Structure
from undertow.risk.threat import Threat

__all__ = ["FiniteFamily", "exponential", "finite"]

Floats = NDArray[np.float64]

# Intervals of levels looked at before a bound for all levels is given up, by the cells
# of the table, and what covers the rounding of probabilities.
_FEWEST, _MOST, _CELLS = 100, 4000, 1 << 18
_ROUNDING = 1e-12


class FiniteFamily(Family):
    """A channel for each epsilon, given as a function.

    Parameters
    ----------
    channel : callable
        From epsilon to a Channel or a mechanism with finitely many outputs.
    records : int
        Number of records.
    monotone : bool, optional
        Whether you have a proof that the risk never falls as epsilon grows, such as
        that each channel is a post-processing of the next.
    mechanism : callable, optional
        From epsilon to the mechanism to deploy; the channel by default.
    law : callable, optional
        From epsilon, 0 and infinity included, to the matrix of the channel, where each
        row is an exponential family in epsilon: its total variation from the law at one
        level then grows with the distance from that level, so that the risk at all
        levels can be bounded by its values at some.
    """

    def __init__(
        self,
        channel: Callable[[float], Any],
        records: int,
        *,
        name: str = "finite",
        monotone: bool = False,
        mechanism: Callable[[float], Any] | None = None,
        law: Callable[[float], Floats] | None = None,
    ) -> None:
        if not callable(channel):
            raise TypeError(f"channel must be callable, got {type(channel).__name__}.")
        self.name, self.monotone = name, monotone
        self.records = check_count(records, "records", minimum=2)
        self._channel, self._mechanism = channel, mechanism or channel
        self._law = law

    def mechanism(self, parameter: float, *, structure: int | None = None) -> Any:
        """Return what is deployed at an epsilon."""
        return self._mechanism(parameter)

    def loss(self, parameter: float) -> Loss | None:
        """Return nothing: the function only promises to be called with epsilon."""
        return None

    def curve(self, threat: Threat) -> None:
        """Return nothing: every value comes from the engine."""

    def source(self, level: float, threat: Threat) -> Any:
        """Return the channel."""
        return self._channel(level)

    def exact_risk(self, source: Any, threat: Threat) -> Risk:
        """Return what the exact engines find, whatever the function returns."""
        return advantage(source, threat)

    def limit_within(self, threat: Threat, target: float) -> float | None:
        """Return the risk in the limit, if no level passes the target; None if unknown.

        Between two levels the risk is at most that at either plus twice the largest
        total variation of a row between the two: success with the person's record and
        without it each move by no more. Intervals are halved until that fits.
        """
        if self._law is None:
            return None
        ends = [
            (level, *self._risk_at(level, threat)) for level in (0.0, 1.0, math.inf)
        ]
        waiting = [(ends[0], ends[1]), (ends[1], ends[2])]
        if not np.ptp(ends[1][2], axis=0).any():  # one law for all records, everywhere
            return ends[-1][1]
        for _ in range(max(_FEWEST, min(_MOST, _CELLS // ends[1][2].size))):
            if not waiting:
                return ends[-1][1]
            low, high = waiting.pop()
            moved = float(np.abs(low[2] - high[2]).sum(axis=1).max())
            if min(low[1], high[1]) + moved * (1.0 + _ROUNDING) + _ROUNDING <= target:
                continue
            level = _between(low[0], high[0])
            if max(low[1], high[1]) > target or not low[0] < level < high[0]:
                return None
            middle = (level, *self._risk_at(level, threat))
            waiting += [(low, middle), (middle, high)]
        return None

    def _risk_at(self, level: float, threat: Threat) -> tuple[float, Floats]:
        assert self._law is not None
        law = self._law(level)
        return advantage(Channel(law), threat).value, law

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return one: nothing is known of the channel as a whole."""
        return np.ones(levels.shape)


def exponential(
    scores: ArrayLike, *, sensitivity: float = 1.0, monotone_scores: bool = False
) -> FiniteFamily:
    """Return the exponential mechanism on given scores.

    Parameters
    ----------
    scores : array_like of shape (m, candidates)
        Score of each candidate for each record.
    sensitivity : float
        Most that replacing a record moves any score.
    monotone_scores : bool
        Whether a change moves all scores the same way.

    Raises
    ------
    AssumptionError
        If the scores of two records differ by more than the sensitivity, or move both
        ways although they are called monotone.

    Notes
    -----
    No smaller epsilon need be a post-processing of a larger one, so the risk is not
    proved monotone and calibration scans. Where no level of the scan passes a target,
    all levels up to infinity are bounded before it is said that any will do.
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise ValueError(
            "scores must be a finite table (records, candidates) with at least two "
            f"records, got shape {table.shape}."
        )
    step = check_positive(sensitivity, "sensitivity")
    _require_moves(table, step, monotone_scores)

    def mechanism(epsilon: float) -> ExponentialMechanism:
        return ExponentialMechanism(
            table.shape[1],
            epsilon=epsilon,
            sensitivity=step,
            monotone=monotone_scores,
        )

    rate = 1.0 if monotone_scores else 2.0

    below = table - table.max(axis=1, keepdims=True)

    def law(epsilon: float) -> Floats:
        factor = epsilon / step / rate
        # In the limit the candidates of the highest score share all probability.
        logs = np.where(below == 0, 0.0, -math.inf) if factor == math.inf else below
        laws = np.exp(logs if factor == math.inf else logs * factor)
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))

    return FiniteFamily(
        lambda epsilon: Channel(law(epsilon)),
        len(table),
        name="exponential",
        mechanism=mechanism,
        law=law,
    )


def _between(low: float, high: float) -> float:
    """Return a level inside, on a logarithmic scale but for the two ends."""
    if high == math.inf:
        return 4.0 * low
    return high / 4.0 if low == 0.0 else math.sqrt(low) * math.sqrt(high)


def _require_moves(table: Floats, step: float, monotone: bool) -> None:
    """Refuse a claim about neighbours that the records themselves contradict."""
    moved = float(np.ptp(table, axis=0).max())
    if moved > step * (1.0 + 1e-12):
        raise AssumptionError(
            f"sensitivity must be at least {moved!r}, by which replacing a record "
            f"moves a score, got {step}."
        )
    ranked = table[np.argsort(table.sum(axis=1), kind="stable")]
    if monotone and (np.diff(ranked, axis=0) < -1e-12 * step).any():
        raise AssumptionError(
            "monotone_scores must be False: replacing a record moves some scores up "
            "and others down."
        )


def finite(
    channel: Callable[[float], Any], records: int, *, monotone: bool = False
) -> FiniteFamily:
    """Return the family of channels that a function of epsilon gives.

    Parameters
    ----------
    channel : callable
        From epsilon to a Channel or a mechanism with finitely many outputs.
    records : int
        Number of records, at least two.
    monotone : bool, optional
        Whether you have a proof that the risk never falls as epsilon grows.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> from undertow.risk import Prior, Threat
    >>> family = finite(lambda epsilon: RandomizedResponse(3, epsilon), 3)
    >>> round(family.risk(1.0, Threat(Prior.uniform(3))).value, 6)
    0.242784
    """
    return FiniteFamily(channel, records, monotone=monotone)
