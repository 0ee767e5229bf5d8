"""Progress of long work: a bar with the time that is left, on a terminal; nothing elsewhere."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ..progress import Stage, reported

if TYPE_CHECKING:
    from rich.progress import TaskID

_Item = TypeVar("_Item")

Advance = Callable[[str, int, int], None]
"""Gets the name of a step, how much is done, and how much there is (0: not known)."""


def output_is_file() -> bool:
    """Whether standard output is a file: what is written to a terminal or a pager meanwhile would mix with the bar."""
    return sys.stderr.isatty() and stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def counted(items: Sequence[_Item], step: str, advance: Advance) -> Iterator[_Item]:
    """The items, each of which is done when the next one is asked for."""
    for done, item in enumerate(items):
        advance(step, done, len(items))
        yield item
    advance(step, len(items), len(items))


@dataclass(frozen=True)
class _Bar:
    """Shows the stages of a command as a bar, which `progress_bar` removes at its end."""

    advance: Advance

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        self.advance(stage.doing, stage.done, stage.total)

    def clear(self) -> None:
        pass


@contextmanager
def command_bar(operation: str, table: str, *, enabled: bool) -> Iterator[None]:
    """Show the stages that a command of tablelog reports in the block, as `progress_bar` does."""
    with progress_bar(enabled=enabled) as advance, reported(operation, table, lambda: _Bar(advance), delay=0):
        yield


@contextmanager
def progress_bar(*, enabled: bool = True) -> Iterator[Advance]:
    """A function that shows the progress on standard error while the block runs.

    Args:
        enabled: Whether to show anything; a terminal is needed too.
    """
    if not enabled or not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True, redirect_stdout=False) as bar:
        current: dict[tuple[str, bool], TaskID] = {}

        def advance(step: str, done: int, total: int) -> None:
            counts = f"{done:,} of {total:,}" if total else f"{done:,} until now" if done else ""
            key = step, total > 0
            if key in current:
                bar.update(current[key], completed=done, total=total or None, counts=counts)
                return
            for task in current.values():
                bar.remove_task(task)
            current.clear()
            current[key] = bar.add_task(step, completed=done, total=total or None, counts=counts)

        yield advance
