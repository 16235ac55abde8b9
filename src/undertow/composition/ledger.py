"""Budgets in memory: at several granularities at once, or of every window forever.

`Ledger` decides from the declared views of the releases spent so far. `WindowLedger`
keeps every window of an endless stream within a budget, in memory that does not grow.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from undertow._validate import check_count
from undertow.composition._charge import loss_of
from undertow.composition.allocation import Probe
from undertow.composition.document import (
    domain_from_document,
    domain_to_document,
    exact_text,
    granularity_to_document,
    plan_from_document,
    release_to_document,
)
from undertow.composition.plan import Plan, Report
from undertow.composition.release import Release, Setting, require_drawn
from undertow.errors import (
    BudgetExceeded,
    MismatchError,
    NotionMismatchError,
    PlanError,
    UndertowError,
)
from undertow.numeric.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.unit import parse_granularity

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
            require_budget(target, budget, domain=domain)
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
        return loss_of(budget.notion, probe.room())

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
                target.name: exact_texts(loss) for target, loss in after.items()
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
                target.name: {"notion": budget.notion, "exact": exact_texts(budget)}
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


def require_budget(target: object, budget: object, *, domain: Domain) -> None:
    """Raise unless `budget` is a loss, at a granularity that fits the domain."""
    if not isinstance(target, Granularity):
        raise TypeError(
            "budgets must be keyed by granularities such as User(), "
            f"got {type(target).__name__}."
        )
    target.require_domain(domain)
    if not isinstance(budget, Loss):
        raise TypeError(
            f"the budget at {target.name} level must be a loss such as Pure(1), "
            f"got {type(budget).__name__}."
        )


def exact_texts(loss: Loss) -> list[str]:
    """Return the parameters of a loss that add up, as exact fractions."""
    return [exact_text(value) for value in loss.exact_parameters()]


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


# A w-event budget on an endless stream, in memory that does not grow.


@dataclass(frozen=True, slots=True, order=True)
class _Sum:
    """A sum whose infinite terms can be taken away again: how many, and the rest."""

    infinite: int = 0
    finite: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Exact) -> Self:
        return cls(1) if value == math.inf else cls(0, Fraction(value))

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(self.infinite + other.infinite, self.finite + other.finite)

    def __sub__(self, other: _Sum) -> _Sum:
        return _Sum(self.infinite - other.infinite, self.finite - other.finite)

    def times(self, count: int) -> _Sum:
        return _Sum(self.infinite * count, self.finite * count)

    def value(self) -> Exact:
        return math.inf if self.infinite else self.finite


class WindowLedger:
    """Keep every window of `w` consecutive times within a budget, forever.

    For releases stated at event level in the view setting, each seeing the present
    time, or the latest few. Remembers ``w - 1`` times plus the longest view; a spend
    takes time in proportion to the longest view, whatever `w`.

    Parameters
    ----------
    w : int
        Length of the protected window.
    budget : Pure, ZCDP or GDP
        The most that may be lost in any window.
    longest_view : int
        The most times one release may see.

    Notes
    -----
    One entry per time may change within a window, so a release on a view moves by the
    number of times the window and the view share. Pure losses add with that number;
    for zCDP and GDP the number is squared, so views of several times are refused there.

    Examples
    --------
    >>> ledger = WindowLedger(3, Pure("0.7"))
    >>> for epsilon in ("0.1", "0.1", "0.5"):
    ...     ledger.spend(Pure(epsilon))
    ...     ledger.advance()
    >>> ledger.fits(Pure("0.2")), ledger.fits(Pure("0.1"))
    (False, True)
    """

    def __init__(self, w: int, budget: Loss, *, longest_view: int = 1) -> None:
        self.w = check_count(w, "w")
        if not isinstance(budget, Pure | ZCDP | GDP):
            raise NotionMismatchError(
                f"budget must be Pure, ZCDP or GDP, got {type(budget).__name__}."
            )
        self.budget = budget
        self.longest_view = check_count(longest_view, "longest_view")
        self._time = 0
        # Per remembered time its charge; per recent time the window that ends there.
        most = min(self.w - 1 + self.longest_view, sys.maxsize)
        self._charges = deque([_Sum()], maxlen=most)
        self._windows = deque([_Sum()], maxlen=self.longest_view)

    @property
    def time(self) -> int:
        """The present time, from 0."""
        return self._time

    def advance(self, steps: int = 1) -> None:
        """Move to a later time; what no window can reach any more is forgotten."""
        steps = check_count(steps, "steps")
        for _ in range(min(steps, self.w + self.longest_view)):
            kept = self._charges
            leaves = kept[-self.w] if len(kept) >= self.w else _Sum()
            kept.append(_Sum())
            self._windows.append(self._windows[-1] - leaves)
        self._time += steps

    def loss(self) -> Loss:
        """Return the largest loss of a window that a release may still add to."""
        return loss_of(self.budget.notion, max(self._windows).value())

    def fits(self, loss: Loss, *, view_length: int = 1) -> bool:
        """Return whether :meth:`spend` would accept the release."""
        return self._after(loss, view_length)[2].within(self.budget)

    def spend(self, loss: Loss, *, view_length: int = 1) -> None:
        """Charge a release on the latest `view_length` times, or refuse it whole.

        Raises
        ------
        BudgetExceeded
            If a window would pass the budget; nothing is charged then.
        AssumptionError
            If the loss is about continuous noise, which nobody draws.
        """
        charge, windows, after = self._after(loss, view_length)
        if not after.within(self.budget):
            raise BudgetExceeded(
                f"the release must fit every window of {self.w} times, got {after} > "
                f"{self.budget} at time {self._time}; wait, or spend less."
            )
        for back in range(1, view_length + 1):
            self._charges[-back] += charge
            self._windows[-back] = windows[-back]

    def _after(self, loss: Loss, view_length: int) -> tuple[_Sum, list[_Sum], Loss]:
        """Return the charge per time, the windows after it, and the largest of them."""
        if type(loss) is not type(self.budget):
            raise NotionMismatchError(
                f"loss must be {type(self.budget).__name__} like the budget, "
                f"got {type(loss).__name__}."
            )
        require_drawn("the release", (loss,))
        length = check_count(view_length, "view_length")
        if length > self.longest_view or length > self._time + 1:
            most = min(self.longest_view, self._time + 1)
            raise ValueError(f"view_length must be at most {most}, got {view_length}.")
        if length > 1 and not isinstance(loss, Pure):
            raise NotionMismatchError(
                "a view of several times must be charged as Pure, got "
                f"{type(loss).__name__}; use Ledger for other notions."
            )
        charge = _Sum.of(loss.exact_parameters()[0])
        windows = list(self._windows)
        for back in range(1, length + 1):  # a window that ends there shares this many
            shared = min(length - back + 1, self.w)
            windows[-back] += charge.times(shared)
        after = loss_of(self.budget.notion, max(windows).value())
        return charge, windows, after
