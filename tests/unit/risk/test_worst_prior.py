"""The search over priors: what it finds, what it never exceeds, what it refuses."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms import (
    ClampedMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    TruncatedMechanism,
)
from undertow.mechanisms.local import OptimizedHashing, OptimizedUnary
from undertow.risk.channel import Channel, ChannelStream, as_channel
from undertow.risk.exact import _Search, advantage, worst_prior
from undertow.risk.families import FAMILIES
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat


def test_the_value_is_the_advantage_under_the_prior_that_comes_with_it():
    table = Channel(np.random.default_rng(3).dirichlet(np.ones(6), size=5))
    found = worst_prior(table, 5)
    threat = Threat(found.prior)
    assert found.value == pytest.approx(advantage(table, threat).value, abs=1e-15)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("known", [Knowledge.none(), Knowledge.full()])
def test_no_random_prior_beats_what_the_search_found_and_nothing_passes_the_cap(
    seed, known
):
    rng = np.random.default_rng(seed)
    table = Channel(rng.dirichlet(np.ones(5), size=4))
    found = worst_prior(table, 4, knowledge=known, rng=seed)
    for _ in range(300):
        prior = Prior(4, rng.dirichlet(rng.choice([0.3, 1.0, 5.0], size=4)))
        assert advantage(table, Threat(prior, knowledge=known)).value <= (
            found.value + 1e-6
        )
    assert found.value <= found.cap
    assert found.value >= max(found.two_point, found.uniform)


def test_two_points_have_half_of_the_largest_total_variation():
    rng = np.random.default_rng(8)
    laws = rng.dirichlet(np.ones(5), size=4)
    pairs = [np.abs(a - b).sum() / 2 for a in laws for b in laws]
    found = worst_prior(Channel(laws), 4)
    assert found.two_point == pytest.approx(max(pairs) / 2, abs=1e-9)
    assert found.caps["total variation"] == pytest.approx(max(pairs), abs=1e-9)


def test_the_caps_of_randomised_response_are_met_where_theory_says_so():
    found = worst_prior(RandomizedResponse(4, math.log(9)), 4)
    assert found.value == pytest.approx(0.5, abs=1e-9)
    assert found.caps["prior-free cap tanh(epsilon/4)"] == pytest.approx(0.5, abs=1e-8)
    assert found.caps["total variation times 1 - 1/m"] == pytest.approx(0.5, abs=1e-9)
    assert found.cap >= found.value


def test_the_search_repeats_itself_for_a_seed():
    table = Channel(np.random.default_rng(1).dirichlet(np.ones(7), size=6))
    one, two = (worst_prior(table, 6, rng=5) for _ in range(2))
    assert one.value == two.value
    assert one.prior.pmf.tolist() == two.prior.pmf.tolist()


def test_success_rules_take_part():
    records = list(range(5))
    rule = Success.within("absolute", 4)
    found = worst_prior(LaplaceMechanism(2), records, success=rule)
    assert found.value == 0.0  # every guess hits everything
    near = worst_prior(
        LaplaceMechanism(2), records, success=Success.within("absolute", 1)
    )
    assert 0 < near.value <= near.cap


def test_noise_kept_in_a_range_has_caps_that_hold():
    records = [0.0, 0.5, 1.0]
    plain = worst_prior(LaplaceMechanism(1), records)
    clamped = worst_prior(ClampedMechanism(LaplaceMechanism(1), 0, 1), records)
    cut = worst_prior(TruncatedMechanism(LaplaceMechanism(1), 0, 1), records)
    assert clamped.value <= plain.value + 1e-9
    assert clamped.caps == plain.caps
    assert cut.caps["total variation"] == pytest.approx(1.0)
    normal = worst_prior(GaussianMechanism(1), records)
    assert "prior-free cap tanh(epsilon/4)" not in normal.caps


def test_a_stated_epsilon_sharpens_the_cap():
    table = Channel([[0.7, 0.3, 0.0], [0.3, 0.7, 0.0]])
    free = worst_prior(table, 2)
    assert free.caps["prior-free cap tanh(epsilon/4)"] == pytest.approx(
        math.tanh(math.log(7 / 3) / 4), rel=1e-6
    )
    with pytest.raises(AssumptionError, match=r"at least 0\.847298"):
        worst_prior(table, 2, epsilon=0.5)
    kept = TruncatedMechanism(LaplaceMechanism(1), 0, 1)
    told = worst_prior(kept, [0.0, 1.0], epsilon=2)
    assert told.caps["prior-free cap tanh(epsilon/4)"] == pytest.approx(math.tanh(0.5))


def test_an_output_that_excludes_a_record_has_no_epsilon():
    found = worst_prior(Channel([[1.0, 0.0], [0.5, 0.5]]), 2)
    assert len(found.caps) == 2


def test_one_record_and_endless_tables_are_refused():
    with pytest.raises(ValueError, match="at least two, got 1"):
        worst_prior(Channel([[1.0]]), 1)
    stream = ChannelStream(lambda: [np.eye(2)], 2)
    with pytest.raises(NotApplicable, match="table of at most"):
        worst_prior(stream, 2)


def test_a_result_shows_both_sides():
    plain = worst_prior(RandomizedResponse("abc", 1), "abc").to_dict()
    assert plain["at_least"] <= plain["at_most"]
    assert set(plain["prior"]) == {"a", "b", "c"}
    assert "WorstPrior" in worst_prior(RandomizedResponse(3, 1), 3)._repr_html_()


def test_the_risk_is_not_concave_in_the_prior():
    table = Channel([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])

    def risk(*pmf):
        return advantage(table, Threat(Prior(3, pmf))).value

    assert risk(0.5, 0.0, 0.5) == pytest.approx(0.5)
    assert risk(0.0, 0.5, 0.5) == pytest.approx(0.5)
    assert risk(0.25, 0.25, 0.5) == pytest.approx(0.375)
    assert worst_prior(table, 3).value == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 2]])
def test_the_direction_of_the_search_is_the_derivative(labels):
    rng = np.random.default_rng(2)
    laws = rng.dirichlet(np.ones(6), size=4)
    hits = Success.within("absolute", 1).matrix(range(4))
    search = _Search(laws, hits, np.array(labels))
    pmf, step = rng.dirichlet(np.ones(4)), 1e-6
    value, slope = search._evaluate(pmf)
    known = Knowledge.from_labels(labels)
    threat = Threat(Prior(4, pmf), Success.within("absolute", 1), known)
    assert value == pytest.approx(advantage(Channel(laws), threat).value, abs=1e-12)
    for first, second in ((0, 1), (1, 3), (2, 0)):
        move = np.zeros(4)
        move[first], move[second] = step, -step
        change = search.value(pmf + move) - search.value(pmf - move)
        assert change / (2 * step) == pytest.approx(
            slope[first] - slope[second], abs=1e-5
        )


def test_a_protocol_with_few_reports_is_searched_by_its_table():
    hits = Success.from_matrix(np.eye(4, dtype=bool) | (np.arange(4) == 3))
    found = worst_prior(OptimizedUnary(4, 1), 4, success=hits)
    channel = as_channel(OptimizedUnary(4, 1), range(4))
    exact = advantage(channel, Threat(found.prior, hits)).value
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert 0 < found.value <= found.cap
    family = FAMILIES["grr"](5)
    grr = worst_prior(family.mechanism(1.0), 5)
    assert grr.value == pytest.approx(grr.cap, abs=1e-3)
    with pytest.raises(NotApplicable, match="family of hashes"):
        worst_prior(OptimizedHashing(4, 1), 4)


def test_a_claimed_epsilon_below_that_of_the_law_is_refused():
    with pytest.raises(AssumptionError, match="the parameter of the law"):
        worst_prior(RandomizedResponse(4, 2.0), 4, epsilon=0.1)
    with pytest.raises(AssumptionError, match="the parameter of the law"):
        worst_prior(LaplaceMechanism(1), [0.0, 5.0], epsilon=1.0, starts=0)
    held = worst_prior(RandomizedResponse(4, 800.0), 4, epsilon=800.0, starts=0)
    assert held.value <= held.cap <= 0.75 * (1 + 1e-11)


def test_the_worst_prior_found_is_never_above_what_no_prior_exceeds():
    found = worst_prior(GaussianMechanism(1.0), [0.0, 1.0], starts=0)
    assert found.value <= found.cap
    assert found.value == pytest.approx(math.erf(1 / math.sqrt(8)) / 2, abs=1e-9)


def test_the_worst_pair_is_one_that_guesses_tell_apart():
    # Records far apart on the line; the rule hits the ends together, not the middle.
    hits = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=bool)
    rule, places = Success.from_matrix(hits), [0.0, 5.0, 10.0]
    many = [x + s for x in places for s in (0.0, 0.1, 0.2, 0.3)]
    wide = Success.from_matrix(np.kron(hits, np.ones((4, 4), dtype=bool)))
    for records, success in ((places, rule), (many, wide)):
        found = worst_prior(LaplaceMechanism(2), records, success=success, starts=0)
        best = max(
            advantage(
                LaplaceMechanism(2),
                Threat(Prior.two_point(records, pair), success),
            ).value
            for pair in combinations(records, 2)
        )
        assert found.two_point == pytest.approx(best, abs=1e-9)
