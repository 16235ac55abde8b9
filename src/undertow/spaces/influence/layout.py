"""Columns that differ only in where their view starts, looked at once.

A plan over a stream has the same question at a thousand times. What the unit does to
the view of one of them it does to all, only later: the columns share a *shape* and have
a *shift*, and a thousand columns cost one computation and two arrays of integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.spaces.base import Metric, View
from undertow.spaces.change import Column
from undertow.spaces.view import At, Window

__all__ = ["Layout", "lay_out", "movable_form"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns share a shape, and how far apart they are.

    Parameters
    ----------
    firsts : tuple of int
        For each shape the first column that has it; shapes are numbered in this order.
    shape_of : ndarray of int
        The shape of each column.
    shift : ndarray of int
        How many times later each column starts than the first one of its shape.
    """

    firsts: tuple[int, ...]
    shape_of: Integers
    shift: Integers

    def fixed(self, moving: Sequence[bool]) -> Layout:
        """Return the layout with shifts only where the shape is `moving`."""
        if all(moving):
            return self
        kept = np.array(moving, dtype=bool)[self.shape_of]
        return Layout(self.firsts, self.shape_of, np.where(kept, self.shift, 0))

    def columns(self, shapes: Sequence[bool]) -> list[int]:
        """Return the columns whose shape is marked in `shapes`."""
        inside: list[int]
        inside = np.flatnonzero(np.array(shapes, dtype=bool)[self.shape_of]).tolist()
        return inside

    def only(self, shapes: Sequence[bool]) -> Layout:
        """Return the layout of the columns whose shape is marked in `shapes`."""
        kept = np.array(shapes, dtype=bool)
        number, inside = np.cumsum(kept) - 1, kept[self.shape_of]
        place = np.cumsum(inside) - 1
        firsts = [
            int(place[at]) for at, k in zip(self.firsts, shapes, strict=True) if k
        ]
        return Layout(tuple(firsts), number[self.shape_of[inside]], self.shift[inside])


def movable_form(view: View) -> Hashable | None:
    """Return what is left of a view when its start is forgotten; None if it has none.

    Examples
    --------
    >>> movable_form(At(3)) == movable_form(At(9)), movable_form(Window(2, 5))[1]
    (True, 5)
    """
    if type(view) is At:
        return At
    return (Window, view.length) if type(view) is Window else None


def lay_out(columns: Sequence[Column], *, times: int) -> Layout | None:
    """Group columns by shape; None where a view reaches past the last of `times`.

    Examples
    --------
    >>> from undertow.spaces.granularity import Event
    >>> columns = [Column(At(t), Event(), "view") for t in (4, 2, 7)]
    >>> layout = lay_out(columns, times=24)
    >>> layout.firsts, layout.shift.tolist()
    ((0,), [0, -2, 3])
    """
    views = [column.view for column in columns]
    starts = [v.time if type(v) is At else _start(v) for v in views]
    if max(starts, default=0) >= times or not _windows_fit(views, times):
        return None
    begin = np.array(starts, dtype=np.int64)
    units = _unit_codes([column.unit for column in columns])
    settings = [column.setting for column in columns]
    if set(map(type, views)) == {At} and not any(units) and len(set(settings)) == 1:
        return Layout((0,), np.zeros(len(begin), dtype=np.int64), begin - begin[0])
    forms = [At if type(v) is At else movable_form(v) or j for j, v in enumerate(views)]
    keys = list(zip(forms, units, settings, strict=True))
    first: dict[Hashable, int] = {}
    for at, key in enumerate(keys):
        first.setdefault(key, at)
    number = {key: shape for shape, key in enumerate(first)}
    firsts = tuple(first.values())
    shape_of = np.array([number[key] for key in keys], dtype=np.int64)
    return Layout(firsts, shape_of, begin - begin[list(firsts)][shape_of])


def _start(view: View) -> int:
    return view.start if type(view) is Window else 0


def _windows_fit(views: Sequence[View], times: int) -> bool:
    return all(v.start + v.length <= times for v in views if type(v) is Window)


def _unit_codes(units: Sequence[Metric]) -> list[int]:
    """Return a number for each unit, equal ones alike; each object is hashed once."""
    if all(unit is units[0] or unit == units[0] for unit in units):
        return [0] * len(units)
    marks = [id(unit) for unit in units]
    different = dict(zip(marks, units, strict=True))
    by_value: dict[Metric, int] = {}
    code = {
        mark: by_value.setdefault(unit, len(by_value))
        for mark, unit in different.items()
    }
    return [code[mark] for mark in marks]
