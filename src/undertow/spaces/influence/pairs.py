r"""Replacing one record: pairs of record types, searched with pruning.

A replacement takes a record of one type out and puts one of another type in. A column
sees it as a record leaving or entering (exactly one of the two lies in its view), as a
replacement inside (both do), or not at all. With :math:`W(s)` the cost of a record of
type :math:`s` leaving,

.. math:: \mathrm{cost}(s, t) = W(s) + W(t) + \sum_{g \ni s, t} (b_g - 2 o_g),

where :math:`o_g` and :math:`b_g` are the costs of charge :math:`g` for leaving and for
replacing inside. Since :math:`\mathrm{cost}(s,t) \le U(s) + U(t)` with
:math:`U(s) = \sum_{g \ni s} \max(o_g, b_g/2)`, a scan in decreasing :math:`U` stops
early: after one step on partitions, near linear on real workloads. Charges that every
type pays are taken out first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from undertow.privacy.exact import Exact
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    FrontPoint,
    Maximum,
    Row,
    align,
)
from undertow.spaces.influence.integers import Scaled, scale
from undertow.spaces.influence.runs import listed

__all__ = ["PairColumn", "PairFamily"]

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
