"""Families made of others: either of several, or several changes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from undertow.privacy.exact import Exact
from undertow.privacy.extended import ext_scale
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    FrontPoint,
    Maximum,
    Row,
    restrict,
)
from undertow.spaces.influence.runs import front_of

__all__ = [
    "Grow",
    "IndependentFamily",
    "LeastFamily",
    "RepeatedFamily",
    "UnionFamily",
]

# Columns up to which each is compared with the most that it can move at all.
_COMPARED_COLUMNS = 200

Grow = Callable[[Exact, Exact], Exact]
"""The influence of several changes, from the influence of one and their number."""


class UnionFamily(ChangeFamily):
    """Changes of any one of several families, over the same columns."""

    def __init__(self, parts: Sequence[ChangeFamily]) -> None:
        self.parts = tuple(parts)
        self.tight = all(part.tight for part in parts)
        self.mixes = any(part.mixes for part in parts)
        self.notes = tuple(dict.fromkeys(n for part in parts for n in part.notes))

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the largest maximum of the parts; the first among equals."""
        return max(
            (part.maximise(charges, coordinate=coordinate) for part in self.parts),
            key=lambda top: (top.value, top.tight),
        )

    def pareto(
        self, charges: Sequence[Charge], *, coordinates: int
    ) -> tuple[FrontPoint, ...]:
        """Return the points of all parts that none beats in all coordinates."""
        points: dict[tuple[Exact, ...], FrontPoint] = {}
        for part in self.parts:
            for point in part.pareto(charges, coordinates=coordinates):
                held = points.get(point.values)
                if held is None or (point.tight and not held.tight):
                    points[point.values] = point
        return tuple(points[values] for values in front_of(points))


class LeastFamily(ChangeFamily):
    """Several families that all cover the changes: the smallest maximum is valid."""

    def __init__(self, parts: Sequence[ChangeFamily]) -> None:
        self.parts = tuple(parts)
        self.tight = any(part.tight for part in parts)
        self.mixes = any(part.mixes for part in parts)
        self.notes = tuple(dict.fromkeys(n for part in parts for n in part.notes))

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the smallest maximum of the parts, a tight one among equals."""
        return min(
            (part.maximise(charges, coordinate=coordinate) for part in self.parts),
            key=lambda top: (top.value, not top.tight),
        )


class IndependentFamily(ChangeFamily):
    """Columns in groups, each with a family of its own: the maxima add up.

    Parameters
    ----------
    parts : sequence of (ChangeFamily, sequence of int)
        Each family with the columns it numbers 0, 1, ...

    Notes
    -----
    The maximum of a sum is at most the sum of the maxima, so the bound is valid
    whatever the changes have in common; it is not called tight.
    """

    tight = False

    def __init__(self, parts: Sequence[tuple[ChangeFamily, Sequence[int]]]) -> None:
        self.parts = [(family, tuple(columns)) for family, columns in parts]
        self.mixes = any(family.mixes for family, _ in parts)
        notes = (note for family, _ in parts for note in family.notes)
        self.notes = tuple(dict.fromkeys(notes))

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the sum of the maxima of the parts."""
        total: Exact = 0
        influences: dict[int, Exact] = {}
        words: list[str] = []
        for family, columns in self.parts:
            place = {column: at for at, column in enumerate(columns)}
            own = [
                _inside(charge, place)
                for charge in charges
                if charge.columns[0] in place
            ]
            top = family.maximise(own, coordinate=coordinate)
            total = math.inf if math.inf in (total, top.value) else total + top.value
            influences |= {columns[j]: a for j, a in top.row.influences.items()}
            words.append(top.row.change.summary)
        change = Change("several", "; and ".join(words))
        return Maximum(total, Row(change, influences), False)


def _inside(charge: Charge, place: Mapping[int, int]) -> Charge:
    """Keep the claims about columns of one part, numbered as there.

    Claims of one release lie in two parts where a unit is defined through another view.
    """
    kept = [at for at, column in enumerate(charge.columns) if column in place]
    price = restrict(charge, kept).price
    return Charge(tuple(place[charge.columns[at]] for at in kept), price)


