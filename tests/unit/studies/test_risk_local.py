"""Figure 5.7: local protocols on thousands of crossings."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from undertow.mechanisms.local import GeneralizedResponse
from undertow_studies import Inputs, StudyResult
from undertow_studies import risk_attack as risk_local
from undertow_studies.data import study_data
from undertow_studies.risk_attack import _GRID, FIGURE_5_7, _best_case, _worst_case
from undertow_studies.risk_attack import _LocalPoint as _Point

LABELS = ("GRR", "SS", "OUE")
# Level: Porto, then Geolife.
PORTO = {
    1: (0.000563, 0.000282, 0.000282),
    3: (0.006213, 0.003135, 0.003127),
    5: (0.046060, 0.024407, 0.024150),
    6: (0.116458, 0.068411, 0.065894),
    7: (0.264072, 0.208823, 0.168369),
    8: (0.493866, 0.493866, 0.312740),
    9: (0.726140, 0.726140, 0.416441),
    10: (0.878009, 0.878009, 0.466732),
    12: (0.981271, 0.981271, 0.495176),
    14: (0.997142, 0.997142, 0.499202),
    16: (0.999329, 0.999329, 0.499750),
}
GEOLIFE = {
    1: (0.000321, 0.000160, 0.000160),
    3: (0.003550, 0.001782, 0.001782),
    5: (0.026781, 0.013927, 0.013761),
    6: (0.069872, 0.037917, 0.037568),
    7: (0.169791, 0.112421, 0.101505),
    8: (0.357416, 0.357416, 0.232025),
    9: (0.601911, 0.601911, 0.365752),
    10: (0.804243, 0.804243, 0.443749),
    12: (0.967959, 0.967959, 0.491768),
    14: (0.995380, 0.995380, 0.498795),
    16: (0.999211, 0.999211, 0.499756),
}


@cache
def found(seed: int = 0) -> StudyResult:
    return FIGURE_5_7.run(Inputs(study_data(FIGURE_5_7, None), runs=8, seed=seed))


@pytest.mark.parametrize(
    ("panel", "table"), [(0, PORTO), (1, GEOLIFE)], ids=["porto", "geolife"]
)
def test_AT_7_the_lines_have_their_values(panel, table):
    curves = {c.label: c for c in found().panels[panel].curves}
    for epsilon, values in table.items():
        place = int(np.argmin(np.abs(np.array(_GRID) - epsilon)))
        assert _GRID[place] == pytest.approx(epsilon, abs=1e-9)
        drawn = [curves[label].y[place] for label in LABELS]
        assert drawn == pytest.approx(values, abs=6e-7), epsilon


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("panel", "table"), [(0, PORTO), (1, GEOLIFE)], ids=["porto", "geolife"]
)
def test_AT_7_the_markers_of_randomised_response_lie_on_the_line(panel, table):
    # Five repeats of 8 000 reports a point; false alarm below 1e-4 at four standard
    # errors.
    curve = next(c for c in found().panels[panel].curves if c.label == "GRR, measured")
    for epsilon, measured in zip(curve.x, curve.y, strict=True):
        value = table[int(epsilon)][0]
        assert measured == pytest.approx(
            value, abs=4 * np.sqrt(max(value, 1e-3) / 40_000)
        )


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("size", "table"), [(3052, PORTO), (5356, GEOLIFE)], ids=["porto", "geolife"]
)
def test_AT_7_a_million_reports_of_unary_encoding_by_their_counts(size, table):
    # Whether the true bit is set and how many others are decides the attack. Four
    # standard errors at 11 levels: false alarm below 1e-3.
    rng = np.random.default_rng(11)
    for epsilon, values in table.items():
        true = rng.random(1_000_000) < 0.5
        others = rng.binomial(size - 1, 1 / (np.exp(epsilon) + 1), size=1_000_000)
        chance = np.where(true, 1 / (1 + others), np.where(others, 0.0, 1 / size))
        error = chance.std() / 1000
        assert chance.mean() - 1 / size == pytest.approx(
            values[2], abs=4 * error + 6e-7
        )


def test_the_statements_of_the_figure_come_out():
    by_status = {c.quantity: c.status for c in found().checks}
    sizes = {q for q, status in by_status.items() if status == "stand-in"}
    assert sizes == {
        "number of crossings, Porto",
        "number of crossings, Geolife",
    }
    assert set(by_status.values()) == {"match", "stand-in"}
    assert "stand-in" in found().data


def test_too_many_right_guesses_are_called_different():
    good = _Point(1.0, 5_000, (490, 510), 0.1, 100)
    assert good.likely
    assert not _Point(1.0, 5_000, (600, 600), 0.1, 100).likely
    assert not _Point(1.0, 5_000, (400, 400), 0.1, 100).likely
    assert good.advantages.mean == pytest.approx(0.09)
    assert good.advantages.deviation == pytest.approx(0.004 / np.sqrt(2))


def test_every_marker_is_the_mean_of_five_repeats_with_their_deviation():
    result = found()
    assert result.header[-2:] == ("deviation", "undefined")
    spread = {row[1:4:2]: row[5] for row in result.rows if row[0].startswith("Porto")}
    curves = result.panels[0].curves
    for curve in (c for c in curves if c.kind == "measured"):
        assert len(curve.spread) == len(curve.x) == 11
        for x, deviation in zip(curve.x, curve.spread, strict=True):
            assert spread[curve.label, x] == deviation
    assert spread["GRR", _GRID[0]] == ""
    assert "5 repeats a point" in result.data


@pytest.mark.statistical
def test_the_repeats_scatter_as_independent_counts_do():
    # Four degrees of freedom a level: the sum over 22 is chi-square with 88, outside
    # (30, 180) with probability below 1e-7.
    points = []
    for panel, size in zip(found().panels, (3052, 5356), strict=True):
        curve = next(c for c in panel.curves if c.label == "GRR, measured")
        for e, deviation in zip(curve.x, curve.spread, strict=True):
            s = GeneralizedResponse(size, e).attack_success()
            points.append(4 * deviation**2 * 8_000 / (s * (1 - s)))
    assert 30 < sum(points) < 180


def test_the_seed_decides_the_markers():
    assert found(1).panels != found().panels


def _case(low, high, real=True):
    """Return a prior whose advantage is `low` at no threshold and `high` beyond."""
    return SimpleNamespace(exact=lambda e, eta: high if eta else low, real=real)


def test_the_checks_on_extreme_priors_can_come_out_otherwise():
    uniform, skewed = _case(0.2, 0.5), _case(0.6, 0.4)
    assert _worst_case(uniform, uniform, skewed).status == "differs"
    assert _worst_case(uniform, uniform, _case(0.6, 0.6)).status == "match"
    assert _best_case(uniform, _case(0.3, 0.4)).status == "erratum"
    assert _best_case(uniform, _case(0.1, 0.4)).status == "match"
    assert _best_case(uniform, _case(0.3, 0.7)).status == "differs"
    assert _best_case(uniform, _case(0.3, 0.7, real=False)).status == "stand-in"


def test_the_check_that_success_and_advantage_coincide_can_fail():
    exact = {"GRR": tuple(0.0 for _ in risk_local._GRID)}
    assert risk_local._coincidence("nowhere", 5000, exact).status == "differs"
