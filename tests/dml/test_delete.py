"""DELETE in its three cases: which rows go, which files are touched, what the commit says, what is refused."""

import json

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tablelog.spark import DeltaTable


@pytest.fixture
def table(spark, tmp_path) -> Table:
    """ids 0 to 11, two files in each of the partitions 0, 1, 2: 0-5 in the first commit, 6-11 in the second."""
    found = Table(spark, tmp_path / "table")
    for start in (0, 6):
        rows = spark.range(start, start + 6).select("id", (F.col("id") % 3).alias("p"), (F.col("id") * 2).alias("v"))
        found.write(rows.coalesce(1), by=("p",))
    return found


def changed(table: Table) -> tuple[list[str], list[str]]:
    actions = table.actions()
    return [a["add"]["path"] for a in actions if "add" in a], [a["remove"]["path"] for a in actions if "remove" in a]


def metrics(table: Table) -> dict[str, int]:
    return {key: int(value) for key, value in table.info()["operationMetrics"].items()}


DELETE_METRICS = {
    "numRemovedFiles",
    "numRemovedBytes",
    "numAddedFiles",
    "numAddedBytes",
    "numAddedChangeFiles",
    "numCopiedRows",
    "numDeletedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
    "executionTimeMs",
    "scanTimeMs",
    "rewriteTimeMs",
}


def test_everything(table):
    assert table.delta.delete() is None
    assert table.rows() == []
    added, removed = changed(table)
    assert (len(added), len(removed)) == (0, 6)
    info = table.info()
    assert info["operation"] == "DELETE"
    assert info["operationParameters"] == {"predicate": '["true"]'}
    assert info["readVersion"] == 1
    assert info["isBlindAppend"] is False
    found = metrics(table)
    assert found.keys() == DELETE_METRICS
    assert (found["numDeletedRows"], found["numCopiedRows"], found["numRemovedFiles"]) == (12, 0, 6)
    assert found["numRemovedBytes"] == sum(a["remove"]["size"] for a in table.actions() if "remove" in a)


def test_a_remove_tells_all_of_its_file(table):
    table.delta.delete()
    remove = next(a["remove"] for a in table.actions() if "remove" in a)
    assert remove["extendedFileMetadata"] is True
    assert remove["dataChange"] is True
    assert set(remove["partitionValues"]) == {"p"}
    assert remove["deletionTimestamp"] == pytest.approx(table.info()["timestamp"], abs=60_000)


@pytest.mark.one_case
@pytest.mark.parametrize(
    "condition",
    ["p = 1", "p + 5 = 6", "cast(p as string) = '1'", "P in (1, 7)", "p >= 1 and p < 2", lambda: F.col("p") == 1],
)
def test_partitions_go_by_metadata_alone(table, condition, monkeypatch):
    from tablelog.dml.change import touched_files as matching

    monkeypatch.setattr(matching, "touched_files", lambda *args: pytest.fail("no data may be read"))
    table.delta.delete(condition if isinstance(condition, str) else condition())
    assert table.rows("id") == [0, 2, 3, 5, 6, 8, 9, 11]
    added, removed = changed(table)
    assert (len(added), len(removed)) == (0, 2)
    found = metrics(table)
    assert (found["numDeletedRows"], found["numCopiedRows"], found["numAddedFiles"]) == (2 + 2, 0, 0)
    assert found["rewriteTimeMs"] == 0


def test_rows_are_found_and_only_their_files_rewritten(table):
    table.delta.delete("id = 4")
    assert table.rows("id") == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    added, removed = changed(table)
    assert (len(added), len(removed)) == (1, 1)
    assert all(path.startswith("p=1/") for path in (*added, *removed))
    found = metrics(table)
    assert found.keys() == DELETE_METRICS
    assert (found["numDeletedRows"], found["numCopiedRows"]) == (1, 1)
    assert found["numAddedBytes"] == sum(a["add"]["size"] for a in table.actions() if "add" in a)
    assert found["executionTimeMs"] >= found["scanTimeMs"]
    predicate = json.loads(table.info()["operationParameters"]["predicate"])
    assert len(predicate) == 1
    assert "id" in predicate[0]


