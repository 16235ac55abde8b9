"""What all numbers of an output tell together, and their last digits.

Noise that is too small for many coordinates, or that they share, shows in none of them
alone. Scores of the whole are made from training outputs; nothing here certifies
anything, so they need not be right, only useful.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit._low_bits import (
    decimal_residue,
    laplace_reach,
    lowest_bit,
    textbook_laplace,
)
from undertow.audit._pair_table import Fields, Numbers
from undertow.audit.events import Score

__all__ = ["MOST", "Cell", "differing", "digit_scores", "whole_scores"]

Floats = NDArray[np.float64]
Step = Callable[[Floats], Floats]

MOST = 128
"""Columns that are looked at together."""
# Classes of a column, and training outputs for each of them.
_BINS, _EACH = 32, 40
# Numbers that are compared to find where columns differ, and rows of each input.
_CELLS, _FEWEST, _ROWS = 1 << 15, 1024, 16_384
# Times the standard deviation of the distance of two equal laws, beyond chance.
_AHEAD = 2.0
# Shares beyond which a number is cut for means and variances.
_CUT = 0.001
# Of the variance of a column: what a direction without any noise is given.
_RIDGE = 1e-10
# Digits after the point that residues are taken at, and columns of last digits tried.
_DIGITS, _TRIED = range(8), 3
# Columns in which textbook noise is looked for.
_REACHES = 8
# Decimals of a score, so that equal outputs have equal scores in every batch.
_KEPT = 7
_LARGEST = 1e100


def differing(first: Floats, second: Floats) -> Floats:
    """Return the distance of two distribution functions, for each column.

    Nan counts as the least number. Of long tables some rows are compared.

    Examples
    --------
    >>> one = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> differing(one, one + [[5.0, 0.0]])
    array([1., 0.])
    """
    columns = max(1, first.shape[1])
    rows = max(_FEWEST, min(_ROWS, _CELLS // columns))
    return np.array(
        [_distance(first[:rows, k], second[:rows, k]) for k in range(first.shape[1])]
    )


def _distance(first: Floats, second: Floats) -> float:
    one, two = (np.sort(np.where(np.isnan(p), -np.inf, p)) for p in (first, second))
    points = np.concatenate([one, two])
    shares = [np.searchsorted(p, points, side="right") / len(p) for p in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())


def _chance(rows: int) -> float:
    """Return a distance that two samples of one law seldom have."""
    return _AHEAD / math.sqrt(max(1, min(rows, _ROWS)) / 2)


class Cell:
    """One column of a table, as a function of outputs; can be pickled."""

    def __init__(self, table: Fields | Numbers, column: int, *steps: Step) -> None:
        self.table, self.column, self.steps = table, column, steps

    def __call__(self, outputs: Any) -> Floats:
        rows = self.table.rows(np.asarray(outputs))[:, [self.column]]
        for step in self.steps:
            rows = step(rows)
        return rows[:, 0]


class _Whole:
    """Several columns of a table, taken together step by step; can be pickled."""

    def __init__(
        self, table: Fields | Numbers, columns: Sequence[int], *steps: Step
    ) -> None:
        self.table, self.columns, self.steps = table, list(columns), steps

    def __call__(self, outputs: Any) -> Floats:
        rows = self.table.rows(np.asarray(outputs))[:, self.columns]
        for step in self.steps:
            rows = step(rows)
        return np.round(rows[:, 0], _KEPT)


def whole_scores(
    table: Fields | Numbers, first: NDArray[Any], second: NDArray[Any]
) -> list[Score]:
    """Return scores of all columns of a table together.

    Their log likelihood ratio as if they were independent: of the columns, of the
    columns in order of size, and along the axes of their noise; a linear and a
    quadratic score as if they were Gaussian; and the place of the largest.

    Parameters
    ----------
    table : Fields or Numbers
        How outputs are read.
    first, second : array
        Training outputs of two inputs.

    Examples
    --------
    >>> noise = np.random.default_rng(1).laplace(size=(400, 3))
    >>> table = Numbers((3,), np.dtype(float))
    >>> scores = whole_scores(table, noise + 1, noise)
    >>> [score.words for score in scores][:2]
    ['likelihood ratio of all of output', 'linear score of all of output']
    >>> bool(scores[1](noise + 1).mean() > scores[1](noise).mean() + 1)
    True
    """
    parts = [table.rows(part) for part in (first, second)]
    columns = _columns(parts)
    if len(columns) < 2:
        return []
    parts = [part[:, columns] for part in parts]
    scores: list[tuple[str, tuple[Step, ...]]]
    scores = [("likelihood ratio of all", (_Ratio(*parts),))]
    bounded = _Bounded(np.concatenate(parts))
    plain = [bounded(part) for part in parts]
    linear, axes = _Linear(*plain), _Axes(np.concatenate([_centred(p) for p in plain]))
    scores += [
        ("linear score of all", (bounded, linear)),
        ("quadratic score of all", (bounded, _Quadratic(*plain))),
        ("likelihood ratio along axes of all",
         (bounded, axes, _Ratio(*(axes(part) for part in plain)))),
    ]  # fmt: skip
    if isinstance(table, Numbers):
        ranked = [_in_order(part) for part in parts]
        scores += [
            ("likelihood ratio in order of size of all", (_in_order, _Ratio(*ranked))),
            ("place of the largest of all", (_place_of_largest,)),
            ("place of the first that is not 0 of all", (_place_of_first,)),
        ]
    return [
        Score(f"{words} of output", _Whole(table, columns, *steps))
        for words, steps in scores
    ]


def _columns(parts: Sequence[Floats]) -> list[int]:
    """Return the columns that vary, those that differ most if there are many."""
    pooled = np.concatenate(parts)
    with np.errstate(invalid="ignore"):
        same = (pooled == pooled[0]) | (np.isnan(pooled) & np.isnan(pooled[0]))
    varying = np.flatnonzero(~same.all(axis=0))
    if len(varying) > MOST:
        found = differing(*(part[:, varying] for part in parts))
        varying = varying[np.sort(np.argsort(-found, kind="stable")[:MOST])]
    return [int(column) for column in varying]


class _Ratio:
    """The sum of the log ratios of the frequencies of each column's class.

    Classes are intervals between quantiles of both inputs together, or single values
    where there are few; nan is a class of its own.
    """

    def __init__(self, first: Floats, second: Floats) -> None:
        bins = max(2, min(_BINS, min(len(first), len(second)) // _EACH))
        self.edges: list[Floats] = []
        self.tables: list[Floats] = []
        for one, two in zip(first.T, second.T, strict=True):
            edges = _edges(np.concatenate([one, two]), bins)
            shares = []
            for part in (one, two):
                counts = np.bincount(_classes(part, edges), minlength=len(edges) + 2)
                shares.append((counts + 0.5) / (len(part) + 0.5 * len(counts)))
            self.edges.append(edges)
            self.tables.append(np.log(shares[0]) - np.log(shares[1]))

    def __call__(self, rows: Floats) -> Floats:
        total = np.zeros(len(rows))
        for column, edges, table in zip(rows.T, self.edges, self.tables, strict=True):
            total += table[_classes(column, edges)]
        return total[:, None]


def _edges(numbers: Floats, bins: int) -> Floats:
    """Return where classes end: a number that is an end belongs to the upper one."""
    told = np.sort(numbers[~np.isnan(numbers)])
    if not len(told):
        return np.zeros(0)
    places = np.linspace(0, len(told) - 1, bins + 1).round().astype(int)
    found, counts = np.unique(told[places], return_counts=True)
    # A value of its own class, if many outputs have it.
    return np.unique(np.concatenate([found, np.nextafter(found[counts > 1], np.inf)]))


def _classes(numbers: Floats, edges: Floats) -> NDArray[np.int64]:
    """Return the number of the class of each number; the last one is that of nan."""
    found = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), len(edges) + 1, found)


class _Bounded:
    """Columns in units of their spread, cut where few numbers lie; no nan is left."""

    def __init__(self, pooled: Floats) -> None:
        told = np.clip(pooled, -_LARGEST, _LARGEST)
        self.ends = np.array(
            [
                np.quantile(c[~np.isnan(c)], (_CUT, 0.5, 1 - _CUT), method="lower")
                if not np.isnan(c).all()
                else np.zeros(3)
                for c in told.T
            ]
        ).T
        self.scale = np.ones(pooled.shape[1])
        spread = self(pooled).std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)

    def __call__(self, rows: Floats) -> Floats:
        low, middle, high = self.ends
        told = np.clip(np.where(np.isnan(rows), middle, rows), low, high)
        return np.asarray((told - middle) / self.scale)


class _Linear:
    """The direction in which the means differ most for the noise."""

    def __init__(self, first: Floats, second: Floats) -> None:
        spread = _covariance(first) + _covariance(second)
        gap = first.mean(axis=0) - second.mean(axis=0)
        self.weights = np.linalg.solve(spread, gap)
        size = np.abs(self.weights).max()
        if size > 0:
            self.weights = self.weights / size

    def __call__(self, rows: Floats) -> Floats:
        return np.asarray((rows * self.weights).sum(axis=1, keepdims=True))


class _Quadratic:
    """The log ratio of two Gaussian densities of the same means and covariances."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self.means = [part.mean(axis=0) for part in (first, second)]
        self.roots = []
        for part in (first, second):
            values, axes = np.linalg.eigh(_covariance(part))
            self.roots.append(axes / np.sqrt(np.maximum(values, _RIDGE)))

    def __call__(self, rows: Floats) -> Floats:
        one, two = (
            (((rows - mean) @ root) ** 2).sum(axis=1, keepdims=True)
            for mean, root in zip(self.means, self.roots, strict=True)
        )
        # A direction without noise makes it large; only its order counts.
        return np.asarray(np.sign(two - one) * np.log1p(np.abs(two - one)))


