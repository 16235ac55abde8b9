"""Mendel's laws and the founders' law."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.correlation.pedigree.model import (
    MENDEL,
    Genotype,
    child_law,
    hardy_weinberg_law,
    one_parent_law,
    read_founder_law,
    read_genotypes,
)
from undertow.errors import ModelError

# Table 3 of the master's thesis, rows and columns BB, Bb, bb, cells in that order too.
PRINTED = {
    ("BB", "BB"): (1, 0, 0),
    ("BB", "Bb"): (0.5, 0.5, 0),
    ("BB", "bb"): (0, 1, 0),
    ("Bb", "BB"): (0.5, 0.5, 0),
    ("Bb", "Bb"): (0.25, 0.5, 0.25),
    ("Bb", "bb"): (0, 0.5, 0.5),
    ("bb", "BB"): (0, 1, 0),
    ("bb", "Bb"): (0, 0.5, 0.5),
    ("bb", "bb"): (0, 0, 1),
}


@pytest.mark.parametrize(("parents", "cell"), PRINTED.items(), ids=str)
def test_G1_child_law_is_every_cell_of_table_3(parents, cell):
    assert child_law(Genotype[parents[0]], Genotype[parents[1]])[::-1] == cell


def test_a_genotype_counts_the_B_alleles():
    assert [int(Genotype.bb), int(Genotype.Bb), int(Genotype.BB)] == [0, 1, 2]


def test_the_table_of_child_laws_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        MENDEL[0, 0, 0] = 0.5


@pytest.mark.parametrize("frequency", [0.02, 0.5, 0.9])
def test_hardy_weinberg_is_kept_by_random_mating(frequency):
    law = hardy_weinberg_law(frequency)
    child = np.einsum("a,b,abx->x", law, law, MENDEL)
    np.testing.assert_allclose(child, law, rtol=1e-14)
    assert law.sum() == pytest.approx(1, abs=1e-15)


def test_one_recorded_parent_passes_on_an_allele_and_a_founder_the_other():
    p = 0.3
    table = one_parent_law(hardy_weinberg_law(p))
    np.testing.assert_allclose(table[2], [0, 1 - p, p], atol=1e-15)
    np.testing.assert_allclose(table[0], [1 - p, p, 0], atol=1e-15)
    np.testing.assert_allclose(table[1], [(1 - p) / 2, 0.5, p / 2], atol=1e-15)


@pytest.mark.parametrize("frequency", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_frequency_outside_the_open_interval_is_refused(frequency):
    with pytest.raises(ValueError, match=r"frequency must be in \(0, 1\)"):
        hardy_weinberg_law(frequency)


@pytest.mark.parametrize(
    "founder", [(0.5, 0.5), (0.5, 0.6, -0.1), (0.5, 0.5, 0.5), (1, 0, 0, 0)]
)
def test_a_founder_law_must_be_a_law(founder):
    with pytest.raises(ModelError, match="founder must be the probabilities"):
        read_founder_law(founder)


@pytest.mark.parametrize("genotype", [3, -1, 1.5, "BB", True])
def test_only_three_genotypes_exist(genotype):
    with pytest.raises(ValueError, match="genotype must be"):
        child_law(genotype, 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 1], "one for each of the 3"),
        (0, "one for each"),
        ([0, 1, 3], "0, 1 or 2"),
        ([0.5, 1, 1], "0, 1 or 2"),
    ],
)
def test_databases_of_genotypes_are_checked(rows, message):
    with pytest.raises(ValueError, match=message):
        read_genotypes(rows, 3)
