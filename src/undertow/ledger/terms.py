"""What is agreed before the first charge: data set, domain, budgets and models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any, Self

from undertow.composition import domain_to_document
from undertow.composition.document import domain_from_document
from undertow.composition.document_writer import granularity_to_document
from undertow.errors import LedgerError
from undertow.ledger.record import (
    canonical,
    loss_from_document,
    loss_to_document,
    plain_text,
)
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Loss, Pure
from undertow.privacy.result import Calibration
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain import Stream
from undertow.spaces.granularity import LTrajectory, WEvent, parse_granularity

__all__ = ["LeakageBudget", "Limit", "Terms"]


@dataclass(frozen=True, slots=True)
class LeakageBudget:
    r"""The most that all releases may leak to an attacker who knows a correlation.

    Leakages do not add up, but DP levels do: if a theorem bounds the leakage of every
    :math:`\varepsilon`-DP mechanism by a function :math:`f(\varepsilon)` that does not
    decrease, all releases together stay within the budget as long as their summed level
    stays below the largest :math:`\varepsilon'` with :math:`f(\varepsilon') \le B`.

    Parameters
    ----------
    leakage : number
        The budget :math:`B`.
    epsilon : number
        The level :math:`\varepsilon'`; rounded down.
    granularity : Granularity
        The change of one record that the theorem takes the level at.
    theorem : str
        The statement that turns the level into the leakage.
    model : mapping
        The correlation model as a document, or its fingerprint; kept, never read.

    See Also
    --------
    LeakageBudget.from_calibration : the level found by ``undertow.correlation``.
    """

    leakage: Number
    epsilon: Number
    granularity: Granularity
    theorem: str
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        exact(self.leakage, "leakage")
        exact(self.epsilon, "epsilon")
        if not isinstance(self.granularity, Granularity):
            raise TypeError(
                "granularity must be a Granularity such as User(), got "
                f"{type(self.granularity).__name__}."
            )

    @classmethod
    def from_calibration(
        cls,
        calibration: Calibration,
        *,
        granularity: Granularity,
        model: Mapping[str, Any],
    ) -> Self:
        """Take level, leakage and theorem from ``undertow.correlation.calibrate``.

        Examples
        --------
        >>> import undertow as ut
        >>> from undertow.correlation import Blocks, calibrate
        >>> found = calibrate(Blocks.of_size(5, groups=2000), 1.0)
        >>> LeakageBudget.from_calibration(
        ...     found, granularity=ut.User(), model={"kind": "blocks"}
        ... ).epsilon
        0.2
        """
        return cls(
            leakage=getattr(calibration, "target", calibration.achieves.value),
            epsilon=calibration.value,
            granularity=granularity,
            theorem=calibration.achieves.theorem,
            model=model,
        )

    def to_document(self) -> dict[str, Any]:
        """Return the budget as a document, numbers as exact fractions."""
        return {
            "leakage": str(exact(self.leakage)),
            "epsilon": str(exact(self.epsilon)),
            "granularity": granularity_to_document(self.granularity),
            "theorem": self.theorem,
            "model": dict(self.model),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a budget back."""
        return cls(
            leakage=Fraction(document["leakage"]),
            epsilon=Fraction(document["epsilon"]),
            granularity=parse_granularity(document["granularity"]),
            theorem=str(document["theorem"]),
            model=dict(document["model"]),
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """One inequality that every charge must keep.

    Parameters
    ----------
    name : str
        The granularity, or ``model:`` and the name of a model.
    granularity : Granularity
        Where the loss is taken.
    budget : Loss
        The most it may be.
    """

    name: str
    granularity: Granularity
    budget: Loss


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a ledger; the first entry is chained to them.

    Parameters
    ----------
    dataset : str
        The data set whose budget this is.
    domain : Domain
        The databases the guarantee ranges over.
    budgets : mapping of Granularity to Loss
        The most that may be lost at each granularity.
    models : mapping of str to LeakageBudget
        Correlation models by name.
    created : str
        When, by the clock of who made it.
    agreed : bool
        Whether they were agreed before and are read back. New ones name no level of
        several times where the domain has one.

    Raises
    ------
    LedgerError
        If new terms have a budget for several times and the domain has one.
    """

    dataset: str
    domain: Domain
    budgets: Mapping[Granularity, Loss]
    models: Mapping[str, LeakageBudget]
    created: str
    agreed: InitVar[bool] = False

    def __post_init__(self, agreed: bool) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise ValueError("dataset must be a non-empty text, got another value.")
        plain_text(self.dataset, "dataset")
        if not self.budgets and not self.models:
            raise ValueError("budgets must name at least one granularity, got none.")
        for target, budget in self.budgets.items():
            _require_budget(target, budget, self.domain)
            if not agreed:
                _require_times(target, self.domain)
        for name, model in self.models.items():
            if not isinstance(model, LeakageBudget):
                raise TypeError(
                    f"model {name!r} must be a LeakageBudget, got "
                    f"{type(model).__name__}."
                )
            model.granularity.require_domain(self.domain)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Every inequality that a charge must keep."""
        losses = [Limit(g.name, g, loss) for g, loss in self.budgets.items()]
        levels = [
            Limit(f"model:{name}", model.granularity, Pure(model.epsilon))
            for name, model in self.models.items()
        ]
        return (*losses, *levels)

    def to_text(self) -> str:
        """Return the canonical text that the chain starts from."""
        return canonical(
            {
                "format": "undertow ledger",
                "dataset": self.dataset,
                "domain": domain_to_document(self.domain),
                "budgets": {
                    granularity_to_document(target): loss_to_document(loss)
                    for target, loss in self.budgets.items()
                },
                "models": {k: m.to_document() for k, m in self.models.items()},
                "created": self.created,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read terms back.

        Raises
        ------
        LedgerError
            If the text is not what a ledger wrote.
        """
        try:
            document = json.loads(text)
            return cls(
                dataset=document["dataset"],
                domain=domain_from_document(document["domain"]),
                budgets={
                    parse_granularity(name): loss_from_document(loss)
                    for name, loss in document["budgets"].items()
                },
                models={
                    name: LeakageBudget.from_document(model)
                    for name, model in document["models"].items()
                },
                created=document["created"],
                agreed=True,
            )
        except (
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            RecursionError,
        ):
            raise LedgerError(
                "the terms of a ledger must be as they were written, got another text; "
                "run undertow ledger verify."
            ) from None


def _require_budget(target: object, budget: object, domain: Domain) -> None:
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


def _require_times(target: Granularity, domain: Domain) -> None:
    """Refuse a level of several times where there is one: it promises no more."""
    length = target.w if isinstance(target, WEvent) else 1
    length = target.length if isinstance(target, LTrajectory) else length
    if length > 1 and isinstance(domain, Stream) and domain.times == 1:
        raise LedgerError(
            f"a ledger with a budget at {target.name} level must count windows, got "
            "users as a whole; give the domain of a release with source.per = "
            "{ window = … }, or a budget at user level."
        )
