"""A budget at several granularities at once, spent release by release."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from undertow.composition.document import plan_from_document
from undertow.composition.document_writer import domain_to_document, release_to_document
from undertow.composition.plan import Plan
from undertow.composition.release import Release, Setting
from undertow.composition.report import Report
from undertow.errors import BudgetExceeded, NotionMismatchError, PlanError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.granularity import parse_granularity

__all__ = ["Ledger", "Receipt"]

_FIRST_HASH = "0" * 64


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
        """Return the loss at every granularity if `release` were accepted."""
        trial = Plan(self.domain, (*self._plan.releases, release))
        return {
            target: self._loss(trial, target, budget).loss
            for target, budget in self._budgets.items()
        }

    def spend(self, release: Release) -> Receipt:
        """Charge a release, or refuse and leave everything as it was.

        Raises
        ------
        BudgetExceeded
            If any granularity's budget would be passed.
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
        if len(self._plan) == 0:
            budget = self._budgets.get(target, Pure(0))
            zero = type(budget).zero()
            return Report(target.name, zero, None, {}, zero, ("nothing was released",))
        budget = self._budgets.get(target)
        if budget is None:
            return self._plan.loss(target, on_infinite="report")
        return self._loss(self._plan, target, budget)

    def remaining(
        self, target: Granularity, *, view: View, unit: Metric, setting: Setting
    ) -> Loss:
        """Return the largest loss a further release on `view` may have.

        The head-room of the change classes that touch the view: a view no exhausted
        unit touches may still have all of it. Infinite if no change touches the view.

        Notes
        -----
        Exact, by Dinkelbach's method: each round takes the class that is overdrawn most
        and lowers the loss to what that class allows; finitely many classes, finitely
        many rounds.
        """
        budget = self._budgets[target]
        if not isinstance(budget, Pure | ZCDP | GDP):
            raise NotionMismatchError(
                f"remaining must be asked of a pure, zCDP or GDP budget, got {budget}; "
                "use quote for approximate ones."
            )
        cap = budget.exact_parameters()[0]
        reach = self._reach(target, budget, view, unit, setting)
        if reach == 0 or cap == float("inf"):
            return _loss_of(budget, float("inf"))
        room: Exact = Fraction(0) if reach == float("inf") else Fraction(cap) / reach
        while room > 0:
            probe = Release(
                "probe", _loss_of(budget, room), unit=unit, view=view, setting=setting
            )
            trial = Plan(self.domain, (*self._plan.releases, probe))
            total, share = _total_and_share(trial, target, budget)
            if total <= cap:
                break
            touched = share / room
            room = max(Fraction(0), (cap - (total - share)) / touched)
        return _loss_of(budget, room)

    def _reach(
        self,
        target: Granularity,
        budget: Loss,
        view: View,
        unit: Metric,
        setting: Setting,
    ) -> Exact:
        """Return what a unit loss on the view costs at worst, alone."""
        one = Release(
            "probe", _loss_of(budget, 1), unit=unit, view=view, setting=setting
        )
        report = self._loss(Plan(self.domain, [one]), target, budget)
        return report.loss.exact_parameters()[0]

    def _loss(self, plan: Plan, target: Granularity, budget: Loss) -> Report:
        return plan.loss(target, on_infinite="report", notion=budget.notion)

    def _entry(
        self, release: Release, after: Mapping[Granularity, Loss]
    ) -> dict[str, Any]:
        previous = self._entries[-1]["hash"] if self._entries else _FIRST_HASH
        body = {
            "index": len(self._entries),
            "release": release_to_document(release),
            "losses": {
                target.name: _exact_texts(loss) for target, loss in after.items()
            },
            "previous": previous,
        }
        return {**body, "hash": _hash(body)}

    def to_json(self) -> str:
        """Return the ledger as text: exact fractions, hash-chained entries."""
        return json.dumps(
            {
                "domain": domain_to_document(self.domain),
                "budgets": {
                    target.name: {
                        "notion": budget.notion,
                        "exact": _exact_texts(budget),
                    }
                    for target, budget in self._budgets.items()
                },
                "entries": self._entries,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a ledger back, spending every entry again.

        Raises
        ------
        PlanError
            If an entry was edited, removed or reordered, or the text is no ledger.
        """
        try:
            document = json.loads(text)
            budgets = {
                parse_granularity(name): _read_budget(entry)
                for name, entry in document["budgets"].items()
            }
            entries = document["entries"]
            plan = _read_plan(document["domain"], entries)
        except (KeyError, TypeError, json.JSONDecodeError) as fault:
            raise PlanError(f"text must be a ledger, got {fault!r}.") from None
        ledger = cls(plan.domain, budgets)
        for release, entry in zip(plan.releases, entries, strict=True):
            if ledger.spend(release).hash != entry.get("hash"):
                raise PlanError(
                    f"entry {entry.get('index')} must match its hash, got another: the "
                    "ledger was edited, or entries were removed or reordered."
                )
        return ledger


def _loss_of(budget: Loss, parameter: Exact) -> Loss:
    """Return the loss of the budget's notion with this additive parameter."""
    if isinstance(budget, GDP):
        return GDP.from_square(parameter)
    return type(budget)(parameter)  # type: ignore[call-arg]  # Pure and ZCDP take one


def _total_and_share(
    trial: Plan, target: Granularity, budget: Loss
) -> tuple[Exact, Exact]:
    result = trial.evaluate(target, notion=budget.notion)
    share = result.contribution(len(trial) - 1)[0]
    return result.loss.exact_parameters()[0], share


def _exact_texts(loss: Loss) -> list[str]:
    return [
        "inf" if value == float("inf") else str(Fraction(value))
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


def _read_plan(domain: Mapping[str, Any], entries: list[dict[str, Any]]) -> Plan:
    if entries:
        releases = [entry["release"] for entry in entries]
        return plan_from_document({"domain": domain, "releases": releases})
    # A document needs a release; the domain is read with one that is then left out.
    probe = {"name": "probe", "loss": {"epsilon": 0}, "unit": "free-lunch"}
    document = {"domain": domain, "releases": [{**probe, "setting": "view"}]}
    return Plan(plan_from_document(document).domain)


def _hash(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
