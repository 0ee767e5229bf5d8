"""Checks 14 to 16: clients that are copied, forked, shared, paused or whose clock is off."""

import pickle

from tablelog.logstore import LogStore

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import check, commit, expect


@check(16, guarantee=0)
def survives_pickling(context: Context) -> None:
    """A pickled and unpickled store serves the same files."""
    make, root = context.make, context.root
    make().write(commit(root, 0), b"x")
    copy: LogStore = pickle.loads(pickle.dumps(make()))
    require(copy.read(commit(root, 0)) == b"x", "an unpickled store doesn't see the file")
    expect(FileExistsError, outcome(lambda: copy.write(commit(root, 0), b"y")), "writing a file that exists")
    require(copy.exclusion == make().exclusion, "an unpickled store declares something else")
