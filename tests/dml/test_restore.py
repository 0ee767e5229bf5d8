"""RESTORE: rows, files, schema and protocol of an older version, and what stops it."""

import pytest

from support.spark_tables import Table
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.table_maintenance.restore import restored_metadata, restored_protocol
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    MissingDataFileError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)


@pytest.fixture
def table(spark, tmp_path) -> Table:
    """0: ids 0-5 in partitions 0, 1, 2; 1: p = 1 deleted; 2: ids 6, 7 appended; 3: a column more."""
    found = Table(spark, tmp_path / "a table")
    found.write(spark.range(6).selectExpr("id", "id % 3 p").coalesce(1), by=("p",))
    found.delta.delete("p = 1")
    found.write(spark.range(6, 8).selectExpr("id", "id % 3 p").coalesce(1))
    found.write(spark.range(8, 9).selectExpr("id", "id % 3 p", "'x' more").coalesce(1), mergeSchema="true")
    return found


def test_to_a_version_and_back(table):
    row = table.delta.restoreToVersion(0).first().asDict()
    assert table.rows("id") == [0, 1, 2, 3, 4, 5]
    assert table.read().columns == ["id", "p"]
    added = [a["add"] for a in table.actions() if "add" in a]
    removed = [a["remove"] for a in table.actions() if "remove" in a]
    assert (len(added), len(removed)) == (1, 3)
    assert added[0]["dataChange"] is True
    assert added[0]["stats"]
    info = table.info()
    assert info["operation"] == "RESTORE"
    assert info["operationParameters"]["version"] == 0
    sizes = {name: (table.root / name).stat().st_size for name in table.data_files()}
    live = set(table.delta._log.snapshot().files.column("path").to_pylist())
    assert row == {
        "table_size_after_restore": sum(sizes[name] for name in live),
        "num_of_files_after_restore": 3,
        "num_removed_files": 3,
        "num_restored_files": 1,
        "removed_files_size": sum(one["size"] for one in removed),
        "restored_files_size": added[0]["size"],
    }
    assert {key: int(value) for key, value in info["operationMetrics"].items()} == {
        "tableSizeAfterRestore": row["table_size_after_restore"],
        "numOfFilesAfterRestore": 3,
        "numRemovedFiles": 3,
        "numRestoredFiles": 1,
        "removedFilesSize": row["removed_files_size"],
        "restoredFilesSize": row["restored_files_size"],
    }
    at = table.spark.sql("select cast(:t as timestamp) t", args={"t": table.delta.history().collect()[1].timestamp})
    table.delta.restoreToTimestamp(str(at.first().t))
    assert table.rows("id") == [0, 2, 3, 5, 6, 7, 8]
    assert table.read().columns == ["id", "p", "more"]
    assert table.info()["operationParameters"]["timestamp"] == str(at.first().t)


def test_the_newest_version_is_there_already(table):
    row = table.delta.restoreToVersion(table.version).first()
    assert (row.num_restored_files, row.num_removed_files) == (0, 0)
    assert row.num_of_files_after_restore == table.delta.detail().first().numFiles
    assert table.version == 3


def test_what_stops_it(table, spark):
    for version in (-1, 4):
        with pytest.raises(VersionNotFoundError):
            table.delta.restoreToVersion(version)
    for time, condition in [("2001-01-01", "EARLIER"), ("2999-01-01", "GREATER")]:
        with pytest.raises(TimestampOutOfRangeError) as caught:
            table.delta.restoreToTimestamp(time)
        assert caught.value.getCondition() == f"DELTA_CANNOT_RESTORE_TIMESTAMP_{condition}"
        assert caught.value.getMessageParameters()["requestedTimestamp"] == time
    gone = next(a["remove"]["path"] for a in table.actions(1) if "remove" in a)
    (table.root / gone).unlink()
    with pytest.raises(MissingDataFileError, match=gone):
        table.delta.restoreToVersion(0)
    assert table.version == 3
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        table.delta.restoreToVersion(0)
        assert table.rows("id") == [0, 2, 3, 5]
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_concurrent_data_is_a_conflict_and_append_only_holds(table, spark, monkeypatch):
    from tablelog.core.txn import transaction

    commit = transaction.Transaction.commit

    def late(self, actions, operation, **rest):
        if operation.name == "RESTORE":
            table.write(spark.range(90, 91).selectExpr("id", "id % 3 p", "'y' more"))
        return commit(self, actions, operation, **rest)

    monkeypatch.setattr(transaction.Transaction, "commit", late)
    with pytest.raises(ConcurrentAppendException):
        table.delta.restoreToVersion(2)
    monkeypatch.undo()
    strict = Table(spark, table.root / "strict")
    properties = {"delta.appendOnly": "true"}
    for start in (0, 1):
        strict.write(spark.range(start, start + 1), **properties)
    with pytest.raises(AppendOnlyTableError):
        strict.delta.restoreToVersion(0)


SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":'
    '{"delta.identity.start":1,"delta.identity.step":%d,"delta.identity.allowExplicitInsert":false%s}}]}'
)


@pytest.mark.parametrize(
    ("step", "then", "now", "wanted"), [(1, 5, 9, 9), (1, 9, 5, 9), (-1, -5, -9, -9), (2, None, 7, 7), (1, 3, None, 3)]
)
def test_marks_of_identity_columns_never_go_back(step, then, now, wanted):
    def metadata(mark):
        text = "" if mark is None else f',"delta.identity.highWaterMark":{mark}'
        return Metadata("id", SCHEMA % (step, text))

    assert f'"delta.identity.highWaterMark":{wanted}' in restored_metadata(metadata(then), metadata(now)).schema_string


def test_the_protocol_stays_unless_it_may_be_lowered():
    low, high = Protocol(1, 2), Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
    assert restored_protocol(low, Protocol(1, 4), downgrade=False) == Protocol(1, 4)
    both = restored_protocol(low, high, downgrade=False)
    assert both.writer_features == {"deletionVectors", "appendOnly", "invariants"}
    assert restored_protocol(low, high, downgrade=True) == low


def test_numbers_of_a_renamed_identity_column_are_not_given_again(spark, tmp_path):
    found = Table(spark, tmp_path / "numbered")
    name = f"delta.`{found.path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} (v) VALUES ('a'), ('b')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO nr")
    spark.sql(f"INSERT INTO {name} (v) VALUES ('c'), ('d')")
    given = set(found.rows("nr"))
    found.delta.restoreToVersion(1)
    spark.sql(f"INSERT INTO {name} (v) VALUES ('e')")
    (new,) = spark.sql(f"SELECT id FROM {name} WHERE v = 'e'").collect()
    assert new.id not in given
