"""Noise for the same promise, method by method, on three data sets of the sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from undertow._validate import check_choice, check_positive
from undertow.correlation.calibrate import calibrate
from undertow.correlation.model import Model
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.errors import AssumptionError
from undertow.mechanisms.accuracy import laplace_scale
from undertow_studies.comparators.pufferfish import (
    approximate_quilt_scale,
    count_wasserstein_scale,
    gaussian_wasserstein_scale,
    quilt_scale,
)
from undertow_studies.comparators.scale import (
    EVERY_ATTACKER,
    NO_KNOWLEDGE,
    ComparatorScale,
    printed_gaussian_scale,
    yang_scale,
)

# The models of the comparison: three data sets, as the sources describe them.
#
# Noise scales do not depend on the data, only on these parameters. Chains are the
# published transition matrices with rows that sum to one (the activity matrix from its
# transition counts); the Gaussian models are the covariances of the public heights and
# test scores, variances included.

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ReferenceCase:
    """A model and a query whose noise scales are compared.

    Parameters
    ----------
    name : str
        Short name.
    model : Model
        How the records depend.
    query : Query
        What is released.
    """

    name: str
    model: Model
    query: Query


# Activity: transitions between consecutive 5-minute slots, pairs with a missing value
# left out: (9713, 1295; 1295, 2955). Electricity: days above 70, 80 and 90 kWh.
_CHAINS: dict[str, tuple[Matrix, int]] = {
    "activity": (
        ((9713 / 11008, 1295 / 11008), (1295 / 4250, 2955 / 4250)),
        17568,
    ),
    "electricity-70": (((0.445, 0.555), (0.15, 0.85)), 731),
    "electricity-80": (((0.818, 0.182), (0.371, 0.629)), 731),
    "electricity-90": (((0.894, 0.106), (0.478, 0.522)), 731),
}

# Father, mother, child (inches): standard deviations and correlations of the 898 rows.
_HEIGHT_SD = (2.4703, 2.3070, 3.5829)
_HEIGHT_CORRELATION: Matrix = (
    (1.0, 0.07366461, 0.27535483),
    (0.07366461, 1.0, 0.20165489),
    (0.27535483, 0.20165489, 1.0),
)
_IQ_COVARIANCE: Matrix = ((416.596, 137.244), (137.244, 225.0))

CASES = (*_CHAINS, "galton", "iq")
"""Names of the reference cases."""


def reference_case(name: str) -> ReferenceCase:
    """Return one of the models of the comparison.

    Parameters
    ----------
    name : str
        One of :data:`CASES`.

    Examples
    --------
    >>> reference_case("electricity-80").model.size
    731
    """
    name = check_choice(name, "name", choices=CASES)
    builders: dict[str, Callable[[], ReferenceCase]] = {"galton": _galton, "iq": _iq}
    return builders[name]() if name in builders else _chain(name)


def _chain(name: str) -> ReferenceCase:
    from undertow.correlation.markov.chain import MarkovChain
    from undertow.correlation.query import CountQuery

    transition, length = _CHAINS[name]
    return ReferenceCase(name, MarkovChain(transition, length=length), CountQuery())


def _galton() -> ReferenceCase:
    covariance = [
        [r * _HEIGHT_SD[i] * _HEIGHT_SD[j] for j, r in enumerate(row)]
        for i, row in enumerate(_HEIGHT_CORRELATION)
    ]
    return _gaussian("galton", covariance, (0.0, 100.0))


def _iq() -> ReferenceCase:
    return _gaussian("iq", [list(row) for row in _IQ_COVARIANCE], (40.0, 160.0))


def _gaussian(
    name: str, covariance: list[list[float]], clip: tuple[float, float]
) -> ReferenceCase:
    from undertow.correlation.gaussian.model import Gaussian
    from undertow.correlation.query import LinearQuery

    model = Gaussian(covariance=covariance)
    return ReferenceCase(name, model, LinearQuery(clip=clip))


def side_by_side(
    target: float, *, cases: Iterable[str] = CASES
) -> tuple[ComparatorScale, ...]:
    """Return the noise of every method for one promise, on the reference models.

    Parameters
    ----------
    target : float
        The promise; positive and finite.
    cases : iterable of str
        Names of reference cases; all of them by default.

    Returns
    -------
    tuple of ComparatorScale
        Model by model, the smallest scale first; methods that give no scale come last,
        with an infinite one and the reason. Methods the model leaves out as costly
        have no row.

    Examples
    --------
    >>> rows = side_by_side(1.0, cases=["electricity-80"])
    >>> {row.method: round(row.noise_scale, 3) for row in rows}["quilt"]
    9.186
    """
    target = check_positive(target, "target")
    rows: list[ComparatorScale] = []
    for name in cases:
        case = reference_case(name)
        found = compare_scales(case.model, target, query=case.query)
        rows += [replace(row, model=name) for row in found]
    return tuple(rows)


def compare_scales(
    model: Model, target: float, *, query: Query
) -> tuple[ComparatorScale, ...]:
    """Return the noise of every method for one promise under one model.

    Parameters
    ----------
    model : Model
        How the records depend.
    target : float
        The promise; positive and finite.
    query : Query
        What is released.

    Returns
    -------
    tuple of ComparatorScale
        The model's own methods, noise for independent records, and the comparators
        that speak of such a model, as in :func:`side_by_side`.

    Notes
    -----
    Scales of different attacker classes stand side by side and are not comparable: a
    row that is no guarantee may be small because it promises less.
    """
    target = check_positive(target, "target")
    rows = [_independent(model, target, query=query)]
    rows += _own_methods(model, target, query=query)
    rows += _comparators(model, target, query=query)
    words = model.summary
    rows.sort(key=lambda row: (row.noise_scale, row.method))
    return tuple(replace(row, model=words) for row in rows)


def _independent(model: Model, target: float, *, query: Query) -> ComparatorScale:
    return ComparatorScale(
        "independent",
        "differential privacy, correlation ignored",
        target,
        laplace_scale(query.sensitivity(model), target),
        "someone who knows all other records",
        False,
        note="the level is the target: what correlation costs is not paid",
    )


def _own_methods(
    model: Model, target: float, *, query: Query
) -> Iterator[ComparatorScale]:
    # A method left out as costly or redundant was not tried: it has no row.
    tried = [m for m in model.methods() if m.too_costly(model, query=query) is None]
    sources = {method.name: method.source for method in tried}
    found = calibrate(model, target, query=query)
    change = found.sensitivity

    def row(name: str, level: float | None, note: str) -> ComparatorScale:
        feasible = level is not None and level > 0
        scale = laplace_scale(change, level) if feasible and level else math.inf
        return ComparatorScale(
            name, sources[name], target, scale, EVERY_ATTACKER, True, note=note
        )

    yield row(found.method, found.epsilon, "smallest of the model's methods")
    for other in found.alternatives:
        if other.name not in sources:
            continue
        note = "" if other.parameter is not None else other.reason
        yield row(other.name, other.parameter, note)


def _comparators(
    model: Model, target: float, *, query: Query
) -> Iterator[ComparatorScale]:
    from undertow.correlation.gaussian.model import Gaussian
    from undertow.correlation.markov.chain import MarkovChain

    if isinstance(model, MarkovChain) and model.is_homogeneous:
        yield from _chain_comparators(model, target, query=query)
    if isinstance(model, Gaussian) and isinstance(query, LinearQuery):
        yield from _gaussian_comparators(model, target, query=query)


def _chain_comparators(
    chain: Any, target: float, *, query: Query
) -> Iterator[ComparatorScale]:
    P, n = chain.transition, chain.length
    change = query.sensitivity(chain)
    yield _tried(
        "quilt",
        lambda: quilt_scale(P, target, length=n, sensitivity=change),
        target,
    )
    yield _tried(
        "quilt-approximate",
        lambda: approximate_quilt_scale(P, target, length=n, sensitivity=change),
        target,
    )
    if isinstance(query, CountQuery) and n is not None:
        yield _tried(
            "wasserstein",
            lambda: count_wasserstein_scale(P, target, length=n, states=query.states),
            target,
        )


def _gaussian_comparators(
    model: Any, target: float, *, query: LinearQuery
) -> Iterator[ComparatorScale]:
    size = model.require_size("the comparison")
    change = query.sensitivity(model)
    yang = yang_scale(target, size, width=change)
    if query.clip is None:
        note = "no bound for the unclipped query, which records move without limit"
        yang = replace(yang, is_guarantee=False, note=note)
    yield yang
    yield _tried(
        "thesis-as-printed",
        lambda: _largest(
            printed_gaussian_scale(block.covariance, target, width=change)
            for block, _ in model.blocks()
        ),
        target,
        source="thesis, Theorem 6.14, with the largest correlation of the data",
        attackers=EVERY_ATTACKER,
    )
    exact = _tried(
        "wasserstein",
        lambda: _gaussian_wasserstein(model, target, query=query),
        target,
        attackers=EVERY_ATTACKER,
    )
    if query.clip is not None and exact.is_feasible:
        note = f"{exact.note}; no bound for the clipped query"
        exact = replace(exact, is_guarantee=False, note=note)
    yield exact


def _gaussian_wasserstein(
    model: Any, target: float, *, query: LinearQuery
) -> ComparatorScale:
    weights = np.array(query.weights_for(model.size))
    gap = query.sensitivity(model) / query.largest_weight
    return _largest(
        gaussian_wasserstein_scale(block.covariance, target, gap=gap, weights=own)
        for block, own in model.blocks(weights)
        if np.any(own)
    )


def _largest(scales: Iterable[ComparatorScale]) -> ComparatorScale:
    """Return the row of the group that needs the most noise."""
    rows = list(scales)
    worst = max(rows, key=lambda row: row.noise_scale)
    return replace(worst, is_guarantee=all(row.is_guarantee for row in rows))


def _tried(
    name: str,
    scale: Callable[[], ComparatorScale],
    target: float,
    *,
    source: str = "Song, Wang and Chaudhuri (2017)",
    attackers: str = NO_KNOWLEDGE,
) -> ComparatorScale:
    try:
        return scale()
    except AssumptionError as refusal:
        return ComparatorScale(
            name, source, target, math.inf, attackers, False, note=str(refusal)
        )
