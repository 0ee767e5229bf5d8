"""Run a call that may hang, with a time limit."""

import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .interleave import Outcome, outcome


@dataclass(frozen=True)
class Stuck:
    """A call that didn't end in time, and whose thread was abandoned.

    `where` is the line at which it was, outside Python's standard library.
    """

    where: str


def bounded(call: Callable[[], object], seconds: float) -> Outcome | Stuck:
    """Run `call` in a new thread; after `seconds` the thread is abandoned.

    The thread is a daemon, and so are the threads that it starts: none of them keeps the interpreter alive. Ctrl-C
    interrupts the caller, not the call.
    """
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(outcome(call)), daemon=True)
    thread.start()
    thread.join(seconds)
    if ended:
        return ended[0]
    # Read before the thread may end: a frame that has ended has no line.
    frame = sys._current_frames().get(thread.ident or 0)
    if ended or frame is None:
        thread.join()
        return ended[0]
    stack = traceback.extract_stack(frame)
    last = next((step for step in reversed(stack) if not _of_python_itself(step.filename)), stack[-1])
    return Stuck(f"{Path(last.filename).name}:{last.lineno}, in {last.name}")


def _of_python_itself(filename: str) -> bool:
    """Whether the file is in the standard library: the line of its caller is more useful."""
    return filename.startswith("<") or (
        filename.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in filename
    )
