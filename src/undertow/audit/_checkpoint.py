"""One file from which an interrupted run goes on, written by the clock."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undertow.errors import AuditError

__all__ = ["UNREADABLE", "Checkpoint", "Place", "Section", "places"]

UNREADABLE = (
    ValueError, KeyError, TypeError, AttributeError, SyntaxError, EOFError,
    OverflowError, RecursionError,
)  # fmt: skip
"""What reading a state may raise that is not what was saved."""

_FORMAT = "undertow audit checkpoint 2"
_OLDER = "undertow audit checkpoint 1"
# Seconds between two writes: of work that a kill may cost, unless a write takes more
# than a twentieth of it.
_INTERVAL = 1.0
_WRITES = 20.0


class Checkpoint:
    """A file in sections, each of one job; replaced as a whole, for its owner alone.

    Parameters
    ----------
    path : path
        Of the file; read at once if it is there.

    Raises
    ------
    AuditError
        If the folder is not there, or the file is damaged or of another format.

    Notes
    -----
    A kill leaves the file before or after a write, never a part of one. Sections that
    are not written again keep their text.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise AuditError(
                f"checkpoint must be a file in a folder that is there, got {self.path}."
            )
        held = _read(self.path) if self.path.exists() else {}
        self._held: dict[str, Any] = held
        self._texts = {name: json.dumps(part) for name, part in held.items()}
        self._interval, self._last = _INTERVAL, time.monotonic()

    def section(self, name: str, fingerprint: str) -> Section:
        """Return the part of one job; refuse one that another job has written."""
        found = self._held.get(name)
        strange = any(_is_phase(other) != _is_phase(name) for other in self._held)
        if strange or (found is not None and found["job"] != fingerprint):
            raise AuditError(
                f"checkpoint must belong to this job, got {self.path.name} of another "
                "one; name another file, or use the arguments and the seed that it was "
                "made with."
            )
        return Section(self, name, fingerprint)

    def state(self, name: str) -> Any:
        """Return what a section held when the file was read; None for nothing."""
        found = self._held.get(name)
        return None if found is None else found["state"]

    def due(self) -> bool:
        """Return whether it is time to write again."""
        return time.monotonic() - self._last >= self._interval

    def write(self, name: str, part: dict[str, Any]) -> None:
        """Replace one section and the file."""
        start = time.monotonic()
        self._texts[name] = json.dumps(part)
        held = ", ".join(f"{json.dumps(k)}: {text}" for k, text in self._texts.items())
        _replace(self.path, f'{{"format": "{_FORMAT}", "sections": {{{held}}}}}')
        self._last = time.monotonic()
        self._interval = max(_INTERVAL, _WRITES * (self._last - start))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a checkpoint a job is to keep its state."""

    checkpoint: Checkpoint
    name: str

    def section(self, fingerprint: str) -> Section:
        """Return the section for one job; refuse that of another."""
        return self.checkpoint.section(self.name, fingerprint)


@dataclass(frozen=True, slots=True)
class Section:
    """What one job keeps in a checkpoint."""

    checkpoint: Checkpoint
    name: str
    fingerprint: str

    def read(self) -> Any:
        """Return what was saved; None for nothing."""
        return self.checkpoint.state(self.name)

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return self.checkpoint.due()

    def save(self, state: Any) -> None:
        """Keep a state that JSON can hold."""
        part = {"job": self.fingerprint, "state": state}
        self.checkpoint.write(self.name, part)

    def damaged(self, error: Exception) -> AuditError:
        """Return what to raise if the state is not what was saved."""
        return _damaged(self.checkpoint.path, error)


def places(
    path: str | os.PathLike[str] | None, *names: str
) -> tuple[Place | None, ...]:
    """Return places of these names in one file; None for each without a file."""
    if path is None:
        return (None,) * len(names)
    checkpoint = Checkpoint(path)
    return tuple(Place(checkpoint, name) for name in names)


def _is_phase(name: str) -> bool:
    """Return whether a section is of a local audit; else it is of a pair audit."""
    return name.startswith("phase ")


def _damaged(path: Path, error: Exception) -> AuditError:
    return AuditError(
        f"checkpoint must be a whole file of an interrupted run, got {path.name}, "
        f"which is damaged ({type(error).__name__}); delete it to start again."
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        found = saved["format"]
        if found == _OLDER:
            raise AuditError(
                f"checkpoint must have the format of this version, got {path.name} of "
                "an older one; finish it with the version that wrote it, or delete it "
                "to start again."
            )
        if found != _FORMAT:
            raise ValueError("another format")
        sections = {str(k): dict(part) for k, part in saved["sections"].items()}
        for part in sections.values():
            part["job"], part["state"]
    except AuditError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, error) from None
    return sections


def _replace(path: Path, text: str) -> None:
    try:
        _write_whole(path, text)
    except OSError as error:
        raise AuditError(
            f"checkpoint must be a file that can be written, got {path}: "
            f"{error.strerror or error}."
        ) from None


def _write_whole(path: Path, text: str) -> None:
    # Made with mode 0600.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
