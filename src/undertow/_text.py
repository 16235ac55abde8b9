"""Text of others: files that people write, and what a terminal may show of it.

Files are bounded in size, and one sentence says what is wrong with one. Nothing in a
text that is shown may steer the terminal.
"""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from undertow.errors import PlanError

# Written by people or scripts, a few hundred bytes an entry; what is larger than this
# is some other file.
LARGEST_FILE = 16 * 2**20

# The time of reading a dotted key grows with the square of its parts.
_MOST_PARTS = 64
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")
_HANDED_OVER = ("/dev/", "/proc/")  # pipes of the shell, which have no other name


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
        If it is missing, too large, not UTF-8 text, or a named pipe or device, which
        may never end.
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
        if str(path).startswith(_HANDED_OVER) or _is_regular(path):
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
    raise PlanError(f"{path} must be a {kind} file, got a pipe, socket or device.")


def _is_regular(path: Path) -> bool:
    """Tell whether reading a file ends, or says that it is a folder."""
    mode = path.stat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML says.

    Raises
    ------
    ValueError
        If it is not TOML, or has a key of more than 64 dotted parts.
    RecursionError
        If it is nested too deeply.
    """
    if _DOTTED.search(text):
        raise ValueError(f"a key of more than {_MOST_PARTS} dotted parts.")
    return tomllib.loads(text)


def on_one_line(text: str) -> str:
    r"""Return a text with its control characters spelled out.

    Examples
    --------
    >>> print(on_one_line("steps\x1b[2J\n"))
    steps\x1b[2J\n
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
