"""A command held at a named point while another one comes first: what the matrix says of it, and whether it was so."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from support.commands import KINDS, LOG, ORPHAN, ROWS, copy_of, nothing_is_left_behind, rows_of
from support.conflict_matrix import ERRORS, WRITES_METADATA, S, expected
from support.spark_tables import Table
from tablelog.core.deltalog import DeltaLog
from tablelog.core.txn.transaction import Transaction
from tablelog.engine.write import deletion_vector_writer, writer
from tablelog.errors import DeltaConcurrentModificationException

Point = Literal["after reading", "before committing"]
POINTS: tuple[Point, ...] = ("after reading", "before committing")


@dataclass(frozen=True)
class Done:
    """What a command did to the files of a table: it is done again to another copy of the table by doing that."""

    root: Path
    new: tuple[str, ...]
    gone: tuple[str, ...]

    @classmethod
    def by(cls, name: str, run: Callable[[Table], Any], table: Table) -> "Done":
        """Run the command, whole, on a copy of the table of its own."""
        own = copy_of(table, f"done by {name}")
        run(own)
        before, after = _files(table.root), _files(own.root)
        new = sorted(after - before, key=lambda name: name.startswith(LOG))  # commits come last
        return cls(own.root, tuple(new), tuple(before - after))

    @property
    def commits(self) -> int:
        return sum(name.startswith(LOG) and name.endswith(".json") for name in self.new)

    def again(self, table: Table) -> None:
        for name in self.new:
            (table.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / name, table.root / name)
        for name in self.gone:
            (table.root / name).unlink()


def _files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@contextmanager
def held(point: Point, meanwhile: Callable[[], None], *, writes: bool) -> Iterator[None]:
    """`meanwhile` happens once, when a command reaches the point.

    A command that writes has read when it writes its first file, another one when it has its snapshot.
    """
    waiting = [meanwhile]

    def reached() -> None:
        if waiting:
            waiting.pop()()

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            reached()
            return function(*args, **kwargs)

        return call

    def after(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            reached()
            return result

        return call

    seams: list[tuple[Any, str, Callable[..., Any]]]
    if point == "before committing":
        seams = [(Transaction, "commit", before)]
    elif writes:
        seams = [(writer, "write_files", before), (deletion_vector_writer, "write", before)]
    else:
        seams = [(DeltaLog, "transaction", after)]
    patches = [mock.patch.object(where, name, wrap(getattr(where, name))) for where, name, wrap in seams]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
    assert not waiting, "the command never came to the point at which it was to be held"


def race(table: Table, second: str, first: str, done: Done, point: Point, *, again: bool = True) -> None:
    """Hold `second` on a copy of the table until `first` is `done`; the outcome is the matrix's.

    Where it lost, it left nothing behind, and (`again`) it works when it is run again.
    """
    loser, winner = KINDS[second], KINDS[first]
    own = copy_of(table, f"{second} {first} {point}")
    error = ""
    try:
        with held(point, lambda: done.again(own), writes=loser.writes):
            loser.run(own)
    except DeltaConcurrentModificationException as conflict:
        error = type(conflict).__name__
    told = expected(loser.like, winner.like, S)
    if not told and winner.describes and loser.like in WRITES_METADATA:
        told = ERRORS["M"]
    where = f"{second}, held {point}, after {first}"
    assert error == ("" if loser.patient else told), f"{where}: {error or 'no error'}"
    nothing_is_left_behind(own)
    after_first = winner.leaves(ROWS)
    assert rows_of(own) == (after_first if error else loser.leaves(after_first)), where
    version = table.version + done.commits
    assert own.version == version if error else own.version > version, where
    assert (own.root / ORPHAN).exists() == ("vacuum" not in {second, first}), where
    if error and again:
        loser.run(own)
        assert rows_of(own) == loser.leaves(after_first), f"{where}, and again"
    shutil.rmtree(own.root)
