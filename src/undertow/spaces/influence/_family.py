"""Change classes too many to list: made of others, pairs of records, chosen items.

Either of several families, several changes at once, or columns in independent groups;
the replacement of one record by another, searched pair by pair with pruning; and any
set of at most :math:`m` items that the caller cannot foresee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from undertow.numeric.exact import Exact, ext_scale
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    FrontPoint,
    Maximum,
    Row,
    align,
    restrict,
)
from undertow.spaces.influence._run import (
    ScaledCosts as Scaled,
)
from undertow.spaces.influence._run import (
    front_of,
    listed,
    scale,
)

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
                _claims_inside(charge, place)
                for charge in charges
                if charge.columns[0] in place
            ]
            top = family.maximise(own, coordinate=coordinate)
            total = math.inf if math.inf in (total, top.value) else total + top.value
            influences |= {columns[j]: a for j, a in top.row.influences.items()}
            words.append(top.row.change.summary)
        change = Change("several", "; and ".join(words))
        return Maximum(total, Row(change, influences), False)


def _claims_inside(charge: Charge, place: Mapping[int, int]) -> Charge:
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
            self._largest[column] = _largest_influence(self.base, column)
        return self._largest[column]

    def _diameter(self, column: int) -> Exact:
        assert self.whole is not None
        if column not in self._diameters:
            self._diameters[column] = _largest_influence(self.whole, column)
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


def _largest_influence(family: ChangeFamily, column: int) -> Exact:
    return family.maximise([Charge((column,), lambda influences: influences)]).value


# Replacing one record: pairs of record types, searched with pruning.
#
# A replacement takes a record of one type out and puts one of another type in. A column
# sees it as a record leaving or entering (exactly one of the two lies in its view), as
# a replacement inside (both do), or not at all. With :math:`W(s)` the cost of a record
# of type :math:`s` leaving,
#
# .. math:: \mathrm{cost}(s, t) = W(s) + W(t) + \sum_{g \ni s, t} (b_g - 2 o_g),
#
# where :math:`o_g` and :math:`b_g` are the costs of charge :math:`g` for leaving and
# for replacing inside. Since :math:`\mathrm{cost}(s,t) \le U(s) + U(t)` with
# :math:`U(s) = \sum_{g \ni s} \max(o_g, b_g/2)`, a scan in decreasing :math:`U` stops
# early: after one step on partitions, near linear on real workloads. Charges that every
# type pays are taken out first.

# Pairs looked at before the scan settles for the bound that pruning gives.
_WORK_LIMIT = 200_000_000
# Types up to which a Pareto front is taken over all pairs.
_FRONT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class PairColumn:
    """What a column sees of a replacement.

    Parameters
    ----------
    members : sequence of int
        The types in its view, in order.
    one : Exact
        Influence when exactly one of the two records lies in the view.
    move : Exact
        Influence when both do, with different types.
    same : Exact
        Influence when both do, with one type.
    """

    members: Sequence[int]
    one: Exact
    move: Exact
    same: Exact


@dataclass
class _Priced:
    """Charges priced for one cost coordinate, over one denominator."""

    scaled: Scaled
    one: Any
    move: Any
    same: Any
    members: list[Any]
    of_type: list[list[int]]
    everyone_move: int = 0
    everyone_same: int = 0
    leave: Any = field(default=None)
    bound: Any = field(default=None)


class PairFamily(ChangeFamily):
    """Unordered pairs of types, a type with itself where two record values share it.

    Parameters
    ----------
    types : int
        The number of record types.
    twice : sequence of bool
        Which types hold at least two record values.
    columns : mapping of int to PairColumn
        How each column sees a replacement.
    describe : callable
        Two type numbers -> the change in words.
    tight : bool
        Whether each pair is attained in all columns together.
    """

    def __init__(
        self,
        types: int,
        *,
        twice: Sequence[bool],
        columns: Mapping[int, PairColumn],
        describe: Callable[[int, int], Change],
        tight: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.types, self.twice, self.columns = types, list(twice), dict(columns)
        self.describe, self.tight, self.notes = describe, tight, notes

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the largest cost of a pair, exact unless the work limit is met."""
        charges = align(charges, lambda j: self.columns[j].members)
        priced = self._price(charges, coordinate)
        infinite = self._infinite_pair(charges, priced)
        if infinite is not None:
            row = self._telling(charges, coordinate) or self.row(*infinite)
            return Maximum(math.inf, row, self.tight)
        best, pair, complete = self._scan(priced)
        tight = self.tight and complete and not priced.scaled.rounded
        return Maximum(
            Fraction(best, priced.scaled.denominator), self.row(*pair), tight
        )

    def pareto(
        self, charges: Sequence[Charge], *, coordinates: int
    ) -> tuple[FrontPoint, ...]:
        """Return the front over all pairs where they are few."""
        if coordinates == 1 or self.types > _FRONT_LIMIT:
            return super().pareto(charges, coordinates=coordinates)
        rows = [self.row(s, t) for s, t in self._pairs()]
        family = listed(rows, tight=self.tight, notes=self.notes)
        return family.pareto(charges, coordinates=coordinates)

    def row(self, first: int, second: int) -> Row:
        """Return the influences of replacing a record of one type by another."""
        influences: dict[int, Exact] = {}
        for j, column in self.columns.items():
            inside = (first in column.members) + (second in column.members)
            both = column.same if first == second else column.move
            influence = (0, column.one, both)[inside]
            if influence:
                influences[j] = influence
        return Row(self.describe(first, second), influences)

    def _pairs(self) -> list[tuple[int, int]]:
        return [
            (s, t)
            for s in range(self.types)
            for t in range(s, self.types)
            if s != t or self.twice[s]
        ]

    def _price(self, charges: Sequence[Charge], coordinate: int) -> _Priced:
        seen = [[self.columns[j] for j in charge.columns] for charge in charges]
        costs = [
            charge.price(tuple(getattr(column, state) for column in columns))
            for state in ("one", "move", "same")
            for charge, columns in zip(charges, seen, strict=True)
        ]
        scaled = scale([cost[coordinate] for cost in costs])
        numbers, n = scaled.array(), len(charges)
        one, move, same = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
        members = [np.array(columns[0].members, dtype=np.int64) for columns in seen]
        priced = _Priced(
            scaled, one, move, same, members, [[] for _ in range(self.types)]
        )
        self._fill(priced)
        return priced

    def _fill(self, priced: _Priced) -> None:
        kind = priced.one.dtype
        priced.leave = np.zeros(self.types, dtype=kind)
        priced.bound = np.zeros(self.types, dtype=kind)
        for g, members in enumerate(priced.members):
            move, same = priced.move[g], priced.same[g]
            if len(members) == self.types and move == same:
                priced.everyone_move += int(move)
                priced.everyone_same += int(same)
                continue
            priced.leave[members] += priced.one[g]
            # Doubled, so that half of the cost of a replacement stays an integer.
            priced.bound[members] += max(2 * priced.one[g], move, same)
            for s in members.tolist():
                priced.of_type[s].append(g)

    def _infinite_pair(
        self, charges: Sequence[Charge], priced: _Priced
    ) -> tuple[int, int] | None:
        n = len(charges)
        for g, members in enumerate(priced.members):
            inside = members.tolist()
            for state, lost in enumerate(priced.scaled.infinite[g::n]):
                pair = self._example(inside, state) if lost else None
                if pair is not None:
                    return pair
        return None

    def _telling(self, charges: Sequence[Charge], coordinate: int) -> Row | None:
        """Return the infinite pair that would be heaviest if infinity were one step."""
        columns = {
            j: PairColumn(c.members, *(_tame(a) for a in (c.one, c.move, c.same)))
            for j, c in self.columns.items()
        }
        tamed = PairFamily(
            self.types, twice=self.twice, columns=columns, describe=self.describe
        )
        if any(tamed._price(charges, coordinate).scaled.infinite):
            return None
        _, pair, _ = tamed._scan(tamed._price(charges, coordinate))
        row = self.row(*pair)
        return row if math.inf in row.influences.values() else None

    def _example(self, inside: list[int], state: int) -> tuple[int, int] | None:
        """Return a pair in the given state: 0 leaving, 1 moving inside, 2 one type."""
        if state == 2:
            return next(((s, s) for s in inside if self.twice[s]), None)
        if state == 1:
            return (inside[0], inside[1]) if len(inside) > 1 else None
        members = set(inside)
        outside = next((t for t in range(self.types) if t not in members), None)
        return (inside[0], outside) if inside and outside is not None else None

    def _scan(self, priced: _Priced) -> tuple[int, tuple[int, int], bool]:
        """Return the best total, its pair, and whether the scan was complete."""
        order = np.argsort(-priced.bound, kind="stable")
        bound = priced.bound[order]
        everyone = priced.everyone_move
        best, pair, work = -1, (0, 0), 0
        for i in range(self.types):
            s = int(order[i])
            if best >= 0 and best - everyone >= bound[i]:
                break
            if self.twice[s]:
                total = everyone + sum(int(priced.same[g]) for g in priced.of_type[s])
                best, pair = max((best, pair), (total, (s, s)), key=lambda x: x[0])
            later = order[i + 1 :]
            if best >= 0:
                later = later[bound[i + 1 :] + bound[i] > 2 * (best - everyone)]
            if not len(later):
                continue
            work += len(later) + sum(len(priced.members[g]) for g in priced.of_type[s])
            if work > _WORK_LIMIT:
                ceiling = -(-int(bound[i] + bound[min(i + 1, self.types - 1)]) // 2)
                return max(best, ceiling + everyone), pair, False
            at, total = self._best_partner(priced, s, later)
            if total + everyone > best:
                best, pair = total + everyone, (s, at)
        return best, (min(pair), max(pair)), True

    def _best_partner(self, priced: _Priced, s: int, later: Any) -> tuple[int, int]:
        excess = np.zeros(self.types, dtype=priced.one.dtype)
        for g in priced.of_type[s]:
            excess[priced.members[g]] += priced.move[g] - 2 * priced.one[g]
        totals = priced.leave[later] + priced.leave[s] + excess[later]
        at = int(np.argmax(totals))
        return int(later[at]), int(totals[at])


def _tame(influence: Exact) -> Exact:
    return 1 if influence == math.inf else influence


# Any set of at most :math:`m` items: cells of a record, recorded times of a user.
#
# One change touches up to :math:`m` items the caller cannot foresee, so the worst case
# is a choice of the heaviest. Replacing one set by another touches each item once (it
# is in exactly one of the two sets) or twice (in both):
#
# * add or remove: the :math:`m` largest costs;
# * replace: :math:`n_1 + 2 n_2 \le 2m`, items in one set taking one slot and items in
#   both taking two. Top :math:`2m` where being in both costs no more than being in one,
#   twice the top :math:`m` where it costs double, solved exactly in between.


@dataclass(frozen=True, slots=True)
class SlotColumn:
    """How a column sees a choice of items.

    Parameters
    ----------
    items : tuple of int or None
        The items it depends on; None: it moves under every change.
    one, both : Exact
        Influence per chosen item that lies in one set, or in both.
    most : Exact
        The largest influence of any choice.
    additive : bool
        Whether the influences of several items add up, as far as `most`; otherwise
        their sum is only an upper bound.
    """

    items: tuple[int, ...] | None
    one: Exact
    both: Exact
    most: Exact
    additive: bool = True


class TopFamily(ChangeFamily):
    """At most `most` items, each column tied to one item, to several, or to none.

    Parameters
    ----------
    items : int
        The number of items.
    most : int
        How many of them one record or user has at most.
    columns : mapping of int to SlotColumn
        How each column sees a choice.
    replace : bool
        Whether one set of items is replaced by another, or only added or removed.
    equal_sets : bool
        With `replace`: whether the two sets may coincide.
    describe : callable
        Items in one set, items in both -> the change in words.
    tight : bool
        Whether every choice is attained in all columns together.

    Notes
    -----
    A column over several items is charged, per item, its price at `most` divided by
    `most`: a convex price lies below its chord. A charge with several such claims is
    charged its price at `most`. The maximum is then checked against the true price of
    the choice it names, and is tight where they agree.
    """

    def __init__(
        self,
        items: int,
        most: int,
        *,
        columns: Mapping[int, SlotColumn],
        replace: bool,
        equal_sets: bool,
        describe: Callable[[tuple[int, ...], tuple[int, ...]], Change],
        tight: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.items, self.most, self.columns = items, min(most, items), dict(columns)
        self.replace, self.equal_sets = replace, equal_sets
        self.describe, self.notes = describe, notes
        several = [c for c in columns.values() if c.items and len(c.items) > 1]
        self.tight = tight and not several
        self._exact = tight and all(column.additive for column in several)

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the heaviest choice, and whether it attains the value."""
        aligned = align(charges, lambda j: self.columns[j].items)
        constant, one, both = self._prices(aligned, coordinate)
        scaled = scale([constant, *one, *both])
        gone = sum(scaled.numerators) + 1  # heavier than all finite costs together
        weights = [
            gone if lost else number
            for number, lost in zip(scaled.numerators, scaled.infinite, strict=True)
        ]
        first, twice = weights[1 : self.items + 1], weights[self.items + 1 :]
        total, chosen = self._choose(first, twice)
        total += weights[0]
        row = self.row(*chosen)
        if total >= gone:
            return Maximum(math.inf, row, self.tight)
        value = Fraction(total, scaled.denominator)
        reached = sum(price[coordinate] for price in row.price(charges))
        return Maximum(value, row, self._exact and reached == value)

    def row(self, once: tuple[int, ...], twice: tuple[int, ...]) -> Row:
        """Return the influences of a choice of items."""
        influences: dict[int, Exact] = {}
        for j, column in self.columns.items():
            influence = self._influence(column, set(once), set(twice))
            if influence:
                influences[j] = influence
        return Row(self.describe(once, twice), influences)

    def _influence(self, column: SlotColumn, once: set[int], twice: set[int]) -> Exact:
        if column.items is None:
            return column.most
        ones = sum(item in once for item in column.items)
        boths = sum(item in twice for item in column.items)
        if math.inf in (column.one, column.both):
            lost = (ones and column.one == math.inf) or (
                boths and column.both == math.inf
            )
            return math.inf if lost else 0
        return min(column.most, ones * column.one + boths * column.both)

    def _prices(
        self, charges: Sequence[Charge], coordinate: int
    ) -> tuple[Exact, list[Exact], list[Exact]]:
        constant: Exact = 0
        one: list[Exact] = [0] * self.items
        both: list[Exact] = [0] * self.items
        for charge in charges:
            seen = [self.columns[j] for j in charge.columns]
            items = seen[0].items
            if items is None or (len(items) > 1 and not _has_chord(seen)):
                most = charge.price(tuple(column.most for column in seen))
                constant = _add_costs(constant, most[coordinate])
            elif len(items) == 1:
                ones = charge.price(tuple(column.one for column in seen))
                boths = charge.price(tuple(column.both for column in seen))
                one[items[0]] = _add_costs(one[items[0]], ones[coordinate])
                both[items[0]] = _add_costs(both[items[0]], boths[coordinate])
            else:
                self._spread(charge, seen[0], coordinate, one, both)
        return constant, one, both

    def _spread(
        self,
        charge: Charge,
        column: SlotColumn,
        coordinate: int,
        one: list[Exact],
        both: list[Exact],
    ) -> None:
        price = charge.price((column.most,))[coordinate]
        for item in column.items or ():
            for costs, influence in ((one, column.one), (both, column.both)):
                share = (
                    price
                    if price == math.inf
                    else Fraction(price) * Fraction(influence) / Fraction(column.most)
                )
                costs[item] = _add_costs(costs[item], share)

    def _choose(
        self, one: list[int], both: list[int]
    ) -> tuple[int, tuple[tuple[int, ...], tuple[int, ...]]]:
        if not self.replace:
            heavy = sorted(range(self.items), key=lambda i: -one[i])[: self.most]
            chosen = tuple(sorted(heavy))
            return sum(one[i] for i in chosen), (chosen, ())
        return self._replace(one, both)

    def _replace(
        self, one: list[int], both: list[int]
    ) -> tuple[int, tuple[tuple[int, ...], tuple[int, ...]]]:
        slots, room = 2 * self.most, 3 * self.most
        order = range(self.items)
        candidates = sorted(
            {*sorted(order, key=lambda i: -one[i])[:room]}
            | {*sorted(order, key=lambda i: -both[i])[:room]}
        )
        total, chosen = _fill_slots(candidates, one, both, slots)
        if chosen[0] or self.equal_sets:
            return total, chosen
        # The two sets must differ: some item lies in exactly one of them.
        forced = []
        for item in candidates:
            rest = [other for other in candidates if other != item]
            value, (once, twice) = _fill_slots(rest, one, both, slots - 1)
            forced.append((value + one[item], (tuple(sorted((*once, item))), twice)))
        return max(forced, key=lambda option: option[0])


def _fill_slots(
    candidates: Sequence[int], one: Sequence[int], both: Sequence[int], slots: int
) -> tuple[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Fill slots with items in one set (one slot) or in both (two slots), exactly."""
    small = sum(one[i] + both[i] for i in candidates) < 2**62
    best: Any = np.zeros(slots + 1, dtype=np.int64 if small else object)
    steps = []
    for item in candidates:
        options = np.stack([best, best, best])
        options[1, 1:] = best[:-1] + one[item]
        options[2, 2:] = best[:-2] + both[item]
        choice = np.argmax(options, axis=0)
        best = options[choice, np.arange(slots + 1)]
        steps.append(choice)
    left = slots
    once: list[int] = []
    twice: list[int] = []
    for item, choice in zip(reversed(candidates), reversed(steps), strict=True):
        taken = int(choice[left])
        left -= taken
        if taken:
            (once if taken == 1 else twice).append(item)
    return int(best[slots]), (tuple(sorted(once)), tuple(sorted(twice)))


def _has_chord(seen: Sequence[SlotColumn]) -> bool:
    # A chord needs a convex price: one claim, with a finite influence.
    return len(seen) == 1 and seen[0].most not in (0, math.inf)


def _add_costs(first: Exact, second: Exact) -> Exact:
    return math.inf if math.inf in (first, second) else first + second
