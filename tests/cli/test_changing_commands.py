"""`tablelog vacuum`, `restore`, `export`, `demo` and `completion`: what they change, and only when they may."""

import json
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from support.arrow_table import ArrowTable
from support.command_line import Run, in_process, on_terminal
from tablelog.core.protocol.actions import Protocol
from tablelog.core.protocol.deletion_vectors import DeletedRows, inline
from tablelog.core.txn import bulk_actions

SHORT = ("--retain-hours", 0, "--no-retention-check")


@pytest.fixture
def shrunk(table: ArrowTable) -> ArrowTable:
    """The table after its first file was removed; all its files are old."""
    table.commit(table.log().snapshot().add_files([0])[0].remove(1))
    for name in table.files:
        os.utime(table.root / name, (1, 1))
    return table


def test_vacuum_is_a_dry_run_without_yes(shrunk: ArrowTable, run: Run) -> None:
    removed = run("vacuum", shrunk.path, *SHORT, "--json").json
    assert (removed["applied"], removed["numFiles"], removed["numDeleted"]) == (False, 1, 0)
    (name,) = removed["files"]
    assert (shrunk.root / name).exists()
    assert "dry run" in run("vacuum", shrunk.path, *SHORT).out
    assert shrunk.log().snapshot().version == 4


def test_vacuum_deletes_with_yes_and_records_it(shrunk: ArrowTable, run: Run) -> None:
    ran = run("vacuum", shrunk.path, *SHORT, "--yes", "--json")
    assert ran.code == 0
    (name,) = ran.json["files"]
    assert not (shrunk.root / name).exists()
    assert ran.json["numDeleted"] == 1
    operations = [commit["operation"] for commit in run("history", shrunk.path, "--json").json["history"]]
    assert operations[:2] == ["VACUUM END", "VACUUM START"]
    assert run("check", shrunk.path).code == 0


def test_vacuum_lite_takes_the_files_from_the_log(shrunk: ArrowTable, run: Run) -> None:
    (shrunk.root / "stray.parquet").write_bytes(b"x")
    os.utime(shrunk.root / "stray.parquet", (1, 1))
    assert run("vacuum", shrunk.path, *SHORT, "--lite", "--json").json["numFiles"] == 1
    assert run("vacuum", shrunk.path, *SHORT, "--json").json["numFiles"] == 2


@pytest.mark.parametrize(("keys", "stays"), [(b"n\n", True), (b"y\n", False)])
def test_vacuum_asks_on_a_terminal(keys: bytes, stays: bool, shrunk: ArrowTable, run: Run) -> None:
    (name,) = run("vacuum", shrunk.path, *SHORT, "--json").json["files"]
    ran = on_terminal("vacuum", shrunk.path, *SHORT, keys=keys)
    assert "Delete them? [y/N]" in ran.out
    assert (shrunk.root / name).exists() == stays


def test_vacuum_refuses_a_short_retention(shrunk: ArrowTable, run: Run) -> None:
    ran = run("vacuum", shrunk.path, "--retain-hours", 0, "--yes")
    assert ran.code == 2
    assert "168 hours" in ran.err
    assert run("vacuum", shrunk.path, "--json").json["numFiles"] == 0
    assert run("vacuum", shrunk.path, "--retain-hours", -1, "--no-retention-check").code == 2


def test_restore_shows_what_it_would_do_and_then_does_it(shrunk: ArrowTable, run: Run) -> None:
    dry = run("restore", shrunk.path, 3, "--json").json
    assert (dry["applied"], dry["version"], dry["numRestoredFiles"], dry["numRemovedFiles"]) == (False, None, 1, 0)
    assert shrunk.log().snapshot().version == 4
    done = run("restore", shrunk.path, 3, "--yes", "--json").json
    assert (done["applied"], done["version"]) == (True, 5)
    newest = shrunk.log().snapshot()
    assert (newest.version, newest.num_files) == (5, 3)
    info = shrunk.log().history(1)[0].commit_info
    assert info is not None
    assert (info.operation, info.operation_parameters) == ("RESTORE", {"version": 3})
    assert run("restore", shrunk.path, 5).out.splitlines()[-1] == "it is the newest version already: nothing to do"


