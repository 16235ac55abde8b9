"""The book keeps equal things once, and says what the releases say."""

from __future__ import annotations

import pickle
from typing import ClassVar

import pytest

import undertow as ut
from undertow.composition._claim_table import ClaimBook, Snapshot
from undertow.composition.plan import Contributions, unique_names


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


def test_two_releases_stand_for_all_times_of_a_stream():
    def hour(at, unit):
        view = ut.At(at) if at % 2 else ut.Window(at, 2)
        return ut.Release(f"r{at}", ut.Pure(1), unit=unit, view=view, setting="view")

    book = book_of(
        *(hour(at, ut.Event()) for at in range(8)),
        hour(8, ut.User()),
        hour(10, ut.User()),
    )
    names = [release.name for release in book.representatives]
    assert names == ["r0", "r1", "r2", "r3", "r8", "r10"]
    assert book.shape_codes().tolist() == [0, 1] * 4 + [2, 2]
    assert len(book.columns) == 10


class Watched(ut.At):
    """A view that counts how often it is checked."""

    checks: ClassVar[list[int]] = []

    def require_domain(self, domain):
        self.checks.append(self.time)
        super().require_domain(domain)


def test_a_view_is_checked_once_however_often_it_is_used():
    plan, view = ut.Plan(ut.Stream(5, 3)), Watched(1)
    Watched.checks.clear()
    for at in range(4):
        plan.add(
            ut.Release(f"r{at}", ut.Pure(1), unit=ut.Event(), view=view, setting="view")
        )
    assert Watched.checks == [1]
    longer = plan.followed_by(plan.releases[0])
    assert Watched.checks == [1]
    assert len(longer) == 5


def test_a_view_that_does_not_fit_is_refused_every_time():
    plan, view = ut.Plan(ut.Stream(5, 3)), ut.At(7)
    release = ut.Release("x", ut.Pure(1), unit=ut.Event(), view=view, setting="view")
    for _ in range(2):
        with pytest.raises(ValueError, match="times must be"):
            plan.add(release)
    assert len(plan) == 0


def test_a_snapshot_does_not_grow_with_its_list():
    releases = [count(f"r{at}", "1", "N") for at in range(3)]
    held = Snapshot(releases)
    releases.append(count("later", "1", "S"))
    assert len(held) == 3
    assert [release.name for release in held] == ["r0", "r1", "r2"]
    assert held[-1].name == "r2"
    assert [release.name for release in held[1:9]] == ["r1", "r2"]
    with pytest.raises(IndexError):
        held[3]


def test_a_report_keeps_the_releases_it_was_made_of():
    plan = ut.Plan(ut.Table(["N", "S"]), [count("a", "1", "N")])
    report = plan.loss(ut.Unbounded())
    plan.add(count("b", "5", "S"))
    assert dict(report.contributions) == {"a": ut.Pure(1)}


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
