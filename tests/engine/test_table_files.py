"""The files of a table by fsspec, as on storage that no JVM reaches: the same answers as by the operating system."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablelog.core import DeltaLog
from tablelog.core.table_maintenance.unneeded_files import ListedFile
from tablelog.engine.storage.table_files import FsspecFiles, LocalFiles
from tablelog.logstore.data_files import DataFiles, FileSystem


def hidden(name: str) -> bool:
    return name.startswith(("_", "."))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "a table"
    names = (
        "x.parquet",
        "p=1/y.parquet",
        "p=1/q=2/z",
        "p=1/.y.crc",
        "_delta_log/0.json",
        "sub/_delta_log/0.json",
        "sub/w",
    )
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"12345")
    return path


@pytest.fixture
def by_fsspec(root: Path) -> FsspecFiles:
    log = DeltaLog.for_path(str(root))
    return FsspecFiles(DataFiles.of(log.table, {}, {}), log)


def test_listings_agree(root: Path, by_fsspec: FsspecFiles) -> None:
    for below in ("", "p=1", "nowhere"):
        ours = {d.name: d for d in LocalFiles(str(root)).walk(hidden, below)}
        theirs = {d.name: d for d in by_fsspec.walk(hidden, below)}
        for name, directory in ours.items():
            assert sorted(theirs[name].files) == sorted(directory.files)
            assert sorted(theirs[name].hidden) == sorted(directory.hidden)
    assert {d.name for d in by_fsspec.walk(hidden)} == {"", "p=1", "p=1/q=2", "sub"}


def test_deleting_and_looking(root: Path, by_fsspec: FsspecFiles) -> None:
    by_fsspec.delete(["p=1/y.parquet", "p=1/q=2/z", "gone"])
    assert not (root / "p=1/y.parquet").exists()
    paths = ["x.parquet", "p%3D1/y.parquet", f"file://{root}/x.parquet".replace(" ", "%20"), "file:///nowhere/x"]
    for files in (by_fsspec, LocalFiles(str(root))):
        assert files.absent(paths) == ["p%3D1/y.parquet", "file:///nowhere/x"]
    pq.write_table(pa.table({f"column {i}": [i] for i in range(2000)}), root / "wide.parquet")
    size = (root / "wide.parquet").stat().st_size
    for files in (by_fsspec, LocalFiles(str(root))):
        assert files.footer(ListedFile("wide.parquet", size, 0)).num_columns == 2000


class Bucket:
    """What of s3fs is used here."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.single: list[str] = []

    def rm(self, paths: list[str]) -> None:
        self.batches.append(paths)

    def rm_file(self, path: str) -> None:
        self.single.append(path)

    def find(self, path: str, detail: bool) -> dict[str, dict[str, Any]]:
        moment = datetime(2024, 1, 1, tzinfo=UTC)
        return {
            "bucket/t/a": {"size": 1, "LastModified": moment},
            "bucket/t/b": {"size": 2, "updated": "2024-01-01T00:00:00Z"},
            "bucket/t/c": {"size": 3},
            "bucket/t/d/": {"size": 0},
        }


def test_s3_deletes_by_the_thousand_and_times_are_read_in_every_dialect() -> None:
    files = DataFiles("s3://bucket/t", FileSystem("s3fs:S3FileSystem", {}))
    bucket = Bucket()
    files.__dict__["_opened"] = bucket
    files.delete([f"f{i}" for i in range(1500)] + ["odd[1].parquet"])
    assert [len(batch) for batch in sorted(bucket.batches, key=len)] == [500, 1000]
    assert bucket.single == ["bucket/t/odd[1].parquet"]
    found = {name: (size, at) for name, size, at in files.statuses()}
    assert found["a"] == (1, 1704067200000)
    assert found["b"] == (2, 1704067200000)
    assert found["c"][1] > 1 << 50  # nobody tells: it is taken for new, and stays
    assert "d" not in found
