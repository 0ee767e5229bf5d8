"""A standalone Spark cluster on 127.0.0.1: one master and two workers, each a process of its own.

Executors are processes of the workers. They share the local disk with the driver, but not its working directory, and
not the directories `apart` and `half`: there each has a disk of its own, by a mount namespace of its worker.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import pyspark

from servers import process

_HOSTS = ("127.0.0.1", "localhost")
"""The hosts of the workers: two names, because Spark runs a slow task a second time only on another host."""
WORKERS = len(_HOSTS)
_SPARK = Path(pyspark.__file__).parent
_START_SECONDS = 90.0
_NAMESPACE = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]


@cache
def can_mount() -> bool:
    """Whether a process here may have mounts of its own; without that, executors see all that the driver sees."""
    try:
        tried = subprocess.run(
            ["unshare", *_NAMESPACE, "mount", "--bind", "/tmp", "/mnt"], capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    return tried.returncode == 0


@dataclass(frozen=True)
class Cluster:
    """A running cluster; its directory holds the logs, and the working directories of the executors."""

    home: Path
    url: str

    @property
    def apart(self) -> Path:
        """A directory of the driver: executors see other directories by this path, `own(number)`."""
        return self.home / "apart"

    @property
    def half(self) -> Path:
        """A directory that the driver shares with the executors of one of the workers."""
        return self.home / "half"

    def own(self, number: int) -> Path:
        """What executors of a worker see by the path `apart`, and of the last worker also by `half`."""
        return self.home / f"own-{number}"

    @classmethod
    def start(cls) -> Self:
        """Start the master, then the workers, and wait until every worker is registered."""
        home = Path(tempfile.mkdtemp(prefix="tablelog-cluster-"))
        port = process.free_port()
        cluster = cls(home, f"spark://127.0.0.1:{port}")
        try:
            cluster._launch(
                "master", "Master", ["--host", _HOSTS[0], "--port", str(port)], "I have been elected leader"
            )
            cluster.apart.mkdir()
            cluster.half.mkdir()
            for number, name in enumerate(cluster._workers()):
                cluster.own(number).mkdir()
                arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(home / name / "work"), cluster.url]
                arguments = ["--host", _HOSTS[number], *arguments]
                ready = "Successfully registered with master"
                cluster._launch(name, "Worker", arguments, ready, cluster._mounting(number))
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def executors(self) -> dict[int, str]:
        """The process ids of all executors that run, with their hosts: the children of the workers."""
        names = zip(self._workers(), _HOSTS, strict=True)
        workers = {int((self.home / name / "pid").read_text()): host for name, host in names}
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and (entry / "stat").exists():
                with suppress(FileNotFoundError, ProcessLookupError):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if parent in workers:
                        found[int(entry.name)] = workers[parent]
        return found

    def stop(self, *, keep_logs: bool = False) -> None:
        """End all processes, executors too, and remove the directory unless `keep_logs`."""
        for name in (*self._workers(), "master"):
            process.kill(self.home / name)
        if not keep_logs:
            shutil.rmtree(self.home)

    def _mounting(self, number: int) -> list[str]:
        """The command before a worker's own, which gives it another disk; none where the system doesn't permit that."""
        if not can_mount():
            return []
        over = [self.apart, *([self.half] if number == WORKERS - 1 else [])]
        mounts = "".join(f"mount --bind '{self.own(number)}' '{path}' && " for path in over)
        return ["unshare", *_NAMESPACE, "sh", "-c", f'{mounts}exec "$@"', "sh"]

    def _launch(self, name: str, kind: str, arguments: Sequence[str], ready: str, before: Sequence[str] = ()) -> None:
        home = self.home / name
        home.mkdir()
        program = str(_SPARK / "bin" / "spark-class")
        command = [*before, program, f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        command += ["--webui-port", "0", *arguments]
        log = home / "log"
        process.launch(
            home, command, self._environment(), lambda: re.search(ready, log.read_text()) is not None, _START_SECONDS
        )

    def _environment(self) -> Mapping[str, str]:
        return {"SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}

    @staticmethod
    def _workers() -> list[str]:
        return [f"worker-{number}" for number in range(WORKERS)]
