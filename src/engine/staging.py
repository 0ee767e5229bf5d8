"""Where a write job puts its files before they take their place in the table.

A staging directory lies in the table's own directory, so that taking a place is a rename, and its name starts with
an underscore, so that nobody lists it and other engines' VACUUM leaves it alone while a job may still write to it.
A file's final name is relative to the table: the partition directory that the job gave it, and the job's own name,
which holds a UUID. Names are unique within a directory only: in a partitioned job they repeat between directories.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ..core.protocol import paths
from ..errors import UnsupportedEnvironmentError

PREFIX = "_tablelog_staging-"
_THREADS = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file of a job. `name` is relative to the staging directory and to the table alike.

    `partition` holds the text of each partition column's value as the directories spell it, unescaped; `None` is null.
    `size` is in bytes, `modified_ms` in milliseconds.
    """

    name: str
    partition: tuple[str | None, ...]
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A finished file: with the log's texts as its `partition`, how many rows it has, and its `stats` for the log."""

    name: str
    partition: tuple[str | None, ...]
    size: int
    modified_ms: int
    rows: int
    stats: str


def local_root(table: str) -> str:
    """The local directory of a table; `UnsupportedEnvironmentError` where its files are not on a local disk."""
    path = paths.absolute(table, "")
    if not path.startswith("/"):
        raise UnsupportedEnvironmentError(
            f"{table}: this version of tablelog writes data files to a local file system only"
        )
    return path


def new_directory(root: str) -> str:
    """The name of a staging directory that nobody else has; it is made by whoever writes the first file."""
    return os.path.join(root, f"{PREFIX}{uuid.uuid4()}")


def find(directory: str, partition_columns: Sequence[str]) -> list[StagedFile]:
    """The data files of a finished job, in the order of their names."""
    if not os.path.isdir(directory):
        return []
    return sorted(_find(directory, "", len(partition_columns), ()), key=lambda staged: staged.name)


def _find(directory: str, below: str, depth: int, partition: tuple[str | None, ...]) -> Iterator[StagedFile]:
    with os.scandir(os.path.join(directory, below) if below else directory) as entries:
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if depth:
                if entry.is_dir(follow_symlinks=False) and "=" in entry.name:
                    text = entry.name.partition("=")[2]
                    value = None if text == paths.NULL_PARTITION else paths.hive_unescape(text)
                    yield from _find(directory, name, depth - 1, (*partition, value))
            elif entry.name[0] not in "_." and entry.is_file(follow_symlinks=False):
                status = entry.stat()
                yield StagedFile(name, partition, status.st_size, status.st_mtime_ns // 1_000_000)


def in_parallel(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """`function` of each item, in order; on threads where there are several, for what waits for a disk."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), thread_name_prefix="tablelog-write") as pool:
        return list(pool.map(function, items))


def publish(directory: str, root: str, names: Sequence[str], *, durable: bool) -> None:
    """Give files their place: a rename each, from `directory` to the same relative name below `root`.

    With `durable` the files and every directory that changed are on disk when this returns, as the commit that
    names them will be. On an error none of the files is left in either place.
    """
    if durable:
        in_parallel(_sync, [os.path.join(directory, name) for name in names])
    changed: set[str] = set()
    moved: list[str] = []
    try:
        for below in sorted({os.path.dirname(name) for name in names}):
            changed.update(_make_directories(root, below))
        for name in names:
            moved.append(name)
            try:
                os.rename(os.path.join(directory, name), os.path.join(root, name))
            except FileNotFoundError:  # another engine's VACUUM took the empty directory away
                changed.update(_make_directories(root, os.path.dirname(name)))
                os.rename(os.path.join(directory, name), os.path.join(root, name))
        if durable:
            in_parallel(_sync, sorted(changed))
    except BaseException:
        remove(root, moved)
        raise


def _make_directories(root: str, below: str) -> Iterator[str]:
    # Every directory whose entries change: the one that gets files, and the parent of each that is new.
    target = os.path.join(root, below) if below else root
    yield target
    missing: list[str] = []
    while not os.path.isdir(target):
        missing.append(target)
        target = os.path.dirname(target)
        yield target
    for made in reversed(missing):
        os.makedirs(made, exist_ok=True)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(root: str, names: Iterable[str]) -> None:
    """Delete files by their names relative to `root`; what isn't there is fine. Directories stay."""
    for name in names:
        try:
            os.unlink(os.path.join(root, name))
        except FileNotFoundError:
            continue


def clear(directory: str) -> None:
    """Delete a staging directory and all that is in it; one that was never made is fine."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
