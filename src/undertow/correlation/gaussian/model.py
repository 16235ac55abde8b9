"""Jointly Gaussian records: one law, all laws of limited correlation, and the fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri

from undertow._validate import check_count, check_finite, check_probability
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    block_limits,
    worst_of_blocks,
)
from undertow.correlation.gaussian.shift import (
    ShiftFactor,
    check_covariance,
    check_mean,
    connected_blocks,
)
from undertow.correlation.gaussian.structure import dense_structured_factor
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.observation import GoodnessOfFit, normality_checks
from undertow.correlation.theorem import LeakageTheorem, stated_methods
from undertow.errors import EstimatedModelWarning, ModelError
from undertow.numeric.array import Array


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
        from undertow.correlation.gaussian.block import SparseGaussian

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
        from undertow.correlation.gaussian.block import RepeatedGaussian

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
        from undertow.correlation.gaussian.block import AutoregressiveGaussian

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
        from undertow.correlation.gaussian.block import StationaryGaussian

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
        from undertow.correlation.gaussian.block import ExchangeableGaussian

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


# All Gaussian laws whose correlations stay below a limit.

_TRIES = 10_000


class LimitedGaussian(Model):
    r"""The class of Gaussian laws with :math:`|\mathrm{corr}| \le \rho` in groups of m.

    Parameters
    ----------
    correlation : float
        Largest absolute correlation rho of two records; in [0, 1).
    group : int
        Most records that depend on each other, m.
    sd_ratio : float
        Largest ratio of two standard deviations in a group; 1 says that all are equal.
    sds : array_like, optional
        Known standard deviations, only to check `sd_ratio` against them.
    size : int, optional
        Number of records; any number if left out.

    Raises
    ------
    ModelError
        If the known standard deviations differ by more than `sd_ratio`: a limit on
        correlations alone says too little then.

    Notes
    -----
    Definition 6.9 of [1]_ is `sd_ratio` = 1. A promise under it holds for every law of
    the class, so nothing need be known but the limit.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> LimitedGaussian(0.275, 3).summary
    'Gaussian records, correlations at most 0.275, groups of at most 3'
    """

    def __init__(
        self,
        correlation: float,
        group: int,
        *,
        sd_ratio: float = 1.0,
        sds: ArrayLike | None = None,
        size: int | None = None,
    ) -> None:
        number = check_finite(correlation, "correlation")
        if not 0 <= number < 1:
            raise ModelError(f"correlation must be in [0, 1), got {correlation}.")
        self.correlation = number
        self.group = check_count(group, "group")
        self.sd_ratio = _check_ratio(sd_ratio, sds)
        self._size = None if size is None else check_count(size, "size")

    @property
    def size(self) -> int | None:
        """Number of records; None for any."""
        return self._size

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return self.group if self._size is None else min(self.group, self._size)

    @property
    def summary(self) -> str:
        """The class in one line of words."""
        text = (
            f"Gaussian records, correlations at most {self.correlation:g}, groups of "
            f"at most {self.group}"
        )
        if self.sd_ratio > 1:
            text += f", standard deviations within a factor {self.sd_ratio:g}"
        return text

    def __repr__(self) -> str:
        return f"<LimitedGaussian: {self.summary}>"

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        return Limits(self.largest_group, self.correlation, self.sd_ratio)

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the closed forms, the strongest first."""
        return stated_methods(self)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted."""
        return Assumptions(
            unchecked=(
                "the records are jointly Gaussian",
                f"no two records of a group correlate above {self.correlation:g}",
                f"groups of at most {self.group} records are mutually independent",
                "standard deviations in a group are equal"
                if self.sd_ratio == 1
                else f"standard deviations differ by at most {self.sd_ratio:g} times",
            )
        )

    def member(self, *, rng: np.random.Generator, sd: float = 1.0) -> Gaussian:
        """Draw one law of the class: uniform correlations, kept if they are possible.

        Raises
        ------
        ModelError
            If no positive definite matrix was found in ten thousand draws.
        """
        size = self.largest_group
        above = np.triu_indices(size, 1)
        for _ in range(_TRIES):
            matrix = np.zeros((size, size))
            matrix[above] = rng.uniform(
                -self.correlation, self.correlation, len(above[0])
            )
            matrix = matrix + matrix.T + np.eye(size)
            if np.linalg.eigvalsh(matrix)[0] > 1e-9:
                return Gaussian(sd**2 * matrix)
        raise ModelError(
            "correlation must leave room for positive definite matrices, got "
            f"{self.correlation} for groups of {size}, none in {_TRIES} draws; lower "
            "it."
        )

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Refuse: a class of laws has no samples; `member` draws one of the laws."""
        raise ModelError(
            "a limited Gaussian model is a class of laws and must be narrowed to one "
            "before sampling, got the class; use member(rng=...)."
        )

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> Array:
        """Refuse, as `sample` does."""
        return self.sample(count, rng=rng)


