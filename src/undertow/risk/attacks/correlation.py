r"""The correlation attack: trust a report where it is a plausible next step.

The attacker knows where the target was before, :math:`a`, and a Markov model of how
people move. A report :math:`\theta` with :math:`P(\theta \mid a) > \tau` is the guess;
an implausible one is replaced by a draw from :math:`P(\cdot \mid a)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_probability
from undertow.errors import MismatchError
from undertow.risk.attacks.base import one_hot, read_outputs
from undertow.risk.attacks.transition import read_transition
from undertow.risk.decision import ABSTAIN
from undertow.risk.threat import Threat

__all__ = ["CorrelationGuess", "StepSampler"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


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
