"""A standalone Spark cluster on 127.0.0.1: one master and two workers, each a process of its own.

Executors are processes of the workers. They share the local disk with the driver, and not its working directory.
"""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyspark

from servers import process

WORKERS = 2
_SPARK = Path(pyspark.__file__).parent
_START_SECONDS = 90.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster; its directory holds the logs, and the working directories of the executors."""

    home: Path
    url: str

    @classmethod
    def start(cls) -> Self:
        """Start the master, then the workers, and wait until every worker is registered."""
        home = Path(tempfile.mkdtemp(prefix="tablelog-cluster-"))
        port = process.free_port()
        cluster = cls(home, f"spark://127.0.0.1:{port}")
        try:
            cluster._launch("master", "Master", ["--port", str(port)], "I have been elected leader")
            for name in cluster._workers():
                arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(home / name / "work"), cluster.url]
                cluster._launch(name, "Worker", arguments, "Successfully registered with master")
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def stop(self, *, keep_logs: bool = False) -> None:
        """End all processes, executors too, and remove the directory unless `keep_logs`."""
        for name in (*self._workers(), "master"):
            process.kill(self.home / name)
        if not keep_logs:
            shutil.rmtree(self.home)

    def _launch(self, name: str, kind: str, arguments: Sequence[str], ready: str) -> None:
        home = self.home / name
        home.mkdir()
        program = str(_SPARK / "bin" / "spark-class")
        command = [program, f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", "127.0.0.1"]
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
