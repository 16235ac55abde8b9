"""Counting packed bits, with and without the counter of newer libraries."""

import numpy as np
import pytest

from undertow.mechanisms.local import _bitset as packed


@pytest.fixture(params=["counter", "table"])
def _counter(request, monkeypatch):
    if request.param == "table":
        monkeypatch.delattr(np, "bitwise_count", raising=False)


@pytest.mark.usefixtures("_counter")
@pytest.mark.parametrize("words", [1, 2, 95, 96, 2100])
def test_bits_are_counted_by_row(words):
    rng = np.random.default_rng(words)
    table = rng.integers(1 << 32, size=(700, words), dtype=np.uint32)
    table[:3] = 0xFFFFFFFF
    bits = packed.unpack(table, 32 * words)
    counts = packed.count_bits(table)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, bits.sum(axis=1))
    np.testing.assert_array_equal(packed.count_bits(table[::2]), counts[::2])
    np.testing.assert_array_equal(
        packed.count_bits(table[:, : max(1, words - 1)]),
        bits[:, : 32 * max(1, words - 1)].sum(axis=1),
    )


@pytest.mark.usefixtures("_counter")
def test_no_rows_have_no_counts():
    assert packed.count_bits(np.zeros((0, 3), dtype="<u4")).shape == (0,)


def test_rows_of_very_many_bits_are_counted_exactly():
    table = np.full((2, 1 << 20), 0xFFFFFFFF, dtype="<u4")
    table[1, 0] = 1
    assert packed.count_bits(table).tolist() == [1 << 25, (1 << 25) - 31]


@pytest.mark.parametrize("length", [32, 70, 200])
def test_one_bit_of_each_row_is_read_cleared_and_overwritten(length):
    rng = np.random.default_rng(length)
    bits = rng.random((300, length)) < 0.5
    table = np.zeros((300, packed.width(length)), dtype="<u4")
    octets = np.packbits(bits, axis=1, bitorder="little")
    table.view(np.uint8)[:, : octets.shape[1]] = octets
    places, rows = rng.integers(length, size=300), np.arange(300)
    np.testing.assert_array_equal(packed.bits_at(table, places), bits[rows, places])
    np.testing.assert_array_equal(
        packed.bits_at(table[::2], places[::2]), bits[rows, places][::2]
    )
    told = rng.random(300) < 0.5
    packed.set_bits(table, places, told)
    bits[rows, places] = told
    np.testing.assert_array_equal(packed.unpack(table, length), bits)
    packed.clear_bits(table, places)
    bits[rows, places] = False
    np.testing.assert_array_equal(packed.unpack(table, length), bits)
