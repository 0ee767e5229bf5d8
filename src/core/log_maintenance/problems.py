"""What a diagnosis of a log finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..log.segment import ranges_text

Kind: TypeAlias = Literal[
    "commit-damaged",
    "versions-missing",
    "commits-unused",
    "checkpoint-damaged",
    "checkpoint-too-new",
    "checkpoint-wrong",
    "checkpoints-differ",
    "checkpoint-incomplete",
    "checksum-damaged",
    "checksum-wrong",
    "checksum-contradicts",
    "checksum-too-new",
    "compaction-damaged",
    "compaction-wrong",
    "hint-wrong",
    "sidecars-unused",
    "files-missing",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """`error`: versions can't be read, or would be read incorrectly. `warning`: reading is slower than necessary.

    `kind` tells programs what is wrong with the files.
    """

    severity: Literal["error", "warning"]
    kind: Kind
    files: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class LogHealth:
    """The state of a log. `readable` are ranges of versions, `checkpoints` the versions with a valid checkpoint."""

    table: str
    newest: int
    commits: int
    size_in_bytes: int
    readable: tuple[tuple[int, int], ...]
    checkpoints: tuple[int, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error: every version that the log should have can be read."""
        return not any(problem.severity == "error" for problem in self.problems)

    def __str__(self) -> str:
        lines = [
            f"{self.table}: version {self.newest}, {self.commits} commits, {self.size_in_bytes} bytes of log",
            f"versions that can be read: {ranges_text(self.readable)}",
            f"valid checkpoints: {', '.join(map(str, self.checkpoints)) or 'none'}",
        ]
        return "\n".join(
            [*lines, *(f"{p.severity}: {p.message}" for p in self.problems)] + ["ok"] * (not self.problems)
        )


class Problems(list[Problem]):
    """The problems found until now."""

    def error(self, kind: Kind, files: Sequence[str], message: str) -> None:
        """Add a problem because of which versions can't be read, or would be read incorrectly."""
        self.append(Problem("error", kind, tuple(files), message))

    def warn(self, kind: Kind, files: Sequence[str], message: str) -> None:
        """Add a problem because of which reading is slower than necessary."""
        self.append(Problem("warning", kind, tuple(files), message))
