"""What one given attacker learns from a count or dosage of relatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.method import check_level
from undertow.correlation.pedigree.elimination import (
    conditional_tables,
    require_possible,
)
from undertow.correlation.pedigree.lattice import ValueLattice, read_lattice
from undertow.correlation.pedigree.leakage import laplace_words, pair_words
from undertow.correlation.pedigree.mendel import Genotype
from undertow.correlation.pedigree.pedigree import Pedigree
from undertow.correlation.pedigree.ratio import raised_worst_pair
from undertow.correlation.query import CountQuery, Query
from undertow.correlation.result import Leakage
from undertow.correlation.scope import Scope
from undertow.errors import NotApplicable

__all__ = ["pedigree_adversary_leakage"]

# Known relatives without a value, over whose genotypes the leakage is maximised.
_MOST_OPEN = 10


def pedigree_adversary_leakage(
    pedigree: Pedigree,
    epsilon: float,
    *,
    adversary: Adversary,
    query: Query | None = None,
) -> Leakage:
    """Return what one attacker learns from a noisy count or dosage, exactly.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    epsilon : float
        DP level of the release.
    adversary : Adversary
        Known relatives without a value count with their worst one. Unknown people of
        other families are taken as known, which never lowers the leakage; the value is
        an upper bound then, and otherwise exact.
    query : CountQuery or LinearQuery, optional
        As in :func:`pedigree_leakage`.

    Raises
    ------
    ModelError
        If the known genotypes cannot occur together.

    Notes
    -----
    One elimination: linear in the size of the family, exponential in the number of
    known relatives without a value (at most 10).

    Examples
    --------
    >>> trio = Pedigree.nuclear(1, frequency=0.5)
    >>> known = Adversary(1, {0}, {0: 2})
    >>> round(pedigree_adversary_leakage(trio, 1.0, adversary=known).value, 9)
    2.0
    """
    epsilon, adversary = check_level(epsilon), adversary.within(pedigree.size)
    asked = query if query is not None else CountQuery({Genotype.BB})
    family = next(f for f in pedigree.families if adversary.target in f)
    lattice = read_lattice(asked, pedigree.size, family)
    laws = _laws_facing(pedigree, family, adversary, lattice)
    unit = epsilon * lattice.step / asked.sensitivity(pedigree)
    value, found = raised_worst_pair(laws, unit)
    pair = None if found.row < 0 else pair_words(found.pair)
    alone = set(range(pedigree.size)) <= {*family, *adversary.known}
    return Leakage(
        value,
        "exact elimination for one attacker",
        witness=adversary_witness(adversary, pair=pair),
        tight=True if alone else None,
        method="elimination",
        mechanisms=laplace_words(asked),
        scope=Scope.every_pair(),  # clipped genotypes included
        attackers=adversary.summary,
    )


def _laws_facing(
    pedigree: Pedigree,
    family: Sequence[int],
    adversary: Adversary,
    lattice: ValueLattice,
) -> NDArray[np.float64]:
    """Return the laws of the unknown part of the query, by what the target is."""
    values = pedigree.check_genotypes(adversary.values)
    inside = {j: values[j] for j in family if j in values}
    free = [j for j in family if j in adversary.known and j not in inside]
    if len(free) > _MOST_OPEN:
        raise NotApplicable(
            f"at most {_MOST_OPEN} known relatives may be without a value, got "
            f"{len(free)}; give their values, or use pedigree_leakage."
        )
    degrees = dict(zip(family, lattice.degrees, strict=True))
    unknown = {j: degrees[j] for j in family if j not in adversary.known}
    scope = (*free, adversary.target)
    table = conditional_tables(
        pedigree, family, degrees=unknown, known=inside, free=scope
    ).table
    weights = table.reshape(-1, 3, table.shape[-1])
    totals = weights.sum(axis=-1, keepdims=True)
    require_possible(float(totals.sum()))
    laws: NDArray[np.float64] = weights / np.where(totals > 0, totals, 1.0)
    return laws
