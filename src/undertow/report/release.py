"""The report of a private release: what was promised, what it costs, what came out."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from undertow.errors import PlanError
from undertow.report.release_html import release_html
from undertow.report.release_markdown import release_markdown
from undertow.report.release_sections import release_sections
from undertow.report.release_words import Record

__all__ = ["ReleaseReport", "release_page"]


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """One page about one release, or about the plan of one.

    Parameters
    ----------
    record : mapping
        The record of a run, plain values as the ledger keeps them; without answers it
        is a plan. A key ``charge`` may hold `number`, `key` and `hash` of the ledger's
        entry, and ``new_budget`` the ledger that the run has made.
    """

    record: Record

    def to_html(self) -> str:
        """Return the page as self-contained HTML."""
        return release_page(self.record)

    def to_markdown(self) -> str:
        """Return the page as Markdown; charts are left to their tables."""
        return release_markdown(release_sections(self.record))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page whole or not at all, for its owner alone.

        Parameters
        ----------
        path : str or path-like
            Ends with ``.html``, ``.htm`` or ``.md``.

        Raises
        ------
        PlanError
            If it ends otherwise or cannot be written.
        """
        place = Path(path)
        kind = place.suffix.lower()
        if kind not in (".html", ".htm", ".md"):
            raise PlanError(f"report must end with .html or .md, got {place.name!r}.")
        text = self.to_markdown() if kind == ".md" else self.to_html()
        _write_private(place, text.encode("utf-8", "backslashreplace"))


def _write_private(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except OSError as fault:
        raise PlanError(
            f"report must be a file that can be written, got {path}: {fault.strerror}."
        ) from None
    finally:
        part.unlink(missing_ok=True)


def release_page(record: Record) -> str:
    """Return the report of a release as one self-contained HTML page."""
    return release_html(release_sections(record))
