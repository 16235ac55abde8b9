r"""Any set of at most :math:`m` items: cells of a record, recorded times of a user.

One change touches up to :math:`m` items the caller cannot foresee, so the worst case is
a choice of the heaviest. Replacing one set by another touches each item once (it is in
exactly one of the two sets) or twice (in both):

* add or remove: the :math:`m` largest costs;
* replace: :math:`n_1 + 2 n_2 \le 2m`, items in one set taking one slot and items in
  both taking two. Top :math:`2m` where being in both costs no more than being in one,
  twice the top :math:`m` where it costs double, solved exactly in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from undertow.privacy.exact import Exact
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    Maximum,
    Row,
    align,
)
from undertow.spaces.influence.integers import scale

__all__ = ["SlotColumn", "TopFamily"]


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
            if items is None or (len(items) > 1 and not _spreads(seen)):
                most = charge.price(tuple(column.most for column in seen))
                constant = _add(constant, most[coordinate])
            elif len(items) == 1:
                ones = charge.price(tuple(column.one for column in seen))
                boths = charge.price(tuple(column.both for column in seen))
                one[items[0]] = _add(one[items[0]], ones[coordinate])
                both[items[0]] = _add(both[items[0]], boths[coordinate])
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
                costs[item] = _add(costs[item], share)

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
        total, chosen = _fill(candidates, one, both, slots)
        if chosen[0] or self.equal_sets:
            return total, chosen
        # The two sets must differ: some item lies in exactly one of them.
        forced = []
        for item in candidates:
            rest = [other for other in candidates if other != item]
            value, (once, twice) = _fill(rest, one, both, slots - 1)
            forced.append((value + one[item], (tuple(sorted((*once, item))), twice)))
        return max(forced, key=lambda option: option[0])


def _fill(
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


def _spreads(seen: Sequence[SlotColumn]) -> bool:
    # A chord needs a convex price: one claim, with a finite influence.
    return len(seen) == 1 and seen[0].most not in (0, math.inf)


def _add(first: Exact, second: Exact) -> Exact:
    return math.inf if math.inf in (first, second) else first + second
