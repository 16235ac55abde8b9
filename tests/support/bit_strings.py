"""Running through all strings of random words that a sampler can read."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

import numpy as np

__all__ = ["Replay", "UsedUp", "assert_encloses", "enumerate_law"]


class UsedUp(Exception):
    """The string is at its end."""


class Replay:
    """A bit source that replays given words."""

    def __init__(self, width, words):
        self.width = width
        self._words = deque(words)

    def words(self, count):
        if count > len(self._words):
            raise UsedUp
        taken = [self._words.popleft() for _ in range(count)]
        return np.array(taken, dtype=np.uint16)


def enumerate_law(sample, *, width, depth):
    """Return exact lower probabilities and the undecided mass after `depth` words."""
    law, undecided, stack = {}, Fraction(1), [()]
    while stack:
        words = stack.pop()
        try:
            outcome = sample(Replay(width, words))
        except UsedUp:
            if len(words) < depth:
                stack.extend((*words, word) for word in range(1 << width))
            continue
        mass = Fraction(1, 1 << (width * len(words)))
        law[outcome] = law.get(outcome, 0) + mass
        undecided -= mass
    return law, undecided


def assert_encloses(law, undecided, expected):
    """Assert that true probabilities lie within what the enumeration leaves open."""
    for outcome, probability in expected.items():
        low = float(law.get(outcome, 0))
        assert low - 1e-12 <= probability <= low + float(undecided) + 1e-12, outcome
    assert set(law) <= set(expected)
