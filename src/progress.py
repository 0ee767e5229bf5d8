"""The progress of commands: as log records, and as a line on a terminal or in a notebook.

A command says by `stage` what it does now. Each new stage is a record of level INFO of the logger
`tablelog.progress`. If the command takes longer than `DELAY_SECONDS`, a screen shows the stage until the command ends.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TextIO

from .observe import fields

logger = logging.getLogger(__name__)

DELAY_SECONDS: Final = 2.0
"""A command that ends sooner shows nothing."""
_EVERY_SECONDS: Final = 1.0

_ERASE_LINE: Final = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class Stage:
    """What a command does: `done` of `total` things are done; a `total` of 0 isn't known."""

    doing: str
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        if self.total:
            return f"{self.doing}, {self.done:,} of {self.total:,}"
        return f"{self.doing}, {self.done:,} until now" if self.done else self.doing


class Screen(Protocol):
    """Shows the progress of one command at a time."""

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        """Show what a command does, `seconds` after it began, in place of what was shown before."""

    def clear(self) -> None:
        """Remove what was shown. The command has ended."""


class TerminalLine:
    """One line of a terminal, which is removed at the end."""

    def __init__(self, stream: TextIO, width: Callable[[], int]) -> None:
        """`width` gives the number of columns of the terminal."""
        self._stream = stream
        self._width = width

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        """Write the line again. It is cut at the width of the terminal, because a longer one couldn't be removed."""
        line = f"{command}: {stage} ({seconds:.0f} s)"
        self._stream.write(_ERASE_LINE + line[: self._width() - 1])
        self._stream.flush()

    def clear(self) -> None:
        self._stream.write(_ERASE_LINE)
        self._stream.flush()


class TerminalLines:
    """A line for each stage, which stays: for a terminal whose last line is Spark's own progress bar."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        if stage.doing != self._shown:
            self._shown = stage.doing
            self._stream.write(f"{_ERASE_LINE}{command}: {stage}\n")
            self._stream.flush()

    def clear(self) -> None:
        self._shown = ""


class NotebookLine:
    """One line below a notebook's cell, which is emptied at the end."""

    def __init__(self, display: Callable[..., Any]) -> None:
        """`display` is that of IPython."""
        self._display = display
        self._handle: Any = None

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        line = {"text/plain": f"{command}: {stage} ({seconds:.0f} s)"}
        if self._handle is None:
            self._handle = self._display(line, raw=True, display_id=True)
        else:
            self._handle.update(line, raw=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
            self._handle = None


def screen_of_process(*, shares_line: Callable[[], bool]) -> Screen | None:
    """The screen for a command of this thread; `None` if there is none.

    Only the main thread has one: lines of several threads would replace each other.

    Args:
        shares_line: Whether another program writes to the last line of the terminal.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    if "ipykernel" in sys.modules:
        from IPython.display import display

        return NotebookLine(display)
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return None
    if shares_line():
        return TerminalLines(stream)
    import shutil

    return TerminalLine(stream, lambda: shutil.get_terminal_size().columns)


class _Command:
    """The progress of one command, which its own thread reports and another thread may show."""

    def __init__(self, operation: str, table: str, screen: Screen | None, delay: float) -> None:
        self._operation = operation
        self._table = table
        self._stage: Stage | None = None
        self._screen = screen
        self._began = time.monotonic()
        self._due = self._began + delay
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._shown = False
        if screen is not None:
            threading.Thread(target=self._keep_showing, name="tablelog-progress", daemon=True).start()

    def enter(self, stage: Stage) -> None:
        if self._stage is None or stage.doing != self._stage.doing:
            logger.info("%s: %s: %s", self._table, self._operation, stage.doing, extra=fields(self._table))
        with self._lock:
            self._stage = stage
            self._show()

    def end(self) -> None:
        self._ended.set()
        with self._lock:
            if self._shown and self._screen is not None:
                self._screen.clear()
            self._screen = None

    def _keep_showing(self) -> None:
        wait = self._due - time.monotonic()
        while not self._ended.wait(wait):
            with self._lock:
                self._show()
            wait = _EVERY_SECONDS

    def _show(self) -> None:
        now = time.monotonic()
        if self._screen is None or self._stage is None or now < self._due:
            return
        try:
            self._screen.show(f"{self._operation} {self._table}", self._stage, now - self._began)
            self._shown = True
        except Exception as error:  # a command must not fail because its progress can't be shown
            logger.debug("the progress can't be shown: %s", error)
            self._screen = None


_current: ContextVar[_Command | None] = ContextVar("tablelog_progress", default=None)


def files_text(count: int) -> str:
    """A number of files, in words: `1 file`, `1,000 files`."""
    return f"{count:,} file{'' if count == 1 else 's'}"


def stage(doing: str, done: int = 0, total: int = 0) -> None:
    """Report what the command of this thread does now. Outside of a command this has no effect.

    Args:
        doing: What is done, such as `rewriting 12 of 1,000 files`.
        done: How many of `total` are done.
        total: The number of the things to do; 0 if it isn't known.
    """
    command = _current.get()
    if command is not None:
        command.enter(Stage(doing, done, total))


@contextmanager
def reported(
    operation: str, table: str, screen: Callable[[], Screen | None], *, delay: float = DELAY_SECONDS
) -> Iterator[None]:
    """Report the stages of a command that runs in the block. Those of commands inside it are reported as its own.

    Args:
        operation: The name of the command, such as `DELETE`.
        table: The location of the table.
        screen: Gives the screen that shows the command. It isn't called for a command inside another one.
        delay: How long the command takes before it is shown, in seconds.
    """
    if _current.get() is not None:
        yield
        return
    command = _Command(operation, table, screen(), delay)
    token = _current.set(command)
    try:
        yield
    finally:
        _current.reset(token)
        command.end()
