"""The exact engine: special cases, streams, refusals and what a result says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import Risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])


def random_channel(records, outputs, seed):
    rng = np.random.default_rng(seed)
    prior = Prior(records, rng.dirichlet(np.ones(records)))
    return Channel(rng.dirichlet(np.full(outputs, 0.3), size=records)), prior


def dense_advantage(channel, threat):
    """The formula as it stands, with the whole matrix of hits."""
    pmf, laws = threat.prior.pmf, channel.matrix
    hits = threat.success.matrix(threat.support).astype(float)
    gains = pmf[:, None] * (laws - pmf @ laws)
    total = 0.0
    for fibre in threat.fibres:
        best = (hits[:, fibre] @ gains[fibre]).max(axis=0)
        total += (np.maximum(best, 0) if threat.abstain else best).sum()
    return total


THREATS = {
    "exact": lambda p: Threat(p),
    "membership": Threat.membership,
    "fibres": lambda p: Threat(p, knowledge=Knowledge.attributes(lambda r: r % 5)),
    "attribute": lambda p: Threat.attribute(p, target=lambda r: r % 3),
    "attribute, known": lambda p: Threat.attribute(
        p, target=lambda r: r % 3, known=lambda r: r // 4
    ),
    "line": lambda p: Threat(p, Success.within("absolute", 4)),
    "line, full": lambda p: Threat(p, Success.within("absolute", 20), Knowledge.full()),
    "line, guesses": lambda p: Threat(
        p,
        Success.within("absolute", 1, guesses=[0.5, 7.5, -9]),
        Knowledge.attributes(lambda r: r > 9),
    ),
    "hops, may decline": lambda p: Threat(
        p,
        Success.hops(np.abs(np.subtract.outer(range(30), range(30))), 25),
        Knowledge.attributes(lambda r: r % 2),
        abstain=True,
    ),
}


@pytest.mark.parametrize("name", THREATS)
def test_every_way_of_adding_gives_the_dense_formula(name):
    channel, prior = random_channel(30, 40, 3)
    threat = THREATS[name](prior)
    value = advantage(channel, threat).value
    assert value == pytest.approx(dense_advantage(channel, threat), abs=1e-12)
    assert value > 1e-3


@pytest.mark.parametrize("name", THREATS)
def test_narrow_blocks_and_streams_change_nothing(name, monkeypatch):
    channel, prior = random_channel(30, 40, 4)
    threat = THREATS[name](prior)
    whole, rate = advantage(channel, threat).value, success_rate(channel, threat).value
    stream = ChannelStream(lambda: np.array_split(channel.matrix, 7, axis=1), 30)
    assert advantage(stream, threat).value == pytest.approx(whole, abs=1e-13)
    monkeypatch.setattr("undertow.risk.finite._HELD", 64)
    assert advantage(channel, threat).value == pytest.approx(whole, abs=1e-13)
    assert success_rate(stream, threat).value == pytest.approx(rate, abs=1e-13)


def test_the_value_is_raised_and_by_no_more_than_its_rounding():
    value = advantage(Channel(P), Threat(SKEWED)).value
    assert 0.242 <= value <= 0.242 + 1e-14


def test_what_a_short_stream_lacks_is_added():
    short = P.copy()
    short[0, 0] -= 5e-10
    value = advantage(ChannelStream(lambda: [short], 3), Threat(SKEWED)).value
    assert 0.242 <= value <= 0.242 + 2e-9


def test_an_output_that_says_nothing_is_worth_exactly_nothing():
    flat = Channel(np.tile([0.1, 0.2, 0.7], (3, 1)))
    for threat in (Threat(SKEWED), Threat.membership(SKEWED)):
        assert advantage(flat, threat).value == 0.0


def test_columns_need_to_be_constant_on_possible_records_only():
    prior = Prior(3, [0.5, 0.5, 0.0])
    channel = Channel([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    assert advantage(channel, Threat.membership(prior)).value == 0.0


def test_a_point_mass_leaves_nothing_to_learn():
    prior = Prior(3, [0.0, 1.0, 0.0])
    assert advantage(Channel(P), Threat.membership(prior)).value == 0.0
    assert advantage(Channel(np.eye(3)), Threat(prior)).value == 0.0


@pytest.mark.parametrize("knowledge", [Knowledge.none(), Knowledge.full()])
def test_a_threshold_beyond_the_diameter_leaves_exactly_nothing(knowledge):
    threat = Threat(SKEWED, Success.within("absolute", 2), knowledge)
    assert advantage(Channel(P), threat).value == 0.0
    table = Threat(SKEWED, Success.from_matrix(np.ones((3, 3))), knowledge)
    assert advantage(Channel(P), table).value == 0.0


def test_declining_matters_once_something_is_known():
    threat = Threat(
        SKEWED, Success.within("absolute", 2), Knowledge.full(), abstain=True
    )
    assert advantage(Channel(P), threat).value == pytest.approx(0.248, abs=1e-9)


def test_one_record_cannot_be_denied():
    single = Prior(1, [1.0])
    assert advantage(Channel([[0.5, 0.5]]), Threat.membership(single)).value == 0.0
    assert success_rate(Channel([[0.5, 0.5]]), Threat(single)).value == 1.0


def test_full_disclosure_reaches_the_ceiling_and_not_beyond():
    risk = advantage(Channel(np.eye(3)), Threat(SKEWED))
    assert risk.value == pytest.approx(0.62, abs=1e-12)
    assert risk.value <= risk.ceiling
    assert risk.share == pytest.approx(1.0, abs=1e-12)
    assert Risk(0.0, "none", ceiling=0.0).share == 0.0


def test_a_finite_mechanism_is_read_as_its_channel():
    threat = Threat(Prior.uniform("ab"))
    value = advantage(RandomizedResponse("ab", 1), threat).value
    assert value == pytest.approx(math.tanh(0.5) / 2, abs=1e-12)


def test_a_mechanism_on_vectors_is_refused():
    with pytest.raises(NotApplicable, match="finitely many outputs"):
        advantage(LaplaceMechanism(1, dimension=2), Threat(SKEWED))


def test_a_channel_on_other_records_is_refused():
    with pytest.raises(MismatchError, match="3 records"):
        advantage(Channel(np.eye(2)), Threat(SKEWED))
    with pytest.raises(ModelError, match="sum to 1"):
        advantage(ChannelStream(lambda: [P[:, :2]], 3), Threat(SKEWED))


def test_too_much_work_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr("undertow.risk.finite.WORK_LIMIT", 8)
    with pytest.raises(NotApplicable, match="total variation"):
        advantage(Channel(P), Threat(SKEWED))


def test_a_result_names_its_theorem_threat_and_trust():
    risk = advantage(Channel(P), Threat(SKEWED))
    assert (risk.theorem, risk.tight) == ("thesis, Theorem 5.3", True)
    assert risk.quantity == "advantage"
    assert success_rate(Channel(P), Threat(SKEWED)).quantity == "success"
    assert any("independent" in text for text in risk.unchecked)
    assert "knowing nothing" in risk.threat
    assert risk.to_dict()["witness"]["kind"] == "adversary"


def test_a_risk_is_a_probability():
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        Risk(1.5, "none")


def test_large_channels_take_linear_time_per_output():
    channel, prior = random_channel(1500, 600, 5)
    line = advantage(channel, Threat(prior, Success.within("absolute", 100))).value
    member = advantage(channel, Threat.membership(prior)).value
    overall = prior.pmf @ channel.matrix
    gains = prior.pmf[:, None] * (channel.matrix - overall)
    assert member == pytest.approx(np.maximum(gains, 0).sum(), abs=1e-11)
    assert 0 < line < member


def test_gains_that_underflow_are_not_reported_as_none():
    prior = Prior(2, [1.0, 1e-310])
    channel = Channel([[0.5, 0.5], [0.5 + 2.0**-53, 0.5 - 2.0**-53]])
    assert advantage(channel, Threat(prior)).value > 0


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
