"""Checks 8 to 10: what reads and listings return during a write, and immediately after it."""

import threading
import time
from functools import partial

from tablelog.logstore import LogStore

from ..failures import require
from ..harness.interleave import outcome
from ..harness.processes import Station, crew, needs_processes
from ..model import Context
from .suite import (
    at,
    below,
    check,
    commit,
    enough,
    expect,
    interleavings,
    is_commit_name,
    mark,
    names,
    saw_enough,
    value_of,
)
from .trial import Try, in_threads, judge, tried

_LEAST_ROUNDS = 3
SIZES = (0, 1, 1023, 1 << 20, (8 << 20) + 1)


@check(8, guarantee=1)
def reads_what_was_written(context: Context) -> None:
    """Files of each size are read back unchanged, also by another client."""
    make, root = context.make, context.root
    for number, size in enumerate(SIZES):
        data = _pattern(size)
        path = commit(root, number)
        make().write(path, data)
        require(make().read(path) == data, f"a file of {size} bytes is read back with other bytes")


@check(8, guarantee=1, lasts=True)
def never_a_part_of_a_file(context: Context) -> None:
    """While a writer is stopped at any step of its write, reads and listings see no file or the complete file."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    data = b"line\n" * 5000

    def look(case: int) -> tuple[bytes | None, set[int]]:
        try:
            content = reader.read(commit(root, case))
        except FileNotFoundError:
            content = None
        return content, {status.size for status in reader.list_from(f"{root}/_delta_log/")}

    writer.write(below(root, "_first"), data)
    for case in interleavings(context, lambda n: writer.write(commit(root, n), data), look):
        value_of(case.held, "the write that was stopped", case)
        content, sizes = value_of(case.between, "reading during a write", case)
        require(content in {None, data}, f"a reader saw {len(content or b'')} of {len(data)} bytes {at(case)}")
        require(sizes == {len(data)}, f"a listing showed the sizes {sizes} for files of {len(data)} bytes {at(case)}")


@check(10, guarantee=1)
def absent_is_not_found(context: Context) -> None:
    """Reading a file that doesn't exist, or was deleted, raises FileNotFoundError."""
    make, root = context.make, context.root
    store, path = make(), commit(root, 7)
    expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading an absent file")
    store.write(path, b"now")
    require(make().read(path) == b"now", "a new client doesn't read the file that was written")
    require(store.read(path) == b"now", "the client that tried to read the file before the write doesn't see it")
    store.delete(path)
    expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading a deleted file")


