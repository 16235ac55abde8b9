r"""Chains with impossible transitions: several steps at once, and windows.

A power :math:`P^k` may be positive where P is not. The records between two points k
steps apart may then change arbitrarily, at the price of epsilon each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate, nudge_up
from undertow._validate import check_count, check_non_negative, check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.closed import (
    MARGIN,
    closed_value,
    positive_level,
    require_dp,
)
from undertow.correlation.markov.ratio import log_diameter
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget, NotApplicable

__all__ = [
    "MOST_STEPS",
    "StepMethod",
    "WindowMethod",
    "log_product",
    "product_diameter",
    "step_diameters",
    "step_leakage",
    "window_bound",
]

MOST_STEPS = 64
"""Largest number of steps k that is tried."""

Array = NDArray[np.float64]
Diameters = dict[int, float]

_UNIT = 2.0**-53
_UNDERFLOW = 1e-290
_LARGE = 1000.0  # diameters past this are far from useless
# States past which a power costs more than about a second.
_MANY_STATES = 300
_MANY_PRODUCTS = 2e9
# Powers of a time-varying chain that are formed one by one in about a second.
_MANY_POWERS = 20_000


def step_diameters(
    chain: Any, *, most: int = MOST_STEPS, until_useless: bool = True
) -> Diameters:
    r"""Return the projective diameter of k steps, for each k that has a finite one.

    Parameters
    ----------
    chain : MarkovChain
        The chain; time-varying ones take the largest diameter over all starts.
    most : int
        Largest k tried.
    until_useless : bool
        End at a k after which no larger one can improve :func:`step_leakage`: where
        :math:`k (e^{\Delta_k/2} - 1) \le 2`.

    Returns
    -------
    dict of int to float
        Rounded up.

    Notes
    -----
    Products are formed in floats, and by sums of exponentials where an entry would
    underflow. Cost ``k s^3`` for each different step.

    Examples
    --------
    >>> from undertow.correlation.markov.chain import MarkovChain
    >>> golden = MarkovChain([[0.5, 0.5], [1.0, 0.0]])
    >>> {k: round(delta, 4) for k, delta in step_diameters(golden).items()}
    {2: 1.0986}
    """
    most = check_count(most, "most")
    found: Diameters = {}
    for k, logs in enumerate(_log_powers(chain, most), start=1):
        widest = max(product_diameter(product, k) for product in logs)
        if widest < math.inf:
            found[k] = widest
            if until_useless and k * math.expm1(min(widest, _LARGE) / 2) <= 2:
                break
    return found


def step_leakage(
    epsilon: float, diameters: Diameters, *, size: int | None = None
) -> Leakage:
    r"""Bound the leakage about a chain with zeros, by its best number of steps.

    .. math::
        B = \min_k\; (k-1)\,\varepsilon
            + 4 \operatorname{asinh}\left(e^{\Delta_k/2} \sinh(k \varepsilon/4)\right)

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    diameters : dict of int to float
        Projective diameter of k steps, as :func:`step_diameters` returns.
    size : int, optional
        Number of records; caps the bound at ``size * epsilon``.

    Notes
    -----
    Proved on the theory page *Markov chains: zeros and higher order*. **First-order
    chains only**: the records between two points are all unknown, which the nearest
    known record ensures only there.

    Examples
    --------
    >>> round(step_leakage(0.1, {2: math.log(3)}).value, 7)
    0.4461224
    """
    epsilon, diameters = check_level(epsilon), _check_diameters(diameters)
    value, k = min((_step_value(epsilon, k, d), k) for k, d in diameters.items())
    if size is not None:
        value = min(value, general_leakage(epsilon, size).value)
    return Leakage(
        value,
        "k-step bound for Markov chains with zeros",
        checked=(f"{k} steps have projective diameter {diameters[k]:.6g}",),
        witness=adversary_witness(Adversary(0), note=f"compared {k} steps at a time"),
        method="steps",
    )


def window_bound(
    epsilon: float, diameters: Diameters, *, size: int | None = None
) -> Leakage:
    r"""Bound the leakage by a window of free records and what passes its ends.

    .. math:: B = \varepsilon + 2 \min_a \left((a-1)\,\varepsilon + \Delta_a\right)

    The simplest bound to explain, never below :func:`step_leakage`: the records less
    than a steps away count as if they were the target, the rest pays the diameter.

    Examples
    --------
    >>> round(window_bound(1.0, {2: math.log(3)}).value, 6)
    5.197225
    """
    epsilon, diameters = check_level(epsilon), _check_diameters(diameters)
    side, a = min(((a - 1) * epsilon + d, a) for a, d in diameters.items())
    value = inflate(epsilon + 2 * side, MARGIN)
    if size is not None:
        value = min(value, general_leakage(epsilon, size).value)
    return Leakage(
        value,
        "window bound for Markov chains",
        checked=(f"{a} steps have projective diameter {diameters[a]:.6g}",),
        witness=adversary_witness(
            Adversary(0), note=f"records less than {a} steps away are free"
        ),
        method="window",
    )


def log_product(left: Array, right: Array) -> Array:
    """Return the logarithm of a product of matrices given by their logarithms.

    Examples
    --------
    >>> tiny = np.log(np.full((2, 2), 1e-200))
    >>> bool(np.isclose(log_product(tiny, tiny)[0, 0], np.log(2) - 400 * np.log(10)))
    True
    """
    with np.errstate(under="ignore"):
        plain = np.exp(left) @ np.exp(right)
    possible = (np.isfinite(left).astype(float) @ np.isfinite(right)) > 0
    if (plain[possible] > _UNDERFLOW).all():
        return _log(np.where(possible, plain, 0.0))
    return np.stack([_log_row(row, right) for row in left])


def product_diameter(logs: Array, k: int) -> float:
    """Return the diameter of a product of `k` kernels, given by its logarithms.

    Columns of states that cannot be reached play no part; any other zero makes the
    diameter infinite. Rounded up by the error of the product.
    """
    reached = logs[:, np.isfinite(logs).any(axis=0)]
    if not np.isfinite(reached).all():
        return math.inf
    if k == 1 and (reached == reached[0]).all():
        return 0.0  # independent records
    # Each product sums s terms and passes through an exponential and a logarithm.
    terms = len(logs) + 2 * float(np.abs(reached).max())
    return log_diameter(reached, entry_error=4 * k * terms * _UNIT)


def _log_row(row: Array, right: Array) -> Array:
    terms = row[:, None] + right
    top = terms.max(axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore"):
        return shift + _log(np.exp(terms - shift).sum(axis=0))


def _log(values: Array) -> Array:
    return np.log(values, out=np.full(values.shape, -np.inf), where=values > 0)


def _log_powers(chain: Any, most: int) -> Iterator[list[Array]]:
    """Yield, for k = 1, 2, ..., the logarithms of all products of k steps."""
    singles = [_log(kernel) for kernel in chain.kernels]
    limit = most if chain.size is None else min(most, chain.size - 1)
    current = singles
    for k in range(1, limit + 1):
        yield current
        if chain.is_homogeneous:
            current = [log_product(current[0], singles[0])]
        else:
            later = zip(current, singles[k:], strict=False)
            current = [log_product(done, step) for done, step in later]


def _check_diameters(diameters: Diameters) -> Diameters:
    if not diameters:
        raise ValueError("diameters must hold at least one number of steps, got none.")
    return {
        check_count(k, "number of steps"): check_non_negative(d, "diameter")
        for k, d in diameters.items()
    }


def _step_value(epsilon: float, k: int, diameter: float) -> float:
    far = closed_value(nudge_up(k * epsilon) if k > 1 else epsilon, diameter)
    return far if k == 1 else inflate((k - 1) * epsilon + far, MARGIN)


class _PowerMethod(Method):
    """What the two methods on powers of the transition matrix share."""

    published: ClassVar[bool] = False
    stops_early: ClassVar[bool] = True

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return why the powers take long, if they do."""
        kernels = len(model.kernels)
        if not self.stops_early and kernels * MOST_STEPS > _MANY_POWERS:
            return (
                f"{MOST_STEPS} powers for each of {kernels} steps take long, and the "
                "method 'steps' is never worse"
            )
        work = kernels * MOST_STEPS * model.states**3
        if model.states <= _MANY_STATES and work <= _MANY_PRODUCTS:
            return None
        return (
            f"up to {MOST_STEPS} powers of {kernels} matrices with {model.states} "
            "states take long"
        )

    def _diameters(self, model: Any, query: Query) -> Diameters:
        require_dp(query, self.name)
        found = step_diameters(model, until_useless=self.stops_early)
        if not found and model.size != 1:
            raise NotApplicable(
                f"method {self.name!r} needs k steps that can lead from every state to "
                f"every reached one, got none up to k = {MOST_STEPS}; use 'general' "
                "with a length."
            )
        return found or {1: 0.0}


