"""Figure 5.6 of the thesis: sums of hours with Laplace noise, three priors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import ClampedMechanism, LaplaceMechanism, SimulatedSource
from undertow.privacy import Pure
from undertow.risk import (
    Channel,
    OptimalAttack,
    Prior,
    Success,
    Threat,
    advantage,
    best_success_bound,
)
from undertow.risk.bounds import Baselines
from undertow.risk.scalar import ScalarChannel
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Status,
    Study,
    StudyResult,
    count,
)
from undertow.studies.risk_theory import ADVANTAGE_LABEL, EPSILON_LABEL
from undertow.studies.thesis_bounds import finished, stated

__all__ = ["RISK_LAPLACE"]

_LIMIT = 100
_LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_GRID = tuple(float(e) for e in np.geomspace(0.5, 16, 31))
_ETAS = (0, 40, 80, 100)
# The attack reads the output to a quarter of an hour; what that loses is quadratic.
_CELLS = 400
# Standard errors beyond which a measured point differs: once in a million points.
_FAR = 4.9
_STAND_IN = "the counts of hours are a stand-in"


@dataclass(frozen=True)
class _Point:
    """The optimal attack, measured: success and advantage with standard errors."""

    success: float
    success_error: float
    advantage: float
    advantage_error: float


@dataclass(frozen=True, eq=False)
class _Case:
    """One prior on the hours; `real` unless it was counted on a stand-in.

    What was computed once is kept: the checks and the panels ask for it again.
    """

    name: str
    prior: Prior
    real: bool
    known: dict[tuple[float, int], float] = field(default_factory=dict)
    blind: dict[int, Baselines] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name if self.real else f"{self.name} (stand-in)"

    def threat(self, eta: int) -> Threat:
        return Threat(self.prior, Success.within("absolute", eta))

    def exact(self, epsilon: float, eta: int) -> float:
        """Return the advantage of the best attack on the sum, Theorem 5.3."""
        key = (epsilon, eta)
        if key not in self.known:
            noise = LaplaceMechanism(_LIMIT / epsilon)
            answers = ScalarChannel(noise, np.arange(_LIMIT + 1))
            self.known[key] = advantage(answers, self.threat(eta)).value
        return self.known[key]

    def success_bound(self, epsilon: float, eta: int) -> float:
        """Return the bound on reconstruction, Equation 2.6."""
        if eta not in self.blind:
            self.blind[eta] = Baselines.of(self.threat(eta))
        return best_success_bound(Pure(epsilon), self.blind[eta]).value


def _cases(inputs: Inputs) -> tuple[_Case, _Case, _Case]:
    hours = inputs.data["adult-hours"]
    return (
        _Case("uniform", Prior.uniform(_LIMIT + 1), True),
        _Case("empirical", hours.prior(), hours.real),
        _Case("skewed", Prior.two_point(_LIMIT + 1, (0, _LIMIT)), True),
    )


def _binned(mechanism: ClampedMechanism) -> tuple[Channel, NDArray[np.float64]]:
    """Return the law of the clamped output read to a cell, and the cells' borders."""
    borders = np.linspace(0, _LIMIT, _CELLS + 1)[1:-1]
    below = np.stack([mechanism.cdf(borders, x) for x in range(_LIMIT + 1)])
    return Channel(np.diff(below, axis=1, prepend=0.0, append=1.0)), borders


