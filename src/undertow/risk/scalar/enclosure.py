r"""Two-sided sums for Gaussian gains: what an attack attains, and what none exceeds.

A gain is :math:`V_g(\theta) = \sum_a C_{ga}\varphi(\theta - a)`. On a cell of width h
on which every :math:`|V_g''| \le B`, chords are off by at most
:math:`(\theta-p)(q-\theta)B/2`, and the largest of chords is convex; so the trapezoid
of the two end values plus :math:`B h^3/12` is above the integral of the maximum. The
integral of any one gain is below it. Cells are halved until the two agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.risk.scalar.laws import ScalarLaw

__all__ = ["Enclosure", "enclose"]

Floats = NDArray[np.float64]

# Beyond this many standard deviations from every answer, 3e-19 of the mass is left.
_REACH = 9.0
_TAIL = 3e-19
_STEP = 0.5
_ROUNDS = 60
# Cells open at a time, and products of cells, guesses and answers in all.
_CELLS = 1 << 18
_PRODUCTS = 2e11
_ENTRIES = 1 << 22
_PEAK = 1 / math.sqrt(2 * math.pi)
_SHOULDER = 2 * math.exp(-1.5) * _PEAK  # |phi''| at sqrt(3)
# Rows of coefficients that agree to this are one guess.
_GRAIN = 2.0**-44
_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A lower and an upper value of the same number."""

    lower: float
    upper: float


def enclose(
    gains: Floats, centres: Floats, law: ScalarLaw, *, tolerance: float
) -> Enclosure:
    """Enclose the integral of the largest of Gaussian sums.

    Parameters
    ----------
    gains : ndarray of shape (guesses, answers)
        Coefficient of each answer's law in the gain of each guess.
    centres : ndarray of shape (answers,)
        Distinct answers, ascending.
    law : ScalarLaw
        Of Gaussian noise.
    tolerance : float
        Gap to aim at.

    Returns
    -------
    Enclosure
        The gap may stay above the tolerance where that would need more than 2^18 open
        cells; the values hold all the same.

    Raises
    ------
    NotApplicable
        If the first pass alone would need more than 2e11 products.

    Examples
    --------
    >>> noise = ScalarLaw("gaussian", 1.0)
    >>> found = enclose(np.eye(2) / 2, np.array([0.0, 2.0]), noise, tolerance=1e-9)
    >>> round(found.upper, 8), found.upper - found.lower <= 1.1e-9
    (0.84134475, True)
    """
    atoms = law.atoms(centres)
    fixed = float((gains @ atoms).max(axis=0).sum()) if atoms.size else 0.0
    clusters = _clusters(centres, law)
    work = sum((span[1] - span[0]) * part.size for part, span in clusters)
    if work / _STEP * len(gains) > _PRODUCTS:
        raise NotApplicable(
            f"Gaussian noise must need at most {_PRODUCTS:.0e} products, got "
            f"{work / _STEP * len(gains):.1e}; merge answers, or use the bound by "
            "total variation."
        )
    weighted = gains * law.weights(centres)
    # Guesses change from cell to cell, so each answer counts with its largest weight.
    size = float(np.abs(weighted).max(axis=0).sum())
    lower, upper = [fixed], [fixed]
    for part, span in clusters:
        line = (centres[part] - centres[part[0]]) / law.scale
        sums = _Sums(_distinct(weighted[:, part]), line)
        found, cells = _refine(sums, span, tolerance / len(clusters))
        slack = 4 * _UNIT * (cells + len(part) + float(line[-1])) * size
        lower.append(found.lower - slack)
        upper.append(found.upper + slack + 2 * _GRAIN * len(part))
    outside = _TAIL * size
    return Enclosure(math.fsum(lower) - outside, math.fsum(upper) + outside)


