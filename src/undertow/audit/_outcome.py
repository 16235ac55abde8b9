"""What a subject returned: outcomes that can be compared, and arrays of them.

One run ends in an outcome, a value or an error, and in the numbers in it; many runs
are read into one array, or refused in one sentence.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import math
import numbers
import pathlib
import re
import uuid
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import AuditError

Outputs = NDArray[Any]

# Integers beyond this are kept as labels.
_INT64 = 2**63
_EXACT = 2**53  # whole numbers up to here are floats without rounding
_SHOWN = 80


def read_outputs(raw: Any, size: int, *, name: str) -> Outputs:
    """Return outputs as one array of numbers, of vectors, or of hashable labels.

    Parameters
    ----------
    raw : array or sequence
        One output for each run.
    size : int
        Number of runs.
    name : str
        Of the subject, for messages.

    Returns
    -------
    ndarray
        Shape (size,) of numbers or of objects, or (size, k) of numbers.

    Raises
    ------
    AuditError
        If there are more or fewer outputs, one is None or not a number, types are
        mixed, or an output cannot be hashed.

    Examples
    --------
    >>> read_outputs([1, 2.5], 2, name="f")
    array([1. , 2.5])
    >>> read_outputs(["a", None], 2, name="f")
    Traceback (most recent call last):
    undertow.errors.AuditError: f must return a value every time, got None.
    """
    _check_number(raw, size, name)
    require_unmasked(raw, name)
    whole = isinstance(raw, np.ndarray) and raw.dtype.kind in "biufV"
    # A copy, as a subject may fill one array again and again.
    array = np.array(raw) if whole else _gather(list(raw), name)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise AuditError(f"{name} must return numbers, got nan.")
    if array.ndim > 2:
        raise AuditError(
            f"{name} must return numbers or vectors, got arrays of shape "
            f"{array.shape[1:]}; flatten them."
        )
    return np.asarray(array)


def read_outcomes(raw: Any, size: int, *, name: str) -> Outputs:
    """Return whatever came back as one array of numbers, of vectors, or of outcomes.

    Parameters
    ----------
    raw : array or sequence
        One output for each run: anything, `Raised` exceptions included.
    size : int
        Number of runs.
    name : str
        Of the subject, for messages.

    Returns
    -------
    ndarray
        Shape (size,) of numbers, nan among them, if all are of one type of number;
        (size, k) if all are vectors of one length and type; else of objects, each as
        `outcome` returns it. What is read of an output does not depend on those beside
        it: its value, and whether it is a whole number.

    Raises
    ------
    AuditError
        If there are more or fewer outputs.

    Examples
    --------
    >>> read_outcomes([1.5, None, {"a": 1}], 3, name="f")
    array([1.5, None, dict('a': 1)], dtype=object)
    >>> read_outcomes([[1, 2], (3, 4)], 2, name="f")
    array([[1, 2],
           [3, 4]])
    """
    _check_number(raw, size, name)
    if isinstance(raw, np.ma.MaskedArray):
        raw = raw.tolist() if np.ma.is_masked(raw) else raw.data
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biufV":
        # A copy, as a subject may fill one array again and again.
        return np.array(raw) if raw.ndim <= 2 else np.array(raw).reshape(size, -1)
    return _collect(list(raw))


def _collect(items: list[Any]) -> Outputs:
    kinds = {_number_kind(type(item)) for item in items}
    if kinds <= {"float"}:
        return np.array(items, dtype=np.float64)
    if kinds == {"bool"}:
        return np.array(items, dtype=np.bool_)
    if kinds == {"int"} and all(-_INT64 <= int(item) < _INT64 for item in items):
        return np.array(items, dtype=np.int64)
    if kinds == {"other"}:
        rows = [np.asarray(item) for item in items if is_vector(item)]
        alike = {(row.dtype, row.shape) for row in rows}
        if len(rows) == len(items) and len(alike) == 1 and rows[0].dtype.kind in "biuf":
            return np.array(rows)
    outcomes = np.empty(len(items), dtype=np.object_)
    for place, item in enumerate(items):
        if is_vector(item) and not isinstance(item, Row):
            item = Row(item)
        outcomes[place] = outcome(item)
    return outcomes


def _number_kind(kind: type) -> str:
    """Return which type of number outputs of a type are, if they are of one."""
    if kind in (float, np.float64, np.float32):
        return "float"
    if kind is int or issubclass(kind, np.integer):
        return "int"
    return "bool" if kind in (bool, np.bool_) else "other"


def _check_number(raw: Any, size: int, name: str) -> None:
    single = not hasattr(raw, "__len__") or getattr(raw, "ndim", 1) == 0
    if single or isinstance(raw, str | bytes | dict):
        raise AuditError(
            f"{name} must return one output for each of {size} runs, got "
            f"{type(raw).__name__}."
        )
    if len(raw) != size:
        raise AuditError(
            f"{name} must return one output for each of {size} runs, got {len(raw)}."
        )


def require_unmasked(raw: Any, name: str) -> None:
    """Refuse an array in which outputs are withheld: what is below them was not sent.

    Examples
    --------
    >>> require_unmasked(np.ma.array([1.0, 2.0], mask=[True, False]), "f")
    Traceback (most recent call last):
    undertow.errors.AuditError: f must return a value every time, got a masked one.
    """
    if isinstance(raw, np.ma.MaskedArray) and np.ma.is_masked(raw):
        raise AuditError(f"{name} must return a value every time, got a masked one.")


def _gather(items: list[Any], name: str) -> Outputs:
    """Return one array of separate outputs of one type."""
    types = {_kind(item, name) for item in items}
    if types == {"int", "float"}:
        require_exact([i for i in items if isinstance(i, numbers.Integral)], name)
        types = {"float"}
    if len(types) > 1:
        raise AuditError(
            f"{name} must return one type of output, got {' and '.join(sorted(types))}."
        )
    kind = next(iter(types), "float")
    if kind == "vector":
        return _stack(items, name)
    if kind == "float":
        return np.array([_as_float(item, name) for item in items])
    if kind in ("int", "bool") and all(-_INT64 <= int(item) < _INT64 for item in items):
        return np.array(items, dtype=np.bool_ if kind == "bool" else np.int64)
    _check_comparable(items, name)
    labels = np.empty(len(items), dtype=np.object_)
    for place, item in enumerate(items):
        labels[place] = item
    return labels


def _check_comparable(items: list[Any], name: str) -> None:
    try:
        set(items)
    except Exception as fault:  # outputs of any class, whose comparison is any code
        raise AuditError(
            f"{name} must return outputs that can be compared, got "
            f"{type(items[0]).__name__} that raises {type(fault).__name__}; return "
            "strings."
        ) from fault


def _as_float(item: Any, name: str) -> float:
    try:
        return float(item)
    except OverflowError:
        raise AuditError(
            f"{name} must return numbers that a float can hold, got a longer one."
        ) from None


def _kind(item: Any, name: str) -> str:
    if item is None:
        raise AuditError(f"{name} must return a value every time, got None.")
    if isinstance(item, bool | np.bool_):
        return "bool"
    if isinstance(item, numbers.Integral):
        return "int"
    if isinstance(item, numbers.Real):
        if math.isnan(item):
            raise AuditError(f"{name} must return numbers, got nan.")
        return "float"
    if isinstance(item, list | tuple | np.ndarray) and _is_numeric(item):
        return "vector"
    if isinstance(item, str):
        return "str"
    if not isinstance(item, Hashable) or not _hashes(item):
        raise AuditError(
            f"{name} must return hashable outputs or vectors of numbers, got "
            f"{type(item).__name__}; return a tuple or a frozenset."
        )
    return type(item).__name__


def _is_numeric(item: Any) -> bool:
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return False
    return all(isinstance(part, numbers.Real | np.bool_) for part in item)


def _hashes(item: Hashable) -> bool:
    try:
        hash(item)
    except Exception:  # a tuple that holds a list, or any code of its class
        return False
    return True


def _stack(items: list[Any], name: str) -> Outputs:
    lengths = sorted({len(item) for item in items})
    if len(lengths) > 1:
        raise AuditError(
            f"{name} must return vectors of one length, got {lengths[0]} and "
            f"{lengths[-1]}; fill them up, or return strings."
        )
    rows = [np.asarray(item) for item in items]
    stacked = np.array(rows)
    if stacked.dtype.kind == "f":
        for row in rows:
            require_exact(row.tolist() if row.dtype.kind in "iu" else [], name)
    return stacked


def require_exact(whole: Iterable[Any], name: str) -> None:
    """Refuse whole numbers that are rounded as floats, where others are floats.

    Whether two outputs are the same would depend on what was drawn beside them.
    """
    if any(abs(int(item)) > _EXACT for item in whole):
        raise AuditError(
            f"{name} must return one type of output where whole numbers are beyond "
            "2^53, got floats beside them; return strings, or floats only."
        )


def shortened(text: str) -> str:
    """Return the first line of a text, cut for a message."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."


