"""Random databases and random neighbours, to attack claims that cannot be enumerated.

An attack that finds nothing proves nothing; one that succeeds settles the matter.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from undertow.errors import MismatchError
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.domain import FiniteDomain, Graph, MetricSpace, Rows, Stream, Table

__all__ = ["concrete", "random_database", "random_neighbours"]

# Records drawn where the domain sets no number, and values where it leaves them open.
_FEW_RECORDS = 4
_EXAMPLES: tuple[Hashable, ...] = (0, 1, 2)
# How many neighbours are generated before one of them is drawn.
_GENERATED = 500


def concrete(domain: Domain) -> Domain:
    """Return the domain with three example values wherever it leaves them open.

    A claim that leaves values open holds for every set of values, so a counterexample
    on a few of them is one.
    """
    if isinstance(domain, Table):
        attributes = tuple((n, v or _EXAMPLES) for n, v in domain.attributes)
        if not domain.cells:
            return replace(domain, attributes=attributes or (("value", _EXAMPLES),))
        if attributes:
            return replace(domain, attributes=attributes, values_per_cell=None)
        return replace(domain, values_per_cell=domain.values_per_cell or 2)
    if isinstance(domain, Rows) and domain.values is None:
        attributes = tuple((n, v or _EXAMPLES) for n, v in domain.attributes)
        values = None if attributes else _EXAMPLES
        return replace(domain, attributes=attributes, values=values)
    if isinstance(domain, Stream) and domain.values is None:
        return replace(domain, values=_EXAMPLES)
    return domain


def random_database(domain: Domain, *, rng: np.random.Generator) -> Any:
    """Draw a database of a concrete domain; every database can come out.

    A table without a size limit yields at most four records.
    """
    if isinstance(domain, FiniteDomain | MetricSpace):
        listed = list(domain.databases())
        return listed[rng.integers(len(listed))]
    if isinstance(domain, Table):
        return _random_table(domain, rng)
    if isinstance(domain, Rows):
        return _draws(domain.choices(), len(domain.ids), rng)
    if isinstance(domain, Stream):
        cells = domain.choices()
        return tuple(_draws(cells, domain.times, rng) for _ in range(domain.users))
    if isinstance(domain, Graph):
        return _random_graph(domain, rng)
    raise MismatchError(
        f"domain must be one of the built-in kinds to draw from, got {domain.kind}; "
        "give a sampler."
    )


def random_neighbours(
    domain: Domain, granularity: Granularity, *, rng: np.random.Generator
) -> tuple[Database, Database] | None:
    """Draw a database and one of its first 500 neighbours; None if it has none."""
    database = random_database(domain, rng=rng)
    others = list(islice(granularity.neighbours(database, domain), _GENERATED))
    if not others:
        return None
    return database, others[rng.integers(len(others))]


def _draws(
    choices: tuple[Hashable, ...], number: int, rng: np.random.Generator
) -> tuple[Hashable, ...]:
    return tuple(choices[i] for i in rng.integers(len(choices), size=number))


def _random_table(domain: Table, rng: np.random.Generator) -> tuple[Hashable, ...]:
    universe = tuple(domain.records())
    most = min(domain.greatest_size, max(domain.least_size, _FEW_RECORDS))
    number = int(rng.integers(domain.least_size, int(most) + 1))
    return Table.database(_draws(universe, number, rng))


def _random_graph(
    domain: Graph, rng: np.random.Generator
) -> frozenset[tuple[int, int]]:
    pairs = list(combinations(range(domain.vertices), 2))
    density = rng.random()
    free = [domain.degree_cap] * domain.vertices
    kept = []
    for at in rng.permutation(len(pairs)):
        low, high = pairs[at]
        if rng.random() < density and free[low] and free[high]:
            free[low] -= 1
            free[high] -= 1
            kept.append((low, high))
    return frozenset(kept)
