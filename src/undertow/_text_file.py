"""Files that people write: bounded in size, one sentence when something is wrong."""

from __future__ import annotations

from pathlib import Path

from undertow.errors import PlanError

__all__ = ["LARGEST_FILE", "read_text_file"]

# Written by people or scripts, a few hundred bytes an entry; what is larger than this
# is some other file.
LARGEST_FILE = 16 * 2**20


def read_text_file(path: Path, *, kind: str) -> str:
    """Return the text of a file.

    Parameters
    ----------
    path : Path
        Where it is.
    kind : str
        What it should be, such as ``"plan"``, for the message.

    Raises
    ------
    PlanError
        If it is missing, too large, or not UTF-8 text.
    """
    content = _bytes(path, kind)
    if len(content) > LARGEST_FILE:
        raise PlanError(
            f"{path} must be a {kind} file of at most {LARGEST_FILE // 2**20} MiB, "
            "got a larger file."
        )
    if b"\0" in content:
        raise PlanError(f"{path} must be a TOML text file, got binary content.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanError(f"{path} must be UTF-8 text, got other bytes.") from None


def _bytes(path: Path, kind: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise PlanError(f"{path} must be a {kind} file, got no such file.") from None
    except IsADirectoryError:
        raise PlanError(f"{path} must be a {kind} file, got a folder.") from None
    except OSError as fault:
        raise PlanError(
            f"{path} must be a readable file, got {fault.strerror}."
        ) from None
    except ValueError:
        raise PlanError("path must be a file name, got one with NUL.") from None
