"""How much a further release may lose, on top of what was spent."""

from __future__ import annotations

import math
from fractions import Fraction

from undertow.composition.plan import Plan
from undertow.composition.release import Release, Setting
from undertow.errors import InfiniteLossError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Loss, Pure
from undertow.spaces.base import Granularity, Metric, View

__all__ = ["Probe", "loss_of"]


class Probe:
    """A further release of variable loss, tried on top of a plan.

    Parameters
    ----------
    plan : Plan
        What was spent already.
    target : Granularity
        Where the budget holds.
    budget : Pure, ZCDP or GDP
        The most that may be lost there.
    view, unit, setting : View, Metric, {"view", "common"}
        Those of the further release.
    """

    def __init__(
        self,
        plan: Plan,
        target: Granularity,
        budget: Loss,
        *,
        view: View,
        unit: Metric,
        setting: Setting,
    ) -> None:
        self.plan, self.target, self.budget = plan, target, budget
        self.view, self.unit, self.setting = view, unit, setting

    def room(self) -> Exact:
        """Return the largest parameter that fits, in the additive parameter.

        Notes
        -----
        Exact, by Dinkelbach's method: each round takes the class that is overdrawn most
        and lowers the parameter to what that class allows; finitely many classes,
        finitely many rounds. Where the engine's result is not tight, what is returned
        fits, but a little more might.
        """
        cap = self.budget.exact_parameters()[0]
        if cap == math.inf:
            return math.inf
        room = self.alone(cap)
        while 0 < room < math.inf:
            total, share = self.spent(room)
            if total <= cap:
                break
            if share == 0:  # only where the engine gives a bound that no class attains
                return Fraction(0)
            room = max(Fraction(0), (cap - (total - share)) * room / share)
        return room

    def alone(self, cap: Exact) -> Exact:
        """Return the largest parameter if nothing else had been spent."""
        result = Plan(self.plan.domain, [self._release(Fraction(1))]).evaluate(
            self.target, notion=self.budget.notion
        )
        reach = result.loss.exact_parameters()[0]
        if reach == math.inf:
            raise InfiniteLossError(
                f"a release on {self.view.name} must have a finite loss at "
                f"{self.target.name} level, got inf whatever its loss: "
                f"{result.row.change.summary}.",
                witness=result.row.change,
            )
        return math.inf if reach == 0 else Fraction(cap) / Fraction(reach)

    def spent(self, parameter: Exact) -> tuple[Exact, Exact]:
        """Return the largest total, and the probe's share of it."""
        trial = self.plan.followed_by(self._release(parameter))
        result = trial.evaluate(self.target, notion=self.budget.notion)
        share = result.contribution(len(trial) - 1)[0]
        return result.loss.exact_parameters()[0], share

    def _release(self, parameter: Exact) -> Release:
        loss = loss_of(self.budget, parameter)
        return Release(
            "probe", loss, unit=self.unit, view=self.view, setting=self.setting
        )


def loss_of(budget: Loss, parameter: Exact) -> Loss:
    """Return the loss of the budget's notion with this additive parameter."""
    if isinstance(budget, GDP):
        return GDP.from_square(parameter)
    return ZCDP(parameter) if isinstance(budget, ZCDP) else Pure(parameter)
