"""Table 5.2: imputation succeeds often and discloses nothing."""

from __future__ import annotations

import os
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from undertow_studies import Inputs, StudyResult
from undertow_studies import data as sources
from undertow_studies import risk_bound as risk_imputation
from undertow_studies.risk_bound import TABLE_5_2, enumerated_risk

HERE = os.environ.get("UNDERTOW_DATA")


@cache
def found(*, real: bool = False) -> StudyResult:
    folder = Path(HERE) if real and HERE is not None else None
    return TABLE_5_2.run(Inputs(sources.study_data(TABLE_5_2, folder)))


def column(result: StudyResult, name: str) -> list[float]:
    return [row[result.header.index(name)] for row in result.rows]


def test_trap_r03_a_blind_attack_has_success_and_no_advantage():
    blind = np.broadcast_to(np.array([0, 1, 1, 0]), (4, 4))
    assert enumerated_risk(blind, np.array([0, 1, 0, 0])) == (Fraction(3, 4), 0)


def test_an_attack_that_copies_the_participant_has_its_advantage():
    truths = np.array([0, 1, 1, 0])
    copied = np.broadcast_to(truths[:, None], (4, 4))
    assert enumerated_risk(copied, truths) == (1, Fraction(1, 2))


def test_AT_5_the_advantage_of_imputation_is_exactly_zero():
    result = found()
    assert column(result, "RAD") == [0.0] * 10
    assert column(result, "ReRo") == column(result, "accuracy")


def test_AT_5_the_stand_in_succeeds_as_often_as_printed():
    result = found()
    values = np.array(column(result, "ReRo"))
    assert values[:5].mean() == pytest.approx(0.81, abs=0.03)
    assert values[5:].mean() == pytest.approx(0.73, abs=0.03)
    assert "stand-in" in result.data


def test_AT_5_beside_a_leak_the_advantage_is_positive():
    result = found()
    gained, best = (
        column(result, name) for name in ("RAD with leak", "best RAD with leak")
    )
    assert min(gained) > 0.2
    assert all(a <= b for a, b in zip(gained, best, strict=True))
    statuses = {c.status for c in result.checks if "leak" in c.quantity}
    assert statuses == {"match"}


def test_the_leak_looks_for_the_gain_and_not_for_the_largest_posterior(monkeypatch):
    # With eight classes the likeliest value never changes, and its advantage is zero.
    people = sources.study_data(TABLE_5_2, None)["people-race"]
    released = risk_imputation._LEAK
    monkeypatch.setattr(risk_imputation, "_LEAK", 1e-9)
    quiet = risk_imputation._one_run(people, seed=0)
    assert abs(quiet.leaked.advantage) < 1e-6
    monkeypatch.setattr(risk_imputation, "_LEAK", released)
    assert risk_imputation._one_run(people, seed=0).leaked.advantage > 0.2


def test_a_public_record_never_seen_is_imputed_by_the_overall_shares():
    imputer = risk_imputation._table_imputer(
        np.array([[0], [0], [1], [1]]), np.array([0, 0, 0, 1]), 2
    )
    assert imputer(np.array([[1], [7]])).tolist() == [[0.5, 0.5], [0.75, 0.25]]


def test_a_class_that_nobody_has_is_not_answered():
    records = risk_imputation._records_of(np.array([2, 0, 2]), 3)
    assert records.tolist() == [1, -1, 0]


def test_without_a_learner_the_stand_in_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    data = sources.study_data(TABLE_5_2, tmp_path)
    assert not data["people-sex"].real


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.extra
@pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")
def test_AT_5_on_adult():
    pytest.importorskip("sklearn")
    pytest.importorskip("pyarrow")
    result = found(real=True)
    values, majority = (np.array(column(result, n)) for n in ("ReRo", "majority"))
    assert column(result, "RAD") == [0.0] * 10
    assert values[:5].mean() == pytest.approx(0.863, abs=0.02)
    assert values[5:].mean() == pytest.approx(0.70, abs=0.03)
    assert (values > majority).all()
    assert result.data.startswith("Adult")
