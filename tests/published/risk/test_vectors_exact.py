"""Published and derived numbers of the exact risk on finite channels.

P3: the worked 3 x 3 example; T: derived vectors on baselines (3) and metrics (4); RE:
errata of chapter 5 of the thesis; trap_r: traps in using it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, reconstruction_robustness, success_rate
from undertow.risk.finite import Decision, OptimalAttack, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])
ETA_1 = Success.within("absolute", 1)
ETA_2 = Success.within("absolute", 2)


def near(value, tolerance=1e-6):
    return pytest.approx(value, abs=tolerance)


def response(m, epsilon):
    """Generalised randomised response on m records."""
    weights = np.where(np.eye(m, dtype=bool), 1.0, math.exp(-epsilon))
    return Channel(weights / weights.sum(axis=1, keepdims=True))


def unary(m, epsilon):
    """Optimised unary encoding, by all its bit strings."""
    q = 1 / (math.exp(epsilon) + 1)
    bits = np.array(list(itertools.product((0, 1), repeat=m)))
    ones = np.where(np.eye(m, dtype=bool), 0.5, q)
    return Channel([np.prod(np.where(bits == 1, row, 1 - row), axis=1) for row in ones])


def subsets(m, epsilon, size):
    """Subset selection, by all subsets of one size."""
    E = math.exp(epsilon)
    kept = list(itertools.combinations(range(m), size))
    weights = np.array([[E if x in s else 1.0 for s in kept] for x in range(m)])
    return Channel(weights / weights.sum(axis=1, keepdims=True))


def worst_mechanism(prior, hits, epsilon):
    """The worst pure-DP channel without knowledge: outputs are guesses."""
    guesses, m = np.shape(hits)
    pmf = prior.pmf
    masses = np.asarray(hits) @ pmf
    gain = pmf[:, None] * (np.transpose(hits) - masses)  # [truth, guess]
    rows, odds = [], math.exp(epsilon)
    for g, (x, y) in itertools.product(
        range(guesses), itertools.permutations(range(m), 2)
    ):
        row = np.zeros((m, guesses))
        row[x, g], row[y, g] = 1.0, -odds
        rows.append(row.ravel())
    whole = np.kron(np.eye(m), np.ones(guesses))
    found = linprog(
        -gain.ravel(),
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=whole,
        b_eq=np.ones(m),
        bounds=(0, 1),
    )
    table = np.clip(found.x.reshape(m, guesses), 0, None)
    return Channel(table / table.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("threat", "value"),
    [
        (Threat(SKEWED), 0.242),
        (Threat(SKEWED, knowledge=Knowledge.from_labels([0, 0, 1])), 0.248),
        (Threat(SKEWED, knowledge=Knowledge.from_labels([0, 1, 0])), 0.248),
        (Threat.membership(SKEWED), 0.248),
        (Threat(SKEWED, ETA_1), 0.174),
        (Threat(SKEWED, ETA_2), 0.0),
        (Threat(SKEWED, ETA_1, Knowledge.full()), 0.194),
        (Threat(Prior.uniform(3)), 0.2666666667),
        (Threat.membership(Prior.uniform(3)), 0.2666666667),
    ],
    ids=str,
)
def test_P3_advantage(threat, value):
    assert advantage(P3, threat).value == near(value, 1e-9)


def test_P3_robustness_and_collision():
    assert reconstruction_robustness(P3, Threat(SKEWED)).value == near(0.59, 1e-9)
    assert SKEWED.collision == near(0.38, 1e-12)


def test_P3_marginal_gains_and_decisions():
    pmf, P = SKEWED.pmf, P3.matrix
    assert pmf @ P == near(np.array([0.38, 0.34, 0.28]), 1e-12)
    attack = OptimalAttack(P3, Threat(SKEWED))
    gains = np.stack([attack.scores(t) * (pmf @ P)[t] for t in range(3)], axis=1)
    expected = [[0.11, -0.02, -0.09], [-0.054, 0.048, 0.006], [-0.056, -0.028, 0.084]]
    assert gains == near(np.array(expected), 1e-12)
    assert attack.decision().table[:, 0].tolist() == [0, 1, 2]


def test_P3_pairs_and_worst_mechanism_at_its_level():
    P, pmf = P3.matrix, SKEWED.pmf
    pairs = 0.5 * np.abs(P[:, None] - P[None]).sum(axis=2)
    assert pairs[[0, 0, 1], [1, 2, 2]] == near(np.array([0.4, 0.6, 0.4]), 1e-12)
    assert pmf @ pairs @ pmf == near(0.288, 1e-12)
    worst = worst_mechanism(SKEWED, np.eye(3), math.log(7))
    assert advantage(worst, Threat(SKEWED)).value == near(0.413333)


@pytest.mark.parametrize(
    ("epsilon", "value"), [(0.5, 0.104899), (1, 0.214863), (2, 0.430486)]
)
def test_worst_mechanisms_of_a_skewed_prior_have_the_value_of_their_program(
    epsilon, value
):
    prior = Prior(4, [0.4, 0.3, 0.2, 0.1])
    worst = worst_mechanism(prior, np.eye(4), epsilon)
    assert advantage(worst, Threat(prior)).value == near(value)


@pytest.mark.parametrize(
    ("channel", "blind", "member"),
    [
        (response(10, 1), 0.131969317, 0.131969317),
        (response(10, 4), 0.758486, 0.758486),
        (unary(10, 1), 0.080789798, 0.207952721),
        (subsets(10, 1, 2), 0.102304838, 0.204609675),
        (subsets(10, 0.5, 3), 0.038013, None),
        (subsets(6, 0.5, 2), 0.059264714, None),
    ],
    ids=["GRR 1", "GRR 4", "OUE", "SS", "SS .5", "SS 6"],
)
def test_uniform_priors_give_the_catalogue(channel, blind, member):
    prior = Prior.uniform(channel.size)
    assert advantage(channel, Threat(prior)).value == near(blind)
    if member is not None:
        assert advantage(channel, Threat.membership(prior)).value == near(member)


def test_randomised_response_has_one_value_for_every_prior_and_threshold():
    channel, pmf = response(3, 1), np.array([0.8, 0.1, 0.1])
    gap = channel.matrix[0, 0] - channel.matrix[0, 1]
    prior = Prior(3, pmf)
    assert advantage(channel, Threat(prior)).value == near(0.123820)
    lost = sum(
        pmf[t]
        * min(pmf[max(0, g - 1) : g + 2].sum() for g in range(3) if abs(g - t) <= 1)
        for t in range(3)
    )
    value = advantage(channel, Threat(prior, ETA_1)).value
    assert value == near(gap * (1 - lost), 1e-12)


def people():
    """Age and disease of one person, and randomised response on the disease."""
    records = [("young", 1), ("young", 0), ("old", 1), ("old", 0)]
    prior = Prior(records, [0.1, 0.4, 0.3, 0.2])
    bit = response(2, 1).matrix
    return prior, Channel([bit[1 - disease] for _, disease in records], records)


def test_an_analyst_who_knows_the_age_learns_the_bit():
    prior, channel = people()
    known = Threat.attribute(prior, target=lambda r: r[1], known=lambda r: r[0])
    assert advantage(channel, known).value == near(0.221816235, 1e-9)
    assert advantage(channel, Threat(prior)).value == near(0.157119833, 1e-9)


def test_uniform_collision_of_eight_is_an_eighth():
    assert Prior.uniform(8).collision == 0.125


@pytest.mark.parametrize(
    ("eta", "best", "worst"), [(40, 0.801980, 0.405941), (80, 1.0, 0.801980)]
)
def test_baselines_of_hours_per_week(eta, best, worst):
    threat = Threat(Prior.uniform(101), Success.within("absolute", eta))
    assert (threat.best_guess, threat.worst_guess) == (near(best), near(worst))


def test_T_3_1_baselines_of_three_records():
    threat = Threat(SKEWED)
    found = (threat.collision, threat.best_guess, threat.worst_guess)
    assert found == near((0.38, 0.5, 0.2), 1e-12)


@pytest.mark.parametrize(("eta", "best", "worst"), [(1, 0.6, 0.4), (4, 1.0, 1.0)])
def test_T_3_2_baselines_of_a_path(eta, best, worst):
    hops = np.abs(np.subtract.outer(range(5), range(5)))
    threat = Threat(Prior.uniform(5), Success.hops(hops, eta))
    assert (threat.best_guess, threat.worst_guess) == (near(best), near(worst))


def test_T_3_4_baselines_of_two_likely_records():
    threat = Threat(Prior(8, [0.35, 0.35] + [0.05] * 6))
    found = (threat.collision, threat.best_guess, threat.worst_guess)
    assert found == near((0.26, 0.35, 0.05), 1e-12)


def figures(channel, threat, decision):
    found = attack_risk(channel, threat, decision=decision)
    return found.success, found.correction, found.advantage


def test_T_4_1_report_attack_on_randomised_response():
    report = Decision([[0], [1], [2]])
    found = figures(response(3, math.log(4)), Threat(SKEWED), report)
    assert found == near((0.6666666667, 0.3566666667, 0.31), 1e-9)


def test_T_4_2_the_attack_of_best_success_is_not_that_of_best_advantage():
    channel, threat = response(3, math.log(2)), Threat(SKEWED)
    report, posterior = Decision([[0], [1], [2]]), Decision([[0], [1], [0]])
    assert figures(channel, threat, report) == near((0.5, 0.345, 0.155), 1e-12)
    assert figures(channel, threat, posterior) == near((0.525, 0.435, 0.09), 1e-12)
    assert success_rate(channel, threat).value == near(0.525, 1e-12)
    assert advantage(channel, threat).value == near(0.155, 1e-12)


def toy():
    records = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    prior = Prior(records, [0.4, 0.1, 0.1, 0.4])
    return Threat.attribute(prior, target=lambda r: r[1], known=lambda r: r[0])


@pytest.mark.parametrize(
    ("odds", "report", "posterior"),
    [(3, (0.75, 0.5, 0.25), (0.8, 0.8, 0.0)), (9, (0.9, 0.5, 0.4), (0.9, 0.5, 0.4))],
)
def test_T_4_3_imputation_succeeds_and_learns_nothing(odds, report, posterior):
    threat, bit = toy(), response(2, math.log(odds)).matrix
    channel = Channel([bit[s] for _, s in threat.support], threat.support)
    impute = Decision.ignoring_output([0, 1], outputs=2)
    assert figures(channel, threat, impute) == near((0.8, 0.8, 0.0), 1e-12)
    assert figures(channel, threat, Decision([[0, 0], [1, 1]])) == near(report, 1e-12)
    best = Decision.largest_posterior(channel, threat)
    assert figures(channel, threat, best) == near(posterior, 1e-12)
    assert advantage(channel, threat).value == near(report[2], 1e-12)


def test_T_4_4_naming_the_known_record_always_succeeds_and_learns_nothing():
    always = Decision.ignoring_output([0, 1, 2], outputs=3)
    found = figures(P3, Threat.membership(SKEWED), always)
    assert found == near((1.0, 1.0, 0.0), 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "least", "expected"),
    [
        (math.log(4), 0.0, (0.7626666667, 0.5419666667, 0.2207)),
        (math.log(4), 0.5, (0.6585, 0.61142, 0.04708)),
        (3.0, 0.0, (0.9355234149, 0.5540812056, 0.3814422093)),
        (3.0, 0.5, (0.6981939303, 0.6168242011, 0.0813697291)),
    ],
)
def test_T_4_5_guessing_the_next_place_from_the_last(epsilon, least, expected):
    steps = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]])
    start, places = np.array([0.5, 0.3, 0.2]), range(3)
    records = list(itertools.product(places, places))
    prior = Prior(records, (start[:, None] * steps).ravel())
    threat = Threat.attribute(prior, target=lambda r: r[1], known=lambda r: r[0])
    seen = response(3, epsilon).matrix
    channel = Channel([seen[b] for _, b in records], records)
    table = np.zeros((3, 3, 9))
    for t, a, b in itertools.product(places, places, places):
        plausible = steps[a, t] > least
        table[t, a, 3 * a + b] = float(b == t) if plausible else steps[a, b]
    assert figures(channel, threat, Decision(table)) == near(expected, 1e-9)
    # Reporting the output attains the bound by total variation on the current place.
    bound = (seen[0, 0] - seen[0, 1]) * (1 - 0.3862)
    report = Decision.reporting(threat, outputs=3)
    assert figures(channel, threat, report)[2] == near(bound, 1e-9)
    assert advantage(channel, threat).value == near(bound, 1e-9)


def test_T_4_6_the_majority_of_four_reports():
    answers = list(itertools.product((0, 1), repeat=4))
    truth = response(2, math.log(3)).matrix
    rows = [
        [
            np.prod([truth[x, y] for x, y in zip((0, 0, 1, z), seen, strict=True)])
            for seen in answers
        ]
        for z in (0, 1)
    ]
    majority = Decision([[int(sum(seen) > 2)] for seen in answers])
    found = figures(Channel(rows), Threat(Prior(2, [0.7, 0.3])), majority)
    assert found == near((0.69609375, 0.63375, 0.06234375), 1e-12)


def test_RE2_equation_5_12_sums_over_truths_and_not_over_outputs():
    pmf, P = SKEWED.pmf, P3.matrix
    gains = pmf[:, None] * (P - pmf @ P)
    hits = ETA_1.matrix(range(3)).astype(float)
    printed = sum(  # a guess near the output takes all its gains, others none
        max(hits[g, t] * gains[:, t].sum() for g in range(3)) for t in range(3)
    )
    assert printed == near(0.0, 1e-12)
    assert advantage(P3, Threat(SKEWED, ETA_1)).value == near(0.174, 1e-9)


def test_RE3_an_attack_is_conditioned_on_what_is_known_and_not_on_the_target():
    pmf, P = SKEWED.pmf, P3.matrix
    gains = pmf[:, None] * (P - pmf @ P)
    seeing_the_target = np.maximum(gains, 0).sum()
    assert seeing_the_target == near(0.248, 1e-12)
    assert advantage(P3, Threat(SKEWED)).value == near(0.242, 1e-9)


def test_RE4_a_point_mass_and_not_two_points_maximises_the_collision():
    assert Prior.two_point(4, (0, 1)).collision == 0.5
    assert Prior(4, [1, 0, 0, 0]).collision == 1.0
    assert Prior.uniform(4).collision == 0.25


def test_RE5_two_points_are_not_the_worst_prior_of_randomised_response():
    pair, even = Prior.two_point(10, (0, 1)), Prior.uniform(10)
    values = [advantage(response(10, 1), Threat(prior)).value for prior in (pair, even)]
    assert values == near([0.073316, 0.131969])


def test_RE9_the_uniform_formula_subtracts_one_once():
    P = P3.matrix
    printed = (P.max(axis=0) - 1).sum() / 3
    assert printed < 0
    value = advantage(P3, Threat(Prior.uniform(3))).value
    assert value == near((P.max(axis=0).sum() - 1) / 3, 1e-12)


def test_RE19_success_is_on_the_sensitive_attribute_and_not_on_the_known_one():
    prior, channel = people()
    printed = Threat.attribute(prior, target=lambda r: r[0], known=lambda r: r[0])
    assert success_rate(channel, printed).value == near(1.0, 1e-12)
    correct = Threat.attribute(prior, target=lambda r: r[1], known=lambda r: r[0])
    assert success_rate(channel, correct).value < 0.9


def test_RE22_the_best_attack_maximises_the_gain_and_not_the_posterior():
    channel, threat = response(3, 1), Threat(Prior(3, [0.8, 0.1, 0.1]))
    posterior = Decision.largest_posterior(channel, threat)
    gain = OptimalAttack(channel, threat).decision()
    assert posterior.table[:, 0].tolist() == [0, 0, 0]
    assert gain.table[:, 0].tolist() == [0, 1, 2]


def fine_laplace(m, epsilon=1.0, cells=400):
    """Laplace noise on m points of [0, 1], the output cut into cells."""
    edges = np.linspace(-3.0, 4.0, cells - 1)
    offset = edges[None, :] - np.linspace(0, 1, m)[:, None]
    tail = np.exp(-epsilon * np.abs(offset)) / 2
    cdf = np.where(offset < 0, tail, 1 - tail)
    ends = np.hstack([np.zeros((m, 1)), cdf, np.ones((m, 1))])
    return Channel(np.clip(np.diff(ends, axis=1), 0, None))


def test_RE23_exact_reconstruction_vanishes_on_fine_data_unless_the_record_is_known():
    blind, member = [], []
    for m in (10, 100, 1000):
        channel, prior = fine_laplace(m), Prior.uniform(m)
        blind.append(advantage(channel, Threat(prior)).value)
        member.append(advantage(channel, Threat.membership(prior)).value)
    assert blind[2] < blind[1] / 5 < blind[0] / 25
    assert min(member) > 0.1


def test_RE29_equation_5_13_is_no_bound_for_attributes():
    prior, channel = people()
    target = Threat.attribute(prior, target=lambda r: r[1])
    printed = exact_shortcut(channel, target)
    assert printed == near(0.157120)
    assert advantage(channel, target).value == near(0.221816)


def exact_shortcut(channel, threat):
    """Equation 5.13: the largest single gain of each fibre, or none."""
    pmf, P = threat.prior.pmf, channel.matrix
    gains = pmf[:, None] * (P - pmf @ P)
    best = [gains[fibre].max(axis=0) for fibre in threat.fibres]
    return float(np.maximum(best, 0).sum())


def test_trap_r01_the_maximum_posterior_learns_nothing_under_a_skewed_prior():
    channel, threat = response(3, 1), Threat(Prior(3, [0.8, 0.1, 0.1]))
    posterior = Decision.largest_posterior(channel, threat)
    assert figures(channel, threat, posterior) == near((0.8, 0.8, 0.0), 1e-12)
    success, _, gained = figures(
        channel, threat, OptimalAttack(channel, threat).decision()
    )
    assert (success, gained) == near((0.576117, 0.123820))


def test_trap_r03_success_is_not_risk():
    far = Threat(SKEWED, ETA_2)
    assert success_rate(P3, far).value == near(1.0, 1e-12)
    assert advantage(P3, far).value == 0.0
    assert success_rate(P3, Threat.membership(SKEWED)).value == near(1.0, 1e-12)


def test_trap_r06_an_uneven_prior_can_be_worse_than_even_and_two_points():
    channel = unary(4, 1)
    even = advantage(channel, Threat(Prior.uniform(4))).value
    pair = advantage(channel, Threat(Prior.two_point(4, (0, 1)))).value
    uneven = max(
        advantage(channel, Threat(Prior(4, [big, *3 * [(1 - big) / 3]]))).value
        for big in np.linspace(0.25, 0.5, 26)
    )
    assert (even, pair) == (near(0.130866), near(0.115529))
    assert even < uneven <= 0.136302


def test_trap_r08_knowing_the_record_leaves_risk_where_exact_guesses_are_hopeless():
    channel, prior = fine_laplace(500), Prior.uniform(500)
    assert advantage(channel, Threat(prior)).value < 0.003
    assert advantage(channel, Threat.membership(prior)).value > 0.1


def test_trap_r09_the_membership_formula_needs_a_way_to_say_no():
    known = Threat(SKEWED, ETA_1, Knowledge.full())
    gains = SKEWED.pmf[:, None] * (P3.matrix - SKEWED.pmf @ P3.matrix)
    assert np.maximum(gains, 0).sum() == near(0.248, 1e-12)
    assert advantage(P3, known).value == near(0.194, 1e-9)
    free = Threat(SKEWED, ETA_1, Knowledge.full(), abstain=True)
    assert advantage(P3, free).value == near(0.248, 1e-9)


def test_trap_r20_clamping_the_output_never_raises_the_advantage():
    channel = fine_laplace(11, epsilon=4.0)
    ends = np.clip(np.arange(channel.outputs), 180, 220) - 180
    clamped = channel.post_process(np.eye(41)[ends])
    for threat in (Threat(Prior.uniform(11)), Threat.membership(Prior.uniform(11))):
        assert advantage(clamped, threat).value < advantage(channel, threat).value


def test_trap_r23_the_other_record_is_drawn_from_the_whole_prior():
    known = Threat(SKEWED, knowledge=Knowledge.from_labels([0, 0, 1]))
    fibrewise = 0.0
    for fibre in known.fibres:
        pmf, P = SKEWED.pmf[fibre], P3.matrix[fibre]
        gains = pmf[:, None] * (P - pmf @ P / pmf.sum())
        fibrewise += np.maximum(gains.max(axis=0), 0).sum()
    assert fibrewise == near(0.15, 1e-12)
    assert advantage(P3, known).value == near(0.248, 1e-9)


def test_trap_r25_transposed_hits_give_a_number_that_a_mechanism_exceeds():
    hits = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1]])
    prior, epsilon = Prior(3, [0.624, 0.241, 0.135]), 2.0

    def bound(success):  # Proposition 5.13, pure
        threat = Threat(prior, Success.from_matrix(success))
        return min(
            threat.best_guess * math.expm1(epsilon),
            (1 - threat.worst_guess) * -math.expm1(-epsilon),
            math.tanh(epsilon / 2) * (1 - threat.collision),
        )

    worst = worst_mechanism(prior, hits, epsilon)
    reached = advantage(worst, Threat(prior, Success.from_matrix(hits))).value
    assert reached == near(0.293220)
    assert bound(hits) == near(0.406933)
    assert bound(hits.T) == near(0.208384)


@pytest.mark.parametrize(
    ("epsilon", "exact", "shortcut"), [(1, 0.150245, 0.225367), (2, 0.307490, 0.461235)]
)
def test_trap_r26_the_shortcut_is_too_high_where_no_answer_says_no(
    epsilon, exact, shortcut
):
    records = list(itertools.product("uv", (0, 1)))
    threat = Threat.attribute(
        Prior.uniform(records), target=lambda r: r[1], known=lambda r: r[0]
    )
    channel = response(4, epsilon)
    assert advantage(channel, threat).value == near(exact)
    assert exact_shortcut(channel, threat) == near(shortcut)
