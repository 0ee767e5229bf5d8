"""Drivers killed by SIGKILL: the table is as before or after, VACUUM removes what they left, the command runs again."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.commands import KINDS, ROWS, copy_of, data_files_needed, made, rows_of
from support.killed_driver import TASKS_WRITE
from support.spark_tables import Table

TESTS = Path(__file__).parents[1]

KILLS = [
    ("append", TASKS_WRITE, "python", False),
    ("update", "when files are staged", "all", False),
    ("overwrite", "when one file is in place", "all", False),
    ("merge", "before committing", "python", False),
    ("delete", "as the commit is put", "all", False),
    ("optimize", "after the commit", "python", True),
    ("vacuum", "when files are deleted", "all", True),
]


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory) -> Table:
    return made(spark, tmp_path_factory.mktemp("killed"))


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def kill(table: Table, *how: str) -> None:
    """Have a driver of its own kill itself, and wait until its JVM has gone too."""
    command = [sys.executable, "-m", "support.killed_driver", table.path, *how]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, cwd=TESTS, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as driver:  # fmt: skip
        assert driver.stdout is not None
        told = driver.stdout.readline()
        _, errors = driver.communicate(timeout=120)
    assert driver.returncode == -9, errors[-3000:]
    wait = threading.Event()
    assert any(gone(int(told)) or wait.wait(0.1) for _ in range(600)), "the JVM of a dead driver ends"


@pytest.mark.parametrize(("name", "point", "whom", "committed"), KILLS, ids=str)
def test_killed(table, conf, name, point, whom, committed):
    own = copy_of(table, f"{name} {point}")
    kill(own, name, point, whom)
    kind = KINDS[name]
    assert (own.version > table.version) is committed
    rows = kind.leaves(ROWS) if committed else ROWS
    assert rows_of(own) == rows
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    own.delta.vacuum(0)
    assert own.data_files() == data_files_needed(own)
    assert rows_of(own) == rows
    kind.run(own)
    assert rows_of(own) == kind.leaves(rows)
