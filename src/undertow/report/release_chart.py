"""Released cells with their intervals, drawn without any library.

The picture stretches with the page and its words do not: dots and lines keep their
width, and the labels are text beside the picture.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from undertow.report.release_words import shown_cell, shown_level, shown_text

__all__ = ["cell_chart", "chart_words", "key_words"]

_WIDTH, _HEIGHT = 1000, 100
_MOST_LABELS, _MOST_EDGES = 7, 40
_MOST_NARROW = 3
_BILLION = 1e9
# The width of a letter, in percent of the chart on the narrowest screen.
_LETTER = 2.6
# Thickness of a dot and of an interval, by the number of cells they go up to.
_THICK = ((60, "8px", "4px"), (200, "5px", "2px"), (math.inf, "3px", "1px"))

Rows = Sequence[Sequence[Any]]


def key_words(names: Sequence[str], keys: Sequence[Any]) -> str:
    """Name a cell by its keys."""
    pairs = zip(names, keys, strict=True)
    return ", ".join(f"{shown_text(n)} {_key(k)}" for n, k in pairs)


def _key(value: Any) -> str:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if plain else shown_cell(value)


def _number(value: Any) -> float | None:
    """Return a finite number, or None where there is none to draw."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis of the estimates."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, rows: Rows) -> _Scale:
        ends = [_number(value) for row in rows for value in row[-3:]]
        drawn = [end for end in ends if end is not None] or [0.0, 1.0]
        low, high = min(drawn), max(drawn)
        if 0 < low < high / 2:
            low = 0.0
        elif low / 2 < high < 0:
            high = 0.0
        if high == low:
            low, high = low - 1, high + 1
        step = _step(high - low)
        return cls(step * math.floor(low / step), step * math.ceil(high / step), step)

    def y(self, value: float) -> float:
        return round(_HEIGHT * (self.high - value) / (self.high - self.low), 2)

    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + k * self.step for k in range(count + 1)]


def _step(span: float) -> float:
    power = 10.0 ** math.floor(math.log10(span))
    return next(power * k for k in (0.2, 0.25, 0.5, 1.0, 2.0) if span <= 5 * power * k)


def chart_words(answer: dict[str, Any], rows: Rows) -> str:
    """Say what the chart shows, for whoever does not see it."""
    names = answer["columns"][:-3]
    drawn = [row for row in rows if _number(row[-3]) is not None]
    if not drawn:
        return "No cell has an estimate."
    least = min(drawn, key=lambda row: row[-3])
    most = max(drawn, key=lambda row: row[-3])
    ends = [
        f"{shown_cell(row[-3])} ({key_words(names, row[:-3])})" for row in (least, most)
    ]
    return (
        f"{len(rows):,} cells with intervals of {shown_level(answer['confidence'])} "
        f"confidence; estimates from {ends[0]} to {ends[1]}. The table has all of them."
    )


def cell_chart(
    answer: dict[str, Any], rows: Rows, *, unit: str, by: Sequence[str] | None = None
) -> str:
    """Return the chart of a query's answer as a figure.

    Parameters
    ----------
    answer : dict
        Name, columns and confidence of the answer.
    rows : sequence of sequences
        Keys, estimate, low and high of the cells that are shown, in order.
    unit : str
        What the numbers count.
    by : sequence of str, optional
        What the cells are parted by; by default the columns of their keys.
    """
    scale = _Scale.over(rows)
    words = html.escape(chart_words(answer, rows))
    name = html.escape(shown_text(answer["name"]))
    dot, thick = next((d, t) for most, d, t in _THICK if len(rows) <= most)
    labels = _axis_labels(scale) + _cell_labels(rows)
    level = shown_level(answer["confidence"])
    keys = ", ".join(answer["columns"][:-3] if by is None else by)
    axes = html.escape(shown_text(f"{unit} by {keys}" if keys else unit))
    return "\n".join(
        [
            f'<figure style="--dot: {dot}; --thick: {thick}">',
            f'<p class="unit" aria-hidden="true">{axes}</p>',
            '<div class="plot" tabindex="0" role="group" aria-roledescription="chart" '
            f'aria-label="{name}: the arrow keys read cell after cell">',
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" '
            f'role="img" aria-label="{words}">',
            *_grid(scale),
            *_edges(rows),
            *(_mark(at, row, len(rows), scale) for at, row in enumerate(rows)),
            "</svg>",
            *labels,
            "</div>",
            '<output class="readout" aria-live="polite">Point at the chart, touch it, '
            "or use the arrow keys, to read a cell.</output>",
            f"<figcaption>Dots: estimates. Lines: intervals of {level} confidence, "
            'each by itself. <span class="screen">The chart follows the order of the '
            "table.</span></figcaption>",
            "</figure>",
        ]
    )


