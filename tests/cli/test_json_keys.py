"""The keys of the commands' JSON. Those of `optimize` and `convert` are in tests/spark/test_command_line.py."""

from pathlib import Path

import click
import pytest

from support import json_keys
from support.arrow_table import ArrowTable
from support.command_line import Run
from tablelog.cli.group import root

WITH_SPARK = {"optimize", "convert"}
STABLE = json_keys.stable()


@pytest.fixture
def changed(table: ArrowTable) -> ArrowTable:
    """A table in which each list of the JSON has an item: a file was removed, and the hint to a checkpoint is lost."""
    table.log().checkpoint()
    (table.log_directory / "_last_checkpoint").unlink()
    table.commit(table.log().snapshot().add_files([0])[0].remove(1))
    (table.root / "orphan.parquet").write_bytes(b"")
    return table


@pytest.mark.parametrize("line", [line for line in STABLE if line.split()[0] not in WITH_SPARK])
def test_keys_are_stable(line: str, changed: ArrowTable, run: Run, tmp_path: Path) -> None:
    words = [{"TABLE": changed.path, "NEW": str(tmp_path / "new")}.get(word, word) for word in line.split()]
    ran = run(*words)
    assert json_keys.keys_of(ran.json) == STABLE[line], ran.err


def test_each_command_with_json_is_here() -> None:
    context = click.Context(root)
    commands = {name: root.get_command(context, name) for name in root.list_commands(context)}
    with_json = {
        name
        for name, command in commands.items()
        if command is not None and any("--json" in parameter.opts for parameter in command.params)
    }
    assert {line.split()[0] for line in STABLE} == with_json
