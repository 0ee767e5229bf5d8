"""A Spark Connect server on loopback, without an extra jar, and one client session of it: `spark`.

Nothing here may start a classic session: it can't be in one process with a Connect session.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.sessions import java_options

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_server(scratch: Path, port: int) -> "subprocess.Popen[bytes]":
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {
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
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [home / "bin" / "spark-submit", "--master", "local[2]", *options, "--class", SERVER, "spark-internal"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONNECT_AUTHENTICATE_TOKEN"):
        environment.pop(name, None)
    log = (scratch / "server.log").open("wb")
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=log, stderr=log, start_new_session=True)


def wait_for(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
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


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    scratch, port = tmp_path_factory.mktemp("connect"), free_port()
    server = start_server(scratch, port)
    try:
        wait_for(server, port, scratch / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # its own process group: the script and the JVM
        server.wait(60)


@pytest.fixture(scope="session")
def spark(remote: str) -> Iterator[Any]:
    """A session of Spark Connect, enabled for Delta tables."""
    from pyspark.sql import SparkSession

    from tablelog.spark import enable

    session = SparkSession.builder.remote(remote).getOrCreate()
    enable(session)
    yield session
    session.stop()
