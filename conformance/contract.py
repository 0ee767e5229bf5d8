"""The guarantees of `LogStore`, one check each: what the log relies on, tried out on a store."""

import pickle
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from tablelog.errors import WriteOutcomeUnknown
from tablelog.logstore import FileStatus, LogStore

from .failures import GuaranteeBrokenError, broken, require
from .interleave import Interleaving, Outcome, all_interleavings, outcome

Factory = Callable[[], LogStore]
"""Makes a store; each call is another client of the same storage. A store of one process may be given again."""

_COMMIT_NAME = re.compile(r"[0-9]{20}\.json").fullmatch
SIZES = (0, 1, 1023, 1 << 20, (8 << 20) + 1)


@dataclass(frozen=True)
class Check:
    """One check and the number of the guarantee that it tests (0: the rest of the contract)."""

    guarantee: int
    run: Callable[[Factory, str], None]

    @property
    def name(self) -> str:
        """The name of the check's function."""
        return self.run.__name__


CHECKS: list[Check] = []


def _check(guarantee: int) -> Callable[[Callable[[Factory, str], None]], Callable[[Factory, str], None]]:
    def register(function: Callable[[Factory, str], None]) -> Callable[[Factory, str], None]:
        @wraps(function)
        def run(make: Factory, root: str) -> None:
            try:
                function(make, root)
            except GuaranteeBrokenError:
                raise
            except Exception as error:
                raise GuaranteeBrokenError(f"an error that the contract doesn't know: {error!r}") from error

        CHECKS.append(Check(guarantee, run))
        return run

    return register


def commit(root: str, version: int) -> str:
    """The path of a commit below `root`, named as Delta names it."""
    return f"{root}/_delta_log/{version:020}.json"


def below(root: str, name: str) -> str:
    """The path of a log file of any name."""
    return f"{root}/_delta_log/{urllib.parse.quote(name, safe='')}"


def names(listing: Iterator[FileStatus]) -> list[str]:
    """The last parts of the paths of a listing, decoded."""
    return [urllib.parse.unquote(status.path.rpartition("/")[2]) for status in listing]


# ---- guarantee 1: a reader sees the whole file or none ----


@_check(1)
def reads_what_was_written(make: Factory, root: str) -> None:
    """Every size comes back as it was, through another client too."""
    for number, size in enumerate(SIZES):
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        path = commit(root, number)
        make().write(path, data)
        require(make().read(path) == data, f"{size} bytes were written and others read")


@_check(1)
def absent_is_not_found(make: Factory, root: str) -> None:
    """Reading what isn't there is `FileNotFoundError`, and so it is again after a delete."""
    store, path = make(), commit(root, 7)
    _expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading an absent file")
    store.write(path, b"now")
    require(make().read(path) == b"now", "a file isn't there for a client that had looked for it before the write")
    require(store.read(path) == b"now", "the client that had looked for it before the write doesn't see it")
    store.delete(path)
    _expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading a deleted file")


@_check(1)
def never_a_part_of_a_file(make: Factory, root: str) -> None:
    """While a writer is stopped at any of its steps, a reader sees no file or the whole, and so does a listing."""
    writer, reader = make(), make()
    data = b"line\n" * 5000

    def look(case: int) -> tuple[bytes | None, set[int]]:
        try:
            found = reader.read(commit(root, case))
        except FileNotFoundError:
            found = None
        return found, {status.size for status in reader.list_from(f"{root}/_delta_log/")}

    writer.write(below(root, "_first"), data)
    for case in all_interleavings(lambda n: writer.write(commit(root, n), data), look):
        _no_error(case.held, "the write that was held up", case)
        found, sizes = _no_error(case.between, "reading during a write", case)
        require(found in {None, data}, f"a reader saw {len(found or b'')} of {len(data)} bytes {_at(case)}")
        require(sizes == {len(data)}, f"a listing showed sizes {sizes} of files of {len(data)} {_at(case)}")


# ---- guarantee 2: of all writers of one absent path exactly one wins ----


@_check(2)
def second_writer_loses(make: Factory, root: str) -> None:
    """A file that is there stays as it is, the empty one too, and the writer is told."""
    for version, data in enumerate((b"first", b"")):
        path = commit(root, version)
        make().write(path, data)
        for loser in (b"second", b"", data):
            _expect(FileExistsError, outcome(lambda p=path, d=loser: make().write(p, d)), "writing a file that exists")  # type: ignore[misc]
        require(make().read(path) == data, "a losing writer changed the file")


