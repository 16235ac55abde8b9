"""Released cells with their intervals, drawn without any library.

The picture stretches with the page and its words do not: dots and lines keep their
width, and the labels are text beside the picture.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from undertow.report.release_words import shown_cell, shown_level, shown_text

__all__ = ["cell_chart", "chart_words", "key_words"]

_WIDTH, _HEIGHT = 1000, 100
_MOST_LABELS, _MOST_EDGES = 7, 40
_BILLION = 1e9
# Half the width of a letter, in percent of the chart on the narrowest screen.
_HALF = 1.3
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


def cell_chart(answer: dict[str, Any], rows: Rows, *, unit: str) -> str:
    """Return the chart of a query's answer as a figure.

    Parameters
    ----------
    answer : dict
        Name, columns and confidence of the answer.
    rows : sequence of sequences
        Keys, estimate, low and high of the cells that are shown, in order.
    unit : str
        What the numbers count.
    """
    scale = _Scale.over(rows)
    words = html.escape(chart_words(answer, rows))
    name = html.escape(shown_text(answer["name"]))
    dot, thick = next((d, t) for most, d, t in _THICK if len(rows) <= most)
    labels = _axis_labels(scale) + _cell_labels(answer["columns"], rows)
    level = shown_level(answer["confidence"])
    keys = ", ".join(answer["columns"][:-3])
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


def _cell_labels(columns: Sequence[str], rows: Rows) -> list[str]:
    """Return the names of some cells, of half of them on a narrow screen."""
    starts = _groups(rows)
    places = starts or list(range(len(rows)))
    chosen = places[:: math.ceil(len(places) / _MOST_LABELS)]
    most = 100 / len(chosen)
    half = min(most, _HALF * _longest(rows, bool(starts)))
    labels = []
    for number, at in enumerate(chosen):
        left = 100 * (at + (0.0 if starts else 0.5)) / len(rows)
        keys = rows[at][:1] if starts else rows[at][:-3]
        text = html.escape(_label(keys))
        spills = starts and left + 2 * most > 100
        more = " more" if number % 2 or spills else ""
        side = _side(left, half, starts)
        # One that starts or ends at its place has half the room of one around it.
        room = most if starts or not side else most / 2
        kinds = f"label x{more}{side}"
        labels.append(
            f'<span class="{kinds}" aria-hidden="true" data-at="{at}" '
            f'style="left: {left:.2f}%; --most: {room:.1f}%"><bdi>{text}</bdi></span>'
        )
    return labels


def _longest(rows: Rows, first: bool) -> int:
    """Return the letters of the longest label; sorting moves labels to other places."""
    return max(len(_label(row[:1] if first else row[:-3])) for row in rows)


def _label(keys: Sequence[Any]) -> str:
    return ", ".join(_key(key) for key in keys)


def _side(left: float, half: float, starts: Sequence[int]) -> str:
    """Return on which side of its place a label is written, so that none spills.

    Half of its width is `half`; it is written below its place if it fits there.
    """
    if starts:
        return " last" if left + 2 * half > 100 else " first"
    if left + half > 100:
        return " last"
    return " first" if left < half else ""
