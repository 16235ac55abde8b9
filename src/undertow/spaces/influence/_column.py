"""Columns brought to the few forms whose influence is known, alike ones together.

A column may wrap a plain one: a scaled unit, a group, a declared map after a view. Each
wrapping is a monotone function of the plain influence, kept as a short list of steps.
What cannot be reduced is replaced by a bound: in the view setting one step for a
discrete unit and infinity for any other, the distance of the pair itself in the common
setting. In the view setting a plain influence is a distance inside the range of the
view (:mod:`undertow.spaces.view.range`), and a declared map sends steps inside the
range of the view before it to chains inside its own.

A plan over a stream asks the same at a thousand times: such columns share a *shape* and
have a *shift*, and cost one computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.numeric.exact import Exact, ext_scale
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.change import Column, Setting
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    LpNorm,
    Scaled,
    Values,
    ZeroMetric,
    image_or_values,
)
from undertow.spaces.quotient import Quotient
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    Local,
    LTrajectory,
    Node,
    Trajectory,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import (
    At,
    Cells,
    Chain,
    Clip,
    CliqueCount,
    Degree,
    Identity,
    Ids,
    IncidentEdges,
    Lipschitz,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Truncate,
    Users,
    VertexPairs,
    Window,
    declared_stretch,
)
from undertow.spaces.view.range import Pullback

Step = tuple[str, Exact]
"""``("scale", factor)``, ``("cap", most)`` or ``("ceil", size)``."""

_PLAIN: dict[str, tuple[type[View], ...]] = {
    "table": (Identity, Select, Project),
    "rows": (Identity, Ids, RandomBlock, RowPosition, SortedPosition, Project),
    "stream": (Identity, At, Window, Times, Users, Cells, Locations),
    "graph": (Identity, Degree, IncidentEdges, VertexPairs, CliqueCount),
}


# Views that choose rows or cells by where they are, whatever they hold.
_CHOOSES = (At, Cells, Ids, RandomBlock, RowPosition, Times, Users, Window)

# Looked up first: most columns are plain, and there may be very many of them.
_PLAIN_UNITS = frozenset({Bounded, Edge, Edit, Event, Node, Unbounded, User, WEvent})

#: The granularities whose distances the change classes know; of any other they say
#: that it may be infinite.
MEASURED = _PLAIN_UNITS | {Attribute, BoundedById, Element, FreeLunch, LTrajectory}


@dataclass(frozen=True, slots=True)
class Reduced:
    """A plain column and what to do with its influence.

    Parameters
    ----------
    view, unit, setting
        The plain column; `unit` is :class:`FreeLunch` for every discrete unit.
    steps : tuple of Step
        Applied in order.
    faithful : bool
        Whether the result is the exact influence; otherwise an upper bound.
    """

    view: View
    unit: Metric
    setting: Setting
    steps: tuple[Step, ...] = ()
    faithful: bool = True

    def finish(self, influence: Exact) -> Exact:
        """Return the influence of the wrapped column.

        Examples
        --------
        >>> plain = Reduced(Identity(), FreeLunch(), "view", (("scale", 3),))
        >>> plain.finish(1), plain.finish(0)
        (3, 0)
        """
        for kind, value in self.steps:
            if kind == "scale":
                influence = ext_scale(value, influence)
            elif kind == "cap":
                influence = min(influence, value)
            elif influence != math.inf:
                influence = math.ceil(Fraction(influence) / Fraction(value))
        return influence

    @property
    def is_discrete(self) -> bool:
        """Whether any change costs the same."""
        return isinstance(self.unit, FreeLunch)

    @property
    def additive(self) -> bool:
        """Whether several changes cost the sum of their influences."""
        return not self.is_discrete and all(kind == "scale" for kind, _ in self.steps)


def grow(column: Reduced) -> Callable[[Exact, Exact], Exact]:
    """Return how the largest influence of a column grows with the number of changes."""
    if column.is_discrete:
        return lambda influence, times: influence
    return lambda influence, times: ext_scale(times, influence)


def reduce_column(column: Column, domain: Domain) -> Reduced:
    """Bring a column to a plain one on `domain`.

    Raises
    ------
    MismatchError, ValueError
        If the view does not fit the domain, or the unit is `Local` and what the claim
        is about holds the data of several.
    """
    column.view.require_domain(domain)
    start = Reduced(column.view, column.unit, column.setting)
    if type(column.view) is At and type(column.unit) in _PLAIN_UNITS:
        return start
    return _reduce_view(_reduce_unit(start, domain), domain)


def _reduce_unit(column: Reduced, domain: Domain) -> Reduced:
    unit = column.unit
    if type(unit) in _PLAIN_UNITS:
        return column
    if isinstance(unit, ZeroMetric):
        return _then(replace(column, unit=FreeLunch()), ("cap", 0), faithful=True)
    if isinstance(unit, Local):
        _require_one_person(column, domain)
    if isinstance(unit, DiscreteMetric | Local | FreeLunch):
        return replace(column, unit=FreeLunch())
    if isinstance(unit, Trajectory):
        return replace(column, unit=unit.on(domain))
    if isinstance(unit, Scaled):
        inner = _reduce_unit(replace(column, unit=unit.base), domain)
        return _then(inner, ("scale", unit.factor), faithful=True)
    if isinstance(unit, Group):
        return _reduce_group(column, unit, domain)
    if isinstance(unit, Pullback):
        return _reduce_pullback(column, unit, domain)
    if isinstance(unit, Quotient) and isinstance(column.view, Identity):
        inner = replace(column, unit=unit.base, view=unit.view, setting="common")
        return _reduce_unit(inner, domain)
    if isinstance(unit, Granularity) and type(unit) not in MEASURED:
        return replace(column, faithful=False)
    return column


def _require_one_person(column: Reduced, domain: Domain) -> None:
    """Require that a local claim is about one person's data, whatever the target."""
    common = column.setting == "common"
    where = domain if common else image_or_values(column.view, domain)
    if not isinstance(where, Values):
        Local().require_domain(where)


