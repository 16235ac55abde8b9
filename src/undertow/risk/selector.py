"""Which bound to use: every row of the table, the least value, and why others fail.

Each row needs a kind of guarantee and some hypotheses on the threat. A row whose
hypotheses fail is listed with the reason and never computed: without that, bounds for
an attacker who knows nothing would be quoted against one who knows the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from undertow._validate import check_probability
from undertow.errors import AssumptionError, NotApplicable
from undertow.privacy import (
    GDP,
    Approx,
    Bound,
    Calibration,
    Loss,
    Pure,
    TradeOff,
    group,
    to_plain,
)
from undertow.risk.bounds import AccountedTradeOff, success_bound
from undertow.risk.bounds._parts import BARE, calibrated_epsilon, disagreement
from undertow.risk.bounds.baselines import PROGRAM_SIZE, Baselines, ThreatLike
from undertow.risk.bounds.tradeoff import tradeoff_bound, uniform_tradeoff_bound
from undertow.risk.bounds.variation import (
    baseline_bound,
    exact_guess_bound,
    prior_free_bound,
    uniform_guess_bound,
    uniform_prior_bound,
    variation_bound,
)
from undertow.risk.exact import advantage
from undertow.risk.threat import Threat
from undertow.theorem import Attempt, Theorem, attempt, best


@dataclass(frozen=True, slots=True)
class BoundRow:
    """One row of the table: its value where it applies, or the reason why not."""

    name: str
    applies: bool
    reason: str
    bound: Bound | None = None

    @property
    def value(self) -> float | None:
        """The bound on the advantage, or None where the row does not apply."""
        return None if self.bound is None else self.bound.value


@dataclass(frozen=True, slots=True)
class BoundReport:
    """The best bound and the whole table.

    Parameters
    ----------
    best : Bound
        The exact advantage where it is known, else the least of the rows that apply.
    name : str
        The row it comes from.
    rows : tuple of BoundRow
        All rows, in the order of the table.
    """

    best: Bound
    name: str
    rows: tuple[BoundRow, ...]

    @property
    def value(self) -> float:
        """The best bound on the advantage."""
        return self.best.value

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, ready for JSON."""
        rows = [
            {"name": r.name, "applies": r.applies, "reason": r.reason, "value": r.value}
            for r in self.rows
        ]
        return {"best": to_plain(self.best), "name": self.name, "rows": to_plain(rows)}


def best_bound(
    guarantee: Guarantee, threat: ThreatLike | Baselines, *, source: Any = None
) -> BoundReport:
    """Compute every bound on the advantage that applies, and the least of them.

    Parameters
    ----------
    guarantee : Loss, TradeOff or float
        What the mechanism promises for replacing a record, or for adding or removing
        one if the threat says so by its ``adjacency``; a number is its total variation.
    threat : Threat or Baselines
        Whom it is promised against.
    source : Channel or mechanism with finitely many outputs, optional
        The output law, where it is known; adds the exact advantage, which is then the
        best whatever the guarantee claims. Needs a Threat.

    Returns
    -------
    BoundReport
        The exact advantage if it is known, else the least bound; its row, and all rows
        with value or reason.

    Raises
    ------
    TypeError
        For a guarantee of another kind, or a `source` without a Threat.

    Notes
    -----
    Table 5.1 of [1]_ with the sharpenings of the page "Bounds on the advantage". A row
    below the exact advantage (Theorem 5.3) shows that the guarantee is false. A
    guarantee for adding or removing a record is first restated for replacing one, as
    proved on the page "Reconstruction advantage". Not checkable: independent records.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> report = best_bound(Approx(1, "1e-5"), Threat(Prior.uniform(10)))
    >>> report.name, round(report.value, 6)
    ('uniform guess', 0.131977)
    """
    case = _Case.of(guarantee, threat)
    exact = _UNKNOWN_LAW if source is None else _exact_row(source, threat)
    choice = best(
        RULES,
        case.bound,
        rank=lambda bound: bound.value,
        otherwise="no bound of the table applies",
    )
    rows = (*(case.row(each) for each in choice.attempts), exact)
    if exact.bound is not None:
        return BoundReport(exact.bound, exact.name, rows)
    return BoundReport(choice.value, choice.theorem.name, rows)


