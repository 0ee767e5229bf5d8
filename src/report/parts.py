"""Pieces of the page that several sections have: a section, a table, a tile, a badge."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..pages import escaped

_CELL = 200
"""A longer text in a cell is cut."""


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already."""

    text: str


Cell = str | Html


def html_of(cell: Cell) -> str:
    """The HTML of a cell; text is cut and escaped."""
    if isinstance(cell, Html):
        return cell.text
    return escaped(cell if len(cell) <= _CELL else f"{cell[: _CELL - 1]}…")


def section(name: str, title: str, summary: str, *content: str) -> str:
    """A section with the id `name`. `summary` is plain text: what the numbers mean."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{escaped(title)}</h2>\n'
        f'<p class="summary">{escaped(summary)}</p>\n{"".join(content)}</section>\n'
    )


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], style: str = "") -> str:
    """A table whose first column names the row. A column whose name ends with `#` has numbers; "" is a bar."""
    classes = [' class="number"' if name.endswith("#") else ' class="bar"' if name == "" else "" for name in columns]
    head = "".join(
        f'<th scope="col"{kind}>{escaped(name.rstrip("#")) or "<span class=hidden>Bar</span>"}</th>'
        for name, kind in zip(columns, classes, strict=True)
    )
    body = []
    for row in rows:
        first, *rest = row
        cells = "".join(
            f'<td{kind} data-name="{escaped(name.rstrip("#"))}">{html_of(cell)}</td>'
            for name, kind, cell in zip(columns[1:], classes[1:], rest, strict=True)
        )
        body.append(f'<tr><th scope="row">{html_of(first)}</th>{cells}</tr>\n')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table class="{style}">'
        f"<caption>{escaped(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(body)}</tbody></table>"
        "</div>\n"
    )


def folded(summary: str, content: str) -> str:
    """Content that the reader opens."""
    return f"<details>\n<summary>{escaped(summary)}</summary>\n{content}</details>\n"


def tile(name: str, value: str, note: str = "") -> str:
    """One number of the table, with its name."""
    small = f"<span>{escaped(note)}</span>" if note else ""
    return f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}{small}</dd></div>\n"


def tiles(items: Iterable[str]) -> str:
    """Some tiles."""
    return f'<dl class="tiles">\n{"".join(items)}</dl>\n'


def badge(style: str, mark: str, text: str) -> str:
    """A word in a coloured frame; `mark` repeats the meaning of the colour."""
    return f'<span class="badge {style}"><span aria-hidden="true">{mark}</span> {escaped(text)}</span>'


def legend(items: Iterable[tuple[str, str]]) -> str:
    """The meanings of colours: (class, meaning)."""
    keys = "".join(
        f'<li><span class="key {colour}" aria-hidden="true"></span>{escaped(text)}</li>' for colour, text in items
    )
    return f'<ul class="legend">{keys}</ul>\n'