class _Axes:
    """Coordinates along the axes of the noise, in units of their spread."""

    def __init__(self, noise: Floats) -> None:
        values, axes = np.linalg.eigh(_covariance(noise))
        self.axes = axes / np.sqrt(np.maximum(values, _RIDGE))

    def __call__(self, rows: Floats) -> Floats:
        return np.asarray(np.round(rows @ self.axes, _KEPT))


def _centred(rows: Floats) -> Floats:
    return np.asarray(rows - rows.mean(axis=0))


def _covariance(rows: Floats) -> Floats:
    noise = _centred(rows)
    found = noise.T @ noise / max(1, len(rows) - 1)
    return np.asarray(found + _RIDGE * np.eye(rows.shape[1]))


def _in_order(rows: Floats) -> Floats:
    return np.sort(rows, axis=1)


def _place_of_largest(rows: Floats) -> Floats:
    found = np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1)
    return np.asarray(found[:, None], dtype=np.float64)


def _place_of_first(rows: Floats) -> Floats:
    told = ~np.isnan(rows) & (rows != 0)
    found = np.where(told.any(axis=1), told.argmax(axis=1), rows.shape[1])
    return np.asarray(found[:, None], dtype=np.float64)


class _Reach:
    """Which numbers textbook Laplace noise around a centre reaches; can be pickled."""

    def __init__(self, centre: float, scale: float) -> None:
        self.centre, self.scale = centre, scale
        self.words = (
            f"reach of {{}} by float Laplace noise of scale {scale!r} around {centre!r}"
        )

    def __call__(self, rows: Floats) -> Floats:
        return laplace_reach(rows, centre=self.centre, scale=self.scale)


