"""What the bounds share: their hypotheses, their arguments, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import read_floats
from undertow._numeric import greatest_float, inflate
from undertow._validate import check_count, check_probability
from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import Approx, Bound, Calibration, Loss, Pure, TradeOff, round_up

__all__ = [
    "BARE",
    "BLIND",
    "LARGEST",
    "MARGIN",
    "Guarantee",
    "PriorLike",
    "advantage",
    "calibrated_epsilon",
    "capped",
    "check_target",
    "disagreement",
    "law",
    "parameters",
    "read_size",
    "uniform_disagreement",
]

Guarantee = Loss | TradeOff
Floats = NDArray[np.float64]


class _HasPmf(Protocol):
    @property
    def pmf(self) -> Floats: ...


PriorLike = ArrayLike | _HasPmf

BARE = (
    "the records are independent",
    "the guarantee is for replacing one record by another",
)
"""Hypotheses of every bound on the advantage."""

BLIND = (*BARE, "the attacker knows nothing of the target beyond the output")
"""Hypotheses of the bounds that knowledge of the target breaks."""

LARGEST = 700.0
"""A privacy parameter past which e^epsilon is not formed."""

MARGIN = 2.0**-44
"""Relative excess that covers the rounding of a few dozen positive operations."""

_TOLERANCE = 1e-9


def advantage(
    value: float,
    theorem: str,
    *,
    checked: tuple[str, ...] = (),
    unchecked: tuple[str, ...] = BARE,
    tight: bool | None = None,
) -> Bound:
    """Return a bound on the advantage with its hypotheses."""
    return Bound(value, theorem, unchecked, checked, "advantage", tight=tight)


def capped(value: float, ceiling: float) -> float:
    """Raise a value by the margin, up to a ceiling that holds in any case."""
    return min(ceiling, inflate(value, MARGIN))


def disagreement(collision: float) -> float:
    """Return 1 - kappa, rounded up: the chance that two draws differ."""
    return round_up(1 - Fraction(check_probability(collision, "collision")))


def uniform_disagreement(size: int) -> float:
    """Return 1 - 1/m, rounded up."""
    return round_up(Fraction(size - 1, size))


def law(prior: PriorLike) -> Floats:
    """Read a prior: an object with a ``pmf``, or the probabilities themselves.

    What is missing from 1, at most 1e-9, is shared out in proportion.
    """
    masses = read_floats(getattr(prior, "pmf", prior), "prior")
    if masses.ndim != 1 or not np.all((masses >= 0) & (masses < math.inf)):
        raise ValueError("prior must be a vector of finite, non-negative numbers.")
    total = float(masses.sum())
    if not abs(total - 1.0) <= _TOLERANCE:
        raise ValueError(f"prior must sum to 1, got {total}.")
    exact = math.fsum(masses.tolist())
    return masses if exact == 1.0 else np.asarray(masses / exact)


def read_size(size: SupportsIndex) -> int:
    """Read a number of records that a float can hold."""
    m = check_count(size, "size")
    if m > 10**300:
        raise ValueError(
            "size must be at most 10^300, got more; use the prior-free cap."
        )
    return m


def parameters(loss: Loss) -> tuple[float, float]:
    """Return epsilon and delta of a pure or approximate guarantee."""
    if isinstance(loss, Pure):
        return loss.epsilon, 0.0
    if isinstance(loss, Approx):
        return loss.epsilon, loss.delta
    raise AssumptionError(
        f"loss must be Pure or Approx, got {loss}; use the trade-off bounds for GDP, "
        "or convert it (undertow.privacy.convert)."
    )


def check_target(target: float) -> float:
    """Return a target advantage in (0, 1]."""
    value = check_probability(target, "target")
    if value == 0:
        raise ValueError(
            "target must be positive, got 0; only a constant output has no advantage."
        )
    return value


def calibrated_epsilon(
    target: float,
    bound: Callable[[float], Bound],
    *,
    ceiling: float,
    parameter: str = "epsilon",
) -> Calibration:
    """Return the largest parameter at which a growing bound stays within the target.

    Infinite where the target is not below `ceiling`, which no attack exceeds. The bound
    is evaluated at the value returned, so that no rounding can break the promise.
    """
    target = check_target(target)
    if target >= ceiling:
        method = "the target is never binding: no attack has a larger advantage"
        return Calibration(parameter, math.inf, bound(math.inf), method)
    least = bound(0.0)
    if least.value > target:
        raise InfeasibleTarget(
            f"target must be greater than {least.value:.6g}, what {least.theorem} "
            f"gives at {parameter} 0, got {target}; lower delta.",
            least=least.value,
        )
    value = greatest_float(
        lambda level: bound(level).value <= target, low=0.0, high=LARGEST
    )
    return Calibration(parameter, value, bound(value), "bisection over the floats")
