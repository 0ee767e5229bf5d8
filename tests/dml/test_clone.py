"""Shallow clones: tables of their own over the files of another."""

import pytest

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, TableAlreadyExistsError, UnsupportedFeatureError


@pytest.fixture
def source(spark, tmp_path) -> Table:
    """ids 0-5 in partitions 0, 1, 2; then 6-8 appended."""
    found = Table(spark, tmp_path / "a source")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", "mine": "1"}
    found.write(spark.range(6).selectExpr("id", "id % 3 p").coalesce(1), by=("p",), **properties)
    found.write(spark.range(6, 9).selectExpr("id", "id % 3 p").coalesce(1))
    found.delta.delete("id = 4")
    return found


def test_a_clone_is_a_table_of_its_own(source, spark, tmp_path):
    clone = Table(spark, tmp_path / "clone")
    before = source.data_files()
    made = source.delta.clone(clone.path, isShallow=True, properties={"mine": "2", "delta.appendOnly": "false"})
    assert sorted(row.id for row in made.toDF().collect()) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert clone.data_files() == set()
    info = clone.info()
    assert info["operation"] == "CLONE"
    assert info["operationParameters"] == {"source": f"delta.`file:{source.path}`", "sourceVersion": 2}
    size = sum(source.delta._log.snapshot().files.column("size").to_pylist())
    count = source.delta._log.snapshot().num_files
    assert {key: int(value) for key, value in info["operationMetrics"].items()} == {
        "sourceTableSize": size,
        "sourceNumOfFiles": count,
        "numRemovedFiles": 0,
        "numCopiedFiles": 0,
        "removedFilesSize": 0,
        "copiedFilesSize": 0,
    }
    metadata = next(a["metaData"] for a in clone.actions() if "metaData" in a)
    assert metadata["id"] != source.delta._log.snapshot().metadata.id
    assert metadata["configuration"]["mine"] == "2"
    made.delete("id < 3")
    clone.write(spark.range(50, 51).selectExpr("id", "id % 3 p"))
    assert clone.rows("id") == [3, 5, 6, 7, 8, 50]
    assert source.rows("id") == [0, 1, 2, 3, 5, 6, 7, 8]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        made.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert source.data_files() == before
    again = Table(spark, tmp_path / "again")
    made.clone(f"delta.`{again.path}`", isShallow=True)
    assert again.rows("id") == [3, 5, 6, 7, 8, 50]


@pytest.mark.slow
def test_a_clone_of_a_version_in_place_of_a_table(source, spark, tmp_path):
    clone = Table(spark, tmp_path / "clone")
    source.delta.cloneAtVersion(0, clone.path, isShallow=True)
    assert clone.rows("id") == [0, 1, 2, 3, 4, 5]
    first = clone.delta._log.snapshot().metadata
    with pytest.raises(TableAlreadyExistsError):
        source.delta.clone(clone.path, isShallow=True)
    moment = source.delta.history().collect()[1].timestamp
    source.delta.cloneAtTimestamp(f"{moment:%Y-%m-%d %H:%M:%S.%f}", clone.path, isShallow=True, replace=True)
    assert clone.rows("id") == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert clone.delta._log.snapshot().metadata.id == first.id
    assert clone.info()["operationParameters"]["sourceVersion"] == 1
    assert clone.rows("id", versionAsOf=0) == [0, 1, 2, 3, 4, 5]


def test_what_is_refused(source, spark, tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="isShallow"):
        source.delta.clone(str(tmp_path / "deep"))
    with pytest.raises(InvalidArgumentError, match="onto itself"):
        source.delta.clone(source.path, isShallow=True, replace=True)
    with pytest.raises(UnsupportedFeatureError, match="of the catalog other"):
        source.delta.clone("other.db.name", isShallow=True)
    with pytest.raises(InvalidArgumentError):
        source.delta.clone(str(tmp_path / "x"), isShallow=True, properties={"delta.columnMapping.mode": "none"})
    assert not (tmp_path / "x").exists()
