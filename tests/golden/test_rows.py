"""Tables that others wrote, read through Spark with exactly the rows, schema, properties and protocol expected."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from conftest import Corpus
from support.rows import assert_same_rows
from tablelog.core import DeltaLog
from tablelog.errors import TablelogError

DAT = """
all_primitive_types basic_append basic_partitioned cdf check_constraints column_mapping deletion_vectors
generated_columns iceberg_compat_v1 multi_partitioned multi_partitioned_2 nested_types no_replay no_stats
partitioned_with_null stats_as_struct timestamp_ntz with_checkpoint with_schema_change
""".split()
DAT_VERSIONS = {
    "basic_append": ["v0", "v1"],
    "basic_partitioned": ["v0", "v1"],
    "multi_partitioned": ["v0", "v1", "v2"],
    "partitioned_with_null": ["v0", "v1"],
    "with_schema_change": ["v1"],
}
GOLDEN = """
124-decimal-decode-bug 125-iterator-bug basic-decimal-table basic-decimal-table-legacy
basic-with-inserts-deletes-checkpoint basic-with-inserts-merge basic-with-inserts-overwrite-restore
basic-with-inserts-updates basic-with-vacuum-protocol-check-feature corrupted-last-checkpoint-kernel
data-reader-array-complex-objects data-reader-array-primitives data-reader-date-types-America
data-reader-date-types-Asia data-reader-date-types-Etc data-reader-date-types-Iceland
data-reader-date-types-Jst data-reader-date-types-Pst data-reader-date-types-utc data-reader-escaped-chars
data-reader-map data-reader-nested-struct data-reader-nullable-field-invalid-schema-key
data-reader-partition-values data-reader-primitives data-reader-timestamp_ntz
data-reader-timestamp_ntz-id-mode data-reader-timestamp_ntz-name-mode data-skipping-basic-stats-all-types
data-skipping-basic-stats-all-types-checkpoint data-skipping-basic-stats-all-types-columnmapping-id
data-skipping-basic-stats-all-types-columnmapping-name data-skipping-change-stats-collected-across-versions
data-skipping-partition-and-data-column decimal-various-scale-precision deltalog-getChanges
dv-partitioned-with-checkpoint
dv-with-columnmapping kernel-timestamp-int96 kernel-timestamp-pst kernel-timestamp-timestamp_micros
kernel-timestamp-timestamp_millis log-replay-dv-key-cases log-replay-latest-metadata-protocol
log-replay-special-characters log-replay-special-characters-a multi-part-checkpoint only-checkpoint-files
parquet-all-types parquet-all-types-legacy-format parquet-decimal-dictionaries parquet-decimal-dictionaries-v2
parquet-decimal-type snapshot-data0 snapshot-data1 snapshot-data2 snapshot-data2-deleted snapshot-data3
snapshot-repartitioned snapshot-vacuumed table-with-columnmapping-mode-id table-with-columnmapping-mode-name
time-travel-partition-changes-a time-travel-partition-changes-b time-travel-schema-changes-a
time-travel-schema-changes-b time-travel-start time-travel-start-start20 time-travel-start-start20-start40
v2-checkpoint-json v2-checkpoint-parquet
""".split()
MUST_RAISE = """
deltalog-invalid-protocol-version deltalog-state-reconstruction-from-checkpoint-missing-metadata
deltalog-state-reconstruction-from-checkpoint-missing-protocol deltalog-state-reconstruction-without-metadata
deltalog-state-reconstruction-without-protocol no-delta-log-folder versions-not-contiguous
""".split()


def expected_rows(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.read.option("recursiveFileLookup", "true").parquet(str(directory))


def without_nullability(type_: T.DataType) -> Any:
    """Types and names only: the expected files were written by a tool that keeps neither nullability nor metadata."""
    if isinstance(type_, T.StructType):
        return {field.name: without_nullability(field.dataType) for field in type_.fields}
    if isinstance(type_, T.ArrayType):
        return [without_nullability(type_.elementType)]
    if isinstance(type_, T.MapType):
        return without_nullability(type_.keyType), without_nullability(type_.valueType)
    return type_


@pytest.mark.parametrize(("table", "version"), [(t, v) for t in DAT for v in ["latest", *DAT_VERSIONS.get(t, [])]])
def test_dat_table_reads_as_expected(spark: SparkSession, dat: Corpus, table: str, version: str) -> None:
    path, oracle = str(dat(table) / "delta"), dat(table) / "expected" / version
    told = json.loads((oracle / "table_version_metadata.json").read_text())
    reader = spark.read.format("delta")
    frame = (reader if version == "latest" else reader.option("versionAsOf", told["version"])).load(path)
    expected = expected_rows(spark, oracle / "table_content")
    assert without_nullability(frame.schema) == without_nullability(expected.schema)
    assert_same_rows(frame.toArrow(), expected.toArrow())

    snapshot = DeltaLog.for_path(path).snapshot(None if version == "latest" else told["version"])
    assert snapshot.version == told["version"]
    assert dict(snapshot.metadata.configuration) == told["properties"]
    assert snapshot.protocol.min_reader_version == told["min_reader_version"]
    assert snapshot.protocol.min_writer_version == told["min_writer_version"]


def test_every_version_of_dat_is_covered(dat: Corpus) -> None:
    assert sum(1 + len(DAT_VERSIONS.get(table, [])) for table in DAT) == 29
    assert sorted(DAT) == sorted(path.name for path in dat(DAT[0]).parent.iterdir())
    for table in DAT:
        assert {"latest", *DAT_VERSIONS.get(table, [])} == {path.name for path in (dat(table) / "expected").iterdir()}


@pytest.mark.parametrize("table", GOLDEN)
def test_golden_table_reads_as_expected(spark: SparkSession, golden: Corpus, table: str) -> None:
    root = golden(table)
    frame = spark.read.format("delta").load(str(root / "delta"))
    expected = expected_rows(spark, root / "expected")
    if table == "data-reader-partition-values":  # its expected as_timestamp is in the time zone of who made it
        frame, expected = frame.drop("as_timestamp"), expected.drop("as_timestamp")
    assert without_nullability(frame.schema) == without_nullability(expected.schema)
    assert_same_rows(frame.toArrow(), expected.toArrow())


def test_every_golden_table_with_rows_is_covered(golden: Corpus) -> None:
    root = golden(GOLDEN[0]).parent
    assert sorted(GOLDEN) == sorted(path.name for path in root.iterdir() if (path / "expected").is_dir())


@pytest.mark.parametrize("table", MUST_RAISE)
def test_broken_table_raises_a_typed_error(spark: SparkSession, golden: Corpus, table: str) -> None:
    with pytest.raises(TablelogError, match=table):
        spark.read.format("delta").load(str(golden(table) / "delta")).count()
