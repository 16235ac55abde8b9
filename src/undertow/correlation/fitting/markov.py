"""Fit a chain to observed series, with a region instead of a point."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_non_negative, check_probability
from undertow.correlation.fitting.counting import (
    code_series,
    count_transitions,
    count_triples,
)
from undertow.correlation.fitting.goodness import GoodnessOfFit, chain_checks
from undertow.correlation.fitting.interval import anytime_limits
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.family import MarkovFamily
from undertow.correlation.markov.ratio import projective_diameter, transition_ratio
from undertow.errors import EstimatedModelWarning, ModelError

__all__ = [
    "MarkovFit",
    "fit_markov",
    "region_limits",
    "shares",
    "warn_of_private_data",
]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class MarkovFit:
    """A chain fitted to series, its counts, and the region around it.

    Parameters
    ----------
    states : tuple
        The states, in the order of rows and columns.
    counts : ndarray of shape (s, s)
        Transitions seen, from row to column.
    transition : ndarray of shape (s, s)
        Their shares.
    lower, upper : ndarray of shape (s, s)
        Limits of each transition probability, together valid with `confidence`.
    confidence : float
        Chance that the limits hold all at once.
    length : int
        Number of records of the longest series, missing ones counted.
    missing : int
        Number of missing records.
    checks : tuple of GoodnessOfFit
        Is the order one? Does the chain change over time?
    budget : float
        Privacy spent on the counts; 0 if they are exact.
    """

    states: tuple[Hashable, ...]
    counts: Counts
    transition: Array
    lower: Array
    upper: Array
    confidence: float
    length: int
    missing: int = 0
    checks: tuple[GoodnessOfFit, ...] = ()
    budget: float = 0.0

    @property
    def gamma(self) -> float:
        """Largest over smallest transition probability, at the point estimate."""
        return float(transition_ratio(self.transition))

    @property
    def diameter(self) -> float:
        """Projective diameter of the point estimate."""
        return float(projective_diameter(self.transition))

    @property
    def diameter_upper(self) -> float:
        """Largest projective diameter of any chain in the region."""
        return float(projective_diameter(lower=self.lower, upper=self.upper))

    def chain(self, length: int | None = None) -> MarkovChain:
        """Return the chain at the point estimate, for `length` records."""
        return MarkovChain(self.transition, length=length, renormalise=True)

    def region(self, length: int | None = None) -> MarkovFamily:
        """Return every chain inside the limits; calibrate on this, not on a point."""
        return MarkovFamily(lower=self.lower, upper=self.upper, length=length)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against a homogeneous chain of order one, in words."""
        return tuple(check.summary for check in self.checks if check.rejects)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "states": [str(state) for state in self.states],
            "counts": self.counts.tolist(),
            "transition": self.transition.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "confidence": self.confidence,
            "length": self.length,
            "missing": self.missing,
            "gamma": _json_number(self.gamma),
            "diameter": _json_number(self.diameter),
            "diameter_upper": _json_number(self.diameter_upper),
            "checks": [check.to_dict() for check in self.checks],
            "budget": self.budget,
        }


def fit_markov(
    series: Sequence[Any],
    *,
    states: Sequence[Hashable] | None = None,
    missing: Iterable[Hashable] = (),
    smoothing: float = 0.0,
    confidence: float = 0.95,
    public: bool = False,
) -> MarkovFit:
    """Fit a homogeneous chain of order one to one or several series.

    Parameters
    ----------
    series : sequence
        One series of states, or several; None and nan are missing. Pairs that touch a
        missing record are dropped, series are not joined.
    states : sequence, optional
        All states; by default those that occur.
    missing : iterable, optional
        Further marks of a missing record.
    smoothing : float
        Added to every count. It changes the claim, so it is zero by default.
    confidence : float
        Of the region, in (0, 1); simultaneous over all transition probabilities.
    public : bool
        Whether the series is public, or older data of other people. If not, the model
        depends on what it is to protect, and a warning says so.

    Returns
    -------
    MarkovFit
        Calibrate on its :meth:`~MarkovFit.region`.

    Raises
    ------
    ModelError
        If fewer than two states occur, or a state is never left.

    Warns
    -----
    EstimatedModelWarning
        If `public` is false.

    Notes
    -----
    Limits are Robbins' uniform-mixture confidence sequences with Bonferroni's
    correction over the entries; they hold although the number of visits to a state is
    random. An entry that was never seen has the lower limit 0, hence an infinite
    diameter: nothing is smoothed in silence.

    Examples
    --------
    >>> fit = fit_markov([0, 0, 1, 1, None, 1, 0, 0, 1, 0], public=True)
    >>> fit.counts.tolist()
    [[2, 2], [2, 1]]
    """
    smoothing = check_non_negative(smoothing, "smoothing")
    confidence = check_probability(confidence, "confidence", open_interval=True)
    runs, listed = code_series(series, states=states, missing=missing)
    counts = count_transitions(runs, len(listed))
    if not public:
        warn_of_private_data()
    lower, upper = region_limits(counts, counts, error=1 - confidence)
    return MarkovFit(
        listed,
        counts,
        shares(counts + smoothing, listed),
        lower,
        upper,
        confidence,
        length=max(len(run) for run in runs),
        missing=sum(int((run < 0).sum()) for run in runs),
        checks=chain_checks(runs, len(listed), count_triples(runs, len(listed))),
    )


def shares(counts: NDArray[Any], states: Sequence[Hashable]) -> Array:
    """Return each row of counts over its sum."""
    totals = np.asarray(counts, float).sum(axis=1)
    if not (totals > 0).all():
        never = states[int(np.argmin(totals))]
        raise ModelError(
            f"every state must be left at least once, got none out of {never!r}; "
            "give a longer series or a smoothing."
        )
    return np.asarray(counts / totals[:, None], dtype=float)


def warn_of_private_data() -> None:
    """Say that the model depends on what it is to protect."""
    warnings.warn(
        "the model was fitted on the series it is to protect: the noise scale then "
        "depends on the private data; fit on public data (public=True) or with "
        "fit_markov_private.",
        EstimatedModelWarning,
        stacklevel=3,
    )


def region_limits(most: Counts, least: Counts, *, error: float) -> tuple[Array, Array]:
    """Return limits of every entry, where each count lies in ``[least, most]``."""
    size = len(most)
    # One free probability in each row of a two-state chain, s in each row otherwise.
    share = error / (size if size == 2 else size * size)
    _, upper = anytime_limits(
        most.astype(float), _others(least).astype(float), error=share
    )
    lower, _ = anytime_limits(
        least.astype(float), _others(most).astype(float), error=share
    )
    return lower, upper


def _others(counts: Counts) -> Counts:
    return np.asarray(counts.sum(axis=1, keepdims=True) - counts)


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
