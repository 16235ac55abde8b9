r"""What the attacker sees: the law of the output for each record of the target.

A :class:`Channel` is the matrix :math:`P[x, \theta] = p(\theta \mid x)` of a mechanism
run on the known other records and the target x; local mechanisms have no other records.
A :class:`ChannelStream` hands out the same matrix in blocks of columns, for outputs too
many to hold. The reports of a local protocol are listed where they are few.

Where no matrix can be written down, a *sampler* draws outputs and gives the likelihood
of each record (:class:`LikelihoodSource`): for channels, additive noise and local
protocols. Its draws are simulated, from the given stream: for measuring, never for a
release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms.base import ChoiceMechanism, Mechanism
from undertow.mechanisms.law import Law
from undertow.mechanisms.local.base import LocalProtocol
from undertow.numeric.array import Floats, read_floats
from undertow.risk.number import ScalarChannel, as_scalar, is_scalar

_TOLERANCE = 1e-9


@runtime_checkable
class ChannelSource(Protocol):
    """A mechanism that states its own channel on given records."""

    def channel(self, support: Sequence[Hashable]) -> Channel | ChannelStream:
        """Return the law of the output for each record."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Channel:
    r"""A finite channel: one law over the outputs for each record.

    Parameters
    ----------
    matrix : array_like of shape (m, outputs)
        Non-negative; each row sums to 1 to within 1e-9, and what is missing is shared
        out in proportion.
    support : sequence of hashable, optional
        The records of the rows; a threat on other records is then refused. Without it
        the rows are taken in the order of the threat's records.

    Raises
    ------
    ModelError
        If a row is no probability law.

    Notes
    -----
    Not checkable: that the matrix is the law of what is really released. Everything the
    attacker sees belongs to the output, all releases of a composition together.

    Examples
    --------
    >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> channel.size, channel.outputs
    (2, 2)
    """

    matrix: Floats
    support: tuple[Hashable, ...] | None

    def __init__(
        self, matrix: ArrayLike, support: Sequence[Hashable] | None = None
    ) -> None:
        records = None if support is None else tuple(support)
        laws = read_floats(matrix, "matrix", error=ModelError)
        if laws.ndim != 2 or 0 in laws.shape:
            raise ModelError(f"matrix must have two axes, got shape {laws.shape}.")
        if records is not None and len(records) != len(laws):
            raise MismatchError(
                f"matrix must have one row for each of the {len(records)} records, "
                f"got {len(laws)}."
            )
        total = _row_totals(laws, laws.sum(axis=1))
        laws /= total[:, None]
        laws.setflags(write=False)
        object.__setattr__(self, "matrix", laws)
        object.__setattr__(self, "support", records)

    @classmethod
    def from_mechanism(
        cls,
        mechanism: Law,
        support: Sequence[Hashable],
        *,
        query: Callable[[Any], Any] | None = None,
    ) -> Channel:
        """Tabulate a law with finitely many outputs.

        Parameters
        ----------
        mechanism : Law
            A mechanism or local protocol; its `table` is the matrix.
        support : sequence of hashable
            The records.
        query : callable, optional
            From a record to what the law is given, such as the scores of the
            candidates or the sensitive attribute; by default the record itself or, for
            a local protocol, the category of its number.

        Raises
        ------
        NotApplicable
            If there are infinitely many outputs, or too many.

        Examples
        --------
        >>> from undertow.mechanisms import RandomizedResponse
        >>> channel = Channel.from_mechanism(RandomizedResponse("ab", 1), "ab")
        >>> channel.matrix.round(4).tolist()
        [[0.7311, 0.2689], [0.2689, 0.7311]]
        """
        inputs = mechanism.inputs_of(support)
        if query is not None:
            inputs = [query(record) for record in support]
        return cls(mechanism.table(inputs), support)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.matrix)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.matrix.shape[1])

    def blocks(self, width: int) -> Iterator[Floats]:
        """Hand out the columns, `width` at a time."""
        for start in range(0, self.outputs, check_count(width, "width")):
            yield self.matrix[:, start : start + width]

    def post_process(self, kernel: ArrayLike) -> Channel:
        """Return the channel whose output is passed through another.

        Parameters
        ----------
        kernel : array_like of shape (outputs, new outputs)
            One law over the new outputs for each old one.
        """
        return Channel(self.matrix @ Channel(kernel).matrix, self.support)

    def merged(self) -> Channel:
        """Merge outputs with proportional columns: they say the same of the target.

        Notes
        -----
        Columns are merged if they are equal once scaled to a largest entry of 1, as
        floats; columns without mass are dropped. No posterior changes, so neither does
        any risk.

        Examples
        --------
        >>> Channel([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]).merged().outputs
        1
        """
        seen = self.matrix[:, self.matrix.max(axis=0) > 0]
        shapes = seen / seen.max(axis=0)
        _, kinds = np.unique(shapes, axis=1, return_inverse=True)
        kinds = kinds.reshape(-1)
        added = np.zeros((int(kinds.max()) + 1, self.size))
        np.add.at(added, kinds, seen.T)
        return Channel(added.T, self.support)

    def __repr__(self) -> str:
        return f"Channel({self.size} records, {self.outputs} outputs)"


