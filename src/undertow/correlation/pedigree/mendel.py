"""Mendel's laws at one locus: genotypes, the child's law, the founders' law.

A genotype is the number of B alleles a person carries, and every law here is a vector
indexed by it: ``(bb, Bb, BB)``. Which allele is called B is for the user to say; the
reference column of a variant file does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite, check_probability
from undertow.errors import ModelError

__all__ = [
    "MENDEL",
    "Genotype",
    "check_genotype",
    "child_law",
    "hardy_weinberg_law",
    "one_parent_law",
    "read_founder_law",
    "read_genotypes",
]

Law = NDArray[np.float64]

# How far the entries of a founder law may be from summing to one.
_SUM_TOLERANCE = 1e-9


class Genotype(IntEnum):
    """The two alleles of a person at one locus; the value counts the B alleles.

    Examples
    --------
    >>> Genotype.BB + Genotype.Bb
    3
    """

    bb = 0
    Bb = 1
    BB = 2


def _mendel_table() -> Law:
    transmits = np.array([0.0, 0.5, 1.0])  # probability of passing on B
    first, second = transmits[:, None], transmits[None, :]
    table = np.stack(
        [
            (1 - first) * (1 - second),
            first * (1 - second) + (1 - first) * second,
            first * second,
        ],
        axis=-1,
    )
    table.setflags(write=False)
    return table


MENDEL: Law = _mendel_table()
"""Probability of a child's genotype: ``MENDEL[parent, other parent, child]``."""


def child_law(first: int, second: int) -> tuple[float, float, float]:
    r"""Return the law of a child's genotype given those of both parents.

    With t = (0, 1/2, 1) the probability that bb, Bb, BB pass on a B,

    .. math:: \Pr[BB] = t_a t_c, \quad \Pr[bb] = (1-t_a)(1-t_c).

    Parameters
    ----------
    first, second : int or Genotype
        The parents' genotypes; their order does not matter.

    Returns
    -------
    tuple of float
        Probabilities of bb, Bb and BB; exact in binary.

    Notes
    -----
    Definition 5.1 and Table 3 of [1]_, which prints the order BB, Bb, bb.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> child_law(Genotype.BB, Genotype.Bb)
    (0.0, 0.5, 0.5)
    """
    a, c = (check_genotype(value) for value in (first, second))
    bb, mixed, both = MENDEL[a, c].tolist()
    return bb, mixed, both


def hardy_weinberg_law(frequency: float) -> Law:
    r"""Return the genotype law of a founder whose two alleles are independent.

    .. math:: ((1-p)^2,\; 2p(1-p),\; p^2)

    Parameters
    ----------
    frequency : float
        Frequency p of the B allele, in (0, 1).

    Examples
    --------
    >>> hardy_weinberg_law(0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    p = check_probability(frequency, "frequency", open_interval=True)
    return np.array([(1 - p) ** 2, 2 * p * (1 - p), p * p])


def read_founder_law(founder: Iterable[float]) -> Law:
    """Return a founder law given as probabilities of bb, Bb and BB.

    Raises
    ------
    ModelError
        If they are not three non-negative numbers that sum to one.
    """
    law = [check_finite(value, "founder") for value in founder]
    if len(law) != 3 or min(law) < 0 or abs(math.fsum(law) - 1) > _SUM_TOLERANCE:
        raise ModelError(
            "founder must be the probabilities of bb, Bb and BB, non-negative and "
            f"summing to one, got {tuple(law)}."
        )
    return np.array(law) / math.fsum(law)


def one_parent_law(founder: Law) -> Law:
    """Return the child's law given one parent, the other drawn from the founder law.

    Returns
    -------
    ndarray of shape (3, 3)
        Row: the recorded parent; column: the child.

    Examples
    --------
    >>> one_parent_law(hardy_weinberg_law(0.5))[2].tolist()
    [0.0, 0.5, 0.5]
    """
    law: Law = np.einsum("b,abx->ax", founder, MENDEL)
    return law


def check_genotype(value: int) -> int:
    """Return a genotype as the number of its B alleles: 0, 1 or 2."""
    number = check_count(value, "genotype", minimum=0)
    if number > 2:
        raise ValueError(f"genotype must be 0, 1 or 2 B alleles, got {value!r}.")
    return number


def read_genotypes(genotypes: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return genotypes as integers: one for each of `size` people along the last axis.

    Raises
    ------
    ValueError
        If the shape or a value is wrong.
    """
    rows = np.asarray(genotypes)
    if rows.ndim == 0 or rows.shape[-1] != size:
        raise ValueError(
            f"genotypes must be one for each of the {size} people, "
            f"got shape {rows.shape}."
        )
    if not np.isin(rows, (0, 1, 2)).all():
        raise ValueError("genotypes must be 0, 1 or 2 B alleles.")
    return rows.astype(np.int64)
