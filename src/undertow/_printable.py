"""Text of others on a terminal: nothing in it may steer the terminal."""

from __future__ import annotations

__all__ = ["on_one_line"]


def on_one_line(text: str) -> str:
    r"""Return a text with its control characters spelled out.

    Examples
    --------
    >>> print(on_one_line("steps\x1b[2J\n"))
    steps\x1b[2J\n
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
