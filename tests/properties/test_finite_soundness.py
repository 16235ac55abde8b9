"""Real mechanisms, composed exactly from their tables, never lose more than claimed.

Every mechanism here is a table of output probabilities. The joint law of independent
releases is the product of their tables, so the composed loss is known exactly, in any
notion, and every bound of the finite engine can be held against it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtr

from support.labels import Labels
from undertow.composition.finite import FiniteEngine, neighbour_pairs, specialise
from undertow.composition.release import Release
from undertow.composition.theorems import reciprocal_lower_bound, sequential
from undertow.privacy.divergence import exact_loss_matrix, renyi_divergence
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.domain import FiniteDomain, Table
from undertow.spaces.metric import AbsoluteDifference, FunctionMetric
from undertow.spaces.unit import Bounded, Relation, Unbounded
from undertow.spaces.view import Select

SLACK = 1e-9  # float rounding of the tables
ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True)
class Instance:
    """A domain 0..n-1 with a connected or broken graph, views and mechanisms."""

    size: int
    edges: frozenset[tuple[int, int]]
    views: tuple[tuple[int, ...], ...]
    tables: tuple[np.ndarray, ...]  # one row per database, constant on fibres

    @property
    def domain(self):
        return FiniteDomain(range(self.size))

    @property
    def graph(self):
        return Relation("graph", lambda x, y: (min(x, y), max(x, y)) in self.edges)

    @property
    def joint(self):
        law = np.ones((self.size, 1))
        for table in self.tables:
            law = np.einsum("ds,dt->dst", law, table).reshape(self.size, -1)
        return law

    @property
    def pairs(self):
        return itertools.permutations(range(self.size), 2)


def table_of(labels, seed, outputs, *, zeros):
    """Return a random mechanism of the label: one law per label, repeated."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(outputs), size=max(labels) + 1)
    if zeros:
        laws = np.where(rng.random(laws.shape) < 0.3, 0.0, laws)
        laws[:, 0] += laws.sum(axis=1) == 0
        laws = laws / laws.sum(axis=1, keepdims=True)
    return laws[list(labels)]


@st.composite
def instances(draw, *, zeros=True):
    size = draw(st.integers(3, 6))
    everything = list(itertools.combinations(range(size), 2))
    edges = draw(st.sets(st.sampled_from(everything), min_size=2))
    count = draw(st.integers(1, 3))
    views = tuple(
        tuple(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
        for _ in range(count)
    )
    seeds = draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count))
    with_zeros = zeros and draw(st.booleans())
    tables = tuple(
        table_of(labels, seed, 3, zeros=with_zeros)
        for labels, seed in zip(views, seeds, strict=True)
    )
    return Instance(size, frozenset(edges), views, tables)


def hockey_stick(p, q, epsilon):
    if epsilon == math.inf:
        return 0.0
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def stretched(losses, extra):
    """Return a metric at least `losses`: added slack between different databases."""
    return FunctionMetric(
        "stretched", lambda x, y: 0.0 if x == y else float(losses[x, y]) + extra
    )


def worst_edge(instance, value):
    """Return the largest `value` over the neighbours, both ways."""
    both = [pair for x, y in instance.edges for pair in ((x, y), (y, x))]
    return max(value(x, y) for x, y in both)


@given(instances())
def test_view_bounds_hold_and_are_attained_by_independent_releases(instance):
    """The joint loss is at most the sum of the parts and at least the largest."""
    losses = [exact_loss_matrix(table) for table in instance.tables]
    releases = [
        Release(
            "r",
            Pure(1),
            unit=FunctionMetric(
                "own", lambda a, b, at=view.index, m=m: float(m[at(a), at(b)])
            ),
            view=Labels(view),
            setting="view",
        )
        for view, m in zip(instance.views, losses, strict=True)
    ]
    engine = FiniteEngine(releases, instance.domain)
    exact = exact_loss_matrix(instance.joint)
    for x, y in instance.pairs:
        bound = engine.pairwise_loss((x, y)).epsilon
        parts = [float(m[x, y]) for m in losses]
        assert reciprocal_lower_bound(parts) <= exact[x, y] + SLACK  # T-11.2
        assert exact[x, y] <= bound + SLACK
        assert bound == pytest.approx(sum(parts), abs=SLACK) or bound == math.inf