# What one run can end in: something that can be compared, and the numbers in it.
#
# A mechanism may raise, return nothing, or return a table of another shape, and whoever
# sees its answers sees that too. Nothing here runs code of the classes of an output but
# their own words: no comparison and no hash of theirs.

# How deep, and how many numbers, an output is read.
_DEEP, _MANY = 12, 256
# Elements of an array beyond which it is told by a digest.
_LONG = 1024

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

OPAQUE = "of unknown content"
"""Stands for what an object holds that tells nothing of itself."""

# Values of these types equal each other by content, and hash.
_LEAVES = (
    str,
    bytes,
    complex,
    decimal.Decimal,
    fractions.Fraction,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    enum.Enum,
    pathlib.PurePath,
    range,
    type,
    uuid.UUID,
)
_PLAIN = frozenset({bool, int, str, bytes, type(None)})


class Raised:
    """A run that ended in an exception: its type, and a digest of what it said.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Examples
    --------
    >>> Raised(ValueError("7")) == Raised(ValueError("7"))
    True
    >>> Raised(ValueError("7")) == Raised(ValueError("8"))
    False
    """

    __slots__ = ("kind", "mark", "said")

    def __init__(self, error: BaseException) -> None:
        said = _said(error)
        self.kind = type(error).__name__
        self.mark = hashlib.sha256(said.encode(errors="replace")).hexdigest()[:12]
        line = said.strip().splitlines()[0] if said.strip() else ""
        self.said = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raised) and self._own == other._own

    def __hash__(self) -> int:
        return hash(self._own)

    def __repr__(self) -> str:
        return f"{self.kind} with message {self.mark}"

    @property
    def _own(self) -> tuple[str, str]:
        return self.kind, self.mark


