"""Every method, the smallest wins."""

from __future__ import annotations

import math

import pytest

from undertow.correlation.group import Blocks, GeneralTheorem, Independent
from undertow.correlation.leak import leakage
from undertow.correlation.query import CountQuery, LinearQuery
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import ModelError, NotApplicable
from undertow.theorem import select


class Sharper(LeakageTheorem):
    """Twice the level, for counts only; costly for large models."""

    name = "sharper"
    source = "a sharper statement"
    published = False

    def bound(self, model, epsilon, /, *, query=None):
        if query.name != "count":
            raise NotApplicable(f"sharper needs a count, got {query.name!r}.")
        return Leakage(2 * epsilon, self.source, method=self.name, checked=("seen",))

    def too_costly(self, model, *, query):
        return "more than 100 records" if model.size > 100 else None


class Family(Blocks):
    def methods(self):
        return (Sharper(), GeneralTheorem())


def test_the_smallest_bound_wins_and_the_others_are_listed():
    found = leakage(Family([5]), 0.5, query=CountQuery())
    assert (found.value, found.method) == (1.0, "sharper")
    (other,) = found.alternatives
    assert (other.name, other.parameter) == ("general", 2.5)
    assert "a larger bound" in other.reason


def test_a_bound_that_is_not_smaller_does_not_win_by_order():
    found = leakage(Family([1]), 0.5, query=CountQuery())
    assert (found.value, found.method) == (0.5, "general")


def test_an_equal_bound_is_called_the_same():
    found = leakage(Family([2]), 0.5, query=CountQuery())
    assert found.method == "sharper"
    assert found.alternatives[0].reason.startswith("the same")


def test_a_method_that_does_not_apply_is_listed_with_its_reason():
    found = leakage(Family([5]), 0.5)
    assert found.method == "general"
    (other,) = found.alternatives
    assert (other.name, other.parameter) == ("sharper", None)
    assert other.reason == "sharper needs a count, got 'any'."


def test_a_method_asked_by_name_says_why_it_does_not_apply():
    with pytest.raises(NotApplicable, match=r"needs a count, got 'any'"):
        leakage(Family([5]), 0.5, method="sharper")


def test_published_leaves_out_what_is_not():
    found = leakage(Family([5]), 0.5, query=CountQuery(), method="published")
    assert (found.value, found.method) == (2.5, "general")
    assert found.alternatives == ()


def test_a_costly_method_runs_only_if_asked_by_name():
    large = Family([101])
    found = leakage(large, 0.5, query=CountQuery())
    assert found.method == "general"
    assert "ask for method='sharper' by name" in found.alternatives[0].reason
    named = leakage(large, 0.5, query=CountQuery(), method="sharper")
    assert named.value == 1.0


def test_what_takes_long_is_left_out_unless_it_is_asked_for_by_name():
    many = Family([101])
    (other,) = leakage(many, 0.5, query=CountQuery()).alternatives
    assert other.reason == "more than 100 records; ask for method='sharper' by name."
    assert leakage(many, 0.5, query=CountQuery(), method="sharper").value == 1.0


def test_an_unknown_method_names_those_there_are():
    with pytest.raises(ValueError, match=r"'per-record', 'general'.*got 'magic'"):
        leakage(Blocks([2]), 1.0, method="magic")


def test_no_method_at_all_gives_every_reason():
    class Nothing(Family):
        def methods(self):
            return (Sharper(),)

    with pytest.raises(NotApplicable, match=r"no method applies to 5 records.*\[sharp"):
        leakage(Nothing([5]), 1.0)


def test_the_result_names_the_model_and_what_is_trusted():
    found = leakage(Family([5, 2]), 0.5, query=CountQuery())
    assert found.model == "7 records in 2 independent groups of at most 5"
    assert found.checked == ("seen", "every record is in exactly one group")
    assert found.unchecked == ("the groups are mutually independent",)


def test_independent_records_leak_their_dp_level():
    found = leakage(Independent(10), 0.5, query=LinearQuery(gap=2))
    assert (found.value, found.method) == (0.5, "independent")
    assert found.is_exact
    assert found.scope.gap == 2.0


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf])
def test_a_level_is_finite(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be"):
        leakage(Blocks([2]), epsilon)


def test_best_stands_for_all_methods_in_order():
    names = [method.name for method in select(Blocks([2]).methods(), "best", of="")]
    assert names == ["per-record", "general"]


def test_unbounded_records_have_no_per_record_bound():
    with pytest.raises(ModelError, match=r"clip="):
        leakage(Blocks([2]), 1.0, query=LinearQuery())
