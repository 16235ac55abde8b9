"""The law of Gaussian plus Laplace noise, in logarithms that do not overflow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

from undertow._validate import check_finite, check_positive
from undertow.errors import ModelError

__all__ = ["gaussian_laplace_log_density"]

Array = NDArray[np.float64]


def gaussian_laplace_log_density(
    output: ArrayLike, *, mean: float = 0.0, variance: float, scale: float
) -> Array:
    r"""Return the log density of :math:`N(\mu, v) + \mathrm{Lap}(b)`.

    With :math:`z = s - \mu`, :math:`\sigma = \sqrt v`:

    .. math::
        \ln f(s) = \frac{v}{2b^2} - \ln 2b + \ln\Bigl(
            e^{-z/b}\,\Phi(z/\sigma - \sigma/b) + e^{z/b}\,\Phi(-z/\sigma - \sigma/b)
        \Bigr)

    Parameters
    ----------
    output : array_like
        Points s.
    mean, variance : float
        Of the Gaussian part; a variance of zero leaves the Laplace law.
    scale : float
        Of the Laplace part, b.

    Notes
    -----
    Its slope is below 1/b in absolute value and tends to it in both tails. Two such
    laws of equal variance whose means are d apart therefore have the largest log-ratio
    d/b, reached in the limit: the reason why the unclipped Laplace mechanism on
    Gaussian data has an exact leakage (theory page "Gaussian leakage").

    Examples
    --------
    >>> float(gaussian_laplace_log_density(0.0, variance=0.0, scale=0.5))
    0.0
    """
    mean, scale = check_finite(mean, "mean"), check_positive(scale, "scale")
    if not check_finite(variance, "variance") >= 0:
        raise ModelError(f"variance must be non-negative, got {variance}.")
    z = np.asarray(output, dtype=float) - mean
    if variance == 0:
        return np.asarray(-(np.abs(z) / scale) - math.log(2 * scale) + 0.0)
    sd = math.sqrt(variance)
    sides = _side(z, sd, scale), _side(-z, sd, scale)
    return np.asarray(np.logaddexp(*sides) - math.log(2 * scale))


def _side(z: Array, sd: float, b: float) -> Array:
    """Return v/2b^2 - z/b + ln Phi(z/sd - sd/b), large terms cancelled by hand."""
    x = z / sd - sd / b
    near = -((z / sd) ** 2) / 2 + np.log(erfcx(-np.minimum(x, 0.0) / math.sqrt(2)) / 2)
    far = (sd * (sd / b) / 2 - z) / b + log_ndtr(x)
    return np.asarray(np.where(x < 0, near, far))
