"""Published numbers, errata and traps of groups, floors and composition.

T: derived vectors on the thesis' chapter 6; A: acceptance values on the master's
thesis; CE and LE: errata of the two; trap_c and trap_l: traps in using them.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.accountant import CorrelatedAccountant, compose_leakages
from undertow.correlation.calibrate import calibrate, calibrate_over, explain
from undertow.correlation.finite.joint import two_point_law
from undertow.correlation.floor import (
    accuracy_floor,
    accuracy_gap,
    impossibility_beta,
    packing_beta,
)
from undertow.correlation.group import (
    Blocks,
    GeneralTheorem,
    Independent,
    block_leakage,
    general_leakage,
    tightness_law,
    tightness_leakage,
    tightness_lower_bound,
    tightness_parameter,
    tightness_pearson,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import LipschitzQuery
from undertow.correlation.result import (
    Adversary,
    Leakage,
    posterior_odds_interval,
    posterior_probability_interval,
)
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import CompositionError, InfeasibleTarget, ModelError
from undertow.mechanisms.accuracy import (
    laplace_accuracy,
    laplace_confidence,
    laplace_scale,
)


def two_points(first, second):
    """The law of one of two databases, as a mapping."""
    joint = two_point_law(first, second)
    cells = np.argwhere(joint.pmf > 0)
    return {
        tuple(int(axis[k]) for axis, k in zip(joint.values, cell, strict=True)): float(
            joint.pmf[tuple(cell)]
        )
        for cell in cells
    }


def brute_leakage(law, kernel, *, attackers=None):
    """Leakage by enumeration of attackers, known values, secrets and outputs.

    `law` maps databases to probabilities, `kernel` databases to output weights.
    """
    size = len(next(iter(law)))
    worst = 0.0
    everyone = (
        (i, known)
        for i in range(size)
        for k in range(size)
        for known in itertools.combinations([j for j in range(size) if j != i], k)
    )
    for target, known in attackers or everyone:
        cells = {}
        for database, mass in law.items():
            if mass > 0:
                key = tuple(database[j] for j in known)
                row = cells.setdefault(key, {}).setdefault(database[target], [0, 0])
                row[0] += mass
                row[1] = row[1] + mass * np.asarray(kernel(database))
        for seen in cells.values():
            for x, y in itertools.permutations(seen, 2):
                above, below = (seen[v][1] / seen[v][0] for v in (x, y))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.log(above) - np.log(below)
                worst = max(worst, np.nanmax(ratio))
    return worst


def response(epsilon, runs=1):
    """Randomized response for each record; several runs release all outputs."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def kernel(database):
        outputs = np.array([1.0])
        for _ in range(runs):
            for bit in database:
                flip = [keep, 1 - keep] if bit == 0 else [1 - keep, keep]
                outputs = np.outer(outputs, flip).ravel()
        return outputs

    return kernel


def noisy_sum(epsilon, size):
    """Laplace noise on the sum; the ratio is extreme at one of the sums."""
    points = np.arange(size + 1)
    return lambda database: np.exp(-epsilon * abs(points - sum(database)))


def table(law):
    return {index: float(law[index]) for index in np.ndindex(law.shape)}


XOR = {(a, b, a ^ b): 0.25 for a in (0, 1) for b in (0, 1)}
COUNTEREXAMPLE = {(0, 0): 0.09, (0, 1): 0.01, (1, 0): 0.45, (1, 1): 0.45}


def test_T3_table_6_1_sums_to_one_with_its_marginals_and_conditionals():
    for r in (2, 3, 10, 100):
        law = tightness_law(r)
        assert law.sum() == pytest.approx(1, abs=1e-15)
        assert law[:, 0].sum() == pytest.approx(1 / r)
        assert law[:, 1].sum() == pytest.approx((r - 1) / r)
        assert law[0].sum() == pytest.approx((1 + r) / r**3)
        assert law[1].sum() == pytest.approx((r**3 - r - 1) / r**3)
        assert law[0, 0] / law[0].sum() == pytest.approx(r / (1 + r))
        assert law[0, 0] / law[:, 0].sum() == pytest.approx(1 / r)
        assert law[0, 1] / law[:, 1].sum() == pytest.approx(1 / (r**2 * (r - 1)))
    law = tightness_law(3)
    assert law[0, 0] / law[0].sum() == pytest.approx(0.75)
    assert law[1, 0] / law[1].sum() == pytest.approx(6 / 23)
    assert tightness_law(2)[1, 1] == 3 / 8


