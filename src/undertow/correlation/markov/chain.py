"""Markov chains: each record depends on the others through its neighbours only.

One chain (:class:`MarkovChain`), a class of chains that are only roughly known
(:class:`MarkovFamily`), draws with and without known records, and the fit to observed
series with a region instead of a point, also with noise that the fit pays for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_count,
    check_index,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.markov.projective import (
    column_ratio,
    projective_diameter,
    ratio_diameter,
    read_kernels,
    read_length,
    read_numbers,
    stationary_law,
    transition_ratio,
)
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.observation import (
    GoodnessOfFit,
    anytime_limits,
    chain_checks,
    code_series,
    count_transitions,
    count_triples,
)
from undertow.correlation.theorem import LeakageTheorem, stated_methods
from undertow.errors import EstimatedModelWarning, ModelError, NotApplicable
from undertow.mechanisms import NoiseSource
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.array import Array
from undertow.numeric.exact import exact


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

    def methods(self) -> tuple[LeakageTheorem, ...]:
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


# Chains that are only roughly known: a whole class of them at once.
#
# "No transition is more than 7.5 times as likely as another" is often all that can be
# said without looking at the protected data. The closed form needs no more.


class MarkovFamily(Model):
    r"""Every Markov chain whose transition matrices are within given limits.

    Parameters
    ----------
    gamma : float, optional
        Largest ratio of two transition probabilities.
    omega : float, optional
        Largest ratio of two transition probabilities with the same next state.
    diameter : float, optional
        Largest projective diameter.
    lower, upper : array_like of shape (s, s), optional
        Entrywise limits of the transition matrix, given together.
    length : int, optional
        Number of records.

    Raises
    ------
    ValueError
        If not exactly one of the four descriptions is given.
    ModelError
        If the interval matrices do not enclose a transition matrix.

    Notes
    -----
    Any initial law; the matrix may change from step to step within the limits. The
    guarantee is the projective bound at the largest diameter of the class:
    ``2 log(gamma)``, ``2 log(omega)``, the diameter, or that of the interval matrix.

    Examples
    --------
    >>> from undertow.correlation.markov.projective import projective_budget
    >>> known = MarkovFamily(gamma=7.5)
    >>> round(projective_budget(1.0, known.diameter), 6)
    0.134701
    """

    def __init__(
        self,
        *,
        gamma: float | None = None,
        omega: float | None = None,
        diameter: float | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        length: int | None = None,
    ) -> None:
        interval = lower is not None or upper is not None
        given = [gamma is not None, omega is not None, diameter is not None, interval]
        if sum(given) != 1:
            raise ValueError(
                "MarkovFamily must be given exactly one of gamma, omega, diameter, or "
                f"lower and upper together, got {sum(given)} of them."
            )
        self._words, self._diameter = _describe(gamma, omega, diameter, lower, upper)
        self._length = None if length is None else check_count(length, "length")

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    @property
    def size(self) -> int | None:
        """Number of records; None if the class is meant for every length."""
        return self._length

    @property
    def largest_group(self) -> int | None:
        """The length: every record depends on every other."""
        return self._length

    @property
    def diameter(self) -> float:
        """Largest projective diameter of a transition matrix of the class."""
        return self._diameter

    @property
    def summary(self) -> str:
        """The class in one line."""
        count = "any number of" if self._length is None else f"{self._length}"
        return f"every Markov chain of {count} records with {self._words}"

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: that the limits hold."""
        return Assumptions(
            unchecked=(
                f"the records follow a first-order Markov chain with {self._words}",
                "these limits are public knowledge, not fitted to the protected data",
            )
        )

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the closed form and the general bound."""
        from undertow.correlation.group import GeneralTheorem
        from undertow.correlation.markov.projective import ProjectiveTheorem

        return ProjectiveTheorem(), GeneralTheorem()

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Refuse: a class of chains is not one law."""
        raise NotApplicable(_NO_LAW)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Refuse: a class of chains is not one law."""
        raise NotApplicable(_NO_LAW)


_NO_LAW = (
    "sampling needs one chain, got a class of chains; sample a MarkovChain within the "
    "limits."
)


def _describe(
    gamma: float | None,
    omega: float | None,
    diameter: float | None,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
) -> tuple[str, float]:
    if gamma is not None:
        return f"transition ratios up to {gamma:g}", ratio_diameter(gamma)
    if omega is not None:
        return f"column ratios up to {omega:g}", ratio_diameter(omega)
    if diameter is not None:
        limit = check_non_negative(diameter, "diameter")
        return f"projective diameter up to {limit:g}", limit
    if lower is None or upper is None:
        raise ValueError("lower and upper must be given together, got one of them.")
    limit = projective_diameter(lower=lower, upper=upper)
    if limit == math.inf:
        raise ModelError(
            "lower must have positive entries, got a zero; a class of chains that may "
            "have impossible transitions has no bound but the general one."
        )
    return "transitions within given limits", limit


# Fit a chain to observed series, with a region instead of a point.

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class MarkovFit:
    """A chain fitted to series, its counts, and the region around it.

    Parameters
    ----------
    states : tuple
        The states, in the order of rows and columns.
    counts : ndarray of shape (s, s)
        Transitions seen, from row to column.
    transition : ndarray of shape (s, s)
        Their shares.
    lower, upper : ndarray of shape (s, s)
        Limits of each transition probability, together valid with `confidence`.
    confidence : float
        Chance that the limits hold all at once.
    length : int
        Number of records of the longest series, missing ones counted.
    missing : int
        Number of missing records.
    checks : tuple of GoodnessOfFit
        Is the order one? Does the chain change over time?
    budget : float
        Privacy spent on the counts; 0 if they are exact.
    """

    states: tuple[Hashable, ...]
    counts: Counts
    transition: Array
    lower: Array
    upper: Array
    confidence: float
    length: int
    missing: int = 0
    checks: tuple[GoodnessOfFit, ...] = ()
    budget: float = 0.0

    @property
    def gamma(self) -> float:
        """Largest over smallest transition probability, at the point estimate."""
        return float(transition_ratio(self.transition))

    @property
    def diameter(self) -> float:
        """Projective diameter of the point estimate."""
        return float(projective_diameter(self.transition))

    @property
    def diameter_upper(self) -> float:
        """Largest projective diameter of any chain in the region."""
        return float(projective_diameter(lower=self.lower, upper=self.upper))

    def chain(self, length: int | None = None) -> MarkovChain:
        """Return the chain at the point estimate, for `length` records."""
        return MarkovChain(self.transition, length=length, renormalise=True)

    def region(self, length: int | None = None) -> MarkovFamily:
        """Return every chain inside the limits; calibrate on this, not on a point."""
        return MarkovFamily(lower=self.lower, upper=self.upper, length=length)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against a homogeneous chain of order one, in words."""
        return tuple(check.summary for check in self.checks if check.rejects)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "states": [str(state) for state in self.states],
            "counts": self.counts.tolist(),
            "transition": self.transition.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "confidence": self.confidence,
            "length": self.length,
            "missing": self.missing,
            "gamma": _json_number(self.gamma),
            "diameter": _json_number(self.diameter),
            "diameter_upper": _json_number(self.diameter_upper),
            "checks": [check.to_dict() for check in self.checks],
            "budget": self.budget,
        }


