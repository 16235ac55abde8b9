"""Exact inference on a pedigree: summing out people one by one.

Peeling, in the language of genetics. The tables carry the generating function of the
query value, so that its law comes out together with the probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.model import Known
from undertow.correlation.pedigree._draw import draw_rows
from undertow.correlation.pedigree.factor import (
    Factor,
    eliminate,
    elimination_order,
    shift_by_degree,
)
from undertow.correlation.pedigree.lattice import read_lattice
from undertow.correlation.pedigree.pedigree import Pedigree
from undertow.correlation.query import Query
from undertow.errors import ModelError, NotApplicable

__all__ = [
    "QueryLaw",
    "conditional_tables",
    "inheritance_factor",
    "query_law",
    "require_possible",
    "sample_family",
]

# Largest table that elimination may build: 3^14 entries of a tangled pedigree.
_LARGEST_TABLE = 3**14


@dataclass(frozen=True, slots=True, eq=False)
class QueryLaw:
    """The law of a query value.

    Parameters
    ----------
    support : ndarray
        Values, increasing and equally spaced.
    probability : ndarray
        Their probabilities.
    """

    support: NDArray[np.float64]
    probability: NDArray[np.float64]


def inheritance_factor(pedigree: Pedigree, person: int) -> Factor:
    """Return the law of a person given their recorded parents, as a factor."""
    scope = (*pedigree.recorded_parents(person), person)
    return Factor(scope, pedigree.inheritance(person)[..., None])


def query_law(
    pedigree: Pedigree, query: Query, *, known: Known | None = None
) -> QueryLaw:
    """Return the law of a count or dosage, given the genotypes of `known` people.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    query : CountQuery or LinearQuery
        What is counted or summed, over everybody.
    known : mapping of int to int, optional
        Genotypes of known people, by index.

    Raises
    ------
    ModelError
        If the known genotypes cannot occur together.
    NotApplicable
        If the pedigree is too tangled, or the query of another kind.

    Notes
    -----
    Exact up to rounding: only products and sums of non-negative numbers. The cost is
    linear in the number of people and exponential in the width of the pedigree's
    loops; families are convolved.

    Examples
    --------
    >>> from undertow.correlation.query import CountQuery
    >>> trio = Pedigree.nuclear(1, frequency=0.5)
    >>> query_law(trio, CountQuery({2}), known={2: 2}).probability.tolist()
    [0.0, 0.25, 0.5, 0.25]
    """
    given = pedigree.check_genotypes(known or {})
    lattice = read_lattice(query, pedigree.size, range(pedigree.size))
    law: NDArray[np.float64] = np.ones(1)
    for family in pedigree.families:
        degrees = {person: lattice.degrees[person] for person in family}
        inside = {person: given[person] for person in family if person in given}
        table = conditional_tables(pedigree, family, degrees=degrees, known=inside)
        law = np.asarray(np.convolve(law, _normalised(table.table)), dtype=np.float64)
    steps = np.arange(law.size, dtype=np.float64)
    return QueryLaw(lattice.offset + lattice.step * steps, law)


def conditional_tables(
    pedigree: Pedigree,
    family: Sequence[int],
    *,
    degrees: Mapping[int, Sequence[int]] | None = None,
    known: Mapping[int, int] | None = None,
    free: Iterable[int] = (),
) -> Factor:
    """Sum out all of a family but the `free` people, counting the query value.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    family : sequence of int
        One of its families.
    degrees : mapping, optional
        Degrees of the counted people; see :class:`ValueLattice`.
    known : mapping of int to int, optional
        Genotypes of known members; known members are counted too.
    free : iterable of int
        Members whose genotypes stay open.

    Returns
    -------
    Factor
        Over `free`, in that order: joint weight of the known and the free genotypes,
        by query value, up to a common factor.
    """
    counted, given, left = degrees or {}, known or {}, tuple(free)
    factors = [inheritance_factor(pedigree, person) for person in family]
    factors += [Factor((person,), _point(value)) for person, value in given.items()]
    order = _affordable_order(factors, [j for j in family if j not in left])
    result = eliminate(factors, order, degrees=counted)
    for person in left:
        if person in counted:
            result = shift_by_degree(result, person, counted[person])
    return Factor(left, result.aligned(left))


def sample_family(
    pedigree: Pedigree,
    family: Sequence[int],
    known: Mapping[int, int],
    count: int,
    *,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw the genotypes of a family given those of its `known` members.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    family : sequence of int
        One of its families.
    known : mapping of int to int
        Known genotypes.
    count : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (count, len(family))
        Draws from the exact conditional law.

    Notes
    -----
    Each table just before a person is summed out is, up to a factor, their law given
    the people summed out later; so people are drawn in the reverse order.
    """
    factors = [inheritance_factor(pedigree, person) for person in family]
    factors += [Factor((person,), _point(value)) for person, value in known.items()]
    order = _affordable_order(factors, family)
    tables: list[Factor] = []
    total = eliminate(factors, order, keep=tables)
    require_possible(float(total.table.sum()))
    rows = np.zeros((count, max(family) + 1), dtype=np.int64)
    for person, factor in reversed(list(zip(order, tables, strict=True))):
        others = tuple(v for v in factor.scope if v != person)
        table = factor.aligned((*others, person))[..., 0]
        weights = np.broadcast_to(table[tuple(rows[:, v] for v in others)], (count, 3))
        rows[:, person] = draw_rows(weights, rng=rng)
    return rows[:, list(family)]


def _affordable_order(factors: Sequence[Factor], people: Iterable[int]) -> list[int]:
    order, largest = elimination_order([f.scope for f in factors], people)
    if largest > _LARGEST_TABLE:
        raise NotApplicable(
            f"elimination needs tables of at most {_LARGEST_TABLE} entries, got "
            f"{largest:.3g} for this pedigree; the general bound has no such limit."
        )
    return order


def _point(value: int) -> NDArray[np.float64]:
    point = np.zeros((3, 1))
    point[value] = 1.0
    return point


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(weights.sum())
    require_possible(total)
    return weights / total


def require_possible(total: float) -> None:
    """Refuse known genotypes of total weight zero."""
    if not total > 0:
        raise ModelError(
            "known genotypes must be able to occur together under Mendel's laws, "
            "got a combination of probability zero."
        )
