"""What the Python of executors needs, and how an executor without it is told: by one line that names it."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from matrix.environments import NotHereError, python_of
from servers import MinIO
from support.commands import KINDS, ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.spark_tables import Table
from support.table_work import STEPS, by_route, settings
from tablelog import __version__
from tablelog.core import DeltaLog
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.settings.declarations import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from tablelog.spark import conf

from .conftest import Sessions
from .pythons import python_without

Python = Callable[..., str]
LARGE = {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "2"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    made: dict[object, str] = {}

    def of(*packages: str, tablelog: str | None = None) -> str:
        key = (packages, tablelog)
        if key not in made:
            made[key] = python_without(tmp_path_factory.mktemp("python") / "of it", packages, tablelog=tablelog)
        return made[key]

    return of


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    with caplog.at_level(logging.WARNING, "tablelog"):
        yield lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def large(spark: SparkSession, path: Path) -> Table:
    """A table with a checkpoint, and nothing known of it."""
    table = Table(spark, path)
    table.write(spark.range(0, 8, 1, 2).repartition(2))
    DeltaLog.for_path(table.path).checkpoint()
    conf.forget()
    return table


def planned_by_executors(table: Table) -> bool:
    with settings(table.spark, LARGE):
        assert table.read().where("id >= 0").count() == 8
        base = conf.delta_log(table.path, conf.session_conf(table.spark, table.path)).snapshot().base
        assert base is not None
        return not base.loaded


def test_native_routes_need_no_python(sessions: Sessions, tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
    spark = sessions.of({}, "/no/python")
    with settings(spark, by_route("native")):
        base = made(spark, tmp_path)
        for name, kind in KINDS.items():
            table = copy_of(base, name)
            kind.run(table)
            assert rows_of(table) == kind.leaves(ROWS)
            nothing_is_left_behind(table)
        STEPS["by tasks"](spark, f"file://{tmp_path}/whole", {})
        assert not planned_by_executors(large(spark, tmp_path / "large"))
    (warning,) = warnings()
    assert "the driver reads the large log itself" in warning
    assert "/no/python" in warning
    assert "\n" not in warning


@pytest.mark.smoke
def test_executors_without_tablelog(
    sessions: Sessions, python: Python, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    spark = sessions.of({}, python("tablelog"))
    with settings(spark, by_route("arrow")):
        table = Table(spark, tmp_path / "table")
        table.write(spark.range(0, 8).repartition(2))
        assert DeltaLog.for_path(table.path).snapshot().num_files == 2
        with pytest.raises(UnsupportedEnvironmentError, match="doesn't have tablelog, which plans reads") as caught:
            table.read().collect()
        assert "\n" not in str(caught.value)
    assert not planned_by_executors(large(spark, tmp_path / "large"))
    (warning,) = warnings()
    assert f"the Python of Spark's executors doesn't have tablelog: install tablelog {__version__} there" in warning


def test_executors_with_another_version(
    sessions: Sessions, python: Python, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    spark = sessions.of({}, python("tablelog", tablelog="0.0.9"))
    assert not planned_by_executors(large(spark, tmp_path / "large"))
    (warning,) = warnings()
    assert f"has tablelog 0.0.9, and the driver's has {__version__}" in warning


def test_executors_with_this_version(spark: SparkSession, tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
    assert planned_by_executors(large(spark, tmp_path / "large"))
    assert not warnings()


def test_executors_without_the_package_of_a_store(
    sessions: Sessions, python: Python, minio: MinIO, tmp_path: Path
) -> None:
    url = minio.url()
    whole = sessions.of({})
    with settings(whole, {**minio.conf, **by_route("arrow")}):
        whole.range(0, 8).write.format("delta").save(url)
    spark = sessions.of({}, python("s3fs"))
    with settings(spark, {**minio.conf, **by_route("arrow")}):
        with pytest.raises(UnsupportedEnvironmentError, match="lacks the package s3fs, which writes to") as caught:
            spark.range(0, 8).repartition(2).write.format("delta").mode("append").save(url)
        assert "\n" not in str(caught.value)
        with pytest.raises(UnsupportedEnvironmentError, match="lacks the package s3fs, which reads"):
            spark.read.format("delta").load(url).collect()
    log = DeltaLog.for_path(url, conf=minio.conf)
    assert log.snapshot().version == 0


def another_python() -> str | None:
    """A Python of another minor version than this one, if this machine has one."""
    for minor in range(11, 15):
        if minor != sys.version_info.minor:
            with suppress(NotHereError):
                return python_of(f"3.{minor}")
    return None


@pytest.mark.skipif(another_python() is None, reason="this machine has no other Python")
def test_executors_of_another_minor_version(
    sessions: Sessions, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    program = another_python()
    assert program is not None
    spark = sessions.of({}, program)
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(0, 8).repartition(2))
    with settings(spark, by_route("arrow")):
        with pytest.raises(
            UnsupportedEnvironmentError, match=r"executors is Python 3\.\d+, and the driver's"
        ) as caught:
            table.write(spark.range(0, 8).repartition(2), "append")
        assert "\n" not in str(caught.value)
        with pytest.raises(UnsupportedEnvironmentError, match=r"is Python 3\.\d+, and the driver's is 3") as caught:
            table.read()
        assert "\n" not in str(caught.value)
    assert table.version == 0
    assert not planned_by_executors(large(spark, tmp_path / "large"))
    (warning,) = warnings()
    assert "the driver reads the large log itself" in warning
    assert "\n" not in warning


def test_executors_without_pyarrow(sessions: Sessions, python: Python, tmp_path: Path) -> None:
    spark = sessions.of({}, python("pyarrow"))
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(0, 8).repartition(2))
    with settings(spark, by_route("arrow")):
        with pytest.raises(UnsupportedEnvironmentError, match="lacks pyarrow, which writes the data files") as caught:
            table.write(spark.range(0, 8).repartition(2), "append")
        assert "\n" not in str(caught.value)
        with pytest.raises(UnsupportedEnvironmentError, match="lacks pyarrow on the driver's machine") as caught:
            table.read()
        assert "\n" not in str(caught.value)
    assert table.version == 0


@pytest.mark.skipif(another_python() is None, reason="this machine has no other Python")
def test_a_read_by_executors_of_another_minor_version(sessions: Sessions, tmp_path: Path) -> None:
    """By its path the driver has a Python that can plan reads, and the executors have another one."""
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\ncase "$PWD" in */work/app-*) exec "{another_python()}" "$@";; esac\nexec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    spark = sessions.of({}, str(program))
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(0, 8).repartition(2))
    with settings(spark, by_route("arrow")):
        with pytest.raises(
            UnsupportedEnvironmentError, match=r"executors is Python 3\.\d+, and the driver's"
        ) as caught:
            table.read().collect()
        assert "\n" not in str(caught.value)
        with pytest.raises(UnsupportedEnvironmentError, match=r"executors is Python 3\.\d+, and the driver's"):
            table.write(spark.range(0, 8).repartition(2), "append")
    assert table.version == 0
