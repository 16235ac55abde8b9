r"""What a claim costs at an influence, notion by notion, and which notion to sum in.

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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from undertow.composition.engine_claims import ClaimTable
from undertow.errors import AssumptionError, NotionMismatchError
from undertow.privacy.conversion import gdp_to_approx, pure_to_gdp, zcdp_to_approx
from undertow.privacy.exact import Exact, Number
from undertow.privacy.extended import ext_scale
from undertow.privacy.group import group
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Metric
from undertow.spaces.change import Charge
from undertow.spaces.metric import DiscreteMetric

__all__ = [
    "NOTIONS",
    "Ledger",
    "choose_notion",
    "claim_cost",
    "front_loss",
    "open_ledger",
]

NOTIONS = ("pure", "gdp", "zcdp", "approx")
"""The notions a sum can be taken in, the first that fits is taken."""

_FITS: dict[str, frozenset[str]] = {
    "pure": frozenset({"pure"}),
    "gdp": frozenset({"pure", "gdp"}),
    "zcdp": frozenset({"pure", "gdp", "zcdp"}),
    "approx": frozenset({"pure", "approx"}),
}


class Ledger(NamedTuple):
    """The charges of a plan in one notion.

    Parameters
    ----------
    notion : str
        The notion of the sum.
    concentrated : str or None
        With approximate sums, what the last coordinate adds: ``"gdp"`` squares,
        ``"zcdp"``, or nothing.
    claims : tuple of tuple of (int, int)
        For each kind of release the claims that can be used in the notion.
    charges : tuple of Charge
        Kinds that share columns are merged.
    """

    notion: str
    concentrated: str | None
    claims: tuple[tuple[tuple[int, int], ...], ...]
    charges: tuple[Charge, ...]

    @property
    def coordinates(self) -> int:
        """The number of cost coordinates."""
        return 1 if self.notion != "approx" else 2 + (self.concentrated is not None)


def choose_notion(table: ClaimTable, *, delta: Number | None) -> str:
    """Return the first notion in which every release has a usable claim.

    Raises
    ------
    NotionMismatchError
        If Gaussian or zCDP losses meet (epsilon, delta) ones and no `delta` is given.
    """
    tags = [_tag(loss) for loss in table.losses]
    sets = {frozenset(tags[at] for _, at in kind) for kind in table.kinds}
    for notion in NOTIONS:
        if all(kinds & _FITS[notion] for kinds in sets):
            return notion
    if delta is None:
        raise NotionMismatchError(
            "delta must be given where Gaussian or zCDP losses meet (epsilon, delta) "
            "ones, got none; it is spent once on converting them."
        )
    return "approx"


def _tag(loss: Loss) -> str:
    """Return the notion of a loss; an approximate one with no delta is pure."""
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        return "pure"
    return loss.notion


def open_ledger(table: ClaimTable, *, notion: str, delta: Number | None) -> Ledger:
    """Turn compressed claims into charges of one notion.

    Raises
    ------
    NotionMismatchError
        If a release has no claim that can be stated in `notion`.
    AssumptionError
        If an (epsilon, delta) claim is stated in a unit that no neighbour relation
        generates.
    """
    claims = tuple(_usable(table, kind, notion, delta) for kind in table.kinds)
    used = {at for kind in claims for _, at in kind}
    tags = {_tag(table.losses[at]) for at in used}
    concentrated = None
    if notion == "approx" and tags & {"gdp", "zcdp"}:
        concentrated = "zcdp" if "zcdp" in tags else "gdp"
    if notion == "approx":
        _require_chains(table, claims)
    return Ledger(
        notion, concentrated, claims, _charges(table, claims, notion, concentrated)
    )


def _usable(
    table: ClaimTable,
    kind: tuple[tuple[int, int], ...],
    notion: str,
    delta: Number | None,
) -> tuple[tuple[int, int], ...]:
    fitting = tuple(c for c in kind if _tag(table.losses[c[1]]) in _FITS[notion])
    if fitting:
        return fitting
    if notion == "approx" and delta is not None:
        # One claim of concentrated privacy only: a minimum over two would compare
        # numbers of different notions.
        gaussian = [c for c in kind if _tag(table.losses[c[1]]) == "gdp"]
        return tuple(gaussian or kind)[:1]
    raise NotionMismatchError(
        f"every release must have a claim that can be stated in {notion}, got one with "
        f"{', '.join(sorted({table.losses[at].notion for _, at in kind}))} only; "
        "choose another notion, or give delta for the approximate one."
    )


def _require_chains(
    table: ClaimTable, claims: Sequence[tuple[tuple[int, int], ...]]
) -> None:
    for kind in claims:
        for column, at in kind:
            unit = table.columns[column].unit
            if _tag(table.losses[at]) == "approx" and not _is_chained(unit):
                raise AssumptionError(
                    "an (epsilon, delta) loss must be stated in a unit generated by "
                    f"neighbours, got {unit.name!r}; delta is not implied at "
                    "fractional distances.",
                    source="paper, Theorem VI.3",
                )


def _is_chained(unit: Metric) -> bool:
    return unit.canonical or isinstance(unit, DiscreteMetric)


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
    if _tag(loss) == "pure":
        return (ext_scale(loss.exact_parameters()[0], influence), 0, *third)
    if isinstance(loss, Approx):
        return (*_approx(loss, influence), *third)
    return (0, 0, _one(loss, influence, str(concentrated)))


def _one(loss: Loss, influence: Exact, notion: str) -> Exact:
    parameter = loss.exact_parameters()[0]
    if notion == "pure":
        return ext_scale(parameter, influence)
    if _tag(loss) == "pure" and notion == "gdp":
        epsilon = ext_scale(parameter, influence)
        return pure_to_gdp(Pure(_exact(epsilon))).exact_parameters()[0]
    return ext_scale(_squared_rate(loss, notion), _square(influence))


def _squared_rate(loss: Loss, notion: str) -> Exact:
    """Return the coefficient of the squared influence."""
    parameter = loss.exact_parameters()[0]
    if loss.notion == notion:
        return parameter
    if _tag(loss) == "pure":
        parameter = _square(parameter)
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
    whole = group(Approx(_exact(epsilon), _exact(delta)), int(influence))
    assert isinstance(whole, Approx)
    return ext_scale(epsilon, influence), whole.exact_parameters()[1]


def _charges(
    table: ClaimTable,
    claims: Sequence[tuple[tuple[int, int], ...]],
    notion: str,
    concentrated: str | None,
) -> tuple[Charge, ...]:
    """Merge kinds whose claims share one loss; the others stay as they are."""
    bundles: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    apart: list[Charge] = []
    for kind, count in zip(claims, table.counts.tolist(), strict=True):
        columns, at = tuple(sorted({c for c, _ in kind})), {a for _, a in kind}
        if len(at) == 1 and len(columns) == len(kind):
            (only,) = at
            held = bundles[columns]
            held[only] = held.get(only, 0) + count
        else:
            losses = [(c, table.losses[a]) for c, a in kind]
            price = _Cheapest(columns, losses, count, notion, concentrated)
            apart.append(Charge(columns, price))
    merged = [
        Charge(columns, _Bundle(table.losses, counts, notion, concentrated))
        for columns, counts in bundles.items()
    ]
    return (*merged, *apart)


class _Bundle:
    """Several releases on the same columns, each with one loss for all its claims.

    The least influence of the columns serves every loss alike, so parameters are
    added first: one product per influence, however many releases.
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        counts: dict[int, int],
        notion: str,
        concentrated: str | None,
    ) -> None:
        self.notion, self.concentrated = notion, concentrated
        self.linear: Exact = 0
        self.square: Exact = 0
        self.single: list[tuple[Loss, int]] = []
        for at, count in counts.items():
            self._enter(losses[at], count)
        # Equal keys are equal prices: families look at alike releases once.
        self.key = (notion, self.linear, self.square, tuple(self.single))
        self.known: dict[Exact, tuple[Exact, ...]] = {}

    def _enter(self, loss: Loss, count: int) -> None:
        tag, parameter = _tag(loss), loss.exact_parameters()[0]
        if tag == "pure" and self.notion in ("pure", "approx"):
            self.linear = _plus(self.linear, _times(count, parameter))
        elif tag == "approx" or (tag == "pure" and self.notion == "gdp"):
            self.single.append((loss, count))
        else:
            notion = self.notion if self.notion != "approx" else str(self.concentrated)
            rate = _squared_rate(loss, notion)
            self.square = _plus(self.square, _times(count, rate))

    def __call__(self, influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
        influence = min(influences)
        if influence not in self.known:
            self.known[influence] = self._price(influence)
        return self.known[influence]

    def _price(self, influence: Exact) -> tuple[Exact, ...]:
        linear = ext_scale(self.linear, influence)
        square = ext_scale(self.square, _square(influence))
        if self.notion == "pure":
            return (linear,)
        costs = [
            [_times(count, value) for value in self._claim(loss, influence)]
            for loss, count in self.single
        ]
        if self.notion != "approx":
            return (_plus(square, *(cost[0] for cost in costs)),)
        epsilon = _plus(linear, *(cost[0] for cost in costs))
        delta = _plus(*(cost[1] for cost in costs))
        return (
            (epsilon, delta) if self.concentrated is None else (epsilon, delta, square)
        )

    def _claim(self, loss: Loss, influence: Exact) -> tuple[Exact, ...]:
        return claim_cost(
            loss, influence, notion=self.notion, concentrated=self.concentrated
        )


class _Cheapest:
    """Alike releases whose claims state different losses: one claim is chosen."""

    def __init__(
        self,
        columns: tuple[int, ...],
        claims: Sequence[tuple[int, Loss]],
        count: int,
        notion: str,
        concentrated: str | None,
    ) -> None:
        position = {column: at for at, column in enumerate(columns)}
        self.claims = [(position[column], loss) for column, loss in claims]
        self.count, self.notion, self.concentrated = count, notion, concentrated

    def __call__(self, influences: tuple[Exact, ...]) -> tuple[Exact, ...]:
        # Smallest epsilon, then smallest delta, both of one and the same claim.
        best = min(
            claim_cost(
                loss, influences[at], notion=self.notion, concentrated=self.concentrated
            )
            for at, loss in self.claims
        )
        return tuple(_times(self.count, value) for value in best)


def front_loss(
    values: tuple[Exact, ...],
    *,
    notion: str,
    concentrated: str | None = None,
    delta: Number | None = None,
) -> Loss:
    """Return cost totals as a loss, the concentrated part converted at `delta`."""
    if notion == "pure":
        return Pure(_exact(values[0]))
    if notion == "zcdp":
        return ZCDP(_exact(values[0]))
    if notion == "gdp":
        return GDP.from_square(_exact(values[0]))
    loss = Approx.capped(_exact(values[0]), _exact(values[1]))
    if concentrated is None or values[2] == 0:
        return loss
    assert delta is not None
    rest = _exact(values[2])
    if rest == math.inf:
        return Approx(math.inf, 1)
    if concentrated == "gdp":
        return loss + gdp_to_approx(GDP.from_square(rest), delta=delta)
    return loss + zcdp_to_approx(ZCDP(rest), delta=delta)


def _exact(value: Exact) -> Fraction | float:
    """Keep exact values exact: a float would be read through its decimal form."""
    return math.inf if value == math.inf else Fraction(value)


def _square(value: Exact) -> Exact:
    return math.inf if value == math.inf else value * value


def _times(count: int, value: Exact) -> Exact:
    return math.inf if value == math.inf else count * value


def _plus(*values: Exact) -> Exact:
    return _sum(values)


def _sum(values: Iterable[Exact]) -> Exact:
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total
