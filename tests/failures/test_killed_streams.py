"""Drivers of streaming queries killed by SIGKILL, at points and at times that a seed chooses: each row is written once.

Each case kills drivers `KILLS` times; `python -m support.killed_streams` runs any number of cases.
"""

from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from servers import CannotInstallError, MinIO
from support import killed_streams
from support.killed_stream import QUERIES
from tablelog.conformance.harness.proxy import Exchange, Proxy, Reply

KILLS = 3


@pytest.fixture
def minio_order(minio: MinIO, tmp_path: Path) -> killed_streams.Order:
    """Tables and checkpoints are on the server."""
    try:
        return killed_streams.order_for(minio, str(tmp_path))
    except CannotInstallError as error:
        pytest.skip(f"jars for s3a: {error}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_on_disk(tmp_path: Path, seed: int) -> None:
    killed_streams.on_disk(seed, str(tmp_path), KILLS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2))
def test_on_minio(minio_order: killed_streams.Order, minio: MinIO, seed: int) -> None:
    files = fsspec.filesystem("s3", **minio.storage_options)
    killed_streams.killed_and_counted(seed, KILLS, minio_order, files)


@pytest.mark.timeout(600)
def test_replies_to_commits_are_lost(minio_order: killed_streams.Order, minio: MinIO) -> None:
    """No commit gets its first answer: of each second one because it never arrives at the store."""
    source = killed_streams.Growing(minio_order.root, minio.conf, fsspec.filesystem("s3", **minio.storage_options))
    source.create()
    source.append()
    source.append()
    lost: list[str] = []

    def decide(exchange: Exchange) -> Reply | None:
        name = exchange.request.target.partition("?")[0]
        if not (exchange.request.conditional and name.endswith(".json")) or name in lost:
            return exchange.forward()
        lost.append(name)
        if len(lost) % 2:
            exchange.forward()
        return None

    with Proxy(minio.endpoint, decide) as proxy:
        conf = {**minio.conf, "fs.s3a.endpoint": proxy.url}
        killed_streams.run_driver(replace(minio_order, conf=conf))
    assert len(lost) >= len(QUERIES)
    for name in QUERIES:
        killed_streams.has_each_row_once(f"{minio_order.root}/{name}", source, name)
