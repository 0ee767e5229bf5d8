"""Overwriting: all of a table, its schema, partitions, what a condition says; rearranging; reading what is replaced."""

import pytest
from pyspark.sql import functions as F

from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentDeleteReadException,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
)


@pytest.fixture
def numbers(spark):
    return spark.range(10).withColumn("p", F.col("id") % 3)


def test_overwrite_replaces_all(table, numbers):
    table.write(numbers, by=("p",))
    removed = table.logged_files()
    table.write(numbers.where("id < 3"), "overwrite")
    assert table.rows("id") == [0, 1, 2]
    assert table.rows("id", versionAsOf=0) == list(range(10))
    metrics = table.info()["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numFiles"]) == ("3", "3")
    assert int(metrics["numRemovedBytes"]) == sum((table.root / name).stat().st_size for name in removed)
    assert table.info()["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]"}


def test_overwrite_by_nothing_empties_the_table(table, numbers):
    table.write(numbers)
    table.write(numbers.where("id < 0"), "overwrite")
    assert table.rows() == []
    assert table.version == 1
    table.write(numbers.where("id < 0"), "overwrite")
    assert table.version == 1


def test_overwrite_of_what_is_not_there_makes_it(table, numbers):
    table.write(numbers, "overwrite", replaceWhere="id >= 0", by=("p",))
    assert table.read().count() == 10


def test_a_table_may_be_read_and_overwritten_in_one_statement(table, numbers):
    table.write(numbers, by=("p",))
    table.write(table.read().where("id < 5").withColumn("id", F.col("id") + 100), "overwrite")
    assert table.rows("id") == [100, 101, 102, 103, 104]
    doubled = table.read().unionByName(table.read())
    table.write(doubled, "overwrite")
    assert table.rows("id") == sorted([100, 101, 102, 103, 104] * 2)
    table.write(table.read().where("id in (select max(id) from range(101))"), "append")
    assert table.rows("id").count(100) == 4


def test_a_version_that_the_user_chose_is_written_back_as_it_was(table, numbers):
    table.write(numbers)
    table.write(numbers.where("id = 1"), "overwrite")
    table.write(table.read(versionAsOf=0), "overwrite")
    assert table.rows("id") == list(range(10))


def test_an_overwrite_from_itself_never_loses_a_concurrent_append(table, numbers, monkeypatch):
    from tablelog.dml.change import write as module

    table.write(numbers)
    write_files = module.writer.write_files

    def append_first(*args, **kwargs):
        monkeypatch.setattr(module.writer, "write_files", write_files)
        table.write(table.spark.range(100, 101).withColumn("p", F.lit(0)))
        return write_files(*args, **kwargs)

    monkeypatch.setattr(module.writer, "write_files", append_first)
    table.write(table.read().repartition(1), "overwrite", dataChange=False)
    assert table.rows("id") == [*range(10), 100]
    assert table.version == 2


def test_a_compaction_conflicts_with_a_concurrent_delete(table, numbers, monkeypatch):
    from tablelog.dml.change import write as module

    table.write(numbers)
    write_files = module.writer.write_files

    def delete_first(*args, **kwargs):
        monkeypatch.setattr(module.writer, "write_files", write_files)
        table.delta.delete("id = 3")
        return write_files(*args, **kwargs)

    monkeypatch.setattr(module.writer, "write_files", delete_first)
    with pytest.raises(ConcurrentDeleteReadException):
        table.write(table.read().repartition(1), "overwrite", dataChange=False)
    assert table.rows("id") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert table.data_files() == table.logged_files()


def test_compaction_changes_no_data(table, numbers):
    for _ in range(3):
        table.write(numbers)
    table.write(table.read().repartition(1), "overwrite", dataChange="false")
    changes = [next(iter(a.values()))["dataChange"] for a in table.actions() if "add" in a or "remove" in a]
    assert changes
    assert not any(changes)
    assert table.info()["isolationLevel"] == "SnapshotIsolation"
    assert table.read().count() == 30