@check(10, guarantee=3, lasts=True)
def lists_at_once(context: Context) -> None:
    """A client that has listed before sees each completed write and delete in its next listing."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    writer.write(commit(root, 0), b"x")
    until = enough(context)
    for version in range(1, 30):
        if version > _LEAST_ROUNDS and time.monotonic() > until:
            break
        list(reader.list_from(commit(root, 0)))
        writer.write(commit(root, version), b"x")
        require(
            names(reader.list_from(commit(root, version))) == [f"{version:020}.json"],
            "a completed write isn't in the next listing",
        )
        context.evidence["rounds"] = version
    last = commit(root, context.evidence["rounds"])
    writer.delete(last)
    require(not names(reader.list_from(last)), "a deleted file is still listed")


@check(8, guarantee=1, lasts=True)
def a_reader_never_sees_a_part(context: Context) -> None:
    """Files of all sizes are written while others read and list: each file is absent or complete at any time."""
    sizes = [0, 1, 1 << 20, (9 << 20) + 1, *context.choose([], [40 << 20], [40 << 20, 105 << 20])]
    store, until = context.make(), enough(context)
    store.write(below(context.root, "_first"), b"")
    written = set()
    # Each size once, then again: if the time ends early, none of them is left out.
    for round_number in range(context.choose(10, 40, 100)):
        for number, size in enumerate(sizes):
            large = size >= 1 << 20 and round_number >= context.choose(2, 4, 8)
            if round_number and (time.monotonic() > until or large):
                continue
            if context.time_left < 2:
                break
            _watched(context, store, commit(context.root, 1000 * number + round_number), _pattern(size))
            written.add(size)
            context.evidence |= {"largest file": max(written), "sizes": len(written)}
    saw_enough(len(written), len(sizes), f"of {len(sizes)} sizes of files were written, up to {max(written)} bytes")
    for what in ("reader", "lister"):
        saw_enough(
            context.evidence[f"looks of a {what}, before"], 1, f"looks of a {what} were made before a write ended"
        )


def _watched(context: Context, store: LogStore, path: str, data: bytes) -> None:
    """Write a file while a reader and a lister access it again and again."""
    size = len(data)
    watchers = [_Reader(context.make(), path, data), _Lister(context.make(), path, size)]
    for watcher in watchers:
        watcher.start()
    try:
        store.write(path, data)
    finally:
        for watcher in watchers:
            watcher.end()
    for watcher in watchers:
        require(not watcher.broken, f"during a write of {size} bytes {watcher.broken}")
        require(watcher.seen, f"after a write of {size} bytes a {watcher.what} doesn't see it")
        for name, looks in (("before", watcher.looks_before), ("in all", watcher.looks)):
            key = f"looks of a {watcher.what}, {name}"
            context.evidence[key] = context.evidence.get(key, 0) + looks


def _pattern(size: int) -> bytes:
    return bytes(range(256)) * (size // 256) + bytes(size % 256)


class _Watcher(threading.Thread):
    """Looks at a file again and again; `broken` describes an invalid state that it saw."""

    what = ""

    def __init__(self, store: LogStore, path: str) -> None:
        super().__init__(daemon=True)
        self.store, self.path = store, path
        self.broken = ""
        self.looks = self.looks_before = 0
        self.seen = False
        self._written = threading.Event()

    def end(self) -> None:
        """Read at least once more, then stop."""
        self._written.set()
        self.join()

    def run(self) -> None:
        last = False
        while not last and not self.broken:
            last = self._written.is_set()
            try:
                self.seen = self.look()
            except Exception as error:
                self.broken = f"a {self.what} raised {error!r}"
            self.looks += 1
            self.looks_before += not self.seen

    def look(self) -> bool:
        """Whether the file exists."""
        raise NotImplementedError


class _Reader(_Watcher):
    what = "reader"

    def __init__(self, store: LogStore, path: str, data: bytes) -> None:
        super().__init__(store, path)
        self._data = data

    def look(self) -> bool:
        try:
            content = self.store.read(self.path)
        except FileNotFoundError:
            return False
        if content != self._data:
            self.broken = f"a reader saw {len(content)} of {len(self._data)} bytes"
        return True


class _Lister(_Watcher):
    what = "lister"

    def __init__(self, store: LogStore, path: str, size: int) -> None:
        super().__init__(store, path)
        self._size = size

    def look(self) -> bool:
        name = self.path.rpartition("/")[2]
        sizes = [status.size for status in self.store.list_from(self.path) if status.path.endswith(name)]
        if sizes not in ([], [self._size]):
            self.broken = f"a listing showed the sizes {sizes} for one file of {self._size} bytes"
        return bool(sizes)


@check(9, guarantee=2, lasts=True)
def a_large_write_loses_too(context: Context) -> None:
    """A large write, which clients send in parts, loses against an existing file and in a race like a small write."""
    size = context.choose(9 << 20, 24 << 20, 110 << 20)
    data = [bytes([number + 1]) * (size + number) for number in range(2)]
    store = context.make()
    small = commit(context.root, 0)
    store.write(small, b"small")
    expect(FileExistsError, outcome(lambda: store.write(small, data[0])), f"writing {size} bytes where a file exists")
    require(store.read(small) == b"small", f"a losing write of {size} bytes changed the file")
    for version in range(1, 1 + context.choose(2, 4, 4)):
        path = commit(context.root, version)
        barrier = threading.Barrier(2)
        tries: list[Try] = []

        def write(number: int, path: str = path, barrier: threading.Barrier = barrier) -> None:
            client = context.make()
            barrier.wait()
            tries.append(tried(number, partial(client.write, path, data[number])))  # noqa: B023

        in_threads(2, write)
        judge(context, path, tries, lambda number: data[number], f", each of {size} bytes")
        context.evidence |= {"rounds": version, "writers": 2, "bytes": size}
        if version > 1 and context.time_left < 2:
            break


@check(10, guarantee=3, lasts=True)
def other_processes_see_it_at_once(context: Context) -> None:
    """A client in another process that has read before sees each write, overwrite and delete immediately."""
    needs_processes(context)
    checkpoint = below(context.root, "_last_checkpoint")
    with crew(context, 2) as [writer, reader]:
        until = enough(context)
        writer.call(put, checkpoint, b"start", True)
        for version in range(context.choose(10, 50, 200)):
            if version >= _LEAST_ROUNDS and time.monotonic() > until:
                break
            path = commit(context.root, version)
            before = reader.call(look, path, checkpoint)
            require(before[:2] == (None, []), f"version {version} exists before it was written: {before}")
            writer.call(put, path, mark(version), False)
            writer.call(put, checkpoint, mark(version), True)
            content, listed, last = reader.call(look, path, checkpoint)
            require(content == mark(version), "a client in another process doesn't read a completed write")
            require(listed == [f"{version:020}.json"], "a client in another process doesn't list a completed write")
            require(last == mark(version), "a client in another process reads the bytes from before an overwrite")
            context.evidence["rounds"] = version + 1
        writer.call(remove, path)
        content, listed, _ = reader.call(look, path, checkpoint)
        require((content, listed) == (None, []), "a client in another process still sees a deleted file")


def put(here: Station, path: str, data: bytes, overwrite: bool) -> None:
    """Write with the client of this process."""
    here.store.write(path, data, overwrite=overwrite)


def remove(here: Station, path: str) -> None:
    """Delete with the client of this process."""
    here.store.delete(path)


def look(here: Station, path: str, checkpoint: str) -> tuple[bytes | None, list[str], bytes]:
    """The content of `path`, the commits in a listing from `path` on, and the content of `checkpoint`."""
    try:
        content = here.store.read(path)
    except FileNotFoundError:
        content = None
    listed = [name for name in names(here.store.list_from(path)) if is_commit_name(name)]
    return content, listed, here.store.read(checkpoint)
