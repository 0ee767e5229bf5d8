"""The `_last_checkpoint` file: a hint where to start the listing (PROTOCOL.md, "Last Checkpoint File Schema").

The reader doesn't rely on it: if it is missing or damaged, the log is listed from the beginning.
"""

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The content of the file: `size` is the number of actions in the checkpoint, `size_in_bytes` its bytes."""

    version: int
    size: int
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None


def parse(data: bytes) -> LastCheckpoint | None:
    """Parse the hint; `None`, and a log line, when it is damaged: no JSON, wrong types, or a wrong checksum."""
    try:
        obj = json.loads(data, object_pairs_hook=_unique)
        if not isinstance(obj, dict):
            raise ValueError("not an object")
        expected = obj.get("checksum")
        if expected is not None and expected not in _checksums(obj):
            raise ValueError("its checksum doesn't match its content")
        version = obj.get("version")
        if type(version) is not int or version < 0:
            raise ValueError("no version")
        return LastCheckpoint(
            version=version,
            size=_long(obj, "size") or 0,
            parts=_long(obj, "parts"),
            size_in_bytes=_long(obj, "sizeInBytes"),
            num_of_add_files=_long(obj, "numOfAddFiles"),
        )
    except (ValueError, RecursionError) as error:
        _log.info("_last_checkpoint is damaged (%s): the whole log is listed instead", error)
        return None


def serialise(hint: LastCheckpoint) -> bytes:
    """The content of the file, with the checksum of its other fields."""
    obj: dict[str, Any] = {"version": hint.version, "size": hint.size}
    if hint.parts is not None:
        obj["parts"] = hint.parts
    if hint.size_in_bytes is not None:
        obj["sizeInBytes"] = hint.size_in_bytes
    if hint.num_of_add_files is not None:
        obj["numOfAddFiles"] = hint.num_of_add_files
    obj["checksum"] = checksum(obj)
    return json.dumps(obj, separators=(",", ":")).encode()


def checksum(obj: dict[str, Any]) -> str:
    """MD5 of the canonical form of all fields but `checksum` (PROTOCOL.md, "JSON checksum")."""
    return _md5(canonical_form(obj))


def _checksums(obj: dict[str, Any]) -> tuple[str, str]:
    """The checksum, and that of delta-spark, which sorts another text if an array has more than ten elements.

    PROTOCOL.md sorts by the paths, where `"a"+1` is before `"a"+10`. delta-spark sorts by `path=value`, where `=` is
    after `0`.
    """
    return checksum(obj), _md5(",".join(sorted(f"{path}={text}" for path, text in _pairs(obj))))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def canonical_form(obj: dict[str, Any]) -> str:
    """The canonical text of a JSON object, without its top-level `checksum` (PROTOCOL.md, "JSON checksum")."""
    return ",".join(f"{path}={text}" for path, text in sorted(_pairs(obj), key=lambda pair: pair[0].encode()))


def _pairs(obj: dict[str, Any]) -> list[tuple[str, str]]:
    """The path and the value of each leaf."""
    pairs: list[tuple[str, str]] = []
    for key, value in obj.items():
        if key != "checksum":
            _walk(_quoted(key), value, pairs)
    return pairs


def _walk(path: str, value: Any, pairs: list[tuple[str, str]]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _walk(f"{path}+{_quoted(key)}", item, pairs)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(f"{path}+{index}", item, pairs)
    else:
        pairs.append((path, _quoted(value) if isinstance(value, str) else json.dumps(value)))


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        raise ValueError("a key occurs twice")
    return obj


def _long(obj: dict[str, Any], key: str) -> int | None:
    value = obj.get(key)
    return value if type(value) is int else None
