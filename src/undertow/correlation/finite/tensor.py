"""Exact leakage of a mechanism under a finite law, over all attackers at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.finite.extended import (
    Index,
    Peak,
    every_attacker,
    find_peak,
    known_states,
    log_ratios,
    raise_by_rounding,
    require_extended,
)
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import (
    AnyKernel,
    FiniteKernel,
    FiniteQuery,
    read_kernel,
)
from undertow.correlation.result import Leakage
from undertow.privacy.result import Witness

__all__ = [
    "all_adversaries",
    "exact_leakage",
    "leakage_by_adversary",
    "require_extended",
]

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
        :class:`~undertow.mechanisms.RandomizedResponse` that asks every record; or
        (discrete) Laplace noise on `query`.
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
