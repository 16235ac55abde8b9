"""An older copy of a ledger does not give fresh noise for what was paid once."""

from __future__ import annotations

import json
import shutil

import pytest

from support.command import invoke
from support.release_documents import write_visits
from undertow.composition import Release
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger
from undertow.privacy import Pure
from undertow.release import load
from undertow.release.run import protocol as run_module
from undertow.spaces import Identity, User

NOTHING = Release("x", Pure(0), unit=User(), view=Identity(), setting="common")
HOURS = {
    "time": "ts",
    "types": {"ts": "timestamp"},
    "per": {"window": "1h"},
    "start": "2026-01-01",
    "horizon": "24h",
}


def copies(tmp_path, monkeypatch):
    """A release that was run, and copies of its ledger: charged only, and empty."""
    path = write_visits(tmp_path)
    ledger = tmp_path / "visits.ledger"
    words = ["--dataset", "visits", "--granularity", "user=epsilon:1", "--release"]
    assert invoke("ledger", "init", ledger, *words, path).exit_code == 0
    shutil.copy(ledger, tmp_path / "empty")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "run_record", None)  # killed before it is stored
        with pytest.raises(TypeError):
            load(path).run()
    shutil.copy(ledger, tmp_path / "charged")
    return path, load(path).run()


@pytest.mark.parametrize("copy", ["empty", "charged"])
def test_an_older_copy_of_the_ledger_is_refused(tmp_path, monkeypatch, copy):
    path, first = copies(tmp_path, monkeypatch)
    ledger = tmp_path / "visits.ledger"
    shutil.copy(ledger, tmp_path / "newest")
    shutil.copy(tmp_path / copy, ledger)
    done = invoke("release", "run", path)
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1
    assert "got an older copy without the output that" in done.stderr
    shutil.copy(tmp_path / "newest", ledger)
    assert load(path).run().answers == first.answers


def test_a_manifest_of_an_earlier_version_tells_as_far_as_it_can(tmp_path, monkeypatch):
    path, _ = copies(tmp_path, monkeypatch)
    manifest = tmp_path / "release" / "manifest.json"
    told = json.loads(manifest.read_text())
    del told["charge"]["ledger"]
    manifest.write_text(json.dumps(told))
    shutil.copy(tmp_path / "charged", tmp_path / "visits.ledger")
    with pytest.raises(LedgerError, match="got an older copy"):
        load(path).run()


def test_another_run_of_the_release_is_refused_too(tmp_path):
    path = write_visits(
        tmp_path,
        ["1,2026-01-01 00:30:00"],
        columns="person,ts",
        source=HOURS,
        query={"by": [], "keys": {}},
    )
    release, ledger = load(path), tmp_path / "visits.ledger"
    release.run(as_of="2026-01-01T01:00")
    shutil.copy(ledger, tmp_path / "older")
    release.run(as_of="2026-01-01T02:00")
    shutil.copy(tmp_path / "older", ledger)
    with pytest.raises(LedgerError, match="got an older copy"):
        release.run(as_of="2026-01-01T03:00")


def test_a_ledger_that_was_made_anew_on_purpose_is_used(tmp_path, monkeypatch):
    path, _ = copies(tmp_path, monkeypatch)
    ledger = tmp_path / "visits.ledger"
    ledger.unlink()
    words = ["--dataset", "visits", "--granularity", "user=epsilon:1", "--release"]
    assert invoke("ledger", "init", ledger, *words, path).exit_code == 0
    assert not load(path).run().repeated
    with BudgetLedger.open(ledger) as opened:
        manifest = tmp_path / "release" / "manifest.json"
        assert json.loads(manifest.read_text())["charge"]["ledger"] == opened.start


def test_a_ledger_that_was_emptied_beside_its_journal_is_not_made_anew(tmp_path):
    path = write_visits(tmp_path)
    ledger = tmp_path / "visits.ledger"
    load(path).run()
    with BudgetLedger.open(ledger) as opened:
        opened.charge([NOTHING], key="k")
        journal = (tmp_path / "visits.ledger-wal").read_bytes()
    shutil.rmtree(tmp_path / "release")  # no manifest tells of it
    ledger.write_bytes(b"")
    (tmp_path / "visits.ledger-wal").write_bytes(journal)
    done = invoke("release", "run", path)
    assert done.exit_code == 3
    assert "its journal" in done.stderr
