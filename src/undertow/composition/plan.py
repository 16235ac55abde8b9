"""Several releases on one domain, and what they cost together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, Self, TypeVar

from undertow._validate import check_choice, check_count
from undertow.composition.baseline import sequential_baseline
from undertow.composition.claim_book import ClaimBook, Snapshot
from undertow.composition.contribution import Contributions
from undertow.composition.engine import EngineResult, compose_table, price_row
from undertow.composition.engine_result import merge_columns
from undertow.composition.query import blocks_of
from undertow.composition.refusal import infinite_loss_error
from undertow.composition.release import Release, Setting
from undertow.composition.report import Report
from undertow.composition.theorem import (
    CONTINUOUS_NOISE,
    assumptions_of,
    theorems_of,
    verify_constants,
    warnings_of,
)
from undertow.errors import MismatchError, PlanError
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Approx, Loss
from undertow.privacy.result import Witness
from undertow.spaces.base import Domain, Granularity, Metric
from undertow.spaces.change import Change, Column
from undertow.spaces.domain import Table
from undertow.spaces.granularity import Group
from undertow.spaces.influence.table import record_row, replacement_row

__all__ = ["Plan"]

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
