r"""Attacks on people who move: models of their steps, and reports on a graph of places.

Markov models of movement are fitted from trajectories. The correlation attack knows
where the target was before, :math:`a`, and such a model: a report :math:`\theta` with
:math:`P(\theta \mid a) > \tau` is the guess; an implausible one is replaced by a draw
from :math:`P(\cdot \mid a)`. Its exact figures are sparse sums instead of trials.

Reports of places on a graph have exact figures at any size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_count,
    check_index,
    check_non_negative,
    check_probability,
)
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms.base import ChoiceMechanism
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.local.grr import GeneralizedResponse
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.numeric.array import Floats, Indices
from undertow.risk.attacks.guess import one_hot, read_outputs
from undertow.risk.channel import Channel, ChannelStream, as_channel
from undertow.risk.finite import ABSTAIN, AttackRisk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat


class CorrelationGuess:
    r"""Report if plausible after the known previous place, else draw from the model.

    Parameters
    ----------
    transition : sparse array or array_like of shape (m, m)
        The attacker's model: rows sum to 1, or are empty for a place never seen.
    threshold : float, optional
        The :math:`\tau`; plausible is strictly above it. At 0, a step that the model
        has seen at all.
    threat : Threat, optional
        On pairs (before, now), as of :func:`transition_threat`: guesses are then
        numbers of pairs. Without it fibre a and guess b are the places of that number.

    Attributes
    ----------
    unseen : ndarray of int
        Places without a row: after one of these the report is the guess. Count the
        targets that come from there.

    Raises
    ------
    MismatchError
        If the threat is not on pairs of places with the first one told, or forbids to
        decline and the attack may have to.

    Notes
    -----
    Attack 4 of [1]_. The place before is that of the *target*, in the correction too,
    where the report comes from somebody else's step; taking the other's makes the
    attack look harmless. A place that no target can be at has no pair to name: there
    the attack declines, which never succeeds either, so that the threat must allow it
    wherever the model may lead to such a place.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 5.3.5.

    Examples
    --------
    >>> P = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0, 0, 0]]
    >>> attack = CorrelationGuess(P)
    >>> attack.guess_law([0, 1, 2], 0).tolist()
    [[0.0, 0.7, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> attack.unseen.tolist(), attack.guess_law([1], 2).tolist()
    ([2], [[0.0, 1.0, 0.0]])
    """

    __slots__ = (
        "_guesses",
        "_model",
        "_names",
        "_previous",
        "threshold",
        "unseen",
    )

    def __init__(
        self,
        transition: Any,
        threshold: float = 0.0,
        *,
        threat: Threat | None = None,
    ) -> None:
        self._model = read_transition(transition)
        self.threshold = check_probability(threshold, "threshold")
        size = self._model.shape[0]
        self.unseen = np.flatnonzero(np.diff(self._model.indptr) == 0)
        if threat is None:
            self._previous = self._names = np.arange(size, dtype=np.intp)
            self._guesses = size
        else:
            self._previous, self._names = _places(threat, size)
            self._guesses = len(threat.guesses)
            if not threat.abstain:
                self._require_names()

    def guess(
        self, outputs: ArrayLike, known: int, *, rng: np.random.Generator
    ) -> Indices:
        """Draw a guess for each report; O(steps from the known place) once."""
        reports, places, chances = self._row(outputs, known)
        guesses = reports.copy()
        doubted = np.flatnonzero(~self._trusted(reports, places, chances))
        if doubted.size:
            running = np.cumsum(chances)
            level = rng.random(doubted.size) * running[-1]
            guesses[doubted] = places[np.searchsorted(running, level, side="right")]
        return np.asarray(self._names[guesses])

    def guess_law(self, outputs: ArrayLike, known: int) -> Floats:
        """Return the law of the guess for each report."""
        reports, places, chances = self._row(outputs, known)
        laws = one_hot(self._names[reports], self._guesses)
        doubted = ~self._trusted(reports, places, chances)
        if doubted.any():
            draw = np.zeros(laws.shape[1])
            named = self._names[places] != ABSTAIN
            np.add.at(draw, self._names[places[named]], chances[named])
            laws[doubted] = draw
        return laws

    def _require_names(self) -> None:
        """Refuse to name a place that no target can be at."""
        nameless = np.flatnonzero(self._names == ABSTAIN)
        unseen = np.isin(self._previous, self.unseen).any()
        named = self._model[self._previous].indices
        if nameless.size and (unseen or np.isin(named, nameless).any()):
            raise MismatchError(
                "threat must allow declining where the model leads to places that no "
                "target can be at, got one that does not; build it with abstain=True."
            )

    def _row(self, outputs: ArrayLike, known: int) -> tuple[Indices, Indices, Floats]:
        reports = read_outputs(outputs, self._model.shape[0])
        fibre = check_index(known, "known", size=len(self._previous))
        place = int(self._previous[fibre])
        row = slice(self._model.indptr[place], self._model.indptr[place + 1])
        return reports, self._model.indices[row], self._model.data[row]

    def _trusted(
        self, reports: Indices, places: Indices, chances: Floats
    ) -> NDArray[np.bool_]:
        if not len(places):
            return np.ones(len(reports), dtype=np.bool_)
        return np.isin(reports, places[chances > self.threshold])

    def __repr__(self) -> str:
        size = self._model.shape[0]
        return f"CorrelationGuess({size} places, threshold={self.threshold:g})"


class StepSampler:
    """Draw reports of the place now for records that are steps.

    Parameters
    ----------
    sampler : sampler
        Draws reports of a place, by number: its `sample(place, size, *, rng)` is
        called.
    threat : Threat
        On pairs (before, now), as of :func:`transition_threat`.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> from undertow.risk.attacks import CrowdSampler, transition_threat
    >>> threat = transition_threat([[0, 1], [1, 0]], [0.5, 0.5])
    >>> places = CrowdSampler(GeneralizedResponse(2, 30), [])
    >>> StepSampler(places, threat).sample(1, 1, rng=np.random.default_rng(0)).tolist()
    [[0]]
    """

    __slots__ = ("_now", "_sampler")

    def __init__(self, sampler: Any, threat: Threat) -> None:
        pairs = _pairs(threat)
        self._sampler, self._now = sampler, pairs[:, 1]

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` reports of the place that the step leads to."""
        step = check_index(record, "record", size=len(self._now))
        return self._sampler.sample(int(self._now[step]), size, rng=rng)

    def __repr__(self) -> str:
        return f"StepSampler({self._sampler!r}, {len(self._now)} steps)"


def _pairs(threat: Threat) -> NDArray[Any]:
    pairs = np.asarray(threat.support)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise MismatchError("threat must be on pairs of numbers of places.")
    return pairs


def _places(threat: Threat, size: int) -> tuple[Indices, Indices]:
    """Return the place before of each fibre and the first pair to each place now."""
    pairs = _pairs(threat)
    if pairs.min() < 0 or pairs.max() >= size:
        raise MismatchError(f"threat must be on places in 0..{size - 1}.")
    before = [np.unique(pairs[fibre, 0]) for fibre in threat.fibres]
    if any(len(places) > 1 for places in before):
        raise MismatchError(
            "threat must tell the place before, got fibres with several."
        )
    names = np.full(size, ABSTAIN, dtype=np.intp)
    names[pairs[::-1, 1]] = np.arange(len(pairs), dtype=np.intp)[::-1]
    return np.array([places[0] for places in before], dtype=np.intp), names


# The exact figures of the correlation attack, by sparse sums instead of trials.
#
# With :math:`k(\theta, a) = 1\{P(\theta \mid a) > \tau\}`, the law :math:`\rho` of the
# place before, the real steps T and the mean output law :math:`\bar c`, an attack that
# sees the output law c of the target's place b succeeds with probability
#
# .. math:: s_c(a, b) = \sum_\theta k(\theta, a)\, c_\theta\, [\theta \text{ hits } b]
#    + \Bigl(1 - \sum_\theta k(\theta, a)\, c_\theta\Bigr)
#    \sum_{g} P(g \mid a)\, [g \text{ hits } b] .

# Rows of places before that are handled at a time.
_ROWS = 256


def exact_correlation_figures(
    source: Any,
    transition: Any,
    *,
    previous_law: ArrayLike,
    threshold: float = 0.0,
    steps: Any = None,
    hits: ArrayLike | None = None,
) -> AttackRisk:
    r"""Compute success, correction and advantage of the correlation attack exactly.

    .. math:: \sum_{a,b} \rho_a T(b \mid a)\, s_{C_b}(a, b) \quad\text{and}\quad
       \sum_{a,b} \rho_a T(b \mid a)\, s_{\bar c}(a, b),
       \qquad \bar c = \sum_{a,b} \rho_a T(b \mid a)\, C_b

    Parameters
    ----------
    source : GeneralizedResponse, Channel or mechanism with finitely many outputs
        Law C of the report for each place; outputs are the places.
    transition : sparse array or array_like of shape (m, m)
        The attacker's model P; an empty row makes the report the guess.
    previous_law : array_like of shape (m,)
        Law of the place before.
    threshold : float, optional
        The :math:`\tau`, strict.
    steps : sparse array or array_like of shape (m, m), optional
        How people really move, T; the model by default.
    hits : array_like of bool, of shape (m, m), optional
        Whether each guess (row) hits each place (column); the exact place by default.

    Returns
    -------
    AttackRisk
        Exact up to rounding.

    Raises
    ------
    MismatchError
        If sizes differ, or somebody starts from a place without a step.

    Notes
    -----
    Proved on the page on practical attacks. Randomised response and exact hits:
    O(nnz). Otherwise O(m nnz), with the channel in memory. The place before is that of
    the target in both terms.

    Examples
    --------
    >>> P = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]]
    >>> figures = exact_correlation_figures(
    ...     GeneralizedResponse(3, 3), P, previous_law=[0.5, 0.3, 0.2]
    ... )
    >>> round(figures.success, 9), round(figures.advantage, 9)
    (0.935523415, 0.381442209)
    """
    model = read_transition(transition)
    tau = check_probability(threshold, "threshold")
    joint = _joint(model if steps is None else read_transition(steps), previous_law)
    if joint.shape != model.shape:
        raise MismatchError(
            f"steps must be on the {model.shape[0]} places of the model, got shape "
            f"{joint.shape}."
        )
    trusted = _trusted(model, tau)
    if isinstance(source, GeneralizedResponse) and hits is None:
        terms = _response_terms(source, model, trusted, joint)
    else:
        terms = _channel_terms(source, model, trusted, joint, hits)
    parts = [(w * seen, w * base, w * gain) for w, seen, base, gain in terms]
    success, correction, advantage = (
        math.fsum(np.concatenate(column).tolist())
        for column in zip(*parts, strict=True)
    )
    return AttackRisk(success, correction, advantage)


Terms = Iterator[tuple[Floats, Floats, Floats, Floats]]


def _response_terms(
    source: GeneralizedResponse, model: Any, trusted: Any, joint: Any
) -> Terms:
    """Sum over outputs in closed form: c is q everywhere and p - q more at b."""
    m, spread = source.categories, float(source.keep - source.noise)
    if m != model.shape[0]:
        raise MismatchError(f"source must be on {model.shape[0]} places, got {m}.")
    noise = float(source.noise)
    now = np.asarray(joint.sum(axis=0)).reshape(-1)
    pairs = joint.tocoo()
    kept, drawn = _entries(trusted, pairs), _entries(model, pairs)
    empty = np.diff(model.indptr)[pairs.row] == 0
    kept[empty] = 1.0  # an unseen row trusts every report
    counts = np.asarray(trusted.sum(axis=1)).reshape(-1)[pairs.row]
    believed = np.asarray(trusted @ now).reshape(-1)[pairs.row]
    counts[empty], believed[empty] = m, 1.0
    # With the law c: kept c_b + drawn (1 - sum of kept c).
    level = noise * kept + drawn * (1.0 - noise * counts)
    seen = level + spread * (kept - drawn * kept)
    base = level + spread * (kept * now[pairs.col] - drawn * believed)
    gain = spread * (kept * (1.0 - now[pairs.col]) - drawn * (kept - believed))
    yield pairs.data, seen, base, gain


def _channel_terms(
    source: Any, model: Any, trusted: Any, joint: Any, hits: ArrayLike | None
) -> Terms:
    from scipy import sparse

    m = model.shape[0]
    laws = _matrix(source, m)
    hit = np.eye(m, dtype=np.bool_) if hits is None else _read_hits(hits, m)
    now = np.asarray(joint.sum(axis=0)).reshape(-1)
    overall = now @ laws
    hit_rows = hit.astype(np.float64)
    columns = np.ascontiguousarray(laws.T)
    told = columns * hit_rows  # output, place: probability of a report that hits
    for start in range(0, m, _ROWS):
        rows = slice(start, min(start + _ROWS, m))
        pairs = joint[rows].tocoo()
        if not pairs.nnz:
            continue
        trust = _dense_rows(model, trusted, rows)
        cells = (pairs.row, pairs.col)
        drawn = (model[rows] @ hit_rows)[cells]
        own = (trust @ told)[cells], (trust @ columns)[cells]
        weighed = sparse.csr_array(trust.multiply(overall[None, :]))
        other = (weighed @ hit_rows)[cells], (trust @ overall)[pairs.row]
        seen = own[0] + (1.0 - own[1]) * drawn
        base = other[0] + (1.0 - other[1]) * drawn
        gain = own[0] - other[0] - (own[1] - other[1]) * drawn
        yield pairs.data, seen, base, gain


def _dense_rows(model: Any, trusted: Any, rows: slice) -> Any:
    """Return which reports are trusted: sparse, all of them in an empty row."""
    from scipy import sparse

    empty = np.diff(model.indptr)[rows] == 0
    block = trusted[rows]
    if not empty.any():
        return block
    filled = block.toarray()
    filled[empty] = 1.0
    return sparse.csr_array(filled)


def _joint(steps: Any, previous_law: ArrayLike) -> Any:
    """Return the probability of each step, as a sparse array."""
    from scipy import sparse

    law = Prior(steps.shape[0], previous_law).pmf
    if np.any(law[np.diff(steps.indptr) == 0] > 0):
        raise MismatchError(
            "steps must have a row for every place that previous_law may start from, "
            "got an empty one."
        )
    return sparse.csr_array(steps.multiply(law[:, None]))


def _trusted(model: Any, threshold: float) -> Any:
    kept = model.copy()
    kept.data = (kept.data > threshold).astype(np.float64)
    kept.eliminate_zeros()
    return kept


def _entries(matrix: Any, pairs: Any) -> Floats:
    """Return the entries of a sparse array at given places."""
    found = matrix[pairs.row, pairs.col]
    return np.array(found.toarray() if hasattr(found, "toarray") else found).reshape(-1)


def _matrix(source: Any, size: int) -> Floats:
    if isinstance(source, GeneralizedResponse):
        p, q = float(source.keep), float(source.noise)
        categories = source.categories
        source = Channel(np.where(np.eye(categories, dtype=bool), p, q))
    listed: Any = range(size)
    if isinstance(source, ChoiceMechanism):
        listed = source.candidates
    elif isinstance(source, Channel) and source.support is not None:
        listed = source.support
    channel = as_channel(source, listed)
    if not isinstance(channel, Channel) or channel.matrix.shape != (size, size):
        raise MismatchError(
            f"source must be a channel from {size} places to the same places, got "
            "another."
        )
    return channel.matrix


def _read_hits(hits: ArrayLike, size: int) -> NDArray[np.bool_]:
    table = np.asarray(hits)
    if table.shape != (size, size) or table.dtype != np.bool_:
        raise MismatchError(
            f"hits must be truth values [guess, place] of shape ({size}, {size}), got "
            f"{table.dtype} of shape {table.shape}."
        )
    return table


# Markov models of movement: fitted from trajectories, as threats, checked.
#
# Models are sparse: people move to few places from each one. Row a is the law of the
# next place after a, and an empty row is a place from which no step was seen.

# Entries of a smoothed model, which has no empty cell.
_CELLS = 30_000_000
_TOLERANCE = 1e-9


def fit_transitions(
    trajectories: Iterable[ArrayLike],
    size: int,
    *,
    smoothing: float = 0.0,
    collapse: bool = False,
) -> Any:
    """Count the steps of trajectories and divide by rows.

    Parameters
    ----------
    trajectories : iterable of array_like of int
        Places in order, one sequence per trip; steps never lead from one to the next.
    size : int
        Number of places.
    smoothing : float, optional
        Added to every count, seen or not.
    collapse : bool, optional
        Whether to drop steps to the same place first.

    Returns
    -------
    scipy.sparse.csr_array of shape (size, size)
        Rows sum to 1, or are empty where nothing was seen and nothing added.

    Raises
    ------
    NotApplicable
        If a smoothed model would have more than 30 million entries.

    Notes
    -----
    The trips must not be those of the targets: a model that has seen them knows what it
    is asked.

    Examples
    --------
    >>> fit_transitions([[0, 1, 1, 2], [0, 2]], 3).toarray().tolist()
    [[0.0, 0.5, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]
    """
    places, extra = (
        check_count(size, "size"),
        check_non_negative(smoothing, "smoothing"),
    )
    if not extra < np.inf or (extra > 0 and places**2 > _CELLS):
        raise NotApplicable(
            f"a smoothed model must have at most {_CELLS} entries and a finite count "
            f"added, got {places**2} and {extra}; use smoothing=0."
        )
    trips = [_read_trip(trip, places, collapse) for trip in trajectories]
    empty = np.zeros(0, dtype=np.intp)
    before = np.concatenate([empty, *(trip[:-1] for trip in trips)])
    after = np.concatenate([empty, *(trip[1:] for trip in trips)])
    from scipy import sparse

    ones = np.ones(len(before))
    counts = sparse.csr_array((ones, (before, after)), shape=(places, places))
    if extra > 0:
        counts = sparse.csr_array(counts.toarray() + extra)
    totals: NDArray[np.float64] = np.asarray(counts.sum(axis=1)).reshape(-1)
    counts.data /= np.repeat(totals, np.diff(counts.indptr))
    return counts


def transition_threat(
    transition: Any, previous_law: ArrayLike, *, abstain: bool = False
) -> Threat:
    r"""State the threat of the correlation attack: guess the step, knowing its start.

    Parameters
    ----------
    transition : sparse array or array_like of shape (m, m)
        How people really move: rows sum to 1.
    previous_law : array_like of shape (m,)
        Law of the place before.
    abstain : bool, optional
        Whether the attacker may decline.

    Returns
    -------
    Threat
        Records are pairs (before, now) of positive probability; the first is known, the
        second must be guessed.

    Notes
    -----
    The mechanism reads the second place only, so that the collision probability to use
    with a total variation is that of the second place (``projected_variation_bound``).

    Examples
    --------
    >>> threat = transition_threat([[0, 1], [0.5, 0.5]], [0.4, 0.6])
    >>> threat.support, threat.prior.pmf.tolist()
    (((0, 1), (1, 0), (1, 1)), [0.4, 0.3, 0.3])
    """
    model = read_transition(transition)
    law = Prior(model.shape[0], previous_law).pmf
    steps = model.tocoo()
    masses = law[steps.row] * steps.data
    kept = masses > 0
    if not kept.any() or np.any(law[np.diff(model.indptr) == 0] > 0):
        raise MismatchError(
            "transition must have a row for every place that previous_law may start "
            "from, got an empty one."
        )
    pairs = list(zip(steps.row[kept].tolist(), steps.col[kept].tolist(), strict=True))
    return Threat(
        Prior(pairs, masses[kept]),
        Success.attribute(_now, summary="the next place"),
        Knowledge.attributes(_before, summary="the place before"),
        abstain,
    )


def _before(step: tuple[int, int]) -> int:
    return step[0]


def _now(step: tuple[int, int]) -> int:
    return step[1]


def read_transition(transition: Any) -> Any:
    """Read a model as a sparse array: rows are laws, or empty.

    Raises
    ------
    ModelError
        If it is not square, or a row is neither empty nor a law to within 1e-9.
    """
    from scipy import sparse

    try:
        model: Any = sparse.csr_array(transition, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise ModelError("transition must be a square table of numbers.") from None
    if model.ndim != 2 or model.shape[0] != model.shape[1]:
        raise ModelError(f"transition must be square, got shape {model.shape}.")
    model.sum_duplicates()
    model.eliminate_zeros()
    totals = np.asarray(model.sum(axis=1)).reshape(-1)
    filled = np.diff(model.indptr) > 0
    off = float(np.abs(totals[filled] - 1.0).max()) if filled.any() else 0.0
    least = float(model.data.min()) if model.nnz else 0.0
    if not (least >= 0 and off <= _TOLERANCE):
        raise ModelError(
            "transition must have rows that are empty or non-negative with sum 1, got "
            f"a least entry of {least} and a sum that is off by {off}."
        )
    return model


def _read_trip(trip: ArrayLike, size: int, collapse: bool) -> NDArray[np.intp]:
    places = np.asarray(trip)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise ModelError("a trajectory must be a sequence of numbers of places.")
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise ModelError(f"a trajectory must stay on places in 0..{size - 1}.")
    moves = places[1:] != places[:-1]
    kept = places[np.append(True, moves)] if collapse and places.size else places
    return kept.astype(np.intp)


# Attacks on reports of places on a graph, and their exact figures at any size.


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
