"""A checkpoint belongs to one job; that of any other is refused."""

import functools
import sys

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.program import CommandSubject
from undertow.audit.runner import Checkpoint, run_chunks
from undertow.audit.subject import CallableSubject, subject_identity
from undertow.errors import AuditError


def flip(value, rng):
    return value if rng.random() < 0.73 else 1 - value


def program(code, **options):
    return CommandSubject([sys.executable, "-c", code], [0, 1], **options)


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    path = tmp_path / "state.json"
    echo = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"

    def run(code):
        subject = program(code, seeded=True)
        return audit_pair(subject, Claim.pure(1), seed=1, trials=200, checkpoint=path)

    # Name, inputs, event and counts are the same; the words of the command are not.
    assert run(echo).violated
    with pytest.raises(AuditError, match="must belong to this job"):
        run(echo + "  # another program")


def other(value, rng):
    return value if rng.random() < 0.5 else 1 - value


def test_a_checkpoint_of_other_inputs_or_code_is_refused(tmp_path):
    path = tmp_path / "state.json"

    def run(function, inputs, **options):
        subject = CallableSubject(function, inputs, name="same", **options)
        return audit_local(subject, Claim.pure(2), trials=500, seed=1, checkpoint=path)

    first = run(flip, [0, 1])
    assert run(flip, [0, 1]).to_dict() == first.to_dict()
    for arguments, options in (
        ((other, [0, 1]), {}),
        ((flip, [1, 0]), {}),
        ((flip, [0, 1]), {"version": "2"}),
    ):
        with pytest.raises(AuditError, match="must belong to this job"):
            run(*arguments, **options)


def test_long_arrays_and_fixed_arguments_are_told_apart():
    first, *wide = np.zeros((3, 5000))
    first[0], wide[1][2500] = 1.0, 1.0  # the second is elided in its repr
    one, two = (
        subject_identity(CallableSubject(flip, [first, given])) for given in wide
    )
    assert one != two

    def scaled(value, rng, scale):
        return value + scale * rng.laplace()

    parts = [
        subject_identity(CallableSubject(functools.partial(scaled, scale=s), [0, 1]))
        for s in (1, 2, 1)
    ]
    assert parts[0] == parts[2] != parts[1]


def test_a_checkpoint_in_no_folder_is_refused_before_the_work(tmp_path):
    def work(seed, index):
        raise AssertionError("must not run")

    for path in (tmp_path, tmp_path / "none" / "state.json"):
        with pytest.raises(AuditError, match="checkpoint must be a file in a folder"):
            run_chunks(work, chunks=1, seed=1, fingerprint="x", checkpoint=path)


def test_a_checkpoint_of_another_score_is_refused(tmp_path):
    subject = CallableSubject(lambda value, rng: value + rng.laplace(), [0.0, 1.0])
    options = {"trials": 2000, "seed": 1, "checkpoint": tmp_path / "kept.json"}
    audit_pair(subject, Claim.pure(2), score=lambda y: y, **options)
    with pytest.raises(AuditError, match="must belong to this job"):
        audit_pair(subject, Claim.pure(2), score=lambda y: -y, **options)


def test_a_checkpoint_that_cannot_be_written_is_one_sentence(tmp_path):
    section = Checkpoint(tmp_path / "kept.json").section("counts", "job")
    tmp_path.rename(tmp_path.with_name("moved"))
    with pytest.raises(AuditError, match=r"must be a file that can be written, got .*"):
        section.save({})
