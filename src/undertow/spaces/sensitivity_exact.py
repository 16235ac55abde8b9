"""Sensitivities found by comparing every pair that decides them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from undertow.errors import AssumptionError
from undertow.privacy.exact import round_up
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import neighbour_pairs
from undertow.spaces.metric import Values, image_or_values
from undertow.spaces.view_range import range_of

__all__ = ["Pair", "Sensitivity", "ratio", "sensitivity", "target_distance"]

Pair = tuple[Database, Database]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The sensitivity of a view, and the pair of databases that attains it.

    Attributes
    ----------
    value : float
        In ``[0, inf]``, rounded up.
    witness : tuple or None
        Two databases at which the ratio is attained; None if the value is 0.
    pairs : int
        How many pairs were compared.
    note : str
        What to know about the value; empty if nothing.
    """

    value: float
    witness: Pair | None
    pairs: int
    note: str = ""

    def __float__(self) -> float:
        return self.value


def sensitivity(
    view: View | Callable[[Any], Any],
    domain: Domain,
    *,
    source: Metric,
    target: Metric,
    edges_only: bool | None = None,
) -> Sensitivity:
    r"""Return the exact sensitivity of a map on an enumerated domain.

    .. math:: \Delta f = \max_{0 < d_1(D, D') < \infty}
              \frac{d_2(f(D), f(D'))}{d_1(D, D')}

    Parameters
    ----------
    view : View or callable
        A deterministic map.
    domain : Domain
        The databases, enumerable.
    source, target : Metric
        The metric on the domain and the one on the values of the view; a granularity
        counts its steps among these (:mod:`undertow.spaces.view_range`).
    edges_only : bool, optional
        Compare neighbours only; left out, exactly for a granularity as `source`.

    Returns
    -------
    Sensitivity
        Infinite as soon as a pair at source distance 0 is told apart, or a pair at
        finite distance is sent to infinite distance.

    Raises
    ------
    AssumptionError
        If the domain cannot be enumerated, or `edges_only` is asked of a metric that
        no neighbour relation generates.

    Notes
    -----
    Thesis, Definition 2.9; paper, Definition III.5. For a canonical source the
    neighbours decide, because distances add along a shortest path. Pairs at infinite
    source distance do not count and stay unprotected.

    Examples
    --------
    >>> from undertow.spaces.domain import Table
    >>> from undertow.spaces.granularity import Bounded, Unbounded
    >>> table = Table(("a", "b"), values_per_cell=1, max_size=3)
    >>> from undertow.spaces.view import Identity
    >>> sensitivity(Identity(), table, source=Bounded(), target=Unbounded()).value
    2.0
    """
    if edges_only and not source.canonical:
        raise AssumptionError(
            "edges_only must be left out for a source metric that no neighbour "
            f"relation generates, got {source.name}."
        )
    by_edges = source.canonical if edges_only is None else edges_only
    pairs = _edges(domain, source) if by_edges else _pairs(domain, source)
    return _largest_ratio(pairs, target_distance(view, domain, target))


def _edges(domain: Domain, source: Metric) -> Iterator[tuple[Pair, float]]:
    assert isinstance(source, Granularity)
    source.require_domain(domain)
    return ((pair, 1.0) for pair in neighbour_pairs(domain, source))


def _pairs(domain: Domain, source: Metric) -> Iterator[tuple[Pair, float]]:
    for pair in combinations(domain.databases(), 2):
        yield pair, source.distance(*pair, domain)


def target_distance(
    view: View | Callable[[Any], Any],
    domain: Domain,
    target: Metric,
    *,
    enumerated: bool = True,
) -> Callable[[Database, Database], float]:
    """Return the distance of the images, remembering each image.

    Chains of a granularity stay inside the range of a view. If the domain need not be
    `enumerated` they may run through the rest of the image: the distance is then a
    lower bound, which is enough to show that a constant is false.
    """
    seen: dict[Database, Any] = {}
    space: Domain = Values()
    if isinstance(view, View):
        view.require_domain(domain)
        space = image_or_values(view, domain)

    def image(database: Database) -> Any:
        if database not in seen:
            seen[database] = (
                view.apply(database, domain)
                if isinstance(view, View)
                else view(database)
            )
        return seen[database]

    def distance(first: Database, second: Database) -> float:
        ours, theirs = image(first), image(second)
        if ours == theirs:
            return 0.0
        if enumerated and isinstance(view, View):
            return round_up(range_of(view, domain).distance(target, ours, theirs))
        return target.distance(ours, theirs, space)

    return distance


def _largest_ratio(
    pairs: Iterator[tuple[Pair, float]], distance: Callable[[Any, Any], float]
) -> Sensitivity:
    best: Fraction | float = Fraction(0)
    witness, compared = None, 0
    for pair, start in pairs:
        if start == math.inf:
            continue
        compared += 1
        stretch = ratio(distance(*pair), start)
        if stretch > best:
            best, witness = stretch, pair
        if best == math.inf:
            break
    note = "" if compared else "no two databases are at finite source distance"
    return Sensitivity(round_up(best), witness, compared, note)


def ratio(moved: float, start: float) -> Fraction | float:
    """Return how far a pair moved per unit, infinite from distance zero."""
    if moved == 0:
        return Fraction(0)
    if start == 0 or moved == math.inf:
        return math.inf
    return Fraction(moved) / Fraction(start)