T4 = [
    (2, 1.240245, 1.262740, 0.258199),
    (3, 1.457635, 1.462421, 0.368605),
    (10, 1.795535, 1.795610, 0.284429),
    (100, 1.976852, 1.976852, 0.099000),
    (1000, 1.997653, 1.997653, 0.031591),
]


@pytest.mark.parametrize(("r", "bound", "exact", "pearson"), T4)
def test_T4_example_6_4_lower_bound_exact_leakage_and_pearson(r, bound, exact, pearson):
    assert tightness_lower_bound(r, 1.0) == pytest.approx(bound, abs=1e-6)
    brute = brute_leakage(table(tightness_law(r)), response(1.0))
    assert brute == pytest.approx(exact, abs=1e-6)
    assert tightness_leakage(r, 1.0).value == pytest.approx(brute, abs=1e-9)
    assert tightness_pearson(r) == pytest.approx(pearson, abs=1e-6)


def test_T7_accuracy_floor():
    for n in (10, 1000):
        assert accuracy_floor(1, 0.05, max_change=n) == n / 2
        assert accuracy_floor(3, 0.05, max_change=n) is None
        assert accuracy_floor(2.9, 0.05, max_change=n) == n / 2


def test_C_4_4_thresholds_of_the_impossibility():
    for target, beta in [(0.5, 0.377541), (1, 0.268941), (2, 0.119203), (4, 0.0179862)]:
        assert impossibility_beta(target) == pytest.approx(beta, rel=1e-5)


def test_C_4_5_a_count_of_n_dependent_records():
    for target, beta in [(1, 0.6065), (5, 0.0821)]:
        for n in (10, 1000):
            scale = calibrate(Blocks([n]), target).noise_scale
            assert laplace_confidence(scale, n / 2) == pytest.approx(beta, abs=5e-5)


def test_A1_laplace_accuracy():
    assert laplace_accuracy(laplace_scale(1, 2), 0.01) == pytest.approx(
        2.302585092994046, rel=1e-13
    )
    assert laplace_accuracy(laplace_scale(1, 4), 0.01) == pytest.approx(
        1.151292546497023, rel=1e-13
    )


FIGURE_3 = [
    (0.5, 0.7788007831),
    (1, 0.6065306597126334),
    (2, 0.3678794412),
    (4, 0.1353352832),
    (5, 0.0820849986238988),
    (10, 0.0067379470),
]


@pytest.mark.parametrize(("target", "beta"), FIGURE_3)
def test_A2_figure_3_does_not_depend_on_n(target, beta):
    for n in (2, 100, 10**6):
        scale = calibrate(Blocks([n]), target).noise_scale
        assert laplace_confidence(scale, n / 2) == pytest.approx(beta, rel=1e-8)


def test_A3_figure_5_forced_failures():
    known = {
        0.5: 0.3775406688,
        1: 0.2689414214,
        2: 0.11920292202211755,
        4: 0.01798620996209156,
        5: 0.0066928509,
    }
    for target, beta in known.items():
        assert impossibility_beta(target) == pytest.approx(beta, rel=1e-8)
    assert impossibility_beta(2) == pytest.approx(0.11920292202211755, rel=1e-13)


def test_A4_general_bound_and_all_equal_bits():
    assert general_leakage(0.5, 3).value == 1.5
    law = two_points((0, 0, 0), (1, 1, 1))
    assert brute_leakage(law, noisy_sum(0.5, 3)) == pytest.approx(1.5, rel=1e-12)


TABLE_2 = [
    (2, 0.5773502691896258, 1.5471675747360587, 1.7633825153901415),
    (10, 0.30151134457776363, 1.854854800389036, 1.9408172387705094),
    (100, 0.09950371902099892, 1.9831304037873696, 1.9937217133444192),
    (1000, 0.0316069770620507, 1.998284906351115, 1.9993683114570373),
]


