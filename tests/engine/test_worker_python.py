"""The checks of the Python of Spark's workers: on the driver's machine before a read, and in the errors of tasks."""

import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tablelog.engine.jvm import worker_python
from tablelog.errors import UnsupportedEnvironmentError


def session(program: object, **environment: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=str(program), environment=environment))


def a_program(directory: Path, text: str) -> Path:
    program = directory / "python"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo 3.4", "is Python 3.4, and the driver's is 3"),
        ("echo {own}; echo \"No module named 'pyarrow'\" >&2; exit 1", "lacks pyarrow"),
        ("exit 7", "doesn't run"),
    ],
)
def test_a_python_that_cannot_plan_reads(tmp_path: Path, text: str, told: str) -> None:

    program = a_program(tmp_path, text.format(own="{}.{}".format(*sys.version_info)))
    for _ in range(2):
        with pytest.raises(UnsupportedEnvironmentError, match=told) as caught:
            worker_python.check_planner(session(program))
        assert str(program) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedEnvironmentError, match=r"can't start .*/nowhere/python"):
        worker_python.check_planner(session(tmp_path / "nowhere" / "python"))


def test_a_python_is_started_once_with_the_path_of_workers(tmp_path: Path) -> None:

    program = a_program(tmp_path, f'echo "$PYTHONPATH" >> {tmp_path}/started; exec {sys.executable} "$@"')
    for _ in range(3):
        worker_python.check_planner(session(program, PYTHONPATH="/of/workers"))
    assert (tmp_path / "started").read_text() == "/of/workers\n"


def test_the_errors_of_tasks() -> None:
    versions = (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark "
        "cannot run with different minor versions."
    )
    told = worker_python.unusable(f"Traceback\n{versions}\n more", "writes")
    assert told is not None
    assert told.startswith("is Python 3.12, and the driver's is 3.11")
    assert "lacks pyarrow, which writes" in str(worker_python.unusable("No module named 'pyarrow'", "writes"))
    assert worker_python.unusable("ValueError: another", "writes") is None
