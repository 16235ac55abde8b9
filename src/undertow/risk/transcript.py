"""Several releases about the same target are one output: their joint transcript.

Given the record, independent releases have the product of their laws; the attacker's
marginal is the *mixture of the products*, never the product of the mixtures. Exact
joint channels for finitely many outputs, with multinomial probabilities to the last
digit, and a sampler with likelihood for the rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.errors import MismatchError, NotApplicable
from undertow.numeric.array import Floats, Ints
from undertow.risk.channel import Channel, ChannelStream, LikelihoodSource, as_channel

TRANSCRIPT_LIMIT = 10**10
"""Most entries, records times outputs, of a joint channel."""


# Entries held at a time; a joint channel that has no more is a matrix.
_HELD = 1_000_000
# Entries of a channel of multisets, and of the tables behind them.
_MATRIX = 20_000_000
_MOST_TIMES = 10_000


def joint_channel(
    *sources: Any, support: Sequence[Hashable]
) -> Channel | ChannelStream:
    r"""Return the channel of independent releases about the same target.

    .. math:: p(\theta_1, \dots, \theta_T \mid x) = \prod_t p_t(\theta_t \mid x)

    Parameters
    ----------
    *sources : Channel or mechanisms with finitely many outputs
        The releases, each with fresh randomness.
    support : sequence of hashable
        The records.

    Returns
    -------
    Channel or ChannelStream
        The outputs are all tuples, the last release varying fastest; a matrix up to a
        million entries, else a stream.

    Raises
    ------
    NotApplicable
        If the joint channel has more than `TRANSCRIPT_LIMIT` entries.

    Notes
    -----
    Its exact advantage is that of an attacker who sees everything. There is no theorem
    that composes exact advantages, and multiplying the marginals of the releases gives
    a wrong marginal of the transcript: see the page on estimation. Not checkable: that
    the releases are independent given the record. Cost: one entry per record and tuple.

    Examples
    --------
    >>> from undertow.risk.exact import advantage
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> once = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> joint = joint_channel(once, once, once, support=range(2))
    >>> joint.size, round(advantage(joint, Threat(Prior.uniform(2))).value, 9)
    (2, 0.34375)
    """
    if not sources:
        raise ValueError("sources must hold at least one release, got none.")
    channels = [_finite(source, support) for source in sources]
    size, records = channels[0].size, tuple(support)
    entries = size * math.prod(channel.outputs for channel in channels)
    _require(entries)
    cut = len(channels)
    while cut > 1 and size * math.prod(c.outputs for c in channels[cut - 1 :]) <= _HELD:
        cut -= 1
    if entries <= _HELD:
        return Channel(_product(channels), records)

    def blocks() -> Iterator[Floats]:
        tail = _product(channels[cut:]) if cut < len(channels) else np.ones((size, 1))
        heads = [channel.matrix.T for channel in channels[:cut]]
        for columns in itertools.product(*heads):
            yield np.prod(columns, axis=0)[:, None] * tail

    return ChannelStream(blocks, size, records)


def repeat_channel(
    source: Any, times: SupportsIndex, *, support: Sequence[Hashable]
) -> Channel:
    r"""Return the channel of the same release repeated, without regard to order.

    .. math:: p(n_1, \dots, n_K \mid x) = \frac{T!}{n_1! \cdots n_K!}
       \prod_k p(\theta_k \mid x)^{n_k}

    Parameters
    ----------
    source : Channel or mechanism with finitely many outputs
        One release.
    times : int
        Number T of repetitions with fresh randomness, at most 10000.
    support : sequence of hashable
        The records.

    Returns
    -------
    Channel
        One output for each multiset of T outputs, after outputs that say the same have
        been merged; no risk changes by that, the numbering does.

    Raises
    ------
    NotApplicable
        If there are too many multisets, or too many repetitions.

    Notes
    -----
    Orders of the same multiset have the same likelihood up to a factor, hence the same
    posterior, so merging them is exact: :math:`\binom{T+K-1}{K-1}` outputs, not
    :math:`K^T`. Entries are right to the last digit for every T, so that the rounding
    that `advantage` adds covers theirs.

    Examples
    --------
    >>> repeat_channel(Channel([[0.75, 0.25], [0.25, 0.75]]), 10, support="ab").outputs
    11
    """
    T = check_count(times, "times")
    channel = _finite(source, support).merged()
    K = channel.outputs
    kinds = math.comb(T + K - 1, K - 1)
    if T > _MOST_TIMES or kinds * max(K, channel.size) > _MATRIX:
        raise NotApplicable(
            f"times must be at most {_MOST_TIMES} and leave at most {_MATRIX} entries, "
            f"got {T} times {K} outputs; use estimate_advantage with a JointSampler, "
            "or a bound on the composition."
        )
    rows = multinomial_rows(channel.matrix, _multisets(T, K))
    return Channel(rows, channel.support)


def chain_channel(
    first: Any,
    then: Callable[[int], Any],
    *,
    support: Sequence[Hashable],
) -> Channel | ChannelStream:
    r"""Return the channel of two releases, the second chosen after seeing the first.

    .. math:: p(\theta_1, \theta_2 \mid x) =
       p(\theta_1 \mid x)\, p(\theta_2 \mid x, \theta_1)

    Parameters
    ----------
    first : Channel or mechanism with finitely many outputs
        The first release.
    then : callable
        From the number of its output to the second release: a Channel or a mechanism
        with finitely many outputs. Called once per output and computation.
    support : sequence of hashable
        The records.

    Returns
    -------
    Channel or ChannelStream
        The outputs are pairs, by the first output and then by the second; a matrix up
        to a million entries, else a stream. Chain again for more releases.

    Raises
    ------
    NotApplicable
        If the joint channel has more than `TRANSCRIPT_LIMIT` entries.

    Examples
    --------
    Ask again, more loudly, only if the first answer was no:

    >>> quiet = Channel([[0.6, 0.4], [0.4, 0.6]])
    >>> loud = Channel([[0.9, 0.1], [0.1, 0.9]])
    >>> nothing = Channel([[1.0], [1.0]])
    >>> both = chain_channel(quiet, lambda seen: (loud, nothing)[seen], support="ab")
    >>> both.matrix.round(2).tolist()
    [[0.54, 0.06, 0.4], [0.04, 0.36, 0.6]]
    """
    start, records = _finite(first, support), tuple(support)
    if not callable(then):
        raise TypeError(f"then must be callable, got {type(then).__name__}.")

    def blocks() -> Iterator[Floats]:
        entries = 0
        for seen, column in enumerate(start.matrix.T):
            second = _finite(then(seen), records)
            entries += second.matrix.size
            _require(entries)
            yield column[:, None] * second.matrix

    held, entries = [], 0
    for block in blocks():
        held.append(block)
        entries += block.size
        if entries > _HELD:
            return ChannelStream(blocks, start.size, records)
    return Channel(np.concatenate(held, axis=1), records)


class JointSampler:
    """Independent releases about the same target, by simulation.

    Parameters
    ----------
    *sources : LikelihoodSource
        The releases, on the same records.

    Notes
    -----
    An output is a tuple with one batch per release. The log likelihoods add up, which
    is the likelihood of the whole transcript.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.channel import MechanismSampler
    >>> once = MechanismSampler(LaplaceMechanism(1), [0.0, 1.0])
    >>> JointSampler(once, once).log_likelihood(([0.0], [0.0])).round(3).tolist()
    [[-1.386, -3.386]]
    """

    __slots__ = ("sources",)

    def __init__(self, *sources: LikelihoodSource) -> None:
        if not sources or not all(isinstance(s, LikelihoodSource) for s in sources):
            raise TypeError(
                "sources must be at least one object with methods sample and "
                f"log_likelihood, got {len(sources)} of which not all are."
            )
        self.sources = sources

    def sample(
        self, record: int, size: int, *, rng: np.random.Generator
    ) -> tuple[Any, ...]:
        """Draw `size` outputs of every release."""
        return tuple(source.sample(record, size, rng=rng) for source in self.sources)

    def log_likelihood(self, outputs: tuple[Any, ...]) -> Floats:
        """Return the log likelihood of each record given all releases."""
        if len(outputs) != len(self.sources):
            raise MismatchError(
                f"outputs must hold one batch for each of the {len(self.sources)} "
                f"releases, got {len(outputs)}."
            )
        parts = [
            source.log_likelihood(seen)
            for source, seen in zip(self.sources, outputs, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))


def _product(channels: Sequence[Channel]) -> Floats:
    """Return the rows' Kronecker product, the last channel varying fastest."""
    joint = np.ones((channels[0].size, 1))
    for channel in channels:
        wide = joint[:, :, None] * channel.matrix[:, None, :]
        joint = wide.reshape(channel.size, -1)
    return joint


