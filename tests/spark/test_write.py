"""Creating and appending: modes, layout, options, what the commit says, and that failures leave nothing behind."""

import datetime as dt

import pytest
from pyspark.sql import functions as F

from tablelog.errors import (
    CommitStateUnknownError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
)
from tablelog.settings.unsupported import UNSUPPORTED
from tablelog.spark import DeltaTable


@pytest.fixture
def numbers(spark):
    return spark.range(10).withColumn("p", F.col("id") % 3)


def test_the_first_write_makes_the_table(table, numbers):
    table.write(
        numbers, "error", by=("p",), userMetadata="first", comment="numbers", **{"delta.checkpointInterval": "7"}
    )
    kinds = [next(iter(action)) for action in table.actions(0)]
    assert kinds == ["commitInfo", "protocol", "metaData", "add", "add", "add"]
    info = table.info(0)
    assert info["operation"] == "WRITE"
    assert info["operationParameters"] == {"mode": "ErrorIfExists", "partitionBy": '["p"]'}
    assert {key: info["operationMetrics"][key] for key in ("numFiles", "numOutputRows")} == {
        "numFiles": "3",
        "numOutputRows": "10",
    }
    assert int(info["operationMetrics"]["numOutputBytes"]) == sum(
        action["add"]["size"] for action in table.actions(0) if "add" in action
    )
    assert info["userMetadata"] == "first"
    assert info["isBlindAppend"] is True
    assert "readVersion" not in info
    detail = table.delta.detail().first()
    assert detail.partitionColumns == ["p"]
    assert detail.properties == {"delta.checkpointInterval": "7"}
    assert detail.description == "numbers"
    assert (detail.minReaderVersion, detail.minWriterVersion) == (1, 2)
    assert all(field.nullable for field in table.read().schema)


def test_error_and_ignore_when_a_table_is_there(table, numbers):
    table.write(numbers)
    with pytest.raises(TableAlreadyExistsError, match="append or overwrite"):
        numbers.write.format("delta").save(table.path)
    table.write(numbers, "ignore")
    assert table.version == 0
    assert table.data_files() == table.logged_files()


def test_ignore_makes_a_table_where_there_is_none(table, numbers):
    table.write(numbers, "ignore")
    assert table.read().count() == 10


def test_an_append_follows_the_table_s_layout(table, numbers):
    table.write(numbers, by=("p",))
    table.write(numbers.select("p", "id"))
    assert table.read().columns == ["id", "p"]
    assert table.read().count() == 20
    assert all(action["add"]["path"].startswith("p=") for action in table.actions(1) if "add" in action)
    table.write(numbers, by=("P",))
    with pytest.raises(SchemaMismatchError, match=r"\['id'\].*\['p'\]"):
        table.write(numbers, by=("id",))
    assert table.version == 2


def test_an_append_of_no_rows_commits_nothing(table, numbers):
    table.write(numbers)
    table.write(numbers.where("id < 0"))
    assert table.version == 0
    assert table.data_files() == table.logged_files()


def test_a_table_may_begin_with_no_rows(table, numbers):
    table.write(numbers.where("id < 0"))
    assert table.read().count() == 0
    assert table.read().columns == ["id", "p"]
    table.write(numbers)
    assert table.read().count() == 10


@pytest.mark.parametrize(
    ("by", "words"),
    [(("zz",), "'zz'"), (("id", "p"), "every column|column that is not"), (("p", "P"), "twice|ambiguous")],
)
def test_partition_columns_that_can_not_be(table, numbers, by, words):
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match=words):
        table.write(numbers, by=by)
    assert not table.root.exists() or table.data_files() == set()


def test_a_frame_with_no_columns_makes_no_table(spark, table):
    with pytest.raises(SchemaMismatchError, match="no columns"):
        table.write(spark.range(1).select())


