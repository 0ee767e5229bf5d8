"""DeltaTable: how it is found, its history and detail, and that it needs no enabled session."""

import datetime as dt
import json
import time

import pytest

from tablelog.errors import InvalidArgumentError, TableNotFoundError, UnsupportedEnvironmentError
from tablelog.spark import DeltaTable

HISTORY = (
    "version bigint, timestamp timestamp, userId string, userName string, operation string, "
    "operationParameters map<string,string>, "
    "job struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,triggerType:string>, "
    "notebook struct<notebookId:string>, clusterId string, readVersion bigint, isolationLevel string, "
    "isBlindAppend boolean, operationMetrics map<string,string>, userMetadata string, engineInfo string"
)
DETAIL = (
    "format string, id string, name string, description string, location string, createdAt timestamp, "
    "lastModified timestamp, partitionColumns array<string>, clusteringColumns array<string>, numFiles bigint, "
    "sizeInBytes bigint, properties map<string,string>, minReaderVersion int, minWriterVersion int, "
    "tableFeatures array<string>"
)


def test_history_has_the_columns_of_describe_history(spark, table):
    table.write(spark.range(3), userMetadata="one")
    table.write(spark.range(3), "overwrite")
    table.delta.delete("id = 1")
    history = table.delta.history()
    assert history.schema == spark.createDataFrame([], HISTORY).schema
    rows = history.collect()
    assert [row.version for row in rows] == [2, 1, 0]
    assert [row.operation for row in rows] == ["DELETE", "WRITE", "WRITE"]
    assert [row.readVersion for row in rows] == [1, 0, None]
    assert [row.isBlindAppend for row in rows] == [False, False, True]
    assert [row.userMetadata for row in rows] == [None, None, "one"]
    assert rows[1].operationParameters == {"mode": "Overwrite", "partitionBy": "[]"}
    assert rows[2].operationMetrics["numOutputRows"] == "3"
    assert all(row.isolationLevel == "Serializable" for row in rows)
    assert all(row.engineInfo.startswith("tablelog/") for row in rows)
    assert [row.version for row in table.delta.history(2).collect()] == [2, 1]
    for limit in (0, -1):
        with pytest.raises(InvalidArgumentError, match=str(limit)):
            table.delta.history(limit)