class _Residue:
    """How far numbers are from a multiple of a power of ten; can be pickled."""

    def __init__(self, digits: int) -> None:
        self.digits = digits

    def __call__(self, rows: Floats) -> Floats:
        return decimal_residue(rows, digits=self.digits)


def _lowest_bits(rows: Floats) -> Floats:
    return np.where(np.isnan(rows), np.nan, lowest_bit(rows))


def digit_scores(
    table: Fields | Numbers, first: NDArray[Any], second: NDArray[Any]
) -> list[Score]:
    """Return scores of the last bits and digits of numbers, where they differ.

    For each column the exponent of the lowest set bit, and how far it is from the
    nearest multiple of 1, 0.1, 0.01 and so on, as a share of that step to six decimals,
    also for all columns together; and whether Laplace noise as in a textbook reaches a
    number from the answer that the outputs suggest. Up to three of all these. A noise
    that is added to a float, or rounded before it is added, leaves the answer there.

    Examples
    --------
    >>> noise = np.random.default_rng(1).laplace(size=500).round(2)
    >>> table = Numbers((), np.dtype(float))
    >>> scores = digit_scores(table, noise + 0.123, noise + 0.456)
    >>> scores[0].words
    '(output less the nearest multiple of 0.01) / 0.01'
    """
    parts = [table.rows(part) for part in (first, second)]
    rows, many = min(map(len, parts)), parts[0].shape[1]
    found: list[tuple[float, int, int, Step, str]] = []
    kinds: list[tuple[str, Step]] = [("lowest bit of {}", _lowest_bits)]
    kinds += [(_residue_words(digits), _Residue(digits)) for digits in _DIGITS]
    for order, (words, step) in enumerate(kinds):
        seen = _differing_steps(step, parts)
        if many > 1 and (np.square(seen).mean() > np.square(_chance(rows)) / 4):
            whole = float(np.sqrt(np.square(seen).sum()))
            found.append((whole, -order, -1, step, words))
        for column in np.flatnonzero(seen > _chance(rows)):
            found.append((float(seen[column]), -order, int(column), step, words))
    for place, reach in _reaches(parts):
        seen = differing(*(reach(part[:, [place]]) for part in parts))
        found.append((float(seen[0]), 1, place, reach, reach.words))
    found.sort(key=lambda one: one[:2], reverse=True)
    return [_digit_score(table, parts, *one[2:]) for one in found[:_TRIED]]


