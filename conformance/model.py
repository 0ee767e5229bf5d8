"""The classes of the suite: targets, checks, the context of a check, and its finding."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from tablelog.logstore import LogStore

Factory = Callable[[], LogStore]
"""Creates a store; each call creates another client of the same storage. It can be pickled, for use in processes."""


class Level(Enum):
    """How long the suite may test: seconds, a minute, minutes."""

    QUICK = 1
    STANDARD = 2
    THOROUGH = 3


class Verdict(StrEnum):
    """The result of a check."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_ESTABLISHED = "NOT ESTABLISHED"


@dataclass(frozen=True)
class Target:
    """A store under test.

    `factory` creates clients, `root` is the URI below which the suite writes (and leaves nothing). `endpoint` is the
    `http://host:port` (or `host:port`) of the service, if there is one and a proxy can replace it; `through` then
    creates the factory of clients that use another address instead: a proxy's. `what` names the tested store and its
    version, without secrets.
    """

    factory: Factory
    root: str
    what: str
    endpoint: str | None = None
    through: Callable[[str], Factory] | None = None


@dataclass
class Context:
    """The objects that a check uses. `root` is different for each check; it must end before `deadline` (monotonic)."""

    target: Target
    root: str
    level: Level
    seed: int
    deadline: float
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was done and observed, for the report: rounds, writers, overlap, ..."""
    timeline: list[str] = field(default_factory=list)
    """The interleaving behind a failure, a line for each step: "actor: what it did", "+12.3 ms actor: ..." if timed."""
    directories: set[str] = field(default_factory=set)
    """The URIs of directories to clean up, apart from `root/_delta_log`."""

    def make(self) -> LogStore:
        """Create another client in this process."""
        return self.target.factory()

    @property
    def random(self) -> random.Random:
        """Random numbers that depend only on the seed of the run."""
        return random.Random(f"{self.seed} {self.root.rpartition('/')[2]}")

    def choose(self, quick: Any, standard: Any, thorough: Any) -> Any:
        """Choose one of three values by the level."""
        return {Level.QUICK: quick, Level.STANDARD: standard, Level.THOROUGH: thorough}[self.level]

    @property
    def time_left(self) -> float:
        """Seconds until the deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True)
class Check:
    """One check: the number of its subject, its name, the guarantee that it tests (0: the rest of the interface).

    `run` returns (PASS; evidence in the context), raises `GuaranteeBrokenError` (FAIL) or `NotEstablishedError`.
    `level` is the lowest one that includes it. `summary` is one sentence for the report. A check that `lasts` uses all
    the time that it gets, and runs after the others.
    """

    number: int
    name: str
    guarantee: int
    summary: str
    run: Callable[[Context], None]
    level: Level = Level.QUICK
    lasts: bool = False


@dataclass(frozen=True)
class Finding:
    """The result of one check in one run."""

    check: Check
    verdict: Verdict
    message: str
    seconds: float
    evidence: Mapping[str, Any]
    timeline: tuple[str, ...]
