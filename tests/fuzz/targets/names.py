"""Paths of files in the log and of tables, names of log files, and names of partition directories."""

import os
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from fuzz.target import Target, allowed
from tablelog.core.protocol import external_paths, paths
from tablelog.core.protocol.paths import LogFile
from tablelog.errors import CorruptLogError
from tablelog.logstore import LocalLogStore, MemoryLogStore

ROOTS = (
    "/t",
    "file:///t%20t",
    "s3a://bucket/t",
    "memory:/table",
    "hdfs://host:8020/a/b",
    "abfss://c@a.dfs.core.windows.net/x",
)
_WORDS = [
    "%2F", "%25", "%FF", "%00", "%", "..", ".", "/", "//", ":", "file:", "file:///", "s3a://", "http://[::1]", "@",
    "?", "#",
    " ", "\\", "%2E%2E", "=", "__HIVE_DEFAULT_PARTITION__", "é", "\U0001f600", "memory:", "localhost", "%E9", "t",
]  # fmt: skip


def path(data: bytes) -> None:
    """A path of an action: each way to see it agrees with the others, and none of them fails."""
    root, text = ROOTS[(data[0] if data else 0) % len(ROOTS)], _text(data[1:])
    key = paths.canonical(text, root)
    assert paths.canonical_column(pa.array([text, None, "plain"]), root).to_pylist() == [key, None, "plain"]
    where, uri = paths.absolute(root, text), allowed(lambda: paths.absolute_uri(root, text))
    if uri is not None:
        assert uri.isascii() or not uri.partition("://")[2].partition("/")[0].isascii()
        scheme, _, rest = uri.partition("://")
        decoded = os.fsdecode(unquote_to_bytes(rest.partition("/")[1] + rest.partition("/")[2]))
        assert decoded == (
            where
            if scheme == "file"
            else where.partition("://")[2].partition("/")[1] + where.partition("://")[2].partition("/")[2]
        )
    name = paths.below(root, text)
    assert name is None or where.endswith(name)
    assert name is None or ".." not in name.split("/") or "/.." not in f"/{key}"
    for policy in ("allow", "sameStore"):
        allowed(lambda policy=policy: external_paths.refused(root, [text], policy))  # type: ignore[misc]
    assert external_paths.shown(text).isascii()
    encoded = paths.encode(text)
    if "://" not in text:
        assert paths.decode(encoded) == text


def _after_host(text: str) -> str:
    _, slash, rest = text.partition("/")
    return slash + rest


def log_name(data: bytes) -> None:
    """The name of a log file is made again from what it says."""
    name = _text(data)
    parsed = paths.parse_log_name(name)
    if parsed is None:
        raise CorruptLogError("another name")
    assert 0 <= parsed.version < 2**63
    assert _name(parsed) == name


def _name(file: LogFile) -> str:
    if file.kind == "commit":
        return paths.commit_name(file.version)
    if file.kind == "crc":
        return paths.crc_name(file.version)
    if file.first is not None:
        return paths.compacted_name(file.first, file.version)
    if file.part is not None and file.parts is not None:
        return paths.part_name(file.version, file.part, file.parts)
    if file.uuid is not None and file.format is not None:
        return paths.uuid_checkpoint_name(file.version, file.uuid, file.format)
    return paths.checkpoint_name(file.version)


def directory(data: bytes) -> None:
    """The directory of partition values gives the values again."""
    name, _, value = _text(data).partition("=")
    part = paths.partition_directory([name], {name: value})
    assert "/" not in part
    theirs_name, _, theirs = part.partition("=")
    assert paths.hive_unescape(theirs_name) == name
    assert theirs == paths.NULL_PARTITION if value == "" else paths.hive_unescape(theirs) == value


def table_path(data: bytes) -> None:
    """The path of a table, as a user or another program gives it."""
    text = _text(data)
    MemoryLogStore().resolve(text)
    uri = LocalLogStore().resolve(text)
    assert LocalLogStore().resolve(uri) == uri
    assert uri.isascii()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptLogError("not UTF-8, as every name in a log is") from None


_PATHS = [
    "part-0.parquet", "p=1/part%20a", "_2=bar+%252522/f", "/x/y", "file:/x/y", "FILE:/x//y", "./a/../b", "../up",
    "s3://bucket/k%2Fey", "a/.hidden", "http://[::1]:80/x", "abfss://c@a.dfs.core.windows.net/x", "%FF",
    "file:///t%20t/a",
]  # fmt: skip
_V = "00000000000000000012"
_LOG_NAMES = [
    f"{_V}.json", f"{_V}.crc", f"{_V}.checkpoint.parquet", f"{_V}.checkpoint.0000000001.0000000002.parquet",
    f"{_V}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", f"00000000000000000004.{_V}.compacted.json",
]  # fmt: skip

_NAME_WORDS = ["json", "0" * 20, "9" * 20, "crc", "\u0663"]
_DIRECTORIES = ["a=x/y=z", "b c=10:30", "p=v1.", "u=\u00e9 %", "n="]

TARGETS = (
    Target("path", path, lambda: [bytes([at % 6]) + t.encode() for at, t in enumerate(_PATHS)], "text", _WORDS, keep=1),
    Target("log-name", log_name, lambda: [name.encode() for name in _LOG_NAMES], "text", _NAME_WORDS),
    Target("partition-directory", directory, lambda: [text.encode() for text in _DIRECTORIES], "text", _WORDS),
    Target("table-path", table_path, lambda: [text.encode() for text in (*ROOTS, *_PATHS)], "text", _WORDS),
)
