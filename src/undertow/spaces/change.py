r"""Change classes: what one protected unit can do to every release at once.

A real domain is never enumerated. A target granularity is covered by finitely many
*change classes* :math:`\kappa` ("replace a record of cell S by one of cell W", "one
entry in each of the times 4, 5, 6"), and every column -- a view, the unit its loss is
stated in, and the setting of the claim -- answers with :math:`a_j(\kappa)`, the largest
distance its unit can move under a change of the class. The composed loss is then

.. math:: \max_\kappa \sum_i \min_{j \in \text{claims of } i} c_j(a_j(\kappa)),

because every neighbour pair lies in a class, all claims of a release hold at once, and
the composition theorem is monotone in the distances. A family of classes is *tight*
when one neighbour pair attains all its influences together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from undertow.numeric.exact import Exact
from undertow.spaces.base import Metric, View

Setting = Literal["view", "common"]
"""``view``: private on the range of the view; ``common``: on the whole domain."""

Price = Callable[[tuple[Exact, ...]], tuple[Exact, ...]]
"""The cost coordinates of a charge at the influences of its columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """One way of measuring a change: a view, a unit, and the setting of the claim.

    Parameters
    ----------
    view : View
        What the release sees of the data.
    unit : Metric
        The granularity or metric its loss is stated in.
    setting : {"view", "common"}
        Whether the claim is about the mechanism on the range of the view, or about the
        whole mechanism on the domain, which then must read nothing but its view.
    """

    view: View
    unit: Metric
    setting: Setting
    # Plans look columns up by the hundred thousand: hashed once, when made.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.setting not in ("view", "common"):
            raise ValueError(
                f"setting must be 'view' or 'common', got {self.setting!r}; there is "
                "no default, because one may be finite where the other is infinite."
            )
        object.__setattr__(self, "_hash", hash((self.view, self.unit, self.setting)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Column], tuple[View, Metric, Setting]]:
        # Hashes of text differ between processes, so a copy is made anew.
        return Column, (self.view, self.unit, self.setting)


@dataclass(frozen=True, slots=True)
class Change:
    """A change class in words: what happens to the protected unit.

    Parameters
    ----------
    kind : str
        A short tag: ``replace``, ``add``, ``window``, ``rewire``, ...
    summary : str
        The change in one clause.
    details : tuple of (str, object)
        The same for programs: cells, times, users, example databases.
    """

    kind: str
    summary: str
    details: tuple[tuple[str, object], ...] = ()

    def detail(self, name: str) -> object:
        """Return one detail, or None."""
        return dict(self.details).get(name)


@dataclass(frozen=True, slots=True)
class Row:
    """A change class with the influence of every column it touches."""

    change: Change
    influences: Mapping[int, Exact]

    def price(self, charges: Sequence[Charge]) -> tuple[tuple[Exact, ...], ...]:
        """Return the cost coordinates of every charge under this change."""
        return tuple(
            charge.price(tuple(self.influences.get(j, 0) for j in charge.columns))
            for charge in charges
        )


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one release, or of several alike, as a function of a change.

    Parameters
    ----------
    columns : tuple of int
        The columns of its claims, all through one view.
    price : callable
        Takes the influences of `columns` and returns the cost coordinates: one for a
        single notion, several for a Pareto front. Zero influences cost zero.
    """

    columns: tuple[int, ...]
    price: Price


def restrict(charge: Charge, kept: Sequence[int]) -> Charge:
    """Return the charge with only the claims at these positions.

    Giving up a claim is always valid: the others still hold.
    """
    if len(kept) == len(charge.columns):
        return charge

    def price(influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
        filled: list[Exact] = [math.inf] * len(charge.columns)
        for at, influence in zip(kept, influences, strict=True):
            filled[at] = influence
        return charge.price(tuple(filled))

    return Charge(tuple(charge.columns[at] for at in kept), price)


def align(charges: Sequence[Charge], shape: Callable[[int], object]) -> list[Charge]:
    """Keep, of each charge, the claims whose columns look at the same as the first.

    Families that rely on one view per charge call this; a view can change when a unit
    is defined through another view.
    """
    aligned = []
    for charge in charges:
        if len(charge.columns) == 1:
            aligned.append(charge)
            continue
        shapes = [shape(column) for column in charge.columns]
        kept = [at for at, one in enumerate(shapes) if one == shapes[0]]
        aligned.append(restrict(charge, kept))
    return aligned


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest cost over a family, and the class that attains it.

    Parameters
    ----------
    value : int, Fraction or inf
        Never below the largest cost of a neighbour pair.
    row : Row
        The class at the maximum.
    tight : bool
        Whether a neighbour pair is known to reach `value`; otherwise it is an upper
        bound.
    """

    value: Exact
    row: Row
    tight: bool


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One class that no other class beats in every cost coordinate."""

    values: tuple[Exact, ...]
    row: Row
    tight: bool


class ChangeFamily(ABC):
    """The change classes of one target, with the influence of every column.

    Attributes
    ----------
    tight : bool
        Whether every class is attained by a neighbour pair in all its columns.
    notes : tuple of str
        Assumptions used: declared caps, bounds in place of exact influences.
    mixes : bool
        Whether the classes cover mixtures of changes only for prices that are convex
        in the influences; a charge must then rest on one claim.
    """

    tight: bool = True
    notes: tuple[str, ...] = ()
    mixes: bool = False

    @abstractmethod
    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the largest total of one cost coordinate over all classes."""

    def pareto(
        self, charges: Sequence[Charge], *, coordinates: int
    ) -> tuple[FrontPoint, ...]:
        """Return classes whose cost totals are not beaten in every coordinate.

        Families that do not list their classes return one point: the maximum of each
        coordinate, tight if one class attains all of them.
        """
        tops = [self.maximise(charges, coordinate=k) for k in range(coordinates)]
        values = tuple(top.value for top in tops)
        for top in tops:
            if top.tight and totals(top.row.price(charges), coordinates) == values:
                return (FrontPoint(values, top.row, True),)
        return (FrontPoint(values, tops[0].row, coordinates == 1 and tops[0].tight),)


def totals(prices: Sequence[tuple[Exact, ...]], coordinates: int) -> tuple[Exact, ...]:
    """Add cost tuples coordinate by coordinate; empty sums are zero."""
    return tuple(_add(price[k] for price in prices) for k in range(coordinates))


def _add(values: Iterable[Exact]) -> Exact:
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total
