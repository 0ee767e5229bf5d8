"""The checkpoint after a commit isn't made from an older one that the checksum of its version contradicts."""

from pathlib import Path

import pytest

from support.arrow_table import WRITE, ArrowTable
from tablelog.core import DeltaLog
from tablelog.core.log.reader import LogReader
from tablelog.core.table_maintenance import table_files
from tablelog.core.table_maintenance.vacuum import Window, vacuum
from tablelog.settings.declarations import CORRUPTION_IS_FATAL

INTERVAL = 10
"""The versions between two checkpoints, by default."""


def append_to(table: ArrowTable, last: int) -> None:
    """Append files, each by a new handle, as processes that come one after another do."""
    while table.log().snapshot().version < last:
        table.append(100)


def has_checkpoint(table: ArrowTable, version: int) -> bool:
    return (table.log_directory / f"{version:020}.checkpoint.parquet").exists()


def test_a_checkpoint_is_not_made_from_one_that_lost_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    table.lose_file(3)
    append_to(table, INTERVAL)
    assert not has_checkpoint(table, INTERVAL)
    assert "the number of files is 2, the checksum says 3" in caplog.text
    assert "its checkpoint wasn't written" in caplog.text
    # Without the wrong checkpoint, the next one is made from the commits.
    (table.log_directory / f"{3:020}.checkpoint.parquet").unlink()
    append_to(table, 2 * INTERVAL)
    assert has_checkpoint(table, 2 * INTERVAL)
    assert table.log().snapshot().num_files == 2 * INTERVAL


def test_a_wrong_checksum_does_not_prevent_the_checkpoint_if_the_commits_confirm_the_older_one(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    checksum = table.log_directory / f"{3:020}.crc"
    text = checksum.read_text()
    assert '"numFiles":3' in text
    checksum.write_text(text.replace('"numFiles":3', '"numFiles":4'))
    append_to(table, INTERVAL)
    assert has_checkpoint(table, INTERVAL)


def test_it_is_made_if_the_session_reads_versions_that_their_checksums_contradict(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    table.lose_file(3)
    append_to(table, INTERVAL - 1)
    log = DeltaLog.for_path(table.path, conf={CORRUPTION_IS_FATAL.key: "false"})
    log.transaction().commit([table.write_file(1000)], WRITE)
    assert has_checkpoint(table, INTERVAL)


def test_the_checksum_of_an_older_checkpoint_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ArrowTable(tmp_path).with_rows(3)
    table.log().checkpoint()
    append_to(table, 4)
    log, read = table.log(), []
    original = LogReader.read
    monkeypatch.setattr(LogReader, "read", lambda self, status: read.append(status.path) or original(self, status))
    for version in range(5, 2 * INTERVAL + 1):
        log.transaction().commit([table.write_file(version)], WRITE)
    assert has_checkpoint(table, INTERVAL)
    assert has_checkpoint(table, 2 * INTERVAL)
    assert [path.rpartition("/")[2] for path in read if path.endswith(".crc")] == [f"{3:020}.crc"]


@pytest.mark.parametrize("in_commit_timestamps", ["false", "true"])
def test_a_right_checkpoint_without_the_commits_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, in_commit_timestamps: str
) -> None:
    """Only commits have in-commit timestamps, so a checkpoint isn't compared with that of its checksum."""
    table = ArrowTable(tmp_path, {"delta.enableInCommitTimestamps": in_commit_timestamps}).with_rows(3)
    table.log().checkpoint()
    for version in range(3):
        table.commit_file(version).unlink()
    append_to(table, INTERVAL)
    assert has_checkpoint(table, INTERVAL)
    append_to(table, INTERVAL + 1)
    log = table.log()
    hour = 3_600_000
    window = Window(log.clock.now_ms() + hour, 0, hour, checked=False)
    assert vacuum(log, log.snapshot(), table_files.of_table(log), window, dry_run=True).files == ()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    assert log.health().ok
