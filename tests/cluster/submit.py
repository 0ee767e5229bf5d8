"""`spark-submit` to the cluster, as a user runs it, and the wheel of this source."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from support.java import java_options

from .standalone import WORKERS, Cluster

_ROOT = Path(__file__).resolve().parents[2]
_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def wheel_of_this(directory: Path) -> Path:
    """The wheel, made in `directory`."""
    command = [sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(directory), str(_ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = directory.glob("*.whl")
    return made


def submit(
    cluster: Cluster, program: str, directory: Path, options: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run `program` of this folder, with `directory` as its argument and its working directory, to its end.

    Fails unless it prints "all done".
    """
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.cores.max": str(WORKERS),
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    path = str(Path(__file__).with_name(program))
    done = subprocess.run(
        [str(_SUBMIT), "--master", cluster.url, *settings, *options, path, str(directory)],
        env={**os.environ, "SPARK_HOME": str(_SUBMIT.parents[1]), "PYTHONPATH": "", **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    assert "all done" in done.stdout
