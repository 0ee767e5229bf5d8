"""One attempt to commit one version. The outcome is Won, Lost or Unknown; only this module decides which.

The store's answer to a conditional write doesn't decide the outcome alone: a reply may be lost after the write was
applied, a client library may have sent the request twice, and a request may arrive after its sender gave up. The
content of the log file of the version decides. A file of the log never changes after it was written, so:

- the file has our bytes: Won;
- the file has another writer's bytes: Lost, finally. If a write of ours arrives later, the store refuses it, because
  the file exists (guarantee 2 of `LogStore`);
- there is no file: the outcome isn't known yet, and the same bytes are written again *at the same version*. Whichever
  of the writes is applied, now or later, the version holds our commit once.

A commit therefore moves to another version only after it has read another writer's commit at this one. So one token
serves all attempts of a commit at rising versions: of all versions that were tried, only the last can hold the commit.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from ...clock import Clock
from ...errors import CorruptLogError, WriteOutcomeUnknown
from ...logstore.base import LogStore
from ...logstore.common.uri import shown
from ..log import large_commits
from ..protocol.actions import CommitInfo
from ..protocol.codec import names_action, parse_line


@dataclass(frozen=True, slots=True)
class Won:
    """The version holds our commit. `read_back`: the file was read to find this out."""

    read_back: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The version holds another writer's commit; `data` is its content, None if that is too large for memory."""

    data: bytes | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store gave no certain answer in all tries; the commit may be in the log, or may arrive later."""

    reason: str
    cause: Exception | None = None


Outcome: TypeAlias = Won | Lost | Unknown


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a write is tried when answers are ambiguous, and how long to wait between tries (seconds).

    The wait before attempt k (from 1) is uniform in (0.5, 1] x min(longest, shortest x 2^k). No attempt begins after
    `last` seconds: a store that doesn't reply takes minutes for each.
    """

    tries: int = 8
    shortest: float = 0.05
    longest: float = 5.0
    last: float = 300.0

    def pause(self, attempt: int, dice: Callable[[], float]) -> float:
        bound: float = min(self.longest, self.shortest * 2.0**attempt)
        return bound * (1.0 - dice() / 2)


logger = logging.getLogger(__name__)

PATIENCE = Patience()
_AT_ONCE = 8 << 20
_MOST_UNKNOWN = 1_000
"""The first lines of a commit that may be actions of a later version of the protocol."""


def attempt(
    store: LogStore,
    path: str,
    data: bytes,
    token: str,
    *,
    clock: Clock,
    dice: Callable[[], float],
    patience: Patience = PATIENCE,
    more: Callable[[], Iterable[bytes]] | None = None,
) -> Outcome:
    """Write `data` to `path`, the commit file of one version, and find out the outcome.

    Args:
        store: The store of the log.
        path: URI of the commit file. Nobody may ever have overwritten it.
        data: The content of the commit.
        token: The `txnId` of the `commitInfo` in `data`.
        clock: Used to wait between tries.
        dice: Gives random numbers in [0, 1), for the length of the waits.
        patience: The number of tries and the length of the waits.
        more: Returns the rest of a commit that is too large for memory, in pieces: the same bytes at each call.

    Returns:
        The outcome.

    Raises:
        Exception: An error of the store that says that nothing was written, unless an earlier answer in this attempt
            was ambiguous. After a `KeyboardInterrupt` the outcome is open: call `look` to find it out.
    """
    reason, ambiguous = "", False
    cause: Exception | None = None
    try:
        begin, number = clock.monotonic(), 0
        while number < patience.tries and (not number or clock.monotonic() - begin <= patience.last):
            if number:
                logger.warning(
                    "%s: it isn't known whether the commit was written (%s); attempt %d of %d",
                    shown(path),
                    reason,
                    number + 1,
                    patience.tries,
                )
                clock.sleep(patience.pause(number, dice))
            number += 1
            try:
                if more is None:
                    store.write(path, data)
                else:
                    store.write_pieces(path, chain((data,), more()))
                return Won()
            except (FileExistsError, WriteOutcomeUnknown) as error:
                reason, cause = str(error), error
            except Exception as error:
                if not ambiguous:
                    raise
                reason, cause = f"{type(error).__name__}: {error}", error
            # A write of ours may have been applied, or may be on its way: only the content of the file decides now.
            ambiguous = True
            try:
                return _seen(store, path, data, token)
            except FileNotFoundError:
                continue
            except Exception as error:
                reason, cause = f"{type(error).__name__} while reading it back: {error}", error
        return Unknown(f"no certain answer after {number} tries; the last was: {reason}", cause)
    finally:
        # The traceback of `cause` refers to this frame and to all callers: as a reference cycle it would keep
        # their snapshots in memory until a garbage collection.
        del cause


def look(store: LogStore, path: str, data: bytes, token: str) -> Outcome:
    """The outcome as `path` shows it now, after a write whose result the caller didn't see (an interrupt).

    Unknown when there is no file: a request may still be on its way.
    """
    try:
        return _seen(store, path, data, token)
    except FileNotFoundError as error:
        return Unknown("the version doesn't exist yet, and a request may still be on its way", error)
    except Exception as error:
        return Unknown(f"{type(error).__name__} while reading it back: {error}", error)


def _seen(store: LogStore, path: str, data: bytes, token: str) -> Won | Lost:
    """The outcome by the content of `path`.

    Raises FileNotFoundError, the errors of the store, and CorruptLogError for content that isn't a commit: something
    between this machine and the store may have sent it, so it says nothing about the file.
    """
    try:
        content: bytes | None = store.read_at_most(path, large_commits.LARGE_COMMIT)
    except CorruptLogError:  # it has more bytes
        content = None
    if content is not None:
        if is_own(content, data, token):
            return Won(read_back=True)
        if not any(map(names_action, content.split(b"\n", _MOST_UNKNOWN))):
            raise CorruptLogError(f"what was read is no commit: {len(content)} bytes without an action")
        return Lost(content)
    with store.open_file(path) as file:
        while lines := file.readlines(_AT_ONCE):
            if is_own(b"".join(lines), data, token):
                return Won(read_back=True)
    return Lost(None)


def is_own(content: bytes, data: bytes, token: str) -> bool:
    """Whether `content`, read from the log, is the commit `data` with this token.

    The bytes are compared first, then `commitInfo.txnId`: something between writer and reader may have rewritten the
    bytes. Other writers may put `commitInfo` on any line, or our token into a text of theirs.
    """
    if content == data:
        return True
    text, end = token.encode(), 0
    while (at := content.find(text, end)) >= 0:  # no list of lines: there may be millions
        start, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at)
        end = len(content) if end < 0 else end
        try:
            action = parse_line(content[start:end])
        except CorruptLogError:
            continue
        if isinstance(action, CommitInfo) and action.txn_id == token:
            return True
    return False
