"""Several releases on one domain, and what they cost together, with the evidence.

A plan keeps its releases and asks the engine for their loss at a granularity. The
report says what change attains it, what each release costs there and would cost alone,
which statements prove it, and what they leave unchecked. Where no finite loss holds a
sentence says why, with the way out.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

from undertow._validate import check_choice, check_count
from undertow.composition._claim_table import ClaimBook, Snapshot
from undertow.composition.engine import (
    EngineResult,
    compose_table,
    merge_columns,
    price_row,
)
from undertow.composition.release import Release, Setting, blocks_of
from undertow.errors import InfiniteLossError, MismatchError, PlanError, UndertowError
from undertow.numeric.exact import Exact, Number, exact, format_up
from undertow.privacy.conversion import convert
from undertow.privacy.loss import Approx, Loss
from undertow.results import Witness, escape_markup, to_plain
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.change import Change, Charge, Column, Row, totals
from undertow.spaces.domain import Graph, Table
from undertow.spaces.influence import change_family
from undertow.spaces.influence._table import record_row, replacement_row
from undertow.spaces.metric import image_or_values
from undertow.spaces.sensitivity import verify_lipschitz
from undertow.spaces.unit import Bounded, Edit, Group, Unbounded
from undertow.spaces.view import (
    At,
    Chain,
    Degree,
    Identity,
    IncidentEdges,
    Lipschitz,
    Select,
    Window,
)

Marked = TypeVar("Marked", bound=Loss)


class Plan:
    """Several releases on one domain.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    releases : iterable of Release
        May be empty; see :meth:`add`.

    Examples
    --------
    Ten regional counts at epsilon 1, the number of residents public:

    >>> import undertow as ut
    >>> regions = [f"region {k}" for k in range(10)]
    >>> plan = ut.Plan(ut.Table(regions))
    >>> for region in regions:
    ...     plan.add(ut.Release(region, ut.Pure(1), unit=ut.Bounded(),
    ...                         view=ut.Select(region), setting="common"))
    >>> plan.loss(ut.Bounded()).loss
    Pure(epsilon=2)
    """

    def __init__(self, domain: Domain, releases: Iterable[Release] = ()) -> None:
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be a Domain, got {type(domain).__name__}.")
        self._domain = domain
        self._releases: list[Release] = []
        self._book = ClaimBook()
        for release in releases:
            self.add(release)

    @property
    def domain(self) -> Domain:
        """The databases the guarantee ranges over."""
        return self._domain

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases in the order they were added."""
        return tuple(self._releases)

    def __len__(self) -> int:
        return len(self._releases)

    def add(self, release: Release) -> None:
        """Add a release; its view must fit the domain.

        Raises
        ------
        ValueError
            If the view names something the domain does not have.
        FalsifiedClaimError
            If a constant the view declares is false; checked on small domains.
        """
        if not isinstance(release, Release):
            raise TypeError(f"release must be a Release, got {type(release).__name__}.")
        if not self._book.has_seen(release.view):
            release.view.require_domain(self._domain)
            verify_constants(release, self._domain)
        self._releases.append(release)
        self._book.enter(release)

    def followed_by(self, release: Release) -> Self:
        """Return a plan with one more release; this one stays as it is."""
        longer = type(self)(self._domain)
        longer._releases, longer._book = self._releases.copy(), self._book.copy()
        longer.add(release)
        return longer

    def add_each(self, loss: Loss, *, unit: Metric, setting: Setting) -> None:
        """Add one release of the same loss for every cell, time or vertex.

        Examples
        --------
        >>> import undertow as ut
        >>> fleet = ut.Table(range(20), cell="hospital", multi=True, max_cells=3)
        >>> plan = ut.Plan(fleet)
        >>> plan.add_each(ut.Approx(1, "1e-5"), unit=ut.Bounded(), setting="common")
        >>> plan.loss(ut.Bounded()).loss
        Approx(epsilon=6, delta=0.00006)
        """
        for name, view in blocks_of(self._domain):
            self.add(Release(name, loss, unit=unit, view=view, setting=setting))

    def with_setting(self, setting: Setting) -> Self:
        """Return the same plan with every claim stated in `setting`."""
        check_choice(setting, "setting", choices=("view", "common"))
        return type(self)(
            self._domain,
            (
                Release.with_claims(
                    release.name,
                    [type(c)(c.loss, c.unit, setting) for c in release.claims],
                    view=release.view,
                )
                for release in self._releases
            ),
        )

    def loss(
        self,
        target: Granularity,
        *,
        on_infinite: Literal["raise", "report"] = "raise",
        notion: str | None = None,
        delta: Number | None = None,
    ) -> Report:
        """Compose all releases at one granularity.

        Parameters
        ----------
        target : Granularity
            What one protected unit is.
        on_infinite : {"raise", "report"}
            Whether an infinite loss raises or is reported with its witness.
        notion : {"pure", "gdp", "zcdp", "approx"}, optional
            What to sum in; by default the first in which every release has a claim.
        delta : number, optional
            Spent once on converting Gaussian and zCDP losses that meet (ε, δ) ones.

        Raises
        ------
        InfiniteLossError
            If nothing finite holds and `on_infinite` is ``"raise"``.
        VacuousGranularityError
            If the granularity has no neighbours in the domain.
        """
        check_choice(on_infinite, "on_infinite", choices=("raise", "report"))
        if delta is not None:
            exact(delta, "delta", at_most=1)
        result = self.evaluate(target, notion=notion, delta=delta)
        report = self._report(target, result, delta=delta)
        if report.loss.is_infinite and on_infinite == "raise":
            raise infinite_loss_error(self, target, report)
        return report

    def loss_at_distance(
        self,
        distance: int,
        *,
        target: Granularity,
        notion: str | None = None,
        delta: Number | None = None,
    ) -> Report:
        """Compose for databases `distance` steps apart, keeping each view's distance.

        Tighter than group privacy of :meth:`loss`, because only what a step can do to a
        view is multiplied, view by view.
        """
        steps = check_count(distance, "distance")
        grouped = target if steps == 1 else Group(target, steps)
        return self.loss(grouped, on_infinite="report", notion=notion, delta=delta)

    def move_cost(self, source: Hashable, destination: Hashable) -> Loss:
        """Return the loss of replacing a record of one cell by one of another.

        Equal cells mean a replacement inside the cell. For tables whose cells do not
        overlap: a price per move instead of one number for all of them.
        """
        columns, losses, owners = self._claims()
        row = replacement_row(
            self._table(), columns=columns, source=source, destination=destination
        )
        return self._marked(price_row(row, losses=losses, releases=owners))

    def records_loss(self, changes: Mapping[Hashable, int]) -> Loss:
        """Return the loss between tables that differ by these records.

        Parameters
        ----------
        changes : mapping of hashable to int
            Cell -> number of records added (positive) or removed (negative).
        """
        columns, losses, owners = self._claims()
        row = record_row(self._table(), columns=columns, changes=changes)
        return self._marked(price_row(row, losses=losses, releases=owners))

    def _marked(self, loss: Marked) -> Marked:
        """Return a loss of the plan, about continuous noise if a claim is."""
        return loss.of_continuous_noise(self._book.continuous)

    def _table(self) -> Table:
        if not isinstance(self._domain, Table):
            raise MismatchError(
                f"moves between cells need a table, got a {self._domain.kind}."
            )
        return self._domain

    def table(
        self, targets: Sequence[Granularity], *, delta: Number | None = None
    ) -> tuple[Report, ...]:
        """Compose at several granularities, infinite losses reported."""
        return tuple(
            self.loss(target, on_infinite="report", delta=delta) for target in targets
        )

    def evaluate(
        self,
        target: Granularity,
        *,
        notion: str | None = None,
        delta: Number | None = None,
    ) -> EngineResult:
        """Run the engine and return its raw result, for callers that go on from it."""
        target.require_domain(self._domain)
        self._require_releases()
        return compose_table(
            self._domain, target, table=self._book.table(), notion=notion, delta=delta
        )

    def _require_releases(self) -> None:
        if not self._releases:
            raise PlanError(
                "a plan must have at least one release, got none; add one first."
            )

    def _claims(self) -> tuple[list[Column], list[Loss], list[int]]:
        """Return all claims one by one, with the release each belongs to."""
        self._require_releases()
        book, owners = self._book, self._book.release_codes()
        columns = [book.columns[at] for at in book.column_codes().tolist()]
        losses = [book.losses[at] for at in book.loss_codes().tolist()]
        return columns, losses, list(range(len(losses)) if owners is None else owners)

    def _report(
        self, target: Granularity, result: EngineResult, *, delta: Number | None
    ) -> Report:
        loss = self._marked(result.loss)
        no_guarantee = isinstance(loss, Approx) and loss.no_guarantee
        # Views that differ only in their start can move equally far.
        alike = merge_columns(result, self._book.shape_codes())
        releases = Snapshot(self._releases)
        return Report(
            granularity=target.name,
            loss=loss,
            witness=change_witness(result.row.change),
            contributions=Contributions(releases, result, delta=delta),
            sequential=self._marked(
                sequential_baseline(self._domain, target, result=alike, delta=delta)
            ),
            theorems=theorems_of(
                self._book.representatives,
                target,
                notion=loss.notion,
                domain=self._domain,
            ),
            unprotected=target.invariants(self._domain),
            warnings=warnings_of(target, self._domain, no_guarantee=no_guarantee),
            assumptions=(
                *assumptions_of(self._book.representatives, self._domain),
                *((CONTINUOUS_NOISE,) if self._book.continuous else ()),
                *result.notes,
            ),
            tight=result.tight,
            profile=tuple(
                self._marked(pair)
                for pair, _ in result.front
                if isinstance(pair, Approx)
            ),
        )