@_check(2)
def one_winner_in_every_interleaving(make: Factory, root: str) -> None:
    """One writer is stopped at each of its steps in turn while another writes the same file from start to end."""
    first, second = make(), make()
    first.write(below(root, "_first"), b"")
    for case in all_interleavings(
        lambda n: first.write(commit(root, n), b"first" * 100), lambda n: second.write(commit(root, n), b"second")
    ):
        won = [data for data, end in ((b"first" * 100, case.held), (b"second", case.between)) if end.error is None]
        for end in (case.held, case.between):
            if end.error is not None:
                _expect(FileExistsError, end, f"losing a race {_at(case)}")
        require(len(won) == 1, f"{len(won)} of 2 writers of one file were told that they won {_at(case)}")
        require(make().read(commit(root, case.step)) == won[0], f"the file isn't the winner's {_at(case)}")


@_check(2)
def one_winner_among_threads(make: Factory, root: str) -> None:
    """Many threads write the same file at once, again and again, with late ones among them."""
    writers, rounds = 8, 20
    stores = [make() for _ in range(writers)]
    barrier = threading.Barrier(writers)
    ends: list[list[Outcome]] = [[] for _ in range(writers)]

    def write(number: int) -> None:
        for version in range(rounds):
            barrier.wait()
            ends[number].append(outcome(lambda v=version: stores[number].write(commit(root, v), _mark(number))))  # type: ignore[misc]

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for version in range(rounds):
        won = [number for number in range(writers) if ends[number][version].error is None]
        require(len(won) == 1, f"{len(won)} of {writers} writers of one file were told that they won")
        require(make().read(commit(root, version)) == _mark(won[0]), "the file isn't the winner's")
        for number in set(range(writers)) - set(won):
            _expect(FileExistsError, ends[number][version], "losing a race")


@_check(2)
def a_deleted_name_is_won_anew(make: Factory, root: str) -> None:
    """After a delete one writer wins the name again."""
    path = commit(root, 0)
    make().write(path, b"old")
    make().delete(path)
    make().write(path, b"new")
    _expect(FileExistsError, outcome(lambda: make().write(path, b"newer")), "writing a file that exists")
    require(make().read(path) == b"new", "the file isn't that of the writer who won after the delete")


@_check(2)
def overwrite_and_create_exclude_each_other(make: Factory, root: str) -> None:
    """A create that comes after an overwrite has landed loses, at whatever step it was."""
    creator, overwriter = make(), make()
    creator.write(below(root, "_first"), b"")
    for case in all_interleavings(
        lambda n: creator.write(commit(root, n), b"created"),
        lambda n: overwriter.write(commit(root, n), b"overwritten", overwrite=True),
    ):
        _no_error(case.between, "overwriting", case)
        if case.held.error is not None:
            _expect(FileExistsError, case.held, f"creating {_at(case)}")
        # Whichever came first: a create never takes the place of a file.
        data = make().read(commit(root, case.step))
        require(data == b"overwritten", f"a create replaced a file that was there {_at(case)}")


# ---- guarantee 3: what was written is listed, in order, by everyone, at once ----


@_check(3)
def lists_from_the_name_on(make: Factory, root: str) -> None:
    """A listing starts at the name itself, leaves out what is before, and is empty past the end."""
    store = make()
    for version in (3, 0, 2, 1):
        store.write(commit(root, version), bytes(version))
    for start in range(5):
        listed = list(make().list_from(commit(root, start)))
        require(names(iter(listed)) == _commits(start, 4), f"from {start} on were listed {names(iter(listed))}")
        require([status.size for status in listed] == list(range(start, 4)), "the sizes listed are wrong")
    require(
        names(make().list_from(below(root, "00000000000000000001.j"))) == _commits(1, 4),
        "a listing from an absent name is wrong",
    )
    require(names(make().list_from(f"{root}/_delta_log/")) == _commits(0, 4), "a directory's whole listing")


@_check(3)
def lists_in_byte_order(make: Factory, root: str) -> None:
    """The order is that of the UTF-8 bytes: not the locale's, and not that of UTF-16."""
    store = make()
    written = [
        "B",
        "a",
        "Z",
        "b",
        "10",
        "9",
        "_x",
        "a.b",
        "a-b",
        "é",
        "z",
        "\uff5e",
        "\U0001f600",
        "a b",
        "a%20b",
        "a+b",
    ]
    for name in written:
        store.write(below(root, name), name.encode())
    expected = sorted(written, key=str.encode)
    require(names(make().list_from(f"{root}/_delta_log/")) == expected, "the listing isn't in the order of bytes")
    for number, name in enumerate(expected):
        listed = names(make().list_from(below(root, name)))
        require(listed == expected[number:], f"from {name!r} on were listed {listed}")
        require(make().read(below(root, name)) == name.encode(), f"{name!r} is another file")


