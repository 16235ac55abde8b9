"""Tables that carry a generating function of the query value, and its lattice.

A factor maps the values of its variables to a polynomial; the coefficient of degree d
is the weight of those completions whose query value is d lattice steps. Products and
sums of non-negative numbers only, so nothing cancels.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.errors import NotApplicable

Table = NDArray[np.float64]
Degrees = Mapping[int, Sequence[int]]
"""For each counted variable, the degree that each of its values adds."""


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A table over the variables `scope`; the last axis holds the polynomial.

    Parameters
    ----------
    scope : tuple of int
        One variable for each axis but the last, all different.
    table : ndarray
        Non-negative.
    """

    scope: tuple[int, ...]
    table: Table

    def aligned(self, scope: Sequence[int]) -> Table:
        """Return the table with the axes of `scope`, of length one where it lacks."""
        order = [self.scope.index(v) for v in scope if v in self.scope]
        moved = self.table.transpose(*order, self.table.ndim - 1)
        sizes = iter(moved.shape)
        shape = [next(sizes) if v in self.scope else 1 for v in scope]
        return moved.reshape(*shape, self.table.shape[-1])


def multiply(first: Factor, second: Factor) -> Factor:
    """Return the product, a table over the union of the two scopes."""
    scope = (*first.scope, *(v for v in second.scope if v not in first.scope))
    return Factor(
        scope, _polynomial_product(first.aligned(scope), second.aligned(scope))
    )


def _polynomial_product(a: Table, b: Table) -> Table:
    if a.shape[-1] < b.shape[-1]:
        a, b = b, a
    if b.shape[-1] == 1:
        return a * b
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    length = a.shape[-1]
    product = np.zeros((*lead, length + b.shape[-1] - 1))
    for degree in range(b.shape[-1]):
        product[..., degree : degree + length] += a * b[..., degree : degree + 1]
    return product


def polynomial_power(table: Table, exponent: int) -> Table:
    """Return each polynomial of a table to the power `exponent`.

    Examples
    --------
    >>> polynomial_power(np.array([0.5, 0.5]), 2).tolist()
    [0.25, 0.5, 0.25]
    """
    power: Table = np.ones((*table.shape[:-1], 1))
    for _ in range(exponent):
        power = _polynomial_product(power, table)
    return power


def shift_by_degree(factor: Factor, variable: int, degrees: Sequence[int]) -> Factor:
    """Multiply by the monomial whose degree is that of the variable's value."""
    axis = factor.scope.index(variable)
    length = factor.table.shape[-1]
    shape = (*factor.table.shape[:-1], length + max(degrees))
    shifted = np.zeros(shape)
    source, goal = np.moveaxis(factor.table, axis, 0), np.moveaxis(shifted, axis, 0)
    for value, degree in enumerate(degrees):
        goal[value, ..., degree : degree + length] = source[value]
    return Factor(factor.scope, shifted)


def sum_out(
    factor: Factor, variable: int, degrees: Sequence[int] | None = None
) -> Factor:
    """Sum over a variable; with `degrees`, counting its value in the polynomial."""
    if degrees is not None and max(degrees) > 0:
        factor = shift_by_degree(factor, variable, degrees)
    axis = factor.scope.index(variable)
    scope = factor.scope[:axis] + factor.scope[axis + 1 :]
    return Factor(scope, factor.table.sum(axis=axis))


def elimination_order(
    scopes: Iterable[Iterable[int]],
    variables: Iterable[int],
    *,
    sizes: Mapping[int, int] | None = None,
) -> tuple[list[int], float]:
    """Return an order in which to sum out `variables`, and the largest table on it.

    Greedy: always the variable whose table will be smallest. The order never changes
    the result, only its cost.

    Parameters
    ----------
    scopes : iterable
        The variables of each factor.
    variables : iterable of int
        Those to sum out.
    sizes : mapping, optional
        Number of values of each variable; 3 by default.

    Examples
    --------
    >>> elimination_order([(0,), (0, 1), (1, 2)], [0, 1])
    ([0, 1], 9.0)
    """
    known, wanted = sizes or {}, set(variables)
    tied = _tied(scopes, wanted)
    cost = {v: _entries(v, tied, known) for v in wanted}
    waiting = [(entries, v) for v, entries in cost.items()]
    heapq.heapify(waiting)
    order, largest = list[int](), 1.0
    while waiting:
        entries, chosen = heapq.heappop(waiting)
        if chosen not in wanted or entries != cost[chosen]:
            continue  # an old price
        wanted.remove(chosen)
        order.append(chosen)
        largest = max(largest, entries)
        around = tied.pop(chosen)
        for v in around:  # summing out ties the neighbours to each other
            tied[v] = (tied[v] | around) - {v, chosen}
        for v in around & wanted:
            cost[v] = _entries(v, tied, known)
            heapq.heappush(waiting, (cost[v], v))
    return order, largest


def _tied(
    scopes: Iterable[Iterable[int]], variables: Iterable[int]
) -> dict[int, set[int]]:
    """Return for each variable those that share a factor with it."""
    tied: dict[int, set[int]] = {v: set() for v in variables}
    for scope in scopes:
        listed = set(scope)
        for v in listed:
            tied.setdefault(v, set()).update(listed - {v})
    return tied


def _entries(
    variable: int, tied: Mapping[int, set[int]], sizes: Mapping[int, int]
) -> float:
    """Return the size of the table in which a variable would be summed out."""
    entries = float(sizes.get(variable, 3))
    for other in tied[variable]:
        entries *= sizes.get(other, 3)
    return entries


