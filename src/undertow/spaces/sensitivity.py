r"""How far pre-processing stretches distances, and what that does to a loss.

The sensitivity of :math:`f` between two metric spaces is the least :math:`\Delta f`
with :math:`d_2(f(D), f(D')) \le \Delta f \cdot d_1(D, D')` for all pairs at finite
:math:`d_1`. A mechanism private on the image is private on the data, at
:math:`\Delta f` times the distance. The reverse is false: a guarantee for
:math:`M \circ f` says nothing about :math:`M` on its own domain.

It is found by comparing every pair that decides it; a declared constant is put to the
test by enumeration, or at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, cast

import numpy as np

from undertow.errors import (
    AssumptionError,
    FalsifiedClaimError,
    UnboundedSensitivityError,
)
from undertow.numeric.exact import Exact, Number, exact, format_up, round_up
from undertow.privacy.group import group
from undertow.privacy.loss import Loss
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import concrete, neighbour_pairs, random_neighbours
from undertow.spaces.metric import Values, image_or_values
from undertow.spaces.view.general import Lipschitz, declared_stretch
from undertow.spaces.view.range import range_of


def preprocess(loss: Loss, constant: Number | None) -> Loss:
    r"""Return the loss of a mechanism after a map of given sensitivity.

    Parameters
    ----------
    loss : Loss
        Of the mechanism on the image, per unit of the target metric.
    constant : int, float, str, Decimal or Fraction, or None
        The sensitivity of the map; None, not known, counts as infinite.

    Returns
    -------
    Loss
        Per unit of the source metric: :math:`c\varepsilon`, :math:`c\mu`,
        :math:`c^2\rho`, or :math:`(c\varepsilon, \delta\,[c]_\varepsilon)` with
        :math:`[c]_\varepsilon = \sum_{j<c} e^{j\varepsilon}`.

    Raises
    ------
    UnboundedSensitivityError
        If the constant is infinite or not known.
    AssumptionError
        If an approximate loss meets a constant that is not whole: the sum comes from a
        chain of whole steps.

    Notes
    -----
    Thesis, Proposition A.3; paper, Proposition III.6, and Theorem VI.3 for the
    approximate rule. Keeping the pullback of the metric instead is sharper pair by
    pair. Not reversible: a loss of :math:`M \circ f` is no loss of :math:`M`.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> preprocess(Pure("0.5"), 3)
    Pure(epsilon=1.5)
    """
    factor = exact(math.inf if constant is None else constant, "constant")
    if factor == math.inf:
        raise UnboundedSensitivityError(
            "constant must be finite, got "
            f"{'none' if constant is None else 'inf'}; bound what one unit contributes "
            "by clipping or truncation first.",
            source="paper, Proposition III.6",
        )
    return group(loss, factor)


# Sensitivities found by comparing every pair that decides them.

Pair = tuple[Database, Database]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The sensitivity of a view, and the pair of databases that attains it.

    Attributes
    ----------
    value : float
        In ``[0, inf]``, rounded up.
    witness : tuple or None
        Two databases at which the ratio is attained; None if the value is 0.
    pairs : int
        How many pairs were compared.
    note : str
        What to know about the value; empty if nothing.
    """

    value: float
    witness: Pair | None
    pairs: int
    note: str = ""

    def __float__(self) -> float:
        return self.value


def sensitivity(
    view: View | Callable[[Any], Any],
    domain: Domain,
    *,
    source: Metric,
    target: Metric,
    edges_only: bool | None = None,
) -> Sensitivity:
    r"""Return the exact sensitivity of a map on an enumerated domain.

    .. math:: \Delta f = \max_{0 < d_1(D, D') < \infty}
              \frac{d_2(f(D), f(D'))}{d_1(D, D')}

    Parameters
    ----------
    view : View or callable
        A deterministic map.
    domain : Domain
        The databases, enumerable.
    source, target : Metric
        The metric on the domain and the one on the values of the view; a granularity
        counts its steps among these (:mod:`undertow.spaces.view.range`).
    edges_only : bool, optional
        Compare neighbours only; left out, exactly for a granularity as `source`.

    Returns
    -------
    Sensitivity
        Infinite as soon as a pair at source distance 0 is told apart, or a pair at
        finite distance is sent to infinite distance.

    Raises
    ------
    AssumptionError
        If the domain cannot be enumerated, or `edges_only` is asked of a metric that
        no neighbour relation generates.

    Notes
    -----
    Thesis, Definition 2.9; paper, Definition III.5. For a canonical source the
    neighbours decide, because distances add along a shortest path. Pairs at infinite
    source distance do not count and stay unprotected.

    Examples
    --------
    >>> from undertow.spaces.domain import Table
    >>> from undertow.spaces.unit import Bounded, Unbounded
    >>> table = Table(("a", "b"), values_per_cell=1, max_size=3)
    >>> from undertow.spaces.view import Identity
    >>> sensitivity(Identity(), table, source=Bounded(), target=Unbounded()).value
    2.0
    """
    if edges_only and not source.canonical:
        raise AssumptionError(
            "edges_only must be left out for a source metric that no neighbour "
            f"relation generates, got {source.name}."
        )
    by_edges = source.canonical if edges_only is None else edges_only
    pairs = _edges(domain, source) if by_edges else _pairs(domain, source)
    return _largest_ratio(pairs, target_distance(view, domain, target))


