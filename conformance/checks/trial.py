"""Conditional writes with their times; evaluation of several writes of one path, and of their overlap."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tablelog.errors import StorageError, UnsafeStoreError, WriteOutcomeUnknown

from ..failures import NotEstablishedError, broken, require
from ..model import Context
from .suite import saw_enough

WON, LOST, UNKNOWN, REFUSED = "won", "lost", "unknown", "refused"


class Try(NamedTuple):
    """One conditional write of `writer` (its `mark` identifies its data), with times of the monotonic clock."""

    writer: int
    answer: str
    began_ns: int
    ended_ns: int
    said: str = ""


def tried(writer: int, write: Callable[[], Any]) -> Try:
    """Do a conditional write. For an error that isn't part of the interface the answer is its text."""
    began, said = time.monotonic_ns(), ""
    try:
        write()
        answer = WON
    except FileExistsError:
        answer = LOST
    except WriteOutcomeUnknown as error:
        answer, said = UNKNOWN, str(error)
    except (StorageError, UnsafeStoreError) as error:
        answer, said = REFUSED, str(error)
    except Exception as error:
        answer = said = repr(error)
    return Try(writer, answer, began, time.monotonic_ns(), said)


def in_threads(number: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads at the same time, each with its number from 0, and wait for all of them."""
    threads = [threading.Thread(target=work, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def judge(context: Context, path: str, tries: Sequence[Try], marks: Callable[[int], bytes], where: str = "") -> None:
    """Require that exactly one of several writers of a new path won, the others lost, and the file has its data.

    A writer with the answer "unknown" may have won instead. A refused writer has not.
    """
    context.timeline[:] = timeline(tries)
    for write in tries:
        if write.answer not in {WON, LOST, UNKNOWN, REFUSED}:
            broken(f"losing a race raised {write.said}, and must raise FileExistsError{where}")
    won = [write.writer for write in tries if write.answer == WON]
    require(len(won) <= 1, f"{len(won)} of {len(tries)} writers of one file won{where}")
    unknown = [write.writer for write in tries if write.answer == UNKNOWN]
    if not won and not unknown and all(write.answer == REFUSED for write in tries):
        return
    require(won or unknown, f"none of {len(tries)} writers of one file won{where}")
    try:
        content = context.make().read(path)
    except FileNotFoundError:
        require(not won, f"a writer won, but its file doesn't exist{where}")
        lost = [write.writer for write in tries if write.answer == LOST]
        require(not lost, f"a writer got FileExistsError, but the file doesn't exist{where}")
    else:
        expected = [marks(writer) for writer in won or unknown]
        require(content in expected, f"the file doesn't have the winner's data{where}")
    context.timeline.clear()


def timeline(tries: Sequence[Try]) -> list[str]:
    """The starts and ends of the writes in order of time, in microseconds since the first start."""
    first = min((write.began_ns for write in tries), default=0)
    events = [(write.began_ns, f"writer {write.writer} begins") for write in tries]
    events += [(write.ended_ns, f"writer {write.writer} ends: {write.answer}") for write in tries]
    return [f"{(at - first) / 1000:10.0f} µs  {what}" for at, what in sorted(events)]


class Overlap:
    """The number of writers that were in their calls at the same time, for each round."""

    def __init__(self) -> None:
        self.depths: list[int] = []

    def add(self, tries: Sequence[Try]) -> None:
        """Count a round."""
        events = sorted([(write.began_ns, 1) for write in tries] + [(write.ended_ns, -1) for write in tries])
        depth = deepest = 0
        for _, change in events:
            depth += change
            deepest = max(deepest, depth)
        self.depths.append(deepest)

    @property
    def is_race(self) -> bool:
        """Whether two writers were in their calls at the same time in any round."""
        return max(self.depths, default=0) >= 2

    def saw_enough(self, rounds: int) -> None:
        """Raise `NotEstablishedError` after too few rounds, or if the writers didn't overlap in any round."""
        saw_enough(len(self.depths), rounds, "rounds were run")
        if not self.is_race:
            raise NotEstablishedError(
                f"two writes overlapped in time in none of {len(self.depths)} rounds, so there was no race"
            )

    def record(self, context: Context, writers: int) -> None:
        """Add the numbers to the evidence."""
        rounds = len(self.depths)
        context.evidence |= {
            "rounds": rounds,
            "writers": writers,
            "seed": context.seed,
            "rounds that overlapped": sum(depth > 1 for depth in self.depths),
            "writers at once, on average": round(sum(self.depths) / rounds, 2) if rounds else 0,
            "writers at once, at most": max(self.depths, default=0),
        }
