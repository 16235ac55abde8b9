"""The exponential mechanism on road graphs: Sauer's Figures 6.8 to 6.11.

With its exact figures on a city, for all levels at once.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.graph import GraphExponential, adjacency
from undertow.numeric.array import Floats, Indices
from undertow.privacy import Pure
from undertow.risk import AttackRisk, Prior, Threat, advantage
from undertow.risk.attacks import (
    GraphSampler,
    ReportGuess,
    exact_report_figures,
    graph_stream,
)
from undertow.risk.attacks.guess import sample_rows
from undertow.risk.bounds import uniform_guess_bound, variation_bound
from undertow.risk.estimate import AttackEstimate, estimate_attack
from undertow_studies.sauer_city import (
    EPSILON_LABEL,
    EPSILONS,
    MEASURED,
    PLACES,
    SOURCE,
    Moves,
    Network,
    Place,
    agreement,
    chance_panel,
    city_words,
    claim,
    entries_at,
    estimate_of,
    figure_curves,
    reports_drawn,
)
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow_studies.thesis_bound import finished

_CONFIDENCE = 0.99999

Table = dict[int, list[AttackRisk]]
Points = dict[float, AttackEstimate]


def _measured(
    city: CityHops, radius: int, *, runs: int, rng: np.random.Generator
) -> Points:
    """Run the report attack on uniform targets."""
    mass = city.ball(np.full(city.size, 1 / city.size), radius)
    found = {}
    for e in MEASURED:
        truths = rng.integers(city.size, size=5 * runs)
        reports = city.sample(truths, e, rng=rng)
        hit = city.hops[truths, reports] <= radius
        found[e] = estimate_of(hit, mass[reports])
    return found


def _figure_6_8(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks = [], []
    for place in PLACES:
        network = inputs.data[place.roads]
        city = city_hops(network)
        exact = city.report_figures(EPSILONS, 0)
        points = _measured(city, 0, runs=inputs.runs, rng=rng)
        bound = tuple(
            uniform_guess_bound(Pure(city.level(e)), city.size).value for e in EPSILONS
        )
        curves = [
            *_positive(figure_curves(exact, points)),
            Curve("Corollary 1", EPSILONS, bound, kind="baseline"),
        ]
        name = f"{place.name}, η = 0"
        panels.append(chance_panel(name, curves, log=True))
        checks += _perfect_checks(
            place, city, exact=exact, bound=bound, real=network.real
        )
        checks.append(agreement(place.name, exact, points))
    return finished(FIGURE_6_8, panels, checks, data=city_words(inputs))


def _positive(curves: list[Curve]) -> list[Curve]:
    """Leave out what a logarithmic axis cannot show."""
    shown = [
        Curve(c.label, c.x, tuple(y if y > 0 else math.nan for y in c.y), c.kind)
        for c in curves
    ]
    return [c for c in shown if any(math.isfinite(y) for y in c.y)]


def _perfect_checks(
    place: Place,
    city: CityHops,
    *,
    exact: list[AttackRisk],
    bound: tuple[float, ...],
    real: bool,
) -> list[Check]:
    words = "" if real else "a grid of streets stands in for the city"
    return [
        compare(
            f"diameter, {place.name}",
            str(place.diameter),
            city.diameter,
            stand_in=words,
        ),
        claim(
            f"success and advantage are negligible up to ε = 20, {place.name}",
            exact[-1].success < 0.05,
            f"success {exact[-1].success:.4g} and advantage {exact[-1].advantage:.4g} "
            f"at ε = 20; no attack has more; Corollary 1 allows "
            f"{bound[-1]:.4g}",
            real=real,
        ),
        Check(
            f"exact privacy parameter at nominal ε = 20, {place.name}",
            None,
            city.level(20.0),
            "not published",
            "about half the nominal one, as on every graph whose nodes look alike"
            + ("" if real else "; on a stand-in city"),
        ),
    ]


def _figure_6_9(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    network, threat = inputs.data["braced-grid"], Threat(Prior.uniform(50))
    exact, points, gap, bound = [], {}, 0.0, []
    for e in EPSILONS:
        mechanism = GraphExponential.from_graph(network.edges, epsilon=e)
        figures = exact_report_figures(mechanism)
        best = advantage(graph_stream(mechanism), threat).value
        gap = max(gap, abs(best / figures.advantage - 1))
        bound.append(uniform_guess_bound(mechanism.loss(), 50).value)
        exact.append(figures)
        if e in MEASURED:
            points[e] = estimate_attack(
                GraphSampler(mechanism),
                ReportGuess(threat),
                threat,
                trials=5 * inputs.runs,
                confidence=_CONFIDENCE,
                rng=rng,
            )
    curves = [
        *figure_curves(exact, points),
        Curve("Corollary 1", EPSILONS, tuple(bound), kind="baseline"),
    ]
    checks = [
        compare("diameter", "11", network.diameter, note="50 nodes"),
        compare("correction", 1 / 50, exact[0].correction),
        agreement("50 nodes", exact, points),
        Check(
            "why the bounds are loose for the exponential mechanism",
            "the attack is not the best",
            "the report is the best attack",
            "erratum" if gap < 1e-9 else "match",
            f"the advantage of the best attack differs by a relative {gap:.1e}; the "
            "bound does not see the graph",
            "AE26" if gap < 1e-9 else "",
        ),
    ]
    panel = chance_panel("braced grid, 50 nodes, η = 0", curves)
    words = "a graph of 50 nodes and diameter 11 of our own; simulated reports"
    return finished(FIGURE_6_9, [panel], checks, data=words)


def radius_panels(
    name: str, exact: Table, *, points: dict[int, Points], bound: Curve
) -> list[Panel]:
    """Return one panel of success and one of advantage, a colour for each radius."""
    panels = []
    for figure in ("success", "advantage"):
        curves = []
        for radius, line in exact.items():
            values = tuple(getattr(figures, figure) for figures in line)
            label = f"η = {radius}"
            curves.append(Curve(label, EPSILONS, values))
            if radius in points:
                found = points[radius]
                marks = tuple(getattr(p, figure).value for p in found.values())
                shown = f"{label}, measured"
                curves.append(Curve(shown, tuple(found), marks, kind="measured"))
        if figure == "advantage":
            curves.append(bound)
        panels.append(Panel(name, tuple(curves), EPSILON_LABEL, figure))
    return panels


def _radii(study: Study, inputs: Inputs, place: Place) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    network = inputs.data[place.roads]
    city = city_hops(network)
    exact = {r: city.report_figures(EPSILONS, r) for r in place.radii}
    points = {
        r: _measured(city, r, runs=inputs.runs, rng=rng) for r in place.radii[1::2]
    }
    values = tuple(
        variation_bound(Pure(city.level(e)), collision=1 / city.size).value
        for e in EPSILONS
    )
    bound = Curve("Theorem 6", EPSILONS, values, kind="baseline")
    panels = radius_panels(place.name, exact, points=points, bound=bound)
    checks = _radius_checks(place, exact, real=network.real)
    checks += [
        agreement(f"η = {r}, {place.name}", exact[r], found)
        for r, found in points.items()
    ]
    return finished(study, panels, checks, data=city_words(inputs))


def _radius_checks(place: Place, exact: Table, *, real: bool) -> list[Check]:
    last = {r: line[-1] for r, line in exact.items()}
    rows = list(last.values())
    success = [figures.success for figures in rows]
    correction = [figures.correction for figures in rows]
    gains = [figures.advantage for figures in rows]
    peak = place.radii[int(np.argmax(gains))]
    listed = ", ".join(f"{g:.3g}" for g in gains)
    return [
        claim(
            f"success grows with η, {place.name}",
            success == sorted(success),
            f"at ε = 20: {', '.join(f'{s:.3g}' for s in success)}",
            real=real,
        ),
        claim(
            f"success and advantage part as η grows, {place.name}",
            correction == sorted(correction),
            f"by {', '.join(f'{c:.3g}' for c in correction)} at ε = 20",
            real=real,
        ),
        Check(
            f"advantage as η grows, ε = 20, {place.name}",
            "decreases",
            f"rises to η = {peak}, then falls",
            "erratum" if real else "stand-in",
            f"{listed} at η = {', '.join(map(str, place.radii))}",
            "AE38" if real else "",
        ),
        claim(
            f"at the largest η success is one and advantage zero, {place.name}",
            success[-1] > 0.9 and gains[-1] < 0.1,
            f"{success[-1]:.4g} and {gains[-1]:.2g} at ε = 20, η = {place.radii[-1]}; "
            "exactly only from the diameter on",
            real=real,
        ),
        claim(
            f"the advantage grows with ε, {place.name}",
            all(
                a.advantage <= b.advantage + 1e-12
                for line in list(exact.values())[:3]
                for a, b in itertools.pairwise(line)
            ),
            f"at the first three η; at η = {place.radii[1]} from "
            f"{exact[place.radii[1]][0].advantage:.2g} to "
            f"{exact[place.radii[1]][-1].advantage:.2g}",
            real=real,
        ),
    ]


def _figure_6_10(inputs: Inputs) -> StudyResult:
    return _radii(FIGURE_6_10, inputs, PLACES[0])


def _figure_6_11(inputs: Inputs) -> StudyResult:
    return _radii(FIGURE_6_11, inputs, PLACES[1])


FIGURE_6_8 = Study(
    "sauer-figure-6.8",
    "report of the exponential mechanism as the guess, exact node",
    f"{SOURCE}, Figure 6.8",
    _figure_6_8,
    ("porto", "geolife"),
    draws=reports_drawn,
)
FIGURE_6_9 = Study(
    "sauer-figure-6.9",
    "report of the exponential mechanism on 50 nodes",
    f"{SOURCE}, Figure 6.9",
    _figure_6_9,
    needs=("braced-grid",),
    draws=reports_drawn,
)
FIGURE_6_10 = Study(
    "sauer-figure-6.10",
    "report of the exponential mechanism in Porto, within η hops",
    f"{SOURCE}, Figure 6.10",
    _figure_6_10,
    ("porto",),
    draws=reports_drawn,
)
FIGURE_6_11 = Study(
    "sauer-figure-6.11",
    "report of the exponential mechanism in Beijing, within η hops",
    f"{SOURCE}, Figure 6.11",
    _figure_6_11,
    ("geolife",),
    draws=reports_drawn,
)
SAUER_GRAPH = (FIGURE_6_8, FIGURE_6_9, FIGURE_6_10, FIGURE_6_11)


# Exact figures of the exponential mechanism on a city, for all levels at once.
#
# A report w of the node v has the odds :math:`e^{-r\,d(v,w)}`, so what matters of a
# node is how many nodes, and how much mass, lie at each distance. One pass over the
# table of hops gives those profiles; a level then costs a sum over distances, not over
# pairs.


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
