"""Loaders read the real files where they are, stand-ins follow their recipes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from undertow.datasets import DataError
from undertow_studies import dataset as datasets

HERE = os.environ.get("UNDERTOW_DATA")
needs_data = [
    pytest.mark.data,
    pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder"),
]


@pytest.fixture
def folder() -> Path:
    assert HERE is not None
    return Path(HERE)


def test_no_folder_is_no_folder(monkeypatch):
    monkeypatch.delenv("UNDERTOW_DATA", raising=False)
    assert datasets.data_folder() is None


def test_a_folder_is_named_by_the_caller_or_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERTOW_DATA", str(tmp_path))
    assert datasets.data_folder() == tmp_path
    inner = tmp_path / "inner"
    inner.mkdir()
    assert datasets.data_folder(inner) == inner


def test_a_missing_folder_or_file_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match="must exist"):
        datasets.data_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"must hold galton/galton\.csv"):
        datasets.load_galton(tmp_path)


def test_a_missing_column_is_one_sentence(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    assert datasets.read_columns(file, ["b"]) == {"b": ["2"]}
    with pytest.raises(DataError, match="column 'c'"):
        datasets.read_columns(file, ["c"])


@pytest.mark.parametrize("content", [b"\xff\xfe", b'a\n"' + b"x" * 200_000])
def test_what_is_no_csv_is_one_sentence(tmp_path, content):
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(DataError, match="must be"):
        datasets.read_columns(file, ["a"])


def test_an_empty_file_has_no_header(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="no header"):
        datasets.read_columns(file, ["a"])


def test_stand_ins_have_the_published_parameters():
    rng = np.random.default_rng(1)
    heights = datasets.galton_stand_in(rng)
    assert heights.trios.shape == (898, 3)
    assert np.corrcoef(heights.trios.T)[0, 2] == pytest.approx(0.275, abs=0.1)
    assert not heights.real
    scores = datasets.family_iq_stand_in(rng)
    assert scores.pairs.shape == (434, 2)
    assert scores.clipped_sum() == pytest.approx(81092, rel=0.03)
    assert not scores.real


def test_the_synthetic_scores_are_those_of_the_recipe():
    found = datasets.synthetic_iq()
    assert found.pairs.shape == (10_000, 2)
    assert np.corrcoef(found.pairs.T)[0, 1] == pytest.approx(0.4515, abs=5e-5)


def test_the_simulated_activity_has_whole_days():
    series = datasets.activity_stand_in()
    assert len(series.complete_days()) == 53
    assert series.count == pytest.approx(53 * 288 * 0.279, rel=0.1)
    assert not series.real


def test_the_simulated_electricity_has_the_printed_chains():
    for threshold, series in datasets.electricity_stand_in().items():
        assert len(series.states) == 731
        (_, p01), (p10, _) = datasets.ELECTRICITY_TRANSITIONS[threshold]
        assert series.count / 731 == pytest.approx(p01 / (p01 + p10), abs=0.08)


def test_simulated_genotypes_are_in_proportion():
    found = datasets.genotypes_stand_in(np.random.default_rng(2))
    assert found.alternate.shape == (1000, 2504)
    assert found.homozygotes().mean() == pytest.approx(40.29, rel=0.4)


def test_homozygotes_are_of_the_allele_asked_for():
    found = datasets.Genotypes(np.array([[2, 2, 2, 0], [0, 0, 1, 2]], np.uint8), False)
    assert found.homozygotes().tolist() == [3, 1]
    assert found.homozygotes("reference").tolist() == [1, 2]
    assert found.homozygotes("major").tolist() == [3, 2]
    with pytest.raises(ValueError, match="allele"):
        found.homozygotes("minor")


class TestRealData:
    pytestmark = needs_data

    def test_galton(self, folder):
        found = datasets.load_galton(folder)
        assert found.trios.shape == (898, 3)
        assert len(set(found.families)) == 197
        assert found.clipped_sum == pytest.approx(200.1548, abs=1e-4)
        correlation = np.corrcoef(found.trios.T)
        assert correlation[0, 2] == pytest.approx(0.27535483, abs=1e-8)
        assert np.cov(found.trios.T) == pytest.approx(
            datasets.galton_covariance(), rel=1e-3
        )

    def test_CE19_family_iq_is_the_mother_and_child_table(self, folder):
        found = datasets.load_family_iq(folder)
        assert found.pairs.shape == (434, 2)
        assert np.corrcoef(found.pairs.T)[0, 1] == pytest.approx(0.448276, abs=1e-6)
        assert found.clipped_sum() == pytest.approx(81092)
        assert np.cov(found.pairs.T) == pytest.approx(
            np.array(datasets.FAMILY_IQ_COVARIANCE), rel=1e-5
        )

    def test_CE25_activity_has_53_days_with_data(self, folder):
        found = datasets.load_activity(folder)
        assert len(found.states) == 17_568
        assert (found.states == -1).sum() == 2304
        assert found.count == 4250
        assert len(found.complete_days()) == 53
        assert len({day.tobytes() for day in found.complete_days()}) in (53, 54)

    def test_electricity_is_the_simulated_recipe(self, folder):
        real, simulated = (
            datasets.load_electricity(folder),
            datasets.electricity_stand_in(),
        )
        for threshold in simulated:
            assert (real[threshold].states == simulated[threshold].states).all()

    def test_household_transitions(self, folder):
        states = datasets.load_household(folder).states
        counts = np.zeros((2, 2))
        np.add.at(counts, (states[:-1], states[1:]), 1)
        shares = counts / counts.sum(axis=1, keepdims=True)
        assert shares == pytest.approx(
            np.array([[0.721, 0.279], [0.240, 0.760]]), abs=5e-4
        )

    def test_genotypes(self, folder):
        pytest.importorskip("pyarrow")
        found = datasets.load_genotypes(folder)
        assert found.alternate.shape == (1000, 2504)
        assert found.homozygotes().mean() == pytest.approx(40.6, abs=0.05)
        assert found.homozygotes("reference").mean() == pytest.approx(2397.8, abs=0.05)
