"""Data files by fsspec: which file system a URI is in, with which options, and the few things done with it."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

from tablelog.errors import StorageAccessError, StorageError, StorageMissingError, UnsupportedEnvironmentError
from tablelog.logstore.data_files import DataFiles, FileSystem, file_system, path_in

S3A = {"spark.hadoop.fs.s3a.access.key": "who", "fs.s3a.secret.key": "HUSH", "fs.s3a.endpoint": "http://127.0.0.1:9"}


def test_s3_is_reached_by_hadoops_keys() -> None:
    pytest.importorskip("s3fs")
    for scheme in ("s3", "s3a", "s3n"):
        found = file_system(f"{scheme}://bucket/t", S3A, {})
        assert found.implementation == "s3fs:S3FileSystem"
        assert found.options["key"] == "who"
        assert found.options["secret"] == "HUSH"
        assert found.options["use_listings_cache"] is False
        assert "HUSH" not in repr(found)
        assert "HUSH" not in repr(DataFiles("s3a://bucket/t", found))


def test_azure_and_google_are_reached_by_hadoops_keys() -> None:
    key = {"fs.azure.account.key.acc.dfs.core.windows.net": "a2V5"}
    azure = file_system("abfss://box@acc.dfs.core.windows.net/t", key, {})
    assert azure.implementation == "adlfs:AzureBlobFileSystem"
    assert (azure.options["account_name"], azure.options["account_key"]) == ("acc", "a2V5")
    google = file_system("gs://bucket/t", {"fs.gs.auth.type": "UNAUTHENTICATED"}, {})
    assert google.implementation == "gcsfs.core:GCSFileSystem"
    assert google.options["token"] == "anon"
    assert not azure.options["use_listings_cache"]
    assert not google.options["use_listings_cache"]


def test_hdfs_takes_hadoops_keys_as_they_are() -> None:
    conf = {"spark.hadoop.dfs.replication": "1", "fs.s3a.secret.key": "HUSH", "dfs.ha.namenodes.ns": "a,b"}
    options = {"host": "ns", "port": None, "dfs.replication": "1", "dfs.ha.namenodes.ns": "a,b"}
    assert file_system("hdfs://ns/t", conf, {}) == FileSystem("hdfs_native.fsspec:HdfsFileSystem", options)
    assert file_system("hdfs://node:9000/t", {}, {}).options == {"host": "node", "port": 9000}
    assert file_system("hdfs://node/t", {}, {}).options == {"host": "node", "port": 8020}
    assert file_system("viewfs://c/t", {}, {}).implementation == "hdfs_native.fsspec:ViewfsFileSystem"


def test_other_schemes_are_fsspecs_to_serve_but_memory() -> None:
    found = file_system("ftp://host/t", {}, {"username": "u"})
    assert found == FileSystem(
        "fsspec.implementations.ftp:FTPFileSystem", {"username": "u", "use_listings_cache": False}
    )
    with pytest.raises(UnsupportedEnvironmentError, match="nor fsspec has a file system for nosuch"):
        file_system("nosuch://user:pass@bucket/t", {}, {})
    with pytest.raises(UnsupportedEnvironmentError, match="memory of one process"):
        file_system("memory://t", {}, {})


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3a://bucket/a%20b/p=x%252Fy/f", "bucket/a b/p=x%2Fy/f"),
        ("abfss://box@acc.dfs.core.windows.net/t/f", "box/t/f"),
        ("az://box/t", "box/t"),
        ("gs://bucket/t", "bucket/t"),
        ("hdfs://host:9/a%20b", "/a b"),
        ("file:///a%20b", "/a b"),
    ],
)
def test_paths_are_decoded(uri: str, path: str) -> None:
    assert path_in(uri) == path


def test_what_is_done_with_files(tmp_path: Path) -> None:
    files = DataFiles.of(f"file://{tmp_path}/a%20b", {}, {})
    assert files.list("d") == []
    files.write("d/x=1/[f*].parquet", b"12")
    files.write("d/x=1/[f*].parquet", b"3")
    files.write("d/g", b"")
    files.write("other", b"")
    assert sorted(files.list("d")) == ["d/g", "d/x=1/[f*].parquet"]
    assert (tmp_path / "a b" / "d" / "x=1" / "[f*].parquet").read_bytes() == b"3"
    files.delete(["d/x=1/[f*].parquet", "never/was"])
    assert files.list("d") == ["d/g"]
    files.delete_all("d")
    files.delete_all("d")
    assert files.list("") == ["other"]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (PermissionError("no"), StorageAccessError),
        (FileNotFoundError("no"), StorageMissingError),
        (ValueError("odd"), StorageError),
    ],
)
def test_errors_are_typed_and_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, kind: type[Exception]
) -> None:
    from fsspec.implementations.local import LocalFileSystem

    def fails(*args: object, **kwargs: object) -> None:
        raise raised

    monkeypatch.setattr(LocalFileSystem, "pipe_file", fails)
    with pytest.raises(kind, match=r"writing file:.*/f: "):
        DataFiles.of(f"file://{tmp_path}", {}, {}).write("f", b"")


class Flaky(LocalFileSystem):
    """Lists directory by directory, as hdfs_native does. One directory can't be listed."""

    cachable = False
    find, walk, exists = AbstractFileSystem.find, AbstractFileSystem.walk, AbstractFileSystem.exists

    def ls(self, path: str, detail: bool = False, **options: Any) -> Any:
        if path.endswith("/sub/_delta_log"):
            raise ConnectionResetError("the NameNode went away")
        return super().ls(path, detail=detail, **options)

    def info(self, path: Any, **options: Any) -> Any:
        if str(path).endswith("/unknown"):
            raise ConnectionResetError("the NameNode went away")
        return super().info(path, **options)


