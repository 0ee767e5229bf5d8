"""Writes to a file system whose system calls fail, or which doesn't show its files: in place of a proxy."""

import errno
import itertools
from functools import partial

from tablelog.logstore.common.uri import local_path, scheme_of

from ...failures import NotEstablishedError, require
from ...harness.file_faults import When, blind, failing
from ...harness.processes import Station, crew
from ...model import Context
from ..suite import below, commit
from ..trial import LOST, UNKNOWN, Try, tried
from .intercepted_writes import DATA, OTHER_DATA, content_of, require_one_winner


def write_with_failing_calls(
    context: Context, what: str, codes: tuple[int, ...], when: When, data: bytes = DATA
) -> None:
    """Let each changing system call of a write fail, one call per round."""
    _needs_files(context)
    context.make().write(below(context.root, "_first"), b"")
    rounds = itertools.count()
    with crew(context, 1) as [worker]:
        for code in codes:
            for number in itertools.count(1):
                version = next(rounds)
                path = commit(context.root, version)
                with_other = when == "late" and version % 2 == 1
                result, other, calls = worker.call(write_failing, path, data, number, code, when, with_other)
                if len(calls) < number:
                    break
                if code == errno.EEXIST and calls[-1] != "link":
                    continue  # only a link may be sent twice and fail because of its own first effect
                case = f"{what}: {number}. os.{calls[-1]} ({errno.errorcode[code]})"
                context.evidence.setdefault("answers", {})[case] = result.answer
                require_one_winner(context, path, result, other, case, data)
    if not context.evidence.get("answers"):
        raise NotEstablishedError("the store has no service, and does no file operation that Python can observe")
    context.evidence["rounds"] = len(context.evidence["answers"])


def write_failing(
    here: Station, path: str, data: bytes, number: int, code: int, when: When, with_other: bool
) -> tuple[Try, Try | None, list[str]]:
    """Write while one system call fails, then let another writer write if `with_other`; also returns the calls."""
    with failing(number, code, when) as calls:
        result = tried(0, partial(here.store.write, path, data))
        calls_of_write = list(calls)
        other = tried(1, partial(here.make().write, path, OTHER_DATA)) if with_other else None
    return result, other, calls_of_write


def write_with_hidden_files(context: Context) -> None:
    """Require that a write doesn't win or replace a file that exists while the directory seems to be empty."""
    _needs_files(context)
    path = commit(context.root, 0)
    context.make().write(path, OTHER_DATA)
    with crew(context, 1) as [worker]:
        result, looks = worker.call(write_blind, path)
    context.evidence |= {"looks that saw nothing": len(looks)}
    require(content_of(context, path) == OTHER_DATA, "the write replaced a file that exists but isn't visible")
    require(
        result.answer in {LOST, UNKNOWN},
        f"the write of a file that exists but isn't visible ended with {result.said or result.answer!r}",
    )


def write_blind(here: Station, path: str) -> tuple[Try, list[str]]:
    """Write while no file of the directory is visible, as with a stale attribute cache."""
    with blind(local_path(path)) as looks:
        result = tried(0, partial(here.store.write, path, DATA))
    return result, list(looks)


def _needs_files(context: Context) -> None:
    if scheme_of(context.root) != "file":
        raise NotEstablishedError("the store has no service address for a proxy, and isn't a store of local files")
