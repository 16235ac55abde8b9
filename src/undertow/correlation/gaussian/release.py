"""Which Gaussian bounds a release may use: clipped, with a gap, or neither."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.query import LinearQuery, LipschitzQuery, Query
from undertow.errors import NotApplicable

__all__ = [
    "described",
    "mechanisms_of",
    "require_dp",
    "require_lipschitz",
    "weights_of",
]


def require_lipschitz(query: Query) -> bool:
    """Return whether the query is clipped; refuse what is not metric private."""
    if isinstance(query, LipschitzQuery):
        return True
    if isinstance(query, LinearQuery) and query.clip is not None:
        return True
    if isinstance(query, LinearQuery) and query.gap is not None:
        return False
    raise NotApplicable(
        "Gaussian bounds need Laplace noise on a Lipschitz query of clipped records "
        f"(metric privacy, Theorem 6.14), got {described(query)}; name a LinearQuery "
        "or LipschitzQuery with clip=, or use method='general'."
    )


def require_dp(query: Query) -> None:
    """Refuse an unclipped query of unbounded records, which is not DP."""
    if isinstance(query, LinearQuery) and query.clip is None:
        raise NotApplicable(
            "the general bound needs a DP release, got an unclipped linear query of "
            "unbounded records; give clip=(low, high)."
        )


def described(query: Query) -> str:
    """Return the query in words, for refusals."""
    if query.name == "any":
        return "any epsilon-DP mechanism"
    if isinstance(query, LinearQuery):
        return "a clipped linear query" if query.clip else "a linear query, unclipped"
    return f"a {query.name} query"


def mechanisms_of(query: Query) -> str:
    """Return the class of releases a bound speaks of."""
    if query.clip is None:
        return "Laplace noise on the unclipped linear query (not DP)"
    low, high = query.clip
    return (
        "Laplace noise on an l1-Lipschitz query of records clipped to "
        f"[{low:g}, {high:g}]"
    )


def weights_of(model: Any, query: Query) -> NDArray[np.float64] | None:
    """Return the weights of a linear query; None if all records count alike."""
    if not isinstance(query, LinearQuery) or not isinstance(query.weights, tuple):
        return None
    weights = np.array(query.weights_for(model.require_size("a weighted query")))
    return None if np.all(weights == weights[0]) else weights
