"""Channels, their streams, and what can be read as one."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.risk.channel import Channel, ChannelStream, as_channel

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
