r"""Attacks on reports of places on a graph, and their exact figures at any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index, check_non_negative
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.risk.channel import ChannelStream
from undertow.risk.decision import AttackRisk
from undertow.risk.prior import Prior
from undertow.risk.success import Success

__all__ = ["GraphSampler", "exact_report_figures", "graph_stream", "graph_success"]

Floats = NDArray[np.float64]


class GraphSampler:
    """Draw seeded reports of a mechanism on a graph; nodes and reports are numbers.

    Parameters
    ----------
    mechanism : GraphExponential
        What each node is given to.

    Notes
    -----
    For studies: the draws are simulated. No matrix is built.

    Examples
    --------
    >>> sampler = GraphSampler(GraphExponential([[0, 1], [1, 0]], epsilon=60))
    >>> sampler.sample(1, 3, rng=np.random.default_rng(0)).tolist()
    [1, 1, 1]
    """

    __slots__ = ("mechanism",)

    def __init__(self, mechanism: GraphExponential) -> None:
        self.mechanism = _graph(mechanism)

    def sample(
        self, record: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `size` reports of the node of that number."""
        node = check_index(record, "record", size=self.mechanism.size)
        truths = np.full(check_count(size, "size"), node, dtype=np.intp)
        source = SimulatedSource(rng)
        return self.mechanism.sample_nodes(truths, source=source).values

    def __repr__(self) -> str:
        return f"GraphSampler({self.mechanism.size} nodes)"


def graph_stream(mechanism: GraphExponential) -> ChannelStream:
    """Return the channel of a mechanism on a graph in blocks of columns.

    Parameters
    ----------
    mechanism : GraphExponential
        Any size: 4 million entries are held at a time.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat, advantage
    >>> ring = [[i, (i + 1) % 6] for i in range(6)]
    >>> mechanism = GraphExponential.from_graph(ring, epsilon=10, directed=False)
    >>> risk = advantage(graph_stream(mechanism), Threat(Prior.uniform(6)))
    >>> round(risk.value, 8)
    0.52022335
    """
    known = _graph(mechanism)
    return ChannelStream(known.column_blocks, known.size, known.candidates)


def graph_success(mechanism: GraphExponential, *, eta: float) -> Success:
    r"""Return the rule under which a guess counts within `eta` of the truth.

    Parameters
    ----------
    mechanism : GraphExponential
        Its distances are those meant.
    eta : float
        Radius, included: :math:`d(x, g) \le \eta` from the truth x to the guess g.

    Notes
    -----
    The table of the mechanism is [truth, report] and that of a rule [guess, truth]: it
    is transposed, which in a directed graph makes another rule.

    Examples
    --------
    >>> ring = GraphExponential.from_graph([[0, 1], [1, 2], [2, 0]], epsilon=1)
    >>> graph_success(ring, eta=1).matrix(range(3)).astype(int).tolist()
    [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
    """
    return Success.hops(_graph(mechanism).distances.T, eta)


def exact_report_figures(
    mechanism: GraphExponential, *, eta: float = 0.0, prior: ArrayLike | None = None
) -> AttackRisk:
    r"""Compute success, correction and advantage of the report as the guess.

    .. math:: \sum_v \pi_v \sum_{w : d(v,w) \le \eta} p(w \mid v)
       \quad\text{and}\quad
       \sum_w \Bigl(\sum_v \pi_v\, p(w \mid v)\Bigr) \pi\{z : d(z, w) \le \eta\}

    Parameters
    ----------
    mechanism : GraphExponential
        Any size that has a table of distances.
    eta : float, optional
        Radius, included.
    prior : array_like of shape (m,), optional
        Law of the true node; uniform by default.

    Returns
    -------
    AttackRisk
        Exact up to rounding. Uniform prior and `eta` 0:
        :math:`\frac1m \sum_v 1/Z_v`, with correction 1/m.

    Raises
    ------
    ModelError
        If `prior` is no law on the nodes.

    Notes
    -----
    Two passes over blocks of rows, O(m²). Under the uniform prior and `eta` 0 no
    attack has a larger advantage, on any strongly connected graph (proved on the page
    on graph mechanisms).

    Examples
    --------
    >>> path = [[i, i + 1] for i in range(4)]
    >>> mechanism = GraphExponential.from_graph(path, epsilon=1, directed=False)
    >>> figures = exact_report_figures(mechanism, eta=1)
    >>> round(figures.success, 8), round(figures.advantage, 8)
    (0.5797162, 0.05630603)
    """
    radius, size = check_non_negative(eta, "eta"), _graph(mechanism).size
    pmf = np.full(size, 1.0 / size) if prior is None else Prior(size, prior).pmf
    hit = mechanism.distances <= radius  # [truth, report]
    mass = pmf @ hit
    success, correction, gain = [], [], []
    for rows, laws in mechanism.row_blocks():
        told = (laws * hit[rows]).sum(axis=1)
        blind = laws @ mass
        success.append(pmf[rows] * told)
        correction.append(pmf[rows] * blind)
        gain.append(pmf[rows] * (laws * (hit[rows] - mass)).sum(axis=1))
    return AttackRisk(
        *(math.fsum(np.concatenate(p).tolist()) for p in (success, correction, gain))
    )


def _graph(mechanism: GraphExponential) -> GraphExponential:
    if not isinstance(mechanism, GraphExponential):
        raise TypeError(
            f"mechanism must be a GraphExponential, got {type(mechanism).__name__}."
        )
    return mechanism
