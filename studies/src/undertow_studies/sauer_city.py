"""Sauer's cities and trips: what the studies of chapters 4 to 6 share.

Cities, axes, measured points; steps of trips, learnt, held out and attacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import GeneralizedResponse
from undertow.numeric.array import Floats
from undertow.privacy import Estimate
from undertow.privacy.tradeoff import PiecewiseLinearTradeOff, tradeoff_from_pmfs
from undertow.risk import AttackRisk
from undertow.risk.attacks import fit_transitions
from undertow.risk.estimate import AttackEstimate
from undertow.risk.intervals import empirical_bernstein
from undertow_studies.study import Check, Curve, Inputs, Panel, Status, compare, count

SOURCE = "Sauer (2025)"
EPSILONS = tuple(float(e) for e in range(1, 21))
"""Levels of chapter 6."""
EPSILON_LABEL = "privacy parameter ε"
WHICH = {"all": "all reports", "inside": "reports inside"}
"""Which reports a prior counts, in words."""
_CHANCE_LABEL = "success, advantage"

Values = tuple[float, ...]


class Network(Protocol):
    """What is asked of a road network: its edges, its size, and whether it is real."""

    @property
    def edges(self) -> NDArray[np.int64]:
        """Pairs of nodes, from and to."""

    @property
    def real(self) -> bool:
        """Whether it is the network of the source and no stand-in."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Place:
    """One city of chapter 6: names of its data, and what is printed of it.

    Parameters
    ----------
    name, roads, walks : str
        Of the city, of its network and of its trips.
    size, diameter : int
        Number of nodes and largest number of hops.
    radii, best_guess : tuple
        The η of Tables 6.4 and 6.5, and the printed κ⁺ of each.
    collision, largest : str
        κ of Table 6.3, and the largest share of Table 6.1, as printed.
    sample : str
        Which part of the trips behind the printed shares is public, if not all.
    """

    name: str
    roads: str
    walks: str
    size: int
    diameter: int
    radii: tuple[int, ...]
    best_guess: tuple[str, ...]
    collision: str
    largest: str
    sample: str = ""


PLACES = (
    Place(
        "Porto",
        "porto",
        "porto-trips",
        3052,
        88,
        (0, 9, 26, 44, 70),
        ("0.10", "0.29", "0.84", "1", "1"),
        "0.03",
        "0.11",
        "1 820 of the 1.71 million trips stand in for all",
    ),
    Place(
        "Beijing",
        "geolife",
        "geolife-stays",
        5356,
        92,
        (0, 9, 28, 46, 74),
        ("0.15", "0.34", "0.71", "0.99", "1"),
        "0.05",
        "0.15",
    ),
)
"""Porto and Beijing."""


def city_words(inputs: Inputs, *, simulated: bool = True) -> str:
    """Say which networks were used."""
    cities = [v for v in inputs.data.values() if hasattr(v, "real")]
    real = all(city.real for city in cities)
    words = (
        "real road networks; visits of Porto from 1 820 of its 1.71 million trips, of "
        "Beijing from 99 % of the reports"
        if real
        else "grids of streets as stand-in cities"
    )
    return f"{words}; simulated reports" if simulated else words


def claim(quantity: str, holds: bool, note: str, *, real: bool = True) -> Check:
    """Return the check of a printed statement about data that may be a stand-in."""
    answer = "yes" if holds else "no"
    status: Status = "match" if holds else "differs"
    if not real:
        status, note = "stand-in", f"on a stand-in city; {note}"
    return Check(quantity, "yes", answer, status, note)


def reports_drawn(runs: int) -> str:
    """Say how many reports the source attacked at a point, and how many are here."""
    return (
        "source: 1 000 targets, five reports each; here: "
        f"{count(runs)} targets, five reports each"
    )


def nodes_of(place: Place) -> str:
    """Name a city and its size."""
    return f"{place.name}, {place.size} nodes"


def prior_check(
    quantity: str,
    published: str,
    ours: float,
    *,
    place: Place,
    visits: str,
    real: bool,
) -> Check:
    """Return the check of a number that depends on which reports a prior counts.

    Parameters
    ----------
    place : Place
        The city; where only a part of its trips is public, the check is a stand-in.
    visits : {"all", "inside"}
        The count of the source, or the honest one.
    real : bool
        Whether the city is real.
    """
    off = (
        "the source puts every report on its nearest node, also those outside the area "
        "(60 % in Porto, 91 % in Beijing), which pile up on its border"
    )
    return compare(
        quantity,
        published,
        ours,
        erratum="AE35" if visits == "inside" else "",
        why=off,
        stand_in=place.sample if real else "a grid of streets stands in for the city",
        note=(off if visits == "inside" else "")
        if place.sample
        else "from 99 % of the reports",
    )


