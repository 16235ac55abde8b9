"""What a study is: one figure or table of the sources, computed anew and compared.

A study computes; it reads no file and writes none. Its data, real or stand-in, are
handed to it, and its result says which they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Check",
    "Curve",
    "Inputs",
    "Panel",
    "Status",
    "Study",
    "StudyResult",
    "compare",
    "table_of",
]

Status = Literal["match", "erratum", "differs", "stand-in"]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line or set of markers of a panel.

    Parameters
    ----------
    label : str
        What it shows; the same method has the same label in every study.
    x, y : tuple of float
        Points; a `y` of nan or infinity is a gap.
    kind : {"theory", "measured", "baseline", "region"}
        A line, markers, a dashed grey line, or the border of a shaded region.
    spread : tuple of float
        Standard deviation of each measured point, drawn as a bar; none by default. A
        nan has no bar.
    sizes : tuple of float
        What the area of each marker stands for, none negative; equal markers by
        default. Only measured points have markers.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    kind: Literal["theory", "measured", "baseline", "region"] = "theory"
    spread: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(
                f"x and y must have one length, got {len(self.x)} and {len(self.y)}."
            )
        if self.spread and len(self.spread) != len(self.x):
            raise ValueError(
                f"spread must have one entry for each of the {len(self.x)} points, got "
                f"{len(self.spread)}."
            )
        if self.sizes:
            self._check_sizes()

    def _check_sizes(self) -> None:
        if self.kind != "measured":
            raise ValueError(
                f"sizes must be left out but for measured points, got a {self.kind} "
                "curve."
            )
        if len(self.sizes) != len(self.x):
            raise ValueError(
                f"sizes must have one entry for each of the {len(self.x)} points, got "
                f"{len(self.sizes)}."
            )
        if not all(0 <= size < math.inf for size in self.sizes):
            raise ValueError("sizes must be finite and none negative.")


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes: its curves, and what its axes say."""

    name: str
    curves: tuple[Curve, ...]
    x_label: str
    y_label: str
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One published number beside ours.

    Parameters
    ----------
    quantity : str
        What the number is.
    published : float or str or None
        As printed in the source; None where it printed none.
    ours : float or str
        As computed here.
    status : {"match", "erratum", "differs", "stand-in"}
        They agree, or our own cross-check holds where none was printed; the source is
        wrong (the note says why); they differ and the note says how; or ours comes
        from a stand-in, not from the data of the source.
    note : str
        Why.
    """

    quantity: str
    published: float | str | None
    ours: float | str
    status: Status
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the five fields, infinite numbers as text."""
        return {
            "quantity": self.quantity,
            "published": _plain(self.published),
            "ours": _plain(self.ours),
            "status": self.status,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a study found: panels to draw, rows to tabulate, checks.

    Parameters
    ----------
    name, title, source : str
        As of the study.
    panels : tuple of Panel
        What to draw, left to right.
    header : tuple of str
        Columns of the table.
    rows : tuple of tuple
        Its rows.
    checks : tuple of Check
        Published numbers beside ours.
    data : str
        Which data were used, in words.
    """

    name: str
    title: str
    source: str
    panels: tuple[Panel, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    checks: tuple[Check, ...]
    data: str = "none needed"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"a row must have {len(self.header)} cells, got {len(row)}."
                )


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a study is given.

    Parameters
    ----------
    data : mapping of str to object
        The data sets it asked for, by name.
    runs : int
        Repetitions of each simulated point.
    seed : int
        Seed of all simulation.
    """

    data: Mapping[str, Any]
    runs: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Study:
    """One figure or table of the sources.

    Parameters
    ----------
    name : str
        Short name, such as ``"figure-6.7"``.
    title : str
        What it shows.
    source : str
        Where it is printed.
    run : callable
        From :class:`Inputs` to :class:`StudyResult`.
    needs : tuple of str
        Names of the data sets it reads.
    """

    name: str
    title: str
    source: str
    run: Callable[[Inputs], StudyResult]
    needs: tuple[str, ...] = ()


def compare(
    quantity: str,
    published: float,
    ours: float,
    *,
    tolerance: float,
    erratum: str = "",
    stand_in: str = "",
    note: str = "",
) -> Check:
    """Return the check of one number against the printed one.

    Parameters
    ----------
    tolerance : float
        Largest difference that is put down to rounding of the printed number.
    erratum : str
        Why the printed number is wrong, if it is; then the two must *differ*.
    stand_in : str
        What stands in for the data of the source, if something does.
    note : str
        Anything else to be said.

    Examples
    --------
    >>> compare("factor", 1.853, 1.853448, tolerance=5e-4).status
    'match'
    """
    close = math.isclose(published, ours, rel_tol=0, abs_tol=tolerance)
    status: Status
    if stand_in:
        status, note = "stand-in", stand_in
    elif erratum and not close:
        status, note = "erratum", erratum
    else:
        status = "match" if close else "differs"
    return Check(quantity, published, ours, status, note)


def _plain(value: float | str | None) -> float | str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    return value


def table_of(panels: Sequence[Panel]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return header and rows of the plain table of all points of `panels`."""
    header = ("panel", "curve", "kind", "x", "y")
    rows = tuple(
        (panel.name, curve.label, curve.kind, x, y)
        for panel in panels
        for curve in panel.curves
        for x, y in zip(curve.x, curve.y, strict=True)
    )
    return header, rows
