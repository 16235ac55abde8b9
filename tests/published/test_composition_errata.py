"""Errata of the sources: what is printed fails, what is implemented holds.

Each test carries the id of its line in the errata page and computes an instance on
which the printed form is false.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from undertow.composition.finite import (
    FiniteEngine,
    at_distance,
    neighbour_pairs,
    specialise,
)
from undertow.composition.release import Release
from undertow.composition.theorems import (
    bounded_parallel,
    compose_common,
    compose_zc,
    minimum_privacy_approx,
    parallel_max,
    top_m_loss,
)
from undertow.errors import IncompatiblePartitionError
from undertow.privacy.divergence import exact_loss_matrix, renyi_divergence
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.domain import Stream, Table
from undertow.spaces.metric import Scaled
from undertow.spaces.quotient import Dependency
from undertow.spaces.unit import Bounded, Event, Unbounded, User
from undertow.spaces.view import Identity, Select

BUILT = Dependency(None, "construction", statement="each count receives its block only")
FIXED = Table(("a", "b", "c"), values_per_cell=1, size=2)
FREE = Table(("a", "b", "c"), values_per_cell=1, max_size=3)


@dataclass(frozen=True)
class Certificate:
    touched: int
    nonexpansive: bool
    source: str = "test"


def test_E2_top_three_needs_at_most_three_cohorts():
    """With four cohorts for one record the exact loss is four."""
    cells = tuple("abcde")
    releases = [
        Release(c, Pure(1), unit=Unbounded(), view=Select(c), setting="view")
        for c in cells
    ]

    def exact(cap):
        table = Table(cells, multi=True, max_cells=cap, values_per_cell=1, max_size=1)
        return specialise(releases, Unbounded(), domain=table).loss

    bound = top_m_loss([Pure(1)] * 5, 3)
    assert exact(3) == bound == Pure(3)
    assert exact(4) == Pure(4)


def test_E5_the_inner_distance_is_in_the_unit_of_the_release():
    """With the target's distance in its place, r would be 1 and the loss too small."""
    stream = Stream(1, 2, regular=True, values=(0, 1))
    events = [Release("r", Pure("0.5"), unit=Event(), view=Identity(), setting="view")]
    assert specialise(events, User(), domain=stream).loss == Pure(1)
    keep = math.exp(0.5) / (1 + math.exp(0.5))
    bit = np.array([[keep, 1 - keep], [1 - keep, keep]])
    both = np.kron(bit, bit)  # each event through randomised response
    assert exact_loss_matrix(both)[0, 3] == pytest.approx(1.0, abs=1e-12)


def test_E8_delta_of_other_databases_says_nothing():
    """Databases 0, 1 differ with delta 1/2; 2, 3 are equally far and differ by none."""
    pmf = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    distance = np.full((4, 4), 2.0)
    np.fill_diagonal(distance, 0)
    distance[0, 1] = distance[1, 0] = distance[2, 3] = distance[3, 2] = 1
    delta = np.ones((4, 4))
    np.fill_diagonal(delta, 0)
    delta[0, 1] = delta[1, 0] = 0.5
    delta[2, 3] = delta[3, 2] = 0
    for x, y in itertools.permutations(range(4), 2):  # the claim itself holds
        hockey = np.maximum(pmf[x] - math.exp(distance[x, y]) * pmf[y], 0).sum()
        assert hockey <= delta[x, y]

    best = minimum_privacy_approx(distance, delta, labels=[0, 1, 2, 3])
    true = np.maximum(pmf[0] - math.exp(best.distance[0, 1]) * pmf[1], 0).sum()
    assert true == best.delta[0, 1] == 0.5
    printed = delta[distance == best.distance[0, 1]].min()
    assert printed < true


def test_E9_the_maximum_is_false_for_incompatible_blocks():
    """One record in block a or b; each block's membership through a noisy bit."""
    keep = math.e / (1 + math.e)
    bit = np.array([[keep, 1 - keep], [1 - keep, keep]])
    joint = np.einsum("di,dj->dij", bit, bit[::-1]).reshape(2, -1)
    assert exact_loss_matrix(joint)[0, 1] == pytest.approx(2.0, abs=1e-12)

    def coefficient(pmf):
        orders = np.linspace(1.01, 40, 400)
        values = [renyi_divergence(pmf[0], pmf[1], alpha=a) / a for a in orders]
        return max(values)

    assert coefficient(joint) == pytest.approx(2 * coefficient(bit), rel=1e-9)
    hockey = np.maximum(joint[0] - math.e * joint[1], 0).sum()
    assert hockey > 0.3  # (max epsilon, max delta) = (1, 0) would make it zero
    two_blocks = Certificate(2, False)
    for losses in ([ZCDP("0.5")] * 2, [Approx(1, 0)] * 2):
        with pytest.raises(IncompatiblePartitionError):
            parallel_max(losses, certificate=two_blocks, setting="common")
    assert bounded_parallel([Approx(1, 0)] * 2) == Approx(2, 0)


