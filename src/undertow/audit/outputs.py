"""What a subject returned: one array of outputs, or one sentence.

An audit of pairs looks at everything that came back, missing values and exceptions
too (`read_outcomes`). Where reports are read as values, a missing value or a stray type
ends the audit and never becomes evidence (`read_outputs`).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit._outcome import Row, is_vector, outcome
from undertow.errors import AuditError

__all__ = [
    "read_outcomes",
    "read_outputs",
    "require_exact",
    "require_unmasked",
    "shortened",
]

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
