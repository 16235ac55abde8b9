r"""The closed form for Markov chains: every target, every start, every length.

With :math:`\Delta` the projective diameter of the transition matrices, every
epsilon-DP mechanism leaks at most B with

.. math:: \sinh(B/4) = e^{\Delta/2} \sinh(\varepsilon/4).

The theorem and its proof are on the theory page *Markov chains: the projective bound*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from undertow._numeric import greatest_float, inflate, nudge_up
from undertow._validate import check_count, check_non_negative, check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget, NotApplicable

__all__ = [
    "MARGIN",
    "OmegaMethod",
    "ProjectiveMethod",
    "closed_value",
    "finite_leakage",
    "influence",
    "positive_level",
    "projective_budget",
    "projective_leakage",
    "ratio_diameter",
    "require_dp",
    "require_finite",
]

MARGIN = 1e-12
"""Relative margin by which closed forms are raised; it covers their rounding.

An error h in the diameter moves the leakage by at most a share h/2 of it, an error in
the exponential by the same share; both stay below 5e-13 wherever they are used.
"""

_THEOREM = "projective bound for Markov chains"
_LARGE = 700.0  # sinh overflows past this
_SETTLED = 30.0  # asinh(z) is log(2 z) to the last bit for z above exp(30)
_SMALLEST = 1e-290


def projective_leakage(
    epsilon: float, diameter: float, *, size: int | None = None
) -> Leakage:
    r"""Bound the leakage about a Markov chain by its projective diameter.

    .. math:: B = 4 \operatorname{asinh}\left(e^{\Delta/2} \sinh(\varepsilon/4)\right)

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    diameter : float
        Largest projective diameter of a transition matrix; non-negative, finite.
    size : int, optional
        Number of records; caps the bound at ``size * epsilon``.

    Returns
    -------
    Leakage
        At most ``epsilon + 2 * diameter``; equal to `epsilon` at diameter 0.

    Raises
    ------
    NotApplicable
        If the diameter is infinite.

    Notes
    -----
    Proved on the theory page. Any initial law, any mechanism, time-varying chains;
    independent of the length. For small epsilon the factor is ``exp(diameter / 2)``.
    Raised by the relative margin `MARGIN`.

    Examples
    --------
    >>> round(projective_leakage(0.1, 2.8351075005).value, 8)
    0.41201528
    """
    epsilon = check_level(epsilon)
    diameter = check_non_negative(diameter, "diameter")
    require_finite(diameter, "projective")
    value = closed_value(epsilon, diameter)
    if size is not None:
        value = min(value, general_leakage(epsilon, size).value)
    return Leakage(
        value,
        _THEOREM,
        checked=(f"projective diameter {diameter:.6g} is finite",),
        witness=_no_knowledge(size),
        method="projective",
    )


def projective_budget(
    target: float, diameter: float, *, size: int | None = None
) -> float:
    r"""Return the largest DP level whose projective bound is at most `target`.

    .. math:: \varepsilon = 4 \operatorname{asinh}\left(e^{-\Delta/2} \sinh(B/4)\right)

    Every positive target has one. The level is found on the forward bound itself,
    rounding included, so that the recomputed leakage is at most the target.

    Examples
    --------
    >>> round(projective_budget(1.0, 2.8351075005), 8)
    0.24468533
    """
    target = check_positive(target, "target")
    diameter = check_non_negative(diameter, "diameter")
    require_finite(diameter, "projective")
    count = None if size is None else check_count(size, "size")

    def holds(epsilon: float) -> bool:
        if closed_value(epsilon, diameter) <= target:
            return True
        return count is not None and general_leakage(epsilon, count).value <= target

    return positive_level(holds, target)


def positive_level(holds: Callable[[float], bool], target: float) -> float:
    """Return the greatest DP level up to `target` at which `holds` is still true.

    Raises
    ------
    InfeasibleTarget
        If that level is zero.
    """
    level = greatest_float(holds, low=0.0, high=nudge_up(target))
    if level == 0:
        raise InfeasibleTarget(
            f"target must be met by a positive DP level, got {target:g} and a level "
            "below the range of floats; use method 'general' with a length.",
            least=target,
        )
    return level


def ratio_diameter(ratio: float) -> float:
    r"""Return :math:`2 \log \gamma`, which no projective diameter passes.

    Parameters
    ----------
    ratio : float
        Largest ratio gamma of two transition probabilities, or omega of two with the
        same next state; at least 1 and finite.

    Examples
    --------
    >>> round(projective_leakage(1.0, ratio_diameter(2.0)).value, 6)
    1.94352
    """
    ratio = check_positive(ratio, "ratio")
    if ratio < 1:
        raise ValueError(f"ratio must be at least 1, got {ratio}.")
    return nudge_up(2 * math.log(ratio), 4) if ratio > 1 else 0.0


def finite_leakage(epsilon: float, diameter: float, *, size: int) -> Leakage:
    r"""Bound the leakage about a chain of `size` records by the recursion itself.

    .. math::
        B_n = \varepsilon + \max_i (d_i + d_{n-1-i}), \quad d_0 = 0, \quad
        \tanh\frac{d_{j+1}}{4} = \tanh\frac{\Delta}{4} \tanh\frac{d_j + \varepsilon}{4}

    Never above :func:`projective_leakage`, whose fixed point it approaches from below.

    Examples
    --------
    >>> P_diameter = 2.8351075005
    >>> [round(finite_leakage(1.0, P_diameter, size=n).value, 4) for n in (1, 2, 9)]
    [1.0, 1.602, 3.4517]
    """
    epsilon, size = check_level(epsilon), check_count(size, "size")
    diameter = check_non_negative(diameter, "diameter")
    require_finite(diameter, "window recursion")
    sides = np.empty(size)
    reached, settled = 0.0, size
    for j in range(size):
        sides[j] = reached
        following = influence(epsilon + reached, diameter)
        if following <= reached and j:
            sides[j:], settled = reached, j
            break
        reached = following
    value = inflate(epsilon + float((sides + sides[::-1]).max()), _margin(settled))
    best = min(value, projective_leakage(epsilon, diameter, size=size).value)
    return Leakage(
        best,
        f"{_THEOREM}, finite length",
        checked=(f"projective diameter {diameter:.6g} is finite",),
        witness=_no_knowledge(size),
        method="projective",
    )


def influence(oscillation: float, diameter: float) -> float:
    r"""Return how far one kernel lets a neighbour's influence through.

    .. math:: d = 4 \operatorname{artanh}\left(\tanh(a/4) \tanh(\Delta/4)\right)

    The largest change of ``log E[f(Y) | X = x]`` in x, over functions whose logarithm
    oscillates by at most a and kernels of projective diameter at most Delta.

    Examples
    --------
    >>> influence(1.0, 0.0), influence(0.7, math.inf)
    (0.0, 0.7)
    """
    product = math.tanh(oscillation / 4) * math.tanh(diameter / 4)
    if product < 0.5:
        return 4 * math.atanh(product)
    if math.isinf(diameter):
        return oscillation
    # The same in exponentials, where artanh would lose its digits near one.
    total = (oscillation + diameter) / 2
    apart = abs(oscillation - diameter) / 2
    gain = math.log1p(math.exp(-total)) - math.log1p(math.exp(-apart))
    return min(oscillation, diameter) + 2 * gain


def closed_value(epsilon: float, diameter: float) -> float:
    """Return the closed form, raised by `MARGIN` and capped at its limit."""
    if epsilon == 0 or diameter == 0:
        return epsilon
    cap = nudge_up(epsilon + 2 * diameter)
    if epsilon / 4 > _LARGE:
        return cap
    small = max(epsilon, _SMALLEST)  # monotone: safe for what is below it
    exponent = diameter / 2 + _log_sinh(small / 4)
    if exponent > _SETTLED:
        return min(inflate(4 * (exponent + math.log(2)), MARGIN), cap)
    return min(inflate(4 * math.asinh(math.exp(exponent)), MARGIN), cap)


def _log_sinh(value: float) -> float:
    return math.log(value if value < 1e-9 else math.sinh(value))


def require_finite(diameter: float, name: str) -> None:
    """Refuse an infinite diameter, naming what works instead."""
    if diameter == math.inf:
        raise NotApplicable(
            f"the {name} bound needs transitions of positive probability, got a zero "
            "and so an infinite projective diameter; use method 'steps', or 'general' "
            "with a length."
        )


def require_dp(query: Query, name: str) -> None:
    """Refuse an unclipped study, whose release is not DP for every pair of states."""
    if isinstance(query, LinearQuery) and query.gap is not None:
        raise NotApplicable(
            f"method {name!r} needs a DP release, got an unclipped linear query for "
            f"secrets at most {query.gap:g} apart; leave gap out."
        )


def _no_knowledge(size: int | None) -> Any:
    middle = 0 if size is None else (size - 1) // 2
    return adversary_witness(
        Adversary(middle), note="a record inside a long stretch of unknown ones"
    )


def _margin(steps: int) -> float:
    return MARGIN + 1e-15 * steps


class ProjectiveMethod(Method):
    """The closed form from the projective diameter of the model."""

    name: ClassVar[str] = "projective"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the closed form for any mechanism, any start and any length."""
        require_dp(query, self.name)
        return projective_leakage(epsilon, model.diameter, size=model.size)

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse."""
        require_dp(query, self.name)
        return projective_budget(target, model.diameter, size=model.size)


class OmegaMethod(Method):
    r"""The closed form from omega: :math:`\sinh(B/4) = \omega \sinh(\varepsilon/4)`.

    Weaker than "projective", as ``diameter <= 2 log(omega)``; at most
    ``epsilon + 4 log(omega)``. It needs only the largest ratio within a column.
    """

    name: ClassVar[str] = "omega"
    theorem: ClassVar[str] = "column-ratio bound for Markov chains"
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the bound for any mechanism, any start and any length."""
        ratio = self._ratio(model, query)
        found = projective_leakage(epsilon, ratio_diameter(ratio), size=model.size)
        return Leakage(
            found.value,
            self.theorem,
            checked=(f"column ratio {ratio:.6g} is finite",),
            witness=found.witness,
            method=self.name,
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse."""
        diameter = ratio_diameter(self._ratio(model, query))
        return projective_budget(target, diameter, size=model.size)

    def _ratio(self, model: Any, query: Query) -> float:
        require_dp(query, self.name)
        ratio = float(model.omega)
        require_finite(ratio, "omega")
        return ratio
