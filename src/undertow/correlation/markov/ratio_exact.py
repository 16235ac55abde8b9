r"""The exact largest ratio of two conditional laws of the unknown records.

.. math::
    \rho^* = \sup \log \frac{\Pr[x_U \mid x_K, x_i]}{\Pr[x_U \mid x_K, x_i']}

Every epsilon-DP mechanism leaks at most epsilon plus it. For fixed secrets the parts
left and right of the target separate, and only the two nearest steps matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import nudge_up
from undertow.correlation.markov.closed import require_dp
from undertow.correlation.markov.published import additive_budget, additive_leakage
from undertow.correlation.method import Method
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable

__all__ = ["RatioMethod", "largest_log_ratio"]

Array = NDArray[np.float64]

_UNIT = 2.0**-53


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
    error = 8 * _UNIT * (2 * chain.states + 2 * largest)
    return nudge_up(best + error, 4) if best > 0 else 0.0


class RatioMethod(Method):
    """Epsilon plus the exact largest log ratio; smaller than 4 log(omega)."""

    name: ClassVar[str] = "ratio"
    theorem: ClassVar[str] = "exact conditional ratio of a Markov chain"
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the bound, for any mechanism."""
        require_dp(query, self.name)
        return additive_leakage(
            epsilon,
            largest_log_ratio(model),
            theorem=self.theorem,
            method=self.name,
            checked=("transitions are positive",),
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse, for targets above the ratio."""
        require_dp(query, self.name)
        return additive_budget(target, largest_log_ratio(model), name=self.name)


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
