"""The master's thesis: leakage found by simulation (figures 9, 10 and 15).

With random Gaussian records, and what a noisy sum of them leaks to random attackers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.empirical import (
    KernelSettings,
    estimate_laplace_leakage,
    kernel_leakage,
    random_trial,
)
from undertow.correlation.gaussian.method import gaussian_crossover, gaussian_factor
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.two_state import two_state_leakage
from undertow.correlation.query import CountQuery
from undertow.correlation.result import LeakageEstimate
from undertow.numeric.array import Array
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    count,
)
from undertow_studies.thesis_bound import finished, stated

_RHO = "largest correlation ρ"
_LEVELS = (0.5, 1.0, 2.0)
_RATIOS = tuple(float(g) for g in range(1, 11))
_LENGTH = 10
_SAMPLES = 10_000
_SOURCE_SAMPLES = 100_000
_PAIRS = ((0, 1), (1, 0))
# Intervals of the estimates: all thirty hold together with probability 0.997.
_CONFIDENCE = 1 - 1e-4


def _simulated(inputs: Inputs) -> list[DrawnLeakage]:
    rng = np.random.default_rng(inputs.seed)
    return simulate_gaussians(inputs.runs, rng=rng)


def _words(inputs: Inputs) -> str:
    return f"simulated, {inputs.runs} runs, seed {inputs.seed}"


def _figure_9(inputs: Inputs) -> StudyResult:
    found = _simulated(inputs)
    panels = []
    for one in found:
        general = (float(one.size),) * len(one.rhos)
        curves = (
            Curve("thesis", one.rhos, one.bound(capped=True)),
            Curve("closed form", one.rhos, one.supremum(capped=True)),
            Curve("general", one.rhos, general),
            Curve("k ≥ 1, measured", one.rhos, one.clipped, kind="measured"),
            Curve("k ≥ 0, measured", one.rhos, one.clipped_all, kind="measured"),
        )
        panels.append(Panel(f"n = {one.size}", curves, _RHO, "leakage at ε = 1"))
    checks = [
        _small_rho(found[0]),
        _gap_with_size(found),
        *_gap_with_rho(found),
        _below_bound(found),
    ]
    return finished(FIGURE_9, panels, checks, data=_words(inputs))


def _small_rho(one: DrawnLeakage) -> Check:
    bound = one.at(0.1, one.bound(capped=True))
    most = one.at(0.1, one.supremum(capped=True))
    return Check(
        "the bound is tight for small correlations (n = 3, ρ = 0.1)",
        "appears so",
        "nearly" if 0.95 * bound < most < bound else "no",
        "match" if most > 0.95 * bound else "differs",
        f"no such Gaussian leaks more than {most:.6g}, the bound is {bound:.6g}; "
        f"drawn attackers reach {one.at(0.1, one.clipped):.3f}, "
        f"{one.at(0.1, one.clipped_all):.3f} with those who know nothing",
    )


def _gap_with_size(found: list[DrawnLeakage]) -> Check:
    gaps = [
        one.at(0.1, one.bound(capped=True)) - one.at(0.1, one.clipped) for one in found
    ]
    words = (f"{g:.3f} at n = {one.size}" for g, one in zip(gaps, found, strict=True))
    return stated(
        "the gap to the bound grows with n (ρ = 0.1)",
        gaps == sorted(gaps),
        ", ".join(words),
    )


def _gap_with_rho(found: list[DrawnLeakage]) -> list[Check]:
    """Check the growth of the gap on both sides of the crossing of the bounds."""
    below, above = [], []
    for one in found:
        gaps = np.subtract(one.bound(capped=True), one.clipped)
        low = np.array(one.rhos) <= gaussian_crossover(one.size)
        below.append(bool(np.all(np.diff(gaps[low]) > 0)))
        above.append(gaps[-1] - gaps[~low][0])
    return [
        stated(
            "the gap grows with ρ, while the Gaussian bound is the smaller one",
            all(below),
        ),
        Check(
            "the gap grows with ρ, where the general bound is the smaller one",
            "yes",
            "yes" if sum(above) > 0 else "no",
            "match" if sum(above) > 0 else "erratum",
            "the line drawn is the constant n there, and the leakage still rises; "
            f"the gap changes by {_list(np.array(above))} for n = 3, 5, 7",
            "" if sum(above) > 0 else "LE22",
        ),
    ]


def _below_bound(found: list[DrawnLeakage]) -> Check:
    """Check the estimates against the bound; the source prints no such sentence."""
    shares = [
        float(np.max(np.divide(one.clipped_all, one.supremum(capped=True))))
        for one in found
    ]
    under = max(shares) <= 1
    return Check(
        "estimates lie below the bound",
        None,
        "yes" if under else "no",
        "not published" if under else "differs",
        f"at most {max(shares):.1%} of the sharper closed form, which is below it",
    )


def _figure_10(inputs: Inputs) -> StudyResult:
    found = _simulated(inputs)
    panels = []
    for one in found:
        curves = (
            Curve("thesis", one.rhos, one.bound(capped=False)),
            Curve("closed form", one.rhos, one.supremum(capped=False)),
            Curve("k ≥ 1, not clipped", one.rhos, one.plain, kind="measured"),
            Curve("k ≥ 0, not clipped", one.rhos, one.plain_all, kind="measured"),
            Curve("k ≥ 1, clipped", one.rhos, one.clipped, kind="measured"),
        )
        name = f"n = {one.size}, secrets 0 and 10"
        panels.append(Panel(name, curves, _RHO, "leakage", y_log=True))
    checks = _unclipped_checks(found)
    return finished(FIGURE_10, panels, checks, data=_words(inputs))


def _unclipped_checks(found: list[DrawnLeakage]) -> list[Check]:
    more = [np.subtract(one.plain, one.clipped) for one in found]
    half = len(more[0]) // 2
    three = found[0]
    reached = three.at(0.5, three.plain)
    ratio = three.at(0.5, three.bound(capped=False)) / reached
    return [
        stated(
            "sums that are not clipped leak slightly more",
            all(m.mean() > 0 for m in more),
            "on average over ρ "
            + ", ".join(
                f"{m.mean():.3f} at n = {one.size}"
                for m, one in zip(more, found, strict=True)
            ),
        ),
        stated(
            "the difference widens with ρ",
            all(m[half:].mean() > m[:half].mean() for m in more),
            "mean over the larger correlations against mean over the smaller ones",
        ),
        stated(
            "a large gap to the bound remains (n = 3, ρ = 0.5)",
            ratio > 1.5,
            f"the bound is {ratio:.3g} times the {reached:.3f} of drawn attackers; the "
            f"supremum is {three.at(0.5, three.supremum(capped=False)):.6g}",
        ),
    ]


def two_way_chain(gamma: float) -> MarkovChain:
    """Return ten records that keep their state gamma times as often as they switch.

    Examples
    --------
    >>> two_way_chain(3.0).transition.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    stay, switch = gamma / (1 + gamma), 1 / (1 + gamma)
    return MarkovChain([[stay, switch], [switch, stay]], length=_LENGTH)


