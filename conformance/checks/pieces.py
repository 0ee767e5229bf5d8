"""Checks 1, 7 and 8 of a file that is written in pieces: it is a write like any other."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from ..failures import require
from ..interleave import Outcome, outcome
from ..model import Context
from .suite import below, check, commit, expect, mark, names

_PIECES = tuple(mark(number) * 1000 for number in range(4))
_WHOLE = b"".join(_PIECES)
_PATIENCE_SECONDS = 1.0


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
    rival: list[Future[Outcome]] = []

    def pieces() -> Iterator[bytes]:
        yield _PIECES[0]
        rival.append(pool.submit(outcome, lambda: other.write(path, b"the other")))
        wait(rival, _PATIENCE_SECONDS)  # a store with a lock has it wait until we are done
        yield from _PIECES[1:]

    with ThreadPoolExecutor(1) as pool:
        ours = outcome(lambda: store.write_pieces(path, pieces()))
        require(bool(rival), "a write in pieces didn't ask for all of them")
        theirs = rival[0].result()
    lost = [end for end in (ours, theirs) if isinstance(end.error, FileExistsError)]
    require(len(lost) == 1, f"pieces: {ours.error!r}, the write between them: {theirs.error!r}; one must win")
    right = b"the other" if lost[0] is ours else _WHOLE
    require(make().read(path) == right, "the file isn't that of the writer who won")


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
    seen: list[tuple[bytes | None, bytes | None, list[str]]] = []

    def pieces() -> Iterator[bytes]:
        for piece in _PIECES:
            listed = names(reader.list_from(f"{root}/_delta_log/"))
            seen.append((outcome(lambda: reader.read(new)).value, reader.read(replaced), listed))
            yield piece

    writer.write_pieces(new, pieces())
    alone = (None, b"old", ["_last_checkpoint"])
    require(all(each == alone for each in seen), f"between the pieces of a new file there was {seen[-1]}")
    require(make().read(new) == _WHOLE, "the pieces aren't the file")
    if writer.atomic_overwrite:
        seen.clear()
        writer.write_pieces(replaced, pieces(), overwrite=True)
        both = (_WHOLE, b"old", [f"{0:020}.json", "_last_checkpoint"])
        require(all(each == both for each in seen), f"between the pieces of an overwrite there was {seen[-1]}")
        require(make().read(replaced) == _WHOLE, "the pieces aren't the file that they replaced")
