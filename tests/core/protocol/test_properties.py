"""Table properties: Delta's forms, its refusals, and errors that name the key."""

import pytest

from tablelog.core.protocol import properties
from tablelog.core.protocol.actions import Metadata
from tablelog.core.protocol.properties import TableProperties
from tablelog.errors import InvalidArgumentError
from tablelog.settings.declarations import PROPERTY_DEFAULTS

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 1 week", 7 * DAY), ("1 week", 7 * DAY), ("INTERVAL 30 Days", 30 * DAY), ("interval 24 hours", DAY),
        ("interval 2 days 3 hours", 2 * DAY + 10_800_000), ("2 days 3 hours", 2 * DAY + 10_800_000),
        (" interval  1   day ", DAY), ("1 minute 1 second 1 millisecond", 61_001), ("1.5 seconds", 1500),
        ("1999 microseconds", 1), ("0 days", 0), ("2 days -1 day", DAY), ("- 1 hour 2 hours", 3_600_000),
        ("+1 day", DAY),
    ],
)  # fmt: skip
def test_intervals_in_every_form(text: str, milliseconds: int) -> None:
    assert properties.interval_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "", "interval", "interval 1", "1", "week", "1 fortnight", "1 month", "interval 1 year", "2 months", "-1 day",
        "1 day -25 hours", "1.5 days", "one day", "1 day2 hours", "1 day,", "P1D", "inf days", "\u0661 day",
    ],
)  # fmt: skip
def test_what_is_no_interval_of_fixed_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        properties.interval_ms(text)
    with pytest.raises(InvalidArgumentError, match=r"delta\.logRetentionDuration"):
        properties.validate({"delta.logRetentionDuration": text})


def test_defaults_are_deltas() -> None:
    found = TableProperties.of(Metadata("i", ""))
    assert (found.append_only, found.checkpoint_interval, found.checkpoint_policy) == (False, 10, "classic")
    assert (found.checkpoint_write_stats_as_json, found.checkpoint_write_stats_as_struct) == (True, True)
    assert found.isolation_level == "Serializable"
    assert (found.data_skipping_num_indexed_cols, found.data_skipping_stats_columns) == (32, None)
    assert found.data_skipping_string_prefix_length == 32
    assert (found.deleted_file_retention_ms, found.log_retention_ms) == (7 * DAY, 30 * DAY)
    assert (found.checkpoint_retention_ms, found.set_transaction_retention_ms) == (2 * DAY, None)
    assert (found.enable_change_data_feed, found.enable_deletion_vectors) == (False, False)
    assert (found.column_mapping_mode, found.enable_in_commit_timestamps) == ("none", False)
    assert (found.randomize_file_prefixes, found.random_prefix_length) == (False, 2)
    assert found.enable_expired_log_cleanup
    assert found.parquet_compression_codec is None
    assert found.in_commit_timestamp_enablement_version is None
    assert found.in_commit_timestamp_enablement_timestamp is None


def test_values_are_typed_when_they_are_asked_for() -> None:
    found = TableProperties(
        {
            "delta.appendOnly": "TRUE", "delta.checkpointInterval": "3", "delta.isolationLevel": "writeserializable",
            "delta.dataSkippingStatsColumns": "a, b.c,`odd, name`.`x``y`", "delta.dataSkippingNumIndexedCols": "-1",
            "delta.enableChangeDataCapture": "true", "delta.setTransactionRetentionDuration": "interval 1 day",
            "delta.logRetentionDuration": "a while",
        }
    )  # fmt: skip
    assert found.append_only
    assert found.checkpoint_interval == 3
    assert found.isolation_level == "WriteSerializable"
    assert found.data_skipping_stats_columns == (("a",), ("b", "c"), ("odd, name", "x`y"))
    assert found.data_skipping_num_indexed_cols == -1
    assert found.enable_change_data_feed
    assert found.set_transaction_retention_ms == DAY
    with pytest.raises(InvalidArgumentError, match=r"delta\.logRetentionDuration is 'a while'"):
        _ = found.log_retention_ms


def test_keys_take_their_proper_case_and_own_keys_stay() -> None:
    given = {
        "DELTA.appendonly": "true", "my.key": "x", "appendOnly": "kept as it is", "delta.constraints.Age": "age > 0",
        "delta.feature.timestampNtz": "supported", "delta.universalFormat.config.iceberg.X": "1",
    }  # fmt: skip
    assert properties.validate(given) == {
        "delta.appendOnly": "true", "my.key": "x", "appendOnly": "kept as it is", "delta.constraints.Age": "age > 0",
        "delta.feature.timestampntz": "supported", "delta.universalformat.config.iceberg.x": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "yes"), ("delta.checkpointInterval", "0"), ("delta.checkpointInterval", "ten"),
        ("delta.checkpointInterval", "1_0"), ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.dataSkippingStatsColumns", "a,,b"), ("delta.dataSkippingStatsColumns", "a b"),
        ("delta.isolationLevel", "SnapshotIsolation"), ("delta.columnMapping.mode", "both"),
        ("delta.checkpointPolicy", "v3"), ("delta.minReaderVersion", "4"), ("delta.minWriterVersion", "0"),
        ("delta.randomPrefixLength", "0"), ("delta.parquet.format.version", "3.0.0"),
        ("delta.parquet.compression.codec", "zip"), ("delta.universalFormat.enabledFormats", "iceberg,iceberg"),
        ("delta.columnMapping.maxColumnId", "3"), ("delta.autoOptimize.autoCompact", "sometimes"),
        ("delta.inCommitTimestampEnablementVersion", str(2**63)), ("delta.nonsense", "1"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_by_the_name_of_its_key(key: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=key.replace(".", r"\.")):
        properties.validate({key: value})


def test_unknown_properties_may_be_let_through() -> None:
    assert properties.validate({"delta.Nonsense": "1"}, allow_arbitrary=True) == {"delta.Nonsense": "1"}


def test_the_log_is_kept_at_least_as_long_as_deleted_files() -> None:
    with pytest.raises(InvalidArgumentError, match="at least"):
        properties.validate({"delta.deletedFileRetentionDuration": "31 days"})
    with pytest.raises(InvalidArgumentError, match="at least"):
        properties.validate({"delta.logRetentionDuration": "6 days"})
    both = {"delta.logRetentionDuration": "60 days", "delta.deletedFileRetentionDuration": "31 days"}
    assert properties.validate(both) == both


def test_defaults_of_the_session_are_for_new_tables(caplog: pytest.LogCaptureFixture) -> None:
    prefix = PROPERTY_DEFAULTS.prefix
    found = properties.defaults_from(
        {
            f"{prefix}appendOnly": "true", f"{prefix}minReaderVersion": "3", f"{prefix}feature.x": "supported",
            f"{prefix}tuneEverything": "1", "spark.other": "x",
        }
    )  # fmt: skip
    assert found == {"delta.appendOnly": "true"}
    assert "tuneEverything" in caplog.text
    assert properties.defaults_from(None) == {}
    with pytest.raises(InvalidArgumentError, match="checkpointInterval"):
        properties.defaults_from({f"{prefix}checkpointInterval": "-1"})


def test_requests_to_the_protocol_are_not_stored() -> None:
    given = {
        "delta.minReaderVersion": "3", "delta.minWriterVersion": "7", "delta.feature.v2Checkpoint": "supported",
        "delta.ignoreProtocolDefaults": "true", "delta.appendOnly": "true",
    }  # fmt: skip
    assert properties.without_protocol_properties(given) == {"delta.appendOnly": "true"}
