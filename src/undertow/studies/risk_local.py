"""Figure 5.7 of the thesis: local protocols on the crossings of two cities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalProtocol,
    OptimizedUnary,
    SubsetSelection,
)
from undertow.privacy import Pure
from undertow.risk.bounds import uniform_guess_bound
from undertow.studies.audit_common import REPEATS, Repeats, audit_result, markers
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow.studies.risk_theory import ADVANTAGE_LABEL, EPSILON_LABEL
from undertow.studies.thesis_bounds import stated

__all__ = ["RISK_LOCAL"]

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
class _Point:
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
) -> _Point:
    protocol, reports = _protocol(name, size, epsilon), _REPORTS[name] * runs
    right = tuple(_right(protocol, reports, rng) for _ in range(REPEATS))
    return _Point(epsilon, reports, right, protocol.attack_success(), size)


def _right(protocol: LocalProtocol, reports: int, rng: np.random.Generator) -> int:
    truths = rng.integers(protocol.categories, size=reports)
    drawn = protocol.sample(truths, source=SimulatedSource(rng))
    guesses = protocol.sample_guesses(drawn.values, rng=rng)
    return int((guesses == truths).sum())


def _repeated(found: list[_Point]) -> dict[float, Repeats]:
    return {p.epsilon: p.advantages for p in found}


def _panel(
    title: str, exact: Mapping[str, Values], points: dict[str, list[_Point]]
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
    name: str, size: int, exact: Mapping[str, Values], points: dict[str, list[_Point]]
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


def _agreement(name: str, protocol: str, found: list[_Point]) -> Check:
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


def _draws(runs: int) -> str:
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
    draws=_draws,
)
RISK_LOCAL = (FIGURE_5_7,)
