"""The noise that answers correlation: from a promise to a DP level and a scale.

Under one model (:func:`calibrate`), under every model of a set
(:func:`calibrate_over`), as a table of assumptions (:func:`what_if`), and in plain
words (:func:`explain`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from typing import Any

from undertow._validate import check_positive, check_probability
from undertow.correlation.finite.joint import answer_step
from undertow.correlation.floor import model_floor
from undertow.correlation.leak import leakage
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import (
    Accuracy,
    CoveredMechanisms,
    Leakage,
    LeakageCalibration,
    posterior_probability_interval,
)
from undertow.correlation.theorem import best_method
from undertow.errors import AssumptionError, InfeasibleTarget, ModelError
from undertow.mechanisms.accuracy import laplace_scale
from undertow.numeric.exact import exact, format_up
from undertow.results import Alternative


def calibrate(
    model: Model,
    target: float,
    *,
    query: Query | None = None,
    beta: float = 0.05,
    method: str = "best",
) -> LeakageCalibration:
    """Return the DP level and noise that keep the leakage within `target`.

    Parameters
    ----------
    model : Model
        How the records depend.
    target : float
        The promise: no attacker who knows any subset of the other records changes the
        odds about one record by more than ``exp(target)``; positive and finite.
    query : Query, optional
        What is released; by default any mechanism of sensitivity 1.
    beta : float
        Probability with which the reported error may be passed.
    method : str
        As in :func:`leakage`.

    Returns
    -------
    LeakageCalibration
        The largest DP level of any applicable method; its leakage, recomputed at that
        level; noise scale, error, and what every other method would have needed.

    Raises
    ------
    InfeasibleTarget
        If the named method cannot reach the target.
    NotApplicable
        If no method applies.
    ModelError
        If the query does not depend on the records.

    Notes
    -----
    Section 6.5 of Guerra-Balboa (2026), over all methods instead of one. The noise
    scale is the sensitivity over the level, rounded up. The error is that of the
    noise that the accuracy names, in whole numbers for a count, with respect to the
    (clipped) query; the bias of clipping is not in it. Some methods bound what Laplace
    noise on the query leaks, and nothing else of the same level; ``covers`` says so and
    refuses the others.

    Examples
    --------
    >>> from undertow.correlation import Blocks
    >>> found = calibrate(Blocks.of_size(5, groups=2000), 1.0)
    >>> found.epsilon, found.noise_scale, round(found.accuracy.alpha, 6)
    (0.2, 5.0, 14.978661)
    >>> found.covers.summary
    'every mechanism that is 0.2-DP'
    """
    target = check_positive(target, "target")
    beta = check_probability(beta, "beta")
    asked = query if query is not None else AnyQuery()
    sensitivity = asked.sensitivity(model)
    if sensitivity == 0:
        raise ModelError(
            "query must depend on the records, got one that no record moves; it can be "
            "answered without noise."
        )
    choice = best_method(
        model,
        method,
        lambda theorem: theorem.invert(model, target, query=asked),
        query=asked,
        rank=operator.neg,
        otherwise=f"no method reaches the target {target}",
    )
    epsilon, chosen = choice.value, choice.theorem
    if epsilon <= 0:
        raise InfeasibleTarget(
            f"target must leave a positive DP level, got {target}; promise more.",
            least=target,
        )
    achieved = leakage(model, epsilon, query=asked, method=chosen.name)
    assert achieved.value <= target, (chosen.name, epsilon, achieved.value)
    scale, step = laplace_scale(sensitivity, epsilon), answer_step(model, asked)
    return LeakageCalibration(
        parameter="epsilon",
        value=epsilon,
        achieves=achieved,
        method=chosen.name,
        alternatives=choice.alternatives(
            lambda other, level: Alternative(
                other.name, _needs(sensitivity, level), level
            )
        ),
        target=target,
        noise_scale=scale,
        sensitivity=sensitivity,
        accuracy=Accuracy.of_laplace(scale, beta, step=step),
        floor=model_floor(model, target, query=asked, beta=beta),
        covers=CoveredMechanisms(
            epsilon,
            scale,
            sensitivity,
            every=achieved.is_for_every_mechanism,
            step=step,
        ),
    )


def _needs(sensitivity: float, level: float) -> str:
    if level <= 0:
        return "would need infinite noise"
    return f"would need noise scale {sensitivity / level:.6g}"


# When the model is not known for sure: sets of models, and what-ifs.


def calibrate_over(
    models: Mapping[str, Model] | Iterable[Model],
    target: float,
    *,
    query: Query | None = None,
    beta: float = 0.05,
    method: str = "best",
) -> LeakageCalibration:
    r"""Return the DP level and noise that keep a promise under every model of a set.

    .. math:: \varepsilon = \min_\theta\ \varepsilon_\theta(B)

    Parameters
    ----------
    models : mapping of str to Model, or iterable of Model
        The models held possible, such as the corners of a confidence region.
    target : float
        The promise B; positive and finite.
    query : Query, optional
        As in :func:`~undertow.correlation.calibrate`.
    beta : float
        Probability with which the reported error may be passed.
    method : str
        As in :func:`~undertow.correlation.calibrate`.

    Returns
    -------
    LeakageCalibration
        At the smallest level of any model; `achieves` is the largest leakage of any
        model at that level, for the secrets that all of them cover and on what any of
        them takes on trust; `alternatives` says what each other model needs.

    Raises
    ------
    NotApplicable, InfeasibleTarget
        If some model cannot be calibrated.

    Notes
    -----
    Leakage does not fall with the DP level, so the smallest level keeps the promise
    under each model *of the set*; a law between the models is covered only if its
    leakage is below one of theirs. Where sensitivities differ, the largest sets the
    noise.

    Examples
    --------
    >>> from undertow.correlation.group import Blocks
    >>> found = calibrate_over([Blocks.of_size(3), Blocks.of_size(5)], 1.0)
    >>> found.epsilon, found.achieves.value
    (0.2, 1.0)
    """
    listed = _labelled(models)
    each = {
        label: calibrate(model, target, query=query, beta=beta, method=method)
        for label, model in listed.items()
    }
    label = min(each, key=lambda name: each[name].epsilon)
    worst = each[label]
    sensitivity = max(found.sensitivity for found in each.values())
    floors = [found.floor for found in each.values() if found.floor is not None]
    scale = laplace_scale(sensitivity, worst.epsilon)
    asked = query if query is not None else AnyQuery()
    steps = [answer_step(model, asked) for model in listed.values()]
    lattices = [step for step in steps if step is not None]
    achieved = _largest_leakage(listed, worst.epsilon, query=query, method=method)
    return replace(
        worst,
        achieves=achieved,
        alternatives=(*_needs_of_others(each, label), *worst.alternatives),
        noise_scale=scale,
        sensitivity=sensitivity,
        accuracy=Accuracy.of_laplace(scale, beta, step=max(lattices, default=None)),
        floor=max(floors, default=None),
        covers=CoveredMechanisms(
            worst.epsilon,
            scale,
            sensitivity,
            every=achieved.is_for_every_mechanism,
            step=min(lattices, default=None),
        ),
    )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One row of a what-if table: what a promise costs if a model were true.

    Parameters
    ----------
    label : str
        The assumption in the caller's words.
    epsilon : float
        DP level that keeps the promise; 0 if there is none.
    noise_scale : float
        Laplace scale; infinite if there is none.
    alpha : float
        Error passed with probability at most beta; infinite if there is none.
    method : str
        What was used.
    note : str
        Why no level was found, if none was.
    """

    label: str
    epsilon: float
    noise_scale: float
    alpha: float
    method: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "label": self.label,
            "epsilon": self.epsilon,
            "noise_scale": self.noise_scale,
            "alpha": self.alpha,
            "method": self.method,
            "note": self.note,
        }


