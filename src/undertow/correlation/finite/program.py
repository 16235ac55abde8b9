"""The leakage of the worst epsilon-DP mechanism under a finite law.

No mechanism is named: a linear program over all of them gives, for every attacker and
pair of secrets, the most that any can leak. The number returned is certified by a dual
point, and a mechanism that attains it can be asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.finite.contrast import (
    Contrast,
    contrasts,
    wanted_attackers,
)
from undertow.correlation.finite.groups import FACTOR_TOLERANCE
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.lipschitz import (
    RatioBound,
    lipschitz_envelope,
    lipschitz_ratio,
)
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable
from undertow.privacy.result import Witness

__all__ = ["ProgramMethod", "worst_case_kernel", "worst_case_leakage"]

Floats = NDArray[np.float64]

_THEOREM = "Definition 2.27 over all mechanisms (linear program)"
# Databases of one group beyond which no program is solved, and number of programs
# beyond which none is solved without being asked.
_LARGEST = 4096
_CHEAP = 400
# Relative: covers the rounding of conditional laws and of skipped attackers.
_MARGIN = 1e-11
# Log of the least probability of "yes" that a float tells from zero, with room.
_LARGEST_EXPONENT = 690.0
_TIGHT = 1e-7
_WIDTH = 1e-10


def worst_case_leakage(
    joint: JointTable,
    epsilon: float,
    *,
    adversaries: str | Iterable[Adversary] = "all",
) -> Leakage:
    r"""Return the most that any epsilon-DP mechanism leaks under a finite law.

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    epsilon : float
        DP level; non-negative and finite.
    adversaries : str or iterable of Adversary
        ``"all"``, ``"none-known"``, or some attackers, whose known `values` are not
        read.

    Returns
    -------
    Leakage
        A certified upper bound; `tight` if a mechanism that attains it to 1e-7 was
        found, see :func:`worst_case_kernel`.

    Raises
    ------
    NotApplicable
        If an independent group has more than 4096 databases.

    Notes
    -----
    Proved on the page exact-leakage: for one attacker and pair the worst ratio is
    :math:`e^{\varepsilon}\max_h E_ph/E_qh` over epsilon-log-Lipschitz functions h of
    the unknown records, and it is attained. Each independent group is done on its own,
    attackers that a better informed one dominates are skipped, and programs are solved
    in the order of a closed-form upper bound until it falls below what was attained.
    Checked: the probabilities, the dual certificates. Not checkable: that the table is
    the law. Programs of ``s**u`` variables and ``u (s-1) s**u`` constraints for u
    unknown records.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = worst_case_leakage(flatmates, 1.0)
    >>> round(found.value, 6), found.tight
    (1.776137, True)
    """
    epsilon = check_level(epsilon)
    found = _worst(joint, epsilon, adversaries) if epsilon > 0 else None
    words = adversaries if isinstance(adversaries, str) else "listed"
    return Leakage(
        found.upper if found else 0.0,
        _THEOREM,
        checked=("the table is a probability law", "dual certificates"),
        unchecked=("the table is the law of the data",),
        witness=found.witness(joint) if found else None,
        tight=True if not found or found.is_attained else None,
        method=ProgramMethod.name,
        model=joint.summary,
        attackers={
            "all": "anyone who knows any subset of the other records",
            "none-known": "anyone who knows no other record",
        }.get(words, "the listed attackers"),
    )


def worst_case_kernel(joint: JointTable, epsilon: float) -> Floats:
    """Return an epsilon-DP mechanism with two outputs that leaks the most.

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    epsilon : float
        DP level; positive and finite.

    Returns
    -------
    array of shape (s_1, ..., s_n, 2)
        Probabilities of "yes" and "no"; the leakage is that of "yes".

    Raises
    ------
    NotApplicable
        If probabilities that `epsilon` allows would be too small for a float.

    Notes
    -----
    The optimal function of the program, extended to all databases as the least
    log-Lipschitz function above it and scaled to at most 1/2; "no" then changes by a
    smaller factor than "yes".

    Examples
    --------
    >>> from undertow.correlation.finite.tensor import exact_leakage
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> round(exact_leakage(flatmates, worst_case_kernel(flatmates, 1.0)).value, 6)
    1.776137
    """
    epsilon = check_positive(epsilon, "epsilon")
    if joint.size * epsilon > _LARGEST_EXPONENT:
        raise NotApplicable(
            f"epsilon must be at most {_LARGEST_EXPONENT / joint.size:g} for a kernel "
            f"on {joint.size} records, got {epsilon:g}: its probabilities would be "
            "rounded to zero; worst_case_leakage needs no kernel."
        )
    found = _worst(joint, epsilon, "all")
    if found is None:
        return np.full((*joint.shape, 2), 0.5)
    anchors = np.zeros(joint.shape)
    for state, factor in zip(found.place.pair, (1.0, math.exp(-epsilon)), strict=True):
        index: list[int | slice] = [slice(None)] * joint.size
        for j, record in enumerate(found.group):
            index[record] = found.place.index(j, state)
        anchors[tuple(index)] = factor * found.spread(joint)
    yes = lipschitz_envelope(anchors, epsilon)
    yes *= 0.5 / yes.max()
    return np.stack([yes, 1 - yes], axis=-1)


class ProgramMethod(Method):
    """The exact leakage of the worst epsilon-DP mechanism, for any query."""

    name: ClassVar[str] = "program"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: JointTable, epsilon: float, *, query: Query) -> Leakage:
        """Return the certified worst leakage over all `epsilon`-DP mechanisms."""
        _require_dp(query)
        return worst_case_leakage(model, epsilon)

    def budget(self, model: JointTable, target: float, *, query: Query) -> float:
        """Return a level within `target`, the largest to 1e-10 relative."""
        _require_dp(query)
        target = check_positive(target, "target")
        # The general bound caps the value, so this end is within the target.
        low = target / model.largest_group * (1 - 100 * _margin(model))
        return _rising_root(
            lambda level: worst_case_leakage(model, level).value, target, low, target
        )

    def too_costly(self, model: JointTable, *, query: Query) -> str | None:
        """Return a reason for more than 400 programs in a table that can be solved."""
        programs = sum(
            _programs([model.shape[j] for j in group])
            for group in model.independent_groups()
        )
        if programs <= _CHEAP or _largest_cells(model) > _LARGEST:
            return None  # what cannot be done at all is refused for that
        return f"the worst mechanism may take {programs} linear programs"


@dataclass(frozen=True, slots=True)
class _Found:
    """What was certified and attained, and where."""

    upper: float
    lower: float
    group: tuple[int, ...]
    place: Contrast
    function: Floats

    @property
    def is_attained(self) -> bool:
        return self.lower >= self.upper * (1 - _TIGHT)

    def witness(self, joint: JointTable) -> Witness:
        group, place = self.group, self.place
        states = {group[j]: z for j, z in zip(place.known, place.states, strict=True)}
        outside = [j for j in range(joint.size) if j not in group]
        adversary = Adversary(group[place.target], [*states, *outside], states)
        return adversary_witness(adversary, pair=place.pair)

    def spread(self, joint: JointTable) -> Floats:
        """Return the function with an axis of one for each record outside the group."""
        fixed = {self.group[j] for j in (*self.place.known, self.place.target)}
        free = [j for j in range(joint.size) if j not in fixed]
        return self.function.reshape(
            [joint.shape[j] if j in self.group else 1 for j in free]
        )


def _worst(
    joint: JointTable, epsilon: float, adversaries: str | Iterable[Adversary]
) -> _Found | None:
    """Return the worst attacker and pair; None if no record has two likely states."""
    _require_small(joint)
    wanted = wanted_attackers(joint, adversaries)
    listed = [
        (bound, group, place, part)
        for group in joint.independent_groups()
        for part in [joint.margin(group)]
        for bound, place in contrasts(part, epsilon, group, wanted)
    ]
    best: _Found | None = None
    for bound, group, place, part in sorted(listed, key=lambda entry: -entry[0]):
        if best is not None and epsilon + bound <= best.lower:
            break
        ratio = lipschitz_ratio(*place.laws(part), epsilon)
        best = _merge(best, epsilon, ratio, group, place)
    if best is None:
        return None
    return replace(best, upper=inflate(best.upper, _margin(joint)))


def _margin(joint: JointTable) -> float:
    r"""Cover rounding, and what groups that are independent but for it can hide.

    Weights off by a relative d move a mean of a function that varies by
    :math:`e^{n\varepsilon}` by less than 8 n d epsilon; one d for each split.
    """
    splits = len(joint.independent_groups()) - 1
    return _MARGIN + 8 * FACTOR_TOLERANCE * splits * joint.size


def _merge(
    best: _Found | None,
    epsilon: float,
    ratio: RatioBound,
    group: tuple[int, ...],
    place: Contrast,
) -> _Found:
    upper, lower = epsilon + ratio.upper, epsilon + ratio.lower
    if best is None:
        return _Found(upper, lower, group, place, ratio.function)
    upper = max(upper, best.upper)
    if lower > best.lower:
        return _Found(upper, lower, group, place, ratio.function)
    return replace(best, upper=upper)


def _programs(shape: list[int]) -> int:
    """Return how many attackers and pairs leave two records or more unknown."""
    count = 0
    for target, s in enumerate(shape):
        others = shape[:target] + shape[target + 1 :]
        # Each other record is known with one of its states, or unknown.
        every = math.prod(z + 1 for z in others)
        informed = math.prod(others)
        one_unknown = sum(informed // z for z in others)
        count += s * (s - 1) * (every - informed - one_unknown)
    return count


def _largest_cells(joint: JointTable) -> int:
    groups = joint.independent_groups()
    return max(math.prod(joint.shape[j] for j in group) for group in groups)


def _require_small(joint: JointTable) -> None:
    cells = _largest_cells(joint)
    if cells > _LARGEST:
        raise NotApplicable(
            f"the program over all mechanisms needs at most {_LARGEST} databases in "
            f"one independent group, got {cells}; use the general bound."
        )


def _require_dp(query: Query) -> None:
    if isinstance(query, LinearQuery) and query.gap is not None:
        raise NotApplicable(
            "the program over all mechanisms needs a DP release, got an unclipped "
            f"query for secrets at most {query.gap:g} apart; give it clip=(low, high)."
        )


def _rising_root(
    rising: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Return a point at which `rising` is at most `target`, near the last such one.

    False position with halved weights (the Illinois rule) and a small overshoot, so
    that both ends move; every fourth step halves, so that it ends.
    """
    above, below = rising(high) - target, rising(low) - target
    if above <= 0:
        return high
    for step in itertools.count(1):
        share = 0.5 if step % 4 == 0 else below / (below - above)
        middle = low + share * (high - low)
        middle = min(max(middle, low + 0.3 * _WIDTH * high), high - 0.3 * _WIDTH * high)
        if high - low <= _WIDTH * high or not low < middle < high:
            break
        gap = rising(middle) - target
        if gap <= 0:
            low, below, above = middle, gap, above / 2
        else:
            high, above, below = middle, gap, below / 2
    return low
