"""Fit a Gaussian to groups of records, with limits instead of a point."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri

from undertow._validate import check_count, check_finite, check_probability
from undertow.correlation.fitting.goodness import GoodnessOfFit, normality_checks
from undertow.errors import EstimatedModelWarning, ModelError

if TYPE_CHECKING:
    from undertow.correlation.gaussian.limited import LimitedGaussian
    from undertow.correlation.gaussian.model import Gaussian

__all__ = ["GaussianFit", "correlation_upper_limit", "fit_gaussian"]


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
        from undertow.correlation.gaussian.model import Gaussian

        return Gaussian(self.covariance, self.mean)

    def region(self) -> LimitedGaussian:
        """Return every Gaussian inside the limits; calibrate on this, not a point."""
        from undertow.correlation.gaussian.model import Gaussian

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
