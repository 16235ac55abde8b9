"""Granularities that protect everything one person contributes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.errors import MismatchError
from undertow.spaces.base import Database, Domain
from undertow.spaces.connected import Components
from undertow.spaces.domain import FiniteDomain, Rows, Stream, Table
from undertow.spaces.granularity._steps import (
    Rule,
    require_shape,
    row_components,
    row_difference,
    row_distance,
    row_formula,
    row_steps,
)
from undertow.spaces.granularity.generic import Catalogued
from undertow.spaces.granularity.table import Bounded, Unbounded

__all__ = ["Trajectory", "User", "is_absent", "recorded_times"]


def is_absent(row: Any) -> bool:
    """Return whether a user contributes nothing: no row, or a row of gaps."""
    return row is None or (isinstance(row, tuple) and all(x is None for x in row))


def recorded_times(row: Any) -> int:
    """Return at how many times a row of a stream is recorded."""
    return sum(value is not None for value in row)


@dataclass(frozen=True, slots=True)
class User(Catalogued):
    """Replace everything one user contributes, or add or remove the user.

    Parameters
    ----------
    add_remove : bool
        A user joins or leaves; on a stream a user who is absent has a row of gaps.
    max_times : int, optional
        A declared cap on the times recorded for one user of a stream. Databases that
        violate it are outside: nothing is promised about them.

    Notes
    -----
    The number of differing rows; with `add_remove`, the users in exactly one database
    plus twice those in both with different data. The cap leaves the rows independent
    and closed under removal, so both formulas hold inside it (thesis, Section 3.3).

    Examples
    --------
    >>> users = Rows(("u1", "u2", "u3"), free_ids=True)
    >>> User(add_remove=True).distance(("p", "q", None), ("r", None, "s"), users)
    4
    """

    kinds: ClassVar[tuple[str, ...]] = ("stream", "rows", "finite")
    otherwise: ClassVar[str] = "use bounded or unbounded where a record is a user"

    add_remove: bool = False
    max_times: int | None = None

    def __post_init__(self) -> None:
        if self.max_times is not None:
            check_count(self.max_times, "max_times")

    @property
    def name(self) -> str:
        """The command-line name."""
        cap = "" if self.max_times is None else f":max-times={self.max_times}"
        return "user" + (":add-remove" if self.add_remove else "") + cap

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless `domain` has users, and times to cap."""
        Catalogued.require_domain(self, domain)
        require_shape(domain, "rows", name=self.name)
        if self.max_times is None:
            return
        if not isinstance(domain, Stream):
            raise MismatchError(
                f"domain must be a stream for {self.name}, got {domain.kind}; "
                "leave max_times out."
            )
        if domain.regular and self.max_times < domain.times:
            raise MismatchError(
                f"domain must allow gaps for {self.name}, got a regular stream that "
                f"records all {domain.times} times; leave max_times out."
            )

    def _rule(self, domain: Domain) -> Rule:
        if self.add_remove:
            return "add-remove"
        # On a stream, listed or not, a row of gaps is a row like any other; rows keep
        # their id set.
        listed = isinstance(domain, FiniteDomain) and domain.holds_matrices
        return "edit" if listed or isinstance(domain, Stream) else "replace"

    def within_cap(self, database: Any) -> bool:
        """Return whether every user respects the declared cap."""
        cap = self.max_times
        return cap is None or all(recorded_times(row) <= cap for row in database)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        if not (self.within_cap(first) and self.within_cap(second)):
            return False
        p, q = row_difference(first, second, absent=is_absent)
        return row_distance(self._rule(domain), p, q) == 1

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        if not self.within_cap(database):
            return iter(())
        rows = domain.choices() if isinstance(domain, Rows) else self._rows(domain)
        return row_steps(self._rule(domain), database, rows, absent=is_absent)

    def _rows(self, domain: Stream) -> list[Any]:
        rows = product(domain.choices(), repeat=domain.times)
        return [row for row in rows if self.within_cap((row,))]

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the weighted number of differing rows, infinite outside the cap."""
        if first == second:
            return 0
        if not (self.within_cap(first) and self.within_cap(second)):
            return math.inf
        rule = self._rule(domain)
        if rule == "add-remove" and isinstance(domain, Stream) and domain.regular:
            return math.inf
        return row_formula(rule, first, second, domain, absent=is_absent)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the users unless they come and go, and the declared cap."""
        users: tuple[str, ...] = ()
        if not self.add_remove:
            named = isinstance(domain, Rows) and domain.free_ids
            users = ("the set of users",) if named else ("the number of users",)
        if self.max_times is None:
            return users
        cap = f"declared cap: at most {self.max_times} recorded times per user"
        return (*users, f"{cap}; nothing is promised about databases beyond it")

    def components(self, domain: Domain) -> Components | None:
        """Return the components; databases beyond the cap stand alone."""
        if isinstance(domain, FiniteDomain):
            return None
        if isinstance(domain, Rows):
            return row_components(self._rule(domain), domain)
        assert isinstance(domain, Stream)
        number = domain.count()
        if self.add_remove and domain.regular:
            return Components(
                False, number, ("one per database",) if number > 1 else ()
            )
        beyond = self._number_beyond(domain)
        if beyond == 0:
            return Components(number > 1, 1)
        label = f"one per database beyond {self.max_times} recorded times"
        return Components(True, 1 + beyond, ("within the cap", label))

    def _number_beyond(self, domain: Stream) -> float:
        """Return how many databases violate the cap."""
        if self.max_times is None or self.max_times >= domain.times:
            return 0
        if domain.count() == math.inf or domain.values is None:
            return math.inf
        each, times = len(domain.values), domain.times
        rows = sum(math.comb(times, k) * each**k for k in range(self.max_times + 1))
        return domain.count() - int(rows**domain.users)


@dataclass(frozen=True, slots=True)
class Trajectory(Catalogued):
    """A record is a whole trajectory: replace one, or add or remove one.

    Parameters
    ----------
    add_remove : bool
        A trajectory appears or disappears.

    Notes
    -----
    As :class:`Bounded` or :class:`Unbounded` on tables and as :class:`User` on streams
    and identified rows (thesis, Section 3.3).
    """

    kinds: ClassVar[tuple[str, ...]] = ("table", "stream", "rows", "finite")
    otherwise: ClassVar[str] = "use node on graphs"

    add_remove: bool = False

    @property
    def name(self) -> str:
        """The command-line name."""
        return "trajectory:add-remove" if self.add_remove else "trajectory"

    def on(self, domain: Domain) -> Catalogued:
        """Return the granularity it stands for on `domain`."""
        if isinstance(domain, Table | FiniteDomain):
            return Unbounded() if self.add_remove else Bounded()
        return User(add_remove=self.add_remove)

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        Catalogued.require_domain(self, domain)
        self.on(domain).require_domain(domain)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return self.on(domain)._adjacent(first, second, domain)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        return self.on(domain)._generate(database, domain)

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the closed form of the granularity it stands for."""
        return self.on(domain).closed_form(first, second, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the invariants of the granularity it stands for."""
        return self.on(domain).invariants(domain)

    def components(self, domain: Domain) -> Components | None:
        """Return the components of the granularity it stands for."""
        return self.on(domain).components(domain)
