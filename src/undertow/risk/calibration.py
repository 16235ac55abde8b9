"""From a tolerated advantage to a parameter: the largest epsilon, the least noise.

The parameter returned is never one whose risk, evaluated there, passes the target. For
families whose structure steps with epsilon it is *safe*: the target holds at every
smaller epsilon too. Several families are compared at equal risk, instead of at equal
epsilon (:func:`compare`).

Behind it is one search: one curve, many targets, always on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice
from undertow.errors import InfeasibleTarget, NotApplicable, SearchError
from undertow.numeric.array import Floats
from undertow.numeric.search import (
    CLOSE,
    NEAR,
    false_position,
    greatest_level,
    greatest_levels,
    raise_level,
)
from undertow.results import Alternative, Calibration, _Shown
from undertow.risk.exact import advantage
from undertow.risk.families.base import (
    LEAST_LEVEL,
    MARGIN,
    CoveredFamily,
    Curve,
    Family,
    Structure,
)
from undertow.risk.finite import Risk
from undertow.risk.number import ScalarChannel
from undertow.risk.scalar import advantage_curve
from undertow.risk.threat import Threat
from undertow.risk.utility import Utility, utility_at

Choice = Literal["safe", "largest"]

# Records up to which the bounds from the guarantee alone are inverted as well.
_MOST = 20_000

SCOPE = (
    "holds under this prior, success rule and knowledge; another threat may do worse"
)


@dataclass(frozen=True, slots=True)
class RiskCalibration(Calibration):
    """A parameter that keeps the risk within a target, and what speaks about it.

    Parameters
    ----------
    parameter, value, achieves, method, alternatives
        As in :class:`~undertow.privacy.Calibration`; `achieves` is the risk at `value`.
    family : str
        Name of the family.
    target : float
        What was allowed.
    exact : bool
        Whether the risk is exact; otherwise a bound was inverted and more might do.
    binding : bool
        Whether the target limits the parameter. Where it does not, the value is
        infinite, or 0 for noise, if every parameter is proved to keep the target, else
        the largest that was tried.
    structure : mapping
        The whole number to deploy with the parameter: ``subset`` or ``buckets``.
    utility : Utility, optional
        What the parameter is worth; where nothing binds, in the limit.
    warnings : tuple of str
        What should be known with it.
    covers : CoveredFamily, optional
        The mechanisms that the risk is about, their noise by name.
    """

    family: str = ""
    target: float = 1.0
    exact: bool = True
    binding: bool = True
    structure: Mapping[str, int] | None = None
    utility: Utility | None = None
    warnings: tuple[str, ...] = ()
    covers: CoveredFamily | None = None

    @property
    def shown(self) -> str:
        """The parameter to four decimals, or five digits, cut to the private side.

        Where nothing binds, ``"any"``, with the largest tried if that is not proved.
        """
        if not self.binding:
            return shown_any(self.value)
        exact = Decimal(self.value)
        cut = ROUND_FLOOR if self.parameter == "epsilon" else ROUND_CEILING
        if 0.1 <= self.value < 1e9:
            return f"{exact.quantize(Decimal('0.0001'), rounding=cut)}"
        digits = Decimal((0, (1,), exact.adjusted() - 4))
        return f"{exact.quantize(digits, rounding=cut):.4e}"


def shown_any(value: float) -> str:
    """Say which parameters keep a target that does not bind.

    Examples
    --------
    >>> shown_any(float("inf")), shown_any(100.0)
    ('any', 'any up to 100')
    """
    return f"any up to {value:g}" if 0 < value < math.inf else "any"


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationTable(_Shown):
    """Parameters for many targets at once.

    Parameters
    ----------
    family, parameter : str
        What was calibrated.
    targets, values, achieved : ndarray
        Allowed risk, parameter, risk at the parameter.
    binding : ndarray of bool
        Whether the target limits the parameter.
    structure : ndarray of int, optional
        The whole number of each, where the family has one; 0 where nothing binds.
    method : str
        How it was found.
    exact : bool
        Whether the risks are exact.
    """

    family: str
    parameter: str
    targets: Floats
    values: Floats
    achieved: Floats
    binding: NDArray[np.bool_]
    structure: NDArray[np.int64] | None
    method: str
    exact: bool

    def __len__(self) -> int:
        return len(self.targets)


@overload
def calibrate(
    family: Family,
    threat: Threat,
    *,
    advantage: float,
    choose: Choice = "safe",
    alternatives: bool = True,
    users: int = 10_000,
    confidence: float = 0.95,
) -> RiskCalibration: ...


@overload
def calibrate(
    family: Family,
    threat: Threat,
    *,
    advantage: NDArray[Any] | list[float],
    choose: Choice = "safe",
    alternatives: bool = True,
    users: int = 10_000,
    confidence: float = 0.95,
) -> CalibrationTable: ...


def calibrate(
    family: Family,
    threat: Threat,
    *,
    advantage: float | ArrayLike,
    choose: Choice = "safe",
    alternatives: bool = True,
    users: int = 10_000,
    confidence: float = 0.95,
) -> RiskCalibration | CalibrationTable:
    r"""Return the largest epsilon, or the least noise, with at most a given advantage.

    Parameters
    ----------
    family : Family
        Mechanisms that differ in one parameter.
    threat : Threat
        Whom the promise is against.
    advantage : float or array_like
        The target :math:`\gamma`, positive; an array is solved in one pass.
    choose : {"safe", "largest"}
        The largest parameter up to which the target holds throughout, or the largest
        at which it holds; they differ only for families that are not monotone.
    alternatives : bool, optional
        Whether to name what other routes would allow; only for a single target.
    users, confidence
        For the stated utility, as in :func:`~undertow.risk.utility.utility_at`.

    Returns
    -------
    RiskCalibration or CalibrationTable
        Infinite with the reason where the target never binds; where it does not bind at
        any parameter that was tried, and no more is known, the largest of these.

    Raises
    ------
    ValueError
        If a target is not positive.
    TypeError
        If a target is not a number.
    InfeasibleTarget
        If the risk passes the target at every parameter, as it may for delta > 0.
    MismatchError
        If family and threat have another number of records.

    Notes
    -----
    Thesis, Section 5.2: decide what is private, state the prior, evaluate the exact
    advantage, invert. A calibration is only as good as its threat: noise chosen for
    many equally likely records may be far too little for two. Checked: the risk at the
    returned parameter. Not checkable: independent records, a public prior.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> from undertow.risk.families import oue, ss
    >>> cells = Threat(Prior.uniform(1000))
    >>> calibrate(oue(1000), cells, advantage=0.1).shown
    '5.3105'
    >>> chosen = calibrate(ss(1000), cells, advantage=0.1)
    >>> chosen.shown, chosen.structure["subset"]
    ('5.2933', 5)
    """
    check_choice(choose, "choose", choices=("safe", "largest"))
    family.require_match(threat)
    targets = _read_targets(advantage)
    solved = solve(family, threat, np.atleast_1d(targets), largest=choose == "largest")
    if targets.ndim:
        return _table(family, targets, solved)
    value = float(solved.values[0])
    structure = None if solved.structure is None else int(solved.structure[0])
    named = {family.structural: structure} if structure is not None else None
    return RiskCalibration(
        family.parameter,
        value,
        _achieved(family, threat, solved),
        solved.reasons[0],
        tuple(_alternatives(family, threat, float(targets))) if alternatives else (),
        family=family.name,
        target=float(targets),
        exact=solved.curve.exact,
        binding=bool(solved.binding[0]),
        structure=named,
        utility=utility_at(
            family, value, structure=structure, users=users, confidence=confidence
        ),
        warnings=tuple(_warnings(family, solved)),
        covers=family.covers,
    )


def _read_targets(advantage: float | ArrayLike) -> Floats:
    given = np.asarray(advantage)
    if given.dtype.kind not in "iuf" and given.size:
        raise TypeError(
            f"advantage must be a number or a list of numbers, got {advantage!r}."
        )
    targets = given.astype(float)
    if targets.ndim > 1 or targets.size == 0:
        raise ValueError(
            "advantage must be a number or a list of numbers, got shape "
            f"{targets.shape}."
        )
    if not (targets > 0).all():
        raise ValueError(
            f"advantage must be positive, got {targets.min()}; only a mechanism that "
            "ignores the data has no advantage against it."
        )
    return targets


def _table(family: Family, targets: Floats, solved: Solved) -> CalibrationTable:
    return CalibrationTable(
        family.name,
        family.parameter,
        targets,
        solved.values,
        solved.achieved,
        solved.binding,
        solved.structure,
        solved.reasons[int(np.argmax(solved.binding))],
        solved.curve.exact,
    )


def _achieved(family: Family, threat: Threat, solved: Solved) -> Risk:
    return family.state(float(solved.achieved[0]), solved.curve, threat)


def _alternatives(
    family: Family, threat: Threat, target: float
) -> Iterable[Alternative]:
    from undertow.risk.bounds import Baselines, calibrate_variation
    from undertow.risk.selector import calibrate_black_box

    kappa, lost = threat.collision, family.delta
    target, level = min(target, 1.0), "(epsilon, delta)" if lost else "pure epsilon"

    def black_box() -> Calibration:
        # The linear program would take seconds and gains little.
        known = replace(Baselines.of(threat), program=None)
        return calibrate_black_box(target, known, delta=lost)

    routes: dict[str, Callable[[], Calibration]] = {
        "any mechanism, this threat": black_box,
        "any mechanism, any knowledge": lambda: calibrate_variation(
            target, delta=lost, collision=kappa
        ),
        "any mechanism, any knowledge and prior": lambda: calibrate_variation(
            target, delta=lost
        ),
    }
    if threat.adjacency != "replace":
        # The other two would state a level for replacing a record, twice as generous.
        routes = {"any mechanism, this threat": black_box}
    if len(threat.prior) > _MOST:  # one evaluation reads the whole prior
        del routes["any mechanism, this threat"]
    for name, route in routes.items():
        try:
            found = route()
        except InfeasibleTarget as refusal:
            yield Alternative(name, f"not reachable: {refusal}")
        else:
            why = (
                f"epsilon from the {level} guarantee alone, by {found.achieves.theorem}"
            )
            yield Alternative(name, why, found.value)


def _warnings(family: Family, solved: Solved) -> Iterable[str]:
    yield SCOPE
    if not solved.curve.exact:
        yield f"a bound was inverted: {solved.curve.reason}"
    yield from family.caveats
    if solved.binding.any() and not family.monotone and not family.structural:
        yield (
            "the family is not proved monotone: the risk was checked at the value "
            "returned and on a grid of smaller levels, not between them"
        )
    yield from (f"not checked: {item}" for item in solved.curve.unchecked)


# Several families at equal risk, instead of at equal epsilon.


@dataclass(frozen=True, slots=True)
class Comparison(_Shown):
    """Families at equal risk.

    Parameters
    ----------
    target : float
        The advantage that each may have.
    threat : str
        In words; another threat may turn the order round.
    rows : tuple of RiskCalibration
        One per family.
    """

    target: float
    threat: str
    rows: tuple[RiskCalibration, ...]

    def best(self, kind: str) -> RiskCalibration:
        """Return the row of best utility of a kind, ``"error"`` or ``"deviation"``.

        A row whose target never binds takes part with its utility in the limit.
        """
        rows = [
            r for r in self.rows if r.utility is not None and r.utility.kind == kind
        ]
        if not rows:
            raise ValueError(f"kind must be one that a row has, got {kind!r}.")
        return min(rows, key=_utility_value)


def _utility_value(row: RiskCalibration) -> float:
    return math.inf if row.utility is None else row.utility.value


def compare(
    families: Iterable[Family],
    threat: Threat,
    *,
    advantage: float,
    users: int = 10_000,
    confidence: float = 0.95,
) -> Comparison:
    """Calibrate several families to the same advantage.

    Parameters
    ----------
    families : iterable of Family
        On the records of the threat.
    threat : Threat
        Whom the promise is against; the order may turn round under another one.
    advantage : float
        The target, positive.
    users, confidence
        For the stated utility.

    Returns
    -------
    Comparison
        One calibration per family, in the order given. Where the target never binds,
        the utility is what is approached as epsilon grows or the noise vanishes.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> from undertow.risk.families import grr, oue
    >>> table = compare([grr(10), oue(10)], Threat(Prior.uniform(10)), advantage=0.1)
    >>> [(row.family, row.shown) for row in table.rows]
    [('grr', '0.8109'), ('oue', '1.1593')]
    """
    if np.ndim(advantage):
        raise TypeError(f"advantage must be one number, got {advantage!r}.")
    rows = [
        calibrate(
            family,
            threat,
            advantage=advantage,
            alternatives=False,
            users=users,
            confidence=confidence,
        )
        for family in families
    ]
    return Comparison(float(advantage), threat.summary, tuple(rows))


# The search behind calibration: one curve, many targets, always on the safe side.

# The target is lowered by this share, which covers the margins of curve and inverse.
_SLACK = 4.0 * MARGIN
# Targets this close to the limit of a curve do not bind: the limit is rounded up.
_TOUCH = 4e-15
_STEPS = 240
# Levels of a scan, and the largest of them.
_LAST = 100.0
_GRID = np.geomspace(1e-3, _LAST, _STEPS)
_SHRINKS = 60
# Targets from which one table of the engine is shared, its levels for each, at most.
_MANY, _EACH, _SHARED = 8, 2, 256


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The answer for each target, and the curve it was read from."""

    values: Floats
    achieved: Floats
    binding: NDArray[np.bool_]
    structure: Structure | None
    reasons: tuple[str, ...]
    curve: Curve


