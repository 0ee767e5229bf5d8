"""Charts as inline SVG. A plot is stretched to the width of its place, and all text around it is HTML.

A chart with marks is one stop of the keyboard: the arrow keys move from mark to mark, and a line of text below the
plot says what the current one is (`script.py`). Without the script, a mark has a title. Each chart has a table besides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..pages import escaped

_WIDTH, _HEIGHT = 1000.0, 100.0
LANE = 30
"""The height of a lane of a time line, in pixels."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One value of a line chart; `y` is `None` where it is unknown. `text` describes it."""

    y: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A group of events on a time line: `x` from 0 to 1, a lane, a radius in pixels."""

    x: float
    lane: int
    radius: float
    style: str
    text: str


def line(label: str, marks: Sequence[Mark], colour: str, ends: tuple[str, str]) -> str:
    """A line with the area below it, from zero to the largest value.

    Args:
        label: What the chart shows, for screen readers.
        marks: The values, from left to right.
        colour: The class of the series.
        ends: The texts at the two ends of the axis.
    """
    top = max((mark.y for mark in marks if mark.y is not None), default=0.0) or 1.0
    step = _WIDTH / max(len(marks) - 1, 1)
    places = [(i * step, None if m.y is None else _HEIGHT - 92.0 * m.y / top) for i, m in enumerate(marks)]
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in places:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    shapes = []
    for run in filter(None, runs):
        corners = run if len(run) > 1 else [(max(run[0][0] - 6, 0.0), run[0][1]), (run[0][0] + 6, run[0][1])]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
        shapes.append(f'<path class="area" d="M{corners[0][0]:.1f} 100L{path}L{corners[-1][0]:.1f} 100Z"/>')
        shapes.append(f'<path class="stroke" d="M{path}"/>')
    hits = "".join(
        f'<g class="mark" data-text="{escaped(mark.text)}"><title>{escaped(mark.text)}</title>'
        f'<rect class="hit" x="{max(x - step / 2, 0):.1f}" width="{step:.1f}" height="100"/>'
        + (f'<path class="point" d="M{x:.1f} {y:.1f}h.01"/>' if y is not None else "")
        + "</g>"
        for mark, (x, y) in zip(marks, places, strict=True)
    )
    grid = '<path class="grid" d="M0 8H1000M0 54H1000M0 99.5H1000"/>'
    return _plot(label, f"{grid}{''.join(shapes)}{hits}", _HEIGHT, f"line {colour}", ends)


def lanes(label: str, dots: Sequence[Dot], count: int, ends: tuple[str, str]) -> str:
    """A time line with a lane for each kind of event."""
    height = LANE * count
    grid = "".join(f"M0 {LANE * lane + LANE / 2:g}H1000" for lane in range(count))
    hits = "".join(
        f'<g class="mark" data-text="{escaped(dot.text)}"><title>{escaped(dot.text)}</title>'
        f'<path class="dot {dot.style}" stroke-width="{2 * dot.radius:.1f}" '
        f'd="M{12 + 976 * dot.x:.1f} {LANE * dot.lane + LANE / 2:g}h.01"/></g>'
        for dot in dots
    )
    return _plot(label, f'<path class="grid" d="{grid}"/>{hits}', height, "lanes", ends, f' style="height:{height}px"')


def _plot(label: str, content: str, height: float, style: str, ends: tuple[str, str], attributes: str = "") -> str:
    first, last = map(escaped, ends)
    return (
        f'<svg class="plot {style}" viewBox="0 0 1000 {height:g}" preserveAspectRatio="none" role="img" tabindex="0" '
        f'aria-label="{escaped(label)}"{attributes}>{content}</svg>\n'
        f'<p class="axis ends"><span>{first}</span><span>{last}</span></p>\n'
        '<p class="readout" aria-live="polite"></p>\n'
    )


def bar(parts: Sequence[tuple[float, str]]) -> str:
    """A horizontal bar. `parts` are shares of its width, from the left, and their classes."""
    shapes, x = [], 0.0
    for share, colour in parts:
        width = 100 * min(max(share, 0.0), 1.0)
        if width > 0:
            # A value above zero is always visible.
            shapes.append(f'<rect class="{colour}" x="{min(x, 99.4):.2f}" width="{max(width, 0.6):.2f}" height="10"/>')
        x += width
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="10"/>{"".join(shapes)}</svg>'
    )
