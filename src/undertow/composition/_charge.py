"""What claims cost: notion by notion, and added up before anything is priced.

At influence :math:`a` (the distance its unit moves) a claim costs

====== ============== ================= ==================== ==========================
loss   in pure        in GDP (squares)  in zCDP              in approximate
====== ============== ================= ==================== ==========================
Pure   :math:`εa`     :math:`μ(εa)^2`   :math:`(εa)^2/2`     :math:`(εa, 0)`
GDP    --             :math:`μ^2a^2`    :math:`μ^2a^2/2`     with `delta`, per class
ZCDP   --             --                :math:`ρa^2`         with `delta`, per class
Approx if δ = 0       if δ = 0          if δ = 0             :math:`(εa, δ[a]_ε)`
====== ============== ================= ==================== ==========================

Conversions act per change class, before anything is added, so nothing is ever
converted at distance one and scaled afterwards. Sums are read as losses again, and of
several losses that all occur the largest counts.

Releases on the same columns become one charge: their parameters are added exactly.
Where every release has one claim, the charges of very many columns are priced for all
runs of a family at once, in one pass over the claims.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self, overload

import numpy as np

from undertow.composition._claim_table import (
    WORD,
    ClaimTable,
    ColumnSums,
    Kinds,
    column_sums,
    integer_sums,
)
from undertow.errors import AssumptionError, NotionMismatchError
from undertow.numeric.array import Ints
from undertow.numeric.exact import Exact, Number, exact, ext_scale, round_up
from undertow.privacy.conversion import pure_to_gdp
from undertow.privacy.group import group
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.change import Charge
from undertow.spaces.influence._run import ChargeTable, RunCosts, RunTable, scale

FITS: dict[str, frozenset[str]] = {
    "pure": frozenset({"pure"}),
    "gdp": frozenset({"pure", "gdp"}),
    "zcdp": frozenset({"pure", "gdp", "zcdp"}),
    "approx": frozenset({"pure", "approx"}),
}
"""The notions a sum can be taken in, best first, and what can be restated in each
without choosing a delta."""


def tag_of(loss: Loss) -> str:
    """Return the notion of a loss; an approximate one with no delta is pure."""
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        return "pure"
    return loss.notion


def first_notion(releases: Collection[Collection[str]]) -> str | None:
    """Return the first notion in which every release has a claim; None without one."""
    for notion, fits in FITS.items():
        if all(not fits.isdisjoint(tags) for tags in releases):
            return notion
    return None


def one_notion(losses: Iterable[Loss]) -> type[Loss]:
    """Return the notion all `losses` share; ``Pure`` where there are none.

    Raises
    ------
    NotionMismatchError
        If two notions meet.
    """
    notions = {type(loss): loss for loss in losses}
    if len(notions) > 1:
        names = " and ".join(sorted(notion.notion for notion in notions))
        raise NotionMismatchError(
            f"losses must be of one notion, got {names}; "
            "convert them first (undertow.privacy.conversion)."
        )
    return next(iter(notions), Pure)


def loss_of(notion: str, *parameters: Exact) -> Loss:
    """Return the loss of a notion with these additive parameters.

    Examples
    --------
    >>> loss_of("gdp", 25), loss_of("approx", 2, 3)
    (GDP(mu=5), Approx(epsilon=2, delta=1))
    """
    values = [as_exact(value) for value in parameters]
    if notion == "approx":
        return Approx.capped(*values)
    if notion == "gdp":
        return GDP.from_square(*values)
    return ZCDP(*values) if notion == "zcdp" else Pure(*values)


def largest(losses: Sequence[Loss]) -> Loss:
    """Return the largest loss; of an `Approx`, the maximum in each coordinate."""
    if one_notion(losses) is Approx:
        columns = zip(*(loss.exact_parameters() for loss in losses), strict=True)
        found = loss_of("approx", *(max(column) for column in columns))
    else:
        found = max(losses, key=lambda x: x.exact_parameters(), default=Pure.zero())
    return found.of_continuous_noise(any(loss.continuous for loss in losses))


@dataclass(frozen=True, slots=True)
class ApproxProfile:
    r"""Several :math:`(\varepsilon_j, \delta_j)`, of which each neighbour pair has one.

    .. math:: \delta(\varepsilon) = \max_j \delta_j(\varepsilon)

    Parameters
    ----------
    pairs : tuple of Approx
        None of them dominated by another.

    Notes
    -----
    The composed mechanism satisfies the pointwise maximum of the privacy profiles of
    its pairs, which is stronger than the single pair of paper, Theorem VI.6 and
    Theorem A.13.

    Examples
    --------
    >>> profile = ApproxProfile.of([Approx(1, "1e-6"), Approx("0.5", "1e-5")])
    >>> profile.as_pair(), profile.delta(2) == 1e-5, profile.delta("0.5") < 0.29
    (Approx(epsilon=1, delta=0.00001), True, True)
    """

    pairs: tuple[Approx, ...]

    @classmethod
    def of(cls, losses: Iterable[Loss]) -> Self:
        """Keep the pairs that no other pair dominates, largest epsilon first.

        Raises
        ------
        NotionMismatchError
            If a loss is not an `Approx`.
        """
        kept: list[Approx] = []
        different = set(losses)
        for loss in sorted(different, key=lambda x: x.exact_parameters(), reverse=True):
            if not isinstance(loss, Approx):
                raise NotionMismatchError(
                    f"a profile must be of Approx losses, got {type(loss).__name__}."
                )
            if not kept or loss.exact_parameters()[1] > kept[-1].exact_parameters()[1]:
                kept.append(loss)
        return cls(tuple(kept))

    def as_pair(self) -> Approx:
        """Return the one pair that covers all: the maximum in each coordinate."""
        pair = largest(self.pairs or (Approx.zero(),))
        assert isinstance(pair, Approx)
        return pair

    def delta(self, epsilon: Number) -> float:
        r"""Return the delta that holds at `epsilon`, rounded up.

        Notes
        -----
        A single pair gives :math:`\delta_j` from :math:`\varepsilon_j` on, and below it
        :math:`1 - (1-\delta_j)(1+e^{\varepsilon})/(1+e^{\varepsilon_j})`, the line
        through the kink of its trade-off function.
        """
        level = exact(epsilon, "epsilon")
        return max((_delta_of_pair(pair, level) for pair in self.pairs), default=0.0)


def _delta_of_pair(pair: Approx, epsilon: Exact) -> float:
    own, delta = pair.exact_parameters()
    if epsilon >= own:
        return round_up(delta)
    if own == math.inf:
        return 1.0
    gap, small = float(epsilon - own), math.exp(-float(own))
    value = (-math.expm1(gap) + pair.delta * (small + math.exp(gap))) / (1 + small)
    return min(1.0, value * (1 + _SLACK))


# Four correctly rounded operations and two exponentials of one unit in the last place.
_SLACK = 2.0**-48

# The price of one claim.


def claim_cost(
    loss: Loss, influence: Exact, *, notion: str, concentrated: str | None = None
) -> tuple[Exact, ...]:
    """Return the cost coordinates of one claim at one influence.

    Examples
    --------
    >>> claim_cost(Pure("0.1"), 3, notion="pure")
    (Fraction(3, 10),)
    """
    if notion != "approx":
        return (_one(loss, influence, notion),)
    third: tuple[Exact, ...] = () if concentrated is None else (0,)
    if tag_of(loss) == "pure":
        return (ext_scale(loss.exact_parameters()[0], influence), 0, *third)
    if isinstance(loss, Approx):
        return (*_approx(loss, influence), *third)
    return (0, 0, _one(loss, influence, str(concentrated)))


def _one(loss: Loss, influence: Exact, notion: str) -> Exact:
    parameter = loss.exact_parameters()[0]
    if notion == "pure":
        return ext_scale(parameter, influence)
    if tag_of(loss) == "pure" and notion == "gdp":
        epsilon = ext_scale(parameter, influence)
        return pure_to_gdp(Pure(as_exact(epsilon))).exact_parameters()[0]
    return ext_scale(squared_rate(loss, notion), square(influence))


def squared_rate(loss: Loss, notion: str) -> Exact:
    """Return the coefficient of the squared influence in GDP squares or zCDP."""
    parameter = loss.exact_parameters()[0]
    if loss.notion == notion:
        return parameter
    if tag_of(loss) == "pure":
        parameter = square(parameter)
    return parameter if parameter == math.inf else Fraction(parameter) / 2


def _approx(loss: Approx, influence: Exact) -> tuple[Exact, Exact]:
    epsilon, delta = loss.exact_parameters()
    if influence == math.inf:
        return math.inf, math.inf
    if influence == 0:
        return 0, 0
    if Fraction(influence).denominator != 1:
        raise AssumptionError(
            "an (epsilon, delta) loss must be read at whole distances, got "
            f"{influence}; state the loss as pure, zCDP or GDP.",
            source="paper, Theorem VI.3",
        )
    whole = group(Approx(as_exact(epsilon), as_exact(delta)), int(influence))
    assert isinstance(whole, Approx)
    return ext_scale(epsilon, influence), whole.exact_parameters()[1]


def as_exact(value: Exact) -> Fraction | float:
    """Keep exact values exact: a float would be read through its decimal form."""
    return math.inf if value == math.inf else Fraction(value)


def square(value: Exact) -> Exact:
    """Return the square, infinite values staying infinite."""
    return math.inf if value == math.inf else value * value


def times(count: int, value: Exact) -> Exact:
    """Return a positive multiple."""
    return math.inf if value == math.inf else count * value


def add(values: Iterable[Exact]) -> Exact:
    """Return the exact sum; infinite as soon as one term is."""
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total


# From kinds of releases to charges: parameters are added before anything is priced.


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

    def cheapest(
        self, claims: Iterable[tuple[int, int]], influences: Mapping[int, Exact]
    ) -> tuple[int, int]:
        """Return the claim, as (column, loss), that costs least at the influences."""
        return min(
            claims, key=lambda one: self.claim(one[1], influences.get(one[0], 0))
        )

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


def charges_of(kinds: Kinds, counts: Ints, prices: Prices) -> tuple[Charge, ...]:
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
    columns: Ints, losses: Ints, counts: Ints, prices: Prices
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
    columns: Ints,
    losses: Ints,
    counts: Ints,
    rates: Sequence[Exact],
    width: int,
) -> list[Exact]:
    """Return for each column the sum of count times rate, exactly."""
    if not any(rates):
        return [0] * width
    scaled = scale(rates)
    totals = integer_sums(
        columns, losses, counts, numbers=scaled.numerators, width=width
    )
    gone = set(columns[np.array(scaled.infinite)[losses]].tolist())
    return [
        math.inf if column in gone else Fraction(int(total), scaled.denominator)
        for column, total in enumerate(totals)
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


# The charges of very many columns, priced for all runs of a family at once.
#
# Where every release has one claim, what the releases on a column cost at an influence
# is a sum over losses. It is taken for all columns in one pass over the claims: once
# where the cost is a rate in front of the influence or of its square, and once per
# influence otherwise. A family that does not keep its runs in arrays finds the same
# charges one by one.


class ColumnCharges(ChargeTable):
    """One charge per column, for releases with one claim each.

    Parameters
    ----------
    table : ClaimTable
        The releases; every column has one at least.
    prices : Prices
        What the losses cost.
    sums : ColumnSums, optional
        The rates of each column added up, where they are known.
    """

    def __init__(
        self, table: ClaimTable, prices: Prices, sums: ColumnSums | None = None
    ) -> None:
        assert table.release_of is None, "several claims per release"
        self.table, self.prices = table, prices
        if sums is not None:
            self._sums = sums

    def run_costs(self, runs: RunTable, *, coordinate: int) -> RunCosts | None:
        """Return one cost coordinate of every run.

        None where that is no short sum: fractional distances, which (epsilon, delta)
        losses refuse one by one; more pairs of an influence and a loss than claims;
        rates without a common denominator of reasonable size.
        """
        if self._rates is not None:
            return self._proportional(runs, self._rates[1])
        values = list(dict.fromkeys(runs.values))
        fractional = any(isinstance(v, Fraction) and v.denominator != 1 for v in values)
        long = len(values) * len(self.table.losses) > len(self.table.loss_of)
        if (fractional and self.prices.notion == "approx") or long or not values:
            return None
        return self._by_value(runs, values, coordinate)

    @cached_property
    def _rates(self) -> tuple[Sequence[Exact], int] | None:
        """The rates, and the power of the influence they stand in front of."""
        linear, squared, apart = self.prices.rates()
        if self.prices.notion == "approx" or any(apart):
            return None
        return (linear, 1) if self.prices.notion == "pure" else (squared, 2)

    @cached_property
    def _sums(self) -> ColumnSums | None:
        """The rates of each column added up; None where they have no short form."""
        if self._rates is None or scale(self._rates[0]).rounded:
            return None
        return column_sums(self.table, [self._rates[0]])[0]

    def _proportional(self, runs: RunTable, power: int) -> RunCosts | None:
        values = runs.values if power == 1 else [square(v) for v in runs.values]
        factors, sums = scale(values), self._sums
        if sums is None or factors.rounded:
            return None
        lost = np.array(factors.infinite, dtype=bool)[runs.which]
        infinite = sums.infinite[runs.columns] | lost
        numerators = _products(sums.numerators, factors.numerators, runs)
        return RunCosts(numerators, infinite, sums.denominator * factors.denominator)

    def _by_value(
        self, runs: RunTable, values: Sequence[Exact], coordinate: int
    ) -> RunCosts:
        losses = range(len(self.table.losses))
        sums = column_sums(
            self.table,
            [[self.prices.claim(at, v)[coordinate] for at in losses] for v in values],
        )
        place = {value: at for at, value in enumerate(values)}
        which = np.array([place[v] for v in runs.values], np.int64)[runs.which]
        infinite = np.array([one.infinite for one in sums])[which, runs.columns]
        return RunCosts(_picked(sums, which, runs), infinite, sums[0].denominator)

    def merged(self, groups: Ints) -> ColumnCharges:
        """Return one charge for each group of columns, numbered without gaps."""
        firsts = np.unique(groups, return_index=True)[1].tolist()
        table = replace(
            self.table,
            columns=tuple(self.table.columns[at] for at in firsts),
            column_of=groups.astype(np.int32).take(self.table.column_of),
        )
        sums = None if self._sums is None else self._sums.merged(groups)
        return ColumnCharges(table, self.prices, sums)

    def __len__(self) -> int:
        return len(self.table.columns)

    @overload
    def __getitem__(self, at: int) -> Charge: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Charge]: ...

    def __getitem__(self, at: int | slice) -> Charge | Sequence[Charge]:
        return self._listed[at]

    def __iter__(self) -> Iterator[Charge]:
        return iter(self._listed)

    @cached_property
    def _listed(self) -> tuple[Charge, ...]:
        if self._sums is None or self._rates is None:
            return charges_of(self.table.kinds, self.table.counts, self.prices)
        linear = self._rates[1] == 1
        bundles = (
            Bundle(rate if linear else 0, 0 if linear else rate, (), self.prices)
            for rate in self._sums.values()
        )
        return tuple(Charge((at,), bundle) for at, bundle in enumerate(bundles))


def _products(
    sums: Ints | list[int], factors: Sequence[int], runs: RunTable
) -> Ints | list[int]:
    """Return the sum of each run's column times the factor of the run."""
    if isinstance(sums, np.ndarray):
        largest = max(1, int(sums.max(initial=0))) * max(factors, default=0)
        if largest * len(runs) < WORD:
            product: Ints = np.array(factors, np.int64)[runs.which]
            product *= sums[runs.columns]
            return product
        sums = sums.tolist()
    places = zip(runs.columns.tolist(), runs.which.tolist(), strict=True)
    return [sums[column] * factors[at] for column, at in places]


def _picked(
    sums: Sequence[ColumnSums], which: Ints, runs: RunTable
) -> Ints | list[int]:
    """Return for each run the sum of its column at its own influence."""
    arrays = [s.numerators for s in sums if isinstance(s.numerators, np.ndarray)]
    if len(arrays) == len(sums):
        if max(int(a.max(initial=0)) for a in arrays) * len(runs) < WORD:
            picked: Ints = np.array(arrays)[which, runs.columns]
            return picked
    lists = [list(one.numerators) for one in sums]
    places = zip(which.tolist(), runs.columns.tolist(), strict=True)
    return [int(lists[at][column]) for at, column in places]
