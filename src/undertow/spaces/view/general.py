"""Views that fit any domain: whole data, declared maps, chains, bounded units.

A view is a pure function of the canonical database. The `stretch` of a view between two
metrics is a proved or declared bound on how far one unit of the first moves its output
in the second; where nothing is known it is infinite, never one. Clipping and truncation
bound what a record or a unit can contribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from undertow.errors import MismatchError
from undertow.numeric.exact import Exact, Number, exact
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.domain import Rows, Stream, Table, record_order
from undertow.spaces.metric import (
    AbsoluteDifference,
    Euclidean,
    LpNorm,
    SymmetricDifference,
    image_or_values,
)
from undertow.spaces.unit import (
    Bounded,
    BoundedById,
    Edit,
    Event,
    FreeLunch,
    Local,
    LTrajectory,
    Unbounded,
    User,
    WEvent,
)


def named(values: Iterable[Hashable]) -> str:
    """Return up to six values as text, in stable order."""
    shown = [str(value) for value in sorted(values, key=record_order)]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:5], f"{len(shown)} in all"])


def require_kind(view: View, domain: Domain, kinds: Iterable[str]) -> None:
    """Raise ``MismatchError`` unless the domain is of one of the `kinds`."""
    kinds = tuple(kinds)
    if domain.kind not in kinds:
        raise MismatchError(
            f"view {view.name} must see a domain of kind {' or '.join(kinds)}, "
            f"got {domain.kind}."
        )


def sensitivity_chain(*constants: Number) -> Exact:
    r"""Bound the sensitivity of a composed map by the product of the factors.

    .. math:: \Delta(g \circ f) \le \Delta f \cdot \Delta g

    Parameters
    ----------
    *constants : int, float, str, Decimal or Fraction
        The sensitivities, in ``[0, inf]``.

    Returns
    -------
    Exact
        The product; infinite as soon as one factor is, even beside a zero.

    Notes
    -----
    Paper, Proposition III.8. Often not tight: where the domain can be enumerated,
    :func:`undertow.spaces.sensitivity.sensitivity` of the composed view is.

    Examples
    --------
    >>> sensitivity_chain(2, "0.5", 3), sensitivity_chain(0, math.inf)
    (Fraction(3, 1), inf)
    """
    factors = [exact(constant, "constant") for constant in constants]
    if math.inf in factors:
        return math.inf
    return math.prod(factors, start=exact(1))


def declared_stretch(view: View, source: Metric, target: Metric) -> Exact:
    """Return what is proved or declared about a view's sensitivity, else infinity."""
    stretch = getattr(view, "stretch", None)
    return math.inf if stretch is None else stretch(source, target)


@dataclass(frozen=True, slots=True)
class Identity(View):
    """The whole database."""

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "whole data"

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the database."""
        return database

    def image(self, domain: Domain) -> Domain | None:
        """Return the domain."""
        return domain

    def require_domain(self, domain: Domain) -> None:
        """Accept every domain."""

    def fills_image(self, domain: Domain) -> bool:
        """Return True."""
        return True

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return 1 between equal metrics; unknown, hence infinite, otherwise."""
        return 1 if source == target else math.inf


@dataclass(frozen=True, slots=True)
class Lipschitz(View):
    """A map given as a function, with a declared bound on its sensitivity.

    Parameters
    ----------
    name : str
        The name used in reports.
    function : callable
        Takes a canonical database, returns a hashable value; deterministic. Lists and
        arrays are turned into tuples.
    constant : int, float, str, Decimal or Fraction
        The declared sensitivity from `unit_from` to `unit_to`; left out it is infinite.
    unit_from, unit_to : Metric
        The metrics between which the constant is declared.

    Notes
    -----
    On an enumerated domain :func:`undertow.spaces.sensitivity.verify_lipschitz` checks
    the constant and refuses a false one with the pair that shows it.
    """

    name: str = field()  # a bare annotation would inherit the property as default
    function: Callable[[Any], Any]
    constant: Exact
    unit_from: Metric
    unit_to: Metric

    def __init__(
        self,
        name: str,
        function: Callable[[Any], Any],
        *,
        unit_from: Metric,
        unit_to: Metric,
        constant: Number = math.inf,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "constant", exact(constant, "constant"))
        object.__setattr__(self, "unit_from", unit_from)
        object.__setattr__(self, "unit_to", unit_to)

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the function's value as a hashable object."""
        return _hashable(self.function(database))

    def image(self, domain: Domain) -> Domain | None:
        """Return None: plain values come out."""
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require that the source metric makes sense on the domain."""
        check = getattr(self.unit_from, "require_domain", None)
        if check is not None:
            check(domain)

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the declared constant between its own units, else infinity."""
        declared = source == self.unit_from and target == self.unit_to
        return self.constant if declared else math.inf


