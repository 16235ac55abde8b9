r"""From a tolerated advantage to a parameter: the largest epsilon, the least noise.

The parameter returned is never one whose risk, evaluated there, passes the target. For
families whose structure steps with epsilon it is *safe*: the target holds at every
smaller epsilon too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice
from undertow.errors import InfeasibleTarget
from undertow.privacy.result import Alternative, Calibration, _Shown
from undertow.risk._finite import Risk
from undertow.risk.calibrate_search import Solved, solve
from undertow.risk.families.base import CoveredFamily, Family
from undertow.risk.threat import Threat
from undertow.risk.utility import Utility, utility_at

__all__ = [
    "CalibrationTable",
    "RiskCalibration",
    "calibrate",
    "shown_any",
]

Floats = NDArray[np.float64]
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