def _check_ratio(sd_ratio: float, sds: ArrayLike | None) -> float:
    ratio = check_finite(sd_ratio, "sd_ratio")
    if ratio < 1:
        raise ModelError(f"sd_ratio must be at least 1, got {sd_ratio}.")
    if sds is None:
        return ratio
    values = np.array(sds, dtype=float)
    if values.size == 0 or not np.all((values > 0) & np.isfinite(values)):
        raise ModelError("sds must be positive and finite, got one that is not.")
    actual = float(values.max() / values.min())
    if actual > ratio * (1 + 1e-12):
        raise ModelError(
            "sd_ratio must cover the known standard deviations, which differ "
            f"{actual:.6g} times, got {ratio:g}; a limit on correlations alone does "
            "not bound the leakage then: pass sd_ratio, or the covariance."
        )
    return ratio


# Fit a Gaussian to groups of records, with limits instead of a point.


def correlation_upper_limit(
    correlation: float, groups: int, *, error: float = 0.05
) -> float:
    r"""Return an upper confidence limit of a correlation, by Fisher's transformation.

    .. math:: \tanh\Bigl(\operatorname{artanh} |r| + z_{1-\alpha}/\sqrt{n-3}\Bigr)

    Parameters
    ----------
    correlation : float
        Sample correlation, in (-1, 1); its absolute value is bounded.
    groups : int
        Number of independent pairs, at least 4.
    error : float
        Chance that the limit is too small, one-sided; asymptotic, for Gaussian data.

    Examples
    --------
    >>> round(correlation_upper_limit(0.27535, 898), 6)
    0.325355
    """
    size = abs(check_finite(correlation, "correlation"))
    if size >= 1:
        raise ValueError(f"correlation must be in (-1, 1), got {correlation}.")
    groups = check_count(groups, "groups", minimum=4)
    error = check_probability(error, "error", open_interval=True)
    shift = float(ndtri(1 - error)) / math.sqrt(groups - 3)
    return math.tanh(math.atanh(size) + shift)