@dataclasses.dataclass(frozen=True, slots=True)
class TimedRun:
    """What a run ended in, and how long it took.

    Parameters
    ----------
    output : object
        As `outcome` returns it.
    nanoseconds : int
        Its running time.
    """

    output: Any
    nanoseconds: int


class Row(tuple[Any, ...]):
    """A vector of numbers: their values by which it is compared, and their type.

    Parameters
    ----------
    item : array or sequence of numbers
        The output.

    Examples
    --------
    >>> row = Row(np.array([1, 2], dtype=np.uint8))
    >>> row == (1, 2), row.kind
    (True, 'uint8')
    """

    kind: str

    def __new__(cls, item: Any) -> Row:
        array = np.asarray(item)
        row = super().__new__(cls, array.tolist())
        row.kind = array.dtype.name
        return row

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (np.array(tuple(self), dtype=self.kind),)


class Told:
    """An output that is compared by what it holds.

    Parameters
    ----------
    value : object
        The output itself: a dictionary, a table, a list of lists, nan.

    Examples
    --------
    >>> Told({"a": [1, float("nan")]}) == Told({"a": [1.0, float("nan")]})
    True
    >>> Told({"a": 1, "b": 2}) == Told({"b": 2, "a": 1})  # their order can be seen
    False
    """

    __slots__ = ("_hash", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, _key(value, 0)
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Told) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return _words(self.key)

    @property
    def opaque(self) -> bool:
        """Whether nothing but its type can be told."""
        return isinstance(self.key, _Held) and self.key.parts == (OPAQUE,)


