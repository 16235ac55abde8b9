"""Figures 5.1 and 5.3, and Table 5.1: our numbers are those worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from undertow.mechanisms import GaussianMechanism, LaplaceMechanism
from undertow.privacy import gdp_mu
from undertow.risk import Prior, Threat, advantage
from undertow.risk.scalar import ScalarChannel
from undertow_studies import STUDIES, Inputs, StudyResult
from undertow_studies.risk_theory import _crossing_checks

# Level: GRR, SS, OUE, Laplace, Gaussian, Theorem 5.2 with the level alone.
MECHANISMS = {
    0.5: (0.050628, 0.030366, 0.029230, 0.022446, 0.005158, 0.222653),
    1.0: (0.122821, 0.097382, 0.074698, 0.044337, 0.009721, 0.420107),
    2.0: (0.334017, 0.334017, 0.208796, 0.086511, 0.018188, 0.692358),
    3.0: (0.576705, 0.576705, 0.333858, 0.126629, 0.026075, 0.822862),
    5.0: (0.845965, 0.845965, 0.435193, 0.201090, 0.040643, 0.896922),
    8.0: (0.905747, 0.905747, 0.453556, 0.299709, 0.060353, 0.908481),
    10.0: (0.908637, 0.908637, 0.454411, 0.357699, 0.072430, 0.909008),
    14.0: (0.909083, 0.909083, 0.454543, 0.457650, 0.094667, 0.909089),
}
# Level: Proposition 5.13, Corollary 5.16, OUE.
BLACK_BOX = {
    0.5: (0.064882, 0.054837, 0.031981),
    1.0: (0.171838, 0.131977, 0.080790),
    2.0: (0.638916, 0.350859, 0.217526),
    3.0: (0.814634, 0.590571, 0.338018),
    4.0: (0.867625, 0.758488, 0.403877),
    6.0: (0.895549, 0.878178, 0.443371),
    10.0: (0.899918, 0.899592, 0.449877),
}


@cache
def found(name: str) -> StudyResult:
    study = next(s for s in STUDIES if s.name == name)
    assert study.needs == ()
    return study.run(Inputs({}))


def at(result: StudyResult, panel: int, label: str, x: float) -> float:
    curve = next(c for c in result.panels[panel].curves if c.label == label)
    return next(b for a, b in zip(curve.x, curve.y, strict=True) if abs(a - x) < 1e-9)


def status(name: str, start: str) -> list[str]:
    return [c.status for c in found(name).checks if c.quantity.startswith(start)]


@pytest.mark.parametrize("epsilon", MECHANISMS)
def test_AT_1_the_five_mechanisms_have_their_advantages(epsilon):
    result = found("figure-5.1")
    *mechanisms, level = MECHANISMS[epsilon]
    labels = ("GRR", "SS", "OUE", "Laplace", "Gaussian")
    for label, value in zip(labels, mechanisms, strict=True):
        assert at(result, 0, label, epsilon) == pytest.approx(value, abs=6e-7), label
    assert at(result, 1, "ε alone", epsilon) == pytest.approx(level, abs=6e-7)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_the_closed_forms_of_noise_agree_with_the_exact_engine(epsilon):
    threat = Threat(Prior.uniform(11))
    sigma = Fraction(1 / gdp_mu(epsilon, 1e-5))
    for label, noise in (
        ("Laplace", LaplaceMechanism(Fraction(1 / epsilon))),
        ("Gaussian", GaussianMechanism(sigma)),
    ):
        answers = ScalarChannel(noise, np.linspace(0, 1, 11))
        exact = advantage(answers, threat).value
        drawn = at(found("figure-5.1"), 0, label, epsilon)
        assert drawn == pytest.approx(exact, abs=1e-8), label


def test_AT_1_the_total_variations_at_level_one():
    values = {"GRR": 0.122821, "OUE": 0.210053, "Laplace": 0.357699}
    for label, value in {**values, "Gaussian": 0.096925}.items():
        assert at(found("figure-5.1"), 1, label, 1.0) == pytest.approx(value, abs=6e-7)


def test_AT_1_laplace_and_unary_encoding_cross_before_fourteen():
    (check,) = (
        c for c in found("figure-5.1").checks if c.quantity.startswith("where Laplace")
    )
    assert (check.published, check.status) == ("all ε in [0, 14]", "erratum")
    assert check.ours == "ε from 0.001878 to 13.862820"


def test_the_printed_calibration_for_a_hundred_records_is_an_erratum():
    assert status("figure-5.1", "e^ε of GRR for RAD 0.1, m = 2") == ["match"]
    assert status("figure-5.1", "e^ε of GRR for RAD 0.1, m = 100") == ["erratum"]
    assert status("figure-5.1", "ε of GRR for RAD 0.1, m = 100") == ["erratum"]


def test_trap_r04_one_level_has_many_risks():
    result = found("figure-5.1")
    assert at(result, 0, "GRR", 3.0) > 20 * at(result, 0, "Gaussian", 3.0)
    # The ranking depends on the knowledge.
    assert at(result, 0, "Laplace", 3.0) < at(result, 0, "OUE", 3.0)
    assert at(result, 1, "Laplace", 3.0) > at(result, 1, "OUE", 3.0)


@pytest.mark.parametrize("epsilon", BLACK_BOX)
def test_AT_3_black_box_bounds_have_their_values_and_order(epsilon):
    labels = ("Proposition 5.13", "Corollary 5.16", "OUE")
    values = [at(found("figure-5.3"), 0, label, epsilon) for label in labels]
    assert values == pytest.approx(BLACK_BOX[epsilon], abs=6e-7)
    assert values == sorted(values, reverse=True)


def test_all_other_statements_of_the_figures_come_out():
    for name in ("figure-5.1", "figure-5.3"):
        assert {c.status for c in found(name).checks} <= {"match", "erratum"}
    assert all(c.status == "match" for c in found("figure-5.3").checks)


def test_table_5_1_has_the_printed_theorems():
    bounds = [
        c for c in found("table-5.1").checks if c.quantity.startswith("bound for")
    ]
    assert [c.published for c in bounds] == [
        "Theorem 5.2",
        "Theorem 5.11",
        "Theorem 5.3",
        "Theorem 5.2",
        "Proposition 5.13",
        "Theorem 5.15",
    ]
    assert {c.status for c in bounds} == {"match"}


def test_trap_r02_rows_without_knowledge_are_refused_with_it():
    refused = status("table-5.1", "Theorem 5.11 needs aux")
    refused += status("table-5.1", "Proposition 5.13 needs aux")
    refused += status("table-5.1", "Theorem 5.15 needs aux")
    assert refused == ["match"] * 3
    rows = [r for r in found("table-5.1").rows if r[2] in ("trade-off", "baselines")]
    for notion, assumption, _, applies, _, _, reason in rows:
        if assumption in ("none", "aux known"):
            assert applies == "no", notion
            assert "needs" in reason


def test_the_table_lists_every_row_of_the_selector_for_each_setting():
    result = found("table-5.1")
    settings = {row[:2] for row in result.rows}
    assert len(settings) == 6
    assert len(result.rows) == 6 * len({row[2] for row in result.rows})
    for row in result.rows:
        assert (row[3] == "yes") == isinstance(row[5], float)


def test_RE30_equation_2_3_fails_for_a_positive_delta():
    (check,) = (c for c in found("table-5.1").checks if c.status == "erratum")
    assert check.ours == "Equation 2.6"
    assert "0.325" in check.note


def test_the_exact_advantage_does_not_compose():
    (check,) = (
        c for c in found("table-5.1").checks if c.quantity.startswith("composition")
    )
    assert (check.ours, check.status) == ("no", "match")
    # Telling the record or nothing, twice: 1 - (1 - p)^2 of three quarters.
    p = (math.e - 1) / (math.e + 3)
    assert f"{0.75 * (1 - (1 - p) ** 2):.6g}" in check.note


def test_the_check_of_the_crossing_can_fail():
    def risk(slope):
        return lambda e: slope * (e - 0.005) * (e - 13.5)

    above = {"OUE": risk(1.0), "Laplace": lambda e: 0.0}
    assert _crossing_checks(above)[0].status == "differs"
    below = {"OUE": risk(-1.0), "Laplace": lambda e: 0.0}
    assert _crossing_checks(below)[0].status == "erratum"
