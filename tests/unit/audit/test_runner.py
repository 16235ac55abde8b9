from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from undertow.audit.runner import run_chunks
from undertow.audit.subjects import AuditError


def tally(seed, index):
    rng = np.random.default_rng(seed)
    return {
        "heads": int(rng.integers(2, size=50).sum()),
        "bins": rng.integers(9, size=3),
    }


def plain(counts):
    return {name: array.tolist() for name, array in counts.items()}


def run(work=tally, *, chunks=11, seed=3, fingerprint="job", **options):
    return run_chunks(
        work, chunks=chunks, seed=seed, fingerprint=fingerprint, **options
    )


def test_chunks_are_seeded_as_spawned_children():
    children = np.random.SeedSequence(3).spawn(11)
    expected = sum(tally(child, 0)["heads"] for child in children)
    assert int(run()["heads"]) == expected


@pytest.mark.extra
def test_counts_do_not_depend_on_the_number_of_workers():
    pytest.importorskip("joblib")
    assert plain(run(workers=2)) == plain(run())


def test_another_seed_gives_other_counts():
    assert plain(run(seed=4)) != plain(run())


def test_progress_ends_with_all_chunks_and_the_result():
    seen = []
    counts = run(progress=lambda done, total, c: seen.append((done, total, plain(c))))
    assert [done for done, _, _ in seen] == [4, 8, 11]
    assert seen[-1] == (11, 11, plain(counts))


def test_an_interrupted_run_resumes_to_the_same_counts(tmp_path):
    path = tmp_path / "state.json"

    def stop(done, total, counts):
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=path, progress=stop)
    assert len(json.loads(path.read_text())["done"]) == 4
    calls = []

    def counting(seed, index):
        calls.append(index)
        return tally(seed, index)

    assert plain(run(counting, checkpoint=path)) == plain(run())
    assert calls == list(range(4, 11))


def test_a_finished_checkpoint_runs_nothing(tmp_path):
    path = tmp_path / "state.json"
    first = run(checkpoint=path)
    again = run(lambda seed, index: pytest.fail("ran"), checkpoint=path)
    assert plain(again) == plain(first)


def test_the_checkpoint_is_for_its_owner_alone_and_leaves_no_litter(tmp_path):
    path = tmp_path / "state.json"
    run(checkpoint=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize(
    "other", [{"seed": 4}, {"chunks": 12}, {"fingerprint": "another"}]
)
def test_the_checkpoint_of_another_job_is_refused(tmp_path, other):
    path = tmp_path / "state.json"
    run(checkpoint=path)
    with pytest.raises(AuditError, match="must belong to this job"):
        run(checkpoint=path, **other)


@pytest.mark.parametrize("text", ["", '{"format": "und', "[1]", '{"format": "other"}'])
def test_a_damaged_checkpoint_is_refused_with_the_way_out(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(AuditError, match=r"damaged .*; delete it to start again"):
        run(checkpoint=path)


def test_a_killed_run_resumes_to_the_same_counts(tmp_path):
    path, script = tmp_path / "state.json", tmp_path / "job.py"
    script.write_text(
        "import sys, time, numpy as np\n"
        "from undertow.audit.runner import run_chunks\n"
        "def tally(seed, index):\n"
        "    time.sleep(float(sys.argv[2]))\n"
        "    return {'heads': int(np.random.default_rng(seed).integers(1000))}\n"
        "kept = dict(fingerprint='kill', checkpoint=sys.argv[1])\n"
        "c = run_chunks(tally, chunks=20, seed=5, **kept)\n"
        "print(int(c['heads']))\n"
    )

    def start(checkpoint, pause):
        command = [sys.executable, str(script), str(checkpoint), str(pause)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    slow = start(path, 0.1)
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(slow.pid, signal.SIGKILL)
    slow.communicate()
    assert slow.returncode == -signal.SIGKILL
    assert 0 < len(json.loads(path.read_text())["done"]) < 20
    resumed, _ = start(path, 0).communicate(timeout=30)
    fresh, _ = start(tmp_path / "fresh.json", 0).communicate(timeout=30)
    assert resumed == fresh != ""


def test_chunks_must_return_whole_numbers():
    with pytest.raises(AuditError, match="whole numbers, got float64 for 'rate'"):
        run(lambda seed, index: {"rate": 0.5})


def test_chunks_must_return_the_same_names_and_shapes():
    with pytest.raises(AuditError, match="same names and shapes"):
        run(lambda seed, index: {"n": np.zeros(1 + index % 2, dtype=int)})


def test_counts_that_would_overflow_are_refused():
    with pytest.raises(AuditError, match="below 2\\^62"):
        run(lambda seed, index: {"n": 2**62 + 1})


@pytest.mark.parametrize("bad", [{"chunks": 0}, {"seed": -1}, {"workers": 0}])
def test_sizes_are_checked(bad):
    with pytest.raises(ValueError, match="must be a whole number"):
        run(**bad)


def test_workers_without_joblib_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(AuditError, match="must be 1 without joblib, got 2"):
        run(workers=2)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.json"

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        run(checkpoint=path)
    assert list(tmp_path.iterdir()) == []
