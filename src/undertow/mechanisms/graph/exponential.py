r"""The exponential mechanism over the points of a space: near points are likelier."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow._validate import check_count
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms.base import ChoiceMechanism, ChoiceSource
from undertow.mechanisms.graph._table import (
    read_distances,
    read_numbers,
    require_triangles,
)
from undertow.mechanisms.graph.hops import adjacency, hop_distances
from undertow.mechanisms.noise.draw import Draw, read_positive
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.values import read_candidates
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric
from undertow.spaces.metric import DiscreteMetric

__all__ = ["GraphExponential"]

Floats = NDArray[np.float64]

# Largest space whose total variation is computed, pair by pair.
_PAIRED = 6000
_ENTRIES = 1 << 22
# Cover the slack of the triangle inequality and the rounding of two logs of sums.
_MARGIN = 4e-12
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class GraphExponential(ChoiceMechanism):
    r"""Report node w for the true node v with odds :math:`e^{-r\,d(v,w)}`.

    .. math:: p(w \mid v) = \frac{e^{-r\,d(v,w)}}{Z_v}, \qquad
       Z_v = \sum_u e^{-r\,d(v,u)}, \qquad r = \frac{\varepsilon}{2\Delta}

    Parameters
    ----------
    distances : array_like of shape (m, m)
        Distance from each true node (row) to each report (column): finite, zero on the
        diagonal, positive elsewhere, with the triangle inequality; it need not be
        symmetric. :meth:`from_graph` counts hops.
    epsilon : int, float, str, Decimal or Fraction
        The nominal privacy parameter; positive and finite.
    nodes : sequence of hashable, optional
        Names of the nodes; 0, ..., m - 1 by default.

    Raises
    ------
    AssumptionError
        If the triangle inequality fails.
    NotApplicable
        If it cannot be checked: more than 1000 nodes, and distances that are not the
        hops of a graph.

    Notes
    -----
    The score is minus the distance, its sensitivity the diameter :math:`\Delta`, which
    may be seen: the graph is public. The mechanism is :math:`\varepsilon`-DP for any
    two nodes, and its exact parameter is

    .. math:: \varepsilon^* = \max_{v, v'} \; r\,d(v', v) + \ln Z_{v'} - \ln Z_v
       \le \varepsilon,

    :math:`\varepsilon/2` where all normalisers are equal (proved on the page on graph
    mechanisms). :meth:`loss` states :math:`\varepsilon^*`, `epsilon` is the nominal
    value. [1]_ prints :math:`2\varepsilon\Delta` for the same exponent, which is that
    of odds :math:`e^{\varepsilon u}`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, sections 3.1.1 and 6.2.1.

    Examples
    --------
    >>> ring = [[i, (i + 1) % 6] for i in range(6)]
    >>> mechanism = GraphExponential.from_graph(ring, epsilon=10, directed=False)
    >>> mechanism.diameter, round(mechanism.loss().epsilon, 9)
    (Fraction(3, 1), 5.0)
    >>> mechanism.pmf(0).round(4).tolist()
    [0.6869, 0.1297, 0.0245, 0.0046, 0.0245, 0.1297]
    """

    candidates: tuple[Hashable, ...]
    distances: NDArray[Any]
    epsilon: Fraction
    diameter: Fraction
    log_normalisers: Floats
    _places: dict[Hashable, int] = field(repr=False)

    def __init__(
        self,
        distances: ArrayLike,
        *,
        epsilon: Number,
        nodes: Sequence[Hashable] | None = None,
    ) -> None:
        table = read_distances(distances)
        require_triangles(table)
        self._keep(table, epsilon, nodes)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        *,
        epsilon: Number,
        nodes: Sequence[Hashable] | None = None,
        directed: bool = True,
    ) -> GraphExponential:
        """Build the mechanism on the hop distances of a strongly connected graph.

        Parameters
        ----------
        graph : sparse array of shape (m, m), or array_like of shape (n, 2)
            Arcs, as a sparse matrix or as pairs (from, to).
        epsilon, nodes
            As above.
        directed : bool, optional
            Whether the arcs lead one way only.
        """
        mechanism = object.__new__(cls)
        table = hop_distances(adjacency(graph, directed=directed))
        mechanism._keep(table, epsilon, nodes)
        return mechanism

    def _keep(
        self,
        table: NDArray[Any],
        epsilon: Number,
        nodes: Sequence[Hashable] | None,
    ) -> None:
        if len(table) < 2:
            raise ModelError(
                f"distances must be of two nodes or more, got {len(table)}."
            )
        named = read_candidates(len(table) if nodes is None else nodes)
        if len(named) != len(table):
            raise MismatchError(
                f"nodes must name each of the {len(table)} rows, got {len(named)}."
            )
        table.setflags(write=False)
        object.__setattr__(self, "candidates", named)
        object.__setattr__(self, "distances", table)
        object.__setattr__(self, "epsilon", read_positive(epsilon, "epsilon"))
        largest = Fraction(exact(table.max().item(), "distances"))
        object.__setattr__(self, "diameter", largest)
        places = {node: place for place, node in enumerate(named)}
        object.__setattr__(self, "_places", places)
        sums = [odds.sum(axis=1) for odds in self._odds()]
        object.__setattr__(self, "log_normalisers", np.log(np.concatenate(sums)))

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.candidates)

    @property
    def rate(self) -> Fraction:
        r"""The :math:`r = \varepsilon/2\Delta` in the exponent."""
        return self.epsilon / (2 * self.diameter)

    def loss(self, metric: Metric | None = None) -> Pure:
        r"""Return the exact loss between any two nodes, rounded up.

        Parameters
        ----------
        metric : Metric, optional
            The discrete metric, which is the default.

        Notes
        -----
        :math:`\varepsilon^*` above, in O(m²), raised by a relative 4e-12 and an
        absolute 1e-13 for its rounding; never more than the nominal `epsilon`.
        """
        if metric is not None and not isinstance(metric, DiscreteMetric):
            raise MismatchError(
                f"metric must be the discrete metric on nodes, got {metric.name}."
            )
        logs, rate = self.log_normalisers, float(self.rate)
        worst = 0.0
        for rows in self._slices():
            # Row v', column v: log of p(v | v) over p(v | v').
            ratios = rate * self.distances[rows] + logs[rows, None] - logs
            worst = max(worst, float(ratios.max()))
        return self._raised(worst)

    def pair_loss(self, first: Hashable, second: Hashable) -> Pure:
        """Return the loss between two nodes, the larger of both directions."""
        v, w = self._position(first), self._position(second)
        if v == w:
            return Pure.zero()
        gap = float(self.log_normalisers[v] - self.log_normalisers[w])
        ahead, back = float(self.distances[v, w]), float(self.distances[w, v])
        rate = float(self.rate)
        return self._raised(max(rate * ahead + gap, rate * back - gap))

    def log_probabilities(self, given: Hashable) -> Floats:
        """Return the log probability of each report."""
        v = self._position(given)
        return np.asarray(
            -float(self.rate) * self.distances[v] - self.log_normalisers[v]
        )

    def pmf(self, given: Hashable) -> Floats:
        """Return the probability of each report."""
        return np.exp(self.log_probabilities(given))

    def row_blocks(self, width: int | None = None) -> Iterator[tuple[slice, Floats]]:
        """Hand out the rows of the channel: true nodes and the laws of their reports.

        Parameters
        ----------
        width : int, optional
            Rows at a time; about 4 million entries by default.
        """
        for rows in self._slices(width):
            logs = -float(self.rate) * self.distances[rows]
            yield rows, np.exp(logs - self.log_normalisers[rows, None])

    def column_blocks(self, width: int | None = None) -> Iterator[Floats]:
        """Hand out the columns of the channel, for a ``ChannelStream``.

        Examples
        --------
        >>> mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=2)
        >>> [block.round(4).tolist() for block in mechanism.column_blocks(1)]
        [[[0.7311], [0.2689]], [[0.2689], [0.7311]]]
        """
        for columns in self._slices(width):
            logs = -float(self.rate) * self.distances[:, columns]
            yield np.exp(logs - self.log_normalisers[:, None])

    def total_variation(self) -> float:
        r"""Return the largest total variation between two nodes, rounded up.

        Raises
        ------
        NotApplicable
            Beyond 6000 nodes: O(m³) operations and the whole channel in memory.
        """
        if self.size > _PAIRED:
            raise NotApplicable(
                f"the total variation must be over at most {_PAIRED} nodes, got "
                f"{self.size}; use tanh(epsilon / 2) with the epsilon of loss()."
            )
        from scipy.spatial.distance import cdist

        laws = np.concatenate([block for _, block in self.row_blocks()])
        worst = max(
            float(cdist(laws[rows], laws[rows.start :], "cityblock").max())
            for rows in self._slices(256)
        )
        return min(1.0, inflate(worst / 2 + self.size * 2.0**-52, _MARGIN))

    def sample(
        self, values: Sequence[Hashable], *, source: ChoiceSource | None = None
    ) -> Draw:
        """Draw one report per true node: :meth:`sample_nodes`, by name.

        Parameters
        ----------
        values : sequence of hashable
            The true nodes, by name.
        source : ChoiceSource, optional
            Operating-system entropy by default.
        """
        truths = np.array([self._position(value) for value in values], dtype=np.intp)
        draw = self.sample_nodes(truths, source=source)
        return self._labels(draw.values, draw)

    def sample_nodes(
        self, truths: ArrayLike, *, source: ChoiceSource | None = None
    ) -> Draw:
        r"""Draw one report per true node, both by number.

        Parameters
        ----------
        truths : array_like of int
            Numbers of the true nodes.
        source : ChoiceSource, optional
            Operating-system entropy by default; a `SimulatedSource` is for studies.

        Notes
        -----
        Propose a uniform node and keep it with probability :math:`e^{-r\,d}`. With a
        `SecureSource` the coins are exact for rational r d, hence so is the law; about
        :math:`m/Z_v` proposals each, and that timing is not protected.
        """
        true = read_numbers(truths, self.size)
        origin = read_source(source, draws="bernoulli_exp")
        reports = np.empty(len(true), dtype=np.intp)
        pending = np.arange(len(true))
        while pending.size:
            named = np.asarray(origin.uniform(self.size, pending.size).values)
            named = named.astype(np.intp)
            kept = self._coins(self.distances[true[pending], named], origin)
            reports[pending[kept]] = named[kept]
            pending = pending[~kept]
        return Draw(reports, origin.simulated, origin.name)

    def _coins(self, distances: NDArray[Any], origin: Any) -> NDArray[np.bool_]:
        """Toss one coin of probability exp(-r d) for each distance."""
        kept = np.zeros(len(distances), dtype=np.bool_)
        for distance in np.unique(distances):
            same = np.flatnonzero(distances == distance)
            x = self.rate * Fraction(exact(distance.item(), "distances"))
            kept[same] = origin.bernoulli_exp(x, len(same)).values == 1
        return kept

    def _odds(self) -> Iterator[Floats]:
        rate = float(self.rate)
        for rows in self._slices():
            yield np.exp(-rate * self.distances[rows])

    def _slices(self, width: int | None = None) -> Iterator[slice]:
        step = max(1, _ENTRIES // self.size) if width is None else width
        for start in range(0, self.size, check_count(step, "width")):
            yield slice(start, min(start + step, self.size))

    def _raised(self, value: float) -> Pure:
        raised = inflate(max(value, 0.0) + _ROUNDING, _MARGIN)
        return Pure(min(Fraction(raised), self.epsilon))

    def _position(self, output: Hashable) -> int:
        if output not in self._places:
            raise ValueError(f"labels must be among the {self.size} nodes.")
        return self._places[output]

    def __repr__(self) -> str:
        return (
            f"GraphExponential({self.size} nodes, diameter {float(self.diameter):g}, "
            f"epsilon={float(self.epsilon):g})"
        )
