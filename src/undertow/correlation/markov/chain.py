"""Markov chains: each record depends on the others through its neighbours only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.markov.mixing import stationary_law
from undertow.correlation.markov.ratio import (
    column_ratio,
    projective_diameter,
    read_kernels,
    read_length,
    transition_ratio,
)
from undertow.correlation.markov.sampling import (
    read_law,
    read_values,
    sample_path,
    sample_path_given,
)
from undertow.correlation.method import Method, stated_methods
from undertow.correlation.model import Assumptions, Known, Model
from undertow.errors import ModelError

if TYPE_CHECKING:
    from undertow.correlation.fitting.markov import MarkovFit

__all__ = ["MarkovChain"]

Array = NDArray[np.float64]


class MarkovChain(Model):
    r"""A first-order Markov chain on finitely many states.

    .. math:: \Pr[X_{t+1} = y \mid X_0, \dots, X_t = x] = P_t[x, y]

    Parameters
    ----------
    transition : array_like of shape (s, s), or sequence of such
        Row-stochastic, ``P[now, next]``. A sequence of n - 1 matrices is a
        time-inhomogeneous chain of n records. Zeros are allowed.
    initial : array_like of shape (s,), optional
        Law of the first record. Left out, a homogeneous chain is taken at its
        stationary start wherever a start is needed; bounds that hold for every start
        do not read it.
    length : int, optional
        Number of records n; left out for results that hold for every length.
    values : array_like of shape (s,), optional
        Number each state stands for; ``0, ..., s - 1`` by default.
    renormalise : bool
        Divide every row (and `initial`) by its sum, for printed or counted
        matrices; the largest correction is kept among the assumptions.

    Raises
    ------
    ModelError
        If a row does not sum to one within 1e-9, an entry is negative or not a number,
        or there are fewer than two states.

    Notes
    -----
    Definition 6.16 of [1]_, without its two hypotheses: neither positive entries nor a
    stationary start are asked for here; each method checks what it needs. Samples and
    known records are *indices* of states. Every record depends on every other, so the
    general bound is n times epsilon.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> chain = MarkovChain([[0.818, 0.182], [0.371, 0.629]], length=731)
    >>> chain.summary
    'Markov chain of 731 records on 2 states'
    >>> chain.stationary().round(4).tolist()
    [0.6709, 0.3291]
    >>> round(chain.gamma, 6), round(chain.diameter, 5)
    (4.494505, 2.03078)
    """

    def __init__(
        self,
        transition: ArrayLike | Sequence[ArrayLike],
        initial: ArrayLike | None = None,
        length: int | None = None,
        *,
        values: ArrayLike | None = None,
        renormalise: bool = False,
    ) -> None:
        kernels, correction = read_kernels(transition, renormalise=renormalise)
        self._kernels = kernels
        self._correction = correction
        self._length = read_length(kernels, length)
        self._initial = (
            None
            if initial is None
            else read_law(initial, kernels.shape[-1], renormalise=renormalise)
        )
        self._values = read_values(values, kernels.shape[-1])

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    @property
    def states(self) -> int:
        """Number of states, s."""
        return int(self._kernels.shape[-1])

    @property
    def length(self) -> int | None:
        """Number of records, n; None if the chain is meant for every length."""
        return self._length

    @property
    def size(self) -> int | None:
        """The length."""
        return self._length

    @property
    def largest_group(self) -> int | None:
        """The length: every record depends on every other."""
        return self._length

    @property
    def values(self) -> Array:
        """The number each state stands for."""
        return self._values

    @property
    def value_range(self) -> tuple[float, float]:
        """Least and greatest value of a state."""
        return float(self._values.min()), float(self._values.max())

    @property
    def is_homogeneous(self) -> bool:
        """Whether every step has the same kernel."""
        return self._kernels.ndim == 2

    @property
    def transition(self) -> Array:
        """The transition matrix of a homogeneous chain."""
        if not self.is_homogeneous:
            raise ModelError(
                "transition must be one matrix, got a chain with one for each step; "
                "use step(t) or steps()."
            )
        return self._kernels

    @property
    def initial(self) -> Array | None:
        """The law of the first record as given; None if it was left out."""
        return self._initial

    @property
    def kernels(self) -> Array:
        """The different kernels, of shape (1, s, s) or (n - 1, s, s)."""
        return self._kernels[None] if self.is_homogeneous else self._kernels

    @property
    def is_positive(self) -> bool:
        """Whether every transition has a positive probability."""
        return bool((self._kernels > 0).all())

    @cached_property
    def gamma(self) -> float:
        """Largest over smallest transition probability; infinite with a zero."""
        return max(transition_ratio(kernel) for kernel in self.kernels)

    @cached_property
    def omega(self) -> float:
        """Largest ratio within a column; infinite with a zero."""
        return max(column_ratio(kernel) for kernel in self.kernels)

    @cached_property
    def diameter(self) -> float:
        """Largest projective diameter of a step; infinite with a zero."""
        return max(projective_diameter(kernel) for kernel in self.kernels)

    @property
    def summary(self) -> str:
        """The chain in one line."""
        count = "any number of" if self._length is None else f"{self._length}"
        kind = "Markov chain" if self.is_homogeneous else "time-varying Markov chain"
        return f"{kind} of {count} records on {self.states} states"

    def step(self, index: int) -> Array:
        """Return the kernel from record `index` to the next one."""
        index = check_count(index, "index", minimum=0)
        if self._length is not None and index > self._length - 2:
            raise ValueError(
                f"index must be a step of a chain of {self._length} records, "
                f"0 to {self._length - 2}, got {index}."
            )
        return self._kernels if self.is_homogeneous else self._kernels[index]

    def steps(self) -> Array:
        """Return all kernels, of shape (n - 1, s, s); needs a length."""
        size = self.require_size("listing the steps of a chain")
        if not self.is_homogeneous:
            return self._kernels
        return np.broadcast_to(self._kernels, (size - 1, self.states, self.states))

    def stationary(self) -> Array:
        """Return the law that the transition matrix leaves unchanged.

        Raises
        ------
        ModelError
            If the chain is time-varying, or has several such laws.
        """
        return self._stationary.copy()

    @cached_property
    def _stationary(self) -> Array:
        return stationary_law(self.transition)

    def initial_law(self) -> Array:
        """Return the law of the first record: the given one, else the stationary one.

        Raises
        ------
        ModelError
            If none was given and the chain has no unique stationary law.
        """
        if self._initial is not None:
            return self._initial.copy()
        if not self.is_homogeneous:
            raise ModelError(
                "initial must be given for a time-varying chain, which has no "
                "stationary law, got None."
            )
        return self.stationary()

    def marginals(self) -> Array:
        """Return the law of each record, of shape (n, s); needs a length."""
        size = self.require_size("the laws of the records")
        laws = np.empty((size, self.states))
        laws[0] = self.initial_law()
        if self._initial is None:
            laws[:] = laws[0]
            return laws
        for t, kernel in enumerate(self.steps()):
            laws[t + 1] = laws[t] @ kernel
        return laws

    @staticmethod
    def fit(
        series: Sequence[Any],
        *,
        states: Sequence[Hashable] | None = None,
        missing: Iterable[Hashable] = (),
        smoothing: float = 0.0,
        confidence: float = 0.95,
        public: bool = False,
    ) -> MarkovFit:
        """Fit to observed series, with a region; see :func:`fit_markov`."""
        from undertow.correlation.fitting.markov import fit_markov

        return fit_markov(
            series,
            states=states,
            missing=missing,
            smoothing=smoothing,
            confidence=confidence,
            public=public,
        )

    def with_length(self, length: int | None) -> MarkovChain:
        """Return the same homogeneous chain with another number of records."""
        other = MarkovChain(self.transition, self._initial, length, values=self._values)
        other._correction = self._correction
        return other

    def assumptions(self) -> Assumptions:
        """Return what was checked of the matrix, and what must be trusted."""
        checked = ["transition rows are probability laws"]
        if self._correction is not None:
            checked.append(self._correction)
        return Assumptions(
            checked=tuple(checked),
            unchecked=(
                "the records follow this first-order Markov chain",
                "the chain is public knowledge, not fitted to the protected records",
            ),
        )

    def methods(self) -> tuple[Method, ...]:
        """Return every method for chains, the strongest first."""
        return stated_methods(self)

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` sequences of state indices; one row each."""
        self.require_size("sampling a chain")
        count = check_count(count, "count", minimum=0)
        return sample_path(self.initial_law(), self.steps(), count, rng=rng)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `count` sequences given the states of the `known` records.

        Raises
        ------
        ModelError
            If the known states cannot occur together.
        """
        evidence = self.check_known(known)
        count = check_count(count, "count", minimum=0)
        return sample_path_given(
            self.initial_law(), self.steps(), evidence, count, rng=rng
        )
