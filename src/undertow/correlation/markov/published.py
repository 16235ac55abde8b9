r"""The published Markov bounds: :math:`\varepsilon + 4 \log \gamma`, and its price.

Theorem 6.20 of the thesis (Corollary 7.4 of the master's thesis) charges a constant
for correlation, so targets at or below ``4 log(gamma)`` cannot be reached with it. Both
published bounds follow from one with the column ratio in place of gamma, which needs
no stationary start; see the theory page *Markov chains: the published bounds*.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from undertow._numeric import greatest_float, nudge_up
from undertow._validate import check_count, check_positive
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.closed import ratio_diameter, require_dp
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget, NotApplicable

__all__ = [
    "GammaMethod",
    "ZhaoMethod",
    "accuracy_factor",
    "additive_budget",
    "additive_leakage",
    "gamma_budget",
    "gamma_leakage",
    "largest_gamma",
    "ratio_threshold",
]

_GAMMA = "Theorem 6.20 (Markov bound)"


def gamma_leakage(epsilon: float, gamma: float, *, size: int | None = None) -> Leakage:
    r"""Bound the leakage about a Markov chain by the ratio of its transitions.

    .. math:: \mathrm{BDPL} \le \varepsilon + 4 \log \gamma

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    gamma : float
        Largest over smallest transition probability; at least 1 and finite.
    size : int, optional
        Number of records; caps the bound at ``size * epsilon``.

    Notes
    -----
    Theorem 6.20 of [1]_, Corollary 7.4 of [2]_. Their stationary start is not needed,
    and the step of their proofs that fails for chains that are not reversible is not
    used: ``omega <= gamma``, and the bound with omega is proved on the theory page.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> round(gamma_leakage(1.0, 4.494505).value, 5)
    7.01142
    """
    extra = 2 * ratio_diameter(gamma)
    checked = (f"transition ratio {gamma:.6g} is finite",)
    found = additive_leakage(
        epsilon, extra, theorem=_GAMMA, method="gamma", checked=checked
    )
    if size is None or found.value <= general_leakage(epsilon, size).value:
        return found
    return general_leakage(epsilon, size)


def gamma_budget(target: float, gamma: float) -> float:
    r"""Return the DP level :math:`B - 4 \log \gamma`.

    Raises
    ------
    InfeasibleTarget
        If the target is not strictly above ``4 log(gamma)``; at equality the noise
        would be infinite.

    Examples
    --------
    >>> round(gamma_budget(10.0, 0.882 / 0.118), 6)
    1.95397
    """
    return additive_budget(target, 2 * ratio_diameter(gamma), name="gamma")


def additive_leakage(
    epsilon: float,
    extra: float,
    *,
    theorem: str,
    method: str,
    checked: tuple[str, ...] = (),
) -> Leakage:
    """Return `epsilon` plus a constant price `extra` of correlation, rounded up."""
    epsilon = check_level(epsilon)
    # No attacker attains it: the bound multiplies worst cases that exclude each other.
    return Leakage(
        _raised(epsilon, extra), theorem, checked=checked, tight=False, method=method
    )


def additive_budget(target: float, extra: float, *, name: str) -> float:
    """Return `target` less the constant price `extra`, rounded down.

    Raises
    ------
    InfeasibleTarget
        If nothing is left.
    """
    target = check_positive(target, "target")

    def holds(level: float) -> bool:
        return _raised(level, extra) <= target

    level = greatest_float(holds, low=0.0, high=nudge_up(target)) if holds(0) else 0.0
    if level == 0:
        raise InfeasibleTarget(
            f"target must be above {extra:.6g} for method {name!r}, got {target:g}; "
            "use method 'projective', which reaches every target, or 'general' with a "
            "length.",
            least=extra,
        )
    return level


def _raised(epsilon: float, extra: float) -> float:
    return nudge_up(epsilon + extra) if extra > 0 else epsilon


def ratio_threshold(epsilon: float, size: int) -> float:
    r"""Return the gamma below which Theorem 6.20 beats the general bound.

    .. math:: \gamma < e^{(n-1)\varepsilon/4}

    Equation 6.70 of the thesis. Infinite where it passes the range of floats.

    Examples
    --------
    >>> round(ratio_threshold(0.5, 20), 6)
    10.751013
    """
    epsilon, size = check_level(epsilon), check_count(size, "size")
    try:
        return math.exp((size - 1) * epsilon / 4)
    except OverflowError:
        return math.inf


def accuracy_factor(target: float, gamma: float) -> float:
    r"""Return how many times more noise Theorem 6.20 asks for than independence.

    .. math:: h = \frac{B}{B - 4 \log \gamma}

    Corollary 6.21 of the thesis, with the strict condition ``B > 4 log(gamma)``.

    Raises
    ------
    InfeasibleTarget
        If the target is not above ``4 log(gamma)``.

    Examples
    --------
    >>> round(accuracy_factor(10.0, 0.882 / 0.118), 4)
    5.1178
    """
    return target / gamma_budget(target, gamma)


def largest_gamma(target: float, factor: float) -> float:
    r"""Return the gamma up to which `factor` times the noise is enough.

    .. math:: \gamma \le e^{(h-1) B / (4 h)}

    Corollary 7.5 of the master's thesis; `factor` is above 1, and infinite for the
    limit that no amount of noise passes.

    Examples
    --------
    >>> [round(largest_gamma(5.0, h), 5) for h in (2.0, 5.0, math.inf)]
    [1.86825, 2.71828, 3.49034]
    """
    target = check_positive(target, "target")
    if not factor > 1:
        raise ValueError(f"factor must be above 1, got {factor}.")
    share = 1.0 if factor == math.inf else (factor - 1) / factor
    return math.exp(share * target / 4)


class GammaMethod(Method):
    """Theorem 6.20: epsilon plus four times the logarithm of gamma."""

    name: ClassVar[str] = "gamma"
    theorem: ClassVar[str] = _GAMMA

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the published bound, for any mechanism."""
        return gamma_leakage(epsilon, self._gamma(model, query))

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse, for targets above ``4 log(gamma)``."""
        return gamma_budget(target, self._gamma(model, query))

    def _gamma(self, model: Any, query: Query) -> float:
        require_dp(query, self.name)
        return _finite_ratio(float(model.gamma), _GAMMA)


class ZhaoMethod(Method):
    r"""The bound :math:`\varepsilon + 6 \log \omega` attributed to Zhao et al.

    Quoted by the master's thesis (Equation 280) without a proof. It holds because
    :math:`\varepsilon + 4 \log \omega` does, which is proved on the theory page and is
    never larger.
    """

    name: ClassVar[str] = "zhao"
    theorem: ClassVar[str] = "Zhao et al., by the column-ratio bound that dominates it"

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the bound, for any mechanism."""
        omega = self._omega(model, query)
        return additive_leakage(
            epsilon,
            3 * ratio_diameter(omega),
            theorem=self.theorem,
            method=self.name,
            checked=(f"column ratio {omega:.6g} is finite",),
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse, for targets above ``6 log(omega)``."""
        extra = 3 * ratio_diameter(self._omega(model, query))
        return additive_budget(target, extra, name=self.name)

    def _omega(self, model: Any, query: Query) -> float:
        require_dp(query, self.name)
        return _finite_ratio(float(model.omega), "the bound of Zhao et al.")


def _finite_ratio(ratio: float, theorem: str) -> float:
    if ratio == math.inf:
        raise NotApplicable(
            f"{theorem} needs transitions of positive probability, got a zero and so "
            "an infinite ratio; use method 'steps', or 'general' with a length."
        )
    return ratio
