from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.composition._charge import claim_cost
from undertow.composition._claim_table import encode, read_claims
from undertow.composition.engine import (
    compose_coded,
    compose_columns,
    loss_at_distance,
    price_row,
)
from undertow.errors import AssumptionError, MismatchError, NotionMismatchError
from undertow.privacy.conversion import gdp_to_approx, pure_to_gdp, zcdp_to_approx
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.change import Change, Column, Row
from undertow.spaces.domain import Stream, Table
from undertow.spaces.metric import AbsoluteDifference, DiscreteMetric, Scaled
from undertow.spaces.unit import (
    Bounded,
    Event,
    FreeLunch,
    Group,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import At, Identity, Select

CITY = Table(("N", "S", "E", "W"))
DAY = Stream(1000, 24)


def cell(name, unit=None, setting="common"):
    return Column(Select(name), unit or Bounded(), setting)


def composed(columns, losses, target=None, **options):
    return compose_columns(
        CITY, target or Bounded(), columns=columns, losses=losses, **options
    )


# ---------------------------------------------------------------- sums


def test_equal_columns_are_added_exactly():
    result = composed([cell("N")] * 30, [Pure("0.1")] * 30)
    assert result.loss == Pure(3)
    assert len(result.table.kinds) == 1
    assert result.table.releases == 30


def test_an_empty_plan_costs_nothing():
    result = composed([], [])
    assert result.loss == Pure(0)
    assert result.contributions().tolist() == []


def test_contributions_are_those_of_the_worst_change():
    losses = [Pure("0.5"), Pure("1"), Pure("0.3"), Pure("0.8"), Pure("0.2")]
    columns = [cell(name) for name in ("N", "S", "E", "W", "S")]
    result = composed(columns, losses)
    assert result.loss == Pure(2)
    assert result.contributions().tolist() == [0.0, 1.0, 0.0, 0.8, 0.2]
    assert result.contribution(4) == (Fraction(1, 5),)
    assert [result.influence(k) for k in range(5)] == [0, 1, 0, 1, 1]
    assert sum(result.contribution(k)[0] for k in range(5)) == 2


def test_infinite_budgets_stay_infinite():
    result = composed([cell("N"), cell("S")], [Pure(math.inf), Pure(1)])
    assert result.loss.is_infinite
    free = composed([cell("N", DiscreteMetric())], [Pure(0)])
    assert free.loss == Pure(0)


def test_budgets_too_long_for_a_machine_word_are_still_exact():
    tiny = Fraction(1, 10**30)
    losses = [Pure(Fraction(k, 10**30)) for k in range(1, 40)]
    result = composed([cell("N")] * 39, losses)
    assert result.loss == Pure(780 * tiny)


# ---------------------------------------------------------------- claims


def test_a_release_pays_its_cheapest_claim_per_class():
    columns = [
        Column(Select("N", statistic="count"), Unbounded(), "common"),
        Column(Select("N", statistic="count"), Bounded(), "common"),
    ]
    result = composed(columns, [Pure(1), Pure("0.7")], releases=[0, 0])
    assert result.loss == Pure("0.7")
    assert result.influence(0) == 1
    add = composed(columns, [Pure(1), Pure("0.7")], Unbounded(), releases=[0, 0])
    assert add.loss == Pure("0.7")


def test_alike_claims_are_merged_before_they_are_priced():
    columns = [cell("N", Unbounded()), cell("N", Bounded())] * 1000
    losses = [Pure("0.1")] * 2000
    releases = [k // 2 for k in range(2000)]
    result = composed(columns, losses, releases=releases)
    assert result.loss == Pure(100)
    assert len(result.tally.charges) == 1


def test_a_claim_given_twice_counts_once():
    result = composed([cell("N")] * 2, [Pure(1)] * 2, releases=[0, 0])
    assert result.loss == Pure(1)


def test_approximate_claims_are_never_mixed():
    columns = [cell("N", Unbounded()), cell("N", Bounded())]
    losses = [Approx("0.1", "1e-3"), Approx("0.3", "1e-9")]
    result = composed(columns, losses, releases=[0, 0])
    # Twice (0.1, 1e-3) costs epsilon 0.2, less than 0.3: that claim is taken whole.
    assert result.loss.epsilon == pytest.approx(0.2)
    assert result.loss.delta > 2e-3
    assert result.contribution(0)[0] == Fraction(1, 5)


def test_claims_of_one_release_must_share_their_view():
    with pytest.raises(MismatchError, match="one view"):
        composed([cell("N"), cell("S")], [Pure(1)] * 2, releases=[0, 0])


def test_several_claims_at_a_distance_rest_on_one_choice():
    columns = [cell("N", FreeLunch()), cell("N", Bounded())]
    losses = [Pure(1), Pure("0.6")]
    two = compose_columns(
        CITY, Group(Bounded(), 2), columns=columns, losses=losses, releases=[0, 0]
    )
    assert two.loss == Pure(1)
    assert not two.tight


def test_a_claim_in_a_notion_that_does_not_fit_is_left_aside():
    columns = [cell("N"), cell("N", Unbounded())]
    mixed = composed(columns, [Pure(1), GDP("0.1")], releases=[0, 0])
    assert mixed.loss == Pure(1)
    gauss = composed(columns, [Pure(1), GDP("0.1")], releases=[0, 0], notion="gdp")
    assert gauss.loss.mu == pytest.approx(0.2)


# ---------------------------------------------------------------- notions


@pytest.mark.parametrize(
    ("losses", "notion"),
    [
        ([Pure(1), Pure(1)], "pure"),
        ([Pure(1), Approx(1, 0)], "pure"),
        ([Pure(1), GDP(1)], "gdp"),
        ([Pure(1), ZCDP(1)], "zcdp"),
        ([GDP(1), ZCDP(1)], "zcdp"),
        ([Pure(1), Approx(1, "1e-6")], "approx"),
    ],
)
def test_the_notion_of_a_mixture(losses, notion):
    assert composed([cell("N"), cell("S")], losses).notion == notion


def test_pure_losses_are_converted_at_their_distance():
    columns = [Column(Identity(), Unbounded(), "view")] * 2
    result = composed(columns, [Pure("0.5"), GDP(1)])
    converted = pure_to_gdp(Pure(1)).exact_parameters()[0]
    assert result.loss == GDP.from_square(converted + 4)
    zcdp = composed(columns, [Pure("0.5"), ZCDP(1)])
    assert zcdp.loss == ZCDP(Fraction(1, 2) + 4)


def test_gaussian_losses_meet_approximate_ones_only_with_a_delta():
    columns = [cell("N"), cell("N")]
    with pytest.raises(NotionMismatchError, match="delta must be given"):
        composed(columns, [Approx(1, "1e-6"), GDP(1)])
    joined = composed(columns, [Approx(1, "1e-6"), GDP(1)], delta="1e-5")
    assert joined.loss == Approx(1, "1e-6") + gdp_to_approx(GDP(1), delta="1e-5")
    assert len(joined.contribution(1)) == 3


def test_the_delta_is_spent_once_however_many_gaussian_releases():
    columns = [cell("N")] * 5
    losses = [Approx(1, "1e-6"), *[GDP(1)] * 4]
    joined = composed(columns, losses, delta="1e-5")
    assert joined.loss == Approx(1, "1e-6") + gdp_to_approx(GDP(2), delta="1e-5")
    mixed = composed(columns, [Approx(1, "1e-6"), ZCDP(1), *[GDP(1)] * 3], delta="1e-5")
    expected = Approx(1, "1e-6") + zcdp_to_approx(ZCDP("2.5"), delta="1e-5")
    assert mixed.loss == expected


def test_an_unprotected_gaussian_release_promises_nothing():
    columns = [cell("N"), cell("S", Bounded(), "view")]
    joined = composed(columns, [Approx(1, "1e-6"), GDP(0)], delta="1e-5")
    assert joined.loss == Approx(math.inf, 1)


def test_a_release_that_cannot_be_stated_in_the_notion_is_refused():
    with pytest.raises(NotionMismatchError, match="stated in pure"):
        composed([cell("N")], [GDP(1)], notion="pure")
    with pytest.raises(ValueError, match="notion must be one of"):
        composed([cell("N")], [GDP(1)], notion="renyi")


def test_delta_needs_whole_steps():
    column = Column(Select("N", statistic="count"), AbsoluteDifference(), "view")
    with pytest.raises(AssumptionError, match="generated by neighbours"):
        composed([column], [Approx(1, "1e-6")])
    halves = Column(Select("N"), Scaled(Bounded(), "0.5"), "common")
    with pytest.raises(AssumptionError, match="generated by neighbours"):
        composed([halves], [Approx(1, "1e-6")])
    with pytest.raises(AssumptionError, match="whole distances"):
        claim_cost(Approx(1, "1e-6"), Fraction(1, 2), notion="approx")
    assert composed([cell("N", DiscreteMetric())], [Approx(1, "1e-6")]).loss == Approx(
        1, "1e-6"
    )


def test_a_zero_budget_at_an_infinite_distance_is_infinite():
    assert composed([cell("N", Bounded(), "view")], [ZCDP(0)]).loss.is_infinite
    assert composed([cell("N", Bounded(), "view")], [GDP(0)]).loss.is_infinite
    assert composed(
        [cell("N", Bounded(), "view")], [Approx(0, "1e-9")]
    ).loss.is_infinite


# ---------------------------------------------------------------- codes


def test_codes_and_lists_give_the_same_result():
    rng = np.random.default_rng(5)
    columns = [Column(At(t), Event(), "view") for t in range(24)]
    losses = [Pure(f"0.{k}") for k in range(1, 10)]
    at, paid = rng.integers(0, 24, 500), rng.integers(0, 9, 500)
    coded = compose_coded(
        DAY, WEvent(3), columns=columns, losses=losses, column_codes=at, loss_codes=paid
    )
    spelled = compose_columns(
        DAY,
        WEvent(3),
        columns=[columns[k] for k in at],
        losses=[losses[k] for k in paid],
    )
    assert coded.loss == spelled.loss
    assert coded.contributions().tolist() == spelled.contributions().tolist()
    per_hour = np.zeros(24)
    np.add.at(per_hour, at, (paid + 1) / 10)
    windows = np.convolve(per_hour, np.ones(3), "valid")
    assert coded.loss.epsilon == pytest.approx(windows.max())


def test_a_million_releases_are_one_pass_over_integers():
    rng = np.random.default_rng(5)
    columns = [Column(At(t), Event(), "view") for t in range(24)]
    at = rng.integers(0, 24, 1_000_000)
    result = compose_coded(
        DAY,
        User(),
        columns=columns,
        losses=[Pure("0.001")],
        column_codes=at,
        loss_codes=np.zeros(1_000_000, dtype=np.int64),
    )
    assert result.loss == Pure(1000)
    assert len(result.table.kinds) == 24


def test_sparse_codes_are_sorted_instead_of_counted():
    columns = [cell(name) for name in CITY.cells]
    losses = [Pure(Fraction(k, 1000)) for k in range(1, 1001)]
    table = read_claims(
        columns, losses, column_codes=[0, 3, 0], loss_codes=[999, 5, 999]
    )
    assert table.counts.tolist() == [2, 1]
    assert table.kind_of.tolist() == [0, 1, 0]
    assert [loss.epsilon for loss in table.losses] == [0.006, 1.0]


def test_claims_of_different_numbers_are_grouped_by_release():
    columns = [cell("N"), cell("N", Unbounded()), cell("S")]
    table = read_claims(
        columns,
        [Pure(1), Pure(2)],
        column_codes=[2, 0, 1, 1, 0],
        loss_codes=[0, 0, 1, 1, 0],
        release_codes=[0, 1, 1, 2, 2],
    )
    assert table.kind_of.tolist() == [0, 1, 1]
    assert table.kinds.claims(1) == [(0, 0), (1, 1)]
    assert table.counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ({"column_codes": [0, 7], "loss_codes": [0, 0]}, "column_codes must lie in"),
        ({"column_codes": [0.5], "loss_codes": [0]}, "vector of integers"),
        ({"column_codes": [0], "loss_codes": [0, 0]}, "one entry per claim"),
        (
            {"column_codes": [0, 0], "loss_codes": [0, 0], "release_codes": [0]},
            "one entry per claim",
        ),
        (
            {
                "column_codes": [0, 0, 0],
                "loss_codes": [0] * 3,
                "release_codes": [0, 2, 2],
            },
            "without gaps",
        ),
    ],
)
def test_codes_without_meaning_are_refused(codes, message):
    with pytest.raises(MismatchError, match=message):
        read_claims([cell("N")], [Pure(1)], **codes)


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(MismatchError, match="one entry per claim"):
        composed([cell("N")], [])


