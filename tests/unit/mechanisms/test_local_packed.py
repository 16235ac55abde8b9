"""Counting packed bits, with and without the counter of newer libraries."""

import numpy as np
import pytest

from undertow.mechanisms.local import packed


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