@pytest.mark.parametrize(("r", "pearson", "bound", "exact"), TABLE_2)
def test_A6_theorem_4_3_lower_bound_and_exact_leakage(r, pearson, bound, exact):
    assert tightness_pearson(r, family="sparse") == pytest.approx(pearson, rel=1e-12)
    low = tightness_lower_bound(r, 1.0, family="sparse")
    assert low == pytest.approx(bound, rel=1e-12)
    found = tightness_leakage(r, 1.0, family="sparse").value
    assert found == pytest.approx(exact, rel=1e-11)
    law = table(tightness_law(r, family="sparse"))
    assert brute_leakage(law, noisy_sum(1.0, 2)) == pytest.approx(exact, rel=1e-11)


def test_A6_theorem_4_3_at_half_the_level():
    known = {10: (0.942698861, 0.9635746386), 1000: (0.9993521367, 0.9996068465)}
    for r, (bound, exact) in known.items():
        low = tightness_lower_bound(r, 0.5, family="sparse")
        found = tightness_leakage(r, 0.5, family="sparse").value
        assert low == pytest.approx(bound, abs=1e-9)
        assert found == pytest.approx(exact, abs=1e-9)


def test_A7_the_least_r():
    r = tightness_parameter(0.1, 1.0, slack=0.01)
    assert r == 170
    low = tightness_lower_bound(r, 1.0, family="sparse")
    assert low == pytest.approx(1.9900017180733598, rel=1e-12)
    pearson = tightness_pearson(r, family="sparse")
    assert pearson == pytest.approx(0.07647191129018725, rel=1e-12)


def test_L_2_6_posterior_probabilities():
    assert posterior_probability_interval(0.5, 1.0) == pytest.approx(
        (0.2689414213699951, 0.7310585786300049), rel=1e-12
    )
    assert posterior_probability_interval(0.5, 5.0)[1] == pytest.approx(
        0.9933071490757153, rel=1e-12
    )


def test_L_2_6_odds_of_the_posterior_attain_the_interval():
    """Bayes' rule on the counterexample law: the odds move by the leakage, no more."""
    kernel = response(0.5)
    given = {x: np.zeros(4) for x in (0, 1)}
    mass = {0: 0.1, 1: 0.9}
    for database, p in COUNTEREXAMPLE.items():
        given[database[0]] += p / mass[database[0]] * kernel(database)
    odds = mass[1] * given[1] / (mass[0] * given[0])
    bound = brute_leakage(COUNTEREXAMPLE, kernel)
    low, high = posterior_odds_interval(9.0, bound)
    assert low <= odds.min()
    assert odds.max() == pytest.approx(high, rel=1e-9)


def test_L_4_4_households_of_five():
    found = calibrate(Blocks([5] * 2000), 1.0)
    assert (found.epsilon, found.noise_scale) == (0.2, 5.0)
    assert found.accuracy.alpha == pytest.approx(14.97866136776995, rel=1e-12)


def test_L_4_6_packing_and_its_sharp_case():
    assert packing_beta(1.0, 10) == pytest.approx(0.7862697284804238, rel=1e-12)
    # Truth about two databases with probability e^B/(1 + e^B) meets the premise.
    B = 1.3
    truth = math.exp(B) / (1 + math.exp(B))
    assert math.log(truth / (1 - truth)) == pytest.approx(B)
    assert 1 - truth == pytest.approx(impossibility_beta(B), rel=1e-12)


def test_L_4_7_the_combined_view():
    gap = accuracy_gap(2.0, 10, max_change=9, beta=0.05)
    assert gap.bdp_alpha == pytest.approx(14.978661367769955, rel=1e-12)
    assert gap.floor == 4.5


def test_talk_few_correlated_records_is_a_straight_line():
    expected = {1: 2.9957, 2: 5.9915, 5: 14.979, 10: 29.957}
    for m, alpha in expected.items():
        assert accuracy_gap(1.0, m).bdp_alpha == pytest.approx(alpha, rel=5e-5)


