r"""Exact figures of the exponential mechanism on a city, for all levels at once.

A report w of the node v has the odds :math:`e^{-r\,d(v,w)}`, so what matters of a node
is how many nodes, and how much mass, lie at each distance. One pass over the table of
hops gives those profiles; a level then costs a sum over distances, not over pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.graph import adjacency
from undertow.risk import AttackRisk
from undertow.risk.attacks.guess import sample_rows
from undertow.risk.estimate import AttackEstimate
from undertow.studies.sauer_common import Network
from undertow.studies.sauer_walks import Moves, entries_at, estimate_of

__all__ = ["CityHops", "Triples", "city_hops"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_ROWS = 512


@dataclass(frozen=True, eq=False)
class CityHops:
    """Hops of a city, and profiles of them; success counts hops from the truth.

    Parameters
    ----------
    hops : ndarray of uint8 of shape (m, m)
        From the true node (row) to the report (column).
    """

    hops: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.hops)

    @cached_property
    def diameter(self) -> int:
        """Largest number of hops."""
        return int(self.hops.max())

    @cached_property
    def counts(self) -> Floats:
        """Number of nodes at each distance from each node."""
        return self.profile(np.ones(self.size))

    def profile(self, weights: Floats) -> Floats:
        """Return the weight of the nodes at each distance from each node, in O(m²)."""
        width = self.diameter + 1
        parts = []
        for low in range(0, self.size, _ROWS):
            rows = self.hops[low : low + _ROWS]
            cells = rows + np.arange(0, width * len(rows), width)[:, None]
            spread = np.broadcast_to(weights, rows.shape).ravel()
            total = np.bincount(cells.ravel(), spread, minlength=width * len(rows))
            parts.append(total.reshape(len(rows), width))
        return np.concatenate(parts)

    def ball(self, weights: Floats, radius: float) -> Floats:
        """Return the weight of the truths within `radius` of each guess."""
        total = np.zeros(self.size)
        for low in range(0, self.size, _ROWS):
            rows = slice(low, low + _ROWS)
            total += weights[rows] @ (self.hops[rows] <= radius)
        return total

    def odds(self, epsilon: float) -> Floats:
        """Return the odds of a report at each distance."""
        rate = epsilon / (2 * self.diameter)
        odds: Floats = np.exp(-rate * np.arange(self.diameter + 1))
        return odds

    def normalisers(self, epsilon: float) -> Floats:
        """Return the sum of the odds over all reports, for each node."""
        return np.asarray(self.counts @ self.odds(epsilon))

    def level(self, epsilon: float) -> float:
        """Return the exact privacy parameter, at most the nominal `epsilon`."""
        return _level(self, epsilon)

    def report_figures(
        self, epsilons: tuple[float, ...], radius: int
    ) -> list[AttackRisk]:
        """Return the figures of the report as the guess under a uniform prior."""
        mass = self.ball(np.full(self.size, 1 / self.size), radius)
        others = self.profile(mass)
        found = []
        for e in epsilons:
            odds, sums = self.odds(e), self.normalisers(e)
            told = (self.counts[:, : radius + 1] @ odds[: radius + 1]) / sums
            blind = (others @ odds) / sums
            found.append(
                AttackRisk(
                    math.fsum(told.tolist()) / self.size,
                    math.fsum(blind.tolist()) / self.size,
                    math.fsum((told - blind).tolist()) / self.size,
                )
            )
        return found

    def sample(
        self, truths: Indices, epsilon: float, *, rng: np.random.Generator
    ) -> Indices:
        """Draw one simulated report of each true node: its distance, then which."""
        laws = self.counts[truths] * self.odds(epsilon)
        far, chosen = sample_rows(laws, rng=rng), rng.random(len(truths))
        reports = np.empty(len(truths), dtype=np.intp)
        drawn = zip(truths.tolist(), far.tolist(), chosen.tolist(), strict=True)
        for place, (truth, distance, share) in enumerate(drawn):
            ring = np.flatnonzero(self.hops[truth] == distance)
            reports[place] = ring[int(share * len(ring))]
        return reports


@lru_cache(maxsize=128)
def _level(city: CityHops, epsilon: float) -> float:
    rate, worst = epsilon / (2 * city.diameter), 0.0
    logs = np.log(city.normalisers(epsilon))
    for low in range(0, city.size, _ROWS):
        rows = slice(low, low + _ROWS)
        # Log of p(v | v) over p(v | v'); row v'.
        ratios = rate * city.hops[rows] + logs[rows, None] - logs
        worst = max(worst, float(ratios.max()))
    return worst


@lru_cache(maxsize=4)
def _table(edges: bytes, size: int) -> CityHops:
    """Return the hops of a graph, once for all studies of a session."""
    pairs = np.frombuffer(edges, dtype=np.intp).reshape(-1, 2)
    return CityHops(_search(adjacency(pairs, size=size)))


def city_hops(network: Network) -> CityHops:
    """Return the hops of a network, kept for the next study on it.

    Parameters
    ----------
    network : Network
        Strongly connected, of diameter below 256.

    Notes
    -----
    Sets of nodes that are reached grow by one hop at a time, eight to a byte: a second
    or two for 5356 nodes.
    """
    return _table(
        np.ascontiguousarray(network.edges, dtype=np.intp).tobytes(), len(network)
    )


def _search(arcs: Any) -> NDArray[np.uint8]:
    size, degree = arcs.shape[0], np.diff(arcs.indptr)
    # Row k: the k-th way out of each node, or the node itself.
    ways = np.tile(np.arange(size), (max(int(degree.max()), 1), 1))
    source = np.repeat(np.arange(size), degree)
    ways[np.arange(len(source)) - arcs.indptr[source], source] = arcs.indices
    reached = np.packbits(np.eye(size, dtype=np.bool_), axis=1)
    hops = np.zeros((size, size), dtype=np.uint8)
    for _ in range(256):
        missing = np.unpackbits(~reached, axis=1, count=size)
        if not missing.any():
            return hops
        hops += missing
        grown = reached.copy()
        for way in ways:
            grown |= reached[way]
        reached = grown
    raise ValueError("network must be strongly connected with a diameter below 256.")


@dataclass(frozen=True, eq=False)
class Triples:
    """The correlation attack at τ = 0 on a city: steps, and reports it would trust.

    Parameters
    ----------
    city : CityHops
        The hops.
    moves : Moves
        Model of the attacker and steps of the targets.
    """

    city: CityHops
    moves: Moves

    @cached_property
    def pairs(self) -> Any:
        """Steps (before, now) of targets, with their probability."""
        return self.moves.joint.tocoo()

    @cached_property
    def _entries(self) -> tuple[Indices, Indices]:
        """Return, for each triple, the number of its step and of its model entry."""
        starts, model = self.pairs.row, self.moves.model
        lengths = np.diff(model.indptr)[starts]
        step = np.repeat(np.arange(len(starts)), lengths)
        first = np.cumsum(lengths) - lengths
        within = np.arange(len(step)) - first[step]
        return step, model.indptr[starts][step] + within

    @cached_property
    def distances(self) -> NDArray[np.uint8]:
        """Hops from the place now to the trusted report, for each triple."""
        step, entry = self._entries
        reports = self.moves.model.indices[entry]
        return np.asarray(self.city.hops[self.pairs.col[step], reports])

    def _sums(self, values: Floats) -> Floats:
        step = self._entries[0]
        return np.bincount(step, values, minlength=self.pairs.nnz).astype(np.float64)

    def figures(self, epsilon: float, radii: tuple[int, ...]) -> list[AttackRisk]:
        """Return success, correction and advantage at each radius.

        Notes
        -----
        As `exact_correlation_figures`, summed over triples: O(m²) for the mean law of
        the reports, then O(triples) for each radius.
        """
        city, (step, entry) = self.city, self._entries
        odds, sums = city.odds(epsilon), city.normalisers(epsilon)
        now, report = self.pairs.col, self.moves.model.indices[entry]
        overall = self.overall(epsilon)
        own = odds[self.distances] / sums[now[step]]
        kept, kept_other = self._sums(own), self._sums(overall[report])
        unseen, found = self._unseen, []
        for radius in radii:
            hit = (self.distances <= radius).astype(float)
            drawn = self._drawn(radius)
            seen = self._sums(own * hit) + (1 - kept) * drawn
            base = self._sums(overall[report] * hit) + (1 - kept_other) * drawn
            near = city.hops[now[unseen]] <= radius
            inside = city.counts[now[unseen], : radius + 1] @ odds[: radius + 1]
            seen[unseen] = inside / sums[now[unseen]]
            base[unseen] = near @ overall
            found.append(_weighed(self.pairs.data, seen, base))
        return found

    def measure(
        self, epsilon: float, radius: int, *, trials: int, rng: np.random.Generator
    ) -> AttackEstimate:
        """Run the attack on drawn steps, each scored against all other targets."""
        city, pairs, model = self.city, self.pairs, self.moves.model
        drawn = self._drawn(radius)
        chosen = rng.choice(pairs.nnz, size=trials, p=pairs.data / pairs.data.sum())
        before, now = pairs.row[chosen], pairs.col[chosen]
        report = city.sample(now, epsilon, rng=rng)
        trusted = (entries_at(model, before, report) > 0) | self._unseen[chosen]
        near = city.hops[now, report] <= radius
        hit = np.where(trusted, near, drawn[chosen])
        return estimate_of(hit, self._baselines(radius, drawn)[report])

    @cached_property
    def _unseen(self) -> NDArray[np.bool_]:
        return np.asarray(np.diff(self.moves.model.indptr)[self.pairs.row] == 0)

    def _drawn(self, radius: int) -> Floats:
        """Return the chance that a draw from the model hits, for each step."""
        chances = self.moves.model.data[self._entries[1]]
        return self._sums(chances * (self.distances <= radius))

    def _baselines(self, radius: int, drawn: Floats) -> Floats:
        """Return the chance to hit an independent target, for each report."""
        step, entry = self._entries
        mass, report = self.pairs.data, self.moves.model.indices[entry]
        gain = mass[step] * ((self.distances <= radius) - drawn[step])
        base = np.bincount(report, gain, minlength=self.city.size) + mass @ drawn
        lost = self._unseen
        near = self.city.hops[self.pairs.col[lost]] <= radius
        return np.asarray(base + mass[lost] @ near)

    def overall(self, epsilon: float) -> Floats:
        """Return the mean law of the reports."""
        city = self.city
        odds, sums = city.odds(epsilon), city.normalisers(epsilon)
        where = np.flatnonzero(self.moves.now > 0)
        weights, total = self.moves.now[where] / sums[where], np.zeros(city.size)
        for low in range(0, len(where), _ROWS):
            part = slice(low, low + _ROWS)
            total += weights[part] @ odds[city.hops[where[part]]]
        return total


def _weighed(weights: Floats, seen: Floats, base: Floats) -> AttackRisk:
    parts = (weights * seen, weights * base, weights * (seen - base))
    return AttackRisk(*(math.fsum(part.tolist()) for part in parts))
