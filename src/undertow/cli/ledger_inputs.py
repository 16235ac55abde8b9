"""What people give to `undertow ledger`: addresses, budgets and domains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from undertow._text import LARGEST_FILE, parse_toml
from undertow.cli.json_values import read_json
from undertow.composition.document import domain_from_document
from undertow.errors import LedgerError
from undertow.numeric.exact import Exact, exact
from undertow.privacy import GDP, ZCDP, Approx, Pure
from undertow.privacy.loss import Loss
from undertow.spaces import Granularity, parse_granularity
from undertow.spaces.base import Domain

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger

__all__ = [
    "opened",
    "read_budgets",
    "read_domain",
    "read_toml",
    "release_source",
    "required_ledger",
]

_LOSSES: dict[frozenset[str], Any] = {
    frozenset({"epsilon"}): Pure,
    frozenset({"epsilon", "delta"}): Approx,
    frozenset({"rho"}): ZCDP,
    frozenset({"mu"}): GDP,
}
_SMALLEST = Fraction(1, 10**300)  # below, a float may be zero


def required_ledger() -> ModuleType:
    """Return the package, or say what to install."""
    try:
        import undertow.ledger
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    return undertow.ledger


@contextmanager
def opened(address: str) -> Iterator[BudgetLedger]:
    """Open a ledger to look at it, and close it again."""
    package = required_ledger()
    found: BudgetLedger = package.BudgetLedger.open(address, read_only=True)
    with found:
        yield found


def read_budgets(words: Iterable[str]) -> dict[Granularity, Loss]:
    """Read budgets given as ``user=epsilon:1``.

    Raises
    ------
    LedgerError
        If a word is no budget, allows nothing or everything, or a granularity comes
        twice.

    Examples
    --------
    >>> read_budgets(["w-event:24=epsilon:1/2"])
    {WEvent(w=24, single_user=False): Pure(epsilon=0.5)}
    """
    budgets: dict[Granularity, Loss] = {}
    for word in words:
        name, sign, text = word.rpartition("=")
        if not sign:
            raise LedgerError(
                "a granularity must be given with its budget, such as user=epsilon:1, "
                f"got {word[:60]!r}."
            )
        try:
            target = parse_granularity(name)
            loss = _read_loss(text)
        except ValueError as fault:
            raise LedgerError(f"budget {word[:60]!r}: {fault}") from None
        if target in budgets:
            raise LedgerError(f"{name} must have one budget, got two.")
        budgets[target] = loss
    return budgets


def _read_loss(text: str) -> Loss:
    values = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        values[name.strip()] = value.strip()
    build = _LOSSES.get(frozenset(values))
    if build is None:
        raise ValueError(
            "a budget must be epsilon:…, epsilon:…,delta:…, rho:… or mu:…, got "
            f"{text[:40]!r}."
        )
    loss: Loss = build(**values)
    _require_usable([exact(value, name) for name, value in values.items()], text)
    return loss


def _require_usable(values: list[Exact], text: str) -> None:
    """Refuse a budget that no release fits in, or that every release does."""
    given = [value for value in values if value != 0]
    if not given or not _SMALLEST <= min(given) or max(given) == math.inf:
        raise ValueError(
            "a budget must be positive and finite, at least 1e-300, got "
            f"{text[:40]!r}; give what may be lost, such as epsilon:1."
        )


def read_domain(text: str) -> Domain:
    """Read a domain given as JSON text, ``@file.json`` or ``@plan.toml``."""
    document = (
        read_toml(Path(text[1:]), kind="plan file")
        if _is_toml(text)
        else read_json(text, "domain")
    )
    if isinstance(document, dict) and "kind" not in document:
        document = document.get("domain", document)
    return domain_from_document(document)


def release_source(path: Path) -> tuple[Domain, str | None, bool, str | None]:
    """Return what a release file is accounted on.

    Returns
    -------
    domain : Domain
        The databases the guarantee ranges over.
    unit : str or None
        The column of the unit.
    lone : bool
        Whether every row is a unit of its own.
    time : str or None
        The column of the time.
    """
    try:
        from undertow.release.document.release_document import read_release
        from undertow.release.plan.planned_release import plan_release
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    document = read_release(path)
    source = document.source
    lone = source.unit is None and source.kind == "user"
    return plan_release(document).domain, source.unit, lone, source.time


def _is_toml(text: str) -> bool:
    return text.startswith("@") and text.endswith(".toml")


def read_toml(path: Path, *, kind: str) -> dict[str, Any]:
    """Read a TOML file of moderate size.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it must be, for the error message.

    Raises
    ------
    LedgerError
        If it cannot be read, is too large, or is no TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise LedgerError(f"{path} must be a {kind}, got a larger file.")
        return parse_toml(content.decode("utf-8"))
    except OSError as fault:
        raise LedgerError(
            f"{path} must be a readable file, got {fault.strerror}."
        ) from None
    except (ValueError, RecursionError):
        raise LedgerError(f"{path} must be a TOML file, got another text.") from None
