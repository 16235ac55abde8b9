"""Plans as documents: nested mappings in, a `Plan` out, one sentence if wrong."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from undertow.composition.document_schema import DOMAINS, LOSSES, VIEWS, Field
from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.errors import PlanError
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Domain, Metric, View
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.granularity import parse_granularity
from undertow.spaces.metric import AbsoluteDifference, LpNorm
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

__all__ = ["plan_from_document"]

_DOMAIN_CLASSES: dict[str, Callable[..., Domain]] = {
    "table": lambda cells=(), **rest: Table(tuple(cells), **rest),
    "rows": lambda ids, **rest: Rows(
        ids if isinstance(ids, int) else tuple(ids), **rest
    ),
    "stream": lambda users, times, **rest: Stream(users, times, **rest),
    "graph": lambda vertices, **rest: Graph(vertices, **rest),
}
_VIEW_CLASSES: dict[str, Callable[..., View]] = {
    "identity": Identity,
    "cell": lambda cell, statistic="records": Select(*_many(cell), statistic=statistic),
    "attributes": lambda names: Project(*names),
    "ids": lambda ids: Ids(*ids),
    "random-block": lambda block, of, salt: RandomBlock(block, of, salt),
    "row-position": lambda block, of: RowPosition(block, of),
    "sorted-position": lambda block, of: SortedPosition(block, of),
    "time": lambda at: Times(*at) if isinstance(at, list) else At(at),
    "window": lambda start, length: Window(start, length),
    "users": lambda users: Users(*users),
    "locations": lambda values: Locations(*values),
    "degree": lambda vertex: Degree(vertex),
    "incident-edges": lambda vertex: IncidentEdges(vertex),
    "vertex-pairs": lambda pairs: VertexPairs(*(tuple(pair) for pair in pairs)),
    "clique-count": lambda max_size: CliqueCount(max_size),
}
_METRICS: dict[str, Metric] = {
    "absolute": AbsoluteDifference(),
    "l1": LpNorm(1),
    "l2": LpNorm(2),
}
_LOSS_CLASSES: dict[tuple[str, ...], Callable[..., Loss]] = dict(
    zip(LOSSES, (Pure, Approx, ZCDP, GDP), strict=True)
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
    plan = Plan(_read_domain(_required(document, "domain", where="the plan")))
    entries = _required(document, "releases", where="the plan")
    if not isinstance(entries, list) or not entries:
        raise PlanError("releases must hold at least one release, got none.")
    for at, entry in enumerate(entries):
        release = _read_release(_mapping(entry, f"releases[{at}]"), f"releases[{at}]")
        try:
            plan.add(release)
        except ValueError as fault:
            raise PlanError(f"release {release.name!r}: {fault}") from None
    return plan


def _read_domain(entry: Any) -> Domain:
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
        raise PlanError(f"name of {where} must be a non-empty string, got {name!r}.")
    where = f"release {name!r}"
    view = _read_view(entry.get("view", {"kind": "identity"}), where)
    if "claims" not in entry:
        return Release.with_claims(name, [_read_claim(entry, where)], view=view)
    if any(key in entry for key in single):
        raise PlanError(
            f"{where} must give either claims or loss, unit and setting, got both."
        )
    claims = entry["claims"]
    if not isinstance(claims, list) or not claims:
        raise PlanError(f"claims of {where} must be a non-empty list, got {claims!r}.")
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
    try:
        return Claim(loss, unit, entry["setting"])
    except (TypeError, ValueError) as fault:
        raise PlanError(f"{where}: {fault}") from None


def _read_loss(entry: Any, where: str) -> Loss:
    values = _mapping(entry, f"loss of {where}")
    for keys, build in _LOSS_CLASSES.items():
        if set(values) == set(keys):
            try:
                return build(**values)
            except (TypeError, ValueError) as fault:
                raise PlanError(f"{where}: {fault}") from None
    raise PlanError(
        f"loss of {where} must hold epsilon, epsilon and delta, rho, or mu, "
        f"got {_listed(values)}."
    )


def _read_unit(text: Any, where: str) -> Metric:
    if not isinstance(text, str):
        raise PlanError(f"unit of {where} must be a granularity name, got {text!r}.")
    if text in _METRICS:
        return _METRICS[text]
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
    if kind not in kinds:
        raise PlanError(
            f"kind of {where} must be one of {', '.join(kinds)}, got {kind!r}."
        )
    fields = kinds[kind]
    _known_keys(values, fields, where=f"{where} ({kind})")
    for key, field in fields.items():
        if field.required:
            _required(values, key, where=f"{where} ({kind})")
    return kind, values


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
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            allowed = ", ".join(known) or "no other key"
            raise PlanError(
                f"{where} must hold only {allowed}, got the unknown key {key!r}{hint}"
            )


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _listed(values: Iterable[str]) -> str:
    return ", ".join(values) or "nothing"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