@dataclass(frozen=True, slots=True, eq=False)
class ChannelStream:
    """A channel handed out in blocks of columns, never held as a whole.

    Parameters
    ----------
    source : callable
        Without arguments; returns an iterable of arrays of shape (size, any), which
        together are the columns. Called once per computation.
    size : int
        Number of records.
    support : tuple of hashable, optional
        The records of the rows.

    Notes
    -----
    That rows sum to 1 can only be checked at the end: a stream that falls short by more
    than 1e-9 is refused then, and what is missing below that is added to the risk.

    Examples
    --------
    >>> stream = ChannelStream(lambda: ([[t], [1 - t]] for t in (0.25, 0.75)), 2)
    >>> [block.tolist() for block in stream.blocks(1)]
    [[[0.25], [0.75]], [[0.75], [0.25]]]
    """

    source: Callable[[], Iterable[ArrayLike]]
    size: int
    support: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        if not callable(self.source):
            raise TypeError(
                f"source must be callable, got {type(self.source).__name__}."
            )
        if self.support is not None and len(self.support) != self.size:
            raise MismatchError(
                f"support must hold {self.size} records, got {len(self.support)}."
            )

    def blocks(self, width: int) -> Iterator[Floats]:
        """Hand out the columns, at most `width` at a time, and check the row sums."""
        step, total = check_count(width, "width"), np.zeros(self.size)
        columns = self.source()
        if not isinstance(columns, Iterable):
            raise TypeError(
                "source must return an iterable of blocks, got "
                f"{type(columns).__name__}."
            )
        for given in columns:
            block = _block(given)
            if block.ndim != 2 or len(block) != self.size:
                raise ModelError(
                    f"a block must have {self.size} rows, got shape {block.shape}."
                )
            total += _row_totals(block, block.sum(axis=1), whole=False)
            for start in range(0, block.shape[1], step):
                yield block[:, start : start + step]
        _row_totals(total[:, None], total)


def read_source(
    source: Any, support: Sequence[Hashable]
) -> Channel | ChannelStream | ScalarChannel | LikelihoodSource:
    """Read what an attacker sees: this decides which engine is asked.

    Parameters
    ----------
    source : Channel, ChannelStream, ScalarChannel, LikelihoodSource or Law
        What is released, on the given records.
    support : sequence of hashable
        The records of the threat.

    Returns
    -------
    Channel, ChannelStream, ScalarChannel or LikelihoodSource
        A local protocol becomes a `ProtocolSampler`: its closed forms need no table. A
        number with Laplace or Gaussian noise becomes a `ScalarChannel`, any other law
        with finitely many outputs a `Channel`.

    Raises
    ------
    MismatchError
        If a channel or a protocol is on other records, or on another number of them.
    NotApplicable
        If a law is of none of these kinds.
    """
    if isinstance(source, LocalProtocol):
        source.inputs_of(support)  # refuses other records
        return ProtocolSampler(source)
    number = as_scalar(source, support)
    if number is not None:
        return number
    known = isinstance(source, LikelihoodSource)
    return source if known else as_channel(source, support)