def test_columns_go_by_name_and_case_by_spark_s_setting(spark, table, numbers):
    table.write(numbers)
    table.write(spark.createDataFrame([(7, 100)], "P bigint, ID bigint"))
    assert (100, 7) in table.rows("id", "p")
    with pytest.raises(SchemaMismatchError, match="x int"):
        table.write(numbers.withColumn("x", F.lit(1)))
    table.write(numbers.select("id"))
    assert table.read().where("p is null").count() == 10


def test_merging_a_schema(spark, table, numbers, conf):
    table.write(numbers, by=("p",))
    table.write(numbers.selectExpr("id", "p", "'a' as word"), mergeSchema=True)
    assert table.read().columns == ["id", "p", "word"]
    assert table.info()["operationParameters"]["canMergeSchema"] is True
    assert [row.word for row in table.read().where("id = 1").orderBy("word").collect()] == [None, "a"]
    with pytest.raises(SchemaMismatchError, match="more"):
        table.write(numbers.selectExpr("id", "p", "1 as more"))
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    table.write(numbers.selectExpr("id", "p", "1 as more"))
    assert table.read().columns == ["id", "p", "word", "more"]
    table.write(numbers)
    assert table.read().count() == 40
    assert "metaData" not in [next(iter(action)) for action in table.actions()]


def test_not_null_columns_are_enforced(spark, table):
    from tablelog.core import DeltaLog
    from tablelog.core.protocol.actions import Metadata
    from tablelog.core.txn.operation import Operation

    schema = spark.createDataFrame([(1, "a")], "id int not null, word string").schema.json()
    log = DeltaLog.for_path(table.path)
    txn = log.transaction()
    txn.set_metadata(Metadata("fb5d7bbc-0000-4000-8000-000000000000", schema))
    txn.commit([], Operation("CREATE TABLE"))
    table.write(spark.createDataFrame([(1, None)], "id int, word string"))
    with pytest.raises(ConstraintViolationError, match="id"):
        table.write(spark.createDataFrame([(None, "b")], "id int, word string"))
    with pytest.raises(ConstraintViolationError, match="id"):
        table.write(spark.createDataFrame([("b",)], "word string"))
    assert table.rows() == [(1, None)]
    assert table.data_files() == table.logged_files()


def test_idempotent_writes(table, numbers):
    table.write(numbers, txnAppId="app", txnVersion=3)
    assert [action["txn"]["version"] for action in table.actions() if "txn" in action] == [3]
    for version in (3, 2):
        table.write(numbers, txnAppId="app", txnVersion=version)
    assert table.version == 0
    table.write(numbers, txnAppId="other", txnVersion=1)
    table.write(numbers, "overwrite", txnAppId="app", txnVersion=4)
    assert table.version == 2
    assert table.read().count() == 10
    table.write(numbers, "error", txnAppId="app", txnVersion=4)  # done before: not even an error, as in Delta
    assert table.version == 2


def test_the_session_s_transaction_is_reset_where_it_says_so(spark, table, numbers, conf):
    prefix = "spark.databricks.delta.write."
    conf(prefix + "txnAppId", "app")
    conf(prefix + "txnVersion", "1")
    conf(prefix + "txnVersion.autoReset.enabled", "true")
    table.write(numbers)
    assert spark.conf.get(prefix + "txnVersion", None) is None
    spark.conf.set(prefix + "txnVersion", "1")
    table.delta.delete("id = 1")
    assert table.version == 0
    assert spark.conf.get(prefix + "txnVersion", None) is None


def test_user_metadata_from_the_session(table, numbers, conf):
    conf("spark.databricks.delta.commitInfo.userMetadata", "from the session")
    table.write(numbers)
    assert table.info()["userMetadata"] == "from the session"
    table.write(numbers, userMetadata="own")
    assert table.info()["userMetadata"] == "own"
    table.delta.delete("id = 0")
    assert table.info()["userMetadata"] == "from the session"


def test_files_as_the_options_want_them(table, numbers):
    import pyarrow.parquet as pq

    table.write(numbers.coalesce(1), maxRecordsPerFile=4, compression="gzip")
    files = sorted(table.logged_files())
    assert len(files) == 3
    metadata = pq.read_metadata(table.root / files[0])
    assert metadata.row_group(0).column(0).compression == "GZIP"
    with pytest.raises(InvalidArgumentError, match="nothing-known"):
        table.write(numbers, compression="nothing-known")
    with pytest.raises(InvalidArgumentError, match="maxRecordsPerFile"):
        table.write(numbers, maxRecordsPerFile="many")