def engine_curve(family: Family, threat: Threat) -> Curve | None:
    """Return the curve that the exact engine gives, many levels at a time."""
    if family.source(1.0, threat) is None:
        return None

    def values(levels: Floats, structure: Structure | None) -> Floats:
        sources = [family.source(float(x), threat) for x in levels]
        return np.array(_engine_values(sources, threat))

    return Curve(
        values,
        family.supremum(threat),
        "thesis, Theorem 5.3",
        reason="the exact engine",
        searched=True,
    )


def _engine_values(sources: Sequence[Any], threat: Threat) -> list[float]:
    """Evaluate noisy numbers together, in halves where that is too much at once."""
    if len(sources) < 2 or not all(isinstance(x, ScalarChannel) for x in sources):
        return [advantage(x, threat).value for x in sources]
    try:
        return [risk.value for risk in advantage_curve(sources, threat)]
    except NotApplicable:
        half = len(sources) // 2
        parts = (sources[:half], sources[half:])
        return [value for part in parts for value in _engine_values(part, threat)]


def solve(
    family: Family, threat: Threat, targets: Floats, *, largest: bool = False
) -> Solved:
    """Return the parameter of each target and the risk at it.

    Notes
    -----
    Explicit inverse where there is one, else a scan between the steps of the structure,
    else bisection of a curve that is proved to grow, else a scan over a grid. Whatever
    the route, the risk is evaluated at the answer, which is lowered until it fits.
    """
    curve = family.curve(threat)
    bound = None
    if curve is None:
        bound, curve = family.fallback(threat), engine_curve(family, threat)
        bound, curve = (bound, curve) if curve is not None else (None, bound)
    limit = min(curve.limit, threat.ceiling)
    binding = targets < limit * (1.0 - _TOUCH)
    values = np.full(targets.shape, np.inf if family.rises else 0.0)
    achieved, structure, method = np.minimum(targets, limit), None, ""
    if binding.any():
        wanted = targets[binding]
        lowered = wanted / (1.0 + _SLACK) - curve.slack
        found, method, steps = _search(family, curve, lowered, largest, bound)
        levels, achieved[binding] = _settled(family, curve, found, wanted, steps)
        values[binding] = family.parameters(levels)
        _require_reached(family, curve, values[binding], wanted)
        if steps is not None:
            structure = np.zeros(targets.shape, dtype=np.int64)
            structure[binding] = steps
    reasons = [
        method if bound else _never(target, limit, threat, family)
        for bound, target in zip(binding.tolist(), targets.tolist(), strict=True)
    ]
    if curve.searched and family.rises:
        last = family.largest if family.monotone else _LAST
        for k in np.flatnonzero(binding & (values >= last)).tolist():
            end = last, float(achieved[k])
            if family.monotone or (curve.raised(_GRID) <= targets[k]).all():
                binding[k] = False
                values[k], achieved[k], reasons[k] = _unlimited(
                    family, threat, float(targets[k]), end
                )
    return Solved(values, achieved, binding, structure, tuple(reasons), curve)