def _clusters(
    centres: Floats, law: ScalarLaw
) -> list[tuple[NDArray[np.intp], tuple[float, float]]]:
    """Group answers within reach of each other, and the stretch they reach.

    Stretches are in standard deviations from the first answer of the group, so that
    answers far apart lose no digits; a group sees nothing of another but its tail.
    """
    numbers = np.arange(len(centres), dtype=np.intp)
    breaks = np.flatnonzero(np.diff(centres) / law.scale > 2 * _REACH)
    found = []
    for part in np.split(numbers, breaks + 1):
        first, last = centres[part[0]], centres[part[-1]]
        start = max(-_REACH, (law.low - first) / law.scale)
        stop = min((last - first) / law.scale + _REACH, (law.high - first) / law.scale)
        if stop > start:
            found.append((part, (float(start), float(stop))))
    return found


def _distinct(gains: Floats) -> Floats:
    """Keep one of the guesses whose gains agree everywhere."""
    _, first = np.unique(np.round(gains / _GRAIN), axis=0, return_index=True)
    return np.asarray(gains[np.sort(first)])


def _refine(
    sums: _Sums, span: tuple[float, float], tolerance: float
) -> tuple[Enclosure, int]:
    """Halve the cells that matter until the gap is within the tolerance."""
    edges = np.linspace(*span, 2 + int((span[1] - span[0]) / _STEP))
    low, high = edges[:-1], edges[1:]
    lowers: list[float] = []
    uppers: list[float] = []
    for _ in range(_ROUNDS):
        lower, upper = sums.enclose(low, high)
        gap = upper - lower
        spent = math.fsum(uppers) - math.fsum(lowers)
        # A cell may stay open-ended by its share of half of what is left.
        share = max(0.0, tolerance - spent) / 2 / max(1, len(low))
        finished = gap <= share
        if spent + gap.sum() <= tolerance or 2 * (~finished).sum() > _CELLS:
            finished[:] = True
        lowers += lower[finished].tolist()
        uppers += upper[finished].tolist()
        low, high = low[~finished], high[~finished]
        if not len(low):
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    else:
        lower, upper = sums.enclose(low, high)
        lowers += lower.tolist()
        uppers += upper.tolist()
    return Enclosure(math.fsum(lowers), math.fsum(uppers)), len(lowers)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of normal densities, in standard deviations."""

    gains: Floats
    line: Floats

    def enclose(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return a lower and an upper value of each cell's integral."""
        lower, upper = np.empty_like(low), np.empty_like(low)
        step = max(1, _ENTRIES // max(self.gains.shape))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            lower[part], upper[part] = self._enclose(low[part], high[part])
        return lower, upper

    def _enclose(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        left, right = low - self.line[:, None], high - self.line[:, None]
        first, last = self.gains @ _density(left), self.gains @ _density(right)
        bend = (np.abs(self.gains) @ _curvature(left, right)).max(axis=0)
        width, cell = high - low, np.arange(len(low))
        chords = width * (first.max(axis=0) + last.max(axis=0)) / 2
        guess = (first + last).argmax(axis=0)
        masses = _STANDARD.masses(low, high, self.line)
        lower = (self.gains[guess].T * masses).sum(axis=0)
        rival = np.full(len(low), -np.inf)
        for values in (first, last):
            lead = values[guess, cell]
            values[guess, cell] = -np.inf
            rival = np.maximum(rival, (values - lead).max(axis=0))
        # A rival can pass the guess by this much, at most, anywhere in the cell.
        excess = np.maximum(0.0, rival + width**2 * bend / 4)
        upper = np.minimum(chords + width**3 * bend / 12, lower + width * excess)
        return lower, np.maximum(lower, upper)


_STANDARD = ScalarLaw("gaussian", 1.0)


def _density(z: Floats) -> Floats:
    return np.asarray(_PEAK * np.exp(-(z**2) / 2))


def _curvature(left: Floats, right: Floats) -> Floats:
    """Return the largest second derivative of the density between two places.

    It is largest at an end, at 0 or at the square root of 3 on either side.
    """
    ends = [np.abs(z**2 - 1) * _density(z) for z in (left, right)]
    most = np.maximum(*ends)
    root = math.sqrt(3)
    for place, value in ((-root, _SHOULDER), (root, _SHOULDER), (0.0, _PEAK)):
        inside = (left <= place) & (right >= place)
        most = np.where(inside, np.maximum(most, value), most)
    return most