def _figure_15(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    chains = [two_way_chain(gamma) for gamma in _RATIOS]
    panels, estimates = [], []
    for level in _LEVELS:
        general = _LENGTH * level
        bound = tuple(min(level + 4 * math.log(g), general) for g in _RATIOS)
        # With positive dependence the count attains the worst of all mechanisms.
        exact = tuple(
            two_state_leakage(c.transition, level, length=_LENGTH).value for c in chains
        )
        found = [_estimate(c, level, inputs.runs, rng=rng) for c in chains]
        estimates += found
        curves = (
            Curve("thesis", _RATIOS, bound),
            Curve("exact", _RATIOS, exact),
            Curve("general", _RATIOS, (general,) * len(_RATIOS)),
            Curve("measured", _RATIOS, tuple(e.value for e in found), kind="measured"),
        )
        panels.append(Panel(f"ε = {level:g}", curves, "ratio γ", "leakage"))
    checks = [*_chain_checks(panels), _intervals(panels, estimates), _kernel_check(rng)]
    return finished(FIGURE_15, panels, checks, data=_words(inputs))


def _estimate(
    chain: MarkovChain, level: float, runs: int, *, rng: np.random.Generator
) -> LeakageEstimate:
    """Estimate the leakage of a count by the worst of some random attackers."""
    trials = [
        random_trial(chain, pairs=_PAIRS, include_empty=True, rng=rng)
        for _ in range(_attackers(runs))
    ]
    return estimate_laplace_leakage(
        chain,
        level,
        query=CountQuery(),
        samples=_samples(runs),
        trials=trials,
        confidence=_CONFIDENCE,
        seed=int(rng.integers(2**31)),
    )


def _chain_checks(panels: list[Panel]) -> list[Check]:
    bound, exact = (np.array([panel.curves[j].y for panel in panels]) for j in range(2))
    factors, steps = exact[:, -1] / exact[:, 0], exact[:, -1] - exact[:, 0]
    return [
        stated("leakage rises with γ", bool(np.all(np.diff(exact) > 0))),
        stated(
            "the bound is not tight",
            bool(np.all(exact[:, 1:] < bound[:, 1:])),
            f"at γ = 10 it is {_list(bound[:, -1] / exact[:, -1])} times the exact "
            "leakage for ε = 0.5, 1, 2",
        ),
        stated(
            "γ matters less for larger ε",
            bool(np.all(np.diff(factors) < 0)),
            f"as a factor: γ = 10 leaks {_list(factors)} times what γ = 1 does for "
            f"ε = 0.5, 1, 2; the differences grow: {_list(steps)}",
        ),
    ]


def _list(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _intervals(panels: list[Panel], estimates: list[LeakageEstimate]) -> Check:
    """Check the estimates against the bound; the source prints no such sentence."""
    exact = [value for panel in panels for value in panel.curves[1].y]
    under = all(e.low <= x for e, x in zip(estimates, exact, strict=True))
    return Check(
        "estimates lie below the bound",
        None,
        "yes" if under else "no",
        "not published" if under else "differs",
        "every interval reaches below the exact leakage, which is below the bound",
    )


def _kernel_check(rng: np.random.Generator) -> Check:
    """Show that kernel densities overshoot, where the leakage is known to be 0.5."""

    def noisy_count(
        rows: NDArray[np.int64], source: np.random.Generator
    ) -> NDArray[np.float64]:
        return np.asarray(rows.sum(axis=1) + source.laplace(scale=2.0, size=len(rows)))

    value = kernel_leakage(
        two_way_chain(1.0),
        noisy_count,
        pairs=_PAIRS,
        settings=KernelSettings(attackers=20, samples=20_000, points=400),
        rng=rng,
    )
    return Check(
        "kernel density estimates stay below the leakage (γ = 1, ε = 0.5)",
        "yes",
        value,
        "erratum" if value > 0.5 else "match",
        "records are independent and leak exactly 0.5; where a density is small its "
        "estimate is too unsure, and a maximum of such ratios is too large",
        "LE23" if value > 0.5 else "",
    )


def _laws_drawn(runs: int) -> str:
    return (
        "source: 1 000 laws a point, 1 000 attackers each, densities from 100 000 "
        f"outputs; here: {count(runs)} laws, one attacker each, densities exact"
    )


def _attackers_drawn(runs: int) -> str:
    return (
        "source: 1 000 attackers a point, densities from 100 000 outputs each; here: "
        f"{count(_attackers(runs))} attackers, {count(_samples(runs))} records drawn "
        "for each; --runs 25000 draws as many as the source"
    )


def _attackers(runs: int) -> int:
    return max(4, runs // 25)


def _samples(runs: int) -> int:
    return max(_SAMPLES, min(_SOURCE_SAMPLES, 10 * runs))


_SOURCE = "Lange (2024)"
FIGURE_9 = Study(
    "master-figure-9",
    "leakage of clipped sums of random Gaussians, and its bound",
    f"{_SOURCE}, Figure 9",
    _figure_9,
    draws=_laws_drawn,
)
FIGURE_10 = Study(
    "master-figure-10",
    "leakage of sums that are not clipped, and its bound",
    f"{_SOURCE}, Figure 10",
    _figure_10,
    draws=_laws_drawn,
)
FIGURE_15 = Study(
    "master-figure-15",
    "leakage of counts on a chain, exact and estimated, and its bound",
    f"{_SOURCE}, Figures 14 and 15",
    _figure_15,
    draws=_attackers_drawn,
)
MASTER_SIMULATION = (FIGURE_9, FIGURE_10, FIGURE_15)


# Random Gaussian records, and what a noisy sum of them leaks to random attackers.
#
# Unit variances, correlations uniform in [-rho, rho] until the matrix is positive
# definite, means uniform in [0, 10]; one attacker for each law. The sum has Laplace
# noise of scale 10, a DP level of 1 when records are clipped to [0, 10], and the
# secrets are 0 and 10.

Values = tuple[float, ...]

_SIZES = (3, 5, 7)
_WIDTH = 10.0
_PERCENTILE = 99
_DRAWS = 300  # completions of the unknown records for each attacker
_OUTPUTS = 9  # outputs compared, the two ends among them
_LEAST = 1e-9  # smallest eigenvalue kept
_TOGETHER = 1000  # laws in memory at a time


@dataclass(frozen=True)
class DrawnLeakage:
    """Leakage found by drawn attackers: the 99th percentile at each correlation.

    Parameters
    ----------
    size : int
        Number of records n.
    rhos : tuple of float
        Largest correlation allowed, up to 0.95/(n - 2).
    clipped, plain : tuple of float
        Of the clipped sum, averaged likelihoods; of the plain sum, exact. Attackers
        know at least one record, as in the thesis.
    clipped_all, plain_all : tuple of float
        The same, attackers who know nothing among them.
    """

    size: int
    rhos: Values
    clipped: Values
    plain: Values
    clipped_all: Values
    plain_all: Values

    def bound(self, *, capped: bool) -> Values:
        """Return the published bound, at most n where records are clipped."""
        limit = self.size if capped else math.inf
        return tuple(
            min(gaussian_factor(self.size, rho, variant="thesis"), limit)
            for rho in self.rhos
        )

    def supremum(self, *, capped: bool) -> Values:
        """Return the sharp closed form, attained for rho up to 1/(n - 1)."""
        limit = self.size if capped else math.inf
        return tuple(min(gaussian_factor(self.size, rho), limit) for rho in self.rhos)

    def at(self, rho: float, values: Values) -> float:
        """Return the value of a curve at one of the correlations."""
        return next(
            v for r, v in zip(self.rhos, values, strict=True) if math.isclose(r, rho)
        )


def simulate_gaussians(runs: int, *, rng: np.random.Generator) -> list[DrawnLeakage]:
    """Simulate 3, 5 and 7 records at ten correlations each.

    Parameters
    ----------
    runs : int
        Laws drawn at each point, with one attacker each.
    rng : numpy.random.Generator
        Draws laws, attackers, known values and unknown records.
    """
    return [_simulate_size(n, runs, rng=rng) for n in _SIZES]


def _simulate_size(n: int, runs: int, *, rng: np.random.Generator) -> DrawnLeakage:
    rhos = tuple(float(step) / (n - 2) for step in (*np.arange(1, 10) / 10, 0.95))
    columns: list[list[float]] = [[], [], [], []]
    for rho in rhos:
        found = []
        for least in (1, 0):  # the thesis never draws an attacker who knows nothing
            matrices = sample_correlations(n, rho, runs, rng=rng)
            found += _leakages(matrices, rng.integers(least, n, runs), rng=rng)
        for column, values in zip(columns, found, strict=True):
            column.append(float(np.percentile(values, _PERCENTILE)))
    clipped, plain, clipped_all, plain_all = (tuple(c) for c in columns)
    return DrawnLeakage(n, rhos, clipped, plain, clipped_all, plain_all)


def sample_correlations(
    size: int, rho: float, count: int, *, rng: np.random.Generator
) -> Array:
    """Draw correlation matrices with entries uniform in [-rho, rho], by rejection."""
    rows, columns = np.triu_indices(size, 1)
    kept = np.empty((0, size, size))
    while len(kept) < count:
        drawn = np.broadcast_to(np.eye(size), (count, size, size)).copy()
        entries = rng.uniform(-rho, rho, (count, len(rows)))
        drawn[:, rows, columns] = drawn[:, columns, rows] = entries
        definite = np.linalg.eigvalsh(drawn)[:, 0] > _LEAST
        kept = np.concatenate([kept, drawn[definite]])
    return kept[:count]


def _leakages(
    matrices: Array, known: NDArray[np.int64], *, rng: np.random.Generator
) -> list[Array]:
    """Return leakages of the clipped and of the plain sum, one attacker a matrix.

    The target is record 0 and the first records after it are known: the law of the
    matrices does not change when records change places.
    """
    clipped, plain = np.empty(len(matrices)), np.empty(len(matrices))
    for k in np.unique(known):
        places = np.flatnonzero(known == k)
        for start in range(0, len(places), _TOGETHER):
            chosen = places[start : start + _TOGETHER]
            clipped[chosen], plain[chosen] = _leakages_given(
                matrices[chosen], int(k), rng=rng
            )
    return [clipped, plain]


def _leakages_given(
    matrices: Array, known: int, *, rng: np.random.Generator
) -> tuple[Array, Array]:
    count, n, _ = matrices.shape
    told, unknown = slice(0, known + 1), slice(known + 1, n)
    cross = matrices[:, told, unknown]
    slopes = np.linalg.solve(matrices[:, told, told], cross).transpose(0, 2, 1)
    plain = np.abs(1 + slopes[:, :, 0].sum(axis=1))  # |x - x'| is the noise scale
    mean = rng.uniform(0, _WIDTH, (count, n))
    told_by = np.zeros((count, known + 1))  # deviations from the mean
    told_by[:, 1:] = _normal(matrices[:, 1 : known + 1, 1 : known + 1], 1, rng=rng)[
        :, 0
    ]
    noise = _normal(matrices[:, unknown, unknown] - slopes @ cross, _DRAWS, rng=rng)
    answers = []
    for secret in (0.0, _WIDTH):
        told_by[:, 0] = secret - mean[:, 0]
        centre = mean[:, unknown] + (slopes @ told_by[:, :, None])[:, :, 0]
        drawn = np.clip(centre[:, None, :] + noise, 0, _WIDTH)
        answers.append(secret + drawn.sum(axis=2))
    return _largest_ratio(*answers, top=_WIDTH * (n - known)), plain


def _normal(covariances: Array, draws: int, *, rng: np.random.Generator) -> Array:
    """Draw centred Gaussian vectors, `draws` of each covariance."""
    count, size, _ = covariances.shape
    roots = np.linalg.cholesky(covariances).transpose(0, 2, 1)
    return np.asarray(rng.standard_normal((count, draws, size)) @ roots)


def _largest_ratio(first: Array, second: Array, *, top: float) -> Array:
    """Return the largest log ratio of two averages of Laplace densities, by row.

    Answers lie in [0, top]; beyond it the ratio is that of the nearer end.
    """
    largest = np.zeros(len(first))
    for output in np.linspace(0, top, _OUTPUTS):
        one, other = (
            np.exp(-np.abs(output - answers) / _WIDTH).mean(axis=1)
            for answers in (first, second)
        )
        largest = np.maximum(largest, np.abs(np.log(one / other)))
    return largest
