"""How much a release really leaks under a model: every method, the smallest wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import AssumptionError, NotApplicable
from undertow.privacy.result import Alternative

__all__ = ["choose_methods", "leakage", "require_cheap"]


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
