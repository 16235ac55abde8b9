"""The book keeps equal things once, and says what the releases say."""

from __future__ import annotations

import pickle

import undertow as ut
from undertow.composition.claim_book import ClaimBook
from undertow.composition.contribution import Contributions, unique_names


def count(name: str, epsilon: str, cell: str) -> ut.Release:
    return ut.Release(
        name,
        ut.Pure(epsilon),
        unit=ut.Bounded(),
        view=ut.Select(cell),
        setting="common",
    )


def book_of(*releases: ut.Release) -> ClaimBook:
    book = ClaimBook()
    for release in releases:
        book.enter(release)
    return book


def test_equal_views_units_and_losses_are_kept_once():
    book = book_of(count("a", "1", "N"), count("b", "1.0", "N"), count("c", "2", "S"))
    assert len(book.columns) == 2
    assert book.losses == [ut.Pure(1), ut.Pure(2)]
    assert book.column_codes().tolist() == [0, 0, 1]
    assert book.loss_codes().tolist() == [0, 0, 1]
    assert book.release_codes() is None


def test_several_claims_name_their_release():
    claims = [
        ut.Claim(ut.Pure(1), unit, "common") for unit in (ut.Bounded(), ut.Unbounded())
    ]
    release = ut.Release.with_claims("x", claims, view=ut.Select("N"))
    book = book_of(count("a", "1", "N"), release)
    assert book.release_codes().tolist() == [0, 1, 1]
    assert book.column_codes().tolist() == [0, 0, 1]


def test_a_copy_grows_on_its_own():
    book = book_of(count("a", "1", "N"))
    other = book.copy()
    other.enter(count("b", "3", "S"))
    assert len(book.columns) == len(book.losses) == len(book.column_codes()) == 1
    assert len(other.columns) == len(other.losses) == len(other.column_codes()) == 2


def test_two_releases_stand_for_many_alike():
    book = book_of(*(count(f"r{at}", "1", "N") for at in range(5)))
    assert [release.name for release in book.representatives] == ["r0", "r1"]


def test_temporary_objects_do_not_lend_their_identity_to_others():
    plan = ut.Plan(ut.Table(["N", "S"]))
    for at in range(300):
        # Built and dropped at once: a later object may live at the same address.
        plan.add(count(f"r{at}", f"0.{at % 7 + 1}", "NS"[at % 2]))
    expected = [sum(at % 7 + 1 for at in range(300) if at % 2 == s) for s in (0, 1)]
    assert plan.loss(ut.Unbounded()).loss == ut.Pure(f"{max(expected)}/10")
    assert plan.loss(ut.Bounded()).loss == ut.Pure(f"{sum(expected)}/10")


def test_contributions_read_like_a_dictionary_and_survive_pickling():
    plan = ut.Plan(ut.Table(["N", "S", "E"]))
    for name, epsilon, cell in (("a", "1", "N"), ("b", "2", "S"), ("c", "0.5", "E")):
        plan.add(count(name, epsilon, cell))
    shares = plan.loss(ut.Bounded()).contributions
    assert isinstance(shares, Contributions)
    assert shares == {"a": ut.Pure(1), "b": ut.Pure(2)}
    assert repr(shares) == repr(dict(shares))
    assert pickle.loads(pickle.dumps(shares)) == shares


def test_names_used_twice_are_numbered_without_clashes():
    assert unique_names(["x", "y"]) == ["x", "y"]
    assert unique_names(["x", "x", "x #1"]) == ["x #1'", "x #2", "x #1"]
