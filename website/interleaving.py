"""Drawings of interleavings: a fenced block of text in a page, which the site shows as SVG.

The first line names the actors, from left to right. Each later line is a step, from top to bottom:

    Writer A | Store | Writer B
    Writer A > Store: put 4.json     a message that arrives
    Store x> Writer A: created       a message that is lost on its way
    Writer B lost: read 4.json       a box on the line of an actor: won, lost and unknown have colors, doing has none
"""

import re
from html import escape
from typing import Any

_GAP, _MARGIN, _TOP, _ROW, _BOX = 230, 105, 56, 44, 200
_MESSAGE = re.compile(r"(?P<start>.+?) (?P<kind>x?>) (?P<end>.+?): (?P<text>.+)")
_STATE = re.compile(r"(?P<actor>.+?) (?P<kind>won|lost|unknown|doing): (?P<text>.+)")


def svg(text: str) -> str:
    """Draw the steps.

    Args:
        text: The actors and the steps, as the module says.

    Returns:
        An `svg` element. Its colors are classes of the site's style sheet.

    Raises:
        ValueError: A line has another form, or names an actor that the first line doesn't.
    """
    first, *steps = [line.strip() for line in text.strip().splitlines() if line.strip()]
    at = {name.strip(): _MARGIN + number * _GAP for number, name in enumerate(first.split("|"))}
    drawn = [_step(step, at, _TOP + _ROW * number + 30) for number, step in enumerate(steps)]
    width, height = 2 * _MARGIN + _GAP * (len(at) - 1), _TOP + _ROW * len(steps) + 16
    lines = "".join(f'<line class="life" x1="{x}" x2="{x}" y1="{_TOP - 12}" y2="{height}"/>' for x in at.values())
    heads = "".join(
        f'<rect class="actor" x="{x - 70}" y="8" width="140" height="32" rx="6"/>{_text(x, 29, name, "name")}'
        for name, x in at.items()
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" style="min-width: {width * 4 // 5}px"'
    return (
        f'<div class="interleaving"><svg {size} role="img" aria-label="{escape("; ".join(steps), quote=True)}">'
        f"{lines}{heads}{''.join(drawn)}</svg></div>"
    )


def fence(source: str, _language: str, _class: str, _options: dict[str, Any], _page: Any, **_: Any) -> str:
    """The drawing, in the form that pymdownx.superfences calls."""
    return svg(source)


def _step(step: str, at: dict[str, int], y: int) -> str:
    if message := _MESSAGE.fullmatch(step):
        return _message(
            _place(message["start"], at), _place(message["end"], at), y, message["text"], message["kind"] != ">"
        )
    if state := _STATE.fullmatch(step):
        x = _place(state["actor"], at)
        box = f'<rect class="{state["kind"]}" x="{x - _BOX // 2}" y="{y - 20}" width="{_BOX}" height="32" rx="6"/>'
        return box + _text(x, y, state["text"], "state")
    raise ValueError(f"not a step of an interleaving: {step}")


def _message(start: int, end: int, y: int, text: str, is_lost: bool) -> str:
    sign = 1 if end > start else -1
    middle = (start + end) // 2
    stop = middle + 40 * sign if is_lost else end
    tip = f"M{stop - 6} {y - 1}l12 12m0 -12l-12 12" if is_lost else f"M{stop - 9 * sign} {y}l{9 * sign} 5l{-9 * sign} 5"
    kind = "message dropped" if is_lost else "message"
    line = f'<path class="{kind}" d="M{start} {y + 5}H{stop}"/><path class="{kind} tip" d="{tip}"/>'
    return line + _text(middle, y - 3, text, "label")


def _place(actor: str, at: dict[str, int]) -> int:
    if actor not in at:
        raise ValueError(f"no actor has the name {actor!r}: {', '.join(at)}")
    return at[actor]


def _text(x: int, y: int, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="middle">{escape(text)}</text>'
