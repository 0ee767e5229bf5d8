"""A conditional write with its time; the evaluation of several writes of one path, and how much they overlapped."""

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
    """Do a conditional write. An error that isn't part of the interface becomes an answer: its text."""
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


def judge(context: Context, path: str, tries: Sequence[Try], marks: Callable[[int], bytes], where: str = "") -> None:
    """Require that one of the writers of one absent path has won, the others lost, and the file has the winner's data.

    A writer with the answer "unknown" may have won instead. A refused one has not.
    """
    context.timeline[:] = told(tries)
    for one in tries:
        if one.answer not in {WON, LOST, UNKNOWN, REFUSED}:
            broken(f"losing a race gave {one.said}, and must be FileExistsError{where}")
    won = [one.writer for one in tries if one.answer == WON]
    require(len(won) <= 1, f"{len(won)} of {len(tries)} writers of one file were told that they won{where}")
    unknown = [one.writer for one in tries if one.answer == UNKNOWN]
    if not won and not unknown and all(one.answer == REFUSED for one in tries):
        return
    require(won or unknown, f"none of {len(tries)} writers of one file was told that it won{where}")
    try:
        found = context.make().read(path)
    except FileNotFoundError:
        require(not won, f"the file of a writer that was told that it won isn't there{where}")
        lost = [one.writer for one in tries if one.answer == LOST]
        require(not lost, f"writers were told that the file exists, and there is none{where}")
    else:
        require(found in [marks(writer) for writer in won or unknown], f"the file isn't the winner's{where}")
    context.timeline.clear()


def told(tries: Sequence[Try]) -> list[str]:
    """Starts and ends in order of time, in microseconds since the first one."""
    first = min((one.began_ns for one in tries), default=0)
    events = [(one.began_ns, f"writer {one.writer} begins") for one in tries]
    events += [(one.ended_ns, f"writer {one.writer} ends: {one.answer}") for one in tries]
    return [f"{(at - first) / 1000:10.0f} µs  {what}" for at, what in sorted(events)]


class Overlap:
    """The number of writers that were in their calls at the same time, for each round."""

    def __init__(self) -> None:
        self.depths: list[int] = []

    def add(self, tries: Sequence[Try]) -> None:
        """Count a round."""
        events = sorted([(one.began_ns, 1) for one in tries] + [(one.ended_ns, -1) for one in tries])
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
                f"in none of {len(self.depths)} rounds two writers were within their calls at one time: it was no race"
            )

    def record(self, context: Context, writers: int) -> None:
        """Add it to the evidence."""
        rounds = len(self.depths)
        context.evidence |= {
            "rounds": rounds,
            "writers": writers,
            "seed": context.seed,
            "rounds that overlapped": sum(depth > 1 for depth in self.depths),
            "writers at once, on average": round(sum(self.depths) / rounds, 2) if rounds else 0,
            "writers at once, at most": max(self.depths, default=0),
        }
