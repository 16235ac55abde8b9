r"""A count with (discrete) Laplace noise on a Markov chain: exact leakage.

A count leaks at most as much as the worst mechanism, and on positively dependent
two-state chains exactly as much. The theorems and their proofs are on the theory page
*Counts on Markov chains*.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_budget, general_leakage
from undertow.correlation.markov.box_search import largest_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.count_windows import CountWindows, WorstCount
from undertow.correlation.markov.two_state import TwoStateMethod, require_start
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import CountQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import ModelError, NotApplicable
from undertow.privacy.result import Witness

__all__ = ["CountMethod", "count_budget", "count_leakage"]

_EXACT = "exact leakage of a count on a Markov chain"
_ATTAINED = "exact conversion for two-state chains, attained by the count"
_BOUND = "exact conversion for two-state chains"
_MECHANISM = "the count with Laplace or discrete Laplace noise"
_MARGIN = 1e-12
# Operations of one evaluation: at most, and at most where nobody asked by name.
_MOST, _CHEAP = 2e10, 2e9


def count_leakage(
    chain: MarkovChain, epsilon: float, *, states: ArrayLike = (1,)
) -> Leakage:
    r"""Return what a count of records in `states` with Laplace noise leaks.

    .. math:: \#\{t : X_t \in A\} + \mathrm{Lap}(1/\varepsilon)

    Parameters
    ----------
    chain : MarkovChain
        How the records depend.
    epsilon : float
        DP level of the release; non-negative and finite.
    states : array_like of int
        The states counted, A.

    Returns
    -------
    Leakage
        Exact (`tight`) for positively dependent two-state chains of any length, and
        for other chains short enough to evaluate every window; for longer two-state
        chains the leakage of the worst mechanism.

    Raises
    ------
    NotApplicable
        If a chain of three or more states is too long, or has no length.

    Notes
    -----
    Proved on the theory page; discrete Laplace noise has the same leakage. The value
    of the ratio at extreme outputs alone is *not* used where it is not proved to be the
    largest: on three states it can be too small.

    Examples
    --------
    >>> chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]], length=10)
    >>> round(count_leakage(chain, 1.0).value, 7)
    3.3857125
    """
    query = CountQuery(int(z) for z in np.atleast_1d(np.asarray(states)))
    return CountMethod().leakage(chain, epsilon, query=query)


def count_budget(
    chain: MarkovChain, target: float, *, states: ArrayLike = (1,)
) -> float:
    """Return the largest DP level at which :func:`count_leakage` is within `target`.

    Examples
    --------
    >>> chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]], length=288)
    >>> round(count_budget(chain, 1.0), 12)
    0.250325787648
    """
    query = CountQuery(int(z) for z in np.atleast_1d(np.asarray(states)))
    return CountMethod().budget(chain, target, query=query)


class CountMethod(Method):
    """The exact leakage of a noisy count."""

    name: ClassVar[str] = "count"
    theorem: ClassVar[str] = _EXACT
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the exact leakage, or that of the worst mechanism on two states."""
        epsilon = check_level(epsilon)
        counted = _counted(model, query)
        if counted.all():
            return _constant(query)
        if model.states == 2 and _is_positive(model):
            return _attained(model, epsilon, query)
        if not _is_feasible(model, _MOST):
            return _worst_mechanism(model, epsilon, query)
        return _evaluated(model, _windows(model, counted), epsilon, query)

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest level found within the target."""
        target = check_positive(target, "target")
        counted = _counted(model, query)
        if counted.all():
            return target
        alike = model.states == 2 and _is_positive(model)
        if alike or not _is_feasible(model, _MOST):
            if model.states != 2:
                raise NotApplicable(_too_long(model))
            return TwoStateMethod().budget(model, target, query=query)
        windows = _windows(model, counted)
        return largest_level(
            lambda level: _evaluated(model, windows, level, query).value,
            target,
            low=general_budget(target, model.require_size("an exact count")),
        )

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason where an evaluation takes more than a second."""
        if model.states == 2 and _is_positive(model):
            return None
        if _is_feasible(model, _MOST) and not _is_feasible(model, _CHEAP):
            return (
                "the exact count takes long for "
                f"{model.size} records on {model.states} states"
            )
        return None


