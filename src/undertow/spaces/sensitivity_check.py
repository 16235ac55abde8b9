"""Declared sensitivities put to the test: by enumeration, or at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import cast

import numpy as np

from undertow.errors import AssumptionError, FalsifiedClaimError
from undertow.privacy.exact import Exact, exact, format_up
from undertow.spaces.attack import concrete, random_neighbours
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.sensitivity_exact import (
    Pair,
    Sensitivity,
    ratio,
    sensitivity,
    target_distance,
)
from undertow.spaces.view_general import Lipschitz, declared_stretch

__all__ = ["falsify", "verify_lipschitz"]

# Relative excess over a declared constant that float rounding of distances explains.
_SLACK = Fraction(1, 10**12)


def verify_lipschitz(
    view: View,
    domain: Domain,
    *,
    source: Metric | None = None,
    target: Metric | None = None,
) -> Sensitivity:
    """Check a declared constant on an enumerated domain.

    Parameters
    ----------
    view : View
        With a declared or proved constant between the two metrics.
    domain : Domain
        The databases, enumerable.
    source, target : Metric, optional
        The metrics; taken from a `Lipschitz` view where left out.

    Returns
    -------
    Sensitivity
        The exact value, at most the declared one.

    Raises
    ------
    FalsifiedClaimError
        If a pair moves further than declared; it is the witness.

    Notes
    -----
    An excess below a relative 1e-12 is put down to the rounding of distances.
    """
    source, target = _units(view, source, target)
    found = sensitivity(view, domain, source=source, target=target)
    declared = declared_stretch(view, source, target)
    if _exceeds(found.value, declared, 1.0):
        raise FalsifiedClaimError(
            f"constant must be at least {format_up(exact(found.value))} for view "
            f"{view.name} from {source.name} to {target.name}, got "
            f"{format_up(declared)}; the pair carried as witness shows it.",
            witness=found.witness,
        )
    return found


def falsify(
    view: View,
    domain: Domain,
    *,
    source: Metric | None = None,
    target: Metric | None = None,
    sampler: Callable[[np.random.Generator], Pair] | None = None,
    trials: int = 1000,
    rng: np.random.Generator,
) -> Pair | None:
    """Search at random for a pair that contradicts a declared constant.

    Parameters
    ----------
    view : View
        With a declared or proved constant between the two metrics.
    domain : Domain
        Where the pairs live; it need not be enumerable.
    source, target : Metric, optional
        The metrics; taken from a `Lipschitz` view where left out.
    sampler : callable, optional
        ``sampler(rng)`` draws a pair; left out, random neighbours of a granularity.
    trials : int
        How many pairs to draw.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    tuple or None
        A pair that shows the constant false, or None if none was found, which proves
        nothing.
    """
    source, target = _units(view, source, target)
    declared = declared_stretch(view, source, target)
    small = concrete(domain) if sampler is None else domain
    distance = target_distance(view, small, target, enumerated=False)
    for _ in range(trials):
        pair = sampler(rng) if sampler else _neighbours(small, source, rng)
        if pair is None:
            continue
        start = source.distance(*pair, small)
        if start < math.inf and _exceeds(distance(*pair), declared, start):
            return pair
    return None


def _exceeds(moved: float, constant: Exact, start: float) -> bool:
    if constant == math.inf:
        return False
    return ratio(moved, start) > Fraction(constant) * (1 + _SLACK)


def _units(
    view: View, source: Metric | None, target: Metric | None
) -> tuple[Metric, Metric]:
    if isinstance(view, Lipschitz):
        source, target = source or view.unit_from, target or view.unit_to
    if source is None or target is None:
        raise ValueError(
            f"source and target must be given for view {view.name}, which declares "
            "no units of its own."
        )
    return source, target


def _neighbours(
    domain: Domain, source: Metric, rng: np.random.Generator
) -> Pair | None:
    if not source.canonical:
        raise AssumptionError(
            f"sampler must be given for a source metric without neighbours, got "
            f"{source.name}."
        )
    return random_neighbours(domain, cast(Granularity, source), rng=rng)
