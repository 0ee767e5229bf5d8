"""Progress of long work: a bar with the time that is left, on a terminal; nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[str, int, int], None]
"""Gets the name of a step, how much is done, and how much there is (0: not known)."""


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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        tasks = {}

        def advance(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total or None)
            bar.update(tasks[step], completed=done, total=total or None)

        yield advance
