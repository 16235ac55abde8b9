"""Files of recorded runs: copies are refused, and independent runs never are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.audit import AuditError, Claim, RecordedSubject, audit_pair
from undertow.audit.record import require_once

LAWS = ("normal", "clipped", "whole", "geometric", "heavy", "pool", "coins", "vector")
SHOWN = ("normal", "clipped", "whole", "pool", "vector")

seeds = st.integers(0, 2**32 - 1)


def drawn(law, size, rng):
    """Independent outputs of a random law of one kind."""
    match law:
        case "normal":
            return rng.normal(size=size)
        case "clipped":
            return np.clip(rng.laplace(size=size), -2, 2)
        case "whole":
            return rng.integers(int(10 ** rng.uniform(2, 6)), size=size)
        case "geometric":
            return rng.geometric(10 ** rng.uniform(-4, 0), size=size)
        case "heavy":
            return rng.zipf(1 + rng.uniform(0.1, 3), size=size)
        case "pool":
            pool = rng.normal(size=int(10 ** rng.uniform(2, 4)))
            weights = rng.gamma(10 ** rng.uniform(-0.5, 1), size=len(pool))
            return rng.choice(pool, size, p=weights / weights.sum())
        case "coins":
            return rng.random(size) < rng.uniform(0.001, 0.999)
        case _:
            return rng.integers(0, 50, (size, 3))


def exported_again(runs, how, rng):
    """Return a file in which some of the runs stand several times, in their order."""
    third = len(runs) // 3
    match how:
        case "cumulative":
            return np.concatenate([runs[:third], runs[: 2 * third], runs])
        case "overlapping":
            return np.concatenate([runs[: 2 * third], runs[third:]])
        case "appended":
            start = int(rng.integers(0, 2 * third))
            return np.concatenate([runs, runs[start : start + third]])
        case _:
            return np.concatenate([runs[third:], runs])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LAWS), st.floats(0.7, 3.6), st.booleans(), seeds)
def test_independent_runs_of_any_law_are_never_refused(law, size, in_parts, seed):
    rng = np.random.default_rng(seed)
    runs = drawn(law, int(10**size), rng)
    if in_parts and runs.ndim == 1:  # written by sessions, each of them sorted
        for part in np.array_split(runs, 7):
            part.sort()
    require_once(runs, name="file")


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SHOWN),
    st.integers(300, 3000),
    st.sampled_from(["cumulative", "overlapping", "appended", "put before"]),
    seeds,
)
def test_a_file_that_holds_a_part_of_its_runs_again_is_refused(law, size, how, seed):
    rng = np.random.default_rng(seed)
    runs = exported_again(drawn(law, size, rng), how, rng)
    with pytest.raises(
        AuditError, match=r"must hold every run once.*remove the copies"
    ):
        require_once(runs, name="file")


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(900, 3000), st.booleans(), seeds)
def test_cumulative_exports_are_refused_in_any_order(days, size, is_sorted, seed):
    rng = np.random.default_rng(seed)
    runs = rng.laplace(size=size)
    day = size // days
    file = np.concatenate([runs[: day * (k + 1)] for k in range(days)])
    file = np.sort(file) if is_sorted else rng.permutation(file)
    with pytest.raises(AuditError, match="must hold every run once"):
        require_once(file, name="file")


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(50, 140), st.booleans(), seeds)
def test_small_cumulative_exports_are_refused_by_all_their_inputs_together(
    days, day, is_sorted, seed
):
    rng = np.random.default_rng(seed)
    rows = []
    for value in (0, 1):
        runs = value + rng.laplace(size=days * day)
        file = np.concatenate([runs[: day * (k + 1)] for k in range(days)])
        rows += [(value, noisy) for noisy in file.tolist()]
    rows = sorted(rows) if is_sorted else [rows[k] for k in rng.permutation(len(rows))]
    with pytest.raises(AuditError, match="must hold every run once"):
        RecordedSubject([value for value, _ in rows], [noisy for _, noisy in rows])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(LAWS[:-1]), min_size=2, max_size=4), seeds)
def test_independent_runs_of_any_inputs_are_never_refused(laws, seed):
    rng = np.random.default_rng(seed)
    runs = [drawn(law, int(10 ** rng.uniform(0.7, 3)), rng).tolist() for law in laws]
    inputs = [value for value, of_one in enumerate(runs) for _ in of_one]
    RecordedSubject(inputs, [output for of_one in runs for output in of_one])


def test_repeated_rows_of_a_file_too_small_to_tell_accuse_nobody():
    rng = np.random.default_rng(1)
    days = [[(x, x + rng.laplace()) for x in (0, 1) for _ in range(20)] for _ in "1234"]
    rows = [row for last in range(4) for day in days[: last + 1] for row in day]
    rows = [rows[k] for k in rng.permutation(len(rows))]
    subject = RecordedSubject([value for value, _ in rows], [out for _, out in rows])
    assert subject.repeated == len(rows) - 40
    with pytest.raises(AuditError, match="must hold every run once to refute"):
        audit_pair(subject, Claim.pure(0.1), confidence=0.6)
    lattice = [round(64 * out) / 64 for _, out in rows]
    assert RecordedSubject([value for value, _ in rows], lattice).repeated == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 8), st.integers(5, 40), st.booleans(), seeds)
def test_few_runs_of_cumulative_exports_accuse_nobody(days, day, is_sorted, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for value in (0, 1):
        runs = value + rng.laplace(size=days * day)
        file = np.concatenate([runs[: day * (k + 1)] for k in range(days)])
        rows += [(value, noisy) for noisy in file.tolist()]
    rows = sorted(rows) if is_sorted else [rows[k] for k in rng.permutation(len(rows))]
    assert not accuses(rows, seed)


def accuses(rows, seed) -> bool:
    """Whether recorded runs refute a claim; a refusal to say accuses nobody."""
    try:
        subject = RecordedSubject(*map(list, zip(*rows, strict=True)))
        return audit_pair(subject, Claim.pure(1), seed=seed).violated
    except AuditError:
        return False


def test_a_short_list_of_outputs_is_told_from_copies_once_it_shows():
    rng = np.random.default_rng(2)
    outputs = rng.normal(size=8)
    law = {0: np.full(8, 1 / 8), 1: np.array([0.65, *[0.05] * 7])}
    inputs = [value for value in law for _ in range(2000)]
    drawn = [o for p in law.values() for o in rng.choice(outputs, 2000, p=p).tolist()]
    subject = RecordedSubject(inputs, drawn)
    assert not subject.perhaps_copied
    assert audit_pair(subject, Claim.pure(0.5), seed=1).violated


def test_three_days_that_hold_the_days_before_accuse_nobody():
    rng = np.random.default_rng(3)
    inputs, outputs = [], []
    days = [
        {
            value: value + np.round(rng.laplace(size=200) * 4096) / 4096
            for value in (0, 1)
        }
        for _ in range(3)
    ]
    for last in range(3):
        for day in days[: last + 1]:
            for value, noisy in day.items():
                inputs += [value] * len(noisy)
                outputs += noisy.tolist()
    with pytest.raises(AuditError, match="remove the copies"):
        RecordedSubject(inputs, outputs)
    inputs, outputs = [], []
    for day in days:
        for value, noisy in day.items():
            inputs += [value] * len(noisy)
            outputs += noisy.tolist()
    once = RecordedSubject(inputs, outputs)
    assert audit_pair(once, Claim.pure(1), seed=1).verdict == "not refuted"