def response_curve(size: int, epsilon: float) -> PiecewiseLinearTradeOff:
    """Return the trade-off function of randomised response on `size` values.

    Examples
    --------
    >>> round(response_curve(4, 1.0).total_variation(), 9)
    0.300489182
    """
    response = GeneralizedResponse(size, epsilon)
    p, q = float(response.keep), float(response.noise)
    rest = (size - 2) * q
    return tradeoff_from_pmfs([p, q, rest], [q, p, rest])


def response_figures(size: int, epsilon: float, *, collision: float) -> AttackRisk:
    r"""Return success, correction and advantage of the report of randomised response.

    .. math:: p, \qquad q + (p-q)\kappa, \qquad (p-q)(1-\kappa)

    Examples
    --------
    >>> figures = response_figures(2, 1.0, collision=0.5)
    >>> round(figures.success, 9), round(figures.advantage, 9)
    (0.731058579, 0.231058579)
    """
    response = GeneralizedResponse(size, epsilon)
    p, q = float(response.keep), float(response.noise)
    return AttackRisk(p, q + (p - q) * collision, (p - q) * (1 - collision))


def figure_curves(
    exact: Sequence[AttackRisk],
    measured: Mapping[float, AttackEstimate] | None = None,
    *,
    suffix: str = "",
) -> list[Curve]:
    """Return lines of success and advantage at all levels, and markers of points."""
    curves = []
    for name in ("success", "advantage"):
        label = f"{name}{suffix}"
        if exact:
            line = tuple(getattr(figures, name) for figures in exact)
            curves.append(Curve(label, EPSILONS, line))
        if measured:
            points = tuple(getattr(found, name).value for found in measured.values())
            shown = f"{label}, measured"
            curves.append(Curve(shown, tuple(measured), points, kind="measured"))
    return curves


def chance_panel(name: str, curves: Sequence[Curve], *, log: bool = False) -> Panel:
    """Return a panel of success and advantage over the level."""
    return Panel(name, tuple(curves), EPSILON_LABEL, _CHANCE_LABEL, y_log=log)


def agreement(
    where: str, exact: Sequence[AttackRisk], measured: Mapping[float, Any]
) -> Check:
    """Return the check that every exact advantage lies in its measured interval."""
    by_level = dict(zip(EPSILONS, exact, strict=True))
    inside = [
        found.advantage.low - 1e-12 <= by_level[e].advantage <= found.advantage.high
        for e, found in measured.items()
    ]
    first = next(iter(measured.values()))
    off = max(
        abs(f.advantage.value - by_level[e].advantage) for e, f in measured.items()
    )
    return Check(
        f"measured points follow the exact curve, {where}",
        "closely match",
        "yes" if all(inside) else "no",
        "match" if all(inside) else "differs",
        f"{first.mechanism_runs} reports at each of {len(inside)} levels; intervals of "
        f"confidence {first.advantage.confidence:g} each; largest deviation "
        f"{np.format_float_positional(off, precision=2, fractional=False)}",
    )


# Steps of trips for Sauer's correlation attack: learnt, held out and attacked.

_CONFIDENCE = 0.99999
MEASURED = EPSILONS[1::2]
"""Levels at which an attack is also run."""

# Share of the stays held out, by a multiplicative hash of their number.
_HELD_OUT, _HASH, _WORD = 0.1, 2654435761, 1 << 32


class Walks(Protocol):
    """What is asked of trips: places in order, and which trips are held out."""

    @property
    def nodes(self) -> tuple[NDArray[np.int64], ...]:
        """The places of each trip."""

    @property
    def inside(self) -> tuple[NDArray[np.bool_], ...]:
        """Whether each report lies inside the area."""

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Whether each trip is held out."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Moves:
    """What the attacker has learnt of steps, and how the targets really step.

    Parameters
    ----------
    model : sparse array of shape (m, m)
        Transition matrix of the training trips; empty rows where none was seen.
    steps : sparse array of shape (m, m)
        Transition matrix of the held-out trips.
    before, now : ndarray of shape (m,)
        Law of the place before and of the place now, of held-out steps.
    """

    model: Any
    steps: Any
    before: Floats
    now: Floats

    @property
    def collision(self) -> float:
        """Chance that two targets are at one place now."""
        return float(self.now @ self.now)

    @property
    def joint(self) -> Any:
        """Probability of each step of a target."""
        from scipy import sparse

        return sparse.csr_array(self.steps.multiply(self.before[:, None]))

    @property
    def seen(self) -> float:
        """Share of the targets whose step the model has seen."""
        return float(self.joint.multiply(self.model > 0).sum())


