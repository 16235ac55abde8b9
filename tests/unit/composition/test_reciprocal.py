"""Necessary conditions read off the parts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.composition.finite import Specialised
from undertow.composition.release import Release
from undertow.composition.theorems import (
    after_post_processing,
    check_adaptive_step,
    check_reciprocal,
    reciprocal_lower_bound,
)
from undertow.errors import AssumptionError, MismatchError
from undertow.privacy.divergence import exact_loss_matrix
from undertow.privacy.loss import Approx, Pure
from undertow.spaces.domain import Table
from undertow.spaces.unit import Bounded, Unbounded
from undertow.spaces.view import Identity, Select

TABLE = Table(("a", "b"), values_per_cell=1, size=2)


def test_the_whole_loses_at_least_its_worst_part():
    assert reciprocal_lower_bound([0.5, 2, 0.1]) == 2
    assert reciprocal_lower_bound([]) == 0
    assert reciprocal_lower_bound([1, math.inf]) == math.inf
    with pytest.raises(ValueError, match="got nan"):
        reciprocal_lower_bound([math.nan])


def test_releases_without_protection_are_named_with_their_pair():
    releases = [
        Release("whole", Pure(1), unit=Bounded(), view=Identity(), setting="view"),
        Release("block", Pure(0), unit=Bounded(), view=Select("a"), setting="view"),
    ]
    (found,) = check_reciprocal(releases, Bounded(), domain=TABLE)
    assert found.part == "block"
    assert found.loss.is_infinite
    assert Bounded().are_neighbours(*found.witness, TABLE)
    assert check_reciprocal(releases[:1], Bounded(), domain=TABLE) == []


def test_another_engine_can_price_the_parts():
    release = Release("r", Pure(1), unit=Unbounded(), view=Identity(), setting="view")
    found = check_reciprocal(
        [release],
        Unbounded(),
        domain=Table(),
        loss_of=lambda _: Specialised(Approx(1, 1), ((), ("a",)), ()),
    )
    assert [part.part for part in found] == ["r"]


def test_an_adaptive_step_must_hold_for_every_declared_output():
    steady = np.array([[0.6, 0.4], [0.4, 0.6]])
    jumpy = np.array([[0.9, 0.1], [0.1, 0.9]])
    bound = exact_loss_matrix(steady)
    assert check_adaptive_step({"x": steady}, ["x"], bound=bound) == []
    (found,) = check_adaptive_step({"x": steady, "y": jumpy}, ["x", "y"], bound=bound)
    assert found.part == "y"
    assert found.loss == pytest.approx(math.log(9))
    assert found.witness in {(0, 1), (1, 0)}
    with pytest.raises(MismatchError, match="got none for 'z'"):
        check_adaptive_step({"x": steady}, ["z"], bound=bound)


def test_post_processing_is_free_unless_it_reads_the_data():
    assert after_post_processing(Pure(1), reads_data=False) == Pure(1)
    with pytest.raises(AssumptionError, match="enter it as a release"):
        after_post_processing(Pure(1), reads_data=True)


def test_merging_outputs_never_raises_the_exact_loss():
    rng = np.random.default_rng(5)
    pmf = rng.dirichlet(np.ones(6), size=4)
    merged = pmf.reshape(4, 3, 2).sum(axis=2)
    assert (exact_loss_matrix(merged) <= exact_loss_matrix(pmf) + 1e-12).all()


@pytest.mark.parametrize(
    ("bound", "error"),
    [
        ([[0, math.nan], [math.nan, 0]], ValueError),
        ([[0, -1], [-1, 0]], ValueError),
        (1.0, MismatchError),
        ([[0, 1]], MismatchError),
    ],
)
def test_a_step_is_never_passed_by_a_bound_that_is_no_metric_on_it(bound, error):
    table = [[0.9, 0.1], [0.1, 0.9]]
    with pytest.raises(error, match="bound"):
        check_adaptive_step({(): table}, [()], bound=bound)
