"""Theorems that compete: the best wins, and every other says why it lost."""

from __future__ import annotations

import pytest

from undertow.errors import AssumptionError, InfeasibleTarget, NotApplicable
from undertow.results import Alternative, Bound
from undertow.theorem import Attempt, Theorem, attempt, best, select


class Factor(Theorem):
    """A multiple of the promise, for cases that are no longer than a limit."""

    def __init__(self, name, factor, *, limit=9, published=True):
        self.name, self.source = name, f"Theorem {factor}"
        self.factor, self.limit, self.published = factor, limit, published

    def bound(self, case, promise):
        if len(case) > self.limit:
            raise NotApplicable(
                f"case must have {self.limit} letters, got {len(case)}."
            )
        return Bound(self.factor * promise, self.source)


class Surcharge(Factor):
    def invert(self, case, target):
        if target <= self.factor:
            raise InfeasibleTarget("target must be larger.", least=self.factor)
        return target - self.factor


TWICE, THRICE = Factor("twice", 2), Factor("thrice", 3, published=False)
SHORT = Factor("short", 1, limit=2)


def choose(theorems, case="abc", **more):
    return best(
        theorems,
        lambda theorem: theorem.bound(case, 1.0),
        rank=lambda bound: bound.value,
        otherwise="nothing applies",
        **more,
    )


def because(theorem, bound):
    return Alternative(theorem.name, "larger", bound.value)


@pytest.mark.parametrize("order", [(TWICE, THRICE), (THRICE, TWICE)])
def test_the_least_value_wins_whatever_the_order(order):
    choice = choose(order)
    assert (choice.theorem.name, choice.value.value) == ("twice", 2.0)
    assert choice.value.theorem == "Theorem 2"


def test_the_first_of_equal_values_wins():
    assert choose([Factor("one", 2), TWICE]).theorem.name == "one"
    assert choose([TWICE, Factor("one", 2)]).theorem.name == "twice"


def test_those_that_lost_come_first_and_those_refused_follow():
    choice = choose([SHORT, THRICE, TWICE])
    assert choice.alternatives(because) == (
        Alternative("thrice", "larger", 3.0),
        Alternative("short", "case must have 2 letters, got 3."),
    )


def test_attempts_keep_the_order_in_which_theorems_were_given():
    choice = choose([SHORT, THRICE, TWICE])
    assert [each.theorem.name for each in choice.attempts] == [
        "short",
        "thrice",
        "twice",
    ]
    assert [each.value is None for each in choice.attempts] == [True, False, False]


def test_a_theorem_that_refuses_never_wins_though_its_value_would():
    assert choose([SHORT, TWICE]).theorem is TWICE
    assert choose([SHORT, TWICE], case="ab").theorem is SHORT


def test_where_none_applies_all_reasons_are_given():
    never = Factor("never", 1, limit=0)
    with pytest.raises(NotApplicable) as caught:
        choose([SHORT, never])
    assert str(caught.value) == (
        "nothing applies: [short] case must have 2 letters, got 3. [never] case must "
        "have 0 letters, got 3."
    )


def test_no_theorem_at_all_is_refused():
    with pytest.raises(NotApplicable, match="nothing applies"):
        choose([])


def test_a_theorem_asked_for_by_name_refuses_in_its_own_words():
    with pytest.raises(NotApplicable, match=r"^case must have 2 letters, got 3\.$"):
        choose([SHORT], named=True)


def test_an_infeasible_target_says_how_low_the_theorem_reaches():
    choice = best(
        [Surcharge("four", 4), Surcharge("half", 0.5)],
        lambda theorem: theorem.invert("abc", 3.0),
        rank=lambda level: -level,
        otherwise="nothing applies",
    )
    assert (choice.theorem.name, choice.value) == ("half", 2.5)
    (other,) = choice.alternatives(because)
    assert other.reason == "infeasible at or below 4: target must be larger."


def test_a_fault_is_not_taken_for_a_refusal():
    with pytest.raises(ZeroDivisionError):
        best([TWICE], lambda theorem: 1 / 0, rank=float, otherwise="nothing applies")
    with pytest.raises(TypeError):
        attempt(TWICE, lambda theorem: theorem.bound(None, 1.0))


def test_an_attempt_holds_the_value_or_the_refusal():
    done = attempt(TWICE, lambda theorem: theorem.factor)
    assert done == Attempt(TWICE, value=2)
    refused = attempt(SHORT, lambda theorem: theorem.bound("abc", 1.0))
    assert refused.value is None
    assert isinstance(refused.refusal, AssumptionError)


def test_names_stand_for_all_for_the_published_and_for_one():
    listed = [TWICE, THRICE]
    assert select(listed, "best", of="words") == (TWICE, THRICE)
    assert select(listed, "published", of="words") == (TWICE,)
    assert select(listed, "thrice", of="words") == (THRICE,)
    with pytest.raises(ValueError, match="'twice', 'thrice' for words, got 'x'"):
        select(listed, "x", of="words")


def test_a_theorem_says_whether_it_applies_and_what_is_in_the_way():
    assert SHORT.applies("ab", 1.0)
    assert SHORT.obstacle("ab", 1.0) is None
    assert not SHORT.applies("abc", 1.0)
    assert SHORT.obstacle("abc", 1.0) == "case must have 2 letters, got 3."


def test_a_theorem_without_an_inverse_says_so():
    with pytest.raises(NotApplicable, match=r"'twice', which has none"):
        TWICE.invert("abc", 1.0)


def test_a_theorem_is_published_and_rests_on_nothing_unless_it_says_otherwise():
    assert TWICE.published
    assert TWICE.checked == TWICE.unchecked == ()
