"""What parents hand down: heights, test scores, genotypes; Gaussian or drawn by a law.

Galton's 898 children of 197 families, in inches; 434 pairs of mother and child
(*kidiq*), and 10 000 synthetic ones beside them; alternate-allele counts of 2504 people
at 1000 sites (1000 Genomes, phase 3, chromosome 1), whose file needs pyarrow (extra
``data``). Each has a stand-in with the published moments or frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice
from undertow.datasets import (
    GALTON_MEANS,
    galton_covariance,
    read_columns,
    require_file,
)
from undertow.errors import DataError


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


def galton_stand_in(rng: np.random.Generator) -> Heights:
    """Draw 898 trios from the published Gaussian, each its own family."""
    trios = rng.multivariate_normal(GALTON_MEANS, galton_covariance(), size=898)
    return Heights(trios, tuple(str(j) for j in range(898)), real=False)


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


_PEOPLE, _SITES = 2504, 1000

# Minor-allele frequencies Beta(0.1, 2.062): the mean square is 0.01609, hence 40.29
# homozygotes of 2504 are expected.
_SHAPE = (0.1, 2.062)


@dataclass(frozen=True)
class Genotypes:
    """Alternate-allele counts, one row a site, one column a person.

    Parameters
    ----------
    alternate : ndarray of uint8, shape (sites, people)
        0, 1 or 2.
    real : bool
        Whether these are the real records.
    """

    alternate: NDArray[np.uint8]
    real: bool

    def homozygotes(self, allele: str = "alternate") -> NDArray[np.int64]:
        """Return the number of homozygotes at each site.

        Parameters
        ----------
        allele : {"alternate", "reference", "major"}
            Which allele; the major one is chosen site by site.
        """
        check_choice(allele, "allele", choices=("alternate", "reference", "major"))
        twice = (self.alternate == 2).sum(axis=1)
        none = (self.alternate == 0).sum(axis=1)
        if allele == "major":
            common = self.alternate.mean(axis=1) > 1
            return np.asarray(np.where(common, twice, none), dtype=np.int64)
        return np.asarray(twice if allele == "alternate" else none, dtype=np.int64)


def load_genotypes(folder: Path) -> Genotypes:
    """Read ``genomes/phase3_chr1_1000snps.parquet``."""
    path = require_file(folder, "genomes/phase3_chr1_1000snps.parquet")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(
            "reading Parquet files needs pyarrow, got none; "
            "install undertow with the extra 'data'."
        ) from None
    rows = parquet.read_table(path, columns=["alt_count"])["alt_count"].to_pylist()
    counts = np.frombuffer(b"".join(rows), dtype=np.uint8)
    return Genotypes(counts.reshape(len(rows), -1), real=True)


def genotypes_stand_in(rng: np.random.Generator) -> Genotypes:
    """Draw unrelated people in Hardy-Weinberg proportions at 1000 sites."""
    frequency = rng.beta(*_SHAPE, size=(_SITES, 1))
    drawn = rng.binomial(2, frequency, size=(_SITES, _PEOPLE))
    return Genotypes(drawn.astype(np.uint8), real=False)