@_check(3)
def lists_whole_directories(make: Factory, root: str) -> None:
    """A listing doesn't end at the 1,000 that a service gives for one request."""
    store = make()
    for version in range(1001):
        store.write(commit(root, version), b"x")
    require(len(names(make().list_from(commit(root, 0)))) == 1001, "a listing of 1,001 files isn't whole")
    require(names(make().list_from(commit(root, 1000))) == [f"{1000:020}.json"], "the end of a long listing is wrong")


@_check(3)
def lists_no_directories_below(make: Factory, root: str) -> None:
    """Files in directories below, and the directories themselves, are left out."""
    store = make()
    store.write(commit(root, 0), b"x")
    store.write(f"{root}/_delta_log/_sidecars/{'a' * 8}.parquet", b"x")
    store.write(f"{root}/_delta_log/00000000000000000000.d/inside", b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a listing shows what is below")


@_check(3)
def lists_no_temporary_names(make: Factory, root: str) -> None:
    """While a writer is stopped at any of its steps, a listing shows nothing but the names that were asked for."""
    writer = make()
    path = below(root, "_last_checkpoint")
    writer.write(path, b"0")
    for overwrite in (True, False):
        for case in all_interleavings(
            lambda n, o=overwrite: writer.write(path if o else commit(root, n), b"data", overwrite=o),  # type: ignore[misc]
            lambda _n: names(make().list_from(f"{root}/_delta_log/")),
        ):
            listed = _no_error(case.between, "listing during a write", case)
            strange = [name for name in listed if name != "_last_checkpoint" and not _COMMIT_NAME(name)]
            require(not strange, f"a listing shows {strange} {_at(case)}")


@_check(3)
def lists_at_once(make: Factory, root: str) -> None:
    """A write that has returned, and a delete, are in the next listing of a client that had listed before."""
    writer, reader = make(), make()
    writer.write(commit(root, 0), b"x")
    for version in range(1, 30):
        list(reader.list_from(commit(root, 0)))
        writer.write(commit(root, version), b"x")
        require(
            names(reader.list_from(commit(root, version))) == [f"{version:020}.json"], "a write isn't listed at once"
        )
    writer.delete(commit(root, 29))
    require(not names(reader.list_from(commit(root, 29))), "a deleted file is still listed")


@_check(3)
def lists_no_later_file_without_the_earlier(make: Factory, root: str) -> None:
    """While a listing is stopped at any of its steps two commits are made: it shows both, none, or only the first."""
    reader, writer = make(), make()

    def two_commits(case: int) -> None:
        for version in range(2):
            writer.write(commit(f"{root}/{case}", version), b"x")

    for case in all_interleavings(
        lambda n: names(reader.list_from(commit(f"{root}/{n}", 0))),
        two_commits,
        prepare=lambda n: writer.write(below(f"{root}/{n}", "_first"), b""),
    ):
        listed = _no_error(case.held, "listing during two writes", case)
        _no_error(case.between, "writing during a listing", case)
        require(listed[:-1] in ([], _commits(0, 1), _commits(0, 2)), f"{listed} was listed {_at(case)}")


@_check(3)
def listed_paths_are_the_files(make: Factory, root: str) -> None:
    """A listed path is canonical, and reads as the file that it names."""
    store = make()
    for name in ("00000000000000000000.json", "a b%20+é.json", "c#d?e.json"):
        store.write(below(root, name), name.encode())
    for status in make().list_from(f"{root}/_delta_log/"):
        require(store.read(status.path).decode() == names(iter([status]))[0], f"{status.path} reads as another file")
        require(store.resolve(status.path) == status.path, f"{status.path} is not canonical")


@_check(3)
def missing_directory_is_not_found(make: Factory, root: str) -> None:
    """A directory that isn't there is `FileNotFoundError` at the call, or, on an object store, an empty listing."""
    try:
        listing = make().list_from(commit(f"{root}/never-made", 0))
    except FileNotFoundError:
        return
    end = outcome(lambda: list(listing))
    require(end.error is None, f"the error for a missing directory comes late: {end.error!r}")
    require(end.value == [], "a directory that isn't there has files")


# ---- guarantee 4: an honest answer ----


@_check(4)
def no_error_after_a_write(make: Factory, root: str) -> None:
    """Whatever step another writer was stopped at, each gets won, lost or unknown, and never any other error."""
    first, second = make(), make()
    for case in all_interleavings(
        lambda n: first.write(commit(f"{root}/new-{n}", 0), b"first"),
        lambda n: second.write(commit(f"{root}/new-{n}", 0), b"second"),
    ):
        for end in (case.held, case.between):
            require(
                end.error is None or isinstance(end.error, FileExistsError | WriteOutcomeUnknown),
                f"a race in a new directory ended with {end.error!r} {_at(case)}",
            )
        ends = [case.held.error, case.between.error]
        require(ends.count(None) <= 1, f"two writers were told that they won {_at(case)}")


@_check(4)
def a_failed_write_leaves_nothing(make: Factory, root: str) -> None:
    """Data that can't be written is an error and leaves no file, and the next writer isn't hindered."""
    path = commit(root, 0)
    end = outcome(lambda: make().write(path, None))  # type: ignore[arg-type]
    require(end.error is not None, "a write of no bytes object was accepted")
    _expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a failed write")
    make().write(path, b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a failed write left a file")


# ---- the rest of the contract ----


@_check(0)
def overwrite_replaces(make: Factory, root: str) -> None:
    """The last writer's bytes stay, whole, whether there was a file or none, and however long it was."""
    path = below(root, "_last_checkpoint")
    for data in (b"first", b"a longer one" * 1000, b"short", b""):
        make().write(path, data, overwrite=True)
        require(make().read(path) == data, "an overwritten file doesn't have the last writer's bytes")


@_check(0)
def overwrite_is_atomic_where_declared(make: Factory, root: str) -> None:
    """A reader sees the old bytes or the new ones, at whatever step the overwriting is, if the store says so."""
    writer, reader = make(), make()
    if not writer.atomic_overwrite:
        return
    path, old, new = below(root, "_last_checkpoint"), b"old" * 3000, b"new" * 5000
    writer.write(path, old, overwrite=True)
    for case in all_interleavings(lambda _n: writer.write(path, new, overwrite=True), lambda _n: reader.read(path)):
        found = _no_error(case.between, "reading during an overwrite", case)
        require(found in {old, new}, f"a reader saw {len(found)} bytes, neither old nor new {_at(case)}")
        writer.write(path, old, overwrite=True)


@_check(0)
def delete_is_idempotent(make: Factory, root: str) -> None:
    """Deleting what isn't there is fine, in a directory that isn't there too, and spares the neighbours."""
    store = make()
    for version in range(3):
        store.write(commit(root, version), b"x")
    for _ in range(2):
        make().delete(commit(root, 1))
    make().delete(commit(f"{root}/never-made", 0))
    require(names(make().list_from(commit(root, 0))) == [f"{0:020}.json", f"{2:020}.json"], "a delete took too much")


@_check(0)
def resolves_spellings(make: Factory, root: str) -> None:
    """Two spellings of one path are one; resolving again changes nothing; different paths stay different."""
    store = make()
    resolved = store.resolve(f"{root}/table")
    require(store.resolve(f"{root}/table/") == resolved, "a trailing slash makes another table")
    require(store.resolve(resolved) == resolved, "resolving a canonical path changes it")
    require(store.resolve(f"{root}/other") != resolved, "two tables have one name")
    store.write(commit(f"{root}/table", 0), b"x")
    require(store.read(commit(resolved, 0)) == b"x", "the resolved path is another table")
    require(store.resolve(f"{root}/table") == resolved, "the canonical path changes when the table is made")


@_check(0)
def survives_pickling(make: Factory, root: str) -> None:
    """A pickled and unpickled store serves the same files."""
    make().write(commit(root, 0), b"x")
    copy: LogStore = pickle.loads(pickle.dumps(make()))
    require(copy.read(commit(root, 0)) == b"x", "an unpickled store doesn't see the file")
    _expect(FileExistsError, outcome(lambda: copy.write(commit(root, 0), b"y")), "writing a file that exists")
    require(copy.exclusion == make().exclusion, "an unpickled store declares something else")


@_check(0)
def declares_what_it_is(make: Factory, root: str) -> None:
    """The three declarations are there, and the log can be kept on such a store."""
    store = make()
    require(store.exclusion in {"process", "host", "global"}, f"exclusion is {store.exclusion!r}")
    require(isinstance(store.atomic_overwrite, bool), "atomic_overwrite is no bool")
    require(
        store.partial_writes_visible is False, "the store says that partial writes are visible: no log is safe there"
    )


def _commits(start: int, end: int) -> list[str]:
    return [f"{version:020}.json" for version in range(start, end)]


def _mark(number: int) -> bytes:
    return f"writer {number}\n".encode() * (number + 1)


def _at(case: Interleaving) -> str:
    return f"when the first was held before step {case.step}, {case.where}"


def _expect(kind: type[BaseException], end: Outcome, doing: str) -> None:
    if end.error is None:
        broken(f"{doing} succeeded, and must be {kind.__name__}")
    if not isinstance(end.error, kind):
        broken(f"{doing} gave {end.error!r}, and must be {kind.__name__}")


def _no_error(end: Outcome, doing: str, case: Interleaving) -> Any:
    if end.error is not None:
        broken(f"{doing} gave {end.error!r} {_at(case)}")
    return end.value
