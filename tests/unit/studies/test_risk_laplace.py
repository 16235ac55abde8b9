"""Figure 5.6: the exact advantages on Adult, and the attack that attains them."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from undertow_studies import Inputs, StudyResult
from undertow_studies.data import study_data
from undertow_studies.risk_attack import FIGURE_5_6

HERE = os.environ.get("UNDERTOW_DATA")
needs_data = [
    pytest.mark.data,
    pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder"),
]
TWIN = re.compile(r" \(line of \d+\)")
LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
UNIFORM = {
    0: (0.00247, 0.00494, 0.00985, 0.01961, 0.03882, 0.07612),
    40: (0.0589, 0.11028, 0.19502, 0.31247, 0.43021, 0.50894),
    80: (0.03623, 0.06573, 0.10934, 0.15778, 0.18941, 0.19757),
    100: (0, 0, 0, 0, 0, 0),
}
EMPIRICAL = {
    0: (0.00465, 0.01012, 0.02267, 0.05056, 0.10666, 0.2017),
    40: (0.01836, 0.03554, 0.06655, 0.11724, 0.1881, 0.26968),
    80: (0.00429, 0.00803, 0.01423, 0.02318, 0.03372, 0.04258),
    100: (0, 0, 0, 0, 0, 0),
}
SKEWED = dict.fromkeys(
    (0, 40, 80), (0.1106, 0.19673, 0.31606, 0.43233, 0.49084, 0.49983)
)
BOUNDS = {
    ("uniform", 0): (0.0163, 0.0269, 0.0732, 0.5406, 0.9997, 1),
    ("uniform", 40): (0.8799, 0.9272, 0.9732, 0.9964, 0.9999, 1),
    ("skewed", 0): (0.6967, 0.8161, 0.9323, 0.9908, 0.9998, 1),
}


@cache
def found(*, real: bool = False, seed: int = 0) -> StudyResult:
    folder = Path(HERE) if real and HERE is not None else None
    data = study_data(FIGURE_5_6, folder)
    return FIGURE_5_6.run(Inputs(data, runs=60, seed=seed))


def values(result: StudyResult, panel: str, label: str) -> list[float]:
    axes = next(p for p in result.panels if p.name.startswith(panel))
    curve = next(c for c in axes.curves if TWIN.sub("", c.label) == label)
    close = [
        [y for x, y in zip(curve.x, curve.y, strict=True) if abs(x / e - 1) < 1e-9]
        for e in LEVELS
    ]
    return [y for (y,) in close]


@pytest.mark.parametrize("eta", UNIFORM)
def test_AT_6_advantage_under_the_uniform_prior(eta):
    exact = values(found(), "RAD, uniform", f"η = {eta}")
    assert exact == pytest.approx(UNIFORM[eta], abs=6e-6)


@pytest.mark.parametrize("eta", SKEWED)
def test_AT_6_advantage_under_the_skewed_prior(eta):
    exact = values(found(), "RAD, skewed", f"η = {eta}")
    assert exact == pytest.approx(SKEWED[eta], abs=6e-6)


@pytest.mark.parametrize(("prior", "eta"), BOUNDS)
def test_bounds_on_the_success_of_reconstruction(prior, eta):
    bounds = values(found(), f"ReRo, {prior}", f"η = {eta}")
    assert bounds == pytest.approx(BOUNDS[prior, eta], abs=6e-5)


def test_AT_6_the_measured_attack_has_the_exact_advantage():
    for prior in ("uniform", "skewed"):
        for eta in UNIFORM:
            theory = values(found(), f"RAD, {prior}", f"η = {eta}")
            measured = values(found(), f"RAD, {prior}", f"η = {eta}, measured")
            # Five standard errors of 6060 trials with values in [-1, 1].
            assert measured == pytest.approx(theory, abs=5 * 0.5 / 77)


def test_AT_6_where_nothing_can_miss_the_advantage_is_exactly_zero():
    for prior in ("uniform", "empirical", "skewed"):
        assert values(found(), f"RAD, {prior}", "η = 100") == [0.0] * 6
        assert values(found(), f"RAD, {prior}", "η = 100, measured") == [0.0] * 6
        assert values(found(), f"ReRo, {prior}", "η = 100") == [1.0] * 6


def test_the_empirical_panels_say_that_a_stand_in_was_used():
    names = [panel.name for panel in found().panels]
    assert names.count("RAD, empirical (stand-in)") == 1
    empirical = [c for c in found().checks if "empirical" in c.quantity]
    assert {c.status for c in empirical} == {"stand-in"}
    assert "stand-in" in found().data


def test_a_line_that_another_one_hides_is_called_so():
    labels = {
        p.name: [c.label for c in p.curves if c.kind == "theory"]
        for p in found().panels
    }
    assert labels["RAD, skewed"] == [
        "η = 0",
        "η = 40 (line of 0)",
        "η = 80 (line of 0)",
        "η = 100",
    ]
    assert labels["ReRo, skewed"][1] == "η = 40 (line of 0)"
    assert labels["ReRo, uniform"][3] == "η = 100 (line of 80)"
    assert labels["RAD, uniform"] == ["η = 0", "η = 40", "η = 80", "η = 100"]


def test_a_tie_of_thresholds_is_called_one():
    peaks = {
        c.quantity.removeprefix("RAD peaks at η = 40, "): c
        for c in found().checks
        if c.quantity.startswith("RAD peaks")
    }
    assert peaks["skewed prior"].ours == "tie of η = 0, 40, 80"
    assert "the same for η = 0, 40, 80 at every level" in peaks["skewed prior"].note
    assert peaks["uniform prior"].ours == peaks["empirical prior"].ours == "yes"


def test_RE32_trap_r06_the_worst_prior_is_not_always_the_pair_of_ends():
    (check,) = (c for c in found().checks if c.quantity.startswith("the skewed prior"))
    assert (check.ours, check.status) == ("up to ε = 8", "erratum")


def test_the_seed_decides_the_markers_and_nothing_else():
    other = found(seed=1)
    label = "η = 40"
    for panel in ("RAD, uniform", "ReRo, skewed"):
        assert values(other, panel, label) == values(found(), panel, label)
        measured = f"{label}, measured"
        assert values(other, panel, measured) != values(found(), panel, measured)


class TestRealData:
    pytestmark = needs_data

    @pytest.mark.parametrize("eta", EMPIRICAL)
    def test_AT_6_advantage_under_the_empirical_prior(self, eta):
        exact = values(found(real=True), "RAD, empirical", f"η = {eta}")
        assert exact == pytest.approx(EMPIRICAL[eta], abs=6e-6)

    def test_RE24_the_empirical_prior_is_not_the_best_case_for_exact_guesses(self):
        (check,) = (
            c
            for c in found(real=True).checks
            if c.quantity.startswith("the empirical prior is")
        )
        assert (check.ours, check.status) == ("for η = 40, 80 and 100", "erratum")
        assert EMPIRICAL[0][1] > UNIFORM[0][1]

    def test_nothing_stands_in_for_the_counts(self):
        assert {c.status for c in found(real=True).checks} == {"match", "erratum"}
        assert "real" in found(real=True).data
