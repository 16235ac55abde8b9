"""One noisy output: its loss, the unit the loss is stated in, and what it sees.

A release makes claims: a loss, per step of a unit, proved on its view or on the whole
domain. Releases of everyday queries are priced at the value level where that is exact.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

from undertow._validate import check_choice
from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.base import Mechanism
from undertow.mechanisms.bounded_noise import ClampedMechanism
from undertow.numeric.exact import format_up
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Graph, Stream, Table
from undertow.spaces.metric import AbsoluteDifference
from undertow.spaces.view import At, Degree, IncidentEdges, Select

Setting = Literal["view", "common"]
"""``"view"``: the mechanism is private on the values of its view.
``"common"``: mechanism and view together are private on the whole domain."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A proved statement about one mechanism.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        The loss per step of `unit`. A plan composes losses about continuous noise and
        says so; no budget takes them.
    unit : Granularity or Metric
        What one step is.
    setting : {"view", "common"}
        ``"view"``: the inner mechanism satisfies the loss on the range of the view:
        between values of the view that are a step apart, and along chains of these.
        ``"common"``: the mechanism composed with its view satisfies it on the domain,
        and reads nothing but the view. There is no default: the same numbers can be
        finite in one setting and infinite in the other.

    Notes
    -----
    Theorem 4.1 (view) and Theorem 4.10 (common) of Guerra-Balboa (2026).
    """

    loss: Loss
    unit: Metric
    setting: Setting

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(
                "loss must be Pure, Approx, ZCDP or GDP, "
                f"got {type(self.loss).__name__}."
            )
        if not isinstance(self.unit, Metric):
            raise TypeError(
                f"unit must be a granularity or metric, got {type(self.unit).__name__}."
            )
        check_choice(self.setting, "setting", choices=("view", "common"))
        if self.is_raw and not self.unit.separates_points:
            raise AssumptionError(
                "an infinite loss (a raw release) needs a unit that separates points, "
                f"got {self.unit.name}; state it in a granularity or the discrete "
                "metric, because a pseudometric still promises equal laws at distance "
                "zero."
            )

    @property
    def is_raw(self) -> bool:
        """Whether the claim promises nothing between different views."""
        # Exact values are fractions, which compare slowly with floats, or infinite.
        return any(
            isinstance(value, float) and value == math.inf
            for value in self.loss.exact_parameters()
        )


@dataclass(frozen=True, slots=True, init=False)
class Release:
    """One noisy output and everything proved about it.

    Parameters
    ----------
    name : str
        How reports call it.
    loss : Pure, Approx, ZCDP or GDP
        The loss per step of `unit`.
    unit : Granularity or Metric
        What one step is.
    view : View
        The deterministic map it sees the data through.
    setting : {"view", "common"}
        See `Claim`; no default.

    See Also
    --------
    Release.with_claims : a release about which several statements are proved.
    """

    name: str
    view: View
    claims: tuple[Claim, ...]

    def __init__(
        self, name: str, loss: Loss, *, unit: Metric, view: View, setting: Setting
    ) -> None:
        self._fill(name, view, (Claim(loss, unit, setting),))

    @classmethod
    def with_claims(cls, name: str, claims: Iterable[Claim], *, view: View) -> Self:
        """Build a release with several claims; each change pays the smallest.

        Examples
        --------
        A Laplace count is private at two granularities at once.

        >>> from undertow.privacy import Pure
        >>> from undertow.spaces import Bounded, Select, Unbounded
        >>> claims = (Claim(Pure(1), Unbounded(), "common"),
        ...           Claim(Pure(1), Bounded(), "common"))
        >>> len(Release.with_claims("count", claims, view=Select("N")).claims)
        2
        """
        release = object.__new__(cls)
        release._fill(name, view, tuple(claims))
        return release

    def _fill(self, name: str, view: View, claims: tuple[Claim, ...]) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be a non-empty string, got {name!r}.")
        if not isinstance(view, View):
            raise TypeError(f"view must be a View, got {type(view).__name__}.")
        if not claims:
            raise ValueError(f"claims of release {name!r} must not be empty.")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "view", view)
        object.__setattr__(self, "claims", claims)

    @property
    def loss(self) -> Loss:
        """The loss of the first claim."""
        return self.claims[0].loss

    @property
    def unit(self) -> Metric:
        """The unit of the first claim."""
        return self.claims[0].unit

    @property
    def setting(self) -> Setting:
        """The setting of the first claim."""
        return self.claims[0].setting


def require_drawn(name: str, losses: Iterable[Loss]) -> None:
    """Refuse to charge losses of continuous noise for what a computer draws.

    Parameters
    ----------
    name : str
        What is charged, for the message.
    losses : iterable of Loss
        What is claimed of it.

    Raises
    ------
    AssumptionError
        If a loss is about continuous noise.
    """
    for loss in losses:
        if loss.continuous:
            raise AssumptionError(
                f"{name} must claim the loss of what is drawn to be charged, got "
                f"{loss} of continuous noise, which no computer draws; give the "
                "mechanism that draws (mechanism.released), or for a Gaussian one its "
                "loss with notion='zcdp'."
            )


# Releases of everyday queries, priced at the value level where that is exact.


def count_release(name: str, mechanism: Mechanism, *, cells: Hashable) -> Release:
    """Return a noisy count of the records in some cells of a table.

    Parameters
    ----------
    name : str
        How reports call it.
    mechanism : Mechanism
        One-dimensional additive noise on the count.
    cells : hashable, or tuple of hashables
        A cell, or several counted together.

    Notes
    -----
    Noise on a number is private in the distance between numbers, so the claim is made
    there: a replacement inside the cells costs nothing, a move across their border one
    step. That is the exact loss of the pair, at every granularity. It is the loss of
    the mechanism as described: for a :class:`~undertow.mechanisms.GaussianMechanism`,
    of continuous noise, in GDP, which no budget takes. What is drawn is priced by
    giving its ``released`` mechanism, in zCDP.

    Raises
    ------
    AssumptionError
        If the mechanism draws on a lattice that does not hold the whole numbers: counts
        that differ by one would be rounded further apart.

    Examples
    --------
    >>> import undertow as ut
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> count = count_release("south", LaplaceMechanism(2), cells="S")
    >>> ut.Plan(ut.Table(["N", "S"]), [count]).loss(ut.Bounded()).loss
    Pure(epsilon=0.5)
    """
    wanted = cells if isinstance(cells, tuple) else (cells,)
    unit = AbsoluteDifference()
    view = Select(*wanted, statistic="count")
    loss = _whole_number_loss(mechanism, unit)
    return Release(name, loss, unit=unit, view=view, setting="view")


def degree_release(name: str, mechanism: Mechanism, *, vertex: int) -> Release:
    """Return a noisy degree of one vertex (thesis, Example 4.3).

    Parameters
    ----------
    name : str
        How reports call it.
    mechanism : Mechanism
        One-dimensional additive noise on the degree.
    vertex : int
        Whose degree.
    """
    unit = AbsoluteDifference()
    view = Degree(vertex)
    loss = _whole_number_loss(mechanism, unit)
    return Release(name, loss, unit=unit, view=view, setting="view")


def _whole_number_loss(mechanism: Mechanism, unit: Metric) -> Loss:
    """Return the loss between whole numbers, which the lattice drawn on must hold."""
    loss = mechanism.loss(unit)
    base = mechanism.base if isinstance(mechanism, ClampedMechanism) else mechanism
    drawn = getattr(base, "released", base)
    step = getattr(drawn, "step", None)
    if step is not None and step > 1:
        raise AssumptionError(
            "mechanism must draw on a lattice that holds the whole numbers, got a step "
            f"of {format_up(step)}: numbers one apart may be rounded a step apart; "
            "state a Release with the loss of the mechanism's released_loss(1), or use "
            "less noise."
        )
    return loss


def blocks_of(domain: Domain) -> Iterator[tuple[str, View]]:
    """Yield the natural parts of a domain: its cells, times or vertices, by name."""
    if isinstance(domain, Table) and domain.cells:
        for cell in domain.cells:
            yield f"{domain.cell} {cell}", Select(cell)
    elif isinstance(domain, Stream):
        for time in range(domain.times):
            yield f"time {time}", At(time)
    elif isinstance(domain, Graph):
        for vertex in range(domain.vertices):
            yield f"vertex {vertex}", IncidentEdges(vertex)
    else:
        raise MismatchError(
            "domain must be a table with cells, a stream or a graph to have natural "
            f"parts, got a {domain.kind}; add releases one by one."
        )
