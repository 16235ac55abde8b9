"""Drawing from many small laws at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_rows"]

Table = NDArray[np.float64]
Genotypes = NDArray[np.int64]


def draw_rows(weights: Table, *, rng: np.random.Generator) -> Genotypes:
    """Draw one index for each row of non-negative weights, in proportion to them."""
    edges = np.cumsum(weights, axis=-1)
    # A draw below the total never lands on a value of weight zero.
    points = rng.random(weights.shape[0]) * edges[:, -1]
    drawn: Genotypes = (points[:, None] >= edges).sum(axis=-1)
    return np.minimum(drawn, _last_positive(weights))


def _last_positive(weights: Table) -> Genotypes:
    """Return the last index of positive weight: what rounding up may not pass."""
    last: Genotypes = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return last