def eliminate(
    factors: Iterable[Factor],
    variables: Sequence[int],
    *,
    degrees: Degrees | None = None,
    keep: list[Factor] | None = None,
) -> Factor:
    """Multiply all factors and sum out `variables`, in the given order.

    Parameters
    ----------
    factors : iterable of Factor
        What to multiply.
    variables : sequence of int
        What to sum out.
    degrees : mapping, optional
        Degrees of the counted variables among them.
    keep : list, optional
        Receives, for each variable, the product just before it was summed out.

    Returns
    -------
    Factor
        Over the variables left, up to a common power of two.
    """
    degrees, live = degrees or {}, list(factors)
    for variable in variables:
        product = _product([f for f in live if variable in f.scope])
        live = [f for f in live if variable not in f.scope]
        if keep is not None:
            keep.append(product)
        summed = sum_out(product, variable, degrees.get(variable))
        live.append(Factor(summed.scope, _rescaled(summed.table)))
    return _product(live)


def _rescaled(table: Table) -> Table:
    """Divide by a power of two, which is exact, so that long products stay in range."""
    top = float(table.max(initial=0.0))
    return table if top == 0 else np.ldexp(table, -math.frexp(top)[1])


def _product(factors: Sequence[Factor]) -> Factor:
    product = Factor((), np.ones(1))
    for factor in sorted(factors, key=lambda f: f.table.size):
        product = multiply(product, factor)
    return product


# The value of a query on genotypes, in whole steps of a lattice.
#
# Counts and weighted dosages are sums over people of a value of their genotype. Their
# laws are polynomials once these values are whole multiples of a common step.

# Most steps that one query on one family may span.
_MOST_STEPS = 1024

Values = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class ValueLattice:
    """Values of people's genotypes: an offset plus whole numbers of steps.

    Parameters
    ----------
    degrees : tuple of tuple of int
        For each person, the steps of bb, Bb and BB; the least of them is 0.
    step : float
        Size of one step.
    offset : float
        Value of the query when every degree is 0.
    """

    degrees: tuple[tuple[int, int, int], ...]
    step: float
    offset: float

    @property
    def span(self) -> int:
        """Number of steps between the least and the greatest value."""
        return sum(max(person) for person in self.degrees)


def read_lattice(query: Query, size: int, people: Sequence[int]) -> ValueLattice:
    """Return the values of `query` on `people`, out of `size` in all.

    Parameters
    ----------
    query : CountQuery or LinearQuery
        A count of genotypes, or a weighted sum of numbers of B alleles. Weights and
        clip bounds are read as the decimals they print as.
    size : int
        Number of people of the pedigree.
    people : sequence of int
        Those whose values are wanted.

    Raises
    ------
    NotApplicable
        For another query, or weights without a common step that is not tiny.

    Examples
    --------
    >>> read_lattice(CountQuery({2}), 3, [0, 1]).degrees
    ((0, 0, 1), (0, 0, 1))
    >>> read_lattice(LinearQuery((1.0, 0.5)), 2, [0, 1])
    ValueLattice(degrees=((0, 2, 4), (0, 1, 2)), step=0.5, offset=0.0)
    """
    listed = _person_values(query, size)
    values = [listed[person] for person in people]
    gaps = [value - min(person) for person in values for value in person]
    step = _common_step(gaps)
    span = sum((max(person) - min(person) for person in values), Fraction(0))
    if span / step > _MOST_STEPS:
        raise NotApplicable(
            f"elimination needs values on a lattice of at most {_MOST_STEPS} steps for "
            f"a family, got {math.ceil(span / step)}; round the weights, or use the "
            "general bound, which needs no lattice."
        )
    degrees = tuple(
        (_steps(v[0], v, step), _steps(v[1], v, step), _steps(v[2], v, step))
        for v in values
    )
    offset = sum((min(person) for person in values), Fraction(0))
    return ValueLattice(degrees, float(step), float(offset))


def _steps(value: Fraction, person: Values, step: Fraction) -> int:
    return int((value - min(person)) / step)


def _person_values(query: Query, size: int) -> list[Values]:
    if isinstance(query, CountQuery):
        return [_count_values(query)] * size
    if isinstance(query, LinearQuery):
        return _linear_values(query, size)
    raise NotApplicable(
        "elimination needs a count or a linear query with Laplace noise, got "
        f"{query.name!r}; the general bound holds for every mechanism."
    )


def _count_values(query: CountQuery) -> Values:
    stray = sorted(query.states - {0, 1, 2})
    if stray:
        raise ValueError(
            f"states must be genotypes 0 (bb), 1 (Bb) or 2 (BB), got {stray[0]}."
        )
    counted = [Fraction(int(genotype in query.states)) for genotype in range(3)]
    return counted[0], counted[1], counted[2]


def _linear_values(query: LinearQuery, size: int) -> list[Values]:
    if query.gap is not None:
        raise NotApplicable(
            "elimination covers every pair of genotypes and has no use for a gap, got "
            f"gap={query.gap}; leave it out."
        )
    low, high = query.clip if query.clip is not None else (0.0, 2.0)
    clipped = [min(max(_decimal(low), Fraction(g)), _decimal(high)) for g in range(3)]
    weights = [_decimal(weight) for weight in query.weights_for(size)]
    return [(w * clipped[0], w * clipped[1], w * clipped[2]) for w in weights]


def _decimal(value: float) -> Fraction:
    """Read a float as the decimal it prints as, so that 0.1 and 0.3 share a step."""
    return Fraction(repr(float(value)))


def _common_step(gaps: Sequence[Fraction]) -> Fraction:
    moved = [gap for gap in gaps if gap]
    if not moved:
        return Fraction(1)
    below = math.lcm(*(gap.denominator for gap in moved))
    return Fraction(math.gcd(*(int(gap * below) for gap in moved)), below)
