"""The files below a table's root on fsspec, grouped by directory.

An object store returns a listing page after page, and each page takes a round trip. So the directories directly below
the root are listed concurrently, each with all that is below it. If they turn out to have so few files that this takes
many more requests than a flat listing, the rest comes from a flat listing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from .unneeded_files import Directory, ListedFile

if TYPE_CHECKING:
    from ...logstore.data_files import DataFiles

_AT_ONCE = 16
"""The number of directories that are listed at the same time."""

_PAGE = 1_000
"""The number of names that one request of a flat listing returns."""

_Listed = list[tuple[str, int, int]]


def walk(files: "DataFiles", hidden: Callable[[str], bool], below: str = "") -> Iterator[Directory]:
    """All directories from `below` down, except those whose names are `hidden`."""
    if below:
        return grouped(files.statuses(below), hidden, below)
    return _by_directory(files, hidden)


def _by_directory(files: "DataFiles", hidden: Callable[[str], bool]) -> Iterator[Directory]:
    directly, directories = files.entries()
    if "" in directories:  # a name with an empty part, as in `t//x`, which can't be listed by its directory
        yield from grouped(files.statuses(), hidden, "")
        return
    passed = [name for name in (*(file[0] for file in directly), *directories) if hidden(name)]
    yield Directory("", [ListedFile(*file) for file in directly if not hidden(file[0])], (), sorted(passed))
    shown = [name for name in directories if not hidden(name)]
    listed: set[str] = set()
    names = 0
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tablelog-list") as pool:
        for directory, found in _listed_ahead(pool, files, shown):
            yield from grouped(found, hidden, directory)
            listed.add(directory)
            names += len(found)
            if prefers_flat_listing(len(shown), len(listed), names):
                break
        else:
            return
    for one in grouped(files.statuses(), hidden, ""):
        if one.name and one.name.partition("/")[0] not in listed:
            yield one


def _listed_ahead(pool: ThreadPoolExecutor, files: "DataFiles", names: Sequence[str]) -> Iterator[tuple[str, _Listed]]:
    """Each directory with its files. At most `_AT_ONCE` listings are in memory, however slowly they are taken."""
    pending: deque[tuple[str, Future[_Listed]]] = deque()
    for name in names:
        if len(pending) == _AT_ONCE:
            first, listed = pending.popleft()
            yield first, listed.result()
        pending.append((name, pool.submit(lambda name=name: list(files.statuses(name)))))  # type: ignore[misc]
    for name, listed in pending:
        yield name, listed.result()


def prefers_flat_listing(directories: int, listed: int, names: int) -> bool:
    """Whether a flat listing of everything takes less than half the requests of those that remain by directory.

    It is asked after each directory. So the requests are few even if the directories that come first are the largest.

    Args:
        directories: The number of directories directly below the root.
        listed: How many of them were listed. With few, the answer is no.
        names: How many files these have.
    """
    return listed >= _AT_ONCE and directories - listed > 2 * (names / listed) * directories / _PAGE


def grouped(listed: Iterable[tuple[str, int, int]], hidden: Callable[[str], bool], below: str) -> Iterator[Directory]:
    """Group a flat listing of relative names by directory."""
    start = len(below) + 1 if below else 0
    visible: dict[str, bool] = {}
    files: dict[str, list[ListedFile]] = {below: []}
    passed: dict[str, set[str]] = {}
    for name, size, modified in listed:
        directory, _, base = name.rpartition("/")
        kept = visible.get(directory)
        if kept is None:
            parts = directory[start:].split("/") if len(directory) >= start and directory[start:] else []
            kept = True
            for depth, part in enumerate(parts):
                if hidden(part):
                    parent = "/".join([*([below] if below else []), *parts[:depth]])
                    passed.setdefault(parent, set()).add(part)
                    kept = False
                    break
            visible[directory] = kept
        if not kept:
            continue
        if hidden(base):
            passed.setdefault(directory, set()).add(base)
        else:
            files.setdefault(directory, []).append(ListedFile(base, size, modified))
    for directory in files.keys() | passed.keys():
        yield Directory(directory, files.get(directory, ()), (), sorted(passed.get(directory, ())))
