"""Streaming queries whose driver is killed again and again while the source grows; then the rows are counted.

`python -m support.killed_streams local|minio FIRST NUMBER` does it `NUMBER` times from the seed `FIRST` on, with
`KILLS` kills each. The growth and the count need no Spark, so that each kill costs one start of a JVM.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from servers import MinIO
from servers.spark_jars import spark_jars
from support.killed_stream import POINTS, QUERIES, Order
from tablelog.core import AddFile, DeltaLog, Metadata, Operation

KILLS = 5
TESTS = Path(__file__).parents[1]
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
_ROWS = 3
_PAUSE_SECONDS = 1.0
_FILES_IN_A_LIFE = 12
_LIFE_SECONDS = 300
_SHOWN = 20_000


@dataclass
class Growing:
    """A table to which files of `_ROWS` rows are appended; the ids count from 0."""

    root: str
    conf: Mapping[str, str]
    files: Any
    ids: int = 0

    @property
    def _log(self) -> DeltaLog:
        return DeltaLog.for_path(f"{self.root}/source", conf=self.conf)

    def create(self) -> None:
        transaction = self._log.transaction()
        transaction.set_metadata(Metadata("a table", _SCHEMA, (), {"delta.enableChangeDataFeed": "true"}))
        transaction.commit([], Operation("CREATE TABLE"))

    def append(self) -> None:
        name, rows = f"{self.ids:06d}.parquet", pa.table({"id": list(range(self.ids, self.ids + _ROWS))})
        self.files.makedirs(f"{self.root}/source", exist_ok=True)
        with self.files.open(f"{self.root}/source/{name}", "wb") as file:
            pq.write_table(rows, file)
        size = self.files.size(f"{self.root}/source/{name}")
        add = AddFile(name, {}, size, 1_700_000_000_000 + self.ids, True, json.dumps({"numRecords": _ROWS}))
        self._log.transaction().commit([add], Operation("WRITE", {"mode": "Append", "partitionBy": []}))
        self.ids += _ROWS

    @contextmanager
    def growing(self) -> Iterator[None]:
        """A thread appends some files in the meantime."""
        stop = threading.Event()

        def append() -> None:
            for _ in range(_FILES_IN_A_LIFE):
                self.append()
                if stop.wait(_PAUSE_SECONDS):
                    return

        with ThreadPoolExecutor(1) as pool:
            appending = pool.submit(append)
            try:
                yield
            finally:
                stop.set()
            appending.result()


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def run_driver(order: Order) -> None:
    """Run a driver until it ends or is killed, as the order says, and its JVM has ended too."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYSPARK_PYTHON": sys.executable}
    log = Path(order.scratch, "log")
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "support.killed_stream", json.dumps(asdict(order))],
            cwd=TESTS, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        ) as driver,
    ):  # fmt: skip
        assert driver.stdout is not None
        jvm = driver.stdout.readline()
        try:
            code = driver.wait(_LIFE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            raise AssertionError(f"a driver didn't end: {order}; {log.read_text()[-_SHOWN:]}") from None
    assert jvm, log.read_text()[-_SHOWN:]
    wait = threading.Event()
    assert any(_ended(int(jvm)) or wait.wait(0.05) for _ in range(1200)), "the JVM of a dead driver ends"
    assert code == (-9 if order.dies else 0), log.read_text()[-_SHOWN:]


def next_death(random_: random.Random, order: Order) -> Order:
    """The order for a driver that dies at a random point, or after a random time."""
    jvm_too = random_.random() < 0.7
    if random_.random() < 0.4:
        return replace(order, seconds=random_.uniform(0.01, 5), jvm_too=jvm_too)
    return replace(order, point=random_.choice(POINTS), passage=random_.randint(1, 3), jvm_too=jvm_too)


def has_each_row_once(target: str, source: Growing, what: str) -> None:
    """Check that each row of the source is in the table `target` once."""
    snapshot = DeltaLog.for_path(target, conf=source.conf).snapshot()
    counts: Counter[int] = Counter()
    for path in snapshot.files.column("path").to_pylist():
        with source.files.open(f"{target}/{unquote(path)}", "rb") as file:
            counts.update(pq.read_table(file, columns=["id"]).column("id").to_pylist())
    lost = [number for number in range(source.ids) if number not in counts]
    twice = [number for number, times in counts.items() if times > 1]
    assert (lost, twice) == ([], []), f"{what}: lost {lost}, twice {twice}"


def killed_and_counted(seed: int, kills: int, order: Order, files: Any) -> None:
    """Kill drivers `kills` times while the source grows; then let one finish. Each row is in each target once."""
    random_, source = random.Random(seed), Growing(order.root, order.conf, files)
    source.create()
    source.append()
    for _ in range(kills):
        with source.growing():
            run_driver(next_death(random_, order))
    run_driver(order)
    for name in QUERIES:
        has_each_row_once(f"{order.root}/{name}", source, f"seed {seed}, {name}")


def on_disk(seed: int, scratch: str, kills: int = KILLS) -> None:
    killed_and_counted(seed, kills, Order(f"{scratch}/tables", scratch), fsspec.filesystem("file"))


def order_for(server: MinIO, scratch: str) -> Order:
    """Source, targets and checkpoints are on the server. Raises CannotInstallError."""
    return Order(server.url("tables"), scratch, server.conf, ":".join(map(str, spark_jars())))


def on_minio(seed: int, scratch: str, server: MinIO) -> None:
    killed_and_counted(seed, KILLS, order_for(server, scratch), fsspec.filesystem("s3", **server.storage_options))


def main(where: str, first: int, number: int) -> None:
    began, server = time.monotonic(), MinIO.start() if where == "minio" else None
    try:
        for seed in range(first, first + number):
            with tempfile.TemporaryDirectory() as scratch:
                on_disk(seed, scratch) if server is None else on_minio(seed, scratch, server)
            print(f"{where}, seed {seed}: {KILLS} kills, each row once; {time.monotonic() - began:.0f} s", flush=True)
    finally:
        if server is not None:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
