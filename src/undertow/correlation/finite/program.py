"""The leakage of the worst epsilon-DP mechanism under a finite law.

No mechanism is named: a linear program over all of them gives, for every attacker and
pair of secrets, the most that any can leak. The number returned is certified by a
dual point, and a mechanism that attains it can be asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.correlation.finite.joint import FACTOR_TOLERANCE, JointTable
from undertow.correlation.level import attained_level, check_level
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import NotApplicable
from undertow.numeric.array import Floats
from undertow.numeric.rounding import inflate, nudge_up
from undertow.results import Witness

# Databases of one group beyond which no program is solved, and number of programs
# beyond which none is solved without being asked.
_LARGEST = 4096
_CHEAP = 400
# Relative: covers the rounding of conditional laws and of skipped attackers.
_MARGIN = 1e-11
# Log of the least probability of "yes" that a float tells from zero, with room.
_KERNEL_EXPONENT = 690.0
_TIGHT = 1e-7


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
    return ProgramTheorem().at(joint, check_level(epsilon), adversaries)


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
    >>> from undertow.correlation.finite.exact import exact_leakage
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> round(exact_leakage(flatmates, worst_case_kernel(flatmates, 1.0)).value, 6)
    1.776137
    """
    epsilon = check_positive(epsilon, "epsilon")
    if joint.size * epsilon > _KERNEL_EXPONENT:
        raise NotApplicable(
            f"epsilon must be at most {_KERNEL_EXPONENT / joint.size:g} for a kernel "
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


class ProgramTheorem(FormulaTheorem):
    """The exact leakage of the worst epsilon-DP mechanism, for any query."""

    name = "program"
    source = "Definition 2.27 over all mechanisms (linear program)"
    published = False
    checked = (
        "the table is a probability law",
        "dual certificates",
    )
    unchecked = ("the table is the law of the data",)

    def read(self, model: JointTable, query: Query) -> JointTable:
        """Return the table, for a DP release."""
        if isinstance(query, LinearQuery) and query.gap is not None:
            raise NotApplicable(
                "the program over all mechanisms needs a DP release, got an unclipped "
                f"query for secrets at most {query.gap:g} apart; give it "
                "clip=(low, high)."
            )
        return model

    def at(
        self,
        given: JointTable,
        epsilon: float,
        adversaries: str | Iterable[Adversary] = "all",
    ) -> Leakage:
        """Return the certified worst leakage over all `epsilon`-DP mechanisms."""
        found = _worst(given, epsilon, adversaries) if epsilon > 0 else None
        words = adversaries if isinstance(adversaries, str) else "listed"
        return self.stated(
            found.upper if found else 0.0,
            witness=found.witness(given) if found else None,
            tight=True if not found or found.is_attained else None,
            model=given.summary,
            attackers={
                "all": "anyone who knows any subset of the other records",
                "none-known": "anyone who knows no other record",
            }.get(words, "the listed attackers"),
        )

    def within(self, given: JointTable, target: float) -> float:
        """Return a level within `target`, the largest to 1e-10 relative."""
        # The general bound caps the value, so this end is within the target.
        low = target / given.largest_group * (1 - 100 * _margin(given))
        return attained_level(
            lambda level: self.at(given, level).value, target, low, target
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


# Attackers and pairs of secrets of a finite law, as laws of the unknown records.

Wanted = Callable[[int, tuple[int, ...]], bool] | None
"""Whether to look at a record with some known records of its group; None for all."""

# Relative difference up to which two conditional laws are the same but for rounding.
_SAME = 1e-14


@dataclass(frozen=True, slots=True)
class Contrast:
    """An attacker and two secrets inside a group; records are numbered in it."""

    target: int
    known: tuple[int, ...]
    states: tuple[int, ...]
    pair: tuple[int, int]

    def index(self, record: int, state: int) -> int | slice:
        """Return where a record stands when the target has a state."""
        if record == self.target:
            return state
        if record in self.known:
            return self.states[self.known.index(record)]
        return slice(None)

    def laws(self, joint: JointTable) -> tuple[Floats, Floats]:
        """Return the laws of the unknown records under the two secrets."""
        cells = (
            joint.pmf[tuple(self.index(j, state) for j in range(joint.size))]
            for state in self.pair
        )
        p, q = (np.asarray(cell / cell.sum(), dtype=np.float64) for cell in cells)
        return p, q


def wanted_attackers(
    joint: JointTable, adversaries: str | Iterable[Adversary]
) -> Wanted:
    """Return which (record, known records of its group) to look at; None for all."""
    if adversaries == "all":
        return None
    if adversaries == "none-known":
        return lambda target, known: not known
    if isinstance(adversaries, str):
        raise ValueError(
            "adversaries must be 'all', 'none-known' or a list of them, "
            f"got {adversaries!r}."
        )
    group_of = {j: set(group) for group in joint.independent_groups() for j in group}
    chosen = {
        (one.target, tuple(sorted(one.known & group_of[one.target])))
        for one in (adversary.within(joint.size) for adversary in adversaries)
    }
    if not chosen:
        raise ValueError("adversaries must name at least one attacker, got none.")
    return lambda target, known: (target, known) in chosen


def contrasts(
    part: JointTable, epsilon: float, group: tuple[int, ...], wanted: Wanted
) -> Iterator[tuple[float, Contrast]]:
    """Yield attackers and pairs of a group with an upper bound on their log ratio."""
    for target in range(part.size):
        others = [j for j in range(part.size) if j != target]
        for count in range(part.size):
            for known in itertools.combinations(others, count):
                names = tuple(group[j] for j in known)
                if wanted is None or wanted(group[target], names):
                    yield from _pairs(part, epsilon, target, known, wanted is None)


def _pairs(
    part: JointTable, epsilon: float, target: int, known: tuple[int, ...], skip: bool
) -> Iterator[tuple[float, Contrast]]:
    unknown = [j for j in range(part.size) if j != target and j not in known]
    shape = [part.shape[j] for j in known], [part.shape[j] for j in unknown]
    table = part.pmf.transpose([*known, target, *unknown])
    table = table.reshape(-1, part.shape[target], math.prod(shape[1]))
    likely = table.sum(axis=-1)
    for a, b in itertools.permutations(range(part.shape[target]), 2):
        rows = np.flatnonzero((likely[:, a] > 0) & (likely[:, b] > 0))
        p, q = (table[rows, z] / likely[rows, z, None] for z in (a, b))
        if skip and unknown:
            kept = ~_dominated(p, q, shape[1])
            rows, p, q = rows[kept], p[kept], q[kept]
        bounds = threshold_ratio(p, q, len(unknown) * epsilon)
        for row, bound in zip(rows.tolist(), bounds.tolist(), strict=True):
            states = tuple(int(z) for z in np.unravel_index(row, shape[0] or (1,)))
            yield bound, Contrast(target, known, states[: len(known)], (a, b))


def _dominated(p: Floats, q: Floats, shape: list[int]) -> NDArray[np.bool_]:
    """Return for which rows an unknown record has the same law under both secrets.

    Both output laws are then mixtures with the same weights over that record, so the
    attacker who knows it too, with its worst state, learns at least as much.
    """
    same = np.zeros(len(p), dtype=bool)
    first, second = (law.reshape(-1, *shape) for law in (p, q))
    for axis in range(len(shape)):
        summed = tuple(k + 1 for k in range(len(shape)) if k != axis)
        one, other = first.sum(axis=summed), second.sum(axis=summed)
        gap = np.abs(one - other) <= _SAME * np.minimum(one, other)
        same |= gap.all(axis=-1)
    return same


# The largest ratio of two means of a function that one record changes little.
#
# For laws p, q of the unknown records, every epsilon-DP mechanism turns into a positive
# function h with :math:`h(c)\le e^\varepsilon h(c')` for neighbours, and what it leaks
# about the target is :math:`\varepsilon+\ln(E_ph/E_qh)` at most. This module maximises
# the ratio: by a closed form for one unknown record, by a linear program for more.

Integers = NDArray[np.intp]

# Beyond this exponent the program is not scaled well enough to be worth solving.
_SOLVED_EXPONENT = 300.0
_SMALL_EXPONENT = 30.0
_FEASIBILITY = 1e-10
# Tried in turn; whatever is found is certified, so a loose one costs tightness only.
_ATTEMPTS: tuple[tuple[Any, float], ...] = (
    ("highs", _FEASIBILITY),
    ("highs-ds", _FEASIBILITY),
    ("highs-ds", 1e-8),
    ("highs-ipm", 1e-8),
)
# Functions do not go below: a smaller value could make a mean zero.
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class RatioBound:
    """An enclosure of the largest log ratio of means.

    Parameters
    ----------
    upper : float
        Certified: from a dual point whose infeasibility is priced in, or closed form.
    lower : float
        Attained by `function`, which satisfies its constraints.
    function : array
        A positive function of the unknown records.
    """

    upper: float
    lower: float
    function: Floats


def threshold_ratio(p: Floats, q: Floats, exponent: float) -> Floats:
    r"""Return the largest log ratio of means of functions of range :math:`e^D`.

    .. math:: \max_A \ln\frac{e^{D}p(A)+p(A^c)}{e^{D}q(A)+q(A^c)}

    The maximum is over the sets of large p/q, row by row. With D the exponent times
    the number of records it bounds every log-Lipschitz function; for one record it is
    attained.

    Parameters
    ----------
    p, q : array of shape (R, N)
        Probabilities.
    exponent : float
        The D; non-negative.

    Examples
    --------
    >>> threshold_ratio(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), 2.0)
    array([2.])
    """
    order = np.argsort(-_likelihood(p, q), axis=-1, kind="stable")
    over, under = (
        _log_means(np.take_along_axis(law, order, axis=-1), exponent) for law in (p, q)
    )
    found = (over - under).max(axis=-1)
    return np.asarray(np.clip(found, 0.0, exponent), dtype=np.float64)


def lipschitz_ratio(p: Floats, q: Floats, epsilon: float) -> RatioBound:
    r"""Enclose the largest :math:`\ln(E_ph/E_qh)` over epsilon-log-Lipschitz h.

    Parameters
    ----------
    p, q : array of shape (s_1, ..., s_u)
        Laws of the unknown records under two secrets.
    epsilon : float
        Non-negative.

    Returns
    -------
    RatioBound

    Notes
    -----
    Charnes–Cooper: normalise :math:`E_qh=1` and maximise :math:`E_ph`. Every feasible h
    is at most :math:`U(c)=1/\sum_{c'}q(c')e^{-\varepsilon d(c,c')}`, so h = U k with
    :math:`0\le k\le1`, which scales the program. For any multipliers :math:`y\ge0` and
    any :math:`\lambda`, with residual :math:`r=Up-A^Ty-\lambda Uq`, weak duality gives
    :math:`E_ph\le\lambda+\sum_c\max(r_c,0)`: a certificate that needs no feasible dual
    point. Proved on the page exact-leakage.

    Examples
    --------
    >>> found = lipschitz_ratio(np.diag([0.5, 0.5]), np.full((2, 2), 0.25), 1.0)
    >>> abs(found.upper - found.lower) < 1e-9
    True
    """
    box = float(threshold_ratio(p.ravel()[None], q.ravel()[None], p.ndim * epsilon)[0])
    if p.ndim <= 1:
        return RatioBound(box, box, _threshold_function(p, q, epsilon))
    if p.ndim * epsilon > _SOLVED_EXPONENT:
        step = _threshold_function(p, q, epsilon)
        return RatioBound(box, _log_ratio(p, q, step), step)
    return _solve(p, q, epsilon, box)


def lipschitz_envelope(function: Floats, epsilon: float) -> Floats:
    """Return the least epsilon-log-Lipschitz function above one, axis by axis."""
    for axis in range(function.ndim):
        highest = function.max(axis=axis, keepdims=True)
        function = np.maximum(function, math.exp(-epsilon) * highest)
    return function


def _solve(p: Floats, q: Floats, epsilon: float, box: float) -> RatioBound:
    roof = _roof(q, epsilon)
    limits = _limits(roof, epsilon)
    gain, cost = (p * roof).ravel(), (q * roof).ravel()
    solved = _solution(gain, cost, limits)
    if solved is None:
        step = _threshold_function(p, q, epsilon)
        return RatioBound(box, _log_ratio(p, q, step), step)
    multipliers = np.maximum(-solved.ineqlin.marginals, 0.0)
    price = -float(solved.eqlin.marginals[0])
    upper = _certify(gain, cost, limits, multipliers, price)
    shape = np.maximum(solved.x, 0.0).reshape(p.shape) * roof
    best = lipschitz_envelope(shape, epsilon)
    return RatioBound(min(box, upper), _log_ratio(p, q, best), best)


def _solution(gain: Floats, cost: Floats, limits: Any) -> Any:
    """Return what a solver finds; older ones give up at tolerances newer ones reach."""
    from scipy.optimize import linprog

    for method, tolerance in _ATTEMPTS:
        solved = linprog(
            -gain,
            A_ub=limits,
            b_ub=np.zeros(limits.shape[0]),
            A_eq=cost[None, :],
            b_eq=np.ones(1),
            bounds=(0, None),
            method=method,
            options={
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if solved.status == 0 and solved.x is not None:
            return solved
    return None


def _limits(roof: Floats, epsilon: float) -> Any:
    """Return the sparse A of the constraints A k <= 0, one row per ordered pair."""
    from scipy.sparse import coo_array

    high, low = _neighbours(roof.shape)
    slopes = roof.ravel()[high] * math.exp(-epsilon) / roof.ravel()[low]
    entries = np.concatenate([slopes, -np.ones(high.size)])
    rows = np.arange(high.size)
    places = np.concatenate([rows, rows]), np.concatenate([high, low])
    return coo_array((entries, places), shape=(high.size, roof.size)).tocsr()


def _certify(
    gain: Floats, cost: Floats, limits: Any, multipliers: Floats, price: float
) -> float:
    """Return the log of the dual value, infeasibility and rounding priced in."""
    residual = gain - limits.T @ multipliers - price * cost
    sizes = gain + abs(limits).T @ multipliers + abs(price) * cost
    bound = price + np.maximum(residual, 0.0).sum() + 2.0**-48 * sizes.sum()
    return nudge_up(math.log(bound), 8)


def _roof(q: Floats, epsilon: float) -> Floats:
    """Return U: the greatest value each cell can have when the mean under q is one."""
    decay, total = math.exp(-epsilon), q
    for axis in range(q.ndim):
        total = decay * total.sum(axis=axis, keepdims=True) + (1 - decay) * total
    return np.asarray(1 / total, dtype=np.float64)


def _neighbours(shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Return the flat indices of all ordered pairs that differ in one record."""
    cells = np.arange(math.prod(shape)).reshape(shape)
    first, second = [], []
    for axis, s in enumerate(shape):
        lines = np.moveaxis(cells, axis, -1).reshape(-1, s)
        for shift in range(1, s):
            first.append(lines.ravel())
            second.append(np.roll(lines, shift, axis=-1).ravel())
    return np.concatenate(first), np.concatenate(second)


def _log_means(ranked: Floats, exponent: float) -> Floats:
    """Return the log means of functions that are exp(exponent) on the first cells."""
    above = ranked.cumsum(axis=-1)
    if exponent <= _SMALL_EXPONENT:  # keeps relative accuracy for small exponents
        return np.asarray(np.log1p(math.expm1(exponent) * above))
    below = ranked[..., ::-1].cumsum(axis=-1)[..., ::-1] - ranked
    with np.errstate(divide="ignore"):
        logs = np.log(above) + exponent, np.log(np.maximum(below, 0.0))
    return np.asarray(np.logaddexp(*logs))


def _likelihood(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p / q
    return np.where(np.isnan(ratio), -np.inf, ratio)


def _threshold_function(p: Floats, q: Floats, epsilon: float) -> Floats:
    """Return the best function of the values 1 and exp(-epsilon) by rank of p/q."""
    ratio = _likelihood(p, q)
    best = np.ones(p.shape)
    low = max(math.exp(-epsilon), _SMALLEST)
    for cut in np.unique(ratio):
        step = np.where(ratio >= cut, 1.0, low)
        if _log_ratio(p, q, step) > _log_ratio(p, q, best):
            best = step
    return best


def _log_ratio(p: Floats, q: Floats, function: Floats) -> float:
    return math.log(float((p * function).sum()) / float((q * function).sum()))
