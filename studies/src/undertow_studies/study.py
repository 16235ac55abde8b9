"""What a study is: one figure or table of the sources, computed anew and compared.

A study computes; it reads no file and writes none. Its data, real or stand-in, are
handed to it, and its result says which they were. Panels of the errors of Laplace noise
are drawn alike in all studies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from undertow.errors import AssumptionError

Status = Literal["match", "erratum", "differs", "stand-in", "not published"]
_EVALUATED = 1e-9  # relative: both sides are doubles


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
    status : {"match", "erratum", "differs", "stand-in", "not published"}
        They agree; the source is wrong (the note says why); they differ, or a
        cross-check of our own fails, and the note says how; ours comes from a stand-in
        or a part of the data of the source; or the source printed nothing and ours
        stands alone.
    note : str
        Why.
    erratum : str
        Id of the misprint on the errata page, such as ``"RE1"``, where the status is
        ``"erratum"``.

    Raises
    ------
    ValueError
        If a status other than ``"not published"`` or ``"differs"`` is given where
        nothing was printed, or an erratum has no id.
    """

    quantity: str
    published: float | str | None
    ours: float | str
    status: Status
    note: str = ""
    erratum: str = ""

    def __post_init__(self) -> None:
        allowed: tuple[Status, ...] = ("match", "erratum", "differs", "stand-in")
        if self.published is None:
            allowed = ("not published", "differs")
        if self.status not in allowed:
            raise ValueError(
                f"status must be one of {', '.join(allowed)} for the published value "
                f"{self.published!r}, got {self.status!r} for {self.quantity!r}."
            )
        if (self.status == "erratum") != bool(self.erratum):
            raise ValueError(
                "erratum must be the id of a misprint where the status is 'erratum', "
                f"and only there, got {self.erratum!r} for {self.quantity!r}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the six fields, infinite numbers as text."""
        return {
            "quantity": self.quantity,
            "published": _plain(self.published),
            "ours": _plain(self.ours),
            "status": self.status,
            "erratum": self.erratum or None,
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
    drawn : str
        What the source drew and what was drawn here, in words; empty where nothing is
        simulated.
    """

    name: str
    title: str
    source: str
    panels: tuple[Panel, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    checks: tuple[Check, ...]
    data: str = "none needed"
    drawn: str = ""

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
    compute : callable
        From :class:`Inputs` to :class:`StudyResult`.
    needs : tuple of str
        Names of the data sets it reads.
    draws : callable, optional
        From the repetitions asked for to what the source drew and what is drawn here;
        none where nothing is simulated.
    """

    name: str
    title: str
    source: str
    compute: Callable[[Inputs], StudyResult]
    needs: tuple[str, ...] = ()
    draws: Callable[[int], str] | None = None

    def run(self, inputs: Inputs) -> StudyResult:
        """Compute the study, and say in its result what was drawn."""
        result = self.compute(inputs)
        if self.draws is None:
            return result
        return replace(result, drawn=self.draws(inputs.runs))


def compare(
    quantity: str,
    published: str | float,
    ours: float,
    *,
    margin: float = 0.0,
    erratum: str = "",
    why: str = "",
    stand_in: str = "",
    note: str = "",
) -> Check:
    """Return the check of one number against that of the source, by one rule.

    Parameters
    ----------
    quantity : str
        What the number is.
    published : str or float
        A text is the number as printed, digit by digit: ours agrees if it rounds to
        it. A number is a formula of the source, evaluated: ours agrees to a relative
        1e-9.
    ours : float
        As computed here.
    margin : float
        What ours may be off by its own making, such as a limit taken at a finite
        point; the note has to say so.
    erratum : str
        Id of the misprint if the source is wrong; it counts where the two differ.
    why : str
        Why the source is wrong, if it is.
    stand_in : str
        What stands in for the data of the source, if something does. The check is a
        stand-in then, whatever comes out.
    note : str
        Anything else to be said.

    Examples
    --------
    >>> compare("factor", "1.853", 1.853448).status
    'match'
    >>> compare("factor", "1.8530", 1.853448).status
    'differs'
    """
    status: Status
    if stand_in:
        status, note = "stand-in", f"{stand_in}; {note}" if note else stand_in
    elif agrees(published, ours, margin=margin):
        status = "match"
    elif erratum:
        return Check(quantity, float(published), ours, "erratum", why or note, erratum)
    else:
        status = "differs"
    return Check(quantity, float(published), ours, status, note)


def agrees(published: str | float, ours: float, *, margin: float = 0.0) -> bool:
    """Tell whether `ours` is the published number, as :func:`compare` decides it.

    Examples
    --------
    >>> agrees("0.11", 0.0934), agrees("0.03", 0.0343), agrees("897", 898)
    (False, True, False)
    """
    if isinstance(published, str):
        exponent = Decimal(published).as_tuple().exponent
        if not isinstance(exponent, int):
            raise ValueError(f"published must be a finite number, got {published!r}.")
        half = 0.5 * 10.0**exponent
        slack = 1e-12 * abs(float(published))
        return abs(float(published) - ours) <= half + margin + slack
    return math.isclose(published, ours, rel_tol=_EVALUATED, abs_tol=1e-12 + margin)


def in_words(
    quantity: str, published: str, ours: float, *, within: tuple[float, float]
) -> Check:
    """Return the check of a number that the source gives in words only.

    Parameters
    ----------
    within : tuple of float
        What the words are read as, ends included; the note says so.

    Examples
    --------
    >>> in_words("error", "around 10 %", 0.135, within=(0.05, 0.15)).note
    'read as 0.05 to 0.15'
    """
    low, high = within
    status: Status = "match" if low <= ours <= high else "differs"
    return Check(quantity, published, ours, status, f"read as {low:g} to {high:g}")


def _plain(value: float | str | None) -> float | str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    return value


def count(number: int) -> str:
    """Write a whole number with thin groups of three, as the figures' captions do.

    Examples
    --------
    >>> count(1000000)
    '1 000 000'
    """
    return f"{number:,}".replace(",", " ")


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


# Errors of Laplace noise over a range of promises: lines, markers, percentages.

GRID = (0.05, 0.1, *(float(b) for b in np.arange(0.25, 20.01, 0.25)))
"""Promises from 0.05 to 20."""

Level = Callable[[float], float]
"""From a promise to a DP level; nan where a method cannot keep it."""

_BETA = 0.05
_MARKED = 8


def releases_drawn(runs: int) -> str:
    """Say how many releases the source drew at a point, and how many are drawn here."""
    return f"source: 1 000 releases a point; here: {count(runs)}"


def level_or_nan(budget: Callable[[float], float]) -> Level:
    """Return a level function that is nan where the method refuses."""

    def level(target: float) -> float:
        try:
            return budget(target)
        except AssumptionError:
            return math.nan

    return level


def error_panel(
    name: str,
    levels: Mapping[str, Level],
    *,
    sensitivity: float,
    unit: str,
    runs: int,
    rng: np.random.Generator,
) -> Panel:
    """Return the error at 95 % over the promise: theory lines, simulated markers."""
    curves = []
    for label, level in levels.items():
        scales = [sensitivity / level(b) for b in GRID]
        theory = tuple(-math.log(_BETA) * scale for scale in scales)
        curves.append(Curve(label, GRID, theory, kind=_kind(label)))
        feasible = [(b, s) for b, s in zip(GRID, scales, strict=True) if s == s]
        marked = feasible[::_MARKED]
        measured = tuple(
            float(np.quantile(np.abs(rng.laplace(scale=s, size=runs)), 1 - _BETA))
            for _, s in marked
        )
        places = tuple(b for b, _ in marked)
        curves.append(Curve(f"{label}, measured", places, measured, kind="measured"))
    return Panel(
        name, tuple(curves), "leakage B", f"error at 95 % ({unit})", y_log=True
    )


def percent_panel(
    name: str, levels: Mapping[str, Level], *, sensitivity: float, truth: float
) -> Panel:
    """Return the mean absolute percentage error over the promise."""
    curves = []
    for label, level in levels.items():
        values = tuple(100 * sensitivity / level(b) / truth for b in GRID)
        curves.append(Curve(label, GRID, values, kind=_kind(label)))
    return Panel(name, tuple(curves), "leakage B", "mean error (%)", y_log=True)


def _kind(label: str) -> Literal["baseline", "theory"]:
    """Return how a method is drawn: DP is a baseline, it does not keep the promise."""
    return "baseline" if label == "DP" else "theory"
