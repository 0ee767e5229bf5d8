"""Options and modes, with no Spark: what is accepted, what is refused, what the session's configuration adds."""

import logging
from uuid import uuid4

import pytest

from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError
from tablelog.spark.options import ChangeRange, Options, mode_name, read_options, write_request


def request(given: dict[str, str] | None = None, conf: dict[str, str] | None = None, mode: str = "Append"):
    return write_request(Options(given or {}), conf or {}, mode=mode)


def test_keys_have_no_case():
    wanted = request({"MERGEschema": "True", "USERMETADATA": "hello", "TXNappid": "a", "txnVERSION": "7"})
    assert wanted.merge_schema
    assert wanted.commit.user_metadata == "hello"
    assert wanted.commit.transaction == ("a", 7)


@pytest.mark.parametrize("name", ["mergeSchema", "overwriteSchema", "dataChange", "optimizeWrite"])
def test_a_boolean_is_true_or_false(name):
    with pytest.raises(InvalidArgumentError, match=f"'maybe' for option '{name}', must be 'true' or 'false'"):
        request({name: "maybe"})


@pytest.mark.parametrize("given", [{"txnAppId": "a"}, {"txnVersion": "1"}])
def test_an_idempotent_write_needs_both_options(given):
    with pytest.raises(InvalidArgumentError, match="both txnAppId and txnVersion"):
        request(given)


@pytest.mark.parametrize("name", ["versionAsOf", "TimestampAsOf"])
def test_a_write_selects_no_version(name):
    with pytest.raises(InvalidArgumentError, match=f"(?i)for option '{name}', only a read selects a version"):
        request({name: "0"})


@pytest.mark.parametrize("version", ["-1", "x", "1.5", ""])
def test_a_txn_version_is_an_integer_from_zero_on(version):
    with pytest.raises(InvalidArgumentError, match="txnVersion"):
        request({"txnAppId": "a", "txnVersion": version})


def test_the_session_may_name_the_transaction_and_the_options_win():
    session = {
        "spark.databricks.delta.write.txnAppId": "session",
        "spark.databricks.delta.write.txnVersion": "1",
    }
    assert request({}, session).commit.transaction == ("session", 1)
    assert request({"txnAppId": "own", "txnVersion": "2"}, session).commit.transaction == ("own", 2)


def test_the_session_may_turn_on_schema_merging_and_the_option_wins():
    session = {"spark.databricks.delta.schema.autoMerge.enabled": "true"}
    assert request({}, session).merge_schema
    assert not request({"mergeSchema": "false"}, session).merge_schema


def test_user_metadata_of_the_option_wins_over_the_session():
    session = {"spark.databricks.delta.commitInfo.userMetadata": "session"}
    assert request({}, session).commit.user_metadata == "session"
    assert request({"userMetadata": "own"}, session).commit.user_metadata == "own"


def test_partition_overwrite_mode_comes_from_the_option_or_the_session():
    session = {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}
    assert request({}, session).dynamic_partitions
    assert not request({"partitionOverwriteMode": "static"}, session).dynamic_partitions
    assert not request({"replaceWhere": "a = 1"}, session, "Overwrite").dynamic_partitions, (
        "the query wins over the session"
    )
    with pytest.raises(InvalidArgumentError, match="can't both be set"):
        request({"replaceWhere": "a = 1", "partitionOverwriteMode": "dynamic"}, mode="Overwrite")
    with pytest.raises(InvalidArgumentError, match="must be 'STATIC' or 'DYNAMIC'"):
        request({"partitionOverwriteMode": "some"})
    with pytest.raises(InvalidArgumentError, match=r"dynamicPartitionOverwrite\.enabled is"):
        request({}, {**session, "spark.databricks.delta.dynamicPartitionOverwrite.enabled": "false"})


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("append", "Append"),
        ("OVERWRITE", "Overwrite"),
        ("error", "ErrorIfExists"),
        ("errorifexists", "ErrorIfExists"),
        ("default", "ErrorIfExists"),
        ("Ignore", "Ignore"),
    ],
)
def test_modes_by_every_name_of_spark(mode, name):
    assert mode_name(mode) == name


def test_an_unknown_mode_is_refused():
    with pytest.raises(InvalidArgumentError, match="'upsert'"):
        mode_name("upsert")


@pytest.mark.parametrize("name", ["replaceOn", "replaceUsing", "targetAlias", "writePartitionColumns"])
def test_what_is_not_built_is_refused_by_name(name):
    with pytest.raises(UnsupportedFeatureError, match=name):
        request({name: "true"})


def test_a_change_feed_needs_a_start_and_no_time_travel():
    wanted = read_options(Options({"readChangeFeed": "true", "startingVersion": "3", "endingTimestamp": "2024-01-01"}))
    assert wanted.changes == ChangeRange(3, "2024-01-01")
    for options, why in (
        ({}, "No startingVersion or startingTimestamp"),
        ({"startingVersion": "0", "startingTimestamp": "2024-01-01"}, "Multiple starting arguments"),
        ({"startingVersion": "0", "versionAsOf": "1"}, "leave out versionAsOf"),
        ({"startingVersion": "-1"}, "a non-negative integer"),
    ):
        with pytest.raises(InvalidArgumentError, match=why):
            read_options(Options({"readChangeFeed": "true", **options}))
    assert read_options(Options({"readChangeFeed": "false"})).changes is None


def test_table_properties_get_their_proper_case_and_unknown_ones_are_refused():
    assert request({"delta.APPENDONLY": "true"}).table_properties == {"delta.appendOnly": "true"}
    with pytest.raises(InvalidArgumentError, match=r"delta\.foo"):
        request({"delta.foo": "1"})
    arbitrary = {"spark.databricks.delta.allowArbitraryProperties.enabled": "true"}
    assert request({"delta.foo": "1"}, arbitrary).table_properties == {"delta.foo": "1"}


def test_an_option_that_means_nothing_is_logged_once(caplog):
    unknown = f"colour{uuid4().hex}"  # the process hasn't logged it before
    with caplog.at_level(logging.WARNING, logger="tablelog.log_once"):
        for _ in range(2):
            request({unknown: "red", "mergeSchema": "true", "delta.appendOnly": "true"})
    assert [record.getMessage() for record in caplog.records] == [
        f"The option '{unknown}' is unknown and has no effect on a Delta table."
    ]


def test_one_of_version_and_timestamp():
    assert read_options(Options({"VERSIONasOF": "12"})).version == 12
    assert read_options(Options({"timestampAsOf": "2024-01-01"})).timestamp == "2024-01-01"
    with pytest.raises(InvalidArgumentError, match="either"):
        read_options(Options({"versionAsOf": "1", "timestampAsOf": "2024-01-01"}))
    for bad in ("x", "-1", "1.5", ""):
        with pytest.raises(InvalidArgumentError, match="versionAsOf"):
            read_options(Options({"versionAsOf": bad}))


def test_int96_timestamps_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="outputTimestampType"):
        request({"spark.sql.parquet.outputTimestampType": "INT96"})
