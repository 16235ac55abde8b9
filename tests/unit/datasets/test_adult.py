"""Hours of work and the whole table: the real counts, the stand-in, bad files."""

from __future__ import annotations

import os
import sys
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


def write_counts(folder: Path, rows: list[tuple[int, int]]) -> Path:
    (folder / "adult").mkdir()
    text = "hours_per_week,count\n" + "".join(f"{h},{c}\n" for h, c in rows)
    (folder / "adult/hours_per_week_counts.csv").write_text(text, encoding="utf-8")
    return folder


def test_the_stand_in_is_labelled_and_has_the_share_of_forty_hours():
    found = datasets.hours_stand_in()
    assert not found.real
    assert found.counts.shape == (101,)
    assert found.counts.sum() == 32_561
    assert found.counts[40] / 32_561 == pytest.approx(0.467, abs=5e-4)
    assert found.counts[0] == found.counts[100] == 0
    assert (found.counts >= 0).all()
    assert found.counts[45] > 3 * found.counts[44]


def test_the_prior_of_the_hours_is_their_frequencies():
    hours = datasets.Hours(np.array([1, 3] + 99 * [0]), real=True)
    prior = hours.prior()
    assert prior.support == tuple(range(101))
    assert prior.pmf[:2].tolist() == [0.25, 0.75]


def test_counts_are_read_in_order(tmp_path):
    folder = write_counts(tmp_path, [(h, 2 * h) for h in range(101)])
    found = datasets.load_adult_hours(folder)
    assert found.real
    assert found.counts.tolist() == [2 * h for h in range(101)]


def test_counts_of_other_hours_are_refused(tmp_path):
    folder = write_counts(tmp_path, [(h, 1) for h in range(1, 101)])
    with pytest.raises(DataError, match="must count the hours 0 to 100 in order"):
        datasets.load_adult_hours(folder)


def test_a_table_without_pyarrow_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult/adult_train.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match="extra 'data'"):
        datasets.load_adult(tmp_path)


def test_another_part_of_the_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match="split"):
        datasets.load_adult(tmp_path, "validation")


@pytest.mark.extra
def test_numbers_stay_numbers_and_words_may_be_missing(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"age": [30, 40], "job": ["clerk", None], "x": [1, 2]})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = datasets.read_parquet(tmp_path / "t.parquet", ["age", "job"])
    assert found["age"].dtype == np.int64
    assert found["job"].tolist() == ["clerk", None]
    assert set(found) == {"age", "job"}


class TestRealData:
    pytestmark = needs_data

    @pytest.fixture
    def folder(self) -> Path:
        assert HERE is not None
        return Path(HERE)

    def test_hours(self, folder):
        found = datasets.load_adult_hours(folder)
        assert found.counts.sum() == 32_561
        assert (found.counts > 0).sum() == 94
        assert found.counts @ np.arange(101) / 32_561 == pytest.approx(
            40.4375, abs=5e-5
        )
        assert found.counts[[40, 50, 45, 60, 35]].tolist() == [
            15217,
            2819,
            1824,
            1475,
            1297,
        ]

    def test_baselines_of_the_hours(self, folder):
        from undertow.risk import Success, Threat, estimate_collision

        hours = datasets.load_adult_hours(folder)
        assert hours.prior().collision == pytest.approx(0.237551062, abs=1e-9)
        unbiased = estimate_collision(hours.counts).value
        assert unbiased == pytest.approx(0.237527645, abs=1e-9)
        guess = {
            eta: Threat(hours.prior(), Success.within("absolute", eta))
            for eta in (0, 10, 40, 80)
        }
        assert guess[0].best_guess == pytest.approx(0.467338, abs=1e-6)
        assert guess[10].best_guess == pytest.approx(0.7623, abs=5e-5)
        assert guess[40].best_guess == pytest.approx(0.9937, abs=5e-5)
        assert guess[40].worst_guess == pytest.approx(0.0794, abs=5e-5)
        assert guess[80].worst_guess == pytest.approx(0.9477, abs=5e-5)

    def test_table(self, folder):
        pytest.importorskip("pyarrow")
        train = datasets.load_adult(folder)
        test = datasets.load_adult(folder, "test")
        assert (len(train), len(test)) == (32_561, 16_281)
        assert len(train.columns) == 15
        counts = np.bincount(train.columns["hours_per_week"], minlength=101)
        assert (counts == datasets.load_adult_hours(folder).counts).all()
        assert None in train.columns["workclass"].tolist()
