"""Names of data files, partition directories and log files."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablelog.core.protocol import paths
from tablelog.core.protocol.actions import AddFile, RemoveFile
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.paths import LogFile
from tablelog.errors import CorruptLogError


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("p=1/part%20a", "p=1/part a"),
        ("_2=bar+%252522/f", "_2=bar+%2522/f"),
        ("/x/y", "file:///x/y"),
        ("file:/x/y", "file:///x/y"),
        ("file:///x/y", "file:///x/y"),
        ("FILE:/x//y", "file:///x/y"),
        ("/with%20space/p@%23h", "file:///with space/p@#h"),
        ("./a/../b", "b"),
        ("../up", "../up"),
        ("s3://bucket/k%2Fey", "s3://bucket/k/ey"),
        ("a/.hidden", "a/.hidden"),
    ],
)
def test_one_file_has_one_key(path: str, key: str) -> None:
    assert paths.canonical(path) == key
    assert paths.canonical_column(pa.array([path, None, "plain"])).to_pylist() == [key, None, "plain"]


def test_a_path_without_scheme_belongs_to_the_file_system_of_the_table() -> None:
    assert paths.canonical("/t/f", "s3a://bucket/t") == "s3a://bucket/t/f"
    assert paths.canonical("/t/f", "/t") == paths.canonical("file:/t/f", "/t")
    assert paths.canonical("f", "s3a://bucket/t") == "f"


@pytest.mark.parametrize("name", ["normal-a", "normal-b", "special-a", "special-b"])
def test_the_canonicalised_golden_tables_end_empty(golden: Callable[[str], Path], name: str) -> None:
    """Each adds a file under one spelling and removes it under another."""
    table = golden(f"canonicalized-paths-{name}") / "delta"
    live: set[str] = set()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for action in parse_commit(commit.read_bytes()):
            if isinstance(action, AddFile):
                live.add(paths.canonical(action.path, str(table)))
            elif isinstance(action, RemoveFile):
                live.discard(paths.canonical(action.path, str(table)))
    assert live == set()


@pytest.mark.parametrize(
    ("root", "path", "where", "uri"),
    [
        ("/t", "a%20b", "/t/a b", "file:///t/a%20b"),
        ("file:///t%20t/", "a", "/t t/a", "file:///t%20t/a"),
        ("/t%20t", "a", "/t%20t/a", "file:///t%2520t/a"),
        ("file:/t", "/abs/x%25", "/abs/x%", "file:///abs/x%25"),
        ("/t", "file:/abs/x", "/abs/x", "file:///abs/x"),
        ("s3a://b/t", "p=a%20b/f", "s3a://b/t/p=a b/f", "s3a://b/t/p=a%20b/f"),
        ("s3a://b/t", "s3a://other/k", "s3a://other/k", "s3a://other/k"),
        ("s3a://b/t", "/k", "s3a://b/k", "s3a://b/k"),
        ("s3a://b/a%20t", "f", "s3a://b/a t/f", "s3a://b/a%20t/f"),
        ("/t", "c=10%253A30/f", "/t/c=10%3A30/f", "file:///t/c=10%253A30/f"),
    ],
)
def test_where_a_file_lies(root: str, path: str, where: str, uri: str) -> None:
    assert paths.absolute(root, path) == where
    assert paths.absolute_uri(root, path) == uri


relative = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: "/" not in text and text not in (".", "..")
)


@given(relative)
def test_an_encoded_name_is_a_uri_that_decodes_to_it(name: str) -> None:
    encoded = paths.encode(name)
    assert encoded.isascii()
    assert not set(encoded) & set(' ?#"<>\\^`{|}:')
    assert paths.decode(encoded) == name
    assert paths.canonical(encoded) == name
    assert paths.absolute("/t", encoded) == f"/t/{name}"


def test_an_absolute_uri_keeps_scheme_and_authority() -> None:
    assert paths.encode("s3a://bucket:9/a b%") == "s3a://bucket:9/a%20b%25"


@given(relative)
def test_hive_escapes_are_undone(text: str) -> None:
    escaped = paths.hive_escape(text)
    assert not set(escaped) & set("/:=?*\"\\{[]^#'\x00\x1f\x7f")
    assert paths.hive_unescape(escaped) == text


def test_partition_directories_are_those_of_spark() -> None:
    values = {"a": "x/y=z", "b c": "10:30", "n": None, "e": "", "u": "é %"}
    assert paths.partition_directory(values, values) == (
        "a=x%2Fy%3Dz/b c=10%3A30/n=__HIVE_DEFAULT_PARTITION__/e=__HIVE_DEFAULT_PARTITION__/u=é %25"
    )
    assert paths.partition_directory(["p"], {"p": "v1."}) == "p=v1%2E"


V = "00000000000000000012"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (f"{V}.json", LogFile("commit", 12, f"{V}.json")),
        (f"{V}.crc", LogFile("crc", 12, f"{V}.crc")),
        (f"{V}.checkpoint.parquet", LogFile("checkpoint", 12, f"{V}.checkpoint.parquet")),
        (
            f"{V}.checkpoint.0000000001.0000000002.parquet",
            LogFile("checkpoint", 12, f"{V}.checkpoint.0000000001.0000000002.parquet", part=1, parts=2),
        ),
        (
            f"{V}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
            LogFile(
                "checkpoint", 12, f"{V}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
                uuid="3a0d65cd-4056-49b8-937b-95f9e3ee90e5", format="json",
            ),
        ),
        (
            "00000000000000000004.00000000000000000012.compacted.json",
            LogFile("compacted", 12, "00000000000000000004.00000000000000000012.compacted.json", first=4),
        ),
    ],
)  # fmt: skip
def test_names_in_the_log(name: str, file: LogFile) -> None:
    assert paths.parse_log_name(name) == file


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint", "_sidecars", "1.json", f".{V}.json.crc", f"{V}.json.tmp", f"{V}.json.crc", f"x{V}.json",
        f"{V}.checkpoint.json", f"{V}.checkpoint.0000000003.0000000002.parquet", f"{V}.checkpoint.a.b.parquet",
        f"{V}.checkpoint.0000000000.0000000002.parquet", "99999999999999999999.json", f"{V}.{V}.compacted.json",
        f"{V}.00000000000000000004.compacted.json", "", f"{V}", f"{V}.json\n", "\u0660" * 20 + ".json",
    ],
)  # fmt: skip
def test_other_names_are_nothing(name: str) -> None:
    assert paths.parse_log_name(name) is None


def test_names_are_made_as_they_are_read() -> None:
    assert paths.commit_name(12) == f"{V}.json"
    assert paths.parse_log_name(paths.checkpoint_name(3)) == LogFile("checkpoint", 3, paths.checkpoint_name(3))
    assert paths.parse_log_name(paths.crc_name(3)) == LogFile("crc", 3, paths.crc_name(3))
    assert paths.parse_log_name(paths.compacted_name(3, 5)) == LogFile(
        "compacted", 5, paths.compacted_name(3, 5), first=3
    )
    assert paths.crc_name(7) > paths.listing_name(7) > paths.checkpoint_name(6)


def test_names_that_are_no_utf8_stay_apart_and_can_be_opened() -> None:
    assert paths.canonical("%FF") != paths.canonical("%FE")
    assert paths.absolute("file:///t%FE", "a%FF") == os.fsdecode(b"/t\xfe/a\xff")
    assert paths.absolute_uri("file:///t%FE", "a%FF") == "file:///t%FE/a%FF"


def test_no_commit_comes_after_the_last_version() -> None:
    assert paths.commit_name(2**63 - 1) == "09223372036854775807.json"
    with pytest.raises(CorruptLogError, match="version 9223372036854775807, the highest possible one"):
        paths.commit_name(2**63)


@pytest.mark.parametrize("path", ["http://[::1", "http://[::1/x", "s3a://a b/x", "s3a://[x]/y", "hdfs://a{b}/x"])
def test_a_path_with_a_host_that_none_is_called(path: str) -> None:
    with pytest.raises(CorruptLogError, match="its host isn't valid"):
        paths.absolute_uri("file:///t", path)


@pytest.mark.parametrize("path", ["file:x", "file:", "s3a:k", "a:b.parquet", "memory:../x"])
def test_a_path_with_a_scheme_that_is_relative(path: str) -> None:
    """It would be a file below the directory that the process happens to be in."""
    for resolve in (paths.absolute, paths.absolute_uri, paths.below):
        with pytest.raises(CorruptLogError, match="after its scheme it is relative"):
            resolve("/t", path)


@pytest.mark.parametrize("path", ["http://[::1]:80/x", "abfss://c@a.dfs.core.windows.net/x", "s3a://bücket_1/x"])
def test_a_path_with_a_host(path: str) -> None:
    assert paths.absolute_uri("file:///t", path) == path