def named_bound(
    guarantee: Guarantee, threat: ThreatLike | Baselines, *, name: str
) -> Bound:
    """Return the bound of one row, or refuse with the reason.

    Parameters
    ----------
    guarantee, threat
        As for :func:`best_bound`.
    name : str
        Name of the row.

    Raises
    ------
    AssumptionError
        If the row does not apply, such as every row that needs an attacker without
        knowledge when he has some.

    Examples
    --------
    >>> from undertow.risk.bounds import Baselines
    >>> named_bound(Pure(1), Baselines(0.1, 0.1, 0.1), name="baselines").theorem
    'Proposition 5.13'
    """
    rules = {rule.name: rule for rule in RULES}
    if name not in rules:
        raise ValueError(f"name must be one of {sorted(rules)}, got {name!r}.")
    tried = attempt(rules[name], _Case.of(guarantee, threat).bound)
    if tried.value is None:
        raise AssumptionError(
            f"the row {name!r} does not apply: it {tried.refusal}; use best_bound, "
            "which takes the rows that do."
        )
    return tried.value


def best_success_bound(
    guarantee: Loss | TradeOff, threat: ThreatLike | Baselines
) -> Bound:
    """Bound the success of reconstruction against a threat without knowledge.

    Raises
    ------
    AssumptionError
        If the attacker knows anything of the target: the bounds are false then.

    Examples
    --------
    >>> from undertow.risk.bounds import Baselines
    >>> round(best_success_bound(Pure(1), Baselines(0.1, 0.1, 0.1)).value, 6)
    0.271828
    """
    known, replaced = _baselines(threat), guarantee
    if isinstance(guarantee, Loss | TradeOff) and known.adjacency == "add-remove":
        replaced = for_replacement(guarantee)
    bound = success_bound(
        replaced, best_guess=known.best_guess, knowledge=known.knowledge
    )
    return replace(bound, unchecked=_hypotheses(bound.unchecked, known))


def calibrate_black_box(
    target: float, threat: ThreatLike | Baselines, *, delta: float = 0.0
) -> Calibration:
    """Return the largest epsilon whose best bound stays within a target.

    Parameters
    ----------
    target : float
        The advantage allowed, in (0, 1].
    threat : Threat or Baselines
        Whom the promise is against.
    delta : float, optional
        Of the approximate guarantee; 0 for pure DP.

    Returns
    -------
    Calibration
        For the ``adjacency`` of the threat; rounded down, the bound evaluated at it;
        infinite where the target is not below the largest advantage there is.

    Raises
    ------
    InfeasibleTarget
        If every bound passes the target at epsilon 0.

    Notes
    -----
    Holds for every mechanism with the guarantee; one whose output law is known allows
    more. Each row grows with epsilon, and so does their least. Shown digits should be
    cut, not rounded: 4.720592 is 4.7205.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> cells = Prior.uniform(1000)
    >>> round(calibrate_black_box(0.1, Threat(cells)).value, 6)
    4.720592
    >>> round(calibrate_black_box(0.1, Threat.membership(cells)).value, 6)
    0.401341
    """
    known, lost = _baselines(threat), check_probability(delta, "delta")
    ceiling = disagreement(known.collision)

    def bound(epsilon: float) -> Bound:
        if epsilon == math.inf:
            return Bound(ceiling, "total disclosure", BARE, quantity="advantage")
        loss = Approx(epsilon, lost) if lost else Pure(epsilon)
        return best_bound(loss, known).best

    return calibrated_epsilon(target, bound, ceiling=ceiling)


_REPLACING = "replacing one record by another"
_RESTATED = ", restated from adding or removing a record to replacing one"
_UNKNOWN_LAW = BoundRow(
    "exact advantage",
    False,
    "needs the output law of the mechanism; use undertow.risk.advantage",
)