def _reaches(parts: Sequence[Floats]) -> Iterator[tuple[int, _Reach]]:
    """Yield the columns in which textbook noise explains an input, and that noise."""
    for place in range(min(parts[0].shape[1], _REACHES)):
        for part in parts:
            law = textbook_laplace(part[:_ROWS, place])
            if law is not None:
                yield place, _Reach(*law)


def _differing_steps(step: Step, parts: Sequence[Floats]) -> Floats:
    rows = max(_FEWEST, min(_ROWS, _CELLS // max(1, parts[0].shape[1])))
    return differing(*(step(part[:rows]) for part in parts))


def _digit_score(
    table: Fields | Numbers,
    parts: Sequence[Floats],
    column: int,
    step: Step,
    words: str,
) -> Score:
    if column >= 0:
        return Score(
            words.format(table.words[column]),
            Cell(table, column, step),
            partial=True,
            missing=any(np.isnan(part[:, column]).any() for part in parts),
        )
    ratio = _Ratio(*(step(part) for part in parts))
    told = words.format("all of output")
    return Score(
        f"likelihood ratio of {told}",
        _Whole(table, range(parts[0].shape[1]), step, ratio),
    )


def _residue_words(digits: int) -> str:
    step = f"{10.0**-digits:.{digits}f}"
    less = f"({{}} less the nearest multiple of {step})"
    return less if digits == 0 else f"{less} / {step}"
