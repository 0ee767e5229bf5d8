"""`tablelog check` finds each kind of damage, and `tablelog repair` repairs each that can be repaired."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.arrow_table import WRITE, ArrowTable
from support.command_line import Run, on_terminal
from tablelog.core.protocol.actions import Protocol
from tablelog.core.protocol.deletion_vectors import DeletedRows, inline

VECTORS = frozenset({"deletionVectors"})
ROW_IDS = frozenset({"rowTracking", "domainMetadata"})


def problems(run: Run, table: ArrowTable, check: str) -> list[dict[str, Any]]:
    """The problems of one check; every other check has none."""
    ran = run("check", table.path, "--json")
    document = ran.json
    assert ran.code == (1 if document["errors"] else 0)
    others = [one for one in document["checks"] if one["name"] != check and one["problems"]]
    assert not others
    (chosen,) = (one for one in document["checks"] if one["name"] == check)
    return list(chosen["problems"])


def rewritten(table: ArrowTable, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change each action of a commit, as damage or another writer would."""
    path = table.commit_file(version)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (table.log_directory / f"{version:020}.crc").unlink(missing_ok=True)


def without_checksums(table: ArrowTable) -> None:
    for path in table.log_directory.glob("*.crc"):
        path.unlink()


def test_a_sound_table_is_sound(table: ArrowTable, run: Run) -> None:
    ran = run("check", table.path)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "sound"
    document = run("check", table.path, "--json").json
    assert document["sound"] is True
    assert {one["name"]: one["examined"] for one in document["checks"]} == {
        "log": 4,
        "checkpoints": 0,
        "compactions": None,
        "checksums": None,
        "files": 3,
        "actions": 3,
        "footers": 3,
        "vectors": 0,
    }
    assert run("repair", table.path).out.splitlines()[-1] == "nothing to repair"
    assert "✓ footers" in on_terminal("check", table.path).out


