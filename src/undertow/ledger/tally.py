r"""All that was charged, merged as far as the sum stays exact.

The cost of a claim at influence :math:`a` is :math:`\varepsilon a` for pure losses,
:math:`\rho a^2` for zCDP and :math:`\mu^2 a^2` for GDP: linear in the parameter. Claims
about the same view in the same unit can therefore be added before they are priced, and
a history of a hundred thousand counts of one column costs as much as one of them. What
is not linear (approximate losses, pure ones read as GDP) is counted, not added.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from operator import is_not

import numpy as np

from undertow.composition import Claim, Release, compose_coded
from undertow.composition.engine_cost import squared_rate, tag_of
from undertow.composition.headroom import loss_of
from undertow.errors import NotionMismatchError
from undertow.ledger.near import TimeIndex, reach_of
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.change import Column
from undertow.spaces.domain import Stream

__all__ = ["Tally"]

_ZERO: dict[str, Loss] = {
    "pure": Pure(0),
    "zcdp": ZCDP(0),
    "gdp": GDP(0),
    "approx": Approx(0, 0),
}


@dataclass(frozen=True, slots=True)
class _Item:
    """Releases that share their claims: how many, or one with their sum."""

    columns: tuple[Column, ...]
    losses: tuple[Loss, ...]
    count: int
    adds: bool

    @property
    def rate(self) -> Exact:
        """The parameter that the others are in proportion to."""
        return self.losses[0].exact_parameters()[0]

    def __add__(self, other: _Item) -> _Item:
        if not self.adds:
            return _Item(self.columns, self.losses, self.count + other.count, False)
        pairs = zip(self.losses, other.losses, strict=True)
        return _Item(self.columns, tuple(a + b for a, b in pairs), 1, True)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Releases on top of a tally: the items they change, and losses with them."""

    releases: tuple[Release, ...] = ()
    changed: dict[Hashable, _Item] = field(default_factory=dict)
    losses: dict[Granularity, Loss] = field(default_factory=dict)


