"""Which numbers of an output are looked at when two inputs are told apart.

Coordinates alone or two together, likelihood ratios, all numbers as a whole, and their
last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow.audit.event import (
    Score,
    decimal_residue,
    laplace_reach,
    learned_scores,
    lowest_bit,
    negative_zeros,
    textbook_laplace,
)
from undertow.audit.pair._table import Fields, Numbers, OnRows, given_outputs
from undertow.audit.subject import Subject
from undertow.errors import AuditError
from undertow.numeric.array import Floats

ScoreFunction = Callable[[Any], Any]
ScoreChoice = str | ScoreFunction | Sequence[str | ScoreFunction] | None
"""What a user may ask for besides the outputs themselves."""

# Coordinates of a vector that are tried one by one.
_COORDINATES = 64
_LEFT_OUT = (
    "of {} numbers in an output {} were looked at one by one, and up to {} together"
)
# Places of numbers in other outputs that are tried one by one.
_FIELDS = 16
# Whole numbers that are told one by one.
_FEW = 64
# Decimals to which a log ratio is kept, so that equal ratios are equal.
_DIGITS = 9


def pair_scores(
    subject: Subject,
    pair: tuple[int, int],
    outputs: tuple[Any, Any],
    *,
    choice: ScoreChoice,
    seed: int,
) -> tuple[Score, ...]:
    """Return the scores to try on a pair.

    Parameters
    ----------
    subject : Subject
        Its likelihood ratio is tried if it has a method ``log_likelihood``.
    pair : pair of int
        Numbers of the inputs.
    outputs : pair of arrays
        Training outputs of both, from which a score may be learned.
    choice : "learned", "bits", "values", callable, sequence of these or None
        What to try besides; "values" adds nothing.
    seed : int
        For learning.

    Notes
    -----
    A number is its own score; of a vector up to 64 coordinates are tried, those in
    which the training outputs differ most, and a difference, a sum and a product of
    two, where they tell more than each alone. Where zeros have a negative sign, which
    no comparison of numbers shows, their number is a score too; and where most whole
    numbers occur once, so that they are not compared one by one, their lowest bit.
    Of outputs of another kind, or of several kinds, the numbers in them are scores;
    what they tell together, and their digits, are `finer_scores`.
    """
    found = [*_usual(*outputs), *_likelihood(subject, pair)]
    for one in asked_scores(choice):
        if one == "learned":
            found += learned_scores(outputs[0], outputs[1], seed=seed)
        elif one == "bits":
            found.append(_bits(*outputs))
        elif callable(one):
            found.append(_named(one))
        elif one != "values":
            raise ValueError(
                "score must be 'learned', 'bits', 'values', 'time' or functions, got "
                f"{choice!r}."
            )
    return tuple(found)


def asked_scores(choice: ScoreChoice) -> list[str | ScoreFunction]:
    """Return what a user has asked for, one by one.

    Examples
    --------
    >>> asked_scores(None), asked_scores("bits"), asked_scores(("bits", "time"))
    ([], ['bits'], ['bits', 'time'])
    """
    if choice is None:
        return []
    if callable(choice) or isinstance(choice, str):
        return [choice]
    return list(choice)


def finer_scores(first: Any, second: Any, *, digits: bool) -> tuple[Score, ...]:
    """Return scores of the last digits, or of all numbers of an output together.

    Parameters
    ----------
    first, second : array
        Training outputs of two inputs, from which the scores are made.
    digits : bool
        Which of the two.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=400)
    >>> [score.words for score in finer_scores(noise, 1 + noise, digits=True)]
    ['lowest bit of output']
    >>> finer_scores(noise, 1 + noise, digits=False)  # it is all of the output
    ()
    """
    table: Fields | Numbers | None = Numbers.of(first, second)
    if table is None:
        table = Fields(first, second)
    return tuple((digit_scores if digits else whole_scores)(table, first, second))


def columns_left_out(first: Any, second: Any) -> tuple[str, ...]:
    """Return which numbers of an output were not looked at, in sentences.

    Examples
    --------
    >>> columns_left_out(np.zeros((2, 65)), np.zeros((2, 65)))
    ('of 65 numbers in an output 64 were looked at one by one, and up to 128 together',)
    """
    numbers = Numbers.of(first, second)
    if numbers is None:
        fields = Fields(first, second)
        many, most = len(fields.places) + fields.left_out, _FIELDS
    else:
        many, most = len(numbers.words), _COORDINATES
    return () if many <= most else (_LEFT_OUT.format(many, most, MOST),)


def _usual(first: NDArray[Any], second: NDArray[Any]) -> list[Score]:
    """Return the scores of the numbers that most outputs are, or that are in them."""
    numbers = Numbers.of(first, second)
    if numbers is not None:
        (one, all_one), (two, all_two) = numbers.split(first), numbers.split(second)
        natural = _natural(one, two)
        missing = not (all_one.all() and all_two.all())
        return [
            Score(score.words, OnRows(numbers, score.function), True, missing)
            for score in natural
        ]
    fields = Fields(first, second)
    found = differing(fields.rows(first), fields.rows(second))
    tried = np.argsort(-found, kind="stable")[:_FIELDS]
    return [
        Score(fields.words[k], Cell(fields, k), True, True)
        for k in sorted(tried.tolist())
        if found[k] > 0
    ]


def _natural(first: NDArray[Any], second: NDArray[Any]) -> list[Score]:
    if first.dtype.kind not in "biuf":
        return []
    signed = [Score("negative zeros of output", negative_zeros)]
    if not any(negative_zeros(part).any() for part in (first, second)):
        signed = []
    if first.ndim == 1:
        few = max(_FEW, len(first) // 2)
        wide = first.dtype.kind in "iu" and len(np.unique(first)) > few
        parity = [Score("lowest bit of output", lowest_bit)] if wide else []
        return [Score("output", _as_float), *signed, *parity]
    tried = list(range(first.shape[1]))
    if len(tried) > _COORDINATES:
        found = apart(_as_float(first), _as_float(second))
        tried = sorted(np.argsort(-found, kind="stable")[:_COORDINATES].tolist())
    named = [Score(f"coordinate {k} of output", _Coordinate(k)) for k in tried]
    return [*named, *signed, *joint_scores(first, second, tried=tried)]


def _likelihood(subject: Subject, pair: tuple[int, int]) -> list[Score]:
    if not hasattr(subject, "log_likelihood"):
        return []
    return [Score("log likelihood ratio", _LikelihoodRatio(subject, pair))]


def _bits(first: NDArray[Any], second: NDArray[Any]) -> Score:
    numbers = Numbers.of(first, second)
    if numbers is None or numbers.kind.kind != "f" or numbers.shape:
        raise AuditError(
            f"score must be another one for outputs that are no floats, got 'bits' for "
            f"{first.dtype}."
        )
    gaps = not all(numbers.split(part)[1].all() for part in (first, second))
    return Score("lowest bit of output", OnRows(numbers, lowest_bit), True, gaps)


def _named(function: ScoreFunction) -> Score:
    if isinstance(function, Score):
        return Score(function.words, _Given(function))
    words = getattr(function, "__name__", "score")
    return Score(words, _Given(Score(words, function)))


class _Given:
    """A score of the user, of the runs that returned something; can be pickled.

    A run that raised has the least score of all.
    """

    def __init__(self, score: Score) -> None:
        self.score = score

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        told, read = given_outputs(np.asarray(outputs))
        scores = np.full(len(outputs), -np.inf)
        if read.any():
            scores[read] = self.score(told)
        return scores


def _as_float(outputs: Any) -> NDArray[np.float64]:
    return np.asarray(outputs, dtype=np.float64)


class _Coordinate:
    """One coordinate of each output; can be pickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        return _as_float(outputs[:, self.number])


