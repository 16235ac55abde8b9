"""Outputs of any kind as rows of numbers, and what they are besides their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.audit._outcome import (
    Raised,
    Told,
    is_vector,
    kind_of,
    length_of,
    numbers_in,
)
from undertow.audit.event import View, output_labels
from undertow.numeric.array import Bools, Floats

# Share of the outputs that have to be alike to be read as they are.
_ALIKE = 0.9
# Columns of a table of fields, and outputs from which they are learned.
_COLUMNS, _LEARNED = 64, 4096
# Arrays of which what was read is kept.
_KEPT = 8
_LARGEST = 1e300


class Table(Protocol):
    """Reads each output as a row of numbers."""

    words: tuple[str, ...]

    def rows(self, outputs: NDArray[Any]) -> Floats:
        """Return one row for each output; nan where it has no such number."""


class Numbers:
    """Outputs that are numbers, or vectors of one length; can be pickled.

    Parameters
    ----------
    shape : tuple of int
        Of one output: ``()`` or ``(k,)``.
    kind : dtype
        Of the numbers.
    """

    def __init__(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
        self.shape, self.kind = shape, kind
        self.words = (
            tuple(f"coordinate {k} of output" for k in range(shape[0]))
            if shape
            else ("output",)
        )

    @classmethod
    def of(cls, first: NDArray[Any], second: NDArray[Any]) -> Numbers | None:
        """Return how most outputs of two inputs are read, or None if they differ."""
        parts = [part for part in (first, second) if part.dtype.kind in "biuf"]
        shapes: Counter[tuple[int, ...]] = Counter()
        for part in (first, second):
            if part.dtype.kind in "biuf":
                shapes[part.shape[1:]] += len(part) - int(_unread(part).sum())
            else:
                shapes.update(shape for shape in map(_shape, part.tolist()) if shape)
        shapes.pop((0,), None)
        if not shapes:
            return None
        (shape, many), *_ = shapes.most_common(1)
        if many < _ALIKE * (len(first) + len(second)):
            return None
        kinds = [p.dtype for p in parts if p.shape[1:] == shape]
        mixed = len(kinds) < 2
        return cls(shape, np.result_type(*kinds, *([np.float64] if mixed else [])))

    def split(self, outputs: NDArray[Any]) -> tuple[NDArray[Any], Bools]:
        """Return the outputs that are such numbers, and which of all they are."""
        if outputs.dtype.kind in "biuf":
            if outputs.shape[1:] != self.shape or not self._takes(outputs.dtype.kind):
                return self._none(), np.zeros(len(outputs), dtype=bool)
            read = ~_unread(outputs)
            return np.asarray(outputs[read] if not read.all() else outputs), read
        listed = outputs.tolist()
        read = np.array([self._reads(item) for item in listed], dtype=bool)
        told = [item for item, is_read in zip(listed, read, strict=True) if is_read]
        if not told:
            return self._none(), read
        return np.array([_clipped(item, self.kind) for item in told], self.kind), read

    def rows(self, outputs: NDArray[Any]) -> Floats:
        """Return one row for each output; nan where it is no such number."""
        told, read = self.split(outputs)
        table = np.full((len(outputs), len(self.words)), np.nan)
        table[read] = np.asarray(told, dtype=np.float64).reshape(
            len(told), len(self.words)
        )
        return table

    def _takes(self, kind: str) -> bool:
        """Return whether numbers of a kind are read without a loss."""
        wider = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}
        return kind in wider[self.kind.kind]

    def _reads(self, item: Any) -> bool:
        if _shape(item) != self.shape:
            return False
        if self.kind.kind == "f":
            return True
        parts = item if isinstance(item, tuple) else (item,)
        types = (bool,) if self.kind.kind == "b" else (bool, int)
        return all(isinstance(part, types) for part in parts)

    def _none(self) -> NDArray[Any]:
        return np.zeros((0, *self.shape), dtype=self.kind)


def _unread(outputs: NDArray[Any]) -> Bools:
    """Return which outputs hold nan."""
    if outputs.dtype.kind != "f":
        return np.zeros(len(outputs), dtype=bool)
    return np.asarray(np.isnan(outputs).any(axis=tuple(range(1, outputs.ndim))))


def _shape(item: Any) -> tuple[int, ...] | None:
    """Return the shape of an outcome of numbers; None of any other."""
    if isinstance(item, bool | int | float):
        return ()
    if isinstance(item, tuple) and is_vector(item):
        return (len(item),)
    return None


def _clipped(item: Any, kind: np.dtype[Any]) -> Any:
    """Return numbers as they fit into an array of the kind."""
    if isinstance(item, tuple):
        return [_clipped(part, kind) for part in item]
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return int(min(max(item, ends.min), ends.max))
    if isinstance(item, bool | float):
        return item
    return max(-_LARGEST, min(_LARGEST, item))


class OnRows:
    """A function of arrays as one of outputs that are read so; can be pickled.

    Outputs that are no such numbers have none, which is nan.
    """

    def __init__(self, numbers: Numbers, function: Callable[[Any], Any]) -> None:
        self.numbers, self.function = numbers, function

    def __call__(self, outputs: Any) -> Floats:
        told, read = self.numbers.split(np.asarray(outputs))
        if read.all():
            return np.asarray(self.function(told), dtype=np.float64)
        scores = np.full(len(outputs), np.nan)
        if read.any():
            scores[read] = self.function(told)
        return scores


class Fields:
    """The numbers of texts, dictionaries and lists, by their places; can be pickled.

    Besides, how many there are, the first, the last, the largest and their sum, and
    which place holds the first that is true and the largest.

    Parameters
    ----------
    first, second : array
        Training outputs, from which the places are learned: those that most have.
    """

    _WHOLE = (
        "count of numbers in output",
        "length of output",
        "first number in output",
        "last number in output",
        "largest number in output",
        "sum of numbers in output",
        "place of the first true value in output",
        "place of the largest number in output",
    )

    def __init__(self, first: NDArray[Any], second: NDArray[Any]) -> None:
        seen: Counter[str] = Counter()
        for part in (first, second):
            for item, count in Counter(_listed(part[:_LEARNED])).items():
                for place in dict.fromkeys(place for place, _ in numbers_in(item)):
                    seen[place] += count
        common = [place for place, count in seen.most_common(_COLUMNS) if count > 1]
        self.left_out = len(seen) - len(common)
        self.places = {place: column for column, place in enumerate(sorted(common))}
        named = (f"output{place}" for place in self.places)
        self.words = (*named, *self._WHOLE)
        self._kept: list[tuple[Any, Floats]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": []}

    def rows(self, outputs: NDArray[Any]) -> Floats:
        """Return one row for each output; nan where it has no such number."""
        for known, table in self._kept:
            if known is outputs:
                return table
        # Equal outputs hold equal numbers.
        listed = _listed(outputs)
        different = {item: number for number, item in enumerate(dict.fromkeys(listed))}
        rows = np.full((len(different), len(self.words)), np.nan)
        for row, item in zip(rows, different, strict=True):
            self._fill(row, item)
        table = rows[[different[item] for item in listed]]
        self._kept = [*self._kept[1 - _KEPT :], (outputs, table)]
        return table

    def _fill(self, row: Floats, item: Any) -> None:
        told = list(numbers_in(item))
        for place, number in told:
            column = self.places.get(place)
            if column is not None:
                row[column] = number
        values = [number for _, number in told]
        whole = row[len(self.places) :]
        whole[0] = len(values)
        length = length_of(item)
        whole[1] = np.nan if length is None else length
        if values:
            whole[2:5] = values[0], values[-1], max(values)
            finite = [max(-_LARGEST, min(_LARGEST, value)) for value in values]
            whole[5] = sum(finite) if len(finite) < 1000 else np.nan
            whole[7] = values.index(max(values))
        whole[6] = _first_true(item)


def _first_true(item: Any) -> float:
    """Return where the first true value of a sequence stands: not None, 0 or false."""
    value = item.value if isinstance(item, Told) else item
    if not isinstance(value, list | tuple):
        return np.nan
    plain = (bool, int, float, str, type(None), np.generic)
    for place, part in enumerate(value):
        if not isinstance(part, plain) or bool(part):
            return float(place)
    return float(len(value))


def _listed(outputs: NDArray[Any]) -> list[Any]:
    """Return the outputs one by one; those of an array as numbers and tuples."""
    listed: list[Any] = (
        outputs.tolist() if outputs.dtype.kind == "O" else output_labels(outputs)
    )
    return listed


class _Kinds:
    """What each output is; can be pickled."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact

    def __call__(self, outputs: NDArray[Any]) -> list[Any]:
        if outputs.dtype.kind in "biuf" and len(outputs):
            told = outputs[:1][0]
            sample = np.ones_like(told) if outputs.ndim > 1 else told.dtype.type(1)
            usual = kind_of(sample, exact=self.exact)
            gaps = _unread(outputs)
            if not gaps.any():
                return [usual] * len(outputs)
            if outputs.ndim == 1:
                return ["nan" if gap else usual for gap in gaps.tolist()]
        words: dict[str, Any] = {}  # texts are often few
        return [
            kind_of(item, exact=self.exact)
            if type(item) is not str
            else words.get(item)
            or words.setdefault(item, kind_of(item, exact=self.exact))
            for item in _items(outputs)
        ]


