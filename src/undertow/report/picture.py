"""Claimed against certified over trials, as an inline picture that needs no library."""

from __future__ import annotations

import html
import math

from undertow.audit import AuditResult
from undertow.audit.curve import Curve
from undertow.report.page import shown_down

__all__ = ["curve_picture", "curve_words"]

_WIDTH, _HEIGHT = 480, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 54, 52
# Heights of the name of the axis and of the legend, and where its second part starts.
_NAME, _LEGEND, _SECOND = 16, 38, 264
_SYMBOLS = {"epsilon": "ε", "mu": "μ"}


def curve_words(result: AuditResult, curve: Curve) -> str:
    """Say in one sentence what the picture shows."""
    symbol = _SYMBOLS[result.claim.parameter]
    level = result.claim.for_replacement().level
    (first, low), (last, high) = curve.points[0], curve.points[-1]
    ends = f"{shown_down(high)} after {last} trials"
    if len(curve.points) > 1:
        ends = f"{shown_down(low)} after {first} trials, " + ends
    side = "above" if high > level else "not above"
    return f"Certified {symbol}: {ends}; {side} the claimed {level:g}."


def curve_picture(result: AuditResult, curve: Curve) -> str:
    """Return the picture as SVG, with its words as text alternative."""
    frame = _Frame(result, curve)
    words = html.escape(curve_words(result, curve))
    parts = [*frame.axes(), *frame.claim(), *frame.certified()]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}">\n'
        f"<title>{words}</title>\n" + "\n".join(parts) + "\n</svg>"
    )


class _Frame:
    """Where trials (log scale) and levels lie in the picture."""

    def __init__(self, result: AuditResult, curve: Curve) -> None:
        self.symbol = _SYMBOLS[result.claim.parameter]
        self.level = result.claim.for_replacement().level
        self.points = curve.points
        logs = [math.log2(max(1, n)) for n, _ in curve.points]
        self.low, self.high = min(logs) - 0.25, max(logs) + 0.25
        self.top = 1.15 * max(self.level, *(value for _, value in curve.points))

    def x(self, trials: int) -> float:
        share = (math.log2(max(1, trials)) - self.low) / (self.high - self.low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - value / self.top * height, 1)

    def axes(self) -> list[str]:
        floor, end = self.y(0.0), _WIDTH - _RIGHT
        parts = [
            _line("axis", (_LEFT, floor), (end, floor)),
            _line("axis", (_LEFT, _TOP), (_LEFT, floor)),
            _text((_LEFT, _NAME), f"privacy parameter {self.symbol}"),
            _text((end, _HEIGHT - 10), "trials (log scale)", anchor="end"),
        ]
        step = _step(self.top)
        for k in range(math.floor(self.top / step) + 1):
            shown = _text((_LEFT - 8, self.y(k * step) + 4), f"{k * step:g}", "end")
            parts.append(shown)
        first, last = self.points[0][0], self.points[-1][0]
        parts.append(_text((end, floor + 18), f"{last:,}", "end"))
        if first != last:
            parts.append(_text((_LEFT, floor + 18), f"{first:,}"))
        return [*parts, *(self._tick(trials, floor) for trials, _ in self.points)]

    def _tick(self, trials: int, floor: float) -> str:
        return _line("axis", (self.x(trials), floor), (self.x(trials), floor + 4))

    def claim(self) -> list[str]:
        height, end = self.y(self.level), _WIDTH - _RIGHT
        words = f"claimed {self.symbol} = {self.level:g}"
        return [
            _line("claim", (_LEFT, height), (end, height)),
            _line("claim", (_SECOND, _LEGEND - 5), (_SECOND + 24, _LEGEND - 5)),
            _text((_SECOND + 32, _LEGEND), words),
        ]

    def certified(self) -> list[str]:
        places = [(self.x(n), self.y(value)) for n, value in self.points]
        path = " ".join(f"{x},{y}" for x, y in places)
        dots = [f'<circle class="point" cx="{x}" cy="{y}" r="4"/>' for x, y in places]
        words = f"certified {shown_down(self.points[-1][1])}"
        return [
            f'<polyline class="certified" points="{path}"/>',
            *dots,
            _line("certified", (_LEFT, _LEGEND - 5), (_LEFT + 24, _LEGEND - 5)),
            _text((_LEFT + 32, _LEGEND), words),
        ]


def _step(top: float) -> float:
    """Return a round step that divides the axis into two to five parts."""
    power = 10.0 ** math.floor(math.log10(top))
    return next(power * k for k in (0.2, 0.5, 1.0, 2.0) if top / (power * k) < 5.5)


def _line(name: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    return (
        f'<line class="{name}" x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" '
        f'y2="{end[1]}"/>'
    )


def _text(place: tuple[float, float], words: str, anchor: str = "start") -> str:
    x, y = place
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(words)}</text>'
