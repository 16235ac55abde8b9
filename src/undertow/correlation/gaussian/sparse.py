"""Gaussian records given by a sparse inverse covariance, up to millions of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.gaussian.banded import BandedPrecision
from undertow.correlation.gaussian.covariance import check_mean, connected_blocks
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    block_limits,
    known_values,
)
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.signed import precision_factor
from undertow.errors import ModelError, NotApplicable

__all__ = ["SparseGaussian"]

Array = NDArray[np.float64]

# Entries of the covariances of all blocks that are written out at most.
_LARGEST_DENSE = 20_000_000


class SparseGaussian(GaussianModel):
    r"""Gaussian records with the precision matrix :math:`\Lambda = \Sigma^{-1}`.

    Parameters
    ----------
    precision : array_like or scipy.sparse array of shape (n, n)
        Symmetric positive definite; of narrow band after reordering if n is large.
        Exact zeros are structural.
    mean : array_like of shape (n,), optional
        Zero by default.

    Raises
    ------
    ModelError
        If the matrix is not symmetric positive definite, or too wide to factor.

    Examples
    --------
    >>> from scipy.sparse import diags
    >>> walk = diags([[-0.4], [1.0], [-0.4]], offsets=[-1, 0, 1], shape=(9, 9))
    >>> SparseGaussian(walk).summary
    '9 Gaussian records of sparse precision in groups of at most 9'
    """

    def __init__(self, precision: Any, mean: ArrayLike | None = None) -> None:
        super().__init__()
        self._precision = _check_precision(precision)
        self._mean = check_mean(mean, self.size)
        self._factored = BandedPrecision(self._precision)
        self._groups = connected_blocks(self._precision)
        self._largest = max(len(group) for group in self._groups)

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self._precision.shape[0])

    @property
    def precision(self) -> Any:
        """The precision matrix, as a sparse array."""
        return self._precision

    @property
    def mean(self) -> Array:
        """Mean of each record, read-only."""
        return self._mean

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return self._largest

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records of sparse precision in groups of at most "
            f"{self.largest_group}"
        )

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        covariances = [block.covariance for block, _ in self.blocks()]
        return block_limits(covariances, inverted=True)

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the different blocks, each with the weights of its records."""
        if self.size * self.largest_group > _LARGEST_DENSE:
            raise NotApplicable(
                "the covariances of the blocks must have at most "
                f"{_LARGEST_DENSE} entries to be written out, got "
                f"{self.size * self.largest_group}; use method='structured' or "
                "'general'."
            )
        a = np.ones(self.size) if weights is None else weights
        sizes = np.array([len(group) for group in self._groups])
        found: list[tuple[Block, Array]] = []
        for size in np.unique(sizes).tolist():
            chosen = np.array([self._groups[j] for j in np.flatnonzero(sizes == size)])
            found.extend(self._blocks_of(chosen, a))
        return tuple(found)

    def _blocks_of(self, groups: NDArray[np.intp], a: Array) -> list[Any]:
        """Return the different blocks among groups (rows of records) of one size."""
        count, size = groups.shape
        label = np.full(self.size, -1)
        label[groups.ravel()] = np.repeat(np.arange(count), size)
        place = np.zeros(self.size, dtype=np.intp)
        place[groups.ravel()] = np.tile(np.arange(size), count)
        entries = self._precision.tocoo()
        rows, columns = entries.row, entries.col
        mine = label[rows] >= 0
        dense = np.zeros((count, size, size))
        dense[label[rows[mine]], place[rows[mine]], place[columns[mine]]] = (
            self._precision.data[mine]
        )
        table = np.concatenate([dense.reshape(count, -1), a[groups]], axis=1)
        _, firsts = np.unique(table, axis=0, return_index=True)
        return [
            (Block(tuple(groups[j].tolist()), _inverse(dense[j])), a[groups[j]])
            for j in np.sort(firsts)
        ]

    def structured(self) -> ShiftFactor:
        """Return the worst factor from the signs of the precision matrix."""
        return precision_factor(self._precision, factored=self._factored)

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        units = np.zeros((self.size, len(places)))
        units[places, np.arange(len(places))] = 1.0
        return self._factored.solve(units)

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        return self._mean + self._factored.sample(count, rng=rng)

    def sample_given(
        self, known: Mapping[int, Any], count: int, *, rng: np.random.Generator
    ) -> Array:
        """Draw `count` databases given the values of the `known` records.

        The unknown records have the precision of their own rows and columns, which is
        as sparse; nothing dense is formed.
        """
        count = check_count(count, "count")
        places, values = known_values(self, known)
        unknown = np.setdiff1d(np.arange(self.size), places)
        draws = np.empty((count, self.size))
        draws[:, places] = values
        if len(unknown):
            rows = self._precision[unknown]
            factored = BandedPrecision(rows[:, unknown])
            pull = rows[:, places] @ (values - self._mean[places])
            centre = self._mean[unknown] - factored.solve(pull)
            draws[:, unknown] = centre + factored.sample(count, rng=rng)
        return draws


def _check_precision(precision: Any) -> Any:
    from scipy.sparse import csr_array, issparse

    matrix: Any = precision if issparse(precision) else np.atleast_2d(precision)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ModelError(
            f"precision must be a square matrix, got an array of shape {matrix.shape}."
        )
    sparse: Any = csr_array(matrix).astype(float)
    sparse.sum_duplicates()
    if not np.all(np.isfinite(sparse.data)):
        raise ModelError("precision must be finite, got an entry that is not.")
    skew = abs(sparse - sparse.T)
    if skew.nnz and skew.max() > 1e-9 * np.abs(sparse.diagonal()).max():
        raise ModelError(
            f"precision must be symmetric, got entries that differ by {skew.max():.3g}."
        )
    if skew.nnz and skew.max() > 0:
        sparse = csr_array((sparse + sparse.T) / 2)
    sparse.eliminate_zeros()
    return sparse


def _inverse(precision: Array) -> Array:
    """Return the covariance of one block, which the search over attackers needs."""
    from scipy.linalg import cho_factor, cho_solve

    covariance = cho_solve(cho_factor(precision, lower=True), np.eye(len(precision)))
    return np.asarray((covariance + covariance.T) / 2)