def test_default_properties_of_the_session(table, numbers, conf):
    conf("spark.databricks.delta.properties.defaults.appendOnly", "true")
    table.write(numbers)
    assert table.delta.detail().first().properties == {"delta.appendOnly": "true"}


def test_settings_of_delta_with_no_effect_are_told_once(table, numbers, conf, caplog):
    key = "spark.databricks.delta.merge.optimizeInsertOnlyMerge.enabled"
    conf(key, "false")
    for _ in range(2):
        table.write(numbers)
    told = [r.getMessage() for r in caplog.records if key in r.getMessage()]
    why = UNSUPPORTED[key].why
    assert told == [f"{key} is set, but has no effect in this version of tablelog: {why}."]


def test_properties_given_for_a_table_that_exists_are_told_to_change_nothing(table, numbers, caplog):
    table.write(numbers)
    table.write(numbers, **{"delta.appendOnly": "true"})
    assert table.delta.detail().first().properties == {}
    assert "delta.appendOnly" in caplog.text


def test_features_asked_for_by_property_are_not_stored_as_properties(table, numbers):
    table.write(numbers, **{"delta.feature.vacuumProtocolCheck": "supported", "delta.appendOnly": "false"})
    detail = table.delta.detail().first()
    assert detail.properties == {"delta.appendOnly": "false"}
    assert "vacuumProtocolCheck" in detail.tableFeatures


def test_parquet_files_in_the_directory_stay_and_the_table_does_not_see_them(spark, table, numbers):
    numbers.write.parquet(table.path)
    before = table.data_files()
    table.write(numbers)
    assert table.read().count() == 10
    assert before <= table.data_files()


def test_nothing_stays_of_a_write_that_fails_in_spark(spark, table, numbers):
    table.write(numbers)
    large = spark.range(0, 30_000, 1, 2).selectExpr("id", "if(id = 29999, raise_error('stop'), id) as p")
    with pytest.raises(Exception, match="stop"):
        table.write(large)
    assert table.version == 0
    assert table.data_files() == table.logged_files()


def test_nothing_stays_of_a_write_whose_commit_fails(table, numbers, monkeypatch):
    from tablelog.core.txn.transaction import Transaction

    table.write(numbers)
    written = []

    def fail(self, *args, **kwargs):
        written.extend(table.data_files() - table.logged_files())
        raise OSError("the disk is on fire")

    monkeypatch.setattr(Transaction, "commit", fail)
    with pytest.raises(OSError, match="on fire"):
        table.write(numbers)
    assert written
    assert table.data_files() == table.logged_files()


def test_files_stay_when_nobody_knows_whether_they_are_committed(table, numbers, monkeypatch):
    from tablelog.core.txn import commit_loop
    from tablelog.core.txn.commit import Unknown

    table.write(numbers)
    monkeypatch.setattr(commit_loop, "attempt", lambda *arguments, **keywords: Unknown("no answer"))
    with pytest.raises(CommitStateUnknownError):
        table.write(numbers)
    assert table.data_files() > table.logged_files()


def test_files_stay_when_an_error_follows_the_commit(table, numbers, monkeypatch):
    from tablelog.core.txn.transaction import Transaction

    table.write(numbers)
    commit = Transaction.commit

    def commit_and_fail(self, *args, **kwargs):
        commit(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "commit", commit_and_fail)
    with pytest.raises(KeyboardInterrupt):
        table.write(numbers)
    assert table.version == 1
    assert table.read().count() == 20


def test_time_of_the_table_s_creation(table, numbers):
    before = dt.datetime.now()
    table.write(numbers)
    created = DeltaTable.forPath(table.spark, table.path).detail().first().createdAt
    assert abs((created - before).total_seconds()) < 120
