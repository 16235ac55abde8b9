r"""What the release file promises, as one loss at one granularity.

================================ ===================== ==================
the file says                    total                 noise
================================ ===================== ==================
``epsilon``                      pure                  discrete Laplace
``rho``                          zCDP                  discrete Gaussian
``epsilon`` and ``delta``        approximate, by zCDP  discrete Gaussian
``mu``                           Gaussian DP           discrete Laplace
``advantage`` and a threat       pure or approximate   as of that loss
``epsilon`` and ``correlation``  pure, calibrated [1]  discrete Laplace
================================ ===================== ==================

[1] As stated where the model is about records inside of the unit that the promise
protects as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from undertow.composition import Plan, Report
from undertow.correlation import (
    IndependentUnits,
    Leakage,
    LeakageCalibration,
    Model,
    calibrate,
    leakage,
)
from undertow.errors import AssumptionError, PlanError
from undertow.numeric.exact import round_down, round_up, round_up_decimal
from undertow.privacy.conversion import zcdp_to_approx
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.privacy.result import Calibration
from undertow.risk import Threat, calibrate_black_box
from undertow.spaces.base import Granularity

__all__ = ["Promise", "restate", "settle_promise"]


# A larger level adds no noise to speak of: the search for one found no end.
_DISCLOSING = 600.0
_RESTATED = "zCDP restated as (epsilon, delta): Canonne, Kamath, Steinke, Corollary 13"


def restate(loss: Loss, delta: Fraction) -> Approx:
    """Return a pure or zCDP loss as (epsilon, delta), as small as is proved."""
    if isinstance(loss, Approx):
        return loss
    if isinstance(loss, Pure):
        return Approx(loss.exact_parameters()[0], 0)
    assert isinstance(loss, ZCDP)
    return zcdp_to_approx(loss, delta=delta, method="optimal")


@dataclass(frozen=True, slots=True)
class Promise:
    """One loss at one granularity, and where it comes from.

    Parameters
    ----------
    granularity : Granularity
        What is protected.
    total : Pure, ZCDP, GDP or Approx
        The most that everything the promise covers may lose.
    law : {"laplace", "gaussian"}
        The noise it is spent on.
    confidence : Fraction
        Of the intervals.
    keys_delta, conversion_delta : Fraction
        Parts of delta set aside for choosing keys, and for restating zCDP.
    threat, model : Threat, Model or None
        Against whom, and how records depend.
    calibration : Calibration or LeakageCalibration or None
        How the total follows from an advantage or a leakage; None where it is as
        stated.
    """

    granularity: Granularity
    total: Loss
    law: str
    confidence: Fraction
    keys_delta: Fraction = Fraction(0)
    conversion_delta: Fraction = Fraction(0)
    threat: Threat | None = None
    model: Model | None = None
    calibration: Calibration | LeakageCalibration | None = None

    @property
    def beta(self) -> float:
        """One minus the confidence, rounded down."""
        return round_down(1 - self.confidence)

    def spending(self, total: Loss, *, law: str) -> Promise:
        """Return the promise of a part of the budget."""
        return replace(self, total=total, law=law)

    def cost(self, plan: Plan, granularity: Granularity | None = None) -> Report:
        """Compose a plan in the currency of the promise; infinite losses reported."""
        target = self.granularity if granularity is None else granularity
        if isinstance(self.total, Approx):
            return self._approx_cost(plan, target)
        return plan.loss(target, on_infinite="report", notion=self.total.notion)

    def _approx_cost(self, plan: Plan, target: Granularity) -> Report:
        """Compose keys and counts by themselves and the rest in zCDP, restated once.

        Each part holds at the granularity by itself, so their sum does.
        """
        keys = [r for r in plan.releases if isinstance(r.loss, Approx | Pure)]
        rest = [r for r in plan.releases if not isinstance(r.loss, Approx | Pure)]
        if not rest:
            return plan.loss(target, on_infinite="report", notion="approx")
        smooth = Plan(plan.domain, rest) if keys else plan
        report = smooth.loss(target, on_infinite="report", notion="zcdp")
        loss = restate(report.loss, self.conversion_delta)
        baseline = restate(report.sequential, self.conversion_delta)
        if keys:
            chosen = Plan(plan.domain, keys).loss(target, on_infinite="report")
            report, loss = chosen, loss + restate(chosen.loss, self.conversion_delta)
            baseline += restate(chosen.sequential, self.conversion_delta)
        return replace(
            report,
            loss=loss,
            sequential=baseline,
            theorems=(*report.theorems, _RESTATED),
            profile=(),
        )

    def kept_by(self, plan: Plan) -> bool:
        """Return whether a plan loses no more than was promised, exactly."""
        return self.cost(plan).loss.within(self.total)

    def leaked_by(self, plan: Plan) -> Leakage | None:
        """Return what a plan leaks under the stated model; None if none is stated."""
        if self.model is None:
            return None
        spent = self.cost(plan).loss.exact_parameters()[0]
        if isinstance(self.model, IndependentUnits):  # shown as it is, not computed on
            return leakage(self.model, round_up_decimal(spent))
        return leakage(self.model, round_up(spent))


def settle_promise(
    stated: Any,
    *,
    granularity: Granularity,
    threat: Threat | None = None,
    model: Model | None = None,
    discovers: bool = False,
    counts: bool = True,
) -> Promise:
    """Turn what a release file states into one loss.

    Parameters
    ----------
    stated : object
        With `epsilon`, `delta`, `rho`, `mu` and `advantage`, None where not stated, and
        `confidence`.
    granularity : Granularity
        What is protected.
    threat : Threat, optional
        Needed for an advantage.
    model : Model, optional
        The promise is then leakage under this model.
    discovers : bool
        Whether keys are to be discovered.
    counts : bool
        Whether anything else is released.

    Raises
    ------
    PlanError
        If the currencies contradict each other.
    AssumptionError
        If the guarantee asked for cannot hold.
    """
    total, calibration = _total(stated, threat, model)
    if discovers and not isinstance(total, Approx):
        raise AssumptionError(
            "promise.delta must be given where keys are discovered, got none; state "
            "epsilon and delta, or list the keys."
        )
    law = "gaussian" if isinstance(total, ZCDP | Approx) else "laplace"
    delta = Fraction(stated.delta or 0) if isinstance(total, Approx) else Fraction(0)
    parts = (delta, Fraction(0)) if not counts else (delta / 2, delta / 2)
    keys, conversion = parts if discovers else (Fraction(0), delta)
    return Promise(
        granularity,
        total,
        law,
        Fraction(stated.confidence),
        keys_delta=keys,
        conversion_delta=conversion,
        threat=threat,
        model=model,
        calibration=calibration,
    )


def _total(
    stated: Any, threat: Threat | None, model: Model | None
) -> tuple[Loss, Calibration | LeakageCalibration | None]:
    if model is not None:
        return _leakage_total(stated, model)
    if stated.advantage is not None:
        return _advantage_total(stated, threat)
    if stated.mu is not None:
        return GDP(stated.mu), None
    if stated.rho is not None:
        return ZCDP(stated.rho), None
    if stated.epsilon is None:
        raise PlanError(
            "promise must state epsilon, epsilon and delta, rho, mu or advantage, got "
            "none of them."
        )
    if stated.delta is not None:
        return Approx(stated.epsilon, stated.delta), None
    return Pure(stated.epsilon), None


def _leakage_total(stated: Any, model: Model) -> tuple[Loss, LeakageCalibration | None]:
    others = [stated.delta, stated.rho, stated.mu, stated.advantage]
    if stated.epsilon is None or any(other is not None for other in others):
        raise AssumptionError(
            "promise must be stated as epsilon alone where correlation is given, got "
            "another currency; the leakage bounds hold for pure losses."
        )
    if isinstance(model, IndependentUnits):  # the leakage is the level, exactly
        return Pure(stated.epsilon), None
    found = calibrate(model, round_down(stated.epsilon))
    return Pure(Fraction(found.value)), found


def _advantage_total(stated: Any, threat: Threat | None) -> tuple[Loss, Calibration]:
    if threat is None:
        raise PlanError(
            "threat must be given with promise.advantage, got none; an advantage means "
            "nothing without an attacker."
        )
    delta = 0.0 if stated.delta is None else round_up(stated.delta)
    found = calibrate_black_box(round_down(stated.advantage), threat, delta=delta)
    if found.value > _DISCLOSING:
        raise PlanError(
            "promise.advantage must be below what total disclosure gives this "
            f"attacker, got {float(stated.advantage):g}; promise less, or state an "
            "attacker who has more to learn."
        )
    level = Fraction(found.value)
    total = Pure(level) if stated.delta is None else Approx(level, stated.delta)
    return total, found
