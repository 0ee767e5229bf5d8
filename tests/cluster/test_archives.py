"""An environment that venv-pack packed, as `--archives`: the Python of executors, which have no other with tablelog."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from servers import install

from .conftest import Sessions
from .standalone import Cluster
from .submit import submit, wheel_of_this


def _pack(directory: Path) -> None:
    """Make `environment.tar.gz`, as the guide says; PySpark isn't in it, because executors have Spark's own."""
    environment = directory / "built"
    venv.create(environment, with_pip=True, symlinks=True)
    (directory / "wheel").mkdir()
    wheel = str(wheel_of_this(directory / "wheel"))
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", wheel, "venv-pack"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        (pytest.fail if install.all_required() else pytest.skip)(f"pip can't install the environment: {done.stderr}")
    target = str(directory / "environment.tar.gz")
    program = str(environment / "bin" / "venv-pack")
    subprocess.run([program, "--quiet", "--output", target], check=True, env={"VIRTUAL_ENV": str(environment)})


@pytest.mark.timeout(900)
def test_an_environment_as_an_archive(sessions: Sessions, cluster: Cluster, tmp_path: Path) -> None:
    _pack(tmp_path)
    sessions.stop()  # the submitted program needs its executors
    pythons = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./environment/bin/python"}
    submit(cluster, "archived.py", tmp_path, ["--archives", "environment.tar.gz#environment"], pythons)