def test_a_listing_leaves_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """VACUUM would take the files of a table in a directory that can't be listed for files of nobody."""
    monkeypatch.setitem(sys.modules, "flaky", sys.modules[__name__])
    files = DataFiles(f"file://{tmp_path}", FileSystem("flaky:Flaky", {}))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"x")
    assert files.list("sub") == ["sub/a"]
    (tmp_path / "sub" / "_delta_log").mkdir()
    with pytest.raises(StorageError, match="the NameNode went away"):
        list(files.statuses())
    with pytest.raises(StorageError, match="the NameNode went away"):
        files.list("sub")
    assert list(files.statuses("nothing")) == files.list("nothing") == []


def test_a_file_of_which_nothing_is_known_may_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flaky", sys.modules[__name__])
    files = DataFiles(f"file://{tmp_path}", FileSystem("flaky:Flaky", {}))
    assert not files.exists("nothing")
    with pytest.raises(StorageError, match="the NameNode went away"):
        files.exists("unknown")


@pytest.mark.parametrize("name", ["x.parquet#1", "x.parquet?v=2", "a;b", "p=a;b/x.parquet"])
def test_hdfs_native_is_given_no_name_that_it_reads_as_a_url(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would delete the file before the sign."""
    sent: list[str] = []
    client = SimpleNamespace(rm_file=sent.append)
    monkeypatch.setattr(DataFiles, "_opened", client)
    files = DataFiles("hdfs://nn/t", FileSystem("hdfs_native.fsspec:HdfsFileSystem", {}))
    files.delete(["x.parquet", name])
    assert sent == ["/t/x.parquet"]
    with pytest.raises(StorageError, match="parts of a URL"):
        files.open(name)


class Misreading(AbstractFileSystem):
    """Reads paths as URLs, as hdfs_native does."""

    cachable = False

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        found = {
            "/t": [("/t/#x", "directory"), ("/t/#y", "directory"), ("/t/p=a", "directory"), ("/t/p=a;b", "directory")],
            "/t/p=a": [("/t/p=a/file", "file")],
        }
        return [
            {"name": name, "type": kind, "size": 1, "mtime": 1.0}
            for name, kind in found[re.split("[#?;]", path)[0].rstrip("/")]
        ]


@pytest.mark.timeout(20)
def test_directories_that_hdfs_native_reads_as_urls_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two of them would lead to each other without an end, and one's files would be found in another one."""
    monkeypatch.setattr(DataFiles, "_opened", Misreading())
    files = DataFiles("hdfs://nn/t", FileSystem("hdfs_native.fsspec:HdfsFileSystem", {}))
    assert [name for name, *_ in files.statuses()] == ["p=a/file"]
