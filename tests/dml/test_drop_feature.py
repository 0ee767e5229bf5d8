"""dropFeatureSupport: traces removed, the history protected or truncated, and what can't go."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.spark_tables import Table
from tablelog.errors import FeatureInHistoryError, InvalidArgumentError, UnsupportedFeatureError


def protocol(table: Table) -> dict[str, Any]:
    for version in range(table.version, -1, -1):
        for action in table.actions(version):
            if "protocol" in action:
                found: dict[str, Any] = action["protocol"]
                return found
    raise AssertionError


def operations(table: Table) -> list[str]:
    return [row.operation for row in table.delta.history().collect()]


def checkpoints(table: Table) -> list[int]:
    return sorted(int(path.name[:20]) for path in (table.root / "_delta_log").glob("*.checkpoint.parquet"))


@pytest.fixture
def old(table: Table) -> Callable[..., None]:
    """Make all versions that the log holds two days older than now."""

    def age(before: int = 10**9) -> None:
        for path in Path(table.root / "_delta_log").iterdir():
            if path.name[:20].isdigit() and int(path.name[:20]) < before:
                then = time.time() - 2 * 86_400 + int(path.name[:20])
                os.utime(path, (then, then))

    return age


def test_features_of_writers_go_at_once(table: Table) -> None:
    table.write(table.spark.range(2), **{"delta.enableInCommitTimestamps": "true"})
    table.delta.setProperties({"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidArgumentError, match="rowTracking needs it"):
        table.delta.dropFeatureSupport("domainMetadata")
    with pytest.raises(InvalidArgumentError, match="doesn't need a truncated history"):
        table.delta.dropFeatureSupport("rowTracking", truncateHistory=True)
    table.delta.dropFeatureSupport("rowTracking")
    assert operations(table)[:3] == ["DROP FEATURE", "ROW TRACKING UNBACKFILL", "SET TBLPROPERTIES"]
    assert table.info()["operationParameters"] == {"featureName": "rowTracking", "truncateHistory": False}
    assert not any("owTracking" in key for key in table.delta.detail().first().properties)  # type: ignore[union-attr]
    table.write(table.spark.range(2, 3))
    assert "baseRowId" not in table.actions()[1]["add"]

    table.delta.dropFeatureSupport("INCOMMITTIMESTAMP")
    assert "inCommitTimestamp" not in table.info()
    table.delta.dropFeatureSupport("domainMetadata")
    assert protocol(table) == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert table.rows() == [0, 1, 2]

    before = table.version
    for name, says in (("domainMetadata", "doesn't have"), ("delta.appendOnly", "it is a property")):
        with pytest.raises(InvalidArgumentError, match=says):
            table.delta.dropFeatureSupport(name)
    with pytest.raises(UnsupportedFeatureError, match="appendOnly"):
        table.delta.dropFeatureSupport("appendOnly")
    assert table.version == before


def test_deletion_vectors_go_and_their_history_is_protected(table: Table, old: Callable[..., None]) -> None:
    table.write(table.spark.range(0, 100), **{"delta.enableDeletionVectors": "true"})
    table.delta.delete("id < 10")
    deleted = table.version
    table.delta.dropFeatureSupport("deletionVectors")
    found = operations(table)
    assert found[0] == "DROP FEATURE"
    assert found[1:4] == ["Empty Commit"] * 3
    assert "REORG" in found
    assert "Deletion Vector Tombstones" in found
    assert protocol(table) == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "checkpointProtection", "invariants"],
    }
    dropped = table.version
    properties = table.delta.detail().first().properties  # type: ignore[union-attr]
    assert properties == {"delta.requireCheckpointProtectionBeforeVersion": str(dropped)}
    assert checkpoints(table) == [dropped - 3, dropped - 2, dropped - 1, dropped]
    assert table.read().count() == 90
    assert table.read(versionAsOf=deleted).count() == 90
    assert table.read(versionAsOf=0).count() == 100

    with pytest.raises(InvalidArgumentError, match="truncateHistory=True"):
        table.delta.dropFeatureSupport("checkpointProtection")
    with pytest.raises(FeatureInHistoryError, match="24 hours"):
        table.delta.dropFeatureSupport("checkpointProtection", truncateHistory=True)
    old(dropped + 1)
    table.delta.dropFeatureSupport("checkpointProtection", truncateHistory=True)
    assert protocol(table) == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert min(int(path.stem) for path in (table.root / "_delta_log").glob("*.json") if path.stem.isdigit()) >= dropped
    assert table.read().count() == 90


def test_a_truncated_history_has_to_expire_first(table: Table, old: Callable[..., None]) -> None:
    table.write(table.spark.range(0, 10), **{"delta.enableDeletionVectors": "true"})
    table.delta.delete("id = 1")
    for _ in range(2):
        with pytest.raises(FeatureInHistoryError, match="24 hours"):
            table.delta.dropFeatureSupport("deletionVectors", truncateHistory=True)
    assert "deletionVectors" in protocol(table)["writerFeatures"]
    old(table.version)
    table.delta.dropFeatureSupport("deletionVectors", truncateHistory=True)
    assert protocol(table) == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert table.info()["operationParameters"] == {"featureName": "deletionVectors", "truncateHistory": True}
    assert table.rows() == [0, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.slow
def test_column_mapping_goes_with_the_files_that_have_it(table: Table) -> None:
    frame = table.spark.createDataFrame([(1, "x", "p"), (2, None, "q")], "a int, b string, p string")
    table.write(frame, by=("p",), **{"delta.columnMapping.mode": "name"})
    table.delta.renameColumn("b", "c")
    table.delta.dropFeatureSupport("columnMapping")
    assert "columnMapping" not in str(table.delta.detail().first())
    assert "REMOVE COLUMN MAPPING" in operations(table)
    assert table.rows("a", "p") == [(1, "p"), (2, "q")]
    assert table.read().where("c = 'x' and p = 'p'").count() == 1
    assert table.read(versionAsOf=0).where("b = 'x'").count() == 1


def test_column_mapping_stays_if_names_need_it(table: Table) -> None:
    """Without it, no other command would accept a table with these columns."""
    frame = table.spark.createDataFrame([(1, "x")], "a int, `b c` string")
    table.write(frame, **{"delta.columnMapping.mode": "name"})
    for remove in (
        lambda: table.delta.dropFeatureSupport("columnMapping"),
        lambda: table.delta.setProperties({"delta.columnMapping.mode": "none"}),
    ):
        with pytest.raises(InvalidArgumentError, match="the column `b c` has ' '") as raised:
            remove()
        assert raised.value.condition == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert table.version == 0
    table.delta.renameColumn("`b c`", "b")
    table.delta.dropFeatureSupport("columnMapping")
    assert "columnMapping" not in str(table.delta.detail().first())
    assert table.rows("a", "b") == [(1, "x")]


def test_a_check_constraint_stays(table: Table) -> None:
    table.write(table.spark.range(2))
    table.delta.addConstraint("positive", "id >= 0")
    with pytest.raises(InvalidArgumentError, match="positive"):
        table.delta.dropFeatureSupport("checkConstraints")
    table.delta.dropConstraint("positive")
    table.delta.dropFeatureSupport("checkConstraints")
    assert protocol(table) == {"minReaderVersion": 1, "minWriterVersion": 2}


def test_widened_types_and_other_checkpoints_go(table: Table) -> None:
    asked = {"delta.enableTypeWidening": "true", "delta.checkpointPolicy": "v2"}
    table.write(table.spark.createDataFrame([(1, "x")], "a int, b string"), **asked)
    table.delta.alterColumn("a", dataType="long")
    table.delta.dropFeatureSupport("typeWidening")
    assert "REORG" in operations(table)
    assert "typeChanges" not in table.actions(table.version)[-1].get("metaData", {}).get("schemaString", "")
    path = next(a["add"]["path"] for n in range(table.version, 0, -1) for a in table.actions(n) if "add" in a)
    assert pq.read_schema(table.root / path).field("a").type == "int64"
    table.delta.dropFeatureSupport("v2Checkpoint")
    assert protocol(table)["writerFeatures"] == ["appendOnly", "checkpointProtection", "invariants"]
    assert "delta.enableTypeWidening" not in table.delta.detail().first().properties  # type: ignore[union-attr]
    assert table.version in checkpoints(table)
    assert table.rows() == [(1, "x")]
    assert table.rows(versionAsOf=0) == [(1, "x")]
