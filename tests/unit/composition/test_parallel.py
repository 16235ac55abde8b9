"""Releases on parts of the data."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.composition.engine import compose_columns
from undertow.composition.finite import ApproxProfile, at_distance, specialise
from undertow.composition.release import Release
from undertow.composition.theorems import (
    bounded_parallel,
    bounded_profile,
    heaviest_move,
    move_cost_matrix,
    overlap_loss,
    parallel_max,
    parallel_profile,
    sequential,
    top_m_loss,
)
from undertow.errors import (
    CompositionError,
    IncompatiblePartitionError,
    InfiniteLossError,
    NotionMismatchError,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.change import Column
from undertow.spaces.domain import Table
from undertow.spaces.partition import Partition, certificate_for
from undertow.spaces.unit import Bounded, Edit, Event, Unbounded
from undertow.spaces.view import Select


@dataclass(frozen=True)
class Certificate:
    touched: float | None
    nonexpansive: bool | None
    source: str = "test"


COMPATIBLE = Certificate(1, True)
PURE = [Pure(x) for x in ("0.2", "0.5", "0.1")]
budgets = st.fractions(0, 3, max_denominator=20)


def test_the_largest_loss_covers_compatible_blocks_in_every_notion():
    assert parallel_max(PURE, certificate=COMPATIBLE) == Pure("0.5")
    assert parallel_max([ZCDP(1), ZCDP(2)], certificate=COMPATIBLE) == ZCDP(2)
    assert parallel_max([GDP(1), GDP(2)], certificate=COMPATIBLE) == GDP(2)
    assert parallel_max([], certificate=COMPATIBLE) == Pure(0)


def test_approximate_blocks_keep_their_pairs():
    pairs = [Approx(1, "1e-6"), Approx("0.5", "1e-5")]
    assert parallel_max(pairs, certificate=COMPATIBLE) == Approx(1, "1e-5")
    assert parallel_profile(pairs, certificate=COMPATIBLE) == ApproxProfile.of(pairs)


def test_a_profile_is_never_empty_because_the_losses_are_of_another_notion():
    for losses in ([GDP(1)], [Pure(1), Pure(2)]):
        with pytest.raises(NotionMismatchError, match="must be of Approx"):
            parallel_profile(losses, certificate=COMPATIBLE)
        with pytest.raises(NotionMismatchError, match="must be of Approx"):
            bounded_profile(losses)
    for moves in (None, [(0, 1)]):
        with pytest.raises(NotionMismatchError, match="of one notion"):
            bounded_profile([Approx(2, "0.5"), Approx(1, "0.6"), GDP("0.1")], moves)


@pytest.mark.parametrize(
    ("certificate", "message"),
    [
        (None, "got None"),
        (Certificate(2, True), "got 2 blocks"),
        (Certificate(None, True), "got None blocks"),
        (Certificate(math.inf, False), "got inf blocks"),
        (Certificate(1, False), "nonexpansive=False"),
        (Certificate(1, None), "nonexpansive=None"),
    ],
)
def test_the_maximum_is_refused_without_what_it_needs(certificate, message):
    with pytest.raises(IncompatiblePartitionError, match=message):
        parallel_max(PURE, certificate=certificate)
    with pytest.raises(IncompatiblePartitionError):
        parallel_profile([Approx(1, 0)], certificate=certificate)


def test_built_in_certificates_open_and_close_the_maximum():
    table, by_value = Table(("N", "S", "W")), Partition.by_value()
    unbounded = certificate_for(Unbounded(), by_value, domain=table)
    assert parallel_max(PURE, certificate=unbounded) == Pure("0.5")
    bounded = certificate_for(Bounded(), by_value, domain=table)
    for setting in ("view", "common"):
        with pytest.raises(IncompatiblePartitionError, match="got 2 blocks"):
            parallel_max(PURE, certificate=bounded, setting=setting)


def test_the_common_setting_does_not_need_non_expansion():
    stretched = Certificate(1, False)
    bound = parallel_max(PURE, certificate=stretched, setting="common")
    assert bound == Pure("0.5")
    with pytest.raises(IncompatiblePartitionError):
        parallel_max(PURE, certificate=Certificate(2, True), setting="common")
    with pytest.raises(ValueError, match="setting must be one of"):
        parallel_max(PURE, certificate=COMPATIBLE, setting="both")


@given(st.lists(budgets, max_size=6), st.integers(0, 7))
def test_top_m_is_the_largest_sum_of_m_losses(values, m):
    losses = [Pure(value) for value in values]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(values, size) for size in range(min(m, len(values)) + 1)
    )
    assert top_m_loss(losses, m) == Pure(max(map(sum, subsets)))
    assert top_m_loss(losses, 0) == Pure(0)
    assert top_m_loss(losses, len(losses)) == sequential(losses)


def test_top_m_in_the_other_notions():
    assert top_m_loss([GDP(3), GDP(1), GDP(4)], 2) == GDP(5)
    assert top_m_loss([ZCDP("0.1"), ZCDP("0.3")], 1) == ZCDP("0.3")
    pairs = [Approx(1, "1e-6"), Approx("0.5", "1e-5"), Approx("0.3", "0.1")]
    assert top_m_loss(pairs, 2) == Approx("1.5", "0.10001")
    assert top_m_loss([Approx(1, "0.7")] * 2, 2).no_guarantee
    assert top_m_loss([GDP(3)], 0) == GDP(0)


def test_top_m_refuses_what_is_no_count_or_no_one_notion():
    with pytest.raises(ValueError, match="m must be a whole number"):
        top_m_loss(PURE, -1)
    with pytest.raises(NotionMismatchError):
        top_m_loss([Pure(1), GDP(1)], 1)


@pytest.mark.parametrize(
    ("target", "unit", "setting", "expected"),
    [
        ("unbounded", "unbounded", "view", "1.1"),
        ("unbounded", "bounded", "common", "1.1"),
        ("unbounded", "edit", "view", "1.1"),
        ("bounded", "bounded", "common", "1.6"),
        ("bounded", "edit", "view", "1.6"),
        ("bounded", "unbounded", "view", "2.2"),
        ("bounded", "unbounded", "common", "2.2"),
        (Edit(), Unbounded(), "view", "2.2"),
        (Edit(), Edit(), "common", "1.6"),
    ],
)
def test_overlap_in_every_case(target, unit, setting, expected):
    losses = [Pure(x) for x in ("0.6", "0.5", "0.3", "0.2")]
    bound = overlap_loss(losses, 2, target=target, unit=unit, setting=setting)
    assert bound == Pure(expected)


def test_twice_the_top_m_is_distance_two_in_each_notion():
    kwargs = {"target": "bounded", "unit": "unbounded", "setting": "view"}
    assert overlap_loss([ZCDP("0.1")] * 5, 2, **kwargs) == ZCDP("0.8")
    assert overlap_loss([GDP(1)] * 5, 1, **kwargs) == GDP(2)
    doubled = overlap_loss([Approx(1, "1e-5")] * 5, 2, **kwargs)
    assert doubled == sequential([at_distance(Approx(1, "1e-5"), 2)] * 2)


def test_overlap_refuses_bounded_cohorts_and_other_granularities():
    with pytest.raises(InfiniteLossError, match="setting='view'") as caught:
        overlap_loss(PURE, 1, target="bounded", unit="bounded", setting="view")
    assert caught.value.witness == (("S", "S", "S"), ("S", "S", "W"))
    with pytest.raises(CompositionError, match="got event and bounded"):
        overlap_loss(PURE, 1, target=Event(), unit=Bounded(), setting="common")


@pytest.mark.parametrize("target", [Bounded(), Edit()], ids=["bounded", "edit"])
def test_edit_units_match_the_engine_on_enumerated_cohorts(target):
    cells, losses = tuple("abc"), [Pure(x) for x in ("0.6", "0.5", "0.3")]
    table = Table(cells, multi=True, max_cells=1, values_per_cell=2, max_size=2)
    releases = [
        Release(cell, loss, unit=Edit(), view=Select(cell), setting="view")
        for cell, loss in zip(cells, losses, strict=True)
    ]
    bound = overlap_loss(losses, 1, target=target, unit=Edit(), setting="view")
    assert specialise(releases, target, domain=table).loss == bound == Pure("1.1")


@given(st.lists(budgets, min_size=1, max_size=6))
def test_bounded_blocks_cost_the_heaviest_entry_of_the_move_matrix(values):
    losses = [Pure(value) for value in values]
    costs = move_cost_matrix(losses)
    largest = max(cost.exact_parameters() for row in costs for cost in row)
    assert bounded_parallel(losses).exact_parameters() == largest
    i, j = heaviest_move(losses)
    assert costs[i][j].exact_parameters() == largest
    everything = list(itertools.combinations(range(len(values)), 2))
    assert bounded_parallel(losses, everything) == bounded_parallel(losses)


def test_a_single_block_costs_its_own_loss_and_none_costs_nothing():
    assert bounded_parallel([Pure("0.7")]) == Pure("0.7")
    assert bounded_parallel([]) == Pure(0)
    assert heaviest_move([Pure("0.7")]) == (0, 0)
    with pytest.raises(ValueError, match="at least one block"):
        heaviest_move([])


def test_only_allowed_moves_are_paid():
    losses = [Pure(x) for x in ("0.5", "1.0", "0.3", "0.8")]
    assert bounded_parallel(losses, [(0, 2)]) == Pure("1.0")  # inside block 1
    assert bounded_parallel(losses, [(0, 2), (3, 2)]) == Pure("1.1")
    assert heaviest_move(losses, [(3, 2)]) == (2, 3)
    assert bounded_parallel(losses, []) == Pure("1.0")
    with pytest.raises(ValueError, match=r"blocks 0\.\.3, got \(1, 4\)"):
        bounded_parallel(losses, [(1, 4)])


def test_unbounded_units_pay_twice_the_heaviest_block():
    losses = [Pure(1), Pure("0.1"), Pure("0.1")]
    for setting in ("view", "common"):
        bound = bounded_parallel(losses, unit="unbounded", setting=setting)
        assert bound == Pure(2)
    assert bounded_parallel([GDP(1)] * 2, unit="unbounded") == GDP(2)


def test_bounded_blocks_in_the_view_setting_are_refused():
    with pytest.raises(InfiniteLossError):
        bounded_parallel(PURE, setting="view")
    with pytest.raises(InfiniteLossError):
        bounded_profile([Approx(1, 0)], setting="view")
    with pytest.raises(ValueError, match="unit must be one of"):
        bounded_parallel(PURE, unit="edit")


pairs = st.builds(
    Approx, budgets, st.fractions(0, Fraction(1, 10), max_denominator=100)
)


@given(st.lists(pairs, max_size=7))
@pytest.mark.slow
def test_the_bounded_profile_is_the_frontier_of_all_moves(losses):
    moves = [cost for row in move_cost_matrix(losses) for cost in row]
    profile = bounded_profile(losses)
    assert profile == ApproxProfile.of(moves)
    if losses:
        assert profile.as_pair() == bounded_parallel(losses)
    everything = list(itertools.combinations(range(len(losses)), 2))
    assert bounded_profile(losses, everything) == profile


@pytest.mark.parametrize("setting", ["view", "common"])
def test_blocks_computed_from_the_data_are_refused_in_both_settings(setting):
    cut = Partition.data_dependent("quantile cuts")
    certificate = certificate_for(Unbounded(), cut, domain=Table(("a", "b")))
    with pytest.raises(IncompatiblePartitionError, match="at most one block"):
        parallel_max([Pure(1), Pure(2)], certificate=certificate, setting=setting)


UNITS = {"unbounded": Unbounded(), "bounded": Bounded(), "edit": Edit()}


def engine_result(losses, *, target, unit, setting, most_cells=None):
    """Return what the engine says of one release per cell of a table."""
    cells = range(len(losses))
    table = Table(cells)
    if most_cells is not None:
        table = Table(cells, multi=True, max_cells=most_cells)
    return compose_columns(
        table,
        UNITS[target],
        columns=[Column(Select(cell), UNITS[unit], setting) for cell in cells],
        losses=losses,
        notion=losses[0].notion,
    )


any_notion = st.one_of(
    *(
        st.lists(st.builds(notion, budgets), min_size=1, max_size=6)
        for notion in (Pure, ZCDP, GDP)
    ),
    st.lists(pairs, min_size=1, max_size=6),
)


@given(any_notion, st.integers(1, 7), st.sampled_from(["view", "common"]))
def test_the_closed_forms_are_what_the_engine_finds_on_tables(losses, m, setting):
    blocks = engine_result(
        losses, target="unbounded", unit="unbounded", setting=setting
    )
    assert parallel_max(losses, certificate=COMPATIBLE) == blocks.loss
    moves = engine_result(losses, target="bounded", unit="bounded", setting="common")
    assert bounded_parallel(losses) == moves.loss
    twice = engine_result(losses, target="bounded", unit="unbounded", setting=setting)
    assert bounded_parallel(losses, unit="unbounded", setting=setting) == twice.loss
    if isinstance(losses[0], Approx):
        front = ApproxProfile.of(loss for loss, _ in moves.front)
        assert bounded_profile(losses) == front
    for target, unit in itertools.product(UNITS, repeat=2):
        cohorts = engine_result(
            losses, target=target, unit=unit, setting=setting, most_cells=m
        )
        if unit == "bounded" and setting == "view":
            assert cohorts.loss.is_infinite
            continue
        bound = overlap_loss(losses, m, target=target, unit=unit, setting=setting)
        assert bound == cohorts.loss