class Tally:
    """The releases of a ledger, in one notion.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    notion : {"pure", "zcdp", "gdp", "approx"}
        That of the budgets this tally is compared with.
    """

    def __init__(self, domain: Domain, notion: str) -> None:
        self._domain, self._notion = domain, notion
        self._items: dict[Hashable, _Item] = {}
        self._rates: dict[Hashable, Loss] = {}
        self._index = TimeIndex()
        self._near = notion != "approx" and isinstance(domain, Stream)
        self._known: dict[Granularity, Loss] = {}
        self._trial = _Trial()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, releases: Iterable[Release]) -> None:
        """Write down releases that were charged."""
        several = tuple(releases)
        self._known = {
            target: self.loss(target, extra=several) for target in self._known
        }
        for key, item in self._try(several).changed.items():
            if key not in self._items:
                # All claims of a release are about one view.
                self._index.add(key, item.columns[0].view)
            self._items[key] = item
        self._trial = _Trial()

    def loss(self, target: Granularity, *, extra: Iterable[Release] = ()) -> Loss:
        """Return the loss at a granularity, `extra` included.

        Raises
        ------
        NotionMismatchError
            If a release makes no claim that can be stated in the notion.
        """
        several = tuple(extra)
        if not several:
            if target not in self._known:
                self._known[target] = self._whole(target, self._items)
            return self._known[target]
        trial = self._try(several)
        if target not in trial.losses:
            trial.losses[target] = self._after(target, trial)
        return trial.losses[target]

    def _try(self, several: tuple[Release, ...]) -> _Trial:
        """Return what some releases would change; the last answer is kept."""
        asked = self._trial.releases
        if len(asked) != len(several) or any(map(is_not, asked, several)):
            self._trial = _Trial(several, self._with(several), {})
        return self._trial

    def _after(self, target: Granularity, trial: _Trial) -> Loss:
        changed = trial.changed
        reach = reach_of(target) if self._near and self._items else None
        if reach is None:
            return self._whole(target, {**self._items, **changed})
        near = self._index.near([r.view for r in trial.releases], reach=reach)
        if near is None or len(near) > len(self._items) // 2:
            return self._whole(target, {**self._items, **changed})
        local = {key: self._items[key] for key in near}
        found, before = self._whole(target, {**local, **changed}), self.loss(target)
        return before if found.within(before) else found

    def _whole(self, target: Granularity, items: Mapping[Hashable, _Item]) -> Loss:
        if not items:
            return _ZERO[self._notion]
        if len(items) == 1:
            ((key, item),) = items.items()
            if item.adds and 0 < item.rate < math.inf:
                return self._scaled(target, key, item)
        return self._compose(target, items.values())

    def _scaled(self, target: Granularity, key: Hashable, item: _Item) -> Loss:
        """Return the loss of one item: its rate times the loss at rate one."""
        known = self._rates.get((target, key))
        if known is None:
            losses = tuple(_times(x, 1 / item.rate) for x in item.losses)
            unit = _Item(item.columns, losses, 1, True)
            known = self._rates[target, key] = self._compose(target, [unit])
        return _times(known, item.rate)

    def alone(self, target: Granularity, releases: Iterable[Release]) -> Loss:
        """Return the loss of some releases, as if nothing else had been charged."""
        return Tally(self._domain, self._notion).loss(target, extra=releases)

    def _with(self, releases: Iterable[Release]) -> dict[Hashable, _Item]:
        """Return the items that releases add to, after the addition."""
        changed: dict[Hashable, _Item] = {}
        for release in releases:
            key, item = self._read(release)
            known = changed.get(key) or self._items.get(key)
            changed[key] = item if known is None else known + item
        return changed

    def _read(self, release: Release) -> tuple[Hashable, _Item]:
        stated = [
            (_stated(claim.loss, self._notion), claim) for claim in release.claims
        ]
        usable = [(loss, claim) for loss, claim in stated if loss is not None]
        if not usable:
            held = ", ".join(sorted({c.loss.notion for c in release.claims}))
            raise NotionMismatchError(
                f"release {release.name!r} must make a claim that can be stated in "
                f"{self._notion}, got {held} only; give the ledger a budget in another "
                "notion, or add a claim."
            )
        losses = tuple(loss for loss, _ in usable)
        columns = tuple(_column(release, claim) for _, claim in usable)
        ratios = _ratios(losses, self._notion)
        adds = ratios is not None
        return (columns, ratios if adds else losses), _Item(columns, losses, 1, adds)

    def _compose(self, target: Granularity, items: Iterable[_Item]) -> Loss:
        columns: dict[Column, int] = {}
        losses: dict[Loss, int] = {}
        claims: list[tuple[int, int, int]] = []
        first = 0
        counts = []
        for item in items:
            for column, loss in zip(item.columns, item.losses, strict=True):
                at = columns.setdefault(column, len(columns))
                claims.append((at, losses.setdefault(loss, len(losses)), first))
                counts.append(item.count)
            first += item.count
        codes = _repeated(claims, counts)
        single = len(codes) == first
        return compose_coded(
            self._domain,
            target,
            columns=list(columns),
            losses=list(losses),
            column_codes=codes[:, 0],
            loss_codes=codes[:, 1],
            release_codes=None if single else codes[:, 2],
            notion=self._notion,
        ).loss


def _times(loss: Loss, factor: Exact) -> Loss:
    return loss_of(loss, loss.exact_parameters()[0] * factor)


def _column(release: Release, claim: Claim) -> Column:
    return Column(release.view, claim.unit, claim.setting)


def _stated(loss: Loss, notion: str) -> Loss | None:
    """Return the loss in the form that adds up in `notion`; None if it has none."""
    tag = tag_of(loss)
    if notion == "pure":
        return Pure(loss.exact_parameters()[0]) if tag == "pure" else None
    if notion == "zcdp":
        return ZCDP(squared_rate(loss, "zcdp")) if tag != "approx" else None
    if notion == "gdp":
        return loss if tag in ("pure", "gdp") else None
    return loss if tag in ("pure", "approx") else None


def _ratios(losses: tuple[Loss, ...], notion: str) -> tuple[Fraction, ...] | None:
    """Return each loss over the first; None where losses must not be added.

    The cheapest of several claims is found per change. It is the same claim for two
    releases whose losses are in proportion, and only then can they be added.
    """
    if notion == "approx" or (
        notion == "gdp" and any(tag_of(x) == "pure" for x in losses)
    ):
        return None
    values = [loss.exact_parameters()[0] for loss in losses]
    if len(values) == 1:
        return (Fraction(1),)
    if values[0] == 0 or math.inf in values:
        return None
    return tuple(Fraction(value) / Fraction(values[0]) for value in values)


def _repeated(claims: list[tuple[int, int, int]], counts: list[int]) -> np.ndarray:
    """Write each claim as often as its release was charged, releases numbered on."""
    codes = np.array(claims, dtype=np.int64)
    times = np.array(counts, dtype=np.int64)
    if (times == 1).all():
        return codes
    long = np.repeat(codes, times, axis=0)
    starts = np.repeat(np.cumsum(times) - times, times)
    long[:, 2] += np.arange(len(long)) - starts
    return long
