"""Which subjects may run in several processes, and go on from a checkpoint."""

from __future__ import annotations

from typing import Any, SupportsIndex

from undertow._validate import check_count
from undertow.audit.subjects import draws_apart, is_seeded
from undertow.errors import AuditError

__all__ = ["check_copies"]


def check_copies(
    subject: Any, *, workers: SupportsIndex, checkpoint: Any, name: str | None = None
) -> None:
    """Refuse workers and checkpoints that a subject cannot have.

    Copies of it must draw apart, and for a checkpoint a seed must repeat its runs.
    `to_repeat` of the subject is the way out.
    """
    called = str(subject.name) if name is None else name
    if check_count(workers, "workers") > 1 and not draws_apart(subject):
        raise AuditError(
            f"workers must be 1 for {called}, whose copies may draw the same numbers, "
            f"got {workers}; {_to_repeat(subject)}."
        )
    if checkpoint is not None and not (is_seeded(subject) and draws_apart(subject)):
        raise AuditError(
            f"checkpoint must be None for {called}, which no seed repeats; "
            f"{_to_repeat(subject)}."
        )


def _to_repeat(subject: Any) -> str:
    return str(getattr(subject, "to_repeat", "run it without"))
