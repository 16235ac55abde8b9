"""The law of an output given an input: one way to draw it, to weigh it, to list it."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.audit import LawSubject, MechanismSubject, ProtocolSubject
from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms import (
    ClampedMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Law,
    RandomizedResponse,
    SimulatedSource,
)
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    ThresholdHistogram,
    protocol_name,
)
from undertow.mechanisms.local.hashing import OptimizedHashing
from undertow.mechanisms.randomized_response import (
    exact_odds,
    response_gap,
    response_loss,
    truth_share,
)
from undertow.risk import Channel, ChannelSampler, LikelihoodSource, ScalarChannel
from undertow.risk.channel import LawSampler, ProtocolSampler, read_source

KINDS = [
    (LaplaceMechanism(1), "real", None),
    (ClampedMechanism(GaussianMechanism(1), 0, 1), "real", None),
    (DiscreteLaplaceMechanism(1), "integer", None),
    (RandomizedResponse("abc", 1), "finite", ("a", "b", "c")),
    (ExponentialMechanism("ab", epsilon=1), "finite", None),
    (GeneralizedResponse(3, 1), "finite", range(3)),
    (OptimizedUnary(3, 1), "finite", range(3)),
    (SummationHistogram(3, 1), "real", range(3)),
]


@pytest.mark.parametrize(("law", "kind", "inputs"), KINDS, ids=repr)
def test_a_law_says_what_its_inputs_and_outputs_are(law, kind, inputs):
    assert isinstance(law, Law)
    assert law.output_kind == kind
    assert law.listed_inputs == inputs


@pytest.mark.parametrize(("law", "kind", "inputs"), KINDS, ids=repr)
def test_a_law_alone_is_no_source_of_a_risk_with_records(law, kind, inputs):
    # Its input for each record is missing: a sampler or a subject has that.
    assert not isinstance(law, LikelihoodSource)
    assert not hasattr(law, "inputs")


@pytest.mark.parametrize(
    "law",
    [
        RandomizedResponse(3, 1),
        GeneralizedResponse(3, 1),
        OptimizedUnary(3, 1),
        SubsetSelection(3, 1, subset=2),
    ],
    ids=repr,
)
def test_the_table_is_the_density_of_every_output_and_of_no_other(law):
    outputs = law.listed_outputs()
    table = law.table(range(3))
    logs = law.log_densities(outputs, range(3))
    assert table.T == pytest.approx(np.exp(logs), rel=1e-12)
    assert table.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert law.table([2, 0]).tolist() == table[[2, 0]].tolist()


@pytest.mark.parametrize(
    "law", [LaplaceMechanism(1), DiscreteLaplaceMechanism(1), SummationHistogram(3, 1)]
)
def test_a_law_without_a_list_of_outputs_has_no_table(law):
    with pytest.raises(NotApplicable, match=r"finitely many outputs|real numbers"):
        law.table([0, 1])


def test_randomised_response_on_labels_and_on_numbers_is_one_law():
    for level in (0.1, 1, 7):
        labels, numbers = RandomizedResponse(5, level), GeneralizedResponse(5, level)
        assert labels.keep_probability == numbers.keep
        assert labels.loss().epsilon == numbers.loss().epsilon
        assert labels.table(range(5)).tolist() == numbers.table(range(5)).tolist()
        odds = exact_odds(level)[1]
        assert truth_share(odds, 5) == numbers.keep
        assert response_gap(float(level), 5) == pytest.approx(
            float(numbers.keep - numbers.noise), rel=1e-12
        )
        levels = np.array([float(level), np.inf])
        assert response_gap(levels, 5) == pytest.approx(
            [response_gap(float(level), 5), 1.0], rel=1e-15
        )
        assert response_loss(numbers.epsilon) <= numbers.epsilon


def test_a_choice_is_weighed_by_its_labels():
    law = RandomizedResponse("ab", 1)
    logs = law.log_densities(np.array(["b", "a", "b"]), ["a", "b"])
    assert logs.shape == (3, 2)
    assert logs[0].tolist() == [law.log_pmf("b", "a"), law.log_pmf("b", "b")]
    assert logs[1].tolist() == [law.log_pmf("a", "a"), law.log_pmf("a", "b")]


def test_drawing_for_one_input_is_drawing_for_many_equal_ones():
    law, rng = LaplaceMechanism(2), np.random.default_rng
    drawn = law.simulate(3.0, 5, rng=rng(1))
    same = law.sample(np.full(5, 3.0), source=SimulatedSource(rng(1)))
    assert drawn.tolist() == same.values.tolist()
    sampler = LawSampler(law, [0.0, 3.0])
    assert sampler.sample(1, 5, rng=rng(1)).tolist() == drawn.tolist()


def test_one_subject_audits_mechanisms_and_protocols():
    rng = np.random.default_rng
    one = LawSubject(LaplaceMechanism(1), [0.0, 1.0])
    two = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    assert (one.name, one.inputs) == (two.name, two.inputs)
    assert (
        one.sample(1, 4, rng=rng(2)).tolist() == two.sample(1, 4, rng=rng(2)).tolist()
    )
    protocol = LawSubject(GeneralizedResponse(3, 1))
    assert protocol.inputs == ProtocolSubject(GeneralizedResponse(3, 1)).inputs
    assert protocol.log_likelihood([2, 0], (0, 2)).shape == (2, 2)
    assert LawSubject(RandomizedResponse("ab", 1)).inputs == ("a", "b")
    with pytest.raises(TypeError, match="inputs must be given for Laplace"):
        LawSubject(LaplaceMechanism(1))


def test_one_reader_decides_which_engine_is_asked():
    records = (0, 1, 2)
    channel = Channel(np.eye(3))
    sampler = ChannelSampler(channel)
    assert read_source(channel, records) is channel
    assert read_source(sampler, records) is sampler
    assert isinstance(read_source(LaplaceMechanism(1), records), ScalarChannel)
    assert isinstance(read_source(GeneralizedResponse(3, 1), records), ProtocolSampler)
    table = read_source(RandomizedResponse(3, 1), records)
    assert isinstance(table, Channel)
    with pytest.raises(MismatchError, match="category for each of the 3 records"):
        read_source(GeneralizedResponse(4, 1), records)
    for law in (DiscreteLaplaceMechanism(1), LaplaceMechanism(1, dimension=2)):
        with pytest.raises(NotApplicable, match="finitely many outputs"):
            read_source(law, records)


def test_a_protocol_says_what_it_chose_besides_epsilon():
    told = {
        repr(protocol): (protocol_name(protocol), protocol.structure, rule)
        for protocol, rule in [
            (protocol, protocol.follows_rule)
            for protocol in (
                GeneralizedResponse(10, 1),
                SubsetSelection(10, 1),
                SubsetSelection(10, 1, subset=3),
                ThresholdHistogram(10, 1),
                ThresholdHistogram(10, 1, threshold=0.6),
                BinaryHashing(10, 2),
                OptimizedHashing(10, 2),
                LocalHashing(10, 2, buckets=5),
            )
        ]
    }
    assert list(told.values()) == [
        ("grr", None, True),
        ("ss", 2, True),
        ("ss", 3, False),
        ("the", None, True),
        ("the", None, False),
        ("blh", 2, True),
        ("olh", 8, True),
        (None, 5, False),
    ]


class _Louder(GeneralizedResponse):
    """A subclass, which may have another law."""

    __slots__ = ()


def test_a_subclass_does_not_take_the_name_of_its_parent():
    assert protocol_name(_Louder(3, 1)) is None