def _unlimited(
    family: Family, threat: Threat, target: float, end: tuple[float, float]
) -> tuple[float, float, str]:
    """Return parameter, risk and reason where no level that was tried is too large."""
    limit = family.limit_within(threat, target)
    if limit is not None:
        why = (
            f"the target never binds, as {family.called} stays within it under this "
            f"threat, whatever {family.parameter} is, with {limit:.6g} in the limit"
        )
        return math.inf, limit, why
    why = (
        f"the target does not bind up to {family.parameter} {end[0]:g}, the largest "
        "that was tried; nothing is said of larger ones"
    )
    return (*end, why)


def _search(
    family: Family,
    curve: Curve,
    targets: Floats,
    largest: bool,
    bound: Curve | None,
) -> tuple[Floats, str, Structure | None]:
    if curve.solve is not None:
        levels, structure = curve.solve(targets, largest)
        return levels, curve.reason, structure
    if curve.inverse is not None:
        return np.minimum(curve.inverse(targets), family.largest), "closed form", None
    if bound is None:
        levels = greatest_levels(curve.raised, targets, largest=family.largest)
        return levels, f"bisection of a {'curve' if curve.exact else 'bound'}", None
    # The bound by total variation never allows more: the search starts where it ends.
    starts = greatest_levels(bound.raised, targets, largest=family.largest)
    starts = np.where(starts >= LEAST_LEVEL, starts, 1.0)
    memory: dict[float, float] = {}

    def risk(level: float) -> float:
        if level not in memory:
            memory[level] = float(curve.raised(np.array([level]))[0])
        return memory[level]

    if family.monotone:
        levels, left = np.empty(targets.shape), np.ones(targets.shape, dtype=bool)
        if len(targets) >= _MANY:
            levels, left = _together(curve, targets, starts, largest=family.largest)
        for k in np.flatnonzero(left).tolist():
            goal, start = float(targets[k]), float(starts[k])
            levels[k] = greatest_level(
                risk, goal, least=LEAST_LEVEL, largest=family.largest, start=start
            )
        return levels, "bisection of the exact engine", None
    found = [_scanned(risk, t, last=largest) for t in targets.tolist()]
    return np.array(found), "scan of the exact engine", None