def test_restore_of_a_large_table(
    shrunk: ArrowTable, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is written in pieces, with a checkpoint at once."""
    shrunk.log().checkpoint()
    monkeypatch.setattr(bulk_actions, "_BYTES", 0)
    expected = set(shrunk.log().snapshot(3).files.column("path").to_pylist())
    dry = run("restore", shrunk.path, 3, "--json").json
    assert (dry["applied"], dry["numRestoredFiles"], dry["numOfFilesAfterRestore"]) == (False, 1, len(expected))
    done = run("restore", shrunk.path, 3, "--yes", "--json").json
    assert done["version"] == 5
    assert (shrunk.root / "_delta_log" / f"{5:020}.checkpoint.parquet").exists()
    assert set(shrunk.log().snapshot().files.column("path").to_pylist()) == expected
    assert run("check", shrunk.path).code == 0


def test_restore_brings_back_the_schema_and_the_properties(table: ArrowTable, run: Run) -> None:
    log = table.log()
    transaction = log.transaction()
    changed = replace(log.snapshot().metadata, configuration={"delta.checkpointInterval": "5"})
    transaction.set_metadata(changed)
    from tablelog.core import Operation

    transaction.commit([], Operation("SET TBLPROPERTIES"))
    assert run("restore", table.path, 3, "--yes").code == 0
    assert table.log().snapshot().metadata.configuration == {}


def test_restore_refuses_a_version_whose_files_are_gone(shrunk: ArrowTable, run: Run) -> None:
    run("vacuum", shrunk.path, *SHORT, "--yes")
    ran = run("restore", shrunk.path, 3, "--yes")
    assert ran.code == 5
    assert "no longer exist" in ran.err


def test_restore_refuses_to_remove_rows_of_an_append_only_table(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(tmp_path / "t", {"delta.appendOnly": "true"}).with_rows(2)
    ran = run("restore", table.path, 1, "--yes")
    assert ran.code == 2
    assert "append-only" in ran.err
    assert table.log().snapshot().version == 2


def test_export_lists_the_locations_of_the_files(table: ArrowTable, run: Run, tmp_path: Path) -> None:
    expected = sorted(str(table.root / name) for name in table.files)
    assert sorted(run("export", table.path).out.splitlines()) == expected
    assert sorted(run("export", table.path, "--json").json["files"]) == expected
    assert run("export", table.path, "--at", 1).out.splitlines() == [str(table.root / table.files[0])]
    target = tmp_path / "files.txt"
    assert run("export", table.path, "--output", target).out == ""
    assert sorted(target.read_text().splitlines()) == expected


def test_export_changes_no_letter_of_a_location(tmp_path: Path, run: Run) -> None:
    table = ArrowTable(tmp_path / "t")
    name = "family \U0001f469\u200d\U0001f4bb\u00ad\t.parquet"
    add = table.write_file(0)
    (table.root / table.files[0]).rename(table.root / name)
    table.commit(replace(add, path=quote(name)))
    assert run("export", table.path).out == f"{table.root / name}\n"
    assert r"\u200d" in on_terminal("export", table.path).out
    target = tmp_path / "list"
    run("export", table.path, "--output", target)
    assert Path(target.read_text()[:-1]).exists()
    table.commit(replace(add, path=quote("a\nb")))
    ran = run("export", table.path)
    assert ran.code == 7
    assert "has a line feed" in ran.err
    assert f"{table.root}/a\nb" in run("export", table.path, "--json").json["files"]


def test_ctrl_d_at_a_question_is_an_interruption(table: ArrowTable) -> None:
    ran = on_terminal("restore", table.path, 1, keys=b"\x04")
    assert ran.code == 130
    assert "internal error" not in ran.out
    assert table.log().snapshot().version == 3


@pytest.mark.parametrize("words", [("export", "{table}", "--output"), ("report", "{table}", "-o"),
                                   ("conformance", "{table}", "--only", "second_writer_loses", "--html")])  # fmt: skip
def test_a_file_that_cannot_be_written_is_wrong_usage(
    words: tuple[str, ...], table: ArrowTable, run: Run, tmp_path: Path
) -> None:
    called = [word.format(table=table.path) for word in words]
    ran = run(*called, tmp_path / "no" / "x")
    line = f"tablelog {words[0]}: {tmp_path}/no/x can't be written: there is no directory {tmp_path}/no\n"
    assert (ran.code, ran.out, ran.err) == (2, "", line)
    assert "it is a directory" in run(*called, tmp_path).err


def test_export_writes_manifests(table: ArrowTable, run: Run) -> None:
    document = run("export", table.path, "--manifest", "--json").json
    assert len(document["manifests"]) == 2
    manifest = table.root / "_symlink_format_manifest" / "day=2024-05-02" / "manifest"
    assert manifest.read_text() == f"file:{table.root / table.files[1]}\n"
    assert run("export", table.path, "--manifest", "--at", 1).code == 2


def test_export_refuses_deletion_vectors(tmp_path: Path, run: Run) -> None:
    features = frozenset({"deletionVectors"})
    table = ArrowTable(tmp_path / "t", protocol=Protocol(3, 7, features, features))
    add = table.append(0)
    table.commit(add.remove(1), replace(add, deletion_vector=inline(DeletedRows.of([1]))))
    ran = run("export", table.path)
    assert ran.code == 7
    assert "deletion vectors" in ran.err
    assert len(run("export", table.path, "--ignore-vectors").out.splitlines()) == 1


def test_the_demo_makes_a_sound_table(tmp_path: Path, run: Run) -> None:
    root = tmp_path / "demo"
    document = run("demo", root, "--json").json
    assert document["version"] == 7
    assert run("check", root, "--strict").code == 0
    for line in document["commands"]:
        if "optimize" not in line:
            import shlex

            assert run(*shlex.split(line)[1:]).code == 0
    assert run("demo", root).code == 4


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str, run: Run) -> None:
    assert "_TABLELOG_COMPLETE" in run("completion", shell).out


def test_commands_and_options_are_completed() -> None:
    def completed(words: str, number: int) -> str:
        environment = {"_TABLELOG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        code = "import sys; from tablelog.cli import main; sys.argv = ['tablelog']; main()"
        import subprocess
        import sys

        return subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
        ).stdout

    assert completed("tablelog his", 1).split(",")[-1].strip() == "history"
    assert "--json" in completed("tablelog history t --js", 3)
    assert completed("tablelog history ./ta", 2).startswith("dir,")


def test_nothing_is_asked_without_a_terminal(shrunk: ArrowTable) -> None:
    ran = in_process("vacuum", shrunk.path, *SHORT, input="y\n")
    assert ran.code == 0
    assert "dry run" in ran.out
    assert json.loads(in_process("vacuum", shrunk.path, *SHORT, "--json").out)["numFiles"] == 1
