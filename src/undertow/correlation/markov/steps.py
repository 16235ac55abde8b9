"""Several steps at once: chains with impossible transitions, and of higher order.

A power :math:`P^k` may be positive where P is not. The records between two points k
steps apart may then change arbitrarily, at the price of epsilon each. Chains that
remember the last q records need blocks of q records instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_count,
    check_index,
    check_non_negative,
)
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level, last_level
from undertow.correlation.markov.chain import read_law, read_values, sample_masked_path
from undertow.correlation.markov.projective import (
    MARGIN,
    closed_value,
    log_diameter,
    read_kernels,
    read_numbers,
    require_dp,
    stationary_law,
)
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.query import Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem, LeakageTheorem
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import UNIT, inflate, nudge_up

MOST_STEPS = 64
"""Largest number of steps k that is tried."""

Diameters = dict[int, float]

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
    given = _Steps(_check_diameters(diameters), size)
    return StepTheorem().at(given, check_level(epsilon))


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
    given = _Steps(_check_diameters(diameters), size)
    return WindowTheorem().at(given, check_level(epsilon))


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
    return log_diameter(reached, entry_error=4 * k * terms * UNIT)


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


class _Steps(NamedTuple):
    """Projective diameters by number of steps, and how many records there are."""

    diameters: Diameters
    size: int | None

    def capped(self, value: float, epsilon: float) -> float:
        """Return a bound, or the general one where that is smaller."""
        if self.size is None:
            return value
        return min(value, general_leakage(epsilon, self.size).value)


class _PowerTheorem(FormulaTheorem):
    """What the two methods on powers of the transition matrix share."""

    published = False
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

    def read(self, model: Any, query: Query) -> _Steps:
        """Return the diameter of k steps, for each k that has a finite one."""
        require_dp(query, self.name)
        found = step_diameters(model, until_useless=self.stops_early)
        if not found and model.size != 1:
            raise NotApplicable(
                f"method {self.name!r} needs k steps that can lead from every state to "
                f"every reached one, got none up to k = {MOST_STEPS}; use 'general' "
                "with a length."
            )
        return _Steps(found or {1: 0.0}, model.size)

    def within(self, given: _Steps, target: float) -> float:
        """Return the largest level whose bound is within `target`."""

        def holds(epsilon: float) -> bool:
            return self.at(given, epsilon).value <= target

        return last_level(holds, target, refusal=self.refusal(given, target))

    def refusal(self, given: _Steps, target: float) -> InfeasibleTarget | None:
        """Return what to say of a target out of reach; None if all are in reach."""
        return None


class StepTheorem(_PowerTheorem):
    """The k-step bound, for chains with zeros; first-order chains only."""

    name = "steps"
    source = "k-step bound for Markov chains with zeros"

    def at(self, given: _Steps, epsilon: float) -> Leakage:
        """Return the smallest bound over k, for any mechanism and any start."""
        diameters = given.diameters
        value, k = min((_step_value(epsilon, k, d), k) for k, d in diameters.items())
        return self.stated(
            given.capped(value, epsilon),
            checked=(f"{k} steps have projective diameter {diameters[k]:.6g}",),
            witness=adversary_witness(
                Adversary(0), note=f"compared {k} steps at a time"
            ),
        )


class WindowTheorem(_PowerTheorem):
    """The window bound: simple to explain, never better than "steps"."""

    name = "window"
    source = "window bound for Markov chains"
    stops_early: ClassVar[bool] = False

    def at(self, given: _Steps, epsilon: float) -> Leakage:
        """Return the smallest bound over windows, for any mechanism and any start."""
        diameters = given.diameters
        side, a = min(((a - 1) * epsilon + d, a) for a, d in diameters.items())
        return self.stated(
            given.capped(inflate(epsilon + 2 * side, MARGIN), epsilon),
            checked=(f"{a} steps have projective diameter {diameters[a]:.6g}",),
            witness=adversary_witness(
                Adversary(0), note=f"records less than {a} steps away are free"
            ),
        )

    def refusal(self, given: _Steps, target: float) -> InfeasibleTarget:
        """Return that the target must be above what the window itself costs."""
        least = inflate(2 * min(given.diameters.values()), MARGIN)
        return InfeasibleTarget(
            f"target must be above {least:.6g} for method 'window', got "
            f"{target:g}; use method 'steps', which reaches every target.",
            least=least,
        )


# Chains that remember the last q records: blocks of q records, and nothing more.
#
# The k-step bound of first-order chains does **not** hold here, not even for the chain
# of the last q records: a known record does not cut the series. What holds is the
# closed form for consecutive blocks of q records.

_MOST_BLOCKS = 4096  # a block matrix of 4096 states takes 128 MB


class HigherOrderChain(Model):
    r"""A chain whose next record depends on the last `order` records.

    Parameters
    ----------
    conditional : array_like of shape (s, ..., s) with order + 1 axes
        ``conditional[x_{t-q}, ..., x_{t-1}, x_t]``, the law of the next record on the
        last axis.
    order : int
        How many records are remembered, q.
    length : int, optional
        Number of records; at least `order`.
    initial : array_like of shape (s, ..., s) with `order` axes, optional
        Law of the first q records; stationary if left out.
    values : array_like of shape (s,), optional
        Number each state stands for.
    renormalise : bool
        Divide laws by their sums.

    Raises
    ------
    ModelError
        If a law does not sum to one, or there are more than 4096 blocks.

    Notes
    -----
    Memory ``s^(2q)`` for the matrix of one block to the next.

    Examples
    --------
    >>> copy = [[[0.7, 0.3], [0.7, 0.3]], [[0.3, 0.7], [0.3, 0.7]]]
    >>> chain = HigherOrderChain(copy, order=2, length=10)
    >>> chain.summary
    'Markov chain of order 2 with 10 records on 2 states'
    >>> round(chain.block_diameter, 6)
    3.389191
    """

    def __init__(
        self,
        conditional: ArrayLike,
        *,
        order: int,
        length: int | None = None,
        initial: ArrayLike | None = None,
        values: ArrayLike | None = None,
        renormalise: bool = False,
    ) -> None:
        self._order = check_count(order, "order")
        laws = _read_conditional(conditional, self._order)
        self._states = int(laws.shape[-1])
        self._embedded, self._correction = _embed(laws, renormalise=renormalise)
        blocks = len(self._embedded)
        self._length = None if length is None else check_count(length, "length")
        if self._length is not None and self._length < self._order:
            raise ModelError(
                f"length must be at least the order {self._order}, got {length}."
            )
        self._initial = (
            None
            if initial is None
            else read_law(np.ravel(initial), blocks, renormalise=renormalise)
        )
        self._values = read_values(values, self._states)
        self._block_diameter = _block_diameter(self._embedded, self._order)

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    @property
    def order(self) -> int:
        """How many records are remembered."""
        return self._order

    @property
    def states(self) -> int:
        """Number of states of a record."""
        return self._states

    @property
    def size(self) -> int | None:
        """Number of records."""
        return self._length

    @property
    def largest_group(self) -> int | None:
        """The length: every record depends on every other."""
        return self._length

    @property
    def value_range(self) -> tuple[float, float]:
        """Least and greatest value of a state."""
        return float(self._values.min()), float(self._values.max())

    @property
    def values(self) -> Array:
        """The number each state stands for."""
        return self._values

    @property
    def block_diameter(self) -> float:
        """Projective diameter of the step from one block of q records to the next."""
        return self._block_diameter

    @property
    def summary(self) -> str:
        """The chain in one line."""
        count = "any number of" if self._length is None else f"{self._length}"
        return (
            f"Markov chain of order {self._order} with {count} records on "
            f"{self._states} states"
        )

    def assumptions(self) -> Assumptions:
        """Return what was checked of the laws, and what must be trusted."""
        noted = () if self._correction is None else (self._correction,)
        return Assumptions(
            checked=("conditional laws are probability laws", *noted),
            unchecked=(
                f"the records follow this Markov chain of order {self._order}",
                "the chain is public knowledge, not fitted to the protected records",
            ),
        )

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the block rule and the general bound."""
        from undertow.correlation.group import GeneralTheorem

        return BlockTheorem(), GeneralTheorem()

    def initial_law(self) -> Array:
        """Return the law of the first q records, flattened; stationary if not given."""
        if self._initial is not None:
            return self._initial.copy()
        return stationary_law(self._embedded)

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` sequences of state indices; one row each."""
        self.require_size("sampling a chain")
        return self.sample_given({}, count, rng=rng)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `count` sequences given the states of the `known` records."""
        evidence = self.check_known(known)
        count = check_count(count, "count", minimum=0)
        size, q = self.require_size("sampling a chain"), self._order
        digits = self._digits()  # state of each of the q records, for each block
        masks = np.ones((size - q + 1, len(digits)))
        for record, state in evidence.items():
            chosen = check_index(state, f"state of record {record}", size=self._states)
            window = max(record - q + 1, 0)
            masks[window] *= digits[:, record - window] == chosen
        steps = np.broadcast_to(self._embedded, (size - q, *self._embedded.shape))
        paths = sample_masked_path(self.initial_law(), steps, masks, count, rng=rng)
        return np.hstack([digits[paths[:, 0]], digits[paths[:, 1:], -1]])

    def _digits(self) -> NDArray[np.int64]:
        grid = np.indices((self._states,) * self._order, dtype=np.int64)
        return grid.reshape(self._order, -1).T


class BlockTheorem(FormulaTheorem):
    r"""The closed form for blocks of q records of a chain of order q.

    .. math:: B = 4 \operatorname{asinh}\left(e^{\Delta/2} \sinh(q \varepsilon/4)\right)

    with the diameter of the step from one block to the next. Only this one step may be
    used: more steps at once are unsound for chains of order above one.
    """

    name = "block"
    source = "block bound for Markov chains of higher order"
    published = False

    def read(self, model: Any, query: Query) -> Any:
        """Return the model, if every block can follow every other."""
        require_dp(query, self.name)
        if model.block_diameter == np.inf:
            raise NotApplicable(
                f"the block bound needs every block of {model.order} records to be "
                "able to follow every other, got a zero and so an infinite projective "
                "diameter; use 'general' with a length."
            )
        return model

    def at(self, given: Any, epsilon: float) -> Leakage:
        """Return the block bound, for any mechanism and any start."""
        note = f"blocks of {given.order} records"
        return self.stated(
            self._value(given, epsilon),
            checked=(f"a block step has diameter {given.block_diameter:.6g}",),
            witness=adversary_witness(Adversary(0), note=note),
        )

    def within(self, given: Any, target: float) -> float:
        """Return its inverse; every target has one."""

        def holds(epsilon: float) -> bool:
            return self._value(given, epsilon) <= target

        return last_level(holds, target)

    @staticmethod
    def _value(model: Any, epsilon: float) -> float:
        order = model.order
        far = nudge_up(order * epsilon) if order > 1 else epsilon
        value = closed_value(far, model.block_diameter) if epsilon > 0 else 0.0
        if model.size is None:
            return value
        return min(value, general_leakage(epsilon, model.size).value)


def _read_conditional(conditional: ArrayLike, order: int) -> Array:
    laws = read_numbers(conditional, "conditional")
    states = laws.shape[-1] if laws.ndim else 0
    if laws.ndim != order + 1 or set(laws.shape) != {states}:
        raise ModelError(
            f"conditional must have {order + 1} axes of one length, one for each "
            f"remembered record and the next one last, got shape {laws.shape}."
        )
    if states**order > _MOST_BLOCKS:
        raise ModelError(
            f"conditional must have at most {_MOST_BLOCKS} blocks of {order} records, "
            f"got {states**order}; use the general bound of a Blocks model."
        )
    return laws


def _embed(laws: Array, *, renormalise: bool) -> tuple[Array, str | None]:
    """Return the first-order matrix of the last q records, and what was corrected."""
    states, blocks = laws.shape[-1], laws.size // laws.shape[-1]
    matrix = np.zeros((blocks, blocks))
    rows = np.repeat(np.arange(blocks), states)
    following = (rows * states) % blocks + np.tile(np.arange(states), blocks)
    matrix[rows, following] = laws.reshape(-1)
    return read_kernels(matrix, renormalise=renormalise)


def _block_diameter(embedded: Array, order: int) -> float:
    single = np.log(embedded, out=np.full_like(embedded, -np.inf), where=embedded > 0)
    step = single
    for _ in range(order - 1):
        step = log_product(step, single)
    return product_diameter(step, order)
