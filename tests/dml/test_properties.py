"""setProperties, unsetProperties, upgradeTableProtocol and addFeatureSupport: the commits, and what is refused."""

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError


def test_properties_are_set_and_unset(table: Table) -> None:
    table.write(table.spark.range(3))
    table.delta.setProperties({"DELTA.appendonly": "true", "mine": "x", "comment": "what it is"})
    assert table.info()["operation"] == "SET TBLPROPERTIES"
    told = json.loads(table.info()["operationParameters"]["properties"])
    assert told == {"delta.appendOnly": "true", "mine": "x", "comment": "what it is"}
    detail = table.delta.detail().first()
    assert detail is not None
    assert (detail.properties, detail.description) == ({"delta.appendOnly": "true", "mine": "x"}, "what it is")

    table.delta.unsetProperties(["delta.APPENDONLY", "comment"])
    assert table.info()["operationParameters"] == {
        "properties": '["delta.appendOnly","comment"]', "ifExists": False,
    }  # fmt: skip
    detail = table.delta.detail().first()
    assert detail is not None
    assert (detail.properties, detail.description) == ({"mine": "x"}, None)

    before = table.version
    with pytest.raises(InvalidArgumentError, match=r"delta\.appendOnly isn't set"):
        table.delta.unsetProperties(["delta.appendOnly"])
    for wrong, says in (
        ({"delta.constraints.c": "id > 0"}, "addConstraint"),
        ({"delta.nonsense": "1"}, r"delta\.nonsense"),
        ({"delta.checkpointInterval": "none"}, "positive integer"),
        ({"delta.logRetentionDuration": "interval 3 days"}, "deletedFileRetentionDuration"),
        ({"delta.columnMapping.maxColumnId": "3"}, "set by the table"),
        ({"delta.inCommitTimestampEnablementVersion": "3"}, "set by the table"),
        ({"delta.feature.clustering": "supported"}, "clusterBy"),
        ({"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}, "both"),
        ({"location": "/elsewhere"}, "the location of a table can't be changed"),
        ({}, "no table property"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            table.delta.setProperties(wrong)
    with pytest.raises(InvalidArgumentError, match="the values of properties must be a string"):
        table.delta.setProperties({"delta.appendOnly": True})  # type: ignore[dict-item]
    assert table.version == before
    table.delta.unsetProperties("nothing", ifExists=True)
    assert table.version == before + 1, "as in Delta, which commits whether or not it changes something"


def test_the_protocol_is_raised(table: Table) -> None:
    table.write(table.spark.range(1))
    table.delta.upgradeTableProtocol(1, 4)
    assert [a["protocol"] for a in table.actions() if "protocol" in a] == [
        {"minReaderVersion": 1, "minWriterVersion": 4}
    ]
    table.delta.upgradeTableProtocol(1, 2)
    assert not any("protocol" in action for action in table.actions()), "it is never lowered"
    table.delta.addFeatureSupport("vacuumProtocolCheck")
    protocol = next(action["protocol"] for action in table.actions() if "protocol" in action)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["vacuumProtocolCheck"]
    assert {"generatedColumns", "vacuumProtocolCheck"} <= set(protocol["writerFeatures"])
    assert "delta.feature.vacuumProtocolCheck" not in str(table.delta.detail().first())
    with pytest.raises(InvalidArgumentError, match="minWriterVersion"):
        table.delta.upgradeTableProtocol(1, 9)
    with pytest.raises(UnsupportedFeatureError, match="nonsense"):
        table.delta.addFeatureSupport("nonsense")
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        table.delta.addFeatureSupport("catalogManaged")
    with pytest.raises(ValueError, match="readerVersion"):
        table.delta.upgradeTableProtocol("1", 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="featureName"):
        table.delta.addFeatureSupport(1)  # type: ignore[arg-type]


def test_row_tracking_is_enabled_once_all_files_have_ids(table: Table) -> None:
    table.write(table.spark.range(2))
    table.write(table.spark.range(2, 4))
    table.delta.setProperties({"delta.enableRowTracking": "true"})
    assert [row.operation for row in table.delta.history().collect()] == [
        "SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL", "WRITE", "WRITE",
    ]  # fmt: skip
    adds = [action["add"] for action in table.actions(3) if "add" in action]
    assert sorted(add["baseRowId"] for add in adds) == [0, 2]
    assert {(add["defaultRowCommitVersion"], add["dataChange"]) for add in adds} == {(3, False)}
    table.write(table.spark.range(4, 6))
    assert [action["add"]["baseRowId"] for action in table.actions() if "add" in action] == [4]
    assert table.rows() == [0, 1, 2, 3, 4, 5]
    table.delta.setProperties({"delta.enableRowTracking": "true"})
    assert table.version == 6, "nothing to give ids to"


def test_column_mapping_ends_with_its_files(table: Table) -> None:
    table.write(table.spark.createDataFrame([(1, "x")], "a int, b string"), **{"delta.columnMapping.mode": "name"})
    table.delta.renameColumn("b", "c")
    table.delta.setProperties({"delta.columnMapping.mode": "none"})
    assert [row.operation for row in table.delta.history(2).collect()] == ["SET TBLPROPERTIES", "REMOVE COLUMN MAPPING"]
    assert [row.c for row in table.read().where("c = 'x'").collect()] == ["x"]
    table.delta.setProperties({"delta.columnMapping.mode": "name"})
    table.delta.unsetProperties(["delta.columnMapping.mode"])
    assert table.rows() == [(1, "x")]
    assert "columnMapping" not in str(table.delta.detail().select("properties").first())
    with pytest.raises(InvalidArgumentError, match="no such column"):
        table.delta.setProperties({"delta.dataSkippingStatsColumns": "a, b"})
    table.delta.setProperties({"delta.dataSkippingStatsColumns": "a, c", "delta.parquet.format.version": "2.12.0"})
    table.write(table.spark.createDataFrame([(2, "y")], "a int, c string"))
    path = next(action["add"]["path"] for action in table.actions() if "add" in action)
    column = pq.ParquetFile(table.root / path).metadata.row_group(0).column(0)
    assert "PLAIN_DICTIONARY" not in column.encodings, "as version 1 has it"


def test_the_session_s_application_version_is_for_its_writes(table: Table, conf: Any) -> None:
    table.write(table.spark.range(3))
    conf("spark.databricks.delta.write.txnAppId", "app")
    conf("spark.databricks.delta.write.txnVersion", "1")
    table.delta.setProperties({"mine": "x"})
    assert not [action for action in table.actions() if "txn" in action]
    table.write(table.spark.range(3))
    assert [action["txn"]["version"] for action in table.actions() if "txn" in action] == [1]
    table.delta.optimize().executeCompaction()
    assert table.info()["operation"] == "OPTIMIZE", "the version has been seen, and is no reason to leave it"