def _grid(scale: _Scale) -> list[str]:
    return [
        f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{scale.y(t)}" y2="{scale.y(t)}"/>'
        for t in scale.ticks()
    ]


def _mark(at: int, row: Sequence[Any], count: int, scale: _Scale) -> str:
    estimate, low, high = (_number(value) for value in row[-3:])
    place = round(_WIDTH * (at + 0.5) / count, 2)
    parts = []
    if low is not None and high is not None:
        parts.append(f'<path class="span" d="M0 {scale.y(low)}V{scale.y(high)}"/>')
    if estimate is not None:
        parts.append(f'<path class="dot" d="M0 {scale.y(estimate)}h0"/>')
    inside = "".join(parts)
    return (
        f'<g class="mark" data-i="{at}" transform="translate({place} 0)">{inside}</g>'
    )


def _groups(rows: Rows) -> list[int]:
    """Return where the first key changes, or nothing if that says nothing."""
    if not rows or len(rows[0]) < 5:
        return []
    starts = [at for at, row in enumerate(rows) if not at or row[0] != rows[at - 1][0]]
    return starts if 1 < len(starts) <= len(rows) / 2 else []


def _edges(rows: Rows) -> list[str]:
    starts = _groups(rows)
    if len(starts) > _MOST_EDGES:
        return []
    places = [round(_WIDTH * at / len(rows), 2) for at in starts[1:]]
    return [
        f'<line class="edge" x1="{x}" x2="{x}" y1="0" y2="{_HEIGHT}"/>' for x in places
    ]


def _axis_labels(scale: _Scale) -> list[str]:
    return [
        f'<span class="label y" aria-hidden="true" style="top: {scale.y(tick)}%">'
        f"{_tick_words(tick)}</span>"
        for tick in scale.ticks()
    ]


def _tick_words(tick: float) -> str:
    if abs(tick) >= _BILLION:
        return f"{tick:.4g}"
    return f"{tick / 1e6:,.6g} M" if abs(tick) >= 1e6 else f"{tick:,.8g}"


@dataclass(frozen=True, slots=True)
class _Label:
    """The name of a cell or of a group: a row of it, its middle in percent, words."""

    row: int
    middle: float
    words: str


def _cell_labels(rows: Rows) -> list[str]:
    """Return the names of some cells or groups, of fewer of them on a narrow screen."""
    labels = _chosen(rows)
    kept = _narrow(labels)
    return [
        f'<span class="label x{"" if label in kept else " more"}" aria-hidden="true" '
        f'data-at="{label.row}" style="--at: {label.middle:.2f}%; '
        f"--letters: {len(label.words)}; --room: {_room(label, labels):.2f}%; "
        f'--narrow: {_room(label, kept):.2f}%">'
        f"<bdi>{html.escape(label.words)}</bdi></span>"
        for label in labels
    ]


def _chosen(rows: Rows) -> list[_Label]:
    """Return the labels that a wide screen has room for."""
    starts, count = _groups(rows), len(rows)
    spans = list(pairwise([*(starts or range(count)), count]))
    return [
        _Label(
            (first + stop) // 2,
            50 * (first + stop) / count,
            _words(rows[first][:1] if starts else rows[first][:-3]),
        )
        for first, stop in spans[:: math.ceil(len(spans) / _MOST_LABELS)]
    ]


def _words(keys: Sequence[Any]) -> str:
    return ", ".join(_key(key) for key in keys)


def _narrow(labels: Sequence[_Label]) -> Sequence[_Label]:
    """Return the labels of a narrow screen: few enough to be read whole, if two are."""
    first = 2 if len(labels) > _MOST_NARROW else 1
    tried = [labels[::step] for step in range(first, len(labels))]
    return next((some for some in tried if _fit(some)), labels[::first])


def _fit(labels: Sequence[_Label]) -> bool:
    """Tell whether all labels have room on a narrow screen."""
    return all(_LETTER * len(one.words) <= _room(one, labels) for one in labels)


def _room(label: _Label, labels: Sequence[_Label]) -> float:
    """Return the width a label may have without touching others, in percent.

    It has half the way to its neighbours on both sides. Near the edge of the chart,
    where it is moved inwards, it has what is left between the edge and that half way.
    """
    middle = label.middle
    ways = [abs(other.middle - middle) / 2 for other in labels if other != label]
    half, edge = min(ways, default=100.0), min(middle, 100 - middle)
    return min(2 * half, half + edge, 100.0)
