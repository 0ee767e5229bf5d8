"""delta-spark, in a process and an environment of its own, one for all tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.worker import Worker


@pytest.fixture(scope="session")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """delta-spark, to be told what to do: see `peer.py`."""
    python = os.environ.get("TABLELOG_PEER_PYTHON")
    if not python:
        pytest.skip("TABLELOG_PEER_PYTHON names no environment with delta-spark: run `make interop`")
    script = str(Path(__file__).with_name("peer.py"))
    started = Worker([python, script], tmp_path_factory.mktemp("peer") / "stderr.log")
    yield started
    started.close()
