"""The wheel as `--py-files`: neither the driver nor the executors have tablelog installed."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from support.sessions import java_options

from .conftest import Sessions
from .pythons import python_without
from .standalone import Cluster

_ROOT = Path(__file__).resolve().parents[2]
_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(target), str(_ROOT)],
        check=True,
        capture_output=True,
    )
    (made,) = target.glob("*.whl")
    return made


@pytest.mark.timeout(600)
def test_the_wheel_as_py_files(sessions: Sessions, cluster: Cluster, wheel: Path, tmp_path: Path) -> None:
    sessions.stop()  # the submitted program needs its executors
    python = python_without(tmp_path / "python", ["tablelog"])
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    program = str(Path(__file__).with_name("submitted.py"))
    done = subprocess.run(
        [str(_SUBMIT), "--master", cluster.url, *settings, "--py-files", str(wheel), program, str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": python, "SPARK_HOME": str(_SUBMIT.parents[1]), "PYTHONPATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    assert "all done" in done.stdout
