"""What a command writes: JSON, tables for a terminal, or plain lines for a pipe.

In a pipe a table is a header and lines whose values are separated by tabs, so that `cut`, `sort` and `awk` work on it.
On a terminal rich lays it out and colours it; NO_COLOR and TERM=dumb are respected.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TextIO

from .text import safe

if TYPE_CHECKING:
    from rich.console import Console

ON_TERMINAL = 50
"""The number of rows of a table that a terminal shows, unless the user asks for another."""

Style = Literal["", "bold", "dim", "green", "yellow", "red", "cyan", "bold red", "bold green", "bold yellow"]
_MOST_CHARACTERS = 400
"""A longer value is cut on a terminal."""
_LEAST_CHARACTERS = 6
"""A table whose columns have less than this on a terminal, or than their names if they are shorter, can't be read."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `wraps`: its values may take several lines on a narrow terminal."""

    name: str
    right: bool = False
    style: Style = ""
    wraps: bool = False


class Output:
    """Writes the result of one command. `as_json`: one JSON document instead of text for people."""

    def __init__(self, *, as_json: bool = False, stream: TextIO | None = None) -> None:
        self.as_json = as_json
        self._stream = stream or sys.stdout
        self.is_terminal = not as_json and self._stream.isatty()
        self._console: Console | None = None

    # --- JSON -----------------------------------------------------------------------------------------------------

    def json(self, document: Mapping[str, Any]) -> None:
        """Write one JSON object."""
        self._write(f"{json.dumps(document, indent=2, default=str)}\n")

    def json_rows(self, head: Mapping[str, Any], key: str, rows: Iterable[Any]) -> None:
        """Write one JSON object whose last member `key` is a list; only one of its items is in memory at a time."""
        lines = [f"  {json.dumps(name)}: {json.dumps(value, default=str)},\n" for name, value in head.items()]
        self._write("{\n" + "".join(lines) + f"  {json.dumps(key)}: [")
        separator = "\n"
        for row in rows:
            self._write(f"{separator}    {json.dumps(row, default=str)}")
            separator = ",\n"
        self._write("]\n}\n" if separator == "\n" else "\n  ]\n}\n")

    # --- text -----------------------------------------------------------------------------------------------------

    def line(self, text: str = "", style: Style = "") -> None:
        """Write one line of text; control characters in it are escaped."""
        if self.is_terminal:
            self._rich.print(safe(text), style=style or None, markup=False, highlight=False, soft_wrap=True)
        else:
            self._write(f"{safe(text)}\n")

    def heading(self, text: str) -> None:
        """Write a heading, after an empty line."""
        self.line()
        self.line(text, "bold")

    def facts(self, pairs: Mapping[str, str]) -> None:
        """Write names and values, one pair in a line."""
        if not self.is_terminal:
            for name, value in pairs.items():
                self._write(f"{safe(name)}\t{safe(value)}\n")
            return
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in pairs.items():
            grid.add_row(Text(safe(name)), Text(safe(value)))
        self._rich.print(grid)

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]],
        *,
        limit: int | None = None,
        total: int | None = None,
    ) -> None:
        """Write a table. A terminal shows at most `limit` rows (by default ON_TERMINAL) of `total`.

        If it is too narrow for the columns, it shows one row below the other, with a line for each value.

        Args:
            columns: The columns, from left to right.
            rows: The rows; they are read one by one.
            limit: The number of rows to show, on a terminal and in a pipe.
            total: The number of rows that there are, if it is known.
        """
        if not self.is_terminal:
            self._write("\t".join(safe(column.name) for column in columns) + "\n")
            for row in rows if limit is None else islice(rows, limit):
                self._write("\t".join(map(safe, row)) + "\n")
            return
        most = ON_TERMINAL if limit is None else limit
        iterator = iter(rows)
        shown = self._rich_table if self._fits(columns) else self._one_by_one
        shown(columns, islice(iterator, most))
        more = None if total is None else total - most
        if (more is None and next(iterator, None) is not None) or (more is not None and more > 0):
            rest = "more rows" if more is None else f"{more:,} more"
            hint = ": set --limit, or write to a pipe or a file to get all" if limit is None else ""
            self.line(f"… {rest}{hint}", "dim")

    def _fits(self, columns: Sequence[Column]) -> bool:
        """Whether the terminal has space for some characters of each column, and the two between it and the next."""
        return sum(min(len(column.name), _LEAST_CHARACTERS) + 2 for column in columns) <= self._rich.width

    def _one_by_one(self, columns: Sequence[Column], rows: Iterator[Sequence[str]]) -> None:
        for number, row in enumerate(rows, 1):
            self.heading(f"row {number:,}")
            self.facts({c.name: safe(value, _MOST_CHARACTERS) for c, value in zip(columns, row, strict=True)})

    def _rich_table(self, columns: Sequence[Column], rows: Iterator[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold", show_edge=False)
        for column in columns:
            table.add_column(
                Text(safe(column.name)),
                justify="right" if column.right else "left",
                style=column.style,
                overflow="fold" if column.wraps else "ellipsis",
                no_wrap=not column.wraps,
            )
        for row in rows:
            table.add_row(*(Text(safe(value, _MOST_CHARACTERS)) for value in row))
        self._rich.print(table)

    @property
    def _rich(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
        return self._console

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:  # a terminal or a pipe with another encoding than UTF-8
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        """Pass everything on to the reader."""
        self._stream.flush()