def _items(outputs: NDArray[Any]) -> list[Any]:
    return list(outputs) if outputs.ndim > 1 else outputs.tolist()


def _lengths(outputs: NDArray[Any]) -> list[Any]:
    return [length_of(item) for item in _items(outputs)]


def kind_views(
    first: NDArray[Any], second: NDArray[Any], *, exact: bool
) -> tuple[View, ...]:
    """Return what outputs are besides their numbers, where two of them differ in it.

    Parameters
    ----------
    first, second : array
        Training outputs of two inputs.
    exact : bool
        Whether each output came by itself, so that a whole number is told from a float;
        of whole arrays the type is that of a batch and not of a run.

    Examples
    --------
    >>> one, two = np.array([1, 2]), np.array([0.5, 1.5])
    >>> [view.words for view in kind_views(one, two, exact=True)]
    ['type of output']
    >>> kind_views(one, two, exact=False)
    ()
    """
    found = []
    views = (
        View("type of output", _Kinds(exact=exact)),
        View("length of output", _lengths),
    )
    for view in views:
        seen = {label for part in (first, second) for label in view.function(part)}
        if len(seen) > 1:
            found.append(view)
    return tuple(found)


def given_outputs(outputs: NDArray[Any]) -> tuple[NDArray[Any], Bools]:
    """Return the outputs of runs that did not raise, as they came, and which they are.

    Numbers come as an array of numbers, whatever stood beside them.

    Examples
    --------
    >>> raised = np.array([0.5, Raised(ValueError()), 2], dtype=object)
    >>> told, read = given_outputs(raised)
    >>> told, read.tolist()
    (array([0.5, 2. ]), [True, False, True])
    """
    if outputs.dtype.kind != "O":
        return outputs, np.ones(len(outputs), dtype=bool)
    items = outputs.tolist()
    read = np.array([not isinstance(item, Raised) for item in items], dtype=bool)
    raw = [item for item in items if not isinstance(item, Raised)]
    raw = [item.value if isinstance(item, Told) else item for item in raw]
    shapes = {_shape(item) for item in raw}
    if len(shapes) == 1 and None not in shapes:
        return np.array(raw), read
    told = np.empty(len(raw), dtype=object)
    for place, item in enumerate(raw):
        told[place] = item
    return told, read