def test_history_s_timestamps_are_those_of_time_travel(spark, table, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        table.write(spark.range(1))
        table.write(spark.range(1))
        first = table.delta.history().where("version = 0")
        assert table.read(timestampAsOf=first.selectExpr("cast(timestamp as string) t").first().t).count() == 1
        assert abs(first.first().timestamp - dt.datetime.now()) < dt.timedelta(minutes=2)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_history_of_what_others_wrote(spark, table):
    table.write(spark.range(1))
    commit = table.root / "_delta_log" / f"{1:020}.json"
    info = {
        "timestamp": 1_700_000_000_000,
        "operation": "STREAMING UPDATE",
        "operationParameters": {"epochId": "7", "statsOnLoad": False},
        "job": {"jobId": "17", "jobName": "nightly", "runId": 3},
        "notebook": {"notebookId": "9"},
        "operationMetrics": {"numOutputRows": "1"},
        "userName": "someone",
    }
    commit.write_text(json.dumps({"commitInfo": info}) + "\n")
    (table.root / "_delta_log" / f"{2:020}.json").write_text('{"txn":{"appId":"a","version":1}}\n')
    bare, row, _ = table.delta.history().collect()
    assert (bare.version, bare.operation) == (2, None)
    assert row.job.asDict() == {
        "jobId": "17",
        "jobName": "nightly",
        "jobRunId": None,
        "runId": "3",
        "jobOwnerId": None,
        "triggerType": None,
    }
    assert row.notebook.notebookId == "9"
    assert row.operationParameters == {"epochId": "7", "statsOnLoad": "false"}
    assert row.userName == "someone"


def test_detail_has_the_columns_of_describe_detail(spark, table):
    table.write(spark.range(4).selectExpr("id", "id % 2 as p"), by=("p",), **{"delta.appendOnly": "true"})
    detail = table.delta.detail()
    assert detail.schema == spark.createDataFrame([], DETAIL).schema
    row = detail.first()
    assert row.format == "delta"
    assert row.location.endswith(table.path)
    assert row.partitionColumns == ["p"]
    assert row.clusteringColumns == []
    assert row.numFiles == len(table.logged_files())
    assert row.sizeInBytes == sum((table.root / name).stat().st_size for name in table.logged_files())
    assert row.properties == {"delta.appendOnly": "true"}
    assert row.tableFeatures == ["appendOnly", "invariants"]
    assert row.id == next(a["metaData"]["id"] for a in table.actions(0) if "metaData" in a)
    assert abs(row.lastModified - dt.datetime.now()) < dt.timedelta(minutes=2)


def test_paths_that_are_and_are_not_tables(spark, table, tmp_path):
    table.write(spark.range(4).selectExpr("id", "id % 2 as p"), by=("p",))
    assert DeltaTable.isDeltaTable(spark, table.path)
    assert DeltaTable.isDeltaTable(spark, "file://" + table.path)
    assert DeltaTable.isDeltaTable(spark, table.path + "/p=1")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    assert not DeltaTable.isDeltaTable(spark, f"delta.`{table.path}`")
    assert DeltaTable.forPath(spark, table.path + "/").toDF().count() == 4
    with pytest.raises(TableNotFoundError, match="not a Delta table"):
        DeltaTable.forPath(spark, str(tmp_path))


def test_hadoop_settings_are_those_of_file_systems_only(spark, table):
    table.write(spark.range(1))
    assert DeltaTable.forPath(spark, table.path, {"fs.s3a.endpoint": "x"}).toDF().count() == 1
    with pytest.raises(InvalidArgumentError, match=r"spark\.x"):
        DeltaTable.forPath(spark, table.path, {"spark.x": "1"})
    with pytest.raises(UnsupportedEnvironmentError, match="Connect"):
        DeltaTable.forPath(type("SparkSession", (), {})(), table.path)


def test_to_df_sees_new_versions_and_has_the_alias(spark, table):
    table.write(spark.range(2))
    found = table.delta.alias("a")
    frame = found.toDF()
    table.write(spark.range(2))
    assert frame.select("a.id").count() == 4
    assert frame.alias("l").join(found.toDF().alias("r"), "id").count() == 8


def test_delta_table_needs_no_enabled_session(spark, table):
    table.write(spark.range(3))
    other = spark.newSession()
    found = DeltaTable.forPath(other, table.path)
    found.delete("id = 1")
    assert found.toDF().count() == 2
    assert found.history().count() == 2


def test_exceptions_bear_the_names_of_delta_exceptions():
    from tablelog.spark import exceptions

    names = [
        "DeltaConcurrentModificationException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    ]
    for name in names:
        found = getattr(exceptions, name)
        assert issubclass(found, exceptions.DeltaConcurrentModificationException)
        # Delta has no condition for the class of all conflicts.
        prefix = "TABLELOG_" if name == "DeltaConcurrentModificationException" else "DELTA_"
        assert found("x").getCondition().startswith(prefix)
    assert set(names) <= set(exceptions.__all__)


def test_a_notebook_shows_a_card(spark, table):
    table.write(spark.range(3))
    card = table.delta._repr_html_()
    assert card.startswith("<div ")
    assert table.path in card
    assert "1 column: id" in card
    assert "0 of " in card
    table.write(spark.range(3))
    assert "1 of " in table.delta._repr_html_()
    delta = table.delta
    for file in (table.root / "_delta_log").iterdir():
        file.unlink()
    assert delta._repr_html_().startswith("<pre>there is no Delta table at ")
