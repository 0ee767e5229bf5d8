"""Repairs where it isn't known which of two files is wrong, or whether a file exists."""

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.arrow_table import ArrowTable
from tablelog.core.table_maintenance import repair, table_files
from tablelog.errors import StorageAccessError


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("from_the_start", [True, False])
def test_of_two_checkpoints_that_differ(tmp_path: Path, checksums: bool, from_the_start: bool) -> None:
    """The older one lost a file. The newer one is right: only commits from the first on can tell."""
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    for first in (100, 200):
        table.append(first)
    table.log().checkpoint()
    for version in () if from_the_start else range(3):
        table.commit_file(version).unlink()
    for path in () if checksums else list(table.log_directory.glob("*.crc")):
        path.unlink()
    older = table.log_directory / f"{3:020}.checkpoint.parquet"
    rows = pq.read_table(older)
    first = next(row for row, add in enumerate(rows.column("add").to_pylist()) if add)
    pq.write_table(rows.take([row for row in range(len(rows)) if row != first]), older)
    health = table.log().health()
    kinds = {problem.kind for problem in health.problems if problem.severity == "error"}
    plan = repair.plan(health, [])
    if from_the_start:
        assert {name for step in plan.steps if step.kind == "delete-checkpoint" for name in step.files} == {older.name}
    else:
        assert "checkpoints-differ" in kinds
        assert not [step for step in plan.steps if step.kind == "delete-checkpoint"]
        assert "checkpoints-differ" in {problem.kind for problem in plan.unrepairable}
    for step in plan.steps:
        repair.apply(table.log(), step, table_files.of_table(table.log()))
    assert table.log().snapshot().num_files == 5


def test_a_file_that_cannot_be_looked_at_is_not_taken_out_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ArrowTable(tmp_path)
    add = table.append(0)
    stat = os.stat

    def refused(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if str(path).endswith(add.path):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(StorageAccessError, match="Permission denied"):
        table_files.of_table(table.log()).absent([add.path])
    monkeypatch.undo()
    assert table_files.of_table(table.log()).absent([add.path, "nothing.parquet"]) == ["nothing.parquet"]
