"""How far one group of dependent records moves the answer of a query, at least."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.blocks import Blocks
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import answer_rounding, linear_parts
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery, Query
from undertow.privacy.exact import round_down

__all__ = ["group_change"]

# Covers the rounding of a sum of weights.
_MARGIN = 1e-14
# Weights that are added without error.
_FEW = 1000


def group_change(model: Model, query: Query) -> float | None:
    """Return what some group of dependent records can certainly move the answer by.

    Parameters
    ----------
    model : Model
        Its groups, and the range of its records.
    query : Query
        What is released.

    Returns
    -------
    float or None
        Rounded down; None for groups without limit, and for Lipschitz queries, of which
        only an upper limit of the change is known.

    Examples
    --------
    >>> group_change(Blocks([3, 2]), LinearQuery((1, 1, 1, 5, 5), clip=(0, 2)))
    20.0
    """
    if isinstance(model, JointTable) and isinstance(query, CountQuery | LinearQuery):
        return _table_change(model, query)
    group = model.largest_group
    if group is None:
        return None
    if isinstance(query, LinearQuery):
        weight = _weight_of_group(model, query, group)
        return round_down(weight * _range_of_record(model, query))
    if isinstance(query, CountQuery) and _counts_all_or_none(model, query):
        return 0.0
    if isinstance(query, AnyQuery | CountQuery):
        return round_down(group * Fraction(query.sensitivity(model)))
    return None


def _counts_all_or_none(model: Model, query: CountQuery) -> bool:
    """Whether no change of a record moves the count, where the states are known."""
    if model.value_range is None:
        return False
    # Models of states number them from 0; genotypes are their three dosages.
    states = getattr(model, "states", 3)
    counted = query.states & frozenset(range(states))
    return len(counted) in (0, states)


def _table_change(table: JointTable, query: CountQuery | LinearQuery) -> float:
    """Return how far the heaviest independent group moves the answer."""
    gap = query.gap if isinstance(query, LinearQuery) and query.gap else math.inf
    reach = [
        max(
            abs(part[a] - part[b])
            for a, b in itertools.product(range(len(part)), repeat=2)
            if abs(values[a] - values[b]) <= gap
        )
        for part, values in zip(linear_parts(table, query), table.values, strict=True)
    ]
    most = max(sum(reach[j] for j in group) for group in table.independent_groups())
    exactly = answer_rounding(table, query) == 0
    return most if exactly else most * (1 - _MARGIN)


def _weight_of_group(model: Model, query: LinearQuery, group: int) -> Fraction:
    if not isinstance(query.weights, tuple):
        return group * abs(Fraction(query.weights))
    weights = np.abs(query.weights_for(model.require_size("weights")))
    if isinstance(model, Blocks):
        heaviest = np.argmax(np.bincount(model.labels, weights=weights))
        return _sum(weights[model.labels == heaviest])
    # Which records form the group is not known: at least its m lightest, and at least
    # the heaviest record with its own group.
    lightest = _sum(np.sort(weights)[:group])
    return max(lightest, Fraction(query.largest_weight))


def _sum(weights: NDArray[np.float64]) -> Fraction:
    """Return the sum of non-negative numbers: exact if they are few, or from below."""
    if len(weights) <= _FEW:
        return sum(map(Fraction, weights.tolist()), Fraction(0))
    return Fraction(math.fsum(weights) * (1 - _MARGIN))


def _range_of_record(model: Model, query: LinearQuery) -> Fraction:
    """Return how far one (clipped) record can certainly move, weight aside."""
    low, high = query.clip or model.value_range or (-math.inf, math.inf)
    if query.clip is not None and model.value_range is not None:
        low, high = (min(max(x, low), high) for x in model.value_range)
    if query.gap is not None and query.gap < high - low:
        return Fraction(query.gap)
    return Fraction(high) - Fraction(low)