def _multisets(times: int, kinds: int) -> NDArray[np.int64]:
    """List all counts of `kinds` outputs that add up to `times`: stars and bars."""
    if kinds == 1:
        return np.full((1, 1), times, dtype=np.int64)
    places = times + kinds - 1
    chosen = itertools.chain.from_iterable(
        itertools.combinations(range(places), kinds - 1)
    )
    bars = np.fromiter(chosen, dtype=np.int64).reshape(-1, kinds - 1)
    ends = np.full((len(bars), 1), places)
    return np.diff(bars, axis=1, prepend=-1, append=ends) - 1


def _finite(source: Any, support: Sequence[Hashable]) -> Channel:
    channel = as_channel(source, support)
    if not isinstance(channel, Channel):
        raise NotApplicable(
            "a release must be a Channel or a finite mechanism, got a stream of "
            "columns; use estimate_advantage with a JointSampler."
        )
    return channel


def _require(entries: int) -> None:
    if entries > TRANSCRIPT_LIMIT:
        raise NotApplicable(
            f"a joint channel must have at most {TRANSCRIPT_LIMIT:.0e} entries, got "
            f"{entries:.1e}; use repeat_channel for equal releases, or "
            "estimate_advantage with a JointSampler."
        )


# Multinomial probabilities to the last digit, whatever the number of trials.
#
# Through logarithms an entry :math:`\frac{T!}{\prod n_k!} \prod_k p_k^{n_k}` is off by
# a relative error that grows with T, and a risk computed from it may be too low. Here
# factorials and powers are tables of a leading double, a correction and an exponent of
# 2: about 100 bits, so that only the last rounding counts.