class _Held(tuple[Any, ...]):
    """The content of one object: what it is, and its parts."""

    __slots__ = ()

    def __new__(cls, name: str, parts: Iterable[Any]) -> _Held:
        return super().__new__(cls, (name, *parts))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self[0], self[1:]

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(self[1:])


def outcome(item: Any) -> Any:
    """Return an output in a form that can be hashed and equals itself.

    Text, whole numbers, truth values, None and tuples of them are returned as they are.

    Examples
    --------
    >>> outcome(("a", 1)), outcome(np.float64(0.5)), outcome([1, "a"])
    (('a', 1), 0.5, list(1, 'a'))
    """
    if type(item) in _PLAIN or isinstance(item, Raised | Told | TimedRun):
        return item
    if isinstance(item, np.generic) and item.dtype.kind in "biufSUc":
        item = item.item()
    if isinstance(item, float):
        return Told(item) if math.isnan(item) else float(item)
    if isinstance(item, numbers.Integral) and not isinstance(item, enum.Enum):
        return bool(item) if isinstance(item, bool) else int(item)
    if isinstance(item, np.str_):
        return str(item)
    return item if _is_plain(item, 0) else Told(item)


def _is_plain(item: Any, depth: int) -> bool:
    """Return whether an output equals and hashes by its content as it is."""
    if type(item) in (tuple, frozenset, Row):
        return depth < _DEEP and all(_is_plain(part, depth + 1) for part in item)
    if isinstance(item, float | complex | decimal.Decimal):
        return type(item) in (float, complex, decimal.Decimal) and not _is_nan(item)
    return type(item) in _PLAIN or (isinstance(item, _LEAVES) and not _is_missing(item))


def _is_nan(item: float | complex | decimal.Decimal) -> bool:
    return item.is_nan() if isinstance(item, decimal.Decimal) else item != item


def _is_missing(item: Any) -> bool:
    """Return whether it is one of the values of pandas that stand for none."""
    return type(item).__name__ in ("NAType", "NaTType")


def _key(item: Any, depth: int) -> Any:
    """Return the content of an object as nested tuples."""
    if isinstance(item, Told):
        return item.key
    if _is_missing(item):
        return _Held(str(item), ())
    if isinstance(item, np.generic) and not isinstance(item, np.void):
        item = item.item()
    if isinstance(item, float | complex | decimal.Decimal) and _is_nan(item):
        return _Held("nan", ())
    if isinstance(item, Raised) or _is_plain(item, depth):
        return item
    if depth >= _DEEP:
        return _Held(type(item).__name__, (OPAQUE,))
    name = "tuple" if isinstance(item, Row) else type(item).__name__
    return _Held(name, _parts(item, depth + 1))


def _parts(item: Any, depth: int) -> Iterator[Any]:
    if isinstance(item, np.ndarray):
        yield item.shape
        yield from _array_parts(item, depth)
    elif _is_table(item):
        yield from (_key(part, depth) for part in _table_parts(item))
    elif isinstance(item, Mapping):
        yield from ((_key(k, depth), _key(v, depth)) for k, v in item.items())
    elif isinstance(item, Set):
        yield frozenset(_key(part, depth) for part in item)
    elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
        yield from (_key(part, depth) for part in item)
    elif isinstance(item, bytearray | memoryview):
        yield bytes(item)
    elif isinstance(item, np.void):
        yield from (_key(part, depth) for part in item.tolist())
    elif isinstance(item, BaseException):
        yield Raised(item)
    else:
        fields = _fields(item)
        yield from (
            ((name, _key(part, depth)) for name, part in fields)
            if fields
            else [_own_words(item)]
        )


def _array_parts(item: np.ndarray[Any, Any], depth: int) -> Iterator[Any]:
    flat = item.reshape(-1)
    if flat.size <= _LONG or flat.dtype.hasobject:
        yield from (_key(part, depth) for part in flat.tolist())
    else:
        plain = flat.astype(float) if flat.dtype.kind in "biuf" else flat
        yield hashlib.sha256(plain.tobytes()).hexdigest()


