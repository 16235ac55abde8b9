r"""Frequencies from reports: the unbiased estimate and its exact variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import read_floats
from undertow._validate import check_count
from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.local.base import LocalProtocol

__all__ = [
    "FrequencyEstimate",
    "estimate_frequencies",
    "frequency_from_counts",
    "frequency_variance",
]


@dataclass(frozen=True, slots=True, eq=False)
class FrequencyEstimate:
    """Estimated frequencies of the categories.

    Parameters
    ----------
    frequencies : ndarray of shape (m,)
        Unbiased; entries may be negative or above 1, and are not cut.
    variances : ndarray of shape (m,)
        Unbiased estimates of their variances, for the clients at hand.
    reports : int
        Number of reports behind them.
    protocol : str
        Name of the protocol.
    """

    frequencies: NDArray[np.float64]
    variances: NDArray[np.float64]
    reports: int
    protocol: str

    def __post_init__(self) -> None:
        self.frequencies.flags.writeable = False
        self.variances.flags.writeable = False


def frequency_variance(
    protocol: LocalProtocol, frequency: ArrayLike, *, reports: int
) -> NDArray[np.float64]:
    r"""Return the exact variance of an estimated frequency.

    .. math:: \frac{f\,p(1-p) + (1-f)\,q(1-q)}{n (p-q)^2}

    Parameters
    ----------
    protocol : LocalProtocol
        Its `keep` and `noise` are the p and q.
    frequency : array_like
        The true share f of the clients.
    reports : int
        The n; positive.

    Returns
    -------
    ndarray
        One variance per frequency given.

    Notes
    -----
    Over the randomness of the protocol, the clients being fixed; for clients drawn at
    random add :math:`f(1-f)/n`. For SHE the numerator is :math:`8/\varepsilon^2`, for
    local hashing the hash is assumed ideal.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> protocol = OptimizedUnary(10, 1)
    >>> float(frequency_variance(protocol, 0.0, reports=1000).round(8))
    0.00368269
    """
    n, share = check_count(reports, "reports"), read_floats(frequency, "frequency")
    if not np.isfinite(share).all():
        raise ValueError("frequency must be finite, got others.")
    gap = _gap(protocol)
    return np.asarray(protocol.report_variance(share) / (n * gap * gap))


def frequency_from_counts(
    protocol: LocalProtocol, counts: ArrayLike, *, reports: int
) -> FrequencyEstimate:
    r"""Estimate the frequencies from how many reports support each category.

    .. math:: \hat f_v = \frac{c_v - nq}{n(p-q)}

    Parameters
    ----------
    protocol : LocalProtocol
        What the clients ran.
    counts : array_like of shape (m,)
        Supports, or sums of coordinates for SHE.
    reports : int
        The n; positive.

    Returns
    -------
    FrequencyEstimate
        Unbiased, not cut to [0, 1].

    Notes
    -----
    The moment estimate; for randomised response it sums to one.

    Examples
    --------
    >>> import math
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> protocol = GeneralizedResponse(3, math.log(4))
    >>> found = frequency_from_counts(protocol, [450, 300, 250], reports=1000)
    >>> found.frequencies.round(10).tolist()
    [0.5666666667, 0.2666666667, 0.1666666667]
    """
    n, seen = check_count(reports, "reports"), read_floats(counts, "counts")
    if seen.shape != (protocol.categories,):
        raise MismatchError(
            f"counts must have one entry per category ({protocol.categories}), got "
            f"shape {seen.shape}."
        )
    if not np.isfinite(seen).all():
        raise ValueError("counts must be finite, got others.")
    found = (seen / n - float(protocol.noise)) / _gap(protocol)
    # The variance is linear in the frequency, so plugging in keeps it unbiased.
    spread = frequency_variance(protocol, found, reports=n)
    return FrequencyEstimate(found, spread, n, protocol.name)


def estimate_frequencies(protocol: LocalProtocol, reports: Any) -> FrequencyEstimate:
    """Estimate the frequencies of the categories from the reports.

    Parameters
    ----------
    protocol : LocalProtocol
        What the clients ran.
    reports : array_like
        The values of its draws.

    Returns
    -------
    FrequencyEstimate
        Unbiased, not cut to [0, 1].

    Notes
    -----
    Not checkable: that clients were honest. The estimate is linear, so batches may be
    counted apart and their counts added (:func:`frequency_from_counts`).

    Examples
    --------
    >>> from undertow.mechanisms import SimulatedSource
    >>> from undertow.mechanisms.local import SymmetricUnary
    >>> protocol = SymmetricUnary(3, 4)
    >>> draw = protocol.sample([0] * 4000, source=SimulatedSource(2))
    >>> found = estimate_frequencies(protocol, draw.values)
    >>> bool(abs(found.frequencies - [1, 0, 0]).max() < 0.05)
    True
    """
    counts = protocol.support_counts(reports)
    return frequency_from_counts(protocol, counts, reports=len(reports))


def _gap(protocol: LocalProtocol) -> float:
    gap = float(protocol.keep - protocol.noise)
    if gap <= 0.0:
        raise AssumptionError(
            "protocol must support the truth more often than others, got equal "
            "probabilities; raise epsilon."
        )
    return gap
