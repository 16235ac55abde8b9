"""How much a release really leaks under a model: every method, the smallest wins.

:func:`leakage` speaks of a DP level, :func:`leakage_of` of one given mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.model import Method, Model, check_level
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from undertow.numeric.exact import exact, round_up_decimal
from undertow.results import Alternative


def leakage(
    model: Model,
    epsilon: float,
    *,
    query: Query | None = None,
    method: str = "best",
) -> Leakage:
    """Return what an `epsilon`-DP release leaks when records depend as `model` says.

    Parameters
    ----------
    model : Model
        How the records depend.
    epsilon : float
        DP level of the release; non-negative and finite.
    query : Query, optional
        What is released; by default any mechanism at all.
    method : str
        ``"best"`` evaluates every method that applies and keeps the smallest bound;
        ``"published"`` does so among the theorems of the sources; otherwise the name
        of one method.

    Returns
    -------
    Leakage
        With the methods not chosen, and why, among its alternatives.

    Raises
    ------
    NotApplicable
        If the named method does not apply, or none does.

    Notes
    -----
    Every method returns a proved upper bound, so the smallest is one. Definition 2.27
    of Guerra-Balboa (2026): the supremum over every attacker who knows any subset of
    the other records.

    Examples
    --------
    >>> from undertow.correlation import Blocks
    >>> leakage(Blocks.of_size(4, groups=10), 0.5).value
    2.0
    """
    epsilon = check_level(epsilon)
    asked = query if query is not None else AnyQuery()
    found: list[Leakage] = []
    others: list[Alternative] = []
    for candidate in choose_methods(model, method):
        try:
            require_cheap(candidate, model, query=asked, method=method)
            found.append(candidate.leakage(model, epsilon, query=asked))
        except AssumptionError as refusal:
            if method not in ("best", "published"):
                raise
            others.append(Alternative(candidate.name, str(refusal)))
    if not found:
        raise NotApplicable(_no_method(model, others))
    best = min(found, key=lambda bound: bound.value)
    others = [_looser(bound, best) for bound in found if bound is not best] + others
    return _with_model(best, model, others)


def choose_methods(model: Model, name: str) -> Sequence[Method]:
    """Return the methods of a model that a name stands for."""
    methods = model.methods()
    if name == "best":
        return methods
    if name == "published":
        return [method for method in methods if method.published]
    chosen = [method for method in methods if method.name == name]
    if not chosen:
        known = ", ".join(repr(method.name) for method in methods)
        raise ValueError(
            f"method must be 'best', 'published' or one of {known} for "
            f"{model.summary}, got {name!r}."
        )
    return chosen


def require_cheap(
    candidate: Method, model: Model, *, query: Query, method: str
) -> None:
    """Refuse a method that takes long, unless it was asked for by name."""
    reason = candidate.too_costly(model, query=query)
    if reason is not None and method != candidate.name:
        raise NotApplicable(f"{reason}; ask for method={candidate.name!r} by name.")


def _looser(bound: Leakage, best: Leakage) -> Alternative:
    reason = "the same" if bound.value == best.value else "a larger bound"
    return Alternative(bound.method, f"{reason}: {bound.theorem}", bound.value)


def _no_method(model: Model, others: Sequence[Alternative]) -> str:
    reasons = " ".join(f"[{other.name}] {other.reason}" for other in others)
    return f"no method applies to {model.summary}: {reasons}"


def _with_model(best: Leakage, model: Model, others: Sequence[Alternative]) -> Leakage:
    trusted = model.assumptions()
    return replace(
        best,
        model=model.summary,
        checked=tuple(dict.fromkeys((*best.checked, *trusted.checked))),
        unchecked=tuple(dict.fromkeys((*best.unchecked, *trusted.unchecked))),
        alternatives=tuple(others),
    )


# What one given mechanism leaks under a model: exactly where that is possible.


def leakage_of(
    model: Model, mechanism: Any, *, query: Query | None = None, method: str = "best"
) -> Leakage:
    """Return what a mechanism leaks when records depend as `model` says.

    Parameters
    ----------
    model : Model
        How the records depend.
    mechanism : LaplaceMechanism, DiscreteLaplaceMechanism or RandomizedResponse
        Noise on the answer of `query`, or a response of every record on its own. For a
        :class:`JointTable` also an array of output probabilities.
    query : Query, optional
        What the noise is added to; needed for noise.
    method : str
        As in :func:`leakage`; a joint table is always computed exactly.

    Returns
    -------
    Leakage
        Of the mechanism itself on a joint table; otherwise of its DP level, by the
        best method for the query.

    Raises
    ------
    NotApplicable
        If the mechanism is not purely DP: Gaussian noise leaks without limit in the
        tails of its outputs.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> round(leakage_of(flatmates, RandomizedResponse(2, 1)).value, 6)
    1.776137
    """
    if isinstance(model, JointTable):
        return exact_leakage(model, mechanism, query=query)
    level = mechanism_level(model, mechanism, query=query)
    asked = query if query is not None else AnyQuery()
    return leakage(model, level, query=asked, method=method)


def mechanism_level(
    model: Model, mechanism: Any, *, query: Query | None = None
) -> float:
    """Return the pure DP level of a mechanism for one record of a model.

    Examples
    --------
    >>> from undertow.correlation import Blocks, CountQuery
    >>> mechanism_level(Blocks([3, 2]), LaplaceMechanism(4), query=CountQuery())
    0.25
    """
    if isinstance(mechanism, RandomizedResponse):
        return round_up_decimal(mechanism.epsilon)
    if not isinstance(mechanism, LaplaceMechanism | DiscreteLaplaceMechanism):
        raise NotApplicable(
            "the leakage needs a purely DP mechanism (Laplace, discrete Laplace, "
            f"randomized response), got {type(mechanism).__name__}; noise that is not "
            "purely DP, such as Gaussian noise, leaks without limit."
        )
    if query is None:
        raise ValueError("query must be given for noise, got None.")
    if mechanism.dimension != 1:
        raise NotApplicable(
            f"the leakage needs one answer, got {mechanism.dimension} coordinates; "
            "give the whole DP level to leakage instead."
        )
    return round_up_decimal(exact(query.sensitivity(model)) / mechanism.scale)
