"""Chapter 5 of the thesis: measured attacks beside the bounds.

Figure 5.6: sums of hours with Laplace noise, three priors. Figure 5.7: local protocols
on the crossings of two cities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import ClampedMechanism, LaplaceMechanism, SimulatedSource
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalProtocol,
    OptimizedUnary,
    SubsetSelection,
)
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
from undertow.risk.bounds import Baselines, uniform_guess_bound
from undertow.risk.scalar import ScalarChannel
from undertow_studies.audit_repeat import REPEATS, Repeats, audit_result, markers
from undertow_studies.risk_theory import ADVANTAGE_LABEL, EPSILON_LABEL
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Status,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow_studies.thesis_bound import finished, stated

_LIMIT = 100
_LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_LAPLACE_GRID = tuple(float(e) for e in np.geomspace(0.5, 16, 31))
_ETAS = (0, 40, 80, 100)
# The attack reads the output to a quarter of an hour; what that loses is quadratic.
_CELLS = 400
# Standard errors beyond which a measured point differs: once in a million points.
_FAR = 4.9
_STAND_IN = "the counts of hours are a stand-in"


@dataclass(frozen=True)
class _LaplacePoint:
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
) -> dict[int, _LaplacePoint]:
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
        found[eta] = _LaplacePoint(*_mean(hit), *_mean(gain))
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


def _advantage_panel(case: _Case, points: list[dict[int, _LaplacePoint]]) -> Panel:
    measured = {eta: tuple(p[eta].advantage for p in points) for eta in _ETAS}
    curves = _pairs(case.exact, measured)
    return Panel(
        f"RAD, {case.label}", curves, EPSILON_LABEL, ADVANTAGE_LABEL, x_log=True
    )


def _success_panel(case: _Case, points: list[dict[int, _LaplacePoint]]) -> Panel:
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
        line = tuple(theory(e, eta) for e in _LAPLACE_GRID)
        twin = next((other for other, y in lines.items() if _same(line, y)), None)
        lines[eta] = line
        name = f"η = {eta}" if twin is None else f"η = {eta} (line of {twin})"
        curves.append(Curve(name, _LAPLACE_GRID, line))
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


def _measured_checks(
    case: _Case, points: list[dict[int, _LaplacePoint]]
) -> list[Check]:
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


def _threshold_checks(
    case: _Case, points: list[dict[int, _LaplacePoint]]
) -> list[Check]:
    zero = all(case.exact(e, 100) == 0 for e in _LAPLACE_GRID)
    measured = all(found[100].advantage == 0 for found in points)
    one = all(case.success_bound(e, 100) == 1 for e in _LAPLACE_GRID)
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
        case.exact(e, eta) <= case.exact(e, 40) * slack
        for e in _LAPLACE_GRID
        for eta in _ETAS
    )
    tied = [
        eta
        for eta in _ETAS
        if all(case.exact(e, eta) * slack >= case.exact(e, 40) for e in _LAPLACE_GRID)
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


def _laplace_draws(runs: int) -> str:
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
    draws=_laplace_draws,
)
RISK_LAPLACE = (FIGURE_5_6,)


# Figure 5.7 of the thesis: local protocols on the crossings of two cities.

_CITIES = {"Porto": ("porto", 3052), "Geolife": ("geolife", 5356)}
_PROTOCOLS: dict[str, type[Any]] = {
    "GRR": GeneralizedResponse,
    "SS": SubsetSelection,
    "OUE": OptimizedUnary,
}
_GRID = tuple(float(e) for e in np.arange(0.4, 16.05, 0.2))
_MEASURED = (1.0, 3.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0)
# Reports per point and repetition: a GRR report is one number, the others are tables.
_REPORTS = {"GRR": 1000, "SS": 5, "OUE": 5}
_FALSE_ALARM = 1e-6

Values = tuple[float, ...]


@dataclass(frozen=True)
class _LocalPoint:
    """How often the optimal attack was right on reports of one protocol, repeated.

    Parameters
    ----------
    reports : int
        Of one repetition.
    right : tuple of int
        Right guesses of each repetition.
    """

    epsilon: float
    reports: int
    right: tuple[int, ...]
    success: float
    categories: int

    @property
    def advantages(self) -> Repeats:
        # Uniform prior, no knowledge: every guess has the same chance on another
        # record, 1/m, so that the correction has no noise.
        blind = 1 / self.categories
        return Repeats(tuple(k / self.reports - blind for k in self.right))

    @property
    def total(self) -> int:
        """Reports of all repetitions."""
        return self.reports * len(self.right)

    @property
    def likely(self) -> bool:
        """Whether so many right guesses are no less likely than the false alarm."""
        from scipy.stats import binom

        right = sum(self.right)
        low = binom.cdf(right, self.total, self.success)
        high = binom.sf(right - 1, self.total, self.success)
        return bool(min(low, high) > _FALSE_ALARM / 2)


def _figure_5_7(inputs: Inputs) -> StudyResult:
    rng = np.random.default_rng(inputs.seed)
    panels, checks, repeats = [], [], {}
    for name, (key, size) in _CITIES.items():
        city = inputs.data[key]
        points = {
            protocol: [
                _measured(protocol, size, e, runs=inputs.runs, rng=rng)
                for e in _MEASURED
            ]
            for protocol in _PROTOCOLS
        }
        exact = {
            protocol: tuple(
                _protocol(protocol, size, e).advantage_bound().value for e in _GRID
            )
            for protocol in _PROTOCOLS
        }
        panel = _panel(f"{name}, {size} crossings", exact, points)
        panels.append(panel)
        for protocol, found in points.items():
            repeats[panel.name, f"{protocol}, measured"] = _repeated(found)
        checks += [_size_check(name, city, size), *_claims(name, size, exact, points)]
    words = _data(inputs)
    return audit_result(FIGURE_5_7, panels, checks, repeats=repeats, data=words)


def _data(inputs: Inputs) -> str:
    real = all(inputs.data[key].real for key, _ in _CITIES.values())
    roads = "real road networks" if real else "no road networks (stand-in)"
    return (
        f"{roads}; only their size matters under a uniform prior; simulated reports, "
        f"{REPEATS} repeats a point"
    )


def _protocol(name: str, size: int, epsilon: float) -> LocalProtocol:
    protocol: LocalProtocol = _PROTOCOLS[name](size, epsilon)
    return protocol


def _measured(
    name: str, size: int, epsilon: float, *, runs: int, rng: np.random.Generator
) -> _LocalPoint:
    protocol, reports = _protocol(name, size, epsilon), _REPORTS[name] * runs
    right = tuple(_right(protocol, reports, rng) for _ in range(REPEATS))
    return _LocalPoint(epsilon, reports, right, protocol.attack_success(), size)


def _right(protocol: LocalProtocol, reports: int, rng: np.random.Generator) -> int:
    truths = rng.integers(protocol.categories, size=reports)
    drawn = protocol.sample(truths, source=SimulatedSource(rng))
    guesses = protocol.sample_guesses(drawn.values, rng=rng)
    return int((guesses == truths).sum())


def _repeated(found: list[_LocalPoint]) -> dict[float, Repeats]:
    return {p.epsilon: p.advantages for p in found}


def _panel(
    title: str, exact: Mapping[str, Values], points: dict[str, list[_LocalPoint]]
) -> Panel:
    curves = []
    for name, found in points.items():
        curves.append(Curve(name, _GRID, exact[name]))
        curves.append(markers(name, _repeated(found)))
    return Panel(title, tuple(curves), EPSILON_LABEL, ADVANTAGE_LABEL)


def _size_check(name: str, city: Any, size: int) -> Check:
    return compare(
        f"number of crossings, {name}",
        str(size),
        len(city),
        stand_in="" if city.real else "a grid of streets stands in for the city",
    )


def _claims(
    name: str,
    size: int,
    exact: Mapping[str, Values],
    points: dict[str, list[_LocalPoint]],
) -> list[Check]:
    slack = 1 + 1e-9
    ordered = all(
        o <= s * slack and s <= g * slack
        for g, s, o in zip(exact["GRR"], exact["SS"], exact["OUE"], strict=True)
    )
    return [
        stated(
            f"OUE protects at least as well as SS, and SS as GRR, {name}",
            ordered,
            "uniform prior, no knowledge; SS is GRR once its subsets have one element",
        ),
        _tightness(name, exact["GRR"], size),
        *(_agreement(name, protocol, found) for protocol, found in points.items()),
        _coincidence(name, size, exact),
    ]


def _coincidence(name: str, size: int, exact: Mapping[str, Values]) -> Check:
    above = [
        _protocol(protocol, size, e).attack_success() - value
        for protocol, values in exact.items()
        for e, value in zip(_GRID, values, strict=True)
    ]
    blind = all(math.isclose(gap, 1 / size, rel_tol=1e-6) for gap in above)
    return Check(
        f"success minus advantage, {name}",
        "coincide",
        max(above),
        "match" if blind and max(above) < 5e-4 else "differs",
        "success is larger by 1/m, the chance of a blind guess, at every level",
    )


def _tightness(name: str, grr: Values, size: int) -> Check:
    bound = [uniform_guess_bound(Pure(e), size).value for e in _GRID]
    worst = max(abs(a / b - 1) for a, b in zip(grr, bound, strict=True))
    return stated(
        f"GRR attains the black-box bound of Theorem 5.15, {name}",
        worst < 1e-9,
        f"largest relative difference {worst:.1e}",
    )


def _agreement(name: str, protocol: str, found: list[_LocalPoint]) -> Check:
    far = max(
        abs(sum(p.right) - p.total * p.success)
        / math.sqrt(p.total * p.success * (1 - p.success))
        for p in found
    )
    return stated(
        f"the attack measured on {protocol} has the advantage of Theorem 5.3, {name}",
        all(p.likely for p in found),
        f"{REPEATS} repeats of {found[0].reports} reports at each of {len(found)} "
        f"levels; largest deviation of all together {far:.2f} standard errors",
    )


def _local_draws(runs: int) -> str:
    return (
        "source: a million attacked reports a point; here: five times "
        f"{count(1000 * runs)} of GRR and {count(5 * runs)} of SS and OUE"
    )


FIGURE_5_7 = Study(
    "figure-5.7",
    "advantage of the optimal attack on local protocols",
    "Guerra-Balboa (2026), Figure 5.7",
    _figure_5_7,
    ("porto", "geolife"),
    draws=_local_draws,
)
RISK_LOCAL = (FIGURE_5_7,)
