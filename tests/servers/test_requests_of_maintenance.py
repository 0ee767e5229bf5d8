"""The requests of commands for a table's layout, properties and history are those of docs/stores.md; see counted.py."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.clocks import ManualClock
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.logstore.data_files import DataFiles
from tablelog.spark import DeltaTable

from .counted import CHANGES, COMMIT, SECOND, SIZES, VECTORS, Counted
from .test_requests_of_changes import CREATED

BY_SQL = {"log LIST": 2, "log PUT": 2}
"""A commit by a statement of SQL, which first looks whether there is a table."""


@SIZES
def test_reorg_reads_each_file_once(counted: Counted, f: int) -> None:
    """It reads the file of the vectors for each group of files that become one: here for each partition."""
    table = counted.of_two_halves(f, **VECTORS)
    assert counted.cost(table.reorg) == {"log LIST": 1}
    table.delete(SECOND)
    counted.forget_vectors()
    assert counted.cost(table.reorg) == {**COMMIT, "data GET": f + f, "data PUT": f, "data LIST": 1}


@SIZES
def test_a_layout_by_columns_reads_each_file_twice(counted: Counted, f: int) -> None:
    table = counted.of_commits(f)
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": 1, "data LIST": 1}
    assert counted.cost(lambda: table.optimize().executeZOrderBy("x")) == expected
    counted.url = counted.server.url()
    counted.sql("CREATE TABLE {t} (id long, p long, x double) USING delta CLUSTER BY (id)")
    for _ in range(f):
        counted.append(1)
    assert counted.cost(lambda: counted.sql("OPTIMIZE {t}")) == {**expected, "log LIST": 2}


@SIZES
def test_a_shallow_clone_touches_only_the_logs(counted: Counted, f: int) -> None:
    table, target = counted.table(f), counted.server.url()
    assert counted.cost(lambda: table.clone(target, isShallow=True)) == {**CREATED, "log LIST": 3}


@SIZES
def test_convert_reads_each_footer(counted: Counted, f: int) -> None:
    counted.table(1)  # the first commit of a process to a bucket costs more
    url = counted.server.url()
    plain, stream = DataFiles.of(url, counted.conf, {}), pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}), stream)
    for number in range(2 * f):
        plain.write(f"day={number % f}/{number}.parquet", stream.getvalue().to_pybytes())
    expected = {**CREATED, "data GET": 2 * f, "data LIST": 1 + f}
    spark = counted.spark
    assert counted.cost(lambda: DeltaTable.convertToDelta(spark, f"parquet.`{url}`", "day int")) == expected


@SIZES
def test_manifests_are_a_write_for_each_partition(counted: Counted, f: int) -> None:
    table = counted.table(f)
    expected = {"log LIST": 1, "data PUT": f, "data LIST": 1}
    assert counted.cost(lambda: table.generate("symlink_format_manifest")) == expected
    table.setProperties({"delta.compatibility.symlinkFormatManifest.enabled": "true"})
    assert counted.cost(lambda: counted.append(f)) == {**COMMIT, "data PUT": 2 * f}


@SIZES
def test_a_change_of_the_metadata(counted: Counted, f: int) -> None:
    """Only a new constraint reads the rows; the drop of a column doesn't rewrite files."""
    table = counted.table(f)
    assert counted.cost(lambda: table.setProperties({"a": "b"})) == COMMIT
    for change in (
        "ADD COLUMNS (y int)",
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "RENAME COLUMN y TO z",
        "DROP COLUMN z",
    ):
        assert counted.cost(lambda change=change: counted.sql(f"ALTER TABLE {{t}} {change}")) == BY_SQL
    constraint = "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (x >= 0)"
    assert counted.cost(lambda: counted.sql(constraint)) == {**BY_SQL, "data GET": f}
    assert counted.cost(lambda: counted.sql("ALTER TABLE {t} DROP CONSTRAINT positive")) == BY_SQL


@SIZES
def test_the_drop_of_a_feature(counted: Counted, f: int) -> None:
    """`kept`: four checkpoints, three of them of an empty commit, for a feature that older versions need."""
    table = counted.table(f)
    table.addFeatureSupport("checkConstraints")
    assert counted.cost(lambda: table.dropFeatureSupport("checkConstraints")) == {"log LIST": 3, "log PUT": 2}
    kept = {"log LIST": 3 + 7, "log GET": 4, "log PUT": 2 + 14}
    table = counted.table(f, **{"delta.checkpointPolicy": "v2"})
    expected = {**kept, "log LIST": 10 + 1, "log PUT": 16 + 2}  # the policy is set
    assert counted.cost(lambda: table.dropFeatureSupport("v2Checkpoint")) == expected
    table = counted.of_two_halves(f, **VECTORS)
    table.delete(SECOND)
    # The property is unset, the files are rewritten, the vectors get tombstones.
    expected = {**kept, "log LIST": 10 + 4, "log PUT": 16 + 6, "data GET": f, "data PUT": f, "data LIST": 1}
    assert counted.cost(lambda: table.dropFeatureSupport("deletionVectors")) == expected