@given(instances(), st.floats(0, 2))
def test_common_bounds_hold_for_any_metric_the_mechanism_satisfies(instance, extra):
    """13.4 (a): the exact loss is at most the bound through the quotient."""
    releases = [
        Release(
            "r",
            Pure(1),
            unit=stretched(exact_loss_matrix(table), extra),
            view=Labels(view),
            setting="common",
        )
        for view, table in zip(instance.views, instance.tables, strict=True)
    ]
    engine = FiniteEngine(releases, instance.domain)
    exact = exact_loss_matrix(instance.joint)
    for x, y in instance.pairs:
        assert exact[x, y] <= engine.pairwise_loss((x, y)).epsilon + SLACK


@given(instances(), st.sampled_from(["pure", "approx", "zcdp"]), st.floats(0, 2))
def test_granularity_claims_hold_on_every_pair_through_the_fibres(
    instance, notion, epsilon
):
    """Claims proved on neighbours only, read on all pairs of the contracted graph."""
    releases = []
    for view, table in zip(instance.views, instance.tables, strict=True):
        losses = exact_loss_matrix(table)
        worst = worst_edge(instance, lambda x, y, m=losses: m[x, y])
        delta = worst_edge(
            instance, lambda x, y, t=table: hockey_stick(t[x], t[y], epsilon)
        )
        assume(notion == "approx" or worst < math.inf)
        loss = {
            "pure": lambda w=worst: Pure(w),
            "zcdp": lambda w=worst: ZCDP(w**2 / 2),
            "approx": lambda d=delta: Approx(epsilon, min(1.0, d)),
        }[notion]()
        releases.append(
            Release("r", loss, unit=instance.graph, view=Labels(view), setting="common")
        )
    engine, joint = FiniteEngine(releases, instance.domain), instance.joint
    for x, y in instance.pairs:
        assert holds(engine.pairwise_loss((x, y)), joint[x], joint[y])


def holds(loss, p, q):
    """Return whether two output laws keep the promise of `loss`."""
    if loss.is_infinite:
        return True
    if isinstance(loss, Pure):
        return exact_loss_matrix([p, q])[0, 1] <= loss.epsilon + SLACK
    if isinstance(loss, Approx):
        return hockey_stick(p, q, loss.epsilon) <= loss.delta * (1 + SLACK) + 1e-13
    return all(
        renyi_divergence(p, q, alpha=order) <= loss.rho * order + SLACK
        for order in ORDERS
    )


