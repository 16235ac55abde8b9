"""Which coordinates of a vector tell two inputs apart, alone or two together.

Noise that two coordinates share, or bits of which only the parity is private, show in
no coordinate alone. They are looked for on training outputs; nothing here certifies
anything.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow.audit.events import Score

__all__ = ["apart", "joint_scores"]

Floats = NDArray[np.float64]
Kind = Literal["less", "plus", "times"]

# Numbers of all pairs together that are compared, and runs of each input.
_CELLS = 1 << 19
_FEWEST, _MOST = 256, 20_000
# Standard errors of a share by which two have to be ahead; the best of thousands of
# combinations is seldom so far ahead by chance.
_AHEAD = 3.0
# Beyond it numbers are cut, so that no difference or product is undefined.
_LARGEST = 1e150


def apart(first: Floats, second: Floats) -> Floats:
    """Return how much each coordinate's share above a quartile of both differs.

    Examples
    --------
    >>> apart(np.array([[0.0, 1.0]] * 9), np.array([[5.0, 1.0]] * 9))
    array([1., 0.])
    """
    both = np.concatenate([first, second])
    cuts = np.quantile(both, (0.25, 0.5, 0.75), axis=0, method="lower")
    found = np.zeros(first.shape[1])
    for cut in cuts:
        for above in (np.greater, np.greater_equal):
            shares = [above(part, cut).mean(axis=0) for part in (first, second)]
            found = np.maximum(found, np.abs(shares[0] - shares[1]))
    return found


def joint_scores(
    first: NDArray[Any], second: NDArray[Any], *, tried: list[int]
) -> list[Score]:
    """Return a difference, a sum and a product of two coordinates each, at most.

    Those in which the training outputs of the two inputs differ more than in each of
    the two coordinates, by most and beyond chance; a product is of the distances from
    the middle between the quartiles.

    Parameters
    ----------
    first, second : array of shape (n, k)
        Training outputs of two inputs.
    tried : list of int
        Numbers of the coordinates to combine.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(500, 1))
    >>> [score.words for score in joint_scores(
    ...     noise + [1, 0], noise + [0, 0], tried=[0, 1])][0]
    'coordinate 0 less coordinate 1 of output'
    """
    pairs = len(tried) * (len(tried) - 1) // 2
    if not pairs:
        return []
    rows = min(_MOST, max(_FEWEST, _CELLS // pairs))
    parts = [_bounded(part[:rows, tried]) for part in (first, second)]
    quartiles = np.quantile(np.concatenate(parts), (0.25, 0.75), axis=0)
    middle = quartiles.mean(axis=0)
    found = []
    for kind in _WORDS:
        best = _best(kind, parts[0], parts[1], middle)
        if best is None:
            continue
        one, two = best
        joint = _Joint(kind, (tried[one], tried[two]), (middle[one], middle[two]))
        found.append(Score(joint.words, joint))
    return found


def _best(
    kind: Kind, first: Floats, second: Floats, middle: Floats
) -> tuple[int, int] | None:
    """Return the two columns that together tell most more than alone, if any do."""
    alone = apart(first, second)
    best, top = None, _AHEAD / math.sqrt(min(len(first), len(second)))
    for one in range(first.shape[1] - 1):
        rest = slice(one + 1, None)
        found = apart(
            *(
                _combined(
                    kind,
                    (part[:, one, None], part[:, rest]),
                    (middle[one], middle[rest]),
                )
                for part in (first, second)
            )
        )
        found -= np.maximum(alone[one], alone[rest])
        place = int(found.argmax())
        if found[place] > top:
            best, top = (one, one + 1 + place), float(found[place])
    return best


def _combined(kind: Kind, pair: tuple[Any, Any], middle: tuple[Any, Any]) -> Floats:
    one, two = pair
    if kind == "times":
        return np.asarray((one - middle[0]) * (two - middle[1]))
    return np.asarray(one - two if kind == "less" else one + two)


def _bounded(outputs: Any) -> Floats:
    numbers = np.asarray(outputs, dtype=np.float64)
    return np.asarray(np.clip(numbers, -_LARGEST, _LARGEST))


_WORDS: dict[Kind, str] = {
    "less": "coordinate {} less coordinate {} of output",
    "plus": "sum of coordinates {} and {} of output",
    "times": "product of coordinates {} and {} of output, less {!r} and {!r}",
}


class _Joint:
    """Two coordinates of each output together; can be pickled."""

    def __init__(
        self, kind: Kind, pair: tuple[int, int], middle: tuple[float, float]
    ) -> None:
        self.kind, self.pair = kind, pair
        self.middle = (float(middle[0]), float(middle[1]))

    @property
    def words(self) -> str:
        """What it is, with every digit."""
        return _WORDS[self.kind].format(*self.pair, *self.middle)

    def __call__(self, outputs: Any) -> Floats:
        columns = _bounded(outputs[:, list(self.pair)])
        return _combined(self.kind, (columns[:, 0], columns[:, 1]), self.middle)