def fit_markov(
    series: Sequence[Any],
    *,
    states: Sequence[Hashable] | None = None,
    missing: Iterable[Hashable] = (),
    smoothing: float = 0.0,
    confidence: float = 0.95,
    public: bool = False,
) -> MarkovFit:
    """Fit a homogeneous chain of order one to one or several series.

    Parameters
    ----------
    series : sequence
        One series of states, or several; None and nan are missing. Pairs that touch a
        missing record are dropped, series are not joined.
    states : sequence, optional
        All states; by default those that occur.
    missing : iterable, optional
        Further marks of a missing record.
    smoothing : float
        Added to every count. It changes the claim, so it is zero by default.
    confidence : float
        Of the region, in (0, 1); simultaneous over all transition probabilities.
    public : bool
        Whether the series is public, or older data of other people. If not, the model
        depends on what it is to protect, and a warning says so.

    Returns
    -------
    MarkovFit
        Calibrate on its :meth:`~MarkovFit.region`.

    Raises
    ------
    ModelError
        If fewer than two states occur, or a state is never left.

    Warns
    -----
    EstimatedModelWarning
        If `public` is false.

    Notes
    -----
    Limits are Robbins' uniform-mixture confidence sequences with Bonferroni's
    correction over the entries; they hold although the number of visits to a state is
    random. An entry that was never seen has the lower limit 0, hence an infinite
    diameter: nothing is smoothed in silence.

    Examples
    --------
    >>> fit = fit_markov([0, 0, 1, 1, None, 1, 0, 0, 1, 0], public=True)
    >>> fit.counts.tolist()
    [[2, 2], [2, 1]]
    """
    smoothing = check_non_negative(smoothing, "smoothing")
    confidence = check_probability(confidence, "confidence", open_interval=True)
    runs, listed = code_series(series, states=states, missing=missing)
    counts = count_transitions(runs, len(listed))
    if not public:
        warn_of_private_data()
    lower, upper = region_limits(counts, counts, error=1 - confidence)
    return MarkovFit(
        listed,
        counts,
        shares(counts + smoothing, listed),
        lower,
        upper,
        confidence,
        length=max(len(run) for run in runs),
        missing=sum(int((run < 0).sum()) for run in runs),
        checks=chain_checks(runs, len(listed), count_triples(runs, len(listed))),
    )