class StepMethod(_PowerMethod):
    """The k-step bound, for chains with zeros; first-order chains only."""

    name: ClassVar[str] = "steps"
    theorem: ClassVar[str] = "k-step bound for Markov chains with zeros"

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the smallest bound over k, for any mechanism and any start."""
        return step_leakage(epsilon, self._diameters(model, query), size=model.size)

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest level whose bound is within `target`."""
        target = check_positive(target, "target")
        diameters = self._diameters(model, query)

        def holds(epsilon: float) -> bool:
            return step_leakage(epsilon, diameters, size=model.size).value <= target

        return positive_level(holds, target)


class WindowMethod(_PowerMethod):
    """The window bound: simple to explain, never better than "steps"."""

    name: ClassVar[str] = "window"
    theorem: ClassVar[str] = "window bound for Markov chains"
    stops_early: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the smallest bound over windows, for any mechanism and any start."""
        return window_bound(epsilon, self._diameters(model, query), size=model.size)

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest level whose bound is within `target`."""
        target = check_positive(target, "target")
        diameters = self._diameters(model, query)

        def holds(epsilon: float) -> bool:
            return window_bound(epsilon, diameters, size=model.size).value <= target

        if not holds(0.0):
            least = inflate(2 * min(diameters.values()), MARGIN)
            raise InfeasibleTarget(
                f"target must be above {least:.6g} for method 'window', got "
                f"{target:g}; use method 'steps', which reaches every target.",
                least=least,
            )
        return positive_level(holds, target)
