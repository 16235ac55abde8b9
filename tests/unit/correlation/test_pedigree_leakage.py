"""The exact leakage of relatives against listing every database and attacker."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.finite.laplace import laplace_ratio_supremum
from undertow.correlation.leak import leakage
from undertow.correlation.pedigree import (
    Pedigree,
    PedigreeTheorem,
    pedigree_adversary_leakage,
    pedigree_leakage,
)
from undertow.correlation.pedigree.leakage import (
    log_densities,
    raised_worst_pair,
    worst_pair,
)
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable

BB = CountQuery({2})
TRANSMITS = (0.0, 0.5, 1.0)


def child(a, c):
    a, c = TRANSMITS[a], TRANSMITS[c]
    return ((1 - a) * (1 - c), a * (1 - c) + (1 - a) * c, a * c)


def listed_joint(parents, founder):
    """The joint law, written out again from Mendel's laws."""
    joint = {}
    for x in itertools.product(range(3), repeat=len(parents)):
        weight = 1.0
        for i, pair in enumerate(parents):
            recorded = [x[j] for j in pair if j is not None]
            if not recorded:
                weight *= founder[x[i]]
            elif len(recorded) == 1:
                weight *= sum(
                    founder[y] * child(recorded[0], y)[x[i]] for y in range(3)
                )
            else:
                weight *= child(*recorded)[x[i]]
        if weight > 0:
            joint[x] = weight
    return joint


def listed_leakage(joint, value, scale):
    """The maximum over every attacker, knowledge, pair and output, one by one."""
    size = len(next(iter(joint)))
    values = {x: value(x) for x in joint}
    support = np.array(sorted(set(values.values())))
    at = {v: j for j, v in enumerate(support)}
    kernel = np.exp(-np.abs(support[:, None] - support[None, :]) / scale)
    best = 0.0
    for i in range(size):
        rest = [j for j in range(size) if j != i]
        for count in range(size):
            for known in itertools.combinations(rest, count):
                laws = {}
                for x, weight in joint.items():
                    given = laws.setdefault(tuple(x[j] for j in known), {})
                    row = given.setdefault(x[i], np.zeros(len(support)))
                    row[at[values[x]]] += weight
                for given in laws.values():
                    logs = [np.log(kernel @ (w / w.sum())) for w in given.values()]
                    for a, b in itertools.permutations(logs, 2):
                        best = max(best, float((a - b).max()))
    return best


PEDIGREES = {
    "single": [(None, None)],
    "one parent": [(None, None), (0, None)],
    "trio": [(None, None), (None, None), (0, 1)],
    "children first": [(2, 3), (3, 2), (None, None), (None, None)],
    "half siblings": [(None, None), (None, None), (None, None), (0, 1), (0, 2)],
    "three generations": [(None, None), (None, None), (0, 1), (None, None), (2, 3)],
    "siblings with a child": [(None, None), (None, None), (0, 1), (0, 1), (2, 3)],
    "parent and child mate": [(None, None), (None, 0), (0, 1), (1, 0), (1, None)],
    "half recorded": [(None, None), (None, 0), (0, None), (1, 2), (1, None)],
    "two families": [(None, None), (0, None), (None, None), (None, 2), (2, 3)],
}
FOUNDERS = [(0.25, 0.5, 0.25), (0.01, 0.18, 0.81), (0.6, 0.0, 0.4), (0.3, 0.7, 0.0)]


@pytest.mark.parametrize("founder", FOUNDERS, ids=str)
@pytest.mark.parametrize("parents", PEDIGREES.values(), ids=PEDIGREES)
def test_exact_leakage_is_that_of_every_listed_attacker(parents, founder):
    pedigree = Pedigree(parents, founder=founder)
    joint = listed_joint(parents, pedigree.founder)
    cases = [
        (BB, lambda x: x.count(2), 1.0),
        (CountQuery({0, 2}), lambda x: len(x) - x.count(1), 1.0),
        (LinearQuery(), sum, 2.0),
        (LinearQuery(clip=(0, 1)), lambda x: sum(min(g, 1) for g in x), 1.0),
    ]
    for query, value, change in cases:
        found = pedigree_leakage(pedigree, 0.8, query=query).value
        listed = listed_leakage(joint, value, change / 0.8)
        assert listed - 1e-14 <= found == pytest.approx(listed, abs=1e-10)


@pytest.mark.parametrize("weights", [(1, 2, 0.5, -1, 1), (0, 0, 1, 1, 0.3)])
def test_exact_leakage_of_weighted_dosage_is_that_of_every_listed_attacker(weights):
    parents = PEDIGREES["three generations"]
    pedigree = Pedigree(parents, frequency=0.7)
    found = pedigree_leakage(pedigree, 1.5, query=LinearQuery(weights)).value
    scale = 2 * max(map(abs, weights)) / 1.5
    joint = listed_joint(parents, pedigree.founder)
    listed = listed_leakage(joint, lambda x: round(float(np.dot(weights, x)), 9), scale)
    assert found == pytest.approx(listed, abs=1e-10)


