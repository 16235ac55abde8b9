"""The best inference attack on one record, with its exact advantage."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_non_negative
from undertow.correlation.adversary import Adversary
from undertow.correlation.attack.laplace_laws import (
    laplace_masses,
    laplace_variation,
    positive_intervals,
)
from undertow.correlation.finite.kernel import require_lattice
from undertow.errors import ModelError
from undertow.privacy import PiecewiseLinearTradeOff

__all__ = ["Attack", "finite_attack", "laplace_attack"]

Floats = NDArray[np.float64]
Intervals = tuple[tuple[float, float], ...]
_TOLERANCE = 1e-9
_THRESHOLDS = 129
# Likelihood ratios beyond are not told from infinite ones in the pictures.
_LARGEST_LOG = 690.0


@dataclass(frozen=True)
class Attack:
    """The likelihood-ratio test between two secrets of one record.

    Parameters
    ----------
    adversary : Adversary
        Who attacks, with the values known.
    pair : tuple
        The two secrets; the attack says the first or the second.
    advantage : float
        True-positive minus false-positive rate, the largest possible: the total
        variation between the two output laws.
    rule : str
        When the attack says the first secret, in words.
    false_positive, true_positive : ndarray
        Points of the receiver operating characteristic, from (0, 0) to (1, 1).
    intervals : tuple of pairs, optional
        Outputs on which it says the first secret, for real outputs.
    outputs : frozenset, optional
        The same for finite outputs.
    """

    adversary: Adversary
    pair: tuple[Any, Any]
    advantage: float
    rule: str
    false_positive: Floats = field(repr=False)
    true_positive: Floats = field(repr=False)
    intervals: Intervals = ()
    outputs: frozenset[Any] = frozenset()

    def says_first(self, seen: ArrayLike) -> NDArray[np.bool_]:
        """Return for each output whether the attack says the first secret."""
        values = np.asarray(seen)
        if self.intervals:
            inside = [(values > low) & (values <= high) for low, high in self.intervals]
            return np.asarray(np.any(inside, axis=0))
        flat = [item in self.outputs for item in values.ravel().tolist()]
        return np.array(flat, dtype=bool).reshape(values.shape)

    def tradeoff(self) -> PiecewiseLinearTradeOff:
        """Return false negatives against false positives, through the points.

        The optimum is convex: it meets these straight lines at the points and lies
        below them in between, so they understate the attack there. Use them for
        pictures, and :func:`leakage_tradeoff` for a bound.
        """
        corners = _lower_hull(self.false_positive, 1 - self.true_positive)
        return PiecewiseLinearTradeOff(*zip(*corners, strict=True))


def finite_attack(
    first: ArrayLike,
    second: ArrayLike,
    *,
    adversary: Adversary,
    pair: tuple[Any, Any],
    outputs: tuple[Any, ...] | None = None,
) -> Attack:
    """Return the best test between two laws on finitely many outputs.

    Parameters
    ----------
    first, second : array_like of shape (T,)
        Output probabilities under the two secrets.
    adversary, pair
        Carried along.
    outputs : tuple, optional
        Names of the outputs.
    """
    p, q = _read_laws(first, second)
    names = outputs if outputs is not None else tuple(range(len(p)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(q > 0, p / np.where(q > 0, q, 1), np.inf)
    order = np.argsort(-np.where(p + q > 0, ratio, -1), kind="stable")
    hits = np.concatenate([[0.0], np.cumsum(p[order])])
    alarms = np.concatenate([[0.0], np.cumsum(q[order])])
    chosen = frozenset(names[j] for j in np.flatnonzero(p > q))
    shown = ", ".join(str(names[j]) for j in np.flatnonzero(p > q)[:8])
    return Attack(
        adversary,
        pair,
        float(np.maximum(p - q, 0).sum()),
        f"say {pair[0]} on seeing one of {shown or 'none'}",
        np.minimum(alarms, 1.0),
        np.minimum(hits, 1.0),
        outputs=chosen,
    )


def laplace_attack(
    support: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    scale: float,
    adversary: Adversary,
    pair: tuple[Any, Any],
    step: float = 0.0,
) -> Attack:
    """Return the best test between two Laplace mixtures.

    Parameters
    ----------
    support : array_like of shape (N,)
        Answers of the query, increasing.
    first, second : array_like of shape (N,)
        Their probabilities under the two secrets.
    scale : float
        Laplace scale.
    adversary, pair
        Carried along.
    step : float
        Step of the lattice that the noise is drawn on, of which every answer is a
        multiple; 0 for continuous noise.

    Notes
    -----
    Section 9 of the theory page on attacks: the likelihood ratio is monotone between
    neighbouring answers, so every test is a union of intervals whose ends and masses
    have closed forms.

    Examples
    --------
    >>> found = laplace_attack([0, 1, 2], [0, 0.1, 0.9], [0.9, 0.1, 0], scale=1.0,
    ...                        adversary=Adversary(0), pair=(1, 0))
    >>> round(found.advantage, 7), found.rule
    (0.5689085, 'say 1 on seeing a value in (1, inf)')
    """
    p, q = _read_laws(first, second)
    centres = np.asarray(support, float)
    if centres.shape != p.shape or not (np.diff(centres) > 0).all():
        raise ModelError("support must be increasing, one answer a probability.")
    spacing = check_non_negative(step, "step")
    if spacing:
        require_lattice(centres.tolist(), Fraction(spacing))
    best = positive_intervals(centres, p - q, scale=scale)
    thresholds = _thresholds(centres, p, q, scale=scale)
    points = {(0.0, 0.0), (1.0, 1.0)}
    for threshold in thresholds:
        where = positive_intervals(centres, p - threshold * q, scale=scale)
        alarms, hits = (
            laplace_masses(centres, weights, scale=scale, intervals=where, step=spacing)
            for weights in (q, p)
        )
        points.add((alarms, hits))
    curve = np.array(sorted(points))
    return Attack(
        adversary,
        pair,
        float(
            laplace_variation(centres, (p - q)[None, :], scale=scale, step=spacing)[0]
        ),
        f"say {pair[0]} on seeing a value in {_words(best)}",
        curve[:, 0],
        np.maximum.accumulate(curve[:, 1]),
        intervals=tuple(best),
    )


def _lower_hull(alphas: Floats, betas: Floats) -> list[tuple[float, float]]:
    """Return the corners of the convex function below points that end at (1, 0)."""
    lowest: dict[float, float] = {}
    for x, y in zip(alphas.tolist(), betas.tolist(), strict=True):
        lowest[x] = min(y, lowest.get(x, y))
    hull: list[tuple[float, float]] = []
    for x, y in sorted(lowest.items()):
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (d - b) * (x - c) < (y - d) * (c - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _read_laws(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    p, q = np.asarray(first, float), np.asarray(second, float)
    if p.shape != q.shape or p.ndim != 1:
        raise ModelError(f"both laws must have one length, got {p.shape}, {q.shape}.")
    for law in (p, q):
        if not ((law >= 0).all() and abs(law.sum() - 1) <= _TOLERANCE):
            raise ModelError(
                "both laws must be non-negative and sum to one, got a sum of "
                f"{float(law.sum())!r}."
            )
    return p, q


def _thresholds(centres: Floats, p: Floats, q: Floats, *, scale: float) -> Floats:
    """Return likelihood ratios between the least and the greatest, and 1."""
    kernel = np.exp(-np.abs(centres[:, None] - centres[None, :]) / scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(kernel @ p) - np.log(kernel @ q)
    finite = ratio[np.isfinite(ratio)]
    if not len(finite) or finite.min() == finite.max():
        return np.ones(1)
    low, high = np.clip([finite.min(), finite.max()], -_LARGEST_LOG, _LARGEST_LOG)
    grid = np.linspace(low, high, _THRESHOLDS)
    return np.asarray(np.exp(np.append(grid, 0.0)))


def _words(intervals: list[tuple[float, float]]) -> str:
    if not intervals:
        return "no interval"
    shown = [
        f"({low:g}, {high:g}{')' if high == math.inf else ']'}"
        for low, high in intervals
    ]
    return " or ".join(shown)