@dataclass(frozen=True, slots=True)
class Chain(View):
    """One view after another: `second` sees what `first` shows.

    Examples
    --------
    >>> from undertow.spaces.domain import Rows
    >>> from undertow.spaces.view.general import Clip
    >>> Chain(Clip(0, 3), Clip(1, 5)).apply((0, 9), Rows(2))
    (1, 3)
    """

    first: View
    second: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.first.name}, then {self.second.name}"

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the second view of the first view."""
        inner = self.first.apply(database, domain)
        return self.second.apply(inner, image_or_values(self.first, domain))

    def image(self, domain: Domain) -> Domain | None:
        """Return the image of the second view on the image of the first."""
        return self.second.image(image_or_values(self.first, domain))

    def require_domain(self, domain: Domain) -> None:
        """Require that both views fit."""
        self.first.require_domain(domain)
        self.second.require_domain(image_or_values(self.first, domain))

    def fills_image(self, domain: Domain) -> bool:
        """Return whether both views take every value of their images."""
        return self.first.fills_image(domain) and self.second.fills_image(
            image_or_values(self.first, domain)
        )

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return whether the second view does, on all that the first can show."""
        return self.first.fills_image(domain) and self.second.keeps_chains(
            unit, image_or_values(self.first, domain)
        )

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the least product over the units either part declares."""
        between = [source, target]
        between += [v.unit_to for v in (self.first,) if isinstance(v, Lipschitz)]
        between += [v.unit_from for v in (self.second,) if isinstance(v, Lipschitz)]
        return min(
            sensitivity_chain(
                declared_stretch(self.first, source, unit),
                declared_stretch(self.second, unit, target),
            )
            for unit in between
        )


def _hashable(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_hashable(part) for part in value)
    return value


# Views that bound what a record or a unit can contribute: clipping and truncation.
#
# The bounds are fixed in advance or belong to the domain; a bound read off the data is
# itself a release.

# Units under which a map of single values never moves more units than it was given.
_RECORD_UNITS = (
    AbsoluteDifference,
    Bounded,
    BoundedById,
    Edit,
    Euclidean,
    Event,
    FreeLunch,
    Local,
    LpNorm,
    LTrajectory,
    SymmetricDifference,
    Unbounded,
    User,
    WEvent,
)
# Proved by cases: a record that leaves may admit the next one of its unit.
_TRUNCATION: dict[type[Metric], int] = {
    Unbounded: 2,
    SymmetricDifference: 2,
    Edit: 2,
    Event: 2,
    User: 1,
}
_BY_RECORD = (Bounded, Edit, Unbounded)


@dataclass(frozen=True, slots=True)
class Clip(View):
    """Every number of the database moved into ``[low, high]``; gaps stay gaps.

    Parameters
    ----------
    low, high : float
        Bounds fixed in advance, not read off the data; `low` at most `high`.

    Examples
    --------
    >>> Clip(0, 10).apply((3, -5, 99), Rows(3))
    (3, 0, 10)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(
                f"low must be at most high, got low {self.low} and high {self.high}."
            )

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"clipped to [{self.low:g}, {self.high:g}]"

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the database with its numbers clipped, in canonical form."""
        clipped = self._clip(database)
        return Table.database(clipped) if isinstance(domain, Table) else clipped

    def image(self, domain: Domain) -> Domain | None:
        """Return the domain over the clipped values; None for plain numbers."""
        if isinstance(domain, Rows | Stream):
            return replace(domain, values=self._distinct(domain.values))
        if isinstance(domain, Table):
            return replace(domain, cells=self._distinct(domain.cells) or ())
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require single numbers: no attributes, no clusters, no cell labels apart."""
        require_kind(self, domain, ("rows", "stream", "table", "values"))
        labelled = isinstance(domain, Table) and domain.cells
        if (labelled and getattr(domain, "values_per_cell", 1) != 1) or (
            getattr(domain, "attributes", ()) or getattr(domain, "clusters", None)
        ):
            raise MismatchError(
                f"view {self.name} must see records that are numbers, got records "
                "with attributes, clusters or cells; project on the number first."
            )

    def fills_image(self, domain: Domain) -> bool:
        """Return True where a domain comes out: every clipped record can occur."""
        return self.image(domain) is not None

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return 1 within one record-level unit or norm, else infinity."""
        known = isinstance(source, _RECORD_UNITS)
        return 1 if known and source == target else math.inf

    def _clip(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(self._clip(part) for part in value)
        if isinstance(value, bool) or not isinstance(value, Real) or value != value:
            raise TypeError(
                f"view {self.name} must see numbers, got {type(value).__name__}."
            )
        return min(max(value, self.low), self.high)

    def _distinct(
        self, values: tuple[Hashable, ...] | None
    ) -> tuple[Hashable, ...] | None:
        return values and tuple(dict.fromkeys(self._clip(value) for value in values))


@dataclass(frozen=True, slots=True)
class Truncate(View):
    """At most `per_unit` records of each unit, the first in the fixed order.

    On a table a unit is a cell and the order that of the canonical database; on a
    stream a unit is a user and the order that of time, later points becoming gaps.

    Parameters
    ----------
    per_unit : int
        The cap, fixed in advance; at least 1.

    Notes
    -----
    Not free at record level: removing a kept record admits another one, so the
    sensitivity is 2 from add/remove-one to itself, and 1 from user level to itself.

    Examples
    --------
    >>> table = Table(("u", "v"), values_per_cell=3)
    >>> Truncate(1).apply((("u", 0), ("u", 2), ("v", 1)), table)
    (('u', 0), ('v', 1))
    """

    per_unit: int

    def __post_init__(self) -> None:
        if not isinstance(self.per_unit, int) or self.per_unit < 1:
            raise ValueError(
                f"per_unit must be a positive integer, got {self.per_unit!r}."
            )

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"first {self.per_unit} per unit"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the truncated database, in canonical form."""
        if isinstance(domain, Stream):
            return tuple(self._first_points(row) for row in database)
        assert isinstance(domain, Table)
        kept: list[Hashable] = []
        seen: dict[frozenset[Hashable], int] = {}
        for record in database:
            unit = domain.cells_of(record)
            seen[unit] = seen.get(unit, 0) + 1
            if seen[unit] <= self.per_unit:
                kept.append(record)
        return tuple(kept)

    def image(self, domain: Domain) -> Domain | None:
        """Return a domain that holds the truncated databases."""
        if self._keeps_all(domain):
            return domain
        if isinstance(domain, Stream):
            return replace(domain, regular=False)
        assert isinstance(domain, Table)
        most = min(domain.greatest_size, self.per_unit * len(domain.cells))
        return replace(domain, size=None, max_size=int(most))

    def require_domain(self, domain: Domain) -> None:
        """Require a stream, or a table whose cells are the units."""
        require_kind(self, domain, ("table", "stream"))
        if isinstance(domain, Table) and (domain.multi or not domain.cells):
            raise MismatchError(
                f"view {self.name} must see a table in which every record has exactly "
                "one cell, its unit, got cells missing or overlapping."
            )

    def fills_image(self, domain: Domain) -> bool:
        """Return whether nothing is ever cut off."""
        return self._keeps_all(domain)

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return whether steps of `unit` can be put in an order that respects the cap.

        Steps that take records away come first: on tables of any and of capped size for
        records that come, go or are replaced, and on streams for cells, for windows and
        segments of one user, and for users. On a stream without gaps the points that
        are left are recorded for every user, so that none can come or go.
        """
        if self._keeps_all(domain):
            return True
        if isinstance(domain, Table):
            return domain.size is None and isinstance(unit, _BY_RECORD)
        assert isinstance(domain, Stream)
        if isinstance(unit, WEvent) and not domain.regular:
            return unit.single_user or domain.users == 1
        known = isinstance(unit, Event | LTrajectory | User | WEvent)
        return known and not (domain.regular and getattr(unit, "add_remove", False))

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the proved constants of record and user level, else infinity."""
        known = _TRUNCATION.get(type(source), math.inf)
        return known if source == target else math.inf

    def _keeps_all(self, domain: Domain) -> bool:
        if isinstance(domain, Stream):
            return domain.times <= self.per_unit
        assert isinstance(domain, Table)
        return domain.greatest_size <= self.per_unit

    def _first_points(self, row: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        points = [time for time, value in enumerate(row) if value is not None]
        kept = set(points[: self.per_unit])
        return tuple(v if time in kept else None for time, v in enumerate(row))
