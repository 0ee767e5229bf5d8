"""Hadoop's own local file system reads what we wrote over, or in the place of, files that it had made."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tablelog.logstore import LocalLogStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Hadoop:
    """`org.apache.hadoop.fs.LocalFileSystem`, which keeps and checks a checksum beside each file."""

    def __init__(self, spark: "SparkSession") -> None:
        self._jvm: Any = spark._jvm  # type: ignore[attr-defined]
        self._fs = self._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())  # type: ignore[attr-defined]

    def _path(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(str(path))

    def write(self, path: Path, text: str) -> None:
        stream = self._fs.create(self._path(path), True)
        stream.writeBytes(text)
        stream.close()

    def read(self, path: Path) -> str:
        stream = self._fs.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()


@pytest.fixture
def hadoop(spark: "SparkSession") -> Hadoop:
    return Hadoop(spark)


def test_hadoop_refuses_a_stale_sidecar(hadoop: Hadoop, tmp_path: Path) -> None:
    """What the tests below guard against does happen."""
    path = tmp_path / "_last_checkpoint"
    hadoop.write(path, "old")
    path.write_text("new")
    with pytest.raises(Exception, match="ChecksumException"):
        hadoop.read(path)


def test_hadoop_reads_what_we_overwrote(hadoop: Hadoop, tmp_path: Path) -> None:
    path = tmp_path / "_last_checkpoint"
    hadoop.write(path, "old")
    assert (tmp_path / "._last_checkpoint.crc").exists()
    LocalLogStore().write(str(path), b"new", overwrite=True)
    assert hadoop.read(path) == "new"


def test_hadoop_reads_what_we_made_where_its_file_was_removed(hadoop: Hadoop, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.json"
    hadoop.write(path, "old")
    path.unlink()
    LocalLogStore().write(str(path), b"new")
    assert hadoop.read(path) == "new"


def test_we_lose_to_a_file_of_hadoops_and_it_still_checks_it(hadoop: Hadoop, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.json"
    hadoop.write(path, "theirs")
    with pytest.raises(FileExistsError):
        LocalLogStore().write(str(path), b"ours")
    assert hadoop.read(path) == "theirs"
    assert (tmp_path / f".{0:020}.json.crc").exists()


def test_hadoop_lists_what_we_list(hadoop: Hadoop, tmp_path: Path) -> None:
    """Neither shows the other's sidecars."""
    hadoop.write(tmp_path / f"{0:020}.json", "theirs")
    LocalLogStore().write(f"{tmp_path}/{1:020}.json", b"ours")
    ours = [status.path.rpartition("/")[2] for status in LocalLogStore().list_from(f"{tmp_path}/")]
    theirs = sorted(status.getPath().getName() for status in hadoop._fs.listStatus(hadoop._path(tmp_path)))
    assert ours == theirs == [f"{0:020}.json", f"{1:020}.json"]