def _reduce_group(column: Reduced, unit: Group, domain: Domain) -> Reduced:
    inner = _reduce_unit(replace(column, unit=unit.base), domain)
    if column.setting == "common" and isinstance(inner.unit, Attribute):
        # A quotient path may jump between its steps; a group of steps may not.
        return replace(inner, faithful=False)
    if inner.is_discrete:
        return inner
    return _then(inner, ("ceil", unit.size), faithful=True)


def _reduce_pullback(column: Reduced, unit: Pullback, domain: Domain) -> Reduced:
    if column.setting == "view":
        view = unit.view
        if not isinstance(column.view, Identity):
            view = Chain(column.view, unit.view)
        return _reduce_unit(replace(column, view=view, unit=unit.base), domain)
    pulled = replace(column, view=unit.view, unit=unit.base, setting="view")
    return replace(_reduce_unit(pulled, domain), faithful=False)


def _reduce_view(column: Reduced, domain: Domain) -> Reduced:
    view = column.view
    if type(view) in _PLAIN.get(domain.kind, (Identity,)):
        return _reduce_number(column)
    if isinstance(view, Lipschitz | Clip | Truncate):
        view = Chain(Identity(), view)
    if not isinstance(view, Chain):
        return _unknown(column)
    if column.setting == "common" or column.is_discrete:
        # A coarser view has the smaller quotient distance, and moves less often.
        inner = replace(column, view=view.first, faithful=False)
        return _reduce_view(inner, domain)
    return _reduce_chain(column, _by_record(view), domain)


def _by_record(view: Chain) -> Chain:
    """Choose the rows or cells first and clip them then, which shows the same."""
    if isinstance(view.first, Clip) and isinstance(view.second, _CHOOSES):
        return Chain(view.second, view.first)
    return view


def _reduce_chain(column: Reduced, view: Chain, domain: Domain) -> Reduced:
    between: list[Metric] = [column.unit]
    if isinstance(view.second, Lipschitz):
        between.insert(0, view.second.unit_from)
    for unit in between:
        factor = declared_stretch(view.second, unit, column.unit)
        if factor == math.inf:
            continue
        start = Reduced(view.first, unit, "view")
        inner = _reduce_view(_reduce_unit(start, domain), domain)
        steps: tuple[Step, ...] = (*inner.steps, ("scale", factor))
        if isinstance(view.second, Clip) and isinstance(unit, AbsoluteDifference):
            steps = (*steps, ("cap", _clip_width(view.second)))
        return replace(inner, steps=(*steps, *column.steps), faithful=False)
    return _unknown(column)


def _clip_width(clip: Clip) -> Exact:
    if math.inf in (clip.high, -clip.low):
        return math.inf
    return Fraction(clip.high) - Fraction(clip.low)


def _reduce_number(column: Reduced) -> Reduced:
    """Read norms of single numbers as absolute differences."""
    if type(column.unit) not in (LpNorm, Euclidean):
        return column
    view = column.view
    counts = isinstance(view, Select) and view.statistic == "count"
    if counts or isinstance(view, Degree):
        return replace(column, unit=AbsoluteDifference())
    return column


def _unknown(column: Reduced) -> Reduced:
    if column.setting == "common" or column.is_discrete:
        return replace(column, view=Identity(), setting="view", faithful=False)
    lost: tuple[Step, ...] = (("scale", math.inf),)
    return Reduced(Identity(), FreeLunch(), "view", (*lost, *column.steps), False)


def _then(column: Reduced, step: Step, *, faithful: bool) -> Reduced:
    return replace(
        column,
        steps=(*column.steps, step),
        faithful=column.faithful and faithful,
    )


# Columns that differ only in where their view starts, looked at once.
#
# A plan over a stream has the same question at a thousand times. What the unit does to
# the view of one of them it does to all, only later: the columns share a *shape* and
# have a *shift*, and a thousand columns cost one computation and two arrays of
# integers.

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
    >>> from undertow.spaces.unit import Event
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