def test_rearranging_can_neither_make_a_table_nor_change_its_schema(table, numbers):
    with pytest.raises(InvalidArgumentError, match="can't create a table"):
        table.write(numbers, dataChange=False)
    table.write(numbers, by=("p",))
    with pytest.raises(InvalidArgumentError, match="schema or the partitioning"):
        table.write(numbers.withColumn("x", F.lit(1)), "overwrite", dataChange=False, mergeSchema=True)
    with pytest.raises(InvalidArgumentError, match="partition columns only"):
        table.write(numbers.where("id = 1"), "overwrite", dataChange=False, replaceWhere="id = 1")
    table.write(table.read().where("p = 1").repartition(1), "overwrite", dataChange=False, replaceWhere="p = 1")
    assert table.read().count() == 10


def test_overwriting_the_schema_and_the_partitioning(table, numbers):
    table.write(numbers, by=("p",))
    with pytest.raises(SchemaMismatchError):
        table.write(numbers.selectExpr("id", "'a' as word"), "overwrite")
    with pytest.raises(SchemaMismatchError, match="overwriteSchema"):
        table.write(numbers, "overwrite", by=("id",))
    table.write(numbers.selectExpr("id", "'a' as word"), "overwrite", overwriteSchema=True)
    assert table.read().columns == ["id", "word"]
    assert table.delta.detail().first().partitionColumns == []
    assert table.info()["operationParameters"]["canOverwriteSchema"] is True
    table.write(numbers, "overwrite", overwriteSchema=True, by=("p",))
    assert table.delta.detail().first().partitionColumns == ["p"]
    assert table.rows("id") == list(range(10))
    assert table.rows("id", versionAsOf=1) == list(range(10))


def test_a_type_changes_by_overwriting_the_schema(table, spark):
    table.write(spark.createDataFrame([(1,)], "id int"))
    table.write(spark.createDataFrame([("a",)], "id string"), "overwrite", overwriteSchema=True)
    assert table.rows() == ["a"]
    assert table.rows(versionAsOf=0) == [1]


class TestDynamicPartitions:
    def test_only_partitions_written_to_are_replaced(self, table, numbers):
        table.write(numbers, by=("p",))
        table.write(numbers.where("id = 4"), "overwrite", partitionOverwriteMode="dynamic")
        assert table.rows("id") == [0, 2, 3, 4, 5, 6, 8, 9]
        assert table.info()["operationParameters"] == {
            "mode": "Overwrite",
            "partitionBy": "[]",
            "isDynamicPartitionOverwrite": True,
        }
        assert table.info()["operationMetrics"]["numRemovedFiles"] == "1"

    def test_by_the_session(self, table, numbers, conf):
        conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
        table.write(numbers, by=("p",))
        table.write(numbers.where("id = 4"), "overwrite")
        assert table.read().count() == 8
        table.write(numbers.where("id = 4"), "overwrite", partitionOverwriteMode="static")
        assert table.rows("id") == [4]

    def test_nulls_several_columns_and_no_rows(self, table, spark):
        schema = "id int, a string, b date"
        rows = "VALUES (1, null, date'2024-01-01'), (2, 'x', null), (3, null, null), (4, 'x', date'2024-01-01')"
        frame = spark.sql(f"SELECT int(col1) AS id, col2 AS a, col3 AS b FROM {rows}")
        table.write(frame, by=("a", "b"))
        table.write(
            frame.where("id in (1, 3)").withColumn("id", F.col("id") * 10),
            "overwrite",
            partitionOverwriteMode="dynamic",
        )
        assert table.rows("id") == [2, 4, 10, 30]
        table.write(spark.createDataFrame([], schema), "overwrite", partitionOverwriteMode="dynamic")
        assert table.rows("id") == [2, 4, 10, 30]

    def test_a_table_with_no_partitions_is_replaced_whole(self, table, numbers):
        table.write(numbers)
        table.write(numbers.where("id = 1"), "overwrite", partitionOverwriteMode="dynamic")
        assert table.rows("id") == [1]

    def test_not_together_with_a_new_schema(self, table, numbers):
        table.write(numbers, by=("p",))
        with pytest.raises(InvalidArgumentError, match="overwriteSchema"):
            table.write(numbers, "overwrite", by=("p",), partitionOverwriteMode="dynamic", overwriteSchema=True)
        with pytest.raises(InvalidArgumentError, match="overwriteSchema"):  # without partitions it would replace all
            table.write(numbers.where("p = 1"), "overwrite", partitionOverwriteMode="dynamic", overwriteSchema=True)
        assert len(table.rows("id")) == numbers.count()

    def test_a_condition_of_an_append_is_refused(self, table, numbers):
        table.write(numbers)
        with pytest.raises(InvalidArgumentError, match="replaceWhere"):
            table.write(numbers, "append", replaceWhere="id < 2")
        assert len(table.rows("id")) == numbers.count()

    def test_writers_of_different_partitions_do_not_conflict(self, table, numbers, monkeypatch):
        from tablelog.core.txn.transaction import Transaction

        table.write(numbers, by=("p",))
        commit = Transaction.commit

        def other_first(self, *args, **kwargs):
            monkeypatch.setattr(Transaction, "commit", commit)
            table.write(numbers.where("id = 2"), "overwrite", partitionOverwriteMode="dynamic")
            return commit(self, *args, **kwargs)

        monkeypatch.setattr(Transaction, "commit", other_first)
        table.write(numbers.where("id = 4"), "overwrite", partitionOverwriteMode="dynamic")
        assert table.rows("id") == [0, 2, 3, 4, 6, 9]


