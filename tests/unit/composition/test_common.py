"""The common-domain setting."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from undertow.composition.finite import FiniteEngine, at_distance, specialise_metric
from undertow.composition.release import Release
from undertow.composition.theorems import (
    ApproxTerm,
    best_common_bound,
    compose_common,
    compose_common_approx,
    compose_pure,
    minimum_privacy_approx,
)
from undertow.errors import (
    IncompatiblePartitionError,
    MismatchError,
    UnprovedDependencyError,
)
from undertow.privacy.loss import GDP, Approx, Pure
from undertow.spaces.base import View
from undertow.spaces.domain import FiniteDomain, Table
from undertow.spaces.metric import FunctionMetric, Scaled, verify_pseudometric
from undertow.spaces.quotient import Dependency
from undertow.spaces.unit import Bounded, Unbounded
from undertow.spaces.view import Identity, Select

BUILT = Dependency(None, "construction", statement="each count receives its block only")
TABLE = Table(("a", "b", "c"), values_per_cell=1, size=2)
BLOCKS = [(Scaled(Bounded(), x), Select(c)) for x, c in (("0.5", "a"), ("0.3", "b"))]


@dataclass(frozen=True)
class OneBlock:
    touched: int = 1
    nonexpansive: bool = False
    source: str = "test"


@dataclass(frozen=True)
class Halves(View):
    """Databases 0, 1 show 0; databases 2, 3 show 1."""

    name: str = "halves"

    def apply(self, database, domain):
        return database // 2

    def image(self, domain):
        return None

    def require_domain(self, domain):
        assert isinstance(domain, FiniteDomain)


def test_bounded_blocks_stay_finite_in_the_common_domain():
    common = compose_common(BLOCKS, dependency=BUILT)
    value, _ = specialise_metric(common, Bounded(), domain=TABLE)
    assert value == Fraction(8, 10)
    assert specialise_metric(compose_pure(BLOCKS), Bounded(), domain=TABLE)[0] == (
        math.inf
    )


def test_the_composed_metric_agrees_with_the_exact_engine():
    common = compose_common(BLOCKS, dependency=BUILT)
    engine = FiniteEngine(
        [
            Release("r", Pure(metric.factor), unit=Bounded(), view=v, setting="common")
            for metric, v in BLOCKS
        ],
        TABLE,
    )
    for pair in itertools.combinations(TABLE.databases(), 2):
        ours = common.exact_distance(pair, domain=TABLE)
        assert Pure(ours) == engine.pairwise_loss(pair)
    verify_pseudometric(common, TABLE)


def test_squares_add_for_gaussian_parts():
    unit = [(Bounded(), Select(c)) for c in "ab"]
    common = compose_common(unit, dependency=BUILT, rule="root of squares")
    assert common.square((("a", "a"), ("a", "b")), domain=TABLE) == 2


@pytest.mark.parametrize("proof", [None, "trust me", True])
def test_nothing_is_composed_without_a_dependency(proof):
    term = ApproxTerm.at_granularity(Approx(1, 0), Bounded(), view=Select("a"))
    for call in (
        lambda: compose_common(BLOCKS, dependency=proof),
        lambda: compose_common_approx([term], dependency=proof),
        lambda: best_common_bound([Pure(1)], certificate=OneBlock(), dependency=proof),
    ):
        with pytest.raises(UnprovedDependencyError, match="reads only its view"):
            call()


def test_one_proof_per_release_serves_and_must_be_about_its_view():
    proofs = [Dependency(Select(cell), "construction") for cell in "ab"]
    together = compose_common(BLOCKS, dependency=proofs)
    assert together == compose_common(BLOCKS, dependency=BUILT)
    for wrong in (proofs[::-1], proofs[:1], [*proofs, proofs[0]], proofs[0], []):
        with pytest.raises(UnprovedDependencyError):
            compose_common(BLOCKS, dependency=wrong)


def test_a_proof_about_one_view_does_not_cover_blocks_that_are_not_named():
    losses, one = [Pure(1), Pure(2)], Dependency(Select("a"), "construction")
    other = Dependency(Select("b"), "construction")
    with pytest.raises(UnprovedDependencyError, match="cells a alone"):
        best_common_bound(losses, certificate=OneBlock(), dependency=one)
    bound = best_common_bound(losses, certificate=OneBlock(), dependency=[one, other])
    assert bound == Pure(2)


def test_the_best_bound_needs_compatibility_but_not_non_expansion():
    losses = [GDP(1), GDP(2)]
    bound = best_common_bound(losses, certificate=OneBlock(), dependency=BUILT)
    assert bound == GDP(2)
    with pytest.raises(IncompatiblePartitionError):
        best_common_bound(losses, certificate=OneBlock(touched=2), dependency=BUILT)
    with pytest.raises(IncompatiblePartitionError):
        best_common_bound(losses, dependency=BUILT)


def test_a_coarser_dependency_is_never_dearer():
    fine = compose_common([(Bounded(), Select("a", "b"))], dependency=BUILT)
    counted = Select("a", "b", statistic="count")
    coarse = compose_common([(Bounded(), counted)], dependency=BUILT)
    pairs = list(itertools.combinations(TABLE.databases(), 2))
    gaps = [fine.distance(*p, TABLE) - coarse.distance(*p, TABLE) for p in pairs]
    assert min(gaps) == 0
    assert max(gaps) > 0


def test_approximate_claims_chain_through_the_fibres():
    """Two steps between the fibres: epsilon doubles and delta grows by 1 + e."""
    one = Approx(1, "1e-5")
    term = ApproxTerm.at_granularity(one, Bounded(), view=Select("a"))
    composed = compose_common_approx([term, term], dependency=BUILT)
    two = at_distance(one, 2)
    assert composed.loss((("a", "a"), ("b", "c")), domain=TABLE) == two + two
    assert composed.loss((("b", "b"), ("b", "c")), domain=TABLE) == Approx.zero()


def test_a_term_with_its_own_delta_takes_the_best_pair_of_the_fibres():
    delta = np.array(
        [[0, 0, 4, 3], [0, 0, 2, 1], [4, 3, 0, 0], [2, 1, 0, 0]], dtype=float
    )
    distance = np.array(
        [[0, 1, 2, 2], [1, 0, 1, 1], [2, 1, 0, 1], [2, 1, 1, 0]], dtype=float
    )
    term = ApproxTerm(
        FunctionMetric("table", lambda x, y: distance[x, y]),
        lambda x, y, _: Fraction(int(delta[x, y]), 100),
        Halves(),
    )
    domain = FiniteDomain(range(4))
    composed = compose_common_approx([term], dependency=BUILT)
    assert composed.loss((0, 2), domain=domain) == Approx(1, "0.01")
    assert composed.loss((2, 0), domain=domain) == Approx(1, "0.01")
    assert composed.loss((0, 1), domain=domain) == Approx.zero()
    best = minimum_privacy_approx(distance, delta / 100, labels=[0, 0, 1, 1])
    assert best.distance.tolist() == [[0, 0, 1, 1]] * 2 + [[1, 1, 0, 0]] * 2
    assert best.delta[0, 2] == 0.01


def test_the_delta_belongs_to_the_pair_of_least_distance():
    """Of (1, 0.3) and (2, 0.1) in the fibres the first is taken whole."""
    distance = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]], dtype=float)
    delta = np.array([[0, 0, 0.1], [0, 0, 0.3], [0.1, 0.3, 0]])
    best = minimum_privacy_approx(distance, delta, labels=["x", "x", "y"])
    assert (best.distance[0, 2], best.delta[0, 2]) == (1, 0.3)


def test_an_infinite_delta_promises_nothing():
    term = ApproxTerm(
        FunctionMetric("one", lambda x, y: float(x != y)),
        lambda x, y, _: math.inf,
        Halves(),
    )
    composed = compose_common_approx([term], dependency=BUILT)
    assert composed.loss((0, 2), domain=FiniteDomain(range(4))).no_guarantee


def test_minimum_privacy_wants_square_tables():
    with pytest.raises(MismatchError, match=r"shape \(2, 2\)"):
        minimum_privacy_approx([[0]], [[0]], labels=[0, 1])


def test_an_identity_view_changes_nothing():
    common = compose_common([(Bounded(), Identity())], dependency=BUILT)
    for pair in itertools.combinations(TABLE.databases(), 2):
        assert common.distance(*pair, TABLE) == Bounded().distance(*pair, TABLE)
    free = Table(("a", "b"), values_per_cell=1, max_size=2)
    constant = compose_common([(Unbounded(), ConstantView())], dependency=BUILT)
    for pair in itertools.combinations(free.databases(), 2):
        assert constant.distance(*pair, free) == 0


@dataclass(frozen=True)
class ConstantView(View):
    name: str = "nothing"

    def apply(self, database, domain):
        return 0

    def image(self, domain):
        return None

    def require_domain(self, domain):
        pass


@pytest.mark.parametrize("delta", [-0.5, math.nan])
def test_a_delta_that_is_no_probability_is_refused_in_the_common_domain(delta):
    term = ApproxTerm(Bounded(), lambda one, two, domain: delta, Select("a"))
    composed = compose_common_approx([term], dependency=BUILT)
    with pytest.raises(ValueError, match="delta must be in"):
        composed.loss((("a", "a"), ("b", "b")), domain=TABLE)
