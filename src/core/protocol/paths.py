"""Paths of data files in the log, names of partition directories, and names of log files.

A `path` in an action is a URI reference (RFC 2396): relative to the table's root or absolute, percent-encoded. Actions
keep it unchanged. This module decodes it for reading, normalises it for replay, and encodes it for writing.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from ...errors import CorruptLogError

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_sidecars"
LAST_CHECKPOINT = "_last_checkpoint"
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
# RFC 2396: unreserved characters and those allowed in a path segment, without ":" (it could look like a scheme).
_SAFE = "/-_.!~*'(),;$&+=@"


# The hosts that java.net.URI accepts; one in brackets is an IPv6 address.
_PLAIN_HOST = r"[^\s\[\]<>\"{}|\\^`]*"
_AUTHORITY = re.compile(rf"{_PLAIN_HOST}|(?:{_PLAIN_HOST}@)?\[[0-9A-Fa-f:.]+\](?::[0-9]*)?").fullmatch


class _Location(NamedTuple):
    scheme: str  # lower case; "" for a path without a scheme
    authority: str
    path: str  # decoded


def _normal(path: str) -> str:
    """`path` without doubled slashes, with "." and ".." resolved as java.net.URI.normalize does."""
    if "//" in path:
        path = re.sub("//+", "/", path)
    if len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    if "." not in path or not (path.startswith(".") or "/." in path):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("..", ""):
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _bytes_decoded(text: str) -> str:
    """Percent-decoded as the name of a local file: bytes that aren't UTF-8 are kept."""
    return os.fsdecode(unquote_to_bytes(text))


def _key_decoded(text: str) -> str:
    """Percent-decoded for comparison: bytes that aren't UTF-8 stay encoded, so that different files stay different."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _split(uri: str, decoded: Callable[[str], str] | None) -> _Location:
    match = _SCHEME.match(uri)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", uri)
    authority = ""
    if match and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    if decoded is not None and "%" in rest:
        rest = decoded(rest)
    return _Location(scheme, authority, rest)


def _root(table_root: str) -> _Location:
    # A bare local path is used literally; the path of a URI is percent-encoded.
    location = _split(table_root, None)
    if location.scheme:
        location = _split(table_root, _bytes_decoded)
    return location._replace(path=_normal(location.path))


def decode(path: str) -> str:
    """The path of an action, percent-decoded as UTF-8; scheme and authority don't change."""
    return unquote(path) if "%" in path else path


def encode(path: str) -> str:
    """A relative file name, or an absolute URI with an unencoded path, in the form of an action's `path`."""
    match = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*", path)
    head = match[0] if match else ""
    return head + quote(path[len(head) :], safe=_SAFE)


def canonical(path: str, table_root: str | None = None) -> str:
    """The form of an action's path that replay uses to identify the file.

    It is decoded and normalised, so that `file:/x`, `file:///x` and `/x` (in a local table) are equal; a path without a
    scheme belongs to the file system of `table_root`. A relative and an absolute path are different files, as in all
    other implementations. PROTOCOL.md, "Action Reconciliation".
    """
    # Most paths need no change, which is decided by C code alone.
    if "%" not in path and ":" not in path and "//" not in path and "/." not in path and path[:1] not in "/.":
        return path
    location = _split(path, _key_decoded)
    name = _normal(location.path)
    if not location.scheme:
        if not name.startswith("/"):
            return name
        root = _root(table_root) if table_root else _Location("file", "", "")
        return f"{root.scheme or 'file'}://{root.authority}{name}"
    return f"{location.scheme}://{location.authority}{name}"