def read_moves(walks: Walks, size: int, *, visits: str = "all") -> Moves:
    """Fit the model on training trips and count the steps of the others.

    Parameters
    ----------
    walks : Walks
        Trips; where none is marked as held out, a tenth is, by a hash.
    size : int
        Number of places.
    visits : {"all", "inside"}
        Whether reports outside the area count, at the nearest place, as in the source.
    """
    held = walks.held_out
    if not held.any():
        order = np.arange(len(walks), dtype=np.uint64) * np.uint64(_HASH)
        held = (order % np.uint64(_WORD)) < _HELD_OUT * _WORD
    parts = [_parts(walks, k, visits) for k in range(len(walks))]
    train = [part for k, trip in enumerate(parts) if not held[k] for part in trip]
    test = [part for k, trip in enumerate(parts) if held[k] for part in trip]
    counts = np.zeros(size)
    for part in test:
        np.add.at(counts, part[:-1], 1.0)
    before = counts / counts.sum()
    steps = fit_transitions(test, size)
    now = np.asarray(before @ steps).reshape(-1)
    return Moves(fit_transitions(train, size), steps, before, now)


def _parts(walks: Walks, number: int, visits: str) -> list[NDArray[np.int64]]:
    """Return a trip whole, or its stretches inside the area."""
    nodes, inside = walks.nodes[number], walks.inside[number]
    if visits == "all":
        return [nodes]
    ends = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    return [nodes[low:high] for low, high in ends.reshape(-1, 2).tolist()]


def measured_response(
    moves: Moves, threshold: float, *, runs: int, rng: np.random.Generator
) -> dict[float, AttackEstimate]:
    """Run the attack on drawn steps, each scored against all other targets."""
    joint, model = moves.joint.tocoo(), moves.model
    trusted = model.copy()
    trusted.data = (trusted.data > threshold).astype(np.float64)
    unseen = np.diff(model.indptr) == 0
    base = _baselines(joint, model, trusted, unseen)
    found = {}
    for e in MEASURED:
        drawn = rng.choice(joint.nnz, size=5 * runs, p=joint.data / joint.data.sum())
        a, b = joint.row[drawn], joint.col[drawn]
        source = SimulatedSource(rng)
        report = GeneralizedResponse(model.shape[0], e).sample(b, source=source).values
        believed = (entries_at(trusted, a, report) > 0) | unseen[a]
        hit = np.where(believed, report == b, entries_at(model, a, b))
        found[e] = estimate_of(hit, base[report])
    return found


def _baselines(joint: Any, model: Any, trusted: Any, unseen: Any) -> Floats:
    """Return the chance to hit an independent target, for each report."""
    drawn = joint.data * entries_at(model, joint.row, joint.col)
    falls = np.bincount(joint.row, drawn, minlength=model.shape[0])
    kept = entries_at(trusted, joint.row, joint.col) > 0
    own = np.where(kept | unseen[joint.row], joint.data, 0.0)
    told = np.bincount(joint.col, own, minlength=model.shape[0])
    return np.asarray(told + falls.sum() - falls @ trusted)


def estimate_of(hit: Any, base: Floats) -> AttackEstimate:
    """Return the self-paired estimate of scored reports of independent targets.

    Parameters
    ----------
    hit : array_like
        Expected hit of each report on its own target.
    base : ndarray
        Chance of each report's guess to hit an independent target.
    """
    hits = np.asarray(hit, dtype=np.float64)
    return AttackEstimate(
        _mean(hits, 0.0),
        _mean(base, 0.0),
        _mean(hits - base, -1.0),
        None,
        "plain",
        "paired",
        len(hits),
        len(hits),
    )


def _mean(values: Floats, lowest: float) -> Estimate:
    # Sums of probabilities may exceed their limits by rounding.
    low, high = empirical_bernstein(
        values, lowest=lowest - 1e-9, highest=1 + 1e-9, confidence=_CONFIDENCE
    )
    value, method = float(values.mean()), "empirical Bernstein"
    return Estimate(value, low, high, _CONFIDENCE, len(values), method=method)


def entries_at(matrix: Any, rows: Any, columns: Any) -> Floats:
    """Return the entries of a sparse array at given places."""
    found = matrix[rows, columns]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found).ravel()
