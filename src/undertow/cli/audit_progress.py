"""Watching an audit: a bar with the running estimate, and the counts on the way."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import Any

from undertow.audit import epsilon_from_success
from undertow.audit.runner import Counts

__all__ = ["Watch", "printing_aside", "running_estimate"]


@contextmanager
def printing_aside() -> Iterator[None]:
    """Send to standard error what other code prints, in its processes too.

    Standard output is for one result alone.
    """
    sys.stdout.flush()
    with redirect_stdout(sys.stderr):
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def running_estimate(counts: Counts, *, categories: int, delta: float) -> float | None:
    """Return a point estimate of epsilon from counts so far, where they show one.

    Examples
    --------
    >>> import numpy as np
    >>> counts = {"p": np.array(299), "q": np.array(99)}
    >>> round(running_estimate(counts, categories=2, delta=0.0), 2)
    1.1
    """
    if "successes" in counts:
        rate = float(counts["successes"][0] / counts["trials"][0])
        return float(epsilon_from_success(rate, categories, delta=delta))
    if "pooled" in counts:
        _, second, first, _ = counts["pooled"].tolist()
    elif "p" in counts:
        first, second = int(counts["p"]), int(counts["q"])
    else:
        return None
    return abs(math.log((first + 0.5) / (second + 0.5)))


class Watch:
    """The progress hook of an audit; shows a bar on standard error on a terminal.

    Parameters
    ----------
    what : str
        What is audited.
    categories : int
        Number of its values.
    delta : float
        Of the claim.
    """

    def __init__(self, what: str, *, categories: int, delta: float) -> None:
        self.what, self.categories, self.delta = what[:40], categories, delta
        self.looks: list[Counts] = []
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            shown = f"auditing {escape(self.what)}"
            self._task = self._bar.add_task(shown, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, counts: Counts) -> None:
        """Keep the counts and move the bar."""
        self.looks.append(counts)
        if self._bar is None:
            return
        words = self._words(counts)
        self._bar.update(self._task, completed=done, total=total, description=words)

    def _words(self, counts: Counts) -> str:
        if "threat_hits" in counts:
            rate = float(counts["threat_hits"][0] / counts["trials"][0])
            return f"attack right in {100 * rate:.3g} %"
        seen = running_estimate(counts, categories=self.categories, delta=self.delta)
        return "certifying" if seen is None else f"estimate ε ≈ {seen:.3g}"