def _is_table(item: Any) -> bool:
    """Return whether it is a series or table of pandas, or of one that looks alike."""
    return hasattr(item, "to_numpy") and hasattr(item, "shape")


def _table_parts(item: Any) -> list[Any]:
    """Return the names of rows and columns, and the content as an array."""
    named = [getattr(item, name, ()) for name in ("index", "columns")]
    listed = [list(part) if isinstance(part, Iterable) else part for part in named]
    return [*listed, str(getattr(item, "name", "")), np.asarray(item.to_numpy())]


def _fields(item: Any) -> list[tuple[str, Any]]:
    """Return the named parts of an object."""
    if dataclasses.is_dataclass(item):
        return [(f.name, getattr(item, f.name, None)) for f in dataclasses.fields(item)]
    held = getattr(item, "__dict__", None)
    if isinstance(held, dict) and held:
        return [(str(name), part) for name, part in held.items()]
    slots = getattr(type(item), "__slots__", ())
    listed = [slots] if isinstance(slots, str) else list(slots)
    return [(name, getattr(item, name)) for name in listed if hasattr(item, name)]


def _own_words(item: Any) -> str:
    """Return how an object says what it is, unless that is where it stands."""
    if getattr(type(item), "__repr__", None) == object.__repr__:
        return OPAQUE
    try:
        words = repr(item)
    except Exception:  # any code of its class
        return OPAQUE
    return OPAQUE if " at 0x" in words else words


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # any code of its class
        return ""


def _words(key: Any) -> str:
    if not isinstance(key, _Held):
        return repr(key)
    parts = ", ".join(
        f"{part[0]!r}: {_words(part[1])}"
        if type(part) is tuple and len(part) == 2
        else _words(part)
        for part in key.parts
    )
    return f"{key[0]}({parts})" if key.parts else str(key[0])


def kind_of(item: Any, *, exact: bool, depth: int = 0) -> Any:
    """Return what an output is, without its numbers: types, names, the shape of text.

    Parameters
    ----------
    item : object
        An output, as `outcome` returns it or as it came.
    exact : bool
        Whether whole numbers are told from floats.
    depth : int, optional
        How deep the output stands in another.

    Examples
    --------
    >>> kind_of(Told({"a": 1.5, "b": None}), exact=True)
    ('dict', ('a', 'float'), ('b', 'NoneType'))
    >>> kind_of("count=12.5", exact=True), kind_of((None, 3, 0.5), exact=False)
    (('str', 'count=#'), ('tuple', 'NoneType', 'number', 'number'))
    """
    if isinstance(item, Told):
        item = item.value
    if isinstance(item, Raised):
        return f"raised {item.kind}"
    if isinstance(item, np.ndarray | list | tuple) and is_vector(item):
        kind = item.kind if isinstance(item, Row) else np.asarray(item).dtype.name
        return "vector", (len(item),), _kind_word(kind, exact)
    if isinstance(item, np.ndarray):
        return "array", item.shape, _kind_word(item.dtype.name, exact)
    if isinstance(item, np.generic) and not isinstance(item, np.void):
        item = item.item()
    if isinstance(item, bool):
        return "bool"
    if isinstance(item, float) and math.isnan(item):
        return "nan"
    if isinstance(item, int | float) and not isinstance(item, enum.Enum):
        return type(item).__name__ if exact else "number"
    if isinstance(item, str):
        return "str", _NUMBER.sub("#", item)
    if depth < _DEEP and isinstance(item, Mapping):
        parts = ((k, kind_of(v, exact=exact, depth=depth + 1)) for k, v in item.items())
        return "dict", *((outcome(k), kind) for k, kind in parts)
    if depth < _DEEP and isinstance(item, list | tuple):
        parts = (kind_of(part, exact=exact, depth=depth + 1) for part in item)
        return type(item).__name__, *parts
    if _is_table(item):
        shape = tuple(int(side) for side in item.shape)
        return type(item).__name__, shape, *map(outcome, _table_parts(item)[:2])
    if depth < _DEEP and (fields := _own_fields(item)):
        parts = ((n, kind_of(v, exact=exact, depth=depth + 1)) for n, v in fields)
        return type(item).__name__, *parts
    return str(item) if _is_missing(item) else type(item).__name__


