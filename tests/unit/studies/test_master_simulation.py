"""Leakage found by simulation: exact where it can be, honest where it cannot."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats

from undertow.correlation.gaussian.shift import adversary_factor
from undertow.correlation.result import Adversary
from undertow_studies import Inputs
from undertow_studies import master_simulation as drawing
from undertow_studies.master_simulation import MASTER_SIMULATION, two_way_chain

# Count of state 1 on ten records, stationary start, gamma = 1 to 10.
EXACT = {
    0.5: (0.5, 0.9698, 1.3781, 1.7119, 1.9893, 2.2208, 2.4169, 2.5851, 2.7312, 2.8595),
    1.0: (1.0, 1.8382, 2.5325, 3.1093, 3.5771, 3.9524, 4.2534, 4.4960, 4.6930, 4.8918),
    2.0: (2.0, 3.2870, 4.2886, 5.0568, 5.6679, 6.2548, 6.7605, 7.1996, 7.5837, 7.9217),
}
FULL = {
    (10, 0.5): 2.859469519548524,
    (10, 1.0): 4.891847406567631,
    (10, 2.0): 7.921727296976712,
    (2, 0.5): 0.9698153482825964,
    (2, 1.0): 1.8382138162781918,
    (2, 2.0): 3.2869841620709517,
}
BOUND = {
    0.5: (0.5, 3.2726, 4.8944, *(5.0,) * 7),
    1.0: (1, 3.7726, 5.3944, 6.5452, 7.4378, 8.167, 8.7836, 9.3178, 9.7889, 10),
    2.0: (2, 4.7726, 6.3944, 7.5452, 8.4378, 9.167, 9.7836, 10.3178, 10.7889, 11.2103),
}


@cache
def result(name: str, runs: int = 100):
    study = next(s for s in MASTER_SIMULATION if s.name == name)
    return study.run(Inputs({}, runs=runs))


def curve(panel, label):
    return next(c for c in panel.curves if c.label == label)


def check(name: str, words: str):
    return next(c for c in result(name).checks if words in c.quantity)


@pytest.mark.parametrize(("position", "level"), [(0, 0.5), (1, 1.0), (2, 2.0)])
def test_figure_15_has_the_exact_leakage_of_every_chain(position, level):
    panel = result("master-figure-15").panels[position]
    assert panel.name == f"ε = {level:g}"
    assert curve(panel, "exact").y == pytest.approx(EXACT[level], abs=5.1e-5)
    assert curve(panel, "thesis").y == pytest.approx(BOUND[level], abs=5.1e-5)
    for (gamma, tau), value in FULL.items():
        if tau == level:
            ours = curve(panel, "exact").y[gamma - 1]
            assert ours == pytest.approx(value, abs=1e-9)
            assert ours >= value * (1 - 1e-13)


def test_figure_15_estimates_come_near_the_exact_leakage_and_do_not_pass_it():
    for panel in result("master-figure-15").panels:
        exact, measured = (np.array(curve(panel, x).y) for x in ("exact", "measured"))
        assert np.all(measured < 1.1 * exact)
        assert np.median(measured / exact) > 0.6


def test_figure_15_says_in_which_sense_the_ratio_matters_less():
    found = check("master-figure-15", "γ matters less")
    assert found.status == "match"
    assert "5.72, 4.89, 3.96 times" in found.note
    assert "the differences grow: 2.36, 3.89, 5.92" in found.note


def test_LE23_trap_l13_kernel_densities_pass_the_leakage():
    found = check("master-figure-15", "kernel density")
    assert found.status == "erratum"
    assert found.ours > 0.6


def test_the_chain_of_figure_14_has_the_ratio_it_is_named_by():
    for gamma in (1.0, 2.5, 10.0):
        chain = two_way_chain(gamma)
        assert chain.gamma == pytest.approx(gamma, rel=1e-12)
        assert chain.length == 10
        assert chain.initial_law() == pytest.approx([0.5, 0.5])


def test_figure_9_has_the_bounds_of_the_source_and_the_suprema():
    at = {"1.2": (0, 0.1), "1.4": (1, 0.1), "1.6": (2, 0.1)}
    published = {0: 1.25, 1: 1.893, 2: 3.45}
    for value, (position, rho) in at.items():
        panel = result("master-figure-9").panels[position]
        place = [math.isclose(x, rho) for x in curve(panel, "thesis").x].index(True)
        assert curve(panel, "closed form").y[place] == pytest.approx(float(value))
        assert curve(panel, "thesis").y[place] == pytest.approx(
            published[position], abs=5e-4
        )
        assert len(curve(panel, "thesis").x) == 10
        assert max(curve(panel, "thesis").y) == panel.curves[2].y[0]


def test_figure_9_finds_the_bound_nearly_tight_for_small_correlations_only():
    assert check("master-figure-9", "tight for small").ours == "nearly"
    assert check("master-figure-9", "grows with n").status == "match"
    assert check("master-figure-9", "Gaussian bound is the smaller").status == "match"


def test_LE22_the_gap_falls_where_the_general_bound_is_the_smaller_one():
    found = check("master-figure-9", "general bound is the smaller")
    assert (found.status, found.erratum) == ("erratum", "LE22")
    # The exact supremum, which needs no simulation, rises while the line stays at n.
    for panel, n in zip(result("master-figure-9").panels, (3, 5, 7), strict=True):
        supremum, line = curve(panel, "closed form"), curve(panel, "thesis")
        beyond = [s for s, b in zip(supremum.y, line.y, strict=True) if b == n]
        assert len(beyond) > 1
        assert all(b >= a for a, b in pairwise(beyond))
        assert beyond[-1] > beyond[0]


def test_figure_10_is_above_figure_9():
    for plain, clipped in zip(
        result("master-figure-10").panels, result("master-figure-9").panels, strict=True
    ):
        more = np.subtract(
            curve(plain, "k ≥ 1, not clipped").y, curve(clipped, "k ≥ 1, measured").y
        )
        assert more.mean() > 0
        assert curve(plain, "k ≥ 1, clipped").y == curve(clipped, "k ≥ 1, measured").y


def test_drawn_correlations_are_limited_and_positive_definite():
    drawn = drawing.sample_correlations(5, 0.33, 400, rng=np.random.default_rng(1))
    apart = drawn[:, *np.triu_indices(5, 1)]
    assert drawn.shape == (400, 5, 5)
    assert np.all(np.diagonal(drawn, axis1=1, axis2=2) == 1)
    assert np.all(drawn == drawn.transpose(0, 2, 1))
    assert np.abs(apart).max() <= 0.33
    assert np.linalg.eigvalsh(drawn).min() > 0


@pytest.mark.statistical
def test_drawn_correlations_are_uniform_where_none_is_rejected():
    """False-alarm rate 1e-6: up to rho = 1/(n - 1) every matrix is dominant."""
    drawn = drawing.sample_correlations(3, 0.4, 4000, rng=np.random.default_rng(2))
    for row, column in ((0, 1), (0, 2), (1, 2)):
        law = stats.uniform(-0.4, 0.8).cdf
        assert stats.kstest(drawn[:, row, column], law).pvalue > 1e-6 / 3


@pytest.mark.parametrize("known", [0, 1, 2, 3])
def test_leakage_without_clipping_is_that_of_the_signed_shifts(known):
    rng = np.random.default_rng(3)
    matrices = drawing.sample_correlations(4, 0.45, 20, rng=rng)
    _, plain = drawing._leakages_given(matrices, known, rng=rng)
    attacker = Adversary(0, range(1, known + 1))
    for matrix, value in zip(matrices, plain, strict=True):
        factor = adversary_factor(matrix, attacker, signed=True)
        assert value == pytest.approx(factor, rel=1e-9)


def test_leakage_with_clipping_is_that_of_a_quadrature(monkeypatch):
    """One unknown record: integrate over it instead of drawing it."""
    monkeypatch.setattr(drawing, "_DRAWS", 40_000)
    matrices = drawing.sample_correlations(2, 0.9, 6, rng=np.random.default_rng(4))
    clipped, _ = drawing._leakages_given(matrices, 0, rng=np.random.default_rng(5))
    means = np.random.default_rng(5).uniform(0, 10, (6, 2))  # drawn first inside
    nodes, weights = hermegauss(180)
    weights = weights / weights.sum()
    for matrix, mean, value in zip(matrices, means, clipped, strict=True):
        slope = matrix[0, 1]
        spread = math.sqrt(1 - slope**2)
        logs = []
        for secret in (0.0, 10.0):
            centre = mean[1] + slope * (secret - mean[0])
            answers = secret + np.clip(centre + spread * nodes, 0, 10)
            outputs = np.linspace(0, 20, 9)[:, None]
            logs.append(np.log(np.exp(-np.abs(outputs - answers) / 10) @ weights))
        assert value == pytest.approx(np.abs(logs[0] - logs[1]).max(), abs=5e-3)


def test_an_attacker_who_knows_all_others_learns_the_dp_level():
    rng = np.random.default_rng(6)
    matrices = drawing.sample_correlations(3, 0.5, 10, rng=rng)
    clipped, plain = drawing._leakages_given(matrices, 2, rng=rng)
    assert clipped == pytest.approx(np.ones(10), abs=1e-12)
    assert plain == pytest.approx(np.ones(10), abs=1e-12)


@pytest.mark.statistical
def test_percentiles_of_drawn_attackers_are_where_twenty_seeds_put_them(monkeypatch):
    """Six standard deviations over seeds: false-alarm rate below 1e-7."""
    monkeypatch.setattr(drawing, "_DRAWS", 1)  # plain sums are not drawn
    found = drawing.simulate_gaussians(1000, rng=np.random.default_rng(7))
    expected = {
        (0, 0.1): ((1.096, 0.002), (1.149, 0.006)),
        (0, 0.3): ((1.309, 0.009), (1.447, 0.017)),
        (0, 0.5): ((1.603, 0.027), (1.758, 0.024)),
        (1, 0.1): ((1.180, 0.009), (1.211, 0.015)),
        (2, 0.1): ((1.235, 0.013), (1.253, 0.015)),
    }
    for (position, rho), (some, every) in expected.items():
        one = found[position]
        for values, (mean, deviation) in ((one.plain, some), (one.plain_all, every)):
            assert one.at(rho, values) == pytest.approx(mean, abs=6 * deviation + 5e-4)
