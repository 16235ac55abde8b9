r"""Chains that remember the last q records: blocks of q records, and nothing more.

The k-step bound of first-order chains does **not** hold here, not even for the chain of
the last q records: a known record does not cut the series. What holds is the closed
form for consecutive blocks of q records.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import nudge_up
from undertow._validate import check_count, check_index, check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.closed import (
    closed_value,
    positive_level,
    require_dp,
)
from undertow.correlation.markov.mixing import stationary_law
from undertow.correlation.markov.ratio import read_kernels, read_numbers
from undertow.correlation.markov.sampling import (
    read_law,
    read_values,
    sample_masked_path,
)
from undertow.correlation.markov.steps import log_product, product_diameter
from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import ModelError, NotApplicable

__all__ = ["BlockMethod", "HigherOrderChain"]

Array = NDArray[np.float64]

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

    def methods(self) -> tuple[Method, ...]:
        """Return the block rule and the general bound."""
        from undertow.correlation.general import GeneralMethod

        return BlockMethod(), GeneralMethod()

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


class BlockMethod(Method):
    r"""The closed form for blocks of q records of a chain of order q.

    .. math:: B = 4 \operatorname{asinh}\left(e^{\Delta/2} \sinh(q \varepsilon/4)\right)

    with the diameter of the step from one block to the next. Only this one step may be
    used: more steps at once are unsound for chains of order above one.
    """

    name: ClassVar[str] = "block"
    theorem: ClassVar[str] = "block bound for Markov chains of higher order"
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the block bound, for any mechanism and any start."""
        require_dp(query, self.name)
        epsilon = check_level(epsilon)
        return Leakage(
            self._value(model, epsilon),
            self.theorem,
            checked=(f"a block step has diameter {model.block_diameter:.6g}",),
            witness=adversary_witness(
                Adversary(0), note=f"blocks of {model.order} records"
            ),
            method=self.name,
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse; every target has one."""
        require_dp(query, self.name)
        target = check_positive(target, "target")

        def holds(epsilon: float) -> bool:
            return self._value(model, epsilon) <= target

        return positive_level(holds, target)

    @staticmethod
    def _value(model: Any, epsilon: float) -> float:
        diameter, order = model.block_diameter, model.order
        if diameter == np.inf:
            raise NotApplicable(
                f"the block bound needs every block of {order} records to be able to "
                "follow every other, got a zero and so an infinite projective "
                "diameter; use 'general' with a length."
            )
        far = nudge_up(order * epsilon) if order > 1 else epsilon
        value = closed_value(far, diameter) if epsilon > 0 else 0.0
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