def shares(counts: NDArray[Any], states: Sequence[Hashable]) -> Array:
    """Return each row of counts over its sum."""
    totals = np.asarray(counts, float).sum(axis=1)
    if not (totals > 0).all():
        never = states[int(np.argmin(totals))]
        raise ModelError(
            f"every state must be left at least once, got none out of {never!r}; "
            "give a longer series or a smoothing."
        )
    return np.asarray(counts / totals[:, None], dtype=float)


def warn_of_private_data() -> None:
    """Say that the model depends on what it is to protect."""
    warnings.warn(
        "the model was fitted on the series it is to protect: the noise scale then "
        "depends on the private data; fit on public data (public=True) or with "
        "fit_markov_private.",
        EstimatedModelWarning,
        stacklevel=3,
    )


def region_limits(most: Counts, least: Counts, *, error: float) -> tuple[Array, Array]:
    """Return limits of every entry, where each count lies in ``[least, most]``."""
    size = len(most)
    # One free probability in each row of a two-state chain, s in each row otherwise.
    share = error / (size if size == 2 else size * size)
    _, upper = anytime_limits(
        most.astype(float), _others(least).astype(float), error=share
    )
    lower, _ = anytime_limits(
        least.astype(float), _others(most).astype(float), error=share
    )
    return lower, upper


def _others(counts: Counts) -> Counts:
    return np.asarray(counts.sum(axis=1, keepdims=True) - counts)


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


# Fit a chain with noise, so that the fit itself is paid for.

# Replacing one record changes two transitions: two counts fall by one, two rise.
_SENSITIVITY = 4
# Below, noise may pass the largest integer of the counts.
_SMALLEST_LEVEL = 1e-12


