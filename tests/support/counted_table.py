"""A table of some commits in memory, and the requests that reading it costs."""

from support.log_builder import LogBuilder, add
from tablelog.logstore import CountingLogStore

LIST_ONCE = {"list_from": 1}


def table(commits: int, *, checkpoint: int | None = None) -> LogBuilder:
    builder = LogBuilder().create(add("0"))
    for number in range(1, commits):
        builder.commit(add(str(number)))
    if checkpoint is not None:
        builder.log().checkpoint(builder.log().snapshot(checkpoint))
    return builder


def names(counting: CountingLogStore) -> list[str]:
    return [path.rpartition("/")[2] for _, path in counting.log]
