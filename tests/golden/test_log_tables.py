"""Tables that others wrote, by their log alone: versions, schema, properties, protocol, files, typed errors."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import Corpus
from golden.test_log_checkpoints import unchecked
from tablelog.core import DeltaLog
from tablelog.core.protocol.paths import absolute
from tablelog.errors import (
    CorruptLogError,
    MissingCommitError,
    TablelogError,
    TableNotFoundError,
    UnsupportedFeatureError,
)


def rows_in(table: Path, snapshot) -> int:
    """The rows of the live files by their footers, less those that deletion vectors take."""
    files = snapshot.files
    rows = sum(pq.read_metadata(absolute(str(table), path)).num_rows for path in files.column("path").to_pylist())
    return rows - sum(vector["cardinality"] for vector in files.column("deletionVector").to_pylist() if vector)


def expected_rows(directory: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in directory.rglob("*.parquet"))


def expected_columns(directory: Path) -> list[str]:
    return pq.read_schema(next(iter(sorted(directory.rglob("*.parquet"))))).names


def test_every_dat_version(dat: Corpus) -> None:
    checked = 0
    for table in sorted(dat("").iterdir()):
        for oracle in sorted((table / "expected").iterdir()):
            told = json.loads((oracle / "table_version_metadata.json").read_text())
            snapshot = unchecked(table / "delta", told["version"])
            assert snapshot.version == told["version"]
            assert dict(snapshot.metadata.configuration) == told["properties"]
            assert snapshot.protocol.min_reader_version == told["min_reader_version"]
            assert snapshot.protocol.min_writer_version == told["min_writer_version"]
            assert [field.name for field in snapshot.schema.fields] == expected_columns(oracle / "table_content")
            assert rows_in(table / "delta", snapshot) == expected_rows(oracle / "table_content"), (table, oracle)
            checked += 1
    assert checked >= 29


def test_every_golden_table_with_expected_rows(golden: Corpus) -> None:
    checked = 0
    for table in sorted(golden("").iterdir()):
        if not (table / "expected").is_dir():
            continue
        snapshot = unchecked(table / "delta")
        assert rows_in(table / "delta", snapshot) == expected_rows(table / "expected"), table.name
        assert [field.name for field in snapshot.schema.fields] == expected_columns(table / "expected"), table.name
        assert snapshot.num_files == snapshot.files.num_rows
        checked += 1
    assert checked == 71


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ("deltalog-invalid-protocol-version", UnsupportedFeatureError, "reader version 99"),
        ("deltalog-state-reconstruction-from-checkpoint-missing-metadata", CorruptLogError, "no metaData action"),
        ("deltalog-state-reconstruction-from-checkpoint-missing-protocol", CorruptLogError, "no protocol action"),
        ("deltalog-state-reconstruction-without-metadata", CorruptLogError, "no metaData action"),
        ("deltalog-state-reconstruction-without-protocol", CorruptLogError, "no protocol action"),
        ("no-delta-log-folder", TableNotFoundError, "no _delta_log directory"),
        ("versions-not-contiguous", MissingCommitError, r"00000000000000000001\.json is missing"),
    ],
)
def test_what_must_raise(golden: Corpus, table: str, error: type[TablelogError], message: str) -> None:
    log = DeltaLog.for_path(str(golden(table) / "delta"))
    with pytest.raises(error, match=message):
        log.snapshot()


@pytest.mark.parametrize("kind", ["normal", "special"])
@pytest.mark.parametrize("case", ["a", "b"])
def test_spellings_of_one_path(golden: Corpus, kind: str, case: str) -> None:
    snapshot = DeltaLog.for_path(str(golden(f"canonicalized-paths-{kind}-{case}") / "delta")).snapshot()
    assert snapshot.files.num_rows == snapshot.num_files == 0
    assert snapshot.tombstones.num_rows == 1


def test_a_file_that_was_removed_and_added_again(golden: Corpus) -> None:
    path = golden("delete-re-add-same-file-different-transactions") / "delta"
    files = DeltaLog.for_path(str(path)).snapshot().files
    found = dict(zip(files.column("path").to_pylist(), files.column("modificationTime").to_pylist(), strict=True))
    assert sorted(found) == ["bar", "foo"]
    assert found["foo"] == 1_700_000_000_000


def test_special_characters(golden: Corpus) -> None:
    root = golden("log-replay-special-characters-b") / "delta"
    (path,) = DeltaLog.for_path(str(root)).snapshot().files.column("path").to_pylist()
    assert Path(absolute(str(root), path)).name == "special p@#h"


def test_a_checkpoint_with_commits_after_it(golden: Corpus) -> None:
    log = DeltaLog.for_path(str(golden("checkpoint") / "delta"))
    assert log.snapshot().version == 14
    assert log.snapshot().num_files == 1
    assert [log.snapshot(version).version for version in (0, 9, 10, 11)] == [0, 9, 10, 11]


def test_the_tables_made_for_hive(golden: Corpus) -> None:
    tables = sorted((golden("hive") / "delta").iterdir())
    assert len(tables) == 11
    for table in tables:
        snapshot = DeltaLog.for_path(str(table)).snapshot()
        assert snapshot.version == 0
        assert [field.name for field in snapshot.schema.fields]


def test_the_newest_of_a_log_without_commits_at_its_checkpoint(golden: Corpus) -> None:
    snapshot = DeltaLog.for_path(str(golden("only-checkpoint-files") / "delta")).snapshot()
    assert (snapshot.version, snapshot.num_files) == (2, 7)