def fit_markov_private(
    series: Sequence[Any],
    epsilon: float,
    *,
    states: Sequence[Hashable],
    missing: Iterable[Hashable] = (),
    confidence: float = 0.95,
    source: NoiseSource | None = None,
) -> MarkovFit:
    """Fit a chain from noisy transition counts, for `epsilon` of the budget.

    Parameters
    ----------
    series : sequence
        One series or several; which records are missing is taken as public.
    epsilon : float
        DP level spent: one record of one series is replaced; at least 1e-12. Charge it
        to the same accountant as the releases.
    states : sequence
        All states; they must be known beforehand, since those that occur are private.
    missing : iterable, optional
        Marks of a missing record.
    confidence : float
        Of the region, noise included.
    source : object, optional
        Noise source; the secure one by default.

    Notes
    -----
    The counts have l1 sensitivity 4 under replacement of one record (thesis, section
    6.5; one record is in two transitions). Discrete Laplace noise; negative counts are
    raised to zero, which is post-processing. Half of the error is spent on the noise.

    Examples
    --------
    >>> fit = fit_markov_private([0, 1] * 500, 1.0, states=[0, 1])
    >>> fit.budget
    1.0
    """
    epsilon = check_positive(epsilon, "epsilon")
    if epsilon < _SMALLEST_LEVEL:
        raise ValueError(
            f"epsilon must be at least {_SMALLEST_LEVEL:g}, got {epsilon}; noise for "
            "less has nothing to do with the counts."
        )
    error = 1 - check_probability(confidence, "confidence", open_interval=True)
    runs, listed = code_series(series, states=states, missing=missing)
    counts = count_transitions(runs, len(listed))
    drawn = read_source(source, draws="laplace").laplace(
        _SENSITIVITY / exact(epsilon), counts.size
    )
    noisy = counts + np.asarray(drawn.values, dtype=np.int64).reshape(counts.shape)
    kept = np.maximum(noisy, 0)
    reach = _noise_reach(epsilon, error / 2 / counts.size)
    lower, upper = region_limits(
        np.maximum(noisy + reach, 0), np.maximum(noisy - reach, 0), error=error / 2
    )
    if not (kept.sum(axis=1) > 0).all():
        raise ModelError(
            "every noisy row of counts must be positive, got an empty one; spend more "
            "on the fit or give a longer series."
        )
    return MarkovFit(
        listed,
        kept,
        shares(kept, listed),
        lower,
        upper,
        confidence,
        length=max(len(run) for run in runs),
        missing=sum(int((run < 0).sum()) for run in runs),
        budget=epsilon,
    )


def _noise_reach(epsilon: float, error: float) -> int:
    """Return the least whole number that the noise passes with chance below `error`."""
    rate = epsilon / _SENSITIVITY
    # P(|Z| > t) = 2 e^{-rate (t+1)} / (1 + e^{-rate}) for whole t.
    return max(0, math.ceil(math.log(2 / ((1 + math.exp(-rate)) * error)) / rate))


# Draws from chains, with and without known records.
#
# Everything is vectorised over draws: one step of all draws costs a table lookup. A
# state of probability zero is never drawn.

States = NDArray[np.int64]

_TOLERANCE = 1e-9


def read_law(
    law: ArrayLike, states: int, *, name: str = "initial", renormalise: bool = False
) -> Array:
    """Return `law` as a checked probability law on `states` states.

    Raises
    ------
    ModelError
        If it has another length, a negative entry, or does not sum to one.
    """
    weights = read_numbers(law, name)
    if weights.shape != (states,):
        raise ModelError(
            f"{name} must have one probability for each of the {states} states, got "
            f"shape {weights.shape}."
        )
    if not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ModelError(f"{name} must have finite, non-negative entries, got {law!r}.")
    total = float(weights.sum())
    if renormalise and total > 0:
        weights, total = weights / total, 1.0
    if abs(total - 1) > _TOLERANCE:
        raise ModelError(
            f"{name} must sum to 1 within {_TOLERANCE:g}, got {total:.12g}; pass "
            "renormalise=True to divide it by its sum."
        )
    weights.setflags(write=False)
    return weights


def read_values(values: ArrayLike | None, states: int) -> Array:
    """Return the number each state stands for; ``0, ..., states - 1`` by default."""
    numbers = (
        np.arange(states, dtype=np.float64)
        if values is None
        else read_numbers(values, "values")
    )
    if numbers.shape != (states,) or not np.isfinite(numbers).all():
        raise ModelError(
            f"values must be one finite number for each of the {states} states, got "
            f"{values!r}."
        )
    if (numbers == numbers[0]).all():
        raise ModelError(f"values must not all be equal, got {values!r}.")
    numbers.setflags(write=False)
    return numbers