def canonical_column(paths: Any, table_root: str | None = None) -> Any:
    """`canonical` for a whole Arrow array (or chunked array) of paths; the same object if nothing changes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = pc.match_substring_regex(paths, "%|:|//|/\\.|^[/.]")
    if not pc.any(odd).as_py():
        return paths
    chosen = pc.indices_nonzero(odd)
    fixed = [canonical(path, table_root) for path in pc.take(paths, chosen).to_pylist()]
    mask = odd if isinstance(odd, pa.Array) else odd.combine_chunks()
    values = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    replaced = pc.replace_with_mask(values, mask, pa.array(fixed, type=values.type))
    return pa.chunked_array([replaced]) if isinstance(paths, pa.ChunkedArray) else replaced


def _resolved(table_root: str, path: str) -> _Location:
    root = _root(table_root)
    location = _split(path, _bytes_decoded)
    if location.scheme:
        if location.path[:1] != "/" and not location.authority:
            raise CorruptLogError(
                f"the path {path[:200]!r} of a file isn't a URI: after its scheme it is relative. Remove it from "
                "the log"
            )
        return location._replace(path=_normal(location.path))
    if location.path.startswith("/"):
        return root._replace(path=_normal(location.path))
    return root._replace(path=_normal(f"{root.path}/{location.path}"))


def absolute(table_root: str, path: str) -> str:
    """The location of an action's file, decoded: a local path, or `scheme://authority/key` for fsspec.

    `table_root` is a URI or a bare local path; `path` is as in the log. CorruptLogError for a path that has a scheme
    and is relative. PROTOCOL.md, "Add File and Remove File".
    """
    location = _resolved(table_root, path)
    if location.scheme in ("", "file"):
        return location.path
    return f"{location.scheme}://{location.authority}{location.path}"


def absolute_uri(table_root: str, path: str) -> str:
    """The location of an action's file as a percent-encoded URI (`file:///a%20b`), for Hadoop and Spark.

    CorruptLogError for a path with a host that isn't valid in a URI, and for one that has a scheme and is relative.
    """
    location = _resolved(table_root, path)
    if location.authority and not _AUTHORITY(location.authority):
        raise CorruptLogError(
            f"the path {path[:200]!r} of a file isn't a URI: its host isn't valid. Remove it from the log"
        )
    return f"{location.scheme or 'file'}://{location.authority}{quote(os.fsencode(location.path), safe=_SAFE + ':')}"


def below(table_root: str, path: str) -> str | None:
    """The decoded name of an action's file relative to the root; `None` if it is outside the root.

    Schemes and authorities aren't compared, because one location may have several: a file that may be below the root
    counts as below it.
    """
    root = _root(table_root).path.rstrip("/") + "/"
    location = _resolved(table_root, path).path
    return location[len(root) :] if location.startswith(root) else None


def own_name(table_root: str, path: str) -> str | None:
    """The decoded name of an action's file, if nothing else can be meant by it; else `None`.

    The file is below the root, its path has no scheme and authority or those of the root, and each part of its name
    is the name of a file or a directory.
    """
    root, location = _root(table_root), _resolved(table_root, path)
    if location.scheme and (location.scheme, location.authority) != (root.scheme or "file", root.authority):
        return None
    name = below(table_root, path)
    return name if name and not {"", ".", ".."}.intersection(name.split("/")) else None


_HIVE_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")


def hive_escape(text: str) -> str:
    """A column name or value as a part of a directory name, as Hive and Spark escape it."""
    return _HIVE_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def hive_unescape(text: str) -> str:
    """The inverse of `hive_escape`; a percent sign that isn't part of an escape is kept."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def above_partitions(path: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """The directories above `path` whose partition directory it may be: (directory, its (column, value) pairs).

    `t/p=1/q=2` may be one of `t/p=1`, and of `t`. The columns and values are decoded.
    """
    partition: tuple[tuple[str, str], ...] = ()
    while True:
        path, _, name = path.rstrip("/").rpartition("/")
        column, equals, value = name.partition("=")
        if not (path and column and equals):
            return
        partition = ((unquote(column), unquote(value)), *partition)
        yield path, partition


def partition_directory(columns: Iterable[str], values: Mapping[str, str | None]) -> str:
    """`column=value/...` for the serialised partition values of one file; null and "" have Hive's name for null.

    This is the directory's name on disk: `encode` converts it to a part of an action's path. It has no trailing slash.
    A dot at the end is escaped too, because Azure removes it.
    """

    def part(name: str) -> str:
        text = hive_escape(values.get(name) or "") or NULL_PARTITION
        return f"{hive_escape(name)}={text[:-1]}%2E" if text.endswith(".") else f"{hive_escape(name)}={text}"

    return "/".join(map(part, columns))


Kind = Literal["commit", "checkpoint", "compacted", "crc"]


class LogFile(NamedTuple):
    """The information in the name of a log file (PROTOCOL.md, "File Types").

    `version` is the version of the file (for a compacted file, which starts at `first`, the last version). `part` and
    `parts` are set for a multi-part checkpoint, `uuid` and `format` for a UUID-named one; a classic checkpoint has
    neither.
    """

    kind: Kind
    version: int
    name: str
    first: int | None = None
    part: int | None = None
    parts: int | None = None
    uuid: str | None = None
    format: Literal["json", "parquet"] | None = None


_LOG_NAME = re.compile(
    r"""(?P<version>[0-9]{20})\.(?:
        (?P<commit>json) | (?P<crc>crc)
        | (?P<last>[0-9]{20})\.compacted\.json
        | checkpoint\.(?:
            parquet
            | (?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet
            | (?P<uuid>[^.]+)\.(?P<format>json|parquet)
        )
    )""",
    re.VERBOSE,
)
_MAX_VERSION = 2**63 - 1
_COMMIT_LENGTH = len("00000000000000000000.json")


def commit_name(version: int) -> str:
    """Name of the commit of a version (PROTOCOL.md, "Delta Log Entries"); CorruptLogError beyond the last number."""
    if version > _MAX_VERSION:
        raise CorruptLogError(
            f"the log has version {_MAX_VERSION}, the highest possible one, so no version can follow: remove the file "
            "of that version, which wasn't written as the next version of this log"
        )
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """Name of the classic checkpoint of a version (PROTOCOL.md, "Classic checkpoint")."""
    return f"{version:020d}.checkpoint.parquet"


def part_name(version: int, part: int, parts: int) -> str:
    """Name of one part, from 1, of a multi-part checkpoint (PROTOCOL.md, "Multi-part checkpoint")."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def uuid_checkpoint_name(version: int, unique: str, form: Literal["json", "parquet"]) -> str:
    """Name of a V2 checkpoint (PROTOCOL.md, "UUID-named checkpoint")."""
    return f"{version:020d}.checkpoint.{unique}.{form}"


def crc_name(version: int) -> str:
    """Name of the version checksum (PROTOCOL.md, "Version Checksum File")."""
    return f"{version:020d}.crc"


def compacted_name(first: int, last: int) -> str:
    """Name of the compaction of the versions `first` to `last` (PROTOCOL.md, "Log Compaction Files")."""
    return f"{first:020d}.{last:020d}.compacted.json"


def listing_name(version: int) -> str:
    """The name at which a listing must start to contain every file of `version` and later."""
    return f"{version:020d}."


def parse_log_name(name: str) -> LogFile | None:
    """Parse the name of a log file (without directory); `None` for other files, which readers ignore."""
    # Most files are commits, and every listing parses all names.
    if len(name) == _COMMIT_LENGTH and name.endswith(".json") and name[:20].isascii() and name[:20].isdigit():
        version = int(name[:20])
        return LogFile("commit", version, name) if version <= _MAX_VERSION else None
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if version > _MAX_VERSION:
        return None
    if match["commit"]:
        return LogFile("commit", version, name)
    if match["crc"]:
        return LogFile("crc", version, name)
    if match["last"]:
        last = int(match["last"])
        return LogFile("compacted", last, name, first=version) if version < last <= _MAX_VERSION else None
    if match["parts"]:
        part, parts = int(match["part"]), int(match["parts"])
        return LogFile("checkpoint", version, name, part=part, parts=parts) if 1 <= part <= parts else None
    if match["uuid"]:
        form: Literal["json", "parquet"] = "json" if match["format"] == "json" else "parquet"
        return LogFile("checkpoint", version, name, uuid=match["uuid"], format=form)
    return LogFile("checkpoint", version, name)
