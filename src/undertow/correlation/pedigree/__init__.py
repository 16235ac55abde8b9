"""Relatives: the law of genotypes on a pedigree, and what counts of them leak."""

from __future__ import annotations

from undertow.correlation.group import GeneralTheorem
from undertow.correlation.pedigree.genomic import (
    GenomicAccuracy,
    family_conjecture,
    genomic_accuracy,
    genomic_bounds,
    genomic_witness,
)
from undertow.correlation.pedigree.leakage import (
    PedigreeTheorem,
    pedigree_adversary_leakage,
    pedigree_leakage,
)
from undertow.correlation.pedigree.model import (
    MENDEL,
    Genotype,
    Pedigree,
    QueryLaw,
    child_law,
    hardy_weinberg_law,
    query_law,
)
from undertow.correlation.theorem import state_methods

state_methods(Pedigree, PedigreeTheorem(), GeneralTheorem())

__all__ = [
    "MENDEL",
    "GenomicAccuracy",
    "Genotype",
    "Pedigree",
    "PedigreeTheorem",
    "QueryLaw",
    "child_law",
    "family_conjecture",
    "genomic_accuracy",
    "genomic_bounds",
    "genomic_witness",
    "hardy_weinberg_law",
    "pedigree_adversary_leakage",
    "pedigree_leakage",
    "query_law",
]
