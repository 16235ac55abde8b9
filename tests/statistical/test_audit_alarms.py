"""A thousand audits of mechanisms that are exactly tight accuse as few as they say.

Every entry point is used as a user would: the library's two audits of a pair, its audit
of recordings, and the command line. At confidence 0.9 a true claim may fall in one
audit of ten; the limits on the number of falls are exceeded by chance with probability
at most 1e-6.
"""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy import stats

from support.command import invoke
from support.tight import TIGHT
from undertow.audit import (
    AuditError,
    CallableSubject,
    Claim,
    RecordedSubject,
    audit_pair,
    audit_pair_until_refuted,
)

CONFIDENCE = 0.9
# What an audit may decline to read as an output, and is not counted where it does.
SPECIAL = {"dictionary", "maybe_nothing", "mixed_types", "any_length", "fails"}


def by_pair(mechanism, level, seed, folder):
    subject = CallableSubject(mechanism, [0, 1])
    claim = Claim.pure(level)
    options = {"trials": 1000, "seed": seed, "confidence": CONFIDENCE}
    return audit_pair(subject, claim, **options).violated


def at_any_time(mechanism, level, seed, folder):
    subject = CallableSubject(mechanism, [0, 1])
    options = {"trials": 12_000, "seed": seed, "confidence": CONFIDENCE}
    return audit_pair_until_refuted(subject, Claim.pure(level), **options).violated


def runs_of(mechanism, seed):
    rng = np.random.default_rng(seed)
    inputs = [0, 1] * 500
    return inputs, [mechanism(value, rng) for value in inputs]


def by_recording(mechanism, level, seed, folder):
    subject = RecordedSubject(*runs_of(mechanism, seed))
    options = {"seed": seed, "confidence": CONFIDENCE}
    return audit_pair(subject, Claim.pure(level), **options).violated


def by_file(mechanism, level, seed, folder):
    inputs, outputs = runs_of(mechanism, seed)
    rows = [list(row) if isinstance(row, list | tuple) else [row] for row in outputs]
    names = [f"y{k}" for k in range(len(rows[0]))]
    path = folder / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", *names])
        writer.writerows([x, *row] for x, row in zip(inputs, rows, strict=True))
    columns = [word for name in names for word in ("--output-column", name)]
    return by_words("records", path, "--input-column=x", *columns, level, seed)


def by_command_line(mechanism, level, seed, folder):
    target = f"support.tight:{mechanism.__name__}"
    words = ("callable", target, "--inputs=[0, 1]", "--trials=1000")
    return by_words(*words, level, seed)


def by_words(*words):
    *words, level, seed = words
    rest = (f"--claim={level}", f"--seed={seed}", f"--confidence={CONFIDENCE}")
    result = invoke("audit", *words, *rest, "--json")
    if result.exit_code == 2:
        raise AuditError(result.stderr)
    return json.loads(result.stdout)["verdict"] == "violated"


WAYS = (by_pair, at_any_time, by_recording, by_file, by_command_line)


def falls(mechanism, way, folder, *, level, seeds):
    """Return how many of the audits refute the claim, and of how many."""
    fallen = made = 0
    for seed in seeds:
        try:
            fallen += way(mechanism, level, seed, folder)
            made += 1
        except AuditError:
            assert mechanism.__name__ in SPECIAL
    return fallen, made


@pytest.mark.slow
@pytest.mark.statistical
def test_a_thousand_audits_of_tight_mechanisms_accuse_as_few_as_they_say(tmp_path):
    all_fallen = all_made = 0
    for way in WAYS:
        for place, mechanism in enumerate(TIGHT):
            if way in (by_recording, by_file) and mechanism.__name__ in SPECIAL:
                continue
            seeds = range(1000 * place, 1000 * place + 25)
            fallen, made = falls(mechanism, way, tmp_path, level=1, seeds=seeds)
            limit = stats.binom.isf(1e-8, max(1, made), 1 - CONFIDENCE)
            assert fallen <= limit, (way.__name__, mechanism.__name__)
            all_fallen, all_made = all_fallen + fallen, all_made + made
    assert all_made >= 1000
    print(f"{all_fallen} of {all_made} fell")
    assert all_fallen <= stats.binom.isf(1e-6, all_made, 1 - CONFIDENCE)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_same_audits_refute_a_claim_that_is_too_low(way, tmp_path):
    fallen = [
        falls(mechanism, way, tmp_path, level=0.3, seeds=range(4))[0]
        for mechanism in TIGHT
        if mechanism.__name__ not in SPECIAL | {"vector_of_numbers"}
    ]
    assert sum(fallen) > 0.7 * 4 * len(fallen)


@pytest.mark.statistical
def test_a_few_audits_of_every_output_type_accuse_as_few_as_they_say(tmp_path):
    found = [
        falls(mechanism, way, tmp_path, level=1, seeds=(11, 12))
        for way in (by_pair, by_command_line)
        for mechanism in TIGHT
    ]
    made = sum(count for _, count in found)
    fallen = sum(count for count, _ in found)
    assert made >= 32
    assert fallen <= stats.binom.isf(1e-6, made, 1 - CONFIDENCE)
