"""Checks 8 to 10: what a reader and a lister see during a write, and at once after it."""

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import at, below, check, commit, expect, interleavings, names, value_of

SIZES = (0, 1, 1023, 1 << 20, (8 << 20) + 1)


@check(8, guarantee=1)
def reads_what_was_written(context: Context) -> None:
    """Every size comes back as it was, through another client too."""
    make, root = context.make, context.root
    for number, size in enumerate(SIZES):
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        path = commit(root, number)
        make().write(path, data)
        require(make().read(path) == data, f"{size} bytes were written and others read")


@check(8, guarantee=1)
def never_a_part_of_a_file(context: Context) -> None:
    """While a writer is stopped at any of its steps, a reader sees no file or the whole, and so does a listing."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    data = b"line\n" * 5000

    def look(case: int) -> tuple[bytes | None, set[int]]:
        try:
            found = reader.read(commit(root, case))
        except FileNotFoundError:
            found = None
        return found, {status.size for status in reader.list_from(f"{root}/_delta_log/")}

    writer.write(below(root, "_first"), data)
    for case in interleavings(context, lambda n: writer.write(commit(root, n), data), look):
        value_of(case.held, "the write that was held up", case)
        found, sizes = value_of(case.between, "reading during a write", case)
        require(found in {None, data}, f"a reader saw {len(found or b'')} of {len(data)} bytes {at(case)}")
        require(sizes == {len(data)}, f"a listing showed sizes {sizes} of files of {len(data)} {at(case)}")


@check(10, guarantee=1)
def absent_is_not_found(context: Context) -> None:
    """Reading what isn't there is `FileNotFoundError`, and so it is again after a delete."""
    make, root = context.make, context.root
    store, path = make(), commit(root, 7)
    expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading an absent file")
    store.write(path, b"now")
    require(make().read(path) == b"now", "a file isn't there for a client that had looked for it before the write")
    require(store.read(path) == b"now", "the client that had looked for it before the write doesn't see it")
    store.delete(path)
    expect(FileNotFoundError, outcome(lambda: store.read(path)), "reading a deleted file")


@check(10, guarantee=3)
def lists_at_once(context: Context) -> None:
    """A write that has returned, and a delete, are in the next listing of a client that had listed before."""
    make, root = context.make, context.root
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
