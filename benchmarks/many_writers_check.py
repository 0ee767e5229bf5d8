"""What many writers said against what the log has, read from outside; and how fair their shares were."""

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

from benchmarks.many_writers_work import Result
from tablelog.core import DeltaLog
from tablelog.core.protocol.paths import commit_name

_THREADS = 8


@dataclass(frozen=True)
class Commit:
    version: int
    op: str | None
    adds: tuple[str, ...]
    removes: tuple[str, ...]


def commits(log: DeltaLog) -> list[Commit]:
    """The commits after version 0, from the files of the log."""

    def read(version: int) -> Commit:
        actions = [json.loads(line) for line in log.store.read(f"{log.log_path}/{commit_name(version)}").splitlines()]
        info: Mapping[str, str] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        paths = {kind: tuple(unquote(action[kind]["path"]) for action in actions if kind in action)
                 for kind in ("add", "remove")}  # fmt: skip
        return Commit(version, info.get("userMetadata"), paths["add"], paths["remove"])

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(read, range(1, log.snapshot().version + 1)))


def faults(results: Sequence[Result], found: Sequence[Commit], live: Sequence[str]) -> Counter[str]:
    """What is wrong; an empty counter: nothing.

    Args:
        results: What the writers were told.
        found: The commits in the log.
        live: The paths of the newest version's files.
    """
    wrong: Counter[str] = Counter()
    at: dict[str | None, list[Commit]] = {}
    for commit in found:
        at.setdefault(commit.op, []).append(commit)
    known = set()
    for attempt in (attempt for result in results for attempt in result.attempts if attempt.op):
        known.add(attempt.op)
        there = at.get(attempt.op, [])
        wrong["doubled"] += len(there) > 1
        if attempt.outcome == "acknowledged":
            wrong["lost"] += not there
            wrong["at another version"] += bool(there) and there[0].version != attempt.version
        wrong["refused, but there"] += attempt.outcome == "refused" and bool(there)
        wrong["other files"] += any((list(one.adds), list(one.removes)) != (attempt.adds, attempt.removes)
                                    for one in there)  # fmt: skip
    wrong["by nobody"] += sum(op is not None and op not in known for op in at)
    added = Counter(path for commit in found for path in commit.adds)
    told = {path for result in results for attempt in result.attempts
            for path in attempt.adds if attempt.outcome == "acknowledged"}  # fmt: skip
    wrong["files lost"] += len(told - set(added))
    wrong["files added twice"] += sum(times > 1 for times in added.values())
    present: set[str] = set()
    for commit in found:
        wrong["files removed that weren't there"] += len(set(commit.removes) - present)
        present = (present - set(commit.removes)) | set(commit.adds)
    wrong["files of the newest version that differ"] += len(present ^ {unquote(path) for path in live})
    return +wrong


@dataclass(frozen=True)
class Fairness:
    """Commits of each process; Jain's index is 1 where all have the same, and 1/n where one has all."""

    fewest: int
    median: float
    most: int
    jain: float
    longest_wait: float
    median_command: float
    p99_command: float


def fairness(results: Sequence[Result]) -> Fairness:
    counts = [result.commits for result in results]
    squares = sum(count * count for count in counts)
    seconds = sorted(attempt.seconds for result in results for attempt in result.attempts
                     if attempt.outcome == "acknowledged")  # fmt: skip
    # The time since a process's last commit counts too: one that starves has none.
    tails = [result.end - result.start - sum(result.waits) for result in results]
    return Fairness(
        min(counts),
        statistics.median(counts),
        max(counts),
        sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0,
        max([*tails, *(wait for result in results for wait in result.waits)]),
        statistics.median(seconds),
        seconds[int(len(seconds) * 0.99)],
    )
