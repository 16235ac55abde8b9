"""The estimation attack: the mode of what a crowd reports."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedUnary,
    estimate_frequencies,
)
from undertow.risk.attacks import (
    CrowdSampler,
    EstimationGuess,
    exact_estimation_figures,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.threat import Prior, Threat


def by_enumeration(protocol, pmf, background, ties):
    """All vectors of reports, one by one."""
    m, p, q = protocol.categories, float(protocol.keep), float(protocol.noise)
    laws = np.zeros((m, m))
    for target in range(m):
        truths = [*background, target]
        for reports in itertools.product(range(m), repeat=len(truths)):
            weight = np.prod(
                [p if r == t else q for r, t in zip(reports, truths, strict=True)]
            )
            counts = np.bincount(reports, minlength=m)
            modes = np.flatnonzero(counts == counts.max())
            if ties == "first":
                modes = modes[:1]
            laws[target, modes] += weight / len(modes)
    success = sum(pmf[x] * laws[x, x] for x in range(m))
    correction = sum(pmf[x] * pmf[y] * laws[y, x] for x in range(m) for y in range(m))
    return success, correction


@pytest.mark.parametrize("ties", ["random", "first"])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_exact_figures_are_those_of_all_reports(m, ties):
    protocol = GeneralizedResponse(m, 1.3)
    pmf = np.random.default_rng(m).dirichlet(np.ones(m))
    background = [0, 1, m - 1]
    found = exact_estimation_figures(
        protocol, Prior(m, pmf), background=background, ties=ties
    )
    success, correction = by_enumeration(protocol, pmf, background, ties)
    assert found.success == pytest.approx(success, abs=1e-13)
    assert found.correction == pytest.approx(correction, abs=1e-13)
    assert found.advantage == pytest.approx(success - correction, abs=1e-13)


def test_the_advantage_is_the_weight_of_one_report_in_the_mode():
    m, background = 3, [0, 0, 1, 2]
    protocol, pmf = GeneralizedResponse(m, 1.7), np.array([0.5, 0.3, 0.2])
    p, q = float(protocol.keep), float(protocol.noise)
    named = np.zeros((m, m))  # [report of the target, guess]
    for others in itertools.product(range(m), repeat=len(background)):
        pairs = zip(others, background, strict=True)
        weight = np.prod([p if told == true else q for told, true in pairs])
        for report in range(m):
            counts = np.bincount([*others, report], minlength=m)
            modes = counts == counts.max()
            named[report] += weight * modes / modes.sum()
    gaps = np.diagonal(named)[:, None] - named.T  # [x, y]
    expected = (p - q) * (pmf @ gaps @ pmf)
    found = exact_estimation_figures(protocol, Prior(m, pmf), background=background)
    assert found.advantage == pytest.approx(expected, abs=1e-13)
    assert expected <= (p - q) * (1 - pmf @ pmf) * gaps.max()


def test_a_crowd_hides_the_target_whatever_epsilon():
    prior = Prior(3, [0.6, 0.25, 0.15])
    crowd = [0] * 60 + [1] * 25 + [2] * 15
    alone = exact_estimation_figures(GeneralizedResponse(3, 4), prior, background=[])
    hidden = exact_estimation_figures(
        GeneralizedResponse(3, 4), prior, background=crowd
    )
    assert alone.advantage > 0.4
    assert hidden.success == pytest.approx(0.6, abs=1e-3)
    assert 0 <= hidden.advantage < 1e-3


def test_without_a_crowd_the_mode_is_the_report():
    protocol, prior = GeneralizedResponse(4, 1), Prior(4, [0.4, 0.3, 0.2, 0.1])
    found = exact_estimation_figures(protocol, prior, background=[])
    assert found.success == pytest.approx(float(protocol.keep), abs=1e-14)
    closed = protocol.advantage_bound(prior.pmf).value
    assert found.advantage == pytest.approx(closed, abs=1e-11)


def test_the_mode_of_the_reports_is_the_mode_of_the_estimate():
    protocol, rng = GeneralizedResponse(5, 1), np.random.default_rng(1)
    attack = EstimationGuess(protocol, ties="first")
    for _ in range(20):
        reports = rng.integers(5, size=40)
        values = estimate_frequencies(protocol, reports).frequencies
        guess = attack.guess(reports[None], 0, rng=rng)[0]
        assert values[guess] == pytest.approx(values.max())


def test_ties_are_drawn_at_random_or_by_order():
    protocol, rng = GeneralizedResponse(3, 1), np.random.default_rng(0)
    tied = np.tile([[2, 1, 1, 2]], (3000, 1))
    assert (EstimationGuess(protocol, ties="first").guess(tied, 0, rng=rng) == 1).all()
    drawn = EstimationGuess(protocol).guess(tied, 0, rng=rng)
    counts = np.bincount(drawn, minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - 1500) < 200
    assert EstimationGuess(protocol).guess_law(tied[:1], 0).tolist() == [[0, 0.5, 0.5]]


@pytest.mark.statistical
def test_the_measured_attack_has_the_exact_figures():
    """The interval of confidence 1 - 1e-6 covers the exact advantage."""
    protocol, prior = GeneralizedResponse(3, 2), Prior(3, [0.5, 0.3, 0.2])
    background = [0, 0, 1, 2]
    exact = exact_estimation_figures(protocol, prior, background=background)
    measured = estimate_attack(
        CrowdSampler(protocol, background),
        EstimationGuess(protocol),
        Threat(prior),
        trials=20_000,
        confidence=1 - 1e-6,
        rng=np.random.default_rng(4),
    )
    interval = (measured.advantage.low, measured.advantage.high)
    assert interval[0] <= exact.advantage <= interval[1]
    assert interval[1] - interval[0] < 0.1


def test_what_cannot_be_done_is_refused():
    protocol = GeneralizedResponse(6, 1)
    with pytest.raises(NotApplicable, match="CrowdSampler"):
        exact_estimation_figures(protocol, Prior.uniform(6), background=[0] * 100)
    with pytest.raises(MismatchError, match="each of the 6 categories"):
        exact_estimation_figures(protocol, Prior.uniform(5), background=[0])
    with pytest.raises(ValueError, match="ties"):
        EstimationGuess(protocol, ties="last")
    with pytest.raises(TypeError, match="GeneralizedResponse"):
        CrowdSampler(OptimizedUnary(6, 1), [0])
    with pytest.raises(MismatchError, match="vectors of reports"):
        EstimationGuess(protocol).guess([0, 1], 0, rng=np.random.default_rng(0))
