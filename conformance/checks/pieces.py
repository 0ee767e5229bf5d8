"""Checks 1, 7 and 8 for files that are written in pieces: the same guarantees hold."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from ..failures import require
from ..harness.interleave import outcome
from ..model import Context
from .suite import below, check, commit, expect, mark, names
from .trial import Try, judge, tried

_PIECES = tuple(mark(number) * 1000 for number in range(4))
_WHOLE = b"".join(_PIECES)
_PATIENCE_SECONDS = 10.0


@check(1, guarantee=2)
def pieces_exclude_as_any_write_does(context: Context) -> None:
    """A write in pieces loses against an existing file; in a race with another write exactly one wins."""
    make, root = context.make, context.root
    store, other, path = make(), make(), commit(root, 0)
    store.write(path, b"there")
    end = outcome(lambda: store.write_pieces(path, _PIECES))
    expect(FileExistsError, end, "writing pieces to a file that exists")
    require(make().read(path) == b"there", "a write in pieces lost, but changed the file")

    path = commit(root, 1)
    rival: list[Future[Try]] = []

    def pieces() -> Iterator[bytes]:
        yield _PIECES[0]
        rival.append(pool.submit(tried, 1, lambda: other.write(path, b"the other")))
        wait(rival, _PATIENCE_SECONDS)  # if the store uses a lock, the other write ends only after this one
        yield from _PIECES[1:]

    with ThreadPoolExecutor(1) as pool:
        ours = tried(0, lambda: store.write_pieces(path, pieces()))
        require(bool(rival), "a write in pieces didn't read all pieces")
        judge(context, path, [ours, rival[0].result()], lambda writer: b"the other" if writer else _WHOLE)


@check(7, guarantee=4)
def pieces_that_fail_leave_nothing(context: Context) -> None:
    """If a piece can't be produced, its error is raised and the path is unchanged: no file, or the old file."""
    make, root = context.make, context.root
    store, path, pointer = make(), commit(root, 0), below(root, "_last_checkpoint")
    store.write(pointer, b"old", overwrite=True)
    failure = ArithmeticError("no second piece")

    def pieces() -> Iterator[bytes]:
        yield _PIECES[0]
        raise failure

    for where, overwrite in ((path, False), (pointer, True)):
        end = outcome(partial(store.write_pieces, where, pieces(), overwrite=overwrite))
        require(end.error is failure, f"a piece failed with {failure!r}, but the write ended with {end.error!r}")
    expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a write whose pieces failed")
    require(make().read(pointer) == b"old", "an overwrite whose pieces failed changed the file")
    listed = names(make().list_from(f"{root}/_delta_log/"))
    require(listed == ["_last_checkpoint"], f"after a write whose pieces failed a listing has {listed}")
    store.write(path, b"x")


@check(8, guarantee=1)
def pieces_are_seen_as_one(context: Context) -> None:
    """A new file in pieces is invisible until its last piece is read, and so is an overwrite in pieces."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    new, replaced = commit(root, 0), below(root, "_last_checkpoint")
    writer.write(replaced, b"old", overwrite=True)

    def look() -> tuple[bytes | None, bytes, list[str]]:
        try:
            content = reader.read(new)
        except FileNotFoundError:
            content = None
        return content, reader.read(replaced), names(reader.list_from(f"{root}/_delta_log/"))

    def pieces(expected: tuple[bytes | None, bytes, list[str]]) -> Iterator[bytes]:
        for piece in _PIECES:
            looking = pool.submit(look)
            wait([looking], _PATIENCE_SECONDS)
            require(
                looking.done(), "reads and listings are blocked by a write in pieces; producing a piece may need them"
            )
            seen = looking.result()
            require(
                seen == expected,
                f"between two pieces a reader saw {_described(seen)}, and must see {_described(expected)}",
            )
            yield piece

    with ThreadPoolExecutor(1) as pool:
        writer.write_pieces(new, pieces((None, b"old", ["_last_checkpoint"])))
        require(make().read(new) == _WHOLE, "the file doesn't have the data of the pieces")
        if writer.atomic_overwrite:
            both = (_WHOLE, b"old", [f"{0:020}.json", "_last_checkpoint"])
            writer.write_pieces(replaced, pieces(both), overwrite=True)
            require(make().read(replaced) == _WHOLE, "the overwritten file doesn't have the data of the pieces")


def _described(seen: tuple[bytes | None, bytes, list[str]]) -> str:
    new, replaced, listed = seen
    size = "no new file" if new is None else f"a new file of {len(new)} bytes"
    return f"{size}, an old file of {len(replaced)} bytes, and a listing of {listed}"