def draw_states(table: Array, rows: States, *, rng: np.random.Generator) -> States:
    """Draw one state for each entry of `rows`, from that row of `table`.

    Parameters
    ----------
    table : ndarray of shape (r, s)
        Non-negative weights; rows that are asked for have a positive sum.
    rows : ndarray of int
        Which row each draw takes.
    rng : numpy.random.Generator
        Source of randomness.
    """
    heaped = np.cumsum(table, axis=1)
    totals = heaped[:, -1:]
    # The last level is exactly one, above every uniform draw; levels of states of
    # weight zero coincide with the one before and are never chosen.
    heaped = np.divide(heaped, totals, out=np.ones_like(heaped), where=totals > 0)
    draws = rng.random(rows.shape)
    chosen = np.empty(rows.shape, dtype=np.int64)
    for row in range(len(table)):
        mine = rows == row
        chosen[mine] = np.searchsorted(heaped[row], draws[mine], side="right")
    return chosen


def sample_path(
    initial: Array, steps: Array, count: int, *, rng: np.random.Generator
) -> States:
    """Draw `count` paths of the chain with law `initial` and kernels `steps`.

    Parameters
    ----------
    initial : ndarray of shape (s,)
        Law of the first record.
    steps : ndarray of shape (n - 1, s, s)
        Kernels.
    count : int
        Number of paths.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (count, n)

    Examples
    --------
    >>> steps = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 3)
    >>> sample_path(np.array([1.0, 0.0]), steps, 1, rng=np.random.default_rng(1))
    array([[0, 1, 0, 1]])
    """
    paths = np.empty((count, len(steps) + 1), dtype=np.int64)
    first = np.zeros(count, dtype=np.int64)
    paths[:, 0] = draw_states(initial[None], first, rng=rng)
    for t, kernel in enumerate(steps):
        paths[:, t + 1] = draw_states(kernel, paths[:, t], rng=rng)
    return paths


def sample_path_given(
    initial: Array,
    steps: Array,
    known: Mapping[int, Any],
    count: int,
    *,
    rng: np.random.Generator,
) -> States:
    """Draw `count` paths given the states of the `known` records.

    Raises
    ------
    ModelError
        If the known states have probability zero together.

    Notes
    -----
    Backward messages, forward draws: cost ``n s^2`` once and ``n`` lookups a draw.

    Examples
    --------
    >>> steps = np.array([[[0.5, 0.5], [0.0, 1.0]]] * 4)
    >>> law = np.array([1.0, 0.0])
    >>> sample_path_given(law, steps, {3: 0}, 1, rng=np.random.default_rng(1))[:, :4]
    array([[0, 0, 0, 0]])
    """
    masks = state_masks(known, len(steps) + 1, states=len(initial))
    return sample_masked_path(initial, steps, masks, count, rng=rng)


def state_masks(known: Mapping[int, Any], size: int, *, states: int) -> Array:
    """Return 0/1 weights of shape (size, states): which states the evidence allows."""
    masks = np.ones((size, states))
    for record, state in known.items():
        chosen = check_index(state, f"state of record {record}", size=states)
        masks[record] = 0.0
        masks[record, chosen] = 1.0
    return masks


def sample_masked_path(
    initial: Array,
    steps: Array,
    masks: Array,
    count: int,
    *,
    rng: np.random.Generator,
) -> States:
    """Draw paths from the chain weighted by `masks`, a factor for each record's state.

    Raises
    ------
    ModelError
        If every path has weight zero.
    """
    messages = masks.astype(np.float64)  # weight of the evidence from t on, scaled
    for t in range(len(steps) - 1, -1, -1):
        messages[t] *= steps[t] @ messages[t + 1]
        messages[t] /= messages[t].max() or 1.0
    start = initial * messages[0]
    if not start.any():
        raise ModelError(
            "known records must be able to occur together, got states of probability "
            "zero."
        )
    paths = np.empty((count, len(masks)), dtype=np.int64)
    first = np.zeros(count, dtype=np.int64)
    paths[:, 0] = draw_states(start[None], first, rng=rng)
    for t, kernel in enumerate(steps):
        paths[:, t + 1] = draw_states(kernel * messages[t + 1], paths[:, t], rng=rng)
    return paths
