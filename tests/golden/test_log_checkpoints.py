"""Checkpoints that others wrote hold what our replay of the commits gives; and ours, for them, the same actions."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as RustTable

from conftest import Corpus
from interop.engines import by_duckdb
from tablelog.core import DeltaLog, Snapshot
from tablelog.core.log import last_checkpoint
from tablelog.core.log.segment import parse_listing
from tablelog.core.log_maintenance.checkpoint_writer import point_at, write
from tablelog.core.protocol.actions import AddFile
from tablelog.core.protocol.paths import LAST_CHECKPOINT
from tablelog.logstore import LocalLogStore


def unchecked(table: Path, at: int | None = None, *, without: frozenset[str] = frozenset()) -> Snapshot:
    """A snapshot also of a table whose features aren't built yet: its log can be replayed all the same."""
    return DeltaLog.for_path(str(table))._loader.load(at, without)[0]


def shipped(root: Path) -> list[tuple[Path, int, frozenset[str]]]:
    """(table, version of a checkpoint, names of all its checkpoints) where the commits up to it are all there."""
    found = []
    for directory in sorted(root.rglob("_delta_log")):
        log = DeltaLog.for_path(str(directory.parent))
        listing = log.reader.list(0)
        names = frozenset(name for checkpoint in listing.checkpoints for name in checkpoint.names)
        for at in sorted({checkpoint.version for checkpoint in listing.checkpoints}):
            if all(number in listing.commits for number in range(at + 1)):
                found.append((directory.parent, at, names))
    return found


def comparable(file: AddFile) -> tuple[Any, ...]:
    return (
        file.path,
        file.deletion_vector,
        file.size,
        file.modification_time,
        tuple(sorted(file.partition_values.items())),
        tuple(sorted((file.tags or {}).items())),
        statistics(file.stats),
        file.base_row_id,
        file.default_row_commit_version,
    )


def statistics(text: str | None) -> str | None:
    """Stats as values: a checkpoint that has them as structs only leaves out what is null, and the order of fields."""
    if text is None:
        return None
    return json.dumps(json.loads(text), sort_keys=True)


def removed(snapshot: Snapshot) -> set[tuple[Any, ...]]:
    rows = snapshot.tombstones.to_pylist()
    return {(row["path"], json.dumps(row["deletionVector"]), row["deletionTimestamp"]) for row in rows}


@pytest.fixture(scope="module")
def tables(golden: Corpus, dat: Corpus) -> list[tuple[Path, int, frozenset[str]]]:
    broken = "deltalog-state-reconstruction-from-checkpoint-missing"
    return [item for root in (golden(""), dat("")) for item in shipped(root) if broken not in str(item[0])]


def test_there_are_such_tables_of_every_kind(tables: list[tuple[Path, int, frozenset[str]]]) -> None:
    assert len(tables) >= 15
    names = [name for _, _, all_of_them in tables for name in all_of_them]
    assert any(name.endswith(".json") for name in names)
    assert any(len(name.split(".")) == 5 for name in names)  # multi-part
    assert any("-" in name and name.endswith(".parquet") for name in names)


def test_a_shipped_checkpoint_agrees_with_our_replay(tables: list[tuple[Path, int, frozenset[str]]]) -> None:
    for table, at, names in tables:
        theirs, ours = unchecked(table, at), unchecked(table, at, without=names)
        assert (theirs.base_version, ours.base_version) == (at, -1), table
        assert theirs.metadata == ours.metadata, table
        assert theirs.protocol == ours.protocol, table
        assert theirs.transactions == ours.transactions, table
        assert theirs.domain_metadata == ours.domain_metadata, table
        assert {comparable(f)[:6] for f in theirs.add_files()} == {comparable(f)[:6] for f in ours.add_files()}, table
        texts = {file.path: file.stats for file in ours.add_files()}
        for file in theirs.add_files():
            assert file.stats is None or statistics(file.stats) == statistics(texts[file.path]), table
        assert theirs.num_files == ours.num_files, table
        assert theirs.size_in_bytes == ours.size_in_bytes, table
        assert removed(theirs) <= removed(ours), table  # theirs may have expired


