"""What recorded runs ended in is looked at as where the runs are made."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from scipy import stats

from support.command import invoke
from undertow.audit import (
    AuditError,
    CallableSubject,
    Claim,
    RecordedSubject,
    audit_local,
    audit_pair,
)

# What the runs on one input alone end in, now and then.
RARE = {
    "nothing": None,
    "nan": math.nan,
    "exception": ValueError("no data"),
    "dictionary": {"error": "no data"},
    "text": "no data",
    "list": [1.5, None],
    "longer list": [1, 2, 3],
    "whole number": 7,
}


def recording(rare, *, share=0.5, seed=1, size=600):
    """Runs of which those on input 1 end in `rare` with this probability."""
    rng = np.random.default_rng(seed)
    inputs = [0, 1] * (size // 2)
    return inputs, [
        rare if x and rng.random() < share else rng.normal() for x in inputs
    ]


@pytest.mark.parametrize("name", RARE)
def test_what_shows_on_one_input_alone_refutes_a_claim(name):
    found = audit_pair(RecordedSubject(*recording(RARE[name])), Claim.pure(1))
    assert found.violated
    true = audit_pair(RecordedSubject(*recording(RARE[name], share=0)), Claim.pure(1))
    assert not true.violated


@pytest.mark.parametrize("name", RARE)
def test_a_recording_is_judged_as_the_runs_themselves(name):
    def told(x, rng):
        if rng.random() < 0.1 + 0.2 * x:
            if isinstance(RARE[name], Exception):
                raise RARE[name]
            return RARE[name]
        return rng.normal()

    live = audit_pair(CallableSubject(told, [0, 1]), Claim.pure(1), trials=4000)
    rng = np.random.default_rng(5)
    inputs, outputs = [0, 1] * 2000, []
    for x in inputs:
        try:
            outputs.append(told(x, rng))
        except ValueError as error:
            outputs.append(error)
    kept = audit_pair(RecordedSubject(inputs, outputs), Claim.pure(1))
    assert live.verdict == kept.verdict
    assert kept.estimate == pytest.approx(live.estimate, abs=0.5)


def test_reports_that_are_read_as_values_are_still_numbers_alone():
    for rare, said in ((None, "got None"), (math.nan, "got nan"), (OSError(), "OSErr")):
        subject = RecordedSubject(*recording(rare))
        with pytest.raises(AuditError, match=said):
            audit_local(subject, Claim.pure(1), trials=200, seed=1)


def test_masked_outputs_are_none():
    outputs = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0])
    subject = RecordedSubject([0, 0, 1, 1], outputs)
    rng = np.random.default_rng(1)
    assert subject.outcomes(0, 2, rng=rng).tolist() == [1.0, None]
    with pytest.raises(AuditError, match="got None"):
        subject.sample(1, 2, rng=rng)


def written(folder, ending, inputs, outputs):
    path = folder / f"runs{ending}"
    if ending == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("x", "y"), *zip(inputs, outputs, strict=True)])
    elif ending == ".jsonl":
        rows = zip(inputs, outputs, strict=True)
        lines = [json.dumps({"x": x, "y": y}) + "\n" for x, y in rows]
        path.write_text("".join(lines), encoding="utf-8")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"x": inputs, "y": outputs}), path)
    return path


@pytest.mark.parametrize(
    ("ending", "name"),
    [(".csv", "nothing"), (".csv", "nan"), (".csv", "text")]
    + [(".jsonl", name) for name in RARE if name != "exception"]
    + [(".parquet", "nothing"), (".parquet", "nan")],
)
def test_files_hold_all_that_a_run_can_end_in(ending, name, tmp_path):
    verdicts = []
    for share in (0.5, 0):
        path = written(tmp_path, ending, *recording(RARE[name], share=share))
        columns = ("--input-column=x", "--output-column=y", "--claim=1", "--json")
        ran = invoke("audit", "records", path, *columns)
        verdicts.append((ran.exit_code, json.loads(ran.stdout)["verdict"]))
    assert verdicts == [(3, "violated"), (0, "not refuted")]


def test_columns_of_which_some_are_empty_make_one_output(tmp_path):
    inputs, outputs = recording(None)
    path = tmp_path / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = ((x, "a", y) for x, y in zip(inputs, outputs, strict=True))
        csv.writer(file).writerows([("x", "kind", "y"), *rows])
    columns = ("--input-column=x", "--output-column=kind", "--output-column=y")
    ran = invoke("audit", "records", path, *columns, "--claim=1", "--json")
    assert ran.exit_code == 3


@pytest.mark.statistical
def test_recordings_of_every_kind_accuse_as_few_as_they_say():
    """Each tells its input by randomised response of level 1; fails once in 1e6."""
    fallen = made = 0
    for rare in RARE.values():
        for seed in range(12):
            rng = np.random.default_rng((seed, 9))
            inputs = [0, 1] * 250
            flips = rng.random(500) < 1 / (1 + math.e)
            outputs = [
                rare if x ^ flip else rng.normal()
                for x, flip in zip(inputs, flips, strict=True)
            ]
            subject = RecordedSubject(inputs, outputs)
            fallen += audit_pair(
                subject, Claim.pure(1), confidence=0.9, seed=seed
            ).violated
            made += 1
    assert fallen <= stats.binom.isf(1e-6, made, 0.1)
