"""The wheel as `--py-files`: neither the driver nor the executors have tablelog installed."""

from pathlib import Path

import pytest

from .conftest import Sessions
from .pythons import python_without
from .standalone import Cluster
from .submit import submit, wheel_of_this


@pytest.mark.timeout(600)
def test_the_wheel_as_py_files(sessions: Sessions, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    wheel = wheel_of_this(tmp_path / "wheel")
    sessions.stop()  # the submitted program needs its executors
    python = python_without(tmp_path / "python", ["tablelog"])
    submit(cluster, "submitted.py", tmp_path, ["--py-files", str(wheel)], {"PYSPARK_PYTHON": python})
