"""How much a release really leaks under a model: every method, the smallest wins.

:func:`leakage` speaks of a DP level, :func:`leakage_of` of one given mechanism.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.level import check_level
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem, best_method
from undertow.errors import NotApplicable
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
    choice = best_method(
        model,
        method,
        lambda theorem: theorem.bound(model, epsilon, query=asked),
        query=asked,
        rank=lambda bound: bound.value,
        otherwise=f"no method applies to {model.summary}",
    )
    found, trusted = choice.value, model.assumptions()

    def reason(theorem: LeakageTheorem, bound: Leakage) -> Alternative:
        words = "the same" if bound.value == found.value else "a larger bound"
        return Alternative(bound.method, f"{words}: {bound.theorem}", bound.value)

    return replace(
        found,
        model=model.summary,
        checked=tuple(dict.fromkeys((*found.checked, *trusted.checked))),
        unchecked=tuple(dict.fromkeys((*found.unchecked, *trusted.unchecked))),
        alternatives=choice.alternatives(reason),
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