@given(
    st.lists(st.floats(0.05, 1.5), min_size=1, max_size=2),
    st.integers(3, 5),
    st.integers(1, 3),
)
def test_gaussian_and_zcdp_claims_hold_for_binned_normal_noise(mus, size, width):
    """Normal noise cut into bins keeps its shift; neighbours are one place apart."""
    domain = FiniteDomain(range(size))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    views = [tuple(i // width for i in range(size)), tuple(range(size))][: len(mus)]
    edges = np.concatenate([[-np.inf], np.linspace(-4, 6, 12), [np.inf]])
    law = np.ones((size, 1))
    for mu, view in zip(mus, views, strict=True):
        table = np.diff(ndtr(edges[None, :] - mu * np.array(view)[:, None]), axis=1)
        law = np.einsum("ds,dt->dst", law, table).reshape(size, -1)

    def engine(loss):
        parts = zip(mus, views, strict=True)
        releases = [
            Release("r", loss(mu), unit=line, view=Labels(view), setting="common")
            for mu, view in parts
        ]
        return FiniteEngine(releases, domain)

    shifts, squares = engine(GDP), engine(lambda mu: ZCDP(mu**2 / 2))
    for x, y in itertools.permutations(range(size), 2):
        assert holds(squares.pairwise_loss((x, y)), law[x], law[y])
        mu = shifts.pairwise_loss((x, y)).mu
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            exact = hockey_stick(law[x], law[y], epsilon)
            assert exact <= gdp_delta(mu, epsilon) + SLACK


@given(instances(), st.sampled_from([Pure("0.5"), ZCDP("0.5"), GDP("0.5")]))
def test_the_maximum_of_the_sum_is_at_most_the_sum_of_the_maxima(instance, loss):
    """13.4 (c), with the settings mixed."""
    releases = [
        Release("r", loss, unit=instance.graph, view=Labels(view), setting=setting)
        for view, setting in zip(
            instance.views, itertools.cycle(["common", "view"]), strict=False
        )
    ]
    domain, target = instance.domain, instance.graph

    def read(some):
        return specialise(some, target, domain=domain, on_infinite="report").loss

    assert read(releases).within(sequential([read([one]) for one in releases]))


@given(instances(), st.sampled_from(["view", "common"]))
def test_all_notions_agree_on_which_pairs_are_infinite(instance, setting):
    """13.4 (e); also at loss zero, which is no promise across components."""
    losses = (Pure(0), Pure("0.5"), Approx("0.1", 0), ZCDP("0.5"), GDP("0.5"))
    engines = [
        FiniteEngine(
            [
                Release("r", loss, unit=instance.graph, view=Labels(v), setting=setting)
                for v in instance.views
            ],
            instance.domain,
        )
        for loss in losses
    ]
    for pair in instance.pairs:
        verdicts = {engine.pairwise_loss(pair).is_infinite for engine in engines}
        assert len(verdicts) == 1


def geometric(epsilon, top):
    """Return the two-sided geometric mechanism on counts 0..top, clamped to them."""
    ratio = math.exp(-epsilon)
    counts = np.arange(top + 1)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(counts[:, None] - counts)
    law[:, 0] = ratio**counts / (1 + ratio)
    law[:, -1] = ratio ** (top - counts) / (1 + ratio)
    return law


TABLE = Table(("a", "b", "c"), values_per_cell=1, max_size=3)
tenths = st.integers(1, 20).map(lambda n: n / 10)


@given(st.tuples(tenths, tenths, tenths))
@pytest.mark.slow
def test_noisy_counts_attain_every_bound_of_their_plan(epsilons):
    """13.4 (d): value-level, view-level and common-domain figures are exact."""
    databases = list(TABLE.databases())
    joint = np.ones((len(databases), 1))
    for cell, epsilon in zip("abc", epsilons, strict=True):
        rows = geometric(epsilon, 3)[[d.count(cell) for d in databases]]
        joint = np.einsum("ds,dt->dst", joint, rows).reshape(len(databases), -1)
    exact = exact_loss_matrix(joint)
    engine = FiniteEngine(
        [
            Release(
                cell,
                Pure(epsilon),
                unit=AbsoluteDifference(),
                view=Select(cell, statistic="count"),
                setting="view",
            )
            for cell, epsilon in zip("abc", epsilons, strict=True)
        ],
        TABLE,
    )
    for x, y in itertools.combinations(range(len(databases)), 2):
        bound = engine.pairwise_loss((databases[x], databases[y])).epsilon
        assert exact[x, y] == pytest.approx(bound, abs=1e-9)

    index = {database: i for i, database in enumerate(databases)}
    for unit, setting, target in (
        (Unbounded(), "view", Unbounded()),
        (Bounded(), "common", Bounded()),
        (Bounded(), "common", Unbounded()),
    ):
        releases = [
            Release(c, Pure(e), unit=unit, view=Select(c), setting=setting)
            for c, e in zip("abc", epsilons, strict=True)
        ]
        found = max(
            exact[index[x], index[y]] for x, y in neighbour_pairs(target, TABLE)
        )
        claimed = specialise(releases, target, domain=TABLE).loss.epsilon
        assert found == pytest.approx(claimed, abs=1e-9)


@given(tenths, st.integers(1, 3))
def test_randomised_response_composes_tightly(epsilon, times):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    bit = np.array([[keep, 1 - keep], [1 - keep, keep]])
    joint = np.ones((2, 1))
    for _ in range(times):
        joint = np.einsum("ds,dt->dst", joint, bit).reshape(2, -1)
    local = Relation("local", lambda x, y: x != y)
    releases = [
        Release("r", Pure(epsilon), unit=local, view=Labels((0, 1)), setting="view")
    ] * times
    loss = specialise(releases, local, domain=FiniteDomain(range(2))).loss
    assert exact_loss_matrix(joint)[0, 1] == pytest.approx(loss.epsilon, abs=1e-9)


@given(tenths, st.integers(1, 20), st.integers(2, 5))
def test_a_leak_that_grows_along_a_chain_attains_the_group_delta(epsilon, leak, size):
    """Database k confesses with probability delta [size - 1 - k]: tight in delta."""
    delta = leak * 1e-6
    grown = [delta * sum(math.exp(epsilon * j) for j in range(n)) for n in range(size)]
    law = np.array([[1 - p, p] for p in reversed(grown)])
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    claim = Release(
        "r",
        Approx(epsilon, f"{leak}e-6"),
        unit=line,
        view=Labels(tuple(range(size))),
        setting="common",
    )
    engine = FiniteEngine([claim], FiniteDomain(range(size)))
    for x, y in itertools.permutations(range(size), 2):
        assert holds(engine.pairwise_loss((x, y)), law[x], law[y])
    whole = engine.pairwise_loss((0, size - 1))
    attained = hockey_stick(law[0], law[-1], whole.epsilon)
    assert attained == pytest.approx(whole.delta, rel=1e-9)
