"""A table of 100,000 files on MinIO behind a slow network: the requests and seconds of each command, for each engine.

`python -m benchmarks.store_scale [--files N] [--delay MS] [ENGINE ...]` (`make bench-stores-scale`) starts MinIO, and
in front of it a proxy that delays each request and each reply, and counts the requests. Each engine gets a table of its
own with the same files, and works on it in a process of its own (`benchmarks.store_scale_work`) after a warm-up on a
small table. delta-spark needs TABLELOG_PEER_PYTHON, as for `make bench`. It prints Markdown tables.
"""

import argparse
import http.client
import io
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.worker import Worker
from tablelog.conformance.harness.proxy import Proxy
from tablelog.core import AddFile, DeltaLog, Metadata, Operation

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

PARTITIONS = 100
ROWS = 10
"""Rows of a file. File number `j` of each partition has the ids from `j * ROWS` on."""
_UPLOADS = 16
_FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in (("id", "long"), ("v", "double"), ("p", "integer"))
]
SCHEMA = json.dumps({"type": "struct", "fields": _FIELDS})

STEPS = {
    "open": "opening the table",
    "append": "append of 10 rows",
    "delete_partition": "DELETE of a partition (1,000 files)",
    "delete_rows": "DELETE of rows in one file",
    "optimize": "OPTIMIZE of a partition (1,000 files)",
    "vacuum_dry": "VACUUM DRY RUN",
    "vacuum": "VACUUM (2,001 files)",
}
ENGINES = {
    "tablelog": "tablelog, no jar",
    "tablelog-s3a": "tablelog, s3a",
    "delta-spark": "delta-spark, s3a",
    "delta-rs": "delta-rs",
}


def contents(each: int) -> list[bytes]:
    """The data files of one partition; all partitions have the same."""
    files = []
    for start in range(0, each * ROWS, ROWS):
        stream = io.BytesIO()
        ids = list(range(start, start + ROWS))
        pq.write_table(pa.table({"id": ids, "v": [id_ / 7 for id_ in ids]}), stream)
        files.append(stream.getvalue())
    return files


def make_table(server: Any, url: str, each: int) -> None:
    """The files of the table, uploaded without the delay, and one version that has them all, with its checkpoint."""
    data, local = contents(each), threading.local()
    prefix = urlsplit(url).netloc + urlsplit(url).path

    def upload(place: tuple[int, int]) -> AddFile:
        p, j = place
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        path = f"p={p}/part-{j:05}.parquet"
        local.connection.request("PUT", f"/{prefix}/{path}", data[j])
        reply = local.connection.getresponse()
        reply.read()
        if reply.status != 200:
            raise RuntimeError(f"uploading {path}: {reply.status}")
        low, high = j * ROWS, j * ROWS + ROWS - 1
        stats = {
            "numRecords": ROWS,
            "minValues": {"id": low, "v": low / 7},
            "maxValues": {"id": high, "v": high / 7},
            "nullCount": {"id": 0, "v": 0},
        }
        return AddFile(path, {"p": str(p)}, len(data[j]), 1_700_000_000_000, True, json.dumps(stats))

    with ThreadPoolExecutor(_UPLOADS) as pool:
        adds = list(pool.map(upload, [(p, j) for p in range(PARTITIONS) for j in range(each)]))
    log = DeltaLog.for_path(url, conf=server.conf)
    transaction = log.transaction()
    properties = {"delta.enableDeletionVectors": "false"}
    transaction.set_metadata(Metadata("scale", SCHEMA, partition_columns=("p",), configuration=properties))
    transaction.commit(adds, Operation("WRITE"))
    log.checkpoint()


def allow_anonymous(server: Any) -> None:
    """Unsigned uploads: signing 100,000 requests takes longer than their upload."""
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{server.bucket}/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    server.client().put_bucket_policy(Bucket=server.bucket, Policy=json.dumps(policy))


@contextmanager
def working(engine: str, endpoint: str, conf: dict[str, str], directory: Path) -> Iterator[Worker]:
    """The process of an engine."""
    python = os.environ["TABLELOG_PEER_PYTHON"] if engine == "delta-spark" else sys.executable
    os.environ["STORE_SCALE"] = json.dumps({"endpoint": endpoint, "conf": conf})
    worker = Worker([python, "-m", "benchmarks.store_scale_work", engine], directory / f"{engine}.log")
    try:
        yield worker
    finally:
        worker.close()


def measure(
    server: Any, engine: str, files: int, delay_ms: int, directory: Path
) -> dict[str, tuple[float, dict[str, int]]]:
    """For each step, (seconds, requests by kind)."""
    each = files // PARTITIONS
    small, url = server.url(), server.url()
    make_table(server, small, 2)
    start = time.perf_counter()
    make_table(server, url, each)
    print(f"  {engine}: the table took {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    from servers.request_counts import RequestCounts

    network = RequestCounts()
    with Proxy(server.endpoint, network) as proxy:
        conf = {**server.conf, "fs.s3a.endpoint": proxy.url}
        with working(engine, proxy.url, conf, directory) as work:
            for step in STEPS:
                work(step, url=small)
            network.delay_seconds = delay_ms / 1000
            network.taken()
            found = {}
            for step in STEPS:
                start = time.perf_counter()
                told = work(step, url=url)
                found[step] = time.perf_counter() - start, network.taken()
                print(f"    {step}: {found[step][0]:.2f} s, {told}, {found[step][1]}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="*", help=f"of {', '.join(ENGINES)}; with none, all")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--delay", type=int, default=30, help="milliseconds, each way")
    arguments = parser.parse_args()
    chosen = arguments.engine or list(ENGINES)
    if unknown := set(chosen) - set(ENGINES):
        parser.error(f"no such engine: {', '.join(unknown)}")
    from servers import MinIO

    os.chdir(ROOT)
    server = MinIO.start()
    try:
        allow_anonymous(server)
        with tempfile.TemporaryDirectory(prefix="tablelog-bench-") as directory:
            results = {
                engine: measure(server, engine, arguments.files, arguments.delay, Path(directory)) for engine in chosen
            }
    finally:
        server.stop()
    print(f"| step | {' | '.join(ENGINES[engine] for engine in chosen)} |\n|---|{'---|' * len(chosen)}")
    for step, title in STEPS.items():
        cells = [results[engine][step] for engine in chosen]
        shown = [f"{sum(requests.values()):,} requests, {seconds:.1f} s" for seconds, requests in cells]
        print(f"| {title} | {' | '.join(shown)} |")
    for engine in chosen:
        print(f"\n{ENGINES[engine]}:\n\n| step | requests |\n|---|---|")
        for step, title in STEPS.items():
            counts = sorted(results[engine][step][1].items())
            print(f"| {title} | {', '.join(f'{count:,} {kind}' for kind, count in counts)} |")


if __name__ == "__main__":
    main()