@dataclass(frozen=True, slots=True)
class _Case:
    """A threat, the guarantee against it, and what that is for replacing a record."""

    threat: Baselines
    stated: Guarantee
    replaced: Guarantee

    @classmethod
    def of(cls, guarantee: Guarantee, threat: ThreatLike | Baselines) -> _Case:
        known, stated = _baselines(threat), _check_kind(guarantee)
        return cls(known, stated, _replaced(stated, known))

    def bound(self, rule: Rule) -> Bound:
        """Return the bound of a rule with all hypotheses that it rests on here."""
        bound = rule.bound(self.threat, self.replaced)
        trusted, checked = bound.unchecked, bound.checked
        if self.threat.derived:  # what the table needs was read off the threat itself
            trusted = tuple(h for h in trusted if h in BARE)
            checked = (*checked, *rule.checked)
        if isinstance(self.stated, AccountedTradeOff):  # what its curve rests on
            trusted += tuple(h for h in self.stated.unchecked if h not in trusted)
        same = self.threat.adjacency == "replace"
        return Bound(
            bound.value,
            bound.theorem,
            _hypotheses(trusted, self.threat),
            checked,
            "advantage",
            bound.witness,
            bound.tight if same else None,
        )

    def row(self, tried: Attempt[Rule, Bound]) -> BoundRow:
        """Return the row of the table: the bound, or why it does not apply."""
        if tried.value is None:
            return BoundRow(tried.theorem.name, False, str(tried.refusal))
        met = ", ".join(("a suitable guarantee", *tried.theorem.checked))
        words = "" if self.threat.adjacency == "replace" else _RESTATED
        return BoundRow(tried.theorem.name, True, f"has {met}{words}", tried.value)


def _replaced(guarantee: Guarantee, threat: Baselines) -> Guarantee:
    """Return the guarantee for replacing a record."""
    if threat.adjacency == "replace":
        return guarantee
    if isinstance(guarantee, Loss | TradeOff):
        return for_replacement(guarantee)
    # By the triangle inequality, through the records without the target.
    return min(1.0, 2.0 * check_probability(guarantee, "guarantee"))


def _hypotheses(trusted: tuple[str, ...], threat: Baselines) -> tuple[str, ...]:
    """Return what is taken on trust, naming the change that the guarantee is for."""
    if threat.adjacency == "replace":
        return trusted
    return tuple(
        h.replace(_REPLACING, "adding or removing one record") for h in trusted
    )


def _exact_row(source: Any, threat: ThreatLike | Baselines) -> BoundRow:
    if not isinstance(threat, Threat):
        raise TypeError(
            "threat must be a Threat for the exact advantage, got "
            f"{type(threat).__name__}; leave source out."
        )
    return BoundRow(
        "exact advantage", True, "has the output law", advantage(source, threat)
    )


def _baselines(threat: ThreatLike | Baselines) -> Baselines:
    return threat if isinstance(threat, Baselines) else Baselines.of(threat)


def _check_kind(guarantee: Guarantee) -> Guarantee:
    if isinstance(guarantee, bool) or not isinstance(
        guarantee, Loss | TradeOff | float | int
    ):
        raise TypeError(
            "guarantee must be a Loss, a TradeOff or a total variation, got "
            f"{type(guarantee).__name__}; for a mechanism use undertow.risk.advantage."
        )
    return guarantee


# The table of bounds: what each needs of the guarantee and of the threat.

Guarantee = Loss | TradeOff | float


def for_replacement(guarantee: Loss | TradeOff) -> Loss | TradeOff:
    r"""Restate a guarantee for adding or removing a record for replacing one.

    Notes
    -----
    A replacement is a removal, then an addition, so this is a group of two:
    :math:`2\varepsilon`; :math:`(2\varepsilon, (1 + e^\varepsilon)\delta)`;
    :math:`2\mu`; :math:`4\rho`; :math:`f(1 - f)`, where f is first made to hold in
    both orders.

    Examples
    --------
    >>> for_replacement(Pure(1)), for_replacement(GDP(1))
    (Pure(epsilon=2), GDP(mu=2))
    """
    if isinstance(guarantee, Loss):
        return group(guarantee, 2)
    return guarantee.symmetrised().group(2)


