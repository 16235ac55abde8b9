"""Threats and their baselines."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.privacy import Pure
from undertow.risk.bounds import exact_guess_bound, projected_variation_bound
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.scalar import ContinuousPrior
from undertow.risk.selector import best_bound
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

SKEWED = Prior(3, [0.5, 0.3, 0.2])


def test_baselines_of_exact_success_are_the_largest_and_least_mass():
    threat = Threat(SKEWED)
    assert (threat.best_guess, threat.worst_guess) == (0.5, 0.2)
    assert threat.collision == pytest.approx(0.38, abs=1e-15)
    assert threat.ceiling == pytest.approx(0.62, abs=1e-12)
    assert threat.ceiling >= 0.62


def test_records_without_mass_still_set_the_worst_guess():
    assert Threat(Prior(3, [0.5, 0.5, 0.0])).worst_guess == 0.0


def test_declining_puts_the_worst_guess_at_zero():
    assert Threat(SKEWED, abstain=True).worst_guess == 0.0
    assert Threat(SKEWED, abstain=True).best_guess == 0.5


def test_more_guesses_widen_the_baselines():
    prior = Prior([0, 2, 4], [0.25, 0.5, 0.25])
    narrow = Threat(prior, Success.within("absolute", 1))
    wide = Threat(prior, Success.within("absolute", 1, guesses=[1, 9]))
    assert (narrow.best_guess, narrow.worst_guess) == (0.5, 0.25)
    assert (wide.best_guess, wide.worst_guess) == (0.75, 0.0)
    assert wide.guesses == (0, 2, 4, 1, 9)


def test_membership_knows_everything_and_reconstruction_nothing():
    assert Threat.membership(SKEWED).has_knowledge
    assert not Threat.reconstruction(SKEWED).has_knowledge
    assert Threat.membership(SKEWED).informed_guess == pytest.approx(1.0)
    assert Threat.reconstruction(SKEWED).informed_guess == 0.5


def test_knowledge_that_does_not_vary_over_possible_targets_is_none():
    prior = Prior(3, [0.5, 0.5, 0.0])
    assert not Threat(prior, knowledge=Knowledge.from_labels([0, 0, 1])).has_knowledge
    assert Threat(prior, knowledge=Knowledge.from_labels([0, 1, 1])).has_knowledge


def test_fibres_hold_the_records_that_share_what_is_known():
    threat = Threat(SKEWED, knowledge=Knowledge.from_labels("aba"))
    assert [fibre.tolist() for fibre in threat.fibres] == [[0, 2], [1]]
    assert threat.informed_guess == pytest.approx(0.8)


def test_a_place_is_guessed_by_a_distance_or_a_table():
    near = Threat.location(SKEWED, eta=1, distance="absolute")
    called = Threat.location(SKEWED, eta=1, distance=lambda g, x: abs(g - x))
    table = np.abs(np.subtract.outer(range(3), range(3)))
    listed = Threat.location(SKEWED, eta=1, distance=table)
    for threat in (near, called, listed):
        assert (threat.best_guess, threat.worst_guess) == (1.0, 0.5)


def test_an_attribute_threat_may_know_nothing():
    threat = Threat.attribute(SKEWED, target=lambda r: r > 0)
    assert not threat.has_knowledge
    assert threat.best_guess == 0.5
    assert "the right attribute" in threat.summary


@pytest.mark.parametrize(
    "arguments",
    [
        {"prior": [0.5, 0.5]},
        {"prior": SKEWED, "success": 0},
        {"prior": SKEWED, "knowledge": None},
        {"prior": SKEWED, "abstain": 1},
    ],
)
def test_parts_of_another_type_are_refused(arguments):
    with pytest.raises(TypeError, match="must be a"):
        Threat(**arguments)


def test_the_summary_says_who_may_decline():
    assert Threat(SKEWED, abstain=True).summary == (
        "guess the exact record among 3 records, knowing nothing, may decline"
    )


def test_the_ceiling_keeps_its_digits_near_a_point_mass():
    threat = Threat(Prior(2, [1 - 2.0**-40, 2.0**-40]))
    exact = 2 * (2.0**-40 - 2.0**-80)
    assert exact <= threat.ceiling <= exact * (1 + 1e-14)
    assert Threat(Prior(2, [1.0, 0.0])).ceiling == 0.0


def test_baselines_on_a_long_line_keep_their_digits():
    rng = np.random.default_rng(4)
    prior = Prior(5000, rng.dirichlet(np.full(5000, 0.2)))
    threat = Threat(prior, Success.within("absolute", 3))
    masses = [math.fsum(prior.pmf[max(0, g - 3) : g + 4]) for g in range(5000)]
    assert threat.best_guess == pytest.approx(max(masses), rel=1e-15)
    assert threat.worst_guess == pytest.approx(min(masses), rel=1e-12)


def test_a_place_is_described_in_its_unit():
    table = [[0, 400.0, 900], [400, 0, 500], [900, 500, 0]]
    plain = Threat.location(SKEWED, eta=500.0, distance=table)
    assert plain.summary == "guess within 500 among 3 records, knowing nothing"
    hops = Threat.location(SKEWED, eta=2, distance=table, unit="hops")
    assert "within 2 hops among" in hops.summary
    with pytest.raises(ValueError, match="one of 'absolute', 'metres'"):
        Threat.location(SKEWED, eta=1, distance="miles")


def test_a_continuous_prior_is_sent_to_its_function():
    with pytest.raises(TypeError, match=r"undertow\.risk\.continuous_advantage"):
        Threat(ContinuousPrior.uniform(0, 1))


def test_the_adjacency_of_the_guarantee_is_named_and_read():
    threat = Threat(SKEWED, adjacency="add-remove")
    assert threat.summary.endswith("guarantees are for adding or removing a record")
    assert "adding" not in Threat(SKEWED).summary
    with pytest.raises(ValueError, match="one of 'replace', 'add-remove'"):
        Threat(SKEWED, adjacency="unbounded")


NEAR_POINT_MASSES = (
    [1.0, 1e-16],
    [1.0, 1e-17, 1e-30],
    [1.0, 1e-300],
    [1 - 2.0**-40, 2.0**-41, 2.0**-41],
    [4.36472044e-11, 8.05684706e-11, 1 - 1.27384e-10, 3.16912337e-12],
)


def exact_ceiling(prior):
    masses = [Fraction(float(mass)) for mass in prior.pmf]
    return 1 - sum(p * p for p in masses) / sum(masses) ** 2


@pytest.mark.parametrize("place", range(len(NEAR_POINT_MASSES)))
def test_the_ceiling_is_not_below_the_truth_near_a_point_mass(place):
    masses = np.array(NEAR_POINT_MASSES[place])
    prior = Prior(len(masses), masses / math.fsum(masses))
    threat, truth = Threat(prior), exact_ceiling(prior)
    assert truth <= Fraction(threat.ceiling) <= truth * (1 + Fraction(1, 10**12))
    told = advantage(Channel(np.eye(len(masses))), threat).value
    assert Fraction(told) >= truth
    assert Fraction(exact_guess_bound(Pure(math.inf), prior).value) >= truth
    labels = np.arange(len(masses))
    bound = projected_variation_bound(1.0, prior.pmf, labels=labels)
    assert Fraction(bound.value) >= truth
    assert Fraction(best_bound(Pure(math.inf), threat).value) >= truth
