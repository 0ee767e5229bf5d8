"""One attempt at one version: Won, Lost or Unknown, and nothing else decides which.

The store's answer to a conditional write is evidence, not the verdict: a reply may be lost after the write was
applied, a client library may have sent the request twice, and a request may arrive after its sender gave up. The
verdict is what stands at the version. A file of the log never changes once it is there, so:

- our bytes are there: Won;
- another writer's are: Lost, for good. A write of ours that is still on its way is refused when it arrives, because
  the name is taken (guarantee 2 of `LogStore`);
- nothing is there: nobody knows yet, and the same bytes are written again *at the same version*. Whichever of the
  writes is applied, now or later, the version holds our commit once.

A commit therefore leaves a version only after another writer's commit was seen at it. This is why one token serves
all attempts of a commit at rising versions: of all versions that were tried, only the last can ever hold it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ...clock import Clock
from ...errors import CorruptLogError, WriteOutcomeUnknown
from ...logstore.base import LogStore
from ..protocol.actions import CommitInfo
from ..protocol.codec import parse_line


@dataclass(frozen=True, slots=True)
class Won:
    """The version holds our commit. `read_back` says that it took a look to know."""

    read_back: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The version holds another writer's commit, whose bytes these are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store gave no evidence within our patience; the commit may be there, or arrive later."""

    reason: str
    cause: Exception | None = None


Outcome: TypeAlias = Won | Lost | Unknown


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a write is tried in the face of ambiguous answers, and how long to wait in between (seconds).

    The wait before try k (from 1) is uniform in (0.5, 1] x min(longest, shortest x 2^k).
    """

    tries: int = 8
    shortest: float = 0.05
    longest: float = 5.0

    def pause(self, k: int, dice: Callable[[], float]) -> float:
        bound: float = min(self.longest, self.shortest * 2.0**k)
        return bound * (1.0 - dice() / 2)


PATIENCE = Patience()


def attempt(
    store: LogStore,
    path: str,
    data: bytes,
    token: str,
    *,
    clock: Clock,
    dice: Callable[[], float],
    patience: Patience = PATIENCE,
) -> Outcome:
    """Put `data` at `path`, which must be a name of the log that nobody has overwritten, ever.

    `token` is the `txnId` of the `commitInfo` in `data`; `dice` gives numbers in [0, 1), for the waits. An error of the
    store by which nothing was written is raised as it is, unless an earlier answer in this attempt was ambiguous. An
    interrupt (`KeyboardInterrupt`) leaves the outcome open: ask `look` then.
    """
    reason, ambiguous = "", False
    cause: Exception | None = None
    try:
        for k in range(patience.tries):
            if k:
                clock.sleep(patience.pause(k, dice))
            try:
                store.write(path, data)
                return Won()
            except (FileExistsError, WriteOutcomeUnknown) as error:
                reason, cause = str(error), error
            except Exception as error:
                if not ambiguous:
                    raise
                reason, cause = f"{type(error).__name__}: {error}", error
            # From here on a write of ours may be there, or on its way: only what stands at the version counts.
            ambiguous = True
            try:
                found = store.read(path)
            except FileNotFoundError:
                continue
            except Exception as error:
                reason, cause = f"{type(error).__name__} while reading it back: {error}", error
                continue
            return Won(read_back=True) if is_own(found, data, token) else Lost(found)
        return Unknown(f"no certain answer after {patience.tries} tries; the last was: {reason}", cause)
    finally:
        # Its traceback holds this frame and all callers': in a cycle their snapshots would live until a collection.
        del cause


def look(store: LogStore, path: str, data: bytes, token: str) -> Outcome:
    """What stands at `path` now, after a write whose end the caller didn't see (an interrupt).

    Unknown when nothing is there: a request may still be on its way.
    """
    try:
        found = store.read(path)
    except FileNotFoundError as error:
        return Unknown("nothing is at the version yet, and a request may still be on its way", error)
    except Exception as error:
        return Unknown(f"{type(error).__name__} while reading it back: {error}", error)
    return Won(read_back=True) if is_own(found, data, token) else Lost(found)


def is_own(found: bytes, data: bytes, token: str) -> bool:
    """Whether `found` is the commit `data` with this token.

    By its bytes; else by `commitInfo.txnId`, for a store may hand back bytes that went through something that
    rewrote them. Other writers may put `commitInfo` on any line, or our token into a text of theirs.
    """
    if found == data:
        return True
    text = token.encode()
    if text not in found:
        return False
    for line in found.split(b"\n"):
        if text in line:
            try:
                action = parse_line(line)
            except CorruptLogError:
                continue
            if isinstance(action, CommitInfo) and action.txn_id == token:
                return True
    return False