def change_witness(change: Change) -> Witness:
    """Return a change class as the witness of a report."""
    return Witness("change", change.summary, dict(change.details))


# What a plan costs at one granularity, with the evidence.

_PARAMETERS = ("epsilon", "delta", "rho", "mu")


@dataclass(frozen=True, slots=True)
class Report:
    """The composed loss of a plan at one granularity.

    Parameters
    ----------
    granularity : str
        The name of the protected unit.
    loss : Pure, Approx, ZCDP or GDP
        The composed loss; infinite where nothing can be promised.
    witness : Witness or None
        The change that costs most; None if there is no release.
    contributions : mapping of str to Loss
        What each release costs at the witness, the untouched left out.
    sequential : Loss
        The baseline: each release at its own worst case, added up.
    theorems : tuple of str
        The statements that prove the loss.
    unprotected : tuple of str
        What the granularity publishes in the clear.
    warnings : tuple of str
        What a reader must know before relying on the number.
    assumptions : tuple of str
        Hypotheses that were declared and cannot be checked here.
    tight : bool
        Whether a pair of databases attains the loss through these bounds.
    profile : tuple of Approx
        For approximate losses, the pairs that hold together; `loss` is their maximum
        coordinate by coordinate.
    """

    granularity: str
    loss: Loss
    witness: Witness | None
    contributions: Mapping[str, Loss] = field(hash=False)
    sequential: Loss
    theorems: tuple[str, ...]
    unprotected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    tight: bool = True
    profile: tuple[Approx, ...] = ()

    def to_approx(self, delta: Number) -> Approx:
        r"""Return the loss as one :math:`(\varepsilon, \delta)` statement.

        Examples
        --------
        >>> from undertow.privacy import GDP
        >>> report = Report("bounded", GDP(1) + GDP(1), None, {}, GDP(1), ())
        >>> round(report.to_approx("1e-5").epsilon, 6)
        6.57297
        """
        converted = convert(self.loss, Approx, delta=delta)
        assert isinstance(converted, Approx)
        return converted

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values; losses not of its notion are None."""
        shown = self.loss.to_dict()
        record: dict[str, Any] = {
            "granularity": self.granularity,
            "notion": self.loss.notion,
            **{name: to_plain(shown.get(name)) for name in _PARAMETERS},
            "witness": None if self.witness is None else self.witness.to_dict(),
            "contributions": to_plain(self.contributions),
            "sequential": to_plain(self.sequential),
            "theorems": list(self.theorems),
            "unprotected": list(self.unprotected),
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "tight": self.tight,
        }
        if len(self.profile) > 1:
            record["profile"] = to_plain(self.profile)
        return record

    def __rich__(self) -> str:
        rows = self._rows()
        return "\n".join(f"[bold]{key}[/bold]  {escape_markup(v)}" for key, v in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th>"
            f"<td>{html.escape(text)}</td></tr>"
            for key, text in self._rows()
        )
        return f"<table>{cells}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("granularity", self.granularity), ("loss", str(self.loss))]
        if self.witness is not None:
            rows.append(("at worst", self.witness.summary))
        rows.append(("without views", str(self.sequential)))
        rows += [("theorem", text) for text in self.theorems]
        rows += [("not protected", text) for text in self.unprotected]
        rows += [("assumed", text) for text in self.assumptions]
        rows += [("warning", text) for text in self.warnings]
        return rows


def reports_table(reports: Sequence[Report]) -> str:
    """Lay reports side by side as plain text, one line a granularity."""
    header = ("granularity", "loss", "without views", "at worst")
    lines = [header] + [
        (
            report.granularity,
            str(report.loss),
            str(report.sequential),
            "" if report.witness is None else report.witness.summary,
        )
        for report in reports
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[3]])
        for line in lines
    ).rstrip()


# The sentence a user reads when no finite loss holds, with the way out.


def infinite_loss_error(
    plan: Plan, target: Granularity, report: Report
) -> InfiniteLossError:
    """Return the refusal: what breaks, the pair that shows it, and the way out."""
    culprits = [name for name, loss in report.contributions.items() if loss.is_infinite]
    what = " and ".join(repr(name) for name in culprits[:2]) or "the plan"
    more = f" and {len(culprits) - 2} more" if len(culprits) > 2 else ""
    message = (
        f"the loss at {target.name} level must be finite, got inf: {what}{more} "
        f"cannot bound '{_change(report)}'{_pair(report)}; {_way_out(plan, target)}."
    )
    return InfiniteLossError(
        message, witness=report.witness, source=_source(plan, target)
    )


def _change(report: Report) -> str:
    return "any change" if report.witness is None else report.witness.summary


def _pair(report: Report) -> str:
    details = {} if report.witness is None else report.witness.details
    pair = details.get("example")
    if isinstance(pair, tuple) and len(pair) == 2:
        first, second = (_database(database) for database in pair)
        return f" ({first} versus {second})"
    return ""


def _database(database: object) -> str:
    """Write a multiset of records as people do; other databases as they are."""
    if isinstance(database, tuple) and not any(isinstance(r, tuple) for r in database):
        return "{" + ", ".join(map(str, database)) + "}"
    return str(database)


def _way_out(plan: Plan, target: Granularity) -> str:
    """Quote the price of the common-domain claim where that would be finite."""
    if any(c.setting == "view" for r in plan.releases for c in r.claims):
        try:
            price = plan.with_setting("common").loss(target, on_infinite="report")
        except UndertowError:
            price = None
        if price is not None and not price.loss.is_infinite:
            return (
                "prove each release private on the whole domain and state it in the "
                f"common setting, where the same losses compose to {price.loss}"
            )
    return (
        "state the losses in a unit that connects such databases, or ask for a "
        "granularity that the units imply"
    )


def _source(plan: Plan, target: Granularity) -> str | None:
    views = any(c.setting == "view" for r in plan.releases for c in r.claims)
    if isinstance(target, Bounded) and views:
        return "thesis, Example 2.16 (paper, Example II.9)"
    return None


# Which statements prove a composed loss, and what they leave unchecked.

# A declared constant is checked on every pair of domains up to this size; beyond, it is
# an assumption of the report.
_CHECKED_DATABASES = 200

# Statements of Guerra-Balboa (2026) are named "thesis", those of Guerra-Balboa,
# Miranda-Pascual, Parra-Arnau and Strufe (2024) "paper".
_COMPOSITION = {
    ("pure", "view"): "thesis, Theorem 4.1 (paper, Theorem V.2)",
    ("pure", "common"): "thesis, Theorem 4.10 (paper, Theorem V.5)",
    ("approx", "view"): "paper, Theorem VI.4",
    ("approx", "common"): "paper, Theorem VI.7, corrected",
    ("zcdp", "view"): "paper, Theorem VI.13",
    ("zcdp", "common"): "paper, Theorem VI.14",
    ("gdp", "view"): "thesis, Theorem 4.16 (paper, Theorem VI.21)",
    ("gdp", "common"): "thesis, Theorem 4.18 (paper, Theorem VI.22)",
}
_SEQUENTIAL = {
    "pure": "thesis, Corollary 4.2",
    "approx": "paper, Theorem VI.5",
    "zcdp": "paper, Theorem VI.15",
    "gdp": "thesis, Corollary 4.17",
}
_BOUNDED_DISJOINT = {
    "pure": "thesis, Corollary 4.12",
    "approx": "paper, Theorem VI.7 at two blocks",
    "zcdp": "paper, Theorem VI.14 at two blocks",
    "gdp": "thesis, Corollary 4.23",
}
_GROUP = {
    "pure": "thesis, Proposition A.7",
    "approx": "paper, Theorem VI.3",
    "zcdp": "paper, Theorem VI.12",
    "gdp": "thesis, Theorem 4.15",
}

CONTINUOUS_NOISE = (
    "noise is continuous, which no computer draws; what is drawn has the loss of the "
    "mechanism's released_loss, in zCDP for Gaussian noise"
)
"""What a plan assumes that holds claims about continuous noise."""

CORRELATION_WARNING = (
    "one person's data is split into several protected units; the guarantee presumes "
    "that these units are independent of each other, and says nothing about what they "
    "reveal together when they are correlated"
)


def theorems_of(
    releases: Sequence[Release], target: Granularity, *, notion: str, domain: Domain
) -> tuple[str, ...]:
    """Return the statements behind the composed loss, the general one first."""
    settings = {claim.setting for release in releases for claim in release.claims}
    names = [_COMPOSITION[notion, setting] for setting in sorted(settings)]
    units = {claim.unit for release in releases for claim in release.claims}
    if all(isinstance(release.view, Identity) for release in releases):
        names.append(_SEQUENTIAL[notion])
    elif settings == {"common"} and isinstance(target, Bounded):
        if units == {target} and _disjoint(releases, domain):
            names.append(_BOUNDED_DISJOINT[notion])
    if settings == {"common"} and isinstance(target, Unbounded | Edit):
        if any(isinstance(unit, Bounded) for unit in units):
            names.append("thesis, Corollary A.14, sharpened to the edit distance")
    if units - {target}:
        names.append(f"{_GROUP[notion]} (steps of a unit other than the target)")
    return tuple(names)


def _disjoint(releases: Sequence[Release], domain: Domain) -> bool:
    if isinstance(domain, Table) and domain.multi:
        return False  # different cells may hold the same record
    seen: set[object] = set()
    for release in releases:
        if not isinstance(release.view, Select):
            return False
        cells = set(release.view.cells)
        if seen & cells:
            return False
        seen |= cells
    return True


def assumptions_of(releases: Sequence[Release], domain: Domain) -> tuple[str, ...]:
    """Return the hypotheses only the owner of data and mechanisms can vouch for."""
    facts = ["every stated loss holds, for every earlier output if steps are adaptive"]
    if any(claim.setting == "common" for r in releases for claim in r.claims):
        facts.append("every common-domain release reads nothing but its view")
    declared = [_constant(r, domain) for r in releases]
    found = dict.fromkeys(text for texts in declared for text in texts)
    return (*facts, *_declared_caps(domain), *found)


def verify_constants(release: Release, domain: Domain) -> None:
    """Check the constants a view declares, where the domain is small enough.

    Raises
    ------
    FalsifiedClaimError
        With the pair that moves further than declared.
    """
    for view, source in _declaring(release.view, domain):
        if source.count() <= _CHECKED_DATABASES:
            verify_lipschitz(view, source)


def _constant(release: Release, domain: Domain) -> list[str]:
    """Return the declared constants that were not checked, in words."""
    return [
        f"{view.name} moves by at most {format_up(view.constant)} ({view.unit_to.name})"
        f" per step ({view.unit_from.name}) (declared)"
        for view, source in _declaring(release.view, domain)
        if source.count() > _CHECKED_DATABASES
    ]


def _declaring(view: View, domain: Domain) -> Iterator[tuple[Lipschitz, Domain]]:
    """Yield the parts of a view that declare a constant, with what they see."""
    if isinstance(view, Lipschitz):
        yield view, domain
    elif isinstance(view, Chain):
        yield from _declaring(view.first, domain)
        yield from _declaring(view.second, image_or_values(view.first, domain))


def _declared_caps(domain: Domain) -> list[str]:
    """Return the limits the domain declares, which the loader must enforce."""
    caps = []
    if isinstance(domain, Table) and domain.max_cells is not None:
        caps.append(f"every record lies in at most {domain.max_cells} cells")
    if isinstance(domain, Table) and domain.max_size is not None:
        caps.append(f"the table has at most {domain.max_size} records")
    if isinstance(domain, Graph) and domain.max_degree is not None:
        caps.append(f"every vertex has at most {domain.max_degree} edges")
    return [f"{cap} (declared; enforce it where the data is loaded)" for cap in caps]


def warnings_of(
    target: Granularity, domain: Domain, *, no_guarantee: bool
) -> tuple[str, ...]:
    """Return what a reader must know before relying on the number."""
    found = []
    if target.splits_person:
        found.append(CORRELATION_WARNING)
    if no_guarantee:
        found.append("delta has reached 1: nothing is promised at this granularity")
    return tuple(found)


# What each release costs at the worst change, worked out when it is looked at.


class Contributions(Mapping[str, Loss]):
    """Name of a release -> its loss at the witness; the untouched are left out.

    A plan may have a million releases and a reader who wants one number, so nothing is
    computed before it is asked for.

    Parameters
    ----------
    releases : sequence of Release
        Those composed, in order; a name used twice is numbered.
    result : EngineResult
        Their composition.
    delta : number, optional
        As given to the composition.
    """

    def __init__(
        self,
        releases: Sequence[Release],
        result: EngineResult,
        *,
        delta: Number | None = None,
    ) -> None:
        self._releases, self._result, self._delta = releases, result, delta

    @cached_property
    def _shares(self) -> dict[str, Loss]:
        shares = self._result.shares(delta=self._delta)
        names = unique_names([release.name for release in self._releases])
        return {
            name: share.of_continuous_noise(
                any(claim.loss.continuous for claim in release.claims)
            )
            for name, share, release in zip(names, shares, self._releases, strict=True)
            if any(share.exact_parameters())
        }

    def __getitem__(self, name: str) -> Loss:
        return self._shares[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def __repr__(self) -> str:
        return repr(self._shares)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._shares,)


def unique_names(names: Sequence[str]) -> Sequence[str]:
    """Return names, numbered by position where one is used twice."""
    times = Counter(names)
    if len(times) == len(names):
        return names
    taken = {name for name, count in times.items() if count == 1}
    return [
        name if name in taken else _numbered(name, at, taken)
        for at, name in enumerate(names)
    ]


def _numbered(name: str, at: int, taken: set[str]) -> str:
    numbered = f"{name} #{at + 1}"
    while numbered in taken:
        numbered += "'"
    return numbered


# What the releases would cost without views: each at its own worst change.


def sequential_baseline(
    domain: Domain,
    target: Granularity,
    *,
    result: EngineResult,
    delta: Number | None,
) -> Loss:
    """Return the sum of the releases' own worst cases: composition without views.

    Always valid, and often several times the composed loss, because no single change
    is the worst case of every release.
    """
    known: dict[Hashable, Exact] = {}
    reach = {
        at: _reach(domain, target, column, known)
        for at, column in enumerate(result.table.columns)
    }
    apart = Row(Change("apart", "every release at its own worst change"), reach)
    values = totals(apart.price(result.tally.charges), result.tally.coordinates)
    return result.tally.loss(values, delta=delta)


def _reach(
    domain: Domain,
    target: Granularity,
    column: Column,
    known: dict[Hashable, Exact],
) -> Exact:
    """Return the most one change moves a column, asked once per shape of view."""
    key = (_shape(column.view, domain), column.unit, column.setting)
    if key not in known:
        family = change_family(domain, target, columns=(column,))
        known[key] = family.maximise([Charge((0,), _influence)]).value
    return known[key]


def _influence(influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
    return influences


def _shape(view: View, domain: Domain) -> Hashable:
    """Return what a view's reach depends on.

    Cells, vertices and times are interchangeable in the neighbour relations, so the
    reach of a view of one of them is that of any other. Cells of a table whose records
    are listed column by column are not: one of them may have no record.
    """
    if isinstance(view, At | Degree | IncidentEdges):
        return type(view)
    if isinstance(view, Window):
        return (Window, view.length)
    if isinstance(view, Select) and not getattr(domain, "attributes", ()):
        return (Select, len(view.cells), view.statistic)
    return view
