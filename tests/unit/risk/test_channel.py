"""Channels, their streams, and what can be read as one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.risk.attacks import ReportGuess, attack_figures
from undertow.risk.channel import Channel, ChannelStream, as_channel
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import OptimalAttack
from undertow.risk.scalar import ScalarChannel
from undertow.risk.threat import Prior, Threat

P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


def test_blocks_are_the_columns_in_order():
    blocks = list(Channel(P).blocks(2))
    assert [block.shape for block in blocks] == [(3, 2), (3, 1)]
    assert np.hstack(blocks) == pytest.approx(P, abs=1e-15)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.6], [0.5, 0.5]],
        [[1.5, -0.5], [0.5, 0.5]],
        [[np.nan, 1.0], [0.5, 0.5]],
        [[np.inf, 1.0], [0.5, 0.5]],
        [0.5, 0.5],
        np.zeros((2, 0)),
    ],
)
def test_what_is_no_channel_is_refused(matrix):
    with pytest.raises(ModelError):
        Channel(matrix)


def test_rows_must_be_those_of_the_support():
    with pytest.raises(MismatchError, match="each of the 2 records"):
        Channel(P, support="ab")


def test_a_channel_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Channel(P).matrix[0, 0] = 1.0


def test_proportional_columns_are_merged_and_empty_ones_dropped():
    first, rest = P[:, :1], P[:, 1:]
    split = np.hstack([first / 4, rest, first / 2, np.zeros((3, 1)), first / 4])
    merged = Channel(split).merged()
    assert merged.outputs == 3
    assert sorted(merged.matrix.T.tolist()) == [
        pytest.approx(column) for column in sorted(P.T.tolist())
    ]


def test_post_processing_multiplies():
    kernel = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert Channel(P).post_process(kernel).matrix == pytest.approx(P @ kernel)


def test_a_mechanism_is_tabulated_on_the_attribute_it_reads():
    people = [("a", 0), ("a", 1), ("b", 1)]
    mechanism = RandomizedResponse(2, 1)
    channel = Channel.from_mechanism(mechanism, people, query=lambda r: r[1])
    truth = 1 / (1 + np.exp(-1))
    assert channel.matrix[:, 1] == pytest.approx([1 - truth, truth, truth], abs=1e-12)
    assert as_channel(mechanism, (0, 1)).matrix[0, 0] == pytest.approx(truth)


def test_a_mechanism_may_state_its_own_channel():
    class Stated:
        def channel(self, support):
            return Channel(P, support)

    assert as_channel(Stated(), "abc").support == ("a", "b", "c")


def test_channels_on_other_records_are_refused():
    with pytest.raises(MismatchError, match="each of the 2 records"):
        as_channel(Channel(P), range(2))
    with pytest.raises(MismatchError, match="in their order"):
        as_channel(Channel(P, support="abc"), "acb")


@pytest.mark.parametrize("source", [P, LaplaceMechanism(1)])
def test_what_has_no_finite_table_is_refused(source):
    with pytest.raises(NotApplicable, match="finitely many outputs"):
        as_channel(source, range(3))


def test_a_stream_hands_out_narrow_blocks_of_what_it_gets():
    stream = ChannelStream(lambda: iter([P[:, :2], P[:, 2:]]), 3)
    assert [block.shape[1] for block in stream.blocks(1)] == [1, 1, 1]


def test_a_stream_that_falls_short_is_refused_at_its_end():
    stream = ChannelStream(lambda: [P[:, :2]], 3)
    with pytest.raises(ModelError, match="sum to 1"):
        list(stream.blocks(5))


def test_a_stream_of_other_rows_is_refused():
    with pytest.raises(ModelError, match="3 rows"):
        list(ChannelStream(lambda: [P[:2]], 3).blocks(5))
    with pytest.raises(MismatchError, match="3 records"):
        ChannelStream(lambda: [P], 3, ("a", "b"))


def test_names_of_channels_are_short():
    assert repr(Channel(P)) == "Channel(3 records, 3 outputs)"


@pytest.mark.parametrize(
    "protocol",
    [
        GeneralizedResponse(5, 1),
        SymmetricUnary(5, 2),
        OptimizedUnary(12, 1),
        ThresholdHistogram(4, 1),
        SubsetSelection(6, 1, subset=2),
        SubsetSelection(40, 3, subset=2),
        OptimizedUnary(3, 60),
    ],
    ids=repr,
)
def test_a_protocol_with_few_reports_is_tabulated(protocol):
    m = protocol.categories
    channel = as_channel(protocol, range(m))
    reports = protocol.listed_outputs()
    assert len({report.tobytes() for report in reports}) == channel.outputs
    laws = np.exp([protocol.log_pmf(reports, x) for x in range(m)])
    assert channel.matrix == pytest.approx(laws, rel=1e-11)
    rng = np.random.default_rng(4)
    threat = Threat(Prior(m, rng.dirichlet(np.ones(m))))
    closed = advantage(protocol, threat)
    assert advantage(channel, threat).value == pytest.approx(closed.value, abs=1e-9)
    assert success_rate(protocol, threat).value >= threat.informed_guess


def test_the_success_against_randomised_response_is_that_of_the_report():
    protocol = GeneralizedResponse(10, 1)
    risk = success_rate(protocol, Threat(Prior.uniform(10)))
    assert risk.value == pytest.approx(protocol.attack_success(), abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (GeneralizedResponse(5000, 1), "cells"),
        (OptimizedUnary(13, 1), "10.3.9 reports"),
        (OptimizedUnary(20_000, 1), "10.6020.6 reports"),
        (SubsetSelection(200, 1), "about 10"),
        (SubsetSelection(20_000, 1), "about 10"),
        (OptimizedHashing(4, 1), "family of hashes"),
        (SummationHistogram(4, 1), "real numbers"),
    ],
    ids=repr,
)
def test_a_protocol_without_a_table_is_refused_with_the_reason(protocol, reason):
    with pytest.raises(NotApplicable, match=rf"{reason}.*; use advantage\(\)"):
        as_channel(protocol, range(protocol.categories))
    with pytest.raises(NotApplicable, match="ProtocolSampler"):
        success_rate(protocol, Threat(Prior.uniform(protocol.categories)))


def test_categories_must_be_the_records():
    with pytest.raises(MismatchError, match="category for each of the 3 records"):
        as_channel(GeneralizedResponse(4, 1), range(3))


def test_a_real_output_is_sent_to_the_ways_that_read_it():
    threat = Threat(Prior.uniform(3))
    ways = "OptimalGuess to run it, or scalar_attack_risk"
    for source in (LaplaceMechanism(1), ScalarChannel(LaplaceMechanism(1), range(3))):
        with pytest.raises(NotApplicable, match=ways):
            OptimalAttack(source, threat)
        with pytest.raises(NotApplicable, match=ways):
            attack_figures(source, threat, attack=ReportGuess(threat))


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


def test_a_stream_may_list_its_records():
    stream = ChannelStream(lambda: [np.eye(2)], 2, ["a", "b"])
    assert advantage(stream, Threat(Prior.uniform("ab"))).value >= 0.5
    assert success_rate(stream, Threat(Prior.uniform("ab"))).value == 1.0
