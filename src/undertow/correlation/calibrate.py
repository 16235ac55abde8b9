"""The noise that answers correlation: from a promise to a DP level and a scale."""

from __future__ import annotations

from undertow._validate import check_positive, check_probability
from undertow.correlation.finite.kernel import answer_step
from undertow.correlation.floor import model_floor
from undertow.correlation.leak import choose_methods, leakage, require_cheap
from undertow.correlation.method import Method
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import (
    Accuracy,
    CoveredMechanisms,
    LeakageCalibration,
)
from undertow.errors import (
    AssumptionError,
    InfeasibleTarget,
    ModelError,
    NotApplicable,
)
from undertow.mechanisms.accuracy import laplace_scale
from undertow.privacy.result import Alternative

__all__ = ["calibrate"]


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
    found, others = _levels(model, target, query=asked, method=method)
    epsilon, chosen = max(found, key=lambda pair: pair[0])
    if epsilon <= 0:
        raise InfeasibleTarget(
            f"target must leave a positive DP level, got {target}; promise more.",
            least=target,
        )
    achieved = leakage(model, epsilon, query=asked, method=chosen.name)
    assert achieved.value <= target, (chosen.name, epsilon, achieved.value)
    scale, step = laplace_scale(sensitivity, epsilon), answer_step(model, asked)
    rivals = [
        Alternative(other.name, _needs(sensitivity, level), level)
        for level, other in found
        if other is not chosen
    ]
    return LeakageCalibration(
        parameter="epsilon",
        value=epsilon,
        achieves=achieved,
        method=chosen.name,
        alternatives=(*rivals, *others),
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


def _levels(
    model: Model, target: float, *, query: Query, method: str
) -> tuple[list[tuple[float, Method]], list[Alternative]]:
    found: list[tuple[float, Method]] = []
    others: list[Alternative] = []
    for candidate in choose_methods(model, method):
        try:
            require_cheap(candidate, model, query=query, method=method)
            found.append((candidate.budget(model, target, query=query), candidate))
        except AssumptionError as refusal:
            if method not in ("best", "published"):
                raise
            others.append(_refused(candidate, refusal))
    if not found:
        reasons = " ".join(f"[{other.name}] {other.reason}" for other in others)
        raise NotApplicable(f"no method reaches the target {target}: {reasons}")
    return found, others


def _refused(candidate: Method, refusal: AssumptionError) -> Alternative:
    if isinstance(refusal, InfeasibleTarget):
        reason = f"infeasible at or below {refusal.least:.6g}: {refusal}"
        return Alternative(candidate.name, reason)
    return Alternative(candidate.name, str(refusal))


def _needs(sensitivity: float, level: float) -> str:
    if level <= 0:
        return "would need infinite noise"
    return f"would need noise scale {sensitivity / level:.6g}"