def as_channel(source: Any, support: Sequence[Hashable]) -> Channel | ChannelStream:
    """Read a channel on the given records from a channel or a finite mechanism.

    Parameters
    ----------
    source : Channel, ChannelStream, ChannelSource or Law
        A law is tabulated on `support`. The categories of a local protocol are
        the records, in their order, and its reports must be few: those of randomised
        response, of at most 12 bits, or at most 10^5 sets.
    support : sequence of hashable
        The records of the threat.

    Raises
    ------
    MismatchError
        If a channel is on other records, or on another number of them.
    NotApplicable
        If a mechanism has infinitely many outputs, or a protocol too many.
    """
    if isinstance(source, ChannelSource) and callable(source.channel):
        source = source.channel(support)
    elif isinstance(source, Law) and not is_scalar(source):
        source = Channel.from_mechanism(source, support)
    if not isinstance(source, Channel | ChannelStream):
        raise NotApplicable(
            "a finite channel must be a Channel or a mechanism with finitely many "
            f"outputs, got {type(source).__name__}; {_way_out(source)}."
        )
    if source.size != len(support):
        raise MismatchError(
            f"the channel must have a row for each of the {len(support)} records, got "
            f"{source.size}."
        )
    if source.support is not None and tuple(source.support) != tuple(support):
        raise MismatchError(
            "the channel must be on the records of the threat, in their order, got "
            "others."
        )
    return source


def _way_out(source: Any) -> str:
    if isinstance(source, ScalarChannel) or is_scalar(source):
        return (
            "its output is a real number: use advantage for the best attack, "
            "OptimalGuess to run it, or scalar_attack_risk for an attack on intervals"
        )
    return "tabulate it, or estimate the risk by simulation"


def _block(given: ArrayLike) -> Floats:
    if isinstance(given, np.ndarray) and given.dtype == np.float64:
        return given
    return read_floats(given, "a block", error=ModelError)


def _row_totals(laws: Floats, total: Floats, *, whole: bool = True) -> Floats:
    least = float(laws.min()) if laws.size else 0.0
    gap = float(np.abs(total - 1.0).max()) if whole else 0.0
    if not (least >= 0 and gap <= _TOLERANCE) or not math.isfinite(float(total.max())):
        raise ModelError(
            "every row must be non-negative and sum to 1, got a least entry of "
            f"{least} and a sum that is off by {gap}."
        )
    return total


# Mechanisms as samplers with a likelihood: channels, additive noise, local protocols.
#
# All draws are simulated, from the given stream: for measuring, never for a release.


