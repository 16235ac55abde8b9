"""Correlation models that people give to `undertow ledger init`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._text import parse_toml
from undertow.cli.ledger_inputs import read_toml
from undertow.errors import LedgerError, PlanError
from undertow.numeric.exact import exact, round_down
from undertow.spaces import Granularity, parse_granularity
from undertow.spaces.base import Domain
from undertow.spaces.domain import Stream
from undertow.spaces.unit import Event, User

if TYPE_CHECKING:
    from undertow.correlation import Model
    from undertow.ledger import LeakageBudget

__all__ = ["Records", "read_models"]

_REPLACING = ("bounded", "event", "user")
_EXAMPLE = 'families={model="blocks", group=4, leakage=1}'
_SMALLEST = Fraction(1, 10**100)
_OWN = frozenset({"granularity", "leakage", "unit"})


@dataclass(frozen=True, slots=True)
class Records:
    """What the records of a ledger are.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    unit : str or None
        The column of the unit, where a release file says it.
    lone : bool
        Whether every row is a unit of its own.
    time : str or None
        The column of the time, where a release file says it.
    """

    domain: Domain
    unit: str | None = None
    lone: bool = False
    time: str | None = None

    @property
    def windows(self) -> int | None:
        """The number of records of a unit, where the domain has several."""
        times = self.domain.times if isinstance(self.domain, Stream) else 1
        return times if times > 1 else None

    def whole_units(self, target: Granularity) -> bool:
        """Tell whether one change at a granularity may replace all that a unit has."""
        if self.lone or not isinstance(self.domain, Stream):
            return False
        return target == User() or (target == Event() and self.windows is None)


def read_models(words: Iterable[str], records: Records) -> dict[str, LeakageBudget]:
    """Read correlation models, each with the most that may leak under it.

    Parameters
    ----------
    words : iterable of str
        TOML such as ``families={model="blocks", group=4, leakage=1}``, or
        ``@models.toml`` with one table a model. A table holds what
        ``promise.correlation`` of a release file does, ``leakage``, and may hold
        ``granularity`` (by default ``user``) and the column ``unit`` of a file to fit.
    records : Records
        What the models are about.

    Raises
    ------
    LedgerError
        If a word is no model, or a name comes twice.
    AssumptionError
        If no theorem covers the model.
    """
    found: dict[str, LeakageBudget] = {}
    for word in words:
        folder = Path(word[1:]).parent if word.startswith("@") else Path()
        for name, table in _tables(word).items():
            if name in found:
                raise LedgerError(f"correlation {name!r} must be given once, got two.")
            with _about(name):
                found[name] = _budget(table, records, folder)
    return found


def _tables(word: str) -> dict[str, Any]:
    if word.startswith("@"):
        tables = read_toml(Path(word[1:]), kind="file of correlation models")
    else:
        try:
            tables = parse_toml(word)
        except (ValueError, RecursionError):
            tables = {}
    if not tables or not all(isinstance(t, dict) for t in tables.values()):
        raise LedgerError(
            f"correlation must be one such as {_EXAMPLE}, or @models.toml with such "
            f"tables, got {word[:60]!r}."
        )
    for name in tables:
        if not name or not name.isprintable() or len(name) > 100:
            raise LedgerError(
                "the name of a correlation must be 1 to 100 printable characters, got "
                f"{name[:60]!r}."
            )
    return tables


def _budget(table: Mapping[str, Any], records: Records, folder: Path) -> LeakageBudget:
    from undertow.correlation import IndependentUnits, calibrate
    from undertow.ledger import LeakageBudget

    stated = _stated({key: table[key] for key in table if key not in _OWN})
    target = _granularity(table.get("granularity", "user"))
    target.require_domain(records.domain)
    leakage = _leakage(table)
    model = _model(stated, records, target, table.get("unit", records.unit), folder)
    calibration = calibrate(model, round_down(leakage))
    # A float stands for itself and for what is printed of it; the smaller is safe.
    level = min(Fraction(calibration.value), Fraction(exact(calibration.value)))
    return LeakageBudget(
        leakage=leakage,
        epsilon=leakage if isinstance(model, IndependentUnits) else level,
        granularity=target,
        theorem=calibration.achieves.theorem,
        model={
            **stated.model_dump(mode="json", exclude_none=True),
            "summary": model.summary,
        },
    )


def _stated(table: Mapping[str, Any]) -> Any:
    """Return a model as `promise.correlation` of a release file states it."""
    try:
        from pydantic import ValidationError

        from undertow.release.document._error import refused
        from undertow.release.document._promise import CorrelationPart
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    try:
        return CorrelationPart.model_validate(table)
    except ValidationError as fault:
        raise refused(fault, CorrelationPart) from None


def _granularity(name: object) -> Granularity:
    target = parse_granularity(name) if isinstance(name, str) else None
    if target is None or target.name not in _REPLACING:
        raise LedgerError(
            f"granularity must be {', '.join(_REPLACING)}, got {str(name)[:40]!r}; "
            "leakage is about what one record is, not whether it is there."
        )
    return target


def _leakage(table: Mapping[str, Any]) -> Fraction:
    value = table.get("leakage")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise LedgerError("leakage must be given as a number, such as 1, got none.")
    level = exact(value, "leakage")
    if not _SMALLEST <= level < math.inf:
        raise LedgerError(
            f"leakage must be positive and finite, at least 1e-100, got {value}; give "
            "what may leak, such as 1."
        )
    return Fraction(level)


def _model(
    stated: Any, records: Records, target: Granularity, unit: object, folder: Path
) -> Model:
    from undertow.release.document._promise import follows_time, stated_model

    if records.lone and follows_time(stated):
        raise LedgerError(
            "model must be blocks, or gaussian with a group, where every row is a "
            f"unit, got {stated.model}: a series of rows would join units; name "
            "source.unit in the release file."
        )
    if unit is not None and not isinstance(unit, str):
        raise LedgerError("unit must be the name of a column, got another value.")
    return stated_model(
        stated,
        path=None if stated.fit is None else folder / stated.fit,
        unit=unit,
        length=records.windows,
        whole_units=records.whole_units(target),
        moment=records.time,
    )


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Say of which model something is wrong."""
    try:
        yield
    except (LedgerError, PlanError) as fault:
        words = str(fault).replace("promise.correlation.", "").strip()
        raise LedgerError(f"correlation {name!r}: {words}") from None
    except (TypeError, ValueError) as fault:
        # Refusals of the library are ValueErrors too, and pass as they are.
        if type(fault) in (TypeError, ValueError):
            raise LedgerError(f"correlation {name!r}: {fault}") from None
        raise
