"""What a process says before and after each operation, on disk before it goes on: a kill loses no word of it."""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.effects import Effect
from tablelog.errors import CommitStateUnknownError, DeltaConcurrentModificationException

_SHOWN = 3000


class Journal:
    """The journal of one process. `name` is that of the process and its incarnation: `driver-1.3`."""

    def __init__(self, directory: str, name: str) -> None:
        self.name = name
        self._file = Path(directory, f"{name}.jsonl").open("a", encoding="utf-8")  # noqa: SIM115
        self._operations = 0

    def say(self, **words: Any) -> None:
        self._file.write(json.dumps({"at": time.time(), **words}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    @contextmanager
    def errors_told(self, place: str, since: float | None = None) -> Iterator[None]:
        """An error is said, and the process goes on: after the soak it is excused if the store was down.

        `since`: the first second since the epoch at which it may have occurred; None: it occurs now.
        """
        try:
            yield
        except DeltaConcurrentModificationException:
            pass  # each attempt is in the journal as refused
        except Exception as error:
            self.say(error=f"{error}\n{traceback.format_exc()[-_SHOWN:]}", place=place, since=since or time.time())

    def next_operation(self) -> str:
        self._operations += 1
        return f"{self.name}.{self._operations}"

    def did(
        self,
        place: str,
        table: str,
        kind: str,
        effect: Effect,
        work: Callable[[str], int | None],
        newest: Callable[[], int],
    ) -> None:
        """Do one operation, with a word before and after it.

        Args:
            place: Where.
            table: On which table.
            kind: The name for the report.
            effect: What it does.
            work: Does it, under the id that it gets, which `commitInfo.userMetadata` must have; the version it made,
                where it knows that.
            newest: The newest version now.

        Raises:
            DeltaConcurrentModificationException: A conflict, which is in the journal; another attempt is another
                operation.
        """
        operation = self.next_operation()
        self.say(op=operation, place=place, table=table, kind=kind, effect=effect, before=newest())
        try:
            version = work(operation)
        except DeltaConcurrentModificationException as error:
            self.say(op=operation, outcome="refused", error=type(error).__name__)
            raise
        except CommitStateUnknownError as error:
            self.say(op=operation, outcome="unknown", error=str(error))
        except Exception as error:
            self.say(op=operation, outcome="failed", error=f"{error}\n{traceback.format_exc()[-_SHOWN:]}")
        else:
            self.say(op=operation, outcome="acknowledged", version=version)
            self.say(op=operation, after=newest())


@dataclass
class Intent:
    """An operation as its journal describes it. No outcome: its process was killed in its midst."""

    op: str
    at: float
    place: str
    table: str
    kind: str
    effect: Effect
    before: int
    outcome: str = ""
    version: int | None = None
    after: int | None = None
    error: str = ""
    seconds: float = 0.0


@dataclass
class Journals:
    """All that was said: operations by id, reads, and the other lines by process."""

    intents: dict[str, Intent] = field(default_factory=dict)
    reads: list[dict[str, Any]] = field(default_factory=list)
    others: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal: the last one is torn where its process was killed as it wrote."""
    for line in path.read_text("utf-8").split("\n")[:-1]:
        yield json.loads(line)


def collected(directory: Path) -> Journals:
    """All journals of a soak."""
    found = Journals()
    for path in sorted(directory.glob("*.jsonl")):
        for line in lines(path):
            if "effect" in line:
                found.intents[line["op"]] = Intent(**line)
            elif "outcome" in line:
                intent = found.intents[line["op"]]
                intent.outcome, intent.error = line["outcome"], line.get("error", "")
                intent.version = line.get("version")
                intent.seconds = line["at"] - intent.at
            elif "after" in line:
                found.intents[line["op"]].after = line["after"]
            elif "digest" in line:
                found.reads.append({**line, "by": path.stem})
            else:
                found.others.append((path.stem, line))
    return found
