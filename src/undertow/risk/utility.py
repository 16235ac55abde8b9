r"""What a parameter is worth: error at a confidence, spread of estimated frequencies.

Together with :func:`~undertow.risk.calibration.calibrate` it compares mechanisms
at equal risk instead of at equal epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_count, check_positive, check_probability
from undertow.mechanisms.accuracy import laplace_accuracy
from undertow.mechanisms.local import LocalProtocol, frequency_variance
from undertow.numeric.array import Floats
from undertow.results import _Shown
from undertow.risk.families.base import Family

_GUARD = 1e-12
# Epsilon at which the limit of a local protocol is evaluated.
_LARGE = 700.0


@dataclass(frozen=True, slots=True)
class Utility(_Shown):
    """How good an answer is.

    Parameters
    ----------
    kind : {"error", "deviation"}
        The error that is passed with probability one minus the confidence, or the
        standard deviation of an estimated frequency. Smaller is better; the two kinds
        do not compare.
    value : float
        The number.
    summary : str
        What it says, in words.
    """

    kind: str
    value: float
    summary: str


@dataclass(frozen=True, slots=True, eq=False)
class EqualRisk(_Shown):
    """Noise at equal risk, stated by the advantage and by the success of an attack.

    Parameters
    ----------
    targets : ndarray
        The allowed risks.
    epsilon, error : ndarray
        By the exact advantage of the Laplace mechanism.
    success_epsilon, success_error : ndarray
        By the bound on the success of an epsilon-DP mechanism; nan and infinite where
        the target is below the blind guess.
    laplace_epsilon, laplace_error : ndarray
        By the bound on the success of the Laplace mechanism itself.
    two_point : ndarray
        The advantage at `epsilon` if the prior were two equally likely ends.
    """

    targets: Floats
    epsilon: Floats
    error: Floats
    success_epsilon: Floats
    success_error: Floats
    laplace_epsilon: Floats
    laplace_error: Floats
    two_point: Floats

    def to_dict(self) -> dict[str, list[float | str | None]]:
        """Return the columns; a level that does not exist is None."""
        found: dict[str, list[float | str | None]] = {}
        for name in self.__slots__:
            column = getattr(self, name).tolist()
            found[name] = [
                None if math.isnan(x) else "inf" if x == math.inf else x for x in column
            ]
        return found


def utility_at(
    family: Family,
    parameter: float,
    *,
    structure: int | None = None,
    confidence: float = 0.95,
    users: int = 10_000,
) -> Utility | None:
    """Return how good the answers of a family are at a parameter.

    Parameters
    ----------
    family : Family
        What is deployed.
    parameter : float
        Positive. Infinite epsilon, or noise of 0, stands for the limit.
    structure : int, optional
        Subset size or number of buckets.
    confidence : float
        For errors, in (0, 1).
    users : int
        Number of reports, for frequencies.

    Returns
    -------
    Utility or None
        None for families that state none, such as a function of channels.

    Notes
    -----
    Propositions 2.10 and 2.12 of Guerra-Balboa (2026) for noise; the exact variance of
    the estimate of a share 1/m for local protocols. In the limit the error of noise is
    0; a local protocol is evaluated at the largest epsilon up to 700 that it can have,
    where its deviation is no smaller than the limit.

    Examples
    --------
    >>> from undertow.risk.families import laplace, oue
    >>> round(utility_at(laplace(range(11)), 1.0).value, 6)
    29.957323
    >>> round(utility_at(oue(10), math.inf).value, 6)
    0.003162
    """
    sure = check_probability(confidence, "confidence", open_interval=True)
    count = check_count(users, "users")
    if parameter == (math.inf if family.rises else 0.0):
        return _limit(family, sure, count)
    if parameter == math.inf or (parameter > family.largest and family.rises):
        return None
    check_positive(parameter, family.parameter)
    return _stated(family, parameter, structure, sure=sure, count=count)


def _limit(family: Family, sure: float, count: int) -> Utility | None:
    """Return what is approached as epsilon grows, or as the noise vanishes."""
    place = min(_LARGE, family.largest) if family.rises else 1.0
    near = _stated(family, place, None, sure=sure, count=count)
    if near is None:
        return None
    if near.kind == "error":
        words = "as epsilon grows" if family.rises else "as the noise vanishes"
        return Utility("error", 0.0, f"{near.summary}, in the limit {words}")
    at = f"in the limit as epsilon grows (at {place:.6g})"
    return Utility(near.kind, near.value, f"{near.summary}, {at}")


def _stated(
    family: Family, parameter: float, structure: int | None, *, sure: float, count: int
) -> Utility | None:
    mechanism = family.mechanism(parameter, structure=structure)
    if isinstance(mechanism, LocalProtocol):
        share, variance = 1.0 / family.records, math.inf
        if mechanism.keep > mechanism.noise:  # else epsilon is too small to tell
            variance = float(frequency_variance(mechanism, share, reports=count))
        return Utility(
            "deviation",
            math.sqrt(variance),
            f"standard deviation of an estimated share of {share:.4g} from {count} "
            "reports",
        )
    if hasattr(mechanism, "accuracy"):
        error = _error(mechanism, 1.0 - sure)
        return Utility("error", error, f"error at most this in {sure:.4g} of answers")
    return None


def _error(mechanism: Any, beta: float) -> float:
    try:
        return float(mechanism.accuracy(beta))
    except OverflowError:  # more noise than a float holds
        return math.inf


def utility_at_equal_risk(
    advantage: float | ArrayLike,
    size: int,
    *,
    sensitivity: float = 1.0,
    confidence: float = 0.95,
) -> EqualRisk:
    r"""Compare Laplace noise chosen by advantage with noise chosen by success.

    .. math:: \varepsilon = -2(m-1)\ln\Bigl(1 - \frac{\gamma m}{m-1}\Bigr)
       \quad\text{against}\quad 1 - f_\varepsilon(1/m) = \gamma

    Parameters
    ----------
    advantage : float or array_like
        Allowed risk :math:`\gamma`, positive.
    size : int
        Number m of equally likely, equally spaced answers; at least two.
    sensitivity : float
        Distance of the extreme answers.
    confidence : float
        Of the stated error.

    Returns
    -------
    EqualRisk
        One entry per target; levels rounded down, errors up.

    Notes
    -----
    Thesis, Figure 5.2. The gain holds under the declared prior and exact success only:
    `two_point` is the advantage of the same noise against two equally likely ends.

    Examples
    --------
    >>> row = utility_at_equal_risk(0.2, 10)
    >>> round(float(row.error[0]), 4), round(float(row.success_error[0]), 4)
    (0.6622, 4.3219)
    """
    targets = np.atleast_1d(np.asarray(advantage, dtype=float))
    m, reach = (
        check_count(size, "size", minimum=2),
        check_positive(sensitivity, "sensitivity"),
    )
    beta = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    if not (targets > 0).all():
        raise ValueError(f"advantage must be positive, got {targets.min()}.")
    unit, blind = laplace_accuracy(reach, beta), 1.0 / m
    with np.errstate(divide="ignore", invalid="ignore"):
        level = -2.0 * (m - 1) * np.log1p(-np.minimum(targets * m / (m - 1), 1.0))
        top = np.minimum(targets, 1.0)
        pure = np.maximum(np.log(top / blind), np.log((1 - blind) / (1 - top)))
        own = np.where(top <= 0.5, pure, -np.log(4 * blind * (1 - top)))
        levels = [level, *(np.where(targets < blind, np.nan, e) for e in (pure, own))]
        levels = [np.maximum(e * (1.0 - _GUARD), 0.0) for e in levels]
        errors = [np.where(np.isnan(e), np.inf, unit / e) for e in levels]
    return EqualRisk(
        targets,
        levels[0],
        errors[0],
        levels[1],
        errors[1],
        levels[2],
        errors[2],
        np.asarray(-0.5 * np.expm1(-levels[0] / 2.0)),
    )
