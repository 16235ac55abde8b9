"""Mechanisms as samplers with a likelihood: channels, additive noise, local protocols.

All draws are simulated, from the given stream: for measuring, never for a release.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index
from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms.base import ChoiceMechanism, Mechanism
from undertow.mechanisms.local.base import LocalProtocol
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.risk.channel import Channel, as_channel

__all__ = [
    "ChannelSampler",
    "LikelihoodSource",
    "MechanismSampler",
    "ProtocolSampler",
]

Floats = NDArray[np.float64]


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


class MechanismSampler:
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

    __slots__ = ("answers", "mechanism")

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
        self.mechanism, self.answers = mechanism, given

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

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` outputs of the record of that number."""
        given = self.answers[check_index(record, "record", size=len(self.answers))]
        shape = (check_count(size, "size"), *given.shape)
        values = np.broadcast_to(given, shape).copy()
        return self.mechanism.sample(values, source=SimulatedSource(rng)).values

    def log_likelihood(self, outputs: ArrayLike) -> Floats:
        """Return the log density of each output for each record."""
        seen = np.asarray(outputs, dtype=np.float64)
        columns = [
            np.asarray(self.mechanism.log_density(seen, given))
            for given in self.answers
        ]
        return np.stack(columns, axis=1)

    def __repr__(self) -> str:
        name = type(self.mechanism).__name__
        return f"MechanismSampler({name}, {len(self.answers)} records)"


class ProtocolSampler:
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

    __slots__ = ("protocol",)

    def __init__(self, protocol: LocalProtocol) -> None:
        if not isinstance(protocol, LocalProtocol):
            raise TypeError(
                f"protocol must be a LocalProtocol, got {type(protocol).__name__}."
            )
        self.protocol = protocol

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` reports of the category of that number."""
        values = np.full(check_count(size, "size"), record, dtype=np.int64)
        return self.protocol.sample(values, source=SimulatedSource(rng)).values

    def log_likelihood(self, outputs: Any) -> Floats:
        """Return the log density of each report for each category."""
        categories = range(self.protocol.categories)
        columns = [self.protocol.log_density(outputs, x) for x in categories]
        return np.stack(columns, axis=1)

    def __repr__(self) -> str:
        return f"ProtocolSampler({self.protocol!r})"
