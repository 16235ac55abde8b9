"""Genotypes of 2504 people at 1000 sites: 1000 Genomes, phase 3, chromosome 1.

The published study used chromosome 22; its mean count 40.29 of "BB" is that of the
homozygous *alternate* genotype, so that is what is counted here by default. Reading the
file needs pyarrow (extra ``data``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice
from undertow.datasets.folder import require_file
from undertow.errors import DataError

__all__ = ["Genotypes", "genotypes_stand_in", "load_genotypes"]

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
