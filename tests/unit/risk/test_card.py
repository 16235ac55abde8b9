"""Risk cards: the numbers, the words for each kind of threat, rounding up."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.risk.card import points, risk_card
from undertow.risk.channel import Channel
from undertow.risk.families import blh, gaussian, grr, laplace, olh, oue, she
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
PRIOR = Prior(3, [0.5, 0.3, 0.2])


def test_a_card_splits_success_into_what_taking_part_adds():
    card = risk_card(P3, Threat(PRIOR))
    assert card.advantage == pytest.approx(0.242, abs=1e-9)
    assert card.success_with - card.success_without == pytest.approx(0.242, abs=1e-9)
    assert card.baseline == pytest.approx(0.5)
    assert card.ceiling == pytest.approx(0.62)
    assert card.share == pytest.approx(0.242 / 0.62)
    assert card.exact
    others = {o.threat: o.advantage for o in card.others}
    assert others["the whole record known"] == pytest.approx(0.248, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.0"), (0.05, "5.0"), (0.0501, "5.1"), (0.25, "25.0"), (1e-9, "0.1")],
)
def test_points_are_rounded_up(value, shown):
    assert points(value) == shown
    assert float(shown) / 100 >= value - 1e-17


def test_the_words_follow_the_threat():
    hours = Prior.uniform(range(1, 12))
    family = laplace(range(1, 12))

    def says(threat, **options):
        return risk_card(
            family, threat, parameter=1.0, what="hours", **options
        ).sentence

    assert says(Threat(hours)) == (
        "A person's exact hours can be guessed 4.5 points more often because they took "
        "part."
    )
    assert "hours to within 3 can be" in says(
        Threat(hours, Success.within("absolute", 3))
    )
    assert "says 'took part'" in says(Threat.membership(hours))
    assert "A person's hours can be guessed" in says(
        Threat.attribute(hours, target=lambda h: h > 8)
    )
    assert "does not help this attacker to guess a person's hours to within 50" in says(
        Threat(hours, Success.within("absolute", 50))
    )
    table = Success.from_matrix(np.eye(11, dtype=bool))
    assert "hours to within the stated tolerance can be" in says(Threat(hours, table))
    gaps = np.abs(np.subtract.outer(range(11), range(11)))
    assert "hours to within 1.5 of the stated loss can be" in says(
        Threat(hours, Success.within(gaps, 1.5))
    )
    assert "hours to within 2 hops can be" in says(Threat(hours, Success.hops(gaps, 2)))
    attribute = risk_card(
        family, Threat.attribute(hours, target=lambda h: h > 8), parameter=1.0
    )
    assert attribute.sentence.startswith("A person's attribute can be guessed")


def test_a_bound_says_at_most_and_names_its_reason():
    card = risk_card(she(3), Threat(PRIOR), parameter=1.0)
    assert not card.exact
    assert "at most" in card.sentence
    assert "Theorem 5.2" in card.theorem
    assert card.success_with is None
    assert any("upper bound" in warning for warning in card.warnings)


def test_other_knowledge_and_other_thresholds_are_reported():
    hours = Prior.uniform(range(0, 101, 10))
    card = risk_card(
        LaplaceMechanism(25),
        Threat(hours, knowledge=Knowledge.attributes(lambda h: h > 50)),
        etas=[40],
    )
    named = [other.threat for other in card.others]
    assert named == ["no knowledge", "the whole record known", "a guess within 40"]
    plain = risk_card(LaplaceMechanism(25), Threat(hours))
    assert [o.threat for o in plain.others][1:] == [
        "a guess within 10",
        "a guess within 25",
    ]
    letters = risk_card(RandomizedResponse("abc", 1), Threat(Prior.uniform("abc")))
    assert [o.threat for o in letters.others] == ["the whole record known"]


def test_what_cannot_be_computed_for_another_threat_is_said():
    mixed = Prior([1, 2.5], [0.5, 0.5])
    card = risk_card(
        RandomizedResponse([1, 2.5], 1), Threat(mixed), etas=[float("0.1")]
    )
    assert all(other.advantage is not None for other in card.others)
    letters = Threat(Prior.uniform("ab"))
    refused = risk_card(RandomizedResponse("ab", 1), letters, etas=[1.0])
    assert refused.others[-1].advantage is None
    assert "finite numbers" in refused.others[-1].note


def test_warnings_name_what_is_taken_on_trust():
    card = risk_card(grr(5), Threat(Prior.uniform(5)), parameter=12.0)
    text = " ".join(card.warnings)
    for word in ("independent", "public", "replacing", "nearly all"):
        assert word in text


def test_a_card_is_a_result_object():
    card = risk_card(oue(4), Threat(Prior.uniform(4)), parameter=1.0, what="cell")
    assert json.loads(json.dumps(card.to_dict()))["points"] == "13.1"
    assert "RiskCard" in card.__rich__()
    assert "<table>" in card._repr_html_()
    assert card.success_without == pytest.approx(0.25)
    assert "oue with epsilon 1" in card.release


def test_a_parameter_belongs_to_a_family():
    with pytest.raises(TypeError, match="given for a family and only then"):
        risk_card(grr(3), Threat(PRIOR))
    with pytest.raises(TypeError, match="only then"):
        risk_card(P3, Threat(PRIOR), parameter=1.0)
    assert risk_card(gaussian(range(3)), Threat(PRIOR), parameter=2.0).advantage > 0


EXACT = [Fraction(1, 10), Fraction(1, 5), Fraction(1, 4), Fraction(3, 1000)]


@pytest.mark.parametrize("value", EXACT, ids=str)
def test_an_exact_advantage_is_not_rounded_up_twice(value):
    right = Fraction(1, 2) + value
    rows = [[float(right), float(1 - right)], [float(1 - right), float(right)]]
    card = risk_card(Channel(rows), Threat(Prior.uniform(2)))
    assert card.points == f"{float(100 * value):.1f}"
    assert f" {card.points} points" in card.sentence


def random_card(seed: int):
    """A channel of whole numbers over one divisor, whose risk is a fraction."""
    rng = np.random.default_rng(seed)
    records, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    rows = rng.integers(0, 9, (records, outputs))
    rows[:, 0] += 1
    weights = rng.integers(1, 9, records)
    if seed % 5 == 0:
        weights[1:] = 0  # a point mass
    channel = [[Fraction(int(x), int(row.sum())) for x in row] for row in rows]
    prior = [Fraction(int(w), int(weights.sum())) for w in weights]
    return channel, prior


@pytest.mark.parametrize("seed", range(40))
def test_a_card_agrees_with_itself_and_with_the_exact_risk(seed):
    channel, prior = random_card(seed)
    m = len(prior)
    mean = [
        sum(prior[x] * channel[x][o] for x in range(m)) for o in range(len(channel[0]))
    ]
    exact = sum(
        max(prior[x] * (channel[x][o] - mean[o]) for x in range(m))
        for o in range(len(mean))
    )
    exact = max(exact, Fraction(0))
    rows = [[float(p) for p in row] for row in channel]
    threat = Threat(Prior(m, [float(p) for p in prior]))
    card = risk_card(Channel(rows), threat)
    shown = Fraction(card.points) / 100
    assert shown >= exact * (1 - Fraction(1, 10**11))
    assert shown < exact + Fraction(1, 1000)
    assert card.advantage == pytest.approx(float(exact), abs=1e-11)
    assert 0 <= card.advantage <= card.ceiling + 1e-12
    assert card.share <= 1
    assert card.ceiling == pytest.approx(
        float(1 - sum(p * p for p in prior)), abs=1e-11
    )
    if card.success_with is not None:
        gain = card.success_with - card.success_without
        assert gain == pytest.approx(card.advantage, abs=1e-11)
    learns = "nearly all that there is" in " ".join(card.warnings)
    nothing = "nothing to learn" in " ".join(card.warnings)
    assert not (learns and nothing)
    assert nothing == (card.ceiling == 0)
    if card.ceiling == 0:
        assert card.points == "0.0"
        assert "does not help" in card.sentence
        assert all(other.advantage == 0 for other in card.others)
    elif learns:
        assert card.share > 0.99


@pytest.mark.parametrize("family", [olh, blh])
def test_a_card_names_the_hash_it_takes_on_trust(family):
    card = risk_card(family(10), Threat(Prior.uniform(10)), parameter=1.0)
    assert any("the hash is ideal" in words for words in card.warnings)
    plain = risk_card(grr(10), Threat(Prior.uniform(10)), parameter=1.0)
    assert not any("hash" in words for words in plain.warnings)


def test_points_read_a_float_as_it_is_written():
    assert [points(x) for x in (0.05, 0.07, 0.1, 0.3)] == ["5.0", "7.0", "10.0", "30.0"]
    assert points(0.05 * (1 + 1e-12)) == "5.1"


def test_a_card_speaks_of_its_own_attacker_only():
    hours = Prior.uniform(range(11))
    family = laplace(range(11))
    blind = Threat(hours, Success.within("absolute", 50))
    said = risk_card(family, blind, parameter=1.0, what="hours").sentence
    assert said == (
        "Taking part does not help this attacker to guess a person's hours to within "
        "50."
    )
    night = Knowledge.attributes(lambda h: h > 5, summary="whether it is night")
    said = risk_card(family, Threat(hours, knowledge=night), parameter=1.0).sentence
    assert "guessed by somebody who knows whether it is night" in said
    counted = Prior(list(np.arange(11)), np.full(11, 1 / 11))
    named = [o.threat for o in risk_card(family, Threat(counted), parameter=1.0).others]
    assert "a guess within 2.5" in named
