"""Plans as documents: nested mappings in, a `Plan` out, one sentence if wrong."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from undertow.composition.document_schema import (
    CONTINUOUS,
    DOMAINS,
    LOSSES,
    SETTING,
    VIEWS,
    Field,
    described,
    fits,
)
from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.errors import PlanError
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.granularity import parse_granularity
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    LpNorm,
    ZeroMetric,
)
from undertow.spaces.view import (
    At,
    CliqueCount,
    Degree,
    Identity,
    Ids,
    IncidentEdges,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Users,
    VertexPairs,
    Window,
)

__all__ = ["METRICS", "domain_from_document", "plan_from_document"]

# A granularity name nests only as far as people write it; more is some other text.
_LONGEST_NAME = 200

_DOMAIN_CLASSES: dict[str, Callable[..., Domain]] = {
    "table": lambda cells=(), **rest: Table(tuple(cells), **rest),
    "rows": lambda ids, **rest: Rows(
        range(ids) if isinstance(ids, int) else tuple(ids), **rest
    ),
    "stream": lambda users, times, **rest: Stream(users, times, **rest),
    "graph": lambda vertices, **rest: Graph(vertices, **rest),
}
_VIEW_CLASSES: dict[str, Callable[..., View]] = {
    "identity": Identity,
    "cell": lambda cell, statistic="records": Select(*_many(cell), statistic=statistic),
    "attributes": lambda names: Project(*names),
    "ids": lambda ids: Ids(ids),
    "random-block": lambda block, of, salt: RandomBlock(block, of, salt),
    "row-position": lambda block, of: RowPosition(block, of),
    "sorted-position": lambda block, of: SortedPosition(block, of),
    "time": lambda at: At(at) if isinstance(at, int) else Times(at),
    "window": lambda start, length: Window(start, length),
    "users": lambda users: Users(users),
    "locations": lambda values: Locations(values),
    "degree": lambda vertex: Degree(vertex),
    "incident-edges": lambda vertex: IncidentEdges(vertex),
    "vertex-pairs": lambda pairs: VertexPairs(tuple(pair) for pair in pairs),
    "clique-count": lambda max_size: CliqueCount(max_size),
}
METRICS: dict[str, Metric] = {
    "absolute": AbsoluteDifference(),
    "discrete": DiscreteMetric(),
    "l1": LpNorm(1),
    "l2": LpNorm(2),
    "zero": ZeroMetric(),
}
"""The units of a document that are no granularities."""


def _squared_gdp(mu_squared: Any) -> Loss:
    return GDP.from_square(mu_squared)


_LOSS_CLASSES: dict[tuple[str, ...], Callable[..., Loss]] = dict(
    zip(LOSSES, (Pure, Approx, ZCDP, GDP, _squared_gdp), strict=True)
)


def plan_from_document(document: Mapping[str, Any]) -> Plan:
    """Build a plan from nested mappings, as a TOML file holds them.

    Parameters
    ----------
    document : mapping
        With ``domain`` and ``releases``; see
        :func:`undertow.composition.plan_schema`.

    Raises
    ------
    PlanError
        With one sentence naming the place, the requirement and what was found.

    Examples
    --------
    >>> plan = plan_from_document({
    ...     "domain": {"kind": "stream", "users": 1000, "times": 24},
    ...     "releases": [{"name": "hour-08", "loss": {"epsilon": "0.5"},
    ...                   "unit": "event", "view": {"kind": "time", "at": 8},
    ...                   "setting": "view"}],
    ... })
    >>> len(plan), plan.releases[0].loss
    (1, Pure(epsilon=0.5))
    """
    _known_keys(document, ("domain", "releases"), where="the plan")
    plan = Plan(domain_from_document(_required(document, "domain", where="the plan")))
    entries = _required(document, "releases", where="the plan")
    if not isinstance(entries, list | tuple) or not entries:
        raise PlanError(
            "releases must be a list of at least one release, "
            f"got {_shown(entries) if entries else 'none'}."
        )
    for at, entry in enumerate(entries):
        release = _read_release(_mapping(entry, f"releases[{at}]"), f"releases[{at}]")
        try:
            plan.add(release)
        except ValueError as fault:
            raise PlanError(f"release {release.name!r}: {fault}") from None
    return plan


def domain_from_document(entry: Any) -> Domain:
    """Build a domain from the mapping a document holds under ``domain``."""
    kind, values = _read_kind(entry, DOMAINS, where="domain")
    try:
        return _DOMAIN_CLASSES[kind](**values)
    except (TypeError, ValueError) as fault:
        raise PlanError(f"domain: {fault}") from None


def _read_release(entry: Mapping[str, Any], where: str) -> Release:
    single = ("loss", "unit", "setting")
    _known_keys(entry, ("name", "view", "claims", *single), where=where)
    name = _required(entry, "name", where=where)
    if not isinstance(name, str) or not name:
        raise PlanError(
            f"name of {where} must be a non-empty text, got {_shown(name)}."
        )
    where = f"release {_shown(name)}"
    view = _read_view(entry.get("view", {"kind": "identity"}), where)
    if "claims" not in entry:
        return Release.with_claims(name, [_read_claim(entry, where)], view=view)
    if any(key in entry for key in single):
        raise PlanError(
            f"{where} must give either claims or loss, unit and setting, got both."
        )
    claims = entry["claims"]
    if not isinstance(claims, list | tuple) or not claims:
        raise PlanError(
            f"claims of {where} must be a non-empty list, got {_shown(claims)}."
        )
    read = []
    for claim in claims:
        _known_keys(_mapping(claim, f"claims of {where}"), single, where=where)
        read.append(_read_claim(claim, where))
    return Release.with_claims(name, read, view=view)


def _read_claim(entry: Mapping[str, Any], where: str) -> Claim:
    loss = _read_loss(_required(entry, "loss", where=where), where)
    unit = _read_unit(_required(entry, "unit", where=where), where)
    if "setting" not in entry:
        raise PlanError(
            f"setting of {where} must be 'view' (private on what the view shows) or "
            "'common' (private on the whole domain), got none; there is no default, "
            "because the price differs."
        )
    _require_fit(entry["setting"], SETTING, f"setting of {where}")
    try:
        return Claim(loss, unit, entry["setting"])
    except (TypeError, ValueError) as fault:
        raise PlanError(f"{where}: {fault}") from None


def _read_loss(entry: Any, where: str) -> Loss:
    values = dict(_mapping(entry, f"loss of {where}"))
    continuous = values.pop("continuous", False)
    _require_fit(continuous, CONTINUOUS, f"continuous in the loss of {where}")
    for keys, build in _LOSS_CLASSES.items():
        if set(values) == set(keys):
            try:
                return build(**values).of_continuous_noise(continuous)
            except (TypeError, ValueError) as fault:
                raise PlanError(f"{where}: {fault}") from None
    raise PlanError(
        f"loss of {where} must hold epsilon, epsilon and delta, rho, mu, or "
        f"mu_squared, got {_listed(values)}."
    )


def _read_unit(text: Any, where: str) -> Metric:
    if not isinstance(text, str) or len(text) > _LONGEST_NAME:
        raise PlanError(
            f"unit of {where} must be a granularity name, got {_shown(text)}."
        )
    if text in METRICS:
        return METRICS[text]
    try:
        return parse_granularity(text)
    except ValueError as fault:
        raise PlanError(f"unit of {where}: {fault}") from None


def _read_view(entry: Any, where: str) -> View:
    kind, values = _read_kind(entry, VIEWS, where=f"view of {where}")
    try:
        return _VIEW_CLASSES[kind](**values)
    except (TypeError, ValueError) as fault:
        raise PlanError(f"view of {where}: {fault}") from None


def _read_kind(
    entry: Any, kinds: Mapping[str, Mapping[str, Field]], *, where: str
) -> tuple[str, dict[str, Any]]:
    values = dict(_mapping(entry, where))
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise PlanError(
            f"kind of {where} must be one of {', '.join(kinds)}, got {_shown(kind)}."
        )
    fields = kinds[kind]
    _known_keys(values, fields, where=f"{where} ({kind})")
    for key, field in fields.items():
        if field.required:
            _required(values, key, where=f"{where} ({kind})")
        if key in values:
            _require_fit(values[key], field.schema, f"{key} of {where}")
    return kind, values


def _require_fit(value: Any, schema: Mapping[str, Any], where: str) -> None:
    if not fits(value, schema):
        raise PlanError(f"{where} must be {described(schema)}, got {_shown(value)}.")


def _mapping(entry: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise PlanError(f"{where} must be a table of keys, got {_shown(entry)}.")
    return entry


def _required(values: Mapping[str, Any], key: str, *, where: str) -> Any:
    if key not in values:
        raise PlanError(f"{where} must have the key {key!r}, got {_listed(values)}.")
    return values[key]


def _known_keys(values: Mapping[str, Any], known: Iterable[str], *, where: str) -> None:
    known = tuple(known)
    for key in _mapping(values, where):
        if key not in known:
            near = difflib.get_close_matches(str(key)[:60], known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            allowed = ", ".join(known) or "no other key"
            raise PlanError(
                f"{where} must hold only {allowed}, got the unknown key "
                f"{_shown(key)}{hint}"
            )


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value)[:60] for value in list(values)[:8]) or "nothing"


def _shown(value: object) -> str:
    try:
        text = reprlib.repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
