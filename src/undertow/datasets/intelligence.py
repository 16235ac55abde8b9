"""Mother and child test scores: the kidiq data, and the synthetic pairs beside it.

The real set has 434 mother-child pairs (Gelman and Hill's *kidiq*); its correlation
0.448276 and its 868 scores identify it as the FamilyIQ of the thesis, whose reference
names another file. The synthetic set draws 10 000 pairs of mean 100, deviation 15 and
correlation 0.45.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow.datasets.folder import read_columns, require_file

__all__ = [
    "FAMILY_IQ_COVARIANCE",
    "FAMILY_IQ_MEANS",
    "Scores",
    "family_iq_stand_in",
    "load_family_iq",
    "synthetic_iq",
]

FAMILY_IQ_MEANS = (86.797, 100.0)
"""Mean score of children and mothers."""

FAMILY_IQ_COVARIANCE = ((416.596, 137.244), (137.244, 225.0))
"""Covariance of (child, mother)."""

_SYNTHETIC_SEED = 20260520


@dataclass(frozen=True)
class Scores:
    """Pairs of scores, child first.

    Parameters
    ----------
    pairs : ndarray of shape (n, 2)
        Scores of child and mother.
    real : bool
        Whether these are the real records.
    """

    pairs: NDArray[np.float64]
    real: bool

    def clipped_sum(self, low: float = 40, high: float = 160) -> float:
        """Return the sum of all scores, each clipped."""
        return float(np.clip(self.pairs, low, high).sum())


def load_family_iq(folder: Path) -> Scores:
    """Read ``family_iq/kidiq.csv``."""
    path = require_file(folder, "family_iq/kidiq.csv")
    columns = read_columns(path, ("kid_score", "mom_iq"))
    pairs = np.array([columns["kid_score"], columns["mom_iq"]], dtype=float).T
    return Scores(pairs, real=True)


def family_iq_stand_in(rng: np.random.Generator) -> Scores:
    """Draw 434 pairs from the Gaussian with the real set's means and covariance."""
    drawn = rng.multivariate_normal(FAMILY_IQ_MEANS, FAMILY_IQ_COVARIANCE, size=434)
    return Scores(drawn, real=False)


def synthetic_iq() -> Scores:
    """Return the 10 000 synthetic pairs, child first, by their fixed recipe.

    Examples
    --------
    >>> round(float(np.corrcoef(synthetic_iq().pairs.T)[0, 1]), 4)
    0.4515
    """
    z = np.random.default_rng(_SYNTHETIC_SEED).standard_normal((10_000, 2))
    parent = 100 + 15 * z[:, 0]
    child = 100 + 15 * (0.45 * z[:, 0] + np.sqrt(1 - 0.45**2) * z[:, 1])
    return Scores(np.round(np.column_stack([child, parent]), 6), real=True)
