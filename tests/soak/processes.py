"""The processes of a soak: started, sampled, killed and started again."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from servers import MinIO
from soak import journal
from soak.places import Run
from soak.resources import Sample, sample

TESTS = Path(__file__).parents[1]
_IN_OPERATION_SECONDS = 3.0
_LAST_LINE = 8192
_RECOVERY_SECONDS = 20.0


@dataclass
class Process:
    """One role; each time it is started is an incarnation. `lives` is the range of seconds after which it is killed."""

    run: Run
    name: str
    module: str
    work: tuple[str, ...] = ()
    lives: tuple[float, float] | None = None
    incarnation: int = 0
    kills: int = 0
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    _child: subprocess.Popen[bytes] | None = None
    _dies_at: float | None = None

    @property
    def _journal(self) -> Path:
        return Path(self.run.directory, f"{self.name}.{self.incarnation}.jsonl")

    def start(self) -> None:
        self.incarnation += 1
        self._dies_at = None
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", self.module, self.run.text(), self._journal.stem, *self.work]
        with self._journal.with_suffix(".log").open("wb") as log:
            self._child = subprocess.Popen(
                command, cwd=TESTS, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _ready(self) -> dict[str, int]:
        """The ids of its processes, once it has said them."""
        if not self._journal.exists():
            return {}
        return next((line["ready"] for line in journal.lines(self._journal) if "ready" in line), {})

    def look(self, random_: random.Random) -> str | None:
        """Sample it, kill it if its time has come, start it again; what is wrong if it ended by itself."""
        child = self._child
        assert child is not None
        if child.poll() is not None:
            return f"{self._journal.stem} ended by itself with {child.returncode}: {self._log_end()}"
        if self.lives is None:
            for what, pid in (self._ids or self._remember()).items():
                taken = sample(pid)
                if taken is not None:
                    self.samples.setdefault(what, []).append(taken)
        elif self._dies_at is None and self._ready():
            self._dies_at = time.monotonic() + random_.uniform(*self.lives)
        elif self._dies_at is not None and time.monotonic() > self._dies_at:
            self._wait_for_operation(random_)
            self.kill(whole_group=random_.random() < 0.7)
            self.kills += 1
            self.start()
        return None

    def _wait_for_operation(self, random_: random.Random) -> None:
        """Until it is in the midst of an operation, if that comes soon, and a random time longer."""
        patience = time.monotonic() + _IN_OPERATION_SECONDS
        while time.monotonic() < patience:
            with self._journal.open("rb") as file:
                file.seek(max(0, self._journal.stat().st_size - _LAST_LINE))
                if b'"effect"' in file.read().rpartition(b'{"at"')[2]:
                    time.sleep(random_.choice((0.0, 0.01, 0.1, 1.0)) * random_.random())
                    return
            time.sleep(0.001)

    _ids: dict[str, int] = field(default_factory=dict)

    def _remember(self) -> dict[str, int]:
        self._ids = self._ready()
        return self._ids

    def kill(self, *, whole_group: bool = True) -> None:
        """SIGKILL to it and its JVM, or to it alone: the JVM ends when it sees that."""
        child = self._child
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if whole_group:
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
        child.wait()

    def finish(self, seconds: float) -> str | None:
        """Wait for its end; what is wrong."""
        assert self._child is not None
        try:
            code = self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self._journal.stem} didn't end within {seconds:.0f} s: {self._log_end()}"
        return f"{self._journal.stem} ended with {code}: {self._log_end()}" if code else None

    def _log_end(self) -> str:
        return self._journal.with_suffix(".log").read_text(errors="replace")[-3000:]


@dataclass
class Outages:
    """Times at which the server was killed and started again, with the same data; errors are excused around them."""

    server: MinIO | None
    every: float
    times: list[tuple[float, float]] = field(default_factory=list)
    _next: float | None = None

    def look(self, random_: random.Random) -> None:
        """Kill the server and start it again if its time has come."""
        if self.server is None:
            return
        if self._next is not None and time.monotonic() > self._next:
            began = time.time()
            self.server.kill()
            time.sleep(random_.uniform(0.2, 5.0))
            self.server.restart()
            self.times.append((began, time.time()))
            self._next = None
        if self._next is None:
            self._next = time.monotonic() + self.every * random_.uniform(0.6, 1.4)

    def excuse(self, place: str, began: float, ended: float) -> bool:
        """Whether the store of `place` was down at some time between the two, or a short time before."""
        return place == "minio" and any(down <= ended and began <= up + _RECOVERY_SECONDS for down, up in self.times)