def test_CE2_the_impossibility_does_not_reach_level_four_at_every_confidence():
    limits = {0.1: 2.197, 0.05: 2.944, 0.01: 4.595}
    for beta, limit in limits.items():
        assert math.log((1 - beta) / beta) == pytest.approx(limit, abs=5e-4)
        assert accuracy_floor(limit - 1e-3, beta, max_change=1) == 0.5
        assert accuracy_floor(limit + 1e-3, beta, max_change=1) is None
    assert accuracy_floor(3.9, 0.1, max_change=1) is None  # the text claims it


def test_CE3_the_event_of_example_6_4_is_zero_zero():
    kernel, e = response(1.0), math.e
    at = {d: kernel(d) for d in itertools.product((0, 1), repeat=2)}
    first = {d: at[d][0] for d in at}  # output (0, 0)
    assert first[0, 0] == pytest.approx(e * first[0, 1])
    assert first[0, 0] == pytest.approx(e * first[1, 0])
    assert first[0, 0] == pytest.approx(e**2 * first[1, 1])
    last = {d: at[d][3] for d in at}  # output (1, 1), as printed
    assert last[0, 0] == pytest.approx(last[1, 1] / e**2)


def test_CE4_the_limit_of_example_6_4_is_twice_the_level():
    for epsilon in (0.5, 1.0, 2.0):
        limit = tightness_lower_bound(1e6, epsilon)
        assert limit == pytest.approx(2 * epsilon, abs=1e-4)
        assert abs(limit - math.log((math.exp(2 * epsilon) + 1) / 2)) > 0.1  # printed


def test_CE16_leakages_do_not_add_up():
    once = brute_leakage(COUNTEREXAMPLE, response(0.5))
    twice = brute_leakage(COUNTEREXAMPLE, response(0.5, runs=2))
    assert once == pytest.approx(0.7180751, abs=1e-7)
    assert twice == pytest.approx(1.4615494, abs=1e-7)
    assert twice > 2 * once
    with pytest.raises(CompositionError) as refusal:
        compose_leakages(Leakage(once, "brute"), Leakage(once, "brute"))
    details = refusal.value.witness.details
    assert details["leakage_once"] == pytest.approx(once, abs=1e-7)
    assert details["leakage_twice"] == pytest.approx(twice, abs=1e-7)
    joint = {(a, b): details["joint"][a][b] for a in (0, 1) for b in (0, 1)}
    assert joint == COUNTEREXAMPLE
    accountant = CorrelatedAccountant(Blocks([2]), 10.0)
    accountant.spend(0.5)
    assert accountant.spend(0.5).value >= twice


def test_CE16_the_noisy_count_does_not_compose_either():
    points = np.arange(3)
    count = noisy_sum(0.5, 2)

    def two_counts(database):
        return np.outer(count(database), count(database)).ravel()

    assert points.size == 3
    once = brute_leakage(COUNTEREXAMPLE, count)
    assert once == pytest.approx(0.7180751, abs=1e-7)
    twice = brute_leakage(COUNTEREXAMPLE, two_counts)
    assert twice == pytest.approx(1.4615494, abs=1e-7)


def test_CE16_twenty_runs_leak_half_as_much_again():
    law = {
        (1, 1): 0.999 * 0.01,
        (1, 0): 0.999 * 0.99,
        (0, 1): 0.001 * 1e-6,
        (0, 0): 0.001 * (1 - 1e-6),
    }
    once = brute_leakage(law, response(0.5))
    assert once == pytest.approx(0.5064656, abs=1e-7)
    grow = math.exp(20 * 0.5)
    ones = 10 + math.log((0.01 * grow + 0.99) / (1e-6 * grow + 1 - 1e-6))
    assert ones == pytest.approx(15.3775, abs=1e-4)
    assert ones > 1.5 * 20 * once
    assert ones <= general_leakage(10.0, 2).value  # the sound rule


def test_LE1_a_privacy_metric_has_two_arguments():
    """One database against two others: no function of it alone bounds both."""
    kernel = noisy_sum(1.0, 2)
    loss = {
        d: np.abs(np.log(kernel((0, 0)) / kernel(d))).max() for d in [(1, 0), (1, 1)]
    }
    assert loss[1, 0] == pytest.approx(1.0)
    assert loss[1, 1] == pytest.approx(2.0)


