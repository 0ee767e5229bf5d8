"""Programs in processes of their own, because the class path of their sessions is a JVM's own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import CannotInstallError
from .spark_jars import spark_jars

_TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def jars() -> str:
    """The jars for s3a, as a setting of Spark."""
    try:
        return ",".join(map(str, spark_jars()))
    except CannotInstallError as error:
        if os.environ.get("TABLELOG_REQUIRE_SERVERS") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


def run_program(server: Any, directory: Path, *program: str) -> str:
    """The last line that a program prints; it finds the server published in its environment."""
    paths = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", *program],
        cwd=directory,
        env={**os.environ, **server.published(), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    return done.stdout.split("\n")[-2]
