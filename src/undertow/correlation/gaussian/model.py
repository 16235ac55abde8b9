"""Jointly Gaussian records with a given covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.gaussian.covariance import (
    check_covariance,
    check_mean,
    connected_blocks,
)
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    block_limits,
)
from undertow.correlation.gaussian.limited import LimitedGaussian
from undertow.correlation.gaussian.search import worst_of_blocks
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.structure import dense_structured_factor

if TYPE_CHECKING:
    from undertow.correlation.fitting.gaussian import GaussianFit

__all__ = ["Gaussian"]

Array = NDArray[np.float64]


class Gaussian(GaussianModel):
    r"""Records that are jointly Gaussian, :math:`X \sim N(\mu, \Sigma)`.

    Parameters
    ----------
    covariance : array_like of shape (n, n)
        Symmetric positive definite; variances may differ. Exact zeros are taken as
        independence, and the records fall into groups connected by non-zeros.
    mean : array_like of shape (n,), optional
        Zero by default. No bound depends on it.

    Raises
    ------
    ModelError
        If the covariance is not symmetric positive definite (Cholesky).

    Notes
    -----
    Definition 6.6 of [1]_. Other constructors: :meth:`from_precision`,
    :meth:`from_blocks`, :meth:`autoregressive`, :meth:`toeplitz`,
    :meth:`exchangeable`, :meth:`limited`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> model = Gaussian([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 4.0]])
    >>> model.summary
    '3 Gaussian records in 2 independent groups of at most 2'
    >>> model.given({1: 2.0}).mean
    array([1., 0.])
    """

    def __init__(self, covariance: ArrayLike, mean: ArrayLike | None = None) -> None:
        super().__init__()
        self._covariance = check_covariance(covariance)
        self._mean = check_mean(mean, len(self._covariance))
        self._groups = connected_blocks(self._covariance)
        self._root = np.linalg.cholesky(self._covariance)

    @classmethod
    def from_precision(
        cls, precision: Any, mean: ArrayLike | None = None
    ) -> GaussianModel:
        """Return the model with the given inverse covariance, dense or sparse.

        Examples
        --------
        >>> Gaussian.from_precision([[2.0, -1.0], [-1.0, 2.0]]).largest_group
        2
        """
        from undertow.correlation.gaussian.sparse import SparseGaussian

        return SparseGaussian(precision, mean)

    @classmethod
    def from_blocks(
        cls,
        templates: Sequence[ArrayLike],
        counts: Sequence[int],
        *,
        means: Sequence[ArrayLike] | None = None,
    ) -> GaussianModel:
        """Return many independent copies of few small blocks, such as families.

        Examples
        --------
        >>> Gaussian.from_blocks([[[1.0, 0.4], [0.4, 1.0]]], [500_000]).size
        1000000
        """
        from undertow.correlation.gaussian.repeated import RepeatedGaussian

        return RepeatedGaussian(templates, counts, means=means)

    @classmethod
    def autoregressive(
        cls, phi: float, length: int, *, sd: float = 1.0, mean: ArrayLike | None = None
    ) -> GaussianModel:
        """Return a stationary AR(1) series, correlation ``phi ** |i - j|``.

        Examples
        --------
        >>> Gaussian.autoregressive(0.9, 1_000_000).size
        1000000
        """
        from undertow.correlation.gaussian.stationary import AutoregressiveGaussian

        return AutoregressiveGaussian(phi, length, sd=sd, mean=mean)

    @classmethod
    def toeplitz(
        cls, first_row: ArrayLike, mean: ArrayLike | None = None
    ) -> GaussianModel:
        """Return a stationary series with the given autocovariance.

        Examples
        --------
        >>> Gaussian.toeplitz([2.0, 0.5, 0.0, 0.0]).size
        4
        """
        from undertow.correlation.gaussian.stationary import StationaryGaussian

        return StationaryGaussian(first_row, mean)

    @classmethod
    def exchangeable(
        cls,
        counts: Sequence[int],
        *,
        correlation: ArrayLike,
        sds: ArrayLike = 1.0,
        groups: int = 1,
        mean: ArrayLike | None = None,
    ) -> GaussianModel:
        """Return groups made of classes of interchangeable members.

        Parameters
        ----------
        counts : sequence of int
            Members of each class in one group.
        correlation : array_like of shape (c, c)
            Between classes; on the diagonal, within a class.
        sds : float or array_like of shape (c,)
            Standard deviation in each class.
        groups : int
            Number of independent groups.
        mean : array_like of shape (c,), optional
            Mean in each class.

        Examples
        --------
        >>> Gaussian.exchangeable([4], correlation=[[0.3]], groups=10).size
        40
        """
        from undertow.correlation.gaussian.exchangeable import ExchangeableGaussian

        return ExchangeableGaussian(
            counts, correlation=correlation, sds=sds, groups=groups, mean=mean
        )

    @classmethod
    def limited(
        cls,
        correlation: float,
        group: int,
        *,
        sd_ratio: float = 1.0,
        sds: ArrayLike | None = None,
        size: int | None = None,
    ) -> LimitedGaussian:
        """Return the class of all Gaussian laws with limited correlations.

        Examples
        --------
        >>> Gaussian.limited(0.275, 3).largest_group
        3
        """
        return LimitedGaussian(
            correlation, group, sd_ratio=sd_ratio, sds=sds, size=size
        )

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self._covariance)

    @property
    def covariance(self) -> Array:
        """The covariance matrix, read-only."""
        return self._covariance

    @property
    def mean(self) -> Array:
        """Mean of each record, read-only."""
        return self._mean

    @property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """The records of each independent group."""
        return self._groups

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return max(len(group) for group in self._groups)

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records in {len(self._groups)} independent groups "
            f"of at most {self.largest_group}"
        )

    @staticmethod
    def fit(
        rows: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        confidence: float = 0.95,
        public: bool = False,
    ) -> GaussianFit:
        """Fit to independent groups, one row each; see :func:`fit_gaussian`."""
        from undertow.correlation.fitting.gaussian import fit_gaussian

        return fit_gaussian(rows, names=names, confidence=confidence, public=public)

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        return block_limits([self._block(group).covariance for group in self._groups])

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the different blocks, each with the weights of its records."""
        a = np.ones(self.size) if weights is None else weights
        found: dict[bytes, tuple[Block, Array]] = {}
        for group in self._groups:
            block = self._block(group)
            key = block.covariance.tobytes() + a[group].tobytes()
            found.setdefault(key, (block, a[group]))
        return tuple(found.values())

    def _block(self, group: NDArray[np.intp]) -> Block:
        return Block(tuple(group.tolist()), self._covariance[np.ix_(group, group)])

    def structured(self) -> ShiftFactor:
        """Return the worst factor by structure of every group."""
        return worst_of_blocks(
            self.blocks(), lambda block, _: dense_structured_factor(block.covariance)
        )

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        return self._covariance[:, np.asarray(records, dtype=np.intp)]

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        noise = rng.standard_normal((count, self.size))
        return np.asarray(self._mean + noise @ self._root.T)
