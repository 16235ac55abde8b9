"""What the best attacker achieves: exact advantage, and noise calibrated to it.

The best attack on one record is a likelihood-ratio test between two laws of the
output; for Laplace noise these are mixtures, told apart in closed form. Over a finite
table the strongest attack of all is found by search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_index,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.calibrate import calibrate
from undertow.correlation.finite.exact import require_extended
from undertow.correlation.finite.joint import (
    JointTable,
    answer_table,
    coarsest_step,
    require_lattice,
)
from undertow.correlation.level import level_above
from undertow.correlation.model import Model
from undertow.correlation.query import LinearQuery, Query, Scope
from undertow.correlation.result import Adversary, CoveredMechanisms, Leakage
from undertow.errors import ModelError, NotApplicable
from undertow.mechanisms.accuracy import laplace_scale
from undertow.numeric.array import Floats
from undertow.numeric.exact import Number, exact
from undertow.numeric.rounding import nudge_down, nudge_up
from undertow.privacy import PiecewiseLinearTradeOff, PureTradeOff

__all__ = [
    "AdvantageCalibration",
    "Attack",
    "calibrate_advantage",
    "finite_attack",
    "laplace_attack",
    "leakage_advantage",
    "leakage_for_advantage",
    "leakage_tradeoff",
    "optimal_attack",
    "strongest_attack",
]


Intervals = tuple[tuple[float, float], ...]
_TOLERANCE = 1e-9
_THRESHOLDS = 129
# Likelihood ratios beyond are not told from infinite ones in the pictures.
_LARGEST_LOG = 690.0


@dataclass(frozen=True)
class Attack:
    """The likelihood-ratio test between two secrets of one record.

    Parameters
    ----------
    adversary : Adversary
        Who attacks, with the values known.
    pair : tuple
        The two secrets; the attack says the first or the second.
    advantage : float
        True-positive minus false-positive rate, the largest possible: the total
        variation between the two output laws.
    rule : str
        When the attack says the first secret, in words.
    false_positive, true_positive : ndarray
        Points of the receiver operating characteristic, from (0, 0) to (1, 1).
    intervals : tuple of pairs, optional
        Outputs on which it says the first secret, for real outputs.
    outputs : frozenset, optional
        The same for finite outputs.
    """

    adversary: Adversary
    pair: tuple[Any, Any]
    advantage: float
    rule: str
    false_positive: Floats = field(repr=False)
    true_positive: Floats = field(repr=False)
    intervals: Intervals = ()
    outputs: frozenset[Any] = frozenset()

    def says_first(self, seen: ArrayLike) -> NDArray[np.bool_]:
        """Return for each output whether the attack says the first secret."""
        values = np.asarray(seen)
        if self.intervals:
            inside = [(values > low) & (values <= high) for low, high in self.intervals]
            return np.asarray(np.any(inside, axis=0))
        flat = [item in self.outputs for item in values.ravel().tolist()]
        return np.array(flat, dtype=bool).reshape(values.shape)

    def tradeoff(self) -> PiecewiseLinearTradeOff:
        """Return false negatives against false positives, through the points.

        The optimum is convex: it meets these straight lines at the points and lies
        below them in between, so they understate the attack there. Use them for
        pictures, and :func:`leakage_tradeoff` for a bound.
        """
        corners = _lower_hull(self.false_positive, 1 - self.true_positive)
        return PiecewiseLinearTradeOff(*zip(*corners, strict=True))


def finite_attack(
    first: ArrayLike,
    second: ArrayLike,
    *,
    adversary: Adversary,
    pair: tuple[Any, Any],
    outputs: tuple[Any, ...] | None = None,
) -> Attack:
    """Return the best test between two laws on finitely many outputs.

    Parameters
    ----------
    first, second : array_like of shape (T,)
        Output probabilities under the two secrets.
    adversary, pair
        Carried along.
    outputs : tuple, optional
        Names of the outputs.
    """
    p, q = _read_laws(first, second)
    names = outputs if outputs is not None else tuple(range(len(p)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(q > 0, p / np.where(q > 0, q, 1), np.inf)
    order = np.argsort(-np.where(p + q > 0, ratio, -1), kind="stable")
    hits = np.concatenate([[0.0], np.cumsum(p[order])])
    alarms = np.concatenate([[0.0], np.cumsum(q[order])])
    chosen = frozenset(names[j] for j in np.flatnonzero(p > q))
    shown = ", ".join(str(names[j]) for j in np.flatnonzero(p > q)[:8])
    return Attack(
        adversary,
        pair,
        float(np.maximum(p - q, 0).sum()),
        f"say {pair[0]} on seeing one of {shown or 'none'}",
        np.minimum(alarms, 1.0),
        np.minimum(hits, 1.0),
        outputs=chosen,
    )


def laplace_attack(
    support: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    scale: float,
    adversary: Adversary,
    pair: tuple[Any, Any],
    step: float = 0.0,
) -> Attack:
    """Return the best test between two Laplace mixtures.

    Parameters
    ----------
    support : array_like of shape (N,)
        Answers of the query, increasing.
    first, second : array_like of shape (N,)
        Their probabilities under the two secrets.
    scale : float
        Laplace scale.
    adversary, pair
        Carried along.
    step : float
        Step of the lattice that the noise is drawn on, of which every answer is a
        multiple; 0 for continuous noise.

    Notes
    -----
    Section 9 of the theory page on attacks: the likelihood ratio is monotone between
    neighbouring answers, so every test is a union of intervals whose ends and masses
    have closed forms.

    Examples
    --------
    >>> found = laplace_attack([0, 1, 2], [0, 0.1, 0.9], [0.9, 0.1, 0], scale=1.0,
    ...                        adversary=Adversary(0), pair=(1, 0))
    >>> round(found.advantage, 7), found.rule
    (0.5689085, 'say 1 on seeing a value in (1, inf)')
    """
    p, q = _read_laws(first, second)
    centres = np.asarray(support, float)
    if centres.shape != p.shape or not (np.diff(centres) > 0).all():
        raise ModelError("support must be increasing, one answer a probability.")
    spacing = check_non_negative(step, "step")
    if spacing:
        require_lattice(centres.tolist(), Fraction(spacing))
    best = positive_intervals(centres, p - q, scale=scale)
    thresholds = _thresholds(centres, p, q, scale=scale)
    points = {(0.0, 0.0), (1.0, 1.0)}
    for threshold in thresholds:
        where = positive_intervals(centres, p - threshold * q, scale=scale)
        alarms, hits = (
            laplace_masses(centres, weights, scale=scale, intervals=where, step=spacing)
            for weights in (q, p)
        )
        points.add((alarms, hits))
    curve = np.array(sorted(points))
    return Attack(
        adversary,
        pair,
        float(
            laplace_variation(centres, (p - q)[None, :], scale=scale, step=spacing)[0]
        ),
        f"say {pair[0]} on seeing a value in {_words(best)}",
        curve[:, 0],
        np.maximum.accumulate(curve[:, 1]),
        intervals=tuple(best),
    )


def _lower_hull(alphas: Floats, betas: Floats) -> list[tuple[float, float]]:
    """Return the corners of the convex function below points that end at (1, 0)."""
    lowest: dict[float, float] = {}
    for x, y in zip(alphas.tolist(), betas.tolist(), strict=True):
        lowest[x] = min(y, lowest.get(x, y))
    hull: list[tuple[float, float]] = []
    for x, y in sorted(lowest.items()):
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (d - b) * (x - c) < (y - d) * (c - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _read_laws(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    p, q = np.asarray(first, float), np.asarray(second, float)
    if p.shape != q.shape or p.ndim != 1:
        raise ModelError(f"both laws must have one length, got {p.shape}, {q.shape}.")
    for law in (p, q):
        if not ((law >= 0).all() and abs(law.sum() - 1) <= _TOLERANCE):
            raise ModelError(
                "both laws must be non-negative and sum to one, got a sum of "
                f"{float(law.sum())!r}."
            )
    return p, q


def _thresholds(centres: Floats, p: Floats, q: Floats, *, scale: float) -> Floats:
    """Return likelihood ratios between the least and the greatest, and 1."""
    kernel = np.exp(-np.abs(centres[:, None] - centres[None, :]) / scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(kernel @ p) - np.log(kernel @ q)
    finite = ratio[np.isfinite(ratio)]
    if not len(finite) or finite.min() == finite.max():
        return np.ones(1)
    low, high = np.clip([finite.min(), finite.max()], -_LARGEST_LOG, _LARGEST_LOG)
    grid = np.linspace(low, high, _THRESHOLDS)
    return np.asarray(np.exp(np.append(grid, 0.0)))


def _words(intervals: list[tuple[float, float]]) -> str:
    if not intervals:
        return "no interval"
    shown = [
        f"({low:g}, {high:g}{')' if high == math.inf else ']'}"
        for low, high in intervals
    ]
    return " or ".join(shown)


# What a promised leakage means to an attacker: advantage and error trade-off.

_ULPS = 4


def leakage_advantage(leakage: float) -> float:
    r"""Bound the advantage of any inference attack under a leakage.

    .. math:: \mathrm{TPR} - \mathrm{FPR} \le \tanh(B/2)

    Notes
    -----
    The trade-off region of B-indistinguishable laws; attained by randomized response.
    Rounded up.

    Examples
    --------
    >>> round(leakage_advantage(1.7761366), 6)
    0.710438
    """
    leakage = check_non_negative(leakage, "leakage")
    value = math.tanh(leakage / 2)
    return min(1.0, nudge_up(value, _ULPS)) if value > 0 else 0.0


def leakage_for_advantage(advantage: float) -> float:
    r"""Return the leakage :math:`\ln\frac{1+A}{1-A}` that keeps attacks within `A`.

    Examples
    --------
    >>> round(leakage_for_advantage(0.5), 7)
    1.0986123
    """
    advantage = check_probability(advantage, "advantage")
    if advantage == 1:
        return math.inf
    value = 2 * math.atanh(advantage)
    return nudge_down(value, _ULPS) if value > 0 else 0.0


def leakage_tradeoff(leakage: float) -> PureTradeOff:
    r"""Return the least error trade-off of any attack under a leakage.

    .. math:: \beta(\alpha) \ge \max\{0,\ 1 - e^{B}\alpha,\ e^{-B}(1-\alpha)\}

    Notes
    -----
    The talk behind chapter 6 of the thesis prints :math:`e^{B}(1-\alpha)` for the last
    term; the sign of the exponent is corrected here. Under mere DP with correlated
    unknown records the two errors average over different laws, and the DP level in
    place of B would be wrong.

    Examples
    --------
    >>> round(float(leakage_tradeoff(1.0)(0.1)), 6)
    0.728172
    """
    return PureTradeOff(check_non_negative(leakage, "leakage"))


# The strongest attack on a finite table, and noise calibrated to it.

# Rows of mixtures whose total variation is taken at once.
_ROWS = 2**15
# Cover the rounding of probabilities, and of the sums of a total variation.
_MARGIN = 1e-12
_ROUNDING = 2.0**-50
# Beyond this level noise is immaterial: whatever can be told apart is.
_LARGEST_LEVEL = 1e4


def optimal_attack(
    joint: JointTable,
    epsilon: float,
    *,
    adversary: Adversary,
    pair: tuple[int, int],
    query: Query | None = None,
    step: Number = 0,
) -> Attack:
    """Return the best attack of one adversary on Laplace noise of one query.

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    epsilon : float
        DP level: noise of scale sensitivity over epsilon; positive.
    adversary : Adversary
        With the states of every known record.
    pair : tuple of int
        The two states of the target to tell apart.
    query : Query, optional
        The sum of the records by default.
    step : int, float, str, Decimal or Fraction
        Step of the lattice that the noise is drawn on, of which every answer must be a
        multiple; 0 for continuous noise.

    Notes
    -----
    Noise on a coarser lattice hides less: give the step of what is released.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = optimal_attack(flatmates, 1.0, adversary=Adversary(0), pair=(1, 0))
    >>> round(found.advantage, 6)
    0.568909
    >>> alone = JointTable([0.5, 0.5])
    >>> for step in (0, "0.5", 1):
    ...     found = optimal_attack(
    ...         alone, 1.0, adversary=Adversary(0), pair=(1, 0), step=step
    ...     )
    ...     print(round(found.advantage, 6))
    0.393469
    0.393469
    0.462117
    """
    epsilon = check_positive(epsilon, "epsilon")
    asked = query if query is not None else LinearQuery()
    adversary.within(joint.size)
    if set(adversary.values) != set(adversary.known):
        raise ValueError("adversary must say the state of every known record.")
    support, laws = _answer_laws(joint, asked)
    index = [joint.shape[j] for j in range(joint.size)]  # unknown
    for record, state in adversary.values.items():
        index[record] = check_index(state, "known state", size=joint.shape[record])
    rows = []
    for state in pair:
        size = joint.shape[adversary.target]
        index[adversary.target] = check_index(state, "state", size=size)
        weights = laws[tuple(index)]
        if not weights.sum() > 0:
            raise NotApplicable(
                f"state {state} must be possible given what is known, got "
                "probability 0."
            )
        rows.append(weights / weights.sum())
    scale = asked.sensitivity(joint) / epsilon
    return laplace_attack(
        support,
        *rows,
        scale=scale,
        adversary=adversary,
        pair=pair,
        step=float(exact(step, "step")),
    )


def strongest_attack(
    joint: JointTable,
    epsilon: float,
    *,
    query: Query | None = None,
    step: Number = 0,
) -> Attack:
    """Return the attack of largest advantage over all adversaries and pairs.

    Parameters
    ----------
    joint, epsilon, query, step
        As in :func:`optimal_attack`.

    Notes
    -----
    All conditional answer laws are slices of one extended table; their total
    variations are taken in closed form, row by row. Time ``n s**2 (s+1)**(n-1) N``.

    Raises
    ------
    NotApplicable
        If no record has two possible states, or the table is too large.
    """
    epsilon = check_positive(epsilon, "epsilon")
    asked = query if query is not None else LinearQuery()
    support, laws = _answer_laws(joint, asked)
    scale = asked.sensitivity(joint) / epsilon
    spacing = float(exact(step, "step"))
    if spacing:
        require_lattice(support.tolist(), Fraction(spacing))
    found = list(_advantages(joint, support, laws, scale=scale, step=spacing))
    if not found:
        raise NotApplicable(
            "an attack needs a record of two possible states, got a table without."
        )
    _, adversary, pair = max(found, key=lambda row: row[0])
    return optimal_attack(
        joint, epsilon, adversary=adversary, pair=pair, query=asked, step=step
    )


@dataclass(frozen=True, slots=True)
class AdvantageCalibration:
    """The DP level that keeps every inference attack on a release within an advantage.

    Parameters
    ----------
    epsilon : float
        The level chosen.
    noise_scale : float
        Laplace scale for the query.
    advantage : float
        The promise.
    method : str
        ``"exact"``: the advantage itself was searched; ``"leakage"``: through the
        leakage that implies it, which needs more noise.
    through_leakage : float
        The level that going through the leakage would give.
    covers : CoveredMechanisms
        The mechanisms whose release the promise is about; it refuses the others.
    scope : Scope
        The pairs of secrets that the promise covers.
    note : str
        Why the advantage itself was not searched, or its search gave no higher level.
    """

    epsilon: float
    noise_scale: float
    advantage: float
    method: str
    through_leakage: float
    covers: CoveredMechanisms
    scope: Scope = field(default_factory=Scope)
    note: str = ""


def calibrate_advantage(
    model: Model, advantage: float, *, query: Query | None = None
) -> AdvantageCalibration:
    r"""Return the largest DP level whose best attack stays within `advantage`.

    Parameters
    ----------
    model : Model
        How the records depend. A :class:`JointTable` that is small enough is searched
        exactly for a query that says its answers; otherwise the leakage
        :math:`\ln\frac{1+A}{1-A}` is calibrated.
    advantage : float
        True-positive minus false-positive rate allowed, in (0, 1).
    query : Query, optional
        The sum of the records by default.

    Notes
    -----
    The Laplace law of a larger scale is that of a smaller one plus independent noise, a
    post-processing, so the advantage does not decrease in epsilon and bisection is
    sound; this is so on a lattice as well. The attack searched is the one on noise
    drawn on the coarsest lattice (of a step that is a power of two) that holds all
    answers, the whole numbers for a count: noise on a finer one, and continuous noise,
    is that noise plus independent noise, so that no attack on it does better. Another
    mechanism of the same level may do worse, unless `query` is :class:`AnyQuery`. The
    total variations compared are raised by a bound on their rounding.

    Examples
    --------
    >>> from undertow.mechanisms import DiscreteLaplaceMechanism
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = calibrate_advantage(flatmates, 0.4621171)
    >>> found.epsilon > found.through_leakage
    True
    >>> strongest_attack(flatmates, found.epsilon, step=1).advantage <= 0.4621171
    True
    >>> found.covers.require(DiscreteLaplaceMechanism(found.noise_scale))
    """
    advantage = check_probability(advantage, "advantage", open_interval=True)
    asked = query if query is not None else LinearQuery()
    target = leakage_for_advantage(advantage)
    through = calibrate(model, target, query=asked)
    assert through.covers is not None
    assert isinstance(through.achieves, Leakage)
    note = "the best attack is worked out for a finite table only"
    if isinstance(model, JointTable):
        try:
            level, step = _exact_level(model, advantage, asked)
        except NotApplicable as refusal:
            level, step, note = 0.0, None, str(refusal)
        else:
            note = "the search of the best attack gives no higher level"
        if level > through.epsilon:
            sensitivity = asked.sensitivity(model)
            scale = laplace_scale(sensitivity, level)
            return AdvantageCalibration(
                level,
                scale,
                advantage,
                "exact",
                through.epsilon,
                CoveredMechanisms(level, scale, sensitivity, every=False, step=step),
                Scope.every_pair(),
            )
    return AdvantageCalibration(
        through.epsilon,
        through.noise_scale,
        advantage,
        "leakage",
        through.epsilon,
        through.covers,
        through.achieves.scope,
        note,
    )


def _exact_level(
    joint: JointTable, advantage: float, query: Query
) -> tuple[float, Fraction | None]:
    """Return the largest level of noise on the coarsest lattice, and its step."""
    support, laws = _answer_laws(joint, query)
    sensitivity = query.sensitivity(joint)
    step = coarsest_step(support.tolist())
    spacing, spread = float(step or 0), float(support[-1] - support[0])

    def worst(epsilon: float) -> float:
        scale = sensitivity / epsilon
        rows = _advantages(joint, support, laws, scale=scale, step=spacing)
        rounding = _ROUNDING * len(support) * min(1.0, spread / scale)
        return max((row[0] for row in rows), default=0.0) * (1 + _MARGIN) + rounding

    # By the general bound the leakage at this level is within that of the promise.
    low = leakage_for_advantage(advantage) / joint.size
    level = level_above(
        lambda epsilon: worst(epsilon) <= advantage, low, most=_LARGEST_LEVEL
    )
    return level, step


def _answer_laws(joint: JointTable, query: Query) -> tuple[Floats, Floats]:
    """Return the answers, and their masses with one more index a record: unknown."""
    answers = answer_table(joint, query)
    support, place = np.unique(answers, return_inverse=True)
    require_extended(joint, outputs=len(support))
    laws = np.zeros((*joint.shape, len(support)))
    np.put_along_axis(
        laws, place.reshape(joint.shape)[..., None], joint.pmf[..., None], axis=-1
    )
    for axis in range(joint.size):
        total = laws.sum(axis=axis, keepdims=True)
        laws = np.concatenate([laws, total], axis=axis)
    return support, laws


def _advantages(
    joint: JointTable, support: Floats, laws: Floats, *, scale: float, step: float
) -> Iterator[tuple[float, Adversary, tuple[int, int]]]:
    """Yield the largest advantage of each target and pair, with its adversary."""
    for target in range(joint.size):
        rows = np.moveaxis(laws, target, 0).reshape(
            laws.shape[target], -1, len(support)
        )
        shape = [s + 1 for j, s in enumerate(joint.shape) if j != target]
        for first in range(joint.shape[target]):
            for second in range(first):
                value, row = _best_row(
                    rows[first], rows[second], support, scale=scale, step=step
                )
                if value < 0:  # nobody holds both states possible
                    continue
                known = [int(z) for z in np.unravel_index(row, shape)] if shape else []
                yield value, _attacker(joint, target, known), (first, second)


def _best_row(
    first: Floats, second: Floats, support: Floats, *, scale: float, step: float
) -> tuple[float, int]:
    best, where = -math.inf, 0
    for start in range(0, len(first), _ROWS):
        p, q = first[start : start + _ROWS], second[start : start + _ROWS]
        masses = p.sum(axis=1), q.sum(axis=1)
        possible = (masses[0] > 0) & (masses[1] > 0)
        safe = [np.where(possible, mass, 1.0)[:, None] for mass in masses]
        found = laplace_variation(
            support, p / safe[0] - q / safe[1], scale=scale, step=step
        )
        found = np.where(possible, found, -math.inf)
        row = int(found.argmax())
        if found[row] > best:
            best, where = float(found[row]), start + row
    return best, where


def _attacker(joint: JointTable, target: int, known: list[int]) -> Adversary:
    others = [j for j in range(joint.size) if j != target]
    values = {
        record: state
        for record, state in zip(others, known, strict=True)
        if state < joint.shape[record]
    }
    return Adversary(target, values, values)


# Two Laplace mixtures told apart, in closed form.
#
# Between two neighbouring centres the difference of the densities is :math:`a e^{-y/b}
# + c e^{y/b}`, which changes its sign at most once; masses are differences of
# distribution functions. Nothing is integrated numerically. On a lattice that holds all
# centres the probabilities are proportional to the densities, so the same attack is
# best, and its masses are geometric sums.

IntervalList = list[tuple[float, float]]


def laplace_variation(
    support: Floats, difference: Floats, *, scale: float, step: float = 0.0
) -> Floats:
    """Return the total variation between rows of pairs of Laplace mixtures.

    Parameters
    ----------
    support : ndarray of shape (N,)
        Centres, increasing.
    difference : ndarray of shape (rows, N)
        Weights of the first mixture minus those of the second; rows sum to zero.
    scale : float
        Laplace scale; positive.
    step : float
        Step of the lattice that the noise is drawn on, of which every centre is a
        multiple; 0 for continuous noise.

    Returns
    -------
    ndarray of shape (rows,)
        Exact up to rounding, which is relative to the spread of the centres in noise
        scales where that is small. Time and memory are rows times N.
    """
    widths, rate = np.diff(support) / scale, step / scale
    left, right = _sums(difference, np.exp(-widths))
    # Twice the mass that continuous noise puts where a lattice has a geometric sum.
    unit = 2 * math.exp(-rate) / (1 + math.exp(-rate))
    inside = unit * _positive_inside(left[:, :-1], right[:, 1:], widths, rate)
    # Rows sum to zero, so one may be taken off each exponential: nothing cancels.
    ends = (support[0] - support) / scale, (support - support[-1]) / scale
    outside = sum(np.maximum(difference @ np.expm1(end), 0) for end in ends)
    total = inside.sum(axis=1) + (2 - unit) * outside
    if rate:  # the outer centres are in the tails
        centres = (left + right - difference)[:, 1:-1]
        total += 2 * math.tanh(rate / 2) * np.maximum(centres, 0).sum(axis=1)
    return np.asarray(np.minimum(total / 2, 1.0))


def positive_intervals(
    support: Floats, difference: Floats, *, scale: float
) -> IntervalList:
    """Return where a difference of two mixtures (of any mass) is positive."""
    decay = np.exp(-np.diff(support) / scale)
    left, right = _sums(difference[None, :], decay)
    found: IntervalList = [(-math.inf, float(support[0]))] if right[0, 0] > 0 else []
    for k, width in enumerate(np.diff(support)):
        ends = _positive_part(left[0, k], right[0, k + 1], width=width, scale=scale)
        if ends is not None:
            found.append((float(support[k]) + ends[0], float(support[k]) + ends[1]))
    if left[0, -1] > 0:
        found.append((float(support[-1]), math.inf))
    return _joined(found)


def laplace_masses(
    support: Floats,
    weights: Floats,
    *,
    scale: float,
    intervals: IntervalList,
    step: float = 0.0,
) -> float:
    """Return the mass that a Laplace mixture puts on disjoint intervals.

    An interval holds its upper end and not its lower one, which only matters on a
    lattice of a positive `step`.
    """
    total, rate = 0.0, step / scale
    for low, high in intervals:
        below, above = (low - support) / scale, (high - support) / scale
        if rate:
            steps = support / step
            below, above = (np.floor(end / step) - steps for end in (low, high))
            rising = _steps_cdf(above, rate) - _steps_cdf(below, rate)
            falling = _steps_cdf(-below - 1, rate) - _steps_cdf(-above - 1, rate)
        else:
            rising = _cdf(above) - _cdf(below)
            falling = _cdf(-below) - _cdf(-above)
        # The upper tail is used on the right of a centre, where it does not cancel.
        total += float((weights * np.where(below > 0, falling, rising)).sum())
    return min(total, 1.0)


def _cdf(z: Floats) -> Floats:
    tail = np.exp(-np.abs(z)) / 2
    return np.asarray(np.where(z < 0, tail, 1 - tail))


def _steps_cdf(steps: Floats, rate: float) -> Floats:
    """Return the probability of at most so many steps of discrete Laplace noise."""
    below = steps < 0
    tail = np.exp(-rate * np.where(below, -steps, steps + 1)) / (1 + math.exp(-rate))
    return np.asarray(np.where(below, tail, 1 - tail))


def _sums(difference: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return, at each centre, the sums from the left and from the right."""
    left, right = difference.copy(), difference.copy()
    for k in range(1, difference.shape[1]):
        left[:, k] += left[:, k - 1] * decay[k - 1]
        right[:, -1 - k] += right[:, -k] * decay[-k]
    return left, right


