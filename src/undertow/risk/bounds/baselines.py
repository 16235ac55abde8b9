r"""The numbers of a threat that bounds are made of, and the sharpest bound from them.

:class:`Baselines` holds them, each rounded to the safe side.

The sharpest bound that pure DP alone can give is a linear program with a certificate.
The laws :math:`p(\theta \mid \cdot)` of an :math:`\varepsilon`-DP mechanism have ratios
within :math:`e^\varepsilon`, and the advantage is sublinear in each of them, so that
the worst mechanism uses only the patterns :math:`v \in \{e^{-\varepsilon}, 1\}^m`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_non_negative, check_probability
from undertow.errors import NotApplicable
from undertow.numeric.array import Floats, disagreement
from undertow.numeric.rounding import HANDFUL, UNIT, inflate, nudge_down, nudge_up
from undertow.privacy import Bound, Witness
from undertow.risk.bounds._parts import BARE, PriorLike, law

Adjacency = Literal["replace", "add-remove"]

ADJACENCIES: tuple[str, ...] = ("replace", "add-remove")
"""What may change between neighbours in a guarantee."""

PROGRAM_SIZE = 10
"""Records up to which a threat carries its linear program."""


class ThreatLike(Protocol):
    """What the bounds read of a threat; :class:`undertow.risk.threat.Threat` has it."""

    @property
    def prior(self) -> Any:
        """The prior, with its ``pmf``."""

    @property
    def success(self) -> Any:
        """The success rule, with its hit sets and its matrix."""

    @property
    def support(self) -> Sequence[Any]:
        """The records."""

    @property
    def labels(self) -> NDArray[np.intp]:
        """Number of what is known of each record."""

    @property
    def has_knowledge(self) -> bool:
        """Whether what is known varies over the possible targets."""

    @property
    def abstain(self) -> bool:
        """Whether the attacker may decline to answer."""

    @property
    def adjacency(self) -> Adjacency:
        """What may change in the guarantees held against the threat."""

    @property
    def best_guess(self) -> float:
        """Success of the best guess without looking."""

    @property
    def worst_guess(self) -> float:
        """Success of the worst guess without looking."""


@dataclass(frozen=True, slots=True)
class Baselines:
    r"""The numbers of a threat that bounds are made of.

    Parameters
    ----------
    collision : float
        :math:`\kappa_\pi`, rounded down; 0 for a continuous prior.
    best_guess, worst_guess : float
        :math:`\kappa^+` rounded up and :math:`\kappa^-` rounded down.
    knowledge : bool
        Whether the attacker knows anything of the target.
    exact : bool
        Whether only the exact record counts.
    pmf : tuple of float
        The prior where it is finite, else empty.
    program : callable, optional
        From epsilon to the bound by linear programming.
    derived : bool
        Whether they were read off a threat; otherwise the caller declares them.
    adjacency : {"replace", "add-remove"}
        What may change in the guarantees held against the threat.

    Examples
    --------
    >>> Baselines(0.5, 0.5, 0.5, pmf=(0.5, 0.5)).uniform
    True
    """

    collision: float
    best_guess: float
    worst_guess: float
    knowledge: bool = False
    exact: bool = False
    pmf: tuple[float, ...] = ()
    program: Callable[[float], Bound] | None = field(default=None, compare=False)
    derived: bool = field(default=False, compare=False)
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        for name in ("collision", "best_guess", "worst_guess"):
            check_probability(getattr(self, name), name)
        check_choice(self.adjacency, "adjacency", choices=ADJACENCIES)

    @property
    def uniform(self) -> bool:
        """Whether all records of the prior are equally likely."""
        return bool(self.pmf) and max(self.pmf) == min(self.pmf)

    @classmethod
    def of(cls, threat: ThreatLike) -> Baselines:
        """Read them off a threat, each rounded to the safe side."""
        if not hasattr(threat, "has_knowledge"):
            raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
        pmf = np.asarray(threat.prior.pmf, dtype=np.float64)
        margin = 2 * UNIT * (len(pmf) + 4)
        spread = inflate(disagreement(pmf), HANDFUL)
        # Two lower limits: each keeps its digits at one end.
        square = math.fsum((pmf * pmf).tolist()) * (1.0 - HANDFUL)
        low = threat.worst_guess
        return cls(
            collision=max(square, nudge_down(1.0 - spread)) if spread > 0 else 1.0,
            best_guess=min(1.0, inflate(threat.best_guess, margin)),
            worst_guess=max(0.0, low - margin * low),
            knowledge=threat.has_knowledge,
            exact=_hits_one(threat),
            pmf=tuple(pmf.tolist()),
            program=_program(threat, pmf) if len(pmf) <= PROGRAM_SIZE else None,
            derived=True,
            adjacency=threat.adjacency,
        )


def _hits_one(threat: ThreatLike) -> bool:
    """Return whether no guess hits two records, by counting what each hits."""
    everything = np.arange(len(threat.support), dtype=np.intp)
    (sets,) = threat.success.sets(threat.support, [everything])
    return bool(sets.sums(np.ones((len(everything), 1))).max() <= 1)


def _program(threat: ThreatLike, pmf: Floats) -> Callable[[float], Bound]:
    hits, labels = threat.success.matrix(threat.support), threat.labels

    def solve(epsilon: float) -> Bound:
        return program_bound(
            epsilon, pmf, hits=hits, labels=labels, abstain=threat.abstain
        )

    return solve


# The sharpest bound pure DP alone can give, by linear programming with a certificate.
#
# The laws :math:`p(\theta \mid \cdot)` of an :math:`\varepsilon`-DP mechanism have
# ratios within :math:`e^\varepsilon`, and the advantage is sublinear in each of them,
# so that the worst mechanism uses only the patterns :math:`v \in \{e^{-\varepsilon},
# 1\}^m`:
#
# .. math:: \max \sum_v \mu_v U(v) \quad \text{s.t.} \quad \sum_v \mu_v v = 1,\ \mu \ge
#   0.
#
# The value returned is a *dual* one and holds whatever the solver did.

LARGEST_PROGRAM = 16
"""Records up to which the program is solved; it has 2^m - 1 columns."""


# A mechanism that comes as close to the dual value counts as attaining it.
_ATTAINED = 1e-7


def program_bound(
    epsilon: float,
    prior: PriorLike,
    *,
    hits: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    abstain: bool = False,
) -> Bound:
    r"""Bound the advantage against every pure-DP mechanism, as sharply as possible.

    Parameters
    ----------
    epsilon : float
        Pure-DP parameter for replacing a record, in :math:`[0, \infty]`.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records; m at most 16.
    hits : array_like of bool of shape (guesses, m), optional
        Whether a guess (row) succeeds on a truth (column); the exact record by default.
    labels : array_like of shape (m,), optional
        What the attacker knows of each record; nothing by default.
    abstain : bool, optional
        Whether the attacker may decline to answer.

    Returns
    -------
    Bound
        On the advantage, rounded up, with the channel that attains it to within the
        accuracy of the solver as witness.

    Raises
    ------
    NotApplicable
        For more than 16 records.

    Notes
    -----
    Proved on the page "Bounds on the advantage". With the dual solution y and
    :math:`t = \max_v (U(v) - v \cdot y)_+ / \sum_x v_x` the value is
    :math:`\sum_x y_x + mt`, an upper bound by weak duality for every y. Not checkable:
    independent records.

    Examples
    --------
    >>> round(program_bound(1.0, [0.4, 0.3, 0.2, 0.1]).value, 6)
    0.214863
    """
    epsilon, pi = check_non_negative(epsilon, "epsilon"), law(prior)
    m = len(pi)
    if m > LARGEST_PROGRAM:
        raise NotApplicable(
            f"prior must have at most {LARGEST_PROGRAM} records for the linear "
            f"program, got {m}; use exact_guess_bound or variation_bound."
        )
    table, known = _threat(m, hits, labels)
    columns = _patterns(m, epsilon)
    gains = _gains(columns, pi, hits=table, labels=known, abstain=abstain)
    weights, dual = _solve(columns, gains)
    value = min(1.0, _certified(columns, gains, dual))
    used = weights > 1e-12
    channel = (columns[used] * weights[used, None]).T
    attained = float(gains @ weights)
    details = {"channel": channel, "value": attained}
    proper = np.abs(channel.sum(axis=1) - 1.0).max() <= _ATTAINED
    return Bound(
        value,
        "linear program over pure-DP mechanisms",
        BARE,
        ("dual certificate",),
        "advantage",
        Witness("channel", f"a mechanism with {int(used.sum())} outputs", details),
        tight=True if proper and attained >= value - _ATTAINED else None,
    )


def _threat(
    size: int, hits: ArrayLike | None, labels: ArrayLike | None
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    table = np.eye(size, dtype=bool) if hits is None else _truth_values(hits)
    if table.ndim != 2 or table.shape[1] != size or len(table) == 0:
        raise ValueError(
            f"hits must have one column for each of the {size} records and a row for "
            f"each guess, got shape {table.shape}."
        )
    known = np.zeros(size, dtype=int) if labels is None else np.asarray(labels)
    if known.shape != (size,):
        raise ValueError(
            f"labels must be one for each of the {size} records, got shape "
            f"{known.shape}."
        )
    return table, np.unique(known, return_inverse=True)[1].astype(np.intp)


def _truth_values(hits: ArrayLike) -> NDArray[np.bool_]:
    table = np.asarray(hits)
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise ValueError("hits must be truth values, got other entries.")
    return table.astype(np.bool_)


def _patterns(size: int, epsilon: float) -> Floats:
    """Return the patterns; all low is the ray of all high, and is left out."""
    low = max(0.0, nudge_down(math.exp(-epsilon), 4))
    bits = (np.arange(1, 2**size)[:, None] >> np.arange(size)) & 1
    return np.where(bits == 1, 1.0, low)


def _gains(
    columns: Floats,
    pi: Floats,
    *,
    hits: NDArray[np.bool_],
    labels: NDArray[np.intp],
    abstain: bool,
) -> Floats:
    """Return U(v): for each value known, the best sum of pi (v - pi v) on a set."""
    weighted = pi * (columns - (columns @ pi)[:, None])
    total = np.zeros(len(columns))
    for value in range(int(labels.max()) + 1):
        fibre = labels == value
        sets = np.unique(hits[:, fibre], axis=0).astype(np.float64)
        best = (weighted[:, fibre] @ sets.T).max(axis=1)
        total += np.maximum(0.0, best) if abstain else best
    return total


def _solve(columns: Floats, gains: Floats) -> tuple[Floats, Floats]:
    from scipy.optimize import linprog

    done = linprog(
        -gains, A_eq=columns.T, b_eq=np.ones(columns.shape[1]), method="highs"
    )
    if done.x is None or done.eqlin.marginals is None:
        # Without a solution the certificate of y = 0 still holds.
        return np.zeros(len(columns)), np.zeros(columns.shape[1])
    return np.asarray(done.x), -np.asarray(done.eqlin.marginals)


def _certified(columns: Floats, gains: Floats, dual: Floats) -> float:
    """Return the dual value, raised to cover every column and all rounding."""
    m = columns.shape[1]
    short = (gains - columns @ dual) / columns.sum(axis=1)
    size = 1.0 + float(np.abs(dual).max())
    slack = HANDFUL * (m + 4) * size
    shift = max(0.0, float(short.max())) + slack
    return nudge_up(math.fsum(dual.tolist()) + m * shift, 4)
