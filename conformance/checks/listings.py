"""Check 11: what was written is listed, in order, by everyone."""

import itertools
import threading
import time

from ..failures import require
from ..interleave import outcome
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
    """A listing starts at the name itself, leaves out what is before, and is empty past the end."""
    make, root = context.make, context.root
    store = make()
    for version in (3, 0, 2, 1):
        store.write(commit(root, version), bytes(version))
    for start in range(5):
        listed = list(make().list_from(commit(root, start)))
        require(names(iter(listed)) == commit_names(start, 4), f"from {start} on were listed {names(iter(listed))}")
        require([status.size for status in listed] == list(range(start, 4)), "the sizes listed are wrong")
    # As the log does: from a name that no file has, and that some stores don't allow for files.
    for absent in ("00000000000000000001.j", "00000000000000000001."):
        require(
            names(make().list_from(below(root, absent))) == commit_names(1, 4), f"a listing from {absent} on is wrong"
        )
    require(names(make().list_from(f"{root}/_delta_log/")) == commit_names(0, 4), "a directory's whole listing")


@check(11, guarantee=3)
def lists_in_byte_order(context: Context) -> None:
    """The order is that of the UTF-8 bytes: not the locale's, and not that of UTF-16."""
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
        require(listed == expected[number:], f"from {name!r} on were listed {listed}")
        require(make().read(below(root, name)) == name.encode(), f"{name!r} is another file")


@check(11, guarantee=3, lasts=True)
def lists_whole_directories(context: Context) -> None:
    """A listing doesn't end at the 1,000 that a service gives for one request, and isn't wrong beside that."""
    made = 0
    for size in context.choose((1001,), (999, 1000, 1001, 2105), (999, 1000, 1001, 2105, 5001)):
        made = fill(context, made, size)
        if not made:
            break
        for start in (0, 1, made - 1001, made // 2, made - 1, made):
            if start < 0:
                continue
            listed = names(context.make().list_from(commit(context.root, start)))
            require(listed == commit_names(start, made), f"of {made} files from {start} on {len(listed)} are listed")
        context.evidence["files"] = made
        if made < size:
            break
    needs_pages(made)


@check(11, guarantee=3, lasts=True)
def lists_while_others_write(context: Context) -> None:
    """While commits are made one after the other, each listing shows all that were there, and no hole."""
    writer, reader = context.make(), context.make()
    writer.write(commit(context.root, 0), b"x")
    commits, made, ended = context.choose(150, 600, 3000), [0], threading.Event()
    looks = 0
    until = enough(context)

    def write() -> None:
        try:
            for version in itertools.count(1):
                enough_seen = version >= commits and looks >= _LEAST_LISTINGS
                if enough_seen or (version > _LEAST_COMMITS and time.monotonic() > until):
                    break
                writer.write(commit(context.root, version), b"x")
                made[0] = version
        finally:
            ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not ended.is_set():
            there = made[0]
            listed = names(reader.list_from(commit(context.root, 0)))
            require(listed == commit_names(0, len(listed)), f"a listing of {len(listed)} commits has a hole")
            require(len(listed) > there, f"version {there} was written, and a later listing ends at {len(listed) - 1}")
            looks += 1
    finally:
        until = 0.0
        thread.join()
    context.evidence |= {"commits": made[0] + 1, "listings meanwhile": looks}
    saw_enough(made[0], _LEAST_COMMITS, "commits were made")
    saw_enough(looks, _LEAST_LISTINGS, "listings were made meanwhile")


@check(11, guarantee=3)
def lists_no_directories_below(context: Context) -> None:
    """Files in directories below, and the directories themselves, are left out."""
    make, root = context.make, context.root
    store = make()
    sidecars, odd = f"{root}/_delta_log/_sidecars", f"{root}/_delta_log/{0:020}.d"
    context.directories |= {sidecars, odd}
    store.write(commit(root, 0), b"x")
    store.write(f"{sidecars}/{'a' * 8}.parquet", b"x")
    store.write(f"{odd}/inside", b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a listing shows what is below")


@check(11, guarantee=3, lasts=True)
def lists_no_temporary_names(context: Context) -> None:
    """While a writer is stopped at any of its steps, a listing shows nothing but the names that were asked for."""
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
            strange = [name for name in listed if name != "_last_checkpoint" and not is_commit_name(name)]
            require(not strange, f"a listing shows {strange} {at(case)}")


@check(11, guarantee=3, lasts=True)
def lists_no_later_file_without_the_earlier(context: Context) -> None:
    """While a listing is stopped at any of its steps two commits are made: it shows both, none, or only the first."""
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
        require(listed[:-1] in ([], commit_names(0, 1), commit_names(0, 2)), f"{listed} was listed {at(case)}")


@check(11, guarantee=3)
def missing_directory_is_not_found(context: Context) -> None:
    """A directory that isn't there is `FileNotFoundError` at the call, or, on an object store, an empty listing."""
    make, root = context.make, context.root
    try:
        listing = make().list_from(commit(f"{root}/never-made", 0))
    except FileNotFoundError:
        return
    end = outcome(lambda: list(listing))
    require(end.error is None, f"the error for a missing directory comes late: {end.error!r}")
    require(end.value == [], "a directory that isn't there has files")