@SIZES
def test_the_details_and_the_history(counted: Counted, f: int) -> None:
    counted.of_commits(f)
    table = DeltaTable.forPath(counted.spark, counted.url)
    assert counted.cost(lambda: table.detail().collect()) == {"log LIST": 2}
    assert counted.cost(lambda: table.history().collect()) == {"log LIST": 2, "log GET": f}


def read_changes(counted: Counted, first: int, last: int | None = None) -> None:
    reader = counted.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
    (reader if last is None else reader.option("endingVersion", last)).load(counted.url).collect()


@SIZES
def test_the_change_feed_reads_the_versions_and_the_files_of_changes(counted: Counted, f: int) -> None:
    table = counted.of_two_halves(f, **CHANGES)
    table.update(SECOND, {"x": "x + 1"})
    for _ in range(f):
        counted.append(1)
    expected = {"log LIST": 3, "log GET": 3 + 1 + f, "data GET": 2 * f}
    assert counted.cost(lambda: read_changes(counted, 2)) == expected
    assert counted.cost(lambda: read_changes(counted, 2, 2)) == {"log LIST": 3, "log GET": 3 + 1, "data GET": f}
    expected = {"log LIST": 4, "log GET": 2 + 3 + 2, "data GET": 2 * f}
    assert counted.cost(lambda: read_changes(counted, 1, 2)) == expected


@SIZES
def test_the_change_feed_of_vectors_reads_the_files_that_they_belong_to(counted: Counted, f: int) -> None:
    table = counted.of_two_halves(f, **VECTORS, **CHANGES)
    table.delete(SECOND)
    counted.forget_vectors()
    assert counted.cost(lambda: read_changes(counted, 2)) == {"log LIST": 2, "log GET": 1, "data GET": f + 1}


@SIZES
def test_a_statement_of_sql_looks_for_the_table_first(counted: Counted, f: int) -> None:
    counted.table(f)
    rewrite = {**BY_SQL, "data GET": 2 * f, "data PUT": f, "data LIST": 1}
    assert counted.cost(lambda: counted.sql("UPDATE {t} SET x = x + 1 WHERE x >= 0")) == rewrite
    assert counted.cost(lambda: counted.sql("INSERT INTO {t} VALUES (1, 1, 1.0)")) == {
        "log LIST": 3,
        "log PUT": 2,
        "data PUT": 1,
    }
    clone = f"CREATE TABLE delta.`{counted.server.url()}` SHALLOW CLONE {{t}}"
    assert counted.cost(lambda: counted.sql(clone)) == {**CREATED, "log LIST": 5}
    assert counted.cost(lambda: counted.sql("SELECT * FROM {t}").collect()) == {"log LIST": 1, "data GET": f + 1}


@SIZES
def test_vacuum_reads_the_commits_of_the_retention(counted: Counted, f: int) -> None:
    table = counted.of_commits(f)
    listed = {"data LIST": 1 + f}  # each write has a directory of its own
    dry = {"log LIST": 5, "log GET": f, **listed}
    assert counted.cost(lambda: counted.sql("VACUUM {t} DRY RUN").collect()) == dry
    assert counted.cost(table.vacuum) == {"log LIST": 6, "log GET": f, "log PUT": 4, **listed}
    with settings(counted.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        assert counted.cost(lambda: table.vacuum(0)) == {"log LIST": 5, "log PUT": 5, **listed}


@SIZES
@pytest.mark.parametrize("is_v2", [False, True], ids=["classic", "v2"])
def test_the_cleanup_of_the_log_deletes_each_file_by_a_request(counted: Counted, f: int, is_v2: bool) -> None:
    """Two checkpoints, of the versions f - 1 and f; a V2 checkpoint has a sidecar here.

    The newer one is read with its checksum before anything is deleted. V2: it is read again for a copy with a classic
    name, and to see which sidecars are in use.
    """
    counted.of_commits(f, **({"delta.checkpointPolicy": "v2"} if is_v2 else {}))
    counted.log.checkpoint()
    counted.append(1)
    counted.log.checkpoint()
    clock = ManualClock()
    clock.time = time.time() + 3 * 24 * 3600
    log = DeltaLog.for_path(counted.url, conf=counted.conf, clock=clock)
    newest = log.snapshot()
    assert counted.cost(lambda: log.clean_up(newest)) == {"log LIST": 1}
    expected = {"log LIST": 3, "log GET": 2, "log DELETE": 2 * f + 1}
    if is_v2:
        expected = {"log LIST": 4, "log GET": 2 + 1 + 2, "log PUT": 1, "log DELETE": 2 * f + 2}
    assert counted.cost(lambda: log.clean_up(newest, retention_ms=0)) == expected