def test_E13_squares_need_gaussian_not_pure_parts():
    """Two 1-DP randomised responses break the sqrt(2)-Gaussian trade-off."""
    keep = math.e / (1 + math.e)
    false_alarm, hit = (1 - keep) ** 2, keep**2  # say 1 if both outputs are 1
    allowed = 1 - norm.cdf(norm.isf(false_alarm) - math.sqrt(2))
    assert hit > allowed + 0.05
    gaussian = 1 - norm.cdf(norm.isf(false_alarm) - 2 * 1.232035385345)
    assert hit <= gaussian  # each converted to its own mu first


def test_E15_the_size_of_a_database_is_bounded_not_unbounded_private():
    databases = list(FREE.databases())
    sizes = np.array([[float(len(d) == n) for n in range(4)] for d in databases])
    losses = exact_loss_matrix(sizes)

    def worst(target):
        pairs = neighbour_pairs(target, FREE)
        return max(losses[databases.index(x), databases.index(y)] for x, y in pairs)

    assert worst(Bounded()) == 0
    assert worst(Unbounded()) == math.inf


@pytest.mark.parametrize("k", [2, 3, 5])
def test_E18_shifts_add_along_a_chain(k):
    """The inner step contributes -(k-1) mu; the printed sign promises too much."""
    mu, alpha = 0.4, 0.1
    inner = norm.cdf(norm.isf(alpha) - (k - 1) * mu)
    chained = norm.cdf(norm.ppf(inner) - mu)
    exact = norm.cdf(norm.isf(alpha) - k * mu)  # normal laws k * mu apart
    assert chained == pytest.approx(exact, abs=1e-12)
    printed = norm.cdf(norm.ppf(norm.cdf(norm.isf(alpha) + (k - 1) * mu)) - mu)
    assert printed > exact + 0.05
    assert at_distance(GDP("0.4"), k) == GDP(Fraction(4 * k, 10))


def test_E19_each_release_has_its_own_map_and_metric():
    """With the first view for both, a change the second alone sees would be free."""
    blocks = [(Bounded(), Select("a")), (Scaled(Bounded(), 2), Select("b"))]
    own = compose_common(blocks, dependency=BUILT)
    same = compose_common([(m, Select("a")) for m, _ in blocks], dependency=BUILT)
    pair = (("b", "b"), ("b", "c"))
    assert own.distance(*pair, FIXED) == 2
    assert same.distance(*pair, FIXED) == 0
    databases = list(FIXED.databases())
    keep = math.exp(2) / (1 + math.exp(2))
    noisy = np.array([[keep, 1 - keep], [1 - keep, keep], [1 - keep, keep]])
    pmf = np.array([noisy[d.count("b")] for d in databases])
    i, j = (databases.index(d) for d in (("b", "c"), ("c", "c")))
    assert exact_loss_matrix(pmf)[i, j] == pytest.approx(2.0)
    assert same.distance(databases[i], databases[j], FIXED) == 0


def test_E20_the_root_metric_squares_to_rho():
    """Normal laws one apart have Renyi divergence alpha / 2, that is rho = 0.5."""
    grid = np.linspace(-12, 13, 100_001)
    p, q = (np.exp(-((grid - shift) ** 2) / 2) for shift in (0, 1))
    rho = renyi_divergence(p / p.sum(), q / q.sum(), alpha=2) / 2
    assert rho == pytest.approx(0.5, abs=1e-6)
    root = compose_zc([(Scaled(Unbounded(), math.sqrt(0.5)), Identity())])
    assert root.square((("a",), ()), domain=FREE) == pytest.approx(0.5, abs=1e-15)
    assert at_distance(ZCDP("0.5"), 3) == ZCDP("4.5")
    assert root.square((("a", "a", "a"), ()), domain=FREE) == pytest.approx(4.5)
    assert 0.5**2 < rho  # d = rho d^2 would promise rho squared


def test_E22_two_m_views_change_between_neighbours_only():
    """Four cohorts, one each: at distance two all four change, each by one step."""
    cells = tuple("abcd")
    table = Table(cells, multi=True, max_cells=1, values_per_cell=1, size=2)

    def database(*records):
        return table.database(frozenset(r) for r in records)

    pair = (database("a", "b"), database("c", "d"))
    engine = FiniteEngine(
        [
            Release(
                c, Approx(1, "1e-5"), unit=Bounded(), view=Select(c), setting="common"
            )
            for c in cells
        ],
        table,
    )
    moved = [row[0] for row in engine.distances(pair)]
    steps = Bounded().distance(*pair, table)
    assert (steps, moved) == (2, [1, 1, 1, 1])
    touched = sum(d > 0 for d in moved)
    assert touched > 2  # the printed count of changed views is 2 m = 2
    assert touched * steps > 2 * steps  # and so is its bound on the distance
    for other in itertools.combinations(table.databases(), 2):
        distances = [row[0] for row in engine.distances(other)]
        assert sum(distances) <= 2 * Bounded().distance(*other, table)
        assert max(distances) <= Bounded().distance(*other, table)
