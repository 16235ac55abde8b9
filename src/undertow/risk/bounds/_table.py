"""The table of bounds: what each needs of the guarantee and of the threat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.privacy import GDP, Approx, Bound, Loss, Pure, TradeOff, group
from undertow.risk.bounds.approximate import (
    baseline_bound,
    exact_guess_bound,
    uniform_guess_bound,
)
from undertow.risk.bounds.baselines import PROGRAM_SIZE, Baselines
from undertow.risk.bounds.tradeoff import tradeoff_bound, uniform_tradeoff_bound
from undertow.risk.bounds.variation import (
    prior_free_bound,
    uniform_prior_bound,
    variation_bound,
)

__all__ = ["RULES", "Guarantee", "Rule", "for_replacement"]

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


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table before it meets a threat."""

    name: str
    kinds: tuple[type, ...]
    compute: Callable[[Any, Baselines], Bound]
    needs: tuple[str, ...] = ()

    def obstacle(self, guarantee: Guarantee, threat: Baselines) -> str | None:
        """Say what keeps the row from applying, or None."""
        if not isinstance(guarantee, self.kinds):
            kinds = ", ".join(kind.__name__ for kind in self.kinds)
            return f"needs a guarantee of kind {kinds}"
        failed = {
            "no knowledge": threat.knowledge,
            "exact success": not threat.exact,
            "finite prior": not threat.pmf,
            "uniform prior": not threat.uniform,
            f"at most {PROGRAM_SIZE} records": threat.program is None,
        }
        missing = [need for need in self.needs if failed[need]]
        return f"needs {', '.join(missing)}" if missing else None


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
    Rule("total variation", (Loss, TradeOff, float, int), _by_variation),
    Rule("prior-free cap", (Pure,), lambda g, t: prior_free_bound(g.epsilon)),
    Rule(
        "uniform-prior cap",
        (Pure,),
        lambda g, t: uniform_prior_bound(g.epsilon, len(t.pmf)),
        ("uniform prior",),
    ),
    Rule("trade-off", _CURVES, _by_tradeoff, _BLIND),
    Rule(
        "uniform trade-off",
        (GDP, TradeOff),
        lambda g, t: uniform_tradeoff_bound(g, len(t.pmf)),
        (*_BLIND, "exact success", "uniform prior"),
    ),
    Rule("baselines", (Pure, Approx), _by_baseline, _BLIND),
    Rule(
        "exact guess",
        _CURVES,
        lambda g, t: exact_guess_bound(g, np.array(t.pmf)),
        (*_BLIND, "exact success", "finite prior"),
    ),
    Rule(
        "uniform guess",
        (Pure, Approx),
        lambda g, t: uniform_guess_bound(g, len(t.pmf)),
        (*_BLIND, "exact success", "uniform prior"),
    ),
    Rule("linear program", (Pure,), _by_program, (f"at most {PROGRAM_SIZE} records",)),
)
