"""What the suite is made of: a target to test, checks, the context that a check runs in, and what it finds."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from tablelog.logstore import LogStore

Factory = Callable[[], LogStore]
"""Makes a store; each call is another client of the same storage. It is picklable, so that it works in processes."""


class Level(Enum):
    """How long the suite may look: seconds, a minute, minutes."""

    QUICK = 1
    STANDARD = 2
    THOROUGH = 3


class Verdict(StrEnum):
    """What a check established."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_ESTABLISHED = "NOT ESTABLISHED"


@dataclass(frozen=True)
class Target:
    """A store under test.

    `factory` makes clients, `root` is the URI below which everything happens (and nothing is left). `endpoint` is the
    `http://host:port` (or `host:port`) of the service where there is one and it can be stood in front of; `through`
    then makes the factory of clients that talk to another address in its place: a proxy's. `what` says in words what
    is tested (store and version), with no secret.
    """

    factory: Factory
    root: str
    what: str
    endpoint: str | None = None
    through: Callable[[str], Factory] | None = None


@dataclass
class Context:
    """What a check has at hand. `root` is fresh for each check; `deadline` is a `time.monotonic()` to end before."""

    target: Target
    root: str
    level: Level
    seed: int
    deadline: float
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was done and seen, for the report: rounds, writers, overlap, ..."""
    timeline: list[str] = field(default_factory=list)
    """The interleaving behind a failure, a line for each step: "actor: what it did", "+12.3 ms actor: ..." if timed."""
    directories: set[str] = field(default_factory=set)
    """The URIs of the directories other than `root/_delta_log` that it writes to, for the clean-up."""

    def make(self) -> LogStore:
        """Another client in this process."""
        return self.target.factory()

    @property
    def random(self) -> random.Random:
        """Numbers that a run with the same seed repeats."""
        return random.Random(f"{self.seed} {self.root.rpartition('/')[2]}")

    def choose(self, quick: Any, standard: Any, thorough: Any) -> Any:
        """One of three values by the level."""
        return {Level.QUICK: quick, Level.STANDARD: standard, Level.THOROUGH: thorough}[self.level]

    @property
    def time_left(self) -> float:
        """Seconds until the deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True)
class Check:
    """One check: the number of its subject, its name, the guarantee that it tests (0: the rest of the contract).

    `run` returns (PASS; evidence in the context), raises `GuaranteeBrokenError` (FAIL) or `NotEstablishedError`.
    `level` is the lowest that has it. `summary` is one sentence for the report. One that `lasts` does more the more
    time there is, and is run after those that don't.
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
    """How one check of one run ended."""

    check: Check
    verdict: Verdict
    message: str
    seconds: float
    evidence: Mapping[str, Any]
    timeline: tuple[str, ...]