def _kind_word(kind: str, exact: bool) -> str:
    return kind if exact or np.dtype(kind).kind not in "iuf" else "number"


def _own_fields(item: Any) -> list[tuple[str, Any]]:
    """Return the fields of an object that is no value of a known type."""
    return [] if isinstance(item, _LEAVES) or item is None else _fields(item)


def is_vector(item: Any) -> bool:
    """Return whether an output is a list of real numbers, as it stands.

    Examples
    --------
    >>> is_vector([1, 0.5]), is_vector(("a", 1)), is_vector(np.zeros((2, 2)))
    (True, False, False)
    """
    if isinstance(item, np.ndarray):
        return item.ndim == 1 and item.dtype.kind in "biuf"
    if not isinstance(item, list | tuple):
        return False
    return set(map(type, item)) <= {int, float, bool} or all(
        isinstance(part, numbers.Real | np.bool_) and not isinstance(part, enum.Enum)
        for part in item
    )


def length_of(item: Any) -> int | None:
    """Return the length of an output, or None if it has none.

    Examples
    --------
    >>> length_of("12.5"), length_of(Told([1, [2]])), length_of(3.0)
    (4, 2, None)
    """
    value = item.value if isinstance(item, Told) else item
    if isinstance(value, Raised) or not hasattr(value, "__len__"):
        return None
    try:
        return len(value)
    except Exception:  # any code of its class
        return None


def numbers_in(item: Any) -> Iterator[tuple[str, float]]:
    """Yield the place and the value of each number in an output, 256 at most.

    Examples
    --------
    >>> list(numbers_in(Told({"a": [1, None, 2.5]})))
    [("['a'][0]", 1.0), ("['a'][2]", 2.5)]
    >>> list(numbers_in("between 3 and 4.5"))
    [(' number 0', 3.0), (' number 1', 4.5)]
    """
    found = 0
    for place, number in _numbers(item, "", 0):
        if not math.isnan(number):
            yield place, number
            found += 1
        if found == _MANY:
            return


def _numbers(item: Any, place: str, depth: int) -> Iterator[tuple[str, float]]:
    if isinstance(item, Told):
        item = item.value
    if isinstance(item, np.generic) and not isinstance(item, np.void):
        item = item.item()
    if isinstance(item, numbers.Real | decimal.Decimal):
        yield place, _as_extended_float(item)
    elif isinstance(item, complex):
        yield from ((f"{place}.real", item.real), (f"{place}.imag", item.imag))
    elif isinstance(item, str):
        for count, told in enumerate(_NUMBER.findall(item)):
            yield f"{place} number {count}", float(told)
    elif isinstance(item, datetime.timedelta) and not _is_missing(item):
        yield f"{place} in seconds", item.total_seconds()
    elif item is None or isinstance(item, bytes | Raised) or depth >= _DEEP:
        return
    else:
        for name, part in _named_parts(item):
            yield from _numbers(part, f"{place}{name}", depth + 1)


def _named_parts(item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in item.items())
    elif isinstance(item, Set):
        # What a set holds is told by its members.
        yield from ((f" holds {part!r}", True) for part in item)
    elif _is_table(item) and getattr(item, "ndim", 1) == 2 and hasattr(item, "columns"):
        for name in item.columns:
            for row, part in enumerate(np.asarray(item[name].to_numpy()).tolist()):
                yield f"[{name!r}][{row}]", part
    elif isinstance(item, np.ndarray) or _is_table(item):
        flat = np.asarray(item).reshape(-1)[:_MANY].tolist()
        yield from ((f"[{row}]", part) for row, part in enumerate(flat))
    elif isinstance(item, np.void):
        yield from ((f"[{row}]", part) for row, part in enumerate(item.tolist()))
    elif isinstance(item, Sequence):
        yield from ((f"[{row}]", part) for row, part in enumerate(item))
    else:
        yield from ((f".{name}", part) for name, part in _own_fields(item))


def _as_extended_float(item: Any) -> float:
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf
    except ValueError:  # a nan that refuses to be read
        return math.nan
