"""Galton's family heights: one row a child, with both parents; inches.

898 children of 197 families (the 1886 data as kept by the R package mosaicData). The
stand-in draws trios from the Gaussian with the published means, standard deviations
and correlations.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow.datasets.folder import read_columns, require_file

__all__ = [
    "GALTON_CORRELATION",
    "GALTON_DEVIATIONS",
    "GALTON_MEANS",
    "Heights",
    "galton_covariance",
    "galton_stand_in",
    "load_galton",
]

GALTON_MEANS = (69.233, 64.084, 66.761)
"""Mean height of fathers, mothers and children, inches."""

GALTON_DEVIATIONS = (2.4703, 2.3070, 3.5829)
"""Their standard deviations."""

GALTON_CORRELATION = (0.07366461, 0.27535483, 0.20165489)
"""Correlations father-mother, father-child, mother-child."""


@dataclass(frozen=True)
class Heights:
    """Trios of father, mother and child, one row a child.

    Parameters
    ----------
    trios : ndarray of shape (n, 3)
        Heights in inches.
    families : tuple of str
        Family of each child.
    real : bool
        Whether these are the real records.
    """

    trios: NDArray[np.float64]
    families: tuple[str, ...]
    real: bool

    @property
    def clipped_sum(self) -> float:
        """Mean over children of the trio sum, each height clipped to 60-80 inches."""
        return float(np.clip(self.trios, 60, 80).sum(axis=1).mean())


def load_galton(folder: Path) -> Heights:
    """Read ``galton/galton.csv``."""
    path = require_file(folder, "galton/galton.csv")
    columns = read_columns(path, ("family", "father", "mother", "height"))
    trios = np.array(
        [columns["father"], columns["mother"], columns["height"]], dtype=float
    ).T
    return Heights(trios, tuple(columns["family"]), real=True)


def galton_covariance() -> NDArray[np.float64]:
    """Return the covariance of (father, mother, child) from the published figures."""
    fm, fc, mc = GALTON_CORRELATION
    correlation = np.array([[1, fm, fc], [fm, 1, mc], [fc, mc, 1]])
    deviations = np.array(GALTON_DEVIATIONS)
    return correlation * np.outer(deviations, deviations)


def galton_stand_in(rng: np.random.Generator) -> Heights:
    """Draw 898 trios from the published Gaussian, each its own family."""
    trios = rng.multivariate_normal(GALTON_MEANS, galton_covariance(), size=898)
    return Heights(trios, tuple(str(j) for j in range(898)), real=False)
