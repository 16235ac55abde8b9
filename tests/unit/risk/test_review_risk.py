"""Extreme and malformed input of the risk modules, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.numeric.array import complements, disagreement, read_floats
from undertow.privacy import Pure
from undertow.risk.bounds import (
    Baselines,
    calibrate_sgd,
    composed_bound,
    exact_guess_bound,
    pairwise_variation_bound,
    program_bound,
    projected_variation_bound,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    uniform_prior_bound,
    uniform_tradeoff_bound,
    variation_bound,
    variation_epsilon_bound,
    variation_matrix,
)
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import Decision, OptimalAttack, attack_risk
from undertow.risk.selector import best_bound, calibrate_black_box
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat, estimate_collision

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


@pytest.mark.parametrize(
    "size", [3, 7, 49, 1000, pytest.param(10**5, marks=pytest.mark.slow)]
)
def test_baselines_never_round_the_collision_probability_up(size):
    rng = np.random.default_rng(size)
    for masses in (np.full(size, 1 / size), rng.dirichlet(np.ones(size))):
        prior = Prior(size, masses)
        known = Baselines.of(Threat(prior))
        exact = [Fraction(float(mass)) for mass in prior.pmf]
        truth = sum(p * p for p in exact) / sum(exact) ** 2
        assert truth * (1 - Fraction(1, 10**12)) <= Fraction(known.collision) <= truth
        assert Fraction(variation_bound(1.0, collision=known.collision).value) >= (
            1 - truth
        )


def test_gains_that_underflow_are_not_reported_as_none():
    prior = Prior(2, [1.0, 1e-310])
    channel = Channel([[0.5, 0.5], [0.5 + 2.0**-53, 0.5 - 2.0**-53]])
    assert advantage(channel, Threat(prior)).value > 0


def test_columns_stored_one_by_one_do_not_change_the_row_sums():
    # Added up in the order of the columns, every small entry is rounded up.
    count = 200_000
    small = 1.5 * 2.0**-54
    row = np.full(count + 2, small)
    row[0], row[-1] = 0.625, 0.375 - count * small
    assert math.fsum(row) == 1.0
    matrix = np.asfortranarray(np.stack([row, row[::-1]]))
    channel = Channel(matrix)
    assert np.abs(channel.matrix - matrix).max() < 1e-14


@pytest.mark.parametrize("collision", [0.0, 0.1, 0.38, 0.5])
def test_an_observed_advantage_close_to_the_ceiling_gives_no_excess(collision):
    room = Fraction(1) - Fraction(collision)
    observed = math.nextafter(float(room), 0.0)
    for _ in range(40):
        observed = math.nextafter(observed, 0.0)
        g = mpmath.mpf(observed) / (1 - mpmath.mpf(collision))
        with mpmath.workdps(60):
            g = mpmath.mpf(observed) / (1 - mpmath.mpf(collision))
            truth = mpmath.log((1 + g) / (1 - g))
            truth = max(truth, 4 * mpmath.atanh(observed))
        found = variation_epsilon_bound(observed, collision=collision).value
        assert truth * (1 - mpmath.mpf(10) ** -12) <= found <= truth


@pytest.mark.parametrize("size", [2, 3, 10, 99_999])
def test_a_nearly_certain_guess_gives_no_excess_of_epsilon(size):
    observed = math.nextafter(1.0 - 1.0 / size, 0.0)
    for _ in range(40):
        observed = math.nextafter(observed, 0.0)
        with mpmath.workdps(60):
            gamma = mpmath.mpf(observed)
            top, left = 1 + gamma * size, 1 - gamma * size / (size - 1)
            truth = mpmath.log(top / left)
        found = uniform_guess_epsilon_bound(observed, size).value
        assert truth * (1 - mpmath.mpf(10) ** -12) <= found <= truth


@pytest.mark.parametrize("observed", [0.0, -0.2, -1.0])
def test_an_audit_that_saw_no_advantage_bounds_epsilon_by_zero(observed):
    assert variation_epsilon_bound(observed).value == 0.0
    assert variation_epsilon_bound(observed, collision=1.0).value == 0.0
    assert uniform_guess_epsilon_bound(observed, 5, delta=0.1).value == 0.0


def test_a_failed_solver_is_not_called_tight(monkeypatch):

    def failed(columns, gains):
        return np.zeros(len(columns)), np.zeros(columns.shape[1])

    assert program_bound(1.0, [0.5, 0.3, 0.2]).tight is True
    monkeypatch.setattr("undertow.risk.bounds.baselines._solve", failed)
    bound = program_bound(1.0, [0.5, 0.3, 0.2])
    assert bound.tight is None
    assert bound.value >= 0.2


def test_a_prior_that_is_short_of_one_is_scaled_in_the_bounds():
    short = np.array([0.5, 0.3, 0.2]) * (1 - 9e-10)
    for bound in (
        lambda prior: exact_guess_bound(Pure(1), prior),
        lambda prior: program_bound(1.0, prior),
        lambda prior: pairwise_variation_bound(np.full((3, 3), 0.4), prior),
    ):
        full = bound([0.5, 0.3, 0.2]).value
        assert bound(short).value == pytest.approx(full, rel=1e-13)


def test_a_target_at_the_rounded_ceiling_is_not_called_never_binding():
    # 1 - 0.3 rounds down as a float: it is below the largest advantage there is.
    assert Fraction(1.0 - 0.3) < 1 - Fraction(0.3)
    threat = Baselines(0.3, 0.5, 0.1)
    assert calibrate_black_box(1.0 - 0.3, threat).value < math.inf
    assert calibrate_black_box(0.7000000000000001, threat).value == math.inf


def test_whole_numbers_that_a_float_merges_are_refused_on_a_line():
    stamps = [2**53, 2**53 + 1, 2**53 + 2]
    rule = Success.within("absolute", 0)
    with pytest.raises(ModelError, match=r"beyond 2\^53; subtract a common offset"):
        rule.matrix(stamps)
    with pytest.raises(ModelError, match="subtract"):
        rule.matrix(list(np.array(stamps, dtype=np.int64)))
    moved = [stamp - stamps[0] for stamp in stamps]
    assert rule.matrix(moved).tolist() == np.eye(3, dtype=bool).tolist()


def test_a_distance_that_is_no_number_is_refused_instead_of_a_miss():
    rule = Success.within(lambda g, x: 0.0 if g == x else math.nan, 1)
    with pytest.raises(ModelError, match="distances must be a table of non-negative"):
        rule.matrix([1, 2])
    with pytest.raises(ModelError, match="distances must be a table of non-negative"):
        Success.within(lambda g, x: "near", 1).matrix([1, 2])
    unequal = Success.within(lambda g, x: g != x, 0)
    assert unequal.matrix([1, 2]).tolist() == [[True, False], [False, True]]
    third = Success.within(lambda g, x: abs(Fraction(g - x, 3)), 0.5)
    assert third.matrix([1, 2, 3])[0].tolist() == [True, True, False]


def test_runs_on_a_line_agree_with_a_table_of_hits_in_every_fibre():
    records = list(range(600))
    threat = Threat(
        Prior.uniform(600),
        Success.within("absolute", 2),
        Knowledge.from_labels([r // 4 for r in records]),
    )
    rng = np.random.default_rng(4)
    channel = Channel(rng.dirichlet(np.ones(5), size=600))
    hits = threat.success.matrix(records)
    general = Threat(threat.prior, Success.from_matrix(hits), threat.knowledge)
    found = advantage(channel, threat).value
    assert found == pytest.approx(advantage(channel, general).value, abs=1e-12)


def test_hypotheses_that_the_caller_declares_are_not_called_checked():
    read = best_bound(Pure(1), Threat(Prior.uniform(4))).best
    declared = best_bound(
        Pure(1), Baselines(0.25, 0.25, 0.25, exact=True, pmf=(0.25,) * 4)
    ).best
    assert read.value == pytest.approx(declared.value, rel=1e-12)
    assert "no knowledge" in read.checked
    assert "no knowledge" not in declared.checked
    assert any("knows nothing" in text for text in declared.unchecked)
    assert not any("knows nothing" in text for text in read.unchecked)


def test_the_attack_is_tabulated_in_blocks(monkeypatch):

    rng = np.random.default_rng(8)
    channel = Channel(rng.dirichlet(np.ones(9), size=5))
    threat = Threat(Prior.uniform(5), abstain=True)
    whole = OptimalAttack(channel, threat).decision().table
    monkeypatch.setattr("undertow.risk.finite._BLOCK", 10)
    assert OptimalAttack(channel, threat).decision().table.tolist() == whole.tolist()


SENTENCES = {
    "an attribute that is nan": (
        lambda: Success.attribute(lambda record: math.nan).matrix([1, 2]),
        ModelError,
        "never nan",
    ),
    "an unhashable attribute": (
        lambda: Success.attribute(lambda record: [record]).matrix([1, 2]),
        ModelError,
        "an attribute must be hashable",
    ),
    "a stream that is no function": (
        lambda: ChannelStream(np.eye(2), 2),
        TypeError,
        "source must be callable",
    ),
    "a row that does not sum to one": (
        lambda: Channel([[0.5, 0.4], [0.5, 0.5]]),
        ModelError,
        "every row must be non-negative and sum to 1",
    ),
    "a channel of text": (
        lambda: Channel([["a", "b"]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "an uneven channel": (
        lambda: Channel([[1.0], [0.5, 0.5]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "a channel of truth values": (
        lambda: Channel([[True, False]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "an empty channel": (lambda: Channel([]), ModelError, "matrix must have two axes"),
    "a channel with nan": (
        lambda: Channel([[math.nan, 1.0]]),
        ModelError,
        "every row must be",
    ),
    "a negative prior": (
        lambda: Prior(2, [1.5, -0.5]),
        ModelError,
        "pmf must be non-negative",
    ),
    "a prior of text": (
        lambda: Prior(2, ["0.5", "0.5"]),
        ModelError,
        "pmf must be an array of numbers",
    ),
    "a prior of truth values": (
        lambda: Prior(2, [True, False]),
        ModelError,
        "pmf must be an array of numbers",
    ),
    "a prior with nan": (
        lambda: Prior(2, [math.nan, 1.0]),
        ModelError,
        "pmf must be non-negative",
    ),
    "a prior beyond the floats": (
        lambda: Prior(2, [1e308, 1e308]),
        ModelError,
        "pmf must be non-negative",
    ),
    "counts beyond the floats": (
        lambda: Prior.from_counts({"a": 1e308, "b": 1e308}),
        ModelError,
        "counts must be finite",
    ),
    "counts of text": (
        lambda: Prior.from_counts({"a": "x"}),
        ModelError,
        "counts must be an array of numbers",
    ),
    "a support that is a truth value": (
        lambda: Prior.uniform(True),
        ModelError,
        "support must be hashable records",
    ),
    "unhashable records": (
        lambda: Prior([[1], [2]], [0.5, 0.5]),
        ModelError,
        "support must be hashable records",
    ),
    "a support of fractional size": (
        lambda: Prior.uniform(2.5),
        ModelError,
        "support must be hashable records",
    ),
    "a pair of three": (
        lambda: Prior.two_point(3, (0, 1, 2)),
        ModelError,
        "pair must hold two",
    ),
    "counts of words": (
        lambda: estimate_collision(["a"]),
        ValueError,
        "counts must be an array of numbers",
    ),
    "labels of another length": (
        lambda: Knowledge.from_labels([1, 2]).labels("abc"),
        MismatchError,
        "labels must be one for each of the 3 records, got 2",
    ),
    "a label that is nan": (
        lambda: Knowledge.from_labels([math.nan, 1.0]).labels("ab"),
        ModelError,
        "never nan",
    ),
    "an unhashable label": (
        lambda: Knowledge.from_labels([[1], [2]]).labels("ab"),
        ModelError,
        "knowledge must be a hashable value",
    ),
    "a single label": (
        lambda: Knowledge.from_labels(3),
        TypeError,
        "values must be one label per record",
    ),
    "uneven distances": (
        lambda: Success.hops([[0], [1, 0]], 1),
        ModelError,
        "distances must be a table",
    ),
    "records that are text on a line": (
        lambda: Success.within("absolute", 1).matrix(["1", "2"]),
        ModelError,
        "records must be finite numbers",
    ),
    "guesses that are no sequence": (
        lambda: Success.within("absolute", 1, guesses=3),
        TypeError,
        "guesses must be a sequence",
    ),
    "a table of words": (
        lambda: Decision([[["a"]]]),
        ModelError,
        "table must be whole numbers",
    ),
    "an uneven table": (
        lambda: Decision([[0], [1, 2]]),
        ModelError,
        "table must have rows of one length",
    ),
    "a bare table": (
        lambda: attack_risk(
            Channel(np.eye(2)), Threat(Prior.uniform(2)), decision=[[0], [1]]
        ),
        TypeError,
        "decision must be a Decision",
    ),
    "a prior for a threat": (
        lambda: best_bound(Pure(1), Prior.uniform(2)),
        TypeError,
        "threat must be a Threat",
    ),
    "an attack for a mechanism": (
        lambda: advantage(
            OptimalAttack(Channel(np.eye(2)), Threat(Prior.uniform(2))),
            Threat(Prior.uniform(2)),
        ),
        NotApplicable,
        "a finite channel must be",
    ),
    "a stream without blocks": (
        lambda: advantage(ChannelStream(lambda: 3, 2), Threat(Prior.uniform(2))),
        TypeError,
        "source must return an iterable",
    ),
    "a stream of text": (
        lambda: advantage(ChannelStream(lambda: ["ab"], 2), Threat(Prior.uniform(2))),
        ModelError,
        "a block must be an array of numbers",
    ),
    "a short stream": (
        lambda: advantage(
            ChannelStream(lambda: [[[0.5], [0.4]]], 2), Threat(Prior.uniform(2))
        ),
        ModelError,
        "off by 0.6",
    ),
    "hits that are words": (
        lambda: program_bound(1.0, [0.5, 0.5], hits=[["a", "b"]]),
        ValueError,
        "hits must be truth values",
    ),
    "a prior of words in a bound": (
        lambda: exact_guess_bound(Pure(1), ["a"]),
        ValueError,
        "prior must be an array of numbers",
    ),
    "an infinite prior in a bound": (
        lambda: exact_guess_bound(Pure(1), [math.inf, 0.0]),
        ValueError,
        "prior must be non-negative and sum to 1, got entries",
    ),
    "distances of words": (
        lambda: pairwise_variation_bound([["a"]], [1.0]),
        ValueError,
        "distances must be an array of numbers",
    ),
    "a channel of words in a bound": (
        lambda: variation_matrix("x"),
        ValueError,
        "channel must be an array of numbers",
    ),
    "one release without a list": (
        lambda: composed_bound(Pure(1)),
        TypeError,
        "releases must be a sequence",
    ),
    "an observed nan": (
        lambda: variation_epsilon_bound(math.nan),
        ValueError,
        "observed must be finite",
    ),
    "an observed truth value": (
        lambda: uniform_guess_epsilon_bound(True, 3),
        TypeError,
        "observed must be a number",
    ),
    "steps of words": (
        lambda: calibrate_sgd(1.0, "many", size=3),
        ValueError,
        "steps must be a whole number",
    ),
    "an unknown kind of knowledge": (
        lambda: calibrate_sgd(1.0, 3, size=3, knowledge="some"),
        ValueError,
        "knowledge must be one of",
    ),
    "a size beyond the floats": (
        lambda: uniform_guess_bound(Pure(1), 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
    "a size beyond the floats for the cap": (
        lambda: uniform_prior_bound(1.0, 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
    "a size beyond the floats for a curve": (
        lambda: uniform_tradeoff_bound(Pure(1), 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
}


@pytest.mark.parametrize("case", sorted(SENTENCES))
def test_bad_input_gets_one_clear_sentence(case):
    call, kind, words = SENTENCES[case]
    with pytest.raises(kind, match=words) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_one_record_has_no_risk_and_any_epsilon():
    for threat in (
        Threat(Prior.uniform(1)),
        Threat.membership(Prior.uniform(1)),
        Threat(Prior.uniform(1), abstain=True),
    ):
        assert advantage(Channel([[0.3, 0.7]]), threat).value == 0.0
        assert best_bound(Pure(1), threat).value <= 1e-15
        assert calibrate_black_box(0.1, threat).value == math.inf


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 700.0, 1e4, math.inf])
def test_every_row_is_a_number_at_extreme_levels(epsilon):
    for prior in (Prior.uniform(3), Prior(3, [1.0, 1e-300, 0.0])):
        for threat in (Threat(prior), Threat.membership(prior)):
            for row in best_bound(Pure(epsilon), threat).rows:
                assert row.value is None or 0.0 <= row.value <= 1.0


def test_numpy_integers_number_the_records():
    assert Prior.uniform(np.int64(4)).support == (0, 1, 2, 3)


def test_a_stream_may_list_its_records():
    stream = ChannelStream(lambda: [np.eye(2)], 2, ["a", "b"])
    assert advantage(stream, Threat(Prior.uniform("ab"))).value >= 0.5
    assert success_rate(stream, Threat(Prior.uniform("ab"))).value == 1.0


def test_read_floats_takes_fractions_and_refuses_mixed_text():
    assert read_floats([Fraction(1, 4), 1], "x").tolist() == [0.25, 1.0]
    with pytest.raises(ValueError, match="x must be an array of numbers"):
        read_floats([Fraction(1, 4), "1"], "x")


def test_complements_keep_the_digits_of_a_near_point_mass():
    assert complements(np.array([1e-20, 1.0])).tolist() == [1.0, 1e-20]
    assert disagreement(np.array([1e-20, 1.0])) == 2e-20
