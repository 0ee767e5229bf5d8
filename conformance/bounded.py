"""Run something that may hang, and come back in time."""

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
    """A call that hadn't ended in time, and whose thread was left behind.

    `where` is the line that it was at, leaving out Python's own library.
    """

    where: str


def bounded(call: Callable[[], object], seconds: float) -> Outcome | Stuck:
    """Run `call` in a thread of its own; after `seconds` it is left behind.

    The thread is a daemon, and so is every thread that it starts: none keeps the interpreter from its end. Ctrl-C
    reaches the caller, and not the call.
    """
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(outcome(call)), daemon=True)
    thread.start()
    thread.join(seconds)
    if ended:
        return ended[0]
    # Read before the thread may end: a frame that is gone has no line.
    frame = sys._current_frames().get(thread.ident or 0)
    if ended or frame is None:
        thread.join()
        return ended[0]
    stack = traceback.extract_stack(frame)
    last = next((step for step in reversed(stack) if not _of_python_itself(step.filename)), stack[-1])
    return Stuck(f"{Path(last.filename).name}:{last.lineno}, in {last.name}")


def _of_python_itself(filename: str) -> bool:
    """Whether it is a lock or a socket of the standard library that waits: who called it says more."""
    return filename.startswith("<") or (
        filename.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in filename
    )