@runtime_checkable
class LikelihoodSource(Protocol):
    """A sampler that also knows how likely each record makes an output."""

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` independent outputs of the record of that number."""

    def log_likelihood(self, outputs: Any) -> Floats:
        """Return the log likelihood of each record: shape (outputs, records).

        Terms that are the same for all records may be left out. Minus infinity says
        that a record cannot have led to the output.
        """


class ChannelSampler:
    """Draws from a finite channel; an output is the number of its column.

    Parameters
    ----------
    source : Channel or mechanism with finitely many outputs
        A mechanism is tabulated on `support`.
    support : sequence of hashable, optional
        The records; needed for a mechanism only.

    Examples
    --------
    >>> sampler = ChannelSampler(Channel([[1.0, 0.0], [0.5, 0.5]]))
    >>> sampler.sample(0, 3, rng=np.random.default_rng(0)).tolist()
    [0, 0, 0]
    >>> sampler.log_likelihood([1]).round(3).tolist()
    [[-inf, -0.693]]
    """

    __slots__ = ("_cumulative", "_logs", "channel")
    channel: Channel

    def __init__(self, source: Any, support: Sequence[Hashable] | None = None) -> None:
        if support is None and not isinstance(source, Channel):
            raise TypeError(
                "source must be a Channel unless support is given, got "
                f"{type(source).__name__}."
            )
        channel = source if support is None else as_channel(source, support)
        if not isinstance(channel, Channel):
            raise NotApplicable(
                "a sampler must have the whole matrix, got a stream of columns; build "
                "the matrix, or sample the releases with JointSampler."
            )
        self.channel = channel
        cumulative = np.cumsum(channel.matrix, axis=1)
        # Ends at exactly 1, so that an output without mass is never drawn.
        self._cumulative = cumulative / cumulative[:, -1:]
        with np.errstate(divide="ignore"):
            self._logs = np.log(channel.matrix.T)

    def sample(
        self, record: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Draw `size` outputs of the record of that number."""
        row = self._cumulative[check_index(record, "record", size=self.channel.size)]
        return np.searchsorted(row, rng.random(check_count(size, "size")), side="right")

    def log_likelihood(self, outputs: ArrayLike) -> Floats:
        """Return the log probability of each output for each record."""
        return np.asarray(self._logs[np.asarray(outputs, dtype=np.intp)])

    def __repr__(self) -> str:
        return f"ChannelSampler({self.channel!r})"


class LawSampler:
    """Draws from a law, given its input for each record.

    Parameters
    ----------
    law : Law
        A mechanism or a local protocol.
    inputs : sequence
        What it is given for each record.
    """

    __slots__ = ("inputs", "law")

    def __init__(self, law: Law, inputs: Sequence[Any] | NDArray[Any]) -> None:
        self.law, self.inputs = law, inputs

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` outputs of the record of that number."""
        given = self.inputs[check_index(record, "record", size=len(self.inputs))]
        return self.law.simulate(given, check_count(size, "size"), rng=rng)

    def log_likelihood(self, outputs: Any) -> Floats:
        """Return the log density of each output for each record."""
        return self.law.log_densities(outputs, self.inputs)

    def __repr__(self) -> str:
        name = type(self.law).__name__
        return f"{type(self).__name__}({name}, {len(self.inputs)} records)"


class MechanismSampler(LawSampler):
    r"""Draws from a mechanism on numbers, given its answer for each record.

    Parameters
    ----------
    mechanism : Mechanism
        Of one or several coordinates, such as Laplace or Gaussian noise, clamped or
        truncated.
    answers : array_like of shape (m,) or (m, coordinates)
        What the mechanism is given for each record: the query on the database with that
        record in it.

    Notes
    -----
    Noise is drawn on the fine lattice of the release, the likelihood is that of the law
    it stands for. Not checkable: that `answers` were computed on the known others.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> sampler = MechanismSampler(LaplaceMechanism(1), [0.0, 1.0])
    >>> sampler.log_likelihood([0.0]).round(3).tolist()
    [[-0.693, -1.693]]
    """

    __slots__ = ()

    def __init__(self, mechanism: Mechanism, answers: ArrayLike) -> None:
        if isinstance(mechanism, ChoiceMechanism) or not isinstance(
            mechanism, Mechanism
        ):
            raise NotApplicable(
                "mechanism must answer with numbers, got "
                f"{type(mechanism).__name__}; use ChannelSampler for finitely many "
                "outputs and ProtocolSampler for a local protocol."
            )
        given = np.array(answers, dtype=np.float64)
        if given.ndim not in (1, 2) or not given.size or not np.isfinite(given).all():
            raise MismatchError(
                "answers must be one finite number or vector for each record, got "
                f"shape {given.shape}."
            )
        super().__init__(mechanism, given)

    @property
    def mechanism(self) -> Any:
        """The mechanism."""
        return self.law

    @property
    def answers(self) -> Floats:
        """What the mechanism is given for each record."""
        return np.asarray(self.inputs)

    @classmethod
    def from_query(
        cls,
        mechanism: Mechanism,
        query: Callable[[Any], Any],
        *,
        support: Sequence[Hashable],
    ) -> MechanismSampler:
        """Ask the query once for each record."""
        return cls(mechanism, [query(record) for record in support])


class ProtocolSampler(LawSampler):
    """Draws reports of a local protocol; the records are its categories, in order.

    Parameters
    ----------
    protocol : LocalProtocol
        Randomised response, unary encoding, subset selection, hashing or a histogram.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> sampler = ProtocolSampler(GeneralizedResponse(3, 1))
    >>> sampler.log_likelihood([2]).round(3).tolist()
    [[-1.551, -1.551, -0.551]]
    """

    __slots__ = ()

    def __init__(self, protocol: LocalProtocol) -> None:
        if not isinstance(protocol, LocalProtocol):
            raise TypeError(
                f"protocol must be a LocalProtocol, got {type(protocol).__name__}."
            )
        super().__init__(protocol, protocol.listed_inputs)

    @property
    def protocol(self) -> Any:
        """The protocol."""
        return self.law

    def __repr__(self) -> str:
        return f"ProtocolSampler({self.law!r})"