def test_a_file_all_of_whose_rows_match_is_removed_not_rewritten(table):
    table.delta.delete("id in (1, 4, 7)")
    assert table.rows("id") == [0, 2, 3, 5, 6, 8, 9, 10, 11]
    added, removed = changed(table)
    assert (len(added), len(removed)) == (1, 2)
    assert metrics(table)["numDeletedRows"] == 3
    assert metrics(table)["numCopiedRows"] == 1


def test_partition_and_data_together(table):
    table.delta.delete("p = 1 and v > 10")
    assert table.rows("id") == [0, 1, 2, 3, 4, 5, 6, 8, 9, 11]
    assert len(changed(table)[1]) == 1


@pytest.mark.parametrize(
    "condition", ["id = 99", "p = 7", "p = 1 and id = 99", "false", "id > null", "cast(null as boolean)"]
)
def test_nothing_matched_nothing_committed(table, condition):
    table.delta.delete(condition)
    assert table.version == 1
    assert table.data_files() == table.logged_files()


def test_a_condition_that_holds_always(table):
    table.delta.delete("1 = 1")
    assert table.rows() == []
    assert changed(table)[0] == []
    table.delta.delete()
    assert table.version == 2


NULLS = [(1, None, "a"), (2, 5, None), (3, None, None), (4, 6, "b")]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("v = 5", [1, 3, 4]),
        ("v != 5", [1, 2, 3]),
        ("not (v = 5)", [1, 2, 3]),
        ("v is null", [2, 4]),
        ("v <=> null", [2, 4]),
        ("v not in (5, null)", [1, 2, 3, 4]),
        ("v = 5 or w = 'b'", [1, 3]),
        ("w is null and v is not null", [1, 3, 4]),
        ("coalesce(w, 'b') = 'b'", [1]),
        ("w", None),
    ],
)
@pytest.mark.parametrize("by", [(), ("v",)])
def test_three_valued_logic(spark, tmp_path, condition, left, by):
    table = Table(spark, tmp_path / "nulls")
    table.write(spark.createDataFrame(NULLS, "id int, v int, w string").coalesce(1), by=by)
    if left is None:
        with pytest.raises(AnalysisException):
            table.delta.delete(condition)
        return
    table.delta.delete(condition)
    assert table.rows("id") == left


@pytest.mark.slow
def test_a_condition_may_use_the_alias(table):
    table.delta.alias("t").delete("t.id = 4")
    table.delta.alias("t").delete(F.col("t.id") == 5)
    table.delta.delete(table.delta.toDF()["id"] == 6)
    assert table.rows("id") == [0, 1, 2, 3, 7, 8, 9, 10, 11]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        table.delta.alias("t").delete("s.id = 4")


def test_nested_columns_and_functions(spark, tmp_path):
    table = Table(spark, tmp_path / "nested")
    frame = spark.sql("SELECT named_struct('a', id, 'b', array(id, id + 1)) AS s, map('k', id) AS m, id FROM range(6)")
    table.write(frame.coalesce(1))
    table.delta.delete("s.a = 1 or array_contains(s.b, 3) or m['k'] = 5")
    assert table.rows("id") == [0, 4]


def test_names_that_need_quoting(spark, tmp_path):
    table = Table(spark, tmp_path / "quoted")
    table.write(spark.range(4).selectExpr("id as `a.b`", "id % 2 as `p-q`"), by=("p-q",))
    table.delta.delete("`a.b` = 1")
    table.delta.delete("`p-q` = 0")
    assert table.rows("`a.b`") == [3]


def test_conditions_that_are_refused(table):
    with pytest.raises(InvalidArgumentError, match="deterministic"):
        table.delta.delete("rand() > 0.5")
    with pytest.raises(InvalidArgumentError, match="deterministic"):
        table.delta.delete("p = 1 and rand() > 0.5")
    with pytest.raises(UnsupportedFeatureError, match="subquery"):
        table.delta.delete("id in (select max(id) from range(3))")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        table.delta.delete("nope = 1")
    with pytest.raises(AnalysisException):
        table.delta.delete("id")
    with pytest.raises(TypeError, match="int"):
        table.delta.delete(4)
    assert table.version == 1


def test_append_only_tables_refuse_it_before_any_work(spark, tmp_path):
    table = Table(spark, tmp_path / "log")
    table.write(spark.range(3), **{"delta.appendOnly": "true"})
    for condition in (None, "id = 1", "id = 77"):
        with pytest.raises(AppendOnlyTableError, match=r"delta\.appendOnly"):
            table.delta.delete(condition)
    assert table.version == 0


