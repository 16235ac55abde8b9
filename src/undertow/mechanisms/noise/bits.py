r"""Uniform bits, and the uniform integers made of them.

Every secure sampler reads *words*: independent integers uniform on
:math:`\{0,\dots,2^b-1\}`. In production they are 16-bit words of operating-system
entropy, or of a cryptographic generator keyed by it where many are needed. The width is
a property of the source, so that a test can feed words of a few bits through the same
code and enumerate all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# int64 holds any integer of this many bits and its double.
_MACHINE_BITS = 62
# From so many bytes on they come from the generator keyed by the operating system.
_BULK = 1 << 10


@runtime_checkable
class BitSource(Protocol):
    """A stream of independent uniform words of `width` bits, at most 16."""

    @property
    def width(self) -> int:
        """Number of bits in one word."""

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words."""


class SystemBits:
    """Words of operating-system entropy; no state of ours, hence safe across forks.

    Notes
    -----
    Few words are read from :func:`os.urandom`. From a kilobyte on they come from the
    cryptographic generator of OpenSSL (:func:`ssl.RAND_bytes`), which the operating
    system seeds and which seeds itself anew in a child process; an interpreter built
    without ``ssl`` reads all words from :func:`os.urandom`.
    """

    __slots__ = ()
    width = 16

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words."""
        size = 2 * count
        read = os.urandom if size < _BULK else _bulk_reader()
        return np.frombuffer(read(size), dtype=np.uint16)


@lru_cache(maxsize=1)
def _bulk_reader() -> Callable[[int], bytes]:
    try:
        from ssl import RAND_bytes
    except ImportError:
        return os.urandom
    return RAND_bytes


class _DrawnBits:
    """Words of a source that draws uniform integers only."""

    __slots__ = ("_source",)
    width = 16

    def __init__(self, source: Any) -> None:
        self._source = source

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next `count` words."""
        values = self._source.uniform(1 << self.width, count).values
        return np.asarray(values, dtype=np.uint16)


def bits_of(source: Any) -> BitSource:
    """Return the words of a noise source.

    Its attribute `bits` if it has one, and words of its method ``uniform`` otherwise.
    """
    bits: BitSource | None = getattr(source, "bits", None)
    if bits is not None and hasattr(bits, "words"):
        return bits
    return _DrawnBits(source)


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
    if length == 0:
        return np.zeros(count, dtype=dtype)
    used = min(length, bits.width)
    value: NDArray[Any] = (bits.words(count) >> (bits.width - used)).astype(dtype)
    while length := length - used:
        used = min(length, bits.width)
        value <<= used
        value |= bits.words(count) >> (bits.width - used)
    return value


def uniform_below(bits: BitSource, count: int, *, bound: int) -> NDArray[Any]:
    r"""Draw integers uniform on :math:`\{0,\dots,\text{bound}-1\}` by rejection.

    Notes
    -----
    Let :math:`2^{\ell-1} < n \le 2^\ell` for the bound n. If
    whole words of L bits in all hold :math:`\ell` and the product fits the machine, a
    draw x of them gives :math:`\lfloor xn/2^L \rfloor` and is refused if
    :math:`xn \bmod 2^L < 2^L \bmod n`: then every value keeps exactly
    :math:`\lfloor 2^L/n \rfloor` draws. Otherwise a draw of :math:`\ell` bits is kept
    if it is below n, which happens with probability over one half.
    """
    length = (bound - 1).bit_length()
    whole = -(-length // bits.width) * bits.width
    if bound == 1 << length or whole + length > _MACHINE_BITS:
        return _retry(lambda n: _cut(bits, n, bound, length), count)
    return _retry(lambda n: _scale(bits, n, bound, whole), count)


_Attempt = tuple[NDArray[Any], NDArray[np.bool_]]


def _cut(bits: BitSource, count: int, bound: int, length: int) -> _Attempt:
    value = uniform_bits(bits, count, length=length)
    return value, value >= bound


def _scale(bits: BitSource, count: int, bound: int, whole: int) -> _Attempt:
    """Scale draws of `whole` bits down; refuse the surplus of each value."""
    small = whole == bits.width
    dtype = np.uint32 if small else np.int64
    value = bits.words(count) if small else uniform_bits(bits, count, length=whole)
    product = np.multiply(value, dtype(bound), dtype=dtype)
    refused = (product & dtype((1 << whole) - 1)) < (1 << whole) % bound
    product >>= dtype(whole)
    return product.astype(np.int64, copy=False), refused


def _retry(attempt: Callable[[int], _Attempt], count: int) -> NDArray[Any]:
    value, refused = attempt(count)
    pending = refused.nonzero()[0]
    while pending.size:
        value[pending], refused = attempt(pending.size)
        pending = pending[refused]
    return value
