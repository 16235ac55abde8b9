"""The value of a query on genotypes, in whole steps of a lattice.

Counts and weighted dosages are sums over people of a value of their genotype. Their
laws are polynomials once these values are whole multiples of a common step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.errors import NotApplicable

__all__ = ["ValueLattice", "read_lattice"]

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