def _together(
    curve: Curve, targets: Floats, starts: Floats, *, largest: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Bracket all targets by one table, then narrow all brackets at the same time.

    Also says which targets lie outside the table.
    """
    top, most = float(starts.max()), float(targets.max())
    while top < largest and float(curve.raised(np.array([top]))[0]) <= most:
        top = min(4.0 * top, largest)
    grid = np.geomspace(float(starts.min()), top, min(_EACH * len(targets), _SHARED))
    risks = np.maximum.accumulate(curve.raised(grid))
    place = np.searchsorted(risks, targets, side="right")
    inner = (place > 0) & (place < len(grid)) & (risks[place - 1] > 0.0)
    ends = grid[place[inner] - 1], grid[place[inner]]
    levels = np.zeros(targets.shape)
    levels[inner] = false_position(
        curve.raised, targets[inner], ends, near=2.0 * NEAR, width=CLOSE
    )
    return levels, ~inner


def _scanned(risk: Callable[[float], float], target: float, *, last: bool) -> float:
    """Return the level before the first (or the last) grid level past the target."""
    fits = np.array([risk(level) <= target for level in _GRID.tolist()])
    if fits.all():
        return _LAST
    stop = int(len(fits) - np.argmax(fits[::-1]) if last else np.argmin(fits))
    if stop == 0 or not fits[stop - 1]:
        # Nothing on the grid fits, or its first level does not: look below it only.
        first = float(_GRID[0])
        return greatest_level(
            risk, target, least=LEAST_LEVEL, largest=first, start=first
        )
    low = float(_GRID[stop - 1])
    if stop == len(_GRID):
        return low
    return raise_level(risk, target, low, float(_GRID[stop]))


def _settled(
    family: Family,
    curve: Curve,
    levels: Floats,
    targets: Floats,
    structure: Structure | None,
) -> tuple[Floats, Floats]:
    """Lower each level until its risk, evaluated, is within its target."""
    share = MARGIN
    for _ in range(_SHRINKS):
        kept = curve.raised(np.where(levels > 0, levels, LEAST_LEVEL), structure)
        kept = np.where(levels > 0, kept, 0.0)  # a level of 0 is refused later
        over = kept > targets
        if not over.any():
            return levels, kept
        levels = np.where(over, levels * (1.0 - share), levels)
        share = min(2.0 * share, 0.5)
    raise SearchError(
        f"the search for {family.parameter} of {family.name} must settle below its "
        f"target, got a risk of {kept.max():.6g}; raise the target."
    )


def _require_reached(
    family: Family, curve: Curve, values: Floats, targets: Floats
) -> None:
    """Refuse targets that no positive epsilon, or no finite noise, meets."""
    missed = values <= 0.0 if family.rises else values == math.inf
    if missed.any():
        least = family.least(curve)
        noise = "smallest" if family.rises else "largest"
        out = "lower delta" if family.delta else "raise the target"
        raise InfeasibleTarget(
            f"advantage must be greater than {least:.3g}, what {family.called} has at "
            f"the {noise} {family.parameter} that is evaluated, got "
            f"{targets[missed].min():.3g}; {out} or choose another family.",
            least=least,
        )


def _never(target: float, limit: float, threat: Threat, family: Family) -> str:
    if target >= threat.ceiling * (1.0 - _TOUCH):
        return (
            "the target never binds, as no attack under this threat has a larger "
            f"advantage than {threat.ceiling:.6g}; any {family.parameter} meets it"
        )
    return (
        f"the target never binds, as {family.called} has at most {limit:.6g} under "
        f"this threat, whatever {family.parameter} is"
    )