@dataclass(frozen=True)
class GaussianFit:
    """A Gaussian fitted to groups, and limits around it.

    Parameters
    ----------
    names : tuple of str
        The members of a group, in order.
    mean : ndarray of shape (m,)
        Sample means.
    covariance : ndarray of shape (m, m)
        Sample covariance.
    groups : int
        Number of complete groups.
    dropped : int
        Number of groups left out because a member is missing.
    correlation_upper : float
        Upper limit of the largest absolute correlation.
    deviation_ratio_upper : float
        Upper limit of the largest over the smallest standard deviation.
    confidence : float
        Chance that both limits hold.
    checks : tuple of GoodnessOfFit
        Is it Gaussian?
    """

    names: tuple[str, ...]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    groups: int
    dropped: int
    correlation_upper: float
    deviation_ratio_upper: float
    confidence: float
    checks: tuple[GoodnessOfFit, ...] = ()

    @property
    def correlation(self) -> float:
        """Largest absolute correlation of two members, at the point estimate."""
        return _largest_correlation(self.covariance)

    def model(self) -> Gaussian:
        """Return the Gaussian at the point estimate, of one group."""
        return Gaussian(self.covariance, self.mean)

    def region(self) -> LimitedGaussian:
        """Return every Gaussian inside the limits; calibrate on this, not a point."""
        return Gaussian.limited(
            self.correlation_upper,
            len(self.names),
            sd_ratio=self.deviation_ratio_upper,
        )

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against a Gaussian, in words."""
        return tuple(check.summary for check in self.checks if check.rejects)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "groups": self.groups,
            "dropped": self.dropped,
            "correlation": self.correlation,
            "correlation_upper": self.correlation_upper,
            "deviation_ratio_upper": self.deviation_ratio_upper,
            "confidence": self.confidence,
            "checks": [check.to_dict() for check in self.checks],
        }


def fit_gaussian(
    rows: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    public: bool = False,
) -> GaussianFit:
    """Fit a Gaussian to independent groups of dependent records.

    Parameters
    ----------
    rows : array_like of shape (n, m)
        One row a group, such as a family; one column a member. A row with a missing
        value (nan) is left out and counted.
    names : sequence of str, optional
        The members.
    confidence : float
        Of the limits, simultaneous over all pairs and members.
    public : bool
        Whether the rows are public; if not, a warning says that the model depends on
        what it is to protect.

    Raises
    ------
    ModelError
        If fewer than five complete groups are left, a column is constant or a
        combination of the others, or the rows are not a table of numbers.

    Notes
    -----
    Fisher's limits for the correlations and chi-squared limits for the variances, with
    Bonferroni's correction; they assume Gaussian data, which Mardia's tests may reject
    (see :attr:`GaussianFit.doubts`). Rows are assumed independent of each other:
    siblings in different rows are not.
    """
    confidence = check_probability(confidence, "confidence", open_interval=True)
    table, dropped = _complete_rows(rows)
    groups, members = table.shape
    covariance = np.atleast_2d(np.cov(table.T))
    if not (np.diag(covariance) > 0).all():
        raise ModelError("every column must vary, got a constant one.")
    if not public:
        _warn_of_private_rows()
    pairs = members * (members - 1) // 2
    share = (1 - confidence) / (pairs + 2 * members)
    return GaussianFit(
        tuple(names) if names else tuple(f"member {j}" for j in range(members)),
        table.mean(axis=0),
        covariance,
        groups,
        dropped,
        correlation_upper_limit(_largest_correlation(covariance), groups, error=share),
        _deviation_ratio_upper(covariance, groups, error=share),
        confidence,
        checks=normality_checks(table),
    )


def _complete_rows(rows: ArrayLike) -> tuple[NDArray[np.float64], int]:
    try:
        table = np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(
            "rows must be a table of numbers, got something else."
        ) from None
    if table.ndim != 2 or table.shape[1] < 2:
        raise ModelError(
            f"rows must have at least two columns, got the shape {table.shape}."
        )
    if np.isinf(table).any():
        raise ModelError("rows must be finite, got an infinite value.")
    kept = table[~np.isnan(table).any(axis=1)]
    if len(kept) < max(5, table.shape[1] + 1):
        raise ModelError(
            f"rows must hold at least {max(5, table.shape[1] + 1)} complete groups, "
            f"got {len(kept)}."
        )
    return kept, len(table) - len(kept)


def _largest_correlation(covariance: NDArray[np.float64]) -> float:
    deviations = np.sqrt(np.diag(covariance))
    correlation = np.abs(covariance / np.outer(deviations, deviations))
    np.fill_diagonal(correlation, 0.0)
    return float(min(correlation.max(), 1.0 - 1e-12))


def _deviation_ratio_upper(
    covariance: NDArray[np.float64], groups: int, *, error: float
) -> float:
    variances = np.diag(covariance)
    freedom = groups - 1
    # chdtri inverts the upper tail of the chi-squared law.
    high = variances * freedom / chdtri(freedom, 1 - error)
    low = variances * freedom / chdtri(freedom, error)
    return float(math.sqrt(high.max() / low.min()))


def _warn_of_private_rows() -> None:
    warnings.warn(
        "the model was fitted on the rows it is to protect: the noise scale then "
        "depends on the private data; fit on public data (public=True).",
        EstimatedModelWarning,
        stacklevel=3,
    )
