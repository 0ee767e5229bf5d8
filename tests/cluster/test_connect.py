"""A Spark Connect server whose executors are those of the cluster; client, server and executors are processes apart."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Sessions, class_path
from .standalone import Cluster

_TESTS = Path(__file__).parents[1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["shared directory", "minio", "hdfs"])
def test_the_whole_work(
    cluster: Cluster, sessions: Sessions, request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    server: Any = None if name == "shared directory" else request.getfixturevalue(name)
    if name == "minio" and not class_path():
        pytest.skip("the jars of s3a can't be installed")
    sessions.stop()  # it has the cores of the cluster
    published = {} if server is None else server.published()
    done = subprocess.run(
        [sys.executable, "-m", "servers.connect_work", str(tmp_path), cluster.url],
        cwd=tmp_path,
        env={**os.environ, **published, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    assert done.stdout.endswith("all done\n")
