"""A budget at several granularities at once, spent release by release."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from undertow.composition.document import domain_from_document, plan_from_document
from undertow.composition.document_writer import (
    domain_to_document,
    granularity_to_document,
    release_to_document,
)
from undertow.composition.headroom import Probe, loss_of
from undertow.composition.plan import Plan
from undertow.composition.release import Release, Setting, require_drawn
from undertow.composition.report import Report
from undertow.errors import (
    BudgetExceeded,
    MismatchError,
    NotionMismatchError,
    PlanError,
    UndertowError,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.granularity import parse_granularity

__all__ = ["Ledger", "Receipt"]

# What reading a text that is no ledger can raise.
_NO_LEDGER = (
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    UndertowError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one spend: its place in the chain and the losses after it."""

    index: int
    release: str
    losses: Mapping[str, Loss]
    hash: str


class Ledger:
    r"""A budget at one or more granularities, never overspent.

    The ledger decides from the declared view of each release, never from the data, so
    mechanism, budget and view may all be chosen from earlier outputs.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    budgets : mapping of Granularity to Loss
        The most that may be lost at each granularity.

    Notes
    -----
    Adaptive choice of mechanism, budget and view. Pure: for a fixed pair the ratio of
    two transcripts is a product of per-step ratios, each at most
    :math:`e^{\varepsilon_i a_i}`, so a cap on every change class holds for the whole
    interaction. zCDP: the same by a supermartingale argument. Approximate: adding both
    coordinates is a valid filter, by backward induction over the steps. GDP: the filter
    :math:`\sum_i \mu_i^2 a_i^2 \le B^2` is the theorem of [1]_.

    References
    ----------
    .. [1] A. Smith and A. Thakurta, *Fully Adaptive Composition for Gaussian
       Differential Privacy*, 2022.

    Examples
    --------
    >>> import undertow as ut
    >>> roads = ut.Ledger(ut.Table(["A", "B", "C"]), {ut.Unbounded(): ut.Pure(1)})
    >>> def count(road, epsilon):
    ...     return ut.Release(f"count {road}", ut.Pure(epsilon), unit=ut.Unbounded(),
    ...                       view=ut.Select(road), setting="view")
    >>> for road in "AB":
    ...     receipt = roads.spend(count(road, "0.5"))
    >>> roads.loss(ut.Unbounded()).loss
    Pure(epsilon=0.5)
    """

    def __init__(self, domain: Domain, budgets: Mapping[Granularity, Loss]) -> None:
        if not budgets:
            raise ValueError("budgets must name at least one granularity, got none.")
        for target, budget in budgets.items():
            if not isinstance(target, Granularity):
                raise TypeError(
                    "budgets must be keyed by granularities such as User(), "
                    f"got {type(target).__name__}."
                )
            target.require_domain(domain)
            if not isinstance(budget, Loss):
                raise TypeError(
                    f"the budget at {target.name} level must be a loss such as "
                    f"Pure(1), got {type(budget).__name__}."
                )
        self._plan = Plan(domain)
        self._budgets = dict(budgets)
        self._entries: list[dict[str, Any]] = []

    @property
    def domain(self) -> Domain:
        """The databases the guarantee ranges over."""
        return self._plan.domain

    @property
    def budgets(self) -> dict[Granularity, Loss]:
        """The most that may be lost at each granularity."""
        return dict(self._budgets)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was spent, in order."""
        return self._plan.releases

    def quote(self, release: Release) -> dict[Granularity, Loss]:
        """Return the loss at every granularity if `release` were accepted.

        Raises
        ------
        AssumptionError
            If a claim of the release is about continuous noise, which nobody draws.
        """
        require_drawn(
            f"release {release.name!r}", (claim.loss for claim in release.claims)
        )
        trial = self._plan.followed_by(release)
        return {
            target: trial.evaluate(target, notion=budget.notion).loss
            for target, budget in self._budgets.items()
        }

    def spend(self, release: Release) -> Receipt:
        """Charge a release, or refuse and leave everything as it was.

        Raises
        ------
        BudgetExceeded
            If any granularity's budget would be passed.
        AssumptionError
            If a claim of the release is about continuous noise, which nobody draws.
        """
        after = self.quote(release)
        over = {
            target.name: (loss, self._budgets[target])
            for target, loss in after.items()
            if not loss.within(self._budgets[target])
        }
        if over:
            listed = "; ".join(f"{k}: {a} > {b}" for k, (a, b) in over.items())
            raise BudgetExceeded(
                f"release {release.name!r} must fit every budget, got {listed}; "
                "spend less, or use a view that exhausted units do not touch.",
                witness=over,
            )
        entry = self._entry(release, after)
        self._plan.add(release)
        self._entries.append(entry)
        losses = {target.name: loss for target, loss in after.items()}
        return Receipt(entry["index"], release.name, losses, entry["hash"])

    def loss(self, target: Granularity) -> Report:
        """Return what has been lost at any granularity, budgeted or not."""
        budget = self._budgets.get(target)
        if len(self._plan) == 0:
            zero = (Pure if budget is None else type(budget)).zero()
            return Report(target.name, zero, None, {}, zero, ("nothing was released",))
        notion = None if budget is None else budget.notion
        return self._plan.loss(target, on_infinite="report", notion=notion)

    def remaining(
        self, target: Granularity, *, view: View, unit: Metric, setting: Setting
    ) -> Loss:
        """Return the largest loss a further release on `view` may have.

        The head-room of the change classes that touch the view: a view no exhausted
        unit touches may still have all of it. Infinite if no change touches the view.

        Raises
        ------
        InfiniteLossError
            If no loss fits, not even zero: the unit does not connect what a change at
            the target can do to the view.
        """
        budget = self._budget(target)
        probe = Probe(self._plan, target, budget, view=view, unit=unit, setting=setting)
        return loss_of(budget, probe.room())

    def _budget(self, target: Granularity) -> Loss:
        if target not in self._budgets:
            names = ", ".join(known.name for known in self._budgets)
            raise MismatchError(
                f"target must have a budget in this ledger, got {target.name}; "
                f"budgets are for {names}."
            )
        budget = self._budgets[target]
        if not isinstance(budget, Pure | ZCDP | GDP):
            raise NotionMismatchError(
                f"remaining must be asked of a pure, zCDP or GDP budget, got {budget}; "
                "use quote for approximate ones."
            )
        return budget

    def _entry(
        self, release: Release, after: Mapping[Granularity, Loss]
    ) -> dict[str, Any]:
        body = {
            "index": len(self._entries),
            "release": _written(release_to_document, release),
            "losses": {
                target.name: _exact_texts(loss) for target, loss in after.items()
            },
            "previous": self._head(),
        }
        return {**body, "hash": _hash(body)}

    def _head(self) -> str:
        return self._entries[-1]["hash"] if self._entries else _hash(self._terms())

    def _terms(self) -> dict[str, Any]:
        """Return what was agreed before the first spend."""
        return {
            "domain": _written(domain_to_document, self.domain),
            "budgets": {
                target.name: {"notion": budget.notion, "exact": _exact_texts(budget)}
                for target, budget in self._budgets.items()
            },
        }

    def to_json(self) -> str:
        """Return the ledger as text: exact fractions, hash-chained entries.

        The first entry is chained to the domain and the budgets, and the last hash is
        repeated at the end.

        Raises
        ------
        PlanError
            If the ledger holds a domain, granularity, view or unit that only exists as
            Python code.
        """
        domain_to_document(self.domain)
        for release in self.releases:
            release_to_document(release)
        for target in self._budgets:
            granularity_to_document(target)
        record = {**self._terms(), "entries": self._entries, "head": self._head()}
        return json.dumps(record, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a ledger back, spending every entry again.

        Raises
        ------
        PlanError
            If anything was edited, removed or reordered, or the text is no ledger.
        """
        try:
            document = json.loads(text)
            ledger = cls(
                domain_from_document(document["domain"]),
                {
                    parse_granularity(name): _read_budget(entry)
                    for name, entry in document["budgets"].items()
                },
            )
            ledger._replay(document["domain"], document["entries"])
            unaltered = json.loads(ledger.to_json()) == document
        except _NO_LEDGER as fault:
            reason = str(fault).rstrip(".") or type(fault).__name__
            raise PlanError(f"text must be a ledger, got an error: {reason}.") from None
        if not unaltered:
            raise PlanError(
                "text must be a ledger as it was written, got another head or key: it "
                "was edited, or entries were removed."
            )
        return ledger

    def _replay(self, domain: Any, entries: list[dict[str, Any]]) -> None:
        if not entries:
            return
        releases = [entry["release"] for entry in entries]
        plan = plan_from_document({"domain": domain, "releases": releases})
        for release, entry in zip(plan.releases, entries, strict=True):
            self.spend(release)
            if _hash(entry) != _hash(self._entries[-1]):
                raise PlanError(
                    f"entry {len(self._entries) - 1} must be as it was written, got "
                    "another: it was edited, or entries were removed or reordered"
                )


def _written(write: Callable[[Any], dict[str, Any]], item: Any) -> dict[str, Any]:
    """Return the document of an item, or a note that it exists as Python code only."""
    try:
        return write(item)
    except PlanError:
        return {"python": repr(item)}


def _exact_texts(loss: Loss) -> list[str]:
    return [
        "inf" if value == math.inf else str(Fraction(value))
        for value in loss.exact_parameters()
    ]


def _read_budget(entry: Mapping[str, Any]) -> Loss:
    build: dict[str, Callable[..., Loss]] = {
        "pure": Pure,
        "approx": Approx,
        "zcdp": ZCDP,
        "gdp": GDP.from_square,
    }
    return build[entry["notion"]](*entry["exact"])


def _hash(body: Mapping[str, Any]) -> str:
    content = {key: value for key, value in body.items() if key != "hash"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
