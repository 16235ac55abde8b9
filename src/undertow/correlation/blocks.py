"""What a release leaks when only the groups of records are known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate, nudge_down
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.independent import Independent, IndependentMethod
from undertow.correlation.method import Method, check_level
from undertow.correlation.partition import Blocks
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import ModelError, NotApplicable
from undertow.privacy.exact import exact, round_up_decimal

__all__ = [
    "Blocks",
    "BlocksMethod",
    "Independent",
    "IndependentMethod",
    "block_leakage",
]

_ADDITIVE = "additive Laplace noise of scale max(sensitivities)/epsilon"
_THEOREM = "Theorem 6.3, per group and record (general bound)"


def block_leakage(
    blocks: Blocks,
    epsilon: float,
    *,
    adversary: Adversary | None = None,
    sensitivities: ArrayLike | None = None,
) -> Leakage:
    r"""Bound the leakage to one attacker, or to the worst, by the target's own group.

    .. math:: \mathrm{BDPL}_{(K,i)} \le \varepsilon \sum_{j \in C(i) \setminus K}
              \frac{\Delta_j}{\max_l \Delta_l}

    which is :math:`|C(i) \setminus K|\,\varepsilon` if nothing is known of the
    single sensitivities.

    Parameters
    ----------
    blocks : Blocks
        The groups; C(i) is that of the target.
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    adversary : Adversary, optional
        Target i and known records K; by default the worst.
    sensitivities : array_like of shape (n,), optional
        Most that each record moves the answer, for additive Laplace noise of scale
        ``max(sensitivities) / epsilon`` (in :math:`\ell_1` for a vector). Without them
        the bound holds for every epsilon-DP mechanism.

    Returns
    -------
    Leakage
        Tight over the laws with these groups: records of the group that all move
        together attain it.

    Raises
    ------
    ModelError
        If the sensitivities are negative, all zero, or not one for each record.

    Notes
    -----
    Refines Theorem 6.3 of [1]_; proved on the theory page of the general bound. The sum
    is raised by a relative margin that covers its rounding. O(n).

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> families = Blocks([3, 1])
    >>> block_leakage(families, 1.0, adversary=Adversary(0, {2})).value
    2.0
    >>> shared = block_leakage(families, 1.0, sensitivities=[1.0, 0.5, 0.25, 1.0])
    >>> round(shared.value, 12)
    1.75
    """
    epsilon = check_level(epsilon)
    shares = _read_shares(sensitivities, blocks.size)
    who = adversary or Adversary(_worst_target(blocks, shares))
    moving = len(set(blocks.group_of(who.within(blocks.size).target)) - who.known)
    found = Leakage(
        round_up_decimal(exact(epsilon) * exact(_factor(blocks, shares, adversary))),
        _THEOREM,
        checked=("every record is in exactly one group",),
        unchecked=("the groups are mutually independent",),
        witness=adversary_witness(who, note=f"{moving} unknown records move together"),
        tight=True,
        method="general" if shares is None else BlocksMethod.name,
        model=blocks.summary,
    )
    if shares is not None:
        found = replace(found, mechanisms=_ADDITIVE)
    return found if adversary is None else replace(found, attackers=who.summary)


class BlocksMethod(Method):
    """The general bound record by record, for Laplace noise on a weighted sum.

    A group whose weights are small leaks less than its size says. Proved on the theory
    page of the general bound.
    """

    name: ClassVar[str] = "per-record"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: Blocks, epsilon: float, *, query: Query) -> Leakage:
        """Return `epsilon` times the heaviest group over the heaviest record."""
        weights = self._weights(model, query)
        found = block_leakage(model, epsilon, sensitivities=weights)
        return replace(found, scope=query.scope())

    def budget(self, model: Blocks, target: float, *, query: Query) -> float:
        """Return the level whose leakage is at most `target`."""
        shares = _read_shares(self._weights(model, query), model.size)
        factor, target = _factor(model, shares, None), check_level(target)
        level = target / factor
        while exact(level) * exact(factor) > exact(target):
            level = nudge_down(level)
        return level

    @staticmethod
    def _weights(model: Blocks, query: Query) -> NDArray[np.float64]:
        if not isinstance(query, LinearQuery) or query.gap is not None:
            raise NotApplicable(
                "the per-record bound needs a clipped or bounded linear query, got "
                f"{'an unclipped one' if query.name == 'linear' else query.name!r}; "
                "the general bound holds for every DP mechanism."
            )
        query.sensitivity(model)  # refuses records without bounds
        return np.abs(np.asarray(query.weights_for(model.size), dtype=np.float64))


def _factor(
    blocks: Blocks, shares: NDArray[np.float64] | None, adversary: Adversary | None
) -> float:
    """Return the bound over epsilon, raised by what covers the rounding of sums."""
    if adversary is not None:
        moving = [
            j for j in blocks.group_of(adversary.target) if j not in adversary.known
        ]
        total = len(moving) if shares is None else math.fsum(shares[moving])
        return min(inflate(total, _margin(len(moving))), float(len(moving)))
    if shares is None:
        return float(blocks.largest_group)
    sums = np.bincount(blocks.labels, weights=shares)
    raised = sums * (1.0 + _margin(blocks.largest_group))
    return float(np.minimum(raised, blocks.sizes).max())


def _margin(count: int) -> float:
    """Cover the rounding of `count` quotients and of their sum, in any order."""
    return (count + 4) * 2.0**-52


def _worst_target(blocks: Blocks, shares: NDArray[np.float64] | None) -> int:
    """Return the first record of the heaviest group."""
    weights = np.bincount(blocks.labels, weights=shares)
    return int(np.argmax(blocks.labels == np.argmax(weights)))


def _read_shares(
    sensitivities: ArrayLike | None, size: int
) -> NDArray[np.float64] | None:
    """Return each sensitivity over the largest."""
    if sensitivities is None:
        return None
    changes = np.asarray(sensitivities, dtype=np.float64)
    if changes.shape != (size,):
        raise ModelError(
            f"sensitivities must be one for each of the {size} records, "
            f"got shape {changes.shape}."
        )
    if not (np.isfinite(changes).all() and changes.min() >= 0 and changes.max() > 0):
        raise ModelError(
            "sensitivities must be finite and non-negative, and one positive, got "
            f"values from {changes.min()} to {changes.max()}."
        )
    return np.asarray(changes / changes.max())
