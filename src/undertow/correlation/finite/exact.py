"""Exact leakage of a given mechanism under a finite law, over all attackers at once.

Every axis of the table gets one more slice, the sum over the axis, so that each
attacker is one index: conditional output laws of all attackers are ratios of two
extended tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_index, check_non_negative
from undertow.correlation.finite.joint import (
    AnyKernel,
    FiniteKernel,
    FiniteQuery,
    JointTable,
    read_kernel,
)
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.errors import MismatchError, NotApplicable
from undertow.numeric.array import Floats
from undertow.numeric.rounding import nudge_up
from undertow.results import Bound, Witness

_THEOREM = "Definition 2.27 (exact)"
_WORDS = {
    "all": "anyone who knows any subset of the other records",
    "none-known": "anyone who knows no other record",
    "informed": "anyone who knows all other records",
}


def exact_leakage(
    joint: JointTable,
    kernel: AnyKernel,
    *,
    query: FiniteQuery | None = None,
    densities: bool = False,
    adversaries: str | Iterable[Adversary] = "all",
) -> Leakage:
    r"""Return the exact Bayesian-DP leakage of a mechanism under a finite law.

    .. math:: \mathrm{BDPL} = \max_{K,\,i,\,x_K,\,x_i,\,x_i',\,\theta}
       \ln\frac{\Pr[\theta\mid x_K,x_i]}{\Pr[\theta\mid x_K,x_i']}

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    kernel : array_like of shape (s_1, ..., s_n, T), or mechanism
        Output probabilities per database; a
        :class:`~undertow.mechanisms.RandomizedResponse`, or a local protocol with few
        reports, that asks every record; or (discrete) Laplace noise on `query`.
    query : Query or callable, optional
        What Laplace noise is added to.
    densities : bool
        The array holds densities at outputs where the supremum is reached.
    adversaries : str or iterable of Adversary
        ``"all"``; ``"none-known"``; ``"informed"``, who knows all other records; or
        some attackers, whose `values` restrict what they know, where given.

    Returns
    -------
    Leakage
        Attained by its witness: attacker, known states, pair of states, output.

    Raises
    ------
    NotApplicable
        If the extended table does not fit the memory.

    Notes
    -----
    Definitions 2.26 and 2.27 of [1]_. An output of probability 0 under both secrets
    counts as no leakage, under one as infinite; secrets of probability 0 given the
    known records are skipped. For one record this is the DP loss. Time
    ``n (s+1)**n T``, memory ``(s+1)**n`` and chunks over the outputs. The value is
    raised by a bound on the rounding of its logarithms, unless it is 0. Checked: the
    probabilities. Not checkable: that the table is the law.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = exact_leakage(flatmates, RandomizedResponse(2, 1))
    >>> round(found.value, 6), found.witness.summary
    (1.776137, 'aims at record 0, knows no other record; tells 0 from 1; seeing (0, 0)')
    """
    law = read_kernel(joint, kernel, densities=densities, query=query)
    require_extended(joint)
    chosen = list(_regions(joint, adversaries))
    peaks, rounding = _peaks(joint, law, chosen)
    best = max(peaks, key=lambda peak: peak.value)
    words = adversaries if isinstance(adversaries, str) else "listed"
    return _leakage(
        joint, law, best, rounding, _WORDS.get(words, "the listed attackers")
    )


def leakage_by_adversary(
    joint: JointTable,
    kernel: AnyKernel,
    *,
    query: FiniteQuery | None = None,
    densities: bool = False,
) -> dict[Adversary, Leakage]:
    """Return the exact leakage to each of the ``n 2**(n-1)`` attackers (K, i).

    Parameters are those of :func:`exact_leakage`.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> table = leakage_by_adversary(
    ...     JointTable([[0.45, 0.05], [0.05, 0.45]]), RandomizedResponse(2, 1))
    >>> round(table[Adversary(0, {1})].value, 9), round(table[Adversary(0)].value, 6)
    (1.0, 1.776137)
    """
    law = read_kernel(joint, kernel, densities=densities, query=query)
    require_extended(joint)
    everyone = list(all_adversaries(joint.size))
    regions = [(one.target, _region(joint, one)) for one in everyone]
    peaks, rounding = _peaks(joint, law, regions)
    return {
        one: _leakage(joint, law, peak, rounding, f"whoever {one.summary}")
        for one, peak in zip(everyone, peaks, strict=True)
    }


def all_adversaries(size: int) -> Iterator[Adversary]:
    """Yield every attacker on `size` records, those who know least first."""
    for target in range(size):
        others = [j for j in range(size) if j != target]
        for known in range(size):
            for chosen in itertools.combinations(others, known):
                yield Adversary(target, chosen)


def _peaks(
    joint: JointTable, law: FiniteKernel, regions: list[tuple[int, Index]]
) -> tuple[list[Peak], float]:
    peaks: list[Peak | None] = [None for _ in regions]
    rounding = 0.0
    for start, ratios, error in log_ratios(joint, law):
        rounding = max(rounding, error)
        for place, (target, index) in enumerate(regions):
            found, best = find_peak(ratios, target, index, start=start), peaks[place]
            if best is None or found.value > best.value:
                peaks[place] = found
    return [peak for peak in peaks if peak is not None], rounding


def _regions(
    joint: JointTable, adversaries: str | Iterable[Adversary]
) -> Iterator[tuple[int, Index]]:
    n = joint.size
    if not isinstance(adversaries, str):
        chosen = list(adversaries)
        if not chosen:
            raise ValueError("adversaries must name at least one attacker, got none.")
        yield from ((one.target, _region(joint, one)) for one in chosen)
    elif adversaries == "all":
        for i in range(n):
            yield i, every_attacker(joint, i)
    elif adversaries in _WORDS:
        for i in range(n):
            known = set(range(n)) - {i} if adversaries == "informed" else ()
            yield i, _region(joint, Adversary(i, known))
    else:
        listed = ", ".join(repr(word) for word in _WORDS)
        raise ValueError(
            f"adversaries must be {listed} or a list of them, got {adversaries!r}."
        )


def _region(joint: JointTable, adversary: Adversary) -> Index:
    adversary.within(joint.size)
    parts = []
    for j, s in enumerate(joint.shape):
        if j != adversary.target and j not in adversary.known:
            parts.append(slice(s, s + 1))
        elif j in adversary.values:
            state = joint.given({j: adversary.values[j]}).known[j]
            parts.append(slice(state, state + 1))
        else:
            parts.append(slice(0, s))
    return tuple(parts)


def _leakage(
    joint: JointTable, law: FiniteKernel, peak: Peak, rounding: float, attackers: str
) -> Leakage:
    return Leakage(
        raise_by_rounding(peak.value, rounding),
        _THEOREM,
        checked=("the table and the mechanism are probability laws",),
        unchecked=("the table is the law of the data",),
        witness=_witness(joint, law, peak),
        tight=True,
        method="exact",
        model=joint.summary,
        mechanisms=law.mechanism,
        attackers=attackers,
    )


def _witness(joint: JointTable, law: FiniteKernel, peak: Peak) -> Witness | None:
    if peak.value == -math.inf:  # nothing is secret
        return None
    states = known_states(joint, peak)
    return adversary_witness(
        Adversary(peak.target, states, states),
        pair=peak.pair,
        output=law.outputs[peak.output],
    )


# Leakage secret by secret: the matrix of pairs, and Bayesian metric privacy.

RecordMetric = ArrayLike | Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class MetricVerdict(Bound):
    """The largest leakage per unit of distance between secrets, and the verdict.

    Parameters
    ----------
    value, theorem, unchecked, checked, quantity, witness, tight
        As in :class:`~undertow.privacy.Bound`: the value is the largest
        ``BDPL(x, x') / d(x, x')``, the witness the pair that has it.
    slack : float
        Relative excess over 1 that is put down to rounding.
    """

    quantity: str = "BDPL per unit of the metric"
    slack: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the mechanism is Bayesian d-private, up to the slack."""
        return self.value <= 1 + self.slack


def pair_leakage(
    joint: JointTable,
    kernel: AnyKernel,
    *,
    target: int | None = None,
    query: FiniteQuery | None = None,
    densities: bool = False,
) -> Floats:
    r"""Return the exact leakage of every ordered pair of secrets.

    .. math:: \mathrm{BDPL}(x,x')=\max_{K,i,x_K,\theta}
       \ln\frac{\Pr[\theta\mid x_K,X_i=x]}{\Pr[\theta\mid x_K,X_i=x']}

    Parameters
    ----------
    joint, kernel, query, densities
        As in :func:`~undertow.correlation.finite.exact.exact_leakage`.
    target : int, optional
        The record aimed at; by default any, which needs records with the same values.

    Returns
    -------
    array of shape (s, s)
        Entry (a, b) tells state a from state b; raised by a bound on the rounding.
        Pairs that no attacker holds possible at once have 0.

    Notes
    -----
    Definition 6.7 of Guerra-Balboa (2026). Obeys the triangle inequality where all
    states are possible; need not be symmetric.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> pair_leakage(flatmates, RandomizedResponse(2, 1)).round(6)
    array([[0.      , 1.776137],
           [1.776137, 0.      ]])
    """
    targets = _read_target(joint, target)
    law = read_kernel(joint, kernel, densities=densities, query=query)
    require_extended(joint)
    s, rounding = joint.shape[targets[0]], 0.0
    found = np.full((s, s), -math.inf)
    for _, ratios, error in log_ratios(joint, law):
        rounding = max(rounding, error)
        for i in targets:
            block = np.moveaxis(ratios[every_attacker(joint, i)], i, 0)
            found = np.maximum(found, _pair_maxima(block))
    raised = [[raise_by_rounding(x, rounding) for x in row] for row in found.tolist()]
    return np.array(raised)


def is_bayesian_metric_private(
    joint: JointTable,
    kernel: AnyKernel,
    metric: RecordMetric,
    *,
    query: FiniteQuery | None = None,
    densities: bool = False,
    slack: float = 1e-9,
) -> MetricVerdict:
    """Decide whether every pair of secrets leaks at most its distance.

    Parameters
    ----------
    joint, kernel, query, densities
        As in :func:`~undertow.correlation.finite.exact.exact_leakage`.
    metric : array_like of shape (s, s), or callable
        Distances between states, or a function of two record values.
    slack : float
        Relative excess that is put down to rounding.

    Returns
    -------
    MetricVerdict
        With the worst pair as witness; ``verdict.holds`` decides.

    Notes
    -----
    Definition 6.8 of Guerra-Balboa (2026). With d constant off the diagonal this is
    Bayesian DP.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> verdict = is_bayesian_metric_private(
    ...     flatmates, LaplaceMechanism(1), lambda x, y: 2 * abs(x - y), query=sum)
    >>> verdict.holds, round(verdict.value, 6)
    (True, 0.888068)
    """
    slack = check_non_negative(slack, "slack")
    leaks = pair_leakage(joint, kernel, query=query, densities=densities)
    distances = _read_metric(metric, joint.values[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(leaks == 0, 0.0, leaks / distances)
    shares = np.where(np.isnan(shares), 0.0, shares)  # infinite leak and distance
    a, b = (int(k) for k in np.unravel_index(int(shares.argmax()), shares.shape))
    leak, distance = float(leaks[a, b]), float(distances[a, b])
    return MetricVerdict(
        float(shares[a, b]),
        "Definition 6.8 (exact)",
        unchecked=("the table is the law of the data",),
        checked=("the table and the mechanism are probability laws",),
        witness=Witness(
            "pair",
            f"states {a} and {b} at distance {distance:g} leak {leak:.9g}",
            {"pair": (a, b), "leakage": leak, "distance": distance},
        ),
        tight=True,
        slack=slack,
    )


def _pair_maxima(block: Floats) -> Floats:
    """Return the largest differences; -inf for pairs never possible together."""
    s = len(block)
    found = np.full((s, s), -math.inf)
    for a, b in itertools.permutations(range(s), 2):
        with np.errstate(invalid="ignore"):
            gaps = block[a] - block[b]
        # nan: an impossible secret, or an output impossible under both.
        if not np.isnan(gaps).all():
            found[a, b] = np.fmax.reduce(gaps, axis=None, initial=0.0)
    return found


def _read_target(joint: JointTable, target: int | None) -> list[int]:
    if target is not None:
        return [check_index(target, "target", size=joint.size)]
    if len(set(joint.values)) > 1:
        raise MismatchError(
            "joint must have records with the same values, got different ones; name a "
            "target."
        )
    return list(range(joint.size))


def _read_metric(metric: RecordMetric, values: tuple[float, ...]) -> Floats:
    if callable(metric):
        table = np.array([[float(metric(x, y)) for y in values] for x in values])
    else:
        table = np.asarray(metric, dtype=np.float64)
    if table.shape != (len(values), len(values)):
        raise MismatchError(
            f"metric must have a distance for each pair of {len(values)} states, "
            f"got shape {table.shape}."
        )
    if not (table >= 0).all():
        least = math.nan if np.isnan(table).any() else float(table.min())
        raise ValueError(f"metric must be non-negative, got {least}.")
    return table


# The extended table: every attacker of a finite law as one index.
#
# Every axis of the table gets one more slice, the sum over the axis. The extra index on
# an axis means that the record is unknown, any other that it is known with that state.
# Conditional output laws of all attackers are ratios of two extended tables, without a
# loop over subsets.

Index = tuple[slice, ...]
"""A part of the extended table: some attackers."""

# Entries of one chunk of the extended table, and of the table of one output.
_CHUNK = 2**23
_LARGEST = 2**25


@dataclass(frozen=True, slots=True)
class Peak:
    """A cell of the extended table, two states of the target, an output.

    The value is -inf if no attacker in question holds two states possible.
    """

    value: float
    target: int
    cell: tuple[int, ...] = ()
    pair: tuple[int, int] = (0, 0)
    output: int = 0


def extend(table: Floats, axes: int) -> Floats:
    """Return log values with their log-sum appended along each of the first axes."""
    for axis in range(axes):
        top = table.max(axis=axis, keepdims=True)
        base = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = np.log(np.exp(table - base).sum(axis=axis, keepdims=True)) + base
        table = np.concatenate([table, total], axis=axis)
    return table


def log_ratios(
    joint: JointTable, law: FiniteKernel
) -> Iterator[tuple[int, Floats, float]]:
    """Yield chunks of the log output law given every attacker's knowledge.

    Yields
    ------
    start : int
        Number of the first output of the chunk.
    ratios : array of shape (s_1 + 1, ..., s_n + 1, outputs in the chunk)
        Log probability, less its maximum over the possible databases, output by
        output; nan where the condition has probability zero.
    rounding : float
        Bound on the absolute error of a difference of two entries.
    """
    with np.errstate(divide="ignore"):
        log_pmf = np.log(joint.pmf)
    prior = extend(log_pmf, joint.size)[..., None]
    width = max(1, _CHUNK // prior.size)
    for start in range(0, law.log_density.shape[-1], width):
        chunk = law.log_density[..., start : start + width]
        # A common factor cancels; without it, constant outputs give exactly zero.
        top = chunk[joint.pmf > 0].max(axis=0)
        chunk = chunk - np.where(np.isfinite(top), top, 0.0)
        lowest = chunk[joint.pmf > 0].min(axis=0)[np.isfinite(top)]
        both = extend(log_pmf[..., None] + chunk, joint.size)
        with np.errstate(invalid="ignore"):
            ratios = both - prior
        size = max(_largest(prior), _largest(both), _largest(top))
        rounding = _rounding(joint, size) + 4 * law.rounding
        # No attacker learns more than the databases differ, so no more is lost: an
        # output that does not depend on the database leaks nothing.
        spread = 2 * (law.rounding - float(lowest.min(initial=0.0)))
        yield start, ratios, min(rounding, spread)


def find_peak(
    ratios: Floats,
    target: int,
    index: Index,
    *,
    start: int = 0,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Peak:
    """Return where two secrets of the target are told apart best.

    Parameters
    ----------
    ratios : array of shape (s_1 + 1, ..., s_n + 1, T)
        Log output laws given every attacker's knowledge; nan where impossible.
    target : int
        The record aimed at.
    index : tuple of slice
        The attackers in question; the states of the target.
    start : int
        Number of the first output.
    pairs : sequence of pair, optional
        Secrets compared; all by default.
    """
    block = np.moveaxis(ratios[index], target, 0)
    if pairs is None:
        return _highest(block, target, index, start)
    best = Peak(-math.inf, target, tuple(part.start for part in index))
    for a, b in pairs:
        found = _highest(block[[a, b]], target, index, start)
        if found.value > best.value:
            best = replace(found, pair=((a, b)[found.pair[0]], (a, b)[found.pair[1]]))
    return best


def every_attacker(joint: JointTable, target: int) -> Index:
    """Return the part of the extended table that compares secrets of `target`."""
    return tuple(slice(0, s + (j != target)) for j, s in enumerate(joint.shape))


def known_states(joint: JointTable, peak: Peak) -> dict[int, int]:
    """Return what the attacker at a peak knows."""
    cells = enumerate(zip(peak.cell, joint.shape, strict=True))
    return {j: k for j, (k, s) in cells if j != peak.target and k < s}


def raise_by_rounding(value: float, rounding: float) -> float:
    """Return `value` raised by a bound on its absolute error; 0 if -inf."""
    if value == -math.inf or value == rounding == 0:
        return 0.0
    return nudge_up(value + rounding)


def fits_extended(entries: int) -> bool:
    """Return whether an extended table of so many entries fits the memory."""
    return entries <= _LARGEST


def require_extended(joint: JointTable, *, outputs: int = 1) -> None:
    """Refuse tables whose extension does not fit the memory."""
    cells = math.prod(s + 1 for s in joint.shape) * outputs
    if not fits_extended(cells):
        raise NotApplicable(
            "the exact engine needs an extended table of at most "
            f"{_LARGEST} entries, got {cells} ({8 * cells / 2**30:.1f} GiB); "
            "use the general bound."
        )


def _highest(block: Floats, target: int, index: Index, start: int) -> Peak:
    with np.errstate(invalid="ignore"):
        # fmax and fmin pass over nan, the secrets of probability zero.
        spread = np.fmax.reduce(block, axis=0) - np.fmin.reduce(block, axis=0)
    told_apart = (~np.isnan(block)).sum(axis=0) > 1
    spread = np.where(told_apart & ~np.isnan(spread), spread, -math.inf)
    place = np.unravel_index(int(spread.argmax()), spread.shape)
    *others, output = (int(k) for k in place)
    column = block.reshape(len(block), -1)[:, int(spread.argmax())]
    others.insert(target, 0)
    cell = tuple(k + part.start for k, part in zip(others, index, strict=True))
    if np.isnan(column).all():
        return Peak(-math.inf, target, cell, (0, 0), start + output)
    pair = int(np.nanargmax(column)), int(np.nanargmin(column))
    return Peak(float(spread[place]), target, cell, pair, start + output)


def _rounding(joint: JointTable, size: float) -> float:
    """Bound the rounding of a difference of log ratios of logs up to `size`.

    A log-sum over an axis errs by at most a unit of the last place of its result, one
    per summand and a few more; two extended tables and one difference make four.
    """
    return 4 * (joint.size + 2) * (size + max(joint.shape) + 4) * 2.0**-52


def _largest(logs: Floats) -> float:
    return float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0))
