"""A Spark Connect server on loopback, without an extra jar."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .java import java_options

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def running(scratch: Path, settings: Mapping[str, str] | None = None, *, master: str = "local[2]") -> Iterator[str]:
    """The address of a server that keeps its files in `scratch`; `settings` win over those that all tests share."""
    port = _free_port()
    server = _start(scratch, port, settings or {}, master)
    try:
        _wait_for(server, port, scratch / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # its own process group: the script and the JVM
        server.wait(60)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _start(scratch: Path, port: int, more: Mapping[str, str], master: str) -> "subprocess.Popen[bytes]":
    import pyspark

    home = _home_without_archives(Path(pyspark.__file__).parent, scratch / "home")
    settings: dict[str, object] = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.ui.enabled": "false",
        "spark.local.dir": scratch / "local",
        "spark.sql.warehouse.dir": scratch / "warehouse",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
    }
    if pyspark.__version__.startswith("4.1."):  # this version has no option for it
        settings["spark.sql.parquet.outputTimestampType"] = "TIMESTAMP_MICROS"
    settings.update(more)
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [home / "bin" / "spark-submit", "--master", master, *options, "--class", _SERVER, "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONNECT_AUTHENTICATE_TOKEN"):
        environment.pop(name, None)
    log = (scratch / "server.log").open("wb")
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=log, stderr=log, start_new_session=True)


def _home_without_archives(installed: Path, home: Path) -> Path:
    """A home of Spark without the archives of Python modules that its workers would import before the installed ones.

    Modules in an archive are compiled again by each worker. That takes seconds, and a stream's worker has ten to start.
    """
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(installed / name)
    return home


def _wait_for(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if server.poll() is not None:
            raise AssertionError(f"the server ended: {log.read_text()[-3000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"the server doesn't listen: {log.read_text()[-3000:]}")