class TestReplaceWhere:
    def test_partitions_by_metadata_alone(self, table, numbers):
        table.write(numbers, by=("p",))
        table.write(numbers.where("p = 1 and id > 1"), "overwrite", replaceWhere="p = 1")
        assert table.rows("id") == [0, 2, 3, 4, 5, 6, 7, 8, 9]
        info = table.info()
        assert info["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "p = 1"}
        expected = {
            "numFiles": "1",
            "numRemovedFiles": "1",
            "numCopiedRows": "0",
            "numAddedChangeFiles": "0",
            "numDeletedRows": "3",
            "numOutputRows": "2",
        }
        assert {key: info["operationMetrics"][key] for key in expected} == expected

    def test_rows_by_rewriting_the_files_that_hold_them(self, table, numbers):
        table.write(numbers, by=("p",))
        table.write(numbers.where("id = 4").selectExpr("id", "p"), "overwrite", replaceWhere="id = 4")
        assert table.rows("id") == list(range(10))
        metrics = table.info()["operationMetrics"]
        assert (metrics["numFiles"], metrics["numRemovedFiles"]) == ("2", "1")
        assert (metrics["numCopiedRows"], metrics["numDeletedRows"], metrics["numOutputRows"]) == ("2", "1", "3")

    def test_files_that_stay_with_a_deletion_vector_count_as_written(self, table, numbers):
        table.write(numbers.coalesce(1), **{"delta.enableDeletionVectors": "true"})
        table.write(numbers.where("id = 4").coalesce(1), "overwrite", replaceWhere="id = 4")
        metrics = table.info()["operationMetrics"]
        assert (metrics["numFiles"], metrics["numRemovedFiles"]) == ("2", "0")
        assert (metrics["numCopiedRows"], metrics["numDeletedRows"], metrics["numOutputRows"]) == ("9", "1", "10")

    def test_rows_for_which_the_condition_is_null_stay(self, table, spark):
        table.write(spark.createDataFrame([(1, None), (2, 5), (3, 6)], "id int, v int"))
        table.write(spark.createDataFrame([(9, 5)], "id int, v int"), "overwrite", replaceWhere="v = 5")
        assert table.rows("id") == [1, 3, 9]

    @pytest.mark.parametrize("condition", ["id = 4", "p = 1", "p = 1 and id = 4", "id > null"])
    def test_data_that_does_not_match_is_refused(self, table, numbers, condition):
        table.write(numbers, by=("p",))
        with pytest.raises(ConstraintViolationError, match="replaceWhere"):
            table.write(numbers, "overwrite", replaceWhere=condition)
        assert table.version == 0
        assert table.data_files() == table.logged_files()

    def test_the_frame_s_own_filters_come_before_the_check(self, table, numbers, spark):
        table.write(numbers)
        one = spark.range(4, 5)
        table.write(numbers.where("p = 1").join(one, "id"), "overwrite", replaceWhere="id = 4")
        assert table.rows("id") == list(range(10))

    def test_nothing_to_replace_is_an_append(self, table, numbers):
        table.write(numbers)
        table.write(numbers.withColumn("id", F.lit(77).cast("long")).limit(1), "overwrite", replaceWhere="id = 77")
        assert table.rows("id") == [*range(10), 77]

    def test_bad_conditions(self, table, numbers):
        table.write(numbers)
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            table.write(numbers, "overwrite", replaceWhere="nope = 4")
        with pytest.raises(InvalidArgumentError, match="deterministic"):
            table.write(numbers, "overwrite", replaceWhere="rand() >= 0")
        assert table.version == 0
        assert table.data_files() == table.logged_files()

    def test_the_session_may_forbid_data_columns_and_do_without_the_check(self, table, numbers, conf):
        table.write(numbers, by=("p",))
        prefix = "spark.databricks.delta.replaceWhere."
        conf(prefix + "dataColumns.enabled", "false")
        with pytest.raises(InvalidArgumentError, match=r"dataColumns\.enabled is false"):
            table.write(numbers.where("id = 4"), "overwrite", replaceWhere="id = 4")
        conf(prefix + "constraintCheck.enabled", "false")
        table.write(numbers.where("id = 3"), "overwrite", replaceWhere="p = 1")
        assert table.rows("id") == [0, 2, 3, 3, 5, 6, 8, 9]

    def test_a_new_column_by_merging(self, table, numbers):
        table.write(numbers)
        table.write(
            numbers.where("id = 4").withColumn("x", F.lit(1)), "overwrite", replaceWhere="id = 4", mergeSchema=True
        )
        assert table.rows("id") == list(range(10))
        assert [row.x for row in table.read().where("x is not null").collect()] == [1]

    def test_the_schema_is_not_overwritten(self, table, numbers):
        table.write(numbers)
        with pytest.raises(SchemaMismatchError):
            table.write(
                numbers.where("id = 4").withColumn("x", F.lit(1)),
                "overwrite",
                replaceWhere="id = 4",
                overwriteSchema=True,
            )


def test_append_only_tables_are_not_overwritten(table, numbers):
    table.write(numbers, **{"delta.appendOnly": "true"})
    for options in ({}, {"dataChange": "false"}, {"replaceWhere": "id = 1"}):
        with pytest.raises(AppendOnlyTableError, match=r"delta\.appendOnly"):
            table.write(numbers, "overwrite", **options)
    table.write(numbers)
    assert table.read().count() == 20
    assert table.data_files() == table.logged_files()


def test_cached_frames_see_what_was_committed(table, numbers):
    table.write(numbers)
    cached = table.read().cache()
    old = table.read(versionAsOf=0).cache()
    try:
        assert (cached.count(), old.count()) == (10, 10)
        table.write(numbers)
        assert (cached.count(), old.count()) == (20, 10)
        table.delta.delete("id < 5")
        assert (cached.count(), old.count()) == (10, 10)
    finally:
        cached.unpersist()
        old.unpersist()


def test_what_the_user_cached_is_what_is_written(table, numbers):
    table.write(numbers)
    frozen = table.read().withColumn("r", F.rand()).where("id < 5").cache()
    try:
        values = sorted(row.r for row in frozen.collect())
        table.write(frozen, "overwrite", overwriteSchema=True)
        assert sorted(row.r for row in table.read().collect()) == values
    finally:
        frozen.unpersist()
