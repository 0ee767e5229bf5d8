"""VACUUM as a user runs it: what goes, what the history says, dry runs, LITE, inventories, what is refused."""

from dataclasses import replace

import pytest

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError
from tablelog.logstore.common import schemes
from tablelog.spark import DeltaTable

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture
def unchecked(spark):
    spark.conf.set(CHECK, "false")
    yield
    spark.conf.unset(CHECK)


@pytest.fixture
def table(spark, tmp_path) -> Table:
    """Three files, in partitions 0, 1 and 2, of which 1 is deleted."""
    found = Table(spark, tmp_path / "a table")
    found.write(spark.range(6).selectExpr("id", "id % 3 p").coalesce(1), by=("p",))
    found.delta.delete("p = 1")
    return found


def test_full(table, unchecked, spark):
    before = table.data_files()
    (table.root / "orphan").write_bytes(b"12345")
    gone = {name for name in before if name.startswith("p=1/")} | {"orphan"}
    shown = table.delta.vacuum(0, dryRun=True)
    assert {row.path for row in shown.collect()} == {f"{table.path}/{name}" for name in gone}
    assert table.version == 1
    assert table.delta.vacuum(0).columns == []
    assert table.data_files() == before - gone
    assert table.rows("id") == [0, 2, 3, 5]
    start, end = table.info(2), table.info(3)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": False,
        "defaultRetentionMillis": 604800000,
        "specifiedRetentionMillis": 0,
    }
    assert start["operationMetrics"]["numFilesToDelete"] == str(len(gone))
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": str(len(gone)), "numVacuumedDirectories": "4"}
    assert (table.root / "p=1").is_dir()
    table.delta.vacuum(0)
    assert not (table.root / "p=1").exists()
    assert table.info(5)["operationMetrics"]["numDeletedFiles"] == "1"


def test_the_retention_is_the_table_s_and_checked(table, spark):
    before = table.data_files()
    with pytest.raises(InvalidArgumentError, match="168 hours"):
        table.delta.vacuum(1)
    table.delta.vacuum()
    table.delta.vacuum(200)
    assert table.data_files() == before
    assert "specifiedRetentionMillis" not in table.info(2)["operationParameters"]
    with pytest.raises(InvalidArgumentError, match="HALF"):
        table.delta.vacuum(mode="HALF")


def test_lite_goes_by_the_log(table, unchecked):
    before = table.data_files()
    (table.root / "orphan").write_bytes(b"x")
    table.delta.vacuum(0, mode="LITE")
    gone = {name for name in before if name.startswith("p=1/")}
    assert table.data_files() == before - gone | {"orphan"}
    told = (table.root / "_delta_log" / "_last_vacuum_info").read_text()
    assert told == '{"latestCommitVersionOutsideOfRetentionWindow":1}\n'
    table.delta.delete("p = 2")
    table.delta.vacuum(0, mode="LITE")
    assert {name[:4] for name in table.data_files()} == {"p=0/", "orph"}
    assert table.info()["operationMetrics"]["numDeletedFiles"] == "1"
    (table.root / "_delta_log" / "_last_vacuum_info").unlink()
    table.delta._log.checkpoint()
    (table.root / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(InvalidArgumentError, match="VACUUM FULL"):
        DeltaTable.forPath(table.spark, table.path).vacuum(0, mode="LITE")


def test_an_inventory_stands_in_for_the_listing(table, unchecked, spark):
    before = table.data_files()
    rows = [(f"file:{table.path}/{name}", 1, False, 1) for name in sorted(before)]
    rows += [("file:/elsewhere/x.parquet", 1, False, 1), (f"file:{table.path}/_delta_log/{0:020}.json", 1, False, 1)]
    schema = "path string, length long, isDir boolean, modificationTime long"
    (table.root / "orphan").write_bytes(b"x")
    table.delta.vacuum(0, inventory=spark.createDataFrame(rows, schema))
    assert table.data_files() == {name for name in before if not name.startswith("p=1/")} | {"orphan"}
    assert (table.root / "_delta_log" / f"{0:020}.json").exists()
    with pytest.raises(InvalidArgumentError, match="lacks length"):
        table.delta.vacuum(0, inventory=spark.range(1).selectExpr("'' path", "true isDir", "1L modificationTime"))


def test_an_inventory_has_names_that_mean_other_files(table, unchecked, spark):
    """They, the files of a table below the table, and files without a time are kept."""
    before = table.data_files()
    inner = Table(spark, table.root / "sub")
    inner.write(spark.range(3))
    live = table.delta._log.snapshot().files.column("path").to_pylist()[0]
    names = [f"sub/{name}" for name in inner.data_files()] + [f"sub/_delta_log/{0:020}.json"]
    names += [spelled.format(live) for spelled in ("/{}", "./{}", "sub/../{}")] + [live.replace("/", "//")]
    rows = [(f"file:{table.path}/{name}", 1, False, 1) for name in names]
    (table.root / "orphan").write_bytes(b"x")
    rows.append((f"file:{table.path}/orphan", 1, False, None))
    schema = "path string, length long, isDir boolean, modificationTime long"
    table.delta.vacuum(0, inventory=spark.createDataFrame(rows, schema))
    assert {name for name in table.data_files() if not name.startswith("sub/")} == before | {"orphan"}
    assert inner.rows() == [0, 1, 2]


def test_what_fails_is_told(table, unchecked, monkeypatch):
    from tablelog.engine.storage.table_files import LocalFiles

    def broken(*args, **kwargs):
        raise OSError("disk on fire")

    monkeypatch.setattr(LocalFiles, "delete", broken)
    with pytest.raises(OSError, match="on fire"):
        table.delta.vacuum(0)
    assert table.info()["operationParameters"] == {"status": "FAILED"}
    table.spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    try:
        with pytest.raises(OSError, match="on fire"):
            table.delta.vacuum(0)
    finally:
        table.spark.conf.unset("spark.databricks.delta.vacuum.logging.enabled")
    assert table.version == 3


def test_in_parallel_and_through_hadoop(table, unchecked, monkeypatch):
    """The same by Spark's own client, which other storage is reached by."""
    from tablelog.engine.storage import table_files
    from tablelog.engine.storage.hadoop_client import HadoopFiles

    before = table.data_files()
    (table.root / "p=7/deep er").mkdir(parents=True)
    (table.root / "p=7/x.parquet").write_bytes(b"x")
    chosen = table_files.HadoopTableFiles(table.delta._log.table, HadoopFiles(table.spark))
    monkeypatch.setattr(table_files, "choose", lambda *_: chosen)
    table.spark.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "true")
    try:
        shown = {row.path for row in table.delta.vacuum(0, dryRun=True).collect()}
        table.delta.vacuum(0)
    finally:
        table.spark.conf.unset("spark.databricks.delta.vacuum.parallelDelete.enabled")
    assert f"{table.path}/p=7/deep er" in shown
    assert table.data_files() == {name for name in before if not name.startswith("p=1/")}
    assert (table.root / "p=7").exists()
    assert not (table.root / "p=7/deep er").exists()
    log = table.delta._log
    live = log.snapshot().files.column("path").to_pylist()
    assert chosen.absent([*live, "p=1/gone", f"file://{table.path}/x"]) == ["p=1/gone", f"file://{table.path}/x"]
    monkeypatch.setitem(schemes.SCHEMES, "file", replace(schemes.SCHEMES["file"], has_directories=False))
    flat = {d.path_of(f.name) for d in chosen.walk(lambda name: name.startswith((".", "_"))) for f in d.files}
    assert flat == table.data_files()