def _positive_inside(
    left: Floats, right: Floats, widths: Floats, rate: float
) -> Floats:
    """Return twice the positive mass strictly between neighbouring centres.

    On a lattice the sum over the points between, but for a factor.
    """
    # The number of steps between two centres is whole, and so is what is left of it.
    room = (np.rint(widths / rate) - 1) * rate if rate else widths
    whole = (left + right) * -np.expm1(-room)
    mixed = np.sign(left) * np.sign(right) < 0
    sizes = (np.abs(np.where(mixed, side, 1.0)) for side in (left, right))
    # The densities meet where left e^{-u} = -right e^{-(w-u)}.
    meet = np.subtract(*(np.log(size) for size in sizes))
    u = (widths + meet) / 2
    u = np.clip(np.floor(u / rate) * rate if rate else u, 0, room)
    first = (left + right * np.exp(u - room)) * -np.expm1(-u)
    second = (left * np.exp(-u) + right) * -np.expm1(u - room)
    split = np.maximum(first, 0) + np.maximum(second, 0)
    return np.where(mixed, split, np.maximum(whole, 0))


def _positive_part(
    left: float, right: float, *, width: float, scale: float
) -> tuple[float, float] | None:
    """Return where left e^{-u/b} + right e^{-(w-u)/b} is positive, u in [0, w]."""
    if not min(left, right) < 0 < max(left, right):
        return (0.0, width) if left + right > 0 else None
    meet = scale * (math.log(abs(left)) - math.log(abs(right)))
    u = min(max((width + meet) / 2, 0.0), width)
    if left > 0:
        return (0.0, u) if u > 0 else None
    return (u, width) if u < width else None


def _joined(intervals: IntervalList) -> IntervalList:
    joined: IntervalList = []
    for low, high in intervals:
        if joined and joined[-1][1] == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined
