"""Changes of tables in words."""

from __future__ import annotations

from collections.abc import Hashable

from undertow.spaces.change import Change
from undertow.spaces.domain import Table

__all__ = ["added", "exchanged", "in_cells", "replaced"]


def in_cells(label: tuple[Hashable, ...], domain: Table) -> str:
    """Return where a record lies, in words."""
    if not domain.cells:
        return ""
    if not domain.multi:
        return f" of {domain.cell} {label[0]!r}"
    named = ", ".join(repr(cell) for cell in label) or "none"
    return f" of {domain.cell}s {named}"


def added(label: tuple[Hashable, ...], domain: Table) -> Change:
    """Return the change that adds or removes one record."""
    where = in_cells(label, domain)
    return Change("add", f"add or remove a record{where}", (("cells", label),))


def replaced(
    source: tuple[Hashable, ...], destination: tuple[Hashable, ...], domain: Table
) -> Change:
    """Return the change that replaces one record, with example databases."""
    details: tuple[tuple[str, object], ...] = (
        ("from", source),
        ("to", destination),
    )
    if source == destination:
        where = in_cells(source, domain)
        summary = f"replace a record{where} by another one of the same"
        if not domain.cells:
            summary = "replace a record by another one"
        return Change("replace", summary, details)
    there = in_cells(destination, domain)
    summary = f"replace a record{in_cells(source, domain)} by one{there}"
    if not domain.multi:
        one, two = source[0], destination[0]
        pair = ((one, one, one), (one, one, two))
        details = (*details, ("example", pair))
    return Change("replace", summary, details)


def exchanged(
    domain: Table, once: tuple[int, ...], twice: tuple[int, ...], *, replace: bool
) -> Change:
    """Return the change of a record in several cells, by position of the cells."""
    alone = tuple(domain.cells[i] for i in once)
    shared = tuple(domain.cells[i] for i in twice)
    if not replace:
        return added(alone, domain)
    details = (("either", alone), ("both", shared))
    named = ", ".join(repr(cell) for cell in (*alone, *shared))
    return Change("replace", f"replace a record, touching cells {named}", details)