def what_if(
    target: float,
    models: Mapping[str, Model],
    *,
    query: Query | None = None,
    beta: float = 0.05,
    method: str = "best",
) -> tuple[WhatIf, ...]:
    """Return what the same promise costs under each of several models.

    Over models of growing dependence this is the privacy sensitivity curve: how the
    noise answers the assumed correlation.

    Parameters
    ----------
    target : float
        The promise; positive and finite.
    models : mapping of str to Model
        The assumptions, by label.
    query, beta, method
        As in :func:`~undertow.correlation.calibrate`.

    Returns
    -------
    tuple of WhatIf
        One row for each model, in order; one that cannot be calibrated says why.

    Examples
    --------
    >>> from undertow.correlation.group import Blocks
    >>> rows = what_if(1.0, {f"families of {m}": Blocks.of_size(m) for m in (1, 5)})
    >>> [(row.label, row.epsilon, row.noise_scale) for row in rows]
    [('families of 1', 1.0, 1.0), ('families of 5', 0.2, 5.0)]
    """
    target = check_positive(target, "target")
    if not models:
        raise ValueError("models must name at least one model, got none.")
    return tuple(
        _what_if_row(label, model, target, query=query, beta=beta, method=method)
        for label, model in models.items()
    )


def _labelled(models: Mapping[str, Model] | Iterable[Model]) -> dict[str, Model]:
    if isinstance(models, Mapping):
        listed = dict(models)
    else:
        listed = {f"model {k}": model for k, model in enumerate(models)}
    if not listed:
        raise ValueError("models must name at least one model, got none.")
    return listed