def test_LE3_the_weights_of_equation_48_are_one_and_zero():
    law = tightness_law(10, family="sparse")
    given = law[0] / law[0].sum()
    assert given.tolist() == [1.0, 0.0]
    printed = law[0, 0] / (1 - law[0, 0])
    assert printed == pytest.approx(1 / 99)


def test_LE5_free_lunch_holds_on_the_support_of_the_law_only():
    """Silent on two databases, open on the rest: BDP under the law, no free lunch."""
    law = two_points((0, 0), (1, 1))

    def kernel(database):
        return np.array([0.5, 0.5]) if database in law else np.array([1.0, 0.0])

    assert brute_leakage(law, kernel) == 0.0
    with np.errstate(divide="ignore"):
        assert np.log(kernel((0, 0)) / kernel((0, 1))).max() == math.inf


def test_trap_c02_groups_hold_everyone_who_may_depend():
    """Two children of one mother: pairs overlap, so they are no groups."""
    with pytest.raises(ModelError, match=r"must not overlap"):
        Blocks.from_partition([[0, 1], [0, 2], [3]])
    family = Blocks.from_graph(4, [(0, 1), (0, 2)])
    assert family.largest_group == 3
    law = two_points((0, 0, 0, 0), (1, 1, 1, 0))
    exact = brute_leakage(law, noisy_sum(1.0, 4))
    assert exact > leakage(Blocks([2, 2]), 1.0).value  # what pairs would promise
    assert exact <= leakage(family, 1.0).value + 1e-12


def test_trap_c03_a_small_pearson_coefficient_is_no_independence():
    r = 10_000
    assert tightness_pearson(r) < 0.0101
    assert tightness_leakage(r, 1.0).value > 1.999
    assert leakage(Independent(2), 1.0).value == 1.0  # would be a false promise


def test_trap_c09_many_users_count_the_longest_chain():
    model = Blocks([10, 300, 25])
    assert calibrate(model, 3.0).epsilon == pytest.approx(3.0 / 300)
    joined = Blocks.from_graph(335, [(j, j + 1) for j in range(334)])
    assert calibrate(joined, 3.0).epsilon == pytest.approx(3.0 / 335)


def test_trap_c10_a_wrong_model_voids_the_promise_and_a_set_helps():
    law = two_points((0, 0, 0), (1, 1, 1))
    trusted = calibrate(Blocks([2, 1]), 1.0)
    assert brute_leakage(law, noisy_sum(trusted.epsilon, 3)) > 1.0 + 1e-9
    robust = calibrate_over([Blocks([2, 1]), Blocks([3])], 1.0)
    assert brute_leakage(law, noisy_sum(robust.epsilon, 3)) <= 1.0 + 1e-12
    assert any("independent" in text for text in trusted.achieves.unchecked)


def test_trap_c11_leakages_are_not_added():
    with pytest.raises(CompositionError, match=r"CorrelatedAccountant"):
        compose_leakages(general_leakage(1, 2), general_leakage(1, 2))
    with pytest.raises(TypeError):
        general_leakage(1, 2) + general_leakage(1, 2)


def test_trap_c17_a_verdict_names_model_scope_and_attackers():
    found = calibrate(Blocks([3, 1]), 1.0)
    plain = found.achieves.to_dict()
    assert plain["model"] == "4 records in 2 independent groups of at most 3"
    assert plain["scope"] == "every pair of secrets"
    assert plain["attackers"] == "anyone who knows any subset of the other records"
    text = explain(found)
    for part in ("model", "scope", "attackers"):
        assert plain[part] in text


def test_trap_c18_a_high_level_means_certainty():
    assert posterior_probability_interval(0.5, 8.0)[1] > 0.9996
    assert math.tanh(8.0 / 2) == pytest.approx(0.9993, abs=1e-4)
    assert "almost certain" in explain(calibrate(Independent(3), 8.0))


class Factor(LeakageTheorem):
    """The Gaussian bound for a pair with coefficient 0.5, on clipped records."""

    name = "factor"
    source = "a factor of 1.5"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(
            1.5 * epsilon, self.source, method=self.name, scope=query.scope()
        )


