"""When the model is not known for sure: sets of models, and what-ifs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from undertow._validate import check_positive
from undertow.correlation.calibrate import calibrate
from undertow.correlation.explain import explain
from undertow.correlation.finite.kernel import answer_step
from undertow.correlation.leak import leakage
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import (
    Accuracy,
    CoveredMechanisms,
    Leakage,
    LeakageCalibration,
)
from undertow.errors import AssumptionError
from undertow.mechanisms.accuracy import laplace_scale
from undertow.privacy.result import Alternative

__all__ = ["WhatIf", "calibrate_over", "explain", "what_if"]


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
    >>> from undertow.correlation.blocks import Blocks
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
    achieved = _largest(listed, worst.epsilon, query=query, method=method)
    return replace(
        worst,
        achieves=achieved,
        alternatives=(*_needs(each, label), *worst.alternatives),
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
    >>> from undertow.correlation.blocks import Blocks
    >>> rows = what_if(1.0, {f"families of {m}": Blocks.of_size(m) for m in (1, 5)})
    >>> [(row.label, row.epsilon, row.noise_scale) for row in rows]
    [('families of 1', 1.0, 1.0), ('families of 5', 0.2, 5.0)]
    """
    target = check_positive(target, "target")
    if not models:
        raise ValueError("models must name at least one model, got none.")
    return tuple(
        _row(label, model, target, query=query, beta=beta, method=method)
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


def _largest(
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


def _needs(each: Mapping[str, LeakageCalibration], label: str) -> list[Alternative]:
    return [
        Alternative(
            name,
            f"this model alone would need noise scale {found.noise_scale:.6g}",
            found.epsilon,
        )
        for name, found in each.items()
        if name != label
    ]


def _row(
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