def test_no_table(spark, tmp_path):
    with pytest.raises(TableNotFoundError, match="not a Delta table"):
        DeltaTable.forPath(spark, str(tmp_path))


def test_files_with_no_statistics_are_counted_by_reading(spark, tmp_path):
    table = Table(spark, tmp_path / "bare")
    table.write(spark.range(4).coalesce(1))
    log = table.root / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for crc in (table.root / "_delta_log").glob("*.crc"):
        crc.unlink()
    from tablelog.spark import conf

    conf.forget()
    table.delta.delete("id = 1")
    assert table.rows() == [0, 2, 3]
    assert (metrics(table)["numDeletedRows"], metrics(table)["numCopiedRows"]) == (1, 3)
    table.delta.delete("id >= 0")
    assert table.rows() == []


def test_metrics_of_rows_are_left_out_where_nobody_counted(spark, tmp_path):
    from tablelog.core.protocol.actions import AddFile, Metadata
    from tablelog.core.txn.operation import Operation
    from tablelog.dml.change.delete import delete

    log = DeltaLog.for_path(str(tmp_path / "bare"))
    txn = log.transaction()
    txn.set_metadata(Metadata("0b0e0000-0000-4000-8000-000000000000", spark.range(1).schema.json()))
    txn.commit([AddFile("no-such-file.parquet", {}, 10, 1, True)], Operation("WRITE"))
    done = delete(spark, log)
    assert done is not None
    assert done.committed is not None
    assert done.rows is None
    found = done.committed.commit_info.operation_metrics
    assert found["numRemovedFiles"] == "1"
    assert not {"numDeletedRows", "numCopiedRows"} & found.keys()


def test_nothing_stays_of_a_delete_that_fails(table, monkeypatch):
    from tablelog.core.txn.transaction import Transaction

    def fail(self, *args, **kwargs):
        raise OSError("the disk is on fire")

    monkeypatch.setattr(Transaction, "commit", fail)
    with pytest.raises(OSError, match="on fire"):
        table.delta.delete("id = 4")
    assert table.data_files() == table.logged_files()


class TestConflicts:
    """Another commit lands between what a DELETE read and its own commit."""

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        from tablelog.core.txn.transaction import Transaction

        commit = Transaction.commit

        def arrange(action):
            def act_first(self, *args, **kwargs):
                monkeypatch.setattr(Transaction, "commit", commit)
                action()
                return commit(self, *args, **kwargs)

            monkeypatch.setattr(Transaction, "commit", act_first)

        return arrange

    def test_a_delete_of_the_same_file(self, table, meanwhile):
        meanwhile(lambda: table.delta.delete("id = 1"))
        with pytest.raises((ConcurrentDeleteReadException, ConcurrentDeleteDeleteException, ConcurrentAppendException)):
            table.delta.delete("id = 4")
        assert 4 in table.rows("id")
        assert table.data_files() == table.logged_files()

    def test_a_delete_in_another_partition(self, table, meanwhile):
        meanwhile(lambda: table.delta.delete("p = 2 and id = 2"))
        table.delta.delete("p = 1 and id = 4")
        assert table.rows("id") == [0, 1, 3, 5, 6, 7, 8, 9, 10, 11]

    def test_an_append_to_the_partition_that_was_read(self, table, meanwhile):
        frame = table.spark.sql("SELECT 4L AS id, 1L AS p, 8L AS v")
        meanwhile(lambda: table.write(frame))
        with pytest.raises(ConcurrentAppendException, match="p=1"):
            table.delta.delete("p = 1")
        assert table.rows("id").count(4) == 2

    def test_an_append_to_another_partition(self, table, meanwhile):
        frame = table.spark.sql("SELECT 5L AS id, 2L AS p, 8L AS v")
        meanwhile(lambda: table.write(frame))
        table.delta.delete("p = 1")
        assert table.rows("id") == [0, 2, 3, 5, 5, 6, 8, 9, 11]

    def test_an_append_under_write_serializable(self, spark, tmp_path, meanwhile):
        table = Table(spark, tmp_path / "relaxed")
        table.write(spark.range(4), **{"delta.isolationLevel": "WriteSerializable"})
        meanwhile(lambda: table.write(spark.range(1)))
        table.delta.delete("id = 0")
        assert table.rows() == [0, 1, 2, 3]