class Rule(Theorem):
    """A row of the table before it meets a threat.

    Parameters
    ----------
    name : str
        The name of the row.
    source : str
        The statements behind it.
    kinds : tuple of type
        The guarantees that it takes.
    compute : callable
        Returns the bound for a guarantee and a threat.
    needs : tuple of str
        What it needs of the threat, which is checked.
    published : bool
        Whether the thesis states it; the others are proved on the theory page.
    """

    def __init__(
        self,
        name: str,
        source: str,
        kinds: tuple[type, ...],
        compute: Callable[[Any, Baselines], Bound],
        needs: tuple[str, ...] = (),
        *,
        published: bool = True,
    ) -> None:
        self.name, self.source, self.published = name, source, published
        self.checked = needs
        self._kinds, self._compute = kinds, compute

    def obstacle(self, case: Baselines, promise: Guarantee, /) -> str | None:
        """Say what keeps the row from applying, or None."""
        if not isinstance(promise, self._kinds):
            kinds = ", ".join(kind.__name__ for kind in self._kinds)
            return f"needs a guarantee of kind {kinds}"
        failed = {
            "no knowledge": case.knowledge,
            "exact success": not case.exact,
            "finite prior": not case.pmf,
            "uniform prior": not case.uniform,
            f"at most {PROGRAM_SIZE} records": case.program is None,
        }
        missing = [need for need in self.checked if failed[need]]
        return f"needs {', '.join(missing)}" if missing else None

    def bound(self, case: Baselines, promise: Guarantee, /) -> Bound:
        """Return the bound on the advantage for replacing a record."""
        obstacle = self.obstacle(case, promise)
        if obstacle is not None:
            raise NotApplicable(obstacle)
        return self._compute(promise, case)


_BLIND = ("no knowledge",)
_CURVES = (Pure, Approx, GDP, TradeOff)


def _by_variation(guarantee: Any, threat: Baselines) -> Bound:
    return variation_bound(guarantee, collision=threat.collision, sharpen=False)


def _by_tradeoff(guarantee: Any, threat: Baselines) -> Bound:
    return tradeoff_bound(
        guarantee,
        best_guess=threat.best_guess,
        worst_guess=threat.worst_guess,
        collision=threat.collision,
    )


def _by_baseline(guarantee: Any, threat: Baselines) -> Bound:
    return baseline_bound(
        guarantee,
        best_guess=threat.best_guess,
        worst_guess=threat.worst_guess,
        collision=threat.collision,
    )


def _by_program(guarantee: Any, threat: Baselines) -> Bound:
    assert threat.program is not None
    return threat.program(guarantee.epsilon)


RULES = (
    Rule("total variation", "Theorem 5.2", (Loss, TradeOff, float, int), _by_variation),
    Rule(
        "prior-free cap",
        "prior-free cap tanh(epsilon/4)",
        (Pure,),
        lambda g, t: prior_free_bound(g.epsilon),
        published=False,
    ),
    Rule(
        "uniform-prior cap",
        "uniform-prior cap",
        (Pure,),
        lambda g, t: uniform_prior_bound(g.epsilon, len(t.pmf)),
        ("uniform prior",),
        published=False,
    ),
    Rule("trade-off", "Theorem 5.11(b)", _CURVES, _by_tradeoff, _BLIND),
    Rule(
        "uniform trade-off",
        "Theorem 5.11(c), uniform prior",
        (GDP, TradeOff),
        lambda g, t: uniform_tradeoff_bound(g, len(t.pmf)),
        (*_BLIND, "exact success", "uniform prior"),
    ),
    Rule("baselines", "Proposition 5.13", (Pure, Approx), _by_baseline, _BLIND),
    Rule(
        "exact guess",
        "Theorem 5.15",
        _CURVES,
        lambda g, t: exact_guess_bound(g, np.array(t.pmf)),
        (*_BLIND, "exact success", "finite prior"),
    ),
    Rule(
        "uniform guess",
        "Corollary 5.16",
        (Pure, Approx),
        lambda g, t: uniform_guess_bound(g, len(t.pmf)),
        (*_BLIND, "exact success", "uniform prior"),
    ),
    Rule(
        "linear program",
        "linear program over pure-DP mechanisms",
        (Pure,),
        _by_program,
        (f"at most {PROGRAM_SIZE} records",),
        published=False,
    ),
)