def test_a_table_after_a_checkpoint_is_sound(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    assert run("check", table.path, "--strict").code == 0


# --- the log ------------------------------------------------------------------------------------------------------


def test_a_missing_commit_is_found_and_not_repaired(table: ArrowTable, run: Run) -> None:
    without_checksums(table)
    table.commit_file(2).unlink()
    ran = run("check", table.path, "--json")
    assert ran.code == 1
    kinds = [problem["kind"] for one in ran.json["checks"] for problem in one["problems"]]
    assert kinds == ["versions-missing", "version-unreadable"]
    repaired = run("repair", table.path, "--yes")
    assert repaired.code == 1
    assert "can't be repaired" in repaired.out


def test_a_damaged_commit_is_found(table: ArrowTable, run: Run) -> None:
    without_checksums(table)
    table.commit_file(2).write_text("{")
    assert "commit-damaged" in {problem["kind"] for problem in problems(run, table, "log")}
    assert run("repair", table.path, "--json").json["unrepairable"][0]["kind"] == "commit-damaged"


def test_a_damaged_checkpoint_is_found_and_replaced(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    (checkpoint,) = table.log_directory.glob("*.checkpoint*.parquet")
    checkpoint.write_bytes(b"PAR1 damaged PAR1")
    assert {problem["kind"] for problem in problems(run, table, "checkpoints")} == {"checkpoint-damaged", "hint-wrong"}
    assert run("check", table.path, "--strict").code == 1
    assert run("repair", table.path, "--yes").code == 0
    assert run("check", table.path, "--strict").code == 0
    assert [path.name for path in table.log_directory.glob("*.checkpoint*")] == [f"{3:020}.checkpoint.parquet"]


def test_a_checkpoint_that_contradicts_the_commits_is_replaced(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    without_checksums(table)
    rewritten(table, 2, lambda line: line.get("add", {}).update(size=1234567))
    kinds = {
        problem["kind"] for one in run("check", table.path, "--json").json["checks"] for problem in one["problems"]
    }
    assert "checkpoint-wrong" in kinds
    ran = run("repair", table.path, "--yes", "--json")
    assert [step["kind"] for step in ran.json["steps"]] == ["delete-checkpoint", "write-checkpoint"]
    assert table.log().snapshot().base_version == 3
    assert max(table.log().snapshot().files.column("size").to_pylist()) == 1234567


def test_a_lost_hint_is_written_again(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    (table.log_directory / "_last_checkpoint").unlink()
    (problem,) = problems(run, table, "checkpoints")
    assert problem["kind"] == "hint-wrong"
    assert run("check", table.path).code == 0  # a warning
    assert run("repair", table.path, "--yes").code == 0
    assert json.loads((table.log_directory / "_last_checkpoint").read_text())["version"] == 3
    assert problems(run, table, "checkpoints") == []


def test_a_wrong_checksum_is_written_again(table: ArrowTable, run: Run) -> None:
    path = table.log_directory / f"{3:020}.crc"
    path.write_text(json.dumps({**json.loads(path.read_text()), "numFiles": 77}))
    (problem,) = problems(run, table, "checksums")
    assert problem["kind"] == "checksum-wrong"
    assert run("repair", table.path, "--yes").code == 0
    assert json.loads(path.read_text())["numFiles"] == 3
    assert problems(run, table, "checksums") == []


def test_a_wrong_compaction_is_deleted(table: ArrowTable, run: Run) -> None:
    log = table.log()
    name = log.compact(1, 2)
    path = table.log_directory / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    ran = run("check", table.path, "--json")
    kinds = {problem["kind"] for one in ran.json["checks"] for problem in one["problems"]}
    assert "compaction-wrong" in kinds or "compaction-damaged" in kinds
    assert run("repair", table.path, "--yes").code == 0
    assert not path.exists()
    assert run("check", table.path).code == 0


# --- the data files -----------------------------------------------------------------------------------------------


def test_a_missing_file_is_found_and_taken_out_by_a_commit(table: ArrowTable, run: Run) -> None:
    (table.root / table.files[1]).unlink()
    (problem,) = problems(run, table, "files")
    assert problem["files"] == [table.files[1]]
    dry = run("repair", table.path)
    assert dry.code == 1
    assert "nothing was changed" in dry.out
    assert table.log().snapshot().version == 3
    assert run("repair", table.path, "--yes").code == 0
    newest = table.log().snapshot()
    assert (newest.version, newest.num_files) == (4, 2)
    assert table.log().history(1)[0].commit_info.operation == "FSCK"  # type: ignore[union-attr]
    assert run("check", table.path).code == 0
    assert len(run("cat", table.path, "--json").json["rows"]) == 6


def test_missing_files_of_an_append_only_table_stay(table: ArrowTable, run: Run) -> None:
    (table.root / table.files[1]).unlink()
    metadata = table.log().snapshot().metadata
    transaction = table.log().transaction()
    transaction.set_metadata(replace(metadata, configuration={**metadata.configuration, "delta.appendOnly": "true"}))
    version = transaction.commit([], WRITE).version
    ran = run("repair", table.path, "--yes", "--json")
    assert ran.code == 1
    assert ran.json["steps"] == []
    assert "unset delta.appendOnly" in ran.json["unrepairable"][0]["message"]
    assert table.log().snapshot().version == version


@pytest.mark.parametrize(("keys", "code", "version"), [(b"y\n", 0, 4), (b"n\n", 1, 3), (b"\n", 1, 3)])
def test_a_terminal_asks_before_a_repair(keys: bytes, code: int, version: int, table: ArrowTable) -> None:
    (table.root / table.files[1]).unlink()
    ran = on_terminal("repair", table.path, keys=keys)
    assert "Do this? [y/N]" in ran.out
    assert ran.code == code
    assert table.log().snapshot().version == version


def test_a_file_of_another_size_is_found(table: ArrowTable, run: Run) -> None:
    rewritten(table, 1, lambda line: line.get("add", {}).update(size=1))
    without_checksums(table)
    (problem,) = problems(run, table, "files")
    assert "and 1 by the log" in problem["message"]


def test_a_file_with_another_number_of_rows_is_found(table: ArrowTable, run: Run) -> None:
    rewritten(table, 1, lambda line: line.get("add", {}).update(stats='{"numRecords":4}'))
    (problem,) = problems(run, table, "footers")
    assert problem["message"] == "it has 3 rows, and 4 by the log"
    assert run("check", table.path, "--no-footers").code == 0


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": pa.array(["text"])}, "its column id is string, and bigint by the schema"),
        ({"user": pa.array([1])}, "its column user is int64, and string by the schema"),
        ({"amount": pa.array([True])}, "its column amount is bool, and double by the schema"),
        (
            {"id": pa.array([1], pa.int32()), "amount": pa.array([1], pa.int32())},
            None,
        ),  # from before a column was widened
        ({"more": pa.array([1])}, None),
        (None, "can't be read as Parquet"),
    ],
)
def test_a_file_that_does_not_fit_the_schema_is_found(
    columns: dict[str, pa.Array] | None, said: str | None, table: ArrowTable, run: Run
) -> None:
    path = table.root / table.files[0]
    if columns is None:
        path.write_bytes(b"x" * 100)
    else:
        pq.write_table(pa.table({"id": pa.array([1]), "user": ["u"], "amount": [1.5]} | columns), path)
    size = path.stat().st_size
    rewritten(table, 1, lambda line: line.get("add", {}).update(size=size, stats=None))
    without_checksums(table)
    messages = [problem["message"] for problem in json_problems(run, table, "footers")]
    assert (messages == []) if said is None else any(said in message for message in messages)


def json_problems(run: Run, table: ArrowTable, check: str) -> list[dict[str, Any]]:
    (chosen,) = (one for one in run("check", table.path, "--json").json["checks"] if one["name"] == check)
    return list(chosen["problems"])


def test_a_file_without_its_partition_value_is_found(table: ArrowTable, run: Run) -> None:
    rewritten(table, 1, lambda line: line.get("add", {}).update(partitionValues={}))
    assert "partition columns" in json_problems(run, table, "actions")[0]["message"]


def test_deletion_vectors_are_checked(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(tmp_path / "t", protocol=Protocol(3, 7, VECTORS, VECTORS))
    add = table.append(0)
    table.commit(add.remove(1), replace(add, deletion_vector=inline(DeletedRows.of([1]))))
    assert problems(run, table, "vectors") == []
    marked = table.log().snapshot().add_files()[0]
    table.commit(marked.remove(1), replace(add, deletion_vector=inline(DeletedRows.of([7]))))
    assert "deletes row 7, and it has 3 rows" in problems(run, table, "vectors")[0]["message"]
    last = table.log().snapshot().add_files()[0]
    wrong = replace(inline(DeletedRows.of([1])), cardinality=2)
    table.commit(last.remove(1), replace(add, deletion_vector=wrong))
    assert "it has 1 rows, but 2 in the log" in problems(run, table, "vectors")[0]["message"]


def test_a_file_that_is_in_the_log_twice_is_found(tmp_path: Path, run: Run) -> None:
    """A writer that adds a deletion vector must remove the file as it was; else all its rows are read again."""
    table = ArrowTable(tmp_path / "t", protocol=Protocol(3, 7, VECTORS, VECTORS))
    add = table.append(0)
    table.commit(replace(add, deletion_vector=inline(DeletedRows.of([1]))))
    found = problems(run, table, "actions")
    assert [(problem["files"], problem["severity"]) for problem in found] == [([add.path], "error")]
    assert "the log has it 2 times" in found[0]["message"]


def test_row_ids_are_checked(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(
        tmp_path / "t", {"delta.enableRowTracking": "true"}, protocol=Protocol(3, 7, frozenset(), ROW_IDS)
    ).with_rows(2)
    assert problems(run, table, "row ids") == []
    rewritten(table, 2, lambda line: line.get("add", {}).update(baseRowId=1))
    assert any("overlap" in problem["message"] for problem in problems(run, table, "row ids"))
    rewritten(table, 2, lambda line: line.get("add", {}).update(baseRowId=1000))
    assert any("high-water mark" in problem["message"] for problem in problems(run, table, "row ids"))


def test_orphans_are_counted(table: ArrowTable, run: Run) -> None:
    (table.root / "day=2024-05-01" / "left.parquet").write_bytes(b"12345")
    (table.root / "_change_data" / "day=2024-05-01").mkdir(parents=True)
    (table.root / "_change_data" / "day=2024-05-01" / "cdc.parquet").write_bytes(b"named by a commit alone")
    document = run("check", table.path, "--json").json
    assert document["orphans"] == {"numFiles": 1, "sizeInBytes": 5, "examples": ["day=2024-05-01/left.parquet"]}
    assert document["sound"] is True
    assert "1 file (5 B)" in run("check", table.path).out


def test_files_of_a_table_below_the_table_are_no_orphans(table: ArrowTable, run: Run) -> None:
    """VACUUM leaves them, too."""
    ArrowTable(table.root / "archive" / "old").append(0)
    (table.root / "archive" / "notes.parquet").write_bytes(b"12345")
    assert run("check", table.path, "--json").json["orphans"]["examples"] == ["archive/notes.parquet"]
    removed = run("vacuum", table.path, "--retain-hours", 0, "--no-retention-check", "--yes")
    assert removed.code == 0, removed.err
    assert [path.name for path in (table.root / "archive").rglob("part-*.parquet")] == ["part-00000.parquet"]


def test_many_problems_are_counted_and_some_are_shown(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(tmp_path / "t")
    add = table.write_file(0)
    table.commit(*(replace(add, path=f"day=2024-05-01/gone-{number}.parquet") for number in range(150)))
    (check,) = (one for one in run("check", table.path, "--json").json["checks"] if one["name"] == "files")
    assert check["errors"] == 150
    assert len(check["problems"]) == 100
    assert "and 140 more" in run("check", table.path).out


def test_a_file_outside_of_the_table_is_not_read(table: ArrowTable, run: Run) -> None:
    rewritten(table, 1, lambda line: line.get("add", {}).update(path="s3://elsewhere/x.parquet"))
    without_checksums(table)
    ran = run("cat", table.path)
    assert ran.code == 7
    assert "outside of the table" in ran.err


def test_a_repair_that_nothing_needs_any_more_makes_no_commit(table: ArrowTable) -> None:
    from tablelog.core.table_maintenance import repair, table_files

    log = table.log()
    step = repair.Step("remove-missing-files", (table.files[0],), "")
    assert repair.apply(log, step, table_files.of_table(log)) == "all files exist again"
    assert log.snapshot().version == 3


def test_a_partition_value_of_another_type_is_found(table: ArrowTable, run: Run) -> None:
    rewritten(table, 2, lambda line: line.get("add", {}).update(partitionValues={"day": "first of May"}))
    without_checksums(table)
    (problem,) = problems(run, table, "actions")
    assert problem["files"] == [table.files[1]]
    assert "partition column day can't be read: the partition value 'first of May' is not valid" in problem["message"]


def test_text_in_another_arrow_layout_fits(table: ArrowTable, run: Run) -> None:
    """delta-rs declares string views in its files."""
    path = table.root / table.files[0]
    pq.write_table(pq.read_table(path).set_column(1, "user", pa.array(["u"] * 3, pa.string_view())), path)
    assert pq.ParquetFile(path).schema_arrow.field("user").type == pa.string_view()
    rewritten(table, 1, lambda line: line.get("add", {}).update(size=path.stat().st_size))
    without_checksums(table)
    assert run("check", table.path).code == 0


# --- what a repair mustn't do -------------------------------------------------------------------------------------


def names(table: ArrowTable) -> list[str]:
    return sorted(path.name for path in table.log_directory.iterdir())


def test_a_checkpoint_that_was_mended_meanwhile_is_kept(
    table: ArrowTable, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tablelog.cli.commands import repair

    table.log().checkpoint()
    (checkpoint,) = table.log_directory.glob("*.checkpoint*.parquet")
    checkpoint.write_bytes(b"PAR1 damaged PAR1")

    def mended(*_: object, **__: object) -> bool:
        """Another process writes the checkpoint again, and removes the commits before it."""
        table.log().checkpoint()
        for version in range(4):
            table.commit_file(version).unlink()
        return True

    monkeypatch.setattr(repair, "confirmed", mended)
    ran = run("repair", table.path)
    assert f"another program has repaired it: kept {checkpoint.name}" in ran.out
    assert len(run("cat", table.path, "--json").json["rows"]) == 9


def test_a_table_that_can_not_be_written_is_not_repaired(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    (checkpoint,) = table.log_directory.glob("*.checkpoint*.parquet")
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fromTheFuture"]}
    table.commit_file(4).write_text(json.dumps({"protocol": protocol}) + "\n")
    checkpoint.write_bytes(b"PAR1 damaged PAR1")
    before = names(table)
    ran = run("repair", table.path, "--yes")
    assert ran.code == 7
    assert "fromTheFuture" in ran.err
    assert names(table) == before


@pytest.mark.parametrize("newest", [True, False])
def test_a_commit_that_lost_a_file_does_not_win_against_its_checkpoint_and_checksum(
    newest: bool, table: ArrowTable, run: Run
) -> None:
    table.log().checkpoint()
    if not newest:
        table.append(9)
    path = table.commit_file(2)
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"add"' not in line))
    before = names(table)
    kinds = {one["kind"] for one in json_problems(run, table, "checksums")}
    assert kinds == {"checksum-contradicts"}
    ran = run("repair", table.path, "--yes")
    assert ran.code == 1
    assert "Either a commit was changed after it was made, or both come from a wrong checkpoint" in ran.out
    assert names(table) == before


def test_a_lost_newest_commit_is_found_by_its_checksum(table: ArrowTable, run: Run) -> None:
    table.commit_file(3).unlink()
    (problem,) = json_problems(run, table, "checksums")
    assert (problem["kind"], problem["severity"]) == ("checksum-too-new", "error")
    assert "newer than the newest commit, 2: the commits up to 3 were probably lost" in problem["message"]
    assert run("repair", table.path, "--yes").code == 1


def test_no_checkpoint_is_written_of_a_version_in_doubt(table: ArrowTable, run: Run) -> None:
    table.log().checkpoint()
    (checkpoint,) = table.log_directory.glob("*.checkpoint*.parquet")
    checkpoint.rename(checkpoint.with_name(f"{9:020}.checkpoint.parquet"))
    before = names(table)
    ran = run("repair", table.path, "--yes")
    assert ran.code == 1
    assert names(table) == before
