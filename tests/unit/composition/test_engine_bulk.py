"""Long lists in arrays: the same answers as one by one."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.composition import _claim_table as engine_encode
from undertow.composition._charge import ColumnCharges, Prices, charges_of
from undertow.composition._claim_table import (
    ClaimTable,
    column_sums,
    encode,
    read_claims,
)
from undertow.composition.engine import (
    compose_coded,
    compose_columns,
    merge_columns,
    open_tally,
)
from undertow.errors import AssumptionError
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.change import Column, Row, totals
from undertow.spaces.domain import Stream
from undertow.spaces.influence import change_family
from undertow.spaces.metric import Scaled
from undertow.spaces.unit import Event, FreeLunch, User, WEvent
from undertow.spaces.view import At, Window

DAY = Stream(100, 24)
HOURS = [Column(At(t), Event(), "view") for t in range(24)]


def table_of(columns, losses, seed=3, size=400):
    rng = np.random.default_rng(seed)
    return read_claims(
        columns,
        losses,
        column_codes=rng.integers(0, len(columns), size),
        loss_codes=rng.integers(0, len(losses), size),
    )


# ---------------------------------------------------------------- encoding


def test_equal_objects_far_apart_have_one_code():
    items = [Pure(f"0.{k % 7 + 1}") for k in range(5000)]
    different, codes = encode(items)
    assert different == items[:7]
    assert codes.tolist() == [k % 7 for k in range(5000)]


def test_codes_follow_the_order_of_appearance():
    rng = np.random.default_rng(1)
    objects = [f"item {k}" for k in range(900)]
    items = [objects[k] for k in rng.integers(0, 900, 20_000)]
    different, codes = encode(items)
    assert different == list(dict.fromkeys(items))
    assert [different[code] for code in codes] == items


@pytest.mark.parametrize("places", [1, 4, 64])
def test_objects_that_share_a_place_are_told_apart(places, monkeypatch):
    monkeypatch.setattr(engine_encode, "_PLACES", places)
    items = [Pure(k % 50 + 1) for k in range(2000)]
    shuffled = [items[k] for k in np.random.default_rng(2).integers(0, 2000, 4000)]
    different, codes = encode(shuffled)
    assert len(different) == 50
    assert [different[code] for code in codes] == shuffled


class Fresh:
    """A sequence that builds its items when they are asked for."""

    def __len__(self):
        return 3000

    def __getitem__(self, at):
        if at >= 3000:
            raise IndexError
        return Pure(at % 11 + 1)


def test_temporary_objects_do_not_lend_their_address_to_others():
    different, codes = encode(Fresh())
    assert len(different) == 11
    assert codes.tolist() == [at % 11 for at in range(3000)]


def test_identities_that_are_no_addresses_are_asked_for(monkeypatch):
    def elsewhere(held, dtype):
        return np.zeros(len(held), dtype=dtype)

    monkeypatch.setattr(np, "frombuffer", elsewhere)
    items = [Pure(k % 5 + 1) for k in range(1000)]
    assert encode(items)[1].tolist() == [k % 5 for k in range(1000)]


# ---------------------------------------------------------------- sums


@given(
    st.lists(
        st.one_of(
            st.fractions(0, 10**30), st.just(Fraction(1, 3**90)), st.just(math.inf)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_column_sums_are_exact_however_long(rates):
    table = table_of(HOURS[:5], [Pure(k) for k in range(1, len(rates) + 1)])
    rates = rates[: len(table.losses)]
    (sums,) = column_sums(table, [rates])
    for column in range(len(table.columns)):
        used = [rates[at] for at in table.loss_of[table.column_of == column]]
        finite = sum((r for r in used if r != math.inf), Fraction(0))
        assert Fraction(int(sums.numerators[column]), sums.denominator) == finite
        assert sums.infinite[column] == (math.inf in used)


def test_several_lists_of_rates_share_a_denominator():
    table = table_of(HOURS[:3], [Pure(1), Pure(2)])
    thirds, halves = column_sums(
        table, [[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2), 0]]
    )
    assert thirds.denominator == halves.denominator == 6


# ---------------------------------------------------------------- charges

LOSSES = {
    "pure": [Pure("0.1"), Pure("2/7"), Pure(3), Pure("1e-30")],
    "long": [Pure(Fraction(10**40 + k, 3 + k)) for k in range(4)],
    "unrelated": [Pure(Fraction(1, 2**61 + 2 * k + 1)) for k in range(90)],
    "infinite": [Pure(1), Pure(math.inf)],
    "zcdp": [ZCDP("0.1"), Pure("0.5"), GDP("0.3")],
    "gdp": [GDP("0.1"), GDP(2)],
    "gdp and pure": [GDP("0.1"), Pure(1)],
    "approx": [Approx("0.1", "1e-6"), Approx(1, 0), Pure("0.2")],
    "many approx": [Approx(Fraction(k, 997), "1e-9") for k in range(1, 90)],
    "raw": [Approx(math.inf, "0.1"), Pure(1)],
}
COLUMNS = {
    "hours": HOURS,
    "windows": [Column(Window(t, 4), Event(), "view") for t in range(20)],
    "mixed": [
        Column(At(t), (Event(), User(), WEvent(2))[t % 3], ("view", "common")[t % 2])
        for t in range(24)
    ],
    "lost": [Column(At(t), Scaled(Event(), math.inf), "view") for t in range(3)],
}


NOTIONS = dict.fromkeys(LOSSES, "pure") | {
    "zcdp": "zcdp",
    "gdp": "gdp",
    "gdp and pure": "gdp",
    "approx": "approx",
    "many approx": "approx",
    "raw": "approx",
}
CASES = [
    (losses, columns)
    for losses in LOSSES
    for columns in COLUMNS
    # A scaled unit has no neighbour chains, which approximate losses need.
    if not (NOTIONS[losses] == "approx" and columns == "lost")
]


@pytest.mark.parametrize("target", [User(), WEvent(3), Event(), FreeLunch()])
@pytest.mark.parametrize(("losses", "columns"), CASES)
def test_charges_in_bulk_cost_what_they_cost_one_by_one(losses, columns, target):
    table = table_of(COLUMNS[columns], LOSSES[losses])
    tally = open_tally(table, notion=NOTIONS[losses], delta=None)
    assert isinstance(tally.charges, ColumnCharges)
    family = change_family(DAY, target, columns=table.columns)
    bulk = family.pareto(tally.charges, coordinates=tally.coordinates)
    spelled = family.pareto(tuple(tally.charges), coordinates=tally.coordinates)
    assert bulk == spelled


def test_costs_without_a_common_denominator_are_rounded_up_alike():
    table = table_of(COLUMNS["windows"], LOSSES["many approx"], size=2000)
    tally = open_tally(table, notion="approx", delta=None)
    family = change_family(DAY, WEvent(4), columns=table.columns)
    bulk = family.pareto(tally.charges, coordinates=2)
    assert bulk == family.pareto(tuple(tally.charges), coordinates=2)
    assert not any(point.tight for point in bulk)
    assert family.tight


def test_bulk_charges_are_the_charges_of_the_kinds():
    table = table_of(HOURS, LOSSES["pure"])
    tally = open_tally(table, notion="pure", delta=None)
    prices = Prices(table.losses, "pure", None)
    expected = charges_of(table.kinds, table.counts, prices)
    assert len(tally.charges) == len(expected) == 24
    assert [c.columns for c in tally.charges] == [c.columns for c in expected]
    assert tally.charges[3].price((2,)) == expected[3].price((2,))
    assert len(tally.charges[1:4]) == 3


def test_fractional_distances_are_refused_for_approximate_losses():
    half = [Column(At(t), Scaled(Event(), "0.5"), "view") for t in range(3)]
    with pytest.raises(AssumptionError, match="generated by neighbours"):
        compose_columns(
            DAY, User(), columns=half, losses=[Approx(1, "1e-6")] * 3, notion="approx"
        )
    prices = Prices([Approx(1, "1e-6")], "approx", None)
    codes = np.arange(3)
    table = ClaimTable(tuple(half), prices.losses, codes, codes * 0)
    family = change_family(DAY, User(), columns=half)
    with pytest.raises(AssumptionError, match="whole distances"):
        family.pareto(ColumnCharges(table, prices), coordinates=2)


def test_results_in_bulk_survive_pickling():
    result = compose_columns(
        DAY, User(), columns=HOURS, losses=[Pure("0.1")] * 24, delta=None
    )
    again = pickle.loads(pickle.dumps(result))
    assert again.loss == result.loss
    assert again.contributions().tolist() == result.contributions().tolist()


def test_codes_changed_afterwards_change_nothing():
    codes = np.zeros(10, dtype=np.int64)
    result = compose_coded(
        DAY,
        User(),
        columns=HOURS,
        losses=[Pure(1)],
        column_codes=codes,
        loss_codes=np.zeros(10, dtype=np.int64),
    )
    codes[:] = 5
    assert result.table.kinds.claims(0) == [(0, 0)]
    assert result.table.columns == (HOURS[0],)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int16, np.int64])
def test_codes_may_be_integers_of_any_width(dtype):
    codes = np.arange(24, dtype=dtype)
    table = read_claims(HOURS, LOSSES["pure"], column_codes=codes, loss_codes=codes % 4)
    assert table.column_of.tolist() == list(range(24))
    assert table.kinds.claims(5) == [(5, 1)]


def test_no_codes_are_no_releases():
    table = read_claims(HOURS, [Pure(1)], column_codes=[], loss_codes=[])
    assert (table.columns, table.losses, table.releases) == ((), (), 0)


def test_releases_changed_afterwards_change_nothing():
    releases = np.array([0, 0, 1])
    columns = [HOURS[0], Column(At(0), User(), "view"), HOURS[1]]
    table = read_claims(
        columns,
        [Pure(1)],
        column_codes=[0, 1, 2],
        loss_codes=[0, 0, 0],
        release_codes=releases,
    )
    releases[:] = 0
    assert table.kind_of.tolist() == [1, 0]


# ---------------------------------------------------------------- merging


@pytest.mark.parametrize("losses", ["pure", "zcdp", "approx", "gdp and pure"])
def test_columns_that_move_equally_far_may_be_added_first(losses):
    rng = np.random.default_rng(4)
    columns = [*HOURS, *(Column(At(t), User(), "view") for t in range(24))]
    result = compose_coded(
        DAY,
        WEvent(3),
        columns=columns,
        losses=LOSSES[losses],
        column_codes=rng.permutation(np.arange(480) % 48),
        loss_codes=rng.integers(0, len(LOSSES[losses]), 480),
    )
    groups = np.repeat([0, 1], 24)
    merged = merge_columns(result, groups)
    assert merged.table.columns == (columns[0], columns[24])
    for influences in ((1, 1), (2, 3)):
        wide = dict(enumerate(np.repeat(influences, 24).tolist()))
        narrow = dict(enumerate(influences))
        assert priced(merged, narrow) == priced(result, wide)


def priced(result, influences):
    row = Row(result.row.change, influences)
    return totals(row.price(result.tally.charges), result.tally.coordinates)


def test_releases_with_several_claims_are_not_merged():
    pair = [Column(At(0), Event(), "view"), Column(At(0), User(), "view")]
    result = compose_columns(
        DAY, User(), columns=pair, losses=[Pure(1), Pure(2)], releases=[0, 0]
    )
    assert merge_columns(result, np.zeros(2, np.int64)) is result
