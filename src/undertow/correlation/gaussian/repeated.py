"""Many independent copies of few small Gaussian blocks, such as families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.gaussian.covariance import check_covariance, check_mean
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    block_limits,
    different_rows,
)
from undertow.correlation.gaussian.search import worst_of_blocks
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.structure import dense_structured_factor
from undertow.errors import ModelError

__all__ = ["RepeatedGaussian"]

Array = NDArray[np.float64]


class RepeatedGaussian(GaussianModel):
    """Independent copies of blocks, each given once.

    Parameters
    ----------
    templates : sequence of array_like
        Covariance of each kind of block, symmetric positive definite.
    counts : sequence of int
        Copies of each; the records are in this order, copy after copy.
    means : sequence of array_like, optional
        Mean of each kind of block; zero by default.

    Notes
    -----
    Everything is computed once for each template, so a million records cost no more
    than one family.

    Examples
    --------
    >>> trio = [[1.0, 0.1, 0.3], [0.1, 1.0, 0.3], [0.3, 0.3, 1.0]]
    >>> RepeatedGaussian([trio], [1000]).summary
    '3000 Gaussian records in 1000 independent groups of at most 3'
    """

    def __init__(
        self,
        templates: Sequence[ArrayLike],
        counts: Sequence[int],
        *,
        means: Sequence[ArrayLike] | None = None,
    ) -> None:
        super().__init__()
        if not len(templates) or len(templates) != len(counts):
            raise ModelError(
                "counts must be one for each template, got "
                f"{len(counts)} counts for {len(templates)} templates."
            )
        self._templates = [check_covariance(t, "template") for t in templates]
        self._counts = [check_count(c, "count") for c in counts]
        given = [None] * len(counts) if means is None else list(means)
        if len(given) != len(counts):
            raise ModelError(
                f"means must be one for each template, got {len(given)} means for "
                f"{len(templates)} templates."
            )
        self._means = [
            check_mean(mean, len(t))
            for mean, t in zip(given, self._templates, strict=True)
        ]
        lengths = [
            len(t) * c for t, c in zip(self._templates, self._counts, strict=True)
        ]
        self._starts = np.concatenate([[0], np.cumsum(lengths)])

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self._starts[-1])

    @property
    def mean(self) -> Array:
        """Mean of each record."""
        pairs = zip(self._means, self._counts, strict=True)
        return np.concatenate([np.tile(mean, count) for mean, count in pairs])

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return max(len(template) for template in self._templates)

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records in {sum(self._counts)} independent groups "
            f"of at most {self.largest_group}"
        )

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        return block_limits(self._templates)

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return each template once, or once for each different row of weights."""
        found: list[tuple[Block, Array]] = []
        for kind, template in enumerate(self._templates):
            start, stop = int(self._starts[kind]), int(self._starts[kind + 1])
            width = len(template)
            rows = np.ones((1, width))
            if weights is not None:
                rows = weights[start:stop].reshape(-1, width)
            for copy in different_rows(rows):
                first = start + copy * width
                block = Block(tuple(range(first, first + width)), template)
                found.append((block, rows[copy]))
        return tuple(found)

    def structured(self) -> ShiftFactor:
        """Return the worst factor by structure of every template."""
        return worst_of_blocks(
            self.blocks(), lambda block, _: dense_structured_factor(block.covariance)
        )

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        out = np.zeros((self.size, len(places)))
        for column, place in enumerate(places):
            kind = int(np.searchsorted(self._starts, place, side="right")) - 1
            width = len(self._templates[kind])
            within = int(place - self._starts[kind]) % width
            first = int(place) - within
            out[first : first + width, column] = self._templates[kind][:, within]
        return out

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        parts = []
        for template, copies in zip(self._templates, self._counts, strict=True):
            noise = rng.standard_normal((count, copies, len(template)))
            root = np.linalg.cholesky(template)
            parts.append((noise @ root.T).reshape(count, -1))
        return np.asarray(self.mean + np.concatenate(parts, axis=1))
