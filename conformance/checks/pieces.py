"""Checks 1, 7 and 8 of a file that is written in pieces: it is a write like any other."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import below, check, commit, expect, mark, names
from .trial import Try, judge, tried

_PIECES = tuple(mark(number) * 1000 for number in range(4))
_WHOLE = b"".join(_PIECES)
_PATIENCE_SECONDS = 10.0


@check(1, guarantee=2)
def pieces_exclude_as_any_write_does(context: Context) -> None:
    """Pieces lose against a file, and of a write in pieces and one that comes between them one wins."""
    make, root = context.make, context.root
    store, other, path = make(), make(), commit(root, 0)
    store.write(path, b"there")
    end = outcome(lambda: store.write_pieces(path, _PIECES))
    expect(FileExistsError, end, "writing pieces where a file is")
    require(make().read(path) == b"there", "a write in pieces that lost has changed the file")

    path = commit(root, 1)
    rival: list[Future[Try]] = []

    def pieces() -> Iterator[bytes]:
        yield _PIECES[0]
        rival.append(pool.submit(tried, 1, lambda: other.write(path, b"the other")))
        wait(rival, _PATIENCE_SECONDS)  # in a store with a lock it waits until this write has ended
        yield from _PIECES[1:]

    with ThreadPoolExecutor(1) as pool:
        ours = tried(0, lambda: store.write_pieces(path, pieces()))
        require(bool(rival), "a write in pieces didn't ask for all of them")
        judge(context, path, [ours, rival[0].result()], lambda writer: b"the other" if writer else _WHOLE)


@check(7, guarantee=4)
def pieces_that_fail_leave_nothing(context: Context) -> None:
    """Where a piece can't be made its error comes through, and what was there, nothing or a file, is there still."""
    make, root = context.make, context.root
    store, path, pointer = make(), commit(root, 0), below(root, "_last_checkpoint")
    store.write(pointer, b"old", overwrite=True)
    failure = ArithmeticError("no second piece")

    def pieces() -> Iterator[bytes]:
        yield _PIECES[0]
        raise failure

    for where, overwrite in ((path, False), (pointer, True)):
        end = outcome(partial(store.write_pieces, where, pieces(), overwrite=overwrite))
        require(end.error is failure, f"a piece failed with {failure!r}, and the write gave {end.error!r}")
    expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a write whose pieces failed")
    require(make().read(pointer) == b"old", "an overwrite whose pieces failed has changed the file")
    found = names(make().list_from(f"{root}/_delta_log/"))
    require(found == ["_last_checkpoint"], f"a write whose pieces failed left {found}")
    store.write(path, b"x")


@check(8, guarantee=1)
def pieces_are_seen_as_one(context: Context) -> None:
    """Until its last piece is asked for nobody sees anything of a file, or of one that replaces another."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    new, replaced = commit(root, 0), below(root, "_last_checkpoint")
    writer.write(replaced, b"old", overwrite=True)

    def look() -> tuple[bytes | None, bytes, list[str]]:
        try:
            found = reader.read(new)
        except FileNotFoundError:
            found = None
        return found, reader.read(replaced), names(reader.list_from(f"{root}/_delta_log/"))

    def pieces(expected: tuple[bytes | None, bytes, list[str]]) -> Iterator[bytes]:
        for piece in _PIECES:
            looking = pool.submit(look)
            wait([looking], _PATIENCE_SECONDS)
            require(looking.done(), "reading and listing wait for a write in pieces, whose pieces may need them")
            seen = looking.result()
            require(seen == expected, f"between two pieces there was {_told(seen)}, and must be {_told(expected)}")
            yield piece

    with ThreadPoolExecutor(1) as pool:
        writer.write_pieces(new, pieces((None, b"old", ["_last_checkpoint"])))
        require(make().read(new) == _WHOLE, "the pieces aren't the file")
        if writer.atomic_overwrite:
            both = (_WHOLE, b"old", [f"{0:020}.json", "_last_checkpoint"])
            writer.write_pieces(replaced, pieces(both), overwrite=True)
            require(make().read(replaced) == _WHOLE, "the pieces aren't the file that they replaced")


def _told(seen: tuple[bytes | None, bytes, list[str]]) -> str:
    new, replaced, listed = seen
    return f"a new file of {'no' if new is None else len(new)} bytes, an old one of {len(replaced)}, listed {listed}"
