r"""Uniform bits, and the uniform integers made of them.

Every secure sampler reads *words*: independent integers uniform on
:math:`\{0,\dots,2^b-1\}`. In production they are 16-bit words of operating-system
entropy. The width is a property of the source, so that a test can feed words of a few
bits through the same code and enumerate all of them.
"""

from __future__ import annotations

import os
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["BitSource", "SystemBits", "uniform_below", "uniform_bits"]

# int64 holds any integer of this many bits and its double.
_MACHINE_BITS = 62


@runtime_checkable
class BitSource(Protocol):
    """A stream of independent uniform words of `width` bits, at most 16."""

    @property
    def width(self) -> int:
        """Number of bits in one word."""

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words."""


class SystemBits:
    """Words of operating-system entropy; no state, hence safe across forks."""

    __slots__ = ()
    width = 16

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words, straight from :func:`os.urandom`."""
        return np.frombuffer(os.urandom(2 * count), dtype=np.uint16)


def uniform_bits(bits: BitSource, count: int, *, length: int) -> NDArray[Any]:
    r"""Draw integers uniform on :math:`\{0,\dots,2^{\text{length}}-1\}`.

    Returns
    -------
    ndarray of int64, or of Python integers
        The latter if `length` passes 62 bits.

    Notes
    -----
    Words are concatenated, the last one without its surplus low bits; both keep
    uniformity.
    """
    dtype = np.int64 if length <= _MACHINE_BITS else np.object_
    value: NDArray[Any] = np.zeros(count, dtype=dtype)
    while length > 0:
        used = min(length, bits.width)
        word = bits.words(count) >> (bits.width - used)
        value = (value << used) | word.astype(dtype)
        length -= used
    return value


def uniform_below(bits: BitSource, count: int, *, bound: int) -> NDArray[Any]:
    r"""Draw integers uniform on :math:`\{0,\dots,\text{bound}-1\}` by rejection.

    Notes
    -----
    With :math:`2^{\ell-1} < \text{bound} \le 2^\ell`, a draw of :math:`\ell` bits is
    kept if it is below `bound`, which happens with probability over one half. Given
    that it is kept it is uniform below `bound`.
    """
    length = (bound - 1).bit_length()
    value = uniform_bits(bits, count, length=length)
    pending = np.flatnonzero(value >= bound)
    while pending.size:
        value[pending] = uniform_bits(bits, pending.size, length=length)
        pending = pending[np.flatnonzero(value[pending] >= bound)]
    return value