def test_our_checkpoint_has_the_actions_of_the_shipped_one(
    tables: list[tuple[Path, int, frozenset[str]]], tmp_path: Path
) -> None:
    for table, at, names in tables:
        theirs, ours = unchecked(table, at), unchecked(table, at, without=names)
        copy = tmp_path / f"{table.parent.name}-{at}"
        log = copy / "_delta_log"
        hint = write(LocalLogStore(), str(log), ours, now_ms=0)
        point_at(LocalLogStore(), str(log), hint)
        again = unchecked(copy)
        assert again.version == again.base_version == at
        assert again.metadata == theirs.metadata, table
        assert again.protocol == theirs.protocol, table
        assert again.transactions == theirs.transactions, table
        assert again.domain_metadata == theirs.domain_metadata, table
        # Of two tables the shipped checkpoint has lost the stats: by property, and by what wrote it.
        depth = None if all(file.stats is not None for file in theirs.add_files()) else 6
        assert {comparable(f)[:depth] for f in again.add_files()} == {comparable(f)[:depth] for f in theirs.add_files()}
        assert removed(again) >= removed(theirs), table
        parquet = [pq.read_table(file) for file in log.rglob("*.parquet")]  # itself, or its sidecars
        texts = [file.read_text().splitlines() for file in log.glob("*.checkpoint.*.json")]
        assert hint.size == sum(rows.num_rows for rows in parquet) + sum(map(len, texts)), table
        for rows in parquet:
            assert {row["dataChange"] for row in rows["add"].drop_null().to_pylist()} <= {False}


def test_shipped_hints_are_understood_and_their_checksums_right(golden: Corpus, dat: Corpus) -> None:
    parsed = with_checksum = 0
    for path in [*golden("").rglob(LAST_CHECKPOINT), *dat("").rglob(LAST_CHECKPOINT)]:
        data = path.read_bytes()
        hint = last_checkpoint.parse(data)
        if not data.strip():
            assert hint is None  # corrupted-last-checkpoint-kernel
            continue
        assert hint is not None, path
        parsed += 1
        with_checksum += "checksum" in json.loads(data)
    assert parsed >= 15
    assert with_checksum >= 5


def test_no_shipped_log_holds_a_name_that_we_misread(golden: Corpus) -> None:
    for directory in golden("").rglob("_delta_log"):
        log = DeltaLog.for_path(str(directory.parent))
        listing = parse_listing(log.store.list_from(f"{log.log_path}/0"))
        told = {path.name for path in directory.iterdir() if path.is_file() and path.name[:1].isdigit()}
        seen = {f"{version:020d}.json" for version in listing.commits}
        seen |= {name for checkpoint in listing.checkpoints for name in checkpoint.names}
        assert seen == told, directory


OTHERS_READ = """
all-primitive-types:dat/all_primitive_types partitioned:dat/basic_partitioned nested:dat/nested_types
nulls:dat/partitioned_with_null ntz:dat/timestamp_ntz two-partitions:dat/multi_partitioned
stats:golden/data-skipping-basic-stats-all-types partition-types:golden/data-reader-partition-values
decimals:golden/decimal-various-scale-precision v2:golden/v2-checkpoint-json dv:golden/dv-partitioned-with-checkpoint
names:golden/table-with-columnmapping-mode-name escaped:golden/data-reader-escaped-chars
""".split()


@pytest.mark.parametrize("case", OTHERS_READ, ids=lambda case: case.partition(":")[0])
def test_others_read_a_table_through_our_checkpoint_alone(
    golden: Corpus, dat: Corpus, tmp_path: Path, case: str
) -> None:
    corpus, _, name = case.partition(":")[2].partition("/")
    copy = tmp_path / "table"
    shutil.copytree((dat if corpus == "dat" else golden)(name) / "delta", copy)

    def rows() -> tuple[list[str], list[str]]:
        found = by_duckdb(str(copy)).to_pylist()
        # delta-rs has no reader of its own for these two features in Python.
        rust = [] if case.startswith(("dv:", "v2:")) else RustTable(str(copy)).to_pyarrow_table().to_pylist()
        return sorted(map(repr, found)), sorted(map(repr, rust))

    before = rows()
    log = copy / "_delta_log"
    for path in log.glob("*checkpoint*"):
        path.unlink()
    snapshot = unchecked(copy)
    DeltaLog.for_path(str(copy)).checkpoint(snapshot)
    for path in log.glob("*.json"):
        if int(path.name[:20]) < snapshot.version:
            path.unlink()
    assert rows() == before
    assert before[0]