class _LikelihoodRatio:
    """Log density of the first input less that of the second; can be pickled."""

    def __init__(self, subject: Any, pair: tuple[int, int]) -> None:
        self.subject, self.pair = subject, pair

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        logs = np.asarray(self.subject.log_likelihood(outputs, self.pair))
        nowhere = np.isneginf(logs).all(axis=1)
        with np.errstate(invalid="ignore"):
            ratio = logs[:, 0] - logs[:, 1]
        # What the stated law holds impossible on both inputs tells them not apart.
        return np.where(nowhere, 0.0, np.round(ratio, _DIGITS))


# Which coordinates of a vector tell two inputs apart, alone or two together.
#
# Noise that two coordinates share, or bits of which only the parity is private, show in
# no coordinate alone. They are looked for on training outputs; nothing here certifies
# anything.

Kind = Literal["less", "plus", "times"]

# Numbers of all pairs together that are compared, and runs of each input.
_JOINT_CELLS = 1 << 19
_JOINT_FEWEST, _JOINT_MOST = 256, 20_000
# Standard errors of a share by which two have to be ahead; the best of thousands of
# combinations is seldom so far ahead by chance.
_JOINT_AHEAD = 3.0
# Beyond it numbers are cut, so that no difference or product is undefined.
_JOINT_LARGEST = 1e150


