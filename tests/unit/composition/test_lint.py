"""The linter finds what cannot be true, and keeps quiet about what can."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.composition import Stage, lint
from undertow.spaces import Partition

TABLE = ut.Table(["N", "S", "E", "W"])
STREAM = ut.Stream(1000, 24)
FOUR = (ut.Pure(1),) * 4
BLOCKS = Partition.by_value(["N"], ["S"], ["E"], ["W"])


def codes(*stages: Stage) -> list[str]:
    return [finding.code for finding in lint(stages)]


def test_a_sound_design_has_no_findings():
    parallel = Stage(
        "counts", TABLE, ut.Unbounded(), ut.Pure(1), parts=FOUR, partition=BLOCKS
    )
    clipped = Stage(
        "sum",
        TABLE,
        ut.Unbounded(),
        ut.Pure(1),
        preprocessing="clip",
        sensitivity=1,
    )
    assert codes(parallel, clipped) == []


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        pytest.param(
            Stage("a", TABLE, ut.Bounded(), ut.Pure(1), parts=FOUR, partition=BLOCKS),
            "E101",
            id="parallel under bounded",
        ),
        pytest.param(
            Stage(
                "a",
                TABLE,
                ut.Unbounded(),
                ut.Pure(1),
                parts=FOUR,
                partition=Partition.data_dependent("quantile cuts"),
            ),
            "E101",
            id="blocks computed from the data",
        ),
        pytest.param(
            Stage(
                "a",
                ut.Rows(4, free_ids=True),
                ut.Unbounded(),
                ut.Pure(1),
                parts=FOUR,
                partition=Partition.by_row_position(4),
            ),
            "E102",
            id="blocks by position",
        ),
        pytest.param(
            Stage("a", TABLE, ut.Unbounded(), ut.Pure(1), preprocessing="raw sum"),
            "E103",
            id="sensitivity nobody stated",
        ),
        pytest.param(
            Stage(
                "a",
                TABLE,
                ut.Unbounded(),
                ut.Pure(1),
                preprocessing="raw sum",
                sensitivity="inf",
            ),
            "E103",
            id="infinite sensitivity",
        ),
        pytest.param(
            Stage("a", ut.Table(["N"], size=3), ut.Unbounded(), ut.Pure(1)),
            "E104",
            id="no neighbours",
        ),
        pytest.param(
            Stage(
                "a",
                TABLE,
                ut.Unbounded(),
                ut.Approx(12, 1),
                parts=(ut.Approx(1, "0.1"),) * 12,
            ),
            "E106",
            id="delta past one",
        ),
        pytest.param(Stage("a", STREAM, ut.Event(), ut.Pure(1)), "W201", id="events"),
    ],
)
def test_each_mistake_has_its_code(stage: Stage, code: str):
    assert codes(stage) == [code]


def test_a_sensitivity_of_zero_is_known_and_finite():
    stage = Stage(
        "a", TABLE, ut.Unbounded(), ut.Pure(1), preprocessing="drop", sensitivity=0
    )
    assert codes(stage) == []


@pytest.mark.parametrize(("claimed", "found"), [("11.9", ["E105"]), ("12", [])])
def test_a_claim_at_another_level_is_recomputed(claimed: str, found: list[str]):
    stage = Stage(
        "traffic",
        STREAM,
        ut.User(),
        ut.Pure(claimed),
        parts=(ut.Pure("0.5"),),
        unit=ut.Event(),
    )
    assert codes(stage) == found


def test_levels_that_nothing_connects_have_no_finite_loss():
    stage = Stage("a", TABLE, ut.Unbounded(), ut.Pure(9), unit=ut.Bounded())
    (finding,) = lint([stage])
    assert finding.code == "E105"
    assert "no finite loss" in finding.message
    assert str(finding).startswith("E105 a: ")
