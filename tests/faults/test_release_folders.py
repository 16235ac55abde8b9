"""Output folders that others use, and names that lead nowhere."""

from __future__ import annotations

import os

import pytest

from undertow.errors import PlanError
from undertow.release.run._folder import MANIFEST, check_folder, write_files

OTHERS = (".movie.mkv.part", ".x.part", ".01-a.csv.0123456789ag.part")


def test_parts_of_other_programs_stay(tmp_path):
    for name in OTHERS:
        (tmp_path / name).write_text("precious", encoding="utf-8")
    left = tmp_path / ".01-a.csv.0123456789ab.part"
    left.touch()
    write_files(tmp_path, {"01-a.csv": b"zone\r\n", MANIFEST: b"{}"})
    assert not left.exists()
    assert {p.name for p in tmp_path.glob(".*.part")} == set(OTHERS)


@pytest.mark.parametrize("target", ["nowhere", "output"], ids=["dangling", "circular"])
def test_a_link_that_leads_nowhere_is_refused_before_a_charge(tmp_path, target):
    os.symlink(tmp_path / target, tmp_path / "output")
    for folder in (tmp_path / "output", tmp_path / "output" / "run-000001"):
        with pytest.raises(PlanError, match="output must be a folder"):
            check_folder(folder)