def test_encoding_recognises_equal_objects():
    first, second = Pure("0.1"), Pure("0.1")
    different, codes = encode([first, second, first])
    assert different == [first]
    assert codes.tolist() == [0, 0, 0]


# ---------------------------------------------------------------- rows


def test_a_given_change_is_priced_claim_by_claim():
    row = Row(Change("mine", "two cells"), {0: 1, 1: 2})
    assert price_row(row, losses=[Pure(1), Pure("0.5"), Pure(9)]) == Pure(2)
    assert price_row(row, losses=[Pure(1), Pure("0.5")], releases=[0, 0]) == Pure(1)
    assert price_row(row, losses=[GDP(1), GDP(1)]) == GDP.from_square(5)


def test_distance_one_is_the_target_itself():
    columns, losses = [cell("N")], [Approx(1, "1e-6")]
    near = loss_at_distance(CITY, Bounded(), distance=1, columns=columns, losses=losses)
    assert near.loss == Approx(1, "1e-6")
    far = loss_at_distance(CITY, Bounded(), distance=3, columns=columns, losses=losses)
    assert far.loss.epsilon == 3


def test_long_fractions_in_several_claims_do_not_overflow():
    claims = [Pure("0.12345678901234567890123"), Pure("0.2234567890123456789")]
    view = Select("a")
    columns = [Column(view, Bounded(), "common"), Column(view, Unbounded(), "common")]
    found = compose_columns(
        Table(["a", "b"]), Bounded(), columns=columns, losses=claims, releases=[0, 0]
    )
    assert found.loss == claims[0]