def _edges(domain: Domain, source: Metric) -> Iterator[tuple[Pair, float]]:
    assert isinstance(source, Granularity)
    source.require_domain(domain)
    return ((pair, 1.0) for pair in neighbour_pairs(domain, source))


def _pairs(domain: Domain, source: Metric) -> Iterator[tuple[Pair, float]]:
    for pair in combinations(domain.databases(), 2):
        yield pair, source.distance(*pair, domain)


def target_distance(
    view: View | Callable[[Any], Any],
    domain: Domain,
    target: Metric,
    *,
    enumerated: bool = True,
) -> Callable[[Database, Database], float]:
    """Return the distance of the images, remembering each image.

    Chains of a granularity stay inside the range of a view. If the domain need not be
    `enumerated` they may run through the rest of the image: the distance is then a
    lower bound, which is enough to show that a constant is false.
    """
    seen: dict[Database, Any] = {}
    space: Domain = Values()
    if isinstance(view, View):
        view.require_domain(domain)
        space = image_or_values(view, domain)

    def image(database: Database) -> Any:
        if database not in seen:
            seen[database] = (
                view.apply(database, domain)
                if isinstance(view, View)
                else view(database)
            )
        return seen[database]

    def distance(first: Database, second: Database) -> float:
        ours, theirs = image(first), image(second)
        if ours == theirs:
            return 0.0
        if enumerated and isinstance(view, View):
            return round_up(range_of(view, domain).distance(target, ours, theirs))
        return target.distance(ours, theirs, space)

    return distance


def _largest_ratio(
    pairs: Iterator[tuple[Pair, float]], distance: Callable[[Any, Any], float]
) -> Sensitivity:
    best: Fraction | float = Fraction(0)
    witness, compared = None, 0
    for pair, start in pairs:
        if start == math.inf:
            continue
        compared += 1
        stretch = ratio(distance(*pair), start)
        if stretch > best:
            best, witness = stretch, pair
        if best == math.inf:
            break
    note = "" if compared else "no two databases are at finite source distance"
    return Sensitivity(round_up(best), witness, compared, note)


def ratio(moved: float, start: float) -> Fraction | float:
    """Return how far a pair moved per unit, infinite from distance zero."""
    if moved == 0:
        return Fraction(0)
    if start == 0 or moved == math.inf:
        return math.inf
    return Fraction(moved) / Fraction(start)


# Declared sensitivities put to the test: by enumeration, or at random.

# Relative excess over a declared constant that float rounding of distances explains.
_ROUNDING_SLACK = Fraction(1, 10**12)


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
        pair = sampler(rng) if sampler else _random_pair(small, source, rng)
        if pair is None:
            continue
        start = source.distance(*pair, small)
        if start < math.inf and _exceeds(distance(*pair), declared, start):
            return pair
    return None


def _exceeds(moved: float, constant: Exact, start: float) -> bool:
    if constant == math.inf:
        return False
    return ratio(moved, start) > Fraction(constant) * (1 + _ROUNDING_SLACK)


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


def _random_pair(
    domain: Domain, source: Metric, rng: np.random.Generator
) -> Pair | None:
    if not source.canonical:
        raise AssumptionError(
            f"sampler must be given for a source metric without neighbours, got "
            f"{source.name}."
        )
    return random_neighbours(domain, cast(Granularity, source), rng=rng)