def apart(first: Floats, second: Floats) -> Floats:
    """Return how much each coordinate's share above a quartile of both differs.

    Examples
    --------
    >>> apart(np.array([[0.0, 1.0]] * 9), np.array([[5.0, 1.0]] * 9))
    array([1., 0.])
    """
    both = np.concatenate([first, second])
    cuts = np.quantile(both, (0.25, 0.5, 0.75), axis=0, method="lower")
    found = np.zeros(first.shape[1])
    for cut in cuts:
        for above in (np.greater, np.greater_equal):
            shares = [above(part, cut).mean(axis=0) for part in (first, second)]
            found = np.maximum(found, np.abs(shares[0] - shares[1]))
    return found


def joint_scores(
    first: NDArray[Any], second: NDArray[Any], *, tried: list[int]
) -> list[Score]:
    """Return a difference, a sum and a product of two coordinates each, at most.

    Those in which the training outputs of the two inputs differ more than in each of
    the two coordinates, by most and beyond chance; a product is of the distances from
    the middle between the quartiles.

    Parameters
    ----------
    first, second : array of shape (n, k)
        Training outputs of two inputs.
    tried : list of int
        Numbers of the coordinates to combine.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(500, 1))
    >>> [score.words for score in joint_scores(
    ...     noise + [1, 0], noise + [0, 0], tried=[0, 1])][0]
    'coordinate 0 less coordinate 1 of output'
    """
    pairs = len(tried) * (len(tried) - 1) // 2
    if not pairs:
        return []
    rows = min(_JOINT_MOST, max(_JOINT_FEWEST, _JOINT_CELLS // pairs))
    parts = [_bounded(part[:rows, tried]) for part in (first, second)]
    quartiles = np.quantile(np.concatenate(parts), (0.25, 0.75), axis=0)
    middle = quartiles.mean(axis=0)
    found = []
    for kind in _WORDS:
        best = _best(kind, parts[0], parts[1], middle)
        if best is None:
            continue
        one, two = best
        joint = _Joint(kind, (tried[one], tried[two]), (middle[one], middle[two]))
        found.append(Score(joint.words, joint))
    return found


def _best(
    kind: Kind, first: Floats, second: Floats, middle: Floats
) -> tuple[int, int] | None:
    """Return the two columns that together tell most more than alone, if any do."""
    alone = apart(first, second)
    best, top = None, _JOINT_AHEAD / math.sqrt(min(len(first), len(second)))
    for one in range(first.shape[1] - 1):
        rest = slice(one + 1, None)
        found = apart(
            *(
                _combined(
                    kind,
                    (part[:, one, None], part[:, rest]),
                    (middle[one], middle[rest]),
                )
                for part in (first, second)
            )
        )
        found -= np.maximum(alone[one], alone[rest])
        place = int(found.argmax())
        if found[place] > top:
            best, top = (one, one + 1 + place), float(found[place])
    return best


def _combined(kind: Kind, pair: tuple[Any, Any], middle: tuple[Any, Any]) -> Floats:
    one, two = pair
    if kind == "times":
        return np.asarray((one - middle[0]) * (two - middle[1]))
    return np.asarray(one - two if kind == "less" else one + two)


def _bounded(outputs: Any) -> Floats:
    numbers = np.asarray(outputs, dtype=np.float64)
    return np.asarray(np.clip(numbers, -_JOINT_LARGEST, _JOINT_LARGEST))


_WORDS: dict[Kind, str] = {
    "less": "coordinate {} less coordinate {} of output",
    "plus": "sum of coordinates {} and {} of output",
    "times": "product of coordinates {} and {} of output, less {!r} and {!r}",
}


class _Joint:
    """Two coordinates of each output together; can be pickled."""

    def __init__(
        self, kind: Kind, pair: tuple[int, int], middle: tuple[float, float]
    ) -> None:
        self.kind, self.pair = kind, pair
        self.middle = (float(middle[0]), float(middle[1]))

    @property
    def words(self) -> str:
        """What it is, with every digit."""
        return _WORDS[self.kind].format(*self.pair, *self.middle)

    def __call__(self, outputs: Any) -> Floats:
        columns = _bounded(outputs[:, list(self.pair)])
        return _combined(self.kind, (columns[:, 0], columns[:, 1]), self.middle)


# What all numbers of an output tell together, and their last digits.
#
# Noise that is too small for many coordinates, or that they share, shows in none of
# them alone. Scores of the whole are made from training outputs; nothing here certifies
# anything, so they need not be right, only useful.

Step = Callable[[Floats], Floats]

MOST = 128
"""Columns that are looked at together."""
# Classes of a column, and training outputs for each of them.
_BINS, _EACH = 32, 40
# Numbers that are compared to find where columns differ, and rows of each input.
_WHOLE_CELLS, _WHOLE_FEWEST, _WHOLE_ROWS = 1 << 15, 1024, 16_384
# Times the standard deviation of the distance of two equal laws, beyond chance.
_WHOLE_AHEAD = 2.0
# Shares beyond which a number is cut for means and variances.
_CUT = 0.001
# Of the variance of a column: what a direction without any noise is given.
_RIDGE = 1e-10
# Digits after the point that residues are taken at, and columns of last digits tried.
_LAST_DIGITS, _TRIED = range(8), 3
# Columns in which textbook noise is looked for.
_REACHES = 8
# Decimals of a score, so that equal outputs have equal scores in every batch.
_KEPT = 7
_WHOLE_LARGEST = 1e100


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
    rows = max(_WHOLE_FEWEST, min(_WHOLE_ROWS, _WHOLE_CELLS // columns))
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
    return _WHOLE_AHEAD / math.sqrt(max(1, min(rows, _WHOLE_ROWS)) / 2)


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
        told = np.clip(pooled, -_WHOLE_LARGEST, _WHOLE_LARGEST)
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
    kinds += [(_residue_words(digits), _Residue(digits)) for digits in _LAST_DIGITS]
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
            law = textbook_laplace(part[:_WHOLE_ROWS, place])
            if law is not None:
                yield place, _Reach(*law)


def _differing_steps(step: Step, parts: Sequence[Floats]) -> Floats:
    rows = max(
        _WHOLE_FEWEST, min(_WHOLE_ROWS, _WHOLE_CELLS // max(1, parts[0].shape[1]))
    )
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
