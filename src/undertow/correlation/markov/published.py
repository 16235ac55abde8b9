"""The published Markov bounds: epsilon plus a constant, and the least such constant.

Theorem 6.20 of the thesis (Corollary 7.4 of the master's thesis) charges a constant
for correlation, so targets at or below ``4 log(gamma)`` cannot be reached with it.
Both published bounds follow from one with the column ratio in place of gamma, which
needs no stationary start, and that from the exact largest ratio of two conditional
laws; see the theory page *Markov chains: the published bounds*.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_positive
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level, last_level
from undertow.correlation.markov.projective import ratio_diameter, require_dp
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import InfeasibleTarget, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import UNIT, nudge_up


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
    found = GammaTheorem().at(gamma, check_level(epsilon))
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
    return GammaTheorem().within(gamma, check_positive(target, "target"))


class AdditiveTheorem(FormulaTheorem):
    """A theorem of the form: leakage at most the DP level plus a price of correlation.

    No attacker attains it: the bound multiplies worst cases that exclude each other.
    """

    @abstractmethod
    def price(self, given: float) -> float:
        """Return the price of correlation, given what was read off the model."""

    def at(self, given: float, epsilon: float) -> Leakage:
        """Return `epsilon` plus the price, rounded up."""
        return self.stated(_raised(epsilon, self.price(given)), tight=False)

    def within(self, given: float, target: float) -> float:
        """Return `target` less the price, rounded down.

        Raises
        ------
        InfeasibleTarget
            If nothing is left.
        """
        extra = self.price(given)

        def holds(level: float) -> bool:
            return _raised(level, extra) <= target

        refusal = InfeasibleTarget(
            f"target must be above {extra:.6g} for method {self.name!r}, got "
            f"{target:g}; use method 'projective', which reaches every target, or "
            "'general' with a length.",
            least=extra,
        )
        return last_level(holds, target, refusal=refusal)


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


class GammaTheorem(AdditiveTheorem):
    """Theorem 6.20: epsilon plus four times the logarithm of gamma."""

    name = "gamma"
    source = "Theorem 6.20 (Markov bound)"

    def read(self, model: Any, query: Query) -> float:
        """Return gamma."""
        require_dp(query, self.name)
        return _finite_ratio(float(model.gamma), self.source)

    def price(self, given: float) -> float:
        """Return four times the logarithm of gamma."""
        return 2 * ratio_diameter(given)

    def at(self, given: float, epsilon: float) -> Leakage:
        """Return the published bound, for any mechanism."""
        found = super().at(given, epsilon)
        return replace(found, checked=(f"transition ratio {given:.6g} is finite",))


class ZhaoTheorem(AdditiveTheorem):
    r"""The bound :math:`\varepsilon + 6 \log \omega` attributed to Zhao et al.

    Quoted by the master's thesis (Equation 280) without a proof. It holds because
    :math:`\varepsilon + 4 \log \omega` does, which is proved on the theory page and is
    never larger.
    """

    name = "zhao"
    source = "Zhao et al., by the column-ratio bound that dominates it"

    def read(self, model: Any, query: Query) -> float:
        """Return omega."""
        require_dp(query, self.name)
        return _finite_ratio(float(model.omega), "the bound of Zhao et al.")

    def price(self, given: float) -> float:
        """Return six times the logarithm of omega."""
        return 3 * ratio_diameter(given)

    def at(self, given: float, epsilon: float) -> Leakage:
        """Return the bound, for any mechanism."""
        found = super().at(given, epsilon)
        return replace(found, checked=(f"column ratio {given:.6g} is finite",))


def _finite_ratio(ratio: float, theorem: str) -> float:
    if ratio == math.inf:
        raise NotApplicable(
            f"{theorem} needs transitions of positive probability, got a zero and so "
            "an infinite ratio; use method 'steps', or 'general' with a length."
        )
    return ratio


# The exact largest ratio of two conditional laws of the unknown records.
#
# .. math::
#     \rho^* = \sup \log \frac{\Pr[x_U \mid x_K, x_i]}{\Pr[x_U \mid x_K, x_i']}
#
# Every epsilon-DP mechanism leaks at most epsilon plus it. For fixed secrets the parts
# left and right of the target separate, and only the two nearest steps matter.


def largest_log_ratio(chain: Any) -> float:
    r"""Return :math:`\rho^*`, the largest log ratio of two conditional laws.

    Parameters
    ----------
    chain : MarkovChain
        With positive transitions. Without a length, the supremum over all lengths.
        A time-varying chain without initial law is bounded over every start.

    Returns
    -------
    float
        Rounded up by its rounding error.

    Raises
    ------
    NotApplicable
        If a transition has probability zero.

    Notes
    -----
    Proved on the theory page *Markov chains: the published bounds*. On the right, the
    next record unknown and the one q steps away known contributes
    ``max_u log P[x,u]/P[x',u] + max_v log P^q[x',v]/P^q[x,v]``, which does not grow
    with q because a longer power averages a shorter one, so q = 2 is enough; likewise
    on the left. Cost ``s^3`` for a homogeneous chain, ``n s^3`` otherwise.

    Examples
    --------
    >>> from undertow.correlation.markov.chain import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], length=5)
    >>> round(largest_log_ratio(chain), 9)
    7.427144133
    """
    if not chain.is_positive:
        raise NotApplicable(
            "method 'ratio' needs transitions of positive probability, got a zero; "
            "use method 'steps', or 'general' with a length."
        )
    if chain.size == 1 or (chain.kernels == chain.kernels[:, :1]).all():
        return 0.0  # no other record, or independent ones
    best = max(
        float(np.where(allowed, left + right, 0.0).max())
        for left, right, allowed in _targets(chain)
    )
    largest = float(np.abs(np.log(chain.kernels)).max())
    error = 8 * UNIT * (2 * chain.states + 2 * largest)
    return nudge_up(best + error, 4) if best > 0 else 0.0


class RatioTheorem(AdditiveTheorem):
    """Epsilon plus the exact largest log ratio; smaller than 4 log(omega)."""

    name = "ratio"
    source = "exact conditional ratio of a Markov chain"
    published = False
    checked = ("transitions are positive",)

    def read(self, model: Any, query: Query) -> float:
        """Return the largest log ratio."""
        require_dp(query, self.name)
        return largest_log_ratio(model)

    def price(self, given: float) -> float:
        """Return the ratio itself, which is the price."""
        return given


def _targets(chain: Any) -> Iterator[tuple[Array, Array, NDArray[np.bool_]]]:
    """Yield for each kind of target its left and right part and the pairs allowed."""
    start = _start(chain)
    # Three records or more to the left, two or more to the right, are all alike.
    size = 6 if chain.size is None else int(chain.size)
    if chain.is_homogeneous:
        ends = {*range(min(size, 4)), *range(max(size - 3, 0), size)}
        targets = sorted({(min(i, 3), min(size - 1 - i, 2)) for i in ends})
    else:
        targets = [(i, size - 1 - i) for i in range(size)]
    for i, d in targets:
        possible = np.ones(chain.states, dtype=np.bool_)
        if start is not None and i == 0:
            possible = start > 0
        pairs = possible[:, None] & possible[None, :]
        yield _left(chain, i, start), _right(chain, i, d), pairs


def _start(chain: Any) -> Array | None:
    if chain.initial is None and not chain.is_homogeneous:
        return None
    law: Array = chain.initial_law()
    return law


def _right(chain: Any, i: int, d: int) -> Array:
    if d == 0:
        return np.zeros((chain.states, chain.states))
    part = _rows(chain.step(i))
    if d > 1:
        part = part + _rows(chain.step(i) @ chain.step(i + 1)).T
    return np.maximum(part, 0.0)


def _left(chain: Any, i: int, start: Array | None) -> Array:
    if i == 0:
        return np.zeros((chain.states, chain.states))
    P = chain.step(i - 1)
    if i == 1:
        sources = P if start is None else P[start > 0]
        ends = sources if start is None else (start @ P)[None]
        return np.maximum(_columns(sources) + _columns(ends).T, 0.0)
    two = chain.step(i - 2) @ P
    if i == 2 and start is not None:
        two = two[start > 0]
    return np.maximum(_columns(P) + _columns(two).T, 0.0)


def _rows(matrix: Array) -> Array:
    """Return ``[x, x']``: the largest log ratio of row x over row x'."""
    L = np.log(matrix)
    return np.stack([(row - L).max(axis=1) for row in L])


def _columns(matrix: Array) -> Array:
    """Return ``[x, x']``: the largest log ratio of column x over column x'."""
    return _rows(matrix.T)