@pytest.mark.parametrize(
    "parents", [PEDIGREES["half recorded"], PEDIGREES["siblings with a child"]]
)
@pytest.mark.parametrize("query", [BB, LinearQuery()])
def test_the_witness_attains_the_leakage(parents, query):
    pedigree = Pedigree(parents, frequency=0.8)
    found = pedigree_leakage(pedigree, 1.0, query=query)
    details = found.witness.details
    values = {int(j): x for j, x in details["values"].items()}
    who = Adversary(details["target"], details["known"], values)
    attained = pedigree_adversary_leakage(pedigree, 1.0, adversary=who, query=query)
    assert attained.value == pytest.approx(found.value, abs=1e-11)
    assert found.is_exact


def test_a_witness_among_many_siblings_names_their_genotypes():
    founder = (0.05, 0.9, 0.05)
    found = pedigree_leakage(
        Pedigree.nuclear(5, founder=founder), 1.0, query=CountQuery({1})
    )
    details = found.witness.details
    values = {int(j): x for j, x in details["values"].items()}
    who = Adversary(details["target"], details["known"], values)
    again = pedigree_adversary_leakage(
        Pedigree.nuclear(5, founder=founder),
        1.0,
        adversary=who,
        query=CountQuery({1}),
    )
    assert again.value == pytest.approx(found.value, abs=1e-11)


def test_one_attacker_never_learns_more_than_the_worst():
    pedigree = Pedigree(PEDIGREES["half siblings"], frequency=0.6)
    worst = pedigree_leakage(pedigree, 1.0).value
    every = [
        pedigree_adversary_leakage(pedigree, 1.0, adversary=Adversary(i, known)).value
        for i in range(5)
        for count in range(5)
        for known in itertools.combinations([j for j in range(5) if j != i], count)
    ]
    assert max(every) == pytest.approx(worst, abs=1e-11)


def test_an_attacker_with_too_many_open_relatives_is_refused():
    family = Pedigree.nuclear(12, frequency=0.5)
    with pytest.raises(NotApplicable, match="at most 10 known relatives"):
        pedigree_adversary_leakage(family, 1.0, adversary=Adversary(0, range(2, 14)))
    values = {j: 1 for j in range(2, 14)}
    who = Adversary(0, range(2, 14), values)
    assert pedigree_adversary_leakage(family, 1.0, adversary=who).value > 0


def test_a_single_person_leaks_the_dp_level():
    alone = Pedigree([None], frequency=0.5)
    assert pedigree_leakage(alone, 0.75).value == 0.75
    assert pedigree_leakage(alone, 0.75, query=LinearQuery()).value == 0.75


def test_only_the_largest_leaking_family_counts():
    crowd = Pedigree.nuclear(2, frequency=0.9, families=40, unrelated=100)
    one = Pedigree.nuclear(2, frequency=0.9)
    assert pedigree_leakage(crowd, 1.0).value == pedigree_leakage(one, 1.0).value
    assert pedigree_leakage(crowd, 1.0).witness.details["known"][-1] == 259


def test_nothing_to_learn_leaks_nothing():
    trio = Pedigree.nuclear(1, frequency=0.5)
    assert pedigree_leakage(trio, 0.0).value == 0
    assert pedigree_leakage(trio, 1.0, query=CountQuery({0, 1, 2})).value == 0
    sure = Pedigree.nuclear(1, founder=(1, 0, 0))
    certain = pedigree_leakage(sure, 1.0)
    assert (certain.value, certain.witness) == (0.0, None)


def test_weights_of_another_family_only_set_the_noise():
    pair = Pedigree([None, (0,), None], frequency=0.5)
    light = pedigree_leakage(pair, 1.0, query=LinearQuery((0.5, 0.5, 5.0))).value
    assert light == pytest.approx(1.0, abs=1e-9)  # the single person, at full level


@pytest.mark.parametrize("epsilon", [1e-10, 1e-4, 3.0, 400.0])
def test_levels_of_every_size_are_handled(epsilon):
    # A trio has the closed form max(2 e, e + 2 ln(1 - p + p exp(e))).
    found = pedigree_leakage(Pedigree.nuclear(1, frequency=0.75), epsilon).value
    tail = math.log(0.75) + epsilon + math.log1p(math.exp(-epsilon) / 3)
    small = math.log1p(0.75 * math.expm1(min(epsilon, 1.0)))
    inner = tail if epsilon > 1 else small
    assert found == pytest.approx(max(2 * epsilon, epsilon + 2 * inner), rel=1e-11)


def test_a_level_beyond_floats_is_refused():
    with pytest.raises(NotApplicable, match="noise scales"):
        pedigree_leakage(Pedigree.nuclear(1, frequency=0.5), 1e12)


def test_the_budget_keeps_the_promise_and_is_sharp():
    family, method = Pedigree.nuclear(2, frequency=0.9), PedigreeTheorem()
    for target in (1e-6, 1.0, 30.0):
        level = method.invert(family, target, query=BB)
        assert method.bound(family, level, query=BB).value <= target
        above = method.bound(family, level * (1 + 1e-9), query=BB).value
        assert above > target
        assert level > target / 4


