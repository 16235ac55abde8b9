"""Draws from a pedigree follow its law, given what is known.

Each test accepts a true sampler with probability 1 - 1e-9 and is also run on a wrong
law, which it must reject.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from undertow.correlation.pedigree import Pedigree, query_law
from undertow.correlation.query import CountQuery

pytestmark = pytest.mark.statistical

LEVEL = 1e-9
DRAWS = 60_000
LOOP = [None, None, (0, 1), (1, 0), (2, 3), (4, None)]


def listed(pedigree: Pedigree, known: dict[int, int]) -> dict[tuple[int, ...], float]:
    law = {}
    for row in itertools.product(range(3), repeat=pedigree.size):
        if all(row[j] == x for j, x in known.items()):
            weight = float(np.exp(pedigree.log_prob(row)))
            if weight > 0:
                law[row] = weight
    total = sum(law.values())
    return {row: weight / total for row, weight in law.items()}


def fit(rows: np.ndarray, law: dict[tuple[int, ...], float]) -> float:
    """Return the p-value of a chi-square test; rare databases are pooled."""
    drawn, counts = np.unique(rows, axis=0, return_counts=True)
    seen = {tuple(row.tolist()): int(n) for row, n in zip(drawn, counts, strict=True)}
    if not set(seen) <= set(law):
        return 0.0
    often = [row for row, weight in law.items() if weight * len(rows) >= 10]
    observed = [seen.get(row, 0) for row in often]
    expected = [law[row] * len(rows) for row in often]
    if len(rows) - sum(expected) > 1e-6 * len(rows):
        observed.append(len(rows) - sum(observed))
        expected.append(len(rows) - sum(expected))
    scaled = np.array(expected) * sum(observed) / sum(expected)
    return float(stats.chisquare(observed, scaled).pvalue)


@pytest.mark.parametrize(
    "known", [{}, {4: 0}, {5: 2}, {0: 1, 4: 2}, {2: 1, 3: 1, 5: 0}], ids=str
)
def test_draws_given_knowledge_follow_the_exact_conditional_law(known):
    pedigree = Pedigree(LOOP, frequency=0.4)
    rng = np.random.default_rng(sum(known) + 11)
    rows = pedigree.sample_given(known, DRAWS, rng=rng)
    assert fit(rows, listed(pedigree, known)) > LEVEL
    assert fit(rows, listed(Pedigree(LOOP, frequency=0.47), known)) < LEVEL


def test_draws_without_knowledge_follow_the_law():
    pedigree = Pedigree(LOOP, founder=(0.5, 0.1, 0.4))
    rows = pedigree.sample(DRAWS, rng=np.random.default_rng(5))
    assert fit(rows, listed(pedigree, {})) > LEVEL
    assert fit(rows, listed(Pedigree(LOOP, founder=(0.47, 0.13, 0.4)), {})) < LEVEL


@pytest.mark.parametrize(("frequency", "accept"), [(0.6, True), (0.63, False)])
def test_counts_of_draws_follow_the_law_of_the_query(frequency, accept):
    people = {"families": 2, "unrelated": 3}
    pedigree = Pedigree.nuclear(4, frequency=0.6, **people)
    known = {2: 1, 9: 2}
    rows = pedigree.sample_given(known, DRAWS, rng=np.random.default_rng(9))
    told = Pedigree.nuclear(4, frequency=frequency, **people)
    law = query_law(told, CountQuery({2}), known=known).probability
    counts = np.bincount((rows == 2).sum(axis=1), minlength=law.size)
    kept = law * DRAWS >= 10
    assert (counts[law == 0] == 0).all()
    scaled = law[kept] * counts[kept].sum() / law[kept].sum()
    assert (stats.chisquare(counts[kept], scaled).pvalue > LEVEL) == accept
