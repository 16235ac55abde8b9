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

from undertow.audit import runner
from undertow.audit import runner as _checkpoint
from undertow.audit.runner import affordable_trials, run_chunks
from undertow.errors import AuditError


def tally(seed, index):
    rng = np.random.default_rng(seed)
    return {
        "heads": int(rng.integers(2, size=50).sum()),
        "bins": rng.integers(9, size=3),
    }


def plain(counts):
    return {name: array.tolist() for name, array in counts.items()}


def chunks_done(path):
    return json.loads(path.read_text())["sections"]["counts"]["state"]["done"]


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
    assert [done for done, _, _ in seen] == list(range(1, 12))
    assert seen[-1] == (11, 11, plain(counts))


@pytest.mark.parametrize(
    "workers", [1, pytest.param(2, marks=pytest.mark.extra)], ids=["one", "two"]
)
def test_progress_of_a_long_run_is_told_at_the_same_chunks_whatever_the_workers(
    workers,
):
    if workers > 1:
        pytest.importorskip("joblib")
    seen = []
    run(chunks=300, workers=workers, progress=lambda done, *_: seen.append(done))
    step = 3  # of 128 parts
    assert seen == sorted({1, 2, 4, 8, 16, 32, 64, 128, 256, *range(3, 301, step)})


def test_an_interrupted_run_resumes_to_the_same_counts(tmp_path):
    path = tmp_path / "state.json"

    def stop(seed, index):
        if index == 4:
            raise KeyboardInterrupt
        return tally(seed, index)

    with pytest.raises(KeyboardInterrupt):
        run(stop, checkpoint=path)
    assert chunks_done(path) == 4  # nothing of what was done is lost
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


class Clock:
    """Seconds that pass only when told."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_checkpoint_is_written_every_second_of_work_and_at_the_end(
    tmp_path, monkeypatch
):
    path, clock, seen = tmp_path / "state.json", Clock(), []
    monkeypatch.setattr(_checkpoint, "time", clock)

    def work(seed, index):
        seen.append(chunks_done(path) if path.exists() else 0)
        clock.now += 0.4
        return tally(seed, index)

    run(work, checkpoint=path)
    # Three chunks of 0.4 s are more than a second.
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9]
    assert chunks_done(path) == 11


def test_slow_writes_are_made_less_often(tmp_path, monkeypatch):
    path, clock, writes = tmp_path / "state.json", Clock(), []
    monkeypatch.setattr(_checkpoint, "time", clock)
    replace = _checkpoint._replace

    def slow(place, text):
        writes.append(clock.now)
        clock.now += 0.5
        replace(place, text)

    def work(seed, index):
        clock.now += 1.0
        return tally(seed, index)

    monkeypatch.setattr(_checkpoint, "_replace", slow)
    run(work, checkpoint=path, chunks=30)
    # A write of half a second waits for ten seconds of work.
    assert len(writes) == 4
    assert chunks_done(path) == 30


def test_the_size_of_a_checkpoint_does_not_grow_with_the_chunks(tmp_path):
    few, many = tmp_path / "few.json", tmp_path / "many.json"
    run(checkpoint=few)
    run(checkpoint=many, chunks=3000)
    assert many.stat().st_size < few.stat().st_size + 20


def test_a_checkpoint_of_the_first_format_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "state.json"
    path.write_text(
        '{"format": "undertow audit checkpoint 1", "job": "", "done": [0], '
        '"counts": {"heads": 3}}'
    )
    with pytest.raises(AuditError, match=r"older one; .* or delete it to start again"):
        run(checkpoint=path)


@pytest.mark.parametrize(
    "state",
    [
        '{"done": 12, "counts": {}}',
        '{"done": 1, "counts": {}}',
        '{"done": 1, "counts": {"heads": -1}}',
        '{"done": 1}',
        '{"done": "x"}',
        "[]",
    ],
)
def test_a_state_that_was_never_saved_is_refused(tmp_path, state):
    path = tmp_path / "state.json"
    run(checkpoint=path)
    saved = json.loads(path.read_text())
    saved["sections"]["counts"]["state"] = json.loads(state)
    path.write_text(json.dumps(saved))
    with pytest.raises(AuditError, match=r"damaged .*; delete it to start again"):
        run(checkpoint=path)


def ends_its_process(seed, index):
    os._exit(3)


@pytest.mark.extra
def test_work_that_ends_its_process_ends_a_run_with_one_sentence():
    pytest.importorskip("joblib")
    with pytest.raises(AuditError, match="must not end its process") as caught:
        run(ends_its_process, workers=2)
    assert "os._exit" in str(caught.value)
    assert "\n" not in str(caught.value)


class Unreadable:
    """Can be sent to another process, which cannot read it."""

    def __call__(self, seed, index):
        return {"n": 1}

    def __reduce__(self):
        return int, ("no number",)


@pytest.mark.extra
def test_work_that_no_other_process_can_read_is_refused_with_the_way_out():
    pytest.importorskip("joblib")
    with pytest.raises(AuditError, match="which another process cannot read, got 2"):
        run(Unreadable(), workers=2)


@pytest.mark.extra
def test_workers_share_long_runs_in_blocks_and_lose_no_chunk():
    pytest.importorskip("joblib")
    assert plain(run(workers=2, chunks=301)) == plain(run(chunks=301))


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
    assert 0 < chunks_done(path) < 20
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
    with pytest.raises(AuditError, match=r"can be written, got .*disk full"):
        run(checkpoint=path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("each", [1e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("start", [0.0, 0.05])
def test_affordable_trials_fill_the_time_cut_to_a_digit(each, start, monkeypatch):
    clock, asked = [0.0], []

    def audit(trials):
        asked.append(trials)
        clock[0] += start + each * trials

    monkeypatch.setattr(runner.time, "monotonic", lambda: clock[0])
    found = affordable_trials(audit, seconds=10, least=500)
    assert 500 <= found <= 10**7
    assert found == 500 or set(str(found)[1:]) <= {"0"}
    if found > 500:  # the time, but for what was cut off and for the start
        assert 4 < found * each <= 10.001
    assert sum(asked) * each < max(10 * 0.3, 500 * each + 1)
    assert affordable_trials(audit, seconds=10, least=500, most=700) <= 700


def test_what_takes_too_long_is_not_run_to_find_out():
    def never(trials):
        raise AssertionError(trials)

    found = [
        affordable_trials(never, seconds=10, least=100, each=each)
        for each in (0.02, 0.05, 1.0, 30.0)
    ]
    assert found == [500, 200, 100, 100]
    with pytest.raises(ValueError, match="seconds must be positive"):
        affordable_trials(never, seconds=0, least=1)


def test_a_progress_hook_cannot_change_the_counts():
    def spoil(done, total, counts):
        counts["n"] += 100

    found = run_chunks(
        lambda seed, index: {"n": np.array([1])},
        chunks=9, seed=1, fingerprint="x", progress=spoil,
    )  # fmt: skip
    assert found["n"].tolist() == [9]
