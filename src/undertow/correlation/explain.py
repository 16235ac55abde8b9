"""A calibration in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

from undertow.correlation.odds import posterior_probability_interval
from undertow.correlation.result import Leakage, LeakageCalibration
from undertow.privacy.exact import exact, format_up

if TYPE_CHECKING:
    from undertow.correlation.robust import WhatIf

__all__ = ["explain"]

# Above, even odds move to 99.3 % and more: the promise says little.
_HIGH = 5.0
# What differs from a short number by less is printed as that number.
_ROUNDING = 1e-9


def explain(calibration: LeakageCalibration, *, rows: Sequence[WhatIf] = ()) -> str:
    """Return a calibration in plain words, for a report.

    Says under which model, against whom and for which secrets the promise holds, what
    it means for an attacker's odds, what it costs in error, what group scaling would
    cost, what no mechanism can do, and what is taken on trust.

    Parameters
    ----------
    calibration : LeakageCalibration
        From :func:`~undertow.correlation.calibrate` or :func:`calibrate_over`.
    rows : sequence of WhatIf
        Other assumptions to mention, from :func:`what_if`.

    Returns
    -------
    str
        One paragraph. Numbers are rounded up where that is the careful side.

    Examples
    --------
    >>> from undertow.correlation import Blocks, calibrate
    >>> print(explain(calibrate(Blocks.of_size(5, groups=2000), 1.0))[:74])
    Under the model "10000 records in 2000 independent groups of at most 5", a
    """
    sentences = [
        _promise(calibration),
        _levels(calibration),
        _error(calibration),
        _group_scaling(calibration),
        _floor(calibration),
        *(_other(row) for row in rows),
        _trust(calibration.achieves),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _promise(calibration: LeakageCalibration) -> str:
    bound = calibration.achieves
    assert isinstance(bound, Leakage)
    high = 100 * posterior_probability_interval(0.5, bound.value)[1]
    words = (
        f'Under the model "{bound.model}", {bound.attackers} can change the odds '
        f"between two values of one record by at most e^{_up(bound.value)} (even odds "
        f"become at most {_up(high)} %); this covers {bound.scope.summary}."
    )
    if bound.value > _HIGH:
        words += " At this level the attacker may become almost certain."
    return words


def _levels(calibration: LeakageCalibration) -> str:
    level = _up(calibration.epsilon)
    return (
        f"The release is {level}-DP: whoever knows all other records can change the "
        f"odds by at most e^{level}."
    )


def _error(calibration: LeakageCalibration) -> str:
    accuracy = calibration.accuracy
    if accuracy is None:
        return "No finite noise keeps the promise, so nothing can be answered."
    return (
        f"{100 * (1 - accuracy.beta):g} % of errors are below {_up(accuracy.alpha)} "
        f"(Laplace noise of scale {_up(calibration.noise_scale)}, "
        f"{_up(calibration.cost)} times that for independent records)."
        f"{_covered(calibration)}"
    )


def _covered(calibration: LeakageCalibration) -> str:
    """Say what noise the promise is about, where it is not about every mechanism."""
    if calibration.covers is None or calibration.covers.every:
        return ""
    return f" The promise is about {calibration.covers.summary}, and no other noise."


def _group_scaling(calibration: LeakageCalibration) -> str:
    if calibration.method == "general":
        return "This is group scaling: nothing but the group sizes is used."
    for other in calibration.alternatives:
        if other.name == "general" and other.parameter:
            scale = calibration.sensitivity / other.parameter
            return (
                "Knowing nothing but the group sizes, the same promise would need "
                f"noise of scale {scale:.4g}."
            )
    return ""


def _floor(calibration: LeakageCalibration) -> str:
    if calibration.floor is None or calibration.accuracy is None:
        return ""
    return (
        "No mechanism that keeps the promise under every law with these groups answers "
        f"such a sum or count with {100 * (1 - calibration.accuracy.beta):g} % of "
        f"errors within {_down(calibration.floor)}."
    )


def _other(row: WhatIf) -> str:
    if row.epsilon <= 0:
        return f"If {row.label}: the promise cannot be kept this way ({row.note})"
    return (
        f"If {row.label}: use epsilon = {_down(row.epsilon)} (noise scale "
        f"{_up(row.noise_scale)}, error {_up(row.alpha)})."
    )


def _trust(bound: Any) -> str:
    if not bound.unchecked:
        return ""
    return f"Taken on trust: {'; '.join(bound.unchecked)}."


def _up(value: float) -> str:
    """Write a number with four digits, rounded up unless that only shows rounding."""
    return format_up(exact(_tidy(value)), 4)


def _down(value: float) -> str:
    """Write a number with four digits, rounded down."""
    context = Context(prec=4, rounding=ROUND_FLOOR)
    return f"{float(context.create_decimal(repr(_tidy(value)))):g}"


def _tidy(value: float) -> float:
    short = float(f"{value:.4g}")
    return short if math.isclose(short, value, rel_tol=_ROUNDING) else float(value)