def _largest_leakage(
    models: Mapping[str, Model], epsilon: float, *, query: Query | None, method: str
) -> Leakage:
    found = [
        leakage(model, epsilon, query=query, method=method) for model in models.values()
    ]
    worst = max(found, key=lambda bound: bound.value)
    if len(found) == 1:
        return worst
    # A promise under all models covers what each of them covers, on what each trusts.
    narrow = min(found, key=lambda bound: (bound.scope.gap, not bound.scope.interval))
    return replace(
        worst,
        model=f"the worst of {len(found)} models: {worst.model}",
        scope=narrow.scope,
        mechanisms="; ".join(dict.fromkeys(bound.mechanisms for bound in found)),
        unchecked=tuple(dict.fromkeys(t for bound in found for t in bound.unchecked)),
    )


def _needs_of_others(
    each: Mapping[str, LeakageCalibration], label: str
) -> list[Alternative]:
    return [
        Alternative(
            name,
            f"this model alone would need noise scale {found.noise_scale:.6g}",
            found.epsilon,
        )
        for name, found in each.items()
        if name != label
    ]


def _what_if_row(
    label: str,
    model: Model,
    target: float,
    *,
    query: Query | None,
    beta: float,
    method: str,
) -> WhatIf:
    try:
        found = calibrate(model, target, query=query, beta=beta, method=method)
    except AssumptionError as refusal:
        return WhatIf(label, 0.0, math.inf, math.inf, note=str(refusal))
    alpha = math.inf if found.accuracy is None else found.accuracy.alpha
    return WhatIf(label, found.epsilon, found.noise_scale, alpha, found.method)


# A calibration in plain words.

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
        _promise_words(calibration),
        _level_words(calibration),
        _error_words(calibration),
        _group_scaling_words(calibration),
        _floor_words(calibration),
        *(_what_if_words(row) for row in rows),
        _trust_words(calibration.achieves),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _promise_words(calibration: LeakageCalibration) -> str:
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


def _level_words(calibration: LeakageCalibration) -> str:
    level = _up(calibration.epsilon)
    return (
        f"The release is {level}-DP: whoever knows all other records can change the "
        f"odds by at most e^{level}."
    )


def _error_words(calibration: LeakageCalibration) -> str:
    accuracy = calibration.accuracy
    if accuracy is None:
        return "No finite noise keeps the promise, so nothing can be answered."
    return (
        f"{100 * (1 - accuracy.beta):g} % of errors are below {_up(accuracy.alpha)} "
        f"(Laplace noise of scale {_up(calibration.noise_scale)}, "
        f"{_up(calibration.cost)} times that for independent records)."
        f"{_covered_words(calibration)}"
    )


def _covered_words(calibration: LeakageCalibration) -> str:
    """Say what noise the promise is about, where it is not about every mechanism."""
    if calibration.covers is None or calibration.covers.every:
        return ""
    return f" The promise is about {calibration.covers.summary}, and no other noise."


def _group_scaling_words(calibration: LeakageCalibration) -> str:
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


def _floor_words(calibration: LeakageCalibration) -> str:
    if calibration.floor is None or calibration.accuracy is None:
        return ""
    return (
        "No mechanism that keeps the promise under every law with these groups answers "
        f"such a sum or count with {100 * (1 - calibration.accuracy.beta):g} % of "
        f"errors within {_down(calibration.floor)}."
    )


def _what_if_words(row: WhatIf) -> str:
    if row.epsilon <= 0:
        return f"If {row.label}: the promise cannot be kept this way ({row.note})"
    return (
        f"If {row.label}: use epsilon = {_down(row.epsilon)} (noise scale "
        f"{_up(row.noise_scale)}, error {_up(row.alpha)})."
    )


def _trust_words(bound: Any) -> str:
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
