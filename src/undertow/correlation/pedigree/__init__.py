"""Relatives: the law of genotypes on a pedigree, and what counts of them leak."""

from __future__ import annotations

from undertow.correlation.group import GeneralMethod
from undertow.correlation.model import state_methods
from undertow.correlation.pedigree.genomic import (
    GenomicAccuracy,
    family_conjecture,
    genomic_accuracy,
    genomic_bounds,
    genomic_witness,
)
from undertow.correlation.pedigree.leakage import (
    PedigreeMethod,
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

state_methods(Pedigree, PedigreeMethod(), GeneralMethod())

__all__ = [
    "MENDEL",
    "GenomicAccuracy",
    "Genotype",
    "Pedigree",
    "PedigreeMethod",
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
