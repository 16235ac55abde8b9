r"""What a claim costs at an influence, notion by notion.

At influence :math:`a` (the distance its unit moves) a claim costs

====== ============== ================= ==================== ==========================
loss   in pure        in GDP (squares)  in zCDP              in approximate
====== ============== ================= ==================== ==========================
Pure   :math:`εa`     :math:`μ(εa)^2`   :math:`(εa)^2/2`     :math:`(εa, 0)`
GDP    --             :math:`μ^2a^2`    :math:`μ^2a^2/2`     with `delta`, per class
ZCDP   --             --                :math:`ρa^2`         with `delta`, per class
Approx if δ = 0       if δ = 0          if δ = 0             :math:`(εa, δ[a]_ε)`
====== ============== ================= ==================== ==========================

Conversions act per change class, before anything is added, so nothing is ever
converted at distance one and scaled afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from undertow.errors import AssumptionError
from undertow.privacy.conversion import pure_to_gdp
from undertow.privacy.exact import Exact
from undertow.privacy.extended import ext_scale
from undertow.privacy.group import group
from undertow.privacy.loss import Approx, Loss, Pure

__all__ = [
    "add",
    "as_exact",
    "claim_cost",
    "square",
    "squared_rate",
    "tag_of",
    "times",
]


def tag_of(loss: Loss) -> str:
    """Return the notion of a loss; an approximate one with no delta is pure."""
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        return "pure"
    return loss.notion


def claim_cost(
    loss: Loss, influence: Exact, *, notion: str, concentrated: str | None = None
) -> tuple[Exact, ...]:
    """Return the cost coordinates of one claim at one influence.

    Examples
    --------
    >>> claim_cost(Pure("0.1"), 3, notion="pure")
    (Fraction(3, 10),)
    """
    if notion != "approx":
        return (_one(loss, influence, notion),)
    third: tuple[Exact, ...] = () if concentrated is None else (0,)
    if tag_of(loss) == "pure":
        return (ext_scale(loss.exact_parameters()[0], influence), 0, *third)
    if isinstance(loss, Approx):
        return (*_approx(loss, influence), *third)
    return (0, 0, _one(loss, influence, str(concentrated)))


def _one(loss: Loss, influence: Exact, notion: str) -> Exact:
    parameter = loss.exact_parameters()[0]
    if notion == "pure":
        return ext_scale(parameter, influence)
    if tag_of(loss) == "pure" and notion == "gdp":
        epsilon = ext_scale(parameter, influence)
        return pure_to_gdp(Pure(as_exact(epsilon))).exact_parameters()[0]
    return ext_scale(squared_rate(loss, notion), square(influence))


def squared_rate(loss: Loss, notion: str) -> Exact:
    """Return the coefficient of the squared influence in GDP squares or zCDP."""
    parameter = loss.exact_parameters()[0]
    if loss.notion == notion:
        return parameter
    if tag_of(loss) == "pure":
        parameter = square(parameter)
    return parameter if parameter == math.inf else Fraction(parameter) / 2


def _approx(loss: Approx, influence: Exact) -> tuple[Exact, Exact]:
    epsilon, delta = loss.exact_parameters()
    if influence == math.inf:
        return math.inf, math.inf
    if influence == 0:
        return 0, 0
    if Fraction(influence).denominator != 1:
        raise AssumptionError(
            "an (epsilon, delta) loss must be read at whole distances, got "
            f"{influence}; state the loss as pure, zCDP or GDP.",
            source="paper, Theorem VI.3",
        )
    whole = group(Approx(as_exact(epsilon), as_exact(delta)), int(influence))
    assert isinstance(whole, Approx)
    return ext_scale(epsilon, influence), whole.exact_parameters()[1]


def as_exact(value: Exact) -> Fraction | float:
    """Keep exact values exact: a float would be read through its decimal form."""
    return math.inf if value == math.inf else Fraction(value)


def square(value: Exact) -> Exact:
    """Return the square, infinite values staying infinite."""
    return math.inf if value == math.inf else value * value


def times(count: int, value: Exact) -> Exact:
    """Return a positive multiple."""
    return math.inf if value == math.inf else count * value


def add(values: Iterable[Exact]) -> Exact:
    """Return the exact sum; infinite as soon as one term is."""
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total
