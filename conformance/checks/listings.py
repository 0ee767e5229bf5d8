"""Check 11: listings are complete, in order, and the same for all clients."""

import itertools
import threading
import time

from ..failures import require
from ..harness.interleave import outcome
from ..model import Context
from .population import fill, needs_pages
from .suite import (
    at,
    below,
    check,
    commit,
    commit_names,
    enough,
    interleavings,
    is_commit_name,
    names,
    saw_enough,
    value_of,
)

_LEAST_COMMITS, _LEAST_LISTINGS = 10, 3


@check(11, guarantee=3)
def lists_from_the_name_on(context: Context) -> None:
    """A listing starts at the given name, leaves out earlier names, and is empty after the last name."""
    make, root = context.make, context.root
    store = make()
    for version in (3, 0, 2, 1):
        store.write(commit(root, version), bytes(version))
    for start in range(5):
        listed = list(make().list_from(commit(root, start)))
        require(names(iter(listed)) == commit_names(start, 4), f"a listing from {start} on has {names(iter(listed))}")
        require([status.size for status in listed] == list(range(start, 4)), "a listing has wrong sizes")
    # The log also lists from names that no file has, and that some stores don't allow for files.
    for absent in ("00000000000000000001.j", "00000000000000000001."):
        require(
            names(make().list_from(below(root, absent))) == commit_names(1, 4), f"a listing from {absent} on is wrong"
        )
    require(names(make().list_from(f"{root}/_delta_log/")) == commit_names(0, 4), "a listing of a directory is wrong")


@check(11, guarantee=3)
def lists_in_byte_order(context: Context) -> None:
    """A listing is in the order of UTF-8 bytes, not in the order of a locale or of UTF-16."""
    make, root = context.make, context.root
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
        require(listed == expected[number:], f"a listing from {name!r} on has {listed}")
        require(make().read(below(root, name)) == name.encode(), f"reading {name!r} returns another file")


@check(11, guarantee=3, lasts=True)
def lists_whole_directories(context: Context) -> None:
    """A listing is complete for more than 1,000 files, the number that a service usually returns per request."""
    files = 0
    for size in context.choose((1001,), (999, 1000, 1001, 2105), (999, 1000, 1001, 2105, 5001)):
        files = fill(context, files, size)
        if not files:
            break
        for start in (0, 1, files - 1001, files // 2, files - 1, files):
            if start < 0:
                continue
            listed = names(context.make().list_from(commit(context.root, start)))
            require(
                listed == commit_names(start, files),
                f"a listing from {start} on in a directory of {files} files has {len(listed)} files",
            )
        context.evidence["files"] = files
        if files < size:
            break
    needs_pages(files)


@check(11, guarantee=3, lasts=True)
def lists_while_others_write(context: Context) -> None:
    """While a writer makes commits, each listing shows all earlier commits and has no gap."""
    writer, reader = context.make(), context.make()
    writer.write(commit(context.root, 0), b"x")
    commits, latest, ended = context.choose(150, 600, 3000), [0], threading.Event()
    looks = 0
    until = enough(context)

    def write() -> None:
        try:
            for version in itertools.count(1):
                enough_seen = version >= commits and looks >= _LEAST_LISTINGS
                if enough_seen or (version > _LEAST_COMMITS and time.monotonic() > until):
                    break
                writer.write(commit(context.root, version), b"x")
                latest[0] = version
        finally:
            ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not ended.is_set():
            written = latest[0]
            listed = names(reader.list_from(commit(context.root, 0)))
            require(listed == commit_names(0, len(listed)), f"a listing of {len(listed)} commits has a gap")
            require(
                len(listed) > written,
                f"a listing after the write of version {written} ends at version {len(listed) - 1}",
            )
            looks += 1
    finally:
        until = 0.0
        thread.join()
    context.evidence |= {"commits": latest[0] + 1, "listings meanwhile": looks}
    saw_enough(latest[0], _LEAST_COMMITS, "commits were made")
    saw_enough(looks, _LEAST_LISTINGS, "listings were made during the commits")


@check(11, guarantee=3)
def lists_no_directories_below(context: Context) -> None:
    """A listing contains neither subdirectories nor files in subdirectories."""
    make, root = context.make, context.root
    store = make()
    sidecars, odd = f"{root}/_delta_log/_sidecars", f"{root}/_delta_log/{0:020}.d"
    context.directories |= {sidecars, odd}
    store.write(commit(root, 0), b"x")
    store.write(f"{sidecars}/{'a' * 8}.parquet", b"x")
    store.write(f"{odd}/inside", b"x")
    require(
        names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"],
        "a listing shows a subdirectory or its files",
    )


@check(11, guarantee=3, lasts=True)
def lists_no_temporary_names(context: Context) -> None:
    """While a writer is stopped at any step of its write, a listing shows no temporary names."""
    make, root = context.make, context.root
    writer = make()
    path = below(root, "_last_checkpoint")
    writer.write(path, b"0")
    for overwrite in (True, False):
        for case in interleavings(
            context,
            lambda n, o=overwrite: writer.write(path if o else commit(root, n), b"data", overwrite=o),  # type: ignore[misc]
            lambda _n: names(make().list_from(f"{root}/_delta_log/")),
        ):
            listed = value_of(case.between, "listing during a write", case)
            temporary = [name for name in listed if name != "_last_checkpoint" and not is_commit_name(name)]
            require(not temporary, f"a listing shows {temporary} {at(case)}")


@check(11, guarantee=3, lasts=True)
def lists_no_later_file_without_the_earlier(context: Context) -> None:
    """A listing is stopped at each step while two commits are made: it shows none, only the first, or both."""
    make, root = context.make, context.root
    reader, writer = make(), make()

    def prepare(case: int) -> None:
        context.directories.add(f"{root}/{case}/_delta_log")
        writer.write(below(f"{root}/{case}", "_first"), b"")

    def two_commits(case: int) -> None:
        for version in range(2):
            writer.write(commit(f"{root}/{case}", version), b"x")

    for case in interleavings(
        context,
        lambda n: names(reader.list_from(commit(f"{root}/{n}", 0))),
        two_commits,
        prepare=prepare,
    ):
        listed = value_of(case.held, "listing during two writes", case)
        value_of(case.between, "writing during a listing", case)
        require(listed[:-1] in ([], commit_names(0, 1), commit_names(0, 2)), f"a listing has {listed} {at(case)}")


@check(11, guarantee=3)
def missing_directory_is_not_found(context: Context) -> None:
    """Listing a missing directory raises FileNotFoundError in the call or, on an object store, returns no files."""
    make, root = context.make, context.root
    try:
        listing = make().list_from(commit(f"{root}/never-made", 0))
    except FileNotFoundError:
        return
    end = outcome(lambda: list(listing))
    require(
        end.error is None, f"the error for a missing directory is raised only when the listing is read: {end.error!r}"
    )
    require(end.value == [], "the listing of a missing directory has files")
