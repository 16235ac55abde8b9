"""From kinds of releases to charges: parameters are added before anything is priced."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_claims import Kinds
from undertow.composition.engine_cost import (
    add,
    claim_cost,
    square,
    squared_rate,
    tag_of,
    times,
)
from undertow.privacy.exact import Exact
from undertow.privacy.extended import ext_scale
from undertow.privacy.loss import Loss
from undertow.spaces.change import Charge
from undertow.spaces.influence.integers import scale

__all__ = ["Bundle", "Prices", "charges_of"]

Integers = NDArray[np.int64]


class Prices:
    """The costs of different losses in one notion, remembered per influence.

    Parameters
    ----------
    losses : sequence of Loss
        The different losses.
    notion : str
        The notion of the sum.
    concentrated : str or None
        The notion of the last coordinate of approximate sums.
    """

    def __init__(
        self, losses: Sequence[Loss], notion: str, concentrated: str | None
    ) -> None:
        self.losses, self.notion, self.concentrated = losses, notion, concentrated
        self._known: dict[tuple[int, Exact], tuple[Exact, ...]] = {}

    def claim(self, at: int, influence: Exact) -> tuple[Exact, ...]:
        """Return the cost coordinates of loss number `at` at an influence."""
        key = (at, influence)
        if key not in self._known:
            self._known[key] = claim_cost(
                self.losses[at],
                influence,
                notion=self.notion,
                concentrated=self.concentrated,
            )
        return self._known[key]

    def rates(self) -> tuple[list[Exact], list[Exact], list[bool]]:
        """Return per loss what adds up in front of a and of a squared, and the rest.

        The rest has no such form: (epsilon, delta) losses, and pure ones in GDP.
        """
        linear: list[Exact] = [0] * len(self.losses)
        squared: list[Exact] = [0] * len(self.losses)
        apart = [False] * len(self.losses)
        for at, loss in enumerate(self.losses):
            tag = tag_of(loss)
            if tag == "pure" and self.notion in ("pure", "approx"):
                linear[at] = loss.exact_parameters()[0]
            elif tag == "approx" or (tag == "pure" and self.notion == "gdp"):
                apart[at] = True
            else:
                notion = self.notion
                if notion == "approx":
                    notion = self.concentrated or "gdp"
                squared[at] = squared_rate(loss, notion)
        return linear, squared, apart


def charges_of(kinds: Kinds, counts: Integers, prices: Prices) -> tuple[Charge, ...]:
    """Merge kinds whose claims share one loss; the others stay as they are.

    Parameters
    ----------
    kinds : Kinds
        The claims in use.
    counts : ndarray of int
        How many releases are of each kind.
    prices : Prices
        What the losses cost.
    """
    alone = kinds.lengths() == 1
    columns = kinds.columns[kinds.offsets[:-1][alone]]
    losses = kinds.losses[kinds.offsets[:-1][alone]]
    bundles: dict[tuple[int, ...], Bundle] = {
        (column,): bundle
        for column, bundle in _bundles(columns, losses, counts[alone], prices).items()
    }
    several: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    apart: list[Charge] = []
    for kind in np.flatnonzero(~alone).tolist():
        claims, count = kinds.claims(kind), int(counts[kind])
        seen, held = tuple(sorted({c for c, _ in claims})), {a for _, a in claims}
        if len(held) == 1:
            (only,) = held
            several[seen][only] = several[seen].get(only, 0) + count
        else:
            apart.append(Charge(seen, _Cheapest(seen, claims, count, prices)))
    for seen, amounts in several.items():
        bundles[seen] = _bundle_of(amounts, prices)
    merged = [Charge(seen, bundle) for seen, bundle in bundles.items()]
    return (*merged, *apart)


def _bundles(
    columns: Integers, losses: Integers, counts: Integers, prices: Prices
) -> dict[int, Bundle]:
    """Add up the parameters of all releases with one claim, column by column."""
    linear, squared, apart = prices.rates()
    width = int(columns.max()) + 1 if len(columns) else 0
    sums = [
        _weighted(columns, losses, counts, rates, width) for rates in (linear, squared)
    ]
    rest: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if any(apart):
        chosen = np.array(apart)[losses]
        for column, at, count in zip(
            columns[chosen].tolist(),
            losses[chosen].tolist(),
            counts[chosen].tolist(),
            strict=True,
        ):
            rest[column].append((at, count))
    return {
        column: Bundle(sums[0][column], sums[1][column], rest.get(column, []), prices)
        for column in np.unique(columns).tolist()
    }


def _weighted(
    columns: Integers,
    losses: Integers,
    counts: Integers,
    rates: Sequence[Exact],
    width: int,
) -> list[Exact]:
    """Return for each column the sum of count times rate, exactly."""
    if not any(rates):
        return [0] * width
    scaled = scale(rates)
    numbers, lost = scaled.numerators, np.array(scaled.infinite)
    # At least one: rates may be long even where no release uses them.
    if max(numbers) * max(1, int(counts.sum())) < 2**62:
        totals = np.zeros(width, dtype=np.int64)
        np.add.at(totals, columns, np.array(numbers, dtype=np.int64)[losses] * counts)
        found = totals.tolist()
    else:
        found = [0] * width
        for column, at, count in zip(
            columns.tolist(), losses.tolist(), counts.tolist(), strict=True
        ):
            found[column] += numbers[at] * count
    gone = set(columns[lost[losses]].tolist())
    return [
        math.inf if column in gone else Fraction(total, scaled.denominator)
        for column, total in enumerate(found)
    ]


def _bundle_of(amounts: dict[int, int], prices: Prices) -> Bundle:
    linear, squared, apart = prices.rates()
    return Bundle(
        add(times(n, linear[at]) for at, n in amounts.items()),
        add(times(n, squared[at]) for at, n in amounts.items()),
        [(at, n) for at, n in amounts.items() if apart[at]],
        prices,
    )


class Bundle:
    """Several releases on the same columns, each with one loss for all its claims.

    The least influence of the columns serves every loss alike, so parameters are
    added first: one product per influence, however many releases.

    Parameters
    ----------
    linear, squared : Exact
        What stands in front of the influence and of its square.
    apart : sequence of (int, int)
        Losses that have no such form, with their multiplicities.
    prices : Prices
        What those cost.
    """

    def __init__(
        self,
        linear: Exact,
        squared: Exact,
        apart: Sequence[tuple[int, int]],
        prices: Prices,
    ) -> None:
        self.linear, self.squared, self.apart = linear, squared, list(apart)
        self.prices = prices
        # Equal keys are equal prices: families look at alike releases once.
        self.key = (linear, squared, tuple(sorted(self.apart)))
        self._known: dict[Exact, tuple[Exact, ...]] = {}

    def __call__(self, influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
        """Return the cost coordinates at the least of the influences."""
        influence = influences[0] if len(influences) == 1 else min(influences)
        found = self._known.get(influence)
        if found is None:
            found = self._known[influence] = self._price(influence)
        return found

    def _price(self, influence: Exact) -> tuple[Exact, ...]:
        linear = self.linear if influence == 1 else ext_scale(self.linear, influence)
        if self.prices.notion == "pure":
            return (linear,)
        squared = ext_scale(self.squared, square(influence))
        costs = [(n, self.prices.claim(at, influence)) for at, n in self.apart]
        first = add(times(n, cost[0]) for n, cost in costs)
        if self.prices.notion != "approx":
            return (add((squared, first)),)
        delta = add(times(n, cost[1]) for n, cost in costs)
        epsilon = add((linear, first))
        if self.prices.concentrated is None:
            return (epsilon, delta)
        return (epsilon, delta, squared)


class _Cheapest:
    """Alike releases whose claims state different losses: one claim is chosen."""

    def __init__(
        self,
        columns: tuple[int, ...],
        claims: Sequence[tuple[int, int]],
        count: int,
        prices: Prices,
    ) -> None:
        position = {column: at for at, column in enumerate(columns)}
        self.claims = [(position[column], at) for column, at in claims]
        self.count, self.prices = count, prices

    def __call__(self, influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
        # Smallest epsilon, then smallest delta, both of one and the same claim.
        best = min(self.prices.claim(at, influences[c]) for c, at in self.claims)
        return tuple(times(self.count, value) for value in best)