# Splits a double into two halves whose products are exact.
_SPLIT = 2.0**27 + 1.0
# Entries of the table of powers held at a time.
_ENTRIES = 1 << 20
# Bits kept of the factorials.
_BITS = 160


def multinomial_rows(laws: Floats, counts: Ints) -> Floats:
    r"""Return the probability of each vector of counts under each law.

    Parameters
    ----------
    laws : ndarray of shape (m, K)
        One law on K outputs in each row.
    counts : ndarray of int, of shape (kinds, K)
        Non-negative, each row with the same sum T.

    Returns
    -------
    ndarray of shape (m, kinds)
        Each within 1.01 units of :math:`2^{-53}` of the exact number; below the
        smallest normal float it may be 0.

    Notes
    -----
    A product of pairs has a relative error below :math:`2^{-99}`, and there are at most
    T + 2K of them. O(m K T) for the tables and O(m K) for each vector of counts.

    Examples
    --------
    >>> multinomial_rows(np.array([[0.25, 0.75]]), np.array([[0, 2], [1, 1], [2, 0]]))
    array([[0.5625, 0.375 , 0.0625]])
    """
    times = int(counts[0].sum())
    factorials, inverses = _factorials(times)
    ways = factorials.take(np.full(len(counts), times))
    for column in counts.T:
        ways = ways * inverses.take(column)
    rows = np.empty((len(laws), len(counts)))
    step = max(1, _ENTRIES // ((times + 1) * laws.shape[1]))
    for start in range(0, len(laws), step):
        powers = _powers(laws[start : start + step], times)
        for record in range(start, min(start + step, len(laws))):
            product = ways
            for k, column in enumerate(counts.T):
                product = product * powers.take((column, record - start, k))
            rows[record] = np.ldexp(product.high + product.low, product.exponent)
    return rows


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Numbers (high + low) 2^exponent, with high in [1/2, 1) or 0."""

    high: Floats
    low: Floats
    exponent: NDArray[np.int32]

    def take(self, place: Any) -> _Pairs:
        return _Pairs(self.high[place], self.low[place], self.exponent[place])

    def __mul__(self, other: _Pairs) -> _Pairs:
        product = self.high * other.high
        a, b = _halves(self.high)
        c, d = _halves(other.high)
        low = ((a * c - product) + a * d + b * c) + b * d
        low += self.high * other.low + self.low * other.high
        total = product + low
        low -= total - product
        high, shift = np.frexp(total)
        exponent = self.exponent + other.exponent + shift
        return _Pairs(high, np.ldexp(low, -shift), exponent)


def _halves(numbers: Floats) -> tuple[Floats, Floats]:
    """Split numbers into two parts of 26 bits each."""
    scaled = _SPLIT * numbers
    first = scaled - (scaled - numbers)
    return first, numbers - first


def _powers(laws: Floats, times: int) -> _Pairs:
    """Return the powers 0 to `times` of all probabilities, along the first axis."""
    shape = (times + 1, *laws.shape)
    table = _Pairs(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int32))
    high, exponent = np.frexp(laws)
    base = _Pairs(high, np.zeros_like(high), exponent)
    ones = np.ones(laws.shape)
    power = _Pairs(ones / 2, 0 * ones, np.ones(laws.shape, dtype=np.int32))
    for n in range(times + 1):
        table.high[n], table.low[n] = power.high, power.low
        table.exponent[n] = power.exponent
        power = power * base
    return table


def _factorials(times: int) -> tuple[_Pairs, _Pairs]:
    """Return 0!, ..., `times`! and their inverses, from whole numbers."""
    rows, others = [], []
    value, shift = 1, 0
    for n in range(times + 1):
        value *= max(n, 1)
        extra = max(0, value.bit_length() - _BITS)
        value, shift = value >> extra, shift + extra
        rows.append(_pair(value, shift))
        size = value.bit_length() + _BITS
        others.append(_pair((1 << size) // value, -size - shift))
    return _join(rows), _join(others)


def _pair(value: int, shift: int) -> tuple[float, float, int]:
    """Read value 2^shift, the value positive."""
    size = value.bit_length()
    high = float(value >> (size - 53) if size > 53 else value)
    rest = value - (int(high) << (size - 53) if size > 53 else int(high))
    scale = min(size, 53)
    return high / 2.0**scale, rest / (1 << size), size + shift


def _join(rows: list[tuple[float, float, int]]) -> _Pairs:
    high, low, exponent = zip(*rows, strict=True)
    return _Pairs(np.array(high), np.array(low), np.array(exponent, dtype=np.int32))
