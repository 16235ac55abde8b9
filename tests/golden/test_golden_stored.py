"""What earlier versions stored still opens, answers and goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.command import invoke
from support.golden import FOLDER, differences
from undertow.release.plan import noise
from undertow.release.run import record

LEDGERS = ["checked/visits", "count/visits", "steps/steps", "totals/visits"]


@pytest.fixture
def stored(tmp_path, monkeypatch) -> Path:
    """Return a copy of the stored folders, as their owner would have moved them."""
    folder = tmp_path / "moved"
    shutil.copytree(FOLDER / "stored", folder)
    for path in folder.rglob("*"):  # version control keeps no such rights
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.chdir(folder)
    return folder


def printed(*words: object, status: int = 0) -> dict:
    result = invoke(*words, "--json")
    assert result.exit_code == status, result.output + (result.stderr or "")
    return json.loads(result.stdout)


@pytest.mark.parametrize("command", ["show", "remaining", "history", "verify"])
@pytest.mark.parametrize("name", LEDGERS)
def test_a_stored_ledger_says_what_it_said(stored, name, command):
    expected = json.loads((stored / f"{name}.{command}.json").read_text())
    found = printed("ledger", command, f"{name}.ledger")
    assert differences(found, expected, exact=True) == []


@pytest.mark.parametrize("name", LEDGERS)
def test_a_stored_ledger_exports_the_bytes_it_exported(stored, name):
    before = (stored / f"{name}.export.json").read_bytes()
    again = stored / "again.json"
    result = invoke("ledger", "export", f"{name}.ledger", "--output", again)
    assert result.exit_code == 0, result.stderr
    assert again.read_bytes() == before


def test_a_stored_release_is_answered_without_a_charge(stored):
    folder = stored / "count"
    before = {p.name: p.read_bytes() for p in (folder / "release").iterdir()}
    found = printed("release", "run", folder / "release.toml")
    assert found["repeated"]
    assert {p.name: p.read_bytes() for p in (folder / "release").iterdir()} == before
    entries = printed("ledger", "history", folder / "visits.ledger")["entries"]
    assert [entry["kind"] for entry in entries] == ["charge", "output"]


def test_a_running_total_goes_on_from_stored_parts(stored):
    """Run 3 adds what run 2 released to an hour of its own."""
    file = stored / "totals" / "release.toml"
    hour = "2026-03-02T0{}:00".format
    again = printed("release", "run", file, "--as-of", hour(2), "--output", "two")
    assert again["repeated"]
    next_one = printed("release", "run", file, "--as-of", hour(3), "--output", "three")
    assert not next_one["repeated"]
    assert printed("ledger", "verify", stored / "totals" / "visits.ledger")


THIRD_HOUR = ("--as-of", "2026-03-02T03:00", "--output", "three")


def test_a_running_total_goes_on_where_its_noise_is_told_in_other_words(
    stored, monkeypatch
):
    """Earlier versions stored words alone, which are read as they were written."""
    monkeypatch.setattr(noise, "_WORDS", dict.fromkeys(noise._WORDS, "noise like"))
    file = stored / "totals" / "release.toml"
    found = printed("release", "run", file, *THIRD_HOUR)
    (query,) = found["plan"]["queries"]
    assert query["mechanism"] == "noise like 14"
    assert query["noise"] == {"law": "laplace", "scale": "14", "step": "1"}


@pytest.mark.parametrize(
    "other",
    [
        {"mechanism": "discrete Laplace noise of scale 15"},
        {"mechanism": "discrete Laplace noise of scale 14 or so"},
        {"mechanism": "discrete Gaussian noise of sigma 14"},
        {"mechanism": "discrete Gaussian noise of sigma 14", "node_deviation": 14.0},
        {"node_deviation": 19.9},
    ],
)
def test_a_running_total_refuses_stored_words_of_other_noise(
    stored, monkeypatch, other
):
    real = record.read_record

    def altered(kept):
        found = real(kept)
        found["plan"]["queries"][0].update(other)
        return found

    monkeypatch.setattr(record, "read_record", altered)
    file = stored / "totals" / "release.toml"
    result = invoke("release", "run", file, *THIRD_HOUR)
    assert result.exit_code == 2
    words = "carry discrete Laplace noise of scale 14 in every node"
    assert words in " ".join(result.stderr.split())


def test_a_running_total_without_its_stored_part_is_refused(stored, tmp_path):
    """Shows that the test above reads the stored part."""
    folder = tmp_path / "alone" / "totals"  # beside no ledger of the same people
    shutil.copytree(stored / "totals", folder)
    (folder / "visits.ledger").unlink()
    (folder / "undertow.heads").unlink()
    shutil.rmtree(folder / "hour-1")
    shutil.rmtree(folder / "hour-2")
    words = ("release", "run", folder / "release.toml", "--output", "three")
    result = invoke(*words, "--as-of", "2026-03-02T03:00")
    assert result.exit_code in (2, 3)
    assert "got none of run 2" in result.stderr


def test_a_release_stopped_by_its_count_stays_stopped(stored):
    folder = stored / "checked"
    result = invoke("release", "run", folder / "release.toml")
    assert result.exit_code == 3
    entries = printed("ledger", "history", folder / "visits.ledger")["entries"]
    assert [entry["kind"] for entry in entries] == ["charge", "output"]


def test_a_pending_charge_is_still_pending_and_can_be_finished(stored):
    from undertow.ledger import BudgetLedger

    with BudgetLedger.open(stored / "steps" / "steps.ledger") as ledger:
        charge = ledger.find("pending")
        assert charge is not None
        assert ledger.output(charge) is None
        assert ledger.store(charge, b"late") == b"late"
        assert ledger.output(charge) == b"late"
    assert printed("ledger", "verify", stored / "steps" / "steps.ledger")


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (
            "ldp",
            "ldp --protocol oue --categories 20 --epsilon 1 --claim 0.9 "
            "--trials 20000 --seed 1 --no-baseline",
        ),
        (
            "pair",
            "command PROGRAM --inputs [0,1] --claim 2 --trials 4000 --seeded --seed 1",
        ),
    ],
)
def test_a_stored_checkpoint_gives_its_result_again(
    stored, checkpoint, words, monkeypatch
):
    """The program is another one, so that runs which are counted anew would show."""
    monkeypatch.chdir(stored / "audit")
    program = stored / "audit" / "flip.py"
    program.write_text(program.read_text().replace("1 - value", "0"))
    before = json.loads((stored / "audit" / f"{checkpoint}.out").read_text())
    parts = [w.replace("PROGRAM", "python3 flip.py") for w in words.split()]
    kept = stored / "audit" / f"{checkpoint}.json"
    result = invoke("audit", *parts, "--checkpoint", kept, "--json")
    assert result.exit_code == (3 if before["verdict"] == "violated" else 0)
    after = json.loads(result.stdout)
    for either in (before, after):
        del either["notes"]  # advice, which may be worded anew
        either.pop("times", None)  # said since
    assert differences(after, before, exact=False) == []