def test_the_best_method_is_elimination_for_counts_and_general_otherwise():
    family = Pedigree.nuclear(2, frequency=0.5)
    assert leakage(family, 1.0, query=BB).method == "elimination"
    assert leakage(family, 1.0).method == "general"
    assert leakage(family, 1.0).value == 4.0
    assert leakage(family, 1.0, query=BB, method="published").value == 4.0
    unknown = leakage(Pedigree.nuclear(2), 1.0, query=BB)
    assert unknown.method == "general"
    assert "law of founders" in unknown.alternatives[0].reason


def test_every_mechanism_at_once_is_refused():
    with pytest.raises(NotApplicable, match="the general bound holds for every"):
        pedigree_leakage(Pedigree.nuclear(1, frequency=0.5), 1.0, query=AnyQuery())


def test_too_large_a_family_is_refused_and_the_general_bound_named():
    crowd = Pedigree.nuclear(200, frequency=0.5)
    with pytest.raises(NotApplicable, match="general bound, 202 times epsilon"):
        pedigree_leakage(crowd, 1.0)
    assert leakage(crowd, 1.0, query=BB).value == 202.0
    assert PedigreeTheorem().too_costly(crowd, query=AnyQuery()) is None


def test_too_many_connected_sets_are_refused():
    star = [None, *[None] * 20, *((0, j) for j in range(1, 21))]
    with pytest.raises(NotApplicable, match="connected sets of unknown relatives"):
        pedigree_leakage(Pedigree(star, frequency=0.5), 1.0)
    assert leakage(Pedigree(star, frequency=0.5), 1.0, query=BB).value == 41.0


def test_a_costly_family_is_left_out_unless_asked_for():
    family = Pedigree.nuclear(40, frequency=0.5)
    reason = PedigreeTheorem().too_costly(family, query=BB)
    assert "would compute" in reason
    found = leakage(family, 1.0, query=BB)
    assert found.method == "general"
    assert "by name" in found.alternatives[0].reason


def test_laws_too_extreme_for_floats_are_refused():
    with pytest.raises(NotApplicable, match="probability above 1e-280"):
        pedigree_leakage(Pedigree.nuclear(1, frequency=1e-100), 1.0)


def test_other_models_are_refused():
    with pytest.raises(NotApplicable, match="needs a pedigree, got str"):
        PedigreeTheorem().bound("family", 1.0, query=BB)


def test_laws_collected_in_pieces_are_the_same(monkeypatch):
    pedigree = Pedigree(PEDIGREES["half recorded"], frequency=0.8)
    at_once = pedigree_leakage(pedigree, 1.0)
    monkeypatch.setattr("undertow.correlation.pedigree.leakage._WAITING", 50)
    in_pieces = pedigree_leakage(pedigree, 1.0)
    assert in_pieces.value == at_once.value
    assert in_pieces.witness.details == at_once.witness.details


def test_many_pairs_of_mixtures_agree_with_one_by_one():
    rng = np.random.default_rng(3)
    laws = rng.dirichlet(np.ones(6), size=(50, 3))
    laws[:10, 1] = 0.0
    for unit in (0.1, 2.0, 200.0):
        listed = 0.0
        for row in laws:
            possible = [law for law in row if law.any()]
            for p, q in itertools.permutations(possible, 2):
                value = laplace_ratio_supremum(range(6), p, q, scale=1 / unit)
                listed = max(listed, value)
        assert worst_pair(laws, unit).value == pytest.approx(listed, rel=1e-12)


def test_worst_pair_says_where():
    rng = np.random.default_rng(4)
    laws = rng.dirichlet(np.ones(4), size=(20, 3))
    found = worst_pair(laws, 1.3)
    logs = log_densities(laws, 1.3)
    x, y = found.pair
    ratio = logs[found.row, x, found.output] - logs[found.row, y, found.output]
    assert ratio == pytest.approx(found.value, rel=1e-14)
    assert raised_worst_pair(laws, 1.3)[0] > found.value
    assert worst_pair(np.zeros((0, 3, 4)), 1.0).row == -1


def test_relatives_that_cannot_occur_together_are_refused():
    trio = Pedigree.nuclear(1, frequency=0.5)
    impossible = Adversary(1, {0, 2}, {0: 0, 2: 2})
    with pytest.raises(ModelError, match=r"occur together"):
        pedigree_adversary_leakage(trio, 1.0, adversary=impossible)


def test_unknown_strangers_make_an_attackers_leakage_a_bound():
    pair = Pedigree([None, (0,), None], founder=[0.2, 0.3, 0.5])
    alone = Adversary(0, {2}, {2: 1})
    assert pedigree_adversary_leakage(pair, 1.0, adversary=alone).tight is True
    blurred = pedigree_adversary_leakage(pair, 1.0, adversary=Adversary(0))
    assert blurred.tight is None