def _measure(
    case: _Case, epsilon: float, *, trials: int, rng: np.random.Generator
) -> dict[int, _Point]:
    """Run the optimal attack on truncated sums, for each threshold."""
    mechanism = ClampedMechanism(LaplaceMechanism(_LIMIT / epsilon), 0, _LIMIT)
    channel, borders = _binned(mechanism)
    truths = rng.choice(_LIMIT + 1, size=trials, p=case.prior.pmf)
    outputs = mechanism.sample(truths, source=SimulatedSource(rng)).values
    cells = np.searchsorted(borders, np.asarray(outputs), side="left")
    found = {}
    for eta in _ETAS:
        answers = OptimalAttack(channel, case.threat(eta)).decision().table[:, 0]
        guesses = answers[cells]
        hit = (np.abs(guesses - truths) <= eta).astype(np.float64)
        gain = hit - _chances(case.prior, eta)[guesses]
        found[eta] = _Point(*_mean(hit), *_mean(gain))
    return found


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard error, above zero even where no guess misses."""
    error = float(values.std() / np.sqrt(len(values)))
    return float(values.mean()), error + _FAR / len(values)


def _chances(prior: Prior, eta: int) -> NDArray[np.float64]:
    """Return the chance that each guess hits an independent draw."""
    places = np.arange(len(prior))
    near = np.abs(places[:, None] - places) <= eta
    # Where nothing can miss the chance is one, whatever the rounding of the sum.
    return np.where(near.all(axis=1), 1.0, near @ prior.pmf)


def _figure_5_6(inputs: Inputs) -> StudyResult:
    cases, rng = _cases(inputs), np.random.default_rng(inputs.seed)
    trials = (_LIMIT + 1) * inputs.runs
    points = {
        case.name: [_measure(case, e, trials=trials, rng=rng) for e in _LEVELS]
        for case in cases
    }
    panels = [
        *(_advantage_panel(case, points[case.name]) for case in cases),
        *(_success_panel(case, points[case.name]) for case in cases),
    ]
    checks = []
    for case in cases:
        checks += _measured_checks(case, points[case.name])
        checks += _threshold_checks(case, points[case.name])
    checks += [_worst_case(*cases), _best_case(*cases[:2])]
    words = "real counts of hours" if cases[1].real else "a stand-in for the hours"
    return finished(
        FIGURE_5_6, panels, checks, data=f"{words}; simulated sums, {trials} a point"
    )


def _advantage_panel(case: _Case, points: list[dict[int, _Point]]) -> Panel:
    measured = {eta: tuple(p[eta].advantage for p in points) for eta in _ETAS}
    curves = _pairs(case.exact, measured)
    return Panel(
        f"RAD, {case.label}", curves, EPSILON_LABEL, ADVANTAGE_LABEL, x_log=True
    )


def _success_panel(case: _Case, points: list[dict[int, _Point]]) -> Panel:
    measured = {eta: tuple(p[eta].success for p in points) for eta in _ETAS}
    curves = _pairs(case.success_bound, measured)
    return Panel(
        f"ReRo, {case.label}", curves, EPSILON_LABEL, "success and bound", x_log=True
    )


def _pairs(
    theory: Callable[[float, int], float], measured: dict[int, tuple[float, ...]]
) -> tuple[Curve, ...]:
    """Return a line and its markers for each threshold; a hidden line is called so."""
    curves: list[Curve] = []
    lines: dict[int, tuple[float, ...]] = {}
    for eta in _ETAS:
        line = tuple(theory(e, eta) for e in _GRID)
        twin = next((other for other, y in lines.items() if _same(line, y)), None)
        lines[eta] = line
        name = f"η = {eta}" if twin is None else f"η = {eta} (line of {twin})"
        curves.append(Curve(name, _GRID, line))
        curves.append(
            Curve(f"{name}, measured", _LEVELS, measured[eta], kind="measured")
        )
    return tuple(curves)


def _same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12))


def _claim(case: _Case, quantity: str, holds: bool, note: str) -> Check:
    if case.real:
        return stated(f"{quantity}, {case.name} prior", holds, note)
    answer = "yes" if holds else "no"
    full = f"{note}; {_STAND_IN}"
    return Check(f"{quantity}, {case.name} prior", "yes", answer, "stand-in", full)


def _measured_checks(case: _Case, points: list[dict[int, _Point]]) -> list[Check]:
    pairs = [
        (e, eta, found[eta])
        for e, found in zip(_LEVELS, points, strict=True)
        for eta in _ETAS
    ]
    gaps = [abs(p.advantage - case.exact(e, eta)) for e, eta, p in pairs]
    near = all(
        gap <= _FAR * p.advantage_error + 1e-4
        for gap, (_, _, p) in zip(gaps, pairs, strict=True)
    )
    below = all(
        p.success - _FAR * p.success_error <= case.success_bound(e, eta)
        for e, eta, p in pairs
    )
    return [
        _claim(
            case,
            "the measured advantage is that of Theorem 5.3",
            near,
            f"largest difference {max(gaps):.1e} over {len(pairs)} points",
        ),
        _claim(case, "ReRo stays below its bound", below, "no knowledge"),
    ]


def _threshold_checks(case: _Case, points: list[dict[int, _Point]]) -> list[Check]:
    zero = all(case.exact(e, 100) == 0 for e in _GRID)
    measured = all(found[100].advantage == 0 for found in points)
    one = all(case.success_bound(e, 100) == 1 for e in _GRID)
    return [
        _peak(case),
        _claim(
            case,
            "at η = 100 RAD is 0 and the ReRo bound is 1",
            zero and measured and one,
            "both exactly, at every level",
        ),
    ]


def _peak(case: _Case) -> Check:
    """Check that no threshold has more than η = 40; name those that have as much."""
    slack = 1 + 1e-9
    holds = all(
        case.exact(e, eta) <= case.exact(e, 40) * slack for e in _GRID for eta in _ETAS
    )
    tied = [
        eta
        for eta in _ETAS
        if all(case.exact(e, eta) * slack >= case.exact(e, 40) for e in _GRID)
    ]
    note = "among η = 0, 40, 80 and 100"
    found = _claim(case, "RAD peaks at η = 40", holds, note)
    if not holds or tied == [40]:
        return found
    names = ", ".join(map(str, tied))
    return replace(
        found,
        ours=f"tie of η = {names}",
        note=f"{found.note}; no other has more, but it is the same for η = {names} at "
        "every level",
    )


def _worst_case(uniform: _Case, empirical: _Case, skewed: _Case) -> Check:
    ours, theirs = uniform.exact(16.0, 40), skewed.exact(16.0, 40)
    below = all(
        case.exact(e, eta) <= skewed.exact(e, eta) * (1 + 1e-9)
        for case in (uniform, empirical)
        for e in _LEVELS[:-1]
        for eta in _ETAS
    )
    found = "up to ε = 8" if ours > theirs else "for every ε"
    return Check(
        "the skewed prior is the worst case",
        "for every ε",
        found if below else "otherwise",
        "differs" if not below else "erratum" if ours > theirs else "match",
        f"at ε = 16, η = 40 it has {theirs:.5f}, the uniform prior {ours:.5f}",
        "RE32" if below and ours > theirs else "",
    )


def _best_case(uniform: _Case, empirical: _Case) -> Check:
    exact = empirical.exact(1.0, 0), uniform.exact(1.0, 0)
    beyond = all(
        empirical.exact(e, eta) <= uniform.exact(e, eta)
        for e in _LEVELS
        for eta in _ETAS[1:]
    )
    note = f"at ε = 1, η = 0 it has {exact[0]:.4f}, the uniform prior {exact[1]:.4f}"
    only = exact[0] > exact[1]
    found = "for η = 40, 80 and 100" if only else "for every η"
    status: Status = "differs" if not beyond else "erratum" if only else "match"
    return Check(
        "the empirical prior is the best case",
        "for every η",
        found if beyond else "otherwise",
        status if empirical.real else "stand-in",
        note if empirical.real else f"{note}; {_STAND_IN}",
        "RE24" if empirical.real and status == "erratum" else "",
    )


def _draws(runs: int) -> str:
    return (
        "source: 1 000 outputs for each of 101 sums; here: "
        f"{count(runs)} for each, each attacked by the optimal attack"
    )


FIGURE_5_6 = Study(
    "figure-5.6",
    "advantage and success on sums of hours with truncated Laplace noise",
    "Guerra-Balboa (2026), Figure 5.6",
    _figure_5_6,
    ("adult-hours",),
    draws=_draws,
)
RISK_LAPLACE = (FIGURE_5_6,)
