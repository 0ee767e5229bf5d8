"""What a kill -9 of the driver leaves: the table's directory as it was before each of the driver's own steps in it."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from support.commands import LOG
from support.spark_tables import Table

_STEPS = ("rename", "replace", "link", "unlink", "remove", "rmdir", "mkdir", "open")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class State:
    """A directory as it was just before `step`, and copied to a place of its own."""

    step: str
    table: Table


@dataclass
class _Watched:
    """The directory that is copied, and the states that differ, by what names and sizes there are."""

    table: Table
    states: list[State] = field(default_factory=list)
    seen: set[frozenset[tuple[str, int]]] = field(default_factory=set)
    errors: list[Exception] = field(default_factory=list)

    lock: threading.RLock = field(default_factory=threading.RLock)
    copying: bool = False

    def before(self, step: str, path: str) -> None:
        with self.lock:  # files are deleted by several threads
            if self.copying or (os.path.isabs(path) and not path.startswith(str(self.table.root))):
                return
            self.copying = True
            try:
                self._copy(f"{step} {Path(path).name}")
            except Exception as error:  # who takes the step might take it for its own
                self.errors.append(error)
            finally:
                self.copying = False

    def _copy(self, step: str) -> None:
        what = frozenset(
            (path.relative_to(self.table.root).as_posix(), -1 if path.is_dir() else path.stat().st_size)
            for path in self.table.root.rglob("*")
        )
        if what in self.seen:
            return
        self.seen.add(what)
        path = self.table.root.parent / f"{self.table.root.name} killed {len(self.states)}"
        if self.table.root.exists():
            shutil.copytree(self.table.root, path)
        self.states.append(State(step, Table(self.table.spark, path)))


@contextmanager
def killed_at_each_step(table: Table) -> Iterator[list[State]]:
    """The states of the table's directory in the course of what is done to it.

    A step of the driver's is anything by which a name in the directory comes, goes or changes. A log on a file system
    is nothing but these names and their bytes, so a copy of them is what a kill leaves.
    """
    watched = _Watched(table)

    def noted(step: str) -> Callable[..., Any]:
        function = getattr(os, step)

        def call(path: Any, *args: Any, **kwargs: Any) -> Any:
            if step != "open" or args[0] & _WRITES:
                watched.before(step, os.fsdecode(path))
            return function(path, *args, **kwargs)

        return call

    with ExitStack() as stack:
        for step in _STEPS:
            stack.enter_context(mock.patch.object(os, step, noted(step)))
        yield watched.states
    if watched.errors:
        raise watched.errors[0]


def torn(state: State) -> None:
    """Make of a state with files in a staging directory one in which Spark's tasks were still writing them."""
    staged = [path for path in state.table.root.rglob("_tablelog_staging-*/**/*.parquet") if LOG not in path.parts]
    for number, path in enumerate(sorted(staged)):
        if number % 2:
            path.unlink()
        else:
            os.truncate(path, path.stat().st_size // 2)
            (path.parent / "_temporary" / "0" / "task").mkdir(parents=True, exist_ok=True)
            (path.parent / "_temporary" / "0" / "task" / "part").write_bytes(b"PAR1")
