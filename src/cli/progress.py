"""Progress of long work: a bar with the time that is left, on a terminal; nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

Advance = Callable[[str, int, int], None]
"""Gets the name of a step, how much is done, and how much there is (0: not known)."""

_DOING = {
    "log": "reading the log",
    "list": "listing files",
    "footers": "reading footers",
    "vectors": "reading deletion vectors",
    "delete": "deleting files",
}


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
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        current: dict[str, TaskID] = {}

        def advance(step: str, done: int, total: int) -> None:
            if step not in current:
                for task in current.values():
                    bar.remove_task(task)
                current.clear()
                current[step] = bar.add_task(_DOING.get(step, step), total=None, counts="")
            counts = f"{done:,} of {total:,}" if total else ""
            bar.update(current[step], completed=done, total=total or None, counts=counts)

        yield advance
