"""Attackers worth trying: none known, all known, neighbours, and some at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow._validate import check_count
from undertow.correlation.adversary import Adversary
from undertow.correlation.model import Model
from undertow.errors import ModelError

__all__ = ["Trial", "propose_trials", "random_trial"]

_ATTEMPTS = 1000
_NONE_POSSIBLE = (
    "some attacker must hold both secrets of a pair possible, got none that does; "
    "name other pairs, or give the trials."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """An attacker with known values, and two secrets to tell apart."""

    adversary: Adversary
    pair: tuple[Any, Any]

    def evidence(self, secret: Any) -> dict[int, Any]:
        """Return what the law of the database is conditioned on."""
        return {**self.adversary.values, self.adversary.target: secret}


def propose_trials(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    count: int = 16,
    rng: np.random.Generator,
) -> list[Trial]:
    """Return attackers and pairs to try, those most often worst first.

    Parameters
    ----------
    model : Model
        With a number of records; known values are drawn from it.
    pairs : sequence of pairs, optional
        Secrets to tell apart; by default all pairs of states that occur, which a model
        of real values does not have.
    count : int
        Number of attackers.
    rng : numpy.random.Generator
        Draws known values, targets and known sets.

    Raises
    ------
    ModelError
        If no attacker found holds both secrets of a pair possible.

    Notes
    -----
    A heuristic: an attacker left out may be worse, which is why what comes of it is a
    lower bound. Those for whom one of the secrets is impossible are left out.
    """
    count = check_count(count, "count")
    size = model.require_size("an empirical estimate")
    secrets = list(pairs) if pairs is not None else _state_pairs(model, rng)
    trials = []
    for target, known in _shapes(size, count, rng):
        row = model.sample(1, rng=rng)[0]
        values = {j: row[j].item() for j in known}
        for pair in secrets:
            trials.append(Trial(Adversary(target, known, values), pair))
    found = [trial for trial in trials if _is_possible(model, trial)]
    if not found:
        raise ModelError(_NONE_POSSIBLE)
    return found


def random_trial(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]],
    include_empty: bool,
    rng: np.random.Generator,
) -> Trial:
    """Draw a target, a number of known records, which ones, and their values.

    Drawn again if one of the secrets is impossible for the attacker.
    """
    for _ in range(_ATTEMPTS):
        trial = _draw_trial(model, pairs=pairs, include_empty=include_empty, rng=rng)
        if _is_possible(model, trial):
            return trial
    raise ModelError(_NONE_POSSIBLE)


def _draw_trial(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]],
    include_empty: bool,
    rng: np.random.Generator,
) -> Trial:
    size = model.require_size("an empirical estimate")
    target = int(rng.integers(size))
    least = 0 if include_empty or size == 1 else 1
    known = int(rng.integers(least, size))
    others = [j for j in range(size) if j != target]
    chosen = rng.choice(others, size=known, replace=False).tolist() if known else []
    row = model.sample(1, rng=rng)[0]
    pair = pairs[int(rng.integers(len(pairs)))]
    values = {j: row[j].item() for j in chosen}
    return Trial(Adversary(target, chosen, values), pair)


def _is_possible(model: Model, trial: Trial) -> bool:
    """Return whether the attacker holds both secrets possible."""
    try:
        for secret in trial.pair:
            model.sample_given(trial.evidence(secret), 1, rng=np.random.default_rng(0))
    except ModelError:
        return False
    return True


def _state_pairs(model: Model, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    drawn = model.sample(256, rng=rng)
    states = np.unique(drawn)
    if not np.issubdtype(drawn.dtype, np.integer) or len(states) > 32:
        raise ModelError(
            "pairs must be given for records of real values, got none; "
            "name the secrets to tell apart."
        )
    listed = states.tolist()
    return [(a, b) for a in listed for b in listed if a != b]


def _shapes(
    size: int, count: int, rng: np.random.Generator
) -> Iterator[tuple[int, list[int]]]:
    """Yield targets and known sets, systematic ones before random ones."""
    middle = size // 2
    wanted: list[tuple[int, list[int]]] = [
        (middle, []),
        (middle, [j for j in range(size) if j != middle]),
        (0, []),
        (size - 1, []),
    ]
    for distance in (1, 2, 3, 5, 8):
        ends = [middle - distance, middle + distance]
        wanted.append((middle, [j for j in ends if 0 <= j < size]))
    while len(wanted) < count:
        target = int(rng.integers(size))
        others = [j for j in range(size) if j != target]
        known = int(rng.integers(0, size))
        wanted.append((target, rng.choice(others, known, replace=False).tolist()))
    yield from wanted[:count]
