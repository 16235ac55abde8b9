"""One DP ledger, converted once."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from undertow.correlation.accountant import CorrelatedAccountant, compose_leakages
from undertow.correlation.group import (
    Blocks,
    GeneralTheorem,
    Independent,
    general_leakage,
)
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
)
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import BudgetExceeded, CompositionError, NotApplicable


class Surcharge(LeakageTheorem):
    """The level and three, whatever the number of releases."""

    name = "surcharge"
    source = "an additive bound"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(epsilon + 3.0, self.source, method=self.name)

    def invert(self, model, target, /, *, query=None):
        if target <= 3:
            raise NotApplicable("too small")
        return (target - 3.0) * (1 - 1e-12)


class NoisyCount(LeakageTheorem):
    """What one noisy count leaks; not what several leak together."""

    name = "count"
    source = "one noisy count"

    def bound(self, model, epsilon, /, *, query=None):
        if query.name != "count":
            raise NotApplicable("one noisy count only")
        return Leakage(epsilon, self.source, method=self.name)


class Clipped(LeakageTheorem):
    """One and a half times the level, for clipped Lipschitz queries."""

    name = "clipped"
    source = "a factor"

    def bound(self, model, epsilon, /, *, query=None):
        if query.name != "lipschitz":
            raise NotApplicable("lipschitz only")
        return Leakage(
            1.5 * epsilon, self.source, method=self.name, scope=query.scope()
        )


def with_methods(*methods):
    class Model(Blocks):
        def methods(self):
            return methods

    return Model([10])


def test_levels_add_up_and_are_converted_once():
    accountant = CorrelatedAccountant(Blocks([4]), 10.0)
    accountant.spend(0.5)
    after = accountant.spend(0.25, label="second")
    assert after.value == 3.0
    assert accountant.spent().value == 3.0
    assert accountant.dp_spent == 0.75
    assert after.model == "4 records in 1 group"
    assert [entry.epsilon for entry in accountant.history] == [0.5, 0.25]
    assert accountant.history[1].label == "second"


def test_a_surcharge_is_paid_once():
    accountant = CorrelatedAccountant(with_methods(Surcharge()), 10.0)
    for _ in range(20):
        accountant.spend("0.05")
    assert accountant.spent().value == pytest.approx(4.0, rel=1e-12)


def test_nothing_spent_leaks_nothing_whatever_the_surcharge():
    accountant = CorrelatedAccountant(with_methods(Surcharge()), 10.0)
    assert accountant.spent().value == 0.0
    assert accountant.dp_spent == 0.0
    assert accountant.spend(0).value == 0.0


def test_levels_are_added_exactly():
    accountant = CorrelatedAccountant(Independent(), 0.3)
    for epsilon in (0.1, "0.1", Decimal("0.1")):
        accountant.spend(epsilon)
    assert accountant.spent().value == 0.3
    assert accountant.remaining_epsilon() == 0.0


def test_a_budget_can_be_spent_to_the_end():
    accountant = CorrelatedAccountant(Independent(), 2.05)
    accountant.spend(Fraction("2.05"))
    assert accountant.spent().value == 2.05


def test_over_budget_is_refused_and_nothing_recorded():
    accountant = CorrelatedAccountant(Blocks([4]), 3.0)
    accountant.spend(0.5)
    with pytest.raises(BudgetExceeded, match=r"within 3.*at most 0\.25 is left") as got:
        accountant.spend(0.3)
    assert got.value.witness.value == pytest.approx(3.2)
    assert len(accountant.history) == 1
    assert accountant.spent().value == 2.0
    accountant.spend(0.25)
    assert accountant.remaining_epsilon() == 0.0


def test_a_quote_records_nothing():
    accountant = CorrelatedAccountant(Blocks([4]), 3.0)
    assert accountant.quote(9.0).value == 36.0
    assert accountant.history == ()


@pytest.mark.parametrize("group", [1, 2, 3, 7, 49])
@pytest.mark.parametrize("first", ["0.1", "0.033", "1/7"])
def test_what_remains_can_be_spent_and_hardly_more(group, first):
    accountant = CorrelatedAccountant(Blocks([group]), 10.0)
    accountant.spend(first)
    left = accountant.remaining_epsilon()
    assert left == pytest.approx(10.0 / group - float(Fraction(first)), rel=1e-12)
    with pytest.raises(BudgetExceeded):
        accountant.spend(left * (1 + 1e-9))
    accountant.spend(left)


def test_what_remains_follows_the_best_method():
    accountant = CorrelatedAccountant(with_methods(Surcharge(), GeneralTheorem()), 8.0)
    assert accountant.remaining_epsilon() == pytest.approx(5.0, rel=1e-9)
    accountant.spend(4.0)
    assert accountant.remaining_epsilon() == pytest.approx(1.0, rel=1e-9)
    small = CorrelatedAccountant(with_methods(Surcharge(), GeneralTheorem()), 2.0)
    assert small.remaining_epsilon() == pytest.approx(0.2, rel=1e-9)


def test_releases_on_different_groups_cost_their_maximum():
    accountant = CorrelatedAccountant(Blocks([3, 3, 2]), 10.0)
    accountant.spend(1.0, blocks=[0])
    after = accountant.spend(1.0, blocks=[1])
    assert after.value == 3.0
    assert accountant.spend(1.4, blocks=[2]).value == 3.0  # a smaller group
    assert accountant.dp_spent == 1.4


def test_a_release_on_everything_is_charged_to_every_group():
    accountant = CorrelatedAccountant(Blocks([3, 2]), 10.0)
    accountant.spend(1.0, blocks=[1])
    assert accountant.spend(0.5).value == 3.0  # two records at 1.5, three at 0.5
    assert accountant.spent().witness.details["target"] == 3
    assert accountant.spend(1.0, blocks=[0, 1]).value == 5.0


def test_a_group_that_is_nearly_spent_limits_what_remains():
    accountant = CorrelatedAccountant(Blocks([3, 2]), 6.0)
    accountant.spend(2.5, blocks=[1])
    assert accountant.remaining_epsilon() == 0.5
    accountant.spend(0.5)
    assert accountant.remaining_epsilon() == 0.0


def test_splitting_one_group_gains_nothing():
    accountant = CorrelatedAccountant(Blocks([4]), 10.0)
    accountant.spend(0.5, blocks=[0])
    assert accountant.spend(0.5, blocks=[0]).value == 4.0


@pytest.mark.parametrize("blocks", [[2], [-1], [0.5]])
def test_groups_exist(blocks):
    accountant = CorrelatedAccountant(Blocks([3, 2]), 6.0)
    with pytest.raises(ValueError, match=r"block must be"):
        accountant.spend(0.1, blocks=blocks)
    assert accountant.history == ()


def test_a_release_reads_some_group():
    with pytest.raises(ValueError, match=r"at least one group"):
        CorrelatedAccountant(Blocks([3]), 6.0).spend(0.1, blocks=[])


def test_only_declared_groups_can_be_charged_alone():
    with pytest.raises(NotApplicable, match=r"one accountant for each independent"):
        CorrelatedAccountant(Independent(4), 6.0).spend(0.1, blocks=[0])


def test_a_history_of_any_releases_is_no_single_count():
    model = with_methods(NoisyCount(), GeneralTheorem())
    accountant = CorrelatedAccountant(model, 100.0, query=CountQuery())
    assert accountant.spend(0.5).value == 5.0  # not 0.5: other releases may follow


def test_repeats_of_one_count_are_one_count_of_the_summed_level():
    model = with_methods(NoisyCount(), GeneralTheorem())
    accountant = CorrelatedAccountant(model, 1.0, query=CountQuery(), repeats=True)
    accountant.spend(0.5)
    assert accountant.spend(0.25).value == 0.75
    assert accountant.remaining_epsilon() == pytest.approx(0.25, rel=1e-12)


def test_repeats_are_of_one_query_on_all_records():
    with pytest.raises(ValueError, match=r"query must say which query repeats"):
        CorrelatedAccountant(Blocks([2]), 1.0, repeats=True)
    query = LipschitzQuery(clip=(0, 1))
    accountant = CorrelatedAccountant(Blocks([2]), 1.0, query=query, repeats=True)
    with pytest.raises(NotApplicable, match=r"where one query repeats"):
        accountant.spend(0.1, blocks=[0])
    with pytest.raises(NotApplicable, match=r"where one query repeats"):
        accountant.spend(0.1, clip=(0, 2))


def test_an_unclipped_sum_may_repeat():
    query = LinearQuery(gap=1)
    accountant = CorrelatedAccountant(Independent(3), 1.0, query=query, repeats=True)
    accountant.spend(0.5)
    assert accountant.spend(0.25).scope.gap == 1.0


def test_repeated_laplace_noise_is_a_mixture_of_single_laplace_noises():
    """Random laws: no transcript of several noisy counts tells more than one does."""
    rng = np.random.default_rng(5)
    counts, outputs = np.arange(5), np.linspace(-1, 5, 61)
    for shares in ([0.5, 0.5], [0.2, 0.8], [0.1, 0.3, 0.6]):
        for _ in range(40):
            p, q = rng.dirichlet(np.full(5, 0.3), 2)
            one = np.exp(-2.0 * abs(outputs[:, None] - counts))
            single = np.log((one @ p) / (one @ q))
            drawn = rng.uniform(-1, 5, (4000, len(shares)))
            distances = abs(drawn[..., None] - counts)
            several = np.exp(-2.0 * np.einsum("j,tjc->tc", shares, distances))
            joint = np.log((several @ p) / (several @ q))
            sums = np.exp(-2.0 * abs(counts[:, None] - counts))
            highest = np.log((sums @ p) / (sums @ q)).max()
            assert single.max() <= highest + 1e-12
            assert joint.max() <= highest + 1e-12


def test_one_clip_interval_is_the_scope():
    model = with_methods(Clipped(), GeneralTheorem())
    query = LinearQuery(2.0, clip=(60, 80))
    accountant = CorrelatedAccountant(model, 100.0, query=query)
    accountant.spend(0.5)
    after = accountant.spend(0.5, clip=(60, 80))
    assert after.value == 1.5
    assert after.scope.interval == (60.0, 80.0)


def test_several_clip_intervals_cover_secrets_within_the_narrowest():
    model = with_methods(Clipped(), GeneralTheorem())
    accountant = CorrelatedAccountant(model, 100.0, query=LipschitzQuery(clip=(0, 100)))
    accountant.spend(0.5)
    after = accountant.spend(0.5, clip=(60, 80))
    assert after.value == 1.5
    assert after.scope.interval is None
    assert after.scope.gap == 20.0
    assert [entry.clip for entry in accountant.history] == [(0, 100), (60, 80)]
    assert accountant.spend(0.5, clip=(0, 50)).scope.gap == 20.0


def test_the_general_bound_covers_every_pair_whatever_the_clips():
    accountant = CorrelatedAccountant(
        Blocks([2]), 100.0, query=LipschitzQuery(clip=(0, 100))
    )
    accountant.spend(0.5)
    assert accountant.spend(0.5, clip=(60, 80)).scope.is_every_pair


def test_a_clip_needs_a_clipped_query():
    accountant = CorrelatedAccountant(Blocks([2]), 100.0, query=AnyQuery())
    with pytest.raises(NotApplicable, match=r"give the accountant a LipschitzQuery"):
        accountant.spend(0.5, clip=(0, 1))


def test_a_clip_has_a_width():
    accountant = CorrelatedAccountant(
        Blocks([2]), 100.0, query=LipschitzQuery(clip=(0, 100))
    )
    with pytest.raises(ValueError, match=r"clip must be"):
        accountant.spend(0.5, clip=(1, 1))


def test_an_unclipped_sum_is_not_dp_and_not_accounted():
    with pytest.raises(NotApplicable, match=r"not DP; give it clip"):
        CorrelatedAccountant(Blocks([2]), 1.0, query=LinearQuery(gap=1))


def test_a_sum_of_bounded_records_is_any_mechanism():
    accountant = CorrelatedAccountant(Blocks([2]), 1.0, query=LinearQuery())
    assert accountant.spend(0.25).value == 0.5


@pytest.mark.parametrize("budget", [0, -1, math.inf, math.nan])
def test_a_budget_is_positive_and_finite(budget):
    with pytest.raises(ValueError, match=r"budget must be positive and finite"):
        CorrelatedAccountant(Blocks([2]), budget)


@pytest.mark.parametrize("epsilon", [-0.1, math.inf, math.nan, "much"])
def test_a_level_is_a_finite_number(epsilon):
    accountant = CorrelatedAccountant(Blocks([2]), 1.0)
    with pytest.raises(ValueError, match=r"epsilon must be"):
        accountant.spend(epsilon)
    assert accountant.history == ()


def test_an_unknown_method_is_refused_at_once():
    with pytest.raises(ValueError, match=r"got 'magic'"):
        CorrelatedAccountant(Blocks([2]), 1.0, method="magic")


def test_a_method_that_does_not_apply_spends_nothing():
    accountant = CorrelatedAccountant(with_methods(NoisyCount()), 1.0, method="count")
    with pytest.raises(NotApplicable):
        accountant.spend(0.1)
    assert accountant.history == ()
    assert accountant.remaining_epsilon() == 0.0


def test_the_accountant_shows_its_model_and_budget():
    model = Blocks([2])
    accountant = CorrelatedAccountant(model, 1.5)
    assert accountant.model is model
    assert accountant.budget == 1.5


def test_many_groups_are_charged_quickly():
    accountant = CorrelatedAccountant(Blocks.of_size(3, groups=50_000), 10.0)
    assert accountant.spend(0.5, blocks=range(25_000)).value == 1.5
    assert accountant.spend(0.25, blocks=range(20_000, 40_000)).value == 2.25


def test_leakages_are_never_added():
    one = general_leakage(0.5, 2)
    with pytest.raises(
        CompositionError, match=r"got 1 \+ 1.*CorrelatedAccountant"
    ) as e:
        compose_leakages(one, one)
    details = e.value.witness.details
    assert details["leakage_twice"] > 2 * details["leakage_once"]
    assert e.value.source
    with pytest.raises(CompositionError, match=r"got nothing"):
        compose_leakages()
