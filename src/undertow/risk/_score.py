"""What an attack scores on simulated outputs: hits, and what guessing alone would hit.

For an output and an attack, the *baseline* is the prior probability that the guess made
for each target's knowledge hits that target. It needs one evaluation of the attack per
fibre of what is known, and no further run of the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError
from undertow.risk.decision import ABSTAIN
from undertow.risk.threat import Threat

__all__ = ["Attack", "LawAttack", "Scorer", "constant_baseline", "grid_weights"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Multiples of 2**-52 up to 2 add without rounding, in any order.
_STEPS = 2.0**52
# Fibres up to this size are scored truth by truth, without a table over all guesses.
_SMALL = 16
# Entries of the table of guesses or hits held at a time.
_ENTRIES = 1 << 22
_TOLERANCE = 1e-9


@runtime_checkable
class Attack(Protocol):
    """A rule from outputs and what is known of the target to guesses."""

    def guess(
        self, outputs: Any, known: int, *, rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """Answer a batch of outputs.

        Parameters
        ----------
        outputs : object
            A batch, as the sampler made it.
        known : int
            What is known of the target: a number into ``threat.fibres``.
        rng : numpy.random.Generator
            Stream of the attack.

        Returns
        -------
        ndarray of int
            One number into ``threat.guesses`` for each output, or ``ABSTAIN``.
        """


@runtime_checkable
class LawAttack(Attack, Protocol):
    """A randomised attack that states its law, which saves the noise of drawing."""

    def guess_law(self, outputs: Any, known: int) -> Floats:
        """Return the probability of each guess: shape (outputs, guesses)."""


class Scorer:
    """Scores batches of outputs of known records.

    Parameters
    ----------
    attack : Attack
        The attack; its law is used if it states one and `expected` holds.
    threat : Threat
        Prior, success rule and knowledge.
    expected : bool
        Whether expected hits may stand for drawn ones.
    pmf : ndarray, optional
        Weights of the baseline; the prior by default.
    """

    __slots__ = (
        "_alone",
        "_constant",
        "_fibres",
        "_guesses",
        "_labels",
        "_masses",
        "_pmf",
        "attack",
        "calls",
        "expected",
        "threat",
    )

    def __init__(
        self,
        attack: Attack,
        threat: Threat,
        *,
        expected: bool,
        pmf: Floats | None = None,
    ) -> None:
        if not isinstance(attack, Attack):
            raise TypeError(
                f"attack must have a method guess, got {type(attack).__name__}."
            )
        self.attack, self.threat, self.calls = attack, threat, 0
        self.expected = expected and isinstance(attack, LawAttack)
        self._labels, self._fibres = threat.labels, threat.fibres
        self._guesses = len(threat.guesses)
        self._constant = constant_baseline(threat) if pmf is None else None
        weights = threat.prior.pmf if pmf is None else pmf
        self._pmf = grid_weights(weights)
        self._masses = {} if self._constant is not None else self._tables()
        small = [f for f in self._fibres if len(f) <= _SMALL]
        none = np.zeros(0, dtype=np.intp)
        self._alone = np.concatenate([none, *small])

    def score(
        self, records: Indices, outputs: Any, *, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return the hit on the own record, and the baseline, of each output."""
        self.calls += len(records) * len(self._fibres)
        if self.expected:
            return self._expected_score(records, outputs)
        guesses = np.stack(
            [
                self._answers(outputs, known, size=len(records), rng=rng)
                for known in range(len(self._fibres))
            ],
            axis=1,
        )
        own = guesses[np.arange(len(records)), self._labels[records]]
        hit = self._hits(own, records)
        if self._constant is not None:
            return hit, np.full(len(records), self._constant)
        return hit, self._baselines(guesses)

    def __repr__(self) -> str:
        return f"Scorer({self.attack!r})"

    @property
    def width(self) -> int:
        """How many outputs to score at a time: the same for every attack."""
        return max(64, _ENTRIES // max(len(self.threat.prior), self._guesses, 128))

    def _tables(self) -> dict[int, Floats]:
        """Return the mass of what each guess hits, for the larger fibres."""
        large = [z for z, fibre in enumerate(self._fibres) if len(fibre) > _SMALL]
        fibres = [self._fibres[z] for z in large]
        found = self.threat.success.sets(self.threat.support, fibres)
        return {
            z: sets.sums(self._pmf[self._fibres[z], None])[sets.member, 0]
            for z, sets in zip(large, found, strict=True)
        }

    def _answers(
        self, outputs: Any, known: int, *, size: int, rng: np.random.Generator
    ) -> Indices:
        answers = np.asarray(self.attack.guess(outputs, known, rng=rng))
        least = ABSTAIN if self.threat.abstain else 0
        if answers.shape != (size,) or answers.dtype.kind not in "iu":
            raise MismatchError(
                f"an attack must return {size} whole numbers, got {answers.dtype} of "
                f"shape {answers.shape}."
            )
        if size and not (answers.min() >= least and answers.max() < self._guesses):
            raise MismatchError(
                f"an attack must guess among {self._guesses} guesses, and decline only "
                f"where the threat allows it, got {answers.min()} to {answers.max()}."
            )
        return answers.astype(np.intp, copy=False)

    def _hits(self, guesses: Indices, truths: Indices) -> Floats:
        given = guesses != ABSTAIN
        found = self.threat.success.hits(
            self.threat.support, guesses=np.where(given, guesses, 0), truths=truths
        )
        return np.asarray(found & given, dtype=np.float64)

    def _baselines(self, guesses: Indices) -> Floats:
        """Return the prior mass of the targets hit by the guesses for their fibres."""
        alone = self._hits(guesses[:, self._labels[self._alone]], self._alone)
        total: Floats = alone @ self._pmf[self._alone]
        for z, masses in self._masses.items():
            column = guesses[:, z]
            total += np.where(column != ABSTAIN, masses[np.maximum(column, 0)], 0.0)
        return total

    def _expected_score(self, records: Indices, outputs: Any) -> tuple[Floats, Floats]:
        """Return expected hits and baselines, from the law of the guesses."""
        assert isinstance(self.attack, LawAttack)
        hit, base = np.zeros(len(records)), np.zeros(len(records))
        for z, masses in enumerate(self._each_mass()):
            law = np.asarray(self.attack.guess_law(outputs, z), dtype=np.float64)
            self._require_law(law, len(records))
            own = np.flatnonzero(self._labels[records] == z)
            if own.size:
                hit[own] = self._chances(law[own], records[own])
            if masses is not None:
                base += law @ masses
        return hit, base if self._constant is None else base + self._constant

    def _chances(self, law: Floats, records: Indices) -> Floats:
        """Return the probability that each law hits its own record."""
        everything = np.arange(self._guesses, dtype=np.intp)[:, None]
        present, place = np.unique(records, return_inverse=True)
        chances = law @ self._hits(everything, present)
        return np.minimum(1.0, chances[np.arange(len(records)), place.reshape(-1)])

    def _each_mass(self) -> Iterator[Floats | None]:
        """Hand out the mass of what each guess hits, fibre by fibre, if it matters."""
        step = max(1, _ENTRIES // self._guesses)
        for start in range(0, len(self._fibres), step):
            numbers = range(start, min(start + step, len(self._fibres)))
            missing = [z for z in numbers if z not in self._masses]
            if self._constant is not None:
                yield from (None for _ in numbers)
                continue
            # One call for many fibres: reading the success rule costs O(records).
            asked = [self._fibres[z] for z in missing]
            found = self.threat.success.sets(self.threat.support, asked)
            sets = dict(zip(missing, found, strict=True))
            for z in numbers:
                if z in sets:
                    sums = sets[z].sums(self._pmf[self._fibres[z], None])
                    yield sums[sets[z].member, 0]
                else:
                    yield self._masses[z]

    def _require_law(self, law: Floats, size: int) -> None:
        total = law.sum(axis=1) if law.ndim == 2 else np.zeros(0)
        proper = law.shape == (size, self._guesses) and bool(
            law.min() >= 0
            and total.max() <= 1 + _TOLERANCE
            and (self.threat.abstain or total.min() >= 1 - _TOLERANCE)
        )
        if not proper:
            raise MismatchError(
                f"a law of guesses must have shape ({size}, {self._guesses}) and rows "
                f"that sum to 1, got shape {law.shape}."
            )


def constant_baseline(threat: Threat) -> float | None:
    """Return the baseline of every attack, if all of them have the same.

    So it is under a uniform prior without knowledge, if all guesses hit equally many
    records and none may be declined; with exact success it is 1/m.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> constant_baseline(Threat(Prior.uniform(4)))
    0.25
    >>> constant_baseline(Threat(Prior(2, [0.7, 0.3]))) is None
    True
    """
    pmf = threat.prior.pmf
    if threat.abstain or len(threat.fibres) > 1 or pmf.min() < pmf.max():
        return None
    (sets,) = threat.success.sets(threat.support, threat.fibres)
    least, most = int(sets.sizes.min()), int(sets.sizes.max())
    return least / len(pmf) if least == most else None


def grid_weights(pmf: Floats) -> Floats:
    """Round weights to multiples of 2**-52, which add without rounding in any order.

    So the success of an attack that ignores the output equals its correction exactly.
    """
    return np.asarray(np.rint(pmf * _STEPS) / _STEPS)
