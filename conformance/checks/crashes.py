"""Check 7: a write that ends in the middle leaves all or nothing, and hinders nobody."""

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import check, commit, expect, names


@check(7, guarantee=4)
def a_failed_write_leaves_nothing(context: Context) -> None:
    """Data that can't be written is an error and leaves no file, and the next writer isn't hindered."""
    make, root = context.make, context.root
    path = commit(root, 0)
    end = outcome(lambda: make().write(path, None))  # type: ignore[arg-type]
    require(end.error is not None, "a write of no bytes object was accepted")
    expect(FileNotFoundError, outcome(lambda: make().read(path)), "reading after a failed write")
    make().write(path, b"x")
    require(names(make().list_from(f"{root}/_delta_log/")) == [f"{0:020}.json"], "a failed write left a file")