def _counted(model: Any, query: Query) -> Any:
    if not isinstance(query, CountQuery):
        raise NotApplicable(
            "the exact count needs a counting query with Laplace noise, got "
            f"{query.name!r}; use method 'two-state', 'pairwise' or 'projective'."
        )
    stray = [z for z in sorted(query.states) if z >= model.states]
    if stray:
        raise ModelError(
            f"states must be among 0..{model.states - 1} of the chain, got {stray[0]}."
        )
    return np.isin(np.arange(model.states), sorted(query.states)).astype(np.int64)


def _is_positive(model: Any) -> bool:
    trace = model.kernels[:, 0, 0] + model.kernels[:, 1, 1]
    return bool((trace >= 1).all())


def _is_feasible(model: Any, most: float) -> bool:
    if model.size is None:
        return False
    n, s = model.size, model.states
    cost = float(n * (s + 1)) ** 2 * n * s * (n + s)
    uniform = model.is_homogeneous and model.is_positive
    return bool(cost * (1 if uniform else n) <= most)


def _windows(model: Any, counted: Any) -> CountWindows:
    kernels = model.transition if model.is_homogeneous else model.steps()
    require_start(model, "count")
    return CountWindows(kernels, model.initial_law(), model.size, counted)


def _attained(model: Any, epsilon: float, query: Query) -> Leakage:
    """Return the value that a count on a positively dependent chain attains."""
    found = TwoStateMethod().leakage(model, epsilon, query=query)
    note = "seeing a noisy count below or above every possible one attains it"
    return Leakage(
        found.value,
        _ATTAINED,
        checked=(*found.checked, "neighbouring records are positively dependent"),
        witness=_noted(found.witness, note),
        tight=found.tight,
        method="count",
        mechanisms=_MECHANISM,
        scope=query.scope(),
    )


def _worst_mechanism(model: Any, epsilon: float, query: Query) -> Leakage:
    """Return what no mechanism exceeds, for two states and a long chain."""
    if model.states != 2:
        raise NotApplicable(_too_long(model))
    found = TwoStateMethod().leakage(model, epsilon, query=query)
    return Leakage(
        found.value,
        _BOUND,
        checked=found.checked,
        witness=found.witness,
        method="count",
        mechanisms=_MECHANISM,
        scope=query.scope(),
    )


def _too_long(model: Any) -> str:
    count = "any number of" if model.size is None else f"{model.size}"
    return (
        "the exact count evaluates every window, which needs a short chain, got "
        f"{count} records on {model.states} states; use method 'pairwise' or "
        "'projective', which bound every mechanism."
    )


def _evaluated(
    model: Any, windows: CountWindows, epsilon: float, query: Query
) -> Leakage:
    worst = windows.largest(epsilon)
    # Rounding of sums of n terms, relative to the noise that they weigh.
    error = 1e-14 * model.size * min(1.0, epsilon * model.size)
    value = inflate(worst.value + error, _MARGIN) if worst.value > 0 else 0.0
    return Leakage(
        min(value, general_leakage(epsilon, model.size).value),
        _EXACT,
        checked=(f"every window of {model.size} records was evaluated",),
        witness=_witness(worst),
        tight=True,
        method="count",
        mechanisms=_MECHANISM,
        scope=query.scope(),
    )


def _constant(query: Query) -> Leakage:
    return Leakage(
        0.0,
        "a count of every state is constant",
        checked=("every state is counted",),
        tight=True,
        method="count",
        mechanisms=_MECHANISM,
        scope=query.scope(),
    )


def _witness(worst: WorstCount) -> Witness | None:
    if worst.pair is None:
        return None
    known = dict(end for end in (worst.left_end, worst.right_end) if end is not None)
    return adversary_witness(
        Adversary(worst.target, known, known),
        pair=worst.pair,
        output=worst.output,
        note="on top of the known records; all records beyond these are known",
    )


def _noted(witness: Witness | None, note: str) -> Witness | None:
    if witness is None:
        return None
    return Witness(witness.kind, f"{witness.summary}; {note}", witness.details)
