"""Stationary Gaussian series: given autocovariance, or AR(1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite, check_positive
from undertow.correlation.gaussian.covariance import check_covariance, check_mean
from undertow.correlation.gaussian.law import Block, GaussianModel, Limits
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.structure import (
    autoregressive_factor,
    toeplitz_factor,
)
from undertow.errors import ModelError, NotApplicable

__all__ = ["AutoregressiveGaussian", "StationaryGaussian"]

Array = NDArray[np.float64]

# Longest series whose covariance matrix is written out.
_LARGEST_DENSE = 2000


class StationaryGaussian(GaussianModel):
    """A stationary Gaussian series with a given autocovariance.

    Parameters
    ----------
    first_row : array_like of shape (n,)
        Covariance at lag 0, 1, ..., n-1: the first row of the Toeplitz covariance.
    mean : float or array_like of shape (n,), optional
        Zero by default.

    Raises
    ------
    ModelError
        If the Toeplitz matrix is not positive definite. Beyond 2000 records this is
        shown by its circulant embedding or by diagonal dominance, and a series for
        which neither holds is refused.

    Examples
    --------
    >>> StationaryGaussian([1.0, 0.5, 0.1, 0.0]).summary
    'stationary Gaussian series of 4 records'
    """

    def __init__(self, first_row: ArrayLike, mean: ArrayLike | None = None) -> None:
        super().__init__()
        self._lags = _check_lags(first_row)
        self._mean = check_mean(mean, len(self._lags))

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self._lags)

    @property
    def autocovariance(self) -> Array:
        """Covariance at each lag, read-only."""
        return self._lags

    @property
    def mean(self) -> Array:
        """Mean of each record, read-only."""
        return self._mean

    @property
    def largest_group(self) -> int:
        """The whole series, unless no lag is correlated."""
        return self.size if np.any(self._lags[1:]) else 1

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return f"stationary Gaussian series of {self.size} records"

    def limits(self) -> Limits:
        """Return group size and largest correlation; all variances are equal."""
        largest = float(np.abs(self._lags[1:]).max(initial=0.0)) / float(self._lags[0])
        return Limits(self.largest_group, min(largest * (1 + 2.0**-50), 1.0))

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the series as one block."""
        from scipy.linalg import toeplitz

        if self.size > _LARGEST_DENSE:
            raise NotApplicable(
                f"a series must have at most {_LARGEST_DENSE} records for its "
                f"covariance to be written out, got {self.size}; use "
                "method='structured' or 'general'."
            )
        a = np.ones(self.size) if weights is None else weights
        return ((Block(tuple(range(self.size)), toeplitz(self._lags)), a),)

    def structured(self) -> ShiftFactor:
        """Return the worst factor by the row sums of the Toeplitz matrix."""
        return toeplitz_factor(self._lags)

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        apart = np.abs(np.arange(self.size)[:, None] - places[None, :])
        return np.asarray(self._lags[apart])

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` series, one row each: exactly, by Cholesky or by Fourier."""
        from scipy.linalg import toeplitz

        count = check_count(count, "count")
        if self.size <= _LARGEST_DENSE:
            root = np.linalg.cholesky(toeplitz(self._lags))
            noise = rng.standard_normal((count, self.size))
            return np.asarray(self._mean + noise @ root.T)
        return self._mean + _embedded_sample(self._lags, count, rng=rng)


class AutoregressiveGaussian(StationaryGaussian):
    r"""A stationary AR(1) series: covariance :math:`\sigma^2 \varphi^{|i-j|}`.

    Parameters
    ----------
    phi : float
        Correlation of neighbours, in (-1, 1).
    length : int
        Number of records.
    sd : float
        Standard deviation of each record.
    mean : float or array_like, optional
        Zero by default.

    Examples
    --------
    >>> round(AutoregressiveGaussian(0.5, 8).structured().value, 9)
    2.8125
    """

    def __init__(
        self,
        phi: float,
        length: int,
        *,
        sd: float = 1.0,
        mean: ArrayLike | None = None,
    ) -> None:
        GaussianModel.__init__(self)
        self.phi = check_finite(phi, "phi")
        if not abs(self.phi) < 1:
            raise ModelError(f"phi must be in (-1, 1), got {phi}.")
        self.sd = check_positive(sd, "sd")
        if not 1e-150 < self.sd < 1e150:
            raise ModelError(
                f"sd must be between 1e-150 and 1e150, got {sd}; measure the records "
                "in another unit."
            )
        length = check_count(length, "length")
        self._lags = self.sd**2 * np.power(self.phi, np.arange(length))
        self._lags.setflags(write=False)
        self._mean = check_mean(mean, length)

    @property
    def largest_group(self) -> int:
        """The whole series, unless neighbours are independent."""
        return self.size if self.phi else 1

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return f"Gaussian AR(1) series of {self.size} records, phi = {self.phi:g}"

    def structured(self) -> ShiftFactor:
        """Return the worst factor in closed form."""
        return autoregressive_factor(self.phi, self.size)

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` series by the recursion, from a stationary start."""
        from scipy.signal import lfilter

        count = check_count(count, "count")
        noise = rng.standard_normal((count, self.size))
        noise[:, 1:] *= np.sqrt((1 - self.phi) * (1 + self.phi))
        return self._mean + self.sd * lfilter([1.0], [1.0, -self.phi], noise, axis=1)


def _check_lags(first_row: ArrayLike) -> Array:
    from scipy.linalg import toeplitz

    lags = np.array(first_row, dtype=float)
    if lags.ndim != 1 or not lags.size or not np.all(np.isfinite(lags)):
        raise ModelError(
            "first_row must be a vector of finite covariances, got an array of shape "
            f"{lags.shape}."
        )
    if len(lags) <= _LARGEST_DENSE:
        check_covariance(toeplitz(lags), "the Toeplitz covariance")
    elif not _shown_positive(lags):
        raise ModelError(
            "the Toeplitz covariance of a long series must have a positive circulant "
            "embedding or dominant diagonal, got neither; give its precision to "
            "Gaussian.from_precision, or a shorter series."
        )
    lags.setflags(write=False)
    return lags


def _spectrum(lags: Array) -> Array:
    """Return the eigenvalues of the circulant matrix that embeds the series."""
    ring = np.concatenate([lags, lags[-2:0:-1]])
    return np.asarray(np.fft.rfft(ring).real)


def _shown_positive(lags: Array) -> bool:
    if lags[0] > 2 * np.abs(lags[1:]).sum() * (1 + 1e-12):
        return True
    values = _spectrum(lags)
    rounding = 1e-14 * len(lags) ** 0.5 * float(np.abs(lags).sum())
    return bool(values.min() > rounding)


def _embedded_sample(lags: Array, count: int, *, rng: np.random.Generator) -> Array:
    values = _spectrum(lags)
    if values.min() < 0:
        raise ModelError(
            "sampling a long series needs a positive circulant embedding, got a least "
            f"eigenvalue of {values.min():.3g}; sample a shorter series."
        )
    size = 2 * (len(lags) - 1)
    white = np.fft.rfft(rng.standard_normal((count, size)), axis=1)
    return np.asarray(np.fft.irfft(white * np.sqrt(values), n=size, axis=1))[
        :, : len(lags)
    ]
