"""What one given mechanism leaks under a model: exactly where that is possible."""

from __future__ import annotations

from typing import Any

from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.tensor import exact_leakage
from undertow.correlation.leak import leakage
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from undertow.privacy.exact import exact, round_up_decimal

__all__ = ["leakage_of", "mechanism_level"]


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
