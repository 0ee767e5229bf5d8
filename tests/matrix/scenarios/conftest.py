"""The session of the cell that the variable TABLELOG_MATRIX_CELL names: `spark`, classic or Connect."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matrix.cells import CELLS, CLASSIC, CONNECT, PREVIEW, Cell

VARIABLE = "TABLELOG_MATRIX_CELL"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only(mode): a scenario of classic sessions, or of Spark Connect")
    config.addinivalue_line("markers", "hive: a scenario of sessions with a Hive metastore")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the cell's kind of session doesn't have; what it refuses instead is a scenario of its own."""
    cell = _cell()
    left_out = [
        item
        for item in items
        if (item.get_closest_marker("hive") and not cell.hive)
        or any(marker.args != (cell.mode,) for marker in item.iter_markers("only"))
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _cell() -> Cell:
    name = os.environ.get(VARIABLE)
    if name == PREVIEW:  # a classic session with Spark's defaults, of versions that no cell has
        return Cell("", "")
    cells = {cell.name: cell for cell in CELLS}
    if name not in cells:
        raise pytest.UsageError(f"{VARIABLE} must name a cell of matrix.cells; `make test-matrix` sets it")
    return cells[name]


@pytest.fixture(scope="session")
def cell() -> Cell:
    """The cell that this process runs."""
    return _cell()


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the session's warehouse, its metastore and its temporary files."""
    folder = tmp_path_factory.mktemp("session")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(cell: Cell, scratch: Path) -> Iterator[Any]:
    """A session of the cell's kind, enabled for Delta tables."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark's Python workers are whatever `python3` is on the PATH
    from tablelog.spark import enable

    if cell.mode == CONNECT:
        from pyspark.sql import SparkSession

        from support import connect_server

        with connect_server.running(scratch, cell.settings) as address:
            session = SparkSession.builder.remote(address).getOrCreate()
            yield enable(session)
            session.stop()
        return
    from support.sessions import session_builder

    assert cell.mode == CLASSIC
    settings = {
        **cell.settings,
        "spark.driver.memory": "2g",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={scratch}/metastore;create=true",
    }
    builder = session_builder("local[2]", settings, more_java_options=f"-Dderby.stream.error.file={scratch}/derby.log")
    session = builder.getOrCreate()
    yield enable(session)
    session.stop()