class RepeatedFamily(ChangeFamily):
    r"""Up to `times` changes of another family at once.

    Parameters
    ----------
    base : ChangeFamily
        What one change is.
    times : int or inf
        How many of them.
    capped : mapping of int to callable
        Columns whose distance does not grow in proportion (a discrete unit, groups):
        the influence of `times` changes as a function of the influence of one.
    tight : bool
        Whether `times` equal changes fit into the domain.
    whole : ChangeFamily, optional
        Covers any number of these changes. No column moves further than there.

    Notes
    -----
    By the triangle inequality the influence of several changes is at most the sum of
    theirs, so it is at most :math:`\sum_\kappa n_\kappa a_j(\kappa)` with
    :math:`\sum_\kappa n_\kappa \le g`. Prices are convex, a convex function on this
    simplex is largest at a corner, hence :math:`g` equal changes are the worst case.
    Columns in `capped` are charged at their largest influence, beside the corner. So,
    as a second bound, are those that `whole` keeps below :math:`g` changes; a third
    bound is `whole` itself, and the least of the three counts.
    """

    mixes = True

    def __init__(
        self,
        base: ChangeFamily,
        times: Exact,
        *,
        capped: Mapping[int, Grow],
        tight: bool,
        whole: ChangeFamily | None = None,
    ) -> None:
        self.base, self.times, self.capped = base, times, dict(capped)
        self.whole = whole
        self.tight = base.tight and tight and not capped
        self.notes = base.notes
        self._largest: dict[int, Exact] = {}
        self._diameters: dict[int, Exact] = {}

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the least of the bounds, the tight one among equals."""
        assert all(len(charge.columns) == 1 for charge in charges), "see mixes"
        seen = {charge.columns[0] for charge in charges}
        capped = {j: self._grown_cap(j) for j in self.capped if j in seen}
        options = [self._corner(charges, coordinate, capped)]
        if self.whole is not None:
            full = self._saturated(seen)
            if full:
                options.append(self._corner(charges, coordinate, capped | full))
            top = self.whole.maximise(charges, coordinate=coordinate)
            # The databases that attain it may be more than `times` changes apart.
            options.append(Maximum(top.value, top.row, False))
        return min(options, key=lambda top: (top.value, not top.tight))

    def _corner(
        self, charges: Sequence[Charge], coordinate: int, fixed: Mapping[int, Exact]
    ) -> Maximum:
        """Return the corner maximum, plus the `fixed` columns at their influence."""
        free = [c for c in charges if c.columns[0] not in fixed]
        top = self.base.maximise([self._scaled(c) for c in free], coordinate=coordinate)
        value = top.value
        for charge in charges:
            if charge.columns[0] in fixed:
                cost = charge.price((fixed[charge.columns[0]],))[coordinate]
                value = math.inf if math.inf in (value, cost) else value + cost
        tight = self.tight and top.tight and not fixed
        return Maximum(value, self._row(top.row, fixed), tight)

    def _scaled(self, charge: Charge) -> Charge:
        def price(influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
            return charge.price(tuple(self._grown(a) for a in influences))

        return Charge(charge.columns, price)

    def _grown(self, influence: Exact) -> Exact:
        return ext_scale(self.times, influence)

    def _grown_cap(self, column: int) -> Exact:
        grown = self.capped[column](self._one(column), self.times)
        return grown if self.whole is None else min(grown, self._diameter(column))

    def _saturated(self, columns: Iterable[int]) -> dict[int, Exact]:
        """Return the columns that `times` changes cannot move in full, and how far."""
        free = [j for j in columns if j not in self.capped]
        if len(free) > _COMPARED_COLUMNS:
            return {}
        return {
            j: self._diameter(j)
            for j in free
            if self._diameter(j) < self._grown(self._one(j))
        }

    def _one(self, column: int) -> Exact:
        if column not in self._largest:
            self._largest[column] = _largest(self.base, column)
        return self._largest[column]

    def _diameter(self, column: int) -> Exact:
        assert self.whole is not None
        if column not in self._diameters:
            self._diameters[column] = _largest(self.whole, column)
        return self._diameters[column]

    def _row(self, row: Row, fixed: Mapping[int, Exact]) -> Row:
        influences = {j: self._grown(a) for j, a in row.influences.items()}
        influences |= fixed
        change = replace(
            row.change,
            summary=f"{self.times} times: {row.change.summary}",
            details=(*row.change.details, ("times", self.times)),
        )
        return Row(Change(change.kind, change.summary, change.details), influences)


def _largest(family: ChangeFamily, column: int) -> Exact:
    return family.maximise([Charge((column,), lambda influences: influences)]).value
