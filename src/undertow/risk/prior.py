r"""What the attacker believes of the target before seeing any output.

A :class:`Prior` is a law :math:`\pi` on finitely many records. Its collision
probability :math:`\kappa_\pi = \sum_x \pi_x^2` is the chance that an independent draw
is the target itself, so that :math:`1 - \kappa_\pi` is the largest advantage there is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import read_floats
from undertow._validate import check_non_negative, check_probability
from undertow.errors import ModelError
from undertow.privacy.result import Estimate

__all__ = ["Prior", "estimate_collision"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Prior:
    r"""A law on finitely many records.

    Parameters
    ----------
    support : sequence of hashable, or int
        The records, all different; a number m stands for 0, ..., m - 1.
    pmf : array_like of shape (m,)
        Their probabilities: non-negative, with sum 1 to within 1e-9. What is missing
        from 1 is shared out in proportion. Zeros are allowed: such a record is never
        the target, and may still be guessed.

    Raises
    ------
    ModelError
        If `pmf` is no probability law on `support`.

    Notes
    -----
    A prior is public: every number computed from it is published as if it were. One
    that is counted on the private data leaks them.

    Examples
    --------
    >>> prior = Prior(["home", "work", "gym"], [0.5, 0.3, 0.2])
    >>> len(prior), round(prior.collision, 12)
    (3, 0.38)
    """

    support: tuple[Hashable, ...]
    pmf: NDArray[np.float64]

    def __init__(self, support: Sequence[Hashable] | int, pmf: ArrayLike) -> None:
        records = _records(support)
        object.__setattr__(self, "support", records)
        object.__setattr__(self, "pmf", _law(pmf, len(records)))

    @classmethod
    def uniform(cls, support: Sequence[Hashable] | int) -> Prior:
        """Return the law under which every record is equally likely.

        Examples
        --------
        >>> Prior.uniform(8).collision
        0.125
        """
        records = _records(support)
        return cls(records, np.full(len(records), 1.0 / len(records)))

    @classmethod
    def empirical(
        cls,
        values: Iterable[Hashable],
        support: Sequence[Hashable] | int | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Prior:
        """Return the relative frequencies of `values`.

        Parameters
        ----------
        values : iterable of hashable
            Public observations; at least one.
        support : sequence of hashable, or int, optional
            The records; those observed, in the order of their first appearance, by
            default.
        smoothing : float, optional
            Added to every count.

        Raises
        ------
        ModelError
            If a value lies outside `support`, or nothing was observed.

        Notes
        -----
        Not checkable: that `values` are public. The collision probability of the
        frequencies is too large on average; see :func:`estimate_collision`.

        Examples
        --------
        >>> Prior.empirical("aab", smoothing=1.0).pmf.tolist()
        [0.6, 0.4]
        """
        counts: dict[Hashable, float] = {}
        for value in values:
            counts[value] = counts.get(value, 0.0) + 1.0
        records = tuple(counts) if support is None else _records(support)
        outside = set(counts).difference(records)
        if outside:
            raise ModelError(
                f"values must lie in the support, got {len(outside)} that do not; "
                "widen the support."
            )
        extra = check_non_negative(smoothing, "smoothing")
        return cls.from_counts({r: counts.get(r, 0.0) + extra for r in records})

    @classmethod
    def from_counts(cls, counts: Mapping[Hashable, float]) -> Prior:
        """Return the law proportional to the counts of a mapping from records.

        Examples
        --------
        >>> Prior.from_counts({"yes": 3, "no": 1}).pmf.tolist()
        [0.75, 0.25]
        """
        weights = read_floats(list(counts.values()), "counts", error=ModelError)
        total = _total(weights)
        if not (0 < total < math.inf and weights.min() >= 0):
            raise ModelError(
                "counts must be finite, non-negative and not all zero, got a total of "
                f"{total}."
            )
        return cls(tuple(counts), weights / total)

    @classmethod
    def two_point(
        cls,
        support: Sequence[Hashable] | int,
        pair: tuple[Hashable, Hashable],
        *,
        weight: float = 0.5,
    ) -> Prior:
        """Return the law that puts `weight` on one of a pair, the rest on the other.

        Examples
        --------
        >>> Prior.two_point(4, (0, 3)).pmf.tolist()
        [0.5, 0.0, 0.0, 0.5]
        """
        records, share = _records(support), check_probability(weight, "weight")
        places = [records.index(record) for record in pair if record in records]
        if not len(pair) == len(places) == len(set(places)) == 2:
            raise ModelError(
                f"pair must hold two different records of the support, got {pair!r}."
            )
        pmf = np.zeros(len(records))
        pmf[places] = share, 1.0 - share
        return cls(records, pmf)

    @property
    def collision(self) -> float:
        r"""The collision probability :math:`\kappa_\pi`, to two units in the last."""
        return math.fsum((self.pmf * self.pmf).tolist())

    def __len__(self) -> int:
        return len(self.support)

    def __repr__(self) -> str:
        return f"Prior({len(self)} records, collision={self.collision:.6g})"


def estimate_collision(counts: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    r"""Estimate the collision probability of the law that independent draws came from.

    .. math:: \hat\kappa = \frac{n \sum \hat p^2 - 1}{n - 1}, \qquad
       \hat\kappa \pm \sqrt{\frac{\ln(2/\beta)}{2 \lfloor n/2 \rfloor}}

    Parameters
    ----------
    counts : array_like of int
        How often each record was drawn; n, their sum, is at least 2.
    confidence : float, optional
        The number :math:`1 - \beta`.

    Returns
    -------
    Estimate
        The unbiased value and its interval within [0, 1].

    Notes
    -----
    The plug-in value :math:`\sum \hat p^2` is too large by :math:`(1-\kappa)/n` on
    average. Bounds on the advantage shrink with :math:`1 - \kappa`, so a guarantee
    takes ``low``, never ``value``: the latter is too large about half of the time. The
    interval is Hoeffding's for a U-statistic with a kernel in [0, 1] [1]_. Checked:
    whole, non-negative counts. Not checkable: that the draws are independent.

    References
    ----------
    .. [1] W. Hoeffding, *Probability Inequalities for Sums of Bounded Random
       Variables*, Journal of the American Statistical Association 58, 1963, Section 5b.

    Examples
    --------
    >>> estimate = estimate_collision([50, 30, 20])
    >>> round(estimate.value, 6), round(estimate.low, 6)
    (0.373737, 0.181673)
    """
    drawn = read_floats(counts, "counts")
    beta = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    n = int(drawn.sum()) if np.isfinite(drawn).all() else 0
    if drawn.ndim != 1 or n < 2 or (drawn < 0).any() or (drawn % 1 != 0).any():
        raise ValueError(
            "counts must be whole, non-negative numbers of at least two draws, got "
            f"{n} draws in {drawn.size} cells."
        )
    value = math.fsum((drawn * (drawn - 1.0)).tolist()) / (n * (n - 1))
    width = math.sqrt(math.log(2.0 / beta) / (2 * (n // 2)))
    return Estimate(
        value,
        max(0.0, value - width),
        min(1.0, value + width),
        confidence,
        n,
        method="Hoeffding's inequality for a U-statistic",
    )


def _records(support: Sequence[Hashable] | int) -> tuple[Hashable, ...]:
    try:
        records, differ = _listed(support)
    except TypeError:
        raise ModelError(
            "support must be hashable records in a sequence, or their number, got "
            f"{type(support).__name__}."
        ) from None
    if not records or differ != len(records):
        raise ModelError(
            "support must hold at least one record, all different, got "
            f"{len(records)} of which {differ} differ."
        )
    return records


def _listed(support: Sequence[Hashable] | int) -> tuple[tuple[Hashable, ...], int]:
    """Return the records and how many of them differ."""
    records: tuple[Hashable, ...]
    if isinstance(support, bool):
        raise TypeError
    if hasattr(support, "__index__"):
        records = tuple(range(operator.index(support)))
    else:
        records = tuple(support)
    return records, len(set(records))


def _total(weights: NDArray[np.float64]) -> float:
    try:
        return math.fsum(weights.tolist())
    except (OverflowError, ValueError):  # beyond the floats, or infinities that cancel
        return math.inf


def _law(pmf: ArrayLike, size: int) -> NDArray[np.float64]:
    weights = read_floats(pmf, "pmf", error=ModelError)
    if weights.shape != (size,):
        raise ModelError(
            f"pmf must have one probability for each of the {size} records, got shape "
            f"{weights.shape}."
        )
    total = _total(weights)
    if not (weights.min() >= 0 and abs(total - 1.0) <= _TOLERANCE):
        raise ModelError(
            "pmf must be non-negative with sum 1, got minimum "
            f"{weights.min()} and sum {total}; use Prior.from_counts to scale weights."
        )
    if total != 1.0:
        weights /= total
    weights.setflags(write=False)
    return weights