class Additive(LeakageTheorem):
    """The Markov bound: the level and four logarithms of the ratio."""

    name = "additive"
    source = "Theorem 6.20"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(epsilon + 8.05, self.source, method=self.name)

    def invert(self, model, target, /, *, query=None):
        if target <= 8.05:
            raise InfeasibleTarget("target must be above 8.05.", least=8.05)
        return (target - 8.05) * (1 - 1e-12)


class Pair(Blocks):
    def methods(self):
        return (Factor(),)


class Series(Blocks):
    def methods(self):
        return (Additive(), GeneralTheorem())


def test_trap_l01_a_clipped_promise_covers_secrets_inside_only():
    accountant = CorrelatedAccountant(
        Pair([2]), 100.0, query=LipschitzQuery(clip=(0, 10))
    )
    assert accountant.spend(1.0).scope.summary == "both secrets in [0, 10]"
    mixed = accountant.spend(1.0, clip=(0, 4))
    assert mixed.scope.summary == "secrets at most 4 apart"
    assert mixed.to_dict()["scope"] == "secrets at most 4 apart"


def test_trap_l03_groups_are_about_joint_independence():
    """Every two of the bits are independent; all three are not."""
    exact = brute_leakage(XOR, noisy_sum(1.0, 3))
    assert exact == pytest.approx(2.0, rel=1e-12)
    one_known = [(i, (j,)) for i in range(3) for j in range(3) if i != j]
    alone = brute_leakage(XOR, noisy_sum(1.0, 3), attackers=one_known)
    assert alone == pytest.approx(2.0, rel=1e-12)
    assert leakage(Independent(3), 1.0).value < exact <= leakage(Blocks([3]), 1.0).value
    refined = block_leakage(Blocks([3]), 1.0, adversary=Adversary(0, {1})).value
    assert refined == 2.0


def test_trap_l04_overlapping_triples_are_no_partition():
    with pytest.raises(ModelError, match=r"record 0 in several; merge"):
        Blocks.from_partition([[0, 1, 2], [0, 1, 3]])
    assert Blocks.from_families(["smith"] * 4).largest_group == 4


def test_trap_l08_the_surcharge_is_not_multiplied_by_the_releases():
    accountant = CorrelatedAccountant(Series([17568]), 100.0)
    for _ in range(20):
        accountant.spend("0.05")
    assert accountant.spent().value == pytest.approx(9.05, rel=1e-12)
    assert (
        accountant.spent().value < 20 * Additive().bound(None, 0.05, query=None).value
    )


def test_trap_l09_an_infeasible_target_falls_back_to_groups_never_below_zero():
    model = Series([288])
    with pytest.raises(InfeasibleTarget) as refusal:
        calibrate(model, 8.0, method="additive")
    assert refusal.value.least == 8.05
    found = calibrate(model, 8.0)
    assert found.method == "general"
    assert found.epsilon == pytest.approx(8.0 / 288)


def test_trap_l11_the_impossibility_is_strict():
    """At the threshold itself a mechanism with an error of half the gap exists."""
    B = 1.0
    truth = 1 / (1 + math.exp(-B))
    assert accuracy_floor(B, 1 - truth, max_change=2.0) is None
    assert accuracy_floor(B, (1 - truth) * (1 - 1e-12), max_change=2.0) == 1.0


def test_trap_l16_bayesian_privacy_gives_dp_on_the_support_only():
    """Two equal bits, their exclusive or released exactly: nothing to learn, no DP."""
    law = two_points((0, 0), (1, 1))

    def kernel(database):
        return np.eye(2)[database[0] ^ database[1]]

    assert brute_leakage(law, kernel) == 0.0
    everywhere = {d: 0.25 for d in itertools.product((0, 1), repeat=2)}
    assert brute_leakage(everywhere, kernel) == math.inf


def test_trap_l17_the_number_of_records_is_fixed():
    model = Blocks([2, 1])
    with pytest.raises(ValueError, match=r"record must be in 0\.\.2"):
        block_leakage(model, 1.0, adversary=Adversary(3))
    assert model.size == 3
